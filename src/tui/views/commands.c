/* tui/views/commands.c -- the view `dyntrace`: what another command says of this trace, `:check
 * --max-recompiles 0`, `:diff OTHER`.
 *
 * Runs in: the viewer, in a thread; the command is a process of its own, which is ended when nobody
 * waits for it any more.
 *
 * A command writes tables with tabs between cells where it does not write to a terminal, and the
 * names of columns first: they are set in columns here, and a row leads to what it names: a
 * compile, a lookup, or the function that begins at FILE:LINE. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/bounds.h"
#include "lib/say.h"
#include "trace/db.h"
#include "tui/text.h"

enum {
    WORDS_MOST = 40,
    CELLS_MOST = 24,
    OUTPUT_MOST = 16 << 20,
    LOOK_MS = 100,
    CELL_WIDEST = 60,
    CELL_LEAST = 20
};

/* TEXT in words at its spaces but for what is quoted, where a quote is doubled; ARGV gets COUNT
 * more. */
static int words_split(struct doc *doc, const char *text, char **argv, int count)
{
    while (*(text += strspn(text, " ")) && count < WORDS_MOST) {
        char quote = *text == '\'' || *text == '"' ? *text++ : 0,
             *word = arena_text(&doc->arena, text, strlen(text));
        for (argv[count++] = word;
             *text && (quote ? *text != quote || *++text == quote : *text != ' ');)
            *word++ = *text++;
        *word = 0;
    }
    return count;
}

/* What ARGV prints on both streams, as it ends or is ended. Owned by DOC; *STATUS as wait(2) has
 * it, -1: it could not be run. */
static char *command_run(struct doc *doc, char **argv, int *status)
{
    LIST(char) text = {0};
    int ends[2];
    pid_t child;

    *status = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return doc_print(doc, "%s", "");
    child = fork();
    if (child == 0) {
        bounds_child();
        dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t got = 1; child > 0 && got > 0 && text.count < OUTPUT_MOST;) {
        struct pollfd polled = {ends[0], POLLIN, 0};
        if (atomic_load(&doc->job.cancelled)) {
            kill(child, SIGTERM);
            break;
        }
        if (poll(&polled, 1, LOOK_MS) <= 0)
            continue;
        got = read(ends[0], list_add_many(&text, 65536), 65536);
        text.count -= 65536 - (size_t)(got > 0 ? got : 0);
    }
    close(ends[0]);
    while (child > 0 && waitpid(child, status, 0) < 0 && errno == EINTR)
        continue;
    *list_add(&text) = 0;
    return doc_keep(doc, text.at);
}

/* A table as it was written: lines of cells, the first of which are names. */
struct cells {
    char *at[CELLS_MOST];
    int count;
};

static struct cells line_cut(char *line)
{
    struct cells cells = {0};

    for (char *at = line; at && cells.count < CELLS_MOST;)
        cells.at[cells.count++] = strsep(&at, "\t");
    return cells;
}

/* Where a row leads, by the names of its columns. */
static struct target row_lead(struct db *db, const struct cells *names, const struct cells *row)
{
    struct target target = {0};

    for (int c = 0; c < row->count && c < names->count && !target.kind; c++)
        target = id_target(names->at[c], strtoll(row->at[c], NULL, 10));
    for (int c = 0; c < row->count && !target.kind; c++) {
        const char *colon = strrchr(row->at[c], ':');
        struct query *query =
            colon && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")]
                ? db_query(db, "SELECT code_id FROM code WHERE first_line = ?1 AND substr('/' || "
                               "filename, -length(?2) - 1) = '/' || ?2 ORDER BY 1 LIMIT 1")
                : NULL;
        char file[400];
        if (!query)
            continue;
        snprintf(file, sizeof file, "%.*s", (int)(colon - row->at[c]), row->at[c]);
        query_bind_integer(query, 1, strtoll(colon + 1, NULL, 10));
        query_bind_text(query, 2, *file == '/' ? file + 1 : file);
        if (query_step(query))
            target = (struct target){.kind = VIEW_FUNCTION, .id = query_integer(query, 0)};
        query_close(query);
    }
    return target;
}

/* Of two traces' differences the right half is the other's, and leads to what that says of the
 * function. */
static void sides_put(struct doc *doc, const char *other, const struct cells *names,
                      const struct cells *row, int half)
{
    struct doc_line *line = &doc->lines.at[doc->lines.count - 1];

    for (int c = 0; c < names->count && c < row->count; c++)
        if (!strcmp(names->at[c], "function")) {
            line->half = half;
            line->beside = (struct target){
                .kind = VIEW_DYNTRACE,
                .where = doc_print(doc, "in %s why %s%s", text_quoted(&doc->arena, other),
                                   row->at[c][0] == '-' ? "-- " : "",
                                   text_quoted(&doc->arena, row->at[c]))};
        }
}

/* How wide the cells are of the table that begins with LINE and goes on in REST, up to an empty
 * line: what is in them, but where that is more than COLUMNS the widest give way. */
