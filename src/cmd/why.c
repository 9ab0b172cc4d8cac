/* cmd/why.c -- `dyntrace why`: what was decided about one function's calls, and why.
 *
 * The facts are gathered first (trace/why/why.h), then the page is written from them, section by
 * section. Of a program that uses torch the page is in torch's words: its labels and names,
 * "eagerly" for what others call "as Python". */

#include "trace/why/why.h"
#include "cmd/ranks.h"
#include "cmd/try.h"
#include "command.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/times.h"
#include "trace/brief.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/expression.h"
#include "trace/prose.h"
#include "trace/torch_words.h"
#include "trace/trials.h"
#include "trace/user_stack.h"

enum {
    /* lines of the page */
    HITS_SHOWN = 6,
    COMPILES_FIRST = 4,
    COMPILES_LAST = 2,
    CAUSES_SHOWN = 4,
    CAUSES_READ = 200, /* of a compile: each is held against each */
    OLDER_SHOWN = 3,
    LINES_SHOWN = 3,
    HISTORIES_SHOWN = 6,
    ENTRIES_SHOWN = 8,
    GUARDS_SHOWN = 3,
    BREAKS_SHOWN = 5,
    INPUTS_SHOWN = 3,
    PHASES_SHOWN = 6,
    MARKS_SHOWN = 4,
    RANKS_SHOWN = 16,
    REMEDIES_SHOWN = 3,
    NOTES_SHOWN = 2,
    WIDTH = WHY_WIDTH, /* bytes of a text from the trace within a line */
};

#define each_of(item, list, most)            \
    (__typeof__((list).at) item = (list).at; \
     item < (list).at + (list).count && item < (list).at + (most); item++)
#define each(item, list) each_of(item, list, (list).count)

/* How calls run that no compiled code is for. */
static const char *as_python(const struct why *why)
{
    return why->torch.number ? "eagerly" : "as Python";
}

#define NO_CAUSE "the cause was not recorded"

/* The first part of a reason, where the compiler gives several. */
static const char *what_of(struct why *why, const char *reason)
{
    return arena_print(&why->arena, "%s", torch_reason_split(reason).what);
}

static const char *entry_of(const struct cause *cause)
{
    return prose_or(cause->older_entry, "an older entry");
}

static double percent(int64_t part, int64_t all)
{
    return 100.0 * (double)part / (double)all;
}

/* ---- moments ------------------------------------------------------------- */

enum { DECIMALS_LEAST = 3, DECIMALS_MOST = 9 };

/* Of a second: as many as it takes that moments of one list that differ still do on the page. */
static int decimals = DECIMALS_LEAST;

static int64_t rounded(int64_t ns, int digits)
{
    int64_t unit = 1000000000;

    while (digits-- > 0)
        unit /= 10;
    return ns / unit;
}

static void moments_differ(int64_t before, int64_t after)
{
    bool are_known = before != UNKNOWN && after != UNKNOWN && before != after;

    while (are_known && decimals < DECIMALS_MOST &&
           rounded(before, decimals) == rounded(after, decimals))
        decimals++;
}

static void moments_choose(const struct why *why)
{
    decimals = DECIMALS_LEAST;
    for (size_t i = 1; i < why->compiles.count; i++)
        moments_differ(why->compiles.at[i - 1].start_ns, why->compiles.at[i].start_ns);
    for (size_t i = 0; i < why->calls.count; i++) {
        moments_differ(why->calls.at[i].first_ns, why->calls.at[i].last_ns);
        for (size_t j = 0; j < i && i < HITS_SHOWN + OUTCOMES; j++)
            moments_differ(why->calls.at[j].first_ns, why->calls.at[i].first_ns);
    }
}

/* NS after the recording began, "1.093 s"; NULL: UNKNOWN. */
static const char *moment(struct why *why, int64_t ns)
{
    int64_t unit = 1000000000;

    if (ns == UNKNOWN)
        return NULL;
    if (ns < 0)
        return arena_print(&why->arena, "%.*f s", decimals, (double)ns / 1e9);
    return arena_print(&why->arena, "%jd.%0*jd s", (intmax_t)(ns / unit), decimals,
                       (intmax_t)rounded(ns % unit, decimals));
}

/* A list of COUNT, of which SHOWN are printed, has more. */
static void more_print(FILE *out, size_t shown, size_t count)
{
    if (count > shown)
        fprintf(out, "  and %zu more; --json has them all\n", count - shown);
}

/* ---- the head ------------------------------------------------------------ */

/* Which torch, how it was watched, and what that leaves unseen. */
static void torch_print(struct why *why, FILE *out)
{
    static const struct {
        const char *mode, *words;
    } modes[] = {
        {"shim", "shim: every guard check was seen"},
        {"observe", "observe: entries that were tried in vain before a hit or an eager call are "
                    "not seen, nor what guards take"},
        {"import", "imported"},
    };
    const struct torch_facts *torch = &why->torch;
    const char *words = torch->mode;

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (prose_same(torch->mode, modes[i].mode))
            words = modes[i].words;
    if (torch->number)
        prose_print(out, "torch %.40s%s{, %.200s}\n{%.300s\n}", torch->version,
                    torch->versions > 1 ? " and others" : "",
                    torch->modes > 1 ? "watched in different ways in different processes" : words,
                    torch->note);
}

