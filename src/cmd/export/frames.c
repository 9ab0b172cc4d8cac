/* cmd/export/frames.c -- writes all frames as trace events or as CSV. See cmd/export/frames.h.
 *
 * Runs in: the viewer. */
#include "cmd/export/frames.h"

#include <string.h>
#include <unistd.h>

#include "lib/json.h"
#include "lib/list.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/result.h"
#include "trace/scan.h"
#include "vocabulary.h"

enum {
    TICK = 1 << 14, /* how many frames are written between two calls of `tick` */
    WORDS = 16,     /* the most words of a vocabulary */
    DIGITS = 24,    /* the most characters of a number */
};
#define NO_ID INT64_MIN /* stands for an id that is NULL */

/* A text that is made once and then written for many frames. */
struct piece {
    char *text; /* owned */
    size_t bytes;
};

/* The texts to write for a thread or a code object. In an event, the text `before` stands before
 * the frame's id, and the text `after` behind the id. */
struct pieces {
    struct piece before, after;
    int64_t end_ns; /* end_ns: when the thread ended. has_end: this is known */
    bool has_end;
};

struct writer {
    const struct frames_to *to;
    enum table_format format; /* of CSV */
    struct json *json;        /* of events */
    int64_t frames;
    LIST(struct pieces) all;
    struct map codes, threads; /* map the id of a code object or thread to its index + 1 in `all` */
    const char *kinds[WORDS], *outcomes[WORDS], *exits[WORDS];
    struct arena arena; /* the words */
    struct query *code, *thread;
};

/* ---- writing numbers ----------------------------------------------------- */

/* Write NUMBER in decimal to AT. Returns the end of the text, which has no NUL. */
static char *format_number(char *at, int64_t number)
{
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char digits[DIGITS];
    int count = 0;

    if (number < 0)
        *at++ = '-';
    do {
        digits[count] = (char)('0' + left % 10);
        count++;
        left /= 10;
    } while (left);
    while (count) {
        count--;
        *at = digits[count];
        at++;
    }
    return at;
}

static void write_number(FILE *out, int64_t number)
{
    char digits[DIGITS];
    char *end = format_number(digits, number);

    fwrite_unlocked(digits, 1, (size_t)(end - digits), out);
}

/* Write NS as microseconds with three decimals. */
static void write_as_microseconds(FILE *out, int64_t ns)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    unsigned rest = (unsigned)(size % 1000);
    char digits[DIGITS + 4];
    char *at = digits;

    if (ns < 0)
        *at++ = '-';
    at = format_number(at, (int64_t)(size / 1000));
    *at++ = '.';
    *at++ = (char)('0' + rest / 100);
    *at++ = (char)('0' + rest / 10 % 10);
    *at++ = (char)('0' + rest % 10);
    fwrite_unlocked(digits, 1, (size_t)(at - digits), out);
}

static void write_piece(FILE *out, const struct piece *piece)
{
    fwrite_unlocked(piece->text, 1, piece->bytes, out);
}

/* ---- texts about threads and code objects, made once for many frames ----- */

/* Make the JSON members for COLUMNS columns of QUERY's row, from column FROM on. The text has no
 * braces around it. */
static struct piece make_json_members(struct query *query, int from, int columns)
{
    struct piece piece = {0};
    char *text = NULL;
    size_t bytes;
    struct json json = {.out = open_memstream(&text, &bytes), .compact = true};

    json_object(&json, NULL);
    for (int i = from; i < from + columns; i++) {
        if (query_type(query, i) == QUERY_TEXT)
            json_string(&json, query_name(query, i), query_text(query, i, NULL));
        else if (query_type(query, i) != QUERY_NULL)
            result_put_json_member(&json, query_name(query, i), query, i);
    }
    fclose(json.out);
    piece.bytes = bytes - 1; /* leave out the brace at the beginning of the JSON */
    piece.text = memmove(text, text + 1, piece.bytes);
    return piece;
}

/* Make CSV cells of the first COLUMNS columns of QUERY's row. */
static struct piece make_csv_cells(const struct writer *w, struct query *query, int columns)
{
    const char *names[columns + 1];
    struct piece piece = {0};
    char *text = NULL;
    size_t bytes, head;
    FILE *out = open_memstream(&text, &bytes);
    struct table *table;

    for (int i = 0; i < columns; i++)
        names[i] = "name";
    table = table_open(out, w->format, columns, names);
    for (int i = 0; i < columns; i++)
        result_put_cell(table, query, i);
    table_close(table);
    fclose(out);
    head = (size_t)(strstr(text, "\r\n") + 2 - text);
    piece.bytes = bytes - head - 2;
    piece.text = memmove(text, text + head, piece.bytes);
    return piece;
}

/* Make the texts of the thread in QUERY's row from the first COLUMNS columns. The next column is
 * the thread's end. */
static struct pieces make_pieces_of_thread(const struct writer *w, struct query *query, int columns)
{
    struct pieces made = {
        .has_end = query_type(query, columns) != QUERY_NULL,
        .end_ns = query_integer(query, columns),
    };

