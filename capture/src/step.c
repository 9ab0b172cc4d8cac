/* capture/src/step.c -- execute one instruction after the other, in the frame that CPython made.
 * See capture.h.
 *
 * Before each instruction capture copies the shadows of the stack. If the graph breaks at the
 * instruction, the compiled code must restore the stack to its state before the instruction. */
#include "capture.h"

enum { MOST_JUMPS = 40000, MOST_NODES = 40000 };

/* ---- local variables ---- */

/* Would CPython, without the capture, release OBJECT now? It would if the only references to OBJECT
 * are those of the capture and MORE others. With OBJECT NULL: would CPython release any object of
 * c->mortal? */
static bool would_object_have_died(const struct capture *c, PyObject *object, Py_ssize_t more)
{
    for (Py_ssize_t i = 0; i < c->mortal->count; i++) {
        const struct shadow *one = c->mortal->items[i];

        if (object && object != one->value)
            continue;
        if (Py_REFCNT(one->value) == one->source.references + more)
            return true;
    }
    return false;
}

static enum ended break_at_death(struct capture *c)
{
    return break_graph(c, "value", "an object dies, which may run code of the program's");
}

static const char *get_variable_name(const struct watched *w, uint32_t variable)
{
    return PyUnicode_AsUTF8(PyTuple_GET_ITEM(w->code->co_localsplusnames, variable));
}

static enum ended break_at_unbound(struct capture *c, const struct watched *w, uint32_t variable)
{
    return break_graph(c, "instruction", "variable %.100s has no value",
                       get_variable_name(w, variable));
}

/* Is the variable an argument of a resume function that may be unbound in later calls? Callers pass
 * a marker object for "unbound". */
static bool may_variable_be_unbound(struct capture *c, const struct watched *w, uint32_t variable)
{
    struct shadow *of = w->shadow[variable];

    if (!w->resumed || !is_source(of) || of->source.guarded)
        return false;
    if (resolve_alias(c, of) != of)
        return false;
    return !ensure_type_known(c, compat_get_local(w->frame, (int)variable), of);
}

static enum ended check_can_load_variable(struct capture *c, const struct watched *w,
                                          uint32_t variable)
{
    if (!compat_get_local(w->frame, (int)variable)) {
        /* discard the capture, because the call raises UnboundLocalError, and capture compiles no
         * call that raises */
        if (!w->outer && !code_handles_exception(w->code, w->bytes, w->unit))
            c->failed = true;
        return break_at_unbound(c, w, variable);
    }
    if (may_variable_be_unbound(c, w, variable))
        return break_graph(c, "value", "variable %.100s may have no value",
                           get_variable_name(w, variable));
    return ENDED_NOT;
}

static enum ended execute_load_fast(struct capture *c, struct watched *w, uint32_t variable)
{
    enum ended ended = check_can_load_variable(c, w, variable);
    PyObject *value = compat_get_local(w->frame, (int)variable);

    if (value != w->stored[variable])
        c->failed = true;
    if (!ended)
        stack_push(w, Py_NewRef(value), resolve_alias(c, w->shadow[variable]));
    return ended;
}

static void set_variable(struct watched *w, uint32_t variable, PyObject *value,
                         struct shadow *shadow)
{
    PyObject *old = compat_take_local(w->frame, (int)variable);

    compat_store_local(w->frame, (int)variable, value);
    w->stored[variable] = value;
    w->shadow[variable] = shadow;
    Py_XDECREF(old);
}

/* Pop the value on top of the stack and return it, a new reference. */
static PyObject *pop_value(struct watched *w, struct shadow **shadow)
{
    int at;

    w->depth--;
    at = w->variables + w->depth;
    *shadow = w->shadow[at];
    w->shadow[at] = NULL;
    return compat_take_local(w->frame, at);
}

static enum ended check_can_store_variable(struct capture *c, const struct watched *w,
                                           uint32_t variable)
{
    PyObject *old = compat_get_local(w->frame, (int)variable);

    if (!old)
        return ENDED_NOT;
    if (would_object_have_died(c, old, 1))
        return break_at_death(c);
    if (c->mortal->count && Py_REFCNT(old) == 1 && !value_can_die_quietly(old))
        return break_at_death(c);
    return ENDED_NOT;
}

static enum ended execute_store_fast(struct capture *c, struct watched *w, uint32_t variable)
{
    enum ended ended = check_can_store_variable(c, w, variable);
    struct shadow *shadow;
    PyObject *value;

    if (ended)
        return ended;
    value = pop_value(w, &shadow);
    set_variable(w, variable, value, shadow);
    return ENDED_NOT;
}

/* Can both halves of a double instruction such as STORE_FAST_LOAD_FAST be executed? The second half
 * may load the variable that the first half stores. */
static enum ended check_double_instruction(struct capture *c, const struct watched *w,
                                           const unsigned char *half, const uint32_t *variable)
{
    enum ended ended = ENDED_NOT;

    for (int i = 0; i < 2 && !ended; i++) {
        const bool is_stored_first = i && half[0] == STORE_FAST && variable[0] == variable[1];

        if (half[i] == STORE_FAST)
            ended = check_can_store_variable(c, w, variable[i]);
        else if (!is_stored_first)
            ended = check_can_load_variable(c, w, variable[i]);
    }
    return ended;
}

static enum ended execute_double_instruction(struct capture *c, struct watched *w, uint32_t arg)
{
    const unsigned char *half = compat_ops[w->op].half;
    const uint32_t variable[2] = {arg >> 4, arg & 15};
    enum ended ended = check_double_instruction(c, w, half, variable);

