/* tracer/evaluator/decision.c -- what the shim decides, for the trace.
 *
 * Runs in: the traced process, under the GIL.
 *
 * Every lookup is a few words in the thread's ring (ring.h, CONTROL_CHECK and
 * what follows it), as it may happen millions of times. What happens once per
 * entry or compilation is a fact: names, guards, causes. Facts name things by
 * the process's own ids, so words and facts may be read in any order.
 *
 * Nothing here changes a decision, and no failure shows: a thing that cannot be
 * noted is left out. */
#include "tracer/evaluator/cache.h"
#include "tracer/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define P tracer_process

enum { TEXT_MAX = 2000, VALUE_MAX = 80, SIGNATURES_MAX = 100000 };

/* ---- small texts ---- */

/* A growing text; what does not fit is cut off. */
struct text {
    char bytes[TEXT_MAX];
    size_t used;
};

static void text_add(struct text *t, const char *bytes, size_t count)
{
    if (count > sizeof t->bytes - t->used)
        count = sizeof t->bytes - t->used;
    memcpy(t->bytes + t->used, bytes, count);
    t->used += count;
}

static void text_string(struct text *t, const char *string)
{
    text_add(t, string, strlen(string));
}

/* VALUE's UTF-8, at most LIMIT bytes of it. */
static void text_unicode(struct text *t, PyObject *value, size_t limit)
{
    PyObject *bytes =
        value && PyUnicode_Check(value) ? PyUnicode_AsEncodedString(value, "utf-8", "backslashreplace") : NULL;

    if (bytes) {
        const char *string = PyBytes_AS_STRING(bytes);
        size_t count = (size_t)PyBytes_GET_SIZE(bytes);
        if (count > limit)
            for (count = limit; count && (string[count] & 0xc0) == 0x80;)
                count--;
        text_add(t, string, count);
    }
    Py_XDECREF(bytes);
    PyErr_Clear();
}

/* All of T, and VALUE's UTF-8 at its end, for a fact that is made while T is there. */
static struct fact_text text_all(const struct text *t)
{
    return (struct fact_text){t->bytes, t->used};
}

static struct fact_text text_part(struct text *t, PyObject *value, size_t limit)
{
    size_t from = t->used;

    text_unicode(t, value, limit);
    return (struct fact_text){t->bytes + from, t->used - from};
}

static void text_type(struct text *t, PyObject *value)
{
    text_string(t, Py_TYPE(value)->tp_name);
}

/* Is VALUE's buffer made by a method of the program's? */
static bool makes_buffer(PyObject *value)
{
    PyObject *name = COMPAT_HAS_BUFFER_METHOD ? PyUnicode_InternFromString("__buffer__") : NULL;
    PyObject *method = name ? _PyType_Lookup(Py_TYPE(value), name) : NULL;
    bool makes = method && !Py_IS_TYPE(method, &PyWrapperDescr_Type);

    Py_XDECREF(name);
    PyErr_Clear();
    return makes;
}

/* Types and shapes always; values, unless the trace is to be without them, only
 * of builtins, whose repr runs no code of the program. */
static void text_value(struct text *t, PyObject *value)
{
    const bool whole = values_kept() == SESSION_VALUES_ALL;
    Py_buffer view;
    PyObject *repr = shim_settings.describe ? shim_settings.describe(value) : NULL;

    if (repr) {
        text_unicode(t, repr, 200);
        Py_DECREF(repr);
        return;
    }
    PyErr_Clear();
    text_type(t, value);
    if (whole && (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
                  (PyUnicode_CheckExact(value) && PyUnicode_GET_LENGTH(value) <= VALUE_MAX))) {
        repr = PyObject_Repr(value);
        text_string(t, " ");
        text_unicode(t, repr, VALUE_MAX);
    } else if (PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value) ||
               (whole && PyUnicode_CheckExact(value))) {
        char length[32];
        snprintf(length, sizeof length, "[%zd]", PyObject_Size(value));
        text_string(t, length);
    } else if (PyObject_CheckBuffer(value) && !PyBytes_Check(value) && !makes_buffer(value) &&
               PyObject_GetBuffer(value, &view, PyBUF_FULL_RO) == 0) {
        char number[32];
        text_string(t, view.format ? " " : "");
        text_string(t, view.format ? view.format : "");
        text_string(t, "[");
        for (int i = 0; view.shape && i < view.ndim; i++) {
            snprintf(number, sizeof number, i ? ", %zd" : "%zd", view.shape[i]);
            text_string(t, number);
        }
        text_string(t, "]");
        PyBuffer_Release(&view);
    }
    Py_XDECREF(repr);
    PyErr_Clear();
}

