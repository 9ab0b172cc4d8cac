/* tracer/torch/note.c -- what the bridge to torch notes of a compile, as facts.
 *
 * Runs in: the traced process, under the GIL.
 *
 * Each function is one fact of ring.h. They take what python/dyntrace/_torch*.py
 * hands them, cut what is too long, and never raise: a note that cannot be made
 * is left out, or, where a reader would miss it, a loss row. */
#include "tracer/torch/torch.h"
#include "tracer/values.h"

#include <string.h>

#define P tracer_process

enum { TEXT_MAX = 256 << 10, TOTAL_MAX = 16 << 20 }; /* bytes of one text, and of all in a process: they lie in its memory */

/* A growing text. */
struct note {
    char *bytes; /* owned */
    size_t used, room;
    bool cut;
};

static void note_add(struct note *n, const char *bytes, size_t count)
{
    if (count > TEXT_MAX - n->used) {
        count = TEXT_MAX - n->used;
        n->cut = true;
    }
    if (n->used + count > n->room) {
        size_t room = n->used + count + 4096;
        char *more = realloc(n->bytes, room);
        if (!more) {
            n->cut = true;
            return;
        }
        n->bytes = more;
        n->room = room;
    }
    memcpy(n->bytes + n->used, bytes, count);
    n->used += count;
}

/* VALUE's UTF-8, if it is a str, at most LIMIT bytes of it. */
static void note_unicode(struct note *n, PyObject *value, size_t limit)
{
    PyObject *bytes = value && PyUnicode_Check(value) ? PyUnicode_AsEncodedString(value, "utf-8", "backslashreplace") : NULL;

    if (bytes) {
        const char *string = PyBytes_AS_STRING(bytes);
        size_t count = (size_t)PyBytes_GET_SIZE(bytes);
        if (count > limit)
            for (count = limit; count && (string[count] & 0xc0) == 0x80;)
                count--;
        note_add(n, string, count);
        Py_DECREF(bytes);
    }
    PyErr_Clear();
}

static void note_part(struct note *n, PyObject *value, size_t limit)
{
    note_unicode(n, value, limit);
    note_add(n, "", 1);
}

/* The fact is made, and the texts are freed. */
static void note_fact(enum fact_kind kind, uint32_t id, const uint64_t number[3], struct note *one, struct note *two)
{
    static size_t total;
    size_t bytes = one->used + two->used;

    if (total + bytes <= TOTAL_MAX) {
        total += bytes;
        tracer_fact(kind, id, number, one->bytes ? one->bytes : "", one->used, two->bytes ? two->bytes : "", two->used);
    } else if (total <= TOTAL_MAX) { /* once */
        static const char words[] = "texts of compiles (listings, graphs, breaks) left out: more than 16 MB in this process";
        total = (size_t)TOTAL_MAX + 1;
        tracer_fact(FACT_LOSS, 0, (uint64_t[3]){tracer_now(P.monotonic), 1}, words, strlen(words), "", 0);
    }
    free(one->bytes);
    free(two->bytes);
}

/* The trace's id of CODE + 1; 0: it is not recorded, or none. */
static uint64_t code_id(PyObject *code)
{
    uintptr_t mark;

    if (!PyCode_Check(code) || !P.session)
        return 0;
    mark = tracer_mark_code((PyCodeObject *)code);
    return mark & CODE_SKIP ? 0 : (uint64_t)(mark >> CODE_SHIFT) + 1;
}

/* Arguments of a note; a wrong one is the bridge's mistake, which is a row and no exception. */
#define PARSE(...)                          \
    do {                                    \
        (void)module;                       \
        if (!PyArg_ParseTuple(__VA_ARGS__)) { \
            torch_bridge_failed("a note");  \
            Py_RETURN_NONE;                 \
        }                                   \
    } while (0)

static PyObject *note_torch(PyObject *module, PyObject *args)
{
    PyObject *version, *mode, *why;
    struct note one = {0}, two = {0};

    PARSE(args, "OOO", &version, &mode, &why);
    note_unicode(&one, version, 100);
    note_part(&two, mode, 20);
    note_unicode(&two, why, 1000);
    note_fact(FACT_TORCH, 0, NULL, &one, &two);
    Py_RETURN_NONE;
}

static PyObject *note_compile(PyObject *module, PyObject *args)
{
    PyObject *label, *outcome, *reason, *sticky;
    struct note one = {0}, two = {0};
    unsigned long compile;

    PARSE(args, "kOOOO", &compile, &label, &outcome, &reason, &sticky);
    note_part(&one, label, 100);
    note_unicode(&one, outcome, 100);
    note_unicode(&two, reason, 4000);
    note_fact(FACT_NOTE, (uint32_t)compile, (uint64_t[3]){sticky == Py_True ? 1 : sticky == Py_False ? 0 : 2}, &one, &two);
    Py_RETURN_NONE;
}

