/* recorder_sqlite.h -- the trace's tables, as the collector writes them.
 *
 * Runs in: the collector.
 *
 *     recorder_create(path)                  an empty trace, and a copy for the frames
 *     r = recorder_open(path)
 *     recorder_process(r, ..), _thread, _code, _total, _loss, _meta ...   any order, any number of times
 *     recorder_commit(r)                     now readers see them
 *     recorder_close(r)
 *     recorder_join(path)                    one plain file, under PATH
 *
 * Rows are keyed by ids that the collector gives, and written over when said
 * again, so that a recovered session may repeat itself. Those that could not be
 * said again after a kill go through the session's log (collector/row_log.h) until they are
 * committed. A row that cannot be written (disk full) is tried again at the next
 * recorder_commit. */
#ifndef DYNTRACE_RECORDER_SQLITE_H
#define DYNTRACE_RECORDER_SQLITE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "collector/row_log.h"

struct recorder;

struct recorder_process {
    uint32_t process_id, parent_process_id;  /* parent 0: none */
    uint32_t pid;
    const char *argv;                        /* JSON array, or NULL */
    const char *executable, *python_version, *mode;
    int64_t rank, local_rank;                /* -1: none */
    const char *torch_version, *torch_mode, *torch_note; /* or NULL */
    uint64_t start_ns;
    bool ended, has_status;
    uint64_t end_ns;
    int exit_code, exit_signal;              /* signal 0: exited */
};

struct recorder_code {
    uint32_t code_id, process_id;
    const char *name, *file;
    uint32_t name_bytes, file_bytes;
    int32_t first_line;
    uint32_t flags;                          /* co_flags */
    uint64_t fingerprint;
};

/* Make the live database PATH (owner-only) with every table, and FRAMES beside
 * it for the pages of `frame`. With FORCE an existing PATH is replaced.
 * Prints what is wrong; 0 or -1. FIRST and ROOT are file pages (collector/frame_pages.h). */
int recorder_create(const char *path, const char *frames, bool force, uint32_t *first, uint32_t *root);

/* Owned by the caller; recorder_close frees it. NULL: *ERROR says why (static). */
struct recorder *recorder_open(const char *path, const char **error);
void recorder_close(struct recorder *r);

/* From now on rows go through LOG (borrowed), whose file is FD. */
void recorder_log(struct recorder *r, struct row_log *log, int fd);
/* Say again what the log holds below END, and commit. */
bool recorder_replay(struct recorder *r, uint64_t end);
/* Has the log so many rows that it is time to commit? */
bool recorder_log_full(const struct recorder *r);

/* A text that is NULL keeps what was said before. */
void recorder_process(struct recorder *r, const struct recorder_process *process);
void recorder_thread(struct recorder *r, uint32_t thread_id, uint32_t process_id, uint32_t os_tid,
                     const char *name, uint32_t name_bytes);
void recorder_code(struct recorder *r, const struct recorder_code *code);
void recorder_total(struct recorder *r, uint32_t code_id, uint64_t calls, uint64_t total_ns,
                    uint64_t self_ns, uint64_t raised);
struct recorder_loss {
    uint64_t loss_id, at_ns, events; /* id 0: any; events RECORDER_MANY: nobody can know how many */
    uint32_t process_id, thread_id;  /* 0: none */
};
#define RECORDER_MANY UINT64_MAX
void recorder_loss(struct recorder *r, const struct recorder_loss *loss, const char *cause);
/* The shim's tables. Texts are owned by the caller; BYTES -1: up to its NUL. NOTE_ID: of a row
 * that has no key of its own, so that a recovery can say it again. */
struct recorder_text {
    const char *text;
    int bytes;
};
void recorder_entry(struct recorder *r, uint32_t entry_id, uint32_t code_id, struct recorder_text label,
                    struct recorder_text backend, int64_t region, uint32_t guards, uint64_t born_ns);
void recorder_entry_died(struct recorder *r, uint32_t entry_id, uint64_t died_ns, struct recorder_text cause);
void recorder_guard(struct recorder *r, uint32_t guard_id, uint32_t entry_id, uint32_t ordinal, struct recorder_text kind,
                    struct recorder_text source, struct recorder_text expression, struct recorder_text stack);
void recorder_guard_order(struct recorder *r, uint32_t note_id, uint32_t entry_id, uint64_t from_ns, struct recorder_text ordinals);
void recorder_compile(struct recorder *r, uint32_t compile_id, uint32_t code_id, struct recorder_text label,
                      struct recorder_text outcome, struct recorder_text reason, uint64_t start_ns, uint64_t end_ns);
/* It has begun: the rest may follow. */
void recorder_compile_begun(struct recorder *r, uint32_t compile_id, uint32_t code_id, uint64_t start_ns);
/* The compile was of this frame. */
void recorder_compile_frame(struct recorder *r, uint32_t compile_id, uint64_t frame_id, uint32_t thread_id);
/* The compile made this entry. */
void recorder_compile_entry(struct recorder *r, uint32_t compile_id, uint32_t entry_id);
struct recorder_cause {
    uint32_t note_id, compile_id, entry_id, ordinal, guard_id; /* guard_id 0: no guard of the entry is the cause */
    struct recorder_text kind, source;                         /* "": the guard's own */
    struct recorder_text aspect, expected, actual, words;      /* "": not known */
    int dimension;                                             /* -1: none */
    bool again;
};
void recorder_cause(struct recorder *r, const struct recorder_cause *cause);
/* What torch's bridge notes. "" and STICKY 2: not known, keeps what is there. */
void recorder_note(struct recorder *r, uint32_t compile_id, struct recorder_text label, struct recorder_text outcome,
                   struct recorder_text reason, int sticky);