/* ---- facts ---- */

/* Has the recording decided whether it takes the code with this MARK? And does it? */
static bool is_seen(uintptr_t mark)
{
    return P.recording && !(tracer_thread && tracer_thread->quiet) && mark & CODE_SEEN;
}

static bool recorded(uintptr_t mark)
{
    return is_seen(mark) && !(mark & CODE_SKIP);
}

/* One guard of ENTRY: KIND, SOURCE, EXPRESSION are str, and so is STACK, the user's code that it is for, or NULL. */
static void guard_fact(const struct cache_entry *entry, Py_ssize_t ordinal, PyObject *kind, PyObject *source,
                       PyObject *expression, PyObject *stack)
{
    struct text one = {.used = 0}, two = {.used = 0};

    tracer_fact(GUARD, .entry = entry->id, .ordinal = ordinal, .kind = text_part(&one, kind, 64),
                .source = text_part(&one, source, 512), .expression = text_part(&two, expression, 1024),
                .stack = text_part(&one, stack, 1200));
}

/* The order: a list of ordinals, in JSON. Nothing if it is too long. */
static void order_fact(const struct cache_entry *entry, const struct text *words, uint64_t clock)
{
    if (words->used < TEXT_MAX)
        tracer_fact(ORDER, .entry = entry->id, .clock = (int64_t)clock, .ordinals = text_all(words));
}

void decision_entry_order_words(const struct cache_entry *entry, PyObject *words)
{
    struct text text = {.used = 0};

    text_unicode(&text, words, TEXT_MAX);
    order_fact(entry, &text, tracer_now(P.monotonic));
}

void decision_actions(struct code_state *state, int64_t region, PyObject *reason)
{
    struct code_actions actions = code_state_actions(state, region);
    struct text words = {.used = 0};

    if (!is_seen(state->mark) || actions.written ||
        (actions.own == ACTION_DEFAULT && actions.callees == ACTION_DEFAULT))
        return;
    actions.written = true;
    if (!code_state_act(state, region, actions) || !recorded(state->mark))
        return;
    if (values_kept() == SESSION_VALUES_ALL)
        text_unicode(&words, reason, 1000);
    tracer_fact(MARK, .code = (int64_t)(state->mark >> CODE_SHIFT), .clock = (int64_t)tracer_now(P.monotonic),
                .own = actions.own, .callees = actions.callees, .region = region, .reason = text_all(&words));
}

/* OBJECT's attribute NAME, if it is a str; or NULL. */
static PyObject *name_in(PyObject *object, const char *name)
{
    PyObject *value = tracer_attribute(object, name);

    if (value && !PyUnicode_Check(value))
        Py_CLEAR(value);
    PyErr_Clear();
    return value;
}

/* A backend by its name if it has one, or WRAPPED in torch's by what torch.compile was given: its repr would tell an
 * address. What is the program's own is asked for no other attribute. */
static PyObject *backend_name(PyObject *backend, bool wrapped)
{
    const bool whole = values_kept() == SESSION_VALUES_ALL;
    PyObject *name = wrapped && whole ? name_in(backend, "compiler_name") : NULL, *function;

    if (!name && whole)
        name = name_in(backend, "__qualname__");
    if (!name && wrapped && (function = tracer_attribute(backend, "compiler_fn"))) {
        name = whole ? name_in(function, "__qualname__") : values_name(function);
        Py_DECREF(function);
    }
    if (!name && !whole)
        name = values_name(backend);
    PyErr_Clear();
    return name ? name : PyUnicode_FromString(Py_TYPE(backend)->tp_name);
}

