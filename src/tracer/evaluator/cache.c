/* tracer/evaluator/cache.c -- the entries of a code object's cache. See tracer/evaluator/cache.h.
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer/evaluator/cache.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>

const struct front front_own = {
    .modes = &(const struct front_modes){0},
    .limits = true,
    .fail_hook = true,
    .unexplained = "the guard returned False",
};

static struct code_state *all_states;
static unsigned long states_made, states_compiled; /* states; code objects that got a number */

/* ---- states ---- */

struct code_state *code_state_make(PyCodeObject *code)
{
    PyObject *frame_state = PyDict_New();
    uintptr_t slot = compat_extra(code, tracer_process.extra);
    struct code_state *state;

    if (frame_state && unlikely(tracer_is_state(slot))) { /* what the garbage collector ran has made it */
        Py_DECREF(frame_state);
        return code_state_of(code, false);
    }
    state = frame_state ? calloc(1, sizeof *state) : NULL;
    if (!state || compat_set_extra(code, tracer_process.extra, state)) {
        free(state);
        Py_XDECREF(frame_state);
        PyErr_Clear();
        return NULL;
    }
    state->frame_state = frame_state;
    state->references = 1;
    state->code = code;
    state->mark = slot;
    state->is_init = code->co_argcount >= 1 && !PyUnicode_CompareWithASCIIString(code->co_name, "__init__");
    state->serial = ++states_made;
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

/* ENTRY never matches from here on. Runs nothing: entry_let_go() does what is left. */
static void entry_end(struct cache_entry *entry, const char *reason, PyObject *instead)
{
    if (!entry->valid)
        return;
    entry->valid = false;
    entry->instead = Py_XNewRef(instead);
    entry->invalid_reason = PyUnicode_FromString(reason);
    decision_entry_died(entry, reason);
}

/* ENTRY, which has ended, gives up what it had of the program's. */
static void entry_let_go(struct cache_entry *entry)
{
    struct cache_parts *parts = entry->parts;
    PyObject *flat = entry->flat, *function = entry->function;

    entry->parts = NULL;
    entry->flat = entry->function = NULL;
    if (parts && entry->front->unbind)
        entry->front->unbind(entry, parts->guard);
    Py_XDECREF(flat);
    Py_XDECREF(function);
    if (parts)
        cache_parts_unpin(parts);
}

/* LIST's entries go, which the program may hold; with WHY they end as well. What that runs finds the list empty. */
static void drop_entries(struct entry_list *list, const char *why)
{
    const struct entry_list dropped = *list;

    *list = (struct entry_list){NULL, 0, 0};
    for (Py_ssize_t i = 0; i < dropped.count; i++) {
        dropped.at[i]->state = NULL;
        if (why)
            entry_end(dropped.at[i], why, NULL);
    }
    for (Py_ssize_t i = 0; i < dropped.count; i++) {
        if (why)
            entry_let_go(dropped.at[i]);
        Py_DECREF(dropped.at[i]);
    }
    free(dropped.at);
}

void code_state_release(struct code_state *state)
{
    if (--state->references)
        return;
    if (state->view)
        state->view->state = NULL; /* from here on nobody finds the state */
    drop_entries(&state->entries, "its code object was freed");
    drop_entries(&state->precompiled, NULL);
    if (state->compiled) {
        decision_entry_died(state->compiled, "dropped: a reset, or its function was freed");
        Py_DECREF(state->compiled);
    }
    Py_XDECREF((PyObject *)state->view);
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
    drop_entries(&state->entries, "reset");
    code_state_release(state);
}

void code_state_drop_precompiled(struct code_state *state)
{
    drop_entries(&state->precompiled, NULL);
}

/* A state that is not newer than NEWEST. That of a code object that is being freed goes with it. */
static struct code_state *to_reset(unsigned long newest)
{
    struct code_state *state = all_states;

