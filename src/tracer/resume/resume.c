/* tracer/resume/resume.c -- the C part of python/dyntrace/resume.py, which splits functions.
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer/resume/resume.h"

#include "tracer/evaluator/cache.h"
#include "tracer/hooks.h"
#include "tracer/resume/program.h"

static PyObject *get_link_of_code(PyObject *module, PyObject *code)
{
    PyObject *found = PyCode_Check(code) ? link_of((PyCodeObject *)code) : NULL;

    return Py_NewRef(found ? found : Py_None);
}

static PyObject *list_possible_splits(PyObject *module, PyObject *code)
{
    OWNED PyObject *none = PyDict_New();
    struct code_state *state =
        none && PyCode_Check(code) ? code_state_get((PyCodeObject *)code, true) : NULL;

    if (state && !state->splits)
        state->splits = Py_NewRef(none);
    return state ? Py_NewRef(state->splits) : NULL;
}

static PyObject *list_steps_for_python(PyObject *module, PyObject *args)
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
        const int begin = 2 * p.steps[i].from;
        const int end = begin + (p.steps[i].starts ? 2 * p.steps[i].size : 0);
        const char *before = compat_ops[p.steps[i].op].not_before;
        const char *behind = i ? compat_ops[p.steps[i - 1].op].not_behind : NULL;
        OWNED PyObject *step =
            Py_BuildValue("(iisy#)", begin, end, before ? before : behind,
                          p.depth[i] < 0 ? NULL : program_slots_before_step(&p, i),
                          (Py_ssize_t)(p.variables + p.depth[i]));
        good = step && !PyList_Append(list, step);
    }
    program_close(&p);
    return good ? Py_NewRef(list) : NULL;
}

/* Add PART to the new code: a tuple describes a new step; a number is that of an old step of P,
 * which is copied; ~number makes jumps to this old step lead to the next part. MOVED has the new
 * number of each variable. */
static bool add_part_to_program(struct program *p, PyObject *part, PyObject *moved)
{
    int op;
    int to = -1;
    int from = -1;
    unsigned arg;

    if (!PyLong_Check(part)) {
        if (!PyArg_ParseTuple(part, "iI|ii", &op, &arg, &to, &from))
            return false;
        program_add_step(p, op, arg, from)->to = to;
        return true;
    }
    const long number = PyLong_AsLong(part);
    if (number < 0)
        return program_redirect_jumps(p, (int32_t)~number), true;
    struct step *step = program_keep_step(p, (int32_t)number);
    if (compat_ops[step->op].has_variable)
        step->arg = (uint32_t)PyLong_AsLong(PyTuple_GET_ITEM(moved, step->arg));
    return true;
}

static PyObject *make_code_from_parts(PyObject *module, PyObject *args)
{
    PyCodeObject *code;
    struct program p;
    PyObject *parts, *moved, *changes;
    PyObject *made = NULL;
    bool good;

    if (!PyArg_ParseTuple(args, "O!O!O!O!:_make", &PyCode_Type, &code, &PyTuple_Type, &parts,
                          &PyTuple_Type, &moved, &PyDict_Type, &changes))
        return NULL;
    good = !program_read(&p, code) &&
           (PyTuple_GET_SIZE(moved) == p.variables || !program_raise_invalid());
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(parts); i++)
        good = add_part_to_program(&p, PyTuple_GET_ITEM(parts, i), moved);
    if (good)
        made = program_make(&p, Py_NewRef(changes));
    program_close(&p);
    return made;
}

static PyObject *make_leave_function(PyObject *module, PyObject *code)
{
    if (!PyCode_Check(code))
        return PyErr_Format(PyExc_TypeError, "expected a code object");
    return PyCFunction_New(&leave_method, code);
}

static PyObject *make_enter_function(PyObject *module, PyObject *link)
{
    PyObject *origin, *itself;
    PyObject *filled, *places;
    int first, locals, depth;

    if (!PyArg_ParseTuple(link, "O!iiiO!O!O:_enter", &_PyWeakref_RefType, &origin, &first, &locals,
                          &depth, &PyBytes_Type, &filled, &PyTuple_Type, &places, &itself))
        return NULL;
    if (PyBytes_GET_SIZE(filled) != depth)
        return PyErr_Format(PyExc_ValueError, "expected a byte for each slot of the stack");
    return PyCFunction_New(&enter_method, link);
}