/* VALUE's text, at most ROOM - 1 bytes of it, to BYTES, ending in NUL. */
static void take_text(PyObject *value, char *bytes, size_t room)
{
    struct text text = {.used = 0};

    text_unicode(&text, value, room - 1);
    memcpy(bytes, text.bytes, text.used);
    bytes[text.used] = 0;
}

void decision_birth_begin(struct decision_birth *b, struct cache_entry *entry, uintptr_t mark, PyObject *guard,
                          PyObject *backend)
{
    PyObject *text;

    *b = (struct decision_birth){.on = recorded(mark)};
    entry->id = ENTRY_UNRECORDED;
    entry->guards = entry->tree ? guard_tree_count(guard) : 1;
    if (!b->on)
        return;
    if (entry->front->leaves)
        b->leaves = entry->front->leaves(guard, &entry->parts->view);
    else if (entry->tree && (b->leaves = guard_tree_list(guard, values_kept())))
        Py_SETREF(b->leaves, PyList_AsTuple(b->leaves));
    PyErr_Clear();
    if (b->leaves)
        entry->guards = (uint32_t)PyTuple_GET_SIZE(b->leaves);
    else if ((text = PyUnicode_FromFormat("%s(f_locals)", Py_TYPE(guard)->tp_name)))
        b->leaves = Py_BuildValue("((ssN))", "LAMBDA", "", text);
    /* Torch's ids are its own; a callback's is a value of the program's like others. */
    if (entry->compile_id && (entry->front->ids_public || values_kept() == SESSION_VALUES_ALL) &&
        (text = PyObject_Str(entry->compile_id))) {
        take_text(text, entry->label, sizeof entry->label);
        Py_DECREF(text);
    }
    PyErr_Clear();
    text = backend_name(backend, entry->front->wraps_backends);
    take_text(text, b->backend, sizeof b->backend);
    Py_XDECREF(text);
    PyErr_Clear();
}

void decision_entry_born(struct decision_birth *b, struct cache_entry *entry, const struct code_state *state)
{
    if (!b->on || !recorded(state->mark))
        return;
    entry->id = P.entries++;
    if (!entry->label[0])
        snprintf(entry->label, sizeof entry->label, "%lu/%lu", state->number ? state->number - 1 : 0,
                 state->compiles ? state->compiles - 1 : 0);
    tracer_fact(ENTRY, .entry = entry->id, .code = (int64_t)(state->mark >> CODE_SHIFT),
                .clock = (int64_t)tracer_now(P.monotonic), .guards = entry->guards, .region = entry->region,
                .label = {entry->label, strlen(entry->label)}, .backend = {b->backend, strlen(b->backend)});
    for (Py_ssize_t i = 0; b->leaves && i < PyTuple_GET_SIZE(b->leaves); i++) {
        PyObject *leaf = PyTuple_GET_ITEM(b->leaves, i);
        guard_fact(entry, i, PyTuple_GET_ITEM(leaf, 0), PyTuple_GET_ITEM(leaf, 1), PyTuple_GET_ITEM(leaf, 2),
                   PyTuple_GET_SIZE(leaf) > 3 ? PyTuple_GET_ITEM(leaf, 3) : NULL);
    }
    if (entry->tree)
        decision_entry_order(entry, entry->parts->guard, 0);
}

void decision_birth_end(struct decision_birth *b)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(b->leaves);
    PyErr_Restore(type, value, traceback);
}

/* A list of numbers, in JSON. */
static void add_number(void *context, uint32_t number)
{
    struct text *text = context;
    char word[16];

    snprintf(word, sizeof word, text->used > 1 ? ", %u" : "%u", number);
    text_string(text, word);
}

void decision_entry_order(struct cache_entry *entry, PyObject *tree, uint64_t clock)
{
    struct text text = {.used = 0};

    entry->moves = guard_tree_moves(tree);
    if (entry->id == ENTRY_UNRECORDED)
        return;
    text_string(&text, "[");
    guard_tree_each(tree, add_number, &text);
    text_string(&text, "]");
    order_fact(entry, &text, clock);
}

