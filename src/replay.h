/* replay.h -- the recorded decisions of a trace in order, and the caches as they stood at each.
 *
 * Runs in: the viewer.
 *
 *     struct replay *r = replay_open(db, REPLAY_CHECKS);
 *     for (size_t at = 0; at < r->event_count; at++)       either way, from anywhere
 *         if (r->events[at].kind == REPLAY_LOOKUP)
 *             replay_state(r, r->events[at].index, &state);
 *     replay_free(r);
 *
 * What is replayed are recorded decisions, not the program: a lookup is found,
 * it is not made again. All lookups are held in memory, some 60 bytes each;
 * frames, which are far more, stay in the file.
 *
 *     lookups   by lookup_id          \
 *     order     the same by time       > indices, 32 bits
 *     caches    a process's entries for a code object, its lookups by time
 *     events    lookups, compiles, breaks and deaths by time
 *
 * The order of a cache's entries follows from when each was last touched: it is
 * put in front when it is born and at each hit. So the state at a lookup is found
 * by walking back over its cache's lookups up to a checkpoint, whichever way one
 * came from. A forked process begins with the cache of its parent as it stood. */
#ifndef DYNTRACE_REPLAY_H
#define DYNTRACE_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vocabulary.h"

struct db;

#define REPLAY_NONE UINT32_MAX /* no such thing, or the trace does not know it */
#define REPLAY_NEVER INT64_MAX

enum replay_kind { REPLAY_LOOKUP, REPLAY_COMPILE, REPLAY_BREAK, REPLAY_DEATH, REPLAY_KINDS };

/* Outcomes are numbers of enum outcome (vocabulary.h), or this. */
enum { REPLAY_OUTCOME_UNKNOWN = 255 };

enum { CHECK_UNKNOWN = CHECK_RESULTS }; /* a word that is no result's */

struct replay_check {
    uint32_t entry : 28;    /* index, or REPLAY_CHECK_NONE */
    uint32_t result : 3;    /* enum check_result */
    uint32_t bad_guard : 1; /* the guard that failed is not one of the entry's, or it ran more than the entry has */
};
enum { REPLAY_CHECK_NONE = (1 << 28) - 1 };

struct replay_lookup {
    int64_t id, start_ns, end_ns;
    uint32_t cache, thread; /* indices; thread may be REPLAY_NONE */
    uint32_t entry;         /* hit: the one that fitted, compiled: the one made; or REPLAY_NONE */
    uint32_t checks;        /* the first of its checks */
    uint16_t check_count;
    uint16_t checked;       /* entries_checked as recorded */
    uint8_t outcome;
    bool observed;          /* which entries were tried is not known */
    bool named;             /* it names an entry, which the trace may lack */
    bool misplaced;         /* its checks' positions are not 0, 1, 2 ... */
};

struct replay_entry {
    int64_t id, born_ns, died_ns, region; /* died_ns REPLAY_NEVER: alive; region -1: the common one */
    int64_t compile_id, guards;
    uint32_t code;          /* index */
    uint32_t process;       /* in which it was made */
    bool pinned;            /* loaded, not compiled: tried before all others and never moved */
    bool shared;            /* forked processes have it too: its death may be another's */
    bool reset;             /* its death took it out of the list */
    bool insertion;         /* see replay_process */
};

struct replay_code { int64_t id, marked_ns; }; /* marked_ns: since when it is not compiled again, or REPLAY_NEVER */

struct replay_thread { int64_t id; uint32_t process; };

struct replay_process {
    int64_t id, start_ns, lost_ns; /* lost_ns: since when events are missing, or REPLAY_NEVER */
    int64_t first_fork_ns, last_fork_ns; /* of its children; REPLAY_NEVER and 0: none */
    uint32_t parent;
    bool torch;
    bool floats_later;      /* 2.6, or one up to 2.12: with dynamic=True, too, 2.6 takes a float for a constant at first */
    bool insertion;         /* verify found: its entries stay where they were put, as torch can be told */
};

struct replay_cache { /* of a code object, in a process */
    uint32_t code, process, parent; /* parent: the cache of the process that forked, or REPLAY_NONE */
    uint32_t *lookups;      /* borrowed: indices by time */
    uint32_t count;
    uint32_t *entries;      /* borrowed: indices by birth; also those of the parent's that were there at the fork */
    uint32_t entry_count;
};

struct replay_compile { int64_t id, start_ns, end_ns; uint32_t code, thread, entry; uint8_t recompile; };
struct replay_break { int64_t id; uint32_t compile; };
struct replay_event { int64_t at_ns; uint32_t index; uint32_t kind; };

/* Row id -> index. While the n-th key put in is FIRST + n, with value n, no table is asked. */
struct replay_map { int64_t *keys; uint32_t *values; size_t room, count; int64_t first; bool gaps; };

