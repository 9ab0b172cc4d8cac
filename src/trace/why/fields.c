/* trace/why/fields.c -- the facts of trace/why/why.h member by member: read from rows, and written as JSON.
 *
 * Runs in: the viewer. */
#include <math.h>
#include <string.h>

#include "lib/json.h"
#include "trace/db.h"
#include "trace/why/why.h"

#define FIELDS(name, LIST) const struct field name[] = {LIST(FIELD) {0}}

static FIELDS(call_fields, CALL_FIELDS);
static FIELDS(history_fields, HISTORY_FIELDS);
static FIELDS(phase_fields, PHASE_FIELDS);
static FIELDS(remedy_fields, REMEDY_FIELDS);
static FIELDS(cost_fields, COST_FIELDS);
static FIELDS(ask_fields, ASK_FIELDS);
FIELDS(entry_fields, ENTRY_FIELDS);
FIELDS(parent_fields, PARENT_FIELDS);
FIELDS(compile_fields, COMPILE_FIELDS);
FIELDS(guard_fields, GUARD_FIELDS);
FIELDS(break_fields, BREAK_FIELDS);
FIELDS(mark_fields, MARK_FIELDS);
FIELDS(rank_fields, RANK_FIELDS);
FIELDS(input_fields, INPUT_FIELDS);
FIELDS(forbidder_fields, FORBIDDER_FIELDS);
FIELDS(torch_fields, TORCH_FIELDS);

const struct field cause_fields[] = {{"compile_id", INTEGER, offsetof(struct cause, compile_id)},
                                     {"cache_entry_id", ID, offsetof(struct cause, entry_id)},
                                     {"older_entry", TEXT, offsetof(struct cause, entry)},
                                     {"guard_id", ID, offsetof(struct cause, guard_id)},
                                     {"kind", TEXT, offsetof(struct cause, kind)},
                                     {"source", TEXT, offsetof(struct cause, source)},
                                     {"aspect", TEXT, offsetof(struct cause, aspect)},
                                     {"dimension", PLACE, offsetof(struct cause, dimension)},
                                     {"expected", TEXT, offsetof(struct cause, expected)},
                                     {"actual", TEXT, offsetof(struct cause, actual)},
                                     {"text", TEXT, offsetof(struct cause, text)},
                                     {"how", HOW, offsetof(struct cause, observed)},
                                     {"decided", TRUTH, offsetof(struct cause, decided)},
                                     {0}};

/* ---- from rows --------------------------------------------------------------- */

static void field_read(struct why *why, struct query *query, int column, const struct field *field, void *to)
{
    int64_t otherwise = field->kind == MAYBE ? UNKNOWN : field->kind == PLACE ? -1 : 0;

    if (field->kind == TEXT)
        *(const char **)to = why_text(why, query, column);
    else if (field->kind == TRUTH || field->kind == HOW)
        *(bool *)to = query_integer(query, column);
    else
        *(int64_t *)to = query_type(query, column) == QUERY_NULL ? otherwise : query_integer(query, column);
}

void why_row(struct why *why, struct query *query, const struct field *fields, void *item)
{
    for (int column = 0; column < query_columns(query); column++)
        for (const struct field *field = fields; field->name; field++)
            if (!strcmp(field->name, query_name(query, column)))
                field_read(why, query, column, field, (char *)item + field->offset);
}

/* ---- as JSON ------------------------------------------------------------------ */

static void field_put(struct json *json, const struct field *field, const void *item);

/* The members that FIELDS name of ITEM. */
static void fields_put(struct json *json, const struct field *fields, const void *item)
{
    for (; fields->name; fields++)
        field_put(json, fields, item);
}

