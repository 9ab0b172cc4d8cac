/* capture/src/plan.c -- plans: run the graph and make the values after it. See capture.h.
 *
 * A plan is a constant of the compiled code. The compiled code calls the plan with the values of
 * some variables. The plan's function reads other values from attributes and items, as the guards
 * did just before. Then it runs the graph, and makes new containers like those that the watched
 * call made. If two variables share a container, the plan makes it once. dyntrace._plan writes this
 * function from parts. A part is a tuple, made by get_plan_part(), that describes how to make a
 * value again. */
#include "capture.h"
#include <structmember.h>

/* ---- parts: descriptions of values for dyntrace._plan ---- */

/* Return the part of SHADOW: the tuple that tells dyntrace._plan how to make the value again.
 * Returns False if SHADOW is NULL. */
static PyObject *get_part_or_false(struct capture *c, struct shadow *shadow)
{
    return shadow ? get_plan_part(c, shadow) : Py_False;
}

/* The names that dyntrace._plan has for the kinds of shadows. NULL: a plan cannot make a value of
 * this kind again. */
static const char *const kind_names[] = {
    [SHADOW_CONST] = "constant", [SHADOW_SOURCE] = "source", [SHADOW_NODE] = "node",
    [SHADOW_TUPLE] = "tuple",    [SHADOW_LIST] = "list",     [SHADOW_DICT] = "dict",
    [SHADOW_SLICE] = "slice",    [SHADOW_OBJECT] = "object", [SHADOW_CALL] = "call",
    [SHADOW_SUPER] = "super",    [SHADOW_METHOD] = "method", [SHADOW_FUNCTION] = "function",
    [SHADOW_CELL] = "cell",      [SHADOW_CHANGED] = NULL,
};

/* The description of a shadow that dyntrace._plan gets: the arguments of Plan.make_node(). All
 * objects are borrowed. */
struct part {
    const char *what;
    char step;
    Py_ssize_t number;
    /* the constant, the key, the name, the graph node or the code object; or NULL */
    PyObject *thing;
    bool has_keys;    /* dyntrace._plan gets the keys of the items, too */
    Py_ssize_t count; /* number of items that dyntrace._plan gets */
    struct shadow *parent, *keyword_defaults, *globals; /* or NULL */
};

/* Is SHADOW's value a constant of the plan? Builtins and modules are constants; the plan reads
 * other values again. */
static bool is_plan_constant(const struct capture *c, const struct shadow *shadow)
{
    if (shadow->kind == SHADOW_CONST)
        return true;
    if (shadow->kind != SHADOW_SOURCE || !shadow->value)
        return false;
    return shadow->source.parent == c->builtins || shadow->source.parent == c->modules;
}

static struct part describe_shadow(const struct capture *c, struct shadow *shadow)
{
    struct part part = {.what = kind_names[shadow->kind]};

    if (is_plan_constant(c, shadow)) {
        part.what = "constant";
        part.thing = shadow->value;
        part.step = shadow->source.step;
        return part;
    }
    switch (shadow->kind) {
    case SHADOW_SOURCE:
        part.step = shadow->source.step;
        part.number = shadow->source.cell;
        part.thing = shadow->source.key;
        part.parent = shadow->source.parent;
        break;
    case SHADOW_NODE:
        part.thing = shadow->node.node;
        part.parent = shadow->node.same;
        break;
    case SHADOW_METHOD:
        part.thing = shadow->method.name;
        part.parent = shadow->method.owner;
        break;
    case SHADOW_OBJECT:
        part.parent = shadow->object.of_class;
        part.has_keys = true;
        part.count = shadow->count;
        break;
    case SHADOW_DICT:
        part.has_keys = true;
        part.count = shadow->count;
        break;
    case SHADOW_TUPLE:
    case SHADOW_LIST:
    case SHADOW_SLICE:
    case SHADOW_SUPER:
        part.count = shadow->count;
        break;
    case SHADOW_CALL:
        part.number = shadow->effect.nodes;
        part.count = shadow->count;
        break;
    case SHADOW_FUNCTION:
        part.thing = shadow->function.code;
        part.count = shadow->count;
        part.parent = shadow->function.defaults;
        part.keyword_defaults = shadow->function.keyword_defaults;
        part.globals = shadow->function.globals;
        break;
    case SHADOW_CELL:
        part.count = shadow->items[0] ? 1 : 0;
        part.parent = shadow->cell.source;
        break;
    case SHADOW_CONST:
    case SHADOW_ITERATOR:
    case SHADOW_GENERATOR:
    case SHADOW_CHANGED:
        break;
    }
    return part;
}