/* Ranks should compile alike: one that compiles alone makes the others wait. */
static void ranks_print(struct why *why, FILE *out)
{
    const size_t count = why->ranks.count;
    bool differ = false;

    for each (r, why->ranks)
        differ = differ || r->compiles != why->ranks.at[0].compiles;
    if (count)
        fputs(count == 1 ? "rank" : "ranks", out);
    for
        each_of(r, why->ranks, RANKS_SHOWN)
            prose_print(out, "%s %jd{: %jd compile(s)}", r > why->ranks.at ? "," : "", r->rank,
                        differ ? r->compiles : UNKNOWN);
    if (count > RANKS_SHOWN)
        fprintf(out, " and %zu more", count - RANKS_SHOWN);
    if (count)
        fputs(differ ? "; they differ\n" : "\n", out);
}

/* "16 calls: 56.2 % ran compiled code, ..." */
static void shares_print(struct why *why, FILE *out)
{
    int64_t compiles = (int64_t)why->compiles.count, asked = why->shared.asked,
            compiled = why_calls(why, OUTCOME_HIT) + why_calls(why, OUTCOME_COMPILED);

    prose_print(out, "%'jd call(s)", why->all_calls);
    if (!why->all_calls && !compiles) {
        fputs(": it is known, but was never called while this was recorded\n", out);
        return;
    }
    if (!asked && !compiles)
        fputs(why_calls(why, OUTCOME_SKIP) + why_calls(why, OUTCOME_DISABLED)
                  ? ": none needed a lookup"
                  : ": no compiler had to do with them",
              out);
    else if (asked && asked < why->all_calls)
        prose_print(out, ", %'jd that wanted compiled code", asked);
    if (asked)
        prose_print(out, ": %.3g %% ran compiled code, %.3g %% ran %s though a compiler was set",
                    percent(compiled, asked), percent(why->shared.python, asked), as_python(why));
    prose_print(out,
                "{; %jd compile(s) (%jd recompile(s))}{ and %jd attempt(s) that gave no code}\n",
                compiles ? why->made : UNKNOWN, why->recompiles, prose_any(compiles - why->made));
}

static void head_print(struct why *why, FILE *out)
{
    const struct found_code *code = &why->code;
    char *settings = doubts_settings(why->db);

    prose_print(out, "%.200s  %.200s:%jd  ", code->qualname, prose_path(code->filename),
                code->first_line);
    torch_kind_print(out, code->qualname, code->kind);
    prose_print(out, "{ of %.200s}", why->self_class);
    if (code->code_objects > 1)
        prose_print(out, ", %jd code objects in %jd process(es)", code->code_objects,
                    code->processes);
    putc('\n', out);
    if (why->all_calls == UNKNOWN)
        fputs("calls: not known\n", out);
    else
        shares_print(why, out);
    if (why->missing)
        fputs("LOSS: events are missing from this recording (`dyntrace report`); counts may be too "
              "low\n",
              out);
    prose_print(out, "{%.200s\n}", doubts_values(why->db));
    prose_print(out, "{recorded under %.2000s\n}", settings);
    free(settings);
}

/* How it was watched, and where. */
static void watched_print(struct why *why, FILE *out)
{
    if (why->torch.number || why->ranks.count)
        putc('\n', out);
    torch_print(why, out);
    ranks_print(why, out);
}

/* ---- calls --------------------------------------------------------------- */

static const char *words_of(const struct why *why, int64_t outcome)
{
    const struct outcome_facts *facts = &outcome_facts[outcome];

    if (!why->torch.number || !facts->torch)
        return facts->words;
    return outcome == OUTCOME_PLAIN && why->torch.observed
               ? "ran eagerly; whether torch was asked was not seen"
               : facts->torch;
}

static void calls_print(struct why *why, FILE *out)
{
    int64_t folded = 0, folded_entries = 0, hits = 0;

    if (!why->calls.count && !why->undecided)
        return;
    prose_title(out, "Its calls");
    for each (class, why->calls) {
        if (class->outcome == OUTCOME_HIT && ++hits > HITS_SHOWN) {
            folded += class->calls;
            folded_entries++;
            continue;
        }
        prose_print(out, "%'9jd %5.1f %%  %-14s  %s", class->calls,
                    why->all_calls > 0 ? percent(class->calls, why->all_calls) : 100.0,
                    outcome_word(class->outcome), words_of(why, class->outcome));
        prose_print(out, "{ of %.40s}; %sat %s{, last at %s}\n", class->entry,
                    class->calls > 1 ? "first " : "", moment(why, class->first_ns),
                    class->calls > 1 ? moment(why, class->last_ns) : NULL);
    }
    if (folded)
        prose_print(out, "%'9jd %5.1f %%  %-14s  ran compiled code of %jd other entries\n", folded,
                    percent(folded, why->all_calls), "hit", folded_entries);
    if (why->disabled_words)
        prose_print(out, "           called in line %jd of %.70s after a graph break: %.140s\n",
                    why->disabled_line, why->disabled_by, what_of(why, why->disabled_words));
    if (why->undecided)
        prose_print(out,
                    "%'9jd %5.1f %%  %-14s  without a lookup: plain, skipped or disabled (its "
                    "frames are not stored, or too many)\n",
                    why->undecided, percent(why->undecided, why->all_calls), "?");
}

