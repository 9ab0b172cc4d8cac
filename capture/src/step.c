/* capture/src/step.c -- one instruction after the other, in the frame that is CPython's. See
 * capture.h.
 *
 * Before each instruction, the shadows of the stack are kept: where it breaks after all, what the
 * graph has to give is what was there then. */
#include "capture.h"

enum { MOST_JUMPS = 40000, MOST_NODES = 40000 };

/* ---- variables ---- */

/* C keeps what was read. Is OBJECT, or with NULL any object, alive only by that and by MORE
 * references? CPython would run, or would have run, what its death runs. */
static bool dies(const struct capture *c, PyObject *object, Py_ssize_t more)
{
    for (Py_ssize_t i = 0; i < c->mortal->count; i++) {
        const struct shadow *one = c->mortal->items[i];
        if ((!object || object == one->value) &&
            Py_REFCNT(one->value) == one->source.references + more)
            return true;
    }
    return false;
}

static enum ended break_at_death(struct capture *c)
{
    return break_at(c, "value", "an object dies, which may run code of the program's");
}

static enum ended unbound(struct capture *c, const struct watched *w, uint32_t variable)
{
    return break_at(c, "instruction", "variable %.100s has no value",
                    PyUnicode_AsUTF8(PyTuple_GET_ITEM(w->code->co_localsplusnames, variable)));
}

static enum ended may_load(struct capture *c, const struct watched *w, uint32_t variable)
{
    PyObject *value = compat_local(w->frame, (int)variable);

    if (!value) {
        /* nothing is kept of what raises */
        c->failed |= !w->outer && !code_handles(w->code, w->bytes, w->unit);
        return unbound(c, w, variable);
    }
    if (w->resumed && is_source(w->shadow[variable]) && !w->shadow[variable]->source.guarded &&
        one_of(c, w->shadow[variable]) == w->shadow[variable] &&
        !value_type_known(c, value, w->shadow[variable]))
        return break_at(c, "value", "variable %.100s may have no value",
                        PyUnicode_AsUTF8(PyTuple_GET_ITEM(w->code->co_localsplusnames, variable)));
    return ENDED_NOT;
}

static enum ended load_fast(struct capture *c, struct watched *w, uint32_t variable)
{
    enum ended ended = may_load(c, w, variable);

    c->failed |= compat_local(w->frame, (int)variable) != w->put[variable];
    if (!ended)
        stack_push(w, Py_NewRef(compat_local(w->frame, (int)variable)),
                   one_of(c, w->shadow[variable]));
    return ended;
}

static void store(struct watched *w, uint32_t variable, PyObject *value, struct shadow *shadow)
{
    PyObject *old = compat_take_local(w->frame, (int)variable);

    compat_give_local(w->frame, (int)variable, value);
    w->put[variable] = value;
    w->shadow[variable] = shadow;
    Py_XDECREF(old);
}

/* The top of the stack, which goes: its reference is the caller's. */
static PyObject *pop(struct watched *w, struct shadow **shadow)
{
    int at = w->variables + --w->depth;

    *shadow = w->shadow[at];
    w->shadow[at] = NULL;
    return compat_take_local(w->frame, at);
}

static enum ended may_store(struct capture *c, const struct watched *w, uint32_t variable)
{
    PyObject *old = compat_local(w->frame, (int)variable);

    return old && (dies(c, old, 1) ||
                   (c->mortal->count && Py_REFCNT(old) == 1 && !value_dies_quietly(old)))
               ? break_at_death(c)
               : ENDED_NOT;
}

static enum ended store_fast(struct capture *c, struct watched *w, uint32_t variable)
{
    struct shadow *shadow;
    enum ended ended = may_store(c, w, variable);

    if (!ended) {
        PyObject *value = pop(w, &shadow);
        store(w, variable, value, shadow);
    }
    return ended;
}

static enum ended two(struct capture *c, struct watched *w, uint32_t arg)
{
    const unsigned char *half = compat_ops[w->op].half;
    const uint32_t variable[2] = {arg >> 4, arg & 15};
    enum ended ended = ENDED_NOT;

