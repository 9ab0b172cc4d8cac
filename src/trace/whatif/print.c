/* trace/whatif/print.c -- `dyntrace replay --what-if`: what was recorded beside what is predicted. See trace/whatif/print.h.
 *
 * Runs in: the viewer. */
#include "trace/whatif/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/find_code.h"
#include "lib/json.h"
#include "trace/prose.h"
#include "replay.h"
#include "lib/say.h"
#include "lib/table.h"
#include "trace/whatif/whatif.h"
#include "trace/why/why.h"

enum { WIDTH = 70, LISTED = 20, NOTE_COLUMNS = 108 };

struct printer {
    struct db *db; /* borrowed, as all of it */
    const struct replay *r;
    const struct replay_whatif *asked;
    const struct whatif_knobs *knobs;
    const struct whatif_result *result;
    const bool *codes; /* told; NULL: all */
    int tried;         /* of `best`; -1: it was not asked */
    FILE *out;
};

static const char *outcome_name(unsigned outcome)
{
    return outcome == WHATIF_GONE ? "gone" : outcome_word(outcome);
}

/* A code object's name and place, which the caller frees. */
static bool code_named(struct printer *p, uint32_t code, char **qualname, char **filename, int64_t *line)
{
    struct query *query = db_query(p->db, "SELECT qualname, filename, first_line FROM code WHERE code_id = ?1");

    *qualname = *filename = NULL;
    *line = 0;
    query_bind_integer(query, 1, p->r->codes.at[code].id);
    if (query_step(query)) {
        *qualname = prose_column(query, 0);
        *filename = prose_column(query, 1);
        *line = query_integer(query, 2);
    }
    return query_close(query);
}

static bool told(const struct printer *p, const struct whatif_function *f)
{
    return !p->codes || p->codes[f->code];
}

static bool differs(const struct whatif_function *f)
{
    return f->changed || f->gone || f->undecided || f->unrecorded ||
           memcmp(&f->recorded, &f->predicted, sizeof f->recorded);
}

/* ---- text ------------------------------------------------------------------ */

/* Guards took time; none was measured where a compiler ran on its own. */
static bool checks_timed(const struct whatif_tally *t)
{
    return t->check_ns || !t->checks;
}

static void tally_print(struct printer *p, const char *what, const struct whatif_tally *t)
{
    char guards[TABLE_HUMAN], compiles[TABLE_HUMAN];

    fprintf(p->out,
            "    %-10s %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 "  %-10s %s\n", what,
            t->calls, t->hits, t->misses, t->compiles, t->eager, t->checks,
            checks_timed(t) ? table_duration(guards, t->check_ns) : "-", table_duration(compiles, t->compile_ns));
}

static void function_print(struct printer *p, const struct whatif_function *f)
{
    if (p->asked->recorded)
        p->asked->recorded(p->asked->context, f == &p->result->total ? -1 : p->r->codes.at[f->code].id);
    tally_print(p, "recorded", &f->recorded);
    tally_print(p, "predicted", &f->predicted);
    if (f->gone)
        fprintf(p->out,
                "    %" PRId64
                " of its calls would not be looked up: the caller's code takes them in, or does not make them\n",
                f->gone);
    if (f->undecided)
        fprintf(p->out, "    %" PRId64 " undecided: the trace does not tell; a guess is counted\n", f->undecided);
    if (f->trusting)
        fprintf(p->out, "    %" PRId64 " would run code of which the recording has no compile\n", f->trusting);
    if (f->unrecorded)
        fprintf(p->out, "    at least %" PRId64 " more calls would be looked up, of which the trace has nothing\n",
                f->unrecorded);
}

/* Our own words, in lines of a readable length. */
static void note_print(FILE *out, const char *text)
{
    size_t column = 0;

    fputs("  *", out);
    for (const char *at = text; *at;) {
        size_t bytes = strcspn(at, " ");
        if (column && column + bytes + 1 > NOTE_COLUMNS) {
            fputs("\n   ", out);
            column = 0;
        }
        fprintf(out, " %.*s", (int)bytes, at);
        column += bytes + 1;
        at += bytes + (at[bytes] == ' ');
    }
    putc('\n', out);
}