/* ---- compiles ------------------------------------------------------------ */

/* Both are about one thing that had one value: one cause, in however many older entries and by
 * however many guards of these it failed. */
static bool is_same(const struct cause *one, const struct cause *other)
{
    return prose_same(one->source, other->source) && prose_same(one->actual, other->actual) &&
           prose_same(one->aspect, other->aspect) && one->dimension == other->dimension;
}

static bool has_values(const struct cause *cause)
{
    return prose_filled(cause->expected) || prose_filled(cause->actual);
}

/* ONE is printed with OTHER. Without values that are one text of one entry. */
static bool is_printed_with(const struct cause *one, const struct cause *other)
{
    if (!is_same(one, other))
        return false;
    return has_values(one) ||
           (prose_same(one->kind, other->kind) && prose_same(one->text, other->text) &&
            one->cache_entry_id == other->cache_entry_id);
}

/* Causes that differ only in the older entry share one line. The first cause in FROM..END that is
 * on the line of CAUSE and expects the same value; END: none. */
static const struct cause *first_expecting(const struct cause *from, const struct cause *end,
                                           const struct cause *cause)
{
    while (from < end &&
           !(is_printed_with(from, cause) && prose_same(from->expected, cause->expected)))
        from++;
    return from;
}

/* "expected 16 (0/0, 0/2), 18 (0/1)" of the causes FROM..END that are one with FIRST. */
static void expected_print(struct why *why, FILE *out, const struct cause *from,
                           const struct cause *end, const struct cause *first)
{
    int64_t shown = 0;

    for (const struct cause *c = from; c < end; c++) {
        const struct cause *last = NULL;
        int64_t entries = 0;
        if (!is_printed_with(c, first) || first_expecting(from, end, c) < c)
            continue;
        if (shown++ >= OLDER_SHOWN)
            continue;
        prose_print(out, "%s%.70s (", shown > 1 ? ", " : "expected ",
                    why_keep(why, cause_expected(c)));
        for (const struct cause *same = c; same < end; same++) {
            bool is_other = !last || last->cache_entry_id != same->cache_entry_id;
            if (!is_printed_with(same, c) || !prose_same(same->expected, c->expected) || !is_other)
                continue;
            last = same;
            if (entries++ < OLDER_SHOWN)
                prose_print(out, "%s%.40s", entries > 1 ? ", " : "", entry_of(same));
        }
        prose_print(out, "{ and %jd more})", prose_any(entries - OLDER_SHOWN));
    }
    prose_print(out, "{ and %jd other value(s)}", prose_any(shown - OLDER_SHOWN));
}

/* The guards of FROM..END that are one cause with FIRST: "EQUALS_MATCH, LAMBDA_GUARD". */
static void kinds_print(FILE *out, const struct cause *from, const struct cause *end,
                        const struct cause *first)
{
    for (const struct cause *c = from; c < end; c++) {
        const struct cause *before = from;
        if (!is_printed_with(c, first) || !prose_filled(c->kind))
            continue;
        while (before < c && !(is_printed_with(before, c) && prose_same(before->kind, c->kind)))
            before++;
        if (before == c)
            prose_print(out, "%.40s, ", c->kind);
    }
}

/* The lines of the program that need the guards of FROM..END that are one cause with FIRST, each
 * behind BEFORE. */
static void needed_print(struct why *why, FILE *out, const struct cause *from,
                         const struct cause *end, const struct cause *first, const char *before)
{
    int shown = 0;

    for (const struct cause *c = from; c < end; c++) {
        const struct cause *other = from;
        const char *line;
        if (!is_printed_with(c, first) || !prose_filled(c->user_stack))
            continue;
        while (other < c &&
               !(is_printed_with(other, c) && prose_same(other->user_stack, c->user_stack)))
            other++;
        if (other < c || shown++ >= LINES_SHOWN)
            continue;
        line = why_keep(
            why, user_stack_line(c->user_stack, c->text, why->code.qualname, db_lines(why->db)));
        if (line)
            prose_print(out, "%sneeded by %.250s\n", before, line);
    }
}

/* What was compared has no older value beside it: that another backend asked. */
static void backend_print(struct why *why, FILE *out, const struct compile *compile,
                          const struct cause *cause)
{
    const struct entry *older = why_entry(why, cause->cache_entry_id),
                       *made = why_entry(why, compile->cache_entry_id);
    const char *before = older ? older->backend : NULL,
               *now = before && made ? made->backend : NULL;
    bool same = now && !strcmp(before, now);

    prose_print(out, "%.40s was compiled by another backend{, %.60s}{, than now, %.60s}%s",
                entry_of(cause), before, same ? NULL : now,
                same ? ", another object of that name" : "");
}

