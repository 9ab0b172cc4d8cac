/* tracer/guards/read.h -- reading what a guard's source names.
 *
 * Runs in: the traced process, under the GIL.
 *
 * A step that finds nothing there (an unbound local, no such key or attribute,
 * an index out of range, something that has no items) is a miss, not an error:
 * the guards behind it do not hold. Whatever else is raised is an error. */
#ifndef DYNTRACE_TRACER_GUARD_READ_H
#define DYNTRACE_TRACER_GUARD_READ_H

#include "tracer/guards/guard.h"

enum guard_step_kind {
    STEP_LOCALS,    /* L: all of them, a dict */
    STEP_GLOBALS,   /* G */
    STEP_BUILTINS,  /* B */
    STEP_STATE,     /* a host's state: key(), called anew at each check */
    STEP_LOCAL,     /* L['x'] without the dict */
    STEP_ATTRIBUTE, /* .key */
    STEP_ITEM,      /* [key] */
    STEP_METHOD,    /* .key() */
    STEP_CALL,      /* () */
};

/* Where an attribute of instances of a type lies, found once. Good as long as
 * the type has this version: CPython gives it another when it or a base changes. */
struct attribute_cache {
    PyTypeObject *type;     /* borrowed, compared only together with: */
    unsigned version;       /* 0: not filled */
    enum { WHERE_UNKNOWN, WHERE_INLINE, WHERE_DICT, WHERE_SLOT } where;
    Py_ssize_t index;       /* of inline values; offset of a slot */
};

struct guard_step {
    enum guard_step_kind kind;
    PyObject *key;          /* owned, or NULL */
    Py_ssize_t index;       /* where a local was; an item's index; -1: none */
    struct attribute_cache cache;
};

/* 1: *VALUE is a new reference; 0: there is nothing; -1: an exception. GLOBALS:
 * for when VALUES has no frame, or NULL. */
int guard_step_read(struct guard_step *step, PyObject *parent, const struct guard_values *values, PyObject *globals,
                    PyObject **value);

/* The attribute NAME, an interned string. Returns as above. */
int guard_attribute(struct attribute_cache *cache, PyObject *object, PyObject *name, PyObject **value);

#endif
