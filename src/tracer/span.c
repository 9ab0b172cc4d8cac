/* tracer/span.c -- `dyntrace.span`: named stretches of time, in the ring between frames.
 *
 * Runs in: the traced process, under the GIL.
 *
 *     with dyntrace.span("request", id=271):      a CONTROL_SPAN, and a CONTROL_SPAN_END (ring.h)
 *     @dyntrace.span                              a span around each call
 *
 * While nothing is recorded, a span costs the creation of its object and two calls. While a span is
 * recorded, an object of type `open` stands for it. The innermost open span of a context is in a
 * context variable, so that tasks of asyncio, threads and greenlets have their own, and a task
 * begins with its maker's. `open` refers to none of the program's objects, so it does not make them
 * live longer.
 *
 * A generator shares its caller's context. While the generator is suspended within a span, the
 * caller's code is not part of that span: see does_span_contain_running_code().
 *
 * Without a GIL: a thread inherits the context of the thread that starts it, and several threads
 * may use the same `span` object at the same time. So `outer` is accessed in a critical section of
 * its `open`, and the list that is linked by `before` in one of the `span`. Freed spans are not
 * reused, and a span's bound methods are CPython's own, not the `halves` inside the span. */
#include "tracer/span.h"

#include "tracer/attributes.h"
#include "tracer/redact.h"

#include <structmember.h>

#define P tracer_process

enum {
    NAME_BYTES = 200,      /* a longer name of a span is cut */
    GENERATORS_MOST = 512, /* the most generators that struct generators remembers */
};
_Static_assert(NAME_BYTES + ATTRIBUTES_BYTES <= RING_SPAN_BYTES, "a span fits into its words");
_Static_assert(4 + RING_SPAN_BYTES / 8 + 16 <= RING_MARGIN, "a span fits into the margin");

/* ---- open spans, and which span is around which ---- */

/* A span that has begun and is being recorded. */
struct open {
    /* outer: owned, or NULL: the innermost span of the context when this span began. It may have
     * ended since, or belong to a suspended generator */
    PyObject_HEAD struct open *outer;
    uint32_t id;
    uint32_t session; /* tracer_process.sessions when the span began */
    bool ended;       /* atomic */
    /* borrowed, only compared: the generator's frame in which the span began; or NULL */
    const compat_frame *generator;
    /* owned: the open span that the same dyntrace.span object had begun before this one; or NULL */
    PyObject *before;
    struct open *next_dead; /* for free_open_span(): the next span to be freed */
};

/* The type of open spans in the home interpreter (tracer/place.c); in other interpreters a span has
 * no parent. */
static PyTypeObject *open_type;
static PyObject *innermost; /* a context variable with the innermost open span of the context */

/* Free an open span. Its end may drop the last reference to the span around it, and so on through a
 * long chain: so these spans are put into a list, and the outermost call frees them in a loop. */
static void free_open_span(PyObject *self)
{
    static __thread struct open *dead __attribute__((tls_model("initial-exec")));
    static __thread bool is_freeing __attribute__((tls_model("initial-exec")));
    struct open *open = (struct open *)self;

    open->next_dead = dead;
    dead = open;
    if (is_freeing)
        return;
    is_freeing = true;
    while ((open = dead)) {
        PyTypeObject *type = Py_TYPE((PyObject *)open);
        dead = open->next_dead;
        Py_XDECREF((PyObject *)open->outer);
        Py_XDECREF(open->before);
        PyObject_Free(open);
        Py_DECREF((PyObject *)type);
    }
    is_freeing = false;
}

static PyType_Slot open_slots[] = {
    {Py_tp_dealloc, (void *)free_open_span},
    {0, NULL},
};
static PyType_Spec open_spec = {
    .name = "dyntrace.open_span",
    .basicsize = sizeof(struct open),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = open_slots,
};

static bool is_main_interpreter(void)
{
    return open_type && P.interpreter && PyInterpreterState_Get() == P.interpreter;
}

/* Is FRAME a generator's or an asynchronous generator's? Coroutines do not count: while a coroutine
 * is suspended, its span still contains the tasks that it has made. */
