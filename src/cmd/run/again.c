/* cmd/run/again.c -- stores how `dyntrace try` can run the command again. See cmd/run/run.h.
 *
 * A rank that `LAUNCHER... dyntrace run -o DIR/ train.py` started cannot start its job by itself.
 * The launcher is an ancestor process whose command line ends with the command line of this
 * process. The launcher's words before that are stored. `try` puts another command behind them to
 * start the job again.
 *
 * Runs in: the command line. */
#include <fcntl.h>
#include <unistd.h>

#include "cmd/run/run.h"
#include "job.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/say.h"
#include "secret.h"

enum {
    COMMAND_LINE_MOST = 1 << 20, /* the most bytes that are read of a process's command line */
    /* the most ancestors that are examined: torchrun is the parent; between mpirun and us are
     * daemons */
    ANCESTORS = 4,
};

typedef LIST(char) bytes;

static void append_text(bytes *to, const char *text)
{
    size_t length = strlen(text) + 1;

    memcpy(list_add_many(to, length), text, length);
}

/* Return the words in WORDS, which has LENGTH bytes and a NUL after each word, as a JSON array.
 * Secret values are left out, and then *REDACTED is set. The caller frees the array. */
static char *words_to_json(const struct session_options *options, const char *words, size_t length,
                           bool *redacted)
{
    bytes globs = {0};
    struct secret_rules rules;
    struct secret_text kept = {0};
    char *made;

    if (options->keep_secrets)
        return json_array(words, length);
    for (size_t i = 0; i < options->secrets.count; i++)
        append_text(&globs, options->secrets.at[i]);
    rules = (struct secret_rules){globs.at, (uint32_t)options->secrets.count};
    secret_redact_command(&rules, words, length, &kept);
    made = json_array(kept.failed ? "" : kept.text, kept.failed ? 0 : kept.bytes);
    *redacted |= kept.changed;
    free(kept.text);
    list_free(&globs);
    return made;
}

char *again_make_command(const struct session_options *options, int count, char *const *words,
                         bool *redacted)
{
    bytes joined = {0};
    char *made;

    for (int i = 0; i < count && !options->no_argv; i++)
        append_text(&joined, words[i]);
    made = words_to_json(options, joined.at, joined.count, redacted);
    list_free(&joined);
    return made;
}

/* ---- the options of the recording ---------------------------------------- */

/* Return word number INDEX of WORDS, which are separated by blanks. The caller frees it. */
static char *copy_word_at_index(const char *words, unsigned index)
{
    for (; index; index--)
        words += strcspn(words, " ") + 1;
    return strndup(words, strcspn(words, " "));
}

/* Add the option --NAME to TO, with word number CHOICE of WORDS as its value. If CHOICE is 0, the
 * default, adds nothing. */
static void add_choice_option(bytes *to, const char *name, const char *words, unsigned choice)
{
    char *word = copy_word_at_index(words, choice);

    if (choice) {
        append_text(to, name);
        append_text(to, word);
    }
    free(word);
}

static char *options_to_json(const struct session_options *options, const char *python)
{
    bytes words = {0};
    char *made;

    add_choice_option(&words, "--torch", SESSION_TORCH_WORDS, options->torch);
    add_choice_option(&words, "--values", SESSION_VALUES_WORDS, options->values);
    if (options->capture)
        append_text(&words, "--capture");
    for (size_t i = 0; i < options->globs.count; i++) {
        append_text(&words, *options->globs.at[i] == '+' ? "--include" : "--exclude");
        append_text(&words, options->globs.at[i] + 1);
    }
    if (options->max_depth) {
        char *depth = say_print("%u", options->max_depth);
        append_text(&words, "--max-depth");
        append_text(&words, depth);
        free(depth);
    }
    for (size_t i = 0; i < options->arguments.count; i++) {
        append_text(&words, "--args");
        append_text(&words, options->arguments.at[i]);
    }
    if (options->keep_secrets)
        append_text(&words, "--no-redact");
    for (size_t i = 0; i < options->secrets.count; i++) {
        append_text(&words, "--redact");
        append_text(&words, options->secrets.at[i]);
    }
    if (python) {
        append_text(&words, "--python");
        append_text(&words, python);
    }
    made = json_array(words.at, words.count);
    list_free(&words);
    return made;
}

/* ---- finding the launcher among the ancestor processes ------------------- */

/* Add the command line of process PID to WORDS, each word followed by a NUL. */
static void read_command_line(pid_t pid, bytes *words)
{
    char path[64];
    char part[4096];
    ssize_t got = 1;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && got > 0 && words->count < COMMAND_LINE_MOST) {
        got = read(fd, part, sizeof part);
        if (got > 0)
            memcpy(list_add_many(words, (size_t)got), part, (size_t)got);
    }
    if (fd >= 0)
        close(fd);
}

static pid_t read_parent_pid(pid_t pid)
{
    char path[64];
    int parent = 0;
    FILE *status;
    char line[256];

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "PPid: %d", &parent) == 1)
            break;
    if (status)
        fclose(status);
    return parent;
}

/* Return the words of THEIRS that stand before OURS, as JSON. Returns NULL if THEIRS does not end
 * with OURS. The caller frees the text. */
static char *words_before_own_command(const struct session_options *options, const bytes *theirs,
                                      const bytes *ours, bool *redacted)
{
    size_t before = theirs->count - ours->count;
    bool longer = ours->count && theirs->count > ours->count;

    if (!longer || theirs->at[before - 1] || memcmp(theirs->at + before, ours->at, ours->count))
        return NULL;
    return words_to_json(options, theirs->at, before, redacted);
}

static char *find_launcher_json(const struct session_options *options, bool *redacted)
{
    bytes ours = {0};
    pid_t pid = getppid();
    char *made = NULL;

    read_command_line(getpid(), &ours);
    for (int i = 0; i < ANCESTORS && pid > 1 && !made; i++) {
        bytes theirs = {0};
        read_command_line(pid, &theirs);
        made = words_before_own_command(options, &theirs, &ours, redacted);
        list_free(&theirs);
        pid = read_parent_pid(pid);
    }
    list_free(&ours);
    return made;
}

/* ---- which command was recorded: the values that the trace stores --------- */

void again_read_command(struct session_again *again, const struct program *t,
                        const struct session_options *options)
{
    char *here = options->no_argv ? NULL : getcwd(NULL, 0);
    const bool absolute = *t->path == '/';
    char *path;

    if (!here)
        return;
    path = absolute ? say_print("%s", t->path) : say_print("%s/%s", here, t->path);
    again->directory = here;
    again->executable = path;
    again->options = options_to_json(options, t->interpreted ? path : NULL);
    if (job_read_fact(JOB_RANK))
        again->launcher = find_launcher_json(options, &again->redacted);
}

void again_free(struct session_again *again)
{
    free(again->directory);
    free(again->executable);
    free(again->options);
    free(again->launcher);
}