    for (int i = 0; i < 2 && !ended; i++) {
        if (half[i] == STORE_FAST)
            ended = execute_store_fast(c, w, variable[i]);
        else
            ended = execute_load_fast(c, w, variable[i]);
    }
    return ended;
}

/* ---- cells of closures ---- */

/* Make the shadow of CELL. CONTENT is the shadow of its content. OUTSIDE: another function made the
 * cell. */
static struct shadow *make_cell_shadow(struct capture *c, struct shadow *content, PyObject *cell,
                                       struct shadow *source, bool outside)
{
    struct shadow *made = shadow_new(c, SHADOW_CELL, 1);

    if (!made)
        return NULL;
    shadow_add(c, made, NULL, content);
    made->value = compat_cell_content(cell);
    made->cell.source = source;
    made->cell.is_outside = outside;
    return made;
}

static enum ended execute_make_cell(struct capture *c, struct watched *w, uint32_t variable)
{
    PyObject *value = compat_take_local(w->frame, (int)variable);
    PyObject *cell = PyCell_New(value);

    Py_XDECREF(value);
    if (!cell)
        return ENDED_RAISED;
    compat_store_local(w->frame, (int)variable, cell);
    w->stored[variable] = cell;
    w->shadow[variable] = make_cell_shadow(c, w->shadow[variable], cell, NULL, false);
    return ENDED_NOT;
}

/* Make the shadow of CELL, which is free variable I, named NAME, of the captured function. */
static struct shadow *make_own_free_cell_shadow(struct capture *c, int i, PyObject *name,
                                                PyObject *cell)
{
    PyObject *value = compat_cell_content(cell);
    struct shadow *source = value ? source_read(c, c->locals, 'C', name, cell) : NULL;
    struct shadow *content = NULL;

    if (source) {
        source->source.cell = i;
        content = source_read(c, c->locals, 'l', name, value);
    }
    return make_cell_shadow(c, content, cell, source, true);
}

/* Make the shadow of CELL, which is free variable I of a function that existed before the watched
 * call. OF is the function's source. */
static struct shadow *make_read_free_cell_shadow(struct capture *c, struct shadow *of, int i,
                                                 PyObject *cell)
{
    OWNED PyObject *number = PyLong_FromLong(i);
    PyObject *value = compat_cell_content(cell);
    struct shadow *source = NULL, *content = NULL;

    if (value && number)
        source = source_read_attribute(c, of, "__closure__", NULL);
    if (source)
        source = source_read(c, source, '[', number, cell);
    if (source)
        content = source_read_attribute(c, source, "cell_contents", value);
    return make_cell_shadow(c, content, cell, source, true);
}

static struct shadow *find_free_cell_shadow(struct capture *c, struct watched *w, int i,
                                            PyObject *name, PyObject *cell)
{
    struct shadow *of = w->function;

    if (!of)
        return make_own_free_cell_shadow(c, i, name, cell);
    if (of->kind == SHADOW_FUNCTION && i < of->count)
        return of->items[i];
    if (of->kind == SHADOW_SOURCE)
        return make_read_free_cell_shadow(c, of, i, cell);
    return make_cell_shadow(c, NULL, cell, NULL, true);
}

static enum ended execute_copy_free_vars(struct capture *c, struct watched *w, int count)
{
    PyObject *closure = compat_get_function(w->frame)->func_closure;
    const int first = w->variables - count;

    if (!closure || PyTuple_GET_SIZE(closure) < count)
        return break_graph(c, "instruction", "a function without its closure");
    for (int i = 0; i < count; i++) {
        PyObject *cell = PyTuple_GET_ITEM(closure, i);
        PyObject *name = PyTuple_GET_ITEM(w->code->co_localsplusnames, first + i);

        set_variable(w, (uint32_t)(first + i), Py_NewRef(cell),
                     find_free_cell_shadow(c, w, i, name, cell));
    }
    return ENDED_NOT;
}

/* Return the shadow of the content that cell OF has now, after all effects; NULL if it is
 * unknown. */
static struct shadow *find_cell_content(struct capture *c, struct shadow *of)
{
    struct shadow *source, *changed;

    if (!is_kind(of, SHADOW_CELL))
        return NULL;
    if (!of->cell.is_outside || !of->cell.source || !c->effects->count)
        return of->items[0];
    source = resolve_alias(c, of->cell.source);
    of->cell.source = source;
    changed = source ? source_find_changed(source, '.', intern_word("cell_contents")) : NULL;
    if (!source || !ensure_not_aliased(c, source))
        return NULL;
    return resolve_alias(c, changed ? changed->items[0] : of->items[0]);
}

/* ---- cell variables, new functions ---- */

enum { DEFAULTS = 1, KEYWORDS = 2, CLOSURE = 8 };

/* Fail the capture if code of the program has set the cell OF. VALUE is the present content of the
 * cell; CONTENT is the shadow of the expected content. */
static void check_cell_unchanged(struct capture *c, const struct shadow *of,
                                 const struct shadow *content, PyObject *value)
{
    if (content == of->items[0])
        c->failed |= of->value != value;
    else if (content->kind == SHADOW_SOURCE)
        c->failed |= content->value != value;
}

static enum ended execute_load_deref(struct capture *c, struct watched *w, uint32_t variable)
{
    PyObject *value = compat_cell_content(compat_get_local(w->frame, (int)variable));
    struct shadow *of = w->shadow[variable];
    struct shadow *content;

