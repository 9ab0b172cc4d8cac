/* ring.h -- the shared memory between a traced process and the collector.
 *
 * Runs in: the traced process (writes) and the collector (reads).
 *
 * `dyntrace run` makes one session directory, readable by its owner only. DYNTRACE_SESSION names it
 * (inject.h), and each process that opens it checks it (session_check.h):
 *
 *     session             struct session_file: what to record, which clock
 *     collector.lock      flock'ed by the collector as long as it lives
 *     PID-TICKS-N.ring    struct process_file: one per traced process image
 *     PID-TICKS-E.lost    empty: a process image that could not make one, errno E
 *     state               the collector's own, so that its death loses nothing
 *
 * A process's file is large from the start, and sparse; it is given out in extents. Memory is
 * reserved (MADV_POPULATE_WRITE) before it is touched, so that a full filesystem is an error code
 * and never SIGBUS; a ring's in steps, as its writer gets there for the first time:
 *
 *     0            struct process_file
 *     facts_off    struct facts  -> next chunk -> ...     facts.h: names of code objects
 *     ring_off[0]  struct ring, then its words            first thread
 *     ring_off[1]  struct ring, then its words            second thread ...
 *     nested       struct process_file                    a forked child's, and
 *                  its facts and rings                    all that it needs
 *
 * A child that may not create a file, or has no descriptor for it, has its extents in its parent's
 * file, which is mapped in it since the fork. Nested processes are a list: `nested` of the process
 * at 0 is the newest, `next_nested` the one before. Every offset is from the start of the file.
 *
 * One ring, one writer thread, one reader. Counters of words run free and are compared by
 * difference; a word's place is counter % words.
 *
 *        tail            head
 *         v               v
 *   ......[word][word][...]..........
 *   free   committed        free
 *
 *   A  producer stores words, then head   (release)
 *   B  collector loads head (acquire, matches A), then reads words
 *   C  collector is done with the words, then stores tail (release)
 *   D  producer loads tail (acquire, matches C) before it writes over them
 *
 * A stale tail is safe: it only under-reports free space. A stale head is safe: it only
 * under-reports words. A process that dies leaves the file; everything below head is whole.
 *
 * A word, high bits first:
 *
 *     ENTER   tag 3 | code id 21 | clock 40      tag 0 call, 1 resume, 2 throw,
 *                                                    3 inherited across fork
 *     EXIT    tag 3 | frame   21 | clock 40      tag 4 return, 5 yield, 6 raise
 *     CONTROL tag 3 | what 5 | words 16 | payload 40          tag 7
 *
 * `clock` is the low 40 bits of the session's clock; a CONTROL_EPOCH word follows any pause long
 * enough to make that ambiguous. `frame` is the low bits of a count of this ring's ENTERs: it names
 * the frame that ends, and so checks that both sides agree. A frame open at a crash is an ENTER
 * without an EXIT. */
#ifndef DYNTRACE_RING_H
#define DYNTRACE_RING_H

#include <stdatomic.h>

#include "facts.h"

enum {
    /* one more with each change of a shared struct, of FACTS, of RECORDER_PUTS or of a table: a
     * session that another build left behind is then not carried on by this one */
    RING_FORMAT = 11,
    RING_MAX = 2048,       /* rings in one process: threads alive at once */
    RING_MARGIN = 16,      /* words kept free, so that a control word always fits */
    RING_SMALLEST = 65536, /* bytes */
    RING_CLOCK_BITS = 40,
    RING_ID_BITS = 21,
    RING_LINE = 128,    /* two cache lines: the pair prefetcher fetches both */
    RING_HEADER = 4096, /* struct ring, padded to a page */
};
#define RING_SESSION_MAGIC "DYNSESS"
#define RING_PROCESS_MAGIC "DYNPROC"
#define RING_CLOCK_MASK ((UINT64_C(1) << RING_CLOCK_BITS) - 1)
#define RING_ID_MASK ((UINT64_C(1) << RING_ID_BITS) - 1)
/* A pause of half the clock's range needs an epoch; a quarter leaves room. */
#define RING_EPOCH_TICKS (UINT64_C(1) << (RING_CLOCK_BITS - 2))

enum ring_tag {
    RING_CALL,
    RING_RESUME,
    RING_THROW,
    RING_INHERITED,
    RING_RETURN,
    RING_YIELD,
    RING_RAISE,
    RING_CONTROL,
};

