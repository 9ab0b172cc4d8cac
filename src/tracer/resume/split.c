/* tracer/resume/split.c -- a function split at an instruction, and dyntrace.resume's functions.
 *
 * Runs in: the traced process, under the GIL.
 *
 *     resume    the original with a prologue in front: the stack back in its place, then a jump to the offset. Arguments: variables
 *               that may be bound there, in their order, then slots of the stack. Cells come as free variables, and are put where
 *               the original has them, too: what CPython says of an unbound variable depends on that
 *     prefix    the original with an epilogue before the offset: the stack into variables, then the call (links.c)
 *
 * A resume function that is split again goes on in the same resume function as the original, split there, would: its constant
 * `enter` knows which offset that is. What was made of a code object is kept with its state, until a reset; nothing of it holds
 * that code object. */
#include "tracer/evaluator/cache.h"
#include "tracer/resume/analyse.h"
#include "tracer/resume/links.h"
#include "tracer/resume/resume.h"

#include <structmember.h>

static const char TEMPORARY[] = "___stack";

struct split {
    PyObject_HEAD
    PyObject *prefix, *resume; /* owned: code */
    PyObject *stack, *locals;  /* owned: tuples of str */
    struct leave *leave;       /* owned */
    PyObject *origin;          /* owned: weak reference */
    Py_ssize_t offset;
};

/* What split(), points() and why_not() begin with. */
struct request {
    PyCodeObject *code;        /* borrowed: as it was given */
    PyObject *held;            /* owned: the original */
    const struct enter *enter; /* borrowed: CODE is a resume function; or NULL */
    struct analysis a;         /* of the original */
    const char *why;           /* no split can be made; or NULL */
};

/* ---- a code object made of another ---- */

static PyObject *make_code(PyCodeObject *code, struct program *p, PyObject *changes)
{
    static const char *const names[3] = {"co_code", "co_linetable", "co_exceptiontable"};
    OWNED PyObject *replace = tracer_attribute((PyObject *)code, "replace"), *none = PyTuple_New(0);
    PyObject *part[3] = {NULL, NULL, NULL}, *made = NULL;
    int status = changes && replace && none ? program_code(p, part) : -1;

    for (int i = 0; i < 3 && !status; i++)
        status = PyDict_SetItemString(changes, names[i], part[i]);
    if (!status)
        made = PyObject_Call(replace, none, changes);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(part[i]);
    Py_XDECREF(changes);
    return made;
}

static PyObject *temporary(int32_t slot)
{
    return PyUnicode_FromFormat("%s%d", TEMPORARY, (int)slot);
}

/* -1, or that of NAME's variable in CODE. */
static int variable_of(PyCodeObject *code, PyObject *name)
{
    for (int i = 0; i < code->co_nlocals; i++)
        if (!PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, i), name))
            return i;
    return -1;
}

static PyObject *more_constants(PyCodeObject *code, PyObject *more)
{
    PyObject *made = more ? PySequence_Concat(code->co_consts, more) : NULL;

    Py_XDECREF(more);
    return made;
}

static void rename_variables(struct program *p, const int32_t *map)
{
    for (int32_t i = 0; i < p->count; i++)
        if (compat_has_variable(p->steps[i].op))
            p->steps[i].arg = (uint32_t)map[p->steps[i].arg];
}

/* Step N; the number of the next. */
static int32_t put(struct step *steps, int32_t n, int op, uint32_t arg, int32_t to)
{
    steps[n] = (struct step){.op = (uint8_t)op, .silent = true, .arg = arg, .to = to};
    return n + 1;
}

/* The call of constant number CONSTANT. */
static int32_t put_call(struct step *steps, uint32_t constant)
{
    for (int i = 0; i < compat_call_length; i++)
        put(steps, i, compat_call[i].op, compat_call[i].op == LOAD_CONST ? constant : 0, -1);
    return compat_call_length;
}

/* ---- the first part ---- */