    /* all of it, or nothing; what the first stores the second may load */
    for (int i = 0; i < 2 && !ended; i++)
        if (half[i] == STORE_FAST)
            ended = may_store(c, w, variable[i]);
        else if (!i || half[0] != STORE_FAST || variable[0] != variable[1])
            ended = may_load(c, w, variable[i]);
    for (int i = 0; i < 2 && !ended; i++)
        ended =
            half[i] == STORE_FAST ? store_fast(c, w, variable[i]) : load_fast(c, w, variable[i]);
    return ended;
}

/* ---- cells ---- */

/* The shadow of CELL, in which there is what CONTENT is the shadow of. */
static struct shadow *cell_shadow(struct capture *c, struct shadow *content, PyObject *cell,
                                  struct shadow *source, bool outside)
{
    struct shadow *made = shadow_new(c, SHADOW_CELL, 1);

    if (made) {
        shadow_add(c, made, NULL, content);
        made->value = compat_cell_content(cell);
        made->cell.source = source;
        made->cell.is_outside = outside;
    }
    return made;
}

static enum ended make_cell(struct capture *c, struct watched *w, uint32_t variable)
{
    PyObject *value = compat_take_local(w->frame, (int)variable), *cell = PyCell_New(value);

    Py_XDECREF(value);
    if (!cell)
        return ENDED_RAISED;
    compat_give_local(w->frame, (int)variable, cell);
    w->put[variable] = cell;
    w->shadow[variable] = cell_shadow(c, w->shadow[variable], cell, NULL, false);
    return ENDED_NOT;
}

/* CELL, free variable I of W's function, which is called NAME: its shadow. */
static struct shadow *free_cell(struct capture *c, struct watched *w, int i, PyObject *name,
                                PyObject *cell)
{
    struct shadow *of = w->function, *source = NULL, *content = NULL;
    OWNED PyObject *number = PyLong_FromLong(i);
    PyObject *value = compat_cell_content(cell);

    if (of && of->kind == SHADOW_FUNCTION && i < of->count)
        return of->items[i];
    if (!of && value && (source = source_read(c, c->locals, 'C', name, cell))) {
        source->source.cell = i;
        content = source_read(c, c->locals, 'l', name, value);
    } else if (of && value && number && of->kind == SHADOW_SOURCE &&
               (source = source_attribute(c, of, "__closure__", NULL)) &&
               (source = source_read(c, source, '[', number, cell))) {
        content = source_attribute(c, source, "cell_contents", value);
    }
    return cell_shadow(c, content, cell, source, true);
}

static enum ended copy_free(struct capture *c, struct watched *w, int count)
{
    PyObject *closure = compat_function(w->frame)->func_closure;
    const int first = w->variables - count;

    if (!closure || PyTuple_GET_SIZE(closure) < count)
        return break_at(c, "instruction", "a function without its closure");
    for (int i = 0; i < count; i++) {
        PyObject *cell = PyTuple_GET_ITEM(closure, i);
        store(w, (uint32_t)(first + i), Py_NewRef(cell),
              free_cell(c, w, i, PyTuple_GET_ITEM(w->code->co_localsplusnames, first + i), cell));
    }
    return ENDED_NOT;
}

/* What is in a cell now, whose shadow is OF. NULL: it is not known. */
static struct shadow *cell_content(struct capture *c, struct shadow *of)
{
    struct shadow *source, *changed;

    if (!of || of->kind != SHADOW_CELL)
        return NULL;
    if (!of->cell.is_outside || !of->cell.source || !c->effects->count)
        return of->items[0];
    source = of->cell.source = one_of(c, of->cell.source);
    changed = source ? source_changed(source, '.', word_of("cell_contents")) : NULL;
    return source && is_apart(c, source) ? one_of(c, changed ? changed->items[0] : of->items[0])
                                         : NULL;
}

static enum ended deref(struct capture *c, struct watched *w, uint32_t variable, bool stores)
{
    PyObject *cell = compat_local(w->frame, (int)variable), *old = compat_cell_content(cell),
             *value;
    struct shadow *of = w->shadow[variable], *content = old ? cell_content(c, of) : NULL, *shadow;

