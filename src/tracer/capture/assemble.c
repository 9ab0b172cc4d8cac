/* tracer/capture/assemble.c -- the code that runs in place of a function. See capture.h.
 *
 *     MAKE_CELL, COPY_FREE_VARS, RESUME    as the function begins
 *     the call of the plan                 with the variables that it needs
 *     UNPACK_SEQUENCE, STORE_FAST ...      variables and stack as they are at the break
 *     the instruction at the break         with what handles its exceptions; it may jump
 *     leave                                where it goes on: a resume function (tracer/resume/)
 *
 * It is the function's own bytecode, with the rest put in; what is not reached is left out. */
#include "tracer/capture/capture.h"
#include "tracer/resume/links.h"
#include "tracer/resume/program.h"
#include "tracer/resume/resume.h"

enum { MOST_LEAVES = 64 };

struct leaving {
    int32_t step;
    int depth;
    PyObject *split;   /* owned */
    uint32_t constant;
};

struct assembly {
    struct capture *c;
    const struct watched *w;
    struct plan *plan;
    struct program p;               /* of the code */
    int32_t begun, broken;          /* steps: RESUME; the first of the instruction at the break, */
    int32_t last;                   /* and its last, or that of the jump that has its bool */
    bool *reached;                  /* owned: by step */
    struct leaving leaves[MOST_LEAVES];
    int leave_count, temporaries;
    uint32_t *where;                /* owned: the variable for each slot of the stack */
    PyObject *constants, *names;    /* owned */
};

/* ---- where it leaves ---- */

/* Without a split there, the rest runs where it is. */
static int leave_at(struct assembly *a, int32_t step)
{
    struct leaving *leaving = &a->leaves[a->leave_count];
    OWNED PyObject *stack = NULL;

    for (int i = 0; i < a->leave_count; i++)
        if (a->leaves[i].step == step)
            return 1;
    if (a->leave_count == MOST_LEAVES || !a->p.steps[step].starts)
        return 0;
    leaving->split = resume_split(a->w->code, 2 * (Py_ssize_t)a->p.steps[step].from);
    stack = leaving->split ? tracer_attribute(leaving->split, "stack") : NULL;
    if (!stack) {
        bool none = !leaving->split && PyErr_ExceptionMatches(PyExc_ValueError);
        Py_CLEAR(leaving->split);
        if (none)
            PyErr_Clear();
        return none ? 0 : -1;
    }
    leaving->depth = (int)PyTuple_GET_SIZE(stack);
    leaving->step = step;
    a->leave_count++;
    return 1;
}

/* Does something handle what STEP raises? */
static bool is_handled(const struct assembly *a, int32_t step)
{
    int32_t span = a->p.steps[step].span;

    return span >= 0 && a->p.steps[a->p.spans[span].to].op == PUSH_EXC_INFO;
}

/* Does it leave at STEP, if it can? Behind the instruction at the break, and where that jumps to; if a handler would see what the graph
 * raises: outside of those. */
static bool leaves(const struct assembly *a, int32_t step)
{
    const struct step *last = &a->p.steps[a->last];

    if (step <= a->begun || step == a->broken)
        return false;
    return a->c->handled ? !is_handled(a, step) : step == last->to || (step == a->last + 1 && !compat_ops[last->op].ends);
}

/* What is reached from the beginning, and from the break. */
static int reach(struct assembly *a, bool returns)
{
    int32_t *queue = malloc(sizeof *queue * (3 * (size_t)a->p.count + 2)), length = 0;
    int status = queue ? 0 : -1;

    if (!status)
        queue[length++] = 0;
    if (!status && !returns)
        queue[length++] = a->broken;
    while (length && status >= 0) {
        const int32_t at = queue[--length];
        const struct step *step = &a->p.steps[at];
        if (a->reached[at] || (leaves(a, at) && (status = leave_at(a, at))))
            continue;
        a->reached[at] = true;
        const int32_t next[3] = {step->span < 0 ? -1 : a->p.spans[step->span].to, step->to,
                                 compat_ops[step->op].ends || at == a->begun ? -1 : at + 1};
        for (int i = 0; i < 3; i++)
            if (next[i] >= 0 && next[i] < a->p.count)
                queue[length++] = next[i];
    }
    free(queue);
    return status < 0 ? -1 : 0;
}

