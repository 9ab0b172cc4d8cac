/* cmd/run/rank.c -- decides where the trace of a job's rank is recorded: apart from the traces of
 * other ranks, on a local disk. See cmd/run/run.h.
 *
 * The output directory may be on a shared filesystem, which is slow and whose locks SQLite cannot
 * trust. Nothing is therefore written there while the program runs; the collector moves the
 * finished trace there (recorder_move). The same is done for every directory in which files cannot
 * be locked.
 *
 * A new file on the shared filesystem gets the time of its server, which is the same for all ranks.
 * So each rank can measure how much its own clock differs from the server's.
 *
 * Runs in: the command line. */
#include "cmd/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "collector/trace_files.h"
#include "job.h"
#include "lib/say.h"

/* Return the first of %h, %r, %p and %% in NAME, or NULL if NAME has none. */
static const char *find_placeholder(const char *name)
{
    while ((name = strchr(name, '%')) && (!name[1] || !strchr("hrp%", name[1])))
        name++;
    return name;
}

bool output_is_per_rank(const char *output)
{
    const char *name = strrchr(output, '/');

    return *output && (output[strlen(output) - 1] == '/' || find_placeholder(name ? name : output));
}

bool rank_locks_work(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    char *probe =
        say_print("%.*s.dyntrace-lock-XXXXXX", (int)(strrchr(path, '/') + 1 - path), path);
    int fd = mkstemp(probe);
    /* if no file can be created here, do not report it: the code that creates the trace will */
    bool ok = fd < 0 || fcntl(fd, F_SETLK, &lock) == 0;

    if (fd >= 0) {
        close(fd);
        unlink(probe);
    }
    free(probe);
    return ok;
}

/* Append TEXT to PATH. A slash, which a file name cannot have, becomes an underscore. */
static void append_safe_text(char *path, size_t room, const char *text)
{
    size_t used = strlen(path);

    for (; *text && used + 1 < room; text++)
        path[used++] = *text == '/' ? '_' : *text;
    path[used] = 0;
}

static void expand_placeholders(char *path, size_t room, const char *pattern)
{
    const char *rank = job_read_fact(JOB_RANK);
    char host[256] = "";
    char number[32];

    gethostname(host, sizeof host - 1);
    snprintf(number, sizeof number, "%d", (int)getpid());
    for (const char *at; (at = find_placeholder(pattern)); pattern = at + 2) {
        snprintf(path + strlen(path), room - strlen(path), "%.*s", (int)(at - pattern), pattern);
        append_safe_text(path, room,
                         at[1] == 'h'   ? host
                         : at[1] == 'p' ? number
                         : at[1] == '%' ? "%"
                         : rank         ? rank
                                        : "none");
    }
    snprintf(path + strlen(path), room - strlen(path), "%s", pattern);
}

static int64_t read_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Measure how far the clock of FOLDER's file server is ahead of our clock, and store it in SESSION.
 * The possible error is stored, too. It includes a kernel tick, because a file may get the time of
 * the last tick. Returns false on error, which has been reported. */
static bool measure_clock_of_file_server(struct session *session, const char *folder)
{
    enum { TICK_NS = 10000000 };
    char *path = say_print("%s/.dyntrace-clock-XXXXXX", folder);
    int64_t before = read_clock_ns();
    int64_t after;
    int fd = path ? mkstemp(path) : -1;
    struct stat st;
    bool ok = fd >= 0 && write(fd, "", 1) == 1 && fsync(fd) == 0 && fstat(fd, &st) == 0;

    after = read_clock_ns();
    if (ok) {
        session->clock_offset_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec -
                                   (before + (after - before) / 2);
        session->clock_doubt_ns = (after - before) / 2 + TICK_NS;
    } else {
        say_error("%s: no trace can be made there: %s", folder, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    free(path);
    return ok;
}

bool rank_choose_output(struct session *session, const char *output, const char *here, bool force,
                        char *path, size_t room)
{
    const char *places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    char *to = session->destination;
    char *name;
    bool folder = output[strlen(output) - 1] == '/';
    size_t most = sizeof session->destination;
    const char *last = folder ? NULL : strrchr(output, '/');
    int written =
        snprintf(to, most, "%s%s%.*s%s", *output == '/' ? "" : here, *output == '/' ? "" : "/",
                 (int)(folder ? strlen(output)
                       : last ? (size_t)(last - output)
                              : 0),
                 output, last || folder ? "/" : "");

    while (written > 1 && written < (int)most && to[written - 1] == '/' && to[written - 2] == '/')
        to[--written] = 0;
    if (written < 0 || (size_t)written + 300 > most) {
        say_error("run: %s: too long for a file's name", output);
        return false;
    }
    if (mkdir(to, 0777) && errno != EEXIST) {
        say_error("%s: cannot be made: %s", to, strerror(errno));
        return false;
    }
    if (!measure_clock_of_file_server(session, to))
        return false;
    expand_placeholders(to, most, folder ? "%h-%r-%p.db" : last ? last + 1 : output);
    if (force && !recorder_delete_old_file(to))
        return false;
    if (access(to, F_OK) == 0) {
        say_error("%s: exists already; --force replaces it", to);
        return false;
    }
    name = strrchr(to, '/');
    for (size_t i = 0; i < array_count(places); i++) {
        if (!places[i] || *places[i] != '/')
            continue;
        snprintf(path, room, "%s/dyntrace-rank-XXXXXX", places[i]);
        if (mkdtemp(path)) {
            snprintf(path + strlen(path), room - strlen(path), "%s", name);
            return true;
        }
    }
    say_error("no place for the trace while it is recorded: %s", strerror(errno));
    return false;
}