    if (stores ? !cell || !PyCell_Check(cell) : !old)
        return unbound(c, w, variable);
    /* it has been set meanwhile */
    if (content && content == of->items[0])
        c->failed |= of->value != old;
    else if (content && content->kind == SHADOW_SOURCE)
        c->failed |= content->value != old;
    if (!stores) {
        stack_push(w, Py_NewRef(old), content);
        return ENDED_NOT;
    }
    if (content && of->cell.is_outside && of->cell.source)
        return set_place(c, w, 1, of->cell.source, '.', word_of("cell_contents"), old,
                         stack_value(w, 0), stack_shadow(w, 0));
    if (!of || of->kind != SHADOW_CELL || of->cell.is_outside || !shadow_change(c, of))
        return break_at(c, "mutation", "variable %.100s of another function is set",
                        PyUnicode_AsUTF8(PyTuple_GET_ITEM(w->code->co_localsplusnames, variable)));
    if (old && dies(c, old, 1))
        return break_at_death(c);
    value = pop(w, &shadow);
    of->items[0] = shadow;
    of->value = value;
    PyCell_SET(cell, value);
    Py_XDECREF(old);
    return ENDED_NOT;
}

/* ---- functions ---- */

enum { DEFAULTS = 1, KEYWORDS = 2, CLOSURE = 8 };

/* The one of WHAT that is on top is FUNCTION's. */
static void take_part(struct watched *w, PyFunctionObject *function, struct shadow *shadow,
                      uint32_t what)
{
    struct shadow *of;
    PyObject *part = pop(w, &of);

    if (what != CLOSURE) {
        *(what == DEFAULTS ? &function->func_defaults : &function->func_kwdefaults) = part;
        *(what == DEFAULTS ? &shadow->function.defaults : &shadow->function.keyword_defaults) = of;
        return;
    }
    function->func_closure = part;
    if (of && of->kind == SHADOW_TUPLE) {
        shadow->items = of->items;
        shadow->count = of->count;
    }
}

/* A function of the code on top, or a part more of that on top. */
static enum ended make_function(struct capture *c, struct watched *w, struct compat_action action)
{
    const bool makes = action.op == MAKE_FUNCTION;
    struct shadow *shadow = makes ? shadow_new(c, SHADOW_FUNCTION, 0) : stack_shadow(w, 0);
    PyObject *made;

    if (!shadow || shadow->kind != SHADOW_FUNCTION ||
        (action.arg & ~(unsigned)(CLOSURE | KEYWORDS | DEFAULTS)))
        return break_at(c, "instruction", "a function is made that has annotations");
    if (makes) {
        shadow->function.code = capture_keep(c, stack_value(w, 0));
        shadow->function.globals = w->globals;
    }
    made = makes ? PyFunction_New(stack_value(w, 0), w->frame->f_globals)
                 : Py_NewRef(stack_value(w, 0));
    if (!made)
        return ENDED_RAISED;
    stack_drop(w, 1);
    for (uint32_t what = CLOSURE; what; what >>= 1)
        if (action.arg & what)
            take_part(w, (PyFunctionObject *)made, shadow, what);
    stack_push(w, made, shadow);
    return ENDED_NOT;
}

/* ---- the rest ---- */

static enum ended load_global(struct capture *c, struct watched *w, PyObject *name, bool null)
{
    PyObject *globals = w->frame->f_globals, *builtins = w->frame->f_builtins;
    OWNED PyObject *value = NULL;
    struct shadow *shadow;

    if (!PyDict_CheckExact(globals) || !PyDict_CheckExact(builtins) || !w->globals)
        return break_at(c, "instruction", "globals that are no dict");
    value = Py_XNewRef(PyDict_GetItemWithError(globals, name));
    if (value) {
        shadow = source_read(c, w->globals, '[', name, value);
    } else {
        struct shadow *missing = source_read(c, w->globals, '!', name, NULL);
        value = PyErr_Occurred() ? NULL : Py_XNewRef(PyDict_GetItemWithError(builtins, name));
        if (!value || !missing) {
            PyErr_Clear();
            return break_at(c, "instruction", "global %.100s, which is not there",
                            PyUnicode_AsUTF8(name));
        }
        if (!missing->source.guarded)
            guard_on(c, w->globals, "DICT_NOT_CONTAINS", name);
        missing->source.guarded = GUARDED_VALUE;
        shadow =
            builtins == PyEval_GetBuiltins() ? source_read(c, c->builtins, '[', name, value) : NULL;
    }
    if (!shadow)
        return break_at(c, "value", "global %.100s changed", PyUnicode_AsUTF8(name));
    return push_callable(w, null, Py_NewRef(value), shadow);
}

