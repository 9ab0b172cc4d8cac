/* tracer_cache.c -- the entries of a code object's cache. See tracer_cache.h.
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer_cache.h"
#include "tracer_guard.h"
#include "tracer_torch.h"

#include <stdlib.h>
#include <string.h>

static struct code_state *all_states;
static unsigned long states_compiled; /* code objects that got a number */

/* ---- states ---- */

struct code_state *code_state_make(PyCodeObject *code)
{
    uintptr_t slot = compat_extra(code, tracer_process.extra);
    struct code_state *state = calloc(1, sizeof *state);

    if (!state)
        return NULL;
    state->frame_state = PyDict_New();
    state->references = 1;
    state->code = code;
    state->mark = slot;
    state->is_init = code->co_argcount >= 1 && !PyUnicode_CompareWithASCIIString(code->co_name, "__init__");
    if (!state->frame_state || compat_set_extra(code, tracer_process.extra, state)) {
        PyErr_Clear();
        Py_XDECREF(state->frame_state);
        free(state);
        return NULL;
    }
    state->next = all_states;
    if (all_states)
        all_states->previous = state;
    all_states = state;
    return state;
}

struct code_state *code_state_hold(struct code_state *state)
{
    state->references++;
    return state;
}

/* Entries may be held by the program; they outlive their state as invalid ones. */
static void drop_entries(struct code_state *state, const char *why)
{
    struct cache_entry **entries = state->entries;
    Py_ssize_t count = state->count;

    state->entries = NULL;
    state->count = state->room = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        entries[i]->state = NULL;
    for (Py_ssize_t i = 0; i < count; i++) { /* may run code that looks at this state: it is empty by now */
        cache_entry_invalidate(entries[i], why, NULL);
        Py_DECREF(entries[i]);
    }
    free(entries);
}

void code_state_release(struct code_state *state)
{
    if (--state->references)
        return;
    drop_entries(state, "its code object was freed");
    if (state->compiled) {
        decision_entry_died(state->compiled, "dropped: a reset, or its function was freed");
        Py_DECREF(state->compiled);
    }
    if (state->extra)
        torch_state_gone(state->extra);
    Py_XDECREF(state->extra);
    Py_XDECREF(state->precompiled);
    Py_XDECREF(state->frame_state);
    free(state->regions);
    free(state);
}

/* The slot lets go of the state. */
static void detach(struct code_state *state)
{
    state->code = NULL;
    if (state->previous)
        state->previous->next = state->next;
    else
        all_states = state->next;
    if (state->next)
        state->next->previous = state->previous;
    state->previous = state->next = NULL;
    code_state_release(state);
}

void code_state_free(void *slot)
{
    if (tracer_is_state((uintptr_t)slot)) {
        PyObject *type, *value, *traceback; /* a code object may die while an exception is on its way */
        PyErr_Fetch(&type, &value, &traceback);
        detach(slot);
        PyErr_Restore(type, value, traceback);
    }
}

void code_state_reset(PyCodeObject *code)
{
    struct code_state *state = code_state_of(code, false);

    if (!state)
        return;
    compat_set_extra(code, tracer_process.extra, (void *)state->mark); /* there is room */
    code_state_hold(state);
    detach(state);
    drop_entries(state, "reset");
    code_state_release(state);
}

void code_state_reset_all(void)
{
    while (all_states && all_states->code) {
        PyCodeObject *code = (PyCodeObject *)Py_NewRef(all_states->code);
        code_state_reset(code);
        Py_DECREF(code);
    }
}

Py_ssize_t code_state_valid(const struct code_state *state)
{
    Py_ssize_t valid = 0;

    for (Py_ssize_t i = 0; i < state->count; i++)
        valid += state->entries[i]->check != NULL;
    return valid;
}

struct code_actions code_state_actions(const struct code_state *state, int64_t region)
{
    struct code_actions inherited = {.told = true};

    if (region < 0)
        return state->actions;
    for (unsigned i = 0; i < state->region_count; i++)
        if (state->regions[i].region == region)
            return state->regions[i].actions;
    /* "Never compile this" holds in every region, "the limit is reached" only where it was. */
    if (state->actions.own == ACTION_SKIP)
        inherited.own = ACTION_SKIP;
    if (state->actions.callees == ACTION_SKIP)
        inherited.callees = ACTION_SKIP;
    return inherited;
}

