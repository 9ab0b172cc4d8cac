/* trace/why/fields.c -- reads and prints the facts of trace/why/why.h, member by member.
 *
 * The members are filled in from rows, passed to templates, and written as JSON. */
#include <math.h>

#include "lib/json.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/why/why.h"

#undef LIST_FIELDS
#define LIST_FIELDS(member, type, fields, key) FIELDS(member##_fields, fields)
WHY_LISTS(LIST_FIELDS)
FIELDS(parent_fields, PARENT_FIELDS)
FIELDS(torch_fields, TORCH_FIELDS)
FIELDS(torches_fields, TORCHES_FIELDS)
FIELDS(single_fields, WHY_FIELDS)
FIELDS(sum_fields, SUM_FIELDS)

/* ---- reading members from rows ------------------------------------------- */

/* Is a member of this kind an int64_t? */
static bool is_number(enum field_kind kind)
{
    switch (kind) {
    case TRUTH:
    case TEXT:
    case JSON:
    case PARENT:
        return false;
    default:
        return true;
    }
}

/* Return the value of a member of the kind KIND whose column is NULL in the trace. */
static int64_t value_of_null_member(enum field_kind kind)
{
    switch (kind) {
    case MAYBE:
        return UNKNOWN;
    case PLACE:
        return -1;
    default:
        return 0;
    }
}

static const char *read_text(struct why *why, struct query *query, int column)
{
    return arena_print(&why->arena, "%s", query_text(query, column, NULL));
}

static void read_field(struct why *why, struct query *query, int column, const struct field *field,
                       void *to)
{
    bool null = query_type(query, column) == QUERY_NULL;

    if (field->kind == TEXT || field->kind == JSON)
        *(const char **)to = null ? NULL : read_text(why, query, column);
    else if (field->kind == TRUTH)
        *(bool *)to = query_integer(query, column);
    else if (null)
        *(int64_t *)to = value_of_null_member(field->kind);
    else
        *(int64_t *)to = query_integer(query, column);
}

void why_read_row(struct why *why, struct query *query, const struct field *fields, void *item)
{
    for (int column = 0; column < query_columns(query); column++)
        for (const struct field *field = fields; field->name; field++)
            if (!strcmp(field->name, query_name(query, column)))
                read_field(why, query, column, field, (char *)item + field->offset);
}

/* ---- passing members to templates ---------------------------------------- */

static void add_field_as_fact(struct row_facts *facts, const struct field *field, const void *at)
{
    const char *name = field->name;

    switch (field->kind) {
    case INTEGER:
    case MAYBE:
        fact_integer(facts, name, *(const int64_t *)at);
        break;
    case ID:
        fact_integer(facts, name, *(const int64_t *)at ? *(const int64_t *)at : UNKNOWN);
        break;
    case PLACE:
        fact_integer(facts, name, *(const int64_t *)at < 0 ? UNKNOWN : *(const int64_t *)at);
        break;
    case TRUTH:
        fact_bool(facts, name, *(const bool *)at);
        break;
    case OUTCOME:
        fact_text(facts, name, outcome_to_word(*(const int64_t *)at));
        break;
    case TEXT:
    case JSON:
        fact_text(facts, name, *(const char *const *)at);
        break;
    case PARENT:
        break;
    }
}

void why_add_facts(struct row_facts *facts, const struct field *fields, const void *item)
{
    for (const struct field *field = fields; field->name; field++)
        add_field_as_fact(facts, field, (const char *)item + field->offset);
}

/* ---- writing members as JSON --------------------------------------------- */

/* Write the recompile AT to JSON as the object NAME. If no recompile is known, write null. */
static void write_parent_as_json(struct json *json, const char *name, const struct parent *at);

