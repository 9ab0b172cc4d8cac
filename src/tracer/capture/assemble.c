/* tracer/capture/assemble.c -- the code that runs in place of a function. See capture.h.
 *
 *     MAKE_CELL, COPY_FREE_VARS, RESUME    as the function begins
 *     the call of the plan                 with the variables that it needs
 *     UNPACK_SEQUENCE, STORE_FAST ...      variables and stack as they are at the break
 *     the instruction at the break         with what handles its exceptions; it may jump
 *     leave                                where it goes on: a resume function (tracer/resume/)
 *
 * It is the function's own bytecode, with the rest put in; what is not reached any more is left out. */
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
    struct program p;               /* of the code; its steps are `steps` in the end */
    int32_t begun, broken, last;    /* steps: RESUME; the first and the last of the instruction at the break */
    struct leaving leaves[MOST_LEAVES];
    int leave_count, temporaries;
    uint32_t *where;                /* owned: the variable for each slot of the stack */
    PyObject *constants, *names;    /* owned */
    struct step *steps;             /* owned: of the new code */
    int32_t count, room, span_count;
    bool failed;                    /* no memory for them */
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

static bool is_jump_if(const struct assembly *a, int32_t step)
{
    return step < a->p.count && a->p.steps[step].to >= 0 && !compat_ops[a->p.steps[step].op].ends;
}

/* Behind the instruction at the break, and where it jumps to. */
static int leave_behind(struct assembly *a)
{
    int32_t last = a->last;
    int status = 0;

    if (a->p.steps[last].op == compat_to_bool && is_jump_if(a, last + 1))
        last++;
    if (!compat_ops[a->p.steps[last].op].ends)
        status = leave_at(a, last + 1);
    if (status >= 0 && a->p.steps[last].to >= 0)
        status = leave_at(a, a->p.steps[last].to);
    return status < 0 ? -1 : 0;
}

/* Does something handle what STEP raises? */
static bool is_handled(const struct assembly *a, int32_t step)
{
    int32_t span = a->p.steps[step].span;

    return span >= 0 && a->p.steps[a->p.spans[span].to].op == PUSH_EXC_INFO;
}

/* Out of everything that handles exceptions. */
static int leave_outside(struct assembly *a)
{
    int32_t *queue = PyMem_New(int32_t, 3 * (size_t)a->p.count + 3), length = 0;
    bool *seen = PyMem_Calloc((size_t)a->p.count + 1, sizeof *seen);
    int status = queue && seen ? 0 : -1;

    if (!status)
        queue[length++] = a->broken;
    while (length && status >= 0) {
        int32_t at = queue[--length], next[3] = {-1, -1, -1};
        if (seen[at])
            continue;
        seen[at] = true;
        if (at != a->broken && !is_handled(a, at) && (status = leave_at(a, at)))
            continue;
        next[0] = compat_ops[a->p.steps[at].op].ends ? -1 : at + 1;
        next[1] = a->p.steps[at].to;
        next[2] = a->p.steps[at].span < 0 ? -1 : a->p.spans[a->p.steps[at].span].to;
        for (int i = 0; i < 3; i++)
            if (next[i] >= 0 && next[i] < a->p.count)
                queue[length++] = next[i];
    }
    PyMem_Free(queue);
    PyMem_Free(seen);
    return status < 0 ? -1 : 0;
}

/* ---- what is put in ---- */

/* One more step of the new code, in the place of OLD, a step of the code. */
static struct step *put(struct assembly *a, int op, uint32_t arg, int32_t old)
{
    if (a->count == a->room) {
        int32_t room = 2 * a->room + 64;
        struct step *more = realloc(a->steps, sizeof *more * (size_t)room);
        if (!more) {
            a->failed = true;
            a->count = 0; /* there is room for that */
        }
        a->steps = more ? more : a->steps;
        a->room = more ? room : a->room;
    }
    a->steps[a->count] = (struct step){.op = (uint8_t)op, .size = 1, .arg = arg, .to = -1, .span = -1, .from = a->p.steps[old].from};
    return &a->steps[a->count++];
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
    struct step *jump;

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
    jump = put(a, JUMP_FORWARD, 0, a->begun);
    jump->to = a->broken;
    jump->due = true; /* to the step itself, though it may leave there */
}

