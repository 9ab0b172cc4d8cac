/* capture/src/effect.c -- effects: changes that are visible outside the function. See capture.h.
 *
 * The watched call makes each change where the function makes it. The compiled code makes the
 * changes after the graph, in the same order. If an operation of the graph raises, the compiled
 * code makes only the changes that come before this operation (plan.c). Nobody may notice that a
 * change is late. Therefore a graph with effects runs no code of the program, and a value that an
 * effect releases must die without running code of the program.
 *
 * A read after the change finds the new value, even if it reads the object under another name:
 * guards check which names lead to the same object (ensure_not_aliased). */
#include "capture.h"

enum { DEEPEST = 16 /* deepest nesting of a container that an effect makes visible outside */ };

/* ---- which objects an effect may change ---- */

/* Is SHADOW a constant, a source or a graph node? Then a plan can make the value again in one step,
 * and need not make the value's items first. */
static bool can_plan_make_again_directly(const struct shadow *shadow)
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

/* Is the value a list, dict or object, which other code may change once it can see the value? */
static bool is_mutable_value(const struct shadow *shadow)
{
    return is_kind(shadow, SHADOW_LIST) || is_kind(shadow, SHADOW_DICT) ||
           is_kind(shadow, SHADOW_OBJECT);
}

/* Prepare for SHADOW's value to become visible outside the function. Marks the lists, dicts and
 * objects in the value: each later change of them becomes an effect. INSIDE: only an object that
 * the watched call makes will hold the value, so the value may contain functions that the call
 * made. Returns false if a plan cannot make the value again. */
static bool mark_visible_outside(struct capture *c, struct shadow *shadow, int depth, bool inside)
{
    struct shadow *made;

    if (!shadow || !count_visited_item(c) || depth > DEEPEST)
        return false;
    if (inside && (shadow->kind == SHADOW_FUNCTION || shadow->kind == SHADOW_CALL))
        return true;
    if (shadow->kind <= SHADOW_NODE)
        return can_plan_make_again_directly(shadow);
    if (shadow->kind == SHADOW_METHOD)
        return mark_visible_outside(c, shadow->method.owner, depth + 1, false);
    if (shadow->kind > SHADOW_CALL)
        return false;
    inside = inside && shadow->kind == SHADOW_TUPLE;
    for (Py_ssize_t i = 0; i < shadow->count; i++)
        if (!mark_visible_outside(c, shadow->items[i], depth + 1, inside))
            return false;
    if (shadow->origin || !is_mutable_value(shadow))
        return true;
    made = shadow_copy(c, shadow);
    if (!made || !shadow_save_for_undo(c, shadow))
        return false;
    shadow->origin = made;
    return true;
}

bool can_release(struct capture *c, PyObject *old, struct shadow *shadow)
{
    if (!old)
        return true;
    if (!shadow || !value_can_die_quietly(old))
        return false;
    if (PyTuple_Check(old) || PyList_Check(old) || PyDict_Check(old))
        return false;
    if (shadow->kind != SHADOW_SOURCE || shadow->source.guarded)
        return true;
    if (value_is_array(old) && strcmp(Py_TYPE(old)->tp_name, "Tensor"))
        /* the array may hold objects of the program, whose death runs code: guard the array's
         * type */
        return ensure_type_known(c, old, shadow);
    guard_add(c, shadow, "TYPE_MATCH", (PyObject *)Py_TYPE(old));
    if (!value_is_array(old))
        shadow->source.guarded = GUARDED_TYPE;
    return !c->failed;
}

struct shadow *resolve_alias(struct capture *c, struct shadow *shadow)
{
    if (!is_source(shadow) || !shadow->value || !shadow->source.key)
        return shadow;
    for (Py_ssize_t i = 0; i < c->effects->count; i++) {
        struct shadow *changed = c->effects->items[i]->effect.container;
        PyObject *path;

        if (changed == shadow || changed->value != shadow->value || c->foreign)
            continue;
        path = source_make_path(c, changed);
        if (path)
            return guard_add(c, shadow, "ALIASING", path) ? NULL : changed;
    }
    return shadow;
}

/* Are SHADOW and CHANGED two different objects? An effect has changed the object of CHANGED. VALUE
 * is SHADOW's object; if this object is a module, VALUE is the module's dict. Adds guards. */
