/* replay.h -- the recorded decisions of a trace in order, and the caches as they stood at each.
 *
 *     struct replay *r = replay_open(db, true);
 *     for (size_t at = 0; at < r->events.count; at++)      in any direction, from any event
 *         if (r->events.at[at].kind == REPLAY_LOOKUP)
 *             replay_get_state_at_lookup(r, r->events.at[at].index, &state);
 *     replay_free(r);
 *
 * Replay only reads the recorded decisions: it runs no lookup and no code of the program again. All
 * lookups are in memory, some 70 bytes each. Frames, which are far more numerous, stay in the file.
 *
 *     lookups   by lookup_id          \
 *     order     the same by time       > indices, 32 bits
 *     caches    a process's entries for a code object, its lookups by time
 *     events    lookups, compiles, breaks and deaths by time
 *
 * A lookup searches a cache from the most recently used entry to the least: a birth or a hit moves
 * an entry to the front. So the state at a lookup follows from the cache's births, deaths and hits
 * before the lookup. A forked process starts with a copy of its parent's cache. */
#ifndef DYNTRACE_REPLAY_H
#define DYNTRACE_REPLAY_H

#include "lib/list.h"
#include "trace/replay/cache_order.h"
#include "vocabulary.h"

struct db;

#define REPLAY_NONE UINT32_MAX /* index of a row that does not exist or is not in the trace */
#define REPLAY_NEVER INT64_MAX

enum replay_kind { REPLAY_LOOKUP, REPLAY_COMPILE, REPLAY_BREAK, REPLAY_DEATH, REPLAY_KINDS };

/* The outcome of a lookup whose outcome in the trace is not in enum outcome; outcome_to_word()
 * prints it as "?". */
enum { REPLAY_OUTCOME_UNKNOWN = 255 };

struct replay_check {
    uint32_t entry : 27; /* index of the entry, or REPLAY_CHECK_NONE */
    uint32_t result : 3; /* enum check_result; CHECK_RESULTS if the trace has an unknown word */
    /* the row names a guard of another entry, or more guards than the entry has */
    uint32_t bad_guard : 1;
    /* the check's position is not one more than that of the check before it, or not 0 for the
     * lookup's first check */
    uint32_t misplaced : 1;
    /* row id of the failed guard; 0 if none failed; REPLAY_IN_PART if the check passed without
     * running all guards */
    int64_t failed;
};
enum { REPLAY_IN_PART = -1 };
/* value of replay_check.entry if the trace lacks the entry. Replay loads no trace with that number
 * of entries */
enum { REPLAY_CHECK_NONE = (1 << 27) - 1 };

struct replay_lookup {
    int64_t id, start_ns, end_ns;
    /* row id of the call's inputs in `signature`; 0 if they are not known */
    int64_t signature;
    uint32_t cache, thread; /* indices; `thread` may be REPLAY_NONE */
    uint32_t entry;         /* index of the entry that was hit or compiled; or REPLAY_NONE */
    uint32_t checks;        /* index of the lookup's first check */
    uint16_t check_count;
    uint16_t checked; /* the column entries_checked of the lookup's row */
    uint8_t outcome;
    /* torch's own evaluator made the lookup, so it is unknown which entries it tried */
    bool observed;
    bool named; /* the lookup's row names an entry, which may be missing from the trace */
};

struct replay_entry {
    /* died_ns: REPLAY_NEVER while the entry lives. region: torch's region (isolate_recompiles)
     * whose lookups find the entry; all lookups find the entries of the common region, -1 */
    int64_t id, born_ns, died_ns, region;
    int64_t compile_id, guards;
    uint32_t code;    /* index */
    uint32_t process; /* index of the process in which the entry was made */
    bool pinned;      /* loaded from a precompiled file, not compiled here */
    /* Forked processes have a copy of the entry, so the recorded death may be the death of a
     * copy. */
    bool shared;
    bool reset; /* when the entry died, it was removed from the cache's list */
};