bool code_state_act(struct code_state *state, int64_t region, struct code_actions actions)
{
    struct region_actions *more;

    if (region < 0) {
        state->actions = actions;
        return true;
    }
    for (unsigned i = 0; i < state->region_count; i++)
        if (state->regions[i].region == region) {
            state->regions[i].actions = actions;
            return true;
        }
    more = realloc(state->regions, (state->region_count + 1) * sizeof *more);
    if (!more)
        return false;
    state->regions = more;
    more[state->region_count++] = (struct region_actions){region, actions};
    return true;
}

/* ---- entries ---- */

/* The attribute NAME of GUARDED. New reference; NULL: it is missing or None, or,
 * with an exception, could not be had. */
static PyObject *optional(PyObject *guarded, const char *name)
{
    PyObject *key = PyUnicode_InternFromString(name), *value = NULL;

    if (key && compat_optional_attribute(guarded, key, &value) < 0)
        value = NULL; /* its exception is the callback's */
    Py_XDECREF(key);
    if (value == Py_None)
        Py_CLEAR(value);
    return value;
}

/* Can CODE run in place of ORIGINAL? What it takes from the frame must be there. */
static bool fits(PyCodeObject *code, PyCodeObject *original)
{
    int arguments[2], flags = CO_VARARGS | CO_VARKEYWORDS | CO_NEWLOCALS | CO_OPTIMIZED;
    PyCodeObject *both[2] = {code, original};

    for (int i = 0; i < 2; i++)
        arguments[i] = both[i]->co_argcount + both[i]->co_kwonlyargcount;
    if (arguments[0] != arguments[1] || (code->co_flags & flags) != (original->co_flags & flags)) {
        PyErr_Format(PyExc_TypeError,
                     "the code returned for %U() takes other arguments than it: they must be the same in number and kind",
                     original->co_qualname);
        return false;
    }
    if (code->co_nfreevars != original->co_nfreevars) {
        PyErr_Format(PyExc_TypeError,
                     "the code returned for %U() has %d free variables, and it has %d: they must be the same",
                     original->co_qualname, code->co_nfreevars, original->co_nfreevars);
        return false;
    }
    return true;
}

/* What is called to check GUARD: its method, or it. New reference; NULL: nothing,
 * or, with an exception, it could not be had. */
static PyObject *check_of(PyObject *guard, bool torch)
{
    PyObject *root = torch ? torch_check_of(guard, "root") : NULL, *check;

    if (torch)
        return root;
    check = optional(guard, "check");
    return check || PyErr_Occurred() ? check : Py_NewRef(guard);
}

struct cache_entry *cache_entry_loaded(struct code_state *state, PyObject *guard, PyObject *code, int64_t region)
{
    struct cache_entry *entry = NULL;
    PyObject *check;

    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "Expecting CodeType from PrecompileEntry.");
        return NULL;
    }
    check = check_of(guard, true);
    if (check)
        entry = PyObject_New(struct cache_entry, &cache_entry_type);
    if (!entry) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "the guard manager has no root");
        Py_XDECREF(check);
        return NULL;
    }
    memset((char *)entry + sizeof(PyObject), 0, sizeof *entry - sizeof(PyObject));
    entry->code = Py_NewRef(code);
    entry->guard = Py_NewRef(guard);
    entry->check = check;
    entry->backend = Py_NewRef(Py_None);
    entry->compile_id = PyUnicode_FromString("precompiled");
    entry->region = region;
    entry->torch = true;
    decision_entry_born(entry, state);
    return entry;
}