enum ring_control {
    CONTROL_EPOCH,  /* +1 word: the full clock */
    CONTROL_THREAD, /* +1 word: the clock; payload: the FACT_THREAD that writes from here on */
    CONTROL_ENTER,  /* +1 word: the clock; payload: a code id too wide for ENTER | tag << 37 */
    CONTROL_STALL,  /* +2 words: clock at its end, nanoseconds waited for the collector */
    /* +3 words: clock at its end and at its start, frames lost 32 | ordinal 32; payload: open
     * frames that are left of those from before it, the innermost of that ordinal, or RING_ALL.
     * Open frames that began in the gap follow as INHERITED. */
    CONTROL_GAP,
    /* +2 words: the clock, how many frames are open; payload: the FACT_THREAD that stands for the
     * stack of frames that runs from here on. Open frames that are not in the ring yet are
     * INHERITED next. */
    CONTROL_SWITCH,
    /* The shim's decision for the innermost open frame, in this order:
     *
     *     CHECK*  COMPILED?  DECISION     a lookup, before the frame runs
     *     OUTCOME                         decided without one (skip) */
    /* +1 word: guards run 20 | failed ordinal + 1, 0 = none 20 | clock ticks, at most 2^24-2, 24;
     * payload: entry id 32 | result 8 (enum check_result) */
    CONTROL_CHECK,
    /* +1 word: signature id + 1, 0 = none; payload: compile id + 1, 0 = the callback was not called
     * */
    CONTROL_COMPILED,
    CONTROL_DECISION, /* +2 words: clock at the lookup's start, ticks since;
                         payload: entry id + 1, 0 = none, 32 | outcome 8, with DECISION_OBSERVED */
    CONTROL_OUTCOME,  /* +0 words; payload: outcome */
};

#define RING_TICKS_UNKNOWN UINT64_C(0xffffff)
#define RING_ALL RING_CLOCK_MASK /* of CONTROL_GAP: another stack runs now, and a SWITCH is next */
enum { DECISION_OBSERVED = 0x80 /* with the outcome: which entries were tried is not known */ };

#define RING_WORD(tag, id, clock) \
    ((uint64_t)(tag) << 61 | (uint64_t)(id) << RING_CLOCK_BITS | ((clock)&RING_CLOCK_MASK))
#define RING_CONTROL_WORD(what, words, payload)                             \
    (UINT64_C(7) << 61 | (uint64_t)(what) << 56 | (uint64_t)(words) << 40 | \
     ((payload)&RING_CLOCK_MASK))
#define RING_WORD_TAG(word) ((enum ring_tag)((word) >> 61))
#define RING_WORD_ID(word) ((uint32_t)((word) >> RING_CLOCK_BITS & RING_ID_MASK))
#define RING_WORD_WHAT(word) ((enum ring_control)((word) >> 56 & 31))
#define RING_WORD_COUNT(word) ((uint32_t)((word) >> 40 & 0xffff))
#define RING_WORD_LOW(word) ((word)&RING_CLOCK_MASK)

struct ring {
    /* written by the producer */
    _Alignas(RING_LINE) _Atomic uint64_t head; /* words ever committed */
    _Alignas(RING_LINE) uint64_t words;        /* size, a power of two */
    uint64_t reserved;                         /* words of it that have memory, from its start */
    uint64_t offset;                           /* of this struct in the file */
    uint64_t lost;                             /* frames not written since `lost_since` */
    uint64_t lost_since;                       /* clock; 0: everything is written */
    uint64_t lost_error;                       /* errno, or 0: the collector took nothing */
    /* times it found the ring full, and what that took */
    uint64_t waits, wait_ns;
    /* written by the collector, except that a waiting producer sets `waiting` */
    _Alignas(RING_LINE) _Atomic uint64_t tail; /* words ever taken */
    _Atomic uint32_t waiting;                  /* futex: 1 = the producer sleeps */
    uint64_t lost_row;                         /* the row of `loss` for `lost`; 0 = none yet */
};

/* A chunk of facts (facts.h). */
struct facts {
    uint64_t next_off;     /* next chunk, 0 = none yet; set after `used` is final */
    uint64_t bytes;        /* of data[] */
    _Atomic uint64_t used; /* bytes of data[] that hold whole records (release) */
    uint64_t reserved;
    char data[];
};

/* Kinds of events that --frames, --include, --exclude or --max-depth leave out. */
enum left_out { LEFT_CODES, LEFT_FRAMES, LEFT_DECISIONS, LEFT_KINDS };