struct replay_code {
    /* marked_ns: from this time on the code is marked never to be compiled again; or
     * REPLAY_NEVER */
    int64_t id, marked_ns;
};

struct replay_thread {
    int64_t id;
    uint32_t process;
};

struct replay_process {
    /* lost_ns: from this time on events are missing; or REPLAY_NEVER */
    int64_t id, start_ns, lost_ns;
    /* times of the first and last fork of a child; REPLAY_NEVER and 0 if there is none */
    int64_t first_fork_ns, last_fork_ns;
    uint32_t parent;
    bool torch;
    /* set by replay_verify_lookups(): a hit does not move its entry to the front. Torch has such a
     * setting (ORDER_FIFO) */
    bool insertion;
};

struct replay_cache { /* the cache of a code object in a process */
    /* parent: the same code's cache in the process that this process was forked from, or
     * REPLAY_NONE */
    uint32_t code, process, parent;
    uint32_t *lookups; /* borrowed: indices of the cache's lookups, by time */
    uint32_t count;
    /* borrowed: indices of the cache's entries by birth and by death, including entries inherited
     * by fork */
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
    uint32_t *order; /* owned: indices of all lookups, by time */
    /* owned: the arrays that the caches' pointers point into */
    uint32_t *cache_lookups, *cache_entries, *cache_deaths;
    int64_t orphans; /* number of checks whose lookup is missing from the trace */
    int64_t last_ns;
    /* maps from the row ids of each table to indices in the lists above */
    struct map entry_ids, code_ids, thread_ids, process_ids, cache_ids, compile_ids;
    struct replay_times {
        int64_t ns[2], count[2];
        /* owned, an item for each entry: total time and number of its checks that failed ([0]) and
         * that passed ([1]); NULL if checks were not loaded */
    } * times;
};

/* Load all decisions of DB (trace/replay/load.c); if CHECKS, also the guard checks of each lookup.
 * Returns NULL after reporting an error. The caller frees the result with replay_free. */
struct replay *replay_open(struct db *db, bool checks);
void replay_free(struct replay *replay);

/* Return the index for row id ID in MAP, a map of struct replay, or REPLAY_NONE. */
static inline uint32_t replay_index_of_id(const struct map *map, int64_t id)
{
    const int64_t *index = map_get(map, id);

    return index ? (uint32_t)*index : REPLAY_NONE;
}

/* Return the key in cache_ids of the cache of CODE in PROCESS, which are indices. */
static inline int64_t replay_cache_key(uint32_t code, uint32_t process)
{
    return (int64_t)((uint64_t)code << 32 | process);
}

/* Return an array with a bool for each code object: true if its row id is in IDS, a list as in
 * found_code.ids. The caller frees the array. */
bool *replay_mark_codes(const struct replay *replay, const char *ids);

/* Return the index of the lookup with this row id, or REPLAY_NONE. */
uint32_t replay_find_lookup(const struct replay *replay, int64_t lookup_id);

/* Does CACHE belong to a process that used torch? */
static inline bool replay_uses_torch(const struct replay *replay, uint32_t cache)
{
    uint32_t process = replay->caches.at[cache].process;

    return process != REPLAY_NONE && replay->processes.at[process].torch;
}

/* Comparison functions for qsort_r and qsort. They order indices of ENTRIES by code and birth,
 * indices of LOOKUPS by time, and events by time. */
int replay_compare_births(const void *a, const void *b, void *entries);
int replay_compare_times(const void *a, const void *b, void *lookups);
int replay_compare_moments(const void *a, const void *b);

/* Return the position of ENTRY in CACHE's entries, which are sorted by birth; entry_count if it is
 * not there. */
uint32_t replay_position_of_entry(const struct replay *replay, const struct replay_cache *cache,
                                  uint32_t entry);

/* Return the index of the first event at AT_NS or later; events.count if there is none. */
size_t replay_find_event_at_time(const struct replay *replay, int64_t at_ns);
/* Return the index of the event for item INDEX of KIND. */
size_t replay_find_event(const struct replay *replay, enum replay_kind kind, uint32_t index);

