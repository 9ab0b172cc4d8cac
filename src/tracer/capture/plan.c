/* tracer/capture/plan.c -- what rebuilds variables and stack behind the graph. See capture.h.
 *
 * A plan is a constant of the code that takes a function's place, called there with those of its variables that are
 * needed. It reads what else it needs from the frame's globals and from there on by attribute and item, as the guards have just
 * done; calls the graph; makes containers anew. A container that two variables share is made once. */
#include "tracer/capture/capture.h"

#include <frameobject.h>

#include <structmember.h>

enum { MOST_EFFECTS = 16 }; /* arguments of one, with its callable */

struct maker {
    struct capture *c;
    const struct watched *w;
    struct plan *plan;
    struct shadow *given; /* a tuple: what the variables and the stack get; or NULL: it returns */
    char *why;
};

/* The number of a new recipe; -1: no memory. OBJECT is borrowed. */
static int add(struct maker *m, struct recipe recipe, PyObject *object)
{
    struct plan *plan = m->plan;

    if (plan->count == plan->room) {
        int room = 2 * plan->room + 16;
        struct recipe *more = PyMem_Realloc(plan->recipes, sizeof *more * (size_t)room);
        if (!more)
            return -1;
        plan->recipes = more;
        plan->room = room;
    }
    recipe.object = Py_XNewRef(object);
    recipe.when = recipe.how <= MAKE_OWN_CELL || (recipe.how <= MAKE_ITEM && plan->recipes[recipe.from].when == EARLY) ? EARLY
                  : recipe.how == MAKE_CALL ? LAST : LATE;
    if ((recipe.how == MAKE_ATTRIBUTE || recipe.how == MAKE_ITEM) && plan->recipes[recipe.from].when == LAST)
        recipe.when = LAST;
    for (int i = 0; i < recipe.count; i++) /* behind what it is made of */
        recipe.when = plan->recipes[recipe.items[i]].when == LAST ? LAST : recipe.when;
    plan->recipes[plan->count] = recipe;
    return plan->count++;
}

static int recipe_of(struct maker *m, struct shadow *shadow);

/* The numbers of the recipes of COUNT SHADOWS, new, in *NUMBERS. -1: one cannot be made, or no memory. */
static int recipes_of(struct maker *m, int **numbers, int *count, Py_ssize_t wanted, struct shadow *const *shadows)
{
    *numbers = PyMem_New(int, (size_t)wanted + 1);
    for (*count = 0; *numbers && *count < wanted; ++*count)
        if (((*numbers)[*count] = recipe_of(m, shadows[*count])) < 0)
            return -1;
    return *numbers ? 0 : -1;
}

/* A recipe that takes OBJECT from its place in LIST, where it is put if it is not there. */
static int taken_from(struct maker *m, PyObject *list, PyObject *object, int how)
{
    Py_ssize_t i = 0;

    while (i < PyList_GET_SIZE(list) && PyList_GET_ITEM(list, i) != object)
        i++;
    return i == PyList_GET_SIZE(list) && PyList_Append(list, object) ? -1 : add(m, (struct recipe){.how = how, .from = (int)i}, NULL);
}

/* What is read as the key of SHADOW from what its parent has. */
static int part_recipe(struct maker *m, int how, const struct shadow *shadow)
{
    const int parent = recipe_of(m, shadow->parent);

    return parent < 0 ? -1 : add(m, (struct recipe){.how = how, .from = parent}, shadow->key);
}

static int source_recipe(struct maker *m, struct shadow *shadow)
{
    struct capture *c = m->c;

    if (shadow == c->globals || shadow == c->builtins)
        return add(m, (struct recipe){.how = shadow == c->globals ? MAKE_GLOBALS : MAKE_BUILTINS}, NULL);
    if (shadow->parent == c->modules && shadow->value)
        return add(m, (struct recipe){.how = MAKE_CONST}, shadow->value);
    if (!shadow->key)
        return -1;
    if (shadow->step == 'C')
        return add(m, (struct recipe){.how = MAKE_CELL_OF, .from = (int)shadow->at}, NULL);
    if (shadow->step == 'l')
        return taken_from(m, c->arguments, shadow->key, MAKE_ARGUMENT);
    return part_recipe(m, shadow->step == '.' ? MAKE_ATTRIBUTE : MAKE_ITEM, shadow);
}

