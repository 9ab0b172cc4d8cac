/* tracer/resume/split.c -- a function split at an instruction, and dyntrace.resume's functions.
 *
 * Runs in: the traced process, under the GIL.
 *
 *     resume    the original with a prologue in front: the stack back in its place, then a jump to the offset. Arguments: variables
 *               that may be bound there, in their order, then slots of the stack. Cells come as free variables, and are put where
 *               the original has them, too: what CPython says of an unbound variable depends on that
 *     prefix    the original with an epilogue before the offset: the stack into variables, then the call (links.c)
 *
 * A resume function that is split again goes on in the same resume function as the original, split there, would: its steps are
 * those of the original behind the prologue's. What was made of a code object is kept with its state, until a reset; nothing of it
 * holds that code object. */
#include "tracer/evaluator/cache.h"
#include "tracer/resume/links.h"
#include "tracer/resume/program.h"
#include "tracer/resume/resume.h"

#include <structmember.h>

/* Of all that were split there, the original and resume functions, only the prefix is another. */
enum part { RESUME_CODE, LEAVE, STACK, LOCALS, ORIGIN, PREFIX, PARTS };

struct split {
    PyObject_HEAD
    PyObject *part[PARTS]; /* owned: code, what the prefix calls, tuples of str, a weak reference, code */
    Py_ssize_t offset;
};

/* What split(), points() and why_not() begin with. Where CODE is the original, the two programs are alike. */
struct request {
    PyCodeObject *code;       /* borrowed: as it was given */
    PyObject *origin;         /* owned: the original */
    struct program p;         /* of CODE, read */
    struct program o;         /* of the original, opened */
    int32_t prologue;         /* the steps of CODE before those of the original */
    const char *why;          /* no split can be made; or NULL */
};

static PyTypeObject split_type;

/* ---- a code object made of another ---- */

/* ITEM is owned here; NULL: there was an exception. */
static bool append(PyObject *list, PyObject *item)
{
    bool done = item && !PyList_Append(list, item);

    Py_XDECREF(item);
    return done;
}

/* CODE's, and one more, which is owned here. */
static PyObject *more_constants(PyCodeObject *code, PyObject *one)
{
    OWNED PyObject *more = one ? PyTuple_Pack(1, one) : NULL;

    Py_XDECREF(one);
    return more ? PySequence_Concat(code->co_consts, more) : NULL;
}

/* The call of the last of CONSTANTS. */
static void put_call(struct program *p, PyObject *constants)
{
    for (int i = 0; i < compat_call_length; i++)
        program_put(p, compat_call[i].op, compat_call[i].op == LOAD_CONST ? (uint32_t)PyTuple_GET_SIZE(constants) - 1 : 0, -1);
}

/* R's code until STEP of the original, where LEAVE takes over. A resume function goes on where it begins, and leaves when it comes
 * there once more, in a loop. */
static PyObject *make_prefix(struct request *r, int32_t step, PyObject *leave)
{
    struct program *p = &r->p;
    const int32_t depth = r->o.depth[step];
    OWNED PyObject *constants = more_constants(r->code, Py_NewRef(leave)), *names = NULL;
    uint32_t *where = PyMem_New(uint32_t, (size_t)depth + 1);

    if (where)
        names = program_add_temporaries(p, depth, where);
    for (int32_t i = 0; i < p->count && constants && names; i++) {
        if (i == r->prologue + step) {
            program_lead(p, i);
            for (int32_t slot = depth - 1; slot >= 0; slot--)
                program_put(p, STORE_FAST, where[slot], -1);
            put_call(p, constants);
            program_put(p, RETURN_VALUE, 0, -1);
        }
        program_keep(p, i)->direct = i == r->prologue - 1;
    }
    PyMem_Free(where);
    if (!constants || !names)
        return NULL;
    return program_make(p, Py_BuildValue("{s:O,s:n,s:O,s:i}", "co_varnames", names, "co_nlocals", PyTuple_GET_SIZE(names),
                                         "co_consts", constants, "co_stacksize", r->code->co_stacksize + compat_call_length));
}

