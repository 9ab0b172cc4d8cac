/* trace/function_ids.c -- which code objects are one function. See trace/function_ids.h. */
#include "trace/function_ids.h"

#include <sqlite3.h>

#include "lib/say.h"
#include "trace/prose.h"

enum {
    CODE_ID,
    FILENAME,
    QUALNAME,
    FIRST_LINE,
};

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash * 31 + !text;
}

static const char *keep_text(struct arena *arena, const char *text)
{
    return text ? arena_text(arena, text, strlen(text)) : NULL;
}

static void add_code(struct function_ids *ids, sqlite3_stmt *row)
{
    struct function_id code = {
        .filename = (const char *)sqlite3_column_text(row, FILENAME),
        .qualname = (const char *)sqlite3_column_text(row, QUALNAME),
        .first_line = sqlite3_column_int64(row, FIRST_LINE),
        .is_lined = sqlite3_column_type(row, FIRST_LINE) != SQLITE_NULL,
        .function_id = sqlite3_column_int64(row, CODE_ID),
    };
    uint64_t hash = hash_text(hash_text((uint64_t)code.first_line, code.qualname), code.filename);
    int64_t *place = map_put(&ids->hashes, (int64_t)hash);
    size_t at = (size_t)*place;

    while (at) {
        const struct function_id *other = &ids->functions.at[at - 1];
        bool is_named_so = prose_are_texts_equal(other->qualname, code.qualname) &&
                           prose_are_texts_equal(other->filename, code.filename);
        bool is_there = other->first_line == code.first_line && other->is_lined == code.is_lined;
        if (is_named_so && is_there)
            break;
        at = other->before;
    }
    if (at) {
        *map_put(&ids->codes, code.function_id) = ids->functions.at[at - 1].function_id;
        return;
    }
    *map_put(&ids->codes, code.function_id) = code.function_id;
    code.filename = keep_text(&ids->texts, code.filename);
    code.qualname = keep_text(&ids->texts, code.qualname);
    code.before = (size_t)*place;
    *list_add(&ids->functions) = code;
    *place = (int64_t)ids->functions.count;
}

/* Read the code objects that were added since the last call. Returns 0 or an SQLite error. */
static int read_new_codes(struct function_ids *ids, sqlite3 *handle)
{
    static const char sql[] = "SELECT code_id, filename, qualname, first_line FROM code "
                              "WHERE code_id > ?1 OR ?1 = 0 ORDER BY code_id";
    sqlite3_stmt *row = NULL;
    int status = sqlite3_prepare_v2(handle, sql, -1, &row, NULL);

    if (status == SQLITE_OK)
        sqlite3_bind_int64(row, 1, ids->last);
    while (status == SQLITE_OK && (status = sqlite3_step(row)) == SQLITE_ROW) {
        add_code(ids, row);
        ids->last = sqlite3_column_int64(row, CODE_ID);
        status = SQLITE_OK;
    }
    sqlite3_finalize(row);
    return status == SQLITE_DONE ? SQLITE_OK : status;
}

/* Does the trace have the code object CODE_ID? */
static bool does_code_exist(sqlite3 *handle, int64_t code_id)
{
    sqlite3_stmt *row = NULL;
    bool exists = false;

    if (sqlite3_prepare_v2(handle, "SELECT 1 FROM code WHERE code_id = ?1", -1, &row, NULL) ==
        SQLITE_OK) {
        sqlite3_bind_int64(row, 1, code_id);
        exists = sqlite3_step(row) == SQLITE_ROW;
    }
    sqlite3_finalize(row);
    return exists;
}

int function_ids_find(struct function_ids *ids, sqlite3 *handle, int64_t code_id, int64_t *found)
{
    const int64_t *known = map_get(&ids->codes, code_id);
    int status = SQLITE_OK;

    if (!known)
        status = read_new_codes(ids, handle);
    if (!known)
        known = map_get(&ids->codes, code_id);
    /* During a recording, a row may be stored after rows with greater ids. So read
     * all rows again. */
    if (!known && status == SQLITE_OK && does_code_exist(handle, code_id)) {
        function_ids_free(ids);
        status = read_new_codes(ids, handle);
        known = map_get(&ids->codes, code_id);
    }
    *found = known ? *known : 0;
    return status;
}

void function_ids_free(struct function_ids *ids)
{
    map_free(&ids->codes);
    map_free(&ids->hashes);
    list_free(&ids->functions);
    arena_free(&ids->texts);
    ids->last = 0;
}