/* The number of MADE, with OBJECT (or NULL) and COUNT items; -1: one cannot be made. */
static int made_of(struct maker *m, struct recipe made, PyObject *object, Py_ssize_t count, struct shadow *const *items)
{
    const int number = recipes_of(m, &made.items, &made.count, count, items) ? -1 : add(m, made, object);

    if (number < 0)
        PyMem_Free(made.items);
    return number;
}

static int container_recipe(struct maker *m, struct shadow *shadow)
{
    static const unsigned char how[] = {[SHADOW_TUPLE] = MAKE_TUPLE, [SHADOW_LIST] = MAKE_LIST, [SHADOW_DICT] = MAKE_DICT, [SHADOW_SLICE] = MAKE_SLICE,
                                        [SHADOW_SUPER] = MAKE_SUPER, [SHADOW_OBJECT] = MAKE_OBJECT, [SHADOW_CALL] = MAKE_CALL};
    struct recipe made = {.how = how[shadow->kind], .from = (int)shadow->at};
    const bool keyed = shadow->kind == SHADOW_DICT || shadow->kind == SHADOW_OBJECT;
    OWNED PyObject *keys = keyed ? PyTuple_New(shadow->count) : NULL;

    if ((keyed && !keys) || (shadow->kind == SHADOW_OBJECT && (made.from = recipe_of(m, shadow->parent)) < 0))
        return -1;
    for (Py_ssize_t i = 0; keys && i < shadow->count; i++)
        PyTuple_SET_ITEM(keys, i, Py_NewRef(shadow->keys[i]));
    return made_of(m, made, keys, shadow->count, shadow->items);
}

/* The cell of SHADOW: one of the frame's own, as long as that goes on. */
static int cell_recipe(struct maker *m, struct shadow *shadow)
{
    if (shadow->guarded)
        return recipe_of(m, shadow->parent);
    for (int i = 0; m->given && i < m->w->variables; i++)
        if (m->w->shadow[i] == shadow)
            return m->w->resumed ? -1 : add(m, (struct recipe){.how = MAKE_OWN_CELL, .from = i}, NULL);
    return made_of(m, (struct recipe){.how = MAKE_NEW_CELL}, NULL, shadow->items[0] != NULL, shadow->items);
}

static int function_recipe(struct maker *m, struct shadow *shadow)
{
    struct recipe made = {.how = MAKE_NEW_FUNCTION, .from = recipe_of(m, shadow->child)};
    struct shadow *none = shadow_const(m->c, Py_None), *all = shadow_new(m->c, SHADOW_TUPLE, shadow->count + 2);

    for (Py_ssize_t i = 0; all && i < shadow->count; i++)
        shadow_add(m->c, all, NULL, shadow->items[i]);
    if (made.from < 0 || !none || !all || shadow_add(m->c, all, NULL, shadow->parent ? shadow->parent : none) ||
        shadow_add(m->c, all, NULL, shadow->next ? shadow->next : none))
        return -1;
    return made_of(m, made, shadow->key, all->count, all->items);
}

