/* collector/session.h -- the directory of shared files through which a recording is made.
 *
 * Runs in: the command line (`run`, `fsck --recover`) and the collector.
 *
 * ring.h describes the files in the directory. The directory is in shared memory (/dev/shm) if that
 * has room, and only its owner can read it. It is removed when the recording ends. A directory that
 * was left and is not locked belongs to a collector that was killed. */
#ifndef DYNTRACE_SESSION_H
#define DYNTRACE_SESSION_H

#include <limits.h>

#include "clock.h"
#include "ring.h"
#include "session_check.h"

#define SESSION_MAX_STALL_NS UINT64_C(1000000000) /* default of --max-stall */

enum { SETTINGS_MAX = 64 /* state_header.settings_used has one bit for each */ };

struct session_options {
    enum session_frames frames;
    enum session_torch torch;
    enum session_values values;
    bool no_argv, capture;
    enum session_reading { SESSION_EXACT, SESSION_OF_COLLECTOR } clock;
    uint32_t max_depth;
    uint64_t min_duration_ns;
    uint64_t max_stall_ns;
    const char *const *globs; /* "+GLOB" or "-GLOB"; borrowed */
    uint32_t glob_count;
    const char *const *settings; /* values of --set; borrowed */
    uint32_t setting_count;      /* at most SETTINGS_MAX */
    const char *const *redacted; /* globs of --redact; borrowed */
    uint32_t redacted_count;
    bool no_redact;
};

/* How to run the command again: texts for `meta` that `dyntrace try` needs besides the command. A
 * text is NULL if it is not known or must not be stored. */
struct session_again {
    char *directory; /* working directory of the command */
    /* path of the program; the interpreter if the command is a script, -m or -c */
    char *executable;
    char *options; /* the options of `run` that matter for another run, as a JSON array */
    /* for a rank: the words of the launcher before `dyntrace run`, as a JSON array */
    char *launcher;
    unsigned left_out; /* number of secret values left out of the command and of these texts */
};

enum session_place { SESSION_MAIN, SESSION_SPILL, SESSION_PLACES };

struct session {
    char directory[256]; /* "" if there is none */
    /* A second directory of the same name, for rings when shared memory is full. "" if there is
     * none. */
    char spill[256];
    /* descriptors of the two directories; -1 if there is no such directory */
    int place[SESSION_PLACES];
    char trace[PATH_MAX];       /* absolute path of the database */
    char frames[PATH_MAX + 8];  /* the file of frames during the recording: "TRACE-frames" */
    struct session_file *file;  /* shared memory, which the traced program can write */
    size_t bytes;               /* how many bytes of the session file are mapped */
    int lock;                   /* descriptor that holds the lock; -1 if the lock is not held */
    char destination[PATH_MAX]; /* where to move the finished trace; "" if it stays where it is */
    /* clock_offset_ns: how far the clock of the destination's machine is ahead of ours.
     * clock_doubt_ns: the largest error of that offset; 0 if the offset is not known. */
    int64_t clock_offset_ns, clock_doubt_ns;
    struct session_again again;
};

#define SESSION_CLOSED ((struct session){.place = {-1, -1}, .lock = -1})

/* Make a session for TRACE (an absolute path) and lock it. A forked collector takes over the lock.
 * Returns 0, or -1 after printing the error. */
int session_create(struct session *s, const char *trace, const struct session_options *options);
/* Open and lock a session that was left. Returns -1 if DIRECTORY is no session of ours, or if its
 * collector lives (*BUSY). Prints nothing. If BUSY is NULL, the session file is damaged and is not
 * read: S then has no trace. The program could write the session file, so the caller
 * must check the trace that the file names (recorder_is_of). */
int session_open(struct session *s, const char *directory, bool *busy);
/* Take the lock again after the collector that held it has died. Returns 0, or -1 if another
 * process holds it. */
int session_take(struct session *s);
/* Returns true if the session file is as long as when it was mapped. If it is shorter, reading the
 * mapping raises SIGBUS. */
bool session_whole(const struct session *s);
/* Delete the session's directories, but not the trace. */
void session_remove(struct session *s);
void session_close(struct session *s);

/* Call VISIT for each file of the session's directories. For a process file, call VISIT with the
 * HEADER of its first process, then of each process nested in the file, newest first. The NAME of
 * a nested process is the file's name and an offset (session_name). For other files HEADER is
 * NULL. */
typedef void session_visitor(void *context, const char *name, enum session_place place,
                             const struct process_file *header);
void session_processes(const struct session *s, session_visitor *visit, void *context);

/* Longest name of a process file, and longest result of session_name(). */
enum { SESSION_FILE_NAME = 48, SESSION_NAME = 64 };
/* Write the name of the process at OFFSET of FILE to NAME. FILE may be the name of any process in
 * that file. */
void session_name(char name[SESSION_NAME], const char *file, uint64_t offset);

enum liveness { LIVE_NO, LIVE_YES, LIVE_UNKNOWN };

/* Does the collector of the session in DIRECTORY run? DIRECTORY is row `session` of `meta`; NULL
 * gives LIVE_UNKNOWN. Viewers call this function, too. */
enum liveness session_live(const char *directory);

/* Call VISIT with each session directory of this user. */
void session_each(void (*visit)(const char *directory, void *context), void *context);

/* Words for the values of enum session_frames, session_torch, session_values and session_reading,
 * in their order. */
#define SESSION_FRAMES_WORDS "all user none decided"
#define SESSION_TORCH_WORDS "auto shim observe off"
#define SESSION_VALUES_WORDS "all types off"
#define SESSION_READING_WORDS "exact coarse"

/* Choose the session's clock: the CPU's counter if the kernel trusts it, else CLOCK_MONOTONIC. */
enum session_clock session_clock_choose(void);
/* Read the clock of the session FILE. */
static inline uint64_t session_now(const struct session_file *file)
{
    return file->clock == SESSION_MONOTONIC ? clock_monotonic_ns() : clock_counter();
}
/* Returns true if directory PATH has room for rings and we may write there. */
bool session_has_room(const char *path);

#endif
