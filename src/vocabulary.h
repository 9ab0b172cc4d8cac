/* vocabulary.h -- the numbers and words of a trace, each defined once.
 *
 * Runs in: the traced process, the collector and the viewer.
 *
 * A vocabulary is a list of rows X(number, NAME, "word", ...). The trace stores the number, and
 * people read the word. SQL in schemas/ uses the names as $HIT or $CHECK_PASS; schemas/names.awk
 * reads this file and replaces the names by their numbers. Only trace.sql, which people read as a
 * document, has the numbers, in its table `enum`; tests/unit/test_schema.c compares them with this
 * file. A number is never given a new meaning. */
#ifndef DYNTRACE_VOCABULARY_H
#define DYNTRACE_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a call was decided (frame.outcome, lookup.outcome).
 *
 *   asked    compiled code was wanted, so that the call counts in shares (docs/answers.md)
 *   missed   the cache was searched, and no entry matched
 *   python   the call ran as Python though compiled code was wanted
 *            (a skip counts only where the function was given up, see the view given_up; other
 *            skips are no calls of watched code)
 *   style    of the word on a screen: GOOD, ACCENT, DIM, WARN, ALARM
 *   words    for a sentence; `torch` has other words for users of torch, or is NULL
 *
 *    number, NAME, "word", asked, missed, python, style, "words", torch */
#define OUTCOME_ROWS(X)                                                                            \
    X(0, PLAIN, "plain", false, false, false, DIM, "no compiler was asked", "torch was not asked") \
    X(1, HIT, "hit", true, false, false, GOOD, "ran compiled code", NULL)                          \
    X(2, COMPILED, "compiled", true, true, false, ACCENT,                                          \
      "no entry fitted: compiled, then ran that", NULL)                                            \
    X(3, RUN_ONLY, "run_only", true, true, true, WARN,                                             \
      "no entry fitted, compiling was not allowed: ran as Python",                                 \
      "no entry fitted, compiling was forbidden (a stance, or a caller at its limit): ran "        \
      "eagerly")                                                                                   \
    X(4, SKIP, "skip", true, false, true, DIM, "marked never to be compiled: ran as Python",       \
      "torch skips it: ran eagerly")                                                               \
    X(5, LIMIT, "limit", true, true, true, ALARM,                                                  \
      "no entry fitted, the limit was reached: ran as Python",                                     \
      "no entry fitted, the limit was reached: ran eagerly")                                       \
    X(6, DECLINED, "declined", true, true, true, WARN, "the compiler gave no code: ran as Python", \
      "torch gave no code: ran eagerly")                                                           \
    X(7, DISABLED, "disabled", false, false, false, DIM,                                           \
      "the compiler was off on this thread: ran as Python",                                        \
      "the compiler was off (force_eager, disable): ran eagerly")                                  \
    X(8, GUARD_ERROR, "guard_error", true, true, false, ALARM, "a guard raised: the call failed",  \
      NULL)                                                                                        \
    X(9, CALLBACK_ERROR, "callback_error", true, true, false, ALARM,                               \
      "the compiler raised: the call failed", "torch raised while compiling: the call failed")

enum outcome {
#define X(number, NAME, ...) OUTCOME_##NAME = number,
    OUTCOME_ROWS(X)
#undef X
        OUTCOMES
};

struct outcome_facts {
    /* torch: words for users of torch; NULL: the same as `words` */
    const char *word, *words, *torch;
    bool asked, missed, python;
};

static const struct outcome_facts outcome_facts[OUTCOMES] = {
#define X(number, NAME, word, asked, missed, python, style, words, torch) \
    {word, words, torch, asked, missed, python},
    OUTCOME_ROWS(X)
#undef X
};

/* Return a number from a trace as an outcome; an unknown number counts as plain. */
static inline enum outcome outcome_from_number(int64_t number)
{
    return number >= 0 && number < OUTCOMES ? (enum outcome)number : OUTCOME_PLAIN;
}

/* Return the word of a number from a trace; "?" if the number is unknown. */
static inline const char *outcome_to_word(int64_t number)
{
    return number >= 0 && number < OUTCOMES ? outcome_facts[number].word : "?";
}

/* The result of checking one entry's guards. The trace stores the word (guard_check.result), the
 * ring stores the number. */
/* clang-format off */
#define CHECK_ROWS(X) \
    X(0, FAIL, "fail", WARN) \
    X(1, PASS, "pass", GOOD) \
    X(2, ERROR, "error", ALARM) /* a guard raised */ \
    X(3, BACKEND_MISMATCH, "backend_mismatch", WARN) /* no guard ran */
/* clang-format on */

enum check_result {
#define X(number, NAME, ...) CHECK_##NAME = number,
    CHECK_ROWS(X)
#undef X
        CHECK_RESULTS
};

static const char *const check_words[CHECK_RESULTS] = {
#define X(number, NAME, word, style) word,
    CHECK_ROWS(X)
#undef X
};

/* How a frame began: the values of the column frame.kind. The same number is the tag of the word by
 * which a ring says that a frame begins (ring.h). */
/* clang-format off */
#define FRAME_KIND_ROWS(X) \
    X(0, CALL, "call") \
    X(1, RESUME, "resume") \
    X(2, THROW, "throw") \
    X(3, INHERITED, "inherited")
/* clang-format on */

enum frame_kind {
#define X(number, NAME, word) FRAME_##NAME = number,
    FRAME_KIND_ROWS(X)
#undef X
        FRAME_KINDS
};

