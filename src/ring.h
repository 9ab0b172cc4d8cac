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
 *     PID-TICKS-E.lost    an empty file: this process image could not make a .ring; errno E
 *     state               the collector's state, so that nothing is lost if it dies
 *
 * A process's file is sparse and large from the start; rings and chunks of facts get extents of it.
 * Memory is reserved (MADV_POPULATE_WRITE) before the first write, so that a full filesystem gives
 * an error code and never SIGBUS. The memory of rings and facts is reserved step by step, as their
 * writer first reaches it:
 *
 *     0            struct process_file
 *     facts_off    struct facts  -> next chunk -> ...     facts.h: names of code objects
 *     ring_off[0]  struct ring, then its words            first thread
 *     ring_off[1]  struct ring, then its words            second thread ...
 *     nested       struct process_file                    a forked child's, and
 *                  its facts and rings                    all that it needs
 *
 * A forked child that may not create a file, or has no free descriptor, is a nested process: it
 * takes extents of its parent's file, which the fork left mapped. Nested processes are a list:
 * `nested` of the process at offset 0 is the newest, `next_nested` of a process is the next older
 * one. Every offset is from the start of the file.
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
 *                                                    3 inherited: running already
 *     EXIT    tag 3 | frame   21 | clock 40      tag 4 return, 5 yield, 6 raise
 *     CONTROL tag 3 | what 5 | words 16 | payload 40          tag 7
 *
 * `clock` is the low 40 bits of the session's clock; a CONTROL_EPOCH word follows any pause that is
 * long enough to make these bits ambiguous. `frame` names the frame that ends: the low bits of the
 * number of its ENTER in this ring. The collector compares `frame` with its own count. A frame open
 * at a crash is an ENTER without an EXIT. */
#ifndef DYNTRACE_RING_H
#define DYNTRACE_RING_H

#include <stdatomic.h>

#include "facts.h"

