/* capture/src/store.c -- set attributes, globals, items and cells. See capture.h. */
#include "capture.h"

/* ---- an attribute or item of a value that existed before the watched call ---- */

/* Make the SHADOW_CHANGED for an effect that stores VALUE in OF. STEP and KEY tell where: '.' in
 * the attribute KEY, '[' in the item KEY. OLD is the former value, NULL if there was none. */
static struct shadow *make_changed_shadow(struct capture *c, struct shadow *of, char step,
                                          PyObject *key, PyObject *old, PyObject *value,
                                          struct shadow *of_value)
{
    struct shadow *made = shadow_new(c, SHADOW_CHANGED, 1);

    if (!made)
        return NULL;
    made->source.step = step;
    made->source.parent = of;
    made->source.key = capture_keep(c, key);
    made->source.is_new = !old;
    made->value = capture_keep(c, value);
    made->items[0] = of_value;
    made->count = 1;
    return made;
}

enum ended set_value_at_place(struct capture *c, struct watched *w, int count, struct shadow *of,
                              char step, PyObject *key, PyObject *old, PyObject *value,
                              struct shadow *of_value)
{
    const bool is_attribute = step == '.';
    struct shadow *const args[] = {of, shadow_new_const(c, key), of_value};
    struct shadow *of_old = old ? source_read(c, of, step, key, old) : NULL;
    struct shadow *made, *callable;
    int failed;

    if (!can_release(c, old, of_old) || !prepare_effect(c, of, 2, args + 1))
        return break_at_mutation(c, of->value);
    if (!old && !source_find_changed(of, step, key))
        guard_add(c, of, is_attribute ? "NO_HASATTR" : "DICT_NOT_CONTAINS", key);
    callable = shadow_new_const(c, get_operator(is_attribute ? "setattr" : "setitem"));
    made = make_changed_shadow(c, of, step, key, old, value, of_value);
    if (!callable || !made || !shadow_save_for_undo(c, of))
        return break_at_mutation(c, of->value);
    if (!add_effect(c, of, callable, 3, args))
        return break_at_mutation(c, of->value);
    if (is_attribute)
        failed = PyObject_SetAttr(of->value, key, value);
    else
        failed = PyObject_SetItem(of->value, key, value);
    if (failed)
        return ENDED_RAISED;
    made->source.next = of->source.child;
    of->source.child = made;
    of->source.changed = true;
    stack_drop(w, count);
    return ENDED_NOT;
}

enum ended set_in_dict(struct capture *c, struct watched *w, int count, struct shadow *of,
                       PyObject *key, PyObject *value, struct shadow *of_value)
{
    PyObject *old = capture_keep(c, PyDict_GetItemWithError(of->value, key));

    return set_value_at_place(c, w, count, of, '[', key, old, value, of_value);
}

/* ---- attributes ----
 *
 * A captured function may set an attribute if this runs no code of the program. So the class must
 * have no __setattr__, the attribute must have no descriptor of the program, and the former value
 * must die without running code. */

/* How an attribute is set. */
enum setting {
    SETTING_UNKNOWN,
    SETTING_PROPERTY, /* a property: step through its setter */
    SETTING_CLASS,    /* an attribute of a class */
    SETTING_MADE,     /* an attribute of an object that the watched call made */
    SETTING_READ,     /* an attribute of an object that existed before the watched call */
};

struct attribute_set {
    PyObject *owner, *name, *value; /* borrowed */
    PyObject *descriptor; /* borrowed, or NULL: the attribute `name` of the owner's class */
    PyObject *old;        /* borrowed from the arena, or NULL: the former value of the attribute */
    struct shadow *of, *of_value;
};

static enum ended break_at_attribute_set(struct capture *c)
{
    return break_graph(c, "mutation", "an attribute is set");
}

/* Does the assignment replace a simple value in the class's own __dict__ by another simple value?
 * Returns false for a name that begins with `_`. */