static void swap(struct watched *w, int count)
{
    const int a = w->variables + w->depth - 1, b = w->variables + w->depth - count;
    PyObject *first = compat_take_local(w->frame, a), *second = compat_take_local(w->frame, b);
    struct shadow *shadow = w->shadow[a];

    compat_give_local(w->frame, a, second);
    compat_give_local(w->frame, b, first);
    w->shadow[a] = w->shadow[b];
    w->shadow[b] = shadow;
}

static enum ended jump(struct capture *c, struct watched *w, uint32_t to)
{
    w->next = (int32_t)to;
    return to <= (uint32_t)w->unit && !compat_hides(w->code) && ++c->jumps > MOST_JUMPS
               ? break_at(c, "limit", "a loop of more than %d rounds", MOST_JUMPS)
               : ENDED_NOT;
}

static enum ended jump_if(struct capture *c, struct watched *w, struct compat_action action)
{
    const bool none = action.flag == IF_NONE || action.flag == IF_NOT_NONE;
    OWNED PyObject *value = Py_NewRef(stack_value(w, 0));
    struct shadow *shadow = stack_shadow(w, 0);
    enum ended ended = none ? ENDED_NOT : to_bool(c, w);
    bool is;

    if (ended != ENDED_NOT && ended != ENDED_BEHIND)
        return ended;
    if (none &&
        !(value == Py_None ? value_known(c, value, shadow) : value_type_known(c, value, shadow)))
        return break_at(c, "value", "whether a %.100s that is not known is None",
                        Py_TYPE(value)->tp_name);
    is = (none ? value : stack_value(w, 0)) == (none ? Py_None : Py_True);
    is = is == (action.flag == IF_TRUE || action.flag == IF_NONE);
    if (is && jump(c, w, action.arg) && !ended)
        return ENDED_BEFORE; /* with the bool: what says so does not run again */
    stack_drop(w, 1);
    if (is && action.op == JUMP_IF_FALSE_OR_POP) /* which jumps forwards */
        stack_push(w, Py_NewRef(value), shadow);
    return ended;
}

/* The context manager on top gives way to its __exit__, and what its __enter__ gives. */
static enum ended begin_with(struct capture *c, struct watched *w)
{
    struct operands manager = {{stack_value(w, 0)}, {stack_shadow(w, 0)}};
    PyTypeObject *type = Py_TYPE(manager.values[0]);
    OWNED PyObject *exit = Py_XNewRef(_PyType_Lookup(type, word_of("__exit__"))),
                   *enter = Py_XNewRef(_PyType_Lookup(type, word_of("__enter__")));
    enum ended ended = ENDED_BEFORE;

    if (enter && exit && PyFunction_Check(enter) && PyFunction_Check(exit) &&
        !is_array_function(enter) &&
        !(ended = read_attribute(c, w, 0, manager.values[0], manager.of[0], word_of("__exit__"),
                                 false))) {
        /* no attribute of its own */
        if (stack_shadow(w, 0)->kind == SHADOW_METHOD && stack_shadow(w, 0)->value == exit) {
            swap(w, 2);
            ended =
                step_method(c, w,
                            &(struct call){.callable = enter,
                                           .args = manager.values,
                                           .shadows = manager.of,
                                           .count = 1,
                                           .slots = 1},
                            enter, class_source(c, manager.values[0], manager.of[0]), "__enter__");
            if (ended != ENDED_BEFORE)
                return ended;
            swap(w, 2);
        }
        stack_drop(w, 1);
    }
    PyErr_Clear();
    return break_at(c, "call", "with a %.100s, which is not known", type->tp_name);
}

