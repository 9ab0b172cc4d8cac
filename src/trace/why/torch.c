/* trace/why/torch.c -- what is known of how torch compiled a function: versions and modes, breaks and what they cost,
 * phases, marks. Other compilers have graph breaks as well.
 *
 * Runs in: the viewer. See trace/why/why.h.
 *
 * The functions for the rest after a graph break are functions of their own, with calls, compiles and guards. A
 * code object is made for each break of each compile, so what is told of one is summed up over those that agree in
 * name, file and line. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "lib/say.h"
#include "lib/times.h"
#include "trace/torch_words.h"
#include "trace/why/why.h"

enum {
    PHASES_READ = 200000,
    PHASE_NAMES = 500,   /* others are summed up under "..." */
    PHASE_DEPTH = 64,    /* deeper ones are not told from the one that they lie in */
    BREAKS_READ = 10000,
    IDS_BYTES = 1 << 14,
};
static const int64_t PHASE_LONGEST = (int64_t)1 << 45; /* ten hours; more is not believed, so that sums stay numbers */

/* ---- which torch ----------------------------------------------------------- */

static void gather_processes(struct why *why)
{
    struct torch_facts *torch = &why->torch;
    struct query *query = why_ask(why, "the processes that it was seen in: which torch, and how it was watched",
        find_column(why->db, "process", "torch_mode") ?
        "SELECT torch_version, torch_mode, substr(torch_note, 1, 1000), COUNT(*) FROM process\n"
        "WHERE process_id IN (SELECT process_id FROM code WHERE code_id IN ($codes))\n"
        "GROUP BY torch_version, torch_mode, torch_note ORDER BY COUNT(*) DESC LIMIT 100" :
        "SELECT torch_version, NULL AS torch_mode, NULL AS torch_note, COUNT(*) FROM process\n"
        "WHERE process_id IN (SELECT process_id FROM code WHERE code_id IN ($codes))\n"
        "GROUP BY torch_version ORDER BY COUNT(*) DESC LIMIT 100");

    while (query_step(query)) {
        char *text = prose_column(query, 0), *mode = prose_column(query, 1), *note = prose_column(query, 2);
        int version = torch_version(text);
        torch->observed = torch->observed || prose_same(mode, "observe");
        torch->off = torch->off || prose_same(mode, "off");
        if (version) {
            torch->versions += !prose_same(text, torch->text);
            torch->modes += !prose_same(mode, torch->mode);
        }
        if (version && (!torch->version || version < torch->version)) {
            free(torch->text), free(torch->mode), free(torch->note);
            torch->version = version;
            torch->text = text;
            torch->mode = mode;
            torch->note = note;
        } else {
            free(text), free(mode), free(note);
        }
    }
    why_asked(why, query);
}

/* Ranks of a job, which should compile alike: who waits for whom is decided by the slowest. */
static void gather_ranks(struct why *why)
{
    struct query *query;
    struct rank *rank;

    if (!why->compiles.count)
        return;
    query = why_ask(why, "compiles by rank of a distributed job",
        "SELECT p.rank, COUNT(m.cache_entry_id) FROM code c JOIN process p ON p.process_id = c.process_id\n"
        "LEFT JOIN compile m ON m.code_id = c.code_id\n"
        "WHERE c.code_id IN ($codes) AND p.rank IS NOT NULL GROUP BY p.rank ORDER BY p.rank LIMIT 1000");
    while (query_step(query) && (rank = ADD(why, ranks)))
        *rank = (struct rank){query_integer(query, 0), query_integer(query, 1)};
    why_asked(why, query);
}

/* ---- graph breaks ---------------------------------------------------------- */

/* The function made for the rest, or NULL when there are too many. */
static struct rest *rest_of(struct why *why, const char *qualname, const char *filename, int64_t first_line)
{
    struct rest *rest;

    for (size_t i = 0; i < why->rest_count; i++)
        if (why->rests[i].first_line == first_line && !strcmp(why->rests[i].qualname, qualname) &&
            !strcmp(why->rests[i].filename, filename))
            return &why->rests[i];
    if (why->rest_count == WHY_RESTS)
        return NULL;
    rest = &why->rests[why->rest_count];
    *rest = (struct rest){.qualname = strdup(qualname), .filename = strdup(filename), .first_line = first_line};
    if (!rest->qualname || !rest->filename) {
        free(rest->qualname), free(rest->filename);
        why->failed = true;
        return NULL;
    }
    why->rest_count++;
    return rest;
}

static int break_more(const void *a, const void *b)
{
    const struct graph_break *x = a, *y = b;

    if (x->times != y->times)
        return x->times < y->times ? 1 : -1;
    return (x->line > y->line) - (x->line < y->line);
}

