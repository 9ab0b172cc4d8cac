/* trace/why/outcome.c -- finds the gain of each remedy: measured, computed, or not known. See
 * trace/why/why.h. */
#include <inttypes.h>

#include "replay.h"
#include "trace/db.h"
#include "trace/trials.h"
#include "trace/whatif/whatif.h"
#include "trace/why/why.h"

enum { LOOKUPS_READ = 200000, CHECKS_READ = 1000000, LOOKUPS_SEARCHED = 20000 };

static const char measured[] = "measured", exact[] = "exact";

bool remedy_has_counts(const struct remedy *remedy)
{
    return prose_are_texts_equal(remedy->status, measured) ||
           prose_are_texts_equal(remedy->status, exact);
}

bool remedy_is_shown(const struct remedy *remedy)
{
    return !remedy->rejected && remedy->effort < EFFORT_NORMAL;
}

/* ---- measured: trials ----------------------------------------------------------------
 *
 * `dyntrace try` runs the program under settings and stores each run in the trace as a trial. A
 * trial with the setting of a remedy measures this remedy. */

/* Return the setting of REMEDY without quotes, in the form that `run --set` gets from a shell. */
static const char *unquote_setting(struct why *why, const struct remedy *remedy)
{
    const char *from = remedy->setting;
    char *raw, *to;

    if (!from || *from != '\'')
        return from;
    raw = to = arena_print(&why->arena, "%s", from);
    while (*from) {
        bool escaped = !strncmp(from, "'\\''", 4);
        if (escaped)
            *to++ = '\'';
        else if (*from != '\'')
            *to++ = *from;
        from += escaped ? 4 : 1;
    }
    *to = 0;
    return raw;
}

/* Is WORD, which has BYTES bytes, one of the words of TEXT? */
static bool has_word(const char *text, const char *word, size_t bytes)
{
    for (size_t length; *text; text += length + strspn(text + length, " ")) {
        length = strcspn(text, " ");
        if (length == bytes && !strncmp(text, word, bytes))
            return true;
    }
    return false;
}

/* Do ONE and OTHER, two texts with settings, have the same settings, in whatever order? */
static bool is_same_setting(const char *one, const char *other)
{
    if (!strcmp(one, other))
        return true;
    if (strlen(one) != strlen(other))
        return false;
    for (size_t length; *one; one += length + strspn(one + length, " ")) {
        length = strcspn(one, " ");
        if (!has_word(other, one, length))
            return false;
    }
    return true;
}

/* Has TRIAL no counts for the function, although the program worked? This happens if it is a resume
 * function that does not exist in the trial's run: another function does its work. */
static bool has_trial_no_such_function(const struct trial *trial)
{
    return trial->works && trial->compiles == UNKNOWN;
}

/* Return in words why TRIAL has no counts for the function. */
static const char *explain_failure(struct why *why, const struct trial *trial)
{
    struct row_facts facts = {0};

    if (trial->error)
        return trial->error;
    if (trial->works)
        return "that run did not have this resume function";
    fact_text(&facts, "values_same", trial->values_same);
    fact_text(&facts, "difference", trial->note ? strchr(trial->note, ':') : NULL);
    return why_fill_template(why, "pages/why/trial_failed", &facts);
}

/* Does TRIAL differ from BASELINE only in the output of the program, and has it fewer eager
 * calls or compiles? The output may contain a number that the setting is meant to change, such
 * as a count of graphs. */
static bool differs_only_in_output(const struct trial *trial, const struct trial *baseline)
{
    bool ended = !trial->error && !prose_are_texts_equal(trial->values_same, "different");
    bool wrote_else = !trial->works && trial->output_same == 0;

    if (!ended || !wrote_else)
        return false;
    if (trial->eager == baseline->eager)
        return trial->compiles < baseline->compiles;
    /* UNKNOWN: the baseline had at least one eager call */
    if (baseline->eager == UNKNOWN)
        return !trial->eager;
    return trial->eager != UNKNOWN && trial->eager < baseline->eager;
}

/* Return in words what happened less often in TRIAL than in BASELINE. */
static const char *explain_gain(struct why *why, const struct trial *trial,
                                const struct trial *baseline)
{
    struct row_facts facts = {0};

    fact_integer(&facts, "compiles", trial->compiles);
    fact_integer(&facts, "compiles_before", baseline->compiles);
    fact_integer(&facts, "eager", trial->eager);
    fact_integer(&facts, "eager_before", baseline->eager);
    return why_fill_template(why, "pages/why/spared", &facts);
}