    while (state && (state->serial > newest || !Py_REFCNT(state->code)))
        state = state->next;
    return state;
}

void code_state_reset_all(void)
{
    const unsigned long newest = states_made; /* finalisers may make others: those stay */
    struct code_state *state;

    while ((state = to_reset(newest))) {
        PyCodeObject *code = (PyCodeObject *)Py_NewRef(state->code);
        code_state_reset(code);
        Py_DECREF(code);
    }
}

Py_ssize_t code_state_valid(const struct code_state *state)
{
    Py_ssize_t valid = 0;

    for (Py_ssize_t i = 0; i < state->entries.count; i++)
        valid += state->entries.at[i]->valid;
    return valid;
}

struct code_actions code_state_actions(const struct code_state *state, int64_t region)
{
    struct code_actions inherited = {.written = true};

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
        PyErr_Format(PyExc_TypeError, "the code returned for %U() takes other arguments than it: "
                     "they must be the same in number and kind", original->co_qualname);
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
static PyObject *check_of(PyObject *guard, const struct front *front)
{
    PyObject *check = front->check_of ? front->check_of(guard) : optional(guard, "check");

    return check || PyErr_Occurred() || front->check_of ? check : Py_NewRef(guard);
}

/* Room for one more. False: no memory. */
static bool make_room(struct entry_list *list)
{
    const Py_ssize_t room = list->room ? list->room * 2 : 4;
    struct cache_entry **more;

    if (list->count < list->room)
        return true;
    more = realloc(list->at, (size_t)room * sizeof *more);
    if (!more) {
        PyErr_NoMemory();
        return false;
    }
    list->at = more;
    list->room = room;
    return true;
}

/* ENTRY, owned by LIST from here on, to place AT of it. There is room. */
static void put_in(struct entry_list *list, Py_ssize_t at, struct cache_entry *entry)
{
    memmove(list->at + at + 1, list->at + at, (size_t)(list->count - at) * sizeof *list->at);
    list->at[at] = (struct cache_entry *)Py_NewRef((PyObject *)entry);
    list->count++;
}

struct cache_entry *cache_entry_new(const struct front *front, int64_t region)
{
    struct cache_parts *parts = calloc(1, sizeof *parts);
    struct cache_entry *entry = parts ? PyObject_New(struct cache_entry, &cache_entry_type) : NULL;