static bool is_generator_frame(compat_frame *frame)
{
    const int kinds = CO_GENERATOR | CO_ASYNC_GENERATOR;
    int flags;

    if (!compat_is_resumed(frame) || !PyCode_Check((PyObject *)compat_get_code(frame)))
        return false;
    flags = compat_get_code(frame)->co_flags;
    return flags & kinds && !(flags & CO_ITERABLE_COROUTINE);
}

/* The frames of the generators that run in this thread, innermost first, as far as they have been
 * searched. */
struct generators {
    compat_frame *next; /* the first frame that has not been searched; NULL: all have been */
    int count;          /* of `frames`; once it is GENERATORS_MOST, `next` stays where it is */
    const compat_frame *frames[GENERATORS_MOST];
};

/* Is GENERATOR, the address of a frame, the frame of a generator that runs in this thread? */
static bool is_generator_running(const compat_frame *generator, struct generators *running)
{
    for (int i = 0; i < running->count; i++)
        if (running->frames[i] == generator)
            return true;
    for (compat_frame *frame = running->next; frame; frame = frame->previous) {
        const bool is_here = is_generator_frame(frame);
        if (running->count < GENERATORS_MOST) {
            running->next = frame->previous;
            if (is_here)
                running->frames[running->count++] = frame;
        }
        if (is_here && frame == generator)
            return true;
    }
    return false;
}

/* Does span OPEN contain the code that runs now? If it began in a generator, only while this
 * generator is among those RUNNING. */
static bool does_span_contain_running_code(const struct open *open, struct generators *running)
{
    if (world_get(open->ended) || open->session != P.sessions)
        return false;
    return !open->generator || is_generator_running(open->generator, running);
}

/* Return the span around OPEN: a new reference, or NULL. */
static struct open *get_outer_span(struct open *open)
{
    struct open *outer;

    world_hold(open);
    outer = (struct open *)Py_XNewRef((PyObject *)open->outer);
    world_release();
    return outer;
}

/* Return OPEN or, if it has ended, the first span around it that has not; or NULL. Steals a
 * reference and returns one. */
static struct open *skip_ended_spans(struct open *open)
{
    while (open && world_get(open->ended)) {
        struct open *outer = get_outer_span(open);
        Py_DECREF((PyObject *)open);
        open = outer;
    }
    return open;
}

/* Let `outer` of OPEN point to the first span around it that has not ended. */
static void drop_ended_outer_spans(struct open *open)
{
    struct open *outer = skip_ended_spans(get_outer_span(open));
    struct open *before;

    world_hold(open);
    before = open->outer;
    open->outer = outer;
    world_release();
    Py_XDECREF((PyObject *)before);
}

/* Return the value of the context variable `innermost`: a new reference, or NULL. */
static PyObject *get_innermost_from_context(void)
{
    PyObject *found = NULL;

    if (!is_main_interpreter() || PyContextVar_Get(innermost, NULL, &found))
        PyErr_Clear();
    return found;
}

/* Return the innermost span of the context that has not ended: a new reference, or NULL. Ended
 * spans are removed from the list of outer spans, which spans that overlap would make longer and
 * longer. */
static struct open *find_innermost_span(void)
{
    PyObject *found = get_innermost_from_context();
    struct open *open = (struct open *)found;

    if (!found)
        return NULL;
    if (!Py_IS_TYPE(found, open_type)) {
        Py_DECREF(found);
        return NULL;
    }
    open = skip_ended_spans(open);
    if (open)
        drop_ended_outer_spans(open);
    return open;
}

/* Return 1 + the id of the parent of OPEN: the innermost span around it that contains the code that
 * runs now. Returns 0 if there is none. */
static uint64_t find_parent_id(struct open *open)
{
    /* its `frames` stay uninitialised, because clearing them would take long */
    struct generators running;
    struct open *around = get_outer_span(open);
    uint64_t id;

    running.next = compat_current_frame(PyThreadState_Get());
    running.count = 0;
    while (around && !does_span_contain_running_code(around, &running)) {
        struct open *outer = get_outer_span(around);
        Py_DECREF((PyObject *)around);
        around = outer;
    }
    id = around ? (uint64_t)around->id + 1 : 0;
    Py_XDECREF((PyObject *)around);
    return id;
}

