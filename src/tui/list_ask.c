/* tui/list_ask.c -- what a list asks the trace, beside the keys. See tui/list.h.
 *
 * Runs in: the viewer; list_run() in a thread.
 *
 *     ASK_IDS     ids of all rows as they are sorted and filtered: a first screenful at once, then all
 *     ASK_ROWS    whole lists: all rows
 *     ASK_WINDOW  windowed lists: the rows of some ids
 *     ASK_SEEK    the next row with a text in it
 *     ASK_EXPORT  all rows to a file */
#include "tui/list_ask.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/csv.h"
#include "trace/db.h"
#include "lib/out_file.h"
#include "trace/prose.h"
#include "lib/say.h"

enum {
    ROWS_MOST = 100000,      /* of a whole list */
    BYTES_MOST = 48 << 20,   /* of them */
    IDS_MOST = 8000000,      /* of a windowed list */
    FIRST_IDS = 400,         /* what is asked for first */
    TEXT_MOST = 400,         /* bytes of a cell */
};

/* ---- SQL ------------------------------------------------------------------- */

void sql_name(FILE *out, const char *name)
{
    putc('"', out);
    for (; *name; name++) {
        if (*name == '"')
            putc('"', out);
        putc(*name, out);
    }
    putc('"', out);
}

/* TEXT as a pattern of LIKE within quotes. */
static void sql_pattern(FILE *out, const char *text, size_t bytes)
{
    fputs("'%", out);
    for (size_t i = 0; i < bytes; i++) {
        if (strchr("%_\\", text[i]))
            putc('\\', out);
        if (text[i] == '\'')
            putc('\'', out);
        putc(text[i], out);
    }
    fputs("%' ESCAPE '\\'", out);
}

/* Each word must be in some text column. */
static void sql_words(FILE *out, const struct list *list, const char *words)
{
    const char *between = "";

    while (*(words += strspn(words, " "))) {
        size_t length = strcspn(words, " ");
        bool any = false;
        fprintf(out, "%s(", between);
        for (int i = 1; i < list->column_count; i++) {
            const struct list_column *c = &list->columns[i];
            if (c->format != AS_TEXT && c->format != AS_PATH && c->format != AS_OUTCOME)
                continue;
            fputs(any ? " OR " : "", out);
            sql_name(out, c->name);
            fputs(" LIKE ", out);
            sql_pattern(out, words, length);
            any = true;
        }
        fputs(any ? ")" : "1)", out);
        between = " AND ";
        words += length;
    }
}

char *list_query(const struct list *list, enum ask what, bool first)
{
    const struct list_spec *spec = list->spec;
    const char *where = list->view.target.where;
    bool filter = list->filter && (list->filter_sql || (spec && spec->key));
    char *made = NULL;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    if (!out)
        return NULL;
    if (!spec && !filter && list->sort < 0) { /* not everything can stand within another query */
        fputs(list->sql_text, out);
        fclose(out);
        return made;
    }
    if (what == ASK_IDS) {
        fputs("SELECT ", out);
        sql_name(out, spec->key);
    } else {
        fputs("SELECT *", out);
    }
    fprintf(out, " FROM (%s\n)", !spec ? list->sql_text : what == ASK_ROWS && first && spec->quick ? spec->quick : spec->sql);
    if (what == ASK_WINDOW) {
        fputs(" WHERE ", out);
        sql_name(out, spec->key);
        fputs(" = ?1", out);
    } else {
        if (where)
            fprintf(out, " WHERE (%s)", where);
        if (filter) {
            fputs(where ? " AND (" : " WHERE (", out);
            if (list->filter_sql)
                fprintf(out, "%s\n", list->filter);
            else
                sql_words(out, list, list->filter);
            putc(')', out);
        }
        if (list->sort >= 0 && (what != ASK_ROWS || !spec)) {
            fputs(" ORDER BY ", out);
            sql_name(out, list->columns[list->sort].name);
            fputs(list->descending ? " DESC" : "", out);
            if (spec && spec->key && strcmp(spec->key, list->columns[list->sort].name)) {
                fputs(", ", out);
                sql_name(out, spec->key);
            }
        }
        if (what == ASK_IDS)
            fprintf(out, " LIMIT %d", first ? FIRST_IDS : IDS_MOST + 1);
    }
    fclose(out);
    return made;
}

