/* trace/why/follow.c -- draws conclusions from the facts about a function. See trace/why/why.h. */
#include <inttypes.h>

#include "schema.h"
#include "trace/brief.h"
#include "trace/db.h"
#include "trace/torch_words.h"
#include "trace/why/why.h"

const char *why_cause_name(struct why *why, const struct cause *cause)
{
    char *about = cause_name_subject(cause);
    char *part = cause_name_part(cause);
    const bool counted =
        prose_are_texts_equal(cause->aspect, "length") && !part && strncmp(about, "len(", 4) != 0;
    const char *name = arena_print(&why->arena, counted ? "len(%s)%s%s" : "%s%s%s", about,
                                   part ? " " : "", part ? part : "");

    free(about);
    free(part);
    return name;
}

/* ---- histories: the values of a guard source that forced recompiles ------ */

/* Do the two histories, which are of different code objects, have the same values? */
static bool is_same_history(const struct history *one, const struct history *other)
{
    if (!prose_are_texts_equal(one->source, other->source))
        return false;
    if (!prose_are_texts_equal(one->kind, other->kind))
        return false;
    if (!prose_are_texts_equal(one->aspect, other->aspect))
        return false;
    return prose_are_texts_equal(one->text, other->text);
}

/* Set the sums over equal histories. The time grows with the square of the number of histories,
 * which is at most 1000. */
static void add_up_equal_histories(struct why *why)
{
    list_each(h, &why->histories) {
        list_each(other, &why->histories) {
            if (!is_same_history(h, other))
                continue;
            h->all_recompiles += other->recompiles;
            h->all_refused += other->refused;
            h->is_repeated |= other < h;
        }
    }
}

/* Compare two histories for sorting: that with more decided compiles comes first. */
static int compare_histories(const void *a, const void *b)
{
    const struct history *x = a;
    const struct history *y = b;
    int order = list_compare_numbers(y->all_recompiles + y->all_refused,
                                     x->all_recompiles + x->all_refused);

    return order ? order : list_compare_numbers(x->place, y->place);
}

void histories_read(struct why *why)
{
    static const struct field fields[] = {FIELD(history, TEXT, text)
                                              FIELD(history, INTEGER, place){0}};
    char *sql = say_print("WITH causes AS MATERIALIZED (\n%s)\n%s", schema_statement("why/causes"),
                          schema_statement("why/histories"));
    struct query *query = db_query(why->db, sql);

    find_bind_ids(query, 1, &why->code);
    while (query_step(query)) {
        struct history *h = list_add(&why->histories);
        why_read_row(why, query, histories_fields, h);
        why_read_row(why, query, fields, h);
        h->text = why_keep_text(why, brief_make_pair_distinct(h->text, NULL));
        h->cause = &why->causes.at[h->place];
    }
    query_close(query);
    free(sql);
    add_up_equal_histories(why);
    list_sort(&why->histories, compare_histories);
}

/* ---- did a compile produce code, and if not, why? ------------------------ */

bool compile_has_code(const struct compile *compile)
{
    if (!compile->outcome || compile->cache_entry_id)
        return true;
    return !strcmp(compile->outcome, "ok") || !strcmp(compile->outcome, "compiled");
}

const char *compile_find_refusal(const struct why *why, const struct compile *compile)
{
    const char *reason = prose_null_if_empty(compile->reason);

    if (!why->torch.number || !reason)
        return reason;
    return strcmp(reason, "first call") && strcmp(reason, "no entry fitted") ? reason : NULL;
}

bool why_was_skipped(const struct why *why)
{
    for (size_t i = 0; i < why->compiles.count; i++) {
        const char *outcome = why->compiles.at[i].outcome;
        if (prose_are_texts_equal(outcome, "skipped") || prose_are_texts_equal(outcome, "declined"))
            return true;
    }
    return false;
}

const struct entry *why_find_other_region(const struct why *why, const struct compile *compile)
{
    const struct entry *made = why_find_entry(why, compile->cache_entry_id);

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