/* Make OPEN the innermost span of the context; NULL: none. */
static void set_innermost_span(struct open *open)
{
    OWNED PyObject *token = PyContextVar_Set(innermost, open ? (PyObject *)open : Py_None);

    if (token)
        return;
    PyErr_Clear();
    tracer_write_loss("span: no memory to note that it is the innermost one: later spans may have "
                      "another parent");
}

/* Return the running frame if it is a generator's; otherwise NULL. */
static const compat_frame *find_running_generator(void)
{
    compat_frame *frame = compat_current_frame(PyThreadState_Get());

    return frame && is_generator_frame(frame) ? frame : NULL;
}

/* ---- begin and end spans, and write their words ---- */

/* Make room in the ring for the words of a span. Returns the time, or 0 if nothing must be
 * written. */
static uint64_t make_room_for_span(struct tracer *t)
{
    uint64_t now;

    tracer_update_running_stack(t, PyThreadState_Get(), NULL);
    now = tracer_read_session_clock();
    if (likely(t->head < t->limit && now <= t->until))
        return now;
    now = tracer_make_room_at_frame(t, now);
    if (now || !t->ring)
        return now;
    if (t->ring->lost_since)
        t->ring->lost++;
    return 0;
}

/* Write the CONTROL_SPAN for OPEN. Returns false if there is no room. */
static bool write_span_begin(struct tracer *t, struct open *open, enum span_kind kind,
                             struct fact_text name, const struct attributes *with)
{
    uint64_t words[2 + RING_SPAN_BYTES / 8] = {0};
    char *texts = (char *)(words + 2);
    const uint32_t bytes = (uint32_t)name.bytes + (uint32_t)with->used;
    const uint64_t around = find_parent_id(open);
    const uint64_t now = make_room_for_span(t);

    if (!now || open->session != P.sessions)
        return false;
    memcpy(texts, name.text, (size_t)name.bytes);
    memcpy(texts + name.bytes, with->text, with->used);
    words[0] = now;
    words[1] = around << 32 | (uint64_t)name.bytes << 16 | with->used;
    tracer_put_control_record(t, CONTROL_SPAN, (uint64_t)kind << 32 | open->id, 2 + (bytes + 7) / 8,
                              words);
    return true;
}

/* Are events of thread T recorded now? */
static bool is_thread_recording(const struct tracer *t)
{
    return t && P.recording && !t->quiet;
}

/* Make an open span, around which is OUTER. Steals OUTER. */
static struct open *make_open_span(struct open *outer)
{
    struct open *open = PyObject_New(struct open, open_type);

    if (!open) {
        Py_XDECREF((PyObject *)outer);
        PyErr_Clear();
        tracer_write_loss("span: no memory for it");
        return NULL;
    }
    open->outer = outer;
    open->id = __atomic_fetch_add(&P.spans, 1, __ATOMIC_RELAXED);
    open->session = P.sessions;
    open->ended = false;
    open->generator = find_running_generator();
    open->before = NULL;
    return open;
}

PyObject *span_begin(enum span_kind kind, PyObject *name, PyObject *keys, PyObject *const *values)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    OWNED PyObject *keep = NULL;
    struct tracer *t = is_main_interpreter() ? tracer_of_this_thread() : NULL;
    struct secret_text made = {0};
    struct fact_text text;
    struct attributes with;
    struct open *open;
    size_t bytes;
    const char *utf8;

    if (!is_thread_recording(t))
        return NULL;
    fork_handle_if_child();
    open = make_open_span(find_innermost_span());
    if (!open)
        return NULL;
    utf8 = values_convert_to_utf8(name, SIZE_MAX, &bytes, &keep);
    text = (struct fact_text){utf8, (int64_t)bytes};
    made = redact_text(&text, NAME_BYTES);
    attributes_write(&with, keys, values, 0);
    if (!write_span_begin(t, open, kind, text, &with)) {
        free(made.text);
        Py_DECREF((PyObject *)open);
        return NULL;
    }
    free(made.text);
    set_innermost_span(open);
    return (PyObject *)open;
}

/* If OPEN is the innermost span of this context, make the span around it the innermost. It is not
 * if it ends in another context than the one in which it began. */
static void leave_context_of_span(struct open *open)
{
    OWNED PyObject *found = get_innermost_from_context(), *outer = NULL;

    if (found != (PyObject *)open)
        return;
    outer = (PyObject *)get_outer_span(open);
    set_innermost_span((struct open *)outer);
}

