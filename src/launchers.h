/* launchers.h -- programs that start another program named in their arguments: env, sudo, timeout.
 *
 * Runs in: the command line, and the traced process, which start such programs.
 *
 *     env -i PATH=/bin timeout -k 1 5 python3 app.py
 *
 * An interpreter finds the recorder through its environment (inject.h), so it matters which
 * launchers pass the environment on. A word that is not in the table is the program itself. */
#ifndef DYNTRACE_LAUNCHERS_H
#define DYNTRACE_LAUNCHERS_H

#include <stdbool.h>
#include <string.h>

#include "inject.h"

struct launcher {
    const char *name;
    const char *valued;      /* letters of options whose value may be the next word */
    const char *clears;      /* letters of options that hide the environment from the program */
    const char *clears_long; /* such an option in full, or NULL */
    const char *keeps_long;  /* one by which it is handed on after all, or its beginning, or NULL */
    int operands;            /* words between the options and the program */
    bool always;             /* the environment is never handed on */
    bool assigns;            /* NAME=VALUE may come before the program */
    char script; /* letter of an option whose value is a text with the program in it, or 0 */
};

static const struct launcher launchers[] = {
    {"chroot", .operands = 1},
    {"chrt", .valued = "TPD", .operands = 1},
    {.name = "command"},
    {"doas", .valued = "aCu", .always = true},
    {"env", .valued = "uCS", .clears = "i", .clears_long = "--ignore-environment", .assigns = true,
     .script = 'S'},
    {"exec", .valued = "a", .clears = "c"},
    {"ionice", .valued = "cnp"},
    {"nice", .valued = "n"},
    {.name = "nohup"},
    {"nsenter", .valued = "GSt"},
    {"pkexec", .always = true},
    {"runuser", .valued = "cgGsTwu", .clears = "l", .clears_long = "--login", .script = 'c'},
    {"setpriv", .clears_long = "--reset-env"},
    {.name = "setsid"},
    {"stdbuf", .valued = "eio"},
    {"su", .valued = "cgGsTw", .clears = "l", .clears_long = "--login", .script = 'c'},
    {"sudo", .valued = "CDghpRrTtUu", .keeps_long = "--preserve-env=", .always = true,
     .assigns = true},
    {"systemd-run", .valued = "HMpuE", .keeps_long = "--scope", .always = true},
    {"taskset", .operands = 1},
    {"time", .valued = "fo"},
    {"timeout", .valued = "ks", .operands = 1},
    {"unshare", .valued = "GRSw"},
    {"xargs", .valued = "adEILnPs"},
};

static inline const struct launcher *launcher_find(const char *program)
{
    const char *name = basename(program);

    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (!strcmp(name, launchers[i].name))
            return &launchers[i];
    return NULL;
}

/* The words before the started program. */
struct launch_words {
    const char *const *program; /* it and its words, up to a NULL; may be none */
    const char *script;         /* the text for a shell that is started instead, or NULL */
    bool cleared;               /* it does not get the environment */
    bool paths;                 /* it gets another PYTHONPATH */
    bool user;                  /* runuser -u: the program comes as words */
};

/* Is WORD an assignment "PYTHONPATH=..." whose value does not mention PYTHONPATH, and so drops the
 * former value? */
static inline bool launcher_sets_paths(const char *word)
{
    size_t length = strlen(INJECT_PATHS);

    return !strncmp(word, INJECT_PATHS, length) && word[length] == '=' &&
           !strstr(word + length, INJECT_PATHS);
}

static inline bool launcher_has_letter(const char *letters, char letter)
{
    return letters && strchr(letters, letter);
}

/* One option: AT is its word. Returns its last word. */
static inline const char *const *launcher_option(const struct launcher *launcher,
                                                 const char *const *at, struct launch_words *found)
{
    const char *letter = *at + 1;

    if (*letter == '-') {
        if (launcher->clears_long && !strcmp(*at, launcher->clears_long))
            found->cleared = true;
        if (launcher->keeps_long &&
            !strncmp(*at, launcher->keeps_long, strlen(launcher->keeps_long)))
            found->cleared = false;
        if (launcher->script == 'c' && !strncmp(*at, "--command=", 10))
            found->script = *at + 10;
        return at;
    }
    for (; *letter; letter++) {
        const char *value = letter[1] ? letter + 1 : at[1];
        if (launcher_has_letter(launcher->clears, *letter))
            found->cleared = true;
        if (!launcher_has_letter(launcher->valued, *letter))
            continue;
        if (*letter == launcher->script)
            found->script = value;
        if (launcher->script == 'S' && *letter == 'u' && value && !strcmp(value, INJECT_PATHS))
            found->paths = true;
        if (launcher->script == 'c' && *letter == 'u')
            found->user = true;
        return letter[1] || !at[1] ? at : at + 1;
    }
    return at;
}

/* The program that LAUNCHER starts. WORDS: its command line from its own name on. */
static inline struct launch_words launcher_words(const struct launcher *launcher,
                                                 const char *const *words)
{
    struct launch_words found = {.cleared = launcher->always};
    const char *const *at = words + 1;

    for (; *at && **at == '-' && strcmp(*at, "--"); at++) {
        if (!(*at)[1]) /* "-": of env -i, of su -l */
            found.cleared = true;
        else
            at = launcher_option(launcher, at, &found);
    }
    if (*at && !strcmp(*at, "--"))
        at++;
    for (; launcher->assigns && *at && strchr(*at, '='); at++)
        found.paths |= launcher_sets_paths(*at);
    for (int i = 0; i < launcher->operands && *at; i++)
        at++;
    if (launcher->script == 'c' && !found.user) { /* su USER -c TEXT */
        for (; *at; at++)
            if (**at == '-' && (*at)[1])
                at = launcher_option(launcher, at, &found);
    }
    found.program = at;
    return found;
}

#endif