/* One of the causes FROM..END, with those that are one with it. */
static void cause_print(struct why *why, FILE *out, const struct compile *compile,
                        const struct cause *from, const struct cause *end, const struct cause *c)
{
    bool is_backend = why->torch.number && c->kind && !strncmp(c->kind, "BACKEND_", 8);
    bool is_decided = false;

    for (const struct cause *other = from; other < end; other++)
        is_decided = is_decided || (is_printed_with(other, c) && other->decided);
    fputs(is_decided ? "         " : "         also ", out);
    if (has_values(c)) {
        prose_print(out, "%.110s: ", why_keep(why, cause_called(c)));
        if (prose_filled(c->expected))
            expected_print(why, out, from, end, c);
        prose_print(out, prose_filled(c->expected) ? "{, actual %.70s}" : "{actual %.70s}",
                    why_keep(why, cause_actual(c)));
    } else if (is_backend) {
        backend_print(why, out, compile, c);
    } else {
        prose_print(out, "%.40s: %.140s", entry_of(c),
                    prose_or(c->text, prose_or(c->source, "no reason was recorded")));
    }
    fputs("  [", out);
    kinds_print(out, from, end, c);
    fprintf(out, "%s]\n", prose_same(c->how, "observed") ? "observed" : "re-checked");
    needed_print(why, out, from, end, c, "           ");
}

/* The causes of a recompile, each once. */
static void causes_print(struct why *why, FILE *out, const struct compile *compile)
{
    const struct cause *from = &why->causes.at[compile->first_cause], *end = from + compile->causes,
                       *before;
    int64_t shown = 0;

    if (end - from > CAUSES_READ)
        end = from + CAUSES_READ;
    for (const struct cause *c = from; c < end; c++) {
        for (before = from; before < c && !is_printed_with(before, c); before++)
            continue;
        if (before < c || shown++ >= CAUSES_SHOWN)
            continue;
        cause_print(why, out, compile, from, end, c);
    }
    if (shown > CAUSES_SHOWN)
        prose_print(out, "         %jd other failing guards; --json has them all\n",
                    shown - CAUSES_SHOWN);
}

/* A recompile that no guard asked for: did an entry die before it, or was one not seen? */
static bool deaths_before_print(struct why *why, FILE *out, const struct compile *compile)
{
    const struct entry *other = why_other_region(why, compile);
    int shown = 0;

    for (size_t i = why->entries.count; i-- > 0 && shown < 2;) {
        const struct entry *e = &why->entries.at[i];
        if (e->died_ns == UNKNOWN || e->code_id != compile->code_id ||
            e->died_ns > compile->start_ns)
            continue;
        shown++;
        prose_print(out, "         %.40s had died at %s: %.140s\n", e->label,
                    moment(why, e->died_ns), prose_or(e->death_cause, NO_CAUSE));
    }
    if (other)
        prose_print(
            out,
            "         %.40s belongs to region %jd and is not seen by others (isolate_recompiles)\n",
            other->label, other->region_id);
    return shown || other;
}

/* Where the program was, behind BEFORE: the innermost line, then the path to it. */
static void stack_print(struct why *why, FILE *out, const char *stack, const char *before)
{
    const char *line =
        why_keep(why, user_stack_line(stack, NULL, why->code.qualname, db_lines(why->db)));

    if (line)
        prose_print(out, "%sat %.250s\n", before, line);
    line = why_keep(why, user_stack_path(stack));
    if (line)
        prose_print(out, "%sby %.1000s\n", before, line);
}

/* What the inputs of calls were like. Those that torch passes to resume functions say nothing. */
static void inputs_print(struct why *why, FILE *out, const char *inputs)
{
    inputs = why_keep(why, brief_of(inputs, NULL));
    while (!strncmp(inputs, "__nested_", 9) && strstr(inputs, ", "))
        inputs = strstr(inputs, ", ") + 2;
    prose_print(out, "%.140s\n", inputs);
}

static void compile_print(struct why *why, FILE *out, const struct compile *compile)
{
    const struct parent *parent = &compile->follows_from;
    const char *refusal = compile_refusal(why, compile);
    bool made = compile_made(compile), ended = compile->end_ns != UNKNOWN;

    prose_print(out, "  %-5.20s {rank %jd, }at %s{, took %+jd}%s",
                prose_or(compile->label, why->torch.number ? "-" : "?"),
                why->ranks.count > 1 ? compile->rank : UNKNOWN, moment(why, compile->start_ns),
                ended ? times_span(compile->start_ns, compile->end_ns) : UNKNOWN,
                ended ? "" : ", did not end");
    if (!made) /* "skipped, for good: frame is in the skipfiles list" */
        prose_print(out, ": %.40s%s{: %.140s}", compile->outcome,
                    compile->sticky == UNKNOWN ? ""
                    : compile->sticky          ? ", for good"
                                               : ", for this call",
                    refusal             ? what_of(why, refusal)
                    : why->torch.number ? "torch did not say why"
                                        : NULL);
    fputs(made && !compile->recompile && !compile->causes ? ": the first\n" : "\n", out);
    stack_print(why, out, compile->user_stack, "         ");
    if (compile->causes)
        causes_print(why, out, compile);
    else if (compile->recompile && !deaths_before_print(why, out, compile) && made)
        prose_print(out, "         %.140s\n", prose_or(compile->reason, "why is not recorded"));
    if (parent->compile_id)
        prose_print(
            out, "         follows from: %.70s{ %.20s} (%.110s{: expected %.70s, actual %.70s})\n",
            parent->function, parent->label, why_keep(why, expression_of(parent->source)),
            why_keep(why, brief_of(parent->expected, parent->actual)),
            why_keep(why, brief_of(parent->actual, parent->expected)));
    if (compile->inputs)
        fputs("         inputs: ", out), inputs_print(why, out, compile->inputs);
}