/* Variables for DEPTH slots of the stack, behind those that CODE has: all names, and where each slot's is. */
static PyObject *temporaries(PyCodeObject *code, int32_t depth, uint32_t *where)
{
    PyObject *names = PyList_New(0);
    int status = names ? 0 : -1;

    for (int i = 0; i < code->co_nlocals && !status; i++)
        status = PyList_Append(names, PyTuple_GET_ITEM(code->co_localsplusnames, i));
    for (int32_t slot = 0; slot < depth && !status; slot++) {
        OWNED PyObject *name = temporary(slot);
        int at = name ? variable_of(code, name) : -1;
        where[slot] = (uint32_t)(at >= 0 ? at : PyList_GET_SIZE(names));
        status = !name ? -1 : at >= 0 ? 0 : PyList_Append(names, name);
    }
    if (!status)
        Py_SETREF(names, PyList_AsTuple(names));
    else
        Py_CLEAR(names);
    return names;
}

/* CODE, which P is of, until STEP, where the stack has DEPTH slots and LEAVE takes over. BEGINS: the step that leads there
 * where a resume function begins; it goes on and leaves when it comes there again, in a loop. Or -1. */
static PyObject *make_prefix(PyCodeObject *code, struct program *p, int32_t step, int32_t depth, struct leave *leave, int32_t begins)
{
    struct step *steps = calloc((size_t)(depth + compat_call_length + 1), sizeof *steps);
    int32_t *map = malloc(sizeof *map * (size_t)(code->co_nlocalsplus + 1)), count = 0;
    uint32_t *where = malloc(sizeof *where * (size_t)(depth + 1));
    OWNED PyObject *names = NULL, *constants = NULL;
    PyObject *made = NULL;
    int status;

    if (!steps || !map || !where)
        PyErr_NoMemory();
    else if ((constants = more_constants(code, Py_BuildValue("(O)", leave))))
        names = temporaries(code, depth, where);
    if (names) {
        int added = (int)PyTuple_GET_SIZE(names) - code->co_nlocals;
        for (int32_t i = 0; i < code->co_nlocalsplus; i++)
            map[i] = i < code->co_nlocals ? i : i + added;
        rename_variables(p, map);
        while (count < depth)
            count = put(steps, count, STORE_FAST, where[depth - 1 - count], -1);
        count += put_call(steps + count, (uint32_t)PyTuple_GET_SIZE(constants) - 1);
        count = put(steps, count, RETURN_VALUE, 0, -1);
        status = program_insert(p, step, steps, count, true);
        if (begins >= 0)
            p->steps[begins].to = step + count;
        if (!status)
            made = make_code(code, p,
                             Py_BuildValue("{s:O,s:n,s:O,s:i}", "co_varnames", names, "co_nlocals", PyTuple_GET_SIZE(names),
                                           "co_consts", constants, "co_stacksize",
                                           code->co_stacksize < compat_call_length ? compat_call_length : code->co_stacksize));
    }
    free(steps);
    free(map);
    free(where);
    return made;
}

/* ---- the second part ---- */

struct layout {
    PyObject *names, *cells, *free; /* owned: lists: of variables, arguments first; of cells; of these and free variables */
    PyObject *stack;                 /* owned: list: of what slots hold */
    int32_t *map;                    /* owned: from the original's variables */
    int locals, taken, arguments, apart; /* apart: cells that are no arguments */
};

static void layout_close(struct layout *l)
{
    Py_XDECREF(l->names);
    Py_XDECREF(l->cells);
    Py_XDECREF(l->free);
    Py_XDECREF(l->stack);
    free(l->map);
}

/* super() without arguments takes the first argument of the frame, and has a message if there are none. */
static bool calls_super(PyCodeObject *code)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); i++)
        if (!PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_names, i), "super"))
            return true;
    return false;
}

/* The variables of CODE for which KIND is 0: arguments, 1: other variables, 2: cells, 3: free variables come next; 4: cells that
 * an inlined comprehension has taken, which are arguments besides. A cell that is an argument, too, lies there. */