void span_end_open(PyObject *self)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    OWNED PyObject *held = self;
    struct open *open = (struct open *)self;
    struct tracer *t = tracer_of_this_thread();
    uint64_t now;

    world_set(open->ended, true);
    leave_context_of_span(open);
    /* a forked child is inside the span, too, but only the parent writes its end */
    if (!t || !P.session)
        return;
    if (open->session != P.sessions)
        return;
    fork_handle_if_child();
    if (open->id < P.spans_inherited)
        return;
    now = make_room_for_span(t);
    if (now)
        tracer_put_control_record(t, CONTROL_SPAN_END, open->id, 1, &now);
    else
        tracer_fact(SPAN_END, .span = open->id, .clock = (int64_t)tracer_read_session_clock());
}

/* ---- the Python type dyntrace.span ---- */

/* The bound method __enter__ or __exit__ of a span. It lies in the span's own memory, so that a
 * `with` allocates nothing for it. */
struct half {
    PyObject_HEAD vectorcallfunc call;
    struct span *span; /* owned: the span; NULL while the program does not hold this bound method */
};
enum { ENTER, EXIT, HALVES };

/* An object of `dyntrace.span`. */
struct span {
    PyObject_VAR_HEAD PyObject *name; /* owned: a str */
    PyObject *keys;                   /* owned: a tuple with the names of the attributes; or NULL */
    /* owned: the open span that this object has begun last and that has not ended; or NULL. Guarded
     * by world_hold() */
    PyObject *open;
    struct half halves[HALVES];
    PyObject *values[]; /* owned: the values of the attributes */
};

/* A few freed spans with few attributes are kept for reuse, because allocating takes longer than
 * all else that a span does. The GIL of the only interpreter protects the list. It is not used
 * if there are other interpreters, with GILs and allocators of their own, or in a free-threaded
 * build. */
enum { SPANS_FREE = 4, VALUES_FREE = 2 };
static struct span *spans_free[SPANS_FREE];
static int spans_free_count;

/* A function with a span around each of its calls. */
struct spanned {
    PyObject_HEAD vectorcallfunc call;
    PyObject *function; /* owned */
    struct span *span;  /* owned */
    /* owned: wraps the function's result, a generator or the like, so that the span is around each
     * of its steps (python/dyntrace/_span.py); NULL for an ordinary function */
    PyObject *stepper;
    PyObject *dict, *weak;
};

static PyObject *span_wrap_function(struct span *span, PyObject *function);

/* Return the type called NAME of the module that TYPE belongs to, a new reference. Each interpreter
 * has its own module and types. */
static PyTypeObject *find_module_type(PyTypeObject *type, const char *name)
{
    PyObject *module = PyType_GetModule(type);

    return module ? (PyTypeObject *)PyObject_GetAttrString(module, name) : NULL;
}

/* Allocate a span with COUNT attributes. Only its type and its reference count are set. */
static struct span *span_allocate(PyTypeObject *type, Py_ssize_t count)
{
    const Py_ssize_t room = count < VALUES_FREE ? VALUES_FREE : count;
    struct span *span;

    if (count > VALUES_FREE || P.interpreters || !spans_free_count) {
        span = PyObject_GC_NewVar(struct span, type, room);
        if (span)
            Py_SET_SIZE(span, count);
        return span;
    }
    span = spans_free[--spans_free_count];
    return (struct span *)PyObject_InitVar((PyVarObject *)span, type, count);
}

/* Make a span called NAME, whose attributes KEYS have the VALUES. */
static struct span *span_new(PyTypeObject *type, PyObject *name, PyObject *keys,
                             PyObject *const *values)
{
    const Py_ssize_t count = keys ? PyTuple_GET_SIZE(keys) : 0;
    struct span *span = span_allocate(type, count);
    bool has_containers = false;

    if (!span)
        return NULL;
    span->name = Py_NewRef(name);
    span->keys = Py_XNewRef(keys);
    span->open = NULL;
    span->halves[ENTER].span = NULL;
    span->halves[EXIT].span = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        span->values[i] = Py_NewRef(values[i]);
        has_containers |= PyType_IS_GC(Py_TYPE(values[i]));
    }
    if (has_containers)
        PyObject_GC_Track((PyObject *)span);
    return span;
}

