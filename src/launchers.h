/* launchers.h -- programs that start another program named in their arguments: env, sudo, timeout.
 *
 * Runs in: the command line, and the traced process, which start such programs.
 *
 *     env -i PATH=/bin timeout -k 1 5 python3 app.py
 *
 * An interpreter finds the recorder through its environment (inject.h), so we must know which
 * launchers pass the environment on to the program. If a word is not in the table of launchers, it
 * is the program itself. */
#ifndef DYNTRACE_LAUNCHERS_H
#define DYNTRACE_LAUNCHERS_H

#include <stdbool.h>
#include <string.h>

#include "inject.h"

struct launcher {
    const char *name;
    const char *valued; /* letters of options whose value may be the next word */
    const char *clears; /* letters of options that hide the environment from the program */
    /* a long option that hides the environment from the program, or NULL */
    const char *clears_long;
    /* a long option, or the beginning of one, with which a launcher passes the environment on even
     * though it has `always`; or NULL */
    const char *keeps_long;
    int operands; /* how many words come between the options and the program */
    bool always;  /* the environment is passed on only with the option `keeps_long` */
    bool assigns; /* NAME=VALUE may come before the program */
    /* letter of an option whose value is a command line with the program in it, or 0 */
    char script;
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

/* The program that a launcher starts, and how the launcher's words change its environment. */
struct launch_words {
    const char *const *program; /* the program and its arguments, up to a NULL; may be empty */
    /* a shell's command line that is given instead of a program; or NULL */
    const char *script;
    bool cleared; /* the program does not get the environment */
    bool paths;   /* the launcher changes PYTHONPATH, so the program cannot find our folder */
    /* runuser -u: the program is given as separate words, not as one text */
    bool user;
};

/* Is WORD an assignment "PYTHONPATH=..." whose value does not mention PYTHONPATH, and so drops the
 * former value? */
static inline bool launcher_sets_paths(const char *word)
{
    size_t length = strlen(INJECT_PATHS);

    return !strncmp(word, INJECT_PATHS, length) && word[length] == '=' &&
           !strstr(word + length, INJECT_PATHS);
}

static inline bool launcher_is_letter_listed(const char *letters, char letter)
{
    return letters && strchr(letters, letter);
}

/* Read the option at *AT into FOUND. Returns the option's last word: its value, if that is a
 * separate word. */
static inline const char *const *launcher_read_option(const struct launcher *launcher,
                                                      const char *const *at,
                                                      struct launch_words *found)
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
        if (launcher_is_letter_listed(launcher->clears, *letter))
            found->cleared = true;
        if (!launcher_is_letter_listed(launcher->valued, *letter))
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

/* Find the program that LAUNCHER starts. WORDS is the command line and begins with the launcher's
 * own name. */
static inline struct launch_words launcher_find_program(const struct launcher *launcher,
                                                        const char *const *words)
{
    struct launch_words found = {.cleared = launcher->always};
    const char *const *at = words + 1;

    for (; *at && **at == '-' && strcmp(*at, "--"); at++) {
        if (!(*at)[1]) /* a lone "-" means `env -i` or `su -l` */
            found.cleared = true;
        else
            at = launcher_read_option(launcher, at, &found);
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
                at = launcher_read_option(launcher, at, &found);
    }
    found.program = at;
    return found;
}

#endif