void recorder_graph(struct recorder *r, uint32_t graph_id, uint32_t compile_id, struct recorder_text name, uint32_t nodes);
/* FIELDS: opcode, name, target, args, kwargs. */
void recorder_graph_node(struct recorder *r, uint32_t graph_id, uint32_t ordinal, const struct recorder_text fields[5]);
/* OFFSET -1: not known; ids 0: none. */
void recorder_break(struct recorder *r, uint32_t break_id, uint32_t compile_id, uint32_t code_id, int64_t line, int64_t offset,
                    struct recorder_text reason, struct recorder_text stack, uint32_t resume_code_id);
void recorder_listing(struct recorder *r, uint32_t note_id, uint32_t compile_id, struct recorder_text kind, struct recorder_text text);
void recorder_phase(struct recorder *r, uint32_t note_id, uint32_t compile_id, struct recorder_text name, uint64_t start_ns, uint64_t end_ns,
                    struct recorder_text label);
void recorder_origin(struct recorder *r, uint32_t code_id, uint32_t origin_code_id, struct recorder_text kind);
void recorder_mark(struct recorder *r, uint32_t note_id, uint32_t code_id, uint64_t at_ns, const char *action, const char *callees, int64_t region,
                   struct recorder_text reason);
void recorder_signature(struct recorder *r, uint32_t signature_id, struct recorder_text text);
#define RECORDER_UNKNOWN UINT32_MAX /* of recorder_lookup.checked */
struct recorder_lookup {
    uint64_t lookup_id, frame_id, start_ns, duration_ns;
    uint32_t thread_id, code_id, outcome, entry_id, checked, signature_id; /* ids 0: none */
};
void recorder_lookup(struct recorder *r, const struct recorder_lookup *lookup);
struct recorder_check {
    uint64_t check_id, lookup_id;
    uint32_t position, entry_id, failed_guard_id;
    uint32_t result;                   /* enum check_result */
    int64_t guards_run, duration_ns;   /* -1: not known */
};
void recorder_check(struct recorder *r, const struct recorder_check *check);
/* frame.cache_entry_id of a row that could not take it: set when the files are joined. */
void recorder_late_entry(struct recorder *r, uint64_t frame_id, uint32_t entry_id);

void recorder_meta(struct recorder *r, const char *key, const char *text);
void recorder_meta_integer(struct recorder *r, const char *key, int64_t value);

/* What an earlier collector said of code objects: each is given to TAKE. */
void recorder_totals_read(struct recorder *r, void (*take)(void *context, uint32_t code_id, const uint64_t totals[4]),
                          void *context);
/* Rows of `loss` that tell of something which is missing and is not told otherwise; WORST: what the largest of them says. */
uint64_t recorder_missing(struct recorder *r, char *worst, size_t room);

/* True while SQLite is at work, whose memory must not be left in the middle. */
extern volatile sig_atomic_t recorder_in_sqlite;

/* True while everything said so far is in the file. */
bool recorder_commit(struct recorder *r);
/* What went wrong last, or NULL. Borrowed until the next call. */
const char *recorder_error(const struct recorder *r);

/* What a killed collector had only in its memory, made from the finished trace
 * PATH: rows for the code and threads that it had no time to name, and totals, unless
 * --min-duration keeps some of them to itself. How many FRAMES, of how many PROCESSES. */
int recorder_mend(const char *path, uint64_t *frames, uint32_t *processes);

/* Frames of the finished trace PATH whose parent is not in it have none, and processes that only threads name have a row. */
int recorder_orphans(const char *path);

/* Copy the tables of the live database LIVE into FRAMES, whose `frame` table is
 * finished, write STATE in it, and publish it. Nothing may be open on either. 0, or -1 with *ERROR
 * (static). LIVE stays as it is when that fails. */
int recorder_join(const char *live, const char *frames, const char *state, const char **error);
/* Are LIVE and FRAMES the two files of the recording in directory SESSION? Whoever is told their names by a session
 * asks before it writes to them. */
bool recorder_is_of(const char *live, const char *frames, const char *session);
/* Is PATH a whole trace? (A kill may come between any two steps of the above.) */
bool recorder_finished(const char *path);
/* In FRAMES, whose frames are not finished: how many pages the other tables have, and the page of `frame`'s root. 0 or -1. */
int recorder_pages(const char *frames, uint32_t *pages, uint32_t *root);
/* The session that records PATH on this machine, to be freed; NULL: none does. */
char *recorder_session(const char *path);
/* Rename FRAMES to LIVE, and take away what belongs to the old LIVE. */
int recorder_publish(const char *live, const char *frames, const char **error);

#endif
