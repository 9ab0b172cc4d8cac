/* tracer/evaluator/decision.c -- records the shim's decisions.
 *
 * Runs in: the traced process, under the GIL.
 *
 * A lookup may happen millions of times, so it is recorded as a few words in the thread's ring
 * (ring.h, from CONTROL_CHECK on). Data of an entry or a compilation, such as names, guards and
 * causes, are facts. Facts use the process's own ids, so words and facts may be read in any order.
 *
 * Nothing here changes a decision. If something cannot be recorded, it is left out without an
 * error. */
#include "tracer/evaluator/cache.h"
#include "tracer/hooks.h"
#include "tracer/redact.h"

#include <inttypes.h>
#include <stdarg.h>

#define P tracer_process

enum { TEXT_MAX = 2000, VALUE_MAX = 80, SIGNATURES_MAX = 100000, ORDERS_MAX = 16 << 20 };

/* ---- make short texts, such as descriptions of values ---- */

/* A text to which others are appended. What exceeds TEXT_MAX bytes is cut off. */
struct text {
    char bytes[TEXT_MAX + 1]; /* TEXT_MAX bytes and a NUL */
    size_t used;
};

static __attribute__((format(printf, 2, 3))) void print_to_text(struct text *t, const char *format,
                                                                ...)
{
    const size_t room = sizeof t->bytes - t->used;
    va_list arguments;
    int count;

    va_start(arguments, format);
    count = vsnprintf(t->bytes + t->used, room, format, arguments);
    va_end(arguments);
    if (count > 0)
        t->used += (size_t)count < room ? (size_t)count : room - 1;
}

/* Copy the str VALUE as UTF-8 to BYTES, at most MOST bytes, cut between characters. Returns the
 * number of bytes; 0 if VALUE is not a str. Runs no Python code: the error handler
 * "backslashreplace" is part of the codec. */
static size_t copy_as_utf8(char *bytes, size_t most, PyObject *value)
{
    const bool is_text = value && PyUnicode_Check(value);
    OWNED PyObject *encoded =
        is_text ? PyUnicode_AsEncodedString(value, "utf-8", "backslashreplace") : NULL;
    size_t count = encoded ? (size_t)PyBytes_GET_SIZE(encoded) : 0;

    if (is_text && !encoded)
        tracer_write_loss("a text left out: no memory for it");
    if (count > most)
        for (count = most; count && (PyBytes_AS_STRING(encoded)[count] & 0xc0) == 0x80;)
            count--;
    if (count)
        memcpy(bytes, PyBytes_AS_STRING(encoded), count);
    PyErr_Clear();
    return count;
}

/* Append the str VALUE to text T, at most LIMIT bytes of it. Returns the appended part, which is
 * valid as long as T. */
static struct fact_text append_str_to_text(struct text *t, PyObject *value, size_t limit)
{
    const char *from = t->bytes + t->used;
    const size_t room = TEXT_MAX - t->used;
    const size_t count = copy_as_utf8(t->bytes + t->used, limit < room ? limit : room, value);

    t->used += count;
    return (struct fact_text){from, count};
}

/* Return the whole text T, which is valid as long as T. */
static struct fact_text get_whole_text(const struct text *t)
{
    return (struct fact_text){t->bytes, t->used};
}

/* Append a description of VALUE to text T: its type, and its length or shape. The value itself is
 * added only if --values allows it, and only for builtin types, whose repr runs no code of the
 * program. */
static void append_value_description(struct text *t, PyObject *value)
{
    const bool whole = values_get_session_option() == SESSION_VALUES_ALL;
    OWNED PyObject *words = tracer_hooks.describe ? tracer_hooks.describe(value) : NULL;

    PyErr_Clear();
    if (words) {
        append_str_to_text(t, words, 200);
        return;
    }
    print_to_text(t, "%s", Py_TYPE(value)->tp_name);
    if (whole && (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
                  PyFloat_CheckExact(value) ||
                  (PyUnicode_CheckExact(value) && PyUnicode_GET_LENGTH(value) <= VALUE_MAX))) {
        words = PyObject_Repr(value);
        print_to_text(t, " ");
        append_str_to_text(t, words, VALUE_MAX);
    } else if (PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value) ||
               (whole && PyUnicode_CheckExact(value))) {
        print_to_text(t, "[%zd]", PyObject_Size(value));
    } else {
        char shape[200];
        values_describe_shape(value, shape, sizeof shape);
        print_to_text(t, "%s", shape);
    }
    PyErr_Clear();
}

/* ---- write facts about entries and their guards ---- */

/* May anything be recorded now about a code object with MARK? */
static bool may_be_recorded(uintptr_t mark)
{
    return P.recording && !(tracer_thread && tracer_thread->quiet) && mark & CODE_SEEN;
}

static bool is_code_recorded(uintptr_t mark)
{
    return may_be_recorded(mark) && tracer_has_id(mark);
}