struct cache_entry *cache_entry_add(struct code_state *state, PyObject *guarded, PyObject *backend,
                                    PyCodeObject *original, bool torch)
{
    PyObject *code = optional(guarded, "code"), *guard = NULL, *check = NULL;
    struct cache_entry *entry = NULL;

    if (!PyErr_Occurred() && !torch)
        guard = optional(guarded, "check_fn");
    if (!guard && !PyErr_Occurred())
        guard = optional(guarded, "guard_manager");
    if (PyErr_Occurred())
        goto err;
    if (!code || !PyCode_Check(code)) {
        PyErr_Format(PyExc_TypeError, "the callback for %U() returned a %s, which has no code object: "
                     "return None or a GuardedCode", original->co_qualname, Py_TYPE(guarded)->tp_name);
        goto err;
    }
    check = guard ? check_of(guard, torch) : NULL;
    if (PyErr_Occurred())
        goto err;
    if (!check || !PyCallable_Check(check)) {
        PyErr_Format(PyExc_TypeError, "the callback for %U() returned a GuardedCode whose guard cannot be called",
                     original->co_qualname);
        goto err;
    }
    if (!fits((PyCodeObject *)code, original))
        goto err;
    if (state->count == state->room) {
        Py_ssize_t room = state->room ? state->room * 2 : 4;
        struct cache_entry **more = realloc(state->entries, (size_t)room * sizeof *more);
        if (!more) {
            PyErr_NoMemory();
            goto err;
        }
        state->entries = more;
        state->room = room;
    }
    entry = PyObject_New(struct cache_entry, &cache_entry_type);
    if (!entry)
        goto err;
    memset((char *)entry + sizeof(PyObject), 0, sizeof *entry - sizeof(PyObject));
    entry->state = state;
    entry->code = Py_NewRef(code);
    entry->guard = Py_NewRef(guard);
    entry->check = Py_NewRef(check);
    entry->backend = Py_NewRef(backend);
    entry->tree = PyObject_TypeCheck(guard, &guard_tree_type);
    entry->torch = torch;
    entry->region = torch ? torch_region() : -1;
    entry->annotation = optional(guarded, "trace_annotation");
    if (!PyErr_Occurred())
        entry->compile_id = optional(guarded, "compile_id");
    if (PyErr_Occurred()) {
        Py_CLEAR(entry);
        goto err;
    }
    if (!state->number)
        state->number = ++states_compiled;
    if (!entry->compile_id)
        entry->compile_id = PyUnicode_FromFormat("%lu/%lu", state->number - 1, state->compiles);
    if (!entry->compile_id) {
        Py_CLEAR(entry);
        goto err;
    }
    state->compiles++;
    if (torch && torch_settings.insertion_order) {
        state->entries[state->count] = entry;
    } else {
        memmove(state->entries + 1, state->entries, (size_t)state->count * sizeof *state->entries);
        state->entries[0] = entry;
    }
    state->count++;
    decision_entry_born(entry, state);
    if ((entry->tree && guard_tree_bind(guard, entry)) || (torch && torch_entry_bind(entry))) {
        cache_entry_invalidate(entry, "its guards cannot watch the objects that they name", NULL);
        entry = NULL;
    }
err:
    Py_XDECREF(code);
    Py_XDECREF(guard);
    Py_XDECREF(check);
    return entry;
}

static Py_ssize_t position(const struct cache_entry *entry)
{
    const struct code_state *state = entry->state;

    for (Py_ssize_t i = 0; state && i < state->count; i++)
        if (state->entries[i] == entry)
            return i;
    return -1;
}

struct cache_entry *cache_entry_first(const struct code_state *state, int64_t region)
{
    for (Py_ssize_t i = 0; i < state->count; i++)
        if (state->entries[i]->region == region)
            return state->entries[i];
    return region >= 0 ? cache_entry_first(state, -1) : NULL;
}

struct cache_entry *cache_entry_after(const struct cache_entry *entry)
{
    const struct code_state *state = entry->state;

    for (Py_ssize_t i = position(entry) + 1; i > 0 && i < state->count; i++)
        if (state->entries[i]->region == entry->region)
            return state->entries[i];
    return NULL;
}

void cache_entry_touch(struct cache_entry *entry)
{
    Py_ssize_t at = entry->torch && torch_settings.insertion_order ? -1 : position(entry);

    if (at > 0) {
        memmove(entry->state->entries + 1, entry->state->entries, (size_t)at * sizeof *entry->state->entries);
        entry->state->entries[0] = entry;
    }
}

void cache_entry_invalidate(struct cache_entry *entry, const char *reason, PyObject *instead)
{
    Py_ssize_t at = position(entry);
    PyObject *guard = entry->guard, *check = entry->check, *code = entry->code;

    if (!check)
        return;
    if (at >= 0) {
        struct cache_entry **entries = entry->state->entries;
        memmove(entries + at, entries + at + 1, (size_t)(entry->state->count - at - 1) * sizeof *entries);
        entries[entry->state->count - 1] = entry;
    }
    entry->check = NULL;
    entry->guard = Py_NewRef(instead ? instead : Py_None);
    entry->code = Py_NewRef(Py_None);
    entry->invalid_reason = PyUnicode_FromString(reason);
    decision_entry_died(entry, reason);
    if (entry->torch)
        torch_entry_unbind(entry, guard);
    Py_XDECREF(guard);
    Py_XDECREF(check);
    Py_XDECREF(code);
    Py_CLEAR(entry->difference);
    Py_CLEAR(entry->view);
    Py_CLEAR(entry->flat);
    Py_CLEAR(entry->function);
}

/* ---- the entry as Python sees it ---- */

