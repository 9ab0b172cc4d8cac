/* capture/src/effect.c -- effects: changes of objects that others can see. See capture.h.
 *
 * The watched call changes the object at once, as the function says. Later calls do it behind the
 * graph, in the same order; where an operation of the graph raises, as far as the function had come
 * (plan.c). So the change must be known and invisible meanwhile: a graph with effects runs no code
 * of the program, and a value that is released must die without running any.
 *
 * A later read of the same place finds the new value, if no other source is the same object: guards
 * check that (is_apart). */
#include "capture.h"

enum { DEEPEST = 16 /* nesting of containers that others may see */ };

/* ---- may it be changed? ---- */

/* Can a plan make SHADOW's value of its own kind again, without looking into it? */
static bool is_leaf(const struct shadow *shadow)
{
    switch (shadow->kind) {
    case SHADOW_CONST:
        return shadow->value != NULL;
    case SHADOW_SOURCE:
        return shadow->source.key != NULL;
    case SHADOW_NODE:
        return true;
    default:
        return false;
    }
}

/* May the value be changed behind our back once others see it? */
static bool is_mutable(const struct shadow *shadow)
{
    return is_kind(shadow, SHADOW_LIST) || is_kind(shadow, SHADOW_DICT) ||
           is_kind(shadow, SHADOW_OBJECT);
}

/* From now on others can see SHADOW's value: changes of a list, dict or object are effects. INSIDE:
 * only what is made here sees it, and it may have functions that are made here. False: something in
 * it cannot be made again. */
static bool escape(struct capture *c, struct shadow *shadow, int depth, bool inside)
{
    struct shadow *made;

    if (!shadow || !may_go_on(c) || depth > DEEPEST)
        return false;
    if (inside && (shadow->kind == SHADOW_FUNCTION || shadow->kind == SHADOW_CALL))
        return true;
    if (shadow->kind <= SHADOW_NODE)
        return is_leaf(shadow);
    if (shadow->kind == SHADOW_METHOD)
        return escape(c, shadow->method.owner, depth + 1, false);
    if (shadow->kind > SHADOW_CALL)
        return false;
    inside = inside && shadow->kind == SHADOW_TUPLE;
    for (Py_ssize_t i = 0; i < shadow->count; i++)
        if (!escape(c, shadow->items[i], depth + 1, inside))
            return false;
    if (shadow->origin || !is_mutable(shadow))
        return true;
    made = shadow_copy(c, shadow);
    if (!made || !shadow_change(c, shadow))
        return false;
    shadow->origin = made;
    return true;
}

bool can_release(struct capture *c, PyObject *old, struct shadow *shadow)
{
    if (!old)
        return true;
    if (!shadow || !value_dies_quietly(old))
        return false;
    if (PyTuple_Check(old) || PyList_Check(old) || PyDict_Check(old))
        return false;
    if (shadow->kind != SHADOW_SOURCE || shadow->source.guarded)
        return true;
    if (value_is_array(old) && strcmp(Py_TYPE(old)->tp_name, "Tensor"))
        return value_type_known(c, old, shadow); /* its items may be objects */
    guard_on(c, shadow, "TYPE_MATCH", (PyObject *)Py_TYPE(old));
    if (!value_is_array(old))
        shadow->source.guarded = GUARDED_TYPE;
    return !c->failed;
}

struct shadow *one_of(struct capture *c, struct shadow *shadow)
{
    if (!is_source(shadow) || !shadow->value || !shadow->source.key)
        return shadow;
    for (Py_ssize_t i = 0; i < c->effects->count; i++) {
        struct shadow *changed = c->effects->items[i]->effect.container;
        PyObject *path;

        if (changed == shadow || changed->value != shadow->value || c->foreign)
            continue;
        path = source_path(c, changed);
        if (path)
            return guard_on(c, shadow, "ALIASING", path) ? NULL : changed;
    }
    return shadow;
}

/* Is SHADOW's object, whose attributes or items are VALUE, another one than effect CHANGED's? */
static bool is_other(struct capture *c, struct shadow *shadow, PyObject *value,
                     struct shadow *changed)
{
    PyObject *path;