/* Is the program over? weakref.finalize() calls at exit what it would have called at
 * the death of objects that live. */
static bool at_exit(void)
{
    compat_frame *frame = compat_current_frame(PyThreadState_Get());
    bool found = compat_is_finalizing();

    for (int depth = 0; frame && !found && depth < 16; frame = frame->previous)
        if (PyCode_Check((PyObject *)compat_code(frame))) { /* not one that C code stands for in the stack */
            found = !PyUnicode_CompareWithASCIIString(compat_code(frame)->co_qualname, "finalize._exitfunc");
            depth++;
        }
    return found;
}

void decision_entry_died(struct cache_entry *entry, const char *cause)
{
    if (entry->dead || at_exit()) /* then all go */
        return;
    entry->dead = true;
    if (entry->id != ENTRY_UNRECORDED)
        facts_entry_died(entry->id);
    if (P.recording && entry->id != ENTRY_UNRECORDED)
        tracer_fact(DEATH, .entry = entry->id, .clock = (int64_t)tracer_now(P.monotonic),
                    .cause = {cause, strlen(cause)});
}

/* The id + 1 of a text for what LOCALS hold; the same text, the same id. */
static uint32_t signature_of(PyObject *locals)
{
    static PyObject *known; /* text -> id */
    struct text text = {.used = 0};
    PyObject *key, *name, *value, *number;
    Py_ssize_t at = 0;
    uint32_t id = 0;

    while (PyDict_Next(locals, &at, &name, &value)) { /* whoever has them may change them */
        Py_INCREF(name);
        Py_INCREF(value);
        if (text.used)
            text_string(&text, ", ");
        text_unicode(&text, name, VALUE_MAX);
        text_string(&text, ": ");
        text_value(&text, value);
        Py_DECREF(name);
        Py_DECREF(value);
    }
    if (!known && (key = PyDict_New())) {
        if (known)
            Py_DECREF(key);
        else
            known = key;
    }
    /* From here on nothing runs: the keys are bytes. */
    key = known ? PyBytes_FromStringAndSize(text.bytes, (Py_ssize_t)text.used) : NULL;
    number = key ? PyDict_GetItem(known, key) : NULL; /* borrowed */
    if (number) {
        id = (uint32_t)PyLong_AsUnsignedLong(number) + 1;
    } else if (key && PyDict_GET_SIZE(known) < SIGNATURES_MAX) {
        number = PyLong_FromUnsignedLong(P.signatures);
        if (number && PyDict_SetItem(known, key, number) == 0) {
            tracer_fact(SIGNATURE, .signature = P.signatures, .text = text_all(&text));
            id = ++P.signatures;
        }
        Py_XDECREF(number);
    }
    Py_XDECREF(key);
    PyErr_Clear();
    return id;
}

/* ---- one lookup ---- */

void decision_begin(struct decision *d, uint64_t began, const struct front *front)
{
    d->on = began != 0;
    d->began = began;
    d->front = front;
    d->older = false;
    d->ours = 0;
    d->count = 0;
    d->room = sizeof d->small / sizeof *d->small;
    d->check = d->small;
    d->compile = d->signature = 0;
    d->token = d->causes = NULL;
}

void decision_end(struct decision *d)
{
    for (uint32_t i = 0; i < d->count; i++)
        Py_DECREF(d->check[i].object);
    if (d->check != d->small)
        free(d->check);
    Py_XDECREF(d->causes);
}

void decision_add(struct decision *d, struct cache_entry *entry, enum check_result result, uint32_t run,
                  uint32_t failed, uint64_t ticks)
{
    if (!d->on || entry->id == ENTRY_UNRECORDED)
        return;
    if (d->count == d->room) {
        struct decision_check *more = malloc(2 * d->room * sizeof *more);
        if (!more)
            return;
        memcpy(more, d->check, d->count * sizeof *more);
        if (d->check != d->small)
            free(d->check);
        d->check = more;
        d->room *= 2;
    }
    d->check[d->count++] = (struct decision_check){entry->id, run, failed, ticks, result,
                                                   (struct cache_entry *)Py_NewRef((PyObject *)entry)};
}