static PyObject *note_graph(PyObject *module, PyObject *args)
{
    PyObject *name, *nodes, *list;
    struct note one = {0}, two = {0};
    unsigned long compile;

    PARSE(args, "kOO", &compile, &name, &nodes);
    note_unicode(&one, name, 200);
    list = PySequence_Fast(nodes, "nodes");
    for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(list); i++) {
        PyObject *node = PySequence_Fast_GET_ITEM(list, i);
        for (Py_ssize_t k = 0; PyTuple_Check(node) && PyTuple_GET_SIZE(node) == 5 && k < 5; k++)
            note_part(&two, PyTuple_GET_ITEM(node, k), 2000);
    }
    Py_XDECREF(list);
    PyErr_Clear();
    note_fact(FACT_GRAPH, (uint32_t)compile, NULL, &one, &two);
    Py_RETURN_NONE;
}

static PyObject *note_break(PyObject *module, PyObject *args)
{
    PyObject *code, *reason, *stack, *rest;
    struct note one = {0}, two = {0};
    unsigned long compile;
    long line, offset;

    PARSE(args, "kOllOOO", &compile, &code, &line, &offset, &reason, &stack, &rest);
    note_unicode(&one, reason, 4000);
    note_unicode(&two, stack, 16000);
    note_fact(FACT_BREAK, (uint32_t)compile,
              (uint64_t[3]){code_id(code), (uint64_t)(uint32_t)line << 32 | (uint32_t)(offset + 1), code_id(rest)}, &one, &two);
    Py_RETURN_NONE;
}

static PyObject *note_listing(PyObject *module, PyObject *args)
{
    PyObject *kind, *text;
    struct note one = {0}, two = {0};
    unsigned long compile;

    PARSE(args, "kOO", &compile, &kind, &text);
    note_unicode(&one, kind, 100);
    note_unicode(&two, text, TEXT_MAX);
    note_fact(FACT_LISTING, (uint32_t)compile, NULL, &one, &two);
    Py_RETURN_NONE;
}

static PyObject *note_phase(PyObject *module, PyObject *args)
{
    PyObject *name, *label;
    struct note one = {0}, two = {0};
    unsigned long long start, end;
    long compile;

    PARSE(args, "lOKKO", &compile, &name, &start, &end, &label);
    note_unicode(&one, name, 200);
    note_unicode(&two, label, 100);
    note_fact(FACT_PHASE, (uint32_t)(compile + 1), (uint64_t[3]){start, end}, &one, &two);
    Py_RETURN_NONE;
}

static PyObject *note_origin(PyObject *module, PyObject *args)
{
    PyObject *code, *origin, *kind;
    struct note one = {0}, two = {0};
    uint64_t id;

    PARSE(args, "OOO", &code, &origin, &kind);
    id = code_id(code);
    if (id) {
        note_unicode(&one, kind, 20);
        note_fact(FACT_ORIGIN, (uint32_t)id - 1, (uint64_t[3]){code_id(origin)}, &one, &two);
    }
    Py_RETURN_NONE;
}

static PyObject *note_mark(PyObject *module, PyObject *args)
{
    PyObject *code, *reason;
    struct note one = {0}, two = {0};
    long own, callees;
    uint64_t id;

    PARSE(args, "OllO", &code, &own, &callees, &reason);
    id = code_id(code);
    if (id) {
        note_unicode(&one, reason, 4000);
        note_fact(FACT_MARK, (uint32_t)id - 1, (uint64_t[3]){tracer_now(P.monotonic), (uint64_t)(own & 255) | (uint64_t)(callees & 255) << 8},
                  &one, &two);
    }
    Py_RETURN_NONE;
}

static PyObject *note_rank(PyObject *module, PyObject *args)
{
    long rank, local;

    PARSE(args, "ll", &rank, &local);
    tracer_fact(FACT_RANK, 0, (uint64_t[3]){(uint64_t)(rank + 1), (uint64_t)(local + 1)}, "", 0, "", 0);
    Py_RETURN_NONE;
}

static PyObject *kept(PyObject *module, PyObject *none)
{
    static const char *const words[] = {"all", "types", "off"};
    enum session_values values = values_kept();

    (void)module, (void)none;
    return PyUnicode_FromString(words[values > SESSION_VALUES_OFF ? SESSION_VALUES_OFF : values]);
}