static enum ended step(struct capture *c, struct watched *w, struct compat_action action)
{
    PyObject *value, *name = action.arg < (size_t)PyTuple_GET_SIZE(w->code->co_names)
                                 ? PyTuple_GET_ITEM(w->code->co_names, action.arg)
                                 : NULL;
    struct shadow *shadow;
    enum ended ended;

    switch (action.op) {
    case NOP:
        return ENDED_NOT;
    case KW_NAMES:
        w->names = PyTuple_GET_ITEM(w->code->co_consts, action.arg);
        return ENDED_NOT;
    case LOAD_FAST:
        return load_fast(c, w, action.arg);
    case STORE_FAST:
        return store_fast(c, w, action.arg);
    case LOAD_FAST_LOAD_FAST:
        return two(c, w, action.arg);
    case DELETE_FAST:
        if (!compat_local(w->frame, (int)action.arg))
            return unbound(c, w, action.arg);
        if (!(ended = may_store(c, w, action.arg)))
            store(w, action.arg, NULL, NULL);
        return ended;
    case LOAD_FAST_AND_CLEAR:
        shadow = w->shadow[action.arg];
        w->shadow[action.arg] = NULL;
        w->put[action.arg] = NULL;
        stack_push(w, compat_take_local(w->frame, (int)action.arg), shadow);
        return ENDED_NOT;
    case LOAD_CONST:
        value = compat_constant(w->code, w->op, action.arg);
        stack_push(w, value, shadow_const(c, value));
        return ENDED_NOT;
    case LOAD_DEREF:
    case STORE_DEREF:
        return deref(c, w, action.arg, action.op == STORE_DEREF);
    case MAKE_CELL:
        return make_cell(c, w, action.arg);
    case COPY_FREE_VARS:
        return copy_free(c, w, (int)action.arg);
    case LOAD_GLOBAL:
        return load_global(c, w, name, action.flag);
    case LOAD_BUILD_CLASS: /* which is not looked for among the globals */
        name = word_of("__build_class__");
        if (PyDict_Contains(w->frame->f_globals, name))
            break;
        return load_global(c, w, name, false);
    case STORE_GLOBAL:
        if (!w->globals || !PyDict_CheckExact(w->frame->f_globals))
            break;
        return set_in_dict(c, w, 1, w->globals, name, stack_value(w, 0), stack_shadow(w, 0));
    case IMPORT_NAME:
        return import_module(c, w, name);
    case IMPORT_FROM:
        if (!PyModule_CheckExact(stack_value(w, 0)))
            break;
        return read_attribute(c, w, 0, stack_value(w, 0), stack_shadow(w, 0), name, false);
    case LOAD_ATTR:
        return read_attribute(c, w, 1, stack_value(w, 0), stack_shadow(w, 0), name, action.flag);
    case LOAD_SUPER_ATTR:
        return super_attribute(c, w, name, action.flag);
    case STORE_ATTR:
        return store_attribute(c, w, name);
    case POP_TOP:
    case POP_ITER:
        stack_drop(w, action.op == POP_TOP ? 1 : 1 + COMPAT_ABOVE_ITERATOR);
        return ENDED_NOT;
    case PUSH_NULL:
        stack_push(w, NULL, NULL);
        return ENDED_NOT;
    case COPY:
        stack_push(w, Py_XNewRef(stack_value(w, (int)action.arg - 1)),
                   stack_shadow(w, (int)action.arg - 1));
        return ENDED_NOT;
    case SWAP:
        if (action.arg > 1)
            swap(w, (int)action.arg);
        return ENDED_NOT;
    case UNPACK_SEQUENCE:
        return unpack(c, w, (Py_ssize_t)action.arg, -1);
    case UNPACK_EX:
        return unpack(c, w, (Py_ssize_t)(action.arg & 0xff), (Py_ssize_t)(action.arg >> 8));
    case FOR_ITER:
        ended = iterator_next(c, w, stack_value(w, COMPAT_ABOVE_ITERATOR),
                              stack_shadow(w, COMPAT_ABOVE_ITERATOR), 0);
        if (ended != ENDED_BEFORE && ended != ENDED_RAISED &&
            stack_value(w, 0) == polyfill("end")) {
            stack_drop(w, 2 + COMPAT_ABOVE_ITERATOR);
            w->next = (int32_t)action.arg;
        }
        return ended;
    case JUMP_FORWARD:
        return jump(c, w, action.arg);
    case POP_JUMP_IF_FALSE:
    case JUMP_IF_FALSE_OR_POP:
        return jump_if(c, w, action);
    case CALL:
        return invoke(c, w, (int)action.arg, action.flag ? stack_value(w, 0) : w->names,
                      action.flag);
    case CALL_FUNCTION_EX:
        return invoke_variable(c, w, action.flag);
    case MAKE_FUNCTION:
    case SET_FUNCTION_ATTRIBUTE:
        return make_function(c, w, action);
    case BEFORE_WITH:
        return begin_with(c, w);
    case YIELD_VALUE:
    case RETURN_VALUE:
        c->returned_shadow = stack_shadow(w, 0);
        return action.op == YIELD_VALUE ? ENDED_YIELD : ENDED_RETURN;
    case RETURN_CONST:
        c->returned_shadow = shadow_const(c, PyTuple_GET_ITEM(w->code->co_consts, action.arg));
        return c->returned_shadow ? ENDED_RETURN : no_memory_at(c);
    default:
        return operate(c, w, action);
    }
    return break_at(c, "instruction", "an instruction that is not followed");
}