/* Why the entry of a check does not fit now: a new list, or NULL. */
static PyObject *explain(const struct decision_check *check, compat_frame *frame, PyObject *locals)
{
    struct guard_values values = {.frame = frame};
    struct cache_parts *parts = check->result == CHECK_FAIL ? cache_entry_pin(check->object) : NULL;
    PyObject *found = NULL;

    if (parts && check->object->tree)
        found = guard_tree_explain_values(parts->guard, &values, values_kept());
    else if (parts && parts->view)
        found = check->object->front->explain(parts->view, frame, locals);
    if (parts)
        cache_parts_unpin(parts);
    PyErr_Clear();
    return found;
}

void decision_missed(struct decision *d, compat_frame *frame, PyObject *locals)
{
    uint64_t began;

    if (!d->on)
        return;
    began = tracer_now(P.monotonic);
    if (values_kept() != SESSION_VALUES_OFF)
        d->signature = signature_of(locals);
    d->causes = PyList_New(0);
    for (uint32_t i = 0; d->causes && i < d->count; i++) {
        PyObject *found = explain(&d->check[i], frame, locals);
        if (PyList_Append(d->causes, found ? found : Py_None))
            PyErr_Clear();
        Py_XDECREF(found);
    }
    PyErr_Clear();
    d->ours += tracer_now(P.monotonic) - began;
}

void decision_ask(struct decision *d, const struct code_state *state, PyObject *code)
{
    if (!d->on)
        return;
    d->compile = ++P.compiles;
    d->compile_began = tracer_now(P.monotonic);
    tracer_fact(ASKED, .compile = d->compile - 1, .code = (int64_t)(state->mark >> CODE_SHIFT),
                .clock = (int64_t)d->compile_began);
    if (d->front->compile_begins)
        d->token = d->front->compile_begins(d->compile - 1, code);
}

void decision_asked(struct decision *d, PyObject *result)
{
    PyObject *token = d->token;

    d->token = NULL;
    if (token)
        d->front->compile_ends(token, result);
}

/* Why an entry did not fit. What it points to is borrowed; objects may be NULL. */
struct cause {
    bool decided;       /* it is the guard that decided; else it would have failed as well */
    long long ordinal;  /* of the guard, -1: none */
    const char *kind;   /* "": the guard's own, which the collector knows, as the source */
    PyObject *source, *expected, *actual;
    const char *aspect; /* recompile_cause.aspect, or NULL */
    int dimension;      /* recompile_cause.dimension, -1: none */
    const char *words;
};

static void cause_fact(const struct decision *d, const struct decision_check *check, const struct cause *cause)
{
    struct text t = {.used = 0};

    tracer_fact(CAUSE, .compile = d->compile - 1, .entry = check->entry, .guard = cause->ordinal,
                .how = !cause->decided      ? CAUSE_ALSO
                       : d->front->observed ? CAUSE_ASKED
                                            : CAUSE_DECIDED,
                .dimension = cause->dimension, .kind = fact_string(cause->kind),
                .source = text_part(&t, cause->source, 512), .aspect = fact_string(cause->aspect ? cause->aspect : ""),
                .expected = text_part(&t, cause->expected, 512), .actual = text_part(&t, cause->actual, 512),
                .words = fact_string(cause->words));
}

/* ONE of the causes that explain() said: a tree's (ordinal, expected, actual, aspect, dimension), or torch's (ordinal,
 * kind, source, expected, actual, aspect, dimension, text). Returns whether it is of the guard that decided; when that
 * was not seen, the FIRST is. */