/* Write a fact with the order in which ENTRY's guards are tried. ORDINALS is JSON; its text is NULL
 * if memory ran out. Such facts are limited to ORDERS_MAX bytes: guards that fail in turn change
 * places again and again, and facts take memory of the program. */
static void write_guard_order(struct cache_entry *entry, struct fact_text ordinals, uint64_t clock)
{
    static int64_t total;
    const int64_t before = total;

    entry->ordered = clock;
    total += ordinals.bytes;
    if (!ordinals.text)
        entry->order_lost = true;
    if (total > ORDERS_MAX)
        entry->order_lost = true;
    if (!entry->order_lost)
        tracer_fact(ORDER, .entry = entry->id, .clock = (int64_t)clock, .ordinals = ordinals);
    /* report the loss once, when the total passes the limit */
    else if (before <= ORDERS_MAX && total > ORDERS_MAX)
        tracer_write_loss("orders of guards left out: more than 16 MB in this process");
}

void decision_write_guard_ordinals(struct cache_entry *entry, PyObject *ordinals)
{
    Py_ssize_t bytes = 0;
    const char *text = PyUnicode_Check(ordinals) ? PyUnicode_AsUTF8AndSize(ordinals, &bytes) : NULL;

    if (ordinals != Py_None)
        write_guard_order(entry, (struct fact_text){text, bytes}, tracer_read_session_clock());
    PyErr_Clear();
}

void decision_write_actions(struct code_state *state, int64_t region, PyObject *reason)
{
    struct code_actions actions = code_state_get_actions(state, region);
    /* not initialised, because that takes time at each call of skipped code */
    struct text words;

    if (!may_be_recorded(state->mark) || actions.written ||
        (actions.own == ACTION_DEFAULT && actions.callees == ACTION_DEFAULT))
        return;
    actions.written = true;
    if (code_state_set_actions(state, region, actions) || !is_code_recorded(state->mark))
        return;
    words.used = 0;
    tracer_fact(
        MARK, .code = (int64_t)(state->mark >> CODE_SHIFT),
        .clock = (int64_t)tracer_read_session_clock(), .own = actions.own,
        .callees = actions.callees, .region = region,
        .reason = append_str_to_text(
            &words, values_get_session_option() == SESSION_VALUES_ALL ? reason : NULL, 1000));
}

/* Return the attribute NAME of OBJECT if it is a str: a new reference. Otherwise NULL. */
static PyObject *read_str_attribute(PyObject *object, const char *name)
{
    PyObject *value = tracer_get_attribute(object, name);

    if (value && !PyUnicode_Check(value))
        Py_CLEAR(value);
    PyErr_Clear();
    return value;
}

/* Return the name of BACKEND, a new reference. If torch has WRAPPED it, the name is the argument of
 * torch.compile. The repr is not used, because it contains an address. No other attribute of the
 * program's object is read. */
static PyObject *find_backend_name(PyObject *backend, bool wrapped)
{
    const bool whole = values_get_session_option() == SESSION_VALUES_ALL;
    PyObject *name = wrapped && whole ? read_str_attribute(backend, "compiler_name") : NULL;

    if (!name && whole)
        name = read_str_attribute(backend, "__qualname__");
    if (!name && wrapped) {
        OWNED PyObject *function = tracer_get_attribute(backend, "compiler_fn");
        name = !function ? NULL
               : whole   ? read_str_attribute(function, "__qualname__")
                         : values_name(function);
    }
    if (!name && !whole)
        name = values_name(backend);
    PyErr_Clear();
    return name ? name : PyUnicode_FromString(Py_TYPE(backend)->tp_name);
}

/* Return a tuple of COUNT leaves for GUARD if its own leaves are not known. A new reference; NULL
 * without memory. */
static PyObject *make_unknown_leaves(PyObject *guard, uint32_t count)
{
    OWNED PyObject *leaf = Py_BuildValue(
        "ssN", "LAMBDA", "", PyUnicode_FromFormat("%s(f_locals)", Py_TYPE(guard)->tp_name));
    PyObject *leaves = leaf ? PyTuple_New(count) : NULL;

    for (uint32_t i = 0; leaves && i < count; i++)
        PyTuple_SET_ITEM(leaves, i, Py_NewRef(leaf));
    return leaves;
}

/* Returns a tuple (leaves, backend). A leaf is (kind, source, expression[, user's code]). Without
 * memory for it: None. */
