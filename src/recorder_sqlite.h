/* recorder_sqlite.h -- the trace's tables, as the collector writes them.
 *
 * Runs in: the collector.
 *
 *     r = recorder_open(path)                the live file of collector/trace_files.h
 *     recorder_put(r, GUARD, {.guard_id = 7, .kind = fact_make_text("ID_MATCH")})
 *                                            rows in any order
 *     recorder_commit(r)                     now readers see them
 *     recorder_close(r)
 *
 * The collector chooses the ids of rows. A row that is written again replaces the old row, so a
 * recovery may write rows a second time. If the collector is killed, its rows since the last commit
 * are lost. Most are written again, from facts. Some rows are unrepeatable: they come from words of
 * a ring that the program may overwrite, or from an answer that the system gives only once (an exit
 * status). recorder_commit_if_unrepeatable() commits these rows before their source is lost. If a
 * row cannot be written (disk full), the next recorder_commit tries again. */
#ifndef DYNTRACE_RECORDER_SQLITE_H
#define DYNTRACE_RECORDER_SQLITE_H

#include <signal.h>

#include "tables.h"

enum { ROW_CAUSE_MAX = 1000 /* longest cause, in bytes, that a program can give */ };

struct recorder;
struct sqlite3;

/* The kinds of rows: X(name, table, how, columns). The columns of a compile or a process become
 * known in parts, in any order; each part is a separate kind.
 *
 *   how       WHOLE   all columns are given: an existing row is replaced
 *             PART    some columns of a row that may exist already; a column that is NULL here
 *                     keeps its value
 *             STATEMENT  the statement in schemas/recorder.sql; the columns are its parameters
 *             | ONCE     the row is unrepeatable
 *   columns   the first is the key. "end_ns=": an existing value stays. "label?": an empty text is
 *             stored as NULL
 *
 * The caller fills in all columns of a row. A text or id that is not set becomes NULL, but a time
 * or number that is not set becomes 0, and 0 replaces the value in a PART. So values that become
 * known separately are separate kinds here (PROCESS_RANK). */
/* clang-format off */
#define RECORDER_PUTS(X) \
    X(PROCESS, process, PART, "process_id pid= own_pid= parent_process_id= mode start_ns") \
    X(PROCESS_SAYS, process, PART, \
      "process_id argv executable python_version torch_version torch_mode? torch_note?") \
    X(PROCESS_RANK, process, PART, "process_id rank local_rank") \
    X(PROCESS_FORKED, process, STATEMENT, "process_id parent_process_id") \
    X(PROCESS_LEFT_OUT, process, PART, \
      "process_id left_out_functions left_out_frames left_out_decisions") \
    X(PROCESS_END, process, PART | ONCE, "process_id pid= end_ns= exit_code= exit_signal=") \
    X(UNCAUGHT, uncaught, WHOLE, "process_id at_ns type code_id line") \
    X(THREAD, thread, WHOLE, "thread_id process_id os_tid name?") \
    X(CODE, code, PART, "code_id process_id filename qualname first_line kind= fingerprint") \
    X(ORIGIN, code, PART, "code_id origin_code_id kind") \
    X(TOTAL, code_total, STATEMENT, \
      "code_id calls total_ns self_ns raised max_ns skipped library_ns") \
    X(THREAD_CPU, thread_cpu, WHOLE, "thread_id at_ns cpu_ns queued_ns") \
    X(STRETCH, stretch, WHOLE, \
      "thread_id start_ns end_ns frame_id code_id ran_ns waited_ns queued_ns") \
    X(COUNTED, frame_count, WHOLE, \
      "rowid code_id phase outcome frames calls total_ns self_ns raised max_ns first_ns last_ns " \
      "inner_ns") \
    X(LOSS, loss, WHOLE | ONCE, "rowid process_id thread_id at_ns events cause") \
    X(ENTRY, cache_entry, PART, \
      "cache_entry_id code_id= label= backend= region_id= guard_count= born_ns=") \
    X(ENTRY_DIED, cache_entry, STATEMENT, "cache_entry_id died_ns death_cause") \
    X(ENTRY_COMPILE, cache_entry, PART, "cache_entry_id compile_id") \
    X(GUARD, guard, WHOLE, "guard_id cache_entry_id ordinal kind source expression user_stack?") \
    X(GUARD_ORDER, guard_order, WHOLE, "rowid cache_entry_id from_ns ordinals process_id") \
    X(COMPILE_BEGUN, compile, PART, "compile_id code_id= start_ns=") \
    X(COMPILE_FRAME, compile, PART | ONCE, "compile_id frame_id thread_id") \
    X(COMPILE_ENTRY, compile, PART, "compile_id cache_entry_id") \
    X(COMPILE, compile, PART, "compile_id code_id label?= outcome?= reason?= start_ns end_ns") \
    X(COMPILE_NOTE, compile, PART, "compile_id label? outcome? reason? sticky") \
    X(CAUSE, recompile_cause, STATEMENT, \
      "rowid compile_id cache_entry_id ordinal guard_id kind source aspect? dimension expected? " \
      "actual? text how") \
    X(SIGNATURE, signature, WHOLE, "signature_id text") \
    X(LOOKUP, lookup, WHOLE, \
      "lookup_id frame_id thread_id code_id start_ns duration_ns outcome cache_entry_id " \
      "entries_checked signature_id") \
    X(CHECK, guard_check, WHOLE, \
      "guard_check_id lookup_id position cache_entry_id result failed_guard_id guards_run " \
      "duration_ns") \
    X(LATE_ENTRY, frame, STATEMENT | ONCE, "frame_id cache_entry_id") \
    X(LEFT_OPEN, frame, STATEMENT | ONCE, "frame_id") \
    X(LONG_FRAME, frame, STATEMENT | ONCE, \
      "frame_id thread_id parent_id code_id kind outcome start_ns end_ns cache_entry_id exit") \
    X(LONG_FRAME_END, frame, STATEMENT | ONCE, "frame_id outcome end_ns exit") \
    X(SPAN, span, PART | ONCE, \
      "span_id parent_span_id thread_id frame_id name start_ns attributes? kind") \
    X(SPAN_END, span, PART | ONCE, "span_id end_ns") \
    X(CALL_ARGUMENTS, call_args, PART | ONCE, "frame_id arguments") \
    X(CALL_RESULT, call_args, PART | ONCE, "frame_id result") \
    X(GRAPH, graph, WHOLE, "graph_id compile_id name node_count") \
    X(GRAPH_NODE, graph_node, WHOLE, "graph_id ordinal opcode name target args kwargs") \
    X(BREAK, graph_break, WHOLE, \
      "graph_break_id compile_id code_id line offset reason user_stack resume_code_id") \
    X(LISTING, listing, WHOLE, "rowid compile_id kind text") \
    X(PHASE, compile_phase, WHOLE, "rowid compile_id name start_ns end_ns label?") \
    X(MARK, code_mark, WHOLE, "rowid code_id at_ns action recursive_action region_id reason?")