static void compiles_print(struct why *why, FILE *out)
{
    size_t count = why->compiles.count;

    if (count)
        prose_title(out, "Compiles, and the guard that made each needed");
    for (size_t i = 0; i < count; i++) {
        if (count > COMPILES_FIRST + COMPILES_LAST && i == COMPILES_FIRST) {
            fprintf(out, "  ...   %zu more; --json has them all\n",
                    count - COMPILES_FIRST - COMPILES_LAST);
            i = count - COMPILES_LAST;
        }
        compile_print(why, out, &why->compiles.at[i]);
    }
}

static void histories_print(struct why *why, FILE *out)
{
    const struct history *before;
    int shown = 0;

    for each (h, why->histories) {
        for (before = why->histories.at; before < h; before++) /* the same in another process */
            if (prose_same(before->source, h->source) && prose_same(before->kind, h->kind) &&
                prose_same(before->aspect, h->aspect) && prose_same(before->text, h->text))
                break;
        if (!prose_filled(h->text) || before < h || shown == HISTORIES_SHOWN)
            continue;
        if (!shown++)
            prose_title(out, "Values that forced recompiles");
        prose_print(out,
                    "  %.110s  %.140s  [decided %jd recompile(s){ and %jd attempt(s) that gave no "
                    "code}%s]\n",
                    why_keep(why, cause_called(h->cause)), h->text, h->recompiles,
                    prose_any(h->refused),
                    prose_same(h->cause->how, "observed") ? "" : ", found when checked again");
        needed_print(why, out, h->cause, h->cause + 1, h->cause, "    ");
    }
}

/* ---- entries, limits, guards --------------------------------------------- */

static void entries_print(struct why *why, FILE *out)
{
    bool imported = prose_same(why->torch.mode, "import");

    if (why->entries.count)
        prose_title(out, "Cache entries");
    for
        each_of(e, why->entries, ENTRIES_SHOWN)
        {
            prose_print(out, "  %.40s{  %.40s}{  region %jd}  %jd guard(s), ", e->label, e->backend,
                        e->region_id, e->guards);
            if (imported) {
                fputs("its use is not known\n", out);
                continue;
            }
            prose_print(out,
                        "{tried %'jd time(s), }%s{hit %'jd, last at %s}{, passed over %'jd "
                        "time(s): another backend asked}{; %'jd hit(s) under "
                        "set_stance(skip_guard_eval_unsafe=True): not all guards ran}{; died at "
                        "%s: %.70s}\n",
                        /* only the tries that ended in a hit were seen there */
                        why->torch.observed ? UNKNOWN : e->tried, e->hit ? "" : "never hit",
                        prose_any(e->hit), moment(why, e->last_hit_ns),
                        prose_any(e->backend_mismatches), prose_any(e->few_guards),
                        moment(why, e->died_ns), prose_or(e->death_cause, NO_CAUSE));
        }
    more_print(out, ENTRIES_SHOWN, why->entries.count);
}

/* From when on calls are not compiled, and why. */
static void marks_print(struct why *why, FILE *out)
{
    if (why->marks.count)
        prose_title(out, "What was decided for good");
    for
        each_of(m, why->marks, MARKS_SHOWN)
        {
            bool skip = prose_same(m->action, "skip"), run_only = prose_same(m->action, "run_only");
            prose_print(out, "  since %s{, in region %jd}", moment(why, m->at_ns), m->region_id);
            if (skip)
                fprintf(out, ": never compiled, runs %s", as_python(why));
            fputs(!skip && run_only ? ": entries are used, nothing new is compiled" : "", out);
            if (prose_same(m->recursive_action, "skip"))
                fputs(skip ? ", and so do the calls that it makes"
                           : ": the calls that it makes are never compiled",
                      out);
            else if (prose_same(m->recursive_action, "run_only"))
                fputs(run_only ? ", nor for the calls that it makes"
                               : ": for the calls that it makes nothing new is compiled",
                      out);
            prose_print(out, ": %.140s\n",
                        /* torch's words for it are about how it is done */
                        run_only && why->limit_reason  ? why->limit_reason
                        : prose_filled(m->reason)      ? what_of(why, m->reason)
                        : !why_turned_away(why)        ? "it was asked to"
                        : skip && why->declined_reason ? what_of(why, why->declined_reason)
                        : why->torch.number            ? "torch did not say why"
                                                       : "the compiler gave no code");
        }
    more_print(out, MARKS_SHOWN, why->marks.count);
}

static void limit_print(struct why *why, FILE *out)
{
    const char *limit = why->limit_reason;

    for each (class, why->calls) {
        if (class->outcome != OUTCOME_LIMIT)
            continue;
        prose_title(out, "Limit");
        prose_print(out,
                    "  %.70s%s at %s with %jd compile(s); since then %'jd call(s) ran %s, the "
                    "last at %s.\n",
                    limit ? limit : "Reached",
                    !limit || strstr(limit, "reached") ? "" : ": reached",
                    moment(why, class->first_ns), why->made, class->calls, as_python(why),
                    moment(why, class->last_ns));
    }
    if ((why->inputs.count || why->forbidders.count) && !why_calls(why, OUTCOME_LIMIT))
        prose_title(out, "Calls that no entry fitted");
    for
        each_of(f, why->forbidders, INPUTS_SHOWN) prose_print(
            out,
            "  %'jd call(s): within %.70s, for whose calls nothing new is compiled{: %.140s}\n",
            f->calls, f->function, what_of(why, f->reason));
    for
        each_of(input, why->inputs, INPUTS_SHOWN)
        {
            prose_print(out, "  inputs of %'jd call(s): ", input->calls);
            inputs_print(why, out, input->inputs ? input->inputs : "?");
        }
}