PyObject *decision_birth(struct cache_entry *entry, uintptr_t mark, PyObject *guard,
                         PyObject *backend)
{
    OWNED PyObject *leaves = NULL, *name = NULL, *label = NULL;
    PyObject *birth;

    entry->id = ENTRY_UNRECORDED;
    entry->guards = entry->tree ? guard_tree_count_leaves(guard) : 1;
    if (!is_code_recorded(mark))
        return NULL;
    if (entry->front->leaves)
        leaves = entry->front->leaves(guard, &entry->parts->view);
    else if (entry->tree)
        leaves = guard_tree_list(guard, values_get_session_option());
    PyErr_Clear();
    if (leaves)
        entry->guards = (uint32_t)PyTuple_GET_SIZE(leaves);
    else
        leaves = make_unknown_leaves(guard,
                                     /* the guard is no tree, or a function of torch raised */
                                     entry->guards);
    /* Torch's compile ids have no values of the program in them. The compile id of another callback
     * is a value of the program, so --values must allow it. */
    if (entry->compile_id &&
        (entry->front->ids_public || values_get_session_option() == SESSION_VALUES_ALL))
        label = PyObject_Str(entry->compile_id);
    PyErr_Clear();
    entry->label[copy_as_utf8(entry->label, sizeof entry->label - 1, label)] = 0;
    name = find_backend_name(backend, entry->front->wraps_backends);
    birth = leaves && name ? PyTuple_Pack(2, leaves, name) : NULL;
    PyErr_Clear();
    return birth ? birth : Py_NewRef(Py_None);
}

/* Note that guard NUMBER of ENTRY reads a value of secrecy LEVEL. Its causes are then written
 * without the secret. */
static void store_guard_secrecy(struct cache_entry *entry, Py_ssize_t number, enum secret level)
{
    if (!level)
        return;
    if (!entry->secret)
        entry->secret = calloc(entry->guards, 1);
    if (!entry->secret)
        entry->secrets_unknown = true;
    else if (number < entry->guards)
        entry->secret[number] = (uint8_t)level;
}

/* Write the facts of the guards of ENTRY, whose LEAVES decision_birth() has made. */
static void write_guards(struct cache_entry *entry, PyObject *leaves)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(leaves); i++) {
        PyObject *leaf = PyTuple_GET_ITEM(leaves, i);
        struct text one = {.used = 0};
        struct text two = {.used = 0};
        const struct fact_text source = append_str_to_text(&two, PyTuple_GET_ITEM(leaf, 1), 512);
        store_guard_secrecy(entry, i, redact_source(source));
        entry->secrets_unknown |= !source.bytes && PyObject_Length(PyTuple_GET_ITEM(leaf, 1)) > 0;
        tracer_fact(GUARD, .entry = entry->id, .ordinal = i,
                    .kind = append_str_to_text(&one, PyTuple_GET_ITEM(leaf, 0), 64),
                    .source = source,
                    .expression = append_str_to_text(&two, PyTuple_GET_ITEM(leaf, 2), 1024),
                    .stack = append_str_to_text(
                        &one, PyTuple_GET_SIZE(leaf) > 3 ? PyTuple_GET_ITEM(leaf, 3) : NULL, 1200));
    }
}

/* There was no memory to describe the guards of ENTRY: write how many there are. */
static void write_unnamed_guards(struct cache_entry *entry)
{
    entry->secrets_unknown = true;
    for (uint32_t i = 0; i < entry->guards; i++)
        tracer_fact(GUARD, .entry = entry->id, .ordinal = i, .kind = fact_make_text("UNKNOWN"));
    tracer_write_loss("guards of a cache entry left out: no memory to describe them");
}

void decision_write_entry_birth(PyObject *birth, struct cache_entry *entry,
                                const struct code_state *state)
{
    const bool is_described = birth && PyTuple_Check(birth);
    struct text backend = {.used = 0};

    if (!birth || !is_code_recorded(state->mark))
        return;
    entry->id = P.entries++;
    if (!entry->label[0])
        snprintf(entry->label, sizeof entry->label, "%lu/%lu",
                 state->number ? state->number - 1 : 0, state->compiles ? state->compiles - 1 : 0);
    tracer_fact(ENTRY, .entry = entry->id, .code = (int64_t)(state->mark >> CODE_SHIFT),
                .clock = (int64_t)tracer_read_session_clock(), .guards = entry->guards,
                .region = entry->region, .label = fact_make_text(entry->label),
                .backend = append_str_to_text(
                    &backend, is_described ? PyTuple_GET_ITEM(birth, 1) : NULL, 255));
    if (is_described)
        write_guards(entry, PyTuple_GET_ITEM(birth, 0));
    else
        write_unnamed_guards(entry);
    if (entry->tree)
        decision_write_guard_order(entry, entry->parts->guard, 0);
}

/* Numbers that are being written as a JSON array. */
struct numbers {
    char *text, *to; /* text: owned, NULL if memory ran out; to: end of the text so far */
};

enum { NUMBER_BYTES = sizeof "4294967295, " };

static void add_ordinal_to_text(void *context, uint32_t number)
{
    struct numbers *numbers = context;
    const char *comma = numbers->to > numbers->text + 1 ? ", " : "";

    if (numbers->text)
        numbers->to += sprintf(numbers->to, "%s%" PRIu32, comma, number);
}