/* Does TRIAL prove that its settings are no remedy, because the program ended in another way or had
 * other results than in BASELINE? A trial that was stopped proves nothing, and neither does one
 * with settings that this version of torch does not have. If calls fail without the remedy, the
 * program must behave in another way with it, so that proves nothing either. */
static bool does_trial_disprove_remedy(const struct why *why, const struct trial *trial,
                                       const struct trial *baseline)
{
    bool ended_alike =
        trial->exit_code == baseline->exit_code && trial->exit_signal == baseline->exit_signal;
    bool stopped = trial->error && !strncmp(trial->error, "stopped after ", 14);

    if (why_count_calls(why, OUTCOME_CALLBACK_ERROR) || stopped)
        return false;
    return !trial->error || (!ended_alike && trial->compiles != UNKNOWN);
}

static void set_measured_counts(struct why *why, struct remedy *remedy, const struct trial *trial,
                                const struct trial *baseline)
{
    bool has_figures = trial->works && !has_trial_no_such_function(trial);

    remedy->trial = trial->trial_id;
    remedy->trial_error = has_figures ? NULL : explain_failure(why, trial);
    remedy->rejected = !trial->works && does_trial_disprove_remedy(why, trial, baseline);
    if (remedy->rejected && differs_only_in_output(trial, baseline))
        remedy->other_output = explain_gain(why, trial, baseline);
    if (!has_figures)
        return;
    remedy->status = measured;
    remedy->gain = trial->gain;
    remedy->compiles = baseline->compiles;
    remedy->eager = baseline->eager;
    remedy->breaks = baseline->breaks;
    remedy->measured_compiles = trial->compiles;
    remedy->measured_eager = trial->eager;
    remedy->measured_breaks = trial->breaks;
}

/* Is the gain of TRIAL due to the remedy R alone? It is if R was measured, its setting is one of
 * the trial's, and its gain was at least as large. */
static bool does_remedy_explain_trial(const struct remedy *r, const struct trial *trial)
{
    if (!r->setting || !r->gain)
        return false;
    if (!prose_are_texts_equal(r->status, measured))
        return false;
    if (!has_word(trial->setting, r->setting, strlen(r->setting)))
        return false;
    if (r->measured_eager != trial->eager)
        return false;
    return r->measured_compiles <= trial->compiles;
}

/* Is TRIAL, which has several settings, needless because one of them alone did as much? */
static bool is_trial_needless(const struct why *why, const struct trial *trial)
{
    for (size_t i = 0; i < why->remedies.count; i++)
        if (does_remedy_explain_trial(&why->remedies.at[i], trial))
            return true;
    return false;
}

/* Add a remedy for the settings of TRIAL if they helped. The caller has checked that no other
 * remedy has the same settings. */
static void add_remedy_of_trial(struct why *why, const struct trial *trial,
                                const struct trial *baseline)
{
    const struct remedy_case cases[] = {{.is = "tried", .more = trial->setting}, {0}};
    const struct remedy_facts facts = {
        .torch = why->torch.number, .cases = cases, .cause.dimension = -1};
    struct remedy *remedy = trial->gain ? remedy_add(why, ON_TRIED, &facts, NULL) : NULL;

    if (!remedy)
        return;
    remedy->setting = trial->setting;
    set_measured_counts(why, remedy, trial, baseline);
}

/* Set the measured counts of each remedy for which the trace has a trial. If there are several
 * trials of a remedy, the last one is taken. */
static void measure_remedies(struct why *why)
{
    struct trials trials = {0};

    trials_read(why->db, &why->arena, why->code.ids, &trials);
    for (size_t i = 0; i < trials.count; i++) {
        const struct trial *trial = &trials.at[i];
        const struct trial *baseline = trials_find_baseline(&trials, trial);
        bool found = false;
        if (trial->baseline || !baseline)
            continue;
        list_each(remedy, &why->remedies) {
            const char *setting = unquote_setting(why, remedy);
            if (!setting || !is_same_setting(setting, trial->setting))
                continue;
            remedy->status = NULL;
            set_measured_counts(why, remedy, trial, baseline);
            found = true;
        }
        if (!found && !is_trial_needless(why, trial))
            add_remedy_of_trial(why, trial, baseline);
    }
    list_free(&trials);
}

/* ---- exact: what-ifs -----------------------------------------------------------------
 *
 * The recorded calls of the function are simulated under another setting, as `replay --what-if`
 * does. The setting depends on the cause: it makes a size dynamic, drops another guard (if the
 * guard is known), or raises a limit.
 *
 * The result is exact if the what-if predicts each call with certainty and has the same effect as
 * the remedy. Otherwise the remedy gets no figures. A what-if reads all lookups of the trace, so it
 * is not run on a long trace unless the user asks for it (why --what-if). */

