/* trace/find_code.c -- from what a user types to a function of a trace.
 *
 * Runs in: the viewer. See trace/find_code.h. */
#include "trace/find_code.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "schema.h"
#include "trace/db.h"
#include "lib/json.h"
#include "trace/prose.h"
#include "lib/say.h"
#include "lib/table.h"
#include "trace/torch_words.h"

enum {
    LISTED = 40,       /* functions in a list of several */
    NEAREST = 5,       /* names suggested */
    NAME_MAX_ = 96,    /* bytes of a name that are compared */
    IDS_MAX = 1 << 14, /* bytes of a list of ids */
    NEAR_ROWS = 200000,
};

/* ---- how a name can be meant ----------------------------------------------- */

/* Tried in this order; the first that finds anything decides. */
enum { NAMED = 1, LINED = 2, GLOBBED = 4, LABELLED = 8, RESTED = 16 };
static const struct way {
    int needs;
    const char *read_as; /* schemas/find.sql */
} ways[] = {
    {LABELLED, "label"}, {NAMED, "name"}, {NAMED, "last part"}, {RESTED, "resume"}, {RESTED, "resume, last part"},
    {LINED, "line"}, {LINED, "line above"} /* no function begins there */,
    {GLOBBED, "glob"}, {GLOBBED, "glob, last part"}, {GLOBBED, "glob of files"},
};

/* What follows the last AT in NAME, if that is a number. */
static const char *number_after(const char *name, char at)
{
    const char *last = strrchr(name, at);

    return last && last > name && last[1] && !last[1 + strspn(last + 1, "0123456789")] ? last + 1 : NULL;
}

static int name_kinds(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    int kinds = NAMED;

    if (number_after(name, ':'))
        kinds |= LINED;
    if (number_after(name, '@'))
        kinds |= RESTED;
    if (strpbrk(name, "*?["))
        kinds |= GLOBBED;
    if (digits && name[digits] == '/' && isdigit((unsigned char)name[digits + 1]) &&
        !name[digits + 1 + strspn(name + digits + 1, "0123456789_")]) /* 0/1, and torch's 0/1_1 */
        kinds |= LABELLED;
    return kinds;
}

static struct query *matches(struct db *db, const struct way *way, const char *name)
{
    struct query *query = db_query(db, schema_statement("find/functions"));
    const char *line = number_after(name, ':'), *resume = number_after(name, '@');
    char *file = line ? strndup(name, (size_t)(line - 1 - name)) : NULL;
    char *rest = resume ? torch_resume_name(name, (size_t)(resume - 1 - name), resume) : NULL;

    query_bind_text(query, 1, name);
    if (file)
        query_bind_text(query, 2, file), query_bind_integer(query, 3, strtoll(line, NULL, 10));
    if (rest)
        query_bind_text(query, 4, rest);
    query_bind_text(query, 5, way->read_as);
    free(file), free(rest);
    return query;
}

/* ---- one, several ---------------------------------------------------------- */

/* All of a column, to be freed: ids are SQL, and JSON holds names whole. NULL is NULL. */
static char *whole(struct query *query, int column)
{
    return query_type(query, column) == QUERY_NULL ? NULL : strdup(query_whole(query, column, NULL));
}

/* The current row of matches(). */
static struct found_code found_read(struct query *query)
{
    struct found_code found = {
        .filename = whole(query, 0), .qualname = whole(query, 1), .kind = prose_column(query, 3),
        .first_line = query_integer(query, 2), .ids = whole(query, 4),
        .code_objects = query_integer(query, 5), .processes = query_integer(query, 6), .calls = -1,
    };

    if (query_type(query, 7) != QUERY_NULL)
        found.calls = query_integer(query, 7);
    if (!found.filename)
        found.filename = strdup("?");
    if (!found.qualname)
        found.qualname = strdup("?");
    if (!found.kind)
        found.kind = strdup("code");
    if (found.ids && strlen(found.ids) > IDS_MAX) {
        found.ids[IDS_MAX] = 0;
        *strrchr(found.ids, ',') = 0;
    }
    return found;
}

void found_code_free(struct found_code *found)
{
    free(found->filename);
    free(found->qualname);
    free(found->kind);
    free(found->ids);
    free(found->label);
    *found = (struct found_code){0};
}

static bool found_whole(const struct found_code *found)
{
    return found->filename && found->qualname && found->kind && found->ids;
}