enum {
    /* Increment this number with each change of a shared struct, of FACTS, of RECORDER_PUTS or of a
     * table. A build does not continue a session of another format. */
    RING_FORMAT = 21,
    RING_MAX = 2048,        /* the most rings of a process, that is threads alive at once */
    RING_MARGIN = 192,      /* words kept free, so that control words always fit */
    RING_SPAN_BYTES = 1280, /* the most bytes of a span's name and attributes */
    RING_SMALLEST = 65536,  /* bytes of the smallest ring */
    RING_CLOCK_BITS = 40,
    RING_ID_BITS = 21,
    RING_LINE = 128, /* two cache lines, because the CPU prefetches them in pairs */
    /* struct ring takes this many bytes, a whole page, before the words begin */
    RING_HEADER = 4096,
};
#define RING_SESSION_MAGIC "DYNSESS"
#define RING_PROCESS_MAGIC "DYNPROC"
#define RING_CLOCK_MASK ((UINT64_C(1) << RING_CLOCK_BITS) - 1)
#define RING_ID_MASK ((UINT64_C(1) << RING_ID_BITS) - 1)
/* The clock in a word has 40 bits, so a pause of half their range needs an epoch word. We write one
 * after a quarter of the range. */
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
    /* One word follows: the full clock. Other words have only its low 40 bits. */
    CONTROL_EPOCH,
    /* One word follows: the clock. The payload is the id of the FACT_THREAD whose frames come
     * next. */
    CONTROL_THREAD,
    /* An ENTER whose code id is too wide for an ENTER word. One word follows: the clock. The
     * payload is tag << 37 | code id. */
    CONTROL_ENTER,
    /* The thread had to wait for the collector. Two words follow: the clock at the end of the wait,
     * and how many nanoseconds the thread waited. */
    CONTROL_STALL,
    /* Frames were lost. Three words follow: the clock at the end of the gap; the clock at its
     * start; the number of lost frames (32 bits) and an ordinal (32 bits). The payload is the
     * number of frames that were open before the gap and are still open. The ordinal is that of
     * the innermost of these frames. If another stack runs now, the payload is RING_ALL: no frame
     * has ended, the ordinal is 0, and a CONTROL_SWITCH follows. Frames that began in the gap and
     * are still open come next, as INHERITED. */
    CONTROL_GAP,
    /* Another stack of frames (a greenlet) runs from here on. Two words follow: the clock, and how
     * many frames of the stack are open. The payload is the FACT_THREAD that stands for the stack.
     * Open frames that are not in the ring yet come next, as INHERITED. */
    CONTROL_SWITCH,
    /* How the shim decided about the call of the innermost open frame. The words come in this
     * order:
     *
     *     CHECK*  COMPILED?  DECISION     a lookup, before the frame runs
     *     OUTCOME                         decided without a lookup (skip) */
    /* How the guards of one entry ended. One word follows: how many guards ran (20 bits), the
     * ordinal of the failed guard + 1, or 0 if none failed (20 bits), and the duration in clock
     * ticks, at most 2^24-2 (24 bits). The payload is the entry id (32 bits) and an enum
     * check_result (8 bits). */
    CONTROL_CHECK,
    /* Written for a miss. One word follows: the signature id + 1, or 0 if there is none. The
     * payload is the compile id + 1, or 0 if the callback was not called. */
    CONTROL_COMPILED,
    /* The result of a lookup. Two words follow: the clock at the lookup's start, and the ticks
     * since then. The payload is the entry id + 1, or 0 for none (32 bits), and the outcome (8
     * bits), perhaps with DECISION_OBSERVED */
    CONTROL_DECISION,
    CONTROL_OUTCOME, /* decided without a lookup; no word follows; the payload is the outcome */
    /* A span begins in the innermost open frame. Two words follow: the clock; and the id of the
     * span around it + 1, or 0 if there is none (32 bits), the length of its name (16 bits) and of
     * its attributes (16 bits), in bytes. Then come both texts, in (bytes + 7) / 8 words. The
     * payload is the enum span_kind (8 bits) and the span's id (32 bits). */
    CONTROL_SPAN,
    /* A span ends, perhaps on another thread. One word follows: the clock. The payload is the
     * span's id */
    CONTROL_SPAN_END,
    /* Arguments or the result of the innermost open frame. One word follows: the length of a text
     * in bytes. Then comes the text, in (bytes + 7) / 8 words. The payload is an enum
     * call_values. */
    CONTROL_ARGS,

    /* From here on the frames are in the phase of torch's work that the payload names (enum
     * compile_phase); PHASE_NONE ends the phase. No word follows. Written only with
     * SESSION_FOLDED. */
    CONTROL_PHASE,
    /* the next ENTER is a call that a compiler decides, so its frame gets a row; no word follows */
    CONTROL_KEEP,
};

/* Which values of a call a CONTROL_ARGS has. */
enum call_values { CALL_ARGUMENTS, CALL_RESULT };

/* Who made a span: dyntrace.span, torch's record_function, or NVTX (span_words of vocabulary.h). */
enum span_kind { SPAN_OWN, SPAN_RECORD_FUNCTION, SPAN_NVTX, SPAN_KINDS };

#define RING_TICKS_UNKNOWN UINT64_C(0xffffff)
/* payload of a CONTROL_GAP after which another stack runs, so that a CONTROL_SWITCH follows */
#define RING_ALL RING_CLOCK_MASK
/* bit added to an outcome: torch's own evaluator decided, so the entries that it tried are not
 * known */
enum { DECISION_OBSERVED = 0x80 };

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
    /* The members from here on are written by the producer. */
    _Alignas(RING_LINE) _Atomic uint64_t head; /* number of words committed so far */
    _Alignas(RING_LINE) uint64_t words;        /* number of words, a power of two */
    /* number of words, from the ring's start, that have memory */
    uint64_t reserved;
    uint64_t offset; /* this struct's offset in the file */
    uint64_t lost;   /* number of frames lost since `lost_since` */
    /* the clock when the present loss of frames began; 0 if none is being lost */
    uint64_t lost_since;
    /* why frames are being lost: an errno, or 0 if the collector did not empty the ring in time */
    uint64_t lost_error;
    /* how often the producer found the ring full, and how long it waited */
    uint64_t waits, wait_ns;
    /* The members from here on are written by the collector, but a waiting producer sets
     * `waiting`. */
    /* number of words that the collector has taken so far */
    _Alignas(RING_LINE) _Atomic uint64_t tail;
    _Atomic uint32_t waiting; /* futex: 1 = the producer sleeps */
    /* rowid in `loss` of the row for `lost`; 0 if there is none yet */
    uint64_t lost_row;
};