/* ---- reading rows ---------------------------------------------------------- */

static struct value value_read(struct query *query, int column)
{
    struct value value = {.type = (unsigned char)query_type(query, column)};
    size_t bytes;
    const char *text;

    switch (value.type) {
    case QUERY_INTEGER:
        value.integer = query_integer(query, column);
        break;
    case QUERY_REAL:
        value.real = query_real(query, column);
        break;
    case QUERY_TEXT:
        text = query_text(query, column, &bytes);
        value.text = strndup(text, prose_cut(text, TEXT_MOST));
        break;
    case QUERY_BLOB:
        query_whole(query, column, &bytes);
        value.type = QUERY_TEXT;
        if (asprintf(&value.text, "(%zu bytes)", bytes) < 0)
            value.text = NULL;
        break;
    default:
        break;
    }
    if (value.type == QUERY_TEXT && !value.text)
        value.type = QUERY_NULL;
    return value;
}

void values_free(struct value *values, size_t count)
{
    for (size_t i = 0; values && i < count; i++)
        if (values[i].type == QUERY_TEXT)
            free(values[i].text);
    free(values);
}

/* Room for one more row. */
static bool values_room(struct list_job *ask)
{
    if (ask->row_count == ask->room) {
        size_t room = ask->room ? ask->room * 2 : 64;
        struct value *more = realloc(ask->values, room * (size_t)ask->columns * sizeof *more);
        if (!more) {
            say_error("out of memory");
            return false;
        }
        ask->values = more;
        ask->room = room;
    }
    return true;
}

static bool row_read(struct list_job *ask, struct query *query)
{
    if (!values_room(ask))
        return false;
    for (int i = 0; i < ask->columns; i++) {
        struct value v = value_read(query, i);
        ask->values[ask->row_count * (size_t)ask->columns + (size_t)i] = v;
        ask->bytes += sizeof v + (v.type == QUERY_TEXT ? strlen(v.text) + 16 : 0);
    }
    ask->row_count++;
    return true;
}

static void ask_rows(struct list_job *ask, struct db *db)
{
    struct query *query = db_query(db, ask->sql);

    if (query && (ask->columns = query_columns(query)) == 0)
        say_error("this finds no rows: only SELECT does");
    if (query && ask->columns && (ask->names = calloc((size_t)ask->columns, sizeof *ask->names)))
        for (int i = 0; i < ask->columns; i++)
            ask->names[i] = strdup(query_name(query, i));
    while (ask->columns && query_step(query)) {
        if (ask->row_count >= ROWS_MOST || ask->bytes > BYTES_MOST) {
            ask->cut = true;
            break;
        }
        if (!row_read(ask, query))
            break;
    }
    query_close(query);
}

static void ask_ids(struct list_job *ask, struct db *db)
{
    struct query *query = db_query(db, ask->sql);

    while (query_step(query)) {
        if (ask->row_count == IDS_MOST) {
            ask->cut = true;
            break;
        }
        if (ask->row_count == ask->room) {
            size_t room = ask->room ? ask->room * 2 : 512;
            int64_t *more = realloc(ask->ids, room * sizeof *more);
            if (!more) {
                say_error("out of memory");
                break;
            }
            ask->ids = more;
            ask->room = room;
        }
        ask->ids[ask->row_count++] = query_integer(query, 0);
    }
    query_close(query);
}