static void gather_breaks(struct why *why)
{
    struct query *query;
    struct graph_break *b;

    if (!why->compiles.count)
        return;
    query = why_ask(why, "its graph breaks",
        "SELECT b.line, substr(b.reason, 1, 4000), substr(b.user_stack, 1, 4000), r.qualname, r.filename, r.first_line\n"
        "FROM compile m CROSS JOIN graph_break b ON b.compile_id = m.compile_id\n"
        "LEFT JOIN code r ON r.code_id = b.resume_code_id\n"
        "WHERE m.code_id IN ($codes) ORDER BY b.graph_break_id LIMIT 10000");
    while (query_step(query)) {
        int64_t line = query_integer(query, 0);
        char *reason = prose_column(query, 1), *resume = prose_column(query, 3), *filename = prose_column(query, 4);
        for (b = why->breaks.items; b < why->breaks.items + why->breaks.count; b++)
            if (b->line == line && torch_reason_same(b->reason, reason))
                break;
        if (b == why->breaks.items + why->breaks.count) {
            if (why->breaks.count >= 1000 || !(b = ADD(why, breaks))) {
                free(reason), free(resume), free(filename);
                continue;
            }
            b->line = line;
            b->reason = reason;
            b->stack = prose_column(query, 2);
            reason = NULL;
        }
        b->times++;
        if (!b->resume && resume) { /* an analysis that starts anew has none yet */
            b->rest = filename ? rest_of(why, resume, filename, query_integer(query, 5)) : NULL;
            b->resume = resume;
            resume = NULL;
        }
        free(reason), free(resume), free(filename);
    }
    why_asked(why, query);
    if (why->breaks.count)
        qsort(why->breaks.items, why->breaks.count, sizeof *why->breaks.items, break_more);
}

/* Calls and compiles of the functions for the rest. */
static void gather_rests(struct why *why)
{
    struct query *ids = NULL, *totals = NULL;
    char *sql = NULL, *all = NULL;
    size_t room = 0;
    FILE *out;

    if (!why->rest_count)
        return;
    ids = db_query(why->db, "SELECT group_concat(code_id, ', ') FROM (SELECT code_id FROM code"
                            " WHERE qualname = ?1 AND filename = ?2 AND first_line = ?3 AND kind IS NOT 'compiled' LIMIT 1000)");
    for (size_t i = 0; i < why->rest_count; i++) {
        struct rest *rest = &why->rests[i];
        query_bind_text(ids, 1, rest->qualname);
        query_bind_text(ids, 2, rest->filename);
        query_bind_integer(ids, 3, rest->first_line);
        if (query_step(ids))
            rest->ids = prose_column(ids, 0);
        query_reset(ids);
        if (rest->ids && strlen(rest->ids) > IDS_BYTES) {
            rest->ids[IDS_BYTES] = 0;
            *strrchr(rest->ids, ',') = 0;
        }
        if (!rest->ids)
            continue;
        if (asprintf(&sql, "SELECT (SELECT SUM(calls) FROM code_total WHERE code_id IN (%s)), COUNT(*), COUNT(cache_entry_id),"
                           "       COUNT(cache_entry_id) - COUNT(DISTINCT CASE WHEN cache_entry_id IS NOT NULL THEN code_id END),"
                           "       SUM(end_ns - start_ns) FROM compile WHERE code_id IN (%s)", rest->ids, rest->ids) < 0)
            break;
        totals = db_query(why->db, sql);
        free(sql);
        if (query_step(totals)) {
            rest->calls = query_integer(totals, 0);
            rest->compiles = query_integer(totals, 1);
            rest->entries = query_integer(totals, 2);
            rest->recompiles = query_integer(totals, 3);
            rest->compile_ns = query_integer(totals, 4);
        }
        why_asked(why, totals);
    }
    why_asked(why, ids);
    /* One reading of `lookup`, which may be long, for all of them. */
    out = open_memstream(&all, &room);
    if (!out)
        return;
    fputs("SELECT code_id, outcome, duration_ns FROM lookup WHERE code_id IN (-1", out);
    for (size_t i = 0; i < why->rest_count; i++)
        if (why->rests[i].ids)
            fprintf(out, ", %s", why->rests[i].ids);
    fputs(")", out);
    if (fclose(out) == 0 && all) {
        struct query *query = db_query(why->db, all);
        while (query_step(query)) {
            char id[32];
            int64_t outcome = query_integer(query, 1);
            size_t bytes = (size_t)snprintf(id, sizeof id, "%" PRId64, query_integer(query, 0));
            for (size_t i = 0; i < why->rest_count; i++) {
                const char *at = why->rests[i].ids ? why->rests[i].ids : "";
                while (*at && !(!strncmp(at, id, bytes) && (at[bytes] == ',' || !at[bytes]))) {
                    at += strcspn(at, ",");
                    at += strspn(at, ", ");
                }
                if (!*at)
                    continue;
                why->rests[i].eager += outcome != OUTCOME_HIT && outcome != OUTCOME_COMPILED;
                if (outcome == OUTCOME_HIT) /* a compile's lookup lasts as long as the compile */
                    why->rests[i].lookup_ns = times_sum(why->rests[i].lookup_ns, query_integer(query, 2));
            }
        }
        why_asked(why, query);
    }
    free(all);
}

/* ---- phases ---------------------------------------------------------------- */

