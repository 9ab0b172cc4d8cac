/* cmd/replay/whatif.c -- `dyntrace replay --what-if`: its answer for programs. See cmd/replay/whatif.h.
 *
 * Runs in: the viewer. */
#include "cmd/replay/whatif.h"

#include "replay.h"
#include "trace/db.h"
#include "trace/whatif/whatif.h"
#include "lib/json.h"
#include "lib/table.h"

static void tally_json(struct json *json, const char *key, const struct whatif_tally *t)
{
    json_object(json, key);
    json_integer(json, "calls", t->calls);
    json_integer(json, "hits", t->hits);
    json_integer(json, "misses", t->misses);
    json_integer(json, "compiles", t->compiles);
    json_integer(json, "eager", t->eager);
    json_integer(json, "checks", t->checks);
    json_maybe(json, "check_ns", whatif_checks_timed(t), t->check_ns);
    json_integer(json, "compile_ns", t->compile_ns);
    json_end(json);
}

static void numbers_json(struct json *json, const struct whatif_function *f)
{
    tally_json(json, "recorded", &f->recorded);
    tally_json(json, "predicted", &f->predicted);
    json_integer(json, "changed", f->changed);
    json_integer(json, "gone", f->gone);
    json_integer(json, "undecided", f->undecided);
    json_integer(json, "trusting", f->trusting);
    json_integer(json, "unrecorded", f->unrecorded);
}

static void function_json(struct json *json, const struct whatif_asked *asked, const struct whatif_function *f)
{
    struct query *query = db_query(asked->db, "SELECT qualname, filename, first_line FROM code WHERE code_id = ?1");
    int64_t code_id = asked->replay->codes.at[f->code].id;
    bool known;

    query_bind_integer(query, 1, code_id);
    known = query_step(query);
    json_object(json, NULL);
    json_integer(json, "code_id", code_id);
    json_string(json, "qualname", known && query_type(query, 0) != QUERY_NULL ? query_text(query, 0, NULL) : NULL);
    json_string(json, "filename", known && query_type(query, 1) != QUERY_NULL ? query_text(query, 1, NULL) : NULL);
    json_integer(json, "first_line", known ? query_integer(query, 2) : 0);
    numbers_json(json, f);
    json_end(json);
    query_close(query);
}

static void json_print(const struct whatif_asked *asked, const struct whatif_answer *answer)
{
    const struct whatif_result *r = &answer->result;
    struct json json = {.out = asked->out};

    json_object(&json, NULL);
    json_string(&json, "settings", answer->knobs.text ? answer->knobs.text : "");
    if (answer->tried >= 0)
        json_integer(&json, "tried", answer->tried);
    numbers_json(&json, &r->total);
    json_list(&json, "assumptions");
    for (size_t i = 0; i < r->note_count; i++)
        json_string(&json, NULL, r->notes[i]);
    json_end(&json);
    json_list(&json, "functions");
    json_lines(&json);
    for (size_t i = 0; i < r->functions.count; i++)
        if (!answer->codes || answer->codes[r->functions.at[i].code])
            function_json(&json, asked, &r->functions.at[i]);
    json_end(&json);
    json_end(&json);
    putc('\n', asked->out);
}

/* A row for each call, by time. */
static bool calls_print(const struct whatif_asked *asked, const struct whatif_answer *answer)
{
    const struct replay *r = asked->replay;
    struct table *table =
        table_open(asked->out, table_format(asked->out, asked->json), 6,
                   (const char *[]){"lookup_id", "at_ns", "function", "recorded", "predicted", "undecided"});
    struct query *query = db_query(asked->db, "SELECT code_id, qualname FROM code WHERE qualname IS NOT NULL");
    const char **names = calloc(r->codes.count + 1, sizeof *names);
    struct arena texts = {0};

    while (names && query_step(query)) {
        uint32_t code = replay_index(&r->code_ids, query_integer(query, 0));
        const char *name = query_text(query, 1, NULL);
        if (code != REPLAY_NONE)
            names[code] = arena_text(&texts, name, strlen(name));
    }
    query_close(query);
    for (size_t i = 0; table && names && i < r->lookups.count; i++) {
        const struct replay_lookup *l = &r->lookups.at[r->order[i]];
        uint32_t code = r->caches.at[l->cache].code;
        uint8_t found = answer->result.outcomes[r->order[i]], predicted = found & WHATIF_OUTCOME;
        if (answer->codes && !answer->codes[code])
            continue;
        table_integer(table, l->id);
        table_integer(table, l->start_ns);
        table_string(table, names[code] ? names[code] : "?");
        table_string(table, outcome_word(l->outcome));
        table_string(table, predicted == WHATIF_GONE ? "gone" : outcome_word(predicted));
        table_integer(table, found & WHATIF_UNDECIDED ? 1 : 0);
    }
    free(names);
    arena_free(&texts);
    return table && table_close(table);
}

int replay_whatif(const struct whatif_asked *asked, bool calls)
{
    struct whatif_answer answer;
    bool ok = whatif_ask(asked, &answer);

    if (ok && calls)
        ok = calls_print(asked, &answer);
    else if (ok && asked->json)
        json_print(asked, &answer);
    else if (ok)
        whatif_page(asked, &answer, NULL, NULL);
    whatif_answer_free(&answer);
    return ok ? 0 : 2;
}