static bool is_plain_class_value(const struct attribute_set *set)
{
    PyTypeObject *type = (PyTypeObject *)set->owner;
    const bool is_programs_class = type->tp_flags & Py_TPFLAGS_HEAPTYPE;
    PyObject *old;

    if (!is_programs_class || !Py_IS_TYPE(set->owner, &PyType_Type))
        return false;
    old = PyDict_GetItemWithError(type->tp_dict, set->name);
    if (!old || _PyType_Lookup(&PyType_Type, set->name))
        return false;
    if (!value_is_simple(old) || !value_is_simple(set->value))
        return false;
    return PyUnicode_READ_CHAR(set->name, 0) != '_';
}

static enum ended set_class_attribute(struct capture *c, struct watched *w,
                                      const struct attribute_set *set)
{
    PyObject *old;

    if (!is_plain_class_value(set) || !ensure_value_known(c, set->owner, set->of) ||
        was_class_attribute_set(c, set->of, set->name)) {
        PyErr_Clear();
        return break_graph(c, "mutation", "an attribute of a class is set");
    }
    old = PyDict_GetItemWithError(((PyTypeObject *)set->owner)->tp_dict, set->name);
    return set_value_at_place(c, w, 2, set->of, '.', set->name, capture_keep(c, old), set->value,
                              set->of_value);
}

static bool is_slot_descriptor(const PyObject *descriptor)
{
    return descriptor && Py_IS_TYPE(descriptor, &PyMemberDescr_Type);
}

/* Does the __setattr__ of `object` set the attribute, in the owner's __dict__ or in a slot? */
static bool is_set_by_object(struct capture *c, const struct attribute_set *set)
{
    PyTypeObject *type = Py_TYPE(set->owner);

    if (value_is_array(set->owner) || PyType_Check(set->owner) || PyModule_Check(set->owner))
        return false;
    if (c->failed || type->tp_setattro != PyObject_GenericSetAttr)
        return false;
    if (set->descriptor && Py_TYPE(set->descriptor)->tp_descr_set &&
        !is_slot_descriptor(set->descriptor))
        return false;
    return ensure_type_known(c, set->owner, set->of);
}

static enum setting classify_attribute_set(struct capture *c, const struct attribute_set *set)
{
    if (!set->of)
        return SETTING_UNKNOWN;
    if (set->descriptor && Py_IS_TYPE(set->descriptor, &PyProperty_Type))
        return SETTING_PROPERTY;
    if (set->of->kind == SHADOW_SOURCE && PyType_Check(set->owner) && !c->failed)
        return SETTING_CLASS;
    if (set->of->kind != SHADOW_OBJECT && set->of->kind != SHADOW_SOURCE)
        return SETTING_UNKNOWN;
    if (!set->of_value || !is_set_by_object(c, set))
        return SETTING_UNKNOWN;
    return set->of->kind == SHADOW_OBJECT ? SETTING_MADE : SETTING_READ;
}

/* Add a guard on the class's descriptor for the attribute: later calls must find the same
 * descriptor, or none if there is none now. */
static bool guard_descriptor(struct capture *c, const struct attribute_set *set,
                             struct shadow *of_class)
{
    struct shadow *source;

    if (!set->descriptor)
        return !guard_add(c, of_class, "NO_HASATTR", set->name);
    source = source_read(c, of_class, '.', set->name, set->descriptor);
    return ensure_type_known(c, set->descriptor, source);
}

static enum ended break_at_class(struct capture *c, const struct attribute_set *set)
{
    return break_graph(c, "mutation", "an attribute of a %.100s is set, whose class may say how",
                       Py_TYPE(set->owner)->tp_name);
}

static bool has_instance_dict(const PyTypeObject *type)
{
    return type->tp_dictoffset || type->tp_flags & Py_TPFLAGS_MANAGED_DICT;
}