/* Has code of the program's set a variable of W's frame (f_locals)? */
static bool variables_changed(const struct watched *w)
{
    for (int i = 0; i < w->variables; i++)
        if (w->put[i] != compat_local(w->frame, i))
            return true;
    return false;
}

enum ended watch(struct capture *c, struct watched *w)
{
    bool in_call = false, make_bool;
    enum ended ended = ENDED_NOT;

    while (!ended) {
        const struct attempt before = attempt_begin(c);
        struct compat_action action;
        uint32_t arg = 0;
        int32_t unit = w->next;
        if (!in_call)
            w->group = unit;
        do {
            w->op = w->bytes[2 * unit];
            arg = arg << 8 | w->bytes[2 * unit + 1];
        } while (w->op == EXTENDED_ARG && ++unit < w->units);
        w->unit = unit;
        w->next = unit + 1 + compat_caches(w->op);
        action = compat_action(w->op, arg, unit);
        in_call = w->op == KW_NAMES || w->op == PRECALL;
        compat_step_at(w->frame, unit);
        c->failed |= compat_is_traced(c->ts); /* CPython calls trace functions at each line */
        w->before = w->depth;
        if (!w->outer && c->mortal->count) /* what it changes can be taken back */
            w->serial = ++c->serial;
        memcpy(w->shadow + w->variables + w->code->co_stacksize, w->shadow + w->variables,
               sizeof *w->shadow * (size_t)w->depth);
        if (c->failed || PyList_GET_SIZE(c->nodes) > MOST_NODES) {
            break_at(c, "limit", "a graph of more than %d operations", MOST_NODES);
            ended = ENDED_BEFORE;
        } else {
            make_bool = c->make_bool;
            c->make_bool = false;
            ended = step(c, w, action);
            c->make_bool |= make_bool && ended == ENDED_BEFORE;
        }
        /* CPython does the instruction itself at each hit */
        if (ended == ENDED_RAISED || ended == ENDED_BEFORE)
            c->effects->count = before.effects;
        if (!ended && !w->outer && dies(c, NULL, 0)) {
            attempt_undo(c, &before);
            break_at_death(c);
            ended = ENDED_BEHIND;
        }
        if (!in_call)
            w->names = NULL;
    }
    c->failed |= variables_changed(w);
    if (ended == ENDED_RAISED)
        break_at(c, "raised", "it raised %.100s",
                 PyErr_Occurred() ? ((PyTypeObject *)PyErr_Occurred())->tp_name : "nothing");
    if (ended != ENDED_RETURN && ended != ENDED_YIELD && !(c->stack && c->inner_broke)) {
        struct tracer_exception pending = tracer_exception_aside();
        Py_XSETREF(c->stack, place_now(c));
        tracer_exception_back(&pending);
    }
    return ended;
}