/* -1: it cannot be made. */
static int recipe_of(struct maker *m, struct shadow *shadow)
{
    int made = -1;

    if (!shadow)
        return -1;
    if (shadow->recipe)
        return shadow->recipe - 1;
    if (shadow->origin)
        return recipe_of(m, shadow->origin);
    if (Py_EnterRecursiveCall(" while a graph is made"))
        return PyErr_Clear(), -1;
    shadow->recipe = -1; /* what is in itself cannot be made */
    if (shadow->kind == SHADOW_CONST)
        made = shadow->value ? add(m, (struct recipe){.how = MAKE_CONST}, shadow->value) : -1;
    else if (shadow->kind == SHADOW_SOURCE)
        made = source_recipe(m, shadow);
    else if (shadow->kind == SHADOW_NODE)
        made = taken_from(m, m->plan->outputs, shadow->node, MAKE_OUTPUT);
    else if (shadow->kind <= SHADOW_SUPER)
        made = container_recipe(m, shadow);
    else if (shadow->kind == SHADOW_METHOD)
        made = part_recipe(m, MAKE_ATTRIBUTE, shadow);
    else if (shadow->kind == SHADOW_FUNCTION)
        made = function_recipe(m, shadow);
    else if (shadow->kind == SHADOW_CELL)
        made = cell_recipe(m, shadow);
    Py_LeaveRecursiveCall();
    shadow->recipe = made + 1;
    return made;
}

static bool is_cell(const struct watched *w, int variable)
{
    PyObject *value = compat_local(w->frame, variable);

    return value && _PyLocals_GetKind(w->code->co_localspluskinds, variable) & (CO_FAST_CELL | CO_FAST_FREE) && PyCell_Check(value);
}

static int append_number(PyObject *list, long number)
{
    OWNED PyObject *made = PyLong_FromLong(number);

    return made ? PyList_Append(list, made) : -1;
}

/* What SHADOW has, which was VALUE (or NULL) when it was watched, is given. -1: it cannot be made. */
static int give(struct maker *m, struct shadow *shadow, PyObject *value)
{
    return recipe_of(m, shadow) < 0 || shadow_add(m->c, m->given, NULL, shadow) || (value && PyList_Append(m->c->values, value)) ? -1 : 0;
}

/* Variable I of W is given, or deleted, if it is another than at the beginning. -1: it cannot be made. */
static int add_variable(struct maker *m, int i)
{
    const struct watched *w = m->w;
    PyObject *value = compat_local(w->frame, i);
    struct shadow *shadow = w->shadow[i], *before = m->c->initial[i];

    if (is_cell(w, i)) {
        if (!shadow || shadow->kind != SHADOW_CELL || shadow->guarded)
            return 0; /* it is not ours to set */
        value = PyCell_GET(value);
        shadow = shadow->items[0];
        if (!value && !before)
            return 0;
    }
    if (!value)
        return before ? append_number(m->c->deletes, i) : 0;
    if (shadow && shadow == before)
        return 0;
    if (give(m, shadow, value)) {
        snprintf(m->why, 200, "its variable %.60s has a %.60s there that cannot be made again",
                 PyUnicode_AsUTF8(PyTuple_GET_ITEM(w->code->co_localsplusnames, i)), Py_TYPE(value)->tp_name);
        PyErr_Clear();
        return -1;
    }
    return append_number(m->c->stores, i);
}

static int add_state(struct maker *m, struct shadow *const *shadows, int depth)
{
    for (int i = 0; i < m->w->variables; i++)
        if (add_variable(m, i))
            return -1;
    for (int i = 0; i < depth; i++)
        if (PyList_Append(m->c->slots, shadows[i] == &shadow_of_null ? Py_False : Py_True))
            return -1;
    for (int i = depth - 1; i >= 0; i--)
        if (shadows[i] != &shadow_of_null && give(m, shadows[i], compat_local(m->w->frame, m->w->variables + i))) {
            snprintf(m->why, 200, "a value on its stack there cannot be made again");
            return -1;
        }
    return 0;
}

static PyObject *call_plan(PyObject *object, PyObject *const *args, size_t count, PyObject *names);

struct plan *plan_make(struct capture *c, const struct watched *w, struct shadow *const *shadows, int depth, struct shadow *returned, char why[200])
{
    struct plan *plan = PyObject_New(struct plan, &plan_type);
    struct maker m = {c, w, plan, returned ? NULL : shadow_new(c, SHADOW_TUPLE, 0), why};
    int status;

