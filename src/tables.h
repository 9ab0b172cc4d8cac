/* tables.h -- the tables of a trace and their columns, for C code that writes or copies rows.
 *
 * Runs in: the collector and the viewer.
 *
 * A table is a list of columns, in the order of schemas/trace.sql (which says what the columns
 * mean; tests/unit/test_schema.c compares the two files):
 *
 *     KEY(guard_id, GUARD)       the table's own id
 *     ID(cache_entry_id, ENTRY)  the id of a row elsewhere; 0 is NULL
 *     TIME(from_ns)              nanoseconds since the session began; ROW_NONE is NULL
 *     NUMBER(ordinal)            ROW_NONE is NULL
 *     TEXT(kind)                 text, its bytes; without a text it is NULL
 *
 * Each list defines a struct, such as row_guard, with a member for each column, and an item of
 * row_tables, such as row_tables[TABLE_guard], which lists the columns. To add a column, add one
 * word here, and fill in the member where the value is known. A table without a key of its own has
 * `rowid`. */
#ifndef DYNTRACE_TABLES_H
#define DYNTRACE_TABLES_H

#include <stddef.h>

#include "facts.h"

/* clang-format off */
#define COLUMNS_process(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(process_id, PROCESS) \
    NUMBER(pid) \
    ID(parent_process_id, PROCESS) \
    NUMBER(rank) \
    NUMBER(local_rank) \
    TEXT(argv) \
    TEXT(executable) \
    TEXT(python_version) \
    TEXT(torch_version) \
    TEXT(mode) \
    TEXT(torch_mode) \
    TEXT(torch_note) \
    TIME(start_ns) \
    TIME(end_ns) \
    NUMBER(exit_code) \
    NUMBER(exit_signal) \
    TEXT(host) \
    NUMBER(own_pid) \
    NUMBER(left_out_functions) \
    NUMBER(left_out_frames) \
    NUMBER(left_out_decisions)
#define COLUMNS_uncaught(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(process_id, PROCESS) \
    TIME(at_ns) \
    TEXT(type) \
    ID(code_id, CODE) \
    NUMBER(line)
#define COLUMNS_thread(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(thread_id, THREAD) \
    ID(process_id, PROCESS) \
    NUMBER(os_tid) \
    TEXT(name)
#define COLUMNS_code(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(code_id, CODE) \
    ID(process_id, PROCESS) \
    TEXT(filename) \
    TEXT(qualname) \
    NUMBER(first_line) \
    TEXT(kind) \
    ID(origin_code_id, CODE) \
    NUMBER(fingerprint)
#define COLUMNS_frame(KEY, ID, TIME, NUMBER, TEXT) /* written by collector/frame_pages.c */ \
    KEY(frame_id, FRAME) \
    ID(thread_id, THREAD) \
    ID(parent_id, FRAME) \
    ID(code_id, CODE) \
    NUMBER(kind) \
    NUMBER(outcome) \
    TIME(start_ns) \
    TIME(end_ns) \
    ID(cache_entry_id, ENTRY) \
    NUMBER(exit)
#define COLUMNS_code_total(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(code_id, CODE) \
    NUMBER(calls) \
    NUMBER(total_ns) \
    NUMBER(self_ns) \
    NUMBER(raised) \
    NUMBER(max_ns) \
    NUMBER(skipped) \
    NUMBER(library_ns)
#define COLUMNS_thread_cpu(KEY, ID, TIME, NUMBER, TEXT) \
    ID(thread_id, THREAD) \
    TIME(at_ns) \
    NUMBER(cpu_ns) \
    NUMBER(queued_ns)
#define COLUMNS_stretch(KEY, ID, TIME, NUMBER, TEXT) \
    ID(thread_id, THREAD) \
    TIME(start_ns) \
    TIME(end_ns) \
    ID(frame_id, FRAME) \
    ID(code_id, CODE) \
    NUMBER(ran_ns) \
    NUMBER(waited_ns) \
    NUMBER(queued_ns)
#define COLUMNS_frame_count(KEY, ID, TIME, NUMBER, TEXT) \
    ID(code_id, CODE) \
    NUMBER(phase) \
    NUMBER(outcome) \
    NUMBER(frames) \
    NUMBER(calls) \
    NUMBER(total_ns) \
    NUMBER(self_ns) \
    NUMBER(raised) \
    NUMBER(max_ns) \
    TIME(first_ns) \
    TIME(last_ns) \
    NUMBER(inner_ns) \
    ID(rowid, ROW)
#define COLUMNS_signature(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(signature_id, SIGNATURE) \
    TEXT(text)
#define COLUMNS_lookup(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(lookup_id, LOOKUP) \
    ID(frame_id, FRAME) \
    ID(thread_id, THREAD) \
    ID(code_id, CODE) \
    TIME(start_ns) \
    NUMBER(duration_ns) \
    NUMBER(outcome) \
    ID(cache_entry_id, ENTRY) \
    NUMBER(entries_checked) \
    ID(signature_id, SIGNATURE)
