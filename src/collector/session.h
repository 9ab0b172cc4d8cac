/* collector/session.h -- the directory through which a recording is made.
 *
 * Runs in: the command line (`run`, `fsck --recover`) and the collector.
 *
 * See ring.h for what lies in it. It is in shared memory (/dev/shm) where that has room, and
 * readable by its owner only. It goes away with the recording; one that is left, unlocked, belongs
 * to a collector that was killed. */
#ifndef DYNTRACE_SESSION_H
#define DYNTRACE_SESSION_H

#include <limits.h>

#include "clock.h"
#include "ring.h"
#include "session_check.h"

#define SESSION_MAX_STALL_NS UINT64_C(1000000000) /* the default of --max-stall */

enum { SETTINGS_MAX = 64 /* bits of a uint64_t say which were used */ };

struct session_options {
    enum session_frames frames;
    enum session_torch torch;
    enum session_values values;
    bool no_argv, capture, thin;
    enum session_reading { SESSION_EXACT, SESSION_OF_COLLECTOR } clock;
    uint32_t max_depth;
    uint64_t min_duration_ns;
    uint64_t max_stall_ns;
    uint64_t keep_ns, keep_bytes; /* 0: without such a bound */
    const char *const *globs;     /* "+GLOB" or "-GLOB"; borrowed */
    uint32_t glob_count;
    const char *const *settings; /* values of --set; borrowed */
    uint32_t setting_count;      /* at most SETTINGS_MAX */
    bool keep_secrets;           /* --no-redact */
    const char *const *secrets;  /* patterns of --redact; borrowed */
    uint32_t secret_count;
    const char *const *arguments; /* globs of --args; borrowed */
    uint32_t argument_count;
    /* `attach`: the process that is to join, by its own pid, and where we see its files: "", or
     * "/proc/PID/root". Then the directory is made where that process looks for it. */
    uint32_t attach_pid;
    const char *root;            /* borrowed */
    const char *const *triggers; /* conditions of --snapshot-on; borrowed */
    uint32_t trigger_count;
};

/* How to run the command again, for `meta`: texts that `dyntrace try` needs besides the command.
 * NULL: not known, or not to be kept. */
struct session_again {
    char *directory;  /* where it ran */
    char *executable; /* what was executed: of a script, -m or -c the interpreter */
    char *options;    /* the options of `run` that `try` uses again, a JSON array */
    char *launcher;   /* for a rank: the launcher's words before `dyntrace run`, a JSON array */
    bool redacted;    /* secret values were left out of the command or the launcher's words */
};

enum session_place { SESSION_MAIN, SESSION_SPILL, SESSION_PLACES };

struct session {
    char directory[256]; /* "" = none */
    /* a second directory for rings, of the same name, for when the first is full; "" if there is
     * none */
    char spill[256];
    int place[SESSION_PLACES];  /* descriptors of the two directories; -1 if not open */
    char trace[PATH_MAX];       /* absolute path of the trace */
    char frames[PATH_MAX + 8];  /* the file of the frames during the recording: "TRACE-frames" */
    struct session_file *file;  /* shared memory, which the program can also write */
    size_t bytes;               /* mapped of it */
    int lock;                   /* descriptor that holds the lock; -1 if it is not held */
    char metrics[PATH_MAX];     /* where counters are written as Prometheus text; "": nowhere */
    char destination[PATH_MAX]; /* the path to which the finished trace is moved; "" if it stays */
    /* by how much the clock of the destination's server is ahead of ours, and the possible error of
     * this number; an error of 0 means that it is not known */
    int64_t clock_offset_ns, clock_doubt_ns;
    struct session_again again;
};

#define SESSION_CLOSED ((struct session){.place = {-1, -1}, .lock = -1})

/* Make a session for TRACE, an absolute path, and lock it. The collector inherits the lock by fork.
 * Returns 0, or -1 after reporting an error. */
int session_create(struct session *s, const char *trace, const struct session_options *options);
/* Open and lock a session that a killed collector has left. Returns -1 if it is not a session of
 * ours, or if its collector lives, which sets *BUSY. Prints nothing. With BUSY NULL the session's
 * file is damaged and not read; such a session can only be removed. The program could write to the
 * session's file, so the caller must check the trace that it names (recorder_is_of). */
int session_open(struct session *s, const char *directory, bool *busy);
/* Take back the lock of a collector that has died. Returns 0, or -1 if another process holds it. */
int session_take(struct session *s);
/* Return the first of FILE's conditions of --snapshot-on. The others follow, each after the NUL of
 * the one before. */
const char *session_triggers(const struct session_file *file);
/* Open a session to read it, whether its collector lives or not. Returns 0, or -1 if it is not a
 * session of ours. */
int session_look(struct session *s, const char *directory);
/* Does the session's file still have its length? If not, reading it would raise SIGBUS. */
bool session_whole(const struct session *s);
/* Delete all files of the session except the trace. */
void session_remove(struct session *s);
void session_close(struct session *s);

/* Call VISIT for each file in the session's directories. For a process's file, VISIT is called with
 * the HEADER of the process, and then for each process nested in the file, newest first, whose name
 * is made of the file's name and the offset. For other files HEADER is NULL. */
typedef void session_visitor(void *context, const char *name, enum session_place place,
                             const struct process_file *header);
void session_processes(const struct session *s, session_visitor *visit, void *context);

/* Room for the name of a process's file, and for the name that session_name makes. */
enum { SESSION_FILE_NAME = 48, SESSION_NAME = 64 };
/* Write the name of the process at OFFSET of FILE to NAME. FILE may also be the name of another
 * process in the file. */
void session_name(char name[SESSION_NAME], const char *file, uint64_t offset);

enum liveness { LIVE_NO, LIVE_YES, LIVE_UNKNOWN };

/* Does the collector of the session in DIRECTORY run? DIRECTORY is the value `session` in `meta`;
 * NULL gives LIVE_UNKNOWN. Viewers call this, too. */
enum liveness session_live(const char *directory);

/* Call VISIT with each session directory of this user. */
void session_each(void (*visit)(const char *directory, void *context), void *context);

/* The words for enum session_frames, session_torch and session_values, in their order. */
#define SESSION_FRAMES_WORDS "all user none decided folded"
#define SESSION_TORCH_WORDS "auto shim observe off"
#define SESSION_VALUES_WORDS "all types off"
#define SESSION_READING_WORDS "exact coarse"

/* Choose the CPU's counter if the kernel trusts it, otherwise CLOCK_MONOTONIC. */
enum session_clock session_clock_choose(void);
/* Return the time by FILE's clock. */
static inline uint64_t session_now(const struct session_file *file)
{
    return file->clock == SESSION_MONOTONIC ? clock_monotonic_ns() : clock_counter();
}
/* Has the directory PATH room for rings, and may we write there? */
bool session_has_room(const char *path);

#endif