void find_bind(struct query *query, int parameter, const struct found_code *found)
{
    char *array = NULL;

    if (asprintf(&array, "[%s]", found->ids) >= 0)
        query_bind_text(query, parameter, array);
    free(array);
}

int64_t find_compiles(struct db *db, const struct found_code *found, int64_t *entries)
{
    struct query *query = db_query(db, schema_statement("find/counts"));
    int64_t compiles = 0;

    find_bind(query, 1, found);
    if (query_step(query)) {
        compiles = query_integer(query, 0);
        if (entries)
            *entries = query_integer(query, 1);
    }
    query_close(query);
    return compiles;
}

static void list_row(struct db *db, struct table *table, const struct found_code *found)
{
    int64_t entries = 0, compiles = find_compiles(db, found, &entries);
    char *where = NULL;

    if (found->calls >= 0)
        table_integer(table, found->calls);
    else
        table_null(table);
    table_integer(table, compiles);
    table_integer(table, entries);
    table_string(table, found->qualname);
    table_string(table, found->kind);
    if (asprintf(&where, "%s:%lld", found->filename, (long long)found->first_line) < 0)
        where = NULL;
    table_string(table, where);
    free(where);
}

/* FIRST and the rows that QUERY still has. */
static bool list_print(struct db *db, struct query *query, const struct found_code *first, const char *name, FILE *out,
                       bool json)
{
    struct json j = {.out = out};
    struct table *table;
    int64_t count = 1;

    if (json) {
        json_object(&j, NULL);
        json_lines(&j);
        json_string(&j, "name", name);
        json_key(&j, "matches");
    } else {
        prose_text(out, name, 200);
        fputs(" is several functions; name one by its qualified name, or by FILE:LINE\n\n", out);
    }
    table = table_open(out, table_format(out, json), 6,
                       (const char *[]){"calls", "compiles", "entries", "function", "kind", "where"});
    if (!table)
        return false;
    list_row(db, table, first);
    while (query_step(query)) {
        struct found_code found = {0};
        if (count++ < LISTED && (found = found_read(query), found_whole(&found)))
            list_row(db, table, &found);
        found_code_free(&found);
    }
    table_close(table);
    if (json) {
        json_integer(&j, "match_count", count);
        json_end(&j);
        putc('\n', out);
    } else if (count > LISTED) {
        fprintf(out, "(%d of %lld)\n", LISTED, (long long)count);
    }
    return true;
}

/* ---- none: the nearest names ----------------------------------------------- */

struct near {
    char *name; /* owned */
    int distance;
};

/* Edits that make A from B, letter case counted half; names are cut to NAME_MAX_. */
static int distance_of(const char *a, const char *b)
{
    int row[NAME_MAX_ + 1];
    int la = (int)strnlen(a, NAME_MAX_), lb = (int)strnlen(b, NAME_MAX_);

    for (int j = 0; j <= lb; j++)
        row[j] = j * 2;
    for (int i = 1; i <= la; i++) {
        int corner = row[0];
        row[0] = i * 2;
        for (int j = 1; j <= lb; j++) {
            int change = a[i - 1] == b[j - 1] ? 0
                         : tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]) ? 1 : 2;
            int best = corner + change;
            if (row[j] + 2 < best)
                best = row[j] + 2;
            if (row[j - 1] + 2 < best)
                best = row[j - 1] + 2;
            corner = row[j];
            row[j] = best;
        }
    }
    return row[lb];
}

static void near_add(struct near nearest[NEAREST], const char *name, int distance)
{
    int at = NEAREST;

    for (int i = 0; i < NEAREST; i++)
        if (nearest[i].name && !strcmp(nearest[i].name, name))
            return;
    while (at > 0 && (!nearest[at - 1].name || nearest[at - 1].distance > distance))
        at--;
    if (at == NEAREST)
        return;
    free(nearest[NEAREST - 1].name);
    memmove(&nearest[at + 1], &nearest[at], (size_t)(NEAREST - 1 - at) * sizeof *nearest);
    nearest[at] = (struct near){strdup(name), distance};
}

/* A function whose compiled code has taken NAME in; the caller frees it. NULL: none is known. */
static char *taker_of(struct db *db, const char *name)
{
    const char *last = strrchr(name, '.') ? strrchr(name, '.') + 1 : name;
    struct query *query = db_query(db, schema_statement("find/taker"));
    char *taker = NULL;

    query_bind_text(query, 1, last);
    if (*last && query_step(query))
        taker = prose_column(query, 0);
    query_close(query);
    return taker;
}