/* clang-format on */

enum recorder_put {
#define X(NAME, ...) PUT_##NAME,
    RECORDER_PUTS(X)
#undef X
        PUTS
};
#define X(NAME, table, ...) typedef struct row_##table PUT_##NAME##_ROW;
RECORDER_PUTS(X)
#undef X

/* Write a row with the columns that RECORDER_PUTS lists for NAME; other members are ignored. A row
 * whose key is 0 is not written. The texts are copied. */
#define recorder_put(r, NAME, ...) recorder_write((r), PUT_##NAME, &(PUT_##NAME##_ROW)__VA_ARGS__)
void recorder_write(struct recorder *r, enum recorder_put which, const void *row);

/* Like recorder_write, but takes the row from arrays: VALUES has a number for each column of WHICH.
 * ROW_NONE stands for NULL; for a text the number is its length. TEXTS has the texts that are not
 * NULL, in the order of their columns. */
void recorder_write_values(struct recorder *r, enum recorder_put which, const int64_t *values,
                           const char *const *texts);

/* Set KEY in the table meta to TEXT, or to VALUE if TEXT is NULL. */
void recorder_set_meta(struct recorder *r, const char *key, const char *text, int64_t value);

/* Run the statement with the name STATEMENT in schemas/, which returns no rows. */
void recorder_run(struct recorder *r, const char *statement);

/* Open the live file at PATH. recorder_close frees the recorder. Returns NULL on error, and then
 * sets *ERROR to a static text. */
struct recorder *recorder_open(const char *path, const char **error);
/* Add the trace's views to the file, as rows of sqlite_schema. SQLite parses these rows only when
 * the file is opened again. Parsing them here would take most of a short recording's time; adding
 * the rows overlaps with the start of the program. */
void recorder_add_views(struct recorder *r);
/* Return the recorder's database connection, borrowed. */
struct sqlite3 *recorder_database(struct recorder *r);
/* Return the last error of connection DB, followed by the system's error if there is one. The text
 * is static. */
const char *recorder_error_message(struct sqlite3 *db);
/* Return the system's errno for the last error of a connection, or 0. */
int recorder_system_error(struct sqlite3 *db);
void recorder_close(struct recorder *r);

/* Note that recorder_write_values has written an unrepeatable row, one that could not be made again
 * after a kill. */
void recorder_mark_unrepeatable(struct recorder *r);
/* Limit SQLite's log to PAGES pages. As long as a reader prevents SQLite from reusing the log,
 * nothing is committed. */
void recorder_bound_log(struct recorder *r, int pages);
/* Does a reader prevent SQLite from reusing the log? */
bool recorder_is_log_held(const struct recorder *r);

/* Commit if a row that could not be made again after a kill was written since the last commit. */
void recorder_commit_if_unrepeatable(struct recorder *r);
/* Commit. Returns true if everything written so far is in the file. */
bool recorder_commit(struct recorder *r);
/* Return the text of the last error, or NULL. Borrowed until the next call. */
const char *recorder_error(const struct recorder *r);

/* Run SQL with ID as the value of ?1. Returns false if there is no row. Otherwise sets FOUND to the
 * row's first COLUMNS columns, which are numbers. */
bool recorder_query_row(struct recorder *r, const char *sql, int64_t id, int64_t *found,
                        int columns);
/* Return the number that the query SQL returns; 0 on error. */
int64_t recorder_query_number(struct recorder *r, const char *sql);

/* Return the number of rows of `loss` about missing events that are not counted elsewhere. Sets
 * WORST to the cause of the largest loss. */
uint64_t recorder_count_losses(struct recorder *r, char *worst, size_t room);

/* Nonzero while SQLite runs. A signal handler must not jump out of SQLite with siglongjmp(). */
extern volatile sig_atomic_t recorder_in_sqlite;

#endif
