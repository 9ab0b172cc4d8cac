/* trace/why/why.h -- the facts about a function for `dyntrace why`, and what follows from them.
 *
 *     struct why why = {.db = db_open(path)};
 *     if (find_code(why.db, name, &why.code, ...) == FIND_ONE) {
 *         why_gather_facts(&why);
 *         why_add_remedies(&why);
 *         why_predict_remedies(&why);
 *         ... unless db_has_failed(why.db), everything below is filled in
 *     }
 *     why_free(&why);
 *
 * gather.c reads the facts, follow.c and remedies.c draw conclusions, outcome.c adds the gain of
 * each remedy. cmd/why/page.c prints everything for people, fields.c for programs. */
#ifndef DYNTRACE_WHY_H
#define DYNTRACE_WHY_H

#include "trace/counts.h"
#include "trace/find_code.h"
#include "trace/profile.h"
#include "trace/prose.h"
#include "trace/remedy.h"
#include "trace/template.h"

enum {
    WHY_WIDTH = 70, /* the most bytes that are printed of a value */
};

#define UNKNOWN FACT_UNKNOWN /* stands for NULL in members where NULL does not mean 0 */

/* ---- the facts about a function ------------------------------------------ */

/* Each fact is a struct. A macro lists the first members of the struct, each as F(struct, kind,
 * member). Such a member is called like its column in schemas/why.sql and its key in JSON. Other
 * members are not written to JSON. Texts may be NULL. */
enum field_kind {
    INTEGER, /* an integer; NULL is read as 0 */
    ID,      /* an id; NULL is read as 0, and JSON has null for 0 */
    MAYBE,   /* an integer; NULL is read as UNKNOWN */
    PLACE,   /* an index; NULL is read as -1 */
    TEXT,
    TRUTH,   /* a bool */
    OUTCOME, /* an enum outcome; JSON prints its word */
    JSON,    /* a text that is JSON */
    PARENT,  /* a struct parent; JSON prints an object or null */
};

#define TYPE_INTEGER int64_t
#define TYPE_ID int64_t
#define TYPE_MAYBE int64_t
#define TYPE_TEXT const char *
#define TYPE_TRUTH bool
#define TYPE_OUTCOME int64_t
#define TYPE_JSON const char *
#define TYPE_PARENT struct parent
#define MEMBER(type, kind, member) TYPE_##kind member;

/* The number of calls with one outcome. There is a struct for each outcome, and one for the hits
 * of each entry. */
/* clang-format off */
#define CALL_FIELDS(F)                              \
    F(call_class, OUTCOME, outcome)                 \
    F(call_class, ID, cache_entry_id)               \
    F(call_class, TEXT, entry)                      \
    F(call_class, INTEGER, calls)                   \
    F(call_class, INTEGER, first_ns)                \
    F(call_class, INTEGER, last_ns)                 \
    F(call_class, INTEGER, lookup_ns)
/* clang-format on */
struct call_class {
    CALL_FIELDS(MEMBER)
};

/* clang-format off */
#define ENTRY_FIELDS(F)                                                                            \
    F(entry, INTEGER, cache_entry_id)                                                              \
    F(entry, INTEGER, code_id)                                                                     \
    F(entry, TEXT, label)                                                                          \
    F(entry, TEXT, backend)                                                                        \
    F(entry, MAYBE, region_id) /* UNKNOWN: calls of all regions use the entry */                   \
    F(entry, INTEGER, guards)                                                                      \
    F(entry, INTEGER, compile_id)                                                                  \
    F(entry, INTEGER, born_ns)                                                                     \
    F(entry, INTEGER, tried)                                                                       \
    F(entry, INTEGER, hit)                                                                         \
    F(entry, ID, last_hit_ns)                                                                      \
    F(entry, INTEGER, backend_mismatches)                                                          \
    F(entry, INTEGER, few_guards) /* hits that ran only guards that tell entries apart */          \
    F(entry, MAYBE, died_ns) /* UNKNOWN: the entry has not died */                                 \
    F(entry, TEXT, death_cause)
/* clang-format on */
struct entry {
    ENTRY_FIELDS(MEMBER)
    int64_t check_ns;
};

