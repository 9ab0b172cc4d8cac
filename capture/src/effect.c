/* capture/src/effect.c -- what is changed that was there before: attributes, globals, items,
 * cells of other functions. See capture.h.
 *
 * It is changed at once, as the function says. The plan does it again, in this order, behind the
 * graph; where an operation of the graph raises, as far as it had come (plan.c). So what is changed
 * must be known, and that nothing can see it: no code of the program's runs in a graph with
 * effects, and what gives way dies without running any.
 *
 * What is read behind that finds what was put there, as long as no other source is the same object:
 * guards say so (is_apart). */
#include "capture.h"

/* ---- what may be ---- */

/* SHADOW's list, dict or object can be seen from outside from now on: what changes it is an effect.
 * INSIDE: only from what is made here, which may have functions that are made here. -1: something
 * in it cannot be made again. */
static int escape(struct capture *c, struct shadow *shadow, int depth, bool inside)
{
    struct shadow *made;

    if (!shadow || !may_go_on(c) || depth > 16)
        return -1;
    if (inside && (shadow->kind == SHADOW_FUNCTION || shadow->kind == SHADOW_CALL))
        return 0;
    if (shadow->kind <= SHADOW_NODE)
        return shadow->kind == SHADOW_NODE ||
                       (shadow->kind == SHADOW_CONST ? shadow->value : shadow->source.key)
                   ? 0
                   : -1;
    if (shadow->kind == SHADOW_METHOD)
        return escape(c, shadow->method.owner, depth + 1, false);
    if (shadow->kind > SHADOW_CALL)
        return -1;
    for (Py_ssize_t i = 0; i < shadow->count; i++)
        if (escape(c, shadow->items[i], depth + 1, inside && shadow->kind == SHADOW_TUPLE))
            return -1;
    if (shadow->origin || shadow->kind == SHADOW_TUPLE || shadow->kind == SHADOW_SLICE ||
        shadow->kind == SHADOW_CALL)
        return 0;
    made = shadow_copy(c, shadow);
    if (!made || !shadow_change(c, shadow))
        return -1;
    shadow->origin = made;
    return 0;
}

bool lets_go(struct capture *c, PyObject *old, struct shadow *shadow)
{
    if (!old)
        return true;
    if (!shadow || !value_dies_quietly(old) || PyTuple_Check(old) || PyList_Check(old) ||
        PyDict_Check(old))
        return false;
    if (shadow->kind != SHADOW_SOURCE || shadow->source.guarded)
        return true;
    if (value_is_array(old) && strcmp(Py_TYPE(old)->tp_name, "Tensor"))
        return value_type_known(c, old, shadow); /* its items may be objects */
    guard_on(c, shadow, "TYPE_MATCH", (PyObject *)Py_TYPE(old));
    shadow->source.guarded = value_is_array(old) ? GUARDED_NOT : GUARDED_TYPE;
    return !c->failed;
}

struct shadow *one_of(struct capture *c, struct shadow *shadow)
{
    for (Py_ssize_t i = 0; shadow && shadow->kind == SHADOW_SOURCE && shadow->value &&
                           shadow->source.key && i < c->effects->count;
         i++) {
        struct shadow *changed = c->effects->items[i]->effect.container;
        PyObject *path = changed != shadow && changed->value == shadow->value && !c->foreign
                             ? source_path(c, changed)
                             : NULL;
        if (path)
            return guard_on(c, shadow, "ALIASING", path) ? NULL : changed;
    }
    return shadow;
}

bool is_apart(struct capture *c, struct shadow *shadow)
{
    PyObject *value = shadow->value && PyModule_Check(shadow->value)
                          ? PyModule_GetDict(shadow->value)
                          : shadow->value;

    for (; value && shadow->source.apart < c->effects->count; shadow->source.apart++) {
        struct shadow *changed = c->effects->items[shadow->source.apart]->effect.container;
        if (changed == shadow || !changed->value)
            continue;
        if (changed->value == value ||
            (PyModule_Check(shadow->value) && !value_known(c, value, shadow)))
            return false;
        if (Py_TYPE(changed->value) == Py_TYPE(shadow->value)) {
            PyObject *path = source_path(c, changed);
            if (!path || guard_on(c, shadow, "NO_ALIASING", path))
                return PyErr_Clear(), false;
        }
    }
    return true;
}