static struct phase *phase_of(struct why *why, const char *name, bool late)
{
    size_t length = torch_phase_length(name);
    struct phase *phase;

    for (size_t i = 0; i < why->phases.count; i++) {
        phase = &why->phases.items[i];
        if (phase->late == late && !strncmp(phase->name, name, length) && !phase->name[length])
            return phase;
    }
    if (why->phases.count >= PHASE_NAMES)
        return why->phases.count ? &why->phases.items[PHASE_NAMES - 1] : NULL;
    phase = ADD(why, phases);
    if (phase) {
        phase->late = late;
        phase->name = strndup(name, length);
        if (!phase->name) {
            why->phases.count--;
            why->failed = true;
            return NULL;
        }
    }
    return phase;
}

static int phase_dearer(const void *a, const void *b)
{
    const struct phase *x = a, *y = b;

    if (x->self_ns != y->self_ns)
        return x->self_ns < y->self_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Phases lie within one another: what one took by itself is what those within leave. The rows come by compile and
 * start, a longer one before those that it holds. */
static void phases_read(struct why *why, struct query *query, bool late)
{
    struct { int64_t end; size_t phase; } open[PHASE_DEPTH];
    int64_t compile = -1;
    int depth = 0;

    while (query_step(query)) {
        int64_t id = query_integer(query, 0), start = query_integer(query, 2), end = query_integer(query, 3);
        struct phase *phase = phase_of(why, query_text(query, 1, NULL), late);
        if (!phase)
            return;
        if (id != compile)
            depth = 0;
        compile = id;
        if (start < 0 || end < start)
            start = end = 0;
        else if (end - start > PHASE_LONGEST)
            end = start + PHASE_LONGEST;
        while (depth > 0 && open[depth - 1].end <= start)
            depth--;
        phase->times++;
        phase->total_ns += end - start;
        phase->self_ns += end - start;
        if (depth > 0) { /* as much of it as lies within */
            struct phase *around = &why->phases.items[open[depth - 1].phase];
            around->self_ns -= (end < open[depth - 1].end ? end : open[depth - 1].end) - start;
            if (around->self_ns < 0)
                around->self_ns = 0;
        }
        if (depth < PHASE_DEPTH) {
            open[depth].end = end;
            open[depth++].phase = (size_t)(phase - why->phases.items);
        }
    }
}

static void gather_phases(struct why *why)
{
    struct query *query;

    if (!why->compiles.count || !find_column(why->db, "compile_phase", "start_ns"))
        return;
    query = why_ask(why, "where the time of its compiles went; phases lie within one another",
        "SELECT p.compile_id, COALESCE(p.name, '?'), p.start_ns, p.end_ns\n"
        "FROM compile m CROSS JOIN compile_phase p ON p.compile_id = m.compile_id WHERE m.code_id IN ($codes)\n"
        "ORDER BY p.compile_id, p.start_ns, p.end_ns DESC LIMIT 200000");
    phases_read(why, query, false);
    why_asked(why, query);
    /* After a reset, and in other processes, labels are given again. */
    query = why_ask(why, "what was compiled later on its own, as backward graphs are",
        "SELECT 0, COALESCE(p.name, '?'), p.start_ns, p.end_ns FROM compile_phase p\n"
        "WHERE p.compile_id IS NULL AND p.label IN (\n"
        "    SELECT m.label FROM compile m LEFT JOIN code c ON c.code_id = m.code_id WHERE m.label <> ''\n"
        "    GROUP BY m.label HAVING SUM(m.code_id IN ($codes)) = COUNT(*) AND COUNT(DISTINCT c.process_id) = 1)\n"
        "ORDER BY p.label, p.start_ns, p.end_ns DESC LIMIT 200000");
    phases_read(why, query, true);
    why_asked(why, query);
    if (why->phases.count)
        qsort(why->phases.items, why->phases.count, sizeof *why->phases.items, phase_dearer);
}

/* ---- marks ----------------------------------------------------------------- */

static void gather_marks(struct why *why)
{
    struct query *query;
    struct mark *mark;

    if (!find_column(why->db, "code_mark", "reason"))
        return;
    query = why_ask(why, "since when its calls, or those that it makes, were not compiled",
        "SELECT at_ns, action, recursive_action, region_id, substr(reason, 1, 2000) FROM code_mark\n"
        "WHERE code_id IN ($codes) ORDER BY at_ns LIMIT 100");
    while (query_step(query) && (mark = ADD(why, marks))) {
        mark->at_ns = query_integer(query, 0);
        mark->action = prose_column(query, 1);
        mark->callees = prose_column(query, 2);
        mark->in_region = query_type(query, 3) != QUERY_NULL;
        mark->region_id = query_integer(query, 3);
        mark->reason = prose_column(query, 4);
    }
    why_asked(why, query);
}

void why_gather_torch(struct why *why)
{
    gather_processes(why);
    gather_ranks(why);
    gather_breaks(why);
    gather_rests(why);
    gather_phases(why);
    gather_marks(why);
}