/* ---- what is put in ---- */

/* In the place of OLD, a step of the code. */
static struct step *put(struct assembly *a, int op, uint32_t arg, int32_t old)
{
    return program_put(&a->p, op, arg, a->p.steps[old].from);
}

/* LOAD, STORE or DELETE of VARIABLE of the code as it was: OP, or in a cell OF_CELL. */
static void put_variable(struct assembly *a, int op, int of_cell, int variable)
{
    PyCodeObject *code = a->w->code;
    const bool cell = _PyLocals_GetKind(code->co_localspluskinds, variable) & (CO_FAST_CELL | CO_FAST_FREE);

    put(a, cell ? of_cell : op, (uint32_t)program_moved(&a->p, variable), a->begun);
}

/* The call of constant number CONSTANT, with the plan's arguments or none. */
static void put_call(struct assembly *a, uint32_t constant, bool with, int32_t old)
{
    bool loaded = false;
    const int count = with ? a->plan->argument_count : 0;

    for (int i = 0; i < compat_call_length; i++) {
        const int op = compat_call[i].op;
        const bool calls = op != LOAD_CONST && op != PUSH_NULL;
        for (int j = 0; calls && !loaded && j < count; j++)
            put_variable(a, LOAD_FAST, LOAD_DEREF, a->plan->arguments[j]);
        loaded |= calls;
        put(a, op, op == LOAD_CONST ? constant : calls ? (uint32_t)count : 0, old);
    }
}

/* The stack as it is at the break: what is not NULL lies there, in its order. */
static void put_stack(struct assembly *a)
{
    const struct plan *plan = a->plan;

    for (int slot = plan->depth - 1; slot >= 0; slot--)
        if (!plan->nulls[slot])
            put(a, STORE_FAST, a->where[slot], a->begun);
    for (int slot = 0; slot < plan->depth; slot++)
        put(a, plan->nulls[slot] ? PUSH_NULL : LOAD_FAST, plan->nulls[slot] ? 0 : a->where[slot], a->begun);
    for (int slot = 0; slot < plan->depth; slot++)
        if (!plan->nulls[slot])
            put(a, DELETE_FAST, a->where[slot], a->begun);
}

static void put_prologue(struct assembly *a, uint32_t constant, int entering, bool returns)
{
    const struct plan *plan = a->plan;

    put_call(a, constant, true, a->begun);
    if (entering >= 0) {
        put_call(a, (uint32_t)entering, false, a->begun);
        put(a, POP_TOP, 0, a->begun);
    }
    if (returns) {
        put(a, RETURN_VALUE, 0, a->begun);
        return;
    }
    put(a, plan->give_count ? UNPACK_SEQUENCE : POP_TOP, (uint32_t)plan->give_count, a->begun);
    for (int i = 0; i < plan->store_count; i++)
        put_variable(a, STORE_FAST, STORE_DEREF, plan->stores[i]);
    for (int i = 0; i < plan->delete_count; i++)
        put_variable(a, DELETE_FAST, DELETE_DEREF, plan->deletes[i]);
    if (plan->null_count)
        put_stack(a);
    if (a->c->make_bool && compat_to_bool >= 0)
        put(a, compat_to_bool, 0, a->begun);
    put(a, JUMP_FORWARD, 0, a->begun)->to = a->broken;
}

static void put_leave(struct assembly *a, const struct leaving *leaving, int32_t step)
{
    for (int slot = leaving->depth - 1; slot >= 0; slot--)
        put(a, STORE_FAST, a->where[slot], step);
    put_call(a, leaving->constant, false, step);
    put(a, RETURN_VALUE, 0, step);
}

/* The new code's steps. */
static void put_all(struct assembly *a, int entering, bool returns)
{
    const uint32_t constant = (uint32_t)PyTuple_GET_SIZE(a->w->code->co_consts);
    int32_t jumped = 0;

    for (int32_t i = 0; i < a->p.count; i++) {
        if (i == a->broken && a->p.made_count == jumped)
            a->p.made_count--; /* over nothing */
        program_lead(&a->p, i);
        for (int j = 0; j < a->leave_count; j++)
            if (a->leaves[j].step == i)
                put_leave(a, &a->leaves[j], i);
        if (a->reached[i])
            program_keep(&a->p, i);
        if (i == a->begun) {
            put_prologue(a, constant, entering, returns);
            jumped = returns ? 0 : a->p.made_count;
        }
    }
}