/* The variables of a resume function. */
struct layout {
    PyObject *names, *stack;   /* owned: lists: the variables' names, arguments first; what slots hold */
    int32_t *map;              /* owned: from the original's variables */
    int32_t locals, arguments; /* arguments that are variables, and all */
};

/* super() without arguments takes the first argument of the frame, and has a message if there are none. */
static bool calls_super(PyCodeObject *code)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); i++)
        if (!PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_names, i), "super"))
            return true;
    return false;
}

static bool lay_stack(struct layout *l, const unsigned char *stack, int32_t depth)
{
    for (int32_t slot = 0; slot < depth; slot++) {
        const bool value = stack[slot] & (SLOT_VALUE | SLOT_CELL);
        if (!append(l->stack, PyUnicode_FromString(!value ? "NULL" : !(stack[slot] & SLOT_NULL) ? "value" : "value or NULL")) ||
            (value && !append(l->names, program_temporary(slot))))
            return false;
    }
    return true;
}

/* What an inlined comprehension has in the place of a cell is an argument, and a first argument for super(). */
static bool lay_out(struct layout *l, PyCodeObject *code, const unsigned char *slots, int32_t depth)
{
    enum { ARGUMENT, OTHER, CELL, FREE };
    const bool super = code->co_argcount && calls_super(code);
    int32_t next = 0;

    *l = (struct layout){PyList_New(0), PyList_New(0), .map = malloc(sizeof *l->map * (size_t)(code->co_nlocalsplus + 1))};
    if (!l->names || !l->stack || !l->map) {
        PyErr_NoMemory();
        return false;
    }
    for (int part = ARGUMENT; part <= FREE; part++) {
        if (part == OTHER) {
            l->locals = next;
            if (!lay_stack(l, slots + code->co_nlocalsplus, depth))
                return false;
            l->arguments = next = (int32_t)PyList_GET_SIZE(l->names);
        }
        next += part == FREE ? code->co_ncellvars : 0; /* each is a free variable as well */
        for (int i = 0; i < code->co_nlocalsplus; i++) {
            const int kind = _PyLocals_GetKind(code->co_localspluskinds, i);
            const bool argument = slots[i] & SLOT_VALUE || (!i && super);
            if (part != (kind & CO_FAST_FREE ? FREE : argument ? ARGUMENT : kind & CO_FAST_CELL ? CELL : OTHER))
                continue;
            l->map[i] = next++;
            if (part < CELL && PyList_Append(l->names, PyTuple_GET_ITEM(code->co_localsplusnames, i)))
                return false;
        }
    }
    return true;
}

/* P's new code, laid out as L says: what leads to STEP, then all that there was. */
static void put_steps(struct program *p, int32_t step, const struct layout *l, Py_ssize_t cells, PyObject *constants)
{
    const unsigned char *stack = program_slots(p, step) + p->variables;
    uint32_t argument = (uint32_t)l->locals;

    if (cells)
        program_put(p, COPY_FREE_VARS, (uint32_t)cells, -1);
    program_put(p, RESUME, 0, -1);
    for (int32_t slot = 0; slot < p->depth[step]; slot++)
        if (stack[slot] & (SLOT_VALUE | SLOT_CELL))
            program_put(p, LOAD_FAST, argument++, -1);
        else
            program_put(p, PUSH_NULL, 0, -1);
    put_call(p, constants);
    program_put(p, POP_TOP, 0, -1);
    program_put(p, JUMP_FORWARD, 0, -1)->to = step;
    for (int32_t i = 0; i < p->count; i++) {
        if (compat_ops[p->steps[i].op].has_variable)
            p->steps[i].arg = (uint32_t)l->map[p->steps[i].arg];
        program_keep(p, i);
    }
}

