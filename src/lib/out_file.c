/* lib/out_file.c -- an output file that is complete or absent. See lib/out_file.h.
 *
 * Runs in: the viewer. */
#include "lib/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/bounds.h"
#include "lib/say.h"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING = array_count(ending) };
/* borrowed: the temporary file to remove, or NULL; read by a signal handler */
static char *volatile unfinished;
/* the signal actions to restore when the file is in place */
static struct sigaction before[NSIG];

/* Remove the unfinished file. Safe in a signal handler. */
static void remove_unfinished(void)
{
    if (unfinished)
        /* the file has no journal to remove, because db_create_trace turns journals off */
        unlink(unfinished);
}

static void remove_file_and_end(int number)
{
    remove_unfinished();
    sigaction(number, &before[number], NULL);
    raise(number);
}

/* From now on remove PATH when a signal ends the program. If PATH is NULL, no longer remove a
 * file. */
static void remove_on_signal(char *path)
{
    struct sigaction act = {.sa_handler = remove_file_and_end};
    struct sigaction old;

    unfinished = path;
    bounds_call_at_end(remove_unfinished);
    for (int i = 0; i < ENDING; i++) {
        int number = ending[i];
        sigaction(number, NULL, &old);
        /* do not handle a signal that is ignored, as SIGHUP is under nohup */
        if (path && old.sa_handler != SIG_IGN && old.sa_handler != remove_file_and_end) {
            before[number] = old;
            sigaction(number, &act, NULL);
        } else if (!path && old.sa_handler == remove_file_and_end) {
            sigaction(number, &before[number], NULL);
        }
    }
}

/* Return NULL if PATH may be written, or the reason why not. */
static const char *find_reason_not_writable(const char *path, bool force)
{
    struct stat st;

    if (!*path || path[strlen(path) - 1] == '/')
        return "not the name of a file";
    if (lstat(path, &st) != 0)
        return NULL;
    if (!force)
        return "exists already; --force replaces it";
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? "is a directory" : "not a regular file";
    return NULL;
}

const char *out_make_scratch_file(struct arena *arena)
{
    const char *places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    int fd = -1;

    for (size_t i = 0; fd < 0 && i < array_count(places); i++)
        if (places[i] && *places[i] &&
            (fd = open(places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) < 0) {
            /* this filesystem has no O_TMPFILE: make a file with a name, and delete the name */
            char *name = say_print("%s/dyntrace-XXXXXX", places[i]);
            if ((fd = mkostemp(name, O_CLOEXEC)) >= 0)
                unlink(name);
            free(name);
        }
    if (fd >= 0)
        return arena_print(arena, "/proc/%d/fd/%d", (int)getpid(), fd);
    say_error("no place for a temporary file: %s", strerror(errno));
    return NULL;
}

bool out_open(struct out_file *out, const char *path, bool force)
{
    const char *why;
    int fd;

    *out = (struct out_file){.force = force, .file = stdout};
    if (!out_is_named(path))
        return true;
    if ((why = find_reason_not_writable(path, force))) {
        say_error("%s: %s", path, why);
        return false;
    }
    out->path = strdup(path);
    out->temporary = say_print("%s.XXXXXX", path);
    /* register the name first, because a signal may come as soon as mkstemp() creates the file */
    remove_on_signal(out->temporary);
    fd = mkstemp(out->temporary);
    out->file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out->file) {
        say_error("%s: %s", path, strerror(errno));
        out_close(out);
        return false;
    }
    setvbuf(out->file, NULL, _IOFBF, 1 << 18);
    return true;
}

/* Flush FILE and check for write errors. Reports an error once. */
static bool flush_file(FILE *file, const char *name)
{
    errno = 0;
    if (fflush(file) == 0 && !ferror(file))
        return true;
    say_error("%s: %s", name, errno ? strerror(errno) : "cannot be written");
    clearerr(file);
    return false;
}

bool out_flush(void)
{
    return flush_file(stdout, "output");
}

int out_rename(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* this filesystem cannot rename without replacing: make a second link, then remove the first */
    if (link(from, to))
        return -1;
    return unlink(from);
}

bool out_commit(struct out_file *out)
{
    if (!flush_file(out->file, out->path ? out->path : "output"))
        return false;
    if (!out->path)
        return true;
    if ((out->force ? rename : out_rename)(out->temporary, out->path)) {
        say_error("%s: %s", out->path,
                  errno == EEXIST ? "exists already; --force replaces it" : strerror(errno));
        return false;
    }
    remove_on_signal(NULL);
    free(out->temporary);
    out->temporary = NULL;
    return true;
}

void out_close(struct out_file *out)
{
    if (out->file && out->file != stdout)
        fclose(out->file);
    if (out->temporary) {
        unlink(out->temporary);
        remove_on_signal(NULL);
        free(out->temporary);
    }
    free(out->path);
    *out = (struct out_file){0};
}

bool out_is_same_file(const char *path, const char *other)
{
    struct stat a, b;

    return path && stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

bool out_is_named(const char *path)
{
    return path && strcmp(path, "-") != 0;
}

char *state_file_path(const char *name)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    bool own = state && *state == '/';
    char *path;
    int fd;

    if (!own && !(home && *home == '/'))
        return NULL;
    path = say_print("%s%s/dyntrace/%s", own ? state : home, own ? "" : "/.local/state", name);
    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0700); /* usually the directory exists already */
        *p = '/';
    }
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || fchmod(fd, 0600) != 0) {
        free(path);
        path = NULL;
    }
    if (fd >= 0)
        close(fd);
    return path;
}

struct out_given out_given;

const struct option out_options[] = {
    {"output", 'o', "FILE", option_text, &out_given.path, .help = "the trace to make",
     .needed = true},
    {"force", .read = option_flag, .to = &out_given.force, .help = "replace FILE"},
    OPTION_END,
};