    if (changed == shadow || !changed->value)
        return true;
    if (changed->value == value)
        return false;
    if (PyModule_Check(shadow->value) && !value_known(c, value, shadow))
        return false;
    if (Py_TYPE(changed->value) != Py_TYPE(shadow->value))
        return true;
    path = source_path(c, changed);
    if (path && !guard_on(c, shadow, "NO_ALIASING", path))
        return true;
    PyErr_Clear();
    return false;
}

bool is_apart(struct capture *c, struct shadow *shadow)
{
    PyObject *value = shadow->value;

    if (!value)
        return true;
    if (PyModule_Check(value))
        value = PyModule_GetDict(value);
    while (shadow->source.apart < c->effects->count) {
        const struct shadow *effect = c->effects->items[shadow->source.apart];

        if (!is_other(c, shadow, value, effect->effect.container))
            return false;
        shadow->source.apart++;
    }
    return true;
}

bool may_have_effect(struct capture *c, struct shadow *container, int count,
                     struct shadow *const *values)
{
    if (c->foreign || !is_apart(c, container))
        return false;
    for (int i = 0; i < count; i++)
        if (!escape(c, values[i], 0, false))
            return false;
    return !c->failed;
}

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
        if (!escape(c, args[i], 0, true))
            return NULL;
    return c->foreign ? NULL : add_effect(c, NULL, callable, count, args);
}

/* ---- lists and dicts that are known ---- */

/* ---- lists and dicts with known items ---- */

/* SHADOW, of a list that was read, becomes a list with known items. False: they are not known. */
static bool become_list(struct capture *c, struct shadow *shadow)
{
    struct shadow *origin, *items;

    if (c->foreign || !value_type_known(c, shadow->value, shadow) || !is_apart(c, shadow))
        return false;
    items = shadow_new(c, SHADOW_LIST, 0);
    if (!items || shadow_add_items(c, items, shadow->value, shadow))
        return false;
    origin = shadow_new(c, SHADOW_SOURCE, 0);
    if (!origin)
        return false;
    *origin = *shadow;
    shadow->kind = SHADOW_LIST;
    shadow->items = items->items;
    shadow->count = items->count;
    shadow->room = items->room;
    shadow->origin = origin;
    return true;
}

bool may_change(struct capture *c, struct shadow *shadow, enum shadow_kind kind)
{
    if (!shadow || shadow->frozen || shadow->mirrors)
        return false;
    if (!shadow_change(c, shadow))
        return false;
    if (is_source(shadow) && kind == SHADOW_LIST && shadow->value &&
        PyList_CheckExact(shadow->value))
        return become_list(c, shadow);
    return shadow->kind == kind;
}

bool change(struct capture *c, struct shadow *shadow, struct shadow *callable, PyObject *old,
            struct shadow *of_old, int count, struct shadow *const *args)
{
    if (!shadow->origin)
        return true;
    if (!can_release(c, old, of_old) || !may_have_effect(c, shadow, count, args))
        return false;
    return add_effect(c, shadow, callable, count, args) != NULL;
}

bool change_item(struct capture *c, struct shadow *shadow, struct shadow *key, struct shadow *value,
                 PyObject *old, struct shadow *of_old)
{
    struct shadow *const args[] = {shadow, key, value};

    return change(c, shadow, shadow_const(c, operator_named("setitem")), old, of_old, 3, args);
}

/* Does EFFECT set attribute NAME of a class? */
static bool sets_class_attribute(const struct shadow *effect, PyObject *name)
{
    PyObject *owner = effect->effect.container->value;

    if (!owner || !PyType_Check(owner) || effect->count != 4) /* setattr() and its arguments */
        return false;
    return PyUnicode_Compare(effect->items[2]->value, name) == 0;
}

bool class_changed(struct capture *c, const struct shadow *but, PyObject *name)
{
    for (Py_ssize_t i = 0; i < c->effects->count; i++) {
        const struct shadow *effect = c->effects->items[i];

        if (effect->effect.container != but && sets_class_attribute(effect, name))
            return true;
    }
    return false;
}