static void entry_free(PyObject *self)
{
    struct cache_entry *e = (struct cache_entry *)self;

    Py_XDECREF(e->guard);
    Py_XDECREF(e->check);
    Py_XDECREF(e->code);
    Py_XDECREF(e->flat);
    Py_XDECREF(e->function);
    Py_XDECREF(e->difference);
    Py_XDECREF(e->view);
    Py_XDECREF(e->backend);
    Py_XDECREF(e->compile_id);
    Py_XDECREF(e->annotation);
    Py_XDECREF(e->invalid_reason);
    Py_XDECREF(e->born_for);
    PyObject_Free(self);
}

#define FIELD(name, field)                                                          \
    static PyObject *entry_##name(PyObject *self, void *context)                    \
    {                                                                               \
        (void)context;                                                              \
        PyObject *value = ((struct cache_entry *)self)->field;                      \
        return Py_NewRef(value ? value : Py_None);                                  \
    }
FIELD(code, code)
FIELD(guard, guard)
FIELD(backend, backend)
FIELD(compile_id, compile_id)
FIELD(annotation, annotation)
FIELD(invalid_reason, invalid_reason)
#undef FIELD

static PyObject *entry_next(PyObject *self, void *context)
{
    struct cache_entry *after = cache_entry_after((struct cache_entry *)self);

    (void)context;
    return Py_NewRef(after ? (PyObject *)after : Py_None);
}

static PyObject *entry_valid(PyObject *self, void *context)
{
    (void)context;
    return PyBool_FromLong(((struct cache_entry *)self)->check != NULL);
}

static PyObject *entry_hits(PyObject *self, void *context)
{
    (void)context;
    return PyLong_FromUnsignedLong(((struct cache_entry *)self)->hits);
}

static PyObject *entry_invalidate(PyObject *self, PyObject *args)
{
    const char *reason = "invalidated by the program";

    if (!PyArg_ParseTuple(args, "|s:invalidate", &reason))
        return NULL;
    cache_entry_invalidate((struct cache_entry *)self, reason, NULL);
    Py_RETURN_NONE;
}

static PyObject *entry_region(PyObject *self, void *context)
{
    (void)context;
    return PyLong_FromLongLong(((struct cache_entry *)self)->region);
}

static PyObject *entry_update_difference(PyObject *self, PyObject *ignored)
{
    struct cache_entry *e = (struct cache_entry *)self;
    PyObject *check = e->torch && e->check ? torch_check_of(e->guard, "diff_guard_root") : NULL;

    (void)ignored;
    if (PyErr_Occurred())
        return NULL;
    Py_XSETREF(e->difference, check);
    Py_RETURN_NONE;
}

static PyObject *entry_repr(PyObject *self)
{
    struct cache_entry *e = (struct cache_entry *)self;

    return PyUnicode_FromFormat("<CacheEntry %S%s, %lu hits>", e->compile_id, e->check ? "" : " (invalid)", e->hits);
}

static PyGetSetDef entry_fields[] = {
    {"code", entry_code, NULL, "The compiled code object; None once the entry is invalid.", NULL},
    {"guard_manager", entry_guard, NULL, "The guard as the callback gave it; None once invalid.", NULL},
    {"check_fn", entry_guard, NULL, "The same, under its older name.", NULL},
    {"backend", entry_backend, NULL, "What the entry was compiled for; part of the match.", NULL},
    {"compile_id", entry_compile_id, NULL, "Which compilation made it: \"code/attempt\" unless the callback said.", NULL},
    {"trace_annotation", entry_annotation, NULL, "The callback's words for profilers.", NULL},
    {"next", entry_next, NULL, "The entry tried after this one, or None.", NULL},
    {"valid", entry_valid, NULL, "False once a guarded object has died, or after a reset.", NULL},
    {"invalid_reason", entry_invalid_reason, NULL, "Why it is no longer valid, or None.", NULL},
    {"hits", entry_hits, NULL, "Calls that ran this entry.", NULL},
    {"isolate_recompiles_id", entry_region, NULL, "torch: the region that sees it; -1: all do.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef entry_methods[] = {
    {"invalidate", entry_invalidate, METH_VARARGS, "invalidate(reason='...')\n\nNever match again."},
    {"update_diff_guard_root_manager", entry_update_difference, METH_NOARGS,
     "torch: its guard manager has new guards that tell entries apart."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject cache_entry_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dyntrace.types.CacheEntry",
    .tp_basicsize = sizeof(struct cache_entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Compiled code of one function, and the guards under which it may run.",
    .tp_dealloc = entry_free,
    .tp_repr = entry_repr,
    .tp_getset = entry_fields,
    .tp_methods = entry_methods,
};
