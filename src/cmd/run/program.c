/* cmd/run/program.c -- finds the program that `dyntrace run` starts, and checks whether it can be
 * recorded. See cmd/run/run.h. */
#include "cmd/run/run.h"

#include <glob.h>
#include <sys/auxv.h>
#include <sys/wait.h>

#include "cmd/library.h"
#include "launchers.h"
#include "lib/say.h"
#include "versions.h"

static bool is_program(const char *path)
{
    struct stat status;

    return access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Store the path of PROGRAM in PATH. Returns false if PROGRAM was not found. */
static bool find_program(const char *program, char path[PATH_MAX])
{
    const char *part = getenv("PATH");

    snprintf(path, PATH_MAX, "%s", program);
    if (strchr(program, '/'))
        return is_program(path);
    for (part = part ? part : "/usr/bin:/bin"; part;
         part = strchr(part, ':') ? strchr(part, ':') + 1 : NULL) {
        int length = (int)strcspn(part, ":");
        snprintf(path, PATH_MAX, "%.*s/%s", length ? length : 1, length ? part : ".", program);
        if (is_program(path))
            return true;
    }
    return false;
}

/* Is FILE an ELF program, for any kind of machine, rather than a script? */
static bool is_elf_program(const char *file)
{
    char start[4] = "";
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && read(fd, start, sizeof start) == sizeof start &&
              !memcmp(start, "\177ELF", sizeof start);

    if (fd >= 0)
        close(fd);
    return is;
}

const char *program_find_reason(const char *program, int error)
{
    struct stat status;

    if (!strchr(program, '/'))
        return error == ENOENT ? "there is none on PATH" : strerror(error);
    if (stat(program, &status))
        return strerror(errno);
    if (S_ISDIR(status.st_mode))
        return "it is a directory";
    if (!S_ISREG(status.st_mode))
        return "it is no regular file";
    if (!(status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
        return "it is not executable: chmod +x makes it so";
    if (error == EACCES)
        return "this user may not execute it, or nothing on its file system (mounted noexec)";
    if (error == ENOENT)
        return is_elf_program(program) ? "the loader of shared libraries that it needs is not there"
                                       : "the interpreter that its first line names is not there";
    if (error == ENOEXEC)
        return "it is a program for another machine, or damaged";
    return strerror(error);
}

/* Can Python run FILE, a script or a directory with __main__.py? If not, the reason has been
 * reported. */
static bool can_python_run_file(const char *file)
{
    struct stat status;
    bool directory = stat(file, &status) == 0 && S_ISDIR(status.st_mode);
    char inner[PATH_MAX];

    snprintf(inner, sizeof inner, "%s%s", file, directory ? "/__main__.py" : "");
    if (access(inner, R_OK) == 0)
        return true;
    say_error("%s: %s", file,
              directory ? "a directory without __main__.py, which Python cannot run"
                        : strerror(errno));
    return false;
}

const char *program_choose_python(void)
{
    static char path[PATH_MAX + 16];
    /* use the path by which we were called. /proc/self/exe would not do: behind pipx's link, it
     * leads to the virtual environment of pipx, but the link's own directory has no pyvenv.cfg */
    const char *called = (const char *)getauxval(AT_EXECFN);

    snprintf(path, sizeof path, "%.*s../pyvenv.cfg", (int)(basename(called) - called), called);
    if (access(path, F_OK) == 0)
        snprintf(path, sizeof path, "%.*spython3", (int)(basename(called) - called), called);
    return is_program(path) ? path : "python3";
}

int program_find(struct program *t, const char *python, int argc, char **argv)
{
    const char *first = argv[0];
    const char *end = strrchr(first, '.');
    bool words = !strcmp(first, "-m") || !strcmp(first, "-c");
    bool script =
        end && end > first && (!strcmp(end, ".py") || !strcmp(end, ".pyw") || !strcmp(end, ".pyz"));

    if (words && argc < 2) {
        say_error("run: %s needs %s", first, first[1] == 'm' ? "a module's name" : "code");
        return -1;
    }
    t->name = !words ? first : first[1] == 'm' ? argv[1] : "command";
    t->argv = calloc((size_t)argc + 2, sizeof *t->argv);
    if (!words && !script && find_program(first, t->path)) {
        memcpy(t->argv, argv, (size_t)argc * sizeof *argv);
        t->python = python_is_interpreter_name(first);
        return 0;
    }
    if (!words && !script && access(first, F_OK)) {
        say_error("%s: neither a script here nor a program on PATH", first);
        return -1;
    }
    if (!words && !can_python_run_file(first))
        return -1;
    if (!find_program(python, t->path)) {
        say_error("%s: cannot be the interpreter: %s; name one with --python", python,
                  program_find_reason(python, strchr(python, '/') ? EACCES : ENOENT));
        return -1;
    }
    t->argv[0] = (char *)python;
    memcpy(t->argv + 1, argv, (size_t)argc * sizeof *argv);
    t->python = true;
    t->interpreted = true;
    return 0;
}

/* Execute ARGV. If the kernel cannot execute its file, the file is run as a shell script, unless it
 * is a program for another machine. Returns only if execution failed, with errno set. */
static void execute_interpreter(const char *const *argv)
{
    if (strchr(argv[0], '/')) {
        execv(argv[0], (char **)argv);
        if (errno != ENOEXEC || is_elf_program(argv[0]))
            return;
    }
    execvp(argv[0], (char **)argv);
}

struct asked interpreter_start_question(const char *const *argv, bool errors)
{
    struct asked asked = {.fd = -1, .error = EAGAIN};
    int ends[2], failure[2];

    if (pipe2(ends, O_CLOEXEC))
        return asked;
    if (pipe2(failure, O_CLOEXEC)) {
        close(ends[0]);
        close(ends[1]);
        return asked;
    }
    fflush(NULL);
    asked.pid = fork();
    if (asked.pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(ends[1], 1);
        dup2(errors ? ends[1] : null, 2);
        execute_interpreter(argv);
        if (write(failure[1], &errno, sizeof errno) < 0)
            _exit(126);
        _exit(127);
    }
    close(ends[1]);
    close(failure[1]);
    if (asked.pid > 0 && read(failure[0], &asked.error, sizeof asked.error) == 0)
        /* the pipe ended without an error number: execve() succeeded and closed it */
        asked.error = 0;
    close(failure[0]);
    asked.fd = ends[0];
    return asked;
}

bool interpreter_read_answer(struct asked *asked, char *text, size_t room)
{
    FILE *said = asked->fd < 0 ? NULL : fdopen(asked->fd, "r");
    int error = asked->error;

    text[said ? fread(text, 1, room - 1, said) : 0] = 0;
    if (said)
        fclose(said);
    if (asked->pid > 0)
        waitpid(asked->pid, NULL, 0);
    *asked = (struct asked){.fd = -1};
    errno = error;
    return said && !error;
}

/* Do we have EXTENSION for the CPython version in the file name of PATH? If the name is wrong, the
 * interpreter will find no extension when it runs, and report that. To ask the interpreter for its
 * version would take as long as starting Python. */
static bool has_extension_for_path(const char *path, const char *extension)
{
    char real[PATH_MAX], pattern[PATH_MAX + 80];
    const char *name = realpath(path, real) ? strrchr(real, '/') : NULL;
    int minor;
    int length = 0;
    glob_t found;
    bool known;

    if (!name || sscanf(name, "/python3.%d%n", &minor, &length) < 1 || name[length])
        return false;
    snprintf(pattern, sizeof pattern, "%s/%s.cpython-3%d-*.so", library_directory(NULL), extension,
             minor);
    known = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return known;
}

struct asked program_ask_version(const struct program *t, bool capture)
{
    /* without -I, which Python 2 does not know */
    const char *const argv[] = {t->path, "-E", "-S", "-c", ask_which_py, NULL};
    bool known;

    if (!t->python)
        return (struct asked){.fd = -1};
    known = has_extension_for_path(t->path, "_dyntrace");
    if (capture)
        known = known && has_extension_for_path(t->path, "_dyntrace_capture");
    return known ? (struct asked){.fd = -1} : interpreter_start_question(argv, false);
}

static bool is_installed_by_debian(void)
{
    return !strcmp(library_directory(NULL), "/usr/lib/dyntrace");
}

static const char debian[] = "apt install --reinstall python3-dyntrace";

const char *extension_describe_remedy(const char *python, char remedy[PATH_MAX + 80])
{
    bool pip = strstr(library_directory(NULL), "-packages/") ||
               (is_installed_by_debian() && strncmp(python, "/usr/bin/", 9));
    char beside[PATH_MAX + 16], own[PATH_MAX], other[PATH_MAX];
    bool another = snprintf(beside, sizeof beside, "%.*s/dyntrace",
                            (int)(basename(python) - python) - 1, python) > 0 &&
                   is_program(beside) && realpath(beside, other) &&
                   realpath("/proc/self/exe", own) && strcmp(own, other);

    snprintf(remedy, PATH_MAX + 80,
             another                    ? "%s is another dyntrace: use that"
             : pip                      ? "install dyntrace, or reinstall it, with `%s -m pip`"
             : is_installed_by_debian() ? debian
                                        : "build it with `make PYTHONS=%s`",
             another ? beside : python);
    return remedy;
}

bool program_can_be_recorded(const struct program *t, struct asked *asked, bool capture, bool quiet)
{
    char text[256], name[64], suffix[128], path[PATH_MAX + 400], remedy[PATH_MAX + 80];
    int major, minor;
    bool fits;

    interpreter_read_answer(asked, text, sizeof text);
    if (sscanf(text, "%63s %d %d %127s", name, &major, &minor, suffix) < 4)
        /* the interpreter gave no answer; it will report the reason itself when it runs */
        return true;
    fits = versions_is_supported(name, major, minor);
    if (!fits && !quiet)
        say_error("%s: %s %d.%d is not supported: use " CPYTHON_SUPPORTED
                  ", or run untraced with --frames none",
                  t->path, strcmp(name, "cpython") ? name : "CPython", major, minor);
    snprintf(path, sizeof path, "%s/_dyntrace%s", library_directory(suffix), suffix);
    if (!fits)
        return false;
    if (access(path, R_OK)) {
        if (!quiet)
            say_error("%s: no extension for this CPython %d.%d is built (%s): %s", t->path, major,
                      minor, path, extension_describe_remedy(t->path, remedy));
        return false;
    }
    if (capture && versions_is_free_threaded(suffix)) {
        if (!quiet)
            say_error("run: --capture needs a CPython with the GIL, and %s is free-threaded: run "
                      "without --capture, which records its frames",
                      t->path);
        return false;
    }
    snprintf(path, sizeof path, "%s/_dyntrace_capture%s", library_directory(suffix), suffix);
    if (!capture || access(path, R_OK) == 0)
        return true;
    if (!quiet)
        say_error("run: --capture needs capture, which is not in this installation (%s): %s, or "
                  "run without --capture",
                  path, extension_describe_remedy(t->path, remedy));
    return false;
}

/* ---- --set ----
 *
 * python/dyntrace/_settings.py has the list of settings. The program's interpreter runs this file,
 * because names of settings are checked against its torch. The file reads torch's sources without
 * importing them. */

enum { ANSWER_MAX = 16 << 10 };

/* Report an invalid setting. LINE is what _settings.py printed: "NUMBER WHY", the setting's number
 * and why it is invalid. Returns false if LINE has another form. */
static bool report_invalid_setting(const char *line, const struct session_options *options,
                                   const char *who)
{
    char *why;
    unsigned long number = strtoul(line, &why, 10);
    int length;

    if (*why != ' ' || number >= options->settings.count)
        return false;
    why++;
    length = (int)strcspn(why, "\n");
    say_error("%s%s: %.*s", who, options->settings.at[number], length, why);
    return true;
}

/* Return the line that follows the line at TEXT, or the end of the text. */
static const char *line_after(const char *text)
{
    const char *end = text + strcspn(text, "\n");

    return *end ? end + 1 : end;
}

/* Store the path of _settings.py, which checks settings, in PATH. */
static void find_settings_file(char path[PATH_MAX + 64])
{
    const char *library = library_directory(NULL);

    snprintf(path, PATH_MAX + 64, "%s/python/dyntrace/_settings.py", library);
    if (access(path, R_OK)) /* in pip's layout both files are in one folder */
        snprintf(path, PATH_MAX + 64, "%s/_settings.py", library);
}

bool settings_are_valid(const struct program *t, const struct session_options *options,
                        const char *who)
{
    char path[PATH_MAX + 64];
    const char *argv[6 + SETTINGS_MAX] = {"", "-c", ask_settings_py, path};
    char *text = calloc(1, ANSWER_MAX);
    struct asked asked;
    bool fit = true;

    find_settings_file(path);
    argv[0] = t->python ? t->path : program_choose_python();
    argv[4] = t->python ? "1" : "0";
    for (size_t i = 0; i < options->settings.count; i++)
        argv[5 + i] = options->settings.at[i];
    asked = interpreter_start_question(argv, false);
    interpreter_read_answer(&asked, text, ANSWER_MAX);
    for (const char *line = text; *line; line = line_after(line))
        if (report_invalid_setting(line, options, who))
            fit = false;
    free(text);
    return fit;
}

int settings_print_unused(const char *text)
{
    int count = 0;

    while (*text) {
        int length = (int)strcspn(text, "\n");
        say_error("run: --set %.*s", length, text);
        text = line_after(text);
        count++;
    }
    return count;
}

/* ---- finding the directory that makes interpreters load the recorder ----- */

static char inject[PATH_MAX + 80];

const char *program_find_inject_directory(void)
{
    const char *library = library_directory(NULL);
    char file[sizeof inject + 32];

    snprintf(inject, sizeof inject, "%s/inject", library);
    snprintf(file, sizeof file, "%s/sitecustomize.py", inject);
    if (strchr(library, ':'))
        say_error("%s: Python cannot be led to a directory with a colon in its name; put dyntrace "
                  "somewhere else",
                  library);
    else if (access(file, R_OK))
        say_error("%s: not there: %s", file,
                  is_installed_by_debian() ? debian : "run `make`, or reinstall dyntrace");
    else
        return inject;
    return NULL;
}

/* Can every user of this machine open files in `inject`, the directory that
 * program_find_inject_directory() returned? */
static bool can_all_users_read_inject(void)
{
    char path[sizeof inject];
    struct stat status;

    memcpy(path, inject, sizeof path);
    for (char *end = path + strlen(path); end > path; end = strrchr(path, '/')) {
        *end = 0;
        if (stat(path, &status) || !(status.st_mode & S_IXOTH))
            return false;
    }
    return true;
}

/* ---- reporting why nothing was recorded ---------------------------------- */

enum { WORDS = 256 };

/* Split the first line of FILE, such as "#!/usr/bin/env python3", into WORDS, whose characters are
 * in TEXT. TEXT has room for more than the kernel reads of such a line. Returns the number of
 * words, which is 0 if the line does not begin with "#!". */
static size_t split_first_line(const char *file, char text[512], const char *words[3])
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : read(fd, text, 511);
    size_t count = 0;
    char *rest = text + 2;
    char *word;

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    if (strncmp(text, "#!", 2) != 0)
        return 0;
    text[strcspn(text, "\n")] = 0;
    rest += strspn(rest, " \t");
    word = strsep(&rest, " \t");
    if (word && *word)
        words[count++] = word;
    if (rest)
        rest += strspn(rest, " \t");
    if (count && rest && *rest)
        words[count++] = rest; /* the kernel passes the rest of the line as one argument */
    return count;
}

/* Print why no Python that the command WORDS started has loaded the recorder: either a launcher in
 * WORDS cleared the environment or PYTHONPATH, or a word is an option that makes Python ignore it.
 * Returns false if WORDS show neither. */
static bool report_why_not_loaded(const char *const *words)
{
    struct launch_words found = {.program = words};
    const struct launcher *launcher = NULL;
    char option;

    while (*found.program && !found.cleared && !found.paths &&
           (launcher = launcher_find(*found.program)))
        found = launcher_find_program(launcher, found.program);
    option = *found.program && python_is_interpreter_name(*found.program)
                 ? python_find_ignoring_option(found.program + 1)
                 : 0;
    if (found.cleared)
        say_error("nothing was recorded: %s did not hand on the environment by which a Python "
                  "would have loaded the recorder: put `dyntrace run` behind it",
                  launcher->name);
    else if (found.paths)
        say_error("nothing was recorded: %s took from PYTHONPATH that by which a Python would have "
                  "loaded the recorder: put `dyntrace run` behind it",
                  launcher->name);
    else if (option)
        say_error("nothing was recorded: %s was started with -%c, without which it would have "
                  "loaded the recorder",
                  *found.program, option);
    return found.cleared || found.paths || option;
}

/* Call report_why_not_loaded() for the script of T. The words are those of the script's first line,
 * followed by its arguments. */
static bool report_why_script_not_loaded(const struct program *t)
{
    const char *words[WORDS + 1] = {NULL};
    char text[512];
    size_t count = split_first_line(t->path, text, words);

    if (!count)
        return false;
    for (size_t i = 0; t->argv[i] && count < WORDS; i++)
        words[count++] = t->argv[i];
    return report_why_not_loaded(words);
}

void program_report_unrecorded(const struct program *t, int ended)
{
    bool for_all = can_all_users_read_inject();

    if (WIFSIGNALED(ended))
        say_error("nothing was recorded: signal %d (%s) ended the program before a Python had "
                  "loaded the recorder",
                  WTERMSIG(ended), strsignal(WTERMSIG(ended)));
    else if (t->python)
        say_error("nothing was recorded: %s ended with status %d and had not loaded the recorder, "
                  "as when it only prints its version or cannot start",
                  t->argv[0], WEXITSTATUS(ended));
    else if (!report_why_not_loaded((const char *const *)t->argv) &&
             !report_why_script_not_loaded(t))
        say_error("nothing was recorded: no Python process loaded the recorder; the program is not "
                  "Python, or starts it with -I, -E or -S, or without the environment (env -i, "
                  "sudo, su -, systemd-run)%s%s%s",
                  for_all ? "" : ", or as a user who cannot read ", for_all ? "" : inject,
                  for_all ? "" : ": install dyntrace where that user can");
}
