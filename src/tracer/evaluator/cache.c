/* tracer/evaluator/cache.c -- the entries of a code object's cache. See tracer/evaluator/cache.h.
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer/evaluator/cache.h"

#include <structmember.h>

static LIST_HEAD(, code_state) all_states;
/* states_made: how many states of code objects were made. states_compiled: how many code objects
 * have got a number for their compile ids */
static unsigned long states_made, states_compiled;

/* ---- the state of a code object: its entries and actions ---- */

struct code_state *code_state_make(PyCodeObject *code)
{
    OWNED PyObject *frame_state = PyDict_New();
    uintptr_t slot = compat_get_extra(code, tracer_process.extra);
    struct code_state *state;

    if (!frame_state)
        return NULL;
    /* PyDict_New() may have collected garbage, and code that ran then may have made the state */
    if (unlikely(tracer_is_slot_code_state(slot)))
        return (struct code_state *)slot;
    state = calloc(1, sizeof *state);
    if (!state || compat_set_extra(code, tracer_process.extra, state)) {
        free(state);
        PyErr_NoMemory();
        return NULL;
    }
    state->frame_state = Py_NewRef(frame_state);
    state->references = 1;
    state->code = code;
    state->mark = slot;
    state->is_init =
        code->co_argcount >= 1 && !PyUnicode_CompareWithASCIIString(code->co_name, "__init__");
    state->serial = ++states_made;
    TAILQ_INIT(&state->entries);
    TAILQ_INIT(&state->precompiled);
    LIST_INSERT_HEAD(&all_states, state, all);
    return state;
}

/* Mark ENTRY as invalid, without running Python code. release_entry_references() must follow. */
static void mark_entry_invalid(struct cache_entry *entry, const char *reason, PyObject *instead)
{
    if (!entry->valid)
        return;
    entry->valid = false;
    entry->instead = Py_XNewRef(instead);
    entry->invalid_reason = PyUnicode_FromString(reason);
    decision_write_entry_death(entry, reason);
}

/* ENTRY is invalid: release its references to the program's objects. May run finalisers. */
static void release_entry_references(struct cache_entry *entry)
{
    OWNED PyObject *flat = entry->flat, *function = entry->function;
    struct cache_parts *parts = entry->parts;

    entry->parts = NULL;
    entry->flat = entry->function = NULL;
    if (!parts)
        return;
    if (entry->front->unbind)
        entry->front->unbind(entry, parts->guard);
    cache_parts_unpin(parts);
}

/* Remove all entries from LIST. With WHY, also make them invalid, because the program may still
 * hold them. Finalisers that run here find the list empty. */
static void remove_all_entries(struct entry_list *list, const char *why)
{
    struct entry_list gone = TAILQ_HEAD_INITIALIZER(gone);
    struct cache_entry *entry;

    TAILQ_CONCAT(&gone, list, order);
    TAILQ_FOREACH(entry, &gone, order)
    {
        entry->state = NULL;
        if (why)
            mark_entry_invalid(entry, why, NULL);
    }
    while ((entry = TAILQ_FIRST(&gone))) {
        TAILQ_REMOVE(&gone, entry, order);
        if (why)
            release_entry_references(entry);
        Py_DECREF(entry);
    }
}

void code_state_release(struct code_state *state)
{
    if (--state->references)
        return;
    remove_all_entries(&state->entries, "its code object was freed");
    remove_all_entries(&state->precompiled, NULL);
    if (state->compiled) {
        decision_write_entry_death(state->compiled, "dropped: a reset, or its function was freed");
        Py_DECREF(state->compiled);
    }
    Py_XDECREF(state->frame_state);
    Py_XDECREF(state->splits);
    free(state->regions);
    free(state);
}

void code_state_free(void *slot)
{
    /* put a pending exception aside, because a code object may die while there is one */
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    struct code_state *state = slot;

    if (!tracer_is_slot_code_state((uintptr_t)slot))
        return;
    state->code = NULL;
    LIST_REMOVE(state, all);
    code_state_release(state);
}

void code_state_reset(PyCodeObject *code)
{
    struct code_state *state = code_state_get(code, false);

    if (!state)
        return;
    /* cannot fail, because the extra array already has room for our index */
    compat_set_extra(code, tracer_process.extra, (void *)state->mark);
    state->code = NULL;
    LIST_REMOVE(state, all);
    remove_all_entries(&state->entries, "reset");
    code_state_release(state);
}