#define COLUMNS_guard_check(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(guard_check_id, CHECK) \
    ID(lookup_id, LOOKUP) \
    NUMBER(position) \
    ID(cache_entry_id, ENTRY) \
    TEXT(result) \
    ID(failed_guard_id, GUARD) \
    NUMBER(guards_run) \
    NUMBER(duration_ns)
#define COLUMNS_lookup_count(KEY, ID, TIME, NUMBER, TEXT) \
    ID(process_id, PROCESS) \
    ID(code_id, CODE) \
    NUMBER(outcome) \
    ID(cache_entry_id, ENTRY) \
    NUMBER(lookups) \
    NUMBER(duration_ns) \
    NUMBER(entries_checked) \
    TIME(first_ns) \
    TIME(last_ns) \
    ID(rowid, ROW)
#define COLUMNS_cache_entry(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(cache_entry_id, ENTRY) \
    ID(code_id, CODE) \
    ID(compile_id, COMPILE) \
    TEXT(label) \
    TEXT(backend) \
    NUMBER(region_id) \
    NUMBER(guard_count) \
    TIME(born_ns) \
    TIME(died_ns) \
    TEXT(death_cause)
#define COLUMNS_guard(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(guard_id, GUARD) \
    ID(cache_entry_id, ENTRY) \
    NUMBER(ordinal) \
    TEXT(kind) \
    TEXT(source) \
    TEXT(expression) \
    TEXT(user_stack)
#define COLUMNS_guard_order(KEY, ID, TIME, NUMBER, TEXT) \
    ID(cache_entry_id, ENTRY) \
    TIME(from_ns) \
    TEXT(ordinals) \
    ID(process_id, PROCESS) \
    ID(rowid, ROW)
#define COLUMNS_compile(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(compile_id, COMPILE) \
    ID(frame_id, FRAME) \
    ID(code_id, CODE) \
    ID(thread_id, THREAD) \
    TEXT(label) \
    TIME(start_ns) \
    TIME(end_ns) \
    TEXT(outcome) \
    ID(cache_entry_id, ENTRY) \
    TEXT(reason) \
    NUMBER(sticky)
#define COLUMNS_compile_phase(KEY, ID, TIME, NUMBER, TEXT) \
    ID(compile_id, COMPILE) \
    TEXT(name) \
    TIME(start_ns) \
    TIME(end_ns) \
    TEXT(label) \
    ID(rowid, ROW)
#define COLUMNS_code_mark(KEY, ID, TIME, NUMBER, TEXT) \
    ID(code_id, CODE) \
    TIME(at_ns) \
    TEXT(action) \
    TEXT(recursive_action) \
    NUMBER(region_id) \
    TEXT(reason) \
    ID(rowid, ROW)
#define COLUMNS_recompile_cause(KEY, ID, TIME, NUMBER, TEXT) \
    ID(compile_id, COMPILE) \
    ID(cache_entry_id, ENTRY) \
    NUMBER(ordinal) \
    ID(guard_id, GUARD) \
    TEXT(kind) \
    TEXT(source) \
    TEXT(aspect) \
    NUMBER(dimension) \
    TEXT(expected) \
    TEXT(actual) \
    TEXT(text) \
    TEXT(how) \
    ID(rowid, ROW)
#define COLUMNS_graph_break(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(graph_break_id, BREAK) \
    ID(compile_id, COMPILE) \
    ID(code_id, CODE) \
    NUMBER(line) \
    NUMBER(offset) \
    TEXT(reason) \
    TEXT(user_stack) \
    ID(resume_code_id, CODE)
#define COLUMNS_graph(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(graph_id, GRAPH) \
    ID(compile_id, COMPILE) \
    TEXT(name) \
    NUMBER(node_count)
#define COLUMNS_graph_node(KEY, ID, TIME, NUMBER, TEXT) \
    ID(graph_id, GRAPH) \
    NUMBER(ordinal) \
    TEXT(opcode) \
    TEXT(name) \
    TEXT(target) \
    TEXT(args) \
    TEXT(kwargs)
#define COLUMNS_listing(KEY, ID, TIME, NUMBER, TEXT) \
    ID(compile_id, COMPILE) \
    TEXT(kind) \
    TEXT(text) \
    ID(rowid, ROW)
#define COLUMNS_span(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(span_id, SPAN) \
    ID(parent_span_id, SPAN) \
    ID(thread_id, THREAD) \
    ID(frame_id, FRAME) \
    TEXT(name) \
    TIME(start_ns) \
    TIME(end_ns) \
    TEXT(attributes) \
    TEXT(kind)
