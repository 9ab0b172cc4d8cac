/* tui/views/commands.c -- the view `dyntrace`: the output of a command of dyntrace on this
 * trace, such as `:check --max-recompiles 0` or `:diff OTHER`.
 *
 * Runs in: the viewer, in a thread. The command is a process of its own, which is terminated if
 * the view is closed.
 *
 * If the output of a command is not a terminal, the tables in it have tabs between cells and column
 * names in the first row. This view aligns the columns. A row leads to the compile, lookup or other
 * row whose id it has, or to the function that begins at its FILE:LINE. */
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

/* Read the word at *TEXT, and move *TEXT behind it. A word may be in single or double quotes, in
 * which a doubled quote stands for one. */
static char *read_quoted_word(struct doc *doc, const char **text)
{
    const char *from = *text;
    bool quoted = *from == '\'' || *from == '"';
    char end = quoted ? *from : ' ';
    char *made = arena_take(&doc->arena, strlen(from) + 1);
    char *to = made;

    from += quoted;
    for (; *from; from++) {
        bool at_end = *from == end;
        if (at_end && quoted) {
            from++;
            at_end = *from != end;
        }
        if (at_end)
            break;
        *to = *from;
        to++;
    }
    *text = from;
    return made;
}

/* Split TEXT at spaces, except in quotes, and append the words to ARGV, which has COUNT words.
 * Returns the new count. */
static int split_words(struct doc *doc, const char *text, char **argv, int count)
{
    while (count < WORDS_MOST) {
        text += strspn(text, " ");
        if (!*text)
            break;
        argv[count] = read_quoted_word(doc, &text);
        count++;
    }
    return count;
}

/* In a child process: run `dyntrace` with the arguments ARGV. Its output goes to OUT.
 * Does not return. */
__attribute__((noreturn)) static void command_exec(char **argv, int out)
{
    bounds_reset_in_child();
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv("/proc/self/exe", argv);
    _exit(127);
}

typedef LIST(char) text_list;

/* Read FD into TEXT until its end. If DOC's job is cancelled, terminate CHILD and stop reading. */
static void read_output_of_child(struct doc *doc, int fd, pid_t child, text_list *text)
{
    enum { ROOM = 65536 };
    ssize_t got = 1;

    while (got > 0 && text->count < OUTPUT_MOST) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        if (atomic_load(&doc->job.cancelled)) {
            kill(child, SIGTERM);
            break;
        }
        if (poll(&polled, 1, LOOK_MS) <= 0)
            continue;
        got = read(fd, list_add_many(text, ROOM), ROOM);
        text->count -= ROOM;
        if (got > 0)
            text->count += (size_t)got;
    }
}

/* Run `dyntrace` with the arguments ARGV, and return its standard output and standard error, which
 * DOC owns. *STATUS is as wait(2) sets it, or -1 if the command could not be started. */
static char *run_command(struct doc *doc, char **argv, int *status)
{
    text_list text = {0};
    int ends[2];
    pid_t child;

    *status = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return doc_print(doc, "%s", "");
    child = fork();
    if (child == 0)
        command_exec(argv, ends[1]);
    close(ends[1]);
    if (child > 0)
        read_output_of_child(doc, ends[0], child, &text);
    close(ends[0]);
    if (child > 0)
        TEMP_FAILURE_RETRY(waitpid(child, status, 0));
    *list_add(&text) = 0;
    return doc_keep(doc, text.at);
}

/* One line of a table, cut into cells. */
struct cells {
    char *at[CELLS_MOST];
    int count;
};

static struct cells split_line_into_cells(char *line)
{
    struct cells cells = {0};

    while (line && cells.count < CELLS_MOST) {
        cells.at[cells.count] = strsep(&line, "\t");
        cells.count++;
    }
    return cells;
}

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

/* Return the target for TEXT, a place such as "app/f.py:12": the function that begins there.
 * Returns an empty target if there is none. */
static struct target find_place_target(struct db *db, const char *text)
{
    const char *colon = strrchr(text, ':');
    struct target target = {0};
    struct query *query;
    char file[400];

