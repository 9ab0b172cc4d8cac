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

/* May CONTAINER's be changed as an effect, with COUNT VALUES? */
bool may_have_effect(struct capture *c, struct shadow *container, int count,
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
struct shadow *add_effect(struct capture *c, struct shadow *container, struct shadow *callable,
                          int count, struct shadow *const *args)
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