static int lay_variables(struct layout *l, PyCodeObject *code, const unsigned char *slots, int kind)
{
    bool super = code->co_argcount && calls_super(code);

    for (int i = 0; i < code->co_nlocalsplus; i++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        int flags = _PyLocals_GetKind(code->co_localspluskinds, i);
        int is = flags & CO_FAST_FREE ? 3 : flags & CO_FAST_CELL ? 2 : (slots[i] & SLOT_VALUE) || (!i && super) ? 0 : 1;
        bool argument = kind == 4 ? is == 2 && slots[i] != SLOT_CELL : !kind && is == 2 && !i && super && slots[i] == SLOT_CELL;

        if ((kind < 2 && is == kind) || argument) {
            l->map[i] = (int32_t)PyList_GET_SIZE(l->names);
            if (PyList_Append(l->names, name))
                return -1;
        } else if (is == kind) {
            if (is == 3)
                l->map[i] = (int32_t)(PyList_GET_SIZE(l->names) + l->apart + PyList_GET_SIZE(l->free));
            else if (l->map[i] < 0)
                l->map[i] = (int32_t)PyList_GET_SIZE(l->names) + l->apart++;
            if (PyList_Append(l->free, name) || (is == 2 && PyList_Append(l->cells, name)))
                return -1;
        }
    }
    return 0;
}

static int lay_stack(struct layout *l, const unsigned char *stack, int32_t depth)
{
    for (int32_t slot = 0; slot < depth; slot++) {
        bool value = stack[slot] & (SLOT_VALUE | SLOT_CELL);
        OWNED PyObject *name = temporary(slot);
        OWNED PyObject *word = PyUnicode_FromString(!value ? "NULL" : !(stack[slot] & SLOT_NULL) ? "value" : "value or NULL");
        if (!name || !word || PyList_Append(l->stack, word) || (value && PyList_Append(l->names, name)))
            return -1;
    }
    return 0;
}

static int lay_out(struct layout *l, PyCodeObject *code, const unsigned char *slots, int32_t depth)
{
    *l = (struct layout){.names = PyList_New(0), .cells = PyList_New(0), .free = PyList_New(0), .stack = PyList_New(0)};
    l->map = malloc(sizeof *l->map * (size_t)(code->co_nlocalsplus + 1));
    if (!l->map)
        PyErr_NoMemory();
    else
        memset(l->map, -1, sizeof *l->map * (size_t)code->co_nlocalsplus);
    if (!l->names || !l->cells || !l->free || !l->stack || !l->map || lay_variables(l, code, slots, 0))
        return -1;
    l->locals = (int)PyList_GET_SIZE(l->names);
    if (lay_variables(l, code, slots, 4))
        return -1;
    l->taken = (int)PyList_GET_SIZE(l->names);
    if (lay_stack(l, slots + code->co_nlocalsplus, depth))
        return -1;
    l->arguments = (int)PyList_GET_SIZE(l->names);
    return lay_variables(l, code, slots, 1) || lay_variables(l, code, slots, 2) || lay_variables(l, code, slots, 3) ? -1 : 0;
}

/* The steps before the second part, which goes on at STEP: their number. CONSTANT: resume_unbound's, enter's follows. */
static int32_t put_prologue(struct step *steps, const struct layout *l, const struct analysis *a, int32_t step, uint32_t constant)
{
    const unsigned char *stack = analysis_slots(a, step) + a->variables;
    uint32_t argument = (uint32_t)l->taken;
    int32_t n = 0;

    if (PyList_GET_SIZE(l->free))
        n = put(steps, n, COPY_FREE_VARS, (uint32_t)PyList_GET_SIZE(l->free), -1);
    steps[n++] = (struct step){.op = RESUME, .to = -1, .from = a->program.steps[a->begun].from};
    for (int32_t slot = 0; slot < a->depth[step]; slot++) {
        if (!(stack[slot] & (SLOT_VALUE | SLOT_CELL))) {
            n = put(steps, n, PUSH_NULL, 0, -1);
            continue;
        }
        n = put(steps, n, LOAD_FAST, argument, -1);
        if (stack[slot] & SLOT_NULL) {
            n = put(steps, n, LOAD_CONST, constant, -1);
            n = put(steps, n, IS_OP, 0, -1);
            n = put(steps, n, compat_jump_if_false, 0, n + 3);
            n = put(steps, n, PUSH_NULL, 0, -1);
            n = put(steps, n, JUMP_FORWARD, 0, n + 2);
            n = put(steps, n, LOAD_FAST, argument, -1);
        }
        argument++;
    }
    n += put_call(steps + n, constant + 1);
    n = put(steps, n, POP_TOP, 0, -1);
    return put(steps, n, JUMP_FORWARD, 0, n + 1 + step);
}

