/* lib/option.h -- the options of a command, as a table, and the one parser of command lines.
 *
 * Runs in: the command line.
 *
 * A command declares its options once. From the table come the parser (option_parse), the text of
 * --help, the options in the man page and the completions of the shell (cmd/help.c). Accepted are
 * "--name value", "--name=value", "-o value", "-ovalue", and options after operands; "--" ends the
 * options. */
#ifndef DYNTRACE_OPTION_H
#define DYNTRACE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option;

/* Store VALUE, which is NULL for an option without one. Returns NULL, or why it will not do: "not a
 * number". */
typedef const char *option_reader(const struct option *option, const char *value);

struct option {
    const char *name;  /* "limit" */
    char letter;       /* 'o', or 0 */
    const char *value; /* what --help calls its value, "ROWS"; NULL: it has none */
    /* NULL: the operands begin here, with the option itself (`run -m MODULE`) */
    option_reader *read;
    void *to;          /* where the reader stores it */
    const char *words; /* the values that there are, separated by blanks; NULL: any text */
    const char *help;  /* sentences; `other command --option` stands between backquotes */
    bool many;         /* it may be repeated */
    bool needed;       /* the option is required */
};

#define OPTION_END   \
    {                \
        .name = NULL \
    }

/* The readers that most options need, by what TO is. */
option_reader option_flag;     /* bool: becomes true */
option_reader option_text;     /* const char *: borrowed, not empty */
option_reader option_any;      /* the same, and may be empty */
option_reader option_choice;   /* int or enum: the index of the value in WORDS */
option_reader option_count;    /* int64_t, from 0 on */
option_reader option_rows;     /* int64_t, from 0 on, where 0 is stored as -1: all */
option_reader option_share;    /* double from 0 on: 0.05 or 5% */
option_reader option_duration; /* uint64_t, nanoseconds: 1.5ms */

extern const char option_empty[]; /* a reader's error for an empty value */

enum { OPTION_HELP = -1, OPTION_BAD = -2 };

/* Read ARGV[1...] by OPTIONS. Moves the operands to the front of ARGV, a NULL or two behind them,
 * and returns how many they are. OPTION_HELP: --help is among the options. OPTION_BAD: the error
 * has been reported, as COMMAND. STOP: the first operand ends the options, as the rest is the
 * command line of
 * another program. */
int option_parse(const char *command, const struct option *options, bool stop, int argc,
                 char **argv);

/* The option that ARGUMENT ("--limit=3", "-ofile") names; *VALUE is its value, if ARGUMENT holds
 * one. NULL: none does. */
const struct option *option_find(const struct option *options, const char *argument,
                                 const char **value);

#endif
