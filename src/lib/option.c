/* lib/option.c -- parses command lines. See lib/option.h.
 *
 * Runs in: the command line. */
#include "lib/option.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/near.h"
#include "lib/say.h"
#include "lib/times.h"

const char option_empty[] = "it is empty";

const char *option_flag(const struct option *option, const char *value)
{
    *(bool *)option->to = true;
    return NULL;
}

const char *option_any(const struct option *option, const char *value)
{
    *(const char **)option->to = value;
    return NULL;
}

const char *option_text(const struct option *option, const char *value)
{
    return *value ? option_any(option, value) : option_empty;
}

const char *option_choice(const struct option *option, const char *value)
{
    static char why[160];
    size_t used = (size_t)snprintf(why, sizeof why, "not one of ");
    int index = 0;

    for (const char *word = option->words; *word; index++) {
        size_t length = strcspn(word, " ");
        if (strlen(value) == length && !strncmp(word, value, length)) {
            *(int *)option->to = index;
            return NULL;
        }
        used += (size_t)snprintf(why + used, sizeof why - used, "%s%.*s", index ? ", " : "",
                                 (int)length, word);
        word += length + (word[length] == ' ');
    }
    return why;
}

const char *option_count(const struct option *option, const char *value)
{
    int64_t *count = option->to;
    char *end;

    errno = 0;
    *count = strtoll(value, &end, 10);
    return end != value && !*end && !errno && *count >= 0 ? NULL : "not a number from 0 on";
}

const char *option_rows(const struct option *option, const char *value)
{
    int64_t *rows = option->to;

    if (option_count(option, value))
        return "not a number of rows; 0 is all";
    if (!*rows)
        *rows = -1;
    return NULL;
}

const char *option_share(const struct option *option, const char *value)
{
    char *end;
    double share = strtod(value, &end);

    if (end != value && *end == '%') {
        share /= 100;
        end++;
    }
    if (end == value || *end || !isfinite(share) || share < 0)
        return "not a share such as 0.05 or 5%";
    *(double *)option->to = share;
    return NULL;
}

const char *option_duration(const struct option *option, const char *value)
{
    char *end;
    double number = strtod(value, &end);
    double unit_ns = times_parse_unit(end, strlen(end));
    double ns = number * unit_ns;
    bool fits = ns >= 0 && ns <= 1e19;             /* false for nan */
    bool has_unit = unit_ns || (!*end && !number); /* 0 needs none */

    if (end == value || !has_unit || !fits)
        return "not a time such as 500ns, 20us, 1.5ms or 2s";
    *(uint64_t *)option->to = (uint64_t)ns;
    return NULL;
}

const char *option_size(const struct option *option, const char *value)
{
    static const char units[] = "KMGT";
    char *end;
    double number = strtod(value, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    double bytes = unit ? number * pow(1000, (double)(unit - units + 1)) : 0;
    bool fits = bytes >= 0 && bytes <= 1e18; /* false for nan */
    bool is_whole = end != value && unit && !end[1];

    if (!is_whole || !fits)
        return "not a size such as 500M or 2G";
    *(uint64_t *)option->to = (uint64_t)bytes;
    return NULL;
}

const struct option *option_find(const struct option *options, const char *argument,
                                 const char **value)
{
    bool is_long = !strncmp(argument, "--", 2);
    size_t length = is_long ? strcspn(argument + 2, "=") : 0;

    *value = NULL;
    for (const struct option *o = options; o->name || o->letter; o++) {
        bool has_name = o->name && strlen(o->name) == length;
        if (is_long && has_name && !strncmp(argument + 2, o->name, length)) {
            if (argument[2 + length])
                *value = argument + 2 + length + 1;
            return *value && !o->value ? NULL : o;
        }
        bool has_letter = o->letter && argument[1] == o->letter;
        bool ends = !argument[2];
        if (!is_long && has_letter && (o->value || ends)) {
            if (argument[2])
                *value = argument + 2;
            return o;
        }
    }
    return NULL;
}

/* Read the option at ARGV[*AT], whose VALUE may be in the next word. Returns false after reporting
 * an error. */
static bool read_option(const char *command, const struct option *option, const char *value,
                        char **argv, int *at)
{
    const char *argument = argv[*at];
    const char *why = option_empty;
    int length = (int)(argument[1] == '-' ? strcspn(argument, "=") : 2);

    if (option->value && !value)
        value = argv[++*at]; /* ARGV ends with a NULL, so VALUE is NULL if no word follows */
    if (value || !option->value)
        why = option->read(option, value);
    if (why == option_empty)
        say_error("%s: %.*s needs a value; `dyntrace %s --help` tells more", command, length,
                  argument, command);
    else if (why)
        say_error("%s: %.*s %s: %s", command, length, argument, value ? value : "", why);
    return !why;
}

/* Report that no option in OPTIONS is called ARGUMENT. */
static void report_unknown_option(const char *command, const struct option *options,
                                  const char *argument)
{
    char *typed = say_print("%.*s", (int)strcspn(argument, "="), argument);
    struct near near = near_begin(typed);

    for (const struct option *o = options; o->name || o->letter; o++) {
        char *name = say_print("--%s", o->name ? o->name : "");
        near_offer_name(&near, name);
        free(name);
    }
    say_error("%s: %s: no such option%s `dyntrace %s --help` lists them", command, argument,
              near_make_question(&near, ";"), command);
    free(typed);
}

int option_parse(const char *command, const struct option *options, bool stop, int argc,
                 char **argv)
{
    bool taken = true; /* false after "--": the remaining arguments are operands */
    int count = 0;

    for (int i = 1; i < argc; i++) {
        const struct option *option = NULL;
        char *a = argv[i];
        const char *value = NULL;
        bool dashed = taken && a[0] == '-' && a[1];
        bool asks_for_help;
        if (dashed && !strcmp(a, "--")) {
            taken = false;
            continue;
        }
        if (dashed)
            option = option_find(options, a, &value);
        if (option && option->read) {
            if (!read_option(command, option, value, argv, &i))
                return OPTION_BAD;
            continue;
        }
        asks_for_help = !strcmp(a, "--help") || !strcmp(a, "-h");
        if (dashed && !option && asks_for_help)
            return OPTION_HELP;
        /* an argument with a blank is no option but an operand: "-- a comment" is SQL */
        if (dashed && !option && !strpbrk(a, " \n")) {
            report_unknown_option(command, options, a);
            return OPTION_BAD;
        }
        if (stop) { /* the remaining words are another program's command line */
            count = argc - i;
            memmove(argv, argv + i, (size_t)count * sizeof *argv);
            break;
        }
        /* write operands to the front of ARGV, over arguments that have been parsed */
        argv[count++] = a;
    }
    for (int i = count; i < count + 2 && i < argc; i++)
        argv[i] = NULL;
    return count;
}
