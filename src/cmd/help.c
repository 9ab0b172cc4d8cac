/* cmd/help.c -- --help and shell completions, made from the tables of options.
 *
 *   dyntrace help [COMMAND]            prints help for people.
 *   dyntrace help --options            prints what docs/man.awk makes the manual page from.
 *   dyntrace help --complete WORD...   prints candidates for the last word, for the shell. */
#include <ctype.h>
#include <locale.h>
#include <string.h>

#include "command.h"
#include "lib/bounds.h"
#include "lib/near.h"
#include "lib/option.h"
#include "lib/out_file.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/traces.h"
#include "versions.h"

enum {
    WIDTH = 100, /* the most columns of a line of --help */
    /* columns of an option's names; if they are longer, its help begins on the next line */
    NAMES_MOST = 24,
    PIECE = 80, /* the most bytes of an option as a synopsis shows it */
};

#define EACH_OPTION(o, command) \
    (const struct option *o = (command)->options; (o)->name || (o)->letter; (o)++)

/* Write option O as a synopsis shows it, "[--limit ROWS]", to PIECE. */
static void write_option_synopsis(char *piece, const struct option *o)
{
    snprintf(piece, PIECE, "%s%s%.*s%s%s%s%s", o->needed ? "" : "[", o->letter ? "-" : "--",
             o->letter ? 1 : PIECE, o->letter ? &o->letter : o->name, o->value ? " " : "",
             o->value ? o->value : "", o->needed ? "" : "]", o->many ? "..." : "");
}

/* Write the names and the value of option O, "-o, --output FILE", to PIECE. Returns the length. */
static int write_option_names(char *piece, const struct option *o)
{
    int used = o->letter ? snprintf(piece, PIECE, "-%c%s", o->letter, o->name ? ", " : "") : 0;

    return used + snprintf(piece + used, PIECE - (size_t)used, "%s%s%s%s", o->name ? "--" : "",
                           o->name ? o->name : "", o->value ? " " : "", o->value ? o->value : "");
}

/* ---- printing help for people -------------------------------------------- */

/* A line of output. A word that does not fit into WIDTH columns begins the next line. */
struct line {
    int at, indent;
    bool fresh; /* nothing but the indent has been printed in this line of output */
};

static void begin_line(struct line *line, int indent)
{
    printf("\n%*s", indent, "");
    line->at = indent;
    line->fresh = true;
}

static void append_to_line(struct line *line, const char *piece, int length)
{
    if (!length)
        return;
    if (!line->fresh && line->at + 1 + length > WIDTH)
        begin_line(line, line->indent);
    line->at += printf("%s%.*s", line->fresh ? "" : " ", length, piece);
    line->fresh = false;
}

/* Print the words of TEXT, wrapped. A line end in TEXT begins a new line with the indent that TEXT
 * has there. If that line is wrapped, its continuation is indented a little more. */
static void print_wrapped_text(struct line *line, const char *text)
{
    int indent = line->indent;

    line->at += printf("%*s", (int)strspn(text, " "), "");
    while (*text) {
        int length = (int)strcspn(text, " \n");
        append_to_line(line, text, length);
        text += length;
        if (*text == '\n' && text[1] == '\n') {
            putchar('\n');
        } else if (*text == '\n') {
            int more = (int)strspn(text + 1, " ");
            begin_line(line, indent + more);
            line->indent = indent + more + (more ? 2 : 0);
            text += more;
        }
        text += *text != 0;
    }
}

static void print_paragraph(const char *text)
{
    struct line line = {.fresh = true};

    print_wrapped_text(&line, text);
    putchar('\n');
}

/* Return the operands of COMMAND as its usage shows them: if BEHIND, those that stand after the
 * options, otherwise those that stand before. Returns "" if there are none. */
static const char *get_operands_text(const struct command *command, bool behind)
{
    return command->runs == behind ? command->operands : "";
}

