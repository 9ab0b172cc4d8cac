/* capture/src/store.c -- attributes, globals, items and cells that are set. See capture.h. */
#include "capture.h"

enum ended set_place(struct capture *c, struct watched *w, int count, struct shadow *of, char step,
                     PyObject *key, PyObject *old, PyObject *value, struct shadow *of_value)
{
    struct shadow *const args[] = {of, shadow_const(c, key), of_value};
    struct shadow *made, *callable;

    if (!lets_go(c, old, old ? source_read(c, of, step, key, old) : NULL) ||
        !may_have_effect(c, of, 2, args + 1))
        return not_ours(c, of->value);
    if (!old && !source_changed(of, step, key))
        guard_on(c, of, step == '.' ? "NO_HASATTR" : "DICT_NOT_CONTAINS", key);
    callable = shadow_const(c, operator_named(step == '.' ? "setattr" : "setitem"));
    made = shadow_new(c, SHADOW_CHANGED, 1);
    if (!callable || !made || !shadow_change(c, of) || !add_effect(c, of, callable, 3, args))
        return not_ours(c, of->value);
    made->source.step = step;
    made->source.parent = of;
    made->source.key = capture_keep(c, key);
    made->value = capture_keep(c, value);
    made->items[0] = of_value;
    made->count = 1;
    made->source.is_new = !old;
    if (step == '.' ? PyObject_SetAttr(of->value, key, value)
                    : PyObject_SetItem(of->value, key, value))
        return ENDED_RAISED;
    made->source.next = of->source.child;
    of->source.child = made;
    of->source.changed = true;
    stack_drop(w, count);
    return ENDED_NOT;
}

/* Item KEY of a dict that was there, or a global. */
enum ended set_in_dict(struct capture *c, struct watched *w, int count, struct shadow *of,
                       PyObject *key, PyObject *value, struct shadow *of_value)
{
    return set_place(c, w, count, of, '[', key,
                     capture_keep(c, PyDict_GetItemWithError(of->value, key)), value, of_value);
}

/* Attribute NAME of a class of the program's, a plain value that the class has itself, is set. */
static enum ended set_class_attribute(struct capture *c, struct watched *w, PyObject *name)
{
    PyObject *owner = stack_value(w, 0);
    PyObject *old = ((PyTypeObject *)owner)->tp_flags & Py_TPFLAGS_HEAPTYPE
                        ? PyDict_GetItemWithError(((PyTypeObject *)owner)->tp_dict, name)
                        : NULL;
    struct shadow *of = stack_shadow(w, 0);

    if (!old || !Py_IS_TYPE(owner, &PyType_Type) || _PyType_Lookup(&PyType_Type, name) ||
        !value_is_simple(old) || !value_is_simple(stack_value(w, 1)) ||
        PyUnicode_READ_CHAR(name, 0) == '_' || !value_known(c, owner, of) ||
        class_changed(c, of, name))
        return PyErr_Clear(), break_at(c, "mutation", "an attribute of a class is set");
    return set_place(c, w, 2, of, '.', name, capture_keep(c, old), stack_value(w, 1),
                     stack_shadow(w, 1));
}

enum ended store_attribute(struct capture *c, struct watched *w, PyObject *name)
{
    struct operands operands = {{stack_value(w, 0), stack_value(w, 1)},
                                {stack_shadow(w, 0), stack_shadow(w, 1)}};
    const struct call call = operator_call("setattr", 2, 2, &operands);
    PyObject *owner = operands.values[0], *value = operands.values[1],
             *descriptor = _PyType_Lookup(Py_TYPE(owner), name);
    OWNED PyObject *old = NULL;
    PyTypeObject *type = Py_TYPE(owner);
    struct shadow *of = operands.of[0], *of_class, **has = NULL;
    const bool made = of && of->kind == SHADOW_OBJECT,
               member = descriptor && Py_IS_TYPE(descriptor, &PyMemberDescr_Type);
    enum ended ended;

    if (descriptor && of && Py_IS_TYPE(descriptor, &PyProperty_Type)) {
        ended = call_property(c, w, name, descriptor, &call);
        if (ended == ENDED_NOT || ended == ENDED_BEHIND)
            stack_drop(w, 1);
        return ended;
    }
    if (of && of->kind == SHADOW_SOURCE && PyType_Check(owner) && !c->failed)
        return set_class_attribute(c, w, name);
    if (!of || !(made || of->kind == SHADOW_SOURCE) || !operands.of[1] || value_is_array(owner) ||
        PyType_Check(owner) || PyModule_Check(owner) || c->failed ||
        type->tp_setattro != PyObject_GenericSetAttr ||
        (descriptor && Py_TYPE(descriptor)->tp_descr_set && !member) ||
        !value_type_known(c, owner, of))
        return break_at(c, "mutation", "an attribute is set");
    find_attribute(owner, name, &old);
    capture_keep(c, old);
    if (made ? (!descriptor && !type->tp_dictoffset &&
                !(type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) ||
                   !shadow_change(c, of)
             : (descriptor && PyFunction_Check(descriptor)) ||
                   (!old && (descriptor ? !member : type->tp_getattro != PyObject_GenericGetAttr)))
        return break_at(c, "mutation", "an attribute is set");
    of_class = class_source(c, owner, of);
    has = made ? object_place(of, name) : NULL;
    if (!of_class || (!made && !is_ordinary(c, type, of_class)) ||
        (!has && (descriptor ? !value_type_known(c, descriptor,
                                                 source_read(c, of_class, '.', name, descriptor))
                             : guard_on(c, of_class, "NO_HASATTR", name))))
        return break_at(c, "mutation", "an attribute of a %.100s is set, whose class may say how",
                        type->tp_name);
    if (!made)
        return set_place(c, w, 2, of, '.', name, old, value, operands.of[1]);
    if ((has && !old) ||
        !change(c, of, shadow_const(c, operator_named("setattr")), has ? old : NULL,
                has ? *has : NULL, 3,
                (struct shadow *const[]){of, shadow_const(c, name), operands.of[1]}))
        return break_at(c, "mutation", "an attribute is set");
    if (PyObject_SetAttr(owner, name, value))
        return ENDED_RAISED;
    if (has)
        *has = operands.of[1];
    else
        shadow_add(c, of, name, operands.of[1]);
    stack_drop(w, 2);
    return ENDED_NOT;
}