    snprintf(why, 200, "no memory");
    if (!plan)
        return NULL;
    memset((char *)plan + sizeof(PyObject), 0, sizeof *plan - sizeof(PyObject));
    plan->call = call_plan;
    plan->outputs = PyList_New(0);
    plan->name = PyUnicode_FromString("graph");
    plan->places = Py_NewRef(c->places);
    plan->code = Py_NewRef((PyObject *)w->code);
    status = plan->outputs && plan->name ? recipes_of(&m, &plan->inputs, &plan->input_count, c->taken->count, c->taken->items) : -1;
    plan->again = c->attempted;
    for (Py_ssize_t i = 0; i < c->effects->count && !status; i++) /* in their order */
        status = recipe_of(&m, c->effects->items[i]) < 0 ? -1 : 0;
    if (!status && returned)
        snprintf(why, 200, "what it returns cannot be made again");
    else if (!status && m.given)
        status = add_state(&m, shadows, depth);
    plan->result = status ? -1 : recipe_of(&m, returned ? returned : m.given);
    plan->argument_count = (int)PyList_GET_SIZE(c->arguments);
    if (plan->result < 0) {
        PyErr_Clear();
        Py_CLEAR(plan);
    }
    return plan;
}

PyObject *plan_values(const struct capture *c, const struct watched *w)
{
    PyObject *cells = PyTuple_New(w->variables);

    for (int i = 0; cells && i < w->variables; i++)
        PyTuple_SET_ITEM(cells, i, Py_NewRef(!w->resumed && is_cell(w, i) ? compat_local(w->frame, i) : Py_None));
    return Py_BuildValue("(NN)", PyList_AsTuple(c->values), cells);
}

/* ---- a plan that runs ---- */

static PyObject *make_function(const struct recipe *recipe, PyObject *const *made)
{
    const int cells = ((PyCodeObject *)recipe->object)->co_nfreevars;
    PyFunctionObject *function = (PyFunctionObject *)PyFunction_New(recipe->object, made[recipe->from]);

    if (!function)
        return NULL;
    if (cells && (function->func_closure = PyTuple_New(cells)))
        for (int i = 0; i < cells; i++)
            PyTuple_SET_ITEM(function->func_closure, i, Py_NewRef(made[recipe->items[i]]));
    for (int i = 0; i < 2; i++) {
        PyObject *defaults = made[recipe->items[cells + i]];
        if (defaults != Py_None)
            *(i ? &function->func_kwdefaults : &function->func_defaults) = Py_NewRef(defaults);
    }
    if (cells && !function->func_closure)
        Py_CLEAR(function);
    return (PyObject *)function;
}

static PyObject *make_container(const struct recipe *recipe, PyObject *const *made)
{
    PyObject *container, *args[MOST_EFFECTS];

    if (recipe->how == MAKE_CALL) {
        for (int i = 0; i < recipe->count; i++)
            args[i] = made[recipe->items[i]];
        return PyObject_Vectorcall(args[0], args + 1, (size_t)recipe->count - 1, NULL);
    }
    if (recipe->how == MAKE_NEW_CELL)
        return PyCell_New(recipe->count ? made[recipe->items[0]] : NULL);
    if (recipe->how == MAKE_NEW_FUNCTION)
        return make_function(recipe, made);
    if (recipe->how == MAKE_SLICE)
        return PySlice_New(made[recipe->items[0]], made[recipe->items[1]], made[recipe->items[2]]);
    if (recipe->how == MAKE_SUPER)
        return PyObject_CallFunctionObjArgs((PyObject *)&PySuper_Type, made[recipe->items[0]], made[recipe->items[1]], NULL);
    if (recipe->how == MAKE_DICT || recipe->how == MAKE_OBJECT) {
        OWNED PyObject *nothing = PyTuple_New(0);
        int (*const set)(PyObject *, PyObject *, PyObject *) = recipe->how == MAKE_DICT ? PyDict_SetItem : PyObject_GenericSetAttr;
        container = set == PyDict_SetItem ? PyDict_New() : nothing ? PyBaseObject_Type.tp_new((PyTypeObject *)made[recipe->from], nothing, NULL) : NULL;
        for (int i = 0; container && i < recipe->count; i++)
            if (set(container, PyTuple_GET_ITEM(recipe->object, i), made[recipe->items[i]]))
                Py_CLEAR(container);
        return container;
    }
    container = PyTuple_New(recipe->count);
    for (int i = 0; container && i < recipe->count; i++)
        PyTuple_SET_ITEM(container, i, Py_NewRef(made[recipe->items[i]]));
    if (container && recipe->how == MAKE_LIST)
        Py_SETREF(container, PySequence_List(container));
    return container;
}