int watched_open(struct capture *c, struct watched *w, compat_frame *frame)
{
    PyCodeObject *code = compat_code(frame);

    *w = (struct watched){.outer = c->innermost,
                          .frame = frame,
                          .code = code,
                          .variables = code->co_nlocalsplus,
                          .serial = ++c->serial};
    w->held = PyCode_GetCode(code);
    w->shadow = calloc((size_t)code->co_nlocalsplus + 2 * (size_t)code->co_stacksize + 2,
                       sizeof *w->shadow);
    w->put = calloc((size_t)code->co_nlocalsplus + 1, sizeof *w->put);
    /* CPython raises that */
    if (!w->held || !w->shadow || !w->put || compat_recursion_remaining(c->ts) <= 0) {
        Py_CLEAR(w->held);
        free(w->shadow);
        free(w->put);
        PyErr_Clear();
        return -1;
    }
    w->bytes = (const uint8_t *)PyBytes_AS_STRING(w->held);
    w->units = (int32_t)(PyBytes_GET_SIZE(w->held) / 2);
    watched_put(w);
    c->innermost = w;
    compat_step_begin(c->ts, frame);
    return 0;
}

void watched_close(struct capture *c, struct watched *w)
{
    compat_step_end(c->ts, w->frame);
    c->innermost = w->outer;
    free(w->shadow);
    free(w->put);
    w->shadow = NULL;
    w->put = NULL;
    Py_CLEAR(w->held);
}

int hand_over(struct capture *c, struct watched *w, enum ended ended,
              struct tracer_exception *pending)
{
    const int count = w->variables + w->depth;

    if (c->make_bool) {
        int is = PyObject_IsTrue(stack_value(w, 0));
        stack_result(c, w, 1, PyBool_FromLong(is > 0), NULL);
        ended = is < 0 ? ENDED_RAISED : ended;
        c->make_bool = false;
    }
    if (ended == ENDED_RAISED) {
        /* the handler is looked for one unit before that */
        compat_go_on(w->frame, w->unit + 1, count);
        *pending = tracer_exception_aside();
        return 1;
    }
    PyErr_Clear();
    /* it has yet to return, or yield */
    compat_go_on(w->frame,
                 ended == ENDED_BEHIND   ? w->next
                 : ended == ENDED_BEFORE ? w->group
                                         : w->unit,
                 count);
    return 0;
}

/* The globals of W's function. */
static void find_globals(struct capture *c, struct watched *w)
{
    if (w->frame->f_globals == c->globals->value)
        w->globals = c->globals;
    else if (w->function && w->function->kind == SHADOW_FUNCTION)
        w->globals = w->function->function.globals;
    else if (w->function)
        w->globals = source_attribute(c, w->function, "__globals__", w->frame->f_globals);
}

/* W, opened for the frame of the generator OF, has the shadows of its variables and its stack,
 * where it is resumed with None, or what it is sent. */
static bool take_up(struct capture *c, struct watched *w, struct shadow *of)
{
    const struct call *sent = c->sent;
    int count;

    w->function = of->generator.function;
    find_globals(c, w);
    w->next = compat_resumes_at(w->frame, &count);
    w->depth = count - w->variables;
    memcpy(w->shadow, of->items, sizeof *w->shadow * (size_t)of->count);
    w->shadow[count - 1] = sent ? sent->shadows[0] : shadow_const(c, Py_None);
    c->sent = NULL;
    for (int32_t unit = 0; unit < w->next && !of->generator.has_begun;
         unit++) { /* what ran when it was made */
        const int op = w->bytes[2 * unit], arg = w->bytes[2 * unit + 1];
        if (op == MAKE_CELL)
            w->shadow[arg] =
                cell_shadow(c, w->shadow[arg], compat_local(w->frame, arg), NULL, false);
        else if (op == EXTENDED_ARG || (op == COPY_FREE_VARS && copy_free(c, w, arg)))
            return false;
    }
    of->generator.has_begun = true;
    return w->depth > 0 && compat_local(w->frame, count - 1) == (sent ? sent->args[0] : Py_None);
}

