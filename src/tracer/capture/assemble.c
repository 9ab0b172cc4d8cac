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
#include "tracer/resume/program.h"
#include "tracer/resume/resume.h"
#include "tracer/torch/torch.h"

enum { MOST_LEAVES = 64 };

struct leaving {
    int32_t step;
    int depth;
    uint32_t constant; /* what it calls */
};

struct assembly {
    struct capture *c;
    const struct watched *w;
    struct plan *plan;
    struct program p;               /* of the code */
    int32_t begun, broken;          /* steps: RESUME; the first of the instruction at the break, */
    int32_t again;                  /* the new step that jumps if the code as it was is to run */
    int32_t last;                   /* and its last, or that of the jump that has its bool */
    bool *reached;                  /* owned: by step */
    struct leaving leaves[MOST_LEAVES];
    int leave_count, temporaries;
    PyObject *splits;               /* borrowed list: of the resume functions where it leaves */
    uint32_t *where;                /* owned: the variable for each slot of the stack */
    int more;                       /* variables, for that: behind the code's own and before cells and free variables */
    PyObject *constants, *names;    /* owned: a list, a tuple */
};

/* ---- where it leaves ---- */

/* A Split, or None: there is none. A new reference. */
static PyObject *split_at(PyCodeObject *code, int32_t unit)
{
    OWNED PyObject *module = NULL;
    PyObject *split;
    struct torch_quiet quiet;
    struct tracer_exception raised;

    torch_quiet_begin(&quiet);
    module = PyImport_ImportModule("dyntrace.resume");
    split = module ? PyObject_CallMethod(module, "_split", "Oi", code, 2 * unit) : NULL;
    raised = tracer_exception_aside(); /* quiet_end has those from before it */
    torch_quiet_end(&quiet);
    tracer_exception_back(&raised);
    return split;
}