    if (!value)
        return break_at_unbound(c, w, variable);
    content = find_cell_content(c, of);
    if (content)
        check_cell_unchanged(c, of, content, value);
    stack_push(w, Py_NewRef(value), content);
    return ENDED_NOT;
}

static enum ended execute_store_deref(struct capture *c, struct watched *w, uint32_t variable)
{
    PyObject *cell = compat_get_local(w->frame, (int)variable);
    struct shadow *of = w->shadow[variable];
    struct shadow *content, *shadow;
    PyObject *old, *value;

    if (!cell || !PyCell_Check(cell))
        return break_at_unbound(c, w, variable);
    old = compat_cell_content(cell);
    content = old ? find_cell_content(c, of) : NULL;
    if (content)
        check_cell_unchanged(c, of, content, old);
    if (content && of->cell.is_outside && of->cell.source)
        return set_value_at_place(c, w, 1, of->cell.source, '.', intern_word("cell_contents"), old,
                                  stack_value(w, 0), stack_shadow(w, 0));
    if (!is_kind(of, SHADOW_CELL) || of->cell.is_outside || !shadow_save_for_undo(c, of))
        return break_graph(c, "mutation", "variable %.100s of another function is set",
                           get_variable_name(w, variable));
    if (old && would_object_have_died(c, old, 1))
        return break_at_death(c);
    value = pop_value(w, &shadow);
    of->items[0] = shadow;
    of->value = value;
    PyCell_SET(cell, value);
    Py_XDECREF(old);
    return ENDED_NOT;
}

/* Pop a value from the stack and set it as an attribute of FUNCTION. WHAT tells which attribute:
 * the defaults, the keyword defaults or the closure. */
static void set_function_part(struct watched *w, PyFunctionObject *function, struct shadow *shadow,
                              uint32_t what)
{
    struct shadow *of;
    PyObject *part = pop_value(w, &of);

    switch (what) {
    case DEFAULTS:
        function->func_defaults = part;
        shadow->function.defaults = of;
        break;
    case KEYWORDS:
        function->func_kwdefaults = part;
        shadow->function.keyword_defaults = of;
        break;
    default: /* CLOSURE */
        function->func_closure = part;
        if (is_kind(of, SHADOW_TUPLE)) {
            shadow->items = of->items;
            shadow->count = of->count;
        }
    }
}

/* Execute MAKE_FUNCTION, which takes a code object from the top of the stack, and below it the
 * defaults, keyword defaults and closure. */
static enum ended execute_make_function(struct capture *c, struct watched *w,
                                        struct compat_action action)
{
    const unsigned understood = CLOSURE | KEYWORDS | DEFAULTS;
    const bool makes = action.op == MAKE_FUNCTION;
    struct shadow *shadow;
    PyObject *made;

    if (makes)
        shadow = shadow_new(c, SHADOW_FUNCTION, 0);
    /* SET_FUNCTION_ATTRIBUTE adds the defaults, the keyword defaults or the closure to a
     * function */
    else
        shadow = stack_shadow(w, 0);
    if (!is_kind(shadow, SHADOW_FUNCTION) || action.arg & ~understood)
        return break_graph(c, "instruction", "a function is made that has annotations");
    if (makes) {
        shadow->function.code = capture_keep(c, stack_value(w, 0));
        shadow->function.globals = w->globals;
        made = PyFunction_New(stack_value(w, 0), w->frame->f_globals);
    } else {
        made = Py_NewRef(stack_value(w, 0));
    }
    if (!made)
        return ENDED_RAISED;
    stack_drop(w, 1);
    for (uint32_t what = CLOSURE; what; what >>= 1)
        if (action.arg & what)
            set_function_part(w, (PyFunctionObject *)made, shadow, what);
    stack_push(w, made, shadow);
    return ENDED_NOT;
}

/* ---- globals, jumps, `with` statements ---- */

/* Read the builtin NAME, and guard that no global has the same name. Returns a new reference, or
 * NULL; sets *SHADOW to the builtin's source. */
static PyObject *read_builtin(struct capture *c, struct watched *w, PyObject *name,
                              struct shadow **shadow)
{
    PyObject *builtins = w->frame->f_builtins;
    struct shadow *missing = source_read(c, w->globals, '!', name, NULL);
    PyObject *value = NULL;

    *shadow = NULL;
    if (!PyErr_Occurred())
        value = PyDict_GetItemWithError(builtins, name);
    if (!value || !missing) {
        PyErr_Clear();
        return NULL;
    }
    if (!missing->source.guarded)
        guard_add(c, w->globals, "DICT_NOT_CONTAINS", name);
    missing->source.guarded = GUARDED_VALUE;
    Py_INCREF(value);
    if (builtins == PyEval_GetBuiltins())
        *shadow = source_read(c, c->builtins, '[', name, value);
    return value;
}

static enum ended execute_load_global(struct capture *c, struct watched *w, PyObject *name,
                                      bool null)
{
    PyObject *globals = w->frame->f_globals;
    OWNED PyObject *value = NULL;
    struct shadow *shadow;

    if (!PyDict_CheckExact(globals) || !PyDict_CheckExact(w->frame->f_builtins) || !w->globals)
        return break_graph(c, "instruction", "globals that are no dict");
    value = Py_XNewRef(PyDict_GetItemWithError(globals, name));
    if (value) {
        shadow = source_read(c, w->globals, '[', name, value);
    } else {
        value = read_builtin(c, w, name, &shadow);
        if (!value)
            return break_graph(c, "instruction", "global %.100s, which is not there",
                               PyUnicode_AsUTF8(name));
    }
    if (!shadow)
        return break_graph(c, "value", "global %.100s changed", PyUnicode_AsUTF8(name));
    return push_callable(w, null, Py_NewRef(value), shadow);
}