static bool one_cause(const struct decision *d, const struct decision_check *check, PyObject *one, bool first)
{
    struct cause c = {.kind = "", .words = ""};

    if (check->object->tree
            ? !PyArg_ParseTuple(one, "LUUzi", &c.ordinal, &c.expected, &c.actual, &c.aspect, &c.dimension)
            : !PyArg_ParseTuple(one, "LsUUUsis", &c.ordinal, &c.kind, &c.source, &c.expected, &c.actual, &c.aspect,
                                &c.dimension, &c.words)) {
        PyErr_Clear();
        return false;
    }
    c.decided = check->failed == UINT32_MAX ? first : c.ordinal == check->failed;
    cause_fact(d, check, &c);
    return c.decided;
}

static void causes_of(const struct decision *d, uint32_t i)
{
    const struct decision_check *check = &d->check[i];
    PyObject *found = d->causes && i < (uint32_t)PyList_GET_SIZE(d->causes) ? PyList_GET_ITEM(d->causes, i) : Py_None;
    struct cause c = {.decided = true, .ordinal = -1, .kind = "", .dimension = -1};
    bool decided = false;

    if (check->result == CHECK_BACKEND_MISMATCH) {
        c.kind = "BACKEND_MATCH";
        c.aspect = "backend";
        c.words = "the entry was compiled for another backend";
        cause_fact(d, check, &c);
    }
    if (check->result != CHECK_FAIL)
        return;
    for (Py_ssize_t k = 0; PyList_Check(found) && k < PyList_GET_SIZE(found); k++)
        decided |= one_cause(d, check, PyList_GET_ITEM(found, k), k == 0);
    if (decided)
        return;
    c.ordinal = check->failed == UINT32_MAX ? -1 : (long long)check->failed;
    c.words = check->object->tree ? "it did not hold when it was checked" : d->front->unexplained;
    cause_fact(d, check, &c);
}

/* The exception that a callback left: its type, and its words if they are simple and may be recorded. */
static void text_exception(struct text *t, PyObject *type, PyObject *value)
{
    PyObject *arguments = value && PyExceptionInstance_Check(value) ? ((PyBaseExceptionObject *)value)->args : NULL;
    PyObject *words = arguments && PyTuple_Check(arguments) && PyTuple_GET_SIZE(arguments) == 1
                          ? PyTuple_GET_ITEM(arguments, 0)
                          : value;

    text_string(t, ((PyTypeObject *)type)->tp_name);
    if (words && PyUnicode_Check(words) && values_kept() == SESSION_VALUES_ALL) {
        Py_INCREF(words);
        text_string(t, ": ");
        text_unicode(t, words, 500);
        Py_DECREF(words);
    }
}