static void widths_find(const char *line, const char *rest, int columns, int widths[CELLS_MOST])
{
    const char *end = strstr(rest, "\n\n");
    char *copy =
        say_print("%s\n%.*s", line, (int)(end ? (size_t)(end - rest) : strlen(rest)), rest);
    int used, count = 0, sum = 0;

    memset(widths, 0, CELLS_MOST * sizeof *widths);
    for (char *row, *at = copy; (row = strsep(&at, "\n"));) {
        struct cells cells = line_cut(row);
        for (int c = 0; c < cells.count; c++) {
            text_room(cells.at[c], CELL_WIDEST, &used);
            widths[c] = used > widths[c] ? used : widths[c];
        }
        count = cells.count > count ? cells.count : count;
    }
    for (int c = 0; c < count; c++)
        sum += (c + 1 < count || widths[c] < CELL_LEAST ? widths[c] : CELL_LEAST) + 2;
    for (; sum > columns; sum--) {
        int widest = 0;
        for (int c = 1; c + 1 < count; c++)
            widest = widths[c] > widths[widest] ? c : widest;
        if (widths[widest] <= CELL_LEAST)
            break;
        widths[widest]--;
    }
    free(copy);
}

/* TEXT, which is cut up, as lines; it is about the trace at PATH, and how OTHER, if not NULL,
 * differs. */
static void output_put(struct doc *doc, struct db *db, char *text, const char *path,
                       const char *other)
{
    int widths[CELLS_MOST], last;
    struct cells names = {0};

    for (char *line; (line = strsep(&text, "\n"));) {
        const char *told = !strncmp(line, "dyntrace: ", 10) ? line + 10 : line, *made = "";
        bool table = strchr(line, '\t'), head = table && !names.count;
        struct cells cells;
        if (!*line && !text)
            break;
        if (head)
            widths_find(line, text ? text : "", doc->columns, widths);
        cells =
            line_cut(!strncmp(told, path, strlen(path)) && !strncmp(told + strlen(path), ": ", 2)
                         ? line + (told - line) + strlen(path) + 2
                         : line);
        last = 1;
        for (int c = 0; c + 1 < cells.count; c++)
            last += widths[c] + 2;
        for (int c = 0; c < cells.count; c++)
            made = doc_print(doc, "%s%s%s", made, c ? "  " : "",
                             c + 1 < cells.count
                                 ? doc_fit(doc, doc_safe(doc, cells.at[c], 400), widths[c])
                                 : doc_safe(doc, cells.at[c], 4000));
        if (head) {
            names = cells;
            doc_line(doc, MARK "h%s", made)->part = true;
        } else if (table) {
            doc_add(doc, made);
            doc_target(doc, strcmp(path, db_path(db)) ? (struct target){0}
                                                      : row_lead(db, &names, &cells));
        } else {
            names.count = 0;
            doc_wrap(doc, made, (struct target){0});
        }
        if (other && table && !head)
            sides_put(doc, other, &names, &cells, last);
    }
}

/* `verify` is short for what the trace's decisions are held against, `in FILE` asks of another
 * trace. */
static void command_build(struct doc *doc, struct db *db)
{
    char *argv[WORDS_MOST + 4] = {"dyntrace"};
    const char *asked = doc->target.where ? doc->target.where : "", *path = db_path(db);
    int count = words_split(doc, asked, argv, 1), status;

    if (count == 1)
        argv[count++] = "report";
    if (count > 3 && !strcmp(argv[1], "in")) {
        path = argv[2];
        memmove(argv + 1, argv + 3, (size_t)(count -= 2) * sizeof *argv);
        argv[count] = argv[count + 1] = NULL;
    }
    if (!strcmp(argv[1], "verify")) {
        argv[1] = "replay";
        argv[count++] = "--verify";
    }
    memmove(argv + 3, argv + 2, (size_t)(count - 2) * sizeof *argv);
    argv[2] = doc_print(doc, "%s", path); /* the trace is the first operand */
    snprintf(doc->title, sizeof doc->title, "%.140s", doc_safe(doc, asked, 140));
    output_put(doc, db, command_run(doc, argv, &status), path,
               !strcmp(argv[1], "diff") ? argv[3] : NULL);
    if (status < 0 || !WIFEXITED(status))
        doc_line(doc, MARK "rit could not be run to its end");
    else if (WEXITSTATUS(status))
        doc_line(doc, MARK "wexit status %d", WEXITSTATUS(status));
    else if (!doc->lines.count)
        doc_line(doc, MARK "gdone: it says nothing more");
}

const struct view_ops view_dyntrace = {
    .summary = "what another command says of this trace: :check --max-recompiles 0, :diff OTHER, "
               ":fsck, :ranks, :verify, :why FUNC",
    .keys = "Enter opens  i another command  / search  v beside  e export",
    .base = &text_ops,
    .build = command_build,
    .slow = true,
    .asks = "dyntrace ",
    .input = text_input,
};