    if (!entry) {
        free(parts);
        PyErr_NoMemory();
        return NULL;
    }
    memset((char *)entry + sizeof(PyObject), 0, sizeof *entry - sizeof(PyObject));
    parts->pins = 1;
    entry->parts = parts;
    entry->valid = true;
    entry->front = front;
    entry->region = region;
    return entry;
}

void cache_parts_free(struct cache_parts *parts)
{
    Py_XDECREF(parts->guard);
    Py_XDECREF(parts->check);
    Py_XDECREF(parts->code);
    Py_XDECREF(parts->difference);
    Py_XDECREF(parts->view);
    free(parts);
}

/* What GUARDED says, as an entry that is in no list. New reference; NULL with an exception. */
static struct cache_entry *read_guarded(PyCodeObject *original, PyObject *guarded, PyObject *backend,
                                        const struct front *front)
{
    struct cache_entry *entry = cache_entry_new(front, -1);
    struct cache_parts *parts = entry ? entry->parts : NULL;

    if (!entry)
        return NULL;
    entry->backend = Py_NewRef(backend);
    parts->code = optional(guarded, "code");
    if (!PyErr_Occurred())
        parts->guard = optional(guarded, "check_fn");
    if (!parts->guard && !PyErr_Occurred())
        parts->guard = optional(guarded, "guard_manager");
    if (PyErr_Occurred())
        goto err;
    if (!parts->code || !PyCode_Check(parts->code)) {
        PyErr_Format(PyExc_TypeError, "the callback for %U() returned a %s, which has no code object: "
                     "return None or a GuardedCode", original->co_qualname, Py_TYPE(guarded)->tp_name);
        goto err;
    }
    parts->check = parts->guard ? check_of(parts->guard, front) : NULL;
    if (PyErr_Occurred())
        goto err;
    if (!parts->check || !PyCallable_Check(parts->check)) {
        PyErr_Format(PyExc_TypeError, "the callback for %U() returned a GuardedCode whose guard cannot be called",
                     original->co_qualname);
        goto err;
    }
    if (!fits((PyCodeObject *)parts->code, original))
        goto err;
    entry->tree = PyObject_TypeCheck(parts->guard, &guard_tree_type);
    entry->annotation = optional(guarded, "trace_annotation");
    if (!PyErr_Occurred())
        entry->compile_id = optional(guarded, "compile_id");
    if (!PyErr_Occurred())
        return entry;
err:
    Py_DECREF(entry);
    return NULL;
}

/* ENTRY joins ORIGINAL's list, that of PRECOMPILED ones or the other, and nothing runs from when that is found until it
 * has. -1: no memory, with an exception. */
static int join(struct cache_entry *entry, PyCodeObject *original, bool precompiled, struct decision_birth *birth)
{
    struct code_state *state = code_state_of(original, true);
    struct entry_list *list = state && precompiled ? &state->precompiled : state ? &state->entries : NULL;

    if (!list) {
        PyErr_NoMemory();
        return -1;
    }
    if (!make_room(list))
        return -1;
    if (!precompiled) {
        if (!entry->compile_id &&
            !(entry->compile_id = PyUnicode_FromFormat("%lu/%lu", state->number ? state->number - 1 : states_compiled,
                                                       state->compiles)))
            return -1;
        if (!state->number)
            state->number = ++states_compiled;
        state->compiles++;
        entry->state = state;
        entry->region = front_region(entry->front);
    }
    put_in(list, precompiled || entry->front->modes->insertion_order ? list->count : 0, entry);
    decision_entry_born(birth, entry, state);
    return 0;
}

int cache_entry_load(PyCodeObject *original, PyObject *guard, PyObject *code, int64_t region, const struct front *front)
{
    struct decision_birth birth = {0};
    struct cache_entry *entry;
    PyObject *check;
    int status;

    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "Expecting CodeType from PrecompileEntry.");
        return -1;
    }
    check = check_of(guard, front);
    if (!check && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the guard manager has no root");
    if (!check || !(entry = cache_entry_new(front, region))) {
        Py_XDECREF(check);
        return -1;
    }
    entry->parts->code = Py_NewRef(code);
    entry->parts->guard = Py_NewRef(guard);
    entry->parts->check = check;
    entry->backend = Py_NewRef(Py_None);
    entry->compile_id = PyUnicode_FromString("precompiled");
    decision_birth_begin(&birth, entry, tracer_mark_in(compat_extra(original, tracer_process.extra)), guard, Py_None);
    status = join(entry, original, true, &birth);
    decision_birth_end(&birth);
    Py_DECREF(entry);
    return status;
}

static bool entry_is_valid(PyObject *entry)
{
    return ((struct cache_entry *)entry)->valid;
}

static void entry_guarded_died(PyObject *entry, const char *reason)
{
    cache_entry_invalidate((struct cache_entry *)entry, reason, NULL);
}

static const struct guard_binding to_tree = {entry_is_valid, entry_guarded_died};

/* What ENTRY's guard, that of PARTS, is to know of it. -1 with an exception. */
static int bind_guard(struct cache_entry *entry, struct cache_parts *parts)
{
    if (entry->tree)
        return guard_tree_bind(parts->guard, (PyObject *)entry, &to_tree);
    return entry->front->bind ? entry->front->bind(entry, parts) : 0;
}

struct cache_entry *cache_entry_add(PyCodeObject *original, PyObject *guarded, PyObject *backend,
                                    const struct front *front)
{
    struct cache_entry *entry = read_guarded(original, guarded, backend, front);
    struct decision_birth birth;
    struct cache_parts *parts;
    int status;

    if (!entry)
        return NULL;
    decision_birth_begin(&birth, entry, tracer_mark_in(compat_extra(original, tracer_process.extra)),
                         entry->parts->guard, backend);
    status = join(entry, original, false, &birth);
    parts = cache_entry_pin(entry); /* what follows may invalidate it */
    if (!status && parts && bind_guard(entry, parts)) {
        cache_entry_invalidate(entry, "its guards cannot watch the objects that they name", NULL);
        status = -1;
    }
    if (parts)
        cache_parts_unpin(parts);
    decision_birth_end(&birth);
    if (status)
        Py_CLEAR(entry);
    return entry;
}

static Py_ssize_t position(const struct cache_entry *entry)
{
    const struct code_state *state = entry->state;

    for (Py_ssize_t i = 0; state && i < state->entries.count; i++)
        if (state->entries.at[i] == entry)
            return i;
    return -1;
}

struct cache_entry *cache_entry_first(const struct code_state *state, int64_t region)
{
    for (Py_ssize_t i = 0; i < state->entries.count; i++)
        if (state->entries.at[i]->region == region)
            return state->entries.at[i];
    return region >= 0 ? cache_entry_first(state, -1) : NULL;
}

/* ENTRY, if it is in its list, from its place there TO another. */
static void move_to(struct cache_entry *entry, Py_ssize_t to)
{
    const Py_ssize_t from = position(entry);
    struct cache_entry **at = from < 0 ? NULL : entry->state->entries.at;

    if (from < 0 || from == to)
        return;
    if (from < to)
        memmove(at + from, at + from + 1, (size_t)(to - from) * sizeof *at);
    else
        memmove(at + to + 1, at + to, (size_t)(from - to) * sizeof *at);
    at[to] = entry;
}

void cache_entry_touch(struct cache_entry *entry)
{
    if (!entry->front->modes->insertion_order)
        move_to(entry, 0);
}

void cache_entry_invalidate(struct cache_entry *entry, const char *reason, PyObject *instead)
{
    if (!entry->valid)
        return;
    if (entry->state)
        move_to(entry, entry->state->entries.count - 1);
    entry_end(entry, reason, instead);
    entry_let_go(entry);
}

/* ---- the entry as Python sees it ---- */

static void entry_free(PyObject *self)
{
    struct cache_entry *e = (struct cache_entry *)self;

    if (e->parts)
        cache_parts_unpin(e->parts);
    Py_XDECREF(e->instead);
    Py_XDECREF(e->flat);
    Py_XDECREF(e->function);
    Py_XDECREF(e->backend);
    Py_XDECREF(e->compile_id);
    Py_XDECREF(e->annotation);
    Py_XDECREF(e->invalid_reason);
    Py_XDECREF(e->born_for);
    PyObject_Free(self);
}

static PyObject *entry_code(PyObject *self, void *context)
{
    const struct cache_entry *e = (struct cache_entry *)self;

    return Py_NewRef(e->valid ? e->parts->code : Py_None);
}

static PyObject *entry_guard(PyObject *self, void *context)
{
    const struct cache_entry *e = (struct cache_entry *)self;

    return Py_NewRef(e->valid ? e->parts->guard : e->instead ? e->instead : Py_None);
}

/* The entry tried after this one in its region, or None. */
static PyObject *entry_next(PyObject *self, void *context)
{
    const struct code_state *state = ((struct cache_entry *)self)->state;

    for (Py_ssize_t i = position((struct cache_entry *)self) + 1; i > 0 && i < state->entries.count; i++)
        if (state->entries.at[i]->region == ((struct cache_entry *)self)->region)
            return Py_NewRef((PyObject *)state->entries.at[i]);
    Py_RETURN_NONE;
}

static PyObject *entry_invalidate(PyObject *self, PyObject *args)
{
    const char *reason = "invalidated by the program";

    if (!PyArg_ParseTuple(args, "|s:invalidate", &reason))
        return NULL;
    cache_entry_invalidate((struct cache_entry *)self, reason, NULL);
    Py_RETURN_NONE;
}

static PyObject *entry_update_difference(PyObject *self, PyObject *ignored)
{
    struct cache_entry *entry = (struct cache_entry *)self;
    struct cache_parts *parts = entry->front->update_difference ? cache_entry_pin(entry) : NULL;

    if (parts) {
        entry->front->update_difference(parts);
        cache_parts_unpin(parts);
    }
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *entry_repr(PyObject *self)
{
    struct cache_entry *e = (struct cache_entry *)self;

    return PyUnicode_FromFormat("<CacheEntry %S%s, %lu hits>", e->compile_id, e->valid ? "" : " (invalid)", e->hits);
}

static PyGetSetDef entry_fields[] = {
    {"code", entry_code, NULL, "The compiled code object; None once the entry is invalid.", NULL},
    {"guard_manager", entry_guard, NULL, "The guard as the callback gave it; None once invalid.", NULL},
    {"check_fn", entry_guard, NULL, "The same, under its older name.", NULL},
    {"next", entry_next, NULL, "The entry tried after this one, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define ENTRY_MEMBER(type, name) type, offsetof(struct cache_entry, name), READONLY
static PyMemberDef entry_members[] = {
    {"backend", ENTRY_MEMBER(T_OBJECT, backend), "What the entry was compiled for; part of the match."},
    {"compile_id", ENTRY_MEMBER(T_OBJECT, compile_id),
     "Which compilation made it: \"code/attempt\" unless the callback said."},
    {"trace_annotation", ENTRY_MEMBER(T_OBJECT, annotation), "The callback's words for profilers."},
    {"valid", ENTRY_MEMBER(T_BOOL, valid), "False once a guarded object has died, or after a reset."},
    {"invalid_reason", ENTRY_MEMBER(T_OBJECT, invalid_reason), "Why it is no longer valid, or None."},
    {"hits", ENTRY_MEMBER(T_ULONG, hits), "Calls that ran this entry."},
    {"isolate_recompiles_id", ENTRY_MEMBER(T_LONGLONG, region), "torch: the region that sees it; -1: all do."},
    {NULL, 0, 0, 0, NULL},
};
#undef ENTRY_MEMBER

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
    .tp_members = entry_members,
    .tp_methods = entry_methods,
};