/* Return the first COUNT keys of SHADOW as a new tuple, or NULL. */
static PyObject *copy_first_keys(const struct shadow *shadow, Py_ssize_t count)
{
    PyObject *keys = PyTuple_New(count);

    for (Py_ssize_t i = 0; keys && i < count; i++)
        PyTuple_SET_ITEM(keys, i, Py_NewRef(shadow->keys[i]));
    return keys;
}

/* Make the part of SHADOW: (kind, step, number, thing, keys, items, parent, keyword defaults,
 * globals). Returns a new reference; NULL if a plan cannot make the value again. */
static PyObject *make_part(struct capture *c, struct shadow *shadow)
{
    const bool is_constant = is_plan_constant(c, shadow);
    const bool is_builtin = is_source(shadow) && shadow->source.parent == c->builtins;
    OWNED PyObject *keys = NULL, *items = NULL;
    struct part part;

    if (shadow->kind == SHADOW_CELL && shadow->cell.is_outside)
        return Py_NewRef(get_plan_part(c, shadow->cell.source));
    part = describe_shadow(c, shadow);
    if (!part.what || (is_constant && !part.thing))
        return NULL;
    if (is_constant && is_builtin && shadow->source.guarded != GUARDED_VALUE &&
        guard_add(c, shadow, "ID_MATCH", part.thing))
        return NULL;
    items = make_plan_parts(c, part.count, shadow->items);
    keys = copy_first_keys(shadow, part.has_keys ? part.count : 0);
    if (!keys || !items)
        return NULL;
    return Py_BuildValue(
        "(sCnOOOOOO)", part.what, part.step, part.number, part.thing ? part.thing : Py_None, keys,
        items, get_part_or_false(c, part.parent), get_part_or_false(c, part.keyword_defaults),
        get_part_or_false(c, part.globals));
}

PyObject *get_plan_part(struct capture *c, struct shadow *shadow)
{
    OWNED PyObject *made = NULL;

    if (!shadow)
        return Py_None;
    if (!shadow->plan_part && shadow->origin)
        return get_plan_part(c, shadow->origin);
    if (!shadow->plan_part && !Py_EnterRecursiveCall(" while a graph is made")) {
        /* set plan_part before visiting the items: in a container that contains itself, the item
         * then has the part None, so that no plan makes the container */
        shadow->plan_part = Py_None;
        made = make_part(c, shadow);
        if (made)
            shadow->plan_part = capture_keep(c, made);
        Py_LeaveRecursiveCall();
    }
    PyErr_Clear();
    return shadow->plan_part ? shadow->plan_part : Py_None;
}

PyObject *make_plan_parts(struct capture *c, Py_ssize_t count, struct shadow *const *shadows)
{
    PyObject *made = PyTuple_New(count);

    for (Py_ssize_t i = 0; made && i < count; i++)
        PyTuple_SET_ITEM(made, i, Py_NewRef(get_plan_part(c, shadows[i])));
    return made;
}

static bool is_cell_variable(const struct watched *w, int variable)
{
    const int kind = _PyLocals_GetKind(w->code->co_localspluskinds, variable);
    PyObject *value = compat_get_local(w->frame, variable);

    return value && kind & (CO_FAST_CELL | CO_FAST_FREE) && PyCell_Check(value);
}

/* Did the captured function itself make the cell? The compiled code may set only cells of this
 * kind. */
static bool is_cell_made_by_function(const struct shadow *shadow)
{
    return is_kind(shadow, SHADOW_CELL) && !shadow->cell.is_outside;
}

/* Describe variable I as (number, part, value), or as (number,) if it has become unbound: a new
 * reference. Returns Py_None if the variable is unchanged, or if it is a cell that another function
 * made. Returns NULL if there is no memory. */
static PyObject *describe_variable(struct capture *c, const struct watched *w, int i)
{
    struct shadow *shadow = w->shadow[i];
    PyObject *value = compat_get_local(w->frame, i);
    bool is_unchanged;

    if (is_cell_variable(w, i)) {
        if (!is_cell_made_by_function(shadow))
            return Py_NewRef(Py_None);
        value = compat_cell_content(value);
        shadow = shadow->items[0];
    }
    if (value)
        is_unchanged = shadow && shadow == c->initial[i];
    else
        is_unchanged = !c->initial[i];
    if (is_unchanged)
        return Py_NewRef(Py_None);
    if (!value)
        return Py_BuildValue("(i)", i);
    return Py_BuildValue("(iOO)", i, get_plan_part(c, shadow), value);
}

static PyObject *describe_variables(struct capture *c, const struct watched *w)
{
    PyObject *list = PyList_New(0);

    for (int i = 0; list && i < w->variables; i++) {
        OWNED PyObject *made = describe_variable(c, w, i);

        if (made == Py_None)
            continue;
        if (!made || PyList_Append(list, made))
            Py_CLEAR(list);
    }
    return list;
}