static void swap_stack_values(struct watched *w, int count)
{
    const int a = w->variables + w->depth - 1;
    const int b = w->variables + w->depth - count;
    PyObject *first = compat_take_local(w->frame, a);
    PyObject *second = compat_take_local(w->frame, b);
    struct shadow *shadow = w->shadow[a];

    compat_store_local(w->frame, a, second);
    compat_store_local(w->frame, b, first);
    w->shadow[a] = w->shadow[b];
    w->shadow[b] = shadow;
}

static enum ended jump_to_unit(struct capture *c, struct watched *w, uint32_t to)
{
    const bool is_loop = to <= (uint32_t)w->unit && !compat_are_frames_hidden(w->code);

    w->next = (int32_t)to;
    if (is_loop && ++c->jumps > MOST_JUMPS)
        return break_graph(c, "limit", "a loop of more than %d rounds", MOST_JUMPS);
    return ENDED_NOT;
}

/* Is it known whether VALUE is None? Adds guards. */
static bool is_none_known(struct capture *c, PyObject *value, struct shadow *shadow)
{
    if (value == Py_None)
        return ensure_value_known(c, value, shadow);
    return ensure_type_known(c, value, shadow);
}

static enum ended jump_on_condition(struct capture *c, struct watched *w,
                                    struct compat_action action)
{
    const bool asks_none = action.flag == IF_NONE || action.flag == IF_NOT_NONE;
    const bool wanted = action.flag == IF_TRUE || action.flag == IF_NONE;
    OWNED PyObject *value = Py_NewRef(stack_value(w, 0));
    struct shadow *shadow = stack_shadow(w, 0);
    enum ended ended = ENDED_NOT;
    bool is;

    if (asks_none) {
        if (!is_none_known(c, value, shadow))
            return break_graph(c, "value", "whether a %.100s that is not known is None",
                               Py_TYPE(value)->tp_name);
        is = value == Py_None;
    } else {
        ended = convert_to_bool(c, w);
        if (!is_instruction_done(ended))
            return ended;
        is = stack_value(w, 0) == Py_True;
    }
    /* leave the bool on the stack: if CPython ran the truth test again, it would run code of the
     * program twice */
    if (is == wanted && jump_to_unit(c, w, action.arg) && !ended)
        return ENDED_BEFORE;
    stack_drop(w, 1);
    /* JUMP_IF_FALSE_OR_POP keeps the value on the stack if it jumps */
    if (is == wanted && action.op == JUMP_IF_FALSE_OR_POP)
        stack_push(w, Py_NewRef(value), shadow);
    return ended;
}

/* Is METHOD a function written in Python? */
static bool is_python_method(PyObject *method)
{
    return method && PyFunction_Check(method);
}

/* Step through __enter__ of MANAGER, a context manager. The value stack has MANAGER and, on top of
 * it, its method __exit__. */
static enum ended step_enter_method(struct capture *c, struct watched *w, struct operands *manager,
                                    PyObject *enter)
{
    const struct call call = {
        .callable = enter, .args = manager->values, .shadows = manager->of, .count = 1, .slots = 1};
    struct shadow *of_class = find_class_source(c, manager->values[0], manager->of[0]);
    enum ended ended;

    swap_stack_values(w, 2);
    ended = step_through_method(c, w, &call, enter, of_class, "__enter__");
    if (ended == ENDED_BEFORE)
        swap_stack_values(w, 2);
    return ended;
}

/* Execute BEFORE_WITH: replace the context manager on top of the stack by its __exit__ and the
 * result of its __enter__. */
static enum ended execute_before_with(struct capture *c, struct watched *w)
{
    struct operands manager = {{stack_value(w, 0)}, {stack_shadow(w, 0)}};
    PyObject *word = intern_word("__exit__");
    PyTypeObject *type = Py_TYPE(manager.values[0]);
    OWNED PyObject *exit = Py_XNewRef(_PyType_Lookup(type, word));
    OWNED PyObject *enter = Py_XNewRef(_PyType_Lookup(type, intern_word("__enter__")));
    bool can_enter = is_python_method(exit) && is_python_method(enter);

    if (can_enter && !is_array_function(enter) &&
        !read_attribute(c, w, 0, manager.values[0], manager.of[0], word, false)) {
        const struct shadow *of = stack_shadow(w, 0);
        enum ended ended = ENDED_BEFORE;

        /* the `with` statement takes __exit__ from the class, so refuse a manager that has an
         * __exit__ of its own */
        if (is_kind(of, SHADOW_METHOD) && of->value == exit)
            ended = step_enter_method(c, w, &manager, enter);
        if (ended != ENDED_BEFORE)
            return ended;
        stack_drop(w, 1);
    }
    PyErr_Clear();
    return break_graph(c, "call", "with a %.100s, which is not known", type->tp_name);
}

static enum ended execute_delete_fast(struct capture *c, struct watched *w, uint32_t variable)
{
    enum ended ended;

    if (!compat_get_local(w->frame, (int)variable))
        return break_at_unbound(c, w, variable);
    ended = check_can_store_variable(c, w, variable);
    if (!ended)
        set_variable(w, variable, NULL, NULL);
    return ended;
}

static enum ended execute_load_fast_and_clear(struct watched *w, uint32_t variable)
{
    struct shadow *shadow = w->shadow[variable];