/* Does the what-if of the remedy R predict fewer eager calls, or as many eager calls and
 * fewer compiles? */
static bool has_predicted_gain(const struct remedy *r)
{
    if (r->predicted_eager != r->eager)
        return r->predicted_eager < r->eager;
    return r->predicted_compiles < r->compiles;
}

static void set_predicted_counts(struct whatif *whatif, const bool *codes, struct remedy *remedy)
{
    struct whatif_knobs knobs = {.codes = codes};
    struct whatif_result result = {0};
    struct remedy sum = *remedy;
    bool known = true;
    bool any = false;
    bool complete;

    if (whatif_read_setting(&knobs, remedy->what_if))
        whatif_run(whatif, &knobs, &result);
    sum.compiles = sum.predicted_compiles = sum.eager = sum.predicted_eager = 0;
    sum.undecided = sum.unrecorded = sum.gone = 0;
    list_each(f, &result.functions) {
        if (!codes[f->code])
            continue;
        any = true;
        known = known && whatif_is_exact(f);
        sum.compiles += f->recorded.compiles;
        sum.predicted_compiles += f->predicted.compiles;
        sum.eager += f->recorded.eager;
        sum.predicted_eager += f->predicted.eager;
        sum.undecided += f->undecided;
        sum.unrecorded += f->unrecorded;
        sum.gone += f->gone;
    }
    remedy->undecided = any ? sum.undecided : UNKNOWN;
    remedy->unrecorded = any ? sum.unrecorded : UNKNOWN;
    known = any && known && !result.uncertain;
    complete = !sum.undecided && !sum.unrecorded;
    if (known && complete) {
        *remedy = sum;
        remedy->status = exact;
        remedy->gain = has_predicted_gain(remedy);
    }
    whatif_result_free(&result);
    whatif_knobs_free(&knobs);
}

/* ---- the order of remedies ----------------------------------------------- */

/* Return the number of eager calls with the remedy R. If a measurement did not count them, return
 * INT64_MAX, which puts R last. */
static int64_t count_eager_with(const struct remedy *r)
{
    if (r->measured_compiles == UNKNOWN)
        return r->predicted_eager;
    return r->measured_eager == UNKNOWN ? INT64_MAX : r->measured_eager;
}

static int64_t count_compiles_with(const struct remedy *r)
{
    return r->measured_compiles == UNKNOWN ? r->predicted_compiles : r->measured_compiles;
}

/* Compare two remedies for sorting: by the eager calls that are left with each, then
 * by the compiles. */
static int compare_results(const struct remedy *a, const struct remedy *b)
{
    int order = list_compare_numbers(count_eager_with(a), count_eager_with(b));

    return order ? order : list_compare_numbers(count_compiles_with(a), count_compiles_with(b));
}

enum remedy_rank {
    RANK_FAILS, /* calls fail without the remedy */
    RANK_MEASURED,
    RANK_EXACT,
    RANK_PROVEN,
    RANK_OTHER,
    RANK_PUT_OFF,
    RANK_NO_GAIN, /* the remedy certainly has no gain */
    RANK_NORMAL,
    RANK_REJECTED,
};

static enum remedy_rank rank_remedy(const struct remedy *r)
{
    if (r->rejected)
        return RANK_REJECTED;
    if (r->effort >= EFFORT_NORMAL)
        return RANK_NORMAL;
    if (r->fails)
        return RANK_FAILS;
    if (remedy_has_counts(r) && !r->gain)
        return RANK_NO_GAIN;
    if (r->effort == EFFORT_PUT_OFF)
        return RANK_PUT_OFF;
    if (r->gain)
        return prose_are_texts_equal(r->status, measured) ? RANK_MEASURED : RANK_EXACT;
    return r->proven ? RANK_PROVEN : RANK_OTHER;
}

static int compare_remedies(const void *a, const void *b)
{
    const struct remedy *x = a;
    const struct remedy *y = b;
    enum remedy_rank rank = rank_remedy(x);
    int order = (int)rank - (int)rank_remedy(y);
    bool has_gain = rank == RANK_MEASURED || rank == RANK_EXACT;

    if (!order && has_gain)
        order = compare_results(x, y);
    if (!order)
        order = list_compare_numbers(x->effort, y->effort);
    return order ? order : list_compare_numbers(x->place, y->place);
}

/* ---- remedies that consist of several settings --------------------------- */

/* Is BEST, a combination of settings, needless? It is if another remedy does as much, or if it has
 * a setting that does something else than the remedy for the same cause (`refused`). */
