/* trace/why/fields.c -- the facts of trace/why/why.h member by member: read from rows, and written as JSON.
 *
 * Runs in: the viewer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "trace/db.h"
#include "trace/why/why.h"

/* ---- the members ------------------------------------------------------------ */

#define FIELD(type, kind, member) {#member, kind, offsetof(struct type, member), false}
#define HIDDEN(type, kind, member) {#member, kind, offsetof(struct type, member), true}

static const struct field call_fields[] = {
    FIELD(call_class, OUTCOME, outcome), FIELD(call_class, ID, cache_entry_id), FIELD(call_class, TEXT, entry),
    FIELD(call_class, INTEGER, calls), FIELD(call_class, INTEGER, first_ns), FIELD(call_class, INTEGER, last_ns),
    FIELD(call_class, INTEGER, lookup_ns), {0}};
const struct field compile_fields[] = {
    FIELD(compile, INTEGER, compile_id), FIELD(compile, INTEGER, code_id), FIELD(compile, MAYBE, rank),
    FIELD(compile, TEXT, label), FIELD(compile, INTEGER, start_ns), FIELD(compile, MAYBE, end_ns),
    FIELD(compile, TEXT, outcome), FIELD(compile, ID, cache_entry_id), FIELD(compile, TEXT, reason),
    FIELD(compile, MAYBE, sticky), FIELD(compile, TEXT, inputs), FIELD(compile, PARENT, follows_from),
    HIDDEN(compile, TRUTH, recompile), HIDDEN(compile, INTEGER, frame_id), HIDDEN(compile, INTEGER, thread_id), {0}};
const struct field parent_fields[] = {FIELD(parent, ID, compile_id),
                                      FIELD(parent, TEXT, function),
                                      FIELD(parent, TEXT, label),
                                      FIELD(parent, TEXT, source),
                                      FIELD(parent, TEXT, expected),
                                      FIELD(parent, TEXT, actual),
                                      {0}};
const struct field cause_fields[] = {
    FIELD(cause, INTEGER, compile_id), {"cache_entry_id", ID, offsetof(struct cause, entry_id), false},
    {"older_entry", TEXT, offsetof(struct cause, entry), false}, FIELD(cause, TEXT, kind), FIELD(cause, TEXT, source),
    FIELD(cause, TEXT, expected), FIELD(cause, TEXT, actual), FIELD(cause, TEXT, text),
    {"how", HOW, offsetof(struct cause, observed), false}, FIELD(cause, TRUTH, decided), HIDDEN(cause, TRUTH, observed),
    HIDDEN(cause, TEXT, aspect), HIDDEN(cause, INTEGER, dimension), HIDDEN(cause, INTEGER, guard_id), {0}};
static const struct field history_fields[] = {
    FIELD(history, INTEGER, code_id), FIELD(history, TEXT, kind), FIELD(history, TEXT, source),
    FIELD(history, TEXT, aspect), FIELD(history, INTEGER, recompiles), FIELD(history, INTEGER, refused),
    FIELD(history, VALUES, values), {0}};
const struct field entry_fields[] = {
    FIELD(entry, INTEGER, cache_entry_id), FIELD(entry, INTEGER, code_id), FIELD(entry, TEXT, label),
    FIELD(entry, TEXT, backend), FIELD(entry, MAYBE, region_id), FIELD(entry, INTEGER, guards),
    FIELD(entry, INTEGER, born_ns), FIELD(entry, INTEGER, tried), FIELD(entry, INTEGER, hit),
    FIELD(entry, MAYBE, last_hit_ns), FIELD(entry, INTEGER, backend_mismatches), FIELD(entry, MAYBE, died_ns),
    FIELD(entry, TEXT, death_cause), HIDDEN(entry, INTEGER, compile_id), {0}};
const struct field guard_fields[] = {
    FIELD(failed_guard, TEXT, result), FIELD(failed_guard, INTEGER, times), FIELD(failed_guard, TEXT, entry),
    FIELD(failed_guard, TEXT, kind), FIELD(failed_guard, TEXT, source), FIELD(failed_guard, TEXT, expression), {0}};
const struct field input_fields[] = {FIELD(input, INTEGER, calls), FIELD(input, TEXT, inputs), {0}};
const struct field break_fields[] = {
    FIELD(graph_break, INTEGER, line), FIELD(graph_break, INTEGER, times), FIELD(graph_break, TEXT, reason),
    FIELD(graph_break, TEXT, user_stack), FIELD(graph_break, REST, rest), {0}};