void decision_write_guard_order(struct cache_entry *entry, PyObject *tree, uint64_t clock)
{
    struct numbers numbers = {.text = NULL};

    entry->moves = guard_tree_count_moves(tree);
    if (entry->id == ENTRY_UNRECORDED)
        return;
    numbers.to = numbers.text =
        malloc((size_t)guard_tree_count_leaves(tree) * NUMBER_BYTES + sizeof "[]");
    if (numbers.text)
        *numbers.to++ = '[';
    guard_tree_visit_ordinals(tree, add_ordinal_to_text, &numbers);
    if (numbers.text)
        *numbers.to++ = ']';
    write_guard_order(entry, (struct fact_text){numbers.text, numbers.to - numbers.text}, clock);
    free(numbers.text);
}

/* Is the program exiting? Then weakref.finalize() calls its callbacks although the objects are
 * still alive. */
static bool is_program_exiting(void)
{
    compat_frame *frame = compat_current_frame(PyThreadState_Get());
    bool found = compat_is_finalizing();

    for (int depth = 0; frame && !found && depth < 16; frame = frame->previous)
        /* skip frames that stand for C code */
        if (PyCode_Check((PyObject *)compat_get_code(frame))) {
            found = !PyUnicode_CompareWithASCIIString(compat_get_code(frame)->co_qualname,
                                                      "finalize._exitfunc");
            depth++;
        }
    return found;
}

void decision_write_entry_death(struct cache_entry *entry, const char *cause)
{
    /* at exit all entries die, which no reader needs to know */
    if (entry->dead || is_program_exiting())
        return;
    entry->dead = true;
    if (entry->id != ENTRY_UNRECORDED)
        facts_note_entry_death(entry->id);
    if (P.recording && entry->id != ENTRY_UNRECORDED)
        tracer_fact(DEATH, .entry = entry->id, .clock = (int64_t)tracer_read_session_clock(),
                    .cause = fact_make_text(cause));
}

/* Must VALUE be replaced by SECRET_WORD? Only if it is secret by LEVEL, and
 * append_value_description() would write the value itself. */
static bool must_hide_value(PyObject *value, enum secret level)
{
    const bool is_string = PyUnicode_CheckExact(value);
    const bool is_number = PyLong_CheckExact(value) || PyFloat_CheckExact(value);

    if (!level || values_get_session_option() != SESSION_VALUES_ALL)
        return false;
    return is_string || (is_number && level == SECRET_ALL);
}

/* Return 1 + the signature id of LOCALS, the inputs of a call. Equal descriptions have equal ids.
 * Returns 0 if there is none. */
static uint32_t get_signature_id(PyObject *locals)
{
    static PyObject *known; /* a dict from the descriptions so far to their ids */
    OWNED PyObject *made = known ? NULL : PyDict_New(), *key = NULL, *number = NULL;
    struct text text = {.used = 0};
    PyObject *name, *value;
    Py_ssize_t at = 0;
    uint32_t id = 0;
    size_t named;
    enum secret level;

    /* hold name and value, because others may change the dict */
    while (PyDict_Next(locals, &at, &name, &value)) {
        Py_INCREF(name);
        Py_INCREF(value);
        if (text.used)
            print_to_text(&text, ", ");
        named = text.used;
        append_str_to_text(&text, name, VALUE_MAX);
        level = redact_name(text.bytes + named, text.used - named);
        print_to_text(&text, ": ");
        if (must_hide_value(value, level))
            print_to_text(&text, "%s " SECRET_WORD, Py_TYPE(value)->tp_name);
        else
            append_value_description(&text, value);
        Py_DECREF(name);
        Py_DECREF(value);
    }
    /* from here on no Python code runs, because the keys of `known` are bytes */
    if (!known)
        /* checked again, because code that ran above may have made the dict */
        known = Py_XNewRef(made);
    key = PyBytes_FromStringAndSize(text.bytes, (Py_ssize_t)text.used);
    number = PyLong_FromUnsignedLong(P.signatures);
    value = known && key ? PyDict_GetItem(known, key) : NULL; /* borrowed */
    if (value) {
        id = (uint32_t)PyLong_AsUnsignedLong(value) + 1;
    } else if (known && key && number && PyDict_GET_SIZE(known) < SIGNATURES_MAX &&
               PyDict_SetItem(known, key, number) == 0) {
        tracer_fact(SIGNATURE, .signature = P.signatures, .text = get_whole_text(&text));
        id = ++P.signatures;
    }
    PyErr_Clear();
    return id;
}

/* ---- collect the data of one lookup, and the causes of a miss ---- */

PyObject *decision_locals(struct decision *d)
{
    if (!d->locals)
        d->locals = guard_frame_locals(d->frame);
    return d->locals;
}

void decision_end_lookup(struct decision *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        Py_XDECREF(d->check[i].why);
        Py_XDECREF(d->check[i].seen);
        Py_DECREF(d->check[i].entry);
    }
    if (unlikely(d->check != d->small))
        free(d->check);
    Py_XDECREF(d->locals);
}