#define COLUMNS_call_args(KEY, ID, TIME, NUMBER, TEXT) \
    KEY(frame_id, FRAME) \
    TEXT(arguments) \
    TEXT(result)
#define COLUMNS_loss(KEY, ID, TIME, NUMBER, TEXT) \
    ID(process_id, PROCESS) \
    ID(thread_id, THREAD) \
    TIME(at_ns) \
    NUMBER(events) \
    TEXT(cause) \
    ID(rowid, ROW)
#define COLUMNS_trial(KEY, ID, TIME, NUMBER, TEXT) /* written by trace/trials.c */ \
    KEY(trial_id, TRIAL) \
    ID(batch, TRIAL) \
    TEXT(setting) \
    TEXT(command) \
    ID(function_id, CODE) \
    NUMBER(started_unix_ns) \
    NUMBER(duration_ns) \
    NUMBER(exit_code) \
    NUMBER(exit_signal) \
    NUMBER(output_same) \
    TEXT(difference) \
    TEXT(values_same) \
    TEXT(error) \
    NUMBER(step_ns) \
    NUMBER(compiles) \
    NUMBER(recompiles) \
    NUMBER(breaks) \
    NUMBER(eager) \
    NUMBER(hits) \
    NUMBER(compile_ns)
#define COLUMNS_trial_function(KEY, ID, TIME, NUMBER, TEXT) \
    ID(trial_id, TRIAL) \
    ID(function_id, CODE) \
    NUMBER(compiles) \
    NUMBER(recompiles) \
    NUMBER(breaks) \
    NUMBER(eager) \
    NUMBER(hits) \
    NUMBER(compile_ns) \
    NUMBER(step_ns) \
    ID(rowid, ROW)
/* clang-format on */

/* All tables except meta and enum. A table comes after the tables to which its ids refer. */
/* clang-format off */
#define TABLES(X) \
    X(process) X(thread) X(code) X(frame) X(code_total) X(frame_count) X(thread_cpu) X(stretch) \
    X(signature) X(lookup) X(guard_check) X(cache_entry) X(lookup_count) X(guard) X(guard_order) \
    X(compile) X(compile_phase) X(code_mark) X(recompile_cause) X(graph_break) X(graph) \
    X(graph_node) X(listing) X(span) X(call_args) X(uncaught) X(loss) X(trial) X(trial_function)
/* clang-format on */

enum row_table {
#define X(table) TABLE_##table,
    TABLES(X)
#undef X
        ROW_TABLES
};

/* The kinds of ids: each names the table that has rows with these ids. */
enum row_id {
    ID_NONE,
    ID_PROCESS,
    ID_THREAD,
    ID_CODE,
    ID_FRAME,
    ID_SIGNATURE,
    ID_LOOKUP,
    ID_CHECK,
    ID_ENTRY,
    ID_GUARD,
    ID_COMPILE,
    ID_BREAK,
    ID_GRAPH,
    ID_TRIAL,
    ID_SPAN,
    ID_ROW,
    ROW_IDS
};

#define ROW_NONE INT64_MIN

/* For each table a struct for one row. Its members are in the order of the columns, without
 * gaps. */
#define MEMBER_ID(name, kind) uint64_t name;
#define MEMBER_NUMBER(name) int64_t name;
#define MEMBER_TEXT(name) struct fact_text name;
#define X(table)                                                                         \
    struct row_##table {                                                                 \
        COLUMNS_##table(MEMBER_ID, MEMBER_ID, MEMBER_NUMBER, MEMBER_NUMBER, MEMBER_TEXT) \
    };
TABLES(X)
#undef X

struct row_column {
    const char *name; /* name of the column; NULL ends the list */
    enum { ROW_KEY = 1, ROW_ID, ROW_TIME, ROW_NUMBER, ROW_STRING } holds;
    enum row_id id;
};

/* At least the number of columns of the widest table, plus one for the end of the list. The
 * compiler reports an array that is too small. */
enum { ROW_COLUMNS = 24 };

static const struct row_table_facts {
    const char *name;
    struct row_column columns[ROW_COLUMNS];
} row_tables[ROW_TABLES] = {
#define LISTED_KEY(name, kind) {#name, ROW_KEY, ID_##kind},
#define LISTED_ID(name, kind) {#name, ROW_ID, ID_##kind},
#define LISTED_TIME(name) {#name, ROW_TIME, ID_NONE},
#define LISTED_NUMBER(name) {#name, ROW_NUMBER, ID_NONE},
#define LISTED_TEXT(name) {#name, ROW_STRING, ID_NONE},
#define X(table) \
    {#table,     \
     {COLUMNS_##table(LISTED_KEY, LISTED_ID, LISTED_TIME, LISTED_NUMBER, LISTED_TEXT){NULL}}},
    TABLES(X)
#undef X
};

#endif