static void guards_print(struct why *why, FILE *out)
{
    if (!why->timed_checks && !why->guards.count && !why->guards_slow)
        return;
    prose_title(out, why->guards_slow ? "Guards: slow" : "Guards");
    if (why->timed_checks)
        prose_print(out, "  %'jd check(s) took %+jd, %+jd each", why->timed_checks, why->check_ns,
                    why->check_ns / why->timed_checks);
    else if (why->guards_slow)
        prose_print(out, "  %'jd lookup(s) that ended in a hit took %+jd", why->guard_calls,
                    why->guard_ns);
    if ((why->timed_checks || why->guards_slow) && why_guard_share(why) >= 0)
        prose_print(out, "; %+jd a call, %.2g %% of %s", why->guard_ns / why->guard_calls,
                    why_guard_share(why),
                    why->share_of_hits ? "a call that hits, with the lookup"
                                       : "the time in the function, compiles left aside");
    if (why->timed_checks || why->guards_slow)
        putc('\n', out);
    for
        each_of(g, why->costs, GUARDS_SHOWN)
        {
            bool timed = why->check_ns > 0;
            prose_print(out, "  %'jd guard(s) of kind %.40s{: some %+jd, %.2g %% of that}\n",
                        g->guards, g->kind, timed ? g->estimated_ns : UNKNOWN,
                        timed ? percent(g->estimated_ns, why->check_ns) : 0);
        }
    for
        each_of(g, why->guards, GUARDS_SHOWN)
        {
            bool mismatch = prose_same(g->result, check_words[CHECK_BACKEND_MISMATCH]),
                 error = prose_same(g->result, check_words[CHECK_ERROR]);
            prose_print(out, "  %s %'jd time(s): %.40s ",
                        mismatch ? "not asked"
                        : error  ? "raised"
                                 : "failed",
                        g->times, g->entry);
            if (!mismatch && g->kind)
                prose_print(out, "%.40s %.110s{, needed by %.250s}\n", g->kind,
                            why_keep(why, expression_of(prose_or(g->source, g->expression))),
                            why_keep(why, user_stack_line(g->user_stack, NULL, why->code.qualname,
                                                          db_lines(why->db))));
            else
                fputs(mismatch ? "(another backend)\n" : "(which guard is not recorded)\n", out);
        }
    more_print(out, GUARDS_SHOWN, why->guards.count);
}

/* ---- graph breaks, phases ------------------------------------------------ */

/* The resume function and what it costs: it is called, looked up and compiled on its own. */
static void rest_print(FILE *out, const struct graph_break *rest)
{
    char *function = NULL;
    int64_t line;
    bool torch = torch_resume(rest->resume_function, &function, &line);

    fputs("           goes on in ", out);
    torch_name_print(out, rest->resume_function, WIDTH);
    if (torch)
        prose_print(out, " (%.140s)", rest->resume_function);
    prose_print(out,
                "{: %'jd call(s)}{, %'jd of them eagerly}{, %jd compile(s) (%jd recompile(s)) took "
                "%+jd}{, lookups %+jd}",
                rest->rest_calls, prose_any(rest->rest_eager_calls), prose_any(rest->rest_compiles),
                rest->rest_recompiles, rest->rest_compile_ns, prose_any(rest->rest_lookup_ns));
    if (torch && (rest->rest_recompiles > 0 || rest->rest_eager_calls > 0))
        prose_print(out, "; see `dyntrace why %.70s@%jd`", function, line);
    free(function);
    putc('\n', out);
}

static void breaks_print(struct why *why, FILE *out)
{
    if (why->breaks.count)
        prose_title(out, "Graph breaks");
    for
        each_of(b, why->breaks, BREAKS_SHOWN)
        {
            const struct torch_reason reason = torch_reason_split(b->reason);
            prose_print(out, "  line %jd, %jd time(s): ", b->line, b->times);
            prose_print(out, "%.140s\n{           %.140s\n}", reason.what, reason.why);
            stack_print(why, out, b->user_stack, "           ");
            if (b->resume_function)
                rest_print(out, b);
        }
    more_print(out, BREAKS_SHOWN, why->breaks.count);
}