static bool guard_that_objects_differ(struct capture *c, struct shadow *shadow, PyObject *value,
                                      struct shadow *changed)
{
    PyObject *path;

    if (changed == shadow || !changed->value)
        return true;
    if (changed->value == value)
        return false;
    if (PyModule_Check(shadow->value) && !ensure_value_known(c, value, shadow))
        return false;
    if (Py_TYPE(changed->value) != Py_TYPE(shadow->value))
        return true;
    path = source_make_path(c, changed);
    if (path && !guard_add(c, shadow, "NO_ALIASING", path))
        return true;
    PyErr_Clear();
    return false;
}

bool ensure_not_aliased(struct capture *c, struct shadow *shadow)
{
    PyObject *value = shadow->value;

    if (!value)
        return true;
    if (PyModule_Check(value))
        value = PyModule_GetDict(value);
    while (shadow->source.apart < c->effects->count) {
        const struct shadow *effect = c->effects->items[shadow->source.apart];

        if (!guard_that_objects_differ(c, shadow, value, effect->effect.container))
            return false;
        shadow->source.apart++;
    }
    return true;
}

bool prepare_effect(struct capture *c, struct shadow *container, int count,
                    struct shadow *const *values)
{
    if (c->foreign || !ensure_not_aliased(c, container))
        return false;
    for (int i = 0; i < count; i++)
        if (!mark_visible_outside(c, values[i], 0, false))
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

struct shadow *add_creation_effect(struct capture *c, struct shadow *callable, int count,
                                   struct shadow *const *args)
{
    for (int i = 0; i < count; i++)
        if (!mark_visible_outside(c, args[i], 0, true))
            return NULL;
    return c->foreign ? NULL : add_effect(c, NULL, callable, count, args);
}

/* ---- lists and dicts with known items ---- */

/* Turn SHADOW, the source of a list, into a SHADOW_LIST with the shadows of the list's items.
 * Returns false if an item is unknown. */
static bool turn_source_into_list(struct capture *c, struct shadow *shadow)
{
    struct shadow *origin, *items;

    if (c->foreign || !ensure_type_known(c, shadow->value, shadow) ||
        !ensure_not_aliased(c, shadow))
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

bool may_change_container(struct capture *c, struct shadow *shadow, enum shadow_kind kind)
{
    if (!shadow || shadow->frozen || shadow->mirrors)
        return false;
    if (!shadow_save_for_undo(c, shadow))
        return false;
    if (is_source(shadow) && kind == SHADOW_LIST && shadow->value &&
        PyList_CheckExact(shadow->value))
        return turn_source_into_list(c, shadow);
    return shadow->kind == kind;
}

bool add_change_effect(struct capture *c, struct shadow *shadow, struct shadow *callable,
                       PyObject *old, struct shadow *of_old, int count, struct shadow *const *args)
{
    if (!shadow->origin)
        return true;
    if (!can_release(c, old, of_old) || !prepare_effect(c, shadow, count, args))
        return false;
    return add_effect(c, shadow, callable, count, args) != NULL;
}

bool add_item_change_effect(struct capture *c, struct shadow *shadow, struct shadow *key,
                            struct shadow *value, PyObject *old, struct shadow *of_old)
{
    struct shadow *const args[] = {shadow, key, value};

    return add_change_effect(c, shadow, shadow_new_const(c, get_operator("setitem")), old, of_old,
                             3, args);
}

/* Does EFFECT set attribute NAME of a class? */
static bool does_effect_set_class_attribute(const struct shadow *effect, PyObject *name)
{
    PyObject *owner = effect->effect.container->value;

    /* an effect of setattr has four items: setattr and its three arguments */
    if (!owner || !PyType_Check(owner) || effect->count != 4)
        return false;
    return PyUnicode_Compare(effect->items[2]->value, name) == 0;
}

bool was_class_attribute_set(struct capture *c, const struct shadow *but, PyObject *name)
{
    for (Py_ssize_t i = 0; i < c->effects->count; i++) {
        const struct shadow *effect = c->effects->items[i];

        if (effect->effect.container != but && does_effect_set_class_attribute(effect, name))
            return true;
    }
    return false;
}