struct decision_check *decision_add_entry_to_try(struct decision *d, struct cache_entry *entry)
{
    struct decision_check *check;

    if (unlikely(d->count == d->room)) {
        check = malloc(2 * d->room * sizeof *check);
        if (!check) {
            PyErr_NoMemory();
            return NULL;
        }
        memcpy(check, d->check, d->count * sizeof *check);
        if (d->check != d->small)
            free(d->check);
        d->check = check;
        d->room *= 2;
    }
    check = &d->check[d->count++];
    *check = (struct decision_check){.entry = entry, .failed = UINT32_MAX, .result = CHECK_RESULTS};
    Py_INCREF(entry);
    return check;
}

/* Find out why the guards of CHECK's entry do not hold. Returns a new list, or NULL. An exception
 * that is not an Exception stays pending, for example one from a signal handler. */
static PyObject *explain_why_entry_missed(const struct decision *d,
                                          const struct decision_check *check)
{
    struct guard_values values = {.frame = d->frame};
    struct cache_parts *parts = check->result == CHECK_FAIL ? cache_entry_pin(check->entry) : NULL;
    PyObject *found = NULL;

    if (!parts)
        return NULL;
    if (check->entry->tree)
        found = guard_tree_explain(parts->guard, &values, check->failed, check->seen,
                                   values_get_session_option());
    else if (parts->view)
        found = check->entry->front->explain(parts->view, d->frame, d->locals);
    cache_parts_unpin(parts);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return found;
}

bool decision_record_miss(struct decision *d, bool asks)
{
    uint64_t began;

    if (!d->on)
        return true;
    began = tracer_read_session_clock();
    if (values_get_session_option() != SESSION_VALUES_OFF)
        d->signature = get_signature_id(d->locals);
    for (uint32_t i = 0; asks && i < d->count && !PyErr_Occurred(); i++)
        d->check[i].why = explain_why_entry_missed(d, &d->check[i]);
    d->ours += tracer_read_session_clock() - began;
    return !PyErr_Occurred();
}

/* Write a listing with the addresses of the called function and of its `self`: several functions
 * may share one code object and its entries. */
static void write_called_function(const struct decision *d)
{
    PyCodeObject *code = compat_get_code(d->frame);
    struct text text = {.used = 0};

    print_to_text(&text, "function at %p", (void *)compat_get_function(d->frame));
    if (code->co_argcount > 0 &&
        !PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_localsplusnames, 0), "self"))
        print_to_text(&text, ", self at %p", (void *)compat_get_local(d->frame, 0));
    tracer_fact(LISTING, .compile = d->compile - 1, .kind = fact_make_text("called_as"),
                .text = get_whole_text(&text));
}

static void write_compile_phase(struct tracer *t, enum compile_phase phase);
static bool is_torch_compiling_on_stack(const struct tracer *t);

static void write_compile_begin(struct decision *d, int64_t code)
{
    d->compile = ++P.compiles;
    d->compile_began = tracer_read_session_clock();
    tracer_fact(ASKED, .compile = d->compile - 1, .code = code, .clock = (int64_t)d->compile_began);
}

static void mark_compile_begin(struct decision *d)
{
    d->asking = malloc(sizeof *d->asking);
    if (!d->asking)
        return;
    *d->asking =
        (struct asking){.around = tracer_thread->asking,
                        .stack = tracer_stack_bottom(PyThreadState_Get()),
                        .code = (PyCodeObject *)Py_NewRef((PyObject *)compat_get_code(d->frame)),
                        .compile = d->compile,
                        .torch = d->front->compile_begins != NULL};
    tracer_thread->asking = d->asking;
}

static void mark_compile_end(struct decision *d)
{
    struct tracer *t = tracer_thread;

    if (d->asking)
        d->asking->ended = true;
    d->asking = NULL;
    while (t->asking && t->asking->ended) {
        struct asking *ended = t->asking;
        t->asking = ended->around;
        Py_DECREF(ended->code);
        free(ended);
    }
}

void decision_begin_compile(struct decision *d, const struct code_state *state)
{
    if (d->on)
        write_compile_begin(d, (int64_t)(state->mark >> CODE_SHIFT));
    mark_compile_begin(d);
    if (d->front->compile_begins)
        write_compile_phase(tracer_thread, PHASE_COMPILE);
    if (!d->on)
        return;
    if (d->front->compile_begins && values_get_session_option() != SESSION_VALUES_OFF)
        write_called_function(d);
    if (d->front->compile_begins)
        d->token = d->front->compile_begins(d->compile - 1, (PyObject *)compat_get_code(d->frame));
}

void decision_end_compile(struct decision *d, PyObject *result)
{
    mark_compile_end(d);
    /* first, because the last phase counts, and compile_ends() may write a more exact one */
    if (d->front->compile_begins)
        write_compile_phase(
            tracer_thread, is_torch_compiling_on_stack(tracer_thread) ? PHASE_COMPILE : PHASE_NONE);
    if (d->token)
        d->front->compile_ends(d->token, result);
    d->token = NULL;
}