/* R's code, the original, which ORIGIN refers to, from STEP on. */
static PyObject *make_resume(struct request *r, int32_t step, const struct layout *l, PyObject *origin)
{
    static long numbers;
    PyCodeObject *code = r->code;
    struct program *p = &r->o;
    const bool bare = !code->co_argcount && calls_super(code);
    const Py_ssize_t dot = PyUnicode_FindChar(code->co_qualname, '.', 0, PyUnicode_GET_LENGTH(code->co_qualname), -1);
    OWNED PyObject *link = Py_BuildValue("(OOiii)", origin, origin, (int)step, (int)l->locals, (int)r->o.depth[step]);
    OWNED PyObject *constants = link ? more_constants(code, PyCFunction_New(&enter_method, link)) : NULL;
    OWNED PyObject *name = PyUnicode_FromFormat("__resume_at_%d_%ld", (int)(2 * p->steps[step].from), numbers++);
    OWNED PyObject *class = PyUnicode_Substring(code->co_qualname, 0, dot + 1);
    OWNED PyObject *cells = tracer_attribute((PyObject *)code, "co_cellvars"), *outer = tracer_attribute((PyObject *)code, "co_freevars");
    OWNED PyObject *free_ = cells && outer ? PySequence_Concat(cells, outer) : NULL;
    PyObject *made, *itself;

    if (!constants || !name || !class || !free_)
        return NULL;
    put_steps(p, step, l, PyTuple_GET_SIZE(free_), constants);
    made = program_make(p, Py_BuildValue("{s:O,s:N,s:i,s:i,s:i,s:i,s:n,s:N,s:O,s:O,s:i}", "co_name", name, "co_qualname",
                                         PyUnicode_Concat(class, name), "co_flags", code->co_flags & ~(CO_VARARGS | CO_VARKEYWORDS),
                                         "co_argcount", bare ? 0 : l->arguments, "co_posonlyargcount", 0, "co_kwonlyargcount",
                                         bare ? l->arguments : 0, "co_nlocals", PyList_GET_SIZE(l->names), "co_varnames",
                                         PyList_AsTuple(l->names), "co_consts", constants, "co_freevars", free_, "co_stacksize",
                                         code->co_stacksize + compat_call_length));
    if (!made || !(itself = PyWeakref_NewRef(made, NULL)))
        Py_CLEAR(made);
    else
        Py_SETREF(((PyTupleObject *)link)->ob_item[LINK_CODE], itself);
    return made;
}

/* ---- a request ---- */

static PyObject *origin_of(PyObject *reference)
{
    PyObject *origin = ((PyWeakReference *)reference)->wr_object; /* borrowed */

    return origin == Py_None || !Py_REFCNT(origin) ? NULL : Py_NewRef(origin);
}

bool resume_is(PyCodeObject *code, PyCodeObject **origin)
{
    PyObject *link = link_of(code);

    *origin = link ? (PyCodeObject *)origin_of(PyTuple_GET_ITEM(link, LINK_ORIGIN)) : NULL;
    return link != NULL;
}

static const char *names_forbid(PyCodeObject *code)
{
    for (int i = 0; i < code->co_nlocalsplus; i++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        const char *text = PyUnicode_AsUTF8(name);
        if (!text)
            PyErr_Clear();
        else if (!strncmp(text, TEMPORARY, sizeof TEMPORARY - 1))
            return "it has a variable whose name begins with ___stack, as those have that are added here";
        for (int j = code->co_nlocalsplus - code->co_nfreevars; j < code->co_nlocalsplus; j++)
            if (j > i && name == PyTuple_GET_ITEM(code->co_localsplusnames, j) &&
                _PyLocals_GetKind(code->co_localspluskinds, i) & (CO_FAST_CELL | CO_FAST_FREE))
                return "a comprehension in it has a variable of its own in the place of a free variable";
    }
    return NULL;
}

/* -1 with an exception. In every case the caller closes it. */
static int request_open(struct request *r, PyCodeObject *code)
{
    PyObject *link = link_of(code);
    const bool resumes = link && ((PyWeakReference *)PyTuple_GET_ITEM(link, LINK_CODE))->wr_object == (PyObject *)code; /* no copy */
    const int32_t first = resumes ? (int32_t)link_number(link, LINK_FIRST) : 0;
    int status = 0;

    *r = (struct request){.code = code};
    r->origin = resumes ? origin_of(PyTuple_GET_ITEM(link, LINK_ORIGIN)) : Py_NewRef((PyObject *)code);
    r->why = r->origin ? names_forbid((PyCodeObject *)r->origin) : "the code object that it was made from is gone";
    if (!r->why)
        status = program_open(&r->o, (PyCodeObject *)r->origin, first, &r->why);
    if (!status && !r->why)
        status = program_read(&r->p, code);
    if (!r->why)
        r->prologue = r->p.count - r->o.count;
    return status < 0 ? -1 : 0;
}