static void field_put(struct json *json, const struct field *field, const void *item)
{
    const void *at = (const char *)item + field->offset;
    const char *text = field->kind == TEXT || field->kind == VALUES ? *(const char *const *)at : NULL;

    switch (field->kind) {
    case INTEGER:
        json_integer(json, field->name, *(const int64_t *)at);
        break;
    case ID:
        json_maybe(json, field->name, *(const int64_t *)at, *(const int64_t *)at);
        break;
    case MAYBE:
        json_maybe(json, field->name, *(const int64_t *)at != UNKNOWN, *(const int64_t *)at);
        break;
    case PLACE:
        json_maybe(json, field->name, *(const int64_t *)at >= 0, *(const int64_t *)at);
        break;
    case TEXT:
        json_string(json, field->name, text);
        break;
    case TRUTH:
        json_bool(json, field->name, *(const bool *)at);
        break;
    case OUTCOME:
        json_string(json, field->name, outcome_word(*(const int64_t *)at));
        break;
    case HOW:
        json_string(json, field->name, *(const bool *)at ? "observed" : "rechecked");
        break;
    case VALUES:
        json_raw(json, field->name, text ? text : "[]", text ? strlen(text) : 2);
        break;
    case PARENT:
        if (!((const struct parent *)at)->compile_id) {
            json_null(json, field->name);
            break;
        }
        json_object(json, field->name);
        fields_put(json, parent_fields, at);
        json_end(json);
    }
}

#define LISTED(name, list, fields) {name, offsetof(struct why, list), sizeof *((struct why *)NULL)->list.at, fields}
static const struct {
    const char *name;
    size_t offset, size;
    const struct field *fields;
} lists[] = {
    LISTED("calls", calls, call_fields),
    LISTED("compiles", compiles, compile_fields),
    LISTED("causes", causes, cause_fields),
    LISTED("histories", histories, history_fields),
    LISTED("entries", entries, entry_fields),
    LISTED("failed_guards", guards, guard_fields),
    LISTED("eager_inputs", inputs, input_fields),
    LISTED("graph_breaks", breaks, break_fields),
    LISTED("phases", phases, phase_fields),
    LISTED("marks", marks, mark_fields),
    LISTED("ranks", ranks, rank_fields),
    LISTED("remedies", remedies, remedy_fields),
    LISTED("sql", asked, ask_fields),
    LISTED("guard_costs", costs, cost_fields),
    LISTED("forbidden_by", forbidders, forbidder_fields),
};

void why_json(struct why *why, FILE *out)
{
    struct json *json = &(struct json){.out = out};

    json_object(json, NULL), json_lines(json);
    json_string(json, "file", db_path(why->db));
    found_json(json, &why->code);
    json_maybe(json, "call_count", why->all_calls != UNKNOWN, why->all_calls);
    json_maybe(json, "total_ns", why->total_ns != UNKNOWN, why->total_ns);
    json_object(json, "shares"); /* as check --function has them */
    json_integer(json, "calls", why->shared.asked);
    json_integer(json, "hits", why->shared.hits);
    json_integer(json, "misses", why->shared.missed);
    json_integer(json, "ran_as_python", why->shared.python);
    json_end(json);
    json_integer(json, "calls_not_told_apart", why->undecided);
    json_integer(json, "recompiles", why_recompiles(why));
    json_bool(json, "losses", why->missing);
    if (why->torch.number) {
        json_object(json, "torch");
        fields_put(json, torch_fields, &why->torch);
        json_end(json);
    } else {
        json_null(json, "torch");
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const LIST(char) *list = (const void *)((const char *)why + lists[i].offset);
        if (lists[i].fields == ask_fields && !why->with_sql)
            continue;
        json_list(json, lists[i].name), json_lines(json);
        for (size_t at = 0; at < list->count; at++) {
            json_object(json, NULL);
            fields_put(json, lists[i].fields, list->at + at * lists[i].size);
            json_end(json);
        }
        json_end(json);
    }
    json_object(json, "guards");
    json_integer(json, "checks", why->checks);
    json_integer(json, "check_ns", why->check_ns);
    json_integer(json, "calls", why->guard_calls);
    json_integer(json, "ns", why->guard_ns);
    json_real(json, "share_percent", why_guard_share(why) < 0 ? NAN : why_guard_share(why), 3);
    json_bool(json, "slow", why->guards_slow);
    json_end(json);
    json_string(json, "disabled", why->disabled_words);
    json_end(json);
    putc('\n', out);
}