PyObject *decision_compiling(void)
{
    const struct asking *a = tracer_thread ? tracer_thread->asking : NULL;
    const void *here = tracer_stack_bottom(PyThreadState_Get());

    while (a && (a->ended || a->stack != here))
        a = a->around;
    return a && a->compile && P.recording ? Py_BuildValue("IO", a->compile - 1, a->code)
                                          : Py_NewRef(Py_None);
}

/* Return how secret the value is that guard number GUARD of ENTRY reads. GUARD may be -1 or
 * otherwise out of range. */
static enum secret get_secrecy_of_guard(const struct cache_entry *entry, int64_t guard)
{
    const bool known = guard >= 0 && guard < entry->guards;

    if (known && entry->secrets_unknown)
        return SECRET_ALL;
    return known && entry->secret ? (enum secret)entry->secret[guard] : SECRET_NO;
}

/* Write CAUSE, a reason why the entry of CHECK did not match. DECIDED: the guard of CAUSE ended the
 * check. Otherwise the check ended before this guard, which would have failed, too. */
static void write_miss_cause(const struct decision *d, const struct decision_check *check,
                             bool decided, struct fact_CAUSE cause)
{
    const bool asked = d->front->observed ||
                       /* also a second check: the first did not report which guard failed */
                       (cause.guard >= 0 && check->failed == UINT32_MAX);

    enum secret level = redact_source(cause.source);
    struct secret_text made[3];

    if (!level)
        level = get_secrecy_of_guard(check->entry, cause.guard);
    made[0] = redact_literals_of_value(&cause.expected, level);
    made[1] = redact_literals_of_value(&cause.actual, level);
    made[2] = redact_literals_of_value(&cause.words, level);
    cause.compile = d->compile - 1;
    cause.entry = check->entry->id;
    cause.how = cause.guard == -2 ? CAUSE_CUT
                : !decided        ? CAUSE_ALSO
                : asked           ? CAUSE_ASKED
                                  : CAUSE_DECIDED;
    tracer_put_fact(FACT_CAUSE, &cause);
    for (int i = 0; i < 3; i++)
        free(made[i].text);
}

/* Write why the entry of CHECK did not match: the guard that ended the check, and further guards
 * that would have failed. If it is not known which guard ended the check, the first cause is taken
 * for it. */
static void write_miss_causes(const struct decision *d, const struct decision_check *check)
{
    int64_t first = check->failed != UINT32_MAX ? (int64_t)check->failed : -1;
    const bool seen = first >= 0;
    bool decided = false;

    if (check->result == CHECK_BACKEND_MISMATCH)
        write_miss_cause(d, check, true,
                         (struct fact_CAUSE){.guard = -1,
                                             .dimension = -1,
                                             .kind = fact_make_text("BACKEND_MATCH"),
                                             .aspect = fact_make_text("backend"),
                                             .words = fact_make_text(
                                                 "the entry was compiled for another backend")});
    if (check->result != CHECK_FAIL)
        return;
    for (Py_ssize_t i = 0;
         check->why && PyList_Check(check->why) && i < PyList_GET_SIZE(check->why); i++) {
        PyObject *expected, *actual, *source = NULL; /* borrowed */
        const char *aspect;
        const char *kind = NULL;
        const char *words = NULL;
        long long guard;
        int dimension;
        bool is_first;
        struct text t = {.used = 0};
        if (!PyArg_ParseTuple(PyList_GET_ITEM(check->why, i), "LUUzi|sUs", &guard, &expected,
                              &actual, &aspect, &dimension, &kind, &source, &words)) {
            PyErr_Clear();
            continue;
        }
        if (i == 0 && !seen)
            first = guard;
        is_first = guard == first && (guard >= 0 || i == 0);
        decided |= is_first;
        write_miss_cause(d, check, is_first,
                         (struct fact_CAUSE){.guard = guard,
                                             .dimension = dimension,
                                             .kind = fact_make_text(kind),
                                             .source = append_str_to_text(&t, source, 512),
                                             .aspect = fact_make_text(aspect),
                                             .expected = append_str_to_text(&t, expected, 512),
                                             .actual = append_str_to_text(&t, actual, 512),
                                             .words = fact_make_text(words)});
    }
    if (!decided)
        write_miss_cause(
            d, check, true,
            (struct fact_CAUSE){.guard = seen ? (int64_t)check->failed : -1,
                                .dimension = -1,
                                .words = fact_make_text(check->entry->tree
                                                            ? "it did not hold when it was checked"
                                                            : d->front->unexplained)});
}

/* Return the message of an exception with VALUE, a new reference; NULL if reading it could run code
 * of the program. */