    made.before =
        w->format ? make_csv_cells(w, query, columns) : make_json_members(query, 0, columns);
    return made;
}

/* Make the texts of the code object in QUERY's row. */
static struct pieces make_pieces_of_code(const struct writer *w, struct query *query)
{
    enum { NAMED = 2, PLACED = 2, CELLS = 5 };
    struct pieces made = {0};

    if (w->format) {
        made.before = make_csv_cells(w, query, CELLS);
    } else {
        made.before = make_json_members(query, 0, NAMED);
        made.after = make_json_members(query, NAMED, PLACED);
    }
    return made;
}

/* Return the texts of ID, a code object or a thread, borrowed until the next call. IDS maps ids to
 * texts that were made before; for other ids QUERY reads the row to make them from. */
static const struct pieces *get_pieces(struct writer *w, struct map *ids, struct query *query,
                                       int64_t id)
{
    enum { THREAD_MEMBERS = 2, THREAD_CELLS = 4 };
    int64_t *index = map_put(ids, id);

    if (!*index) {
        struct pieces *made = list_add(&w->all);
        query_reset(query);
        query_bind_integer(query, 1, id);
        query_step(query);
        if (query == w->code)
            *made = make_pieces_of_code(w, query);
        else
            *made = make_pieces_of_thread(w, query, w->format ? THREAD_CELLS : THREAD_MEMBERS);
        *index = (int64_t)w->all.count;
    }
    return &w->all.at[*index - 1];
}

/* Read the vocabulary KIND into WORDS, so that WORDS[n] is the word with number n. */
static void read_vocabulary(struct writer *w, const char *kind, const char *words[WORDS])
{
    struct query *query =
        db_query(w->to->db, "SELECT value, name FROM enum WHERE kind = ?1 AND name NOTNULL");

    query_bind_text(query, 1, kind);
    while (query_step(query)) {
        int64_t value = query_integer(query, 0);
        if (value >= 0 && value < WORDS)
            words[value] = arena_print(&w->arena, "%s", query_text(query, 1, NULL));
    }
    query_close(query);
}

static const char *word_of_number(const char *const words[WORDS], bool is_null, int64_t value)
{
    bool is_known = !is_null && value >= 0 && value < WORDS;

    return is_known ? words[value] : NULL;
}

static struct writer open_writer(const struct frames_to *to, enum table_format format)
{
    bool is_csv = format;
    const char *code = is_csv ? "export/frame_code_cells" : "export/frame_code";
    const char *thread = is_csv ? "export/frame_thread_cells" : "export/frame_thread";
    struct writer w = {.to = to, .format = format};

    read_vocabulary(&w, "frame.kind", w.kinds);
    read_vocabulary(&w, "outcome", w.outcomes);
    read_vocabulary(&w, "frame.exit", w.exits);
    w.code = db_query(to->db, schema_statement(code));
    w.thread = db_query(to->db, schema_statement(thread));
    return w;
}

static void close_writer(struct writer *w)
{
    query_close(w->code);
    query_close(w->thread);
    list_each(pieces, &w->all) {
        free(pieces->before.text);
        free(pieces->after.text);
    }
    list_free(&w->all);
    map_free(&w->codes);
    map_free(&w->threads);
    arena_free(&w->arena);
}

static int64_t id_or_no_id(bool is_null, uint64_t id)
{
    return is_null ? NO_ID : (int64_t)id;
}

/* What an output line tells about a frame in addition to the columns of the table `frame`: texts
 * about its code object and thread, and words for its kind, outcome and exit. */
struct about {
    /* texts about the frame's code object and thread, borrowed until the next frame */
    const struct pieces *code, *thread;
    const char *kind, *outcome, *exit; /* words of the vocabulary, or NULL */
    bool is_open;
};

static struct about read_texts_of_frame(struct writer *w, const struct row_frame *frame,
                                        unsigned nulls)
{
    int64_t thread_id = id_or_no_id(row_null(nulls, frame, thread_id), frame->thread_id);
    int64_t code_id = id_or_no_id(row_null(nulls, frame, code_id), frame->code_id);
    /* reading the thread may move the array, so keep the index of the code object */
    size_t code_at = (size_t)(get_pieces(w, &w->codes, w->code, code_id) - w->all.at);
    const struct pieces *thread = get_pieces(w, &w->threads, w->thread, thread_id);

    return (struct about){
        .code = &w->all.at[code_at],
        .thread = thread,
        .kind = word_of_number(w->kinds, row_null(nulls, frame, kind), frame->kind),
        .outcome = word_of_number(w->outcomes, row_null(nulls, frame, outcome), frame->outcome),
        .exit = word_of_number(w->exits, row_null(nulls, frame, exit), frame->exit),
        .is_open = row_null(nulls, frame, end_ns),
    };
}

/* Count a frame that was written, and call `tick` once every TICK frames. Returns false if writing
 * must stop. */
