/* cmd/try/attempt.c -- starts, watches and stops one run of the recorded command. See
 * cmd/try/try.h.
 *
 * The run is a `dyntrace run` with the recorded command, in its own process group: Ctrl-C reaches
 * only us, and we can stop the whole group. The run's output goes into files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "cmd/try/try.h"
#include "lib/bounds.h"
#include "lib/say.h"

enum {
    TICK_MS = 200,
    GRACE_MS = 3000, /* a run gets SIGKILL this long after SIGTERM */
};

static void append_word(struct words *words, const char *word)
{
    *list_add(words) = word;
}

static void append_words(struct words *words, const struct words *more)
{
    for (size_t i = 0; i < more->count; i++)
        append_word(words, more->at[i]);
}

/* Find the program that a shell would run for WORD, and store its path in PATH. Returns false if
 * there is none. */
static bool find_on_path(const char *word, char path[PATH_MAX])
{
    const char *place = getenv("PATH");

    while (place && *place) {
        int length = (int)strcspn(place, ":");
        snprintf(path, PATH_MAX, "%.*s/%s", length, place, word);
        if (access(path, X_OK) == 0)
            return true;
        place += length;
        place += *place == ':';
    }
    return false;
}

/* Return the first word of the command to run. If the shell searched this word on PATH, and today
 * it would find another file, return the path of the recorded file. */
static const char *choose_first_word(const struct plan *plan)
{
    const char *word = plan->command.at[0];
    char path[PATH_MAX];
    bool named = *word == '-' || strchr(word, '/') || !plan->executable;

    if (named || plan->interpreted)
        return word;
    return find_on_path(word, path) && !strcmp(path, plan->executable) ? word : plan->executable;
}

/* Add the --set options by which a run obeys --calls and --compare (python/dyntrace/_trial.py). */
static void add_own_settings(const struct plan *plan, const struct attempt_given *given,
                             const struct attempt *attempt, struct arena *arena,
                             struct words *words)
{
    const struct trial_function *f = &plan->function;

    if (given->calls) {
        append_word(words, "--set");
        append_word(words, arena_print(arena, "try.calls=%lld %s@%s:%lld", (long long)given->calls,
                                       f->qualname, f->filename, (long long)f->first_line));
    }
    if (given->compare) {
        append_word(words, "--set");
        append_word(words, arena_print(arena, "try.values=%s %s@%s:%lld", attempt->values,
                                       f->qualname, f->filename, (long long)f->first_line));
    }
    if (given->compare && given->against) {
        append_word(words, "--set");
        append_word(words, arena_print(arena, "try.against=%s %g", given->against, given->rtol));
    }
}

/* Return the command line of the run. It ends with a NULL. */
static struct words build_command_line(const struct plan *plan, const struct attempt_given *given,
                                       const struct attempt *attempt, const char *setting,
                                       struct arena *arena)
{
    struct words words = {0};
    struct words settings = settings_split_text(arena, setting);
    bool job = plan->launcher.count;
    char self[PATH_MAX] = "";

    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        snprintf(self, sizeof self, "dyntrace");
    append_words(&words, &plan->launcher);
    append_word(&words, arena_print(arena, "%s", self));
    append_word(&words, "run");
    append_word(&words, "--frames");
    append_word(&words, "decided");
    append_word(&words, "-o");
    append_word(&words, arena_print(arena, "%s%s", attempt->trace, job ? "/" : ""));
    append_words(&words, &plan->options);
    for (size_t i = 0; i < settings.count; i++) {
        append_word(&words, "--set");
        append_word(&words, settings.at[i]);
    }
    add_own_settings(plan, given, attempt, arena, &words);
    append_word(&words, "--");
    append_words(&words, &plan->command);
    words.at[words.count - plan->command.count] = choose_first_word(plan);
    append_word(&words, NULL);
    list_free(&settings);
    return words;
}