static PyObject *read_exception_message(PyObject *value)
{
    PyObject *arguments =
        value && PyExceptionInstance_Check(value) ? ((PyBaseExceptionObject *)value)->args : NULL;
    const bool one = arguments && PyTuple_Check(arguments) && PyTuple_GET_SIZE(arguments) == 1;
    PyObject *words = one ? PyTuple_GET_ITEM(arguments, 0) : value;

    return words && PyUnicode_Check(words) ? Py_NewRef(words) : NULL;
}

/* Append an exception that a callback raised: its type, and its message if it can be read and
 * --values allows it. */
static void append_exception_to_text(struct text *t, PyObject *type, PyObject *value)
{
    OWNED PyObject *words = read_exception_message(value);

    print_to_text(t, "%s", ((PyTypeObject *)type)->tp_name);
    if (words && values_get_session_option() == SESSION_VALUES_ALL) {
        print_to_text(t, ": ");
        append_str_to_text(t, words, 500);
    }
}

void decision_record_outcome(struct decision *d, struct code_state *state,
                             struct cache_entry *entry, enum outcome outcome)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    struct text reason = {.used = 0};
    char label[64] = "";

    if (!d->on || !d->compile)
        return;
    if (!entry && state->number && !d->front->ids_public)
        snprintf(label, sizeof label, "%lu/%lu", state->number - 1, state->compiles);
    if (pending.type)
        append_exception_to_text(&reason, pending.type, pending.value);
    else
        print_to_text(&reason, d->count || d->older ? "no entry fitted" : "first call");
    tracer_fact(COMPILE, .compile = d->compile - 1, .code = (int64_t)(state->mark >> CODE_SHIFT),
                .began = (int64_t)d->compile_began, .ended = (int64_t)tracer_read_session_clock(),
                .label = fact_make_text(entry ? entry->label : label),
                .outcome = fact_make_text(outcome == OUTCOME_COMPILED   ? "compiled"
                                          : outcome == OUTCOME_DECLINED ? "declined"
                                                                        : "error"),
                .reason = get_whole_text(&reason));
    if (entry && entry->id != ENTRY_UNRECORDED)
        tracer_fact(COMPILED, .compile = d->compile - 1, .entry = entry->id);
    for (uint32_t i = 0; i < d->count; i++)
        if (d->check[i].entry->id != ENTRY_UNRECORDED)
            write_miss_causes(d, &d->check[i]);
}

/* Is the pending exception the one with which torch's stance skip_guard_eval_unsafe answers a
 * miss? */
static bool is_error_of_torch_stance(void)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    OWNED PyObject *words =
        pending.type == PyExc_RuntimeError ? read_exception_message(pending.value) : NULL;
    const char *said = words ? PyUnicode_AsUTF8(words) : NULL;

    return said && !strncmp(said, "Recompilation triggered with skip_guard_eval_unsafe", 51);
}

enum outcome decision_record_raise(struct decision *d, uint32_t code)
{
    struct code_state state = {.mark = (uintptr_t)code << CODE_SHIFT};

    if (!is_error_of_torch_stance())
        return OUTCOME_GUARD_ERROR;
    if (d->on) { /* record it as a failed compile, as in shim mode */
        write_compile_begin(d, code);
        decision_record_outcome(d, &state, NULL, OUTCOME_CALLBACK_ERROR);
    }
    return OUTCOME_CALLBACK_ERROR;
}

/* ---- write the words of a decision into the ring ---- */

/* Find out which stack of frames thread T is on, before words are written. Code of the program has
 * run since the lookup began, and may have switched greenlets. */
static inline __attribute__((always_inline)) void update_running_stack(struct tracer *t)
{
    tracer_update_running_stack(t, PyThreadState_GET(), NULL);
}

/* Write COUNT WORDS if there is room. They are whole records, of at most RING_MARGIN - 8 words. May
 * release the GIL, so values read before are stale. Times in these records are full clocks, so no
 * epoch word is needed. */
static inline __attribute__((always_inline)) void
write_words_to_ring(struct tracer *t, const uint64_t *words, unsigned count)
{
    uint64_t head, mask, *ring;

    if (unlikely(t->head >= t->limit && !tracer_make_room_within_frame(t)))
        return;
    head = t->head;
    mask = t->mask;
    ring = t->words;
    for (unsigned i = 0; i < count; i++)
        ring[head++ & mask] = words[i];
    t->head = head;
    /* Barrier A of ring.h: this store publishes the words; it matches barrier B in the
     * collector. */
    atomic_store_explicit(&t->ring->head, head, memory_order_release);
}

/* Write that the frames of thread T's stack are in PHASE of torch's work from here on. The bridge
 * calls this from quiet code, of which nothing is recorded, so `quiet` is cleared while the word is
 * written: it is about the frames that follow. */