/* Where the instructions of the second part, P, come from. */
static int map_units(struct enter *enter, const struct program *p)
{
    enter->unit = malloc(sizeof *enter->unit * (size_t)p->units);
    if (!enter->unit) {
        PyErr_NoMemory();
        return -1;
    }
    enter->units = p->units;
    memset(enter->unit, -1, sizeof *enter->unit * (size_t)p->units);
    for (int32_t i = 0; i < p->count; i++)
        if (p->steps[i].starts)
            enter->unit[p->steps[i].at] = p->steps[i].from;
    return 0;
}

static PyObject *make_resume(PyCodeObject *code, struct analysis *a, int32_t step, const struct layout *l, struct enter *enter)
{
    static long numbers;
    struct program *p = &a->program;
    int32_t depth = a->depth[step], from = p->steps[step].from;
    struct step *steps = calloc((size_t)(7 * depth + compat_call_length + 4), sizeof *steps);
    int most = depth + 4;
    bool bare = !code->co_argcount && calls_super(code);
    const char *qualname = PyUnicode_AsUTF8(code->co_qualname), *dot = qualname ? strrchr(qualname, '.') : NULL;
    OWNED PyObject *name = PyUnicode_FromFormat("__resume_at_%d_%ld", (int)(2 * from), enter->number = numbers++);
    OWNED PyObject *path = NULL, *constants = NULL, *names = PyList_AsTuple(l->names), *cells = PyList_AsTuple(l->cells), *free_ = PyList_AsTuple(l->free);
    PyObject *made = NULL;

    PyErr_Clear(); /* a name that is no UTF-8 */
    constants = more_constants(code, Py_BuildValue("(OO)", &resume_unbound, enter));
    if (name)
        path = dot ? PyUnicode_FromFormat("%.*s.%U", (int)(dot - qualname), qualname, name) : Py_NewRef(name);
    if (steps && path && constants && names && cells && free_) {
        int32_t count = put_prologue(steps, l, a, step, (uint32_t)PyTuple_GET_SIZE(constants) - 2);
        rename_variables(p, l->map);
        if (!program_insert(p, 0, steps, count, false))
            made = make_code(code, p,
                             Py_BuildValue("{s:O,s:O,s:i,s:i,s:i,s:i,s:n,s:O,s:O,s:O,s:O,s:i}", "co_name", name,
                                           "co_qualname", path, "co_flags",
                                           code->co_flags & ~(CO_VARARGS | CO_VARKEYWORDS), "co_argcount", bare ? 0 : l->arguments,
                                           "co_posonlyargcount", 0, "co_kwonlyargcount", bare ? l->arguments : 0, "co_nlocals",
                                           PyTuple_GET_SIZE(names), "co_varnames", names, "co_consts", constants,
                                           "co_cellvars", cells, "co_freevars", free_, "co_stacksize",
                                           code->co_stacksize < most ? most : code->co_stacksize));
        if (made && map_units(enter, p))
            Py_CLEAR(made);
        enter->made = (PyCodeObject *)made;
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    free(steps);
    return made;
}

/* ---- a request ---- */

/* CODE's, if it is a resume function's and no copy, which may be changed. */
static const struct enter *enter_of(PyCodeObject *code)
{
    Py_ssize_t count = PyTuple_GET_SIZE(code->co_consts);
    const struct enter *last = count ? (const struct enter *)PyTuple_GET_ITEM(code->co_consts, count - 1) : NULL;

    return last && Py_IS_TYPE((PyObject *)last, &enter_type) && last->made == code && last->units == Py_SIZE(code) ? last : NULL;
}

static PyObject *origin_of(PyObject *reference)
{
    PyObject *origin = ((PyWeakReference *)reference)->wr_object; /* borrowed */

    return origin == Py_None || !Py_REFCNT(origin) ? NULL : Py_NewRef(origin);
}

bool resume_is(PyCodeObject *code, PyCodeObject **origin)
{
    const struct enter *enter = enter_of(code);

    *origin = enter ? (PyCodeObject *)origin_of(enter->origin) : NULL;
    return enter != NULL;
}

/* The last step of the prologue of R's code, a resume function of which P is made: it leads to where that goes on. -1: there is none. */
static int32_t prologue_end(const struct request *r, const struct program *p)
{
    for (int32_t unit = 0; r->enter && unit < r->enter->units; unit++)
        if (!r->enter->unit[unit]) /* the original begins */
            return p->step_at[unit] - 1;
    return -1;
}

/* R's code is a resume function: what lies before it is not reached. */
static int reached_only(struct request *r)
{
    struct program p = {0};
    int status = program_read(&p, r->code);

    if (!status) {
        int32_t last = prologue_end(r, &p), first = last < 0 ? -1 : p.steps[last].to;
        int32_t unit = first < 0 ? -1 : r->enter->unit[p.steps[first].from];
        if (unit >= 0 && r->a.program.step_at[unit] >= 0)
            status = analysis_from(&r->a, r->a.program.step_at[unit]);
    }
    program_close(&p);
    return status < 0 ? -1 : 0;
}

/* -1 with an exception. In every case the caller closes it. */
static int request_open(struct request *r, PyCodeObject *code)
{
    PyCodeObject *origin;

    *r = (struct request){.code = code, .enter = enter_of(code)};
    r->held = r->enter ? origin_of(r->enter->origin) : Py_NewRef((PyObject *)code);
    if (!r->held) {
        r->why = "the code object that it was made from is gone";
        return 0;
    }
    origin = (PyCodeObject *)r->held;
    if (analysis_open(&r->a, origin, &r->why) < 0 || (r->enter && !r->why && reached_only(r)))
        return -1;
    for (int i = 0; i < origin->co_nlocalsplus && !r->why; i++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(origin->co_localsplusnames, i));
        for (int j = origin->co_nlocalsplus - origin->co_nfreevars; j < origin->co_nlocalsplus; j++)
            if (j > i && PyTuple_GET_ITEM(origin->co_localsplusnames, i) == PyTuple_GET_ITEM(origin->co_localsplusnames, j) &&
                _PyLocals_GetKind(origin->co_localspluskinds, i) & (CO_FAST_CELL | CO_FAST_FREE))
                r->why = "a comprehension in it has a variable of its own in the place of a free variable";
        if (!name)
            PyErr_Clear();
        else if (!strncmp(name, TEMPORARY, strlen(TEMPORARY)))
            r->why = "it has a variable whose name begins with ___stack, as those have that are added here";
    }
    return 0;
}