    if (!colon || !is_number(colon + 1))
        return target;
    query = db_query(db, "SELECT code_id FROM code WHERE first_line = ?1 AND substr('/' || "
                         "filename, -length(?2) - 1) = '/' || ?2 ORDER BY 1 LIMIT 1");
    if (!query)
        return target;
    snprintf(file, sizeof file, "%.*s", (int)(colon - text), text);
    query_bind_integer(query, 1, strtoll(colon + 1, NULL, 10));
    query_bind_text(query, 2, *file == '/' ? file + 1 : file);
    if (query_step(query)) {
        target.kind = VIEW_FUNCTION;
        target.id = query_integer(query, 0);
    }
    query_close(query);
    return target;
}

/* Return the target for ROW. If a column of NAMES is called like an id, such as `compile_id`, the
 * target is the row with this id. Otherwise it is the function at a place FILE:LINE in a cell. */
static struct target find_target_of_row(struct db *db, const struct cells *names,
                                        const struct cells *row)
{
    int named = row->count < names->count ? row->count : names->count;
    struct target target = {0};

    for (int c = 0; c < named && !target.kind; c++) {
        int64_t id = strtoll(row->at[c], NULL, 10);
        target = target_from_id_column(names->at[c], id);
    }
    for (int c = 0; c < row->count && !target.kind; c++)
        target = find_place_target(db, row->at[c]);
    return target;
}

/* The last line of DOC is a row of `diff`. Divide it into halves: the right one, from column HALF
 * on, is about the trace OTHER, and leads to `why FUNCTION` on that trace. */
static void split_diff_row(struct doc *doc, const char *other, const struct cells *names,
                           const struct cells *row, int half)
{
    struct doc_line *line = &doc->lines.at[doc->lines.count - 1];
    const char *trace = text_quoted(&doc->arena, other);

    for (int c = 0; c < names->count && c < row->count; c++) {
        const char *function = row->at[c];
        const char *operand = function[0] == '-' ? "-- " : "";
        if (strcmp(names->at[c], "function"))
            continue;
        function = text_quoted(&doc->arena, function);
        line->half = half;
        line->beside.kind = VIEW_DYNTRACE;
        line->beside.where = doc_print(doc, "in %s why %s%s", trace, operand, function);
    }
}

/* A table begins with LINE and continues in REST, up to an empty line. Store how wide each of its
 * columns is in WIDTHS. Returns the number of columns. */
static int read_column_widths(const char *line, const char *rest, int widths[CELLS_MOST])
{
    const char *end = strstr(rest, "\n\n");
    size_t bytes = end ? (size_t)(end - rest) : strlen(rest);
    char *copy = say_print("%s\n%.*s", line, (int)bytes, rest);
    char *at = copy;
    char *row;
    int count = 0;

    memset(widths, 0, CELLS_MOST * sizeof *widths);
    while ((row = strsep(&at, "\n"))) {
        struct cells cells = split_line_into_cells(row);
        for (int c = 0; c < cells.count; c++) {
            int used;
            text_bytes_that_fit(cells.at[c], CELL_WIDEST, &used);
            if (used > widths[c])
                widths[c] = used;
        }
        if (cells.count > count)
            count = cells.count;
    }
    free(copy);
    return count;
}

/* Return the index of the widest of COUNT columns. The last one does not count. */
static int find_widest_column(const int widths[], int count)
{
    int widest = 0;

    for (int c = 1; c + 1 < count; c++)
        if (widths[c] > widths[widest])
            widest = c;
    return widest;
}

/* A table begins with LINE and continues in REST. Choose the widths of its columns: as wide as
 * their texts, but the widest are made narrower until the table fits into COLUMNS. */
static void choose_column_widths(const char *line, const char *rest, int columns,
                                 int widths[CELLS_MOST])
{
    int count = read_column_widths(line, rest, widths);
    int sum = 0;

    for (int c = 0; c < count; c++) {
        /* the last column is not made narrower, because it may be cut off at the
         * edge of the screen */
        bool last = c + 1 == count;
        int width = widths[c];
        if (last && width > CELL_LEAST)
            width = CELL_LEAST;
        sum += width + 2;
    }
    while (sum > columns) {
        int widest = find_widest_column(widths, count);
        if (widths[widest] <= CELL_LEAST)
            break;
        widths[widest]--;
        sum--;
    }
}

/* Return what follows PREFIX in TEXT, or TEXT if it does not begin with PREFIX. */
static char *text_after_prefix(char *text, const char *prefix)
{
    size_t bytes = strlen(prefix);

    return strncmp(text, prefix, bytes) ? text : text + bytes;
}

