/* replay.h -- the recorded decisions of a trace in order, and the caches as they stood at each.
 *
 *     struct replay *r = replay_open(db, true);
 *     for (size_t at = 0; at < r->events.count; at++)      either way, from anywhere
 *         if (r->events.at[at].kind == REPLAY_LOOKUP)
 *             replay_state_at(r, r->events.at[at].index, &state);
 *     replay_free(r);
 *
 * The recorded decisions are replayed, not the program: nothing is looked up or run again. All
 * lookups are in memory, some 70 bytes each; frames, far more numerous, stay in the file.
 *
 *     lookups   by lookup_id          \
 *     order     the same by time       > indices, 32 bits
 *     caches    a process's entries for a code object, its lookups by time
 *     events    lookups, compiles, breaks and deaths by time
 *
 * A cache's entries are in the order of their last use: birth or hit. So the state at any lookup is
 * found by a search in each entry's hits, forwards or backwards. A forked process starts with a
 * copy of its parent's cache. */
#ifndef DYNTRACE_REPLAY_H
#define DYNTRACE_REPLAY_H

#include "lib/list.h"
#include "trace/replay/cache_order.h"
#include "vocabulary.h"

struct db;

#define REPLAY_NONE UINT32_MAX /* none, or not in the trace */
#define REPLAY_NEVER INT64_MAX

enum replay_kind { REPLAY_LOOKUP, REPLAY_COMPILE, REPLAY_BREAK, REPLAY_DEATH, REPLAY_KINDS };

/* Outcomes are numbers of enum outcome, or this; outcome_word() has "?" for it. */
enum { REPLAY_OUTCOME_UNKNOWN = 255 };

struct replay_check {
    uint32_t entry : 27; /* index, or REPLAY_CHECK_NONE */
    uint32_t result : 3; /* enum check_result; CHECK_RESULTS: a word that is none */
    /* the guard that failed is not one of the entry's, or it ran more than the entry has */
    uint32_t bad_guard : 1;
    /* its position does not follow that of the check before it (0 for the first) */
    uint32_t misplaced : 1;
    /* row id of the guard that failed, 0: none, REPLAY_IN_PART: it passed, but not all ran */
    int64_t failed;
};
enum { REPLAY_IN_PART = -1 };
/* no trace has as many entries, or anything else: it is not read then */
enum { REPLAY_CHECK_NONE = (1 << 27) - 1 };

struct replay_lookup {
    int64_t id, start_ns, end_ns;
    int64_t signature;      /* row id; 0: what its inputs were like is not known */
    uint32_t cache, thread; /* indices; thread may be REPLAY_NONE */
    uint32_t entry;         /* the entry that was hit or compiled; or REPLAY_NONE */
    uint32_t checks;        /* the first of its checks */
    uint16_t check_count;
    uint16_t checked; /* entries_checked as recorded */
    uint8_t outcome;
    bool observed; /* which entries were tried is not known */
    bool named;    /* it names an entry, which the trace may lack */
};

struct replay_entry {
    /* died_ns REPLAY_NEVER: alive; region -1: the common one */
    int64_t id, born_ns, died_ns, region;
    int64_t compile_id, guards;
    uint32_t code;    /* index */
    uint32_t process; /* in which it was made */
    bool pinned;      /* precompiled: loaded, not compiled here */
    bool shared;      /* forked processes have it too: its death may be another's */
    bool reset;       /* its death took it out of the list */
};

struct replay_code {
    int64_t id, marked_ns; /* marked_ns: since when it is not compiled again, or REPLAY_NEVER */
};

struct replay_thread {
    int64_t id;
    uint32_t process;
};

struct replay_process {
    /* lost_ns: since when events are missing, or REPLAY_NEVER */
    int64_t id, start_ns, lost_ns;
    int64_t first_fork_ns, last_fork_ns; /* of its children; REPLAY_NEVER and 0: none */
    uint32_t parent;
    bool torch;
    /* verify found: hits do not move its entries (ORDER_FIFO), which torch can be set to */
    bool insertion;
};

struct replay_cache { /* of a code object, in a process */
    /* parent: the cache of the process that forked, or REPLAY_NONE */
    uint32_t code, process, parent;
    uint32_t *lookups; /* borrowed: indices by time */
    uint32_t count;
    /* borrowed: indices by birth, by death; including entries inherited by fork */
    uint32_t *entries, *deaths;
    uint32_t entry_count;
};

struct replay_compile {
    int64_t id, start_ns, end_ns;
    uint32_t code, thread, entry;
    bool recompile;
};

struct replay_break {
    int64_t id;
    uint32_t compile;
};

struct replay_event {
    int64_t at_ns;
    uint32_t index, kind;
};

struct replay {
    struct db *db; /* borrowed */
    LIST(struct replay_lookup) lookups;
    LIST(struct replay_check) checks;
    LIST(struct replay_entry) entries;
    LIST(struct replay_code) codes;
    LIST(struct replay_thread) threads;
    LIST(struct replay_process) processes;
    LIST(struct replay_cache) caches;
    LIST(struct replay_compile) compiles;
    LIST(struct replay_break) breaks;
    LIST(struct replay_event) events;
    uint32_t *order; /* owned: lookups by time */
    /* owned: the caches' lists point into it */
    uint32_t *cache_lookups, *cache_entries, *cache_deaths;
    int64_t orphans; /* checks of lookups that are not there */
    int64_t last_ns;
    /* row id -> index */
    struct map entry_ids, code_ids, thread_ids, process_ids, cache_ids, compile_ids;
    struct replay_times {
        int64_t ns[2], count[2];
        /* owned, by entry: of checks that failed, that passed; NULL where checks were not loaded */
    } * times;
};