struct replay {
    struct db *db; /* borrowed */
    struct replay_lookup *lookups;
    struct replay_check *checks;
    uint32_t *order, *ranks; /* lookups by time; the place of each in its cache */
    struct replay_entry *entries;
    struct replay_code *codes;
    struct replay_thread *threads;
    struct replay_process *processes;
    struct replay_cache *caches;
    struct replay_compile *compiles;
    struct replay_break *breaks;
    struct replay_event *events;
    uint32_t *cache_lookups, *cache_entries;
    size_t lookup_count, check_count, entry_count, code_count, thread_count, process_count, cache_count, compile_count,
        break_count, event_count;
    int64_t orphans;         /* checks of lookups that are not there */
    int64_t first_ns, last_ns;
    bool whole;              /* checks were loaded */
    struct replay_map entry_ids, code_ids, thread_ids, process_ids, cache_ids, compile_ids;
    uint32_t **marks;        /* by cache: see replay.c */
    /* With REPLAY_TIMES, else NULL: */
    int64_t *signatures;     /* by lookup: row id, or -1 */
    int64_t *failed;         /* by check: the guard that failed, or -1 */
    struct replay_times { int64_t ns[2], count[2]; } *times; /* by entry: of checks that failed, that passed */
};

enum {
    REPLAY_CHECKS = 1,       /* load what each lookup tried */
    REPLAY_TIMES = 2,        /* and how long that took, which guards failed, and what the inputs of misses were like */
};

/* All of DB's decisions. NULL: it was said why not. replay_free ends it. */
struct replay *replay_open(struct db *db, int flags);
void replay_free(struct replay *replay);

/* The index of the lookup with this row id, or REPLAY_NONE. */
uint32_t replay_lookup_at(const struct replay *replay, int64_t lookup_id);

/* The place of ENTRY among CACHE's entries, which are sorted by birth; entry_count when it is none of them. */
uint32_t replay_place(const struct replay *replay, const struct replay_cache *cache, uint32_t entry);

static inline uint64_t replay_hash(uint64_t key)
{
    key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u; /* keys are often two small numbers, in both halves */
    return key >> 32 ^ key;
}

uint32_t replay_map_get(const struct replay_map *map, int64_t key);

/* The first event at AT_NS or later; event_count when there is none. */
size_t replay_seek(const struct replay *replay, int64_t at_ns);
/* The event that is KIND's INDEX. */
size_t replay_event_of(const struct replay *replay, enum replay_kind kind, uint32_t index);

/* A cache as it stood just before a moment. Living entries come first, as they would be tried, if regions are left
 * aside; dead ones last. */
struct replay_slot {
    uint32_t entry;
    bool dead;
    uint32_t hits;           /* so far */
    int64_t last_hit_ns;     /* or -1 */
    int64_t touched;         /* order: greater is tried earlier */
};
struct replay_state {
    struct replay_slot *slots; /* owned; replay_state_free, or used again */
    size_t count, room;
};

/* The cache that lookup LOOKUP asked, as it found it. False: no memory. */
bool replay_state_at(const struct replay *replay, uint32_t lookup, struct replay_state *state);
/* Cache CACHE as it stood at AT_NS, after all that had happened by then. */
bool replay_state_when(const struct replay *replay, uint32_t cache, int64_t at_ns, struct replay_state *state);
void replay_state_free(struct replay_state *state);

/* ---- trace/replay/verify.c ------------------------------------------------------- */

enum replay_fault {
    FAULT_NONE, FAULT_OUTCOME, FAULT_NO_ENTRY, FAULT_OTHER_CODE, FAULT_UNBORN, FAULT_DEAD, FAULT_TWICE, FAULT_REGION,
    FAULT_ORDER, FAULT_UNTRIED, FAULT_PASSED, FAULT_NO_PASS, FAULT_OTHER_PASSED, FAULT_AFTER_END, FAULT_NO_ERROR,
    FAULT_ERROR, FAULT_COUNT,
    FAULT_GUARD, FAULT_POSITION, FAULT_RESULT, FAULT_NOT_NEW, FAULT_KINDS,
};

struct replay_finding {
    uint32_t lookup, entry, wanted; /* indices; entry: of which it is told; wanted: that was to be tried there */
    enum replay_fault fault;
};

struct replay_verdict {
    struct replay_finding *findings; /* owned: those that do not follow, by time */
    size_t count, room;
    int64_t lookups;     /* all */
    int64_t whole;       /* re-decided from everything that DESIGN 7 asks */
    int64_t observed;    /* in part: which entries were tried is not known */
    int64_t before;      /* in part: ran an entry from before the recording */
    int64_t unsure;      /* did not follow, but lookups on other threads, a fork or a loss can be why */
    int64_t orphans;     /* checks without a lookup */
    int64_t insertion;   /* processes whose entries stay where they were put */
    int64_t misses, by_mark, by_limit, by_false; /* limit and run_only: explained by a mark, a limit, neither */
};

/* Re-decide every lookup. False: no memory. The caller ends it with replay_verdict_free. */
bool replay_verify(struct replay *replay, struct replay_verdict *verdict);
void replay_verdict_free(struct replay_verdict *verdict);
const char *replay_fault_words(enum replay_fault fault);

#endif