/* Where the code that PLAN is in has variable I of what it was made of: behind those that it has more, as in dyntrace._assemble. */
static int moved_in(const struct plan *plan, compat_frame *frame, int i)
{
    const PyCodeObject *of = (const PyCodeObject *)plan->code;

    return i + (i < of->co_nlocals ? 0 : compat_code(frame)->co_nlocals - of->co_nlocals);
}

static PyObject *make_one(const struct plan *plan, const struct recipe *recipe, PyObject *const *made, PyObject *const *args, PyObject *outputs,
                          compat_frame *frame)
{
    PyObject *found;

    switch (recipe->how) {
    case MAKE_CONST:
        return Py_NewRef(recipe->object);
    case MAKE_ARGUMENT:
        return Py_NewRef(args[recipe->from]);
    case MAKE_GLOBALS:
    case MAKE_BUILTINS:
        return Py_NewRef(recipe->how == MAKE_GLOBALS ? frame->f_globals : frame->f_builtins);
    case MAKE_CELL_OF:
        return Py_NewRef(PyTuple_GET_ITEM(compat_function(frame)->func_closure, recipe->from));
    case MAKE_OWN_CELL:
        found = compat_local(frame, moved_in(plan, frame, recipe->from));
        return found && PyCell_Check(found) ? Py_NewRef(found) : PyErr_Format(PyExc_SystemError, "a frame without its cells");
    case MAKE_ATTRIBUTE:
        return PyObject_GetAttr(made[recipe->from], recipe->object);
    case MAKE_ITEM:
        return PyObject_GetItem(made[recipe->from], recipe->object);
    case MAKE_OUTPUT:
        return Py_NewRef(PyTuple_GET_ITEM(outputs, recipe->from));
    default:
        return make_container(recipe, made);
    }
}

/* The pending exception was raised UNIT's line in CODE. */
static void add_traceback(PyObject *code, PyObject *unit)
{
    PyCodeObject *of = (PyCodeObject *)code;
    const char *name, *file;
    KEPT struct tracer_exception raised = tracer_exception_aside();

    name = PyUnicode_AsUTF8(of->co_name);
    file = PyUnicode_AsUTF8(of->co_filename);
    PyErr_Clear();
    if (!name || !file)
        return;
    tracer_exception_back(&raised);
    _PyTraceback_Add(name, file, PyCode_Addr2Line(of, 2 * (int)PyLong_AsLong(unit)));
    raised = tracer_exception_aside();
}

/* The graph has raised RAISED. If what ran it has called the function of its source, one line for each node: the number of that which raised,
 * and in *LOCALS what the function had, a new reference. Else -1. */
static Py_ssize_t node_reached(const struct plan *plan, const struct tracer_exception *raised, PyObject **locals)
{
    PyObject *code = plan->forward && PyFunction_Check(plan->forward) ? PyFunction_GET_CODE(plan->forward) : NULL;
    Py_ssize_t node = -1;

    for (const PyTracebackObject *at = (const PyTracebackObject *)raised->traceback; at && PyTraceBack_Check(at) && node < 0; at = at->tb_next) {
        OWNED PyObject *of = (PyObject *)PyFrame_GetCode(at->tb_frame);
        if (of != code)
            continue;
        node = PyCode_Addr2Line((PyCodeObject *)of, at->tb_lasti) - ((PyCodeObject *)of)->co_firstlineno - 1;
        *locals = PyFrame_GetLocals(at->tb_frame);
    }
    return *locals && node < PyList_GET_SIZE(plan->places) ? node : -1;
}

