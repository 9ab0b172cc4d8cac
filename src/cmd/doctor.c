/* cmd/doctor.c -- `dyntrace doctor`: prints what works on this machine, and what it costs.
 *
 * Each interpreter runs twice. First it runs ask_alone.py, which loads the extension without a
 * recording and measures a call without and with the extension's hook. Then `dyntrace run` records
 * it running ask_recorded.py; the lines about torch come from the trace of this run. */
#include <errno.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "clock.h"
#include "cmd/library.h"
#include "cmd/run/run.h"
#include "collector/session.h"
#include "command.h"
#include "lib/list.h"
#include "lib/option.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"
#include "versions.h"

static void print_labelled_line(const char *what, const char *text)
{
    printf("    %s", what);
    say_escaped(stdout, text, strcspn(text, "\n"));
    printf("\n");
}

/* Record PYTHON and print facts from its trace. PLAIN and HOOKED are the nanoseconds of a call
 * without a hook and with a hook that records nothing. Returns false if no trace was made. */
static bool diagnose_test_recording(const char *python, double plain, double hooked)
{
    char own[PATH_MAX], directory[PATH_MAX], trace[PATH_MAX + 16], text[4096];
    char *rest = text;
    char *ns, *owner, *why;
    const char *const argv[] = {realpath("/proc/self/exe", own),
                                "run",
                                "-o",
                                trace,
                                "--python",
                                python,
                                "--",
                                "-c",
                                ask_recorded_py,
                                NULL};
    struct asked asked;
    struct query *rows;
    struct db *db;
    bool recorded;

    snprintf(directory, sizeof directory, "%s/dyntrace.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(directory)) {
        printf("    cannot be recorded: %s: %s; set TMPDIR to a place that can be written\n",
               directory, strerror(errno));
        return false;
    }
    snprintf(trace, sizeof trace, "%s/trace.db", directory);
    asked = interpreter_start_question(argv, true);
    interpreter_read_answer(&asked, text, sizeof text);
    strsep(&rest, "\t");
    ns = strsep(&rest, "\t");
    owner = strsep(&rest, "\t");
    why = strsep(&rest, "\t");
    db = why ? db_open(trace) : NULL;
    recorded = db;
    if (recorded) {
        printf("    a call takes %.1f ns, under a bare hook %.1f ns, recorded %.1f ns\n", plain,
               hooked, strtod(ns, NULL));
        if (*why != '\n')
            print_labelled_line("", why);
        rows = db_query(db, schema_statement("doctor"));
        query_bind_text(rows, 1, strstr(owner, "_dyntrace") ? "" : owner);
        while (query_step(rows))
            print_labelled_line("", query_text(rows, 0, NULL));
        query_close(rows);
        db_close(db);
    } else {
        print_labelled_line("cannot be recorded: ", *text ? text : "it ended without a word");
    }
    unlink(trace);
    rmdir(directory);
    return recorded;
}

/* Paths of the interpreters that were diagnosed so far. */
struct diagnosed {
    struct arena arena;
    LIST(const char *) paths; /* paths of interpreters; the texts are in `arena` */
};

/* What the program ask_alone.py has printed about an interpreter. */
struct answer {
    char name[64], suffix[128];
    int major, minor;
    char path[PATH_MAX]; /* path of the interpreter's executable, without links; "" if not known */
    double plain, hooked;
    bool is_python, has_costs;
};

/* Return the line after LINE, or NULL if there is none. */
static const char *find_next_line(const char *line)
{
    const char *end = line ? strchr(line, '\n') : NULL;

    return end && end[1] ? end + 1 : NULL;
}

/* Read the answer in TEXT. Lines before it, such as an interpreter's warnings, are skipped. */
static struct answer parse_unrecorded_answer(const char *text)
{
    struct answer answer = {0};
    const char *path, *costs;