static bool count_written_frame(struct writer *w, int64_t frame_id)
{
    w->frames++;
    return w->frames % TICK || w->to->tick(w->to->context, frame_id);
}

/* ---- writing frames as Chrome's trace events ----------------------------- */

static void write_word_member(FILE *out, const char *key, const char *word)
{
    if (!word)
        return;
    fputs_unlocked(key, out);
    json_escape(out, word, strlen(word), ESCAPE_STRING);
    putc_unlocked('"', out);
}

static bool write_frame_as_event(void *context, const int64_t *values, unsigned nulls)
{
    struct writer *w = context;
    const struct row_frame *frame = (const struct row_frame *)values;
    FILE *out = w->to->out;
    const struct about about = read_texts_of_frame(w, frame, nulls);
    int64_t end_ns = frame->end_ns;

    if (about.is_open)
        end_ns = about.thread->has_end ? about.thread->end_ns : w->to->end_ns;
    json_key(w->json, NULL);
    fputs_unlocked("{\"ph\":\"X\",", out);
    write_piece(out, &about.thread->before);
    fputs_unlocked(",\"ts\":", out);
    write_as_microseconds(out, frame->start_ns);
    fputs_unlocked(",\"dur\":", out);
    write_as_microseconds(out, times_span_or_zero(frame->start_ns, end_ns));
    putc_unlocked(',', out);
    write_piece(out, &about.code->before);
    fputs_unlocked(",\"args\":{\"frame\":", out);
    write_number(out, frame->frame_id);
    if (about.code->after.bytes)
        putc_unlocked(',', out);
    write_piece(out, &about.code->after);
    if (frame->kind != FRAME_CALL)
        write_word_member(out, ",\"kind\":\"", about.kind);
    if (frame->outcome != OUTCOME_PLAIN)
        write_word_member(out, ",\"outcome\":\"", about.outcome);
    if (frame->exit != EXIT_RETURN)
        write_word_member(out, ",\"exit\":\"", about.exit);
    fputs_unlocked(about.is_open ? ",\"open\":true}}" : "}}", out);
    return count_written_frame(w, frame->frame_id);
}

void frames_write_as_events(const struct frames_to *to, struct json *json)
{
    struct writer w = open_writer(to, 0);

    w.json = json;
    scan_rows(to->db, TABLE_frame, write_frame_as_event, &w);
    close_writer(&w);
}

/* ---- writing frames as CSV ----------------------------------------------- */

static void write_number_cell(FILE *out, bool is_null, int64_t number)
{
    if (!is_null)
        write_number(out, number);
    putc_unlocked(',', out);
}

static void write_word_cell(FILE *out, const char *word)
{
    if (word)
        fputs_unlocked(word, out);
    putc_unlocked(',', out);
}

static bool write_frame_as_csv_line(void *context, const int64_t *values, unsigned nulls)
{
    struct writer *w = context;
    const struct row_frame *frame = (const struct row_frame *)values;
    FILE *out = w->to->out;
    const struct about about = read_texts_of_frame(w, frame, nulls);
    int64_t end_ns = about.is_open ? about.thread->end_ns : frame->end_ns;
    bool has_end = !about.is_open || about.thread->has_end;
    bool is_timed = has_end && !row_null(nulls, frame, start_ns);

    write_number_cell(out, false, frame->frame_id);
    write_number_cell(out, row_null(nulls, frame, parent_id), frame->parent_id);
    write_piece(out, &about.thread->before);
    putc_unlocked(',', out);
    write_piece(out, &about.code->before);
    putc_unlocked(',', out);
    write_word_cell(out, about.kind);
    write_word_cell(out, about.outcome);
    write_word_cell(out, about.exit);
    write_number_cell(out, row_null(nulls, frame, start_ns), frame->start_ns);
    write_number_cell(out, about.is_open, frame->end_ns);
    write_number_cell(out, !is_timed, (int64_t)((uint64_t)end_ns - (uint64_t)frame->start_ns));
    if (!row_null(nulls, frame, cache_entry_id))
        write_number(out, frame->cache_entry_id);
    fputs_unlocked("\r\n", out);
    return count_written_frame(w, frame->frame_id);
}

bool frames_write_as_csv(const struct frames_to *to, enum table_format format)
{
    static const char known[] =
        "frame_id,parent_id,process_id,pid,thread_id,thread,code_id,qualname,filename,first_line,"
        "code_kind,kind,outcome,exit,start_ns,end_ns,duration_ns,cache_entry_id";
    struct query *query = db_query(to->db, "SELECT * FROM frames LIMIT 0");
    struct writer w;
    char names[sizeof known + 1] = "";
    size_t used = 0;

    for (int i = 0; i < query_columns(query) && used < sizeof known; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? "," : "",
                                 query_name(query, i));
    query_close(query);
    if (strcmp(names, known) != 0 || isatty(fileno(to->out)))
        return false;
    fprintf(to->out, "%s\r\n", known);
    w = open_writer(to, format);
    scan_rows(to->db, TABLE_frame, write_frame_as_csv_line, &w);
    close_writer(&w);
    return true;
}