/* The row that an event is about, and the code, thread, process and entry of that row. */
struct replay_subject {
    int64_t id, at_ns;
    uint32_t code, thread, process; /* indices in struct replay, or REPLAY_NONE */
    /* index of the entry that was hit, was made, or died; or REPLAY_NONE */
    uint32_t entry;
};
struct replay_subject replay_subject_of_event(const struct replay *replay, enum replay_kind kind,
                                              uint32_t index);

/* Return the name that screens show for an entry: its label "0/1", or "#7" if it has no label; for
 * code: "f (app/f.py:3)". Both take an index. The caller frees the name, which is NULL for
 * REPLAY_NONE. */
char *replay_make_entry_name(const struct replay *replay, uint32_t entry);
char *replay_make_code_name(const struct replay *replay, uint32_t code);

/* An entry of a cache at a chosen time. Living entries come first, in the order in which a lookup
 * of the common region tries them; dead entries come last. */
struct replay_slot {
    uint32_t entry;
    bool dead;
    uint32_t hits;       /* number of the entry's hits before the chosen time */
    int64_t last_hit_ns; /* time of the entry's last hit; -1 if it was never hit */
};
struct replay_state {
    /* owned: free it with list_free, or pass the struct again to reuse the memory */
    struct replay_slot *at;
    size_t count, room;
};

/* Store in STATE the cache that lookup LOOKUP searched, as it was just before the lookup. */
void replay_get_state_at_lookup(const struct replay *replay, uint32_t lookup,
                                struct replay_state *state);
/* Store in STATE cache CACHE as it was at AT_NS, after all events at AT_NS. */
void replay_get_state_at_time(const struct replay *replay, uint32_t cache, int64_t at_ns,
                              struct replay_state *state);

/* The living entries of a cache, updated while replay moves forward in time. */
struct replay_live {
    const struct replay *r;           /* borrowed */
    const struct replay_cache *cache; /* borrowed */
    struct cache_order order;         /* owned: freed by cache_order_free */
    uint32_t born, died;              /* how many births and deaths have been applied */
};

/* Apply all births and deaths before NOW. The death of an entry that several processes share is
 * ignored, because it may have happened in another process. */
void replay_live_advance_to(struct replay_live *live, int64_t now);
/* Apply a hit of ENTRY, if it is alive. */
void replay_live_move_hit(struct replay_live *live, uint32_t entry);

/* ---- check lookups against the rules of the cache (trace/replay/verify.c) ---- */

struct replay_finding {
    const struct replay_lookup *lookup; /* borrowed */
    const char *why;                    /* the broken rule: "it tried an entry twice" */
    /* entry: the entry that the finding is about; wanted: the entry that should have been tried
     * instead. Both are indices or REPLAY_NONE */
    uint32_t entry, wanted;
};

struct replay_verdict {
    LIST(struct replay_finding) findings; /* owned: lookups that contradict the rules, by time */
    int64_t lookups;                      /* how many lookups there are */
    /* number of lookups that were checked against all rules of the cache */
    int64_t whole;
    /* number of lookups checked only in part, because the entries that they tried are not known */
    int64_t observed;
    /* number of lookups checked only in part, because they ran an entry made before the
     * recording */
    int64_t before;
    /* number of lookups that contradict the rules, perhaps only because of another thread's lookup,
     * a fork or a loss */
    int64_t unsure;
    int64_t orphans;   /* number of guard checks without a lookup */
    int64_t insertion; /* number of processes in which a hit does not move its entry to the front */
    /* misses: number of misses that were not compiled (outcomes limit and run_only). Of these,
     * by_mark are explained by a mark of the code, by_limit by a limit, and by_false by nothing in
     * the trace. */
    int64_t misses, by_mark, by_limit, by_false;
};

/* Check every lookup against the rules of the cache. The replay must have been opened with its
 * checks. The caller frees the findings (list_free). */
void replay_verify_lookups(struct replay *replay, struct replay_verdict *verdict);

#endif