/* What a call of the type does: span(name, **attributes), or span(function). */
static PyObject *span_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf,
                                 PyObject *keys)
{
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);

    if (unlikely(count != 1))
        return PyErr_Format(PyExc_TypeError,
                            "span() takes a name, or the function to decorate; %zd were given",
                            count);
    if (likely(PyUnicode_Check(args[0])))
        return (PyObject *)span_new((PyTypeObject *)type, args[0], keys, args + 1);
    if (PyCallable_Check(args[0]) && !keys) {
        OWNED PyObject *name = values_name(args[0]);
        struct span *span = name ? span_new((PyTypeObject *)type, name, NULL, NULL) : NULL;
        PyObject *made = span ? span_wrap_function(span, args[0]) : NULL;
        Py_XDECREF((PyObject *)span);
        return made;
    }
    return PyErr_Format(PyExc_TypeError, "span(): expected a name, got %s",
                        Py_TYPE(args[0])->tp_name);
}

static int span_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct span *span = (struct span *)self;

    Py_VISIT((PyObject *)Py_TYPE(self));
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++)
        Py_VISIT(span->values[i]);
    return 0;
}

static void span_free(PyObject *self)
{
    struct span *span = (struct span *)self;
    PyTypeObject *type = Py_TYPE(self);
    bool reuse;

    if (PyObject_GC_IsTracked(self))
        PyObject_GC_UnTrack(self);
    /* spans are still open if the program frees this object inside its own `with` block */
    while (span->open) {
        PyObject *open = span->open;
        span->open = Py_XNewRef(((struct open *)open)->before);
        Py_DECREF(open);
    }
    Py_DECREF(span->name);
    Py_XDECREF(span->keys);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++)
        Py_DECREF(span->values[i]);
    reuse = !P.interpreters && Py_SIZE(self) <= VALUES_FREE && spans_free_count < SPANS_FREE;
    if (reuse)
        spans_free[spans_free_count++] = span;
    else
        PyObject_GC_Del(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *span_enter(PyObject *self, PyObject *none)
{
    struct span *span = (struct span *)self;
    struct open *open;

    if (likely(!P.recording))
        return Py_NewRef(self);
    open = (struct open *)span_begin(SPAN_OWN, span->name, span->keys, span->values);
    if (open) {
        world_hold(self);
        open->before = span->open;
        world_set(span->open, (PyObject *)open);
        world_release();
    }
    return Py_NewRef(self);
}

/* Remove FOUND from the list of open spans at LINK; if it is not in the list, remove the list's
 * first span. Returns the removed span; NULL if the list is empty. */
static PyObject *remove_from_open_list(PyObject **link, PyObject *found)
{
    PyObject **at = link;
    PyObject *taken;

    while (*at && *at != found)
        at = &((struct open *)*at)->before;
    if (!*at)
        at = link;
    taken = *at;
    if (!taken)
        return NULL;
    world_set(*at, ((struct open *)taken)->before);
    ((struct open *)taken)->before = NULL;
    return taken;
}

/* Remove the open span that ends now from SPAN, and return its reference; NULL if another thread
 * has removed the last one. Several tasks or threads may use SPAN at the same time. So the open
 * span that ends is the innermost of the context if SPAN has begun it; otherwise the one that SPAN
 * has begun last. */
static PyObject *remove_open_span_that_ends(struct span *span)
{
    OWNED PyObject *found = get_innermost_from_context();
    PyObject *taken;

    world_hold(span);
    taken = remove_from_open_list(&span->open, found);
    world_release();
    return taken;
}

static PyObject *span_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    struct span *span = (struct span *)self;
    PyObject *ends =
        unlikely(world_get(span->open) != NULL) ? remove_open_span_that_ends(span) : NULL;

    if (ends)
        span_end_open(ends);
    Py_RETURN_NONE;
}

static PyObject *call_span_on_function(PyObject *self, PyObject *function)
{
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "@span: expected a function, got %s",
                            Py_TYPE(function)->tp_name);
    return span_wrap_function((struct span *)self, function);
}