enum ended not_ours(struct capture *c, PyObject *container)
{
    return break_at(c, "mutation", "a %.200s is changed that was not made here",
                    Py_TYPE(container)->tp_name);
}

/* May CONTAINER's be changed as an effect, with COUNT VALUES? */
static bool may_have_effect(struct capture *c, struct shadow *container, int count,
                            struct shadow *const *values)
{
    if (c->foreign || !is_apart(c, container))
        return false;
    for (int i = 0; i < count; i++)
        if (escape(c, values[i], 0, false))
            return false;
    return !c->failed;
}

/* CALLABLE is called with COUNT ARGS, which changes CONTAINER; NULL: it makes something. */
static struct shadow *add_effect(struct capture *c, struct shadow *container,
                                 struct shadow *callable, int count, struct shadow *const *args)
{
    struct shadow *made = callable ? shadow_new(c, SHADOW_CALL, count + 1) : NULL;

    if (!made)
        return NULL;
    made->items[0] = callable;
    for (int i = 0; i < count; i++)
        made->items[1 + i] = args[i];
    made->count = count + 1;
    made->effect.container = container ? container : made;
    made->effect.nodes = PyList_GET_SIZE(c->nodes);
    return shadow_add(c, c->effects, NULL, made) ? NULL : made;
}

struct shadow *made_by(struct capture *c, struct shadow *callable, int count,
                       struct shadow *const *args)
{
    for (int i = 0; i < count; i++)
        if (escape(c, args[i], 0, true))
            return NULL;
    return c->foreign ? NULL : add_effect(c, NULL, callable, count, args);
}

/* ---- lists and dicts that are known ---- */

bool may_change(struct capture *c, struct shadow *shadow, enum shadow_kind kind)
{
    struct shadow *origin, *items;

    if (!shadow || shadow->frozen || shadow->mirrors || !shadow_change(c, shadow))
        return false;
    if (shadow->kind != SHADOW_SOURCE || kind != SHADOW_LIST || !shadow->value ||
        !PyList_CheckExact(shadow->value))
        return shadow->kind == kind;
    /* a list that was there: what is in it is known from here on */
    if (c->foreign || !value_type_known(c, shadow->value, shadow) || !is_apart(c, shadow) ||
        !(items = shadow_new(c, SHADOW_LIST, 0)) ||
        shadow_add_items(c, items, shadow->value, shadow) ||
        !(origin = shadow_new(c, SHADOW_SOURCE, 0)))
        return false;
    *origin = *shadow;
    shadow->kind = SHADOW_LIST;
    shadow->items = items->items;
    shadow->count = items->count;
    shadow->room = items->room;
    shadow->origin = origin;
    return true;
}

bool change(struct capture *c, struct shadow *shadow, struct shadow *callable, PyObject *old,
            struct shadow *of_old, int count, struct shadow *const *args)
{
    return !shadow->origin || (lets_go(c, old, of_old) && may_have_effect(c, shadow, count, args) &&
                               add_effect(c, shadow, callable, count, args));
}

bool change_item(struct capture *c, struct shadow *shadow, struct shadow *key, struct shadow *value,
                 PyObject *old, struct shadow *of_old)
{
    return change(c, shadow, shadow_const(c, operator_named("setitem")), old, of_old, 3,
                  (struct shadow *const[]){shadow, key, value});
}

/* ---- attributes, globals, items of dicts, cells ---- */

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

bool class_changed(struct capture *c, const struct shadow *but, PyObject *name)
{
    for (Py_ssize_t i = 0; i < c->effects->count; i++) {
        const struct shadow *effect = c->effects->items[i], *of = effect->effect.container;
        if (of != but && of->value && PyType_Check(of->value) && effect->count == 4 &&
            PyUnicode_Compare(effect->items[2]->value, name) == 0)
            return true;
    }
    return false;
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

/* Item KEY of a dict that was there, or a global. */
enum ended set_in_dict(struct capture *c, struct watched *w, int count, struct shadow *of,
                       PyObject *key, PyObject *value, struct shadow *of_value)
{
    return set_place(c, w, count, of, '[', key,
                     capture_keep(c, PyDict_GetItemWithError(of->value, key)), value, of_value);
}