struct process_file {
    char magic[8];
    uint32_t format, word_bytes;
    uint32_t pid, parent_pid;
    /* All three as the process itself sees them; in another namespace other processes see other
     * values. */
    uint64_t start_time;      /* /proc/PID/stat field 22, in clock ticks since boot */
    uint64_t born_clock;      /* session clock when this file was made, or the process forked */
    char parent_file[64];     /* forked: file name of the process it was forked from, else "" */
    uint32_t inherited_codes; /* forked: code ids below this one are the parent's */
    uint32_t inherited_entries, inherited_signatures; /* likewise */
    uint32_t reserved2;
    uint32_t mode; /* enum session_frames in force */
    uint64_t facts_off;
    /* Of the process at 0, for all in its file. */
    uint64_t file_bytes;         /* its size */
    _Atomic uint64_t used_bytes; /* given out so far */
    _Atomic uint64_t nested;     /* offset of the newest nested process, 0 = none (release) */
    /* forked children for which there was no room at all */
    _Atomic uint64_t orphans, orphan_frames;
    _Atomic uint32_t orphan_error; /* errno */
    /* forks whose child has not made its file yet, or that failed */
    _Atomic uint32_t forking;
    /* Of this process. */
    uint64_t next_nested;
    _Atomic uint32_t rings;      /* how many of ring_off are set (release) */
    _Atomic uint32_t ready;      /* 1: the header is whole */
    _Atomic uint32_t abandoned;  /* written by the collector; 1: it takes nothing more */
    _Atomic uint32_t lost_error; /* errno: why they found none */
    _Atomic uint64_t lost_threads, lost_frames; /* threads that found no ring */
    uint64_t left_out[LEFT_KINDS];              /* by enum left_out */
    uint64_t process_id;                        /* written by the collector: the row it gave */
    /* likewise, of `loss`: for lost_threads and orphans; 0 = none yet */
    uint64_t loss_rows[2];
    /* written by the collector; 1: the process has ended, and all of it is in the trace */
    _Atomic uint32_t finished;
    _Atomic uint32_t left;  /* 1: it lives, and has ended its recording */
    uint64_t pid_namespace; /* in which `pid` is (namespaces.h); 0: not known */
    /* Written by the collector: which process this is as it sees it; 0: it does not. */
    uint64_t seen_start_time;
    uint32_t seen_pid;
    _Atomic uint32_t looked; /* futex, likewise; 1: it has looked for the process */
    uint64_t ring_off[RING_MAX];
};

enum session_frames { SESSION_ALL, SESSION_USER, SESSION_NONE, SESSION_DECIDED };
enum session_torch {
    SESSION_TORCH_AUTO,
    SESSION_TORCH_SHIM,
    SESSION_TORCH_OBSERVE,
    SESSION_TORCH_OFF
};
enum session_clock {
    SESSION_TSC,
    SESSION_MONOTONIC,
    SESSION_COARSE /* `now` of the session's file, made of one of those */
};
/* What of the program's values may be recorded: python/dyntrace/_guard_words.py. */
enum session_values { SESSION_VALUES_ALL, SESSION_VALUES_TYPES, SESSION_VALUES_OFF };

/* Written once by `dyntrace run`, then only `closed` and `now` change. */
struct session_file {
    char magic[8];
    uint32_t format, bytes;   /* of this whole file */
    uint32_t clock;           /* enum session_clock */
    uint32_t frames;          /* enum session_frames */
    uint32_t max_depth;       /* 0 = no limit */
    uint32_t globs;           /* strings in text[] after the fallback directory */
    uint64_t ring_bytes;      /* of a process's first ring, a power of two */
    uint64_t budget_bytes;    /* rings of one process shrink so as to stay near this */
    uint64_t min_duration_ns; /* applied by the collector */
    uint64_t max_stall_ns;    /* how long a full ring stops a thread at most */
    uint64_t start_clock, start_unix_ns;
    uint64_t ns_per_tick_32; /* nanoseconds per tick << 32; set by the collector, 0 before */
    _Atomic uint64_t now;    /* the clock, which the collector keeps current, if `coarse` */
    _Atomic uint32_t closed; /* 1: no more recording; producers stop */
    uint32_t torch;          /* enum session_torch */
    uint32_t values;         /* enum session_values */
    uint32_t no_argv;        /* 1: command lines are not recorded */
    uint32_t coarse;         /* 1: programs read no clock, but `now` */
    uint32_t capture;        /* 1: the user's functions are captured: dyntrace.compile */
    uint64_t pid_namespace;  /* of the recorder (namespaces.h); 0: not known */
    int64_t clock_ahead_ns;  /* likewise: of CLOCK_MONOTONIC in its time namespace */
    uint32_t settings;       /* of `run --set`: strings in text[] after the globs */
    /* second directory for rings, of the same name, or "" \0 database path \0 then globs: "+GLOB\0"
     * or "-GLOB\0", then settings: "SETTING\0" */
    char text[];
};

#endif