    w->shadow[variable] = NULL;
    w->stored[variable] = NULL;
    stack_push(w, compat_take_local(w->frame, (int)variable), shadow);
    return ENDED_NOT;
}

static enum ended execute_load_const(struct capture *c, struct watched *w, uint32_t number)
{
    PyObject *value = compat_constant(w->code, w->op, number);

    stack_push(w, value, shadow_new_const(c, value));
    return ENDED_NOT;
}

static enum ended break_at_unknown_instruction(struct capture *c)
{
    return break_graph(c, "instruction", "an instruction that is not followed");
}

/* Execute LOAD_BUILD_CLASS. CPython takes __build_class__ from the builtins, even if there is a
 * global of this name; execute_load_global() would take this global, so the graph breaks in that
 * case. */
static enum ended execute_load_build_class(struct capture *c, struct watched *w)
{
    PyObject *name = intern_word("__build_class__");

    if (PyDict_Contains(w->frame->f_globals, name))
        return break_at_unknown_instruction(c);
    return execute_load_global(c, w, name, false);
}

static enum ended execute_store_global(struct capture *c, struct watched *w, PyObject *name)
{
    if (!w->globals || !PyDict_CheckExact(w->frame->f_globals))
        return break_at_unknown_instruction(c);
    return set_in_dict(c, w, 1, w->globals, name, stack_value(w, 0), stack_shadow(w, 0));
}

static enum ended execute_import_from(struct capture *c, struct watched *w, PyObject *name)
{
    if (!PyModule_CheckExact(stack_value(w, 0)))
        return break_at_unknown_instruction(c);
    return read_attribute(c, w, 0, stack_value(w, 0), stack_shadow(w, 0), name, false);
}

/* Execute FOR_ITER. If the iterator has ended, jump to END. */
static enum ended execute_for_iter(struct capture *c, struct watched *w, uint32_t end)
{
    PyObject *iterator = stack_value(w, COMPAT_ABOVE_ITERATOR);
    struct shadow *of = stack_shadow(w, COMPAT_ABOVE_ITERATOR);
    enum ended ended = iterator_push_next(c, w, iterator, of, 0);

    if (is_instruction_done(ended) && stack_value(w, 0) == get_polyfill("end")) {
        stack_drop(w, 2 + COMPAT_ABOVE_ITERATOR);
        w->next = (int32_t)end;
    }
    return ended;
}

static enum ended execute_return_const(struct capture *c, struct watched *w, uint32_t number)
{
    c->returned_shadow = shadow_new_const(c, PyTuple_GET_ITEM(w->code->co_consts, number));
    return c->returned_shadow ? ENDED_RETURN : break_at_no_memory(c);
}

static enum ended execute_instruction(struct capture *c, struct watched *w,
                                      struct compat_action action)
{
    PyObject *const names = w->code->co_names;
    const uint32_t arg = action.arg;
    PyObject *name = NULL;

    if (arg < (size_t)PyTuple_GET_SIZE(names))
        name = PyTuple_GET_ITEM(names, arg);
    switch (action.op) {
    case NOP:
        return ENDED_NOT;
    case KW_NAMES:
        w->names = PyTuple_GET_ITEM(w->code->co_consts, arg);
        return ENDED_NOT;
    case LOAD_FAST:
        return execute_load_fast(c, w, arg);
    case STORE_FAST:
        return execute_store_fast(c, w, arg);
    case LOAD_FAST_LOAD_FAST:
        return execute_double_instruction(c, w, arg);
    case DELETE_FAST:
        return execute_delete_fast(c, w, arg);
    case LOAD_FAST_AND_CLEAR:
        return execute_load_fast_and_clear(w, arg);
    case LOAD_CONST:
        return execute_load_const(c, w, arg);
    case LOAD_DEREF:
        return execute_load_deref(c, w, arg);
    case STORE_DEREF:
        return execute_store_deref(c, w, arg);
    case MAKE_CELL:
        return execute_make_cell(c, w, arg);
    case COPY_FREE_VARS:
        return execute_copy_free_vars(c, w, (int)arg);
    case LOAD_GLOBAL:
        return execute_load_global(c, w, name, action.flag);
    case LOAD_BUILD_CLASS:
        return execute_load_build_class(c, w);
    case STORE_GLOBAL:
        return execute_store_global(c, w, name);
    case IMPORT_NAME:
        return import_module(c, w, name);
    case IMPORT_FROM:
        return execute_import_from(c, w, name);
    case LOAD_ATTR:
        return read_attribute(c, w, 1, stack_value(w, 0), stack_shadow(w, 0), name, action.flag);
    case LOAD_SUPER_ATTR:
        return read_super_attribute(c, w, name, action.flag);
    case STORE_ATTR:
        return store_attribute(c, w, name);
    case POP_TOP:
        stack_drop(w, 1);
        return ENDED_NOT;
    case POP_ITER:
        stack_drop(w, 1 + COMPAT_ABOVE_ITERATOR);
        return ENDED_NOT;
    case PUSH_NULL:
        stack_push(w, NULL, NULL);
        return ENDED_NOT;
    case COPY:
        stack_push(w, Py_XNewRef(stack_value(w, (int)arg - 1)), stack_shadow(w, (int)arg - 1));
        return ENDED_NOT;
    case SWAP:
        if (arg > 1)
            swap_stack_values(w, (int)arg);
        return ENDED_NOT;
    case UNPACK_SEQUENCE:
        return execute_unpack(c, w, (Py_ssize_t)arg, -1);
    case UNPACK_EX:
        return execute_unpack(c, w, (Py_ssize_t)(arg & 0xff), (Py_ssize_t)(arg >> 8));
    case FOR_ITER:
        return execute_for_iter(c, w, arg);
    case JUMP_FORWARD:
        return jump_to_unit(c, w, arg);
    case POP_JUMP_IF_FALSE:
    case JUMP_IF_FALSE_OR_POP:
        return jump_on_condition(c, w, action);
    case CALL:
        return execute_call(c, w, (int)arg, action.flag ? stack_value(w, 0) : w->names,
                            action.flag);
    case CALL_FUNCTION_EX:
        return execute_starred_call(c, w, action.flag);
    case MAKE_FUNCTION:
    case SET_FUNCTION_ATTRIBUTE:
        return execute_make_function(c, w, action);
    case BEFORE_WITH:
        return execute_before_with(c, w);
    case YIELD_VALUE:
        c->returned_shadow = stack_shadow(w, 0);
        return ENDED_YIELD;
    case RETURN_VALUE:
        c->returned_shadow = stack_shadow(w, 0);
        return ENDED_RETURN;
    case RETURN_CONST:
        return execute_return_const(c, w, arg);
    default:
        return execute_operator(c, w, action);
    }
}