static PyObject *span_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *function;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:span", (char *[]){"", NULL}, &function))
        return NULL;
    return call_span_on_function(self, function);
}

static PyObject *span_repr(PyObject *self)
{
    return PyUnicode_FromFormat("dyntrace.span(%R)", ((struct span *)self)->name);
}

static PyMethodDef span_methods[] = {
    {"__enter__", span_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nBegin the span."},
    {"__exit__", (PyCFunction)(void *)span_exit, METH_FASTCALL,
     "__exit__($self, kind=None, error=None, traceback=None, /)\n--\n\nEnd the span."},
    {"__call__", call_span_on_function, METH_O | METH_COEXIST,
     "__call__($self, function, /)\n--\n\nReturn FUNCTION with a span around each call."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot span_slots[] = {
    {Py_tp_dealloc, (void *)span_free},
    {Py_tp_traverse, (void *)span_traverse},
    {Py_tp_methods, span_methods},
    {Py_tp_call, (void *)span_call},
    {Py_tp_repr, (void *)span_repr},
    {Py_tp_doc,
     "span(name, /, **attributes)\n--\n\n"
     "A named stretch of time in the trace.\n\n"
     "    with dyntrace.span(\"request\", id=271):\n"
     "        work()\n\n"
     "    @dyntrace.span                      # each call, by the function's name\n"
     "    @dyntrace.span(\"load\", size=\"big\")  # or another\n\n"
     "Spans nest, in threads, tasks and generators, and cost next to nothing while nothing is\n"
     "recorded. No code of the program runs for them.\n\n"
     "Parameters\n----------\n"
     "name\n    What the time is spent on; or the function that is decorated.\n"
     "**attributes\n"
     "    Facts about it: numbers, strings, booleans and None are kept, of other values the type.\n"
     "    Values whose names look secret are not kept."},
    {0, NULL},
};
static PyType_Spec span_spec = {
    .name = "dyntrace.span",
    .basicsize = sizeof(struct span),
    .itemsize = sizeof(PyObject *),
    /* only span_vectorcall() may make spans, because object.__new__() would leave members NULL */
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = span_slots,
};

/* ---- __enter__ and __exit__ of a span, without allocating bound methods ---- */

/* Normally a `with` makes and frees a bound method for __enter__ and another for __exit__, which
 * takes longer than all else that a span does. So both are descriptors of ours, whose bound methods
 * lie inside the span object. */

/* The descriptor for __enter__ or for __exit__. */
struct descriptor {
    PyObject_HEAD vectorcallfunc call;
    const char *name;   /* static */
    PyObject *method;   /* owned: CPython's descriptor of the method, for its signature */
    PyTypeObject *type; /* owned: the Python type of struct half */
    int half;           /* ENTER or EXIT */
};

static bool is_span_object(PyObject *object)
{
    return Py_TYPE(object)->tp_dealloc == span_free;
}

static PyObject *call_enter_or_exit(long half, PyObject *span, PyObject *const *args,
                                    Py_ssize_t count, PyObject *keys)
{
    if (unlikely(keys != NULL))
        return PyErr_Format(PyExc_TypeError, "a span takes no keyword arguments here");
    if (half == EXIT)
        return span_exit(span, args, count);
    if (count)
        return PyErr_Format(PyExc_TypeError, "__enter__() takes no arguments (%zd given)", count);
    return span_enter(span, NULL);
}

static PyObject *enter_exit_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                                       PyObject *keys)
{
    struct half *half = (struct half *)self;

    return call_enter_or_exit(half - half->span->halves, (PyObject *)half->span, args,
                              PyVectorcall_NARGS(nargsf), keys);
}

static void enter_exit_dealloc(PyObject *self)
{
    struct half *half = (struct half *)self;
    struct span *span = half->span;

    half->span = NULL;
    Py_DECREF((PyObject *)Py_TYPE(self));
    Py_DECREF((PyObject *)span);
}

static PyObject *descriptor_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                                       PyObject *keys)
{
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);

    if (!count || !is_span_object(args[0]))
        return PyErr_Format(PyExc_TypeError, "expected a span");
    return call_enter_or_exit(((struct descriptor *)self)->half, args[0], args + 1, count - 1,
                              keys);
}

