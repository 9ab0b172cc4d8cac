/* trace/find_code.c -- from what a user types to a function of a trace.
 *
 * Runs in: the viewer. See trace/find_code.h. */
#include "trace/find_code.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"

enum {
    LISTED = 40,       /* functions in a list of several */
    NEAREST = 5,       /* names suggested */
    NAME_MOST = 96,    /* bytes of a name that are compared */
    IDS_MOST = 1 << 14 /* bytes of a list of ids */
};

/* ---- one, several ---------------------------------------------------------- */

/* The current row of find/functions. Whole texts: ids are SQL, and JSON holds names whole. */
static struct found_code found_read(struct query *query, const char *name)
{
    struct found_code found = {
        .filename = strdup(query_whole(query, 0, NULL)),
        .qualname = strdup(query_whole(query, 1, NULL)),
        .first_line = query_integer(query, 2),
        .kind = strdup(query_text(query, 3, NULL)),
        .ids = strdup(query_whole(query, 4, NULL)),
        .code_objects = query_integer(query, 5),
        .processes = query_integer(query, 6),
        .calls = query_type(query, 7) == QUERY_NULL ? -1 : query_integer(query, 7),
        .compiles = query_integer(query, 8),
        .entries = query_integer(query, 9),
        .label = query_integer(query, 10) ? strdup(name) : NULL,
    };

    if (strlen(found.ids) > IDS_MOST) {
        found.ids[IDS_MOST] = 0;
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

void find_bind(struct query *query, int parameter, const struct found_code *found)
{
    char *array = say_print("[%s]", found->ids);

    query_bind_text(query, parameter, array);
    free(array);
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

static void list_row(struct table *table, const struct found_code *found)
{
    char *where = say_print("%s:%" PRId64, found->filename, found->first_line);

    if (found->calls >= 0)
        table_integer(table, found->calls);
    else
        table_null(table);
    table_integer(table, found->compiles);
    table_integer(table, found->entries);
    table_string(table, found->qualname);
    table_string(table, found->kind);
    table_string(table, where);
    free(where);
}

/* FIRST, the current row of QUERY, and those that follow. */
static void list_print(struct query *query, const struct found_code *first, const char *name, FILE *out, bool json)
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
        prose_print(out, "%.200s is several functions; name one by its qualified name, or by FILE:LINE\n\n", name);
    }
    table = table_open(out, table_format(out, json), 6,
                       (const char *[]){"calls", "compiles", "entries", "function", "kind", "where"});
    list_row(table, first);
    do {
        struct found_code found = found_read(query, name);
        if (count++ < LISTED)
            list_row(table, &found);
        found_code_free(&found);
    } while (query_step(query));
    table_close(table);
    if (json) {
        json_integer(&j, "match_count", count);
        json_end(&j);
        putc('\n', out);
    } else if (count > LISTED) {
        fprintf(out, "(%d of %" PRId64 ")\n", LISTED, count);
    }
}

/* ---- none: the nearest names ----------------------------------------------- */

/* Edits that make A from B, letter case counted half; names are cut to NAME_MOST. */
static int distance_of(const char *a, const char *b)
{
    int row[NAME_MOST + 1];
    int la = (int)strnlen(a, NAME_MOST), lb = (int)strnlen(b, NAME_MOST);

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

struct near {
    char *name; /* owned */
    int distance;
};

/* NAME, which is not among NEAREST, to where its distance puts it. */
static void near_add(struct near nearest[NEAREST], const char *name, int distance)
{
    int at = NEAREST;

    while (at > 0 && (!nearest[at - 1].name || nearest[at - 1].distance > distance))
        at--;
    if (at == NEAREST)
        return;
    free(nearest[NEAREST - 1].name);
    memmove(&nearest[at + 1], &nearest[at], (size_t)(NEAREST - 1 - at) * sizeof *nearest);
    nearest[at] = (struct near){strdup(name), distance};
}

/* "; nearest: f, g", which the caller frees. */
static char *nearest_list(struct db *db, const char *name)
{
    struct query *query = db_query(db, schema_statement("find/names"));
    struct near nearest[NEAREST] = {{0}};
    int worst = (int)strnlen(name, NAME_MOST); /* half of its letters are others */
    char *list = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&list, &room);

    while (query_step(query)) {
        const char *qualname = query_text(query, 0, NULL), *last = strrchr(qualname, '.');
        int whole = distance_of(name, qualname), part = last ? distance_of(name, last + 1) + 1 : whole;
        if (whole > part)
            whole = part;
        if (whole <= worst)
            near_add(nearest, qualname, whole);
    }
    query_close(query);
    for (int i = 0; i < NEAREST && nearest[i].name; i++) {
        fprintf(out, "%s%s", i ? ", " : "; nearest: ", nearest[i].name);
        free(nearest[i].name);
    }
    fclose(out);
    return list;
}

/* Say that NAME is not there, and where it is instead, or what comes nearest to it. */
static void none_say(struct db *db, const char *name)
{
    const char *last = strrchr(name, '.') ? strrchr(name, '.') + 1 : name;
    struct query *query = db_query(db, schema_statement("find/taker"));
    char *list;

    query_bind_text(query, 1, last);
    if (*last && query_step(query)) {
        say_error("%.200s: no call of it is in %s: torch has taken it into the code of %.200s, see there", name,
                  db_path(db), query_text(query, 0, NULL));
    } else {
        list = nearest_list(db, name);
        if (!db_failed(db)) /* which was said: it may be there */
            say_error("%.200s: no such function in %s%s", name, db_path(db),
                      *list                 ? list
                      : strrchr(name, ':') ? "; FILE:LINE names one by its line"
                                            : "");
        free(list);
    }
    query_close(query);
}

enum find_result find_code(struct db *db, const char *name, struct found_code *found, FILE *out, bool json)
{
    struct query *query = db_query(db, schema_statement("find/functions"));
    enum find_result result = FIND_NONE;

    *found = (struct found_code){0};
    query_bind_text(query, 1, name);
    if (query_step(query)) {
        result = FIND_ONE;
        *found = found_read(query, name);
        if (query_step(query)) {
            result = FIND_SEVERAL;
            list_print(query, found, name, out, json);
            found_code_free(found);
        }
    } else if (!db_failed(db)) {
        none_say(db, name);
    }
    query_close(query);
    return result;
}

/* ---- the command line -------------------------------------------------------- */

static bool is_trace_name(const char *argument)
{
    size_t length = strlen(argument);

    return length > 3 && !strcmp(argument + length - 3, ".db");
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

int find_status(struct db *db, enum find_result result)
{
    return db_failed(db) || result == FIND_NONE ? 2 : result == FIND_SEVERAL;
}