/* Has code of the program set a variable of W's frame, e.g. through f_locals? */
static bool have_variables_changed(const struct watched *w)
{
    for (int i = 0; i < w->variables; i++)
        if (w->stored[i] != compat_get_local(w->frame, i))
            return true;
    return false;
}

/* Read the instruction at w->next. */
static struct compat_action read_next_instruction(struct watched *w)
{
    int32_t unit = w->next;
    uint32_t arg = 0;

    do {
        w->op = w->bytes[2 * unit];
        arg = arg << 8 | w->bytes[2 * unit + 1];
    } while (w->op == EXTENDED_ARG && ++unit < w->units);
    w->unit = unit;
    w->next = unit + 1 + compat_caches(w->op);
    return compat_effect_of_instruction(w->op, arg, unit);
}

/* Copy the shadows of the stack. If the graph breaks at the current instruction, the compiled code
 * must restore the values that these shadows describe. */
static void save_stack_shadows(struct watched *w)
{
    struct shadow **stack = w->shadow + w->variables;

    w->before = w->depth;
    memcpy(stack + w->code->co_stacksize, stack, sizeof *stack * (size_t)w->depth);
}

static enum ended step_if_possible(struct capture *c, struct watched *w,
                                   struct compat_action action)
{
    const bool make_bool = c->make_bool;
    enum ended ended;

    if (c->failed || PyList_GET_SIZE(c->nodes) > MOST_NODES)
        return break_graph(c, "limit", "a graph of more than %d operations", MOST_NODES);
    c->make_bool = false;
    ended = execute_instruction(c, w, action);
    if (make_bool && ended == ENDED_BEFORE)
        c->make_bool = true;
    return ended;
}

/* Execute ACTION, the current instruction of W. Prepares for a graph break at this instruction. */
static enum ended step_instruction(struct capture *c, struct watched *w,
                                   struct compat_action action)
{
    const struct attempt before = attempt_begin(c);
    enum ended ended;

    compat_set_current_instruction(w->frame, w->unit);
    /* stop capturing: the program has set a trace function, and only CPython calls it at each
     * line */
    if (compat_is_thread_traced(c->ts))
        c->failed = true;
    /* take a new serial number, so that changes of shadows by this instruction can be undone */
    if (!w->outer && c->mortal->count)
        w->serial = ++c->serial;
    save_stack_shadows(w);
    ended = step_if_possible(c, w, action);
    /* drop the effects of this instruction: in later calls CPython executes it itself */
    if (ended == ENDED_RAISED || ended == ENDED_BEFORE)
        c->effects->count = before.effects;
    if (!ended && !w->outer && would_object_have_died(c, NULL, 0)) {
        attempt_undo(c, &before);
        break_at_death(c);
        return ENDED_BEHIND;
    }
    return ended;
}

/* Store in the capture where and why the function of W has ended. */
static void record_end_of_watch(struct capture *c, struct watched *w, enum ended ended)
{
    PyObject *raised = ended == ENDED_RAISED ? PyErr_Occurred() : NULL;
    struct tracer_exception pending;

    if (ended == ENDED_RAISED)
        break_graph(c, "raised", "it raised %.100s",
                    raised ? ((PyTypeObject *)raised)->tp_name : "nothing");
    if (ended == ENDED_RETURN || ended == ENDED_YIELD)
        return;
    if (c->stack && c->inner_broke)
        return;
    pending = tracer_put_exception_aside();
    Py_XSETREF(c->stack, make_call_stack(c));
    tracer_restore_exception(&pending);
}

enum ended watch_frame(struct capture *c, struct watched *w)
{
    enum ended ended = ENDED_NOT;
    bool in_call = false;

    while (!ended) {
        const int32_t first = w->next;
        const struct compat_action action = read_next_instruction(w);

        if (!in_call)
            w->group = first;
        in_call = w->op == KW_NAMES || w->op == PRECALL;
        ended = step_instruction(c, w, action);
        if (!in_call)
            w->names = NULL;
    }
    if (have_variables_changed(w))
        c->failed = true;
    record_end_of_watch(c, w, ended);
    return ended;
}

static void watched_free(struct watched *w)
{
    free(w->shadow);
    free(w->stored);
    w->shadow = NULL;
    w->stored = NULL;
    Py_CLEAR(w->held);
}