static void text_print(struct printer *p)
{
    const struct whatif_result *r = p->result;
    char *knobs = whatif_knobs_text(p->knobs);
    size_t listed = 0, same = 0;

    if (p->tried >= 0 && knobs && !*knobs)
        fprintf(p->out, "Of %d settings tried none has fewer recompiles or fewer calls that run as Python.\n",
                p->tried);
    else if (p->tried >= 0) {
        fputs("Best of ", p->out);
        fprintf(p->out, "%d settings tried: ", p->tried);
        prose_text(p->out, knobs, WIDTH * 4);
        putc('\n', p->out);
    } else {
        fputs("What if ", p->out);
        prose_text(p->out, knobs && *knobs ? knobs : "nothing were changed", WIDTH * 4);
        fputs("? The recorded calls decided again; the program is not run again.\n", p->out);
    }
    free(knobs);
    if (!r->total.recorded.calls) {
        fputs("No lookups are recorded.\n", p->out);
        return;
    }
    fprintf(p->out, "\n    %-10s %9s %9s %9s %9s %9s %9s  %-10s %s\n", "", "calls", "hits", "misses", "compiles",
            "eager", "checks", "guard time", "compile time");
    for (size_t i = 0; i < r->function_count; i++) {
        const struct whatif_function *f = &r->functions[i];
        char *qualname, *filename;
        int64_t line;
        if (!told(p, f) || (!differs(f) && !p->codes)) {
            same++;
            continue;
        }
        if (++listed > LISTED)
            continue;
        code_named(p, f->code, &qualname, &filename, &line);
        prose_text(p->out, qualname, WIDTH);
        fputs("  ", p->out);
        prose_text(p->out, prose_path(filename ? filename : "?"), WIDTH);
        fprintf(p->out, ":%" PRId64 "\n", line);
        free(qualname);
        free(filename);
        function_print(p, f);
    }
    if (listed > LISTED)
        fprintf(p->out, "(%d of %zu functions; --json has all)\n", LISTED, listed);
    if (!p->codes) {
        fprintf(p->out, "all%s\n", same ? ", also those that stay as they are" : "");
        function_print(p, &r->total);
    }
    if (r->total.changed + r->total.gone == 0 && !r->total.undecided)
        fputs("\nNo call would come out differently.\n", p->out);
    if (r->note_count) {
        fputs("\nTaken for granted:\n", p->out);
        for (size_t i = 0; i < r->note_count; i++)
            note_print(p->out, r->notes[i]);
    }
}

/* ---- for programs ---------------------------------------------------------- */

static void tally_json(struct json *json, const char *key, const struct whatif_tally *t)
{
    json_object(json, key);
    json_integer(json, "calls", t->calls);
    json_integer(json, "hits", t->hits);
    json_integer(json, "misses", t->misses);
    json_integer(json, "compiles", t->compiles);
    json_integer(json, "eager", t->eager);
    json_integer(json, "checks", t->checks);
    json_maybe(json, "check_ns", checks_timed(t), t->check_ns);
    json_integer(json, "compile_ns", t->compile_ns);
    json_end(json);
}

static void function_json(struct json *json, const struct whatif_function *f)
{
    tally_json(json, "recorded", &f->recorded);
    tally_json(json, "predicted", &f->predicted);
    json_integer(json, "changed", f->changed);
    json_integer(json, "gone", f->gone);
    json_integer(json, "undecided", f->undecided);
    json_integer(json, "trusting", f->trusting);
    json_integer(json, "unrecorded", f->unrecorded);
}

static void json_print(struct printer *p)
{
    const struct whatif_result *r = p->result;
    char *knobs = whatif_knobs_text(p->knobs);
    struct json json = {.out = p->out};

    json_object(&json, NULL);
    json_string(&json, "settings", knobs);
    free(knobs);
    if (p->tried >= 0)
        json_integer(&json, "tried", p->tried);
    function_json(&json, &r->total);
    json_list(&json, "assumptions");
    for (size_t i = 0; i < r->note_count; i++)
        json_string(&json, NULL, r->notes[i]);
    json_end(&json);
    json_list(&json, "functions");
    json_lines(&json);
    for (size_t i = 0; i < r->function_count; i++) {
        const struct whatif_function *f = &r->functions[i];
        char *qualname, *filename;
        int64_t line;
        if (!told(p, f))
            continue;
        code_named(p, f->code, &qualname, &filename, &line);
        json_object(&json, NULL);
        json_integer(&json, "code_id", p->r->codes.at[f->code].id);
        json_string(&json, "qualname", qualname);
        json_string(&json, "filename", filename);
        json_integer(&json, "first_line", line);
        function_json(&json, f);
        json_end(&json);
        free(qualname);
        free(filename);
    }
    json_end(&json);
    json_end(&json);
    putc('\n', p->out);
}

