/* tracer/resume/resume.c -- what python/dyntrace/resume.py splits functions with.
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer/resume/resume.h"

#include "tracer/evaluator/cache.h"
#include "tracer/resume/program.h"

static PyObject *known_link(PyObject *module, PyObject *code)
{
    PyObject *found = PyCode_Check(code) ? link_of((PyCodeObject *)code) : NULL;

    return Py_NewRef(found ? found : Py_None);
}

static PyObject *splits(PyObject *module, PyObject *code)
{
    OWNED PyObject *none = PyDict_New();
    struct code_state *state = none && PyCode_Check(code) ? code_state_of((PyCodeObject *)code, true) : NULL;

    if (state && !state->splits)
        state->splits = Py_NewRef(none);
    return state ? Py_NewRef(state->splits) : NULL;
}

static PyObject *steps(PyObject *module, PyObject *args)
{
    OWNED PyObject *list = PyList_New(0);
    PyCodeObject *code;
    struct program p;
    int first;
    bool good;

    if (!list || !PyArg_ParseTuple(args, "O!i:_steps", &PyCode_Type, &code, &first))
        return NULL;
    good = !program_open(&p, code, first);
    for (int32_t i = 0; good && i < p.count; i++) {
        const int begin = 2 * p.steps[i].from, end = begin + (p.steps[i].starts ? 2 * p.steps[i].size : 0);
        const char *before = compat_ops[p.steps[i].op].not_before, *behind = i ? compat_ops[p.steps[i - 1].op].not_behind : NULL;
        OWNED PyObject *step = Py_BuildValue("(iisy#)", begin, end, before ? before : behind, p.depth[i] < 0 ? NULL : program_slots(&p, i),
                                             (Py_ssize_t)(p.variables + p.depth[i]));
        good = step && !PyList_Append(list, step);
    }
    program_close(&p);
    return good ? Py_NewRef(list) : NULL;
}

/* STEPS are put where P is. */
static bool put_steps(struct program *p, PyObject *steps)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); i++) {
        int op;
        unsigned arg;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(steps, i), "iI", &op, &arg))
            return false;
        program_put(p, op, arg, -1)->to = op == JUMP_FORWARD ? (int32_t)arg : -1;
    }
    return true;
}

static PyObject *make(PyObject *module, PyObject *args)
{
    PyCodeObject *code;
    struct program p;
    PyObject *steps, *moved, *changes, *made = NULL;
    int prologue, at;
    bool good;

    if (!PyArg_ParseTuple(args, "O!iiO!O!O!:_make", &PyCode_Type, &code, &prologue, &at, &PyTuple_Type, &steps, &PyTuple_Type, &moved,
                          &PyDict_Type, &changes))
        return NULL;
    good = !program_read(&p, code) && (PyTuple_GET_SIZE(moved) == p.variables || !program_is_none());
    for (int32_t i = 0; good && i < p.count; i++) {
        program_lead(&p, i);
        good = i != at || put_steps(&p, steps);
        struct step *step = program_keep(&p, i);
        step->direct = i == prologue - 1;
        if (compat_ops[step->op].has_variable)
            step->arg = (uint32_t)PyLong_AsLong(PyTuple_GET_ITEM(moved, step->arg));
    }
    if (good)
        made = program_make(&p, Py_NewRef(changes));
    program_close(&p);
    return made;
}

static PyObject *make_leave(PyObject *module, PyObject *code)
{
    return PyCFunction_New(&leave_method, code);
}

static PyObject *make_enter(PyObject *module, PyObject *link)
{
    PyObject *origin, *itself;
    int first, locals, depth;

    return PyArg_ParseTuple(link, "O!iiiO:_enter", &_PyWeakref_RefType, &origin, &first, &locals, &depth, &itself)
               ? PyCFunction_New(&enter_method, link) : NULL;
}

PyMethodDef resume_methods[] = {
    {"_link", known_link, METH_O, "_link(code) -> tuple | None\n\nWhat _enter() was given, of a resume function, its prefix or a copy."},
    {"_splits", splits, METH_O, "_splits(code) -> dict\n\nFor what is made of CODE; kept with it until a reset."},
    {"_steps", steps, METH_VARARGS,
     "_steps(code, first) -> [(begin, end, why, slots)]\n\nThe steps of CODE, if it is entered at FIRST. The second half of an instruction has no end.\n"
     "WHY it belongs to others. What SLOTS may have, variables, then the stack; None: it is never reached."},
    {"_make", make, METH_VARARGS,
     "_make(code, prologue, at, steps, moved, changes) -> code\n\nCODE with STEPS, (opcode, argument; a step of JUMP_FORWARD), before AT. What jumps there\n"
     "jumps to them, but for the last one of PROLOGUE steps. MOVED: where CODE's variables are in the new code."},
    {"_leave", make_leave, METH_O, "_leave(code)\n\nWhat a prefix calls, of its resume function's code."},
    {"_enter", make_enter, METH_VARARGS, "_enter(origin, first, locals, depth, itself)\n\nWhat a resume function calls: enum link."},
    {NULL, NULL, 0, NULL},
};

int resume_types_ready(PyObject *module)
{
    OWNED PyObject *call = PyBytes_FromString((const char *)compat_call);

    return !call || PyModule_AddObjectRef(module, "_call", call) || PyModule_AddIntMacro(module, SLOT_VALUE) ||
                   PyModule_AddIntMacro(module, SLOT_NULL) || PyModule_AddIntMacro(module, SLOT_CELL) ||
                   PyModule_AddIntMacro(module, SLOT_HANDLER) || PyModule_AddType(module, &resume_unbound) ||
                   PyModule_AddFunctions(module, resume_methods) ? -1 : 0;
}
