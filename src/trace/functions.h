/* trace/functions.h -- SQL functions for the statements in schemas/: words for a trace's values.
 *
 * With them all pages print the same words for the same fact:
 *
 *     as_written(source)             trace/expression.h: "self.kv.size"
 *     brief(value, beside)           trace/brief.h: "0.3706"
 *     cause_name(CAUSE) the subject of a cause: "len(x)"
 *     cause_expected(CAUSE)          "6", cut short where the actual value differs all the same
 *     cause_actual(CAUSE)            "7"
 *     cause_seen(CAUSE)              "7.000000123": whole, for a list that brief() then cuts
 *     cause_words(CAUSE)             all of it: "n: expected 6, actual 7"; NULL: no value is known
 *     needed_by(stack, text, function)
 *                                    the line of the program: "if n in d, a/b.py:8"
 *     stack_path(stack)              "train (a.py:25) -> timer (a.py:12)"
 *     reason_part(reason, part)      'what', 'why' or 'hint' of torch's reason; NULL: it has none
 *     resume_words(qualname)         "the rest of f after line 12"; NULL: no resume function
 *     function_of(code_id)           functions.function_id (trace/function_ids.h)
 *
 * CAUSE: kind, source, aspect, dimension, expected, actual, text of recompile_cause. They can be
 * called by our SQL and by SQL that a user types, not by views in a trace. */
#ifndef DYNTRACE_FUNCTIONS_H
#define DYNTRACE_FUNCTIONS_H

struct functions;
struct lines;
struct sqlite3;

/* Add them to a connection; owned by the caller, which frees them after it is closed. */
struct functions *functions_add(struct sqlite3 *handle);

/* The connection reads another file now. */
void functions_forget(struct functions *functions);

/* Lines of the source that was recorded. Borrowed. */
struct lines *functions_lines(struct functions *functions);

void functions_free(struct functions *functions);

#endif
