/* trace/why/why.h -- the facts about a function for `dyntrace why`, and their conclusions.
 *
 *     struct why why = {.db = db_open(path)};
 *     if (find_code(why.db, name, &why.code, ...) == FIND_ONE) {
 *         why_gather(&why);
 *         why_follow(&why);
 *         why_whatif(&why);
 *         ... unless db_failed(why.db), everything below is filled in
 *     }
 *     why_free(&why);
 *
 * gather.c reads the facts, follow.c and remedies.c draw the conclusions, outcome.c adds the gain
 * of each remedy. cmd/why/page.c prints all of it for people, fields.c for programs. */
#ifndef DYNTRACE_WHY_H
#define DYNTRACE_WHY_H

#include "trace/counts.h"
#include "trace/find_code.h"
#include "trace/profile.h"
#include "trace/prose.h"
#include "trace/remedy.h"
#include "trace/template.h"

enum {
    WHY_WIDTH = 70, /* longest value printed, in bytes */
};

#define UNKNOWN FACT_UNKNOWN /* an integer that is NULL in the trace, where that differs from 0 */

/* ---- facts --------------------------------------------------------------- */

/* A fact is a struct whose first members are a list of rows F(struct, kind, member). A member has
 * the name of its column in schemas/why.sql and of its key in JSON. JSON has no other member of the
 * struct. Texts may be NULL. */