int watched_begin_frame(struct capture *c, struct watched *w, compat_frame *frame)
{
    PyCodeObject *code = compat_get_code(frame);
    const size_t variables = (size_t)code->co_nlocalsplus;
    const size_t stack = (size_t)code->co_stacksize;

    *w = (struct watched){.outer = c->innermost,
                          .frame = frame,
                          .code = code,
                          .variables = code->co_nlocalsplus,
                          .serial = ++c->serial};
    w->held = PyCode_GetCode(code);
    w->shadow = calloc(variables + 2 * stack + 2, sizeof *w->shadow);
    w->stored = calloc(variables + 1, sizeof *w->stored);
    /* refuse the frame at the recursion limit, where CPython must raise */
    if (!w->held || !w->shadow || !w->stored || compat_recursion_remaining(c->ts) <= 0) {
        watched_free(w);
        PyErr_Clear();
        return -1;
    }
    w->bytes = (const uint8_t *)PyBytes_AS_STRING(w->held);
    w->units = (int32_t)(PyBytes_GET_SIZE(w->held) / 2);
    watched_save_variables(w);
    c->innermost = w;
    compat_step_begin(c->ts, frame);
    return 0;
}

void watched_end_frame(struct capture *c, struct watched *w)
{
    compat_step_end(c->ts, w->frame);
    c->innermost = w->outer;
    watched_free(w);
}

/* Return the code unit at which CPython must continue the frame of W. */
static int32_t find_unit_to_continue(const struct watched *w, enum ended ended)
{
    switch (ended) {
    /* continue one unit later: CPython takes the unit before as the place where the exception was
     * raised */
    case ENDED_RAISED:
        return w->unit + 1;
    case ENDED_BEHIND:
        return w->next;
    case ENDED_BEFORE:
        return w->group;
    default: /* let CPython execute the return or yield */
        return w->unit;
    }
}

int hand_frame_to_cpython(struct capture *c, struct watched *w, enum ended ended,
                          struct tracer_exception *pending)
{
    const int count = w->variables + w->depth;

    if (c->make_bool) {
        const int is = PyObject_IsTrue(stack_value(w, 0));

        stack_replace(c, w, 1, PyBool_FromLong(is > 0), NULL);
        if (is < 0)
            ended = ENDED_RAISED;
        c->make_bool = false;
    }
    if (ended == ENDED_RAISED) {
        compat_prepare_to_continue(w->frame, find_unit_to_continue(w, ended), count);
        *pending = tracer_put_exception_aside();
        return 1;
    }
    PyErr_Clear();
    compat_prepare_to_continue(w->frame, find_unit_to_continue(w, ended), count);
    return 0;
}

/* Set w->globals to the source of the globals of W's function. */
static void set_globals_source(struct capture *c, struct watched *w)
{
    if (w->frame->f_globals == c->globals->value)
        w->globals = c->globals;
    else if (w->function && w->function->kind == SHADOW_FUNCTION)
        w->globals = w->function->function.globals;
    else if (w->function)
        w->globals = source_read_attribute(c, w->function, "__globals__", w->frame->f_globals);
}

/* Make the shadows of the cells of a generator that is resumed for the first time. Its MAKE_CELL
 * and COPY_FREE_VARS instructions ran when the generator was made, without capture. Returns false
 * if this is impossible. */
static bool make_cell_shadows(struct capture *c, struct watched *w)
{
    for (int32_t unit = 0; unit < w->next; unit++) {
        const int op = w->bytes[2 * unit];
        const int arg = w->bytes[2 * unit + 1];

        if (op == EXTENDED_ARG)
            return false;
        if (op == MAKE_CELL)
            w->shadow[arg] =
                make_cell_shadow(c, w->shadow[arg], compat_get_local(w->frame, arg), NULL, false);
        if (op == COPY_FREE_VARS && execute_copy_free_vars(c, w, arg))
            return false;
    }
    return true;
}

/* Prepare to step through W, the frame of generator OF, which is resumed with None or with the
 * value of send(). Restores the shadows of the variables and of the stack. Returns false if this is
 * impossible. */
static bool resume_generator(struct capture *c, struct watched *w, struct shadow *of)
{
    const struct call *sent = c->sent;
    PyObject *value = sent ? sent->args[0] : Py_None;
    int count;

    w->function = of->generator.function;
    set_globals_source(c, w);
    w->next = compat_get_resume_position(w->frame, &count);
    w->depth = count - w->variables;
    memcpy(w->shadow, of->items, sizeof *w->shadow * (size_t)of->count);
    w->shadow[count - 1] = sent ? sent->shadows[0] : shadow_new_const(c, Py_None);
    c->sent = NULL;
    if (!of->generator.has_begun && !make_cell_shadows(c, w))
        return false;
    of->generator.has_begun = true;
    return w->depth > 0 && compat_get_local(w->frame, count - 1) == value;
}

PyObject *capture_go_on(PyThreadState *ts, compat_frame *frame, int throws)
{
    OWNED PyObject *code = Py_NewRef((PyObject *)compat_get_code(frame));
    int count;
    const int32_t unit = throws ? compat_get_resume_position(frame, &count) - 1 : 0;
    PyObject *result = shim->evaluate(ts, frame, throws);

    if (!result && throws) {
        struct tracer_exception raised = tracer_put_exception_aside();

        compat_correct_traceback((PyCodeObject *)code, raised.traceback, unit);
        tracer_restore_exception(&raised);
    }
    return result;
}

/* Return the shadow of the generator that is being resumed in FRAME; NULL if the watched call did
 * not make this generator, or if FRAME is no frame of a generator. */