/* The recompile that another recompile followed from: that of a caller or, for a resume function,
 * that of the function before the graph break. compile_id is 0 if no such recompile is known. */
/* clang-format off */
#define PARENT_FIELDS(F)                         \
    F(parent, ID, compile_id)                    \
    F(parent, TEXT, function)                    \
    F(parent, TEXT, label)                       \
    F(parent, TEXT, source)                      \
    F(parent, TEXT, expected)                    \
    F(parent, TEXT, actual)
/* clang-format on */
struct parent {
    PARENT_FIELDS(MEMBER)
};

/* clang-format off */
#define COMPILE_FIELDS(F)                                                             \
    F(compile, INTEGER, compile_id)                                                   \
    F(compile, INTEGER, code_id)                                                      \
    F(compile, MAYBE, rank)                                                           \
    F(compile, TEXT, label)                                                           \
    F(compile, INTEGER, start_ns)                                                     \
    F(compile, MAYBE, end_ns)                                                         \
    F(compile, TEXT, outcome)                                                         \
    F(compile, ID, cache_entry_id)                                                    \
    F(compile, TRUTH, recompile) /* as in the view `compiles` */                      \
    F(compile, TEXT, reason)                                                          \
    F(compile, TEXT, user_stack)                                                      \
    F(compile, MAYBE, sticky) /* 1: the function will not be compiled again */                  \
    F(compile, TEXT, inputs)                                                          \
    F(compile, PARENT, follows_from)
/* clang-format on */
struct compile {
    COMPILE_FIELDS(MEMBER)
    size_t first_cause, causes;
};

/* The members of struct cause in trace/cause.h. */
/* clang-format off */
#define CAUSE_FIELDS(F)           \
    F(cause, INTEGER, compile_id) \
    F(cause, ID, cache_entry_id)  \
    F(cause, TEXT, older_entry)   \
    F(cause, ID, guard_id)        \
    F(cause, TEXT, kind)          \
    F(cause, TEXT, source)        \
    F(cause, TEXT, aspect)        \
    F(cause, PLACE, dimension)    \
    F(cause, TEXT, expected)      \
    F(cause, TEXT, actual)        \
    F(cause, TEXT, text)          \
    F(cause, TEXT, user_stack)    \
    F(cause, TEXT, how)           \
    F(cause, TRUTH, decided)      \
    F(cause, TRUTH, whole)
/* clang-format on */

/* What happened at one guard source: the values that made its guards fail, and so
 * forced recompiles. */
/* clang-format off */
#define HISTORY_FIELDS(F)                                            \
    F(history, INTEGER, code_id)                                     \
    F(history, TEXT, kind)                                           \
    F(history, TEXT, source)                                         \
    F(history, TEXT, aspect) /* what of the source: "size[0]" */     \
    F(history, INTEGER, recompiles)                                  \
    F(history, INTEGER, refused) /* compiles that gave no code */    \
    F(history, JSON, values)
/* clang-format on */
struct history {
    HISTORY_FIELDS(MEMBER)
    const char *text;          /* the values, shortened: "16, 18" */
    int64_t place;             /* index in why->causes of the last cause with this source */
    const struct cause *cause; /* borrowed: the cause at `place` */
    /* sums over all code objects that have an equal history, because several processes ran the
     * function. is_repeated: the list has an equal history before this one */
    int64_t all_recompiles, all_refused;
    bool is_repeated;
};

/* The checks that failed because of one guard with one result, and their number. There is no guard
 * if the entry belonged to another backend. */
/* clang-format off */
#define GUARD_FIELDS(F)               \
    F(failed_guard, TEXT, result)     \
    F(failed_guard, INTEGER, times)   \
    F(failed_guard, TEXT, entry)      \
    F(failed_guard, TEXT, kind)       \
    F(failed_guard, TEXT, source)     \
    F(failed_guard, TEXT, expression) \
    F(failed_guard, TEXT, user_stack)
/* clang-format on */
struct failed_guard {
    GUARD_FIELDS(MEMBER)
    int64_t guard_id, entry_id;
};

/* The graph breaks at one line for one reason. The rest_ members count the calls and compiles of
 * the resume function, which runs the rest of the function after the break. */