/* Say that NAME is not there, and what comes nearest to it. */
static void none_say(struct db *db, const char *name)
{
    struct query *query = db_query(db, schema_statement("find/names"));
    struct near nearest[NEAREST + 1] = {{0}};
    const char *colon = strrchr(name, ':');
    char *list = NULL, *taker, *wanted = strndup(name, NAME_MAX_);
    size_t room = 0;
    FILE *out = open_memstream(&list, &room);
    int worst = (int)strnlen(name, NAME_MAX_); /* half of its letters are others */

    query_bind_integer(query, 1, NEAR_ROWS);
    while (wanted && query_step(query)) {
        const char *qualname = query_text(query, 0, NULL), *last = strrchr(qualname, '.');
        int whole = distance_of(wanted, qualname), part = last ? distance_of(wanted, last + 1) + 1 : whole;
        if (whole > part)
            whole = part;
        if (whole <= worst && strlen(qualname) < 200)
            near_add(nearest, qualname, whole);
    }
    query_close(query);
    for (int i = 0; out && i < NEAREST && nearest[i].name; i++)
        fprintf(out, "%s%s", i ? ", " : "; nearest: ", nearest[i].name);
    if (out)
        fclose(out);
    taker = taker_of(db, name);
    if (db_damaged(db))
        ; /* which was said: it may be there */
    else if (taker)
        say_error("%.200s: no call of it is in %s: torch has taken it into the code of %.200s, see there", name,
                  db_path(db), taker);
    else
        say_error("%.200s: no such function in %s%s", name, db_path(db),
                  list && *list ? list : colon ? "; FILE:LINE names one by its line" : "");
    for (int i = 0; i < NEAREST; i++)
        free(nearest[i].name);
    free(list);
    free(taker);
    free(wanted);
}

/* ---- the search ------------------------------------------------------------ */

enum find_result find_code(struct db *db, const char *name, struct found_code *found, FILE *out, bool json)
{
    int kinds = name_kinds(name);

    *found = (struct found_code){0};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct query *query;
        enum find_result result = FIND_NONE;
        if (!(kinds & ways[i].needs))
            continue;
        query = matches(db, &ways[i], name);
        if (query_step(query)) {
            *found = found_read(query);
            result = FIND_ONE;
            if (!found_whole(found))
                result = FIND_ERROR;
            else if (query_step(query)) {
                struct query *again = matches(db, &ways[i], name);
                query_step(again); /* FOUND itself */
                result = list_print(db, again, found, name, out, json) ? FIND_SEVERAL : FIND_ERROR;
                if (!query_close(again))
                    result = FIND_ERROR;
            }
        }
        if (!query_close(query))
            result = FIND_ERROR;
        if (result == FIND_ONE) {
            if (ways[i].needs == LABELLED)
                found->label = strdup(name);
            return FIND_ONE;
        }
        found_code_free(found);
        if (result != FIND_NONE)
            return result;
    }
    none_say(db, name);
    return FIND_NONE;
}

/* ---- the command line and the tables --------------------------------------- */

static bool is_trace_name(const char *argument)
{
    size_t length = strlen(argument);

    return length > 3 && !strcmp(argument + length - 3, ".db");
}

void found_json(struct json *json, const struct found_code *found)
{
    json_object(json, "function");
    json_string(json, "qualname", found->qualname);
    json_string(json, "filename", found->filename);
    json_integer(json, "first_line", found->first_line);
    json_string(json, "kind", found->kind);
    json_list(json, "code_ids");
    json_raw(json, NULL, found->ids, strlen(found->ids));
    json_end(json);
    json_integer(json, "code_objects", found->code_objects);
    json_end(json);
}

bool find_operands(const char *command, int count, char **given, const char **name, const char **path)
{
    if (count == 0 || !*given[0]) {
        say_error("%s: needs the name of a function; `dyntrace %s --help` tells more", command, command);
        return false;
    }
    if (count == 2 && is_trace_name(given[0]) && !is_trace_name(given[1])) { /* the order of the other commands */
        *name = given[1];
        *path = given[0];
    } else {
        *name = given[0];
        *path = given[1];
    }
    return true;
}

struct db *find_open(const char *path)
{
    struct db *db = db_open(path);

    if (db)
        db_run(db, "BEGIN");
    return db;
}

int find_status(struct db *db, enum find_result result, bool failed)
{
    return failed || db_damaged(db) || result > FIND_SEVERAL ? 2 : result == FIND_SEVERAL;
}