PyObject *capture_go_on(PyThreadState *ts, compat_frame *frame, int throws)
{
    OWNED PyObject *code = Py_NewRef((PyObject *)compat_code(frame));
    int count;
    const int32_t unit = throws ? compat_resumes_at(frame, &count) - 1 : 0;
    PyObject *result = shim->evaluate(ts, frame, throws);

    if (!result && throws) {
        struct tracer_exception raised = tracer_exception_aside();
        compat_thrown((PyCodeObject *)code, raised.traceback, unit);
        tracer_exception_back(&raised);
    }
    return result;
}

bool capture_awaits(struct capture *c, compat_frame *frame)
{
    bool is = c->awaited_code == compat_code(frame) && !compat_has_started(frame);

    for (Py_ssize_t i = 0; !is && i < c->generators->count && compat_is_resumed(frame); i++)
        is = compat_frame_of(c->generators->items[i]->value) == frame;
    c->innermost->unseen |= !is;
    return is;
}

PyObject *capture_step(struct capture *c, PyThreadState *ts, compat_frame *frame)
{
    struct shadow *generator = NULL;
    struct tracer_exception pending = {0};
    enum ended ended = ENDED_BEFORE;
    bool known = !c->failed && ts == c->ts, broke, ends;
    struct watched w;
    PyObject *result;
    int throws;

    for (Py_ssize_t i = 0; compat_is_resumed(frame) && !generator; i++)
        if (compat_frame_of(c->generators->items[i]->value) == frame)
            generator = c->generators->items[i];
    if (generator)
        known = known && !generator->generator.lost && shadow_change(c, generator);
    else
        c->awaited_code = NULL;
    if (!generator && c->awaited_call)
        known &= c->awaited_call->count <= compat_code(frame)->co_argcount;
    for (int i = 0; known && !generator && c->awaited_call && i < c->awaited_call->count; i++)
        known = compat_local(frame, i) == c->awaited_call->args[i];
    if (!known || watched_open(c, &w, frame)) {
        if (generator)
            generator->generator.lost = c->inner_broke = true;
        return shim->evaluate(ts, frame, 0);
    }
    c->inner_broke = false;
    if (!generator) {
        c->entered = true;
        w.function = c->awaited_function;
        memcpy(w.shadow, c->awaited, sizeof *w.shadow * (size_t)c->awaited_count);
        find_globals(c, &w);
    }
    if (!generator || take_up(c, &w, generator)) {
        ended = watch(c, &w);
    } else {
        break_at(c, "call", "a generator that is not known");
        w.group = w.next;
    }
    broke = ended != ENDED_RETURN && ended != ENDED_YIELD;
    if (generator && !broke) {
        generator->generator.given = c->returned_shadow;
        generator->count = w.variables + w.depth - 1;
        memcpy(generator->items, w.shadow,
               sizeof *w.shadow * (size_t)(ended == ENDED_YIELD ? generator->count : 0));
    } else if (generator) {
        generator->generator.lost = true;
    } else if (!broke) {
        result = c->stepped =
            Py_NewRef(w.op == RETURN_VALUE ? stack_value(&w, 0) : c->returned_shadow->value);
        stack_drop(&w, w.depth);
        compat_go_on(frame, 0, w.variables);
        watched_close(c, &w);
        compat_dispose(ts, frame);
        c->entered = true; /* what it called has said so of itself */
        c->inner_broke = false;
        return result;
    }
    ends = ended == ENDED_BEFORE && w.op == RAISE_VARARGS && w.depth &&
           stack_value(&w, 0) == PyExc_StopIteration &&
           value_known(c, PyExc_StopIteration, stack_shadow(&w, 0)) &&
           !code_handles(w.code, w.bytes, w.unit);
    throws = hand_over(c, &w, ended, &pending);
    watched_close(c, &w);
    tracer_exception_back(&pending);
    result = capture_go_on(ts, frame, throws);
    c->entered |= !generator;
    c->inner_broke = broke;
    c->ends = ends && !generator;
    return result;
}