/* Describe slot I of the stack, whose shadow is SHADOW, as (part, value), or as () if the slot is
 * NULL: a new reference. */
static PyObject *describe_slot(struct capture *c, const struct watched *w, struct shadow *shadow,
                               int i)
{
    /* the value is NULL if the instruction has already removed it (ENDED_BEHIND) */
    PyObject *value = compat_get_local(w->frame, w->variables + i);

    if (shadow == &shadow_of_null)
        return PyTuple_New(0);
    return Py_BuildValue("(OO)", get_plan_part(c, shadow), value ? value : Py_None);
}

PyObject *describe_plan_state(struct capture *c, const struct watched *w,
                              struct shadow *const *shadows, int depth)
{
    PyObject *stack = PyTuple_New(depth), *cells = PyTuple_New(w->variables);

    for (int i = 0; cells && i < w->variables; i++) {
        struct shadow *shadow = w->shadow[i];
        OWNED PyObject *own = Py_BuildValue("(sCi)", "own", 0, i);
        PyObject *cell = Py_None;

        /* the compiled code passes cells that the captured function made to the plan */
        if (is_cell_made_by_function(shadow) && !shadow->plan_part)
            shadow->plan_part = capture_keep(c, own);
        if (!w->resumed && is_cell_variable(w, i))
            cell = compat_get_local(w->frame, i);
        PyTuple_SET_ITEM(cells, i, Py_NewRef(cell));
    }
    for (int i = 0; stack && i < depth; i++)
        PyTuple_SET_ITEM(stack, i, describe_slot(c, w, shadows[i], i));
    return Py_BuildValue("(NNN)", describe_variables(c, w), stack, cells);
}

/* ---- running a plan ---- */

/* Return the values of the first run of the compiled code, in which the graph does not run, because
 * the watched call has already computed the values. Returns NULL in later runs. Puts the cells of
 * the watched frame into FRAME. The code of FRAME has additional variables after the other locals
 * (see dyntrace._assemble), so the cells have other indexes there. */
static PyObject *take_first_result(struct plan *plan, PyThreadState *ts, compat_frame *frame)
{
    OWNED PyObject *values = shim->take_values(ts, (PyObject *)plan, frame);
    PyObject *cells;
    Py_ssize_t more;

    if (!values)
        return NULL;
    cells = PyTuple_GET_ITEM(values, 1);
    more = compat_get_code(frame)->co_nlocalsplus - PyTuple_GET_SIZE(cells);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cells); i++) {
        PyObject *cell = PyTuple_GET_ITEM(cells, i);
        const int at = (int)(i < compat_get_code(frame)->co_nlocals - more ? i : i + more);
        if (cell != Py_None) {
            compat_drop_local(frame, at);
            compat_store_local(frame, at, Py_NewRef(cell));
        }
    }
    return Py_NewRef(PyTuple_GET_ITEM(values, 0));
}

/* Link the first COUNT frames of the traceback TRACE: each then seems to have called the next. The
 * first is FRAME, a frame of the program; dyntrace._plan has made the others. */
static void link_frames_of_traceback(PyObject *trace, long count, compat_frame *frame)
{
    PyTracebackObject *at = (PyTracebackObject *)trace;
    PyFrameObject *outer = at->tb_frame;

    compat_hide_frame(frame);
    outer->f_lineno = at->tb_lineno;
    for (at = at->tb_next; at && count > 1; at = at->tb_next) {
        Py_XSETREF(at->tb_frame->f_back, (PyFrameObject *)Py_NewRef((PyObject *)outer));
        outer = at->tb_frame;
        count--;
    }
}

/* The arguments of a plan's function `raised`, borrowed. */
struct raising {
    PyThreadState *ts;
    PyObject *raised, *traceback, *seen;
};

static PyObject *call_traceback_correction(void *data)
{
    const struct raising *given = data;
    PyObject *trace;

    compat_uncount(given->ts, OWN_CALLS);
    trace = PyObject_CallFunctionObjArgs(given->raised, given->traceback, given->seen, NULL);
    compat_uncount(given->ts, -OWN_CALLS);
    PyErr_Clear();
    return trace;
}

/* Handle an exception of PLAN's function, which FRAME called. Usually corrects the traceback by
 * raised() of dyntrace._plan, and returns NULL with the exception. Returns PLAN if FRAME must run
 * the function's original code instead. */