    for (; text && !answer.is_python; text = find_next_line(text))
        answer.is_python = sscanf(text, "%63s %d %d %127s\n", answer.name, &answer.major,
                                  &answer.minor, answer.suffix) == 4;
    path = answer.is_python ? text : NULL;
    costs = find_next_line(path);
    if (path)
        snprintf(answer.path, sizeof answer.path, "%.*s", (int)strcspn(path, "\n"), path);
    if (costs)
        answer.has_costs = sscanf(costs, "%lf %lf", &answer.plain, &answer.hooked) == 2;
    return answer;
}

/* Run ask_alone.py in PYTHON. TEXT receives its output, standard error included. Returns false and
 * sets errno if PYTHON cannot be run. */
static bool run_python_without_recorder(const char *python, const struct diagnosed *before,
                                        char *text, size_t room)
{
    LIST(const char *) argv = {0};
    struct asked asked;
    bool answers;
    int error;

    *list_add(&argv) = python;
    *list_add(&argv) = "-E";
    *list_add(&argv) = "-S";
    *list_add(&argv) = "-c";
    *list_add(&argv) = ask_alone_py;
    *list_add(&argv) = library_directory(NULL);
    for (size_t i = 0; i < before->paths.count; i++)
        *list_add(&argv) = before->paths.at[i];
    *list_add(&argv) = NULL;
    asked = interpreter_start_question(argv.at, true);
    answers = interpreter_read_answer(&asked, text, room);
    error = errno;
    list_free(&argv);
    errno = error;
    return answers;
}

/* Print that a program is not a Python interpreter, with the first line of its output, SAYS. */
static void report_no_python(const char *says)
{
    size_t length = strcspn(says, "\r\n");

    printf(": not a Python 3 that answers; not supported");
    if (length) {
        printf(" (it says: ");
        say_escaped(stdout, says, length);
        printf(")");
    }
    printf("\n");
}

static bool was_diagnosed(const struct diagnosed *before, const char *path)
{
    for (size_t i = 0; i < before->paths.count; i++)
        if (!strcmp(before->paths.at[i], path))
            return true;
    return false;
}

/* Print the lines about PYTHON, and add PYTHON to BEFORE. Nothing is printed if BEFORE has it
 * already. Returns true if PYTHON can be recorded. */
static bool diagnose_interpreter(const char *python, struct diagnosed *before)
{
    char text[512 + PATH_MAX], remedy[PATH_MAX + 80];
    bool answers = run_python_without_recorder(python, before, text, sizeof text);
    int error = answers ? 0 : errno;
    struct answer is = parse_unrecorded_answer(text);
    bool supported = is.is_python && versions_is_supported(is.name, is.major, is.minor);

    if (*is.path && was_diagnosed(before, is.path))
        return false;
    if (*is.path)
        *list_add(&before->paths) = arena_print(&before->arena, "%s", is.path);
    printf("  ");
    say_escaped(stdout, python, strlen(python));
    if (!answers)
        printf(": cannot be run: %s\n", program_find_reason(python, error));
    else if (!is.is_python)
        report_no_python(text);
    else if (!supported)
        printf(": %s %d.%d is not supported: use " CPYTHON_SUPPORTED "\n", is.name, is.major,
               is.minor);
    else if (is.has_costs)
        printf(": CPython %d.%d%s\n", is.major, is.minor,
               versions_is_free_threaded(is.suffix)
                   ? ", free-threaded: frames, spans and arguments, but no compilers"
                   : "");
    else {
        printf(": CPython %d.%d, no extension: ", is.major, is.minor);
        extension_describe_remedy(python, remedy);
        say_escaped(stdout, remedy, strlen(remedy));
        printf("\n");
    }
    return supported && is.has_costs && diagnose_test_recording(python, is.plain, is.hooked);
}

/* Diagnose each Python here: that of the active virtual environment, and all files named python3,
 * python3.N or python3.Nt on PATH. A file with several names is diagnosed once. Adds the number of
 * Pythons that can be recorded to *READY, and returns the number of files. */