/* The traceback has the lines of the user's code for NODE, and not FRAME. */
static void tell_place(const struct plan *plan, Py_ssize_t node, compat_frame *frame)
{
    PyObject *place = PyList_GET_ITEM(plan->places, node);

    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(place); i += 2)
        add_traceback(PyTuple_GET_ITEM(place, i), PyTuple_GET_ITEM(place, i + 1));
    compat_hide(frame);
}

static PyObject *run_graph(struct plan *plan, PyObject **made)
{
    PyObject *small[32], **args = plan->input_count < 31 ? small : PyMem_New(PyObject *, (size_t)plan->input_count + 1), *outputs;
    OWNED PyObject *callable = Py_NewRef(plan->callable);
    struct tracer *t = tracer_thread;
    PyObject *before;

    if (!args)
        return PyErr_NoMemory();
    for (int i = 0; i < plan->input_count; i++)
        args[i + 1] = made[plan->inputs[i]];
    /* What the backend made is not captured. */
    before = t ? t->callback : NULL;
    if (before)
        t->callback = NULL;
    outputs = PyObject_Vectorcall(callable, args + 1, (size_t)plan->input_count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (before && !t->callback)
        t->callback = before;
    else
        Py_XDECREF(before);
    if (args != small)
        PyMem_Free(args);
    if (outputs && (PyList_CheckExact(outputs)))
        Py_SETREF(outputs, PyList_AsTuple(outputs));
    if (outputs && (!PyTuple_CheckExact(outputs) || PyTuple_GET_SIZE(outputs) != PyList_GET_SIZE(plan->outputs))) {
        PyErr_Format(PyExc_TypeError, "the backend's function for %U gave a %s, not the %zd values that the graph gives: return a tuple of them",
                     plan->name, Py_TYPE(outputs)->tp_name, PyList_GET_SIZE(plan->outputs));
        Py_CLEAR(outputs);
    }
    return outputs;
}

/* What the graph would have given, as far as it is among LOCALS, those of the function of its source: a new tuple with NULLs. */
static PyObject *outputs_among(const struct plan *plan, PyObject *locals)
{
    PyObject *made = PyTuple_New(PyList_GET_SIZE(plan->outputs));

    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(made); i++) {
        OWNED PyObject *name = PyObject_GetAttrString(PyList_GET_ITEM(plan->outputs, i), "name"), *value = name ? PyObject_GetItem(locals, name) : NULL;
        PyTuple_SET_ITEM(made, i, Py_XNewRef(value));
        PyErr_Clear();
    }
    return made;
}

/* The graph came to its node REACHED, and raised: is RECIPE an effect before that, or something for one? */
static bool may_make(const struct recipe *recipe, PyObject *const *made, PyObject *outputs, Py_ssize_t reached)
{
    for (int i = 0; i < recipe->count; i++)
        if (!made[recipe->items[i]])
            return false;
    if (recipe->how == MAKE_NEW_FUNCTION && !made[recipe->from])
        return false;
    return recipe->how == MAKE_OUTPUT ? PyTuple_GET_ITEM(outputs, recipe->from) != NULL
           : recipe->how == MAKE_CALL ? recipe->from <= reached : (recipe->how != MAKE_ATTRIBUTE && recipe->how != MAKE_ITEM) || made[recipe->from];
}

/* The first run: what it gives is there. */
static PyObject *replayed(struct plan *plan)
{
    struct capture_going *going = tracer_thread ? tracer_thread->replay : NULL;
    PyObject *values;

    if (!going || going->plan != (PyObject *)plan || going->frame != compat_current_frame(PyThreadState_Get()))
        return NULL;
    for (int i = 0; i < PyTuple_GET_SIZE(PyTuple_GET_ITEM(going->values, 1)); i++) {
        PyObject *cell = PyTuple_GET_ITEM(PyTuple_GET_ITEM(going->values, 1), i);
        if (cell != Py_None) {
            compat_drop_local(going->frame, moved_in(plan, going->frame, i));
            compat_give_local(going->frame, moved_in(plan, going->frame, i), Py_NewRef(cell));
        }
    }
    values = Py_NewRef(PyTuple_GET_ITEM(going->values, 0));
    Py_CLEAR(going->values);
    tracer_thread->replay = NULL;
    return values;
}