enum field_kind {
    INTEGER, /* NULL reads as 0 */
    ID,      /* NULL reads as 0, and JSON prints 0 as null */
    MAYBE,   /* NULL is UNKNOWN */
    PLACE,   /* NULL is -1 */
    TEXT,
    TRUTH,   /* bool */
    OUTCOME, /* enum outcome; JSON prints its word */
    JSON,    /* text that is JSON */
    PARENT,  /* struct parent; JSON prints an object or null */
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

/* Calls that were decided alike; hits: that ran the same entry. */
/* clang-format off */
#define CALL_FIELDS(F)                              \
    F(call_class, OUTCOME, outcome)                 \
    F(call_class, ID, cache_entry_id) /* of hits */ \
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
    F(entry, MAYBE, region_id) /* UNKNOWN: every region sees it */                                 \
    F(entry, INTEGER, guards)                                                                      \
    F(entry, INTEGER, compile_id)                                                                  \
    F(entry, INTEGER, born_ns)                                                                     \
    F(entry, INTEGER, tried)                                                                       \
    F(entry, INTEGER, hit)                                                                         \
    F(entry, ID, last_hit_ns)                                                                      \
    F(entry, INTEGER, backend_mismatches)                                                          \
    F(entry, INTEGER, few_guards) /* hits for which only the guards that tell entries apart ran */ \
    F(entry, MAYBE, died_ns) /* UNKNOWN: it is alive */                                            \
    F(entry, TEXT, death_cause)
/* clang-format on */
struct entry {
    ENTRY_FIELDS(MEMBER)
    int64_t check_ns;
};

/* The recompile that caused another recompile: of a caller, or of the function before the graph
 * break. */
/* clang-format off */
#define PARENT_FIELDS(F)                         \
    F(parent, ID, compile_id) /* 0: not known */ \
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
    F(compile, TRUTH, recompile) /* view `compiles` */                                \
    F(compile, TEXT, reason)                                                          \
    F(compile, TEXT, user_stack)                                                      \
    F(compile, MAYBE, sticky) /* 1: never compiled again; 0: may be compiled again */ \
    F(compile, TEXT, inputs)                                                          \
    F(compile, PARENT, follows_from)
/* clang-format on */
struct compile {
    COMPILE_FIELDS(MEMBER)
    size_t first_cause, causes;
};

/* The members of struct cause, trace/cause.h. */
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

/* The values of a source that decided recompiles. */
/* clang-format off */
#define HISTORY_FIELDS(F)                                            \
    F(history, INTEGER, code_id)                                     \
    F(history, TEXT, kind)                                           \
    F(history, TEXT, source)                                         \
    F(history, TEXT, aspect) /* the part of the source: "size[0]" */ \
    F(history, INTEGER, recompiles)                                  \
    F(history, INTEGER, refused) /* attempts that made no code */    \
    F(history, JSON, values)
/* clang-format on */
struct history {
    HISTORY_FIELDS(MEMBER)
    const char *text;          /* the values in short: "16, 18" */
    int64_t place;             /* in `causes`, of the last one that decided: */
    const struct cause *cause; /* borrowed */
};

/* Guards that ended checks. */
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

/* Graph breaks that are alike, and the figures of their resume function. */
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

/* A phase of all compiles together. */
/* clang-format off */
#define PHASE_FIELDS(F)                                                     \
    F(phase, TEXT, name)                                                    \
    F(phase, INTEGER, times)                                                \
    F(phase, INTEGER, total_ns)                                             \
    F(phase, INTEGER, self_ns)                                              \
    F(phase, TRUTH, late) /* compiled on its own, as backward graphs are */
/* clang-format on */
struct phase {
    PHASE_FIELDS(MEMBER)
};

/* From a mark on, calls are not compiled. */
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

/* Compiles in a rank of a distributed job. */
/* clang-format off */
#define RANK_FIELDS(F)         \
    F(rank, INTEGER, rank)     \
    F(rank, INTEGER, compiles)
/* clang-format on */
struct rank {
    RANK_FIELDS(MEMBER)
};

/* Inputs of calls that found no entry and ran as Python. */
/* clang-format off */
#define INPUT_FIELDS(F)      \
    F(input, INTEGER, calls) \
    F(input, TEXT, inputs)
/* clang-format on */
struct input {
    INPUT_FIELDS(MEMBER)
};

/* A remedy's status:
 *
 *     measured       a trial of the trace had this setting
 *     exact          a what-if decided each call again, from recorded facts
 *     not measured
 *     normal         there is nothing to change
 *     not guarded    compiled code does not notice a change
 *
 * A remedy that is measured or exact has its figures: compiles, eager and breaks without the
 * remedy, as recorded or in the trial's baseline, and the predicted_ or measured_ ones with it.
 * Other figures are UNKNOWN. */
/* clang-format off */
#define REMEDY_FIELDS(F)                                                                      \
    F(remedy, TEXT, name)                                                                     \
    F(remedy, TEXT, because) /* the evidence */                                               \
    F(remedy, TEXT, text)                                                                     \
    F(remedy, TEXT, setting) /* of `run --set`, does the same without an edit; or NULL */     \
    F(remedy, TEXT, status)                                                                   \
    F(remedy, MAYBE, trial)                                                                   \
    F(remedy, TEXT, trial_error) /* why the trial with this setting does not work, or NULL */ \
    F(remedy, TRUTH, rejected) /* the trial shows that this is no remedy */                   \
    F(remedy, TEXT, what_if) /* does exactly what the remedy does; or NULL */                 \
    F(remedy, MAYBE, compiles)                                                                \
    F(remedy, MAYBE, predicted_compiles)                                                      \
    F(remedy, MAYBE, measured_compiles)                                                       \
    F(remedy, MAYBE, eager)                                                                   \
    F(remedy, MAYBE, predicted_eager)                                                         \
    F(remedy, MAYBE, measured_eager)                                                          \
    F(remedy, MAYBE, breaks)                                                                  \
    F(remedy, MAYBE, measured_breaks)                                                         \
    F(remedy, MAYBE, undecided) /* calls that the what-if cannot decide */                    \
    F(remedy, MAYBE, unrecorded) /* calls that the trace has nothing of */                    \
    F(remedy, MAYBE, gone) /* calls that would not be looked up any more */
/* clang-format on */
struct remedy {
    REMEDY_FIELDS(MEMBER)
    const struct remedy_rule *rule;
    enum remedy_effort effort;
    enum remedy_effect effect;
    bool fails; /* calls fail without it */
    bool proven;
    bool gain; /* measured or exact: fewer eager calls or compiles */
    /* Rejected only because the program wrote something else: the gain of the trial; or NULL. */
    const char *other_output;
    /* settings against the same cause that do something else than this remedy, or NULL */
    const char *refused;
    size_t place; /* in the list before the figures were known */
};

/* A caller that keeps calls from being compiled; only some calls are examined. */
/* clang-format off */
#define FORBIDDER_FIELDS(F)      \
    F(forbidder, TEXT, function) \
    F(forbidder, TEXT, reason)   \
    F(forbidder, INTEGER, calls)
/* clang-format on */
struct forbidder {
    FORBIDDER_FIELDS(MEMBER)
};

/* The time of all guards of a kind, as if each guard of an entry took the same time. */
/* clang-format off */
#define COST_FIELDS(F)                   \
    F(guard_cost, TEXT, kind)            \
    F(guard_cost, INTEGER, guards)       \
    F(guard_cost, INTEGER, estimated_ns)
/* clang-format on */
struct guard_cost {
    COST_FIELDS(MEMBER)
};

/* A question that was put to the trace. */
/* clang-format off */
#define ASK_FIELDS(F)   \
    F(ask, TEXT, title) \
    F(ask, TEXT, sql)
/* clang-format on */
struct ask {
    ASK_FIELDS(MEMBER)
};

/* Of the process with the oldest version of torch. */
/* clang-format off */
#define TORCH_FIELDS(F)                                               \
    F(torch_facts, TEXT, version)                                     \
    F(torch_facts, TEXT, mode) /* how it was watched */               \
    F(torch_facts, TEXT, note) /* why it was not watched otherwise */
/* clang-format on */
/* Of all processes: the number of different versions and modes. */
/* clang-format off */
#define TORCHES_FIELDS(F)                                                             \
    F(torch_facts, INTEGER, versions)                                                 \
    F(torch_facts, INTEGER, modes)                                                    \
    F(torch_facts, TRUTH, observed) /* some process was only observed from outside */
/* clang-format on */
struct torch_facts {
    TORCH_FIELDS(MEMBER)
    TORCHES_FIELDS(MEMBER)
    int number; /* torch_version() of `version`; 0: no torch */
};

/* ---- all of it ----------------------------------------------------------- */

/* The lists of facts: L(member of struct why, struct, its fields, key in JSON). */
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
    L(phases, phase, PHASE_FIELDS, "phases") /* most expensive first */                            \
    L(marks, mark, MARK_FIELDS, "marks")                                                           \
    L(ranks, rank, RANK_FIELDS, "ranks")                                                           \
    L(remedies, remedy, REMEDY_FIELDS, "remedies")                                                 \
    L(asked, ask, ASK_FIELDS, "sql")                                                               \
    L(costs, guard_cost, COST_FIELDS, "guard_costs")                                               \
    /* most expensive first; of slow guards only */                                                \
    L(forbidders, forbidder, FORBIDDER_FIELDS, "forbidden_by")
/* clang-format on */

/* Single facts, from statements with one row. */
/* clang-format off */
#define WHY_FIELDS(F)                                                                       \
    F(why, MAYBE, all_calls) /* of the function, looked up or not */                        \
    F(why, MAYBE, total_ns) /* time in the function */                                      \
    F(why, MAYBE, self_ns) /* the part of it that is not its callees' */                    \
    F(why, MAYBE, raised) /* calls that an exception ended */                               \
    F(why, INTEGER, skipped) /* calls after torch gave the function up */                   \
    F(why, TEXT, disabled_by)                                                               \
    F(why, INTEGER, disabled_line) /* of the graph break that names this function */        \
    F(why, TEXT, disabled_words) /* the reason of that graph break, or NULL */              \
    F(why, TEXT, limit_reason)                                                              \
    F(why, TEXT, raised_reason)                                                             \
    F(why, TEXT, declined_reason) /* of compiles that made no code */                       \
    F(why, TEXT, caches) /* results of torch's caches for its compiles, or NULL */          \
    F(why, MAYBE, warm_ns) /* time of the compiles that a cache served */                   \
    F(why, MAYBE, warm_backend_ns) /* the part of it in the backend */                      \
    F(why, MAYBE, saved_ns) /* time that the caches saved, by torch's own figure */         \
    F(why, TEXT, self_class) /* of a generic wrapper: the class of `self` */                \
    F(why, INTEGER, share_ns) /* lookup of a usual call that hit, or guards of all calls */ \
    F(why, INTEGER, share_of_ns) /* all of that call; or all calls without compiles */      \
    F(why, INTEGER, different_inputs) /* of all misses; 0: not known */                     \
    F(why, INTEGER, unknown_inputs)
/* clang-format on */

/* Members that only pages print; JSON has them elsewhere. */
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
    struct arena arena; /* all texts below */
    struct progress progress;
#define LIST_MEMBER(member, type, fields, key) LIST(struct type) member;
    WHY_LISTS(LIST_MEMBER)
    WHY_FIELDS(MEMBER)
    struct torch_facts torch;
    bool with_sql;
    bool force_whatif;  /* also on a long trace */
    bool long_trace;    /* what-ifs would take long: not answered */
    bool share_of_hits; /* share_ns is of calls that hit */
    bool guards_slow;
    bool missing;                  /* the recording lost events */
    int64_t guard_ns, guard_calls; /* time in guards over that many calls */
    /* of the calls that count in shares, as in `check --function`: docs/answers.md */
    struct call_sums shared;
    int64_t made;             /* compiles that made code */
    int64_t recompiles;       /* those for a function that had code already */
    int64_t undecided;        /* calls without a lookup whose outcome is not known */
    int64_t checks, check_ns; /* of guards; check_ns is of timed_checks of them */
    int64_t timed_checks;
    /* of a function that no compiler had to do with; without durations: no frames are stored */
    bool is_plain;
    struct profile profile;
};