static struct shadow *find_generator(const struct capture *c, compat_frame *frame)
{
    if (!compat_is_resumed(frame))
        return NULL;
    for (Py_ssize_t i = 0; i < c->generators->count; i++)
        if (compat_frame_of_generator(c->generators->items[i]->value) == frame)
            return c->generators->items[i];
    return NULL;
}

bool capture_expects_frame(struct capture *c, compat_frame *frame)
{
    const bool is_called = c->awaited_code == compat_get_code(frame) && !compat_has_started(frame);
    const bool is_awaited = is_called || find_generator(c, frame);

    if (!is_awaited)
        c->innermost->unexpected_frame = true;
    return is_awaited;
}

/* Does FRAME have the operands of the operation that called it, e.g. `a + b`, as its arguments? */
static bool has_awaited_arguments(const struct capture *c, compat_frame *frame)
{
    const struct call *call = c->awaited_call;

    if (!call)
        return true;
    if (call->count > compat_get_code(frame)->co_argcount)
        return false;
    for (int i = 0; i < call->count; i++)
        if (compat_get_local(frame, i) != call->args[i])
            return false;
    return true;
}

/* Open W for FRAME. GENERATOR is the shadow of the frame's generator; NULL if the frame is that of
 * the function which capture expects. Returns false if capture cannot step through the frame. */
static bool open_inner_frame(struct capture *c, PyThreadState *ts, struct watched *w,
                             compat_frame *frame, struct shadow *generator)
{
    if (c->failed || ts != c->ts)
        return false;
    if (generator && (generator->generator.lost || !shadow_save_for_undo(c, generator)))
        return false;
    if (!generator && !has_awaited_arguments(c, frame))
        return false;
    return !watched_begin_frame(c, w, frame);
}

/* Step through W, a frame of the function that capture expects. */
static enum ended watch_function(struct capture *c, struct watched *w)
{
    c->entered = true;
    w->function = c->awaited_function;
    memcpy(w->shadow, c->awaited, sizeof *w->shadow * (size_t)c->awaited_count);
    set_globals_source(c, w);
    return watch_frame(c, w);
}

/* Step through W, the frame of generator OF, from its last `yield` or its start. */
static enum ended watch_generator(struct capture *c, struct watched *w, struct shadow *of)
{
    if (resume_generator(c, w, of))
        return watch_frame(c, w);
    w->group = w->next;
    return break_graph(c, "call", "a generator that is not known");
}

/* Save the state of generator OF, which has yielded an item, has returned, or could not be stepped
 * further. */
static void save_generator_state(struct capture *c, const struct watched *w, struct shadow *of,
                                 enum ended ended)
{
    if (ended != ENDED_RETURN && ended != ENDED_YIELD) {
        of->generator.lost = true;
        return;
    }
    of->generator.given = c->returned_shadow;
    of->count = w->variables + w->depth - 1;
    if (ended == ENDED_YIELD)
        memcpy(of->items, w->shadow, sizeof *w->shadow * (size_t)of->count);
}

/* Release the frame of W, whose function has returned. Returns the function's result, a new
 * reference. */
static PyObject *release_returned_frame(struct capture *c, PyThreadState *ts, struct watched *w)
{
    compat_frame *frame = w->frame;
    PyObject *result = c->returned_shadow ? c->returned_shadow->value : NULL;

    if (w->op == RETURN_VALUE)
        result = stack_value(w, 0);
    Py_INCREF(result);
    c->stepped = result;
    stack_drop(w, w->depth);
    compat_prepare_to_continue(frame, 0, w->variables);
    watched_end_frame(c, w);
    compat_clear_frame(ts, frame);
    /* set both fields again, because calls inside the function have changed them */
    c->entered = true;
    c->inner_broke = false;
    return result;
}

/* Is W about to execute `raise StopIteration`, outside of any `try`? */
static bool is_raising_stop_iteration(struct capture *c, const struct watched *w)
{
    if (w->op != RAISE_VARARGS || !w->depth || stack_value(w, 0) != PyExc_StopIteration)
        return false;
    if (!ensure_value_known(c, PyExc_StopIteration, stack_shadow(w, 0)))
        return false;
    return !code_handles_exception(w->code, w->bytes, w->unit);
}

PyObject *capture_step(struct capture *c, PyThreadState *ts, compat_frame *frame)
{
    struct shadow *generator = find_generator(c, frame);
    struct tracer_exception pending = {0};
    struct watched w;
    enum ended ended;
    PyObject *result;
    bool broke, ends;
    int throws;

    if (!generator)
        c->awaited_code = NULL;
    if (!open_inner_frame(c, ts, &w, frame, generator)) {
        if (generator) {
            generator->generator.lost = true;
            c->inner_broke = true;
        }
        return shim->evaluate(ts, frame, 0);
    }
    c->inner_broke = false;
    ended = generator ? watch_generator(c, &w, generator) : watch_function(c, &w);
    broke = ended != ENDED_RETURN && ended != ENDED_YIELD;
    if (generator)
        save_generator_state(c, &w, generator, ended);
    else if (!broke)
        return release_returned_frame(c, ts, &w);
    ends = ended == ENDED_BEFORE && is_raising_stop_iteration(c, &w);
    throws = hand_frame_to_cpython(c, &w, ended, &pending);
    watched_end_frame(c, &w);
    tracer_restore_exception(&pending);
    result = capture_go_on(ts, frame, throws);
    if (!generator)
        c->entered = true;
    c->inner_broke = broke;
    c->ends = ends && !generator;
    return result;
}