/* All of DB's decisions (trace/replay/load.c); CHECKS: also what each lookup tried. NULL: the
 * error has been reported. replay_free ends it. */
struct replay *replay_open(struct db *db, bool checks);
void replay_free(struct replay *replay);

/* The index that MAP, one of a replay's, has for row id ID, or REPLAY_NONE. */
static inline uint32_t replay_index(const struct map *map, int64_t id)
{
    const int64_t *index = map_get(map, id);

    return index ? (uint32_t)*index : REPLAY_NONE;
}

/* The cache of CODE in PROCESS, both indices: its key in cache_ids. */
static inline int64_t replay_cache_key(uint32_t code, uint32_t process)
{
    return (int64_t)((uint64_t)code << 32 | process);
}

/* The codes of the function that IDS lists, as found_code's does, marked in a new array by index,
 * which the caller frees. */
bool *replay_codes(const struct replay *replay, const char *ids);

/* The index of the lookup with this row id, or REPLAY_NONE. */
uint32_t replay_lookup_at(const struct replay *replay, int64_t lookup_id);

/* Is the process of CACHE a torch program's? */
static inline bool replay_torch(const struct replay *replay, uint32_t cache)
{
    uint32_t process = replay->caches.at[cache].process;

    return process != REPLAY_NONE && replay->processes.at[process].torch;
}

/* In qsort_r and qsort: indices of ENTRIES by code and birth, of LOOKUPS by time, events by time.
 * */
int replay_by_birth(const void *a, const void *b, void *entries);
int replay_by_time(const void *a, const void *b, void *lookups);
int replay_by_moment(const void *a, const void *b);

/* The index of ENTRY among CACHE's entries, sorted by birth; entry_count: not found. */
uint32_t replay_place(const struct replay *replay, const struct replay_cache *cache,
                      uint32_t entry);

/* The first event at AT_NS or later; events.count when there is none. */
size_t replay_seek(const struct replay *replay, int64_t at_ns);
/* The event that is KIND's INDEX. */
size_t replay_event_of(const struct replay *replay, enum replay_kind kind, uint32_t index);

/* What an event is about: row id, code, thread, start. */
struct replay_subject {
    int64_t id, at_ns;
    uint32_t code, thread, process; /* indices, or REPLAY_NONE */
    uint32_t entry;                 /* that it ran, made, or that died; index, or REPLAY_NONE */
};
struct replay_subject replay_about(const struct replay *replay, enum replay_kind kind,
                                   uint32_t index);

/* "0/1" of an entry, "#7" where it has no label; "f (app/f.py:3)" of a code object. By index; the
 * caller frees them; NULL: there is none. */
char *replay_entry_name(const struct replay *replay, uint32_t entry);
char *replay_code_name(const struct replay *replay, uint32_t code);

/* A cache as it stood just before a moment. Living entries come first, as a lookup of the common
 * region tries them; dead ones last. */
struct replay_slot {
    uint32_t entry;
    bool dead;
    uint32_t hits;       /* so far */
    int64_t last_hit_ns; /* or -1 */
};
struct replay_state {
    struct replay_slot *at; /* owned: list_free, or used again */
    size_t count, room;
};

/* The cache of lookup LOOKUP, in its state before the lookup. */
void replay_state_at(const struct replay *replay, uint32_t lookup, struct replay_state *state);
/* Cache CACHE as it stood at AT_NS, after all that had happened by then. */
void replay_state_when(const struct replay *replay, uint32_t cache, int64_t at_ns,
                       struct replay_state *state);

/* The living entries of a cache while time goes on. */
struct replay_live {
    const struct replay *r;           /* borrowed */
    const struct replay_cache *cache; /* borrowed */
    struct cache_order order;         /* owned: cache_order_free */
    uint32_t born, died;              /* how many births and deaths are done */
};

/* All births and deaths before NOW. An entry that several processes have may have died in another
 * one: it stays. */
void replay_live_until(struct replay_live *live, int64_t now);
/* ENTRY, if it is alive, was hit. */
void replay_live_hit(struct replay_live *live, uint32_t entry);

/* ---- trace/replay/verify.c ----------------------------------------------- */

struct replay_finding {
    const struct replay_lookup *lookup; /* borrowed */
    const char *why;                    /* "it tried an entry twice" */
    /* indices or REPLAY_NONE: that it is about; that was to be tried there */
    uint32_t entry, wanted;
};

struct replay_verdict {
    LIST(struct replay_finding) findings; /* owned: inconsistent lookups, by time */
    int64_t lookups;                      /* all */
    int64_t whole;                        /* decided again from all that the rules depend on */
    int64_t observed;                     /* in part: which entries were tried is not known */
    int64_t before;                       /* in part: ran an entry from before the recording */
    /* did not follow, but other threads' lookups, a fork or a loss can be why */
    int64_t unsure;
    int64_t orphans;   /* checks without a lookup */
    int64_t insertion; /* processes in which hits move no entry */
    /* limit and run_only: explained by a mark, a limit, neither */
    int64_t misses, by_mark, by_limit, by_false;
};

/* Decide every lookup again; the checks were loaded. The caller frees the findings (list_free). */
void replay_verify(struct replay *replay, struct replay_verdict *verdict);

#endif