/* clang-format off */
#define BREAK_FIELDS(F)                     \
    F(graph_break, INTEGER, line)           \
    F(graph_break, INTEGER, times)          \
    F(graph_break, TEXT, reason)            \
    F(graph_break, TEXT, user_stack)        \
    F(graph_break, TEXT, made_by)           \
    F(graph_break, TEXT, resume_function)   \
    F(graph_break, MAYBE, rest_calls)       \
    F(graph_break, MAYBE, rest_eager_calls) \
    F(graph_break, MAYBE, rest_compiles)    \
    F(graph_break, MAYBE, rest_entries)     \
    F(graph_break, MAYBE, rest_recompiles)  \
    F(graph_break, MAYBE, rest_compile_ns)  \
    F(graph_break, MAYBE, rest_lookup_ns)
/* clang-format on */
struct graph_break {
    BREAK_FIELDS(MEMBER)
};

/* A phase of torch's compile, with its times summed over all compiles of the function. */
/* clang-format off */
#define PHASE_FIELDS(F)                                                     \
    F(phase, TEXT, name)                                                    \
    F(phase, INTEGER, times)                                                \
    F(phase, INTEGER, total_ns)                                             \
    F(phase, INTEGER, self_ns)                                              \
    F(phase, TRUTH, late) /* true for a backward graph, compiled later */
/* clang-format on */
struct phase {
    PHASE_FIELDS(MEMBER)
};

/* A mark that the compiler or the program set on the function. Calls after the mark
 * are not compiled. */
/* clang-format off */
#define MARK_FIELDS(F)              \
    F(mark, INTEGER, at_ns)         \
    F(mark, TEXT, action)           \
    F(mark, TEXT, recursive_action) \
    F(mark, MAYBE, region_id)       \
    F(mark, TEXT, reason)
/* clang-format on */
struct mark {
    MARK_FIELDS(MEMBER)
};

/* How many compiles one rank of a distributed job had. */
/* clang-format off */
#define RANK_FIELDS(F)         \
    F(rank, INTEGER, rank)     \
    F(rank, INTEGER, compiles)
/* clang-format on */
struct rank {
    RANK_FIELDS(MEMBER)
};

/* The inputs of calls that ran as Python, because no entry fitted and no new one could be made. */
/* clang-format off */
#define INPUT_FIELDS(F)      \
    F(input, INTEGER, calls) \
    F(input, TEXT, inputs)
/* clang-format on */
struct input {
    INPUT_FIELDS(MEMBER)
};

/* A remedy. Its status is one of
 *
 *     measured:      a trial of the trace had this setting;
 *     exact:         a what-if predicted each recorded call with certainty;
 *     not measured:  neither a trial nor a what-if gives counts;
 *     normal:        there is nothing to change;
 *     not guarded:   no guard checks the value, so compiled code does not notice a change.
 *
 * If a remedy is measured or exact, `compiles`, `eager` and `breaks` are the counts without the
 * remedy, as recorded or as in the trial's baseline. The members predicted_* or measured_* are
 * the counts with the remedy. All other counts are UNKNOWN. */
/* clang-format off */
#define REMEDY_FIELDS(F)                                                                      \
    F(remedy, TEXT, name)                                                                     \
    F(remedy, TEXT, because) /* the evidence */                                               \
    F(remedy, TEXT, text)                                                                     \
    F(remedy, TEXT, setting) /* `run --set` setting with this effect */                       \
    F(remedy, TEXT, status)                                                                   \
    F(remedy, MAYBE, trial)                                                                   \
    F(remedy, TEXT, trial_error) /* why the program failed in the trial, or NULL */           \
    F(remedy, TRUTH, rejected) /* the trial proves that this is no remedy */                  \
    F(remedy, TEXT, what_if) /* what-if setting with the same effect */                       \
    F(remedy, MAYBE, compiles)                                                                \
    F(remedy, MAYBE, predicted_compiles)                                                      \
    F(remedy, MAYBE, measured_compiles)                                                       \
    F(remedy, MAYBE, eager)                                                                   \
    F(remedy, MAYBE, predicted_eager)                                                         \
    F(remedy, MAYBE, measured_eager)                                                          \
    F(remedy, MAYBE, breaks)                                                                  \
    F(remedy, MAYBE, measured_breaks)                                                         \
    F(remedy, MAYBE, undecided) /* calls that the what-if cannot predict */                   \
    F(remedy, MAYBE, unrecorded) /* calls that the trace does not have */                     \
    F(remedy, MAYBE, gone) /* calls that would have no lookup any more */