static void request_close(struct request *r)
{
    program_close(&r->p);
    program_close(&r->o);
    Py_XDECREF(r->origin);
}

/* The step of the original where OFFSET of the code that was given is, or that has it behind an EXTENDED_ARG. -1: there is none; r->why
 * says why, if nothing did. */
static int32_t request_step(struct request *r, Py_ssize_t offset)
{
    int32_t found = -1;

    for (int32_t i = r->prologue; i < r->p.count && offset >= 0 && offset % 2 == 0; i++)
        if (r->p.steps[i].starts && offset / 2 >= r->p.steps[i].from && offset / 2 < r->p.steps[i].from + r->p.steps[i].size)
            found = i - r->prologue;
    if (!r->why)
        r->why = found < 0 ? "no instruction begins there" : program_forbids(&r->o, found);
    return r->why ? -1 : found;
}

/* ---- splits ---- */

static void split_free(PyObject *object)
{
    struct split *self = (struct split *)object;

    for (int part = 0; part < PARTS; part++)
        Py_XDECREF(self->part[part]);
    PyObject_Free(self);
}

static PyObject *split_repr(PyObject *object)
{
    struct split *self = (struct split *)object;

    return PyUnicode_FromFormat("<split of %U() at offset %zd>", ((PyCodeObject *)self->part[PREFIX])->co_qualname, self->offset);
}

static PyObject *split_origin(PyObject *object, void *closure)
{
    PyObject *origin = origin_of(((struct split *)object)->part[ORIGIN]);

    return origin ? origin : Py_NewRef(Py_None);
}