/* 0: without a split there, the rest runs where it is. -1: an exception. */
static int leave_at(struct assembly *a, int32_t step)
{
    struct leaving *leaving = &a->leaves[a->leave_count];
    OWNED PyObject *split = NULL, *stack = NULL, *leave = NULL;

    for (int i = 0; i < a->leave_count; i++)
        if (a->leaves[i].step == step)
            return 1;
    if (a->leave_count == MOST_LEAVES || !a->p.steps[step].starts)
        return 0;
    split = split_at(a->w->code, a->p.steps[step].from);
    if (!split || split == Py_None)
        return split ? 0 : -1;
    stack = tracer_attribute(split, "stack");
    leave = tracer_attribute(split, "_leave");
    if (!stack || !PyTuple_Check(stack) || !leave || PyList_Append(a->splits, split) || PyList_Append(a->constants, leave))
        return -1;
    *leaving = (struct leaving){step, (int)PyTuple_GET_SIZE(stack), (uint32_t)PyList_GET_SIZE(a->constants) - 1};
    a->temporaries = a->temporaries < leaving->depth ? leaving->depth : a->temporaries;
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
    int32_t *queue = malloc(sizeof *queue * (3 * (size_t)a->p.count + 3)), length = 0;
    int status = queue ? 0 : -1;

    if (!status)
        queue[length++] = 0;
    if (!status && !returns)
        queue[length++] = a->broken;
    if (!status && a->plan->again)
        queue[length++] = a->begun + 1;
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

/* Where VARIABLE of the code is in the new one. */
static uint32_t moved(const struct assembly *a, int variable)
{
    return (uint32_t)(variable < a->w->code->co_nlocals ? variable : variable + a->more);
}

/* LOAD, STORE or DELETE of VARIABLE of the code as it was: OP, or in a cell OF_CELL. */
static void put_variable(struct assembly *a, int op, int of_cell, int variable)
{
    PyCodeObject *code = a->w->code;
    const bool cell = _PyLocals_GetKind(code->co_localspluskinds, variable) & (CO_FAST_CELL | CO_FAST_FREE);

    put(a, cell ? of_cell : op, moved(a, variable), a->begun);
}

/* The call of constant number CONSTANT, with the plan's arguments or none. */
static void put_call(struct assembly *a, uint32_t constant, bool with, int32_t old)
{
    bool loaded = false;
    const int count = with ? a->plan->argument_count : 0;

    for (int i = 0; compat_call[i]; i++) {
        const int op = compat_call[i];
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
    if (plan->again) {
        put(a, COPY, 1, a->begun);
        put(a, LOAD_CONST, constant, a->begun);
        put(a, IS_OP, 0, a->begun);
        put(a, compat_jump_if_true, 0, a->begun);
        a->again = a->p.made_count - 1;
    }
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
        if (a->reached[i] && compat_ops[a->p.steps[i].op].has_variable)
            a->p.steps[i].arg = moved(a, (int)a->p.steps[i].arg);
        if (a->reached[i])
            program_keep(&a->p, i);
        if (i == a->begun) {
            put_prologue(a, constant, entering, returns);
            jumped = returns ? 0 : a->p.made_count;
        }
        if (i == a->begun && a->plan->again) {
            a->p.made[a->again].to = a->p.made_count;
            a->p.made[a->again].direct = 2;
            put(a, POP_TOP, 0, i);
            put(a, JUMP_FORWARD, 0, i)->to = i + 1;
        }
    }
}

/* ---- the code ---- */

static PyObject *make_code(struct assembly *a)
{
    PyCodeObject *code = a->w->code;
    int needed = a->plan->argument_count > a->plan->give_count ? a->plan->argument_count : a->plan->give_count;

    needed = (needed > a->plan->depth ? needed : a->plan->depth) + 4;
    return program_make(&a->p, Py_BuildValue("{s:O,s:n,s:N,s:i}", "co_varnames", a->names, "co_nlocals", PyTuple_GET_SIZE(a->names),
                                             "co_consts", PyList_AsTuple(a->constants), "co_stacksize",
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

/* The names of the new code's variables: a new tuple, or NULL. One that was split, or made of a split, has some for the stack already. */
static PyObject *add_temporaries(struct assembly *a)
{
    PyCodeObject *code = a->w->code;
    OWNED PyObject *known = PyTuple_GetSlice(code->co_localsplusnames, 0, code->co_nlocals), *names = known ? PySequence_List(known) : NULL;

    for (int slot = 0; slot < a->temporaries && names; slot++) {
        OWNED PyObject *name = PyUnicode_FromFormat(TEMPORARY "%d", slot);
        const int has = name ? PySequence_Contains(names, name) : -1;
        if (has < 0 || (!has && PyList_Append(names, name)))
            return NULL;
        a->where[slot] = (uint32_t)PySequence_Index(names, name);
    }
    a->more = names ? (int)PyList_GET_SIZE(names) - code->co_nlocals : 0;
    return names ? PyList_AsTuple(names) : NULL;
}

static int prepare(struct assembly *a, bool returns)
{
    a->constants = PySequence_List(a->w->code->co_consts);
    if (!a->splits || !a->constants || PyList_Append(a->constants, (PyObject *)a->plan) || program_read(&a->p, a->w->code))
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
    a->temporaries = a->plan->depth;
    if (!a->reached || reach(a, returns))
        return -1;
    a->where = PyMem_New(uint32_t, (size_t)a->temporaries + 1);
    a->names = a->where ? add_temporaries(a) : NULL;
    return a->names ? 0 : -1;
}

PyObject *assemble(struct capture *c, const struct watched *w, struct plan *plan, bool returns, PyObject **splits)
{
    struct assembly a = {.c = c, .w = w, .plan = plan, .splits = *splits = PyList_New(0)};
    PyObject *made = NULL;

    if (!prepare(&a, returns)) {
        put_all(&a, entering(c, w), returns);
        made = make_code(&a);
    }
    if (!made && !PyErr_Occurred())
        PyErr_NoMemory();
    program_close(&a.p);
    free(a.reached);
    PyMem_Free(a.where);
    Py_XDECREF(a.constants);
    Py_XDECREF(a.names);
    return made;
}