/* ---- the code ---- */

static PyObject *make_code(struct assembly *a)
{
    PyCodeObject *code = a->w->code;
    int needed = a->plan->argument_count > a->plan->give_count ? a->plan->argument_count : a->plan->give_count;

    needed = (needed > a->plan->depth ? needed : a->plan->depth) + 4;
    return program_make(&a->p, Py_BuildValue("{s:O,s:n,s:O,s:i}", "co_varnames", a->names, "co_nlocals", PyTuple_GET_SIZE(a->names),
                                             "co_consts", a->constants, "co_stacksize",
                                             code->co_stacksize < needed ? needed : code->co_stacksize));
}

/* The number of the constant that a resume function has called when it began; -1: W's code is none, or has not. */
static int entering(const struct capture *c, const struct watched *w)
{
    PyObject *link = c->begun ? link_of(w->code) : NULL, *constants = w->code->co_consts;

    for (Py_ssize_t i = 0; link && i < PyTuple_GET_SIZE(constants); i++)
        if (PyCFunction_CheckExact(PyTuple_GET_ITEM(constants, i)) && PyCFunction_GET_SELF(PyTuple_GET_ITEM(constants, i)) == link)
            return (int)i;
    return -1;
}

static int prepare(struct assembly *a, bool returns)
{
    OWNED PyObject *more = NULL;
    int status = program_read(&a->p, a->w->code);
    Py_ssize_t first = PyTuple_GET_SIZE(a->w->code->co_consts);

    if (status)
        return -1;
    while (a->begun < a->p.count && a->p.steps[a->begun].op != RESUME)
        a->begun++;
    a->broken = a->p.step_at[a->w->group];
    for (a->last = a->broken; a->last >= 0 && a->last + 1 < a->p.count && a->p.steps[a->last + 1].from <= a->w->unit; a->last++)
        if (a->p.steps[a->last + 1].from == a->p.steps[a->last].from)
            break;
    if (a->begun == a->p.count || a->broken < 0)
        return -1;
    if (a->p.steps[a->last].op == compat_to_bool && a->last + 1 < a->p.count && a->p.steps[a->last + 1].to >= 0)
        a->last++;
    a->reached = calloc((size_t)a->p.count, sizeof *a->reached);
    if (!a->reached || reach(a, returns))
        return -1;
    a->temporaries = a->plan->depth;
    more = PyList_New(0);
    if (!more || PyList_Append(more, (PyObject *)a->plan))
        return -1;
    for (int i = 0; i < a->leave_count; i++) {
        a->temporaries = a->temporaries < a->leaves[i].depth ? a->leaves[i].depth : a->temporaries;
        a->leaves[i].constant = (uint32_t)(first + 1 + i);
        if (PyList_Append(more, resume_leave(a->leaves[i].split)))
            return -1;
    }
    Py_SETREF(more, PyList_AsTuple(more));
    a->constants = more ? PySequence_Concat(a->w->code->co_consts, more) : NULL;
    a->where = PyMem_New(uint32_t, (size_t)a->temporaries + 1);
    a->names = a->constants && a->where ? program_add_temporaries(&a->p, a->temporaries, a->where) : NULL;
    return a->names ? 0 : -1;
}

PyObject *assemble(struct capture *c, const struct watched *w, struct plan *plan, bool returns, PyObject **splits)
{
    struct assembly a = {.c = c, .w = w, .plan = plan};
    PyObject *made = NULL;

    *splits = PyList_New(0);
    if (*splits && !prepare(&a, returns)) {
        for (int i = 0; i < a.leave_count; i++)
            if (PyList_Append(*splits, a.leaves[i].split))
                PyErr_Clear();
        put_all(&a, entering(c, w), returns);
        made = make_code(&a);
    }
    if (!made && !PyErr_Occurred())
        PyErr_NoMemory();
    for (int i = 0; i < a.leave_count; i++)
        Py_XDECREF(a.leaves[i].split);
    program_close(&a.p);
    free(a.reached);
    PyMem_Free(a.where);
    Py_XDECREF(a.constants);
    Py_XDECREF(a.names);
    return made;
}