static bool is_best_needless(const struct why *why, const struct remedy *best)
{
    if (!prose_are_texts_equal(best->status, exact) || !best->gain)
        return true;
    for (const struct remedy *r = why->remedies.at; r < best; r++) {
        if (r->refused && strstr(best->what_if, r->refused))
            return true;
        if (remedy_has_counts(r) && compare_results(r, best) <= 0)
            return true;
    }
    return false;
}

/* Add the settings that `replay --what-if best` finds as a remedy, unless another remedy
 * alone does as much. */
static void add_best_whatif_settings(struct why *why, struct replay *replay, struct whatif *whatif,
                                     const bool *codes)
{
    const struct remedy_facts facts = {.torch = why->torch.number, .cause.dimension = -1};
    const char *function =
        arena_print(&why->arena, "%s:%" PRId64, why->code.filename, why->code.first_line);
    FILE *nowhere = fopen("/dev/null", "w");
    struct whatif_answer answer = {0};
    struct remedy *best;
    char *settings = "";
    char *limit;

    if (nowhere &&
        whatif_answer_typed(&(struct whatif_asked){.db = why->db,
                                                   .replay = replay,
                                                   .settings = (const char *const[]){"best"},
                                                   .count = 1,
                                                   .function = function,
                                                   .out = nowhere},
                            &answer))
        settings = arena_print(&why->arena, "%s", answer.knobs.text ? answer.knobs.text : "");
    /* Remove recompile_limit from the settings if no call of this function reached a limit, because
     * a higher limit helps only other functions then. */
    if (!why_count_calls(why, OUTCOME_LIMIT) && (limit = strstr(settings, "recompile_limit=")))
        limit[-(limit > settings)] = 0;
    /* remedy_add() puts this remedy behind all others */
    best = *settings ? remedy_add(why, ON_BEST, &facts, NULL) : NULL;
    if (best) {
        size_t place = (size_t)(best - why->remedies.at);
        best->place = place;
        best->what_if = settings;
        best->effort = EFFORT_LINE;
        set_predicted_counts(whatif, codes, best);
        if (is_best_needless(why, best)) {
            why->remedies.count--;
            memmove(best, best + 1, (why->remedies.count - place) * sizeof *best);
        }
    }
    whatif_answer_free(&answer);
    if (nowhere)
        fclose(nowhere);
}

/* ---- computing the gain of all remedies ---------------------------------- */

static void predict_remedies(struct why *why)
{
    struct replay *replay = NULL;
    struct whatif *whatif = NULL;
    bool *codes = NULL;
    bool any = false;
    bool searched, has_path;
    int64_t lookups;

    for (size_t i = 0; i < why->remedies.count; i++)
        any = any || why->remedies.at[i].what_if;
    /* Ids count up from 1, so there are at most as many rows as the greatest id. */
    lookups = any ? db_integer(why->db, 0, "SELECT MAX(lookup_id) FROM lookup") : 0;
    if (!lookups)
        return;
    why->long_trace =
        !why->force_whatif &&
        (lookups > LOOKUPS_READ ||
         db_integer(why->db, 0, "SELECT MAX(guard_check_id) FROM guard_check") > CHECKS_READ);
    if (why->long_trace)
        return;
    replay = replay_open(why->db, true);
    whatif = replay ? whatif_open(why->db, replay) : NULL;
    codes = whatif ? replay_mark_codes(replay, why->code.ids) : NULL;
    for (size_t i = 0; codes && i < why->remedies.count; i++) {
        struct remedy *remedy = &why->remedies.at[i];
        bool is_open = !remedy->status && !remedy->rejected;
        if (remedy->what_if && is_open)
            set_predicted_counts(whatif, codes, remedy);
    }
    has_path = strchr(why->code.filename, '/');
    searched = has_path && (why->force_whatif || lookups <= LOOKUPS_SEARCHED);
    if (codes && searched)
        add_best_whatif_settings(why, replay, whatif, codes);
    free(codes);
    whatif_free(whatif);
    replay_free(replay);
}

/* Return the status of a remedy whose gain is not known. */
static const char *choose_plain_status(enum remedy_effort effort)
{
    switch (effort) {
    case EFFORT_NORMAL:
        return "normal";
    case EFFORT_UNGUARDED:
        return "not guarded";
    default:
        return "not measured";
    }
}

void why_predict_remedies(struct why *why)
{
    measure_remedies(why);
    for (size_t i = 0; i < why->remedies.count; i++)
        why->remedies.at[i].place = i;
    predict_remedies(why);
    list_each(remedy, &why->remedies) {
        if (!remedy->status)
            remedy->status = choose_plain_status(remedy->effort);
    }
    list_sort(&why->remedies, compare_remedies);
}
