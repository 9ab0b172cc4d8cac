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

/* Store VALUE (NULL for an option without a value). Returns NULL, or the error: "not a number". */
typedef const char *option_reader(const struct option *option, const char *value);

struct option {
    const char *name;  /* "limit" */
    char letter;       /* 'o', or 0 */
    const char *value; /* the value's name in --help, "ROWS"; NULL: no value */
    /* NULL: the option itself is the first operand (`run -m MODULE`) */
    option_reader *read;
    void *to;          /* where the reader stores it */
    const char *words; /* allowed values, separated by blanks; NULL: any text */
    const char *help;  /* help sentences, with `other command --option` in backquotes */
    bool many;         /* it may be repeated */
    bool needed;       /* the option is required */
};

#define OPTION_END   \
    {                \
        .name = NULL \
    }

/* The usual readers, by the type of TO. */
option_reader option_flag;     /* bool: set to true */
option_reader option_text;     /* const char *: borrowed, not empty */
option_reader option_any;      /* the same, and may be empty */
option_reader option_choice;   /* int or enum: the index of the value in WORDS */
option_reader option_count;    /* int64_t, from 0 on */
option_reader option_rows;     /* int64_t, at least 0; 0 is stored as -1: all */
option_reader option_share;    /* double from 0 on: 0.05 or 5% */
option_reader option_duration; /* uint64_t, nanoseconds: 1.5ms */

extern const char option_empty[]; /* a reader's error for an empty value */

enum { OPTION_HELP = -1, OPTION_BAD = -2 };

/* Read ARGV[1...] by OPTIONS. Moves the operands to the front of ARGV, followed by a NULL, and
 * returns their number. OPTION_HELP: --help is among the options. OPTION_BAD: an error, reported
 * under the name COMMAND. STOP: the first operand ends the options, because the rest is another
 * program's command line. */
int option_parse(const char *command, const struct option *options, bool stop, int argc,
                 char **argv);

/* The option named by ARGUMENT ("--limit=3", "-ofile"); *VALUE is its value, if ARGUMENT has one.
 * NULL: no such option. */
const struct option *option_find(const struct option *options, const char *argument,
                                 const char **value);

#endif