/* clang-format on */
struct remedy {
    REMEDY_FIELDS(MEMBER)
    const struct remedy_rule *rule;
    enum remedy_effort effort;
    enum remedy_effect effect;
    bool fails; /* without the remedy, calls fail */
    bool proven;
    bool gain; /* measured or exact, with fewer eager calls or compiles */
    /* the trial's gain in words, if the trial was rejected only because the program's output
     * differed; otherwise NULL */
    const char *other_output;
    /* a what-if setting against the same cause that does something else than the remedy; or NULL */
    const char *refused;
    size_t place; /* where the remedy stood in the list before it was sorted by gain */
};

/* A caller that has reached its limit, so that its callees are not compiled. To find such callers,
 * only some calls of the function are examined. */
/* clang-format off */
#define FORBIDDER_FIELDS(F)      \
    F(forbidder, TEXT, function) \
    F(forbidder, TEXT, reason)   \
    F(forbidder, INTEGER, calls)
/* clang-format on */
struct forbidder {
    FORBIDDER_FIELDS(MEMBER)
};

/* The estimated time of all guards of one kind. It is assumed that each guard of an entry takes
 * the same time. */
/* clang-format off */
#define COST_FIELDS(F)                   \
    F(guard_cost, TEXT, kind)            \
    F(guard_cost, INTEGER, guards)       \
    F(guard_cost, INTEGER, estimated_ns)
/* clang-format on */
struct guard_cost {
    COST_FIELDS(MEMBER)
};

/* A statement that was run on the trace, for --sql. */
/* clang-format off */
#define ASK_FIELDS(F)   \
    F(ask, TEXT, title) \
    F(ask, TEXT, sql)
/* clang-format on */
struct ask {
    ASK_FIELDS(MEMBER)
};

/* The oldest version of torch among the processes that ran the function, and how
 * dyntrace recorded it. */
/* clang-format off */
#define TORCH_FIELDS(F)                                               \
    F(torch_facts, TEXT, version)                                     \
    F(torch_facts, TEXT, mode) /* how dyntrace watched torch */          \
    F(torch_facts, TEXT, note) /* why the other mode was not used */
/* clang-format on */
/* How many versions and modes of torch the processes had. */
/* clang-format off */
#define TORCHES_FIELDS(F)                                                             \
    F(torch_facts, INTEGER, versions)                                                 \
    F(torch_facts, INTEGER, modes)                                                    \
    F(torch_facts, TRUTH, observed) /* some process ran in observe mode */
/* clang-format on */
struct torch_facts {
    TORCH_FIELDS(MEMBER)
    TORCHES_FIELDS(MEMBER)
    int number; /* torch_parse_version() of `version`, or 0 if there was no torch */
};

/* ---- all facts together, and the functions on them ----------------------- */

/* The lists of facts, each as L(member of struct why, struct, fields of the
 * struct, key in JSON). */
/* clang-format off */
#define WHY_LISTS(L)                                                                               \
    L(calls, call_class, CALL_FIELDS, "calls")                                                     \
    L(compiles, compile, COMPILE_FIELDS, "compiles")                                               \
    L(causes, cause, CAUSE_FIELDS, "causes")                                                       \
    L(histories, history, HISTORY_FIELDS, "histories")                                             \
    L(entries, entry, ENTRY_FIELDS, "entries")                                                     \
    L(guards, failed_guard, GUARD_FIELDS, "failed_guards")                                         \
    L(inputs, input, INPUT_FIELDS, "eager_inputs")                                                 \
    L(breaks, graph_break, BREAK_FIELDS, "graph_breaks")                                           \
    L(phases, phase, PHASE_FIELDS, "phases") /* sorted by time, longest first */                   \
    L(marks, mark, MARK_FIELDS, "marks")                                                           \
    L(ranks, rank, RANK_FIELDS, "ranks")                                                           \
    L(remedies, remedy, REMEDY_FIELDS, "remedies")                                                 \
    L(asked, ask, ASK_FIELDS, "sql")                                                               \
    L(costs, guard_cost, COST_FIELDS, "guard_costs")                                               \
    /* costs are sorted by time, longest first; none are read unless guards are slow */            \
    L(forbidders, forbidder, FORBIDDER_FIELDS, "forbidden_by")