/* How a frame ended (frame.exit). */
/* clang-format off */
#define FRAME_EXIT_ROWS(X) \
    X(0, RETURN, "return") \
    X(1, YIELD, "yield") \
    X(2, RAISE, "raise") \
    X(3, ABANDONED, "abandoned")
/* clang-format on */

enum frame_exit {
#define X(number, NAME, word) EXIT_##NAME = number,
    FRAME_EXIT_ROWS(X)
#undef X
        FRAME_EXITS
};

/* What made a span (span.kind), by enum span_kind of ring.h. */
static const char *const span_words[] = {"span", "record_function", "nvtx"};

/* The part of torch's work in which a frame was counted (frame_count.phase). Torch itself uses
 * these names (compile_phase.name), except IMPORT. */
/* clang-format off */
#define PHASE_ROWS(X) \
    X(1, IMPORT, "import") /* the body of a torch module runs, or something that it calls */ \
    X(2, COMPILE, "compile") /* a compile runs, but in none of the phases below */ \
    X(3, TRACING, "bytecode_tracing") \
    X(4, BACKEND, "backend_compile") \
    X(5, GUARDS, "build_guards") \
    X(6, BACKWARD, "entire_backward_compile") /* a backward graph is compiled */
/* clang-format on */

enum compile_phase {
    PHASE_NONE,
#define X(number, NAME, word) PHASE_##NAME = number,
    PHASE_ROWS(X)
#undef X
        PHASES
};

/* The function that imports modules, and its file. */
#define IMPORT_FUNCTION "_find_and_load"
#define IMPORT_FILE "<frozen importlib._bootstrap>"

/* To which function of the program the time of a code object belongs (code_total.library_ns). */
/* clang-format off */
#define OWNER_ROWS(X) \
    X(0, ITSELF, "itself") /* it is one of the program's functions */ \
    X(1, CALLER, "caller") /* library code: to the program's function that called it */ \
    X(2, NOBODY, "nobody") /* it imports modules, or is library code that waits (view waits) */
/* clang-format on */

enum code_owner {
#define X(number, NAME, word) OWNER_##NAME = number,
    OWNER_ROWS(X)
#undef X
        OWNERS
};

/* Functions of the standard library that wait for something else, such as those of threading's
 * locks: "FILE:QUALNAME". The view `waits` has their code objects. */
/* clang-format off */
#define WAIT_ROWS(X) \
    X(0, THREADING_CONDITION_WAIT, "threading.py:Condition.wait") \
    X(1, THREADING_EVENT_WAIT, "threading.py:Event.wait") \
    X(2, THREADING_JOIN, "threading.py:Thread.join") \
    X(3, THREADING_WAIT_FOR_TSTATE_LOCK, "threading.py:Thread._wait_for_tstate_lock") \
    X(4, THREADING_SEMAPHORE_ACQUIRE, "threading.py:Semaphore.acquire") \
    X(5, THREADING_BARRIER_WAIT, "threading.py:Barrier.wait") \
    X(6, THREADING_SHUTDOWN, "threading.py:_shutdown") \
    X(7, QUEUE_GET, "queue.py:Queue.get") \
    X(8, QUEUE_JOIN, "queue.py:Queue.join") \
    X(9, QUEUE_PUT, "queue.py:Queue.put") \
    X(10, EPOLL_SELECT, "selectors.py:EpollSelector.select") \
    X(11, POLL_SELECT, "selectors.py:_PollLikeSelector.select") \
    X(12, SELECT_SELECT, "selectors.py:SelectSelector.select") \
    X(13, SUBPROCESS_POPEN_WAIT, "subprocess.py:Popen.wait") \
    X(14, SUBPROCESS_POPEN_OWN_WAIT, "subprocess.py:Popen._wait") \
    X(15, SUBPROCESS_POPEN_TRY_WAIT, "subprocess.py:Popen._try_wait") \
    X(16, SUBPROCESS_POPEN_COMMUNICATE, "subprocess.py:Popen.communicate") \
    X(17, SOCKET_ACCEPT, "socket.py:socket.accept") \
    X(18, SOCKETIO_READINTO, "socket.py:SocketIO.readinto") \
    X(19, SSLSOCKET_READ, "ssl.py:SSLSocket.read") \
    X(20, CONNECTION_RECV, "multiprocessing/connection.py:Connection._recv") \
    X(21, CONNECTION_WAIT, "multiprocessing/connection.py:wait") \
    X(22, POPEN_FORK_POLL, "multiprocessing/popen_fork.py:Popen.poll") \
    X(23, POPEN_FORK_WAIT, "multiprocessing/popen_fork.py:Popen.wait") \
    X(24, FUTURES_RESULT, "concurrent/futures/_base.py:Future.result") \
    X(25, FUTURES_WAIT, "concurrent/futures/_base.py:wait")
/* clang-format on */

/* How some values of loss.cause begin. A row with such a cause is not counted as a loss of events
 * (recorder_count_losses). */
#define LOSS_STALL "stall: " /* the program waited for the recorder; nothing is missing */
#define LOSS_WAIT LOSS_STALL "the program waited " /* before the number of milliseconds */
#define LOSS_INTERPRETER "interpreter: " /* a Python for which dyntrace has no extension module */
/* the collector's unwritten events were recovered, or are counted by other rows of `loss` */
#define LOSS_KILLED "collector: it was killed"

/* Parts of torch's name for a resume function, which runs the part of a function after a graph
 * break: "Net.torch_dynamo_resume_in_forward_at_12" continues Net.forward after line 12. */
#define RESUME_IN "torch_dynamo_resume_in_"
#define RESUME_AT "_at_"
#define RESUME_GLOB "*" RESUME_IN "*" RESUME_AT "[0-9]*"

#endif