static void ask_window(struct list_job *ask, struct db *db)
{
    struct query *query = db_query(db, ask->sql);

    ask->columns = query_columns(query);
    for (size_t i = 0; ask->columns && i < ask->id_count; i++) {
        query_reset(query);
        query_bind_integer(query, 1, ask->ids[i]);
        if (query_step(query)) {
            if (!row_read(ask, query))
                break;
        } else if (query_failed(query) || !values_room(ask)) {
            break;
        } else { /* gone since */
            memset(&ask->values[ask->row_count++ * (size_t)ask->columns], 0, (size_t)ask->columns * sizeof(struct value));
        }
    }
    query_close(query);
}

static void ask_seek(struct list_job *ask, struct db *db)
{
    struct query *query = db_query(db, ask->sql);
    int columns = query_columns(query);

    for (size_t i = 0; query && i < ask->id_count && !atomic_load(&ask->job.cancelled); i++) {
        /* Onwards from where it stood, around the end. */
        size_t at = ask->direction > 0 ? (ask->from + 1 + i) % ask->id_count : (ask->from + 2 * ask->id_count - 1 - i) % ask->id_count;
        query_reset(query);
        query_bind_integer(query, 1, ask->ids[at]);
        if (!query_step(query))
            continue;
        for (int c = 0; c < columns && !ask->found; c++) {
            char made[CELL_TEXT];
            struct value value;
            if (ask->formats[c] == AS_HIDDEN)
                continue;
            value = value_read(query, c);
            value_print(made, &value, (enum cell_format)ask->formats[c]);
            if (value.type == QUERY_TEXT)
                free(value.text);
            ask->found = strcasestr(made, ask->text) != NULL;
        }
        if (ask->found) {
            ask->at = at;
            break;
        }
    }
    query_close(query);
}

static void ask_export(struct list_job *ask, struct db *db)
{
    struct out_file out = {0};
    struct query *query = NULL;
    struct stat st;

    if (lstat(ask->text, &st) == 0) {
        say_error("%s: exists already; choose another name", ask->text);
        return;
    }
    if (!out_open(&out, ask->text, false))
        return;
    query = db_query(db, ask->sql);
    csv_head(out.file, query, false);
    while (query_step(query)) {
        csv_row(out.file, query, false);
        if (++ask->row_count % 4096 == 0 && out_failed(&out))
            break;
    }
    if (query_close(query) && out_commit(&out))
        ask->found = true;
    out_close(&out);
}

static void list_run(struct job *job, struct db *db)
{
    struct list_job *ask = (struct list_job *)job;

    switch (ask->what) {
    case ASK_ROWS:
        ask_rows(ask, db);
        break;
    case ASK_IDS:
        ask_ids(ask, db);
        break;
    case ASK_WINDOW:
        ask_window(ask, db);
        break;
    case ASK_SEEK:
        ask_seek(ask, db);
        break;
    case ASK_EXPORT:
        ask_export(ask, db);
        break;
    }
}

static void list_job_free(struct job *job)
{
    struct list_job *ask = (struct list_job *)job;

    values_free(ask->values, ask->row_count * (size_t)ask->columns * (ask->what == ASK_ROWS || ask->what == ASK_WINDOW));
    for (int i = 0; ask->names && i < ask->columns; i++)
        free(ask->names[i]);
    free(ask->names);
    free(ask->ids);
    free(ask->formats);
    free(ask->text);
    free(ask->sql);
    free(ask);
}

struct list_job *list_ask(struct list *list, enum ask what, bool first)
{
    struct list_job *ask = calloc(1, sizeof *ask);

    if (!ask)
        return NULL;
    ask->job.run = list_run;
    ask->job.free = list_job_free;
    ask->job.slow = what == ASK_SEEK || what == ASK_EXPORT || (!first && what == ASK_IDS) ||
                    (what == ASK_ROWS && !first && (!list->spec || list->spec->slow));
    ask->what = what;
    ask->first = first;
    ask->sql = list_query(list, what == ASK_SEEK ? ASK_WINDOW : what, first);
    if (!ask->sql) {
        free(ask);
        return NULL;
    }
    return ask;
}