/* clang-format on */

/* Facts of which there is one each. share_ns / share_of_ns is the share of guards in the time of a
 * call. If the trace has frames of hits, these two are medians: of the lookups of hits, and of
 * whole calls. Otherwise they are sums over all calls, without the time of compiles. */
/* clang-format off */
#define WHY_FIELDS(F)                                                                       \
    F(why, MAYBE, all_calls) /* number of calls */                                          \
    F(why, MAYBE, total_ns) /* time in the function */                                      \
    F(why, MAYBE, self_ns) /* time outside its callees */                                   \
    F(why, MAYBE, raised) /* calls that an exception ended */                               \
    F(why, INTEGER, skipped) /* calls after torch gave up the function */                   \
    F(why, TEXT, disabled_by)                                                               \
    F(why, INTEGER, disabled_line) /* line of the graph break */                            \
    F(why, TEXT, disabled_words) /* reason of this graph break, or NULL */                  \
    F(why, TEXT, limit_reason)                                                              \
    F(why, TEXT, raised_reason)                                                             \
    F(why, TEXT, declined_reason) /* why compiles gave no code */                           \
    F(why, TEXT, caches) /* results of torch's caches, or NULL */                           \
    F(why, MAYBE, warm_ns) /* time of compiles whose code came from a cache */              \
    F(why, MAYBE, warm_backend_ns) /* part of warm_ns in the backend */                     \
    F(why, MAYBE, saved_ns) /* time that the caches saved, as torch reports it */           \
    F(why, TEXT, self_class) /* classes of `self`, if the function wraps others */          \
    F(why, INTEGER, share_ns) /* time of guards in the measured calls */                    \
    F(why, INTEGER, share_of_ns) /* time of the measured calls */                           \
    F(why, INTEGER, different_inputs) /* distinct inputs of all misses, or 0 */             \
    F(why, INTEGER, unknown_inputs)
/* clang-format on */

/* Members that templates of pages use. JSON does not have them. */
/* clang-format off */
#define SUM_FIELDS(F)             \
    F(why, TRUTH, missing)        \
    F(why, INTEGER, made)         \
    F(why, INTEGER, recompiles)   \
    F(why, INTEGER, undecided)    \
    F(why, INTEGER, timed_checks) \
    F(why, INTEGER, check_ns)     \
    F(why, INTEGER, guard_ns)     \
    F(why, INTEGER, guard_calls)  \
    F(why, TRUTH, guards_slow)    \
    F(why, TRUTH, share_of_hits)  \
    F(why, TRUTH, long_trace)
/* clang-format on */

struct why {
    struct db *db; /* owned */
    struct found_code code;
    struct arena arena; /* owns all texts of this struct */
    struct progress progress;
#define LIST_MEMBER(member, type, fields, key) LIST(struct type) member;
    WHY_LISTS(LIST_MEMBER)
    WHY_FIELDS(MEMBER)
    struct torch_facts torch;
    bool with_sql;
    bool force_whatif;  /* simulate what-ifs even on a long trace */
    bool long_trace;    /* no what-if was simulated, because it would take too long */
    bool share_of_hits; /* share_ns was measured only on calls that hit */
    bool guards_slow;
    bool missing;                  /* the recording has lost events */
    int64_t guard_ns, guard_calls; /* guard_ns: the time that guards took in `guard_calls` calls */
    /* the sums from which `check --function` computes its shares, too (docs/answers.md) */
    struct call_sums shared;
    int64_t made;       /* number of compiles that produced code */
    int64_t recompiles; /* number of compiles of a function that had been compiled before */
    int64_t undecided;  /* number of calls without a lookup whose outcome is not known */
    /* number of guard checks, and the total time of those that were timed */
    int64_t checks, check_ns;
    int64_t timed_checks; /* how many guard checks were timed */
    /* no compiler handled the function; `profile` then has the durations of its calls, if
     * frames are stored */
    bool is_plain;
    struct profile profile;
};

