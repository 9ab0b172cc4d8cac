/* trace/functions.h -- SQL functions for the statements in schemas/.
 *
 * Most of them make texts of a trace's values. All pages call them, so the same fact has the same
 * words everywhere. The functions, and what they return:
 *
 *     as_written(source)             trace/expression.h: "self.kv.size"
 *     brief(value, beside)           trace/brief.h: "0.3706"
 *     cause_name(CAUSE)              the subject of the cause: "len(x)"
 *     cause_expected(CAUSE)          the expected value, shortened but still different: "6"
 *     cause_actual(CAUSE)            the actual value, shortened but still different: "7"
 *     cause_seen(CAUSE)              the actual value, not shortened: brief() shortens lists of it
 *     cause_words(CAUSE)             "n: expected 6, actual 7"; NULL if no value is known
 *     needed_by(stack, text, function)
 *                                    the line of the program: "if n in d, a/b.py:8"
 *     stack_path(stack)              "train (a.py:25) -> timer (a.py:12)"
 *     reason_part(reason, part)      PART ('what', 'why' or 'hint') of torch's reason; or NULL
 *     resume_words(qualname)         "the rest of f after line 12"; NULL if not a resume function
 *     function_of(code_id)           functions.function_id (trace/function_ids.h)
 *     span_of(frame_id)              span_id of the innermost span around a call, or NULL
 *
 * CAUSE stands for the columns kind, source, aspect, dimension, expected, actual and text of
 * recompile_cause. Our SQL and SQL that a user types can call these functions. Views in a trace
 * cannot. */
#ifndef DYNTRACE_FUNCTIONS_H
#define DYNTRACE_FUNCTIONS_H

struct functions;
struct lines;
struct sqlite3;

/* Add the SQL functions to the connection HANDLE. The caller frees the result with functions_free
 * after closing HANDLE. */
struct functions *functions_register(struct sqlite3 *handle);

/* Drop all data of the previous file, because the connection reads another file from now on. */
void functions_drop_cached_trace(struct functions *functions);

/* Return the source lines of the recorded program. Borrowed. */
struct lines *functions_get_lines(struct functions *functions);

void functions_free(struct functions *functions);

#endif