/* In the child process: execute the command of PLAN. Does not return. */
static void execute_command_in_child(const struct plan *plan, const struct attempt_given *given,
                                     const struct attempt *attempt, char *const *words,
                                     const sigset_t *mask)
{
    int in = given->stdin_file < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    int out = open(attempt->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int err = open(attempt->err, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char again[64];

    /* open the file again: the run then has a file position of its own, which is at the
     * beginning */
    if (given->stdin_file >= 0) {
        snprintf(again, sizeof again, "/proc/self/fd/%d", given->stdin_file);
        in = open(again, O_RDONLY | O_CLOEXEC);
    }
    setpgid(0, 0);
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    sigprocmask(SIG_SETMASK, mask, NULL);
    bounds_reset_in_child();
    if (chdir(plan->directory) == 0)
        execvp(words[0], words);
    say_error("try: %s: %s", words[0], strerror(errno));
    _exit(127);
}

static void signal_run_group(pid_t pid, int number)
{
    kill(-pid, number);
}

/* Wait for the child PID. Stop it if the time that GIVEN allows is over, or if the user presses
 * Ctrl-C. */
static void wait_for_child_within_limit(pid_t pid, const struct attempt_given *given,
                                        struct attempt *attempt, const sigset_t *watched,
                                        void (*tick)(void *), void *context)
{
    const struct timespec pause = {0, TICK_MS * 1000000};
    int64_t began_ms = clock_monotonic_ms();
    int64_t killed_ms = 0;

    while (waitpid(pid, &attempt->status, WNOHANG) == 0) {
        int number = sigtimedwait(watched, NULL, &pause);
        int64_t now_ms = clock_monotonic_ms();
        bool over =
            given->timeout_ns && (uint64_t)(now_ms - began_ms) * 1000000 > given->timeout_ns;
        bool asked = number == SIGINT || number == SIGTERM || number == SIGHUP;
        tick(context);
        if (asked)
            attempt->stopped = true;
        if ((over || attempt->stopped) && !killed_ms) {
            attempt->timed_out = !attempt->stopped;
            killed_ms = now_ms;
            signal_run_group(pid, SIGTERM);
        } else if (killed_ms && now_ms - killed_ms > GRACE_MS) {
            signal_run_group(pid, SIGKILL);
        }
    }
    signal_run_group(pid, SIGKILL); /* kill children that still run after the command has ended */
}

static int64_t read_wall_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

bool attempt_run_command(const struct plan *plan, const struct attempt_given *given,
                         const char *name, const char *setting, struct attempt *attempt,
                         void (*tick)(void *context), void *context)
{
    struct arena arena = {0};
    struct words words;
    sigset_t watched;
    sigset_t before;
    pid_t pid;

    *attempt = (struct attempt){.name = name, .started_unix_ns = read_wall_clock_ns()};
    snprintf(attempt->out, PATH_MAX, "%s/%s.out", given->folder, name);
    snprintf(attempt->err, PATH_MAX, "%s/%s.err", given->folder, name);
    snprintf(attempt->values, PATH_MAX, "%s/%s.values", given->folder, name);
    snprintf(attempt->trace, PATH_MAX, "%s/%s%s", given->folder, name,
             plan->launcher.count ? "" : ".db");
    if (given->compare)
        mkdir(attempt->values, 0700);
    words = build_command_line(plan, given, attempt, setting, &arena);
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGHUP);
    sigprocmask(SIG_BLOCK, &watched, &before);
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        execute_command_in_child(plan, given, attempt, (char *const *)words.at, &before);
    if (pid > 0) {
        setpgid(pid, pid); /* parent and child both do this, because either may run first */
        wait_for_child_within_limit(pid, given, attempt, &watched, tick, context);
    } else {
        say_error("try: cannot start a process: %s", strerror(errno));
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    attempt->duration_ns = read_wall_clock_ns() - attempt->started_unix_ns;
    list_free(&words);
    arena_free(&arena);
    return pid > 0;
}