/* A chunk of facts (facts.h). */
struct facts {
    /* offset of the next chunk, or 0 if there is none yet; it is set when `used` no longer
     * changes */
    uint64_t next_off;
    uint64_t bytes; /* size of data[] */
    /* how many bytes of data[] hold whole records (stored with release order) */
    _Atomic uint64_t used;
    uint64_t reserved; /* how many bytes of data[] have memory */
    char data[];
};

/* Kinds of events that --frames, --include, --exclude or --max-depth leave out. */
enum left_out { LEFT_CODES, LEFT_FRAMES, LEFT_DECISIONS, LEFT_KINDS };

struct process_file {
    char magic[8];
    uint32_t format, word_bytes;
    uint32_t pid, parent_pid;
    /* The pid, the parent's pid and the start time are as the process itself sees them. In another
     * namespace they are different. */
    uint64_t start_time; /* /proc/PID/stat field 22, in clock ticks since boot */
    /* the session's clock when this file was made, or when the process was forked */
    uint64_t born_clock;
    char parent_file[64];     /* of a forked process: name of its parent's file; else "" */
    uint32_t inherited_codes; /* of a forked process: code ids below this number are the parent's */
    /* of a forked process: entry ids and signature ids below these numbers are the parent's */
    uint32_t inherited_entries, inherited_signatures;
    uint32_t inherited_spans; /* of a forked process: span ids below this number are the parent's */
    uint32_t mode;            /* the mode that this process records in, an enum session_frames */
    uint64_t facts_off;
    /* The members up to `forking` are used only in the process at offset 0, for all processes in
     * the file. */
    uint64_t file_bytes;         /* size of the file */
    _Atomic uint64_t used_bytes; /* bytes given to extents so far */
    _Atomic uint64_t nested;     /* offset of the newest nested process, or 0 (release) */
    /* how many forked children found no room in the file, and how many frames they lost */
    _Atomic uint64_t orphans, orphan_frames;
    _Atomic uint32_t orphan_error; /* errno with which the last of `orphans` failed to find room */
    /* number of forks that failed, or whose child has not made its file yet */
    _Atomic uint32_t forking;
    /* The members from here on describe this process alone. */
    uint64_t next_nested;
    /* number of items of ring_off that are set (stored with release order) */
    _Atomic uint32_t rings;
    _Atomic uint32_t ready; /* 1: this struct is completely filled in */
    /* written by the collector; 1: the collector takes nothing more from this process */
    _Atomic uint32_t abandoned;
    _Atomic uint32_t lost_error; /* errno with which threads failed to get a ring */
    /* how many threads could not get a ring, and how many frames they lost */
    _Atomic uint64_t lost_threads, lost_frames;
    _Atomic uint64_t lost_facts; /* facts that found no room, but those about code objects */
    /* number of events left out of the recording, by enum left_out */
    uint64_t left_out[LEFT_KINDS];
    /* written by the collector: the id of this process's row */
    uint64_t process_id;
    /* written by the collector: ids of the rows of `loss` for lost_threads, for orphans and for
     * lost_facts; 0 if there is none yet */
    uint64_t loss_rows[3];
    /* written by the collector; 1: the process has ended, and the trace has all of its events */
    _Atomic uint32_t finished;
    _Atomic uint32_t left; /* 1: the process lives, but has ended its recording */
    /* inode number of the pid namespace in which the process has `pid` (namespaces.h); 0 if not
     * known */
    uint64_t pid_namespace;
    /* Written by the collector: this process's start time and pid as the collector sees them; 0 if
     * the collector does not see the process. */
    uint64_t seen_start_time;
    uint32_t seen_pid;
    /* futex, written by the collector; 1: the collector has looked for this process in /proc */
    _Atomic uint32_t looked;
    uint64_t ring_off[RING_MAX];
};