static void request_close(struct request *r)
{
    analysis_close(&r->a);
    Py_XDECREF(r->held);
}

/* The step of P that has UNIT as its beginning, or as its instruction behind EXTENDED_ARG; -1: none. */
static int32_t step_at(const struct program *p, int64_t unit)
{
    for (int32_t back = 0; back < 4 && unit >= back && unit < p->units; back++) {
        int32_t step = p->step_at[unit - back];
        if (step >= 0)
            return back < p->steps[step].size ? step : -1;
    }
    return -1;
}

/* The step of the original where OFFSET of the code that was given is. -1: there is none; r->why says why, if nothing did. */
static int32_t request_step(struct request *r, Py_ssize_t offset)
{
    int64_t unit = offset >= 0 && offset % 2 == 0 ? offset / 2 : -1;
    int32_t step = -1;

    if (r->why)
        return -1;
    if (r->enter) /* behind EXTENDED_ARG: only beginnings */
        unit = unit >= 0 && unit < r->enter->units ? r->enter->unit[unit] : -1;
    if (unit >= 0)
        step = step_at(&r->a.program, unit);
    r->why = step < 0 ? "no instruction begins there" : analysis_forbids(&r->a, step);
    return r->why ? -1 : step;
}

/* ---- splits ---- */

static void split_free(PyObject *object)
{
    struct split *self = (struct split *)object;

    Py_XDECREF(self->prefix);
    Py_XDECREF(self->resume);
    Py_XDECREF(self->stack);
    Py_XDECREF(self->locals);
    Py_XDECREF(self->leave);
    Py_XDECREF(self->origin);
    PyObject_Free(self);
}