void decision_answer(struct decision *d, struct code_state *state, struct cache_entry *entry, enum outcome outcome)
{
    struct text reason = {.used = 0};
    PyObject *type, *value, *traceback;
    char label[64] = "";

    if (!d->on || !d->compile)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    if (!entry && state->number && !d->front->ids_public)
        snprintf(label, sizeof label, "%lu/%lu", state->number - 1, state->compiles);
    if (type)
        text_exception(&reason, type, value);
    else
        text_string(&reason, d->count || d->older ? "no entry fitted" : "first call");
    tracer_fact(COMPILE, .compile = d->compile - 1, .code = (int64_t)(state->mark >> CODE_SHIFT),
                .began = (int64_t)d->compile_began, .ended = (int64_t)tracer_now(P.monotonic),
                .label = fact_string(entry ? entry->label : label),
                .outcome = fact_string(outcome == OUTCOME_COMPILED   ? "compiled"
                                       : outcome == OUTCOME_DECLINED ? "declined"
                                                                     : "error"),
                .reason = text_all(&reason));
    if (entry && entry->id != ENTRY_UNRECORDED)
        tracer_fact(COMPILED, .compile = d->compile - 1, .entry = entry->id);
    for (uint32_t i = 0; i < d->count; i++)
        causes_of(d, i);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

/* ---- words ---- */

/* Room for a record of up to RING_MARGIN - 8 words. Its times are whole ones: it needs no epoch. */
static bool room(struct tracer *t)
{
    return likely(t->head < t->limit) || tracer_room_within(t);
}

static inline void put_words(struct tracer *t, uint64_t first, uint64_t second, uint64_t third, unsigned count)
{
    uint64_t head;

    if (!room(t))
        return;
    head = t->head;
    t->words[head & t->mask] = first;
    if (count > 1)
        t->words[(head + 1) & t->mask] = second;
    if (count > 2)
        t->words[(head + 2) & t->mask] = third;
    t->head = head += count;
    /* A: publishes the whole record; matches the collector's B. */
    atomic_store_explicit(&t->ring->head, head, memory_order_release);
}

static UNGUARDED void write_lookup(struct decision *d, struct tracer *t, unsigned outcome,
                                   const struct cache_entry *entry)
{
    uint64_t id = entry && entry->id != ENTRY_UNRECORDED ? (uint64_t)entry->id + 1 : 0;

    if (d->compile || d->signature)
        put_words(t, RING_CONTROL_WORD(CONTROL_COMPILED, 2, d->compile), d->signature, 0, 2);
    put_words(t, RING_CONTROL_WORD(CONTROL_DECISION, 3, id << 8 | outcome), d->began,
              tracer_now(P.monotonic) - d->began - (d->compile ? 0 : d->ours),
              3); /* a compile's entry was born within it */
}

static void write_check(struct tracer *t, const struct decision_check *c)
{
    uint64_t ticks = c->ticks == CHECK_TICKS_UNKNOWN ? RING_TICKS_UNKNOWN
                     : c->ticks < RING_TICKS_UNKNOWN ? c->ticks : RING_TICKS_UNKNOWN - 1;
    uint64_t failed = c->failed == UINT32_MAX ? 0 : ((uint64_t)c->failed + 1) & 0xfffff;

    put_words(t, RING_CONTROL_WORD(CONTROL_CHECK, 2, (uint64_t)c->entry << 8 | c->result),
              (uint64_t)(c->run & 0xfffff) << 44 | failed << 24 | ticks, 0, 2);
}

void decision_write(struct decision *d, struct tracer *t, enum outcome outcome, const struct cache_entry *entry)
{
    if (!d->on)
        return;
    for (uint32_t i = 0; i < d->count; i++)
        write_check(t, &d->check[i]);
    write_lookup(d, t, outcome, entry);
}

void decision_observed(struct decision *d, struct tracer *t, enum outcome outcome, const struct cache_entry *entry)
{
    for (uint32_t i = 0; i < d->count; i++)
        if (d->check[i].result == CHECK_PASS)
            write_check(t, &d->check[i]);
    write_lookup(d, t, (unsigned)outcome | DECISION_OBSERVED, entry);
}

HOT UNGUARDED void decision_hit(struct tracer *t, uint64_t began, const struct cache_entry *entry)
{
    const uint64_t outcome = OUTCOME_HIT | DECISION_OBSERVED, ticks = tracer_now(P.monotonic) - began;
    const uint32_t id = entry->id, guards = entry->guards; /* making room may let other threads run */
    uint64_t head, mask, *words;

    if (unlikely(id == ENTRY_UNRECORDED)) {
        put_words(t, RING_CONTROL_WORD(CONTROL_DECISION, 3, outcome), began, ticks, 3);
        return;
    }
    if (unlikely(!room(t)))
        return;
    head = t->head;
    mask = t->mask;
    words = t->words;
    words[head++ & mask] = RING_CONTROL_WORD(CONTROL_CHECK, 2, (uint64_t)id << 8 | CHECK_PASS);
    words[head++ & mask] = (uint64_t)(guards & 0xfffff) << 44 | RING_TICKS_UNKNOWN;
    words[head++ & mask] = RING_CONTROL_WORD(CONTROL_DECISION, 3, ((uint64_t)id + 1) << 8 | outcome);
    words[head++ & mask] = began;
    words[head++ & mask] = ticks;
    t->head = head;
    /* A: publishes them; matches the collector's B. */
    atomic_store_explicit(&t->ring->head, head, memory_order_release);
}

HOT void decision_outcome(struct tracer *t, enum outcome outcome)
{
    put_words(t, RING_CONTROL_WORD(CONTROL_OUTCOME, 1, outcome), 0, 0, 1);
}