enum session_frames {
    SESSION_ALL,
    SESSION_USER,
    SESSION_NONE,
    SESSION_DECIDED,
    /* like SESSION_ALL, but library frames inside torch's compiles and imports are counted and have
     * no rows: collector/counts.h */
    SESSION_FOLDED
};
enum session_torch {
    SESSION_TORCH_AUTO,
    SESSION_TORCH_SHIM,
    SESSION_TORCH_OBSERVE,
    SESSION_TORCH_OFF
};
enum session_clock {
    SESSION_TSC,
    SESSION_MONOTONIC,
    /* a copy of one of the other two clocks: the member `now` of the session's file */
    SESSION_COARSE
};
/* Which of the program's values may be recorded: all, only their types, or none.
 * python/dyntrace/_guard_words.py applies this. */
enum session_values { SESSION_VALUES_ALL, SESSION_VALUES_TYPES, SESSION_VALUES_OFF };

/* The session's file. `dyntrace run` writes it once; afterwards only `closed`, `leave`, `now` and
 * `ns_per_tick_32` change. */
struct session_file {
    char magic[8];
    uint32_t format, bytes; /* bytes: size of the session's file */
    uint32_t clock;         /* enum session_clock */
    uint32_t frames;        /* enum session_frames */
    uint32_t max_depth;     /* 0 = no limit */
    uint32_t globs;         /* how many strings in text[] after the spill directory are globs */
    uint64_t ring_bytes;    /* size of a process's first ring, a power of two */
    /* later rings of a process are made smaller, so that all its rings together have about this
     * size */
    uint64_t budget_bytes;
    uint64_t min_duration_ns; /* calls that took less are left out; the collector does this */
    uint64_t max_stall_ns;    /* longest time that a full ring stops a thread */
    /* how much is kept (collector/keep.h): time, and bytes; 0: everything */
    uint64_t keep_ns, keep_bytes;
    uint64_t start_clock, start_unix_ns;
    /* nanoseconds per tick of the clock, times 2^32; 0 until the collector has measured it */
    uint64_t ns_per_tick_32;
    /* the coarse clock, which the collector keeps current if `coarse` is set */
    _Atomic uint64_t now;
    _Atomic uint32_t closed; /* 1: recording is over, and producers stop */
    uint32_t torch;          /* enum session_torch */
    uint32_t values;         /* enum session_values */
    uint32_t no_argv;        /* 1: command lines are not recorded */
    uint32_t coarse;         /* 1: programs read `now` instead of a clock */
    /* 1: `run --capture`: dyntrace.compile is applied to the user's functions */
    uint32_t capture;
    /* 1: `run --thin`: the collector leaves out many calls of functions that are called often */
    uint32_t thin;
    uint64_t pid_namespace; /* the recorder's pid namespace (namespaces.h); 0 if not known */
    /* by how much CLOCK_MONOTONIC in the recorder's time namespace is ahead of the machine's */
    int64_t clock_ahead_ns;
    uint32_t settings;     /* strings in text[] after the globs: settings of `run --set` */
    uint32_t keep_secrets; /* 1: `run --no-redact`: values of secret names are recorded */
    uint32_t secrets;      /* strings in text[] after the settings: patterns of `run --redact` */
    uint32_t arguments;    /* strings in text[] after the patterns: globs of `run --args` */
    /* for `dyntrace attach`: pid, in its own namespace, of the process that should join the
     * session; 0: none */
    uint32_t attach_pid;
    /* 1: `dyntrace attach` ends, and processes leave the session when they get SIGURG
     * (tracer/attach.c) */
    _Atomic uint32_t leave;
    /* strings in text[] after the globs of --args: conditions of `run --snapshot-on` */
    uint32_t triggers;
    /* Strings: the second directory for rings, of the same name as the first, or ""; the path of
     * the database; globs, "+GLOB" or "-GLOB"; settings, "SETTING"; patterns of secret names;
     * globs of --args; conditions of --snapshot-on. Each ends with a NUL. */
    char text[];
};

#endif