void code_state_drop_precompiled(struct code_state *state)
{
    remove_all_entries(&state->precompiled, NULL);
}

void code_state_reset_all(void)
{
    /* finalisers may make new states meanwhile, which are not reset */
    const unsigned long newest = states_made;
    struct code_state *state = LIST_FIRST(&all_states);

    while (state) {
        PyCodeObject *code = state->code;
        /* a code object that is being freed drops its own state */
        if (state->serial > newest || !Py_REFCNT(code)) {
            state = LIST_NEXT(state, all);
            continue;
        }
        Py_INCREF(code);
        code_state_reset(code);
        Py_DECREF(code);
        state = LIST_FIRST(&all_states);
    }
}

/* Return the actions set for REGION; NULL if none were set. */
static struct code_actions *find_actions_of_region(struct code_state *state, int64_t region)
{
    for (unsigned i = 0; i < state->region_count; i++)
        if (state->regions[i].region == region)
            return &state->regions[i];
    return region < 0 ? &state->actions : NULL;
}

struct code_actions code_state_get_actions(struct code_state *state, int64_t region)
{
    const struct code_actions *common = &state->actions;
    const struct code_actions *own = find_actions_of_region(state, region);

    if (own)
        return *own;
    /* From the common region, ACTION_SKIP ("never compile this") holds in every region.
     * ACTION_RUN_ONLY (the limit is reached) holds only in the region that has reached its
     * limit. */
    return (struct code_actions){
        .own = common->own == ACTION_SKIP ? ACTION_SKIP : ACTION_DEFAULT,
        .callees = common->callees == ACTION_SKIP ? ACTION_SKIP : ACTION_DEFAULT,
        .written = true,
    };
}

int code_state_set_actions(struct code_state *state, int64_t region, struct code_actions actions)
{
    struct code_actions *own = find_actions_of_region(state, region);

    if (!own) {
        own = realloc(state->regions, (state->region_count + 1) * sizeof *own);
        if (!own) {
            PyErr_NoMemory();
            return -1;
        }
        state->regions = own;
        own += state->region_count++;
    }
    *own = actions;
    own->region = region;
    return 0;
}

void code_states_mark_actions_unwritten(void)
{
    struct code_state *state;

    LIST_FOREACH(state, &all_states, all)
    {
        state->actions.written = false;
        for (unsigned i = 0; i < state->region_count; i++)
            state->regions[i].written = false;
    }
}

/* ---- make entries and add them to the cache ---- */

PyObject *shim_optional(PyObject *object, const char *name)
{
    OWNED PyObject *key = PyErr_Occurred() ? NULL : PyUnicode_InternFromString(name);
    PyObject *value = NULL;

    if (key && compat_optional_attribute(object, key, &value) < 0)
        return NULL;
    if (value == Py_None)
        Py_CLEAR(value);
    return value;
}

/* Can CODE run in place of ORIGINAL? Both must have the same arguments and free variables. Returns
 * false with an exception. */
static bool can_replace_code(PyCodeObject *code, PyCodeObject *original)
{
    const int flags = CO_VARARGS | CO_VARKEYWORDS | CO_NEWLOCALS | CO_OPTIMIZED;

    if (code->co_argcount + code->co_kwonlyargcount !=
            original->co_argcount + original->co_kwonlyargcount ||
        (code->co_flags & flags) != (original->co_flags & flags))
        PyErr_Format(PyExc_TypeError,
                     "the code returned for %U() takes other arguments than it: "
                     "they must be the same in number and kind",
                     original->co_qualname);
    else if (code->co_nfreevars != original->co_nfreevars)
        PyErr_Format(PyExc_TypeError,
                     "the code returned for %U() has %d free variables, and it has %d: they must "
                     "be the same",
                     original->co_qualname, code->co_nfreevars, original->co_nfreevars);
    else
        return true;
    return false;
}

static PyObject *find_check_method_of_guard(PyObject *guard)
{
    PyObject *check = shim_optional(guard, "check");

    return check || PyErr_Occurred() ? check : Py_NewRef(guard);
}