static void print_usage(const struct command *command)
{
    char piece[PIECE];
    struct line line = {.fresh = false};
    int width = 0;

    line.at = line.indent = printf("usage: dyntrace %s", command->name);
    line.indent++;
    append_to_line(&line, get_operands_text(command, false),
                   (int)strlen(get_operands_text(command, false)));
    for
        EACH_OPTION(o, command)
    if (o->read) {
        write_option_synopsis(piece, o);
        append_to_line(&line, piece, (int)strlen(piece));
    }
    append_to_line(&line, get_operands_text(command, true),
                   (int)strlen(get_operands_text(command, true)));
    printf("\n\n");
    print_paragraph(command->about);
    putchar('\n');
    for
        EACH_OPTION(o, command)
        {
            int length = write_option_names(piece, o);
            if (length > width && length <= NAMES_MOST)
                width = length;
        }
    for
        EACH_OPTION(o, command)
        {
            int length = write_option_names(piece, o);
            line = (struct line){.at = width + 4, .indent = width + 4, .fresh = true};
            printf("  %-*s", width + 2, piece);
            if (length > width)
                begin_line(&line, line.indent);
            print_wrapped_text(&line, o->help);
            putchar('\n');
        }
    if (command->more) {
        putchar('\n');
        print_paragraph(command->more);
    }
}

static void print_overview(const struct command *const *commands, FILE *out)
{
    fputs("usage: dyntrace COMMAND [ARGUMENTS]\n\n"
          "Records what Python frame evaluation decides, call by call, into SQLite.\n\n",
          out);
    for (; *commands; commands++)
        if (!(*commands)->internal)
            fprintf(out, "  %-9s %s\n", (*commands)->name, (*commands)->summary);
    fputs("\n`dyntrace COMMAND --help` says more.\n", out);
}

/* Print the lines from which docs/man.awk makes the manual page. They have, for each command, its
 * name and its operands; and for each of its options the command, the option as a synopsis shows
 * it, the option's names, and its help. */
static void print_options_for_man_page(const struct command *const *commands)
{
    char synopsis[PIECE], names[PIECE];

    for (; *commands; commands++) {
        if ((*commands)->internal)
            continue;
        printf("%s\t%s\n", (*commands)->name, get_operands_text(*commands, false));
        for
            EACH_OPTION(o, *commands)
            {
                write_option_synopsis(synopsis, o);
                write_option_names(names, o);
                printf("%s\t%s\t%s\t", (*commands)->name, o->read ? synopsis : "", names);
                say_escaped(stdout, o->help, strlen(o->help));
                putchar('\n');
            }
        if ((*commands)->runs)
            printf("%s\t%s\n", (*commands)->name, get_operands_text(*commands, true));
    }
}

/* ---- printing candidates for shell completion ---------------------------- */

/* Print the names of the functions in a trace: the first of WORDS that names a trace, or the newest
 * trace in this directory. */
static void complete_functions(char **words, int count)
{
    const char *path = NULL;
    struct db *db;

    for (int i = 0; i < count && !path; i++)
        if (traces_is_operand(words[i]))
            path = words[i];
    if (!path && !db_is_trace_in_directory())
        return;
    db = db_open(path);
    if (!db)
        return;
    db_rows(query, db, schema_statement("find/completions"))
    {
        puts(query_text(query, 0, NULL));
    }
    db_close(db);
}

static void complete_queries(void)
{
    for (int i = 0; i < schema_query_count; i++)
        puts(schema_queries[i].name);
}

/* Print candidates for the value of an option or for an operand. NAMES tells what kind of word it
 * is, as in --help: "FUNC|FILE". A kind that the shell itself completes, such as FILE, is printed
 * as "@FILE". WORDS are the COUNT words of the command line before the last one. */
static void complete_word_of_kind(const char *names, char **words, int count)
{
    for (; *names; names += strcspn(names, " [|."), names += strspn(names, " [|].")) {
        size_t length = strcspn(names, " [|].");
        if (length == strlen("FUNC") && !strncmp(names, "FUNC", length))
            complete_functions(words, count);
        else if (length == strlen("QUERY") && !strncmp(names, "QUERY", length))
            complete_queries();
        else if (isupper((unsigned char)*names))
            printf("@%.*s\n", (int)length, names);
    }
}

static void complete_words(const char *words)
{
    for (; *words; words += strcspn(words, " "), words += *words == ' ')
        printf("%.*s\n", (int)strcspn(words, " "), words);
}