#define PART(which) T_OBJECT_EX, offsetof(struct split, part[which]), READONLY
static PyMemberDef split_members[] = {
    {"prefix", PART(PREFIX), "Code with the same arguments: runs up to the offset, then returns what the rest does."},
    {"resume", PART(RESUME_CODE), "Code of the rest: its arguments are variables, then slots of the stack."},
    {"stack", PART(STACK), "For each slot of the stack, from the bottom: 'value', 'NULL' or 'value or NULL'."},
    {"locals", PART(LOCALS), "The names of the variables that are handed over, without those in cells."},
    {"offset", T_PYSSIZET, offsetof(struct split, offset), READONLY, "Where, in the original."},
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

/* What is kept with CODE: a new reference. */
static PyObject *splits_of(PyCodeObject *code)
{
    OWNED PyObject *none = PyDict_New();
    struct code_state *state = none ? code_state_of(code, true) : NULL;

    if (state && !state->splits)
        state->splits = Py_NewRef(none);
    return state ? Py_NewRef(state->splits) : NULL;
}

/* The original of R is split before STEP: all but the prefix. */
static void make_parts(struct request *r, int32_t step, PyObject *part[PARTS])
{
    struct layout l;

    if (lay_out(&l, r->code, program_slots(&r->o, step), r->o.depth[step]) && (part[ORIGIN] = PyWeakref_NewRef(r->origin, NULL)) &&
        (part[RESUME_CODE] = make_resume(r, step, &l, part[ORIGIN])) && (part[LEAVE] = PyCFunction_New(&leave_method, part[RESUME_CODE])) &&
        (part[STACK] = PyList_AsTuple(l.stack)))
        part[LOCALS] = PyTuple_GetSlice(((PyCodeObject *)part[RESUME_CODE])->co_localsplusnames, 0, l.locals);
    Py_XDECREF(l.names);
    Py_XDECREF(l.stack);
    free(l.map);
}

/* R's code, split where its original is at STEP. A new reference. */
static PyObject *make_split(struct request *r, int32_t step)
{
    OWNED PyObject *made = PyType_GenericAlloc(&split_type, 0);
    OWNED PyObject *other = r->prologue ? resume_split((PyCodeObject *)r->origin, 2 * r->o.steps[step].from) : NULL;
    struct split *self = (struct split *)made;

    if (!made || (r->prologue && !other))
        return NULL;
    self->offset = 2 * r->o.steps[step].from;
    if (!other)
        make_parts(r, step, self->part);
    for (int part = 0; other && part < PREFIX; part++)
        self->part[part] = Py_NewRef(((struct split *)other)->part[part]);
    if (self->part[LOCALS])
        self->part[PREFIX] = make_prefix(r, step, self->part[LEAVE]);
    return self->part[PREFIX] ? Py_NewRef(made) : NULL;
}

PyObject *resume_split(PyCodeObject *code, Py_ssize_t offset)
{
    struct request r;
    OWNED PyObject *splits = NULL, *key = NULL, *made = NULL;
    PyObject *kept = NULL; /* borrowed */

    if (!request_open(&r, code)) {
        const int32_t step = request_step(&r, offset);
        if (step < 0)
            PyErr_Format(PyExc_ValueError, "%U() cannot be split at offset %zd: %s", code->co_qualname, offset, r.why);
        else if ((splits = splits_of((PyCodeObject *)r.origin)) && (key = Py_BuildValue("(Oi)", r.prologue ? code->co_name : Py_None, (int)step)) &&
                 !(kept = PyDict_GetItem(splits, key)) && (made = make_split(&r, step)))
            kept = PyDict_SetDefault(splits, key, made);
    }
    request_close(&r);
    return Py_XNewRef(kept);
}

PyObject *resume_leave(PyObject *split)
{
    return ((struct split *)split)->part[LEAVE];
}

/* ---- the functions ---- */

/* For PyArg_ParseTuple: a number that is too large is one at which no instruction begins. */
static int any_offset(PyObject *number, void *offset)
{
    *(Py_ssize_t *)offset = PyNumber_AsSsize_t(number, NULL);
    return !PyErr_Occurred();
}

static PyObject *split(PyObject *module, PyObject *args)
{
    PyCodeObject *code;
    Py_ssize_t offset;

    return PyArg_ParseTuple(args, "O!O&:split", &PyCode_Type, &code, any_offset, &offset) ? resume_split(code, offset) : NULL;
}

static PyObject *why_not(PyObject *module, PyObject *args)
{
    PyCodeObject *code;
    Py_ssize_t offset;
    struct request r;
    PyObject *answer = NULL;

    if (!PyArg_ParseTuple(args, "O!O&:why_not", &PyCode_Type, &code, any_offset, &offset))
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
    if (!request_open(&r, code))
        found = PyList_New(0);
    for (int32_t i = r.prologue; i < r.p.count && found && !r.why; i++)
        if (r.p.steps[i].starts && !program_forbids(&r.o, i - r.prologue) && !append(found, PyLong_FromLong(2 * r.p.steps[i].from)))
            Py_CLEAR(found);
    request_close(&r);
    if (found)
        Py_SETREF(found, PyList_AsTuple(found));
    return found;
}

static PyObject *call_resume(PyObject *module, PyObject *object)
{
    PyObject *const *part = ((struct split *)object)->part;
    OWNED PyObject *steps = PyList_New(0);
    bool good = steps;

    if (!Py_IS_TYPE(object, &split_type))
        return PyErr_Format(PyExc_TypeError, "expected what split() returns, got %s", Py_TYPE(object)->tp_name);
    for (Py_ssize_t slot = good ? PyTuple_GET_SIZE(part[STACK]) - 1 : -1; slot >= 0 && good; slot--)
        good = append(steps, Py_BuildValue("(sN)", "STORE_FAST", program_temporary((int32_t)slot)));
    for (int i = 0; i < compat_call_length && good; i++)
        good = append(steps, compat_call[i].op == LOAD_CONST ? Py_BuildValue("(sO)", compat_call[i].name, part[LEAVE])
                                                             : Py_BuildValue("(si)", compat_call[i].name, 0));
    return good && append(steps, Py_BuildValue("(sO)", "RETURN_VALUE", Py_None)) ? Py_NewRef(steps) : NULL;
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
    return PyModule_AddType(module, &resume_unbound) || PyModule_AddType(module, &split_type) || PyModule_AddFunctions(module, resume_methods) ? -1 : 0;
}