/* Where the time of compiles went. A phase's own time is what those within it leave. */
static void phases_print(struct why *why, FILE *out)
{
    int64_t all = 0, late = 0;
    int shown = 0;

    if (why->caches)
        prose_print(out,
                    "\nTorch's caches: %.1000s{; the warm start still paid %+jd}{, %+jd of it in "
                    "the backend}{, and saved %+jd}\n",
                    why->caches, why->warm_ns, why->warm_backend_ns, why->saved_ns);
    for each (p, why->phases) {
        all += p->self_ns;
        late += p->late ? p->self_ns : 0;
    }
    if (all <= 0)
        return;
    prose_title(out, "Where compile time went");
    for each (p, why->phases) {
        if (p->self_ns * 100 < all || shown++ >= PHASES_SHOWN) /* less than one percent */
            continue;
        prose_print(out, "%+9jd %5.1f %%  %.70s{: %s}%s\n", p->self_ns, percent(p->self_ns, all),
                    p->name, torch_phase_words(p->name), p->late ? " (later)" : "");
    }
    if (late)
        prose_print(out, "%+9jd %5.1f %%  of it later and on their own, as backward graphs are\n",
                    late, percent(late, all));
}

/* What is asked for. */
static struct {
    bool sql, json, whatif, ranks, all;
    bool measure; /* --try */
} given;

/* ---- remedies ------------------------------------------------------------ */

/* "4 compiles instead of 9" */
static void instead_print(FILE *out, const char *what, int64_t would, int64_t is)
{
    prose_print(out, "%s%jd %s(s){ instead of %jd}", would == is ? "still " : "", would, what,
                would == is ? UNKNOWN : is);
}

/* The settings of a remedy, each as a word of the shell behind BEFORE. */
static void setting_print(FILE *out, const char *before, const char *setting)
{
    if (*setting == '\'') { /* it is one */
        fprintf(out, " %s%s", before, setting);
        return;
    }
    for (size_t bytes; *setting; setting += bytes + strspn(setting + bytes, " ")) {
        bytes = strcspn(setting, " ");
        char *one = say_print("%.*s", (int)bytes, setting);
        fprintf(out, " %s", before);
        prose_shell_word(out, one);
        free(one);
    }
}

/* Eager calls of which one of the two numbers is not known. */
static void eager_print(FILE *out, int64_t then, int64_t now)
{
    if (then == UNKNOWN)
        fputs(", eager calls not counted", out);
    else
        prose_print(out, ", %jd eager call(s) instead of some that were not counted", then);
}

/* "1 compile instead of 8, 0 eager calls instead of 4" */
static void figures_print(FILE *out, const struct remedy *r)
{
    bool measured = r->measured_compiles != UNKNOWN;
    int64_t eager = measured ? r->measured_eager : r->predicted_eager;

    instead_print(out, "compile", measured ? r->measured_compiles : r->predicted_compiles,
                  r->compiles);
    if (r->eager == UNKNOWN || eager == UNKNOWN) {
        eager_print(out, eager, r->eager);
    } else if (r->eager || eager) {
        fputs(", ", out);
        instead_print(out, "eager call", eager, r->eager);
    }
    if (measured && r->breaks != r->measured_breaks) {
        fputs(", ", out);
        instead_print(out, "graph break", r->measured_breaks, r->breaks);
    }
    prose_print(out, "{, %jd call(s) not looked up any more}", prose_any(r->gone));
    fputs(r->gain ? "\n" : "; no gain\n", out);
}

/* How much the remedy helps, or how to find out. */
static void outcome_print(struct why *why, FILE *out, const struct remedy *r)
{
    fputs("     ", out);
    if (remedy_has_figures(r)) {
        if (r->trial != UNKNOWN)
            prose_print(out, "measured (trial %jd): ", r->trial);
        else
            prose_print(out, "exact (what-if %.140s): ", r->what_if);
        figures_print(out, r);
        return;
    }
    if (r->what_if && why->long_trace) {
        fputs("not computed, for the trace is long: dyntrace replay ", out);
        prose_shell_word(out, db_path(why->db));
        fputs(" --what-if ", out);
        prose_shell_word(out, r->what_if);
        fputs(" --function ", out);
        prose_shell_word(out, why->code.qualname);
        fputs(", or why --what-if\n     ", out);
    }
    if (r->trial != UNKNOWN) {
        prose_print(out, "not measured (trial %jd): %.200s\n", r->trial, r->trial_error);
        return;
    }
    if (!r->setting) {
        fputs("not measured: it needs an edit of the program\n", out);
        return;
    }
    if (prose_same(why->torch.mode, "import")) { /* the trace does not have its command */
        fputs("not measured: dyntrace run", out);
        setting_print(out, "--set ", r->setting);
        fputs(" shows it\n", out);
        return;
    }
    fputs("not measured: dyntrace try ", out);
    prose_shell_word(out, trials_trace(why->db));
    putc(' ', out);
    prose_shell_word(out, why->code.qualname);
    setting_print(out, "", r->setting);
    putc('\n', out);
}

/* What is normal, so that there is nothing to change, and what compiled code does not notice. */
static void notes_print(struct why *why, FILE *out)
{
    int shown = 0;

    for each (r, why->remedies) {
        bool normal = r->effort == EFFORT_NORMAL;
        if ((!normal && r->effort != EFFORT_UNGUARDED) || (!given.all && shown++ >= NOTES_SHOWN))
            continue;
        prose_print(out, "  %s: %.1000s\n", normal ? "Normal" : "Not guarded by this torch",
                    r->text);
    }
}

/* Settings under which the program compiled less and wrote something else. Whether that matters is
 * for its author to see: a program that prints how often it compiled is one of these. */