/* Fill in the lists of facts; then histories and remedies; then the gain of each remedy, and their
 * order. db_failed(): the error has been reported. */
void why_gather(struct why *why);
void why_follow(struct why *why);
void why_whatif(struct why *why);

/* Frees all that WHY owns; it may be half filled. */
void why_free(struct why *why);

/* Print WHY as JSON. */
void why_json(struct why *why, FILE *out);

/* How many calls had this outcome. */
int64_t why_calls(const struct why *why, enum outcome outcome);

/* The time of guards in percent of a call; -1: not known. */
double why_guard_share(const struct why *why);

/* Do pages list REMEDY? Not if a trial rejected it, or if there is nothing to change. */
bool remedy_is_shown(const struct remedy *remedy);

/* Does REMEDY have figures that are certain? */
bool remedy_has_figures(const struct remedy *remedy);

/* Did COMPILE make code? */
bool compile_made(const struct compile *compile);

/* Why COMPILE made no code, or NULL. Some reasons only say why the compiler was called. */
const char *compile_refusal(const struct why *why, const struct compile *compile);

/* Did the compiler skip or decline the function? Then a mark without a reason is the compiler's
 * own; else the program asked for it. */
bool why_turned_away(const struct why *why);

/* The entry with this id, or NULL. */
struct entry *why_entry(const struct why *why, int64_t cache_entry_id);