const struct field rest_fields[] = {
    FIELD(rest, TEXT, resume_function), HIDDEN(rest, TEXT, filename), HIDDEN(rest, INTEGER, first_line),
    FIELD(rest, MAYBE, rest_calls), FIELD(rest, MAYBE, rest_eager_calls), FIELD(rest, MAYBE, rest_compiles),
    FIELD(rest, MAYBE, rest_entries), FIELD(rest, MAYBE, rest_recompiles), FIELD(rest, MAYBE, rest_compile_ns),
    FIELD(rest, MAYBE, rest_lookup_ns), {0}};
static const struct field phase_fields[] = {
    FIELD(phase, TEXT, name), FIELD(phase, INTEGER, times), FIELD(phase, INTEGER, total_ns),
    FIELD(phase, INTEGER, self_ns), FIELD(phase, TRUTH, late), {0}};
const struct field mark_fields[] = {
    FIELD(mark, INTEGER, at_ns), FIELD(mark, TEXT, action), FIELD(mark, TEXT, recursive_action),
    FIELD(mark, MAYBE, region_id), FIELD(mark, TEXT, reason), {0}};
const struct field rank_fields[] = {FIELD(rank, INTEGER, rank), FIELD(rank, INTEGER, compiles), {0}};
static const struct field remedy_fields[] = {
    FIELD(remedy, TEXT, name), FIELD(remedy, TEXT, text), FIELD(remedy, TEXT, what_if), FIELD(remedy, MAYBE, compiles),
    FIELD(remedy, MAYBE, predicted_compiles), FIELD(remedy, MAYBE, eager), FIELD(remedy, MAYBE, predicted_eager),
    FIELD(remedy, MAYBE, undecided), FIELD(remedy, MAYBE, unrecorded), FIELD(remedy, MAYBE, gone), {0}};
static const struct field ask_fields[] = {FIELD(ask, TEXT, title), FIELD(ask, TEXT, sql), {0}};
static const struct field cost_fields[] = {
    FIELD(guard_cost, TEXT, kind), FIELD(guard_cost, INTEGER, guards), FIELD(guard_cost, INTEGER, estimated_ns), {0}};
const struct field forbidder_fields[] = {
    FIELD(forbidder, TEXT, function), FIELD(forbidder, TEXT, reason), FIELD(forbidder, INTEGER, calls), {0}};
const struct field torch_fields[] = {
    FIELD(torch_facts, TEXT, version), FIELD(torch_facts, TEXT, mode), FIELD(torch_facts, TEXT, note), {0}};
const struct field why_fields[] = {
    FIELD(why, MAYBE, all_calls), FIELD(why, MAYBE, total_ns), FIELD(why, TEXT, disabled_by),
    FIELD(why, INTEGER, disabled_line), FIELD(why, TEXT, disabled_words), {0}};

/* ---- from rows --------------------------------------------------------------- */

const char *why_text(struct why *why, struct query *query, int column)
{
    const char *text;
    size_t bytes;

    if (query_type(query, column) == QUERY_NULL)
        return NULL;
    text = query_text(query, column, &bytes);
    return why_added(why, arena_text(&why->arena, text, strnlen(text, bytes)));
}

const char *why_keep(struct why *why, char *owned)
{
    const char *kept = owned ? arena_text(&why->arena, owned, strlen(owned)) : NULL;

    free(owned);
    return why_added(why, (void *)kept);
}

static void field_read(struct why *why, struct query *query, int column, const struct field *field, char *item)
{
    int64_t integer = query_integer(query, column);
    void *to = item + field->offset;

    if (field->kind == TEXT)
        *(const char **)to = why_text(why, query, column);
    else if (field->kind == MAYBE && query_type(query, column) == QUERY_NULL)
        *(int64_t *)to = UNKNOWN;
    else if (field->kind == TRUTH)
        *(bool *)to = integer;
    else
        *(int64_t *)to = integer;
}

bool why_row(struct why *why, struct query *query, const struct field *fields, void *item)
{
    if (!item || why->failed)
        return false;
    for (int column = 0; column < query_columns(query); column++)
        for (const struct field *field = fields; field->name; field++)
            if (!strcmp(field->name, query_name(query, column)))
                field_read(why, query, column, field, item);
    return !why->failed;
}

/* ---- as JSON ------------------------------------------------------------------ */

static void field_put(struct json *json, const struct field *field, const void *item);

/* The members that FIELDS name of ITEM. */
static void fields_put(struct json *json, const struct field *fields, const void *item)
{
    for (; fields->name; fields++)
        if (!fields->hidden)
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
        break;
    case REST:
        fields_put(json, rest_fields, at);
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