/* A row for each call, by time. */
static bool calls_print(struct printer *p, bool json)
{
    struct table *table =
        table_open(p->out, table_format(p->out, json), 6,
                   (const char *[]){"lookup_id", "at_ns", "function", "recorded", "predicted", "undecided"});
    char **names = calloc(p->r->codes.count + 1, sizeof *names);

    for (size_t i = 0; table && names && i < p->r->lookups.count; i++) {
        uint32_t lookup = p->r->order[i];
        const struct replay_lookup *l = &p->r->lookups.at[lookup];
        uint32_t code = p->r->caches.at[l->cache].code;
        uint8_t predicted = p->result->outcomes[lookup];
        if (p->codes && !p->codes[code])
            continue;
        if (!names[code]) {
            char *filename;
            int64_t line;
            code_named(p, code, &names[code], &filename, &line);
            free(filename);
            if (!names[code])
                names[code] = strdup("?");
        }
        table_integer(table, l->id);
        table_integer(table, l->start_ns);
        table_string(table, names[code]);
        table_string(table, outcome_name(l->outcome));
        table_string(table, outcome_name(predicted & WHATIF_OUTCOME));
        table_integer(table, predicted & WHATIF_UNDECIDED ? 1 : 0);
    }
    for (size_t i = 0; names && i < p->r->codes.count; i++)
        free(names[i]);
    free(names);
    return table && table_close(table);
}

/* ---- the command ----------------------------------------------------------- */

/* The codes of FUNCTION, marked in a new array in *CODES. -1: to go on, else the exit status. */
static int codes_of(struct db *db, const struct replay *r, const char *function, bool json, bool **codes)
{
    struct found_code found;

    if (!function)
        return -1;
    if (find_code(db, function, &found, stdout, json) != FIND_ONE)
        return 2;
    *codes = calloc(r->codes.count + 1, sizeof **codes);
    for (char *at = found.ids; *codes && at && *at; at += strspn(at, ", ")) {
        uint32_t code = replay_index(&r->code_ids, strtoll(at, &at, 10));
        if (code != REPLAY_NONE)
            (*codes)[code] = true;
    }
    found_code_free(&found);
    return *codes ? -1 : 2;
}

int replay_whatif(struct db *db, struct replay *replay, const struct replay_whatif *asked)
{
    struct whatif_knobs knobs = {0};
    struct whatif_result result = {0};
    struct printer p = {.db = db, .r = replay, .asked = asked, .knobs = &knobs, .result = &result, .tried = -1, .out = asked->out ? asked->out : stdout};
    bool *codes = NULL, best = asked->count == 1 && !strcmp(asked->settings[0], "best"), ok = true;
    struct whatif *w = NULL;
    int status;

    for (int i = 0; i < asked->count && ok && !best; i++)
        if (!strcmp(asked->settings[i], "best")) {
            say_error("what-if: best stands alone: it looks for the settings");
            ok = false;
        } else {
            ok = whatif_knob(&knobs, asked->settings[i]);
        }
    ok = ok && whatif_knobs_known(&knobs, db);
    status = ok ? codes_of(db, replay, asked->function, asked->json, &codes) : 2;
    if (status >= 0)
        goto out;
    status = 2;
    p.codes = knobs.codes = codes;
    w = whatif_open(db, replay);
    if (!w)
        goto out;
    if (!(best ? whatif_best(w, db, &knobs, &result, &p.tried) : whatif_run(w, &knobs, &result)))
        goto out;
    status = 0;
    if (asked->calls)
        status = calls_print(&p, asked->json) ? 0 : 2;
    else if (asked->json)
        json_print(&p);
    else
        text_print(&p);
out:
    whatif_result_free(&result);
    whatif_knobs_free(&knobs);
    whatif_free(w);
    free(codes);
    return status;
}