const struct front front_own = {
    .limits = true,
    .fail_hook = true,
    .unexplained = "the guard returned False",
    .check_of = find_check_method_of_guard,
};

/* Insert ENTRY into LIST at the front, or at the end if LAST. Steals the reference. */
static void insert_into_list(struct entry_list *list, struct cache_entry *entry, bool last)
{
    if (last)
        TAILQ_INSERT_TAIL(list, entry, order);
    else
        TAILQ_INSERT_HEAD(list, entry, order);
}

struct cache_entry *cache_entry_new(const struct front *front, int64_t region)
{
    struct cache_entry *entry = (struct cache_entry *)PyType_GenericAlloc(&cache_entry_type, 0);

    if (entry && !(entry->parts = calloc(1, sizeof *entry->parts))) {
        Py_CLEAR(entry);
        PyErr_NoMemory();
    }
    if (!entry)
        return NULL;
    entry->parts->pins = 1;
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

/* Read GUARDED, the answer of a callback, into ENTRY, which is not in a list yet. Returns -1 with
 * an exception. */
static int read_callback_answer(struct cache_entry *entry, PyCodeObject *original,
                                PyObject *guarded)
{
    struct cache_parts *parts = entry->parts;

    parts->code = shim_optional(guarded, "code");
    parts->guard = shim_optional(guarded, "check_fn");
    if (!parts->guard)
        parts->guard = shim_optional(guarded, "guard_manager");
    if (parts->guard && !PyErr_Occurred())
        parts->check = entry->front->check_of(parts->guard);
    if (PyErr_Occurred())
        return -1;
    if (!parts->code || !PyCode_Check(parts->code)) {
        PyErr_Format(PyExc_TypeError,
                     "the callback for %U() returned a %s, which has no code object: return None "
                     "or a GuardedCode",
                     original->co_qualname, Py_TYPE(guarded)->tp_name);
    } else if (!parts->check || !PyCallable_Check(parts->check)) {
        PyErr_Format(PyExc_TypeError,
                     "the callback for %U() returned a GuardedCode whose guard cannot be called",
                     original->co_qualname);
    } else if (can_replace_code((PyCodeObject *)parts->code, original)) {
        entry->tree = PyObject_TypeCheck(parts->guard, &guard_tree_type);
        entry->annotation = shim_optional(guarded, "trace_annotation");
        entry->compile_id = shim_optional(guarded, "compile_id");
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Insert ENTRY into the list of PRECOMPILED entries of code object ORIGINAL, or into its main list.
 * No Python code runs between finding the list and inserting. Returns -1 with MemoryError. */
static int insert_entry(struct cache_entry *entry, PyCodeObject *original, bool precompiled,
                        PyObject *birth)
{
    struct code_state *state = code_state_get(original, true);

    if (!state)
        return -1;
    if (!precompiled) {
        if (!entry->compile_id &&
            !(entry->compile_id = PyUnicode_FromFormat(
                  "%lu/%lu", state->number ? state->number - 1 : states_compiled, state->compiles)))
            return -1;
        if (!state->number)
            state->number = ++states_compiled;
        state->compiles++;
        entry->state = state;
        entry->region = front_get_region(entry->front);
    }
    Py_INCREF(entry);
    insert_into_list(precompiled ? &state->precompiled : &state->entries, entry,
                     precompiled || entry->front->insertion_order);
    decision_write_entry_birth(birth, entry, state);
    return 0;
}

static bool entry_is_valid(PyObject *entry)
{
    return ((struct cache_entry *)entry)->valid;
}

static void invalidate_for_dead_object(PyObject *entry, const char *reason)
{
    cache_entry_invalidate((struct cache_entry *)entry, reason, NULL);
}

static const struct guard_binding to_tree = {entry_is_valid, invalidate_for_dead_object};

/* Insert ENTRY into the cache of ORIGINAL. Unless PRECOMPILED, its guards get ENTRY, so that they
 * can invalidate it. Returns -1 with an exception. */
static int add_entry_to_cache(struct cache_entry *entry, PyCodeObject *original, bool precompiled)
{
    OWNED PyObject *birth =
        decision_birth(entry, tracer_mark_in_slot(compat_get_extra(original, tracer_process.extra)),
                       entry->parts->guard, entry->backend);
    int status = insert_entry(entry, original, precompiled, birth);
    /* pin the parts, because binding may make the entry invalid */
    struct cache_parts *parts = status || precompiled ? NULL : cache_entry_pin(entry);

    if (!parts)
        return status;
    if (entry->tree)
        status = guard_tree_bind(parts->guard, (PyObject *)entry, &to_tree);
    else if (entry->front->bind)
        status = entry->front->bind(entry, parts);
    if (status)
        cache_entry_invalidate(entry, "its guards cannot watch the objects that they name", NULL);
    cache_parts_unpin(parts);
    return status;
}

struct cache_entry *cache_entry_add(PyCodeObject *original, PyObject *guarded, PyObject *backend,
                                    const struct front *front)
{
    struct cache_entry *entry = cache_entry_new(front, -1);

    if (!entry)
        return NULL;
    entry->backend = Py_NewRef(backend);
    if (read_callback_answer(entry, original, guarded) ||
        add_entry_to_cache(entry, original, false))
        Py_CLEAR(entry);
    return entry;
}

int cache_entry_add_precompiled(PyCodeObject *original, PyObject *guard, PyObject *code,
                                int64_t region, const struct front *front)
{
    struct cache_entry *entry = cache_entry_new(front, region);
    int status = -1;

    if (!entry)
        return -1;
    entry->parts->code = Py_NewRef(code);
    entry->parts->guard = Py_NewRef(guard);
    entry->backend = Py_NewRef(Py_None);
    entry->compile_id = PyUnicode_FromString("precompiled");
    if (!PyCode_Check(code))
        PyErr_SetString(PyExc_TypeError, "Expecting CodeType from PrecompileEntry.");
    else if ((entry->parts->check = front->check_of(guard)))
        status = add_entry_to_cache(entry, original, true);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the guard manager has no root");
    Py_DECREF(entry);
    return status;
}

struct cache_entry *cache_entry_first(const struct code_state *state, int64_t region,
                                      const struct front *front)
{
    struct cache_entry *entry;

    TAILQ_FOREACH(entry, &state->entries, order)
    if (entry->region == region && entry->front == front)
        return entry;
    return region >= 0 ? cache_entry_first(state, -1, front) : NULL;
}

/* If ENTRY is in a list, move it to the front, or to the end if LAST. */
static void move_entry_in_list(struct cache_entry *entry, bool last)
{
    struct entry_list *list = entry->state ? &entry->state->entries : NULL;

    if (!list || (!last && TAILQ_FIRST(list) == entry))
        return;
    TAILQ_REMOVE(list, entry, order);
    insert_into_list(list, entry, last);
}

void cache_entry_move_hit_to_front(struct cache_entry *entry)
{
    if (!entry->front->insertion_order)
        move_entry_in_list(entry, false);
}

void cache_entry_invalidate(struct cache_entry *entry, const char *reason, PyObject *instead)
{
    if (!entry->valid)
        return;
    move_entry_in_list(entry, true);
    mark_entry_invalid(entry, reason, instead);
    release_entry_references(entry);
}

/* ---- an entry's attributes and methods in Python ---- */

static void free_entry(PyObject *self)
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
    free(e->secret);
    PyObject_Free(self);
}

static PyObject *get_code_of_entry(PyObject *self, void *context)
{
    const struct cache_entry *e = (struct cache_entry *)self;

    return Py_NewRef(e->valid ? e->parts->code : Py_None);
}

static PyObject *get_guard_of_entry(PyObject *self, void *context)
{
    const struct cache_entry *e = (struct cache_entry *)self;

    return Py_NewRef(e->valid ? e->parts->guard : e->instead ? e->instead : Py_None);
}

/* Return the next entry after SELF that lookups would try, of the same front end and region, or
 * None. */
static PyObject *get_next_entry(PyObject *self, void *context)
{
    const struct cache_entry *entry = (struct cache_entry *)self;
    const struct cache_entry *next = entry->state ? entry : NULL;

    do
        next = next ? TAILQ_NEXT(next, order) : NULL;
    while (next && (next->region != entry->region || next->front != entry->front));
    return Py_NewRef(next ? (PyObject *)next : Py_None);
}

static PyObject *invalidate_from_python(PyObject *self, PyObject *args)
{
    PyObject *entry = self;
    PyObject *instead = NULL;
    PyObject *more;
    OWNED PyObject *given = NULL;
    const char *reason = "invalidated by the program";

    /* torch passes an entry and a state; our entry stands for both, so the first is enough */
    if (PyTuple_GET_SIZE(args) > 1) {
        if (!PyArg_ParseTuple(args, "O!O|O:invalidate", &cache_entry_type, &entry, &instead, &more))
            return NULL;
        given = tracer_get_attribute(instead, "invalidation_reason");
        reason = given && PyUnicode_Check(given) ? PyUnicode_AsUTF8(given) : NULL;
        PyErr_Clear();
        reason = reason ? reason : "invalidated by torch";
    } else if (!PyArg_ParseTuple(args, "|s:invalidate", &reason)) {
        return NULL;
    }
    Py_INCREF(entry);
    cache_entry_invalidate((struct cache_entry *)entry, reason, instead);
    Py_DECREF(entry);
    Py_RETURN_NONE;
}

static PyObject *update_difference_from_python(PyObject *self, PyObject *ignored)
{
    struct cache_entry *entry = (struct cache_entry *)self;
    struct cache_parts *parts = entry->front->update_difference ? cache_entry_pin(entry) : NULL;

    if (parts) {
        entry->front->update_difference(parts);
        cache_parts_unpin(parts);
    }
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *make_entry_repr(PyObject *self)
{
    struct cache_entry *e = (struct cache_entry *)self;

    return PyUnicode_FromFormat("<CacheEntry %S%s, %lu hits>", e->compile_id,
                                e->valid ? "" : " (invalid)", e->hits);
}

static PyGetSetDef entry_fields[] = {
    {"code", get_code_of_entry, NULL, "The compiled code object; None once the entry is invalid.",
     NULL},
    {"guard_manager", get_guard_of_entry, NULL,
     "The guard as the callback gave it; None once invalid.", NULL},
    {"check_fn", get_guard_of_entry, NULL, "The same, under its older name.", NULL},
    {"next", get_next_entry, NULL, "The entry tried after this one, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define ENTRY_MEMBER(type, name) type, offsetof(struct cache_entry, name), READONLY
static PyMemberDef entry_members[] = {
    {"backend", ENTRY_MEMBER(T_OBJECT, backend),
     "What the entry was compiled for; part of the match."},
    {"compile_id", ENTRY_MEMBER(T_OBJECT, compile_id),
     "Which compilation made it: \"code/attempt\" unless the callback said."},
    {"trace_annotation", ENTRY_MEMBER(T_OBJECT, annotation), "The callback's words for profilers."},
    {"valid", ENTRY_MEMBER(T_BOOL, valid),
     "False once a guarded object has died, or after a reset."},
    {"invalid_reason", ENTRY_MEMBER(T_OBJECT, invalid_reason),
     "Why it is no longer valid, or None."},
    {"hits", ENTRY_MEMBER(T_ULONG, hits), "Calls that ran this entry."},
    {"isolate_recompiles_id", ENTRY_MEMBER(T_LONGLONG, region),
     "torch: the region that sees it; -1: all do."},
    {NULL, 0, 0, 0, NULL},
};
#undef ENTRY_MEMBER

static PyMethodDef entry_methods[] = {
    {"invalidate", invalidate_from_python, METH_VARARGS,
     "invalidate($self, /, *arguments)\n--\n\n"
     "Never match again.\n\n"
     "invalidate() or invalidate(reason), a str; as torch calls it,\n"
     "invalidate(entry, deleted_guard_manager)."},
    {"update_diff_guard_root_manager", update_difference_from_python, METH_NOARGS,
     "update_diff_guard_root_manager($self, /)\n--\n\n"
     "torch calls it when its guard manager has new guards that tell entries apart."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject cache_entry_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dyntrace.types.CacheEntry",
    .tp_basicsize = sizeof(struct cache_entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Compiled code of one function, and the guards under which it may run.",
    .tp_dealloc = free_entry,
    .tp_repr = make_entry_repr,
    .tp_getset = entry_fields,
    .tp_members = entry_members,
    .tp_methods = entry_methods,
};
