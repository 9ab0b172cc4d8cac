/* collector/session.h -- the directory of a recording that is being made.
 *
 * Runs in: the command line (`run`, `fsck --recover`) and the collector.
 *
 * ring.h lists the files in it. The directory is in shared memory (/dev/shm) if that has room, and
 * readable by its owner only. It is deleted when the recording ends. If it is left and nobody holds
 * its lock, its collector was killed. */
#ifndef DYNTRACE_SESSION_H
#define DYNTRACE_SESSION_H

#include <limits.h>

#include "clock.h"
#include "lib/list.h"
#include "ring.h"
#include "session_check.h"

#define SESSION_MAX_STALL_NS UINT64_C(1000000000) /* the default of --max-stall */

enum { SETTINGS_MAX = 64 /* each setting has a bit in a uint64_t */ };

/* The values of an option that may be repeated. The texts are borrowed. */
typedef LIST(const char *) session_texts;

struct session_options {
    enum session_frames frames;
    enum session_torch torch;
    enum session_values values;
    bool no_argv, capture, thin;
    enum session_reading { SESSION_EXACT, SESSION_OF_COLLECTOR } clock;
    uint32_t max_depth;
    uint64_t min_duration_ns;
    uint64_t max_stall_ns;
    uint64_t keep_ns, keep_bytes; /* bounds of --keep, in time and bytes; 0: not bounded */
    /* globs of --include and --exclude, as "+GLOB" or "-GLOB" */
    session_texts globs;
    session_texts settings;  /* values of --set; at most SETTINGS_MAX */
    bool keep_secrets;       /* store values whose names look secret, too (--no-redact) */
    session_texts secrets;   /* patterns of --redact */
    session_texts arguments; /* globs of --args */
    session_texts triggers;  /* conditions of --snapshot-on */
    /* for `attach`: pid of the process that should join, as that process sees it */
    uint32_t attach_pid;
    /* For `attach`: the directory below which we see the files of that process, "" or
     * "/proc/PID/root". The session's directory is made where the process looks for it. Borrowed */
    const char *root;
};

/* How `dyntrace try` runs the command again: texts for `meta`, besides the command itself. NULL:
 * not known, or not recorded (--no-argv). */
struct session_again {
    char *directory; /* the directory in which the command ran */
    /* path of the program that was executed; for a script, -m or -c that of the interpreter */
    char *executable;
    char *options; /* a JSON array of the options of `run` that `try` uses, too */
    /* a JSON array of the launcher's words before `dyntrace run`, if the command is a rank */
    char *launcher;
    bool redacted; /* secret values were removed from the command or the launcher's words */
};

enum session_place { SESSION_MAIN, SESSION_SPILL, SESSION_PLACES };

struct session {
    char directory[256]; /* "" = none */
    /* path of the second directory, for rings when the first directory is full; "" if there is
     * none */
    char spill[256];
    int place[SESSION_PLACES]; /* descriptors of the two directories; -1 if not open */
    char trace[PATH_MAX];      /* absolute path of the trace */
    /* path of the file of frames while the recording runs: "TRACE-frames" */
    char frames[PATH_MAX + 8];
    struct session_file *file;  /* the mapped session's file; the program can write to it, too */
    size_t bytes;               /* size of the mapped session's file */
    int lock;                   /* descriptor of the locked file; -1 if the lock is not ours */
    char metrics[PATH_MAX];     /* path for Prometheus metrics; "" if there are none */
    char destination[PATH_MAX]; /* the path to which the finished trace is moved; "" if it stays */
    /* by how many nanoseconds the clock of the destination's server is ahead of ours, and how far
     * that may be wrong; clock_doubt_ns is 0 if it is not known */
    int64_t clock_offset_ns, clock_doubt_ns;
    struct session_again again;
};

#define SESSION_CLOSED ((struct session){.place = {-1, -1}, .lock = -1})

/* Make a session for the trace at TRACE, an absolute path, and lock it. A forked collector inherits
 * the lock. Returns 0, or -1 after reporting an error. */
int session_create(struct session *s, const char *trace, const struct session_options *options);
/* Open and lock a session that a killed collector has left. Returns -1 if it is not a session of
 * ours, or if its collector lives; the latter sets *BUSY. Prints nothing. If BUSY is NULL, the
 * session's file is damaged and not read, and the caller sets `trace` and `frames`. A program
 * could have changed the session's file, so the caller must check the path of the trace
 * (recorder_are_files_of_session). */
int session_open(struct session *s, const char *directory, bool *busy);
/* Take the lock of a collector that has died. Returns 0, or -1 if another process holds it. */
int session_take_lock(struct session *s);
/* Return the first condition of --snapshot-on in FILE. Each further condition follows the NUL of
 * the one before. */
const char *session_find_triggers(const struct session_file *file);
/* Open a session to read it, even if its collector lives. Returns 0, or -1 if it is not a session
 * of ours. */
int session_open_to_read(struct session *s, const char *directory);
/* Has the session's file still its full length? If not, reading it would raise SIGBUS. */
bool session_has_full_file(const struct session *s);
/* Delete all files of the session, but not the trace. */
void session_remove(struct session *s);
/* Remove DIRECTORY, in which session_open() found no session, if a `run` was killed while it made
 * or removed the session there. Such a directory is empty but for a lock, is a minute old, and
 * nobody holds the lock. */
void session_remove_stale(const char *directory);
void session_close(struct session *s);
/* Return how many bytes of the disk are in use by the trace file, SQLite's write-ahead log (-wal)
 * and the file of frames (-frames). A file that is missing counts as 0. */
uint64_t session_count_trace_bytes(const struct session *s);

/* Call VISIT for each file in the session's directories. For a process file, HEADER is the header
 * of its process; then VISIT is called for each nested process in the file, too, from the newest to
 * the oldest, with a NAME made by session_write_process_name. For other files HEADER is NULL. */
typedef void session_visitor(void *context, const char *name, enum session_place place,
                             const struct process_file *header);
void session_visit_processes(const struct session *s, session_visitor *visit, void *context);

/* Bytes of the name of a process file, and of a name that session_write_process_name makes. */
enum { SESSION_FILE_NAME = 48, SESSION_NAME = 64 };
/* Set NAME to the name of the process at OFFSET of FILE: "FILE@OFFSET". FILE may also be the name
 * of another process in the file. */
void session_write_process_name(char name[SESSION_NAME], const char *file, uint64_t offset);

enum liveness { LIVE_NO, LIVE_YES, LIVE_UNKNOWN };

/* Does the collector of the session in DIRECTORY run? DIRECTORY is the value of `session` in
 * `meta`; if it is NULL, the answer is LIVE_UNKNOWN. Viewers call this, too. */
enum liveness session_has_running_collector(const char *directory);

/* Call VISIT with each session directory of this user. */
void session_visit_all(void (*visit)(const char *directory, void *context), void *context);

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