static PyObject *handle_exception(struct plan *plan, PyThreadState *ts, compat_frame *frame)
{
    struct tracer_exception raised = tracer_put_exception_aside();
    OWNED PyObject *trace = NULL, *seen = (PyObject *)PyThreadState_GetFrame(ts);
    struct raising raising = {ts, plan->raised, raised.traceback ? raised.traceback : Py_None,
                              seen};

    if (seen)
        trace = shim->quietly(call_traceback_correction, &raising);
    if (trace == Py_True) {
        /* a signal handler raised the exception, e.g. KeyboardInterrupt: let the original code
         * raise it again */
        if (!PyErr_GivenExceptionMatches(raised.type, PyExc_Exception))
            PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), raised.type);
        tracer_drop_exception(&raised);
        return Py_NewRef((PyObject *)plan);
    }
    if (trace && PyTuple_CheckExact(trace)) {
        PyObject *made = PyTuple_GET_ITEM(trace, 0);
        Py_XSETREF(raised.traceback, Py_NewRef(made));
        link_frames_of_traceback(made, PyLong_AsLong(PyTuple_GET_ITEM(trace, 1)), frame);
    }
    tracer_restore_exception(&raised);
    return NULL;
}

/* Copy PLAN's function, with GLOBALS as its globals: a new reference. A call of PLAN inside another
 * call of PLAN needs a copy if the globals of the two calls differ. */
static PyObject *copy_run_function(const struct plan *plan, PyObject *globals)
{
    PyFunctionObject *run = (PyFunctionObject *)plan->run;
    PyObject *made = PyFunction_New(run->func_code, globals);

    if (made)
        ((PyFunctionObject *)made)->func_closure = Py_XNewRef(run->func_closure);
    return made;
}

/* Call PLAN's function with the globals of FRAME. Tracebacks do not show FRAME during the call. */
static PyObject *call_run_function(struct plan *plan, compat_frame *frame, PyObject *const *args,
                                   size_t given, PyObject *names)
{
    static PyObject *nothing;
    PyFunctionObject *run = (PyFunctionObject *)plan->run;
    const bool is_bound =
        run->func_globals == frame->f_globals && run->func_builtins == frame->f_builtins;
    struct compat_hidden hidden;
    OWNED PyObject *other = NULL;
    PyObject *result;

    if (!nothing)
        nothing = PyDict_New();
    if (!nothing)
        return NULL;
    if (!is_bound && plan->running) {
        other = copy_run_function(plan, frame->f_globals);
        if (!other)
            return NULL;
        run = (PyFunctionObject *)other;
    }
    if (!is_bound)
        compat_set_globals_and_builtins(run, frame->f_globals, frame->f_builtins);
    if (!other)
        plan->running++;
    hidden = compat_hide_frame_temporarily(frame);
    result = PyObject_Vectorcall((PyObject *)run, args, given, names);
    compat_show_frame_again(frame, hidden);
    if (other)
        return result;
    plan->running--;
    if (!plan->running)
        compat_set_globals_and_builtins(run, nothing, nothing);
    return result;
}

static PyObject *call_plan(PyObject *object, PyObject *const *args, size_t given, PyObject *names)
{
    struct plan *plan = (struct plan *)object;
    PyThreadState *ts = PyThreadState_Get();
    compat_frame *frame = compat_current_frame(ts);
    PyObject *result = take_first_result(plan, ts, frame);
    struct masked_callback masked;

    if (result)
        return result;
    if (!frame)
        return PyErr_Format(PyExc_TypeError, "only code that dyntrace made may call %U",
                            plan->name);
    if (!plan->run)
        return Py_NewRef(frame->f_globals);
    masked = shim->mask(ts); /* capture no code of the backend */
    compat_uncount(ts, 1);
    result = call_run_function(plan, frame, args, given, names);
    if (!result)
        result = handle_exception(plan, ts, frame);
    compat_uncount(ts, -1);
    shim->unmask(ts, masked);
    return result;
}

static void free_plan(PyObject *object)
{
    struct plan *plan = (struct plan *)object;

    Py_XDECREF(plan->name);
    Py_XDECREF(plan->run);
    Py_XDECREF(plan->raised);
    PyObject_Free(object);
}

PyObject *plan_new(const char *name)
{
    struct plan *plan = PyObject_New(struct plan, &plan_type);

    if (plan) {
        plan->call = call_plan;
        plan->name = PyUnicode_FromString(name);
        plan->run = plan->raised = NULL;
        plan->running = 0;
    }
    return (PyObject *)plan;
}

static PyMemberDef plan_members[] = {
    {"name", T_OBJECT, offsetof(struct plan, name), 0, "The name of the graph."},
    {"run", T_OBJECT, offsetof(struct plan, run), 0,
     "The function that runs the graph and makes the values after it."},
    {"raised", T_OBJECT, offsetof(struct plan, raised), 0,
     "The function that handles an exception of `run`: see dyntrace._plan."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject plan_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyntrace.Plan",
    .tp_basicsize = sizeof(struct plan),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Runs a graph for the compiled code, and returns the values after the graph.",
    .tp_dealloc = free_plan,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(struct plan, call),
    .tp_members = plan_members,
};
