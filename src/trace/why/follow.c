/* trace/why/follow.c -- draws conclusions from the facts about a function. See trace/why/why.h. */
#include <inttypes.h>

#include "schema.h"
#include "trace/brief.h"
#include "trace/db.h"
#include "trace/torch_words.h"
#include "trace/why/why.h"

const char *cause_name(struct why *why, const struct cause *cause)
{
    char *about = cause_about(cause);
    char *part = cause_part(cause);
    const bool counted =
        prose_same(cause->aspect, "length") && !part && strncmp(about, "len(", 4) != 0;
    const char *name = arena_print(&why->arena, counted ? "len(%s)%s%s" : "%s%s%s", about,
                                   part ? " " : "", part ? part : "");

    free(about);
    free(part);
    return name;
}

/* ---- histories: the values of a guard source that forced recompiles ------ */

void histories_make(struct why *why)
{
    static const struct field fields[] = {FIELD(history, TEXT, text)
                                              FIELD(history, INTEGER, place){0}};
    char *sql = say_print("WITH causes AS MATERIALIZED (\n%s)\n%s", schema_statement("why/causes"),
                          schema_statement("why/histories"));
    struct query *query = db_query(why->db, sql);

    find_bind(query, 1, &why->code);
    while (query_step(query)) {
        struct history *h = list_add(&why->histories);
        why_row(why, query, histories_fields, h);
        why_row(why, query, fields, h);
        h->text = why_keep(why, brief_of(h->text, NULL));
        h->cause = &why->causes.at[h->place];
    }
    query_close(query);
    free(sql);
}

/* ---- did a compile produce code, and if not, why? ------------------------ */

bool compile_made(const struct compile *compile)
{
    if (!compile->outcome || compile->cache_entry_id)
        return true;
    return !strcmp(compile->outcome, "ok") || !strcmp(compile->outcome, "compiled");
}

const char *compile_refusal(const struct why *why, const struct compile *compile)
{
    const char *reason = prose_filled(compile->reason);

    if (!why->torch.number || !reason)
        return reason;
    return strcmp(reason, "first call") && strcmp(reason, "no entry fitted") ? reason : NULL;
}

bool why_turned_away(const struct why *why)
{
    for (size_t i = 0; i < why->compiles.count; i++) {
        const char *outcome = why->compiles.at[i].outcome;
        if (prose_same(outcome, "skipped") || prose_same(outcome, "declined"))
            return true;
    }
    return false;
}

const struct entry *why_other_region(const struct why *why, const struct compile *compile)
{
    const struct entry *made = why_entry(why, compile->cache_entry_id);

    for (size_t i = why->entries.count; made && i-- > 0;) {
        const struct entry *e = &why->entries.at[i];
        bool older = e->cache_entry_id < made->cache_entry_id && e->code_id == made->code_id;
        bool elsewhere = e->region_id != UNKNOWN && e->region_id != made->region_id;
        bool alive = e->died_ns == UNKNOWN || e->died_ns > compile->start_ns;
        if (!older || !elsewhere)
            continue;
        if (alive)
            return e;
    }
    return NULL;
}