static void write_compile_phase(struct tracer *t, enum compile_phase phase)
{
    const uint64_t word = RING_CONTROL_WORD(CONTROL_PHASE, 1, phase);
    const unsigned quiet = t->quiet;

    if (!P.recording)
        return;
    if (P.session->frames != SESSION_FOLDED)
        return;
    update_running_stack(t);
    t->quiet = 0;
    write_words_to_ring(t, &word, 1);
    t->quiet = quiet;
    if (quiet)
        t->limit = 0; /* the value that torch_quiet_begin() sets */
    t->folding = phase != PHASE_NONE;
}

/* Is a compile of torch running on thread T's present stack of frames? */
static bool is_torch_compiling_on_stack(const struct tracer *t)
{
    const void *here = tracer_stack_bottom(PyThreadState_Get());
    const struct asking *a;

    for (a = t->asking; a; a = a->around) {
        const bool is_open = a->torch && !a->ended;
        if (is_open && a->stack == here)
            return true;
    }
    return false;
}

void decision_write_phase(enum compile_phase phase)
{
    if (tracer_thread)
        write_compile_phase(tracer_thread, phase);
}

void decision_request_frame_row(struct tracer *t)
{
    const uint64_t word = RING_CONTROL_WORD(CONTROL_KEEP, 1, 0);

    update_running_stack(t);
    write_words_to_ring(t, &word, 1);
}

static inline uint64_t make_check_word(uint32_t entry, enum check_result result)
{
    return RING_CONTROL_WORD(CONTROL_CHECK, 2, (uint64_t)entry << 8 | result);
}

/* Return the first word of a CONTROL_DECISION. ENTRY may be NULL. */
static inline uint64_t make_decision_word(const struct cache_entry *entry, unsigned outcome)
{
    const uint64_t id = entry && entry->id != ENTRY_UNRECORDED ? (uint64_t)entry->id + 1 : 0;

    return RING_CONTROL_WORD(CONTROL_DECISION, 3, id << 8 | outcome);
}

static UNGUARDED void write_check_words(struct tracer *t, const struct decision_check *c)
{
    uint64_t ticks = c->ticks == CHECK_TICKS_UNKNOWN ? RING_TICKS_UNKNOWN
                     : c->ticks < RING_TICKS_UNKNOWN ? c->ticks
                                                     : RING_TICKS_UNKNOWN - 1;
    uint64_t failed = c->failed == UINT32_MAX ? 0 : ((uint64_t)c->failed + 1) & 0xfffff;

    write_words_to_ring(t,
                        (uint64_t[]){make_check_word(c->entry->id, c->result),
                                     (uint64_t)(c->run & 0xfffff) << 44 | failed << 24 | ticks},
                        2);
}

UNGUARDED void decision_write(struct decision *d, struct tracer *t, enum outcome outcome,
                              struct cache_entry *entry)
{
    bool observed;

    if (!d->on)
        return;
    update_running_stack(t);
    observed = d->front->observed;
    for (uint32_t i = 0; !observed && i < d->count; i++)
        if (d->check[i].result != CHECK_RESULTS && d->check[i].entry->id != ENTRY_UNRECORDED)
            write_check_words(t, &d->check[i]);
    if (observed && outcome == OUTCOME_HIT && entry && entry->id != ENTRY_UNRECORDED)
        write_check_words(t, &(struct decision_check){.entry = entry,
                                                      .ticks = CHECK_TICKS_UNKNOWN,
                                                      .run = entry->guards,
                                                      .failed = UINT32_MAX,
                                                      .result = CHECK_PASS});
    if (d->compile || d->signature)
        write_words_to_ring(
            t, (uint64_t[]){RING_CONTROL_WORD(CONTROL_COMPILED, 2, d->compile), d->signature}, 2);
    /* The duration includes the compile, if there was one, because the entry was born during it. */
    write_words_to_ring(
        t,
        (uint64_t[]){make_decision_word(entry, outcome | (observed ? DECISION_OBSERVED : 0)),
                     d->began, tracer_read_session_clock() - d->began - (d->compile ? 0 : d->ours)},
        3);
}

HOT UNGUARDED void decision_hit(struct tracer *t, uint64_t began, const struct cache_entry *entry)
{
    const uint64_t decided = make_decision_word(entry, OUTCOME_HIT | DECISION_OBSERVED);
    const uint64_t checked = make_check_word(entry->id, CHECK_PASS);
    const uint64_t guards = (uint64_t)(entry->guards & 0xfffff) << 44 | RING_TICKS_UNKNOWN;
    const uint64_t ticks = tracer_read_session_clock() - began;

    update_running_stack(t);
    if (unlikely(entry->id == ENTRY_UNRECORDED))
        write_words_to_ring(t, (uint64_t[]){decided, began, ticks}, 3);
    else
        write_words_to_ring(t, (uint64_t[]){checked, guards, decided, began, ticks}, 5);
}

HOT void decision_outcome(struct tracer *t, enum outcome outcome)
{
    update_running_stack(t);
    write_words_to_ring(t, (uint64_t[]){RING_CONTROL_WORD(CONTROL_OUTCOME, 1, outcome)}, 1);
}