static PyObject *split_repr(PyObject *object)
{
    struct split *self = (struct split *)object;

    return PyUnicode_FromFormat("<split of %U() at offset %zd>", ((PyCodeObject *)self->prefix)->co_qualname, self->offset);
}

static PyObject *split_origin(PyObject *object, void *closure)
{
    PyObject *origin = origin_of(((struct split *)object)->origin);

    return origin ? origin : Py_NewRef(Py_None);
}

#define SPLIT_MEMBER(type, name) #name, type, offsetof(struct split, name), READONLY
static PyMemberDef split_members[] = {
    {SPLIT_MEMBER(T_OBJECT_EX, prefix), "Code with the same arguments: runs up to the offset, then returns what the rest does."},
    {SPLIT_MEMBER(T_OBJECT_EX, resume), "Code of the rest: its arguments are variables, then slots of the stack."},
    {SPLIT_MEMBER(T_OBJECT_EX, stack), "For each slot of the stack, from the bottom: 'value', 'NULL' or 'value or NULL'."},
    {SPLIT_MEMBER(T_OBJECT_EX, locals), "The names of the variables that are handed over, without those in cells."},
    {SPLIT_MEMBER(T_PYSSIZET, offset), "Where, in the original."},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef split_properties[] = {
    {"origin", split_origin, NULL, "The original code object, also of a resume function that is split again; None: it is gone.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject split_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dyntrace.resume.Split",
    .tp_basicsize = sizeof(struct split),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A function split in two at an instruction.",
    .tp_dealloc = split_free,
    .tp_repr = split_repr,
    .tp_members = split_members,
    .tp_getset = split_properties,
};

/* What R's original keeps, under KEY: a new reference, or NULL. */
static struct split *kept(const struct request *r, PyObject *key)
{
    struct code_state *state = code_state_of((PyCodeObject *)r->held, false);

    return state && state->splits ? (struct split *)Py_XNewRef(PyDict_GetItem(state->splits, key)) : NULL;
}

/* It keeps MADE from now on, or has kept another meanwhile: that becomes *MADE. */
static int keep(const struct request *r, PyObject *key, struct split **made)
{
    OWNED PyObject *splits = PyDict_New();
    struct code_state *state = splits ? code_state_of((PyCodeObject *)r->held, true) : NULL;
    PyObject *one;

    if (!state)
        return -1;
    if (!state->splits)
        state->splits = Py_NewRef(splits);
    Py_SETREF(splits, Py_NewRef(state->splits)); /* whatever happens to the state */
    one = PyDict_SetDefault(splits, key, (PyObject *)*made); /* borrowed */
    if (one)
        Py_SETREF(*made, (struct split *)Py_NewRef(one));
    return one ? 0 : -1;
}

static struct split *split_code(PyCodeObject *code, Py_ssize_t offset);

/* The parts of R's original, split before STEP. */
static int make_parts(struct split *made, struct request *r, int32_t step)
{
    PyCodeObject *origin = (PyCodeObject *)r->held;
    struct layout l;
    int status = lay_out(&l, origin, analysis_slots(&r->a, step), r->a.depth[step]);
    struct enter *enter = status ? NULL : enter_make(r->held, l.locals, l.taken, l.arguments);

    if (enter && (made->resume = make_resume(origin, &r->a, step, &l, enter)) &&
        (made->leave = leave_make((PyCodeObject *)made->resume, l.taken)) && (made->stack = PyList_AsTuple(l.stack)))
        made->locals = PyList_GetSlice(l.names, 0, l.taken);
    if (made->locals)
        Py_SETREF(made->locals, PyList_AsTuple(made->locals));
    Py_XDECREF(enter);
    layout_close(&l);
    return made->locals ? 0 : -1;
}

/* A resume function is split: the rest is that of its original, split there. */
static int take_parts(struct split *made, PyCodeObject *origin)
{
    struct split *other = split_code(origin, made->offset);

    if (!other)
        return -1;
    made->resume = Py_NewRef(other->resume);
    made->stack = Py_NewRef(other->stack);
    made->locals = Py_NewRef(other->locals);
    made->leave = (struct leave *)Py_NewRef((PyObject *)other->leave);
    Py_DECREF(other);
    return 0;
}

/* The last step of the prologue, if it leads to STEP, else -1. */
static int32_t prologue_leads(const struct request *r, const struct program *p, int32_t step)
{
    int32_t last = prologue_end(r, p);

    return last >= 0 && p->steps[last].to == step ? last : -1;
}

/* R's code, split where its original is at STEP. UNIT: in the code that was given. */
static struct split *split_make(struct request *r, int32_t step, int32_t unit)
{
    struct split *made = PyObject_New(struct split, &split_type);
    struct program p = {0};
    int32_t depth = r->a.depth[step];

    if (!made)
        return NULL;
    memset((char *)made + sizeof(PyObject), 0, sizeof *made - sizeof(PyObject));
    made->offset = 2 * r->a.program.steps[step].from;
    made->origin = PyWeakref_NewRef(r->held, NULL);
    if (made->origin && !(r->enter ? take_parts(made, (PyCodeObject *)r->held) : make_parts(made, r, step)) &&
        !program_read(&p, r->code))
        made->prefix = make_prefix(r->code, &p, p.step_at[unit], depth, made->leave, prologue_leads(r, &p, p.step_at[unit]));
    program_close(&p);
    if (!made->prefix)
        Py_CLEAR(made);
    return made;
}

static struct split *split_code(PyCodeObject *code, Py_ssize_t offset)
{
    struct request r;
    struct split *made = NULL;
    OWNED PyObject *key = NULL;
    int32_t step, unit;

    if (!request_open(&r, code)) {
        step = request_step(&r, offset);
        unit = step < 0 ? 0 : r.enter ? (int32_t)(offset / 2) : r.a.program.steps[step].from;
        if (step < 0)
            PyErr_Format(PyExc_ValueError, "%U() cannot be split at offset %zd: %s", code->co_qualname, offset, r.why);
        else if ((key = Py_BuildValue("(li)", r.enter ? r.enter->number : -1L, (int)unit)) && !(made = kept(&r, key)) &&
                 (made = split_make(&r, step, unit)) && keep(&r, key, &made))
            Py_CLEAR(made);
    }
    request_close(&r);
    return made;
}

/* ---- the functions ---- */

/* Of (code, offset). False with an exception. */
static bool arguments(PyObject *args, const char *format, PyCodeObject **code, Py_ssize_t *offset)
{
    PyObject *number;

    if (!PyArg_ParseTuple(args, format, &PyCode_Type, code, &number))
        return false;
    *offset = PyNumber_AsSsize_t(number, NULL);
    return *offset != -1 || !PyErr_Occurred();
}

static PyObject *split(PyObject *module, PyObject *args)
{
    PyCodeObject *code;
    Py_ssize_t offset;

    return arguments(args, "O!O:split", &code, &offset) ? (PyObject *)split_code(code, offset) : NULL;
}

static PyObject *why_not(PyObject *module, PyObject *args)
{
    PyCodeObject *code;
    Py_ssize_t offset;
    struct request r;
    PyObject *answer = NULL;

    if (!arguments(args, "O!O:why_not", &code, &offset))
        return NULL;
    if (!request_open(&r, code))
        answer = request_step(&r, offset) < 0 ? PyUnicode_FromString(r.why) : Py_NewRef(Py_None);
    request_close(&r);
    return answer;
}

static PyObject *points(PyObject *module, PyObject *args)
{
    PyCodeObject *code;
    struct request r;
    PyObject *found = NULL;

    if (!PyArg_ParseTuple(args, "O!:points", &PyCode_Type, &code))
        return NULL;
    if (!request_open(&r, code) && (found = PyList_New(0))) {
        int32_t units = r.why ? 0 : r.enter ? r.enter->units : r.a.program.units;
        for (int32_t unit = 0; unit < units && found; unit++, r.why = NULL) {
            int32_t step = r.enter || r.a.program.step_at[unit] >= 0 ? request_step(&r, 2 * unit) : -1;
            OWNED PyObject *offset = step < 0 ? NULL : PyLong_FromLong(2 * unit);
            if (step >= 0 && (!offset || PyList_Append(found, offset)))
                Py_CLEAR(found);
        }
    }
    request_close(&r);
    if (found)
        Py_SETREF(found, PyList_AsTuple(found));
    return found;
}

static PyObject *call_resume(PyObject *module, PyObject *object)
{
    PyObject *steps;
    struct split *self = (struct split *)object;

    if (!Py_IS_TYPE(object, &split_type))
        return PyErr_Format(PyExc_TypeError, "expected what split() returns, got %s", Py_TYPE(object)->tp_name);
    steps = PyList_New(0);
    for (Py_ssize_t slot = PyTuple_GET_SIZE(self->stack) - 1; slot >= -1 - compat_call_length && steps; slot--) {
        const struct compat_op *op = slot >= 0 || slot < -compat_call_length ? NULL : &compat_call[-1 - slot];
        OWNED PyObject *step = slot >= 0 ? Py_BuildValue("(sN)", "STORE_FAST", temporary((int32_t)slot))
                               : !op     ? Py_BuildValue("(sO)", "RETURN_VALUE", Py_None)
                               : op->op == LOAD_CONST ? Py_BuildValue("(sO)", op->name, self->leave)
                                                      : Py_BuildValue("(si)", op->name, 0);
        if (!step || PyList_Append(steps, step))
            Py_CLEAR(steps);
    }
    return steps;
}

PyMethodDef resume_methods[] = {
    {"split", split, METH_VARARGS,
     "split(code, offset) -> Split\n\nSplit a function before the instruction at OFFSET (ValueError: it cannot be). The same code and offset give\n"
     "the same object, until a reset."},
    {"points", points, METH_VARARGS, "points(code) -> tuple of int\n\nThe offsets at which CODE can be split."},
    {"why_not", why_not, METH_VARARGS,
     "why_not(code, offset) -> None | str\n\nWhy CODE cannot be split at OFFSET; None: it can be."},
    {"call_resume", call_resume, METH_O,
     "call_resume(split) -> list of (name, argument)\n\nThe instructions that hand over to the resume function and return its result, for code of\n"
     "your own that has the original's stack, variables and cells. The argument of STORE_FAST is a variable to\n"
     "be added, that of LOAD_CONST the constant."},
    {NULL, NULL, 0, NULL},
};

int resume_types_ready(PyObject *module)
{
    return PyType_Ready(&unbound_type) || PyType_Ready(&leave_type) || PyType_Ready(&enter_type) || PyModule_AddType(module, &split_type) ||
                   PyModule_AddFunctions(module, resume_methods) || PyModule_AddObjectRef(module, "UNBOUND", &resume_unbound) ? -1 : 0;
}