/* An older live entry that the lookup before COMPILE did not try, because it belongs to another
 * region than the entry that COMPILE made; or NULL. */
const struct entry *why_other_region(const struct why *why, const struct compile *compile);

/* The source of CAUSE and the part of it, in the compiler's words: "L['x'] size[0]". Pages print
 * cause_called() instead. */
const char *cause_name(struct why *why, const struct cause *cause);

/* ---- between the parts --------------------------------------------------- */

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

void histories_make(struct why *why);

/* Add the remedies that the rules have for FACTS; MADE, or NULL, completes each. Returns the last
 * one that was added, or NULL. */
struct remedy *remedy_add(struct why *why, enum remedy_on on, const struct remedy_facts *facts,
                          void (*made)(struct why *why, struct remedy *remedy,
                                       const struct remedy_facts *facts));

/* Add the members of ITEM that FIELDS name to FACTS. */
void why_facts(struct row_facts *facts, const struct field *fields, const void *item);

/* FACTS printed by the template NAME, "pages/why/because_cause"; it lives as long as WHY. */
const char *why_words(struct why *why, const char *name, const struct row_facts *facts);

/* Read the current row of QUERY into the members of ITEM that FIELDS name. */
void why_row(struct why *why, struct query *query, const struct field *fields, void *item);

/* A copy of OWNED that lives as long as WHY; OWNED is freed. NULL for NULL. */
const char *why_keep(struct why *why, char *owned);

#endif