/* Print the candidates for the last of the COUNT words after COMMAND's name. */
static void complete_word(const struct command *command, int count, char **words)
{
    const struct option *option = NULL;
    const char *value;
    const char *last = words[count - 1];

    for (int i = 0; i < count - 1; i++) {
        bool dashed = words[i][0] == '-' && words[i][1];
        option = dashed && strcmp(words[i], "--") ? option_find(command->options, words[i], &value)
                                                  : NULL;
        if (command->runs && (option ? !option->read && i + 2 < count : !dashed)) {
            printf(option ? "@OUT\n" : "@command %d\n", i);
            return;
        }
        if (option && option->value && !value && i + 2 < count)
            i++; /* skip the option's value */
        else if (option && (!option->value || value))
            option = NULL;
    }
    if (option && option->words)
        complete_words(option->words);
    else if (option)
        complete_word_of_kind(option->value, words, count - 1);
    else if (*last != '-')
        complete_word_of_kind(command->operands, words, count - 1);
    if (option || *last != '-')
        return;
    for
        EACH_OPTION(o, command)
        {
            if (o->letter)
                printf("-%c\n", o->letter);
            if (o->name)
                printf("--%s\n", o->name);
        }
    printf("--help\n");
}

/* ---- running a command or `dyntrace help` -------------------------------- */

/* Return the command NAME. Reports an error and returns NULL if there is none. */
static const struct command *find_command(const struct command *const *commands, const char *name)
{
    struct near near = near_begin(name);

    for (const struct command *const *c = commands; *c; c++)
        if (!strcmp((*c)->name, name))
            return *c;
    for (const struct command *const *c = commands; *c; c++)
        if (!(*c)->internal)
            near_offer_name(&near, (*c)->name);
    say_error("%s: no such command%s `dyntrace help` lists them", name,
              near_make_question(&near, ";"));
    return NULL;
}

static void complete_command_line(const struct command *const *commands, int count, char **words)
{
    if (count > 1 && (count > 2 || strcmp(words[0], "help"))) {
        const struct command *command = find_command(commands, words[0]);
        if (command)
            complete_word(command, count - 1, words + 1);
        return;
    }
    for (int i = 0; count && commands[i]; i++)
        if (!commands[i]->internal)
            printf("%s\n", commands[i]->name);
    if (count == 1)
        printf("help\n--help\n--version\n-V\n");
}

static bool asks_for_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static bool asks_for_version(const char *word)
{
    static const char *const words[] = {"--version", "-V", "version"};

    for (size_t i = 0; i < array_count(words); i++)
        if (!strcmp(word, words[i]))
            return true;
    return false;
}

/* Run `dyntrace help` with the COUNT words after it. */
static int help_main(const struct command *const *commands, int count, char **words)
{
    const struct command *command = NULL;

    if (!count || asks_for_help(words[0]))
        print_overview(commands, stdout);
    else if (!strcmp(words[0], "--options"))
        print_options_for_man_page(commands);
    else if (!strcmp(words[0], "--complete"))
        complete_command_line(commands, count - 1, words + 1);
    else if ((command = find_command(commands, words[0])))
        print_usage(command);
    else
        return 2;
    return 0;
}

int command_main(const struct command *const *commands, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const struct command *command;

    if (!name) {
        print_overview(commands, stderr);
        return 2;
    }
    if (!strcmp(name, "help") || asks_for_help(name))
        return help_main(commands, argc - 2, argv + 2);
    if (asks_for_version(name)) {
        puts("dyntrace " DYNTRACE_VERSION);
        return 0;
    }
    command = find_command(commands, name);
    return command ? command_parse_and_run(command, argc - 1, argv + 1) : 2;
}

int command_parse_and_run(const struct command *command, int argc, char **argv)
{
    int count, status;

    bounds_allow_memory_failure(true);
    count = option_parse(command->name, command->options, command->runs, argc, argv);
    if (count == OPTION_HELP) {
        print_usage(command);
        return 0;
    }
    if (count < 0)
        return 2;
    if (count > command->operands_most) {
        say_error("%s: %s: %s", command->name, argv[command->operands_most],
                  command->too_many ? command->too_many : "one trace at a time");
        return 2;
    }
    setlocale(LC_CTYPE, "");
    status = command->run(count, argv);
    if (!command->runs && !command->internal && !out_flush())
        status = 2;
    return !status && traces_count_left_out(0) ? TRACES_LEFT_OUT : status;
}