static PyObject *read_steps_for_python(PyObject *module, PyObject *code)
{
    OWNED PyObject *list = PyList_New(0);
    struct program p = {0};
    bool good = list && (PyCode_Check(code) ? !program_read(&p, (PyCodeObject *)code)
                                            : !program_raise_invalid());

    for (int32_t i = 0; good && i < p.count; i++) {
        const struct step *step = &p.steps[i];
        OWNED PyObject *one = Py_BuildValue("(iiiii)", step->op, step->to,
                                            step->span < 0 ? -1 : p.spans[step->span].to,
                                            step->from, compat_ops[step->op].ends);
        good = one && !PyList_Append(list, one);
    }
    program_close(&p);
    return good ? Py_NewRef(list) : NULL;
}

PyMethodDef resume_methods[] = {
    {"_link", get_link_of_code, METH_O,
     "_link($module, code, /)\n--\n\nReturn the link, the tuple given to _enter(), of a resume "
     "function, its prefix or a copy.\n"
     "None for any other code."},
    {"_splits", list_possible_splits, METH_O,
     "_splits($module, code, /)\n--\n\nReturn a dict for the splits of CODE. It is kept "
     "with CODE until a reset."},
    {"_steps", list_steps_for_python, METH_VARARGS,
     "_steps($module, code, first, /)\n--\n\nReturn a list of (begin, end, why, slots): the "
     "steps of CODE, entered at step FIRST. "
     "BEGIN and END are byte offsets, equal for the second half of an instruction.\n"
     "WHY: why CODE cannot be split there, or None. SLOTS: the kinds of values in variables and "
     "stack; None: never reached."},
    {"_read", read_steps_for_python, METH_O,
     "_read($module, code, /)\n--\n\nReturn a list of (opcode, to, handler, unit, ends), the steps "
     "of CODE. TO: the step to which it may jump, HANDLER: that of its exceptions; or -1."},
    {"_make", make_code_from_parts, METH_VARARGS,
     "_make($module, code, parts, moved, changes, /)\n--\n\nReturn new code made of PARTS: the "
     "number of a step of "
     "CODE, to copy it; ~number, to make jumps to that step lead here;\n"
     "or a new step (opcode, argument[, step to jump to[, code unit with its source position]]). "
     "MOVED: the new numbers of CODE's variables."},
    {"_leave", make_leave_function, METH_O,
     "_leave($module, code, /)\n--\n\nReturn leave(), which a prefix calls; CODE: its resume "
     "function's."},
    {"_enter", make_enter_function, METH_VARARGS,
     "_enter($module, origin, first, locals, depth, filled, places, itself, /)\n--\n\n"
     "Return enter(), which a resume function calls.\n"
     "The arguments are those of enum link."},
    {NULL, NULL, 0, NULL},
};

int resume_types_ready(PyObject *module)
{
    OWNED PyObject *call = PyBytes_FromString((const char *)compat_call);

    return !call || PyModule_AddObjectRef(module, "_call", call) ||
                   PyModule_AddIntMacro(module, SLOT_VALUE) ||
                   PyModule_AddIntMacro(module, SLOT_NULL) ||
                   PyModule_AddIntMacro(module, SLOT_CELL) ||
                   PyModule_AddIntMacro(module, SLOT_HANDLER) ||
                   PyModule_AddIntMacro(module, SLOT_INDEX) ||
                   PyModule_AddIntMacro(module, SLOT_ITERATED) ||
                   PyModule_AddIntConstant(module, "FREE_MAY_BE_NULL", COMPAT_FREE_MAY_BE_NULL) ||
                   PyModule_AddType(module, &resume_unbound) ||
                   PyModule_AddFunctions(module, resume_methods)
               ? -1
               : 0;
}

static bool is_resume_function(PyCodeObject *code, PyCodeObject **origin)
{
    PyObject *link = link_of(code);

    if (!link)
        return false;
    *origin = link_origin(link);
    return true;
}

void resume_register(void)
{
    tracer_hooks.is_resume = is_resume_function;
}