static PyObject *call_plan(PyObject *object, PyObject *const *args, size_t given, PyObject *names)
{
    struct plan *plan = (struct plan *)object;
    compat_frame *frame = compat_current_frame(PyThreadState_Get());
    PyObject *small[64], **made, *result = replayed(plan);
    OWNED PyObject *outputs = NULL, *locals = NULL;
    struct tracer_exception raised = {0};
    Py_ssize_t reached = -1;
    bool good = true;

    if (result)
        return result;
    if (PyVectorcall_NARGS(given) != plan->argument_count || names || !frame)
        return PyErr_Format(PyExc_TypeError, "only code that dyntrace made may call %U", plan->name);
    made = plan->count <= 64 ? small : PyMem_New(PyObject *, (size_t)plan->count);
    if (!made)
        return PyErr_NoMemory();
    memset(made, 0, sizeof *made * (size_t)plan->count);
    for (unsigned when = EARLY; when <= LAST && good; when++) {
        if (when == LATE && plan->callable && !(outputs = run_graph(plan, made))) {
            raised = tracer_exception_aside();
            if (plan->again) {
                result = Py_NewRef(object);
                break;
            }
            reached = node_reached(plan, &raised, &locals);
            good = reached >= 0 && (outputs = outputs_among(plan, locals));
        }
        for (int i = 0; i < plan->count && good; i++)
            if (plan->recipes[i].when == when && (!raised.type || may_make(&plan->recipes[i], made, outputs, reached)))
                good = (made[i] = make_one(plan, &plan->recipes[i], made, args, outputs, frame)) != NULL;
    }
    if (result) {
        if (!PyErr_GivenExceptionMatches(raised.type, PyExc_Exception)) /* a signal's handler has raised that: it is to come where it is */
            PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), raised.type);
        tracer_exception_drop(&raised);
        good = false;
    } else if (raised.type) {
        PyErr_Clear();
        tracer_exception_back(&raised);
        if (reached >= 0)
            tell_place(plan, reached, frame);
        good = false;
    }
    if (good)
        result = Py_NewRef(made[plan->result]);
    for (int i = 0; i < plan->count; i++)
        Py_XDECREF(made[i]);
    if (made != small)
        PyMem_Free(made);
    return result;
}

static void plan_free(PyObject *object)
{
    struct plan *plan = (struct plan *)object;

    for (int i = 0; i < plan->count; i++) {
        Py_XDECREF(plan->recipes[i].object);
        PyMem_Free(plan->recipes[i].items);
    }
    PyMem_Free(plan->recipes);
    PyMem_Free(plan->inputs);
    Py_XDECREF(plan->name);
    Py_XDECREF(plan->callable);
    Py_XDECREF(plan->forward);
    Py_XDECREF(plan->outputs);
    Py_XDECREF(plan->places);
    Py_XDECREF(plan->code);
    PyObject_Free(object);
}

static PyObject *plan_repr(PyObject *object)
{
    PyObject *name = ((struct plan *)object)->name;

    return name && PyUnicode_Check(name) ? Py_NewRef(name) : PyUnicode_FromString("graph");
}

static PyMemberDef plan_members[] = {
    {"name", T_OBJECT_EX, offsetof(struct plan, name), 0, "What the graph is called."},
    {"callable", T_OBJECT_EX, offsetof(struct plan, callable), READONLY, "What the backend made of it."},
    {"forward", T_OBJECT, offsetof(struct plan, forward), 0, "The function of its source."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject plan_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dyntrace.Plan",
    .tp_basicsize = sizeof(struct plan),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Runs a graph in the code that was made for it, and gives that the values behind it.",
    .tp_dealloc = plan_free,
    .tp_repr = plan_repr,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(struct plan, call),
    .tp_members = plan_members,
};
