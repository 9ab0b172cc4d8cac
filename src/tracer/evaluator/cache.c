/* tracer/evaluator/cache.c -- the entries of a code object's cache. See tracer/evaluator/cache.h.
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer/evaluator/cache.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>

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
    struct cache_entry *entry, *next = list->first;

    *list = (struct entry_list){NULL, 0};
    for (entry = next; entry; entry = entry->next) {
        entry->state = NULL;
        if (why)
            entry_end(entry, why, NULL);
    }
    while ((entry = next)) {
        next = entry->next;
        entry->next = NULL;
        if (why)
            entry_let_go(entry);
        Py_DECREF(entry);
    }
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
    state->references++;
    detach(state);
    drop_entries(&state->entries, "reset");
    code_state_release(state);
}

void code_state_drop_precompiled(struct code_state *state)
{
    drop_entries(&state->precompiled, NULL);
}

void code_state_reset_all(void)
{
    const unsigned long newest = states_made; /* finalisers may make others: those stay */
    struct code_state *state = all_states;

    while (state) {
        PyCodeObject *code = state->code;
        if (state->serial > newest || !Py_REFCNT(code)) { /* a code object that is being freed takes its own along */
            state = state->next;
            continue;
        }
        Py_INCREF(code);
        code_state_reset(code);
        Py_DECREF(code);
        state = all_states;
    }
}

/* REGION's own actions; NULL: it has none. */
static struct code_actions *actions_of(const struct code_state *state, int64_t region)
{
    for (unsigned i = 0; i < state->region_count; i++)
        if (state->regions[i].region == region)
            return &state->regions[i].actions;
    return NULL;
}

struct code_actions code_state_actions(const struct code_state *state, int64_t region)
{
    const struct code_actions *common = &state->actions, *own = region < 0 ? common : actions_of(state, region);

    if (own)
        return *own;
    /* "Never compile this" holds in every region, "the limit is reached" only where it was. */
    return (struct code_actions){
        .own = common->own == ACTION_SKIP ? ACTION_SKIP : ACTION_DEFAULT,
        .callees = common->callees == ACTION_SKIP ? ACTION_SKIP : ACTION_DEFAULT,
        .written = true,
    };
}