/* Return LINE, an error message, without "dyntrace: PATH: " at its beginning. */
static char *message_without_path(char *line, const char *path)
{
    char *message = text_after_prefix(line, "dyntrace: ");
    char *rest = text_after_prefix(message, path);

    return rest > message && !strncmp(rest, ": ", 2) ? rest + 2 : line;
}

/* Return a table's row as text: each cell but the last is as wide as its column. */
static const char *make_line_of_cells(struct doc *doc, const struct cells *cells,
                                      const int widths[])
{
    const char *made = "";

    for (int c = 0; c < cells->count; c++) {
        bool last = c + 1 == cells->count;
        const char *text = doc_safe(doc, cells->at[c], last ? 4000 : 400);
        if (!last)
            text = doc_fit(doc, text, widths[c]);
        made = doc_print(doc, "%s%s%s", made, c ? "  " : "", text);
    }
    return made;
}

/* Return the column of the screen at which the last cell of the row begins. */
static int last_cell_column(const struct cells *cells, const int widths[])
{
    int x = 1;

    for (int c = 0; c + 1 < cells->count; c++)
        x += widths[c] + 2;
    return x;
}

/* TEXT is the output of a command on the trace at PATH: add it to DOC. NULs are written into TEXT.
 * OTHER is the second trace of `diff`, or NULL. */
static void add_command_output(struct doc *doc, struct db *db, char *text, const char *path,
                               const char *other)
{
    bool leads = !strcmp(path, db_get_path(db));
    int widths[CELLS_MOST];
    struct cells names = {0};
    char *line;

    while ((line = strsep(&text, "\n"))) {
        bool table = strchr(line, '\t');
        bool head = table && !names.count;
        struct cells cells;
        const char *made;
        if (!*line && !text)
            break;
        if (head)
            choose_column_widths(line, text ? text : "", doc->columns, widths);
        cells = split_line_into_cells(message_without_path(line, path));
        made = make_line_of_cells(doc, &cells, widths);
        if (head) {
            names = cells;
            doc_line(doc, MARK "h%s", made)->part = true;
        } else if (table) {
            struct target none = {0};
            doc_add_line(doc, made);
            doc_set_target(doc, leads ? find_target_of_row(db, &names, &cells) : none);
            if (other)
                split_diff_row(doc, other, &names, &cells, last_cell_column(&cells, widths));
        } else {
            names.count = 0;
            doc_add_wrapped_line(doc, made, (struct target){0});
        }
    }
}

/* Remove COUNT words of ARGV, which has WORDS words, from index FIRST on. Returns how
 * many are left. */
static int remove_words(char *argv[], int words, int first, int count)
{
    int left = words - count;

    memmove(argv + first, argv + first + count, (size_t)(left - first) * sizeof *argv);
    for (int i = left; i < words; i++)
        argv[i] = NULL;
    return left;
}

/* Run the command that the user typed, and make its output the text. `verify` is short for
 * `replay --verify`; `in FILE` before a command runs it on another trace. */
static void build_command_view(struct doc *doc, struct db *db)
{
    char *argv[WORDS_MOST + 4] = {"dyntrace"};
    const char *asked = doc->target.where ? doc->target.where : "";
    const char *path = db_get_path(db);
    int count = split_words(doc, asked, argv, 1);
    const char *other;
    char *said;
    int status;

    if (count == 1)
        argv[count++] = "report";
    if (count > 3 && !strcmp(argv[1], "in")) {
        path = argv[2];
        count = remove_words(argv, count, 1, 2);
    }
    if (!strcmp(argv[1], "verify")) {
        argv[1] = "replay";
        argv[count++] = "--verify";
    }
    memmove(argv + 3, argv + 2, (size_t)(count - 2) * sizeof *argv);
    argv[2] = doc_print(doc, "%s", path); /* commands expect the trace as their first operand */
    snprintf(doc->title, sizeof doc->title, "%.140s", doc_safe(doc, asked, 140));
    said = run_command(doc, argv, &status);
    other = strcmp(argv[1], "diff") ? NULL : argv[3];
    add_command_output(doc, db, said, path, other);
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
    .build = build_command_view,
    .slow = true,
    .asks = "dyntrace ",
    .input = text_input,
};