static enum ended set_attribute_of_made_object(struct capture *c, struct watched *w,
                                               const struct attribute_set *set)
{
    struct shadow *of = set->of;
    struct shadow *const args[] = {of, shadow_new_const(c, set->name), set->of_value};
    struct shadow *of_class, *of_old, *callable;
    struct shadow **place;

    if (!set->descriptor && !has_instance_dict(Py_TYPE(set->owner)))
        return break_at_attribute_set(c);
    if (!shadow_save_for_undo(c, of))
        return break_at_attribute_set(c);
    of_class = find_class_source(c, set->owner, of);
    place = object_find_place(of, set->name);
    if (!of_class || (!place && !guard_descriptor(c, set, of_class)))
        return break_at_class(c, set);
    if (place && !set->old)
        return break_at_attribute_set(c);
    of_old = place ? *place : NULL;
    callable = shadow_new_const(c, get_operator("setattr"));
    if (!add_change_effect(c, of, callable, place ? set->old : NULL, of_old, 3, args))
        return break_at_attribute_set(c);
    if (PyObject_SetAttr(set->owner, set->name, set->value))
        return ENDED_RAISED;
    if (place)
        *place = set->of_value;
    else
        shadow_add(c, of, set->name, set->of_value);
    stack_drop(w, 2);
    return ENDED_NOT;
}

/* The lookup has not found the attribute. Is it certainly absent? A descriptor or a __getattr__ of
 * the program might still provide it. */
static bool is_attribute_absent(const struct attribute_set *set)
{
    if (set->descriptor)
        return is_slot_descriptor(set->descriptor);
    return Py_TYPE(set->owner)->tp_getattro == PyObject_GenericGetAttr;
}

static enum ended set_attribute_of_existing_object(struct capture *c, struct watched *w,
                                                   const struct attribute_set *set)
{
    struct shadow *of_class;

    if (set->descriptor && PyFunction_Check(set->descriptor))
        return break_at_attribute_set(c);
    if (!set->old && !is_attribute_absent(set))
        return break_at_attribute_set(c);
    of_class = find_class_source(c, set->owner, set->of);
    if (!of_class || !is_ordinary(c, Py_TYPE(set->owner), of_class))
        return break_at_class(c, set);
    if (!guard_descriptor(c, set, of_class))
        return break_at_class(c, set);
    return set_value_at_place(c, w, 2, set->of, '.', set->name, set->old, set->value,
                              set->of_value);
}

/* Step through the setter of a property. The call replaces the two operands on the stack by the
 * setter's result, which this function drops. */
static enum ended set_by_property(struct capture *c, struct watched *w, struct attribute_set *set)
{
    struct operands operands = {{set->owner, set->value}, {set->of, set->of_value}};
    const struct call call = describe_operator_call("setattr", 2, 2, &operands);
    enum ended ended = call_property(c, w, set->name, set->descriptor, &call);

    if (is_instruction_done(ended))
        stack_drop(w, 1);
    return ended;
}

enum ended store_attribute(struct capture *c, struct watched *w, PyObject *name)
{
    struct attribute_set set = {.owner = stack_value(w, 0),
                                .name = name,
                                .value = stack_value(w, 1),
                                .of = stack_shadow(w, 0),
                                .of_value = stack_shadow(w, 1)};
    OWNED PyObject *descriptor = Py_XNewRef(_PyType_Lookup(Py_TYPE(set.owner), name));
    OWNED PyObject *old = NULL;
    enum setting setting;

    set.descriptor = descriptor;
    setting = classify_attribute_set(c, &set);
    if (setting == SETTING_MADE || setting == SETTING_READ) {
        find_attribute(set.owner, name, &old);
        set.old = capture_keep(c, old);
    }
    switch (setting) {
    case SETTING_PROPERTY:
        return set_by_property(c, w, &set);
    case SETTING_CLASS:
        return set_class_attribute(c, w, &set);
    case SETTING_MADE:
        return set_attribute_of_made_object(c, w, &set);
    case SETTING_READ:
        return set_attribute_of_existing_object(c, w, &set);
    case SETTING_UNKNOWN:
        break;
    }
    return break_at_attribute_set(c);
}