static void other_output_print(struct why *why, FILE *out)
{
    bool titled = false;

    for each (r, why->remedies) {
        if (!r->other_output)
            continue;
        if (!titled)
            prose_title(out, "Tried, and not advised: the program wrote something else");
        titled = true;
        prose_print(out, "  * %.1000s\n     trial %jd, %.200s: %.200s\n     %.300s\n", r->text,
                    r->trial, r->setting, r->other_output, r->trial_error);
    }
}

static void remedies_print(struct why *why, FILE *out)
{
    int shown = 0, more = 0;
    bool printed = false;

    for each (r, why->remedies)
        printed = printed || !r->rejected;
    if (printed)
        prose_title(out, "What would have helped");
    else if (why->shared.asked && !why->shared.python && !why->recompiles && !why->breaks.count &&
             !why->undecided)
        fprintf(out, "\nNothing to improve: compiled once%s, and every other call ran that.\n",
                why->missing ? ", as far as was recorded" : "");
    for each (r, why->remedies) {
        if (!remedy_is_shown(r))
            continue;
        if (shown == REMEDIES_SHOWN && !given.all) {
            more++;
            continue;
        }
        fprintf(out, "  %d. ", ++shown);
        prose_print(out, "%.1000s\n{     because: %.300s\n}", r->text, r->because);
        outcome_print(why, out, r);
    }
    if (more) {
        fprintf(out, "  and %d more: dyntrace why ", more);
        prose_shell_word(out, why->code.qualname);
        fputs(" --all\n", out);
    }
    notes_print(why, out);
    other_output_print(why, out);
}

static void sql_print(struct why *why, FILE *out)
{
    if (!why->with_sql)
        return;
    prose_title(out, "SQL");
    for each (ask, why->asked) {
        fprintf(out, "-- %s\n", ask->title);
        prose_lines(out, ask->sql, 0, -1);
        fputs(";\n", out);
    }
}

/* ---- the command --------------------------------------------------------- */

static void (*const sections[])(struct why *why, FILE *out) = {
    head_print,      remedies_print, watched_print, calls_print, compiles_print,
    histories_print, entries_print,  marks_print,   limit_print, guards_print,
    breaks_print,    phases_print,   sql_print,
};

static const struct option options[] = {
    {"sql", .read = option_flag, .to = &given.sql, .help = "also print the SQL that answers"},
    {"ranks", .read = option_flag, .to = &given.ranks,
     .help =
         "which of a job's ranks compiled it otherwise, as `dyntrace ranks` says of all functions"},
    {"try", .read = option_flag, .to = &given.measure,
     .help = "first run the recorded command under the settings of its remedies, as `dyntrace try` "
             "does, and measure them"},
    {"json", .read = option_flag, .to = &given.json,
     .help = "the same for a program, complete, times in nanoseconds"},
    {"all", .read = option_flag, .to = &given.all, .help = "print all remedies, not only three"},
    {"what-if", .read = option_flag, .to = &given.whatif,
     .help = "decide the recorded calls again for each remedy, on a long trace too. One with more "
             "than 200,000 lookups or a million guard checks would make the answer wait, so that "
             "only the command to ask for it is printed"},
    OPTION_END,
};

static int why_main(int count, char **operands)
{
    struct why why = {.with_sql = given.sql, .force_whatif = given.whatif};
    const char *name;
    char **files;
    enum find_result found;
    int measured = 0;
    int status;

    if (!find_operands("why", count, operands, &name, &files))
        return 2;
    if (given.ranks && !name)
        say_error("why: --ranks needs the name of a function; `dyntrace ranks` compares all");
    if (given.ranks)
        return name ? ranks_compare(files, name, -1, given.json) : 2;
    if (given.measure)
        measured = try_measure(files, name, false);
    if (!(why.db = find_open(files)))
        return 2;
    /* losses are in the answer */
    doubts_say(why.db, "the answer is about what it has so far", NULL);
    why.progress = progress_begin("reading decisions");
    db_on_progress(why.db, progress_spin, &why.progress);
    found = find_code(why.db, name, &why.code, stdout, given.json);
    if (found == FIND_ONE) {
        why_gather(&why);
        why_follow(&why);
        why_whatif(&why);
    }
    db_on_progress(why.db, NULL, NULL);
    progress_end(&why.progress);
    if (found == FIND_ONE && !db_failed(why.db) && given.json)
        why_json(&why, stdout);
    else if (found == FIND_ONE && !db_failed(why.db)) {
        moments_choose(&why);
        for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
            sections[i](&why, stdout);
    }
    status = find_status(why.db, found);
    why_free(&why);
    return status ? status : measured;
}

const struct command command_why = {
    .name = "why",
    .summary = "why a function was compiled again, or ran as Python",
    .operands = "FUNC [FILE...]",
    .about = "What was decided about the calls of a function, and why: hits, compiles and "
             "recompiles with the guard that failed, calls that ran as Python, entries that died, "
             "what would have helped, and how much.\n\n"
             "FUNC is a qualified name, its last part, FILE:LINE, a GLOB, a compile such as 0/1, "
             "or FUNC@LINE, the rest of FUNC after a graph break in that line. FILE is the newest "
             "*.db trace here unless given. A FILE alone answers about its only function that was "
             "compiled again, broke or ran as Python, or lists them.",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .run = why_main,
};