bool code_state_act(struct code_state *state, int64_t region, struct code_actions actions)
{
    struct code_actions *own = region < 0 ? &state->actions : actions_of(state, region);
    struct region_actions *more;

    if (own) {
        *own = actions;
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

/* The attribute NAME of GUARDED. New reference; NULL: it is missing or None, or an exception is set, perhaps was before. */
static PyObject *optional(PyObject *guarded, const char *name)
{
    PyObject *value = PyErr_Occurred() ? NULL : shim_optional(guarded, name);

    if (value == Py_None)
        Py_CLEAR(value);
    return value;
}

/* Can CODE run in place of ORIGINAL? What it takes from the frame must be there. */
static bool fits(PyCodeObject *code, PyCodeObject *original)
{
    const int flags = CO_VARARGS | CO_VARKEYWORDS | CO_NEWLOCALS | CO_OPTIMIZED;

    if (code->co_argcount + code->co_kwonlyargcount != original->co_argcount + original->co_kwonlyargcount ||
        (code->co_flags & flags) != (original->co_flags & flags))
        PyErr_Format(PyExc_TypeError, "the code returned for %U() takes other arguments than it: "
                     "they must be the same in number and kind", original->co_qualname);
    else if (code->co_nfreevars != original->co_nfreevars)
        PyErr_Format(PyExc_TypeError,
                     "the code returned for %U() has %d free variables, and it has %d: they must be the same",
                     original->co_qualname, code->co_nfreevars, original->co_nfreevars);
    else
        return true;
    return false;
}

static PyObject *own_check_of(PyObject *guard)
{
    PyObject *check = optional(guard, "check");

    return check || PyErr_Occurred() ? check : Py_NewRef(guard);
}

const struct front front_own = {
    .modes = &(const struct front_modes){0},
    .limits = true,
    .fail_hook = true,
    .unexplained = "the guard returned False",
    .check_of = own_check_of,
};

/* ENTRY, owned by LIST from here on, goes to its front or becomes its LAST. */
static void put_in(struct entry_list *list, struct cache_entry *entry, bool last)
{
    struct cache_entry **at = &list->first;

    while (last && *at)
        at = &(*at)->next;
    entry->next = *at;
    *at = entry;
    list->count++;
}

/* ENTRY, which is in LIST, no longer is; the caller owns it. */
static void take_out(struct entry_list *list, struct cache_entry *entry)
{
    struct cache_entry **at = &list->first;

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    list->count--;
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
    parts->guard = optional(guarded, "check_fn");
    if (!parts->guard)
        parts->guard = optional(guarded, "guard_manager");
    if (PyErr_Occurred())
        goto err;
    if (!parts->code || !PyCode_Check(parts->code)) {
        PyErr_Format(PyExc_TypeError, "the callback for %U() returned a %s, which has no code object: "
                     "return None or a GuardedCode", original->co_qualname, Py_TYPE(guarded)->tp_name);
        goto err;
    }
    parts->check = parts->guard ? front->check_of(parts->guard) : NULL;
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

    if (!state) {
        PyErr_NoMemory();
        return -1;
    }
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
    Py_INCREF(entry);
    put_in(precompiled ? &state->precompiled : &state->entries, entry,
           precompiled || entry->front->modes->insertion_order);
    decision_entry_born(birth, entry, state);
    return 0;
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

/* ENTRY, new, becomes one of ORIGINAL's: of its PRECOMPILED ones, or of the others, whose guards learn of their entry.
 * -1 with an exception. */
static int publish(struct cache_entry *entry, PyCodeObject *original, bool precompiled)
{
    const struct front *front = entry->front;
    struct decision_birth birth;
    struct cache_parts *parts;
    int status;

    decision_birth_begin(&birth, entry, tracer_mark_in(compat_extra(original, tracer_process.extra)),
                         entry->parts->guard, entry->backend);
    status = join(entry, original, precompiled, &birth);
    parts = status || precompiled ? NULL : cache_entry_pin(entry); /* what follows may invalidate it */
    if (parts) {
        if (entry->tree)
            status = guard_tree_bind(parts->guard, (PyObject *)entry, &to_tree);
        else if (front->bind)
            status = front->bind(entry, parts);
        if (status)
            cache_entry_invalidate(entry, "its guards cannot watch the objects that they name", NULL);
        cache_parts_unpin(parts);
    }
    decision_birth_end(&birth);
    return status;
}

struct cache_entry *cache_entry_add(PyCodeObject *original, PyObject *guarded, PyObject *backend,
                                    const struct front *front)
{
    struct cache_entry *entry = read_guarded(original, guarded, backend, front);

    if (entry && publish(entry, original, false))
        Py_CLEAR(entry);
    return entry;
}

int cache_entry_load(PyCodeObject *original, PyObject *guard, PyObject *code, int64_t region, const struct front *front)
{
    struct cache_entry *entry;
    int status = -1;

    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "Expecting CodeType from PrecompileEntry.");
        return -1;
    }
    entry = cache_entry_new(front, region);
    if (!entry)
        return -1;
    entry->parts->code = Py_NewRef(code);
    entry->parts->guard = Py_NewRef(guard);
    entry->backend = Py_NewRef(Py_None);
    entry->compile_id = PyUnicode_FromString("precompiled");
    entry->parts->check = front->check_of(guard);
    if (entry->parts->check)
        status = publish(entry, original, true);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the guard manager has no root");
    Py_DECREF(entry);
    return status;
}

struct cache_entry *cache_entry_first(const struct code_state *state, int64_t region)
{
    for (struct cache_entry *entry = state->entries.first; entry; entry = entry->next)
        if (entry->region == region)
            return entry;
    return region >= 0 ? cache_entry_first(state, -1) : NULL;
}

/* ENTRY goes to the front of its code's list, or becomes its LAST, if it is in it. */
static void move(struct cache_entry *entry, bool last)
{
    struct entry_list *list = entry->state ? &entry->state->entries : NULL;

    if (!list || (!last && list->first == entry))
        return;
    take_out(list, entry);
    put_in(list, entry, last);
}

void cache_entry_touch(struct cache_entry *entry)
{
    if (!entry->front->modes->insertion_order)
        move(entry, false);
}

void cache_entry_invalidate(struct cache_entry *entry, const char *reason, PyObject *instead)
{
    if (!entry->valid)
        return;
    move(entry, true);
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
    const struct cache_entry *entry = (struct cache_entry *)self, *next = entry->state ? entry->next : NULL;

    while (next && next->region != entry->region)
        next = next->next;
    return Py_NewRef(next ? (PyObject *)next : Py_None);
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