static PyObject *descriptor_get(PyObject *self, PyObject *object, PyObject *type)
{
    const struct descriptor *descriptor = (struct descriptor *)self;
    struct half *half;

    if (!object || !is_span_object(object))
        return Py_NewRef(self);
    half = &((struct span *)object)->halves[descriptor->half];
    if (unlikely(half->span != NULL))
        return Py_NewRef((PyObject *)half);
    half->call = enter_exit_vectorcall;
    half->span = (struct span *)Py_NewRef(object);
    return PyObject_Init((PyObject *)half, descriptor->type);
}

static void descriptor_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    Py_DECREF((PyObject *)((struct descriptor *)self)->type);
    Py_DECREF(((struct descriptor *)self)->method);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyMemberDef descriptor_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct descriptor, call), READONLY, NULL},
    {"__name__", T_STRING, offsetof(struct descriptor, name), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(struct descriptor, method), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyMemberDef half_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct half, call), READONLY, NULL},
    {"__self__", T_OBJECT, offsetof(struct half, span), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot descriptor_slots[] = {
    {Py_tp_dealloc, (void *)descriptor_dealloc},
    {Py_tp_descr_get, (void *)descriptor_get},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_members, descriptor_members},
    {0, NULL},
};
static PyType_Slot half_slots[] = {
    {Py_tp_dealloc, (void *)enter_exit_dealloc},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_members, half_members},
    {0, NULL},
};
static PyType_Spec descriptor_spec = {
    .name = "_dyntrace.span_method",
    .basicsize = sizeof(struct descriptor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = descriptor_slots,
};
static PyType_Spec half_spec = {
    .name = "_dyntrace.bound_span_method",
    .basicsize = sizeof(struct half),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = half_slots,
};

/* Replace CPython's __enter__ and __exit__ of the type SPAN by our descriptors. Returns 0, or -1
 * with an exception. */
static int add_enter_and_exit(PyTypeObject *span)
{
    static const char *const names[HALVES] = {"__enter__", "__exit__"};
    OWNED PyObject *type = PyType_FromSpec(&descriptor_spec);
    OWNED PyObject *of_halves = PyType_FromSpec(&half_spec);

    if (COMPAT_FREE_THREADED)
        /* Without a GIL CPython's own methods stay: one thread could free a half while another is
         * finding it. */
        return 0;
    for (int i = 0; i < HALVES; i++) {
        struct descriptor *made =
            type && of_halves ? PyObject_New(struct descriptor, (PyTypeObject *)type) : NULL;
        OWNED PyObject *held = (PyObject *)made;
        if (!made)
            return -1;
        made->call = descriptor_vectorcall;
        made->name = names[i];
        made->method = Py_NewRef(PyDict_GetItemString(span->tp_dict, names[i]));
        made->type = (PyTypeObject *)Py_NewRef(of_halves);
        made->half = i;
        if (PyDict_SetItemString(span->tp_dict, names[i], held))
            return -1;
    }
    PyType_Modified(span);
    return 0;
}

/* ---- functions that @dyntrace.span has decorated ---- */

static PyObject *spanned_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                                    PyObject *keys)
{
    struct spanned *spanned = (struct spanned *)self;
    const struct span *span = spanned->span;
    PyObject *result, *open;

    if (spanned->stepper) {
        OWNED PyObject *made = PyObject_Vectorcall(spanned->function, args, nargsf, keys);
        return made ? PyObject_CallFunction(spanned->stepper, "OO", span, made) : NULL;
    }
    if (likely(!P.recording))
        return PyObject_Vectorcall(spanned->function, args, nargsf, keys);
    open = span_begin(SPAN_OWN, span->name, span->keys, span->values);
    result = PyObject_Vectorcall(spanned->function, args, nargsf, keys);
    if (open)
        span_end_open(open);
    return result;
}