static int diagnose_pythons_on_path(int *ready)
{
    struct diagnosed diagnosed = {0};
    const char *path = getenv("PATH");
    struct map seen = {0}; /* the files that were diagnosed; the key is made of device and inode */
    glob_t found = {0};
    int count;

    if (strchr(program_choose_python(), '/'))
        glob(program_choose_python(), GLOB_NOCHECK, NULL, &found);
    for (const char *part = path ? path : "/usr/bin"; part;
         part = strchr(part, ':') ? strchr(part, ':') + 1 : NULL) {
        char *pattern = say_print("%.*s/python3{,.[0-9],.[0-9][0-9],.[0-9][0-9]t}",
                                  (int)strcspn(part, ":"), part);
        glob(pattern, GLOB_BRACE | (found.gl_pathc ? GLOB_APPEND : 0), NULL, &found);
        free(pattern);
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat status;
        if (stat(found.gl_pathv[i], &status) == 0 && access(found.gl_pathv[i], X_OK) == 0 &&
            !(*map_put(&seen, (int64_t)(status.st_dev << 48 ^ status.st_ino)))++)
            *ready += diagnose_interpreter(found.gl_pathv[i], &diagnosed);
    }
    globfree(&found);
    list_free(&diagnosed.paths);
    arena_free(&diagnosed.arena);
    count = (int)seen.count;
    map_free(&seen);
    return count;
}

static void print_clock_lines(void)
{
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    char source[64] = "unknown";
    bool trusted = session_clock_choose() == SESSION_TSC;
    uint64_t begin = clock_monotonic_ns();

    if (file && fscanf(file, "%63s", source) != 1)
        strcpy(source, "unknown");
    if (file)
        fclose(file);
    printf("  %s: %s (the kernel's clock source is %s)%s\n", CLOCK_COUNTER,
           trusted ? "trusted" : "not trusted", source,
           trusted ? ""
                   : ", so CLOCK_MONOTONIC is read, which costs more; dmesg says why the kernel "
                     "does not trust it");
    for (int i = 0; i < 1000000; i++)
        (void)(trusted ? clock_counter() : clock_monotonic_ns());
    printf("  a read takes %.1f ns; the recording of a frame needs two\n",
           (double)(clock_monotonic_ns() - begin) / 1000000);
}

static void print_memory_lines(void)
{
    struct statvfs status;

    if (statvfs("/dev/shm", &status) == 0 && access("/dev/shm", W_OK) == 0)
        printf(
            "  /dev/shm: %llu MB free%s\n",
            (unsigned long long)status.f_bavail * status.f_frsize >> 20,
            session_has_room("/dev/shm")
                ? ""
                : ", too little: rings go to TMPDIR or /tmp, which may be slower; make room there");
    else
        printf("  /dev/shm: not usable: rings go to TMPDIR or /tmp, which may be slower\n");
}

static int doctor_main(int count, char **operands)
{
    int ready = 0;

    printf("Interpreters\n");
    for (int i = 0; i < count; i++) {
        struct diagnosed none = {0};
        ready += diagnose_interpreter(operands[i], &none);
        list_free(&none.paths);
        arena_free(&none.arena);
    }
    if (!count && !diagnose_pythons_on_path(&ready))
        printf("  no python3 on PATH\n");
    printf("Clock\n");
    print_clock_lines();
    printf("Ring memory\n");
    print_memory_lines();
    printf("Extensions\n  %s\n", library_directory(NULL));
    return ready ? 0 : 1;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "what works on this machine, and what it costs",
    .operands = "[PYTHON]...",
    .about = "Records each interpreter (those named, else every python3 on PATH) for a moment and "
             "says whether that works, what a call costs there alone, under a bare hook and "
             "recorded, in which mode its torch is recorded and why, and whether another evaluator "
             "takes the PEP 523 slot; then the clock, what a read of it costs, and where rings are "
             "kept. Exits with 1 when none of the interpreters can be recorded.",
    .options = (const struct option[]){OPTION_END},
    .operands_most = OPERANDS_ANY,
    .run = doctor_main,
};