/* Write the members of ITEM that FIELDS lists to JSON. */
static void write_fields_as_json(struct json *json, const struct field *fields, const void *item)
{
    for (const struct field *field = fields; field->name; field++) {
        const void *at = (const char *)item + field->offset;
        const char *text;
        int64_t number = is_number(field->kind) ? *(const int64_t *)at : 0;
        switch (field->kind) {
        case INTEGER:
            json_integer(json, field->name, number);
            break;
        case ID:
            json_integer_or_null(json, field->name, number, number);
            break;
        case MAYBE:
            json_integer_or_null(json, field->name, number != UNKNOWN, number);
            break;
        case PLACE:
            json_integer_or_null(json, field->name, number >= 0, number);
            break;
        case TEXT:
            json_string(json, field->name, *(const char *const *)at);
            break;
        case TRUTH:
            json_bool(json, field->name, *(const bool *)at);
            break;
        case OUTCOME:
            json_string(json, field->name, outcome_to_word(number));
            break;
        case JSON:
            text = *(const char *const *)at;
            json_raw(json, field->name, text, strlen(text));
            break;
        case PARENT:
            write_parent_as_json(json, field->name, at);
            break;
        }
    }
}

static void write_parent_as_json(struct json *json, const char *name, const struct parent *at)
{
    if (!at->compile_id) {
        json_null(json, name);
        return;
    }
    json_object(json, name);
    write_fields_as_json(json, parent_fields, at);
    json_end(json);
}

static void write_list_as_json(const struct why *why, struct json *json, const char *key,
                               const struct field *fields, const void *at, size_t count,
                               size_t size)
{
    if (fields == asked_fields && !why->with_sql)
        return;
    json_list(json, key);
    json_begin_lines(json);
    for (size_t i = 0; i < count; i++) {
        json_object(json, NULL);
        write_fields_as_json(json, fields, (const char *)at + i * size);
        json_end(json);
    }
    json_end(json);
}

void why_write_as_json(struct why *why, FILE *out)
{
    struct json *json = &(struct json){.out = out};

    json_object(json, NULL);
    json_begin_lines(json);
    json_string(json, "file", db_get_path(why->db));
    doubts_write_settings_as_json(why->db, json);
    found_write_as_json(json, &why->code);
    json_integer_or_null(json, "call_count", why->all_calls != UNKNOWN, why->all_calls);
    json_integer_or_null(json, "total_ns", why->total_ns != UNKNOWN, why->total_ns);
    json_integer_or_null(json, "self_ns", why->self_ns != UNKNOWN, why->self_ns);
    json_integer_or_null(json, "raised", why->raised != UNKNOWN, why->raised);
    if (why->is_plain)
        profile_write_as_json(&why->profile, json, "durations");
    json_object(json, "shares"); /* the sums from which `check --function` computes shares, too */
    json_integer(json, "calls", why->shared.asked);
    json_integer(json, "hits", why->shared.hits);
    json_integer(json, "misses", why->shared.missed);
    json_integer(json, "ran_as_python", why->shared.python);
    json_end(json);
    json_integer(json, "calls_not_told_apart", why->undecided);
    json_integer(json, "recompiles", why->recompiles);
    json_bool(json, "losses", why->missing);
    if (why->torch.number) {
        json_object(json, "torch");
        write_fields_as_json(json, torch_fields, &why->torch);
        json_end(json);
    } else {
        json_null(json, "torch");
    }
#define LIST_PUT(member, type, fields, key)                                                \
    write_list_as_json(why, json, key, member##_fields, why->member.at, why->member.count, \
                       sizeof *why->member.at);
    WHY_LISTS(LIST_PUT)
    json_object(json, "guards");
    json_integer(json, "checks", why->checks);
    json_integer(json, "check_ns", why->check_ns);
    json_integer(json, "calls", why->guard_calls);
    json_integer(json, "ns", why->guard_ns);
    json_real(json, "share_percent", why_share_of_guards(why) < 0 ? NAN : why_share_of_guards(why),
              3);
    json_bool(json, "slow", why->guards_slow);
    json_end(json);
    json_string(json, "disabled", why->disabled_words);
    json_end(json);
    putc('\n', out);
}