static PyObject *note_loss(PyObject *module, PyObject *args)
{
    PyObject *words;
    struct note one = {0}, two = {0};

    PARSE(args, "O", &words);
    note_unicode(&one, words, 1000);
    note_fact(FACT_LOSS, 0, (uint64_t[3]){tracer_now(P.monotonic), 1}, &one, &two);
    Py_RETURN_NONE;
}

/* OURS(*ARGS, **KWARGS), which the program's trace functions do not see. NULL: it failed, and that is noted. */
static PyObject *call_quietly(PyObject *ours, PyObject *args, PyObject *kwargs)
{
    struct torch_quiet quiet;
    PyObject *result;

    torch_quiet_begin(&quiet);
    result = PyObject_Call(ours, args, kwargs);
    if (!result)
        torch_bridge_failed("a function of torch's");
    torch_quiet_end(&quiet);
    return result;
}

/* THREE is (before, theirs, after). A function of C, so that in the stack there is nothing of ours. */
static PyObject *call_around(PyObject *three, PyObject *args, PyObject *kwargs)
{
    PyObject *before = PyTuple_GET_ITEM(three, 0), *token, *result, *more, *done;

    Py_INCREF(three); /* theirs may be what holds the function */
    token = before == Py_None ? NULL : call_quietly(before, args, kwargs);
    result = PyObject_Call(PyTuple_GET_ITEM(three, 1), args, kwargs);
    if (result && (more = PyTuple_New(PyTuple_GET_SIZE(args) + 1))) {
        PyTuple_SET_ITEM(more, 0, Py_NewRef(token ? token : Py_None));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
            PyTuple_SET_ITEM(more, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
        done = call_quietly(PyTuple_GET_ITEM(three, 2), more, kwargs);
        Py_XDECREF(done);
        Py_DECREF(more);
    }
    if (result)
        PyErr_Clear();
    Py_XDECREF(token);
    Py_DECREF(three);
    return result;
}

static PyMethodDef around_method = {"around", (PyCFunction)(void (*)(void))call_around, METH_VARARGS | METH_KEYWORDS, NULL};

static PyObject *around(PyObject *module, PyObject *args)
{
    PyObject *function, *method;

    (void)module;
    if (!PyTuple_Check(args) || PyTuple_GET_SIZE(args) != 3) {
        PyErr_SetString(PyExc_TypeError, "_around(before, theirs, after)");
        return NULL;
    }
    function = PyCFunction_New(&around_method, args);
    method = function ? PyInstanceMethod_New(function) : NULL; /* found in a class it is given the instance */
    Py_XDECREF(function);
    return method;
}

#undef PARSE

PyMethodDef note_methods[] = {
    {"_note_torch", note_torch, METH_VARARGS, "_note_torch(version, mode, why)\n\nWhich torch, and how it is watched."},
    {"_note_compile", note_compile, METH_VARARGS,
     "_note_compile(compile, label, outcome, reason, sticky)\n\nHow a compile ended. '' and None: not known."},
    {"_note_graph", note_graph, METH_VARARGS,
     "_note_graph(compile, name, nodes)\n\nNODES: (opcode, name, target, args, kwargs), all str."},
    {"_note_break", note_break, METH_VARARGS,
     "_note_break(compile, code, line, offset, reason, user_stack, resume_code)\n\nOFFSET -1, RESUME_CODE None: not known."},
    {"_note_listing", note_listing, METH_VARARGS, "_note_listing(compile, kind, text)\n\nA text that a compile produced."},
    {"_note_phase", note_phase, METH_VARARGS,
     "_note_phase(compile, name, start_unix_ns, end_unix_ns, label)\n\nCOMPILE -1: of the compile with that label."},
    {"_note_origin", note_origin, METH_VARARGS,
     "_note_origin(code, origin, kind)\n\nCODE was made from ORIGIN and is 'resume' or 'compiled'."},
    {"_note_mark", note_mark, METH_VARARGS,
     "_note_mark(code, action, recursive_action, reason)\n\nHow calls of CODE are treated from now on."},
    {"_note_rank", note_rank, METH_VARARGS, "_note_rank(rank, local_rank)\n\n-1: not known."},
    {"_note_loss", note_loss, METH_VARARGS, "_note_loss(text)\n\nSomething could not be recorded."},
    {"_values", kept, METH_NOARGS, "_values() -> 'all', 'types' or 'off'\n\nWhat of the program's values may be noted."},
    {"_around", around, METH_VARARGS,
     "_around(before, theirs, after) -> function, also for a class\n\n"
     "Calls token = before(...), result = theirs(...) and, if it did not raise, after(token, ...). Nobody sees ours."},
    {NULL, NULL, 0, NULL},
};