/* why_gather_facts() reads the lists of facts. why_add_remedies() adds histories and remedies.
 * why_predict_remedies() adds the gain of each remedy and sorts them. All three report errors
 * themselves; db_has_failed() tells whether there was one. */
void why_gather_facts(struct why *why);
void why_add_remedies(struct why *why);
void why_predict_remedies(struct why *why);

/* Free everything that WHY owns. Some of its members may not have been set yet. */
void why_free(struct why *why);

/* Print WHY as JSON. */
void why_write_as_json(struct why *why, FILE *out);

/* Return the number of calls with OUTCOME. */
int64_t why_count_calls(const struct why *why, enum outcome outcome);

/* Return how much of a call's time guards take, in percent, or -1 if that is not known. */
double why_share_of_guards(const struct why *why);

/* Do pages list REMEDY? They do not if a trial rejected it, or if there is nothing to change. */
bool remedy_is_shown(const struct remedy *remedy);

/* Has REMEDY counts, measured or exact? */
bool remedy_has_counts(const struct remedy *remedy);

/* Did COMPILE produce code? */
bool compile_has_code(const struct compile *compile);

/* Return the recorded reason of COMPILE, if it tells why no code was produced. Otherwise
 * return NULL: torch's reasons "first call" and "no entry fitted" tell only why the
 * compiler was called. */
const char *compile_find_refusal(const struct why *why, const struct compile *compile);

/* Did the compiler skip or decline the function? If so, a mark without a reason is the compiler's.
 * If not, the program asked for the mark. */
bool why_was_skipped(const struct why *why);

/* Return the entry with this id, borrowed, or NULL. */
struct entry *why_find_entry(const struct why *why, int64_t cache_entry_id);

/* Return an older entry that was alive when COMPILE happened, but that its lookup did not try,
 * because the new entry belongs to another region. Returns NULL if there is none. */
const struct entry *why_find_other_region(const struct why *why, const struct compile *compile);

/* Return the guard source of CAUSE and the property that changed, in the compiler's words: "L['x']
 * size[0]". Pages have cause_subject_expression() instead. */
const char *why_cause_name(struct why *why, const struct cause *cause);

/* ---- for the files of this folder only ----------------------------------- */

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
};
#define FIELD(type, kind, member) {#member, kind, offsetof(struct type, member)},
#define FIELDS(name, list) const struct field name[] = {list(FIELD){0}};
#define LIST_FIELDS(member, type, fields, key) extern const struct field member##_fields[];
WHY_LISTS(LIST_FIELDS)
extern const struct field parent_fields[], torch_fields[], torches_fields[], single_fields[],
    sum_fields[];

/* Read the histories of the causes that have been gathered. */
void histories_read(struct why *why);

/* Add remedies for FACTS, one for each rule that fits. COMPLETE is called for each of them, unless
 * it is NULL. Returns the remedy that was added last, or NULL. */
struct remedy *remedy_add(struct why *why, enum remedy_on on, const struct remedy_facts *facts,
                          void (*complete)(struct why *why, struct remedy *remedy,
                                           const struct remedy_facts *facts));

/* Add the members of ITEM that FIELDS lists to FACTS. */
void why_add_facts(struct row_facts *facts, const struct field *fields, const void *item);

/* Return the text that the template NAME, such as "pages/why/because_cause", prints for FACTS. The
 * text lives as long as WHY. */
const char *why_fill_template(struct why *why, const char *name, const struct row_facts *facts);

/* Read the current row of QUERY into the members of ITEM that FIELDS lists. */
void why_read_row(struct why *why, struct query *query, const struct field *fields, void *item);

/* Copy the text OWNED, and free it. The copy lives as long as WHY. Returns NULL if
 * OWNED is NULL. */
const char *why_keep_text(struct why *why, char *owned);

#endif