static void put_leave(struct assembly *a, const struct leaving *leaving, int32_t step)
{
    for (int slot = leaving->depth - 1; slot >= 0; slot--)
        put(a, STORE_FAST, a->where[slot], step);
    put_call(a, leaving->constant, false, step);
    put(a, RETURN_VALUE, 0, step);
}

/* ---- what is left out ---- */

/* The steps that are reached, without jumps over nothing; those of the new code are A's program's now. -1: no memory. */
static int trim(struct assembly *a)
{
    int32_t *queue = malloc(sizeof *queue * (3 * (size_t)a->count + 3)), length = 0, n = 0;
    int32_t *now = malloc(sizeof *now * ((size_t)a->count + 1));
    bool *kept = calloc((size_t)a->count + 1, sizeof *kept);
    int status = queue && now && kept ? 0 : -1;

    if (!status)
        queue[length++] = 0;
    while (length) {
        int32_t at = queue[--length];
        const struct step *step = &a->steps[at];
        if (kept[at])
            continue;
        kept[at] = true;
        if (step->span >= 0)
            queue[length++] = a->p.spans[step->span].to;
        if (step->to >= 0)
            queue[length++] = step->to;
        if (!compat_ops[step->op].ends && at + 1 < a->count)
            queue[length++] = at + 1;
    }
    for (int32_t i = 0; i < a->count && !status; i++) {
        int32_t next = i + 1;
        if (!kept[i] || a->steps[i].op != JUMP_FORWARD)
            continue;
        while (next < a->steps[i].to && !kept[next])
            next++;
        if (a->steps[i].to == next)
            kept[i] = false;
    }
    for (int32_t i = 0; i <= a->count && !status; i++) { /* a step that goes: the next that stays */
        now[i] = n;
        n += i < a->count && kept[i];
    }
    for (int32_t i = 0; i < a->count && !status; i++)
        if (kept[i]) {
            a->steps[now[i]] = a->steps[i];
            if (a->steps[i].to >= 0)
                a->steps[now[i]].to = now[a->steps[i].to];
        }
    for (int32_t i = 0; i < a->span_count && !status; i++)
        a->p.spans[i].to = now[a->p.spans[i].to];
    free(queue);
    free(now);
    free(kept);
    free(a->p.steps);
    a->p.steps = a->steps;
    a->p.count = a->p.at = n;
    a->steps = NULL;
    return status;
}

/* The new code's steps. */
static int put_all(struct assembly *a, int entering, bool returns)
{
    const uint32_t constant = (uint32_t)PyTuple_GET_SIZE(a->w->code->co_consts);
    const int32_t count = a->p.count;
    int32_t *to = malloc(sizeof *to * ((size_t)count + 1)), *itself = malloc(sizeof *itself * ((size_t)count + 1));
    int status = to && itself ? 0 : -1;

    for (int32_t i = 0; i < count && !status && !a->failed; i++) {
        to[i] = a->count;
        for (int j = 0; j < a->leave_count; j++)
            if (a->leaves[j].step == i)
                put_leave(a, &a->leaves[j], i);
        itself[i] = a->count;
        *put(a, 0, 0, i) = a->p.steps[i];
        a->steps[a->count - 1].due = false;
        if (a->p.steps[i].span >= a->span_count)
            a->span_count = a->p.steps[i].span + 1;
        if (i == a->begun)
            put_prologue(a, constant, entering, returns);
    }
    for (int32_t i = 0; i < a->count && !status; i++)
        if (a->steps[i].to >= 0)
            a->steps[i].to = a->steps[i].due ? itself[a->steps[i].to] : to[a->steps[i].to];
    for (int32_t i = 0; i < a->span_count && !status; i++)
        a->p.spans[i].to = to[a->p.spans[i].to];
    free(to);
    free(itself);
    return status || a->failed ? -1 : trim(a);
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
    if (!returns && (a->c->handled ? leave_outside(a) : leave_behind(a)))
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
        if (!put_all(&a, entering(c, w), returns))
            made = make_code(&a);
    }
    if (!made && !PyErr_Occurred())
        PyErr_NoMemory();
    for (int i = 0; i < a.leave_count; i++)
        Py_XDECREF(a.leaves[i].split);
    program_close(&a.p);
    free(a.steps);
    PyMem_Free(a.where);
    Py_XDECREF(a.constants);
    Py_XDECREF(a.names);
    return made;
}