static PyObject *spanned_get(PyObject *self, PyObject *object, PyObject *type)
{
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

/* Return the attribute NAME of the wrapper; if it has none, that of the wrapped function. */
static PyObject *spanned_attribute(PyObject *self, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(self, name);

    if (value || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(((struct spanned *)self)->function, name);
}

/* Make pickle store the wrapper by its qualified name, as it stores a function. */
static PyObject *spanned_reduce(PyObject *self, PyObject *none)
{
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *spanned_repr(PyObject *self)
{
    return PyObject_Repr(((struct spanned *)self)->function);
}

static int spanned_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct spanned *spanned = (struct spanned *)self;

    Py_VISIT((PyObject *)Py_TYPE(self));
    Py_VISIT(spanned->function);
    Py_VISIT((PyObject *)spanned->span);
    Py_VISIT(spanned->stepper);
    Py_VISIT(spanned->dict);
    return 0;
}

static int spanned_clear(PyObject *self)
{
    Py_CLEAR(((struct spanned *)self)->dict);
    return 0;
}

static void spanned_free(PyObject *self)
{
    struct spanned *spanned = (struct spanned *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    if (spanned->weak)
        PyObject_ClearWeakRefs(self);
    Py_XDECREF(spanned->function);
    Py_XDECREF((PyObject *)spanned->span);
    Py_XDECREF(spanned->stepper);
    Py_XDECREF(spanned->dict);
    PyObject_GC_Del(self);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef spanned_methods[] = {
    {"__reduce__", spanned_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef spanned_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct spanned, call), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(struct spanned, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct spanned, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef spanned_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot spanned_slots[] = {
    {Py_tp_dealloc, (void *)spanned_free},
    {Py_tp_traverse, (void *)spanned_traverse},
    {Py_tp_clear, (void *)spanned_clear},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_getattro, (void *)spanned_attribute},
    {Py_tp_descr_get, (void *)spanned_get},
    {Py_tp_repr, (void *)spanned_repr},
    {Py_tp_methods, spanned_methods},
    {Py_tp_members, spanned_members},
    {Py_tp_getset, spanned_getset},
    {0, NULL},
};
static PyType_Spec spanned_spec = {
    .name = "_dyntrace.spanned",
    .basicsize = sizeof(struct spanned),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = spanned_slots,
};

/* Return a function that calls FUNCTION within SPAN, a new reference. */
static PyObject *span_wrap_function(struct span *span, PyObject *function)
{
    const int suspended = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    const bool is_function = PyFunction_Check(function);
    OWNED PyObject *helpers = NULL, *stepping = NULL, *stepper = NULL, *done = NULL, *type = NULL;
    struct spanned *made;

    if (is_function && ((PyCodeObject *)PyFunction_GET_CODE(function))->co_flags & suspended) {
        stepping = PyImport_ImportModule("dyntrace._span");
        stepper = stepping ? PyObject_CallMethod(stepping, "find_stepper", "O", function) : NULL;
        if (!stepper)
            return NULL;
    }
    type = (PyObject *)find_module_type(Py_TYPE((PyObject *)span), "_spanned");
    helpers = type ? PyImport_ImportModule("functools") : NULL;
    made = helpers ? PyObject_GC_New(struct spanned, (PyTypeObject *)type) : NULL;
    if (!made)
        return NULL;
    made->call = spanned_vectorcall;
    made->function = Py_NewRef(function);
    made->span = (struct span *)Py_NewRef((PyObject *)span);
    made->stepper = Py_XNewRef(stepper);
    made->dict = made->weak = NULL;
    PyObject_GC_Track((PyObject *)made);
    done = PyObject_CallMethod(helpers, "update_wrapper", "OO", made, function);
    if (!done)
        Py_CLEAR(made);
    return (PyObject *)made;
}

int span_types_ready(PyObject *module)
{
    OWNED PyObject *type = PyType_FromModuleAndSpec(module, &span_spec, NULL);
    OWNED PyObject *spanned = PyType_FromModuleAndSpec(module, &spanned_spec, NULL);

    if (!type || !spanned)
        return -1;
    if (add_enter_and_exit((PyTypeObject *)type))
        return -1;
    ((PyTypeObject *)type)->tp_vectorcall = span_vectorcall;
    if (PyModule_AddObjectRef(module, "span", type) ||
        PyModule_AddObjectRef(module, "_spanned", spanned))
        return -1;
    if (tracer_place() != PLACE_HOME || open_type)
        return 0;
    innermost = PyContextVar_New("dyntrace.span", NULL);
    open_type = innermost ? (PyTypeObject *)PyType_FromSpec(&open_spec) : NULL;
    return open_type ? 0 : -1;
}
