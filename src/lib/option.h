/* lib/option.h -- the options of a command, as a table, and the parser of command lines.
 *
 * Runs in: the command line.
 *
 * A command declares its options in one table. The table is used by the parser (option_parse), by
 * --help, by the man page and by the shell's completions (cmd/help.c). The parser accepts "--name
 * value", "--name=value", "-o value" and "-ovalue", also after operands; "--" ends the options. */
#ifndef DYNTRACE_OPTION_H
#define DYNTRACE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option;

/* Store VALUE in OPTION->to. VALUE is NULL for an option without a value. Returns NULL, or an error
 * message such as "not a number". */
typedef const char *option_reader(const struct option *option, const char *value);

struct option {
    const char *name; /* the long name, such as "limit" */
    char letter;      /* the short name, such as 'o'; 0 if there is none */
    /* the value's name in --help, such as "ROWS"; NULL if the option has no value */
    const char *value;
    /* Stores the value. NULL if the option itself becomes the first operand (`run -m MODULE`). */
    option_reader *read;
    void *to;          /* address at which `read` stores the value */
    const char *words; /* allowed values, separated by blanks, or NULL */
    /* sentences for --help; there `other command --option` in backquotes becomes a link */
    const char *help;
    bool many;   /* the option may be repeated */
    bool needed; /* the option is required */
};

#define OPTION_END   \
    {                \
        .name = NULL \
    }

/* The usual readers. The comment after each has the type of the variable at `to`, and the values
 * that the user may type. */
option_reader option_flag;     /* bool: set to true */
option_reader option_text;     /* const char *: borrowed, not empty */
option_reader option_any;      /* const char *: borrowed; an empty text is allowed */
option_reader option_choice;   /* int or enum: the index of the value in WORDS */
option_reader option_count;    /* int64_t: at least 0 */
option_reader option_rows;     /* int64_t: at least 0; 0 means all and is stored as -1 */
option_reader option_share;    /* double: at least 0, as in 0.05 or 5% */
option_reader option_duration; /* uint64_t: nanoseconds, typed as "1.5ms" */
option_reader option_size;     /* uint64_t: bytes, typed as "500M"; K is 1000, M a million */

extern const char option_empty[]; /* the error message of readers for an empty value */

enum { OPTION_HELP = -1, OPTION_BAD = -2 };

/* Parse ARGV[1...] with OPTIONS. Moves the operands to the front of ARGV, followed by a NULL, and
 * returns their number. Returns OPTION_HELP if --help is among the options, and OPTION_BAD after
 * reporting an error that names COMMAND. If STOP, the first operand ends the options, because the
 * remaining words are another program's command line. */
int option_parse(const char *command, const struct option *options, bool stop, int argc,
                 char **argv);

/* Return the option that ARGUMENT names ("--limit=3", "-ofile"), or NULL if there is none. *VALUE
 * becomes the value in ARGUMENT, or NULL. */
const struct option *option_find(const struct option *options, const char *argument,
                                 const char **value);

#endif
