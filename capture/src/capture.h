/* capture/src/capture.h -- dyntrace.compile: graphs of what functions do with arrays.
 *
 * Runs in: the traced process, under the GIL. The shim's place only (tracer/place.c).
 *
 * A call that misses under a capture callback is watched: step.c runs its first real run itself, in
 * the call's own frame, by the C functions that CPython calls, and keeps beside each slot of the
 * frame a shadow: where the value comes from. What it does not understand is a break, and CPython
 * goes on, in the same frame or in code made here:
 *
 *     value.c      shadows, sources and the guards on what was read
 *     operate.c    operations: nodes of the graph, or Python on known values
 *     attribute.c  attributes that are read, imports
 *     build.c      containers
 *     effect.c     changes of what was there before
 *     iterate.c    what is gone through: iterators, generators
 *     object.c     objects of the program's classes
 *     invoke.c     calls: array functions, functions that are stepped as well
 *     known.c      calls of builtins on what is known, and what is known of numpy's and torch's
 *                  functions
 *     step.c       one instruction after the other
 *     plan.c       what rebuilds variables and stack behind the graph: with dyntrace._plan
 *     capture.c    a call, from its beginning to the code that is made of it
 *     module.c     the module and the types that Python sees
 *
 * The code that runs instead is made in Python: dyntrace._assemble, dyntrace._plan. */
#ifndef DYNTRACE_CAPTURE_H
#define DYNTRACE_CAPTURE_H

#include "tracer/compat/guards.h"
#include "tracer/compat/step.h"
#include "tracer/evaluator/watcher.h"

/* What the shim does for us: set when _dyntrace_capture is attached to it. */
extern const struct shim_services *shim;

/* What is known of a value: the tag of struct shadow. Containers are those from TUPLE to SLICE. */
enum shadow_kind {
    SHADOW_CONST,  /* a constant: an object that nobody can change */
    SHADOW_SOURCE, /* read from outside the function: a variable, a global, an attribute, an item */
    SHADOW_NODE,   /* the result of a node of the graph */
    SHADOW_TUPLE,  /* a container with known items; it was made here, or is a list that was read */
    SHADOW_LIST,
    SHADOW_DICT,
    SHADOW_SLICE,
    SHADOW_OBJECT,    /* an instance, made here, of a class of the program */
    SHADOW_CALL,      /* an effect: a call that changes something or makes an object */
    SHADOW_SUPER,     /* super() */
    SHADOW_METHOD,    /* a bound method */
    SHADOW_ITERATOR,  /* an iterator, or a view of a dict */
    SHADOW_GENERATOR, /* a generator, made here */
    SHADOW_FUNCTION,  /* a function, made here */
    SHADOW_CELL,      /* the cell of a variable */
    SHADOW_CHANGED,   /* a child of a source: the value that an effect has put in its place */
};

/* How much of a source a guard checks. */
enum guarded {
    GUARDED_NOT,   /* nothing yet */
    GUARDED_TYPE,  /* its type, and the length of a tuple or list */
    GUARDED_VALUE, /* its value */
};

/* Whether a number that was read is an input of the graph, because calls give different ones. */
enum varying {
    VARIES_UNKNOWN, /* nobody has asked yet */
    VARIES_INPUT,   /* it is an input */
    VARIES_NOT,     /* it is not */
    VARIES_SHAPE,   /* a shape: `items` has the sizes that are inputs, and NULL for the others */
};

/* A value that was read, at `step` `key` behind `parent`. A root has no parent and no key. */
struct source {
    struct shadow *parent, *child, *next; /* child: the first that was read behind it */
    PyObject *key;                        /* borrowed from the arena */
    /* 'l' a variable, '.' an attribute, '[' an item, '!' a global that is missing, 'C' the cell of
     * a free variable; of a root 'L' 'G' 'B' 'S': locals, globals, builtins, sys.modules */
    char step;
    unsigned char steps; /* how many lie between it and its root */
    enum guarded guarded;
    enum varying varies;
    bool changed;          /* an effect has changed some of its children */
    bool listed;           /* the order of a dict's keys, or a set's items, are guarded */
    bool is_ordinary;      /* a class: it makes and finds attributes as object does, guarded */
    bool is_new;           /* CHANGED: nothing was there before */
    Py_ssize_t cell;       /* 'C': the number of the free variable */
    Py_ssize_t references; /* in capture->mortal: how many references the capture holds */
    Py_ssize_t apart;      /* it is another object than the first `apart` effects changed */
    PyObject *path;        /* borrowed, or NULL: its path, once source_path() has made it */
    PyObject *placeholder; /* borrowed, or NULL: the node of the graph's input */
};

/* The result of a node. */
struct node {
    PyObject *node;       /* borrowed */
    PyObject *expression; /* a number: how it is calculated, for guards; borrowed, or NULL */
    struct shadow *same;  /* the node returns this very object, or NULL */
    unsigned char steps;  /* a number: operands in its expression */
    bool is_number;       /* a number, calculated of the numbers `items` */
    bool fixed;           /* its shape follows from the shapes of the inputs */
    bool counted;         /* so do the number of its items and their shapes */
};

struct method {
    struct shadow *owner;
    PyObject *name;                /* borrowed */
    struct shadow *source, *bound; /* of its function and its self; NULL: a method in C */
};

/* Where the next item of an iterator comes from. */
enum iteration {
    ITERATES_ITEMS,     /* forwards, over a container, an array, or a dict's view */
    ITERATES_BACKWARDS, /* reversed(), over a tuple or list */
    ITERATES_MIRROR,    /* the iterator `mirror` gives capsules of the items' shadows: build.c */
    ITERATES_ZIP,       /* zip() of the iterators `keys`, which have the shadows `items` */
    ITERATES_ENUMERATE, /* enumerate(), of one such */
    ITERATES_MAP,       /* map(), of such, with the function `value` */
    ITERATES_FILTER,    /* filter(), likewise */
    ITERATES_UNKNOWN,   /* nobody knows how far it has come */
};

struct iterator {
    enum iteration how;
    struct shadow *of; /* of `value`: what it iterates over, or its function */
    Py_ssize_t at;     /* items that it has given: of a result of the graph, or mirrored */
    PyObject *mirror;  /* borrowed */
    /* shared by the copies of a mirrored iterator: its `at` counts the items that were taken */
    struct shadow *mirrored;
};

/* `items` are its variables, then its stack. */
struct generator {
    struct shadow *function;
    struct shadow *given; /* what it gave last */
    bool has_begun;       /* its frame's cells have shadows */
    bool lost;            /* it is not followed any more */
};

/* `items` are the cells of its closure. */
struct function {
    PyObject *code;                             /* borrowed; NULL: a polyfill's */
    struct shadow *defaults, *keyword_defaults; /* or NULL */
    struct shadow *globals;
};

/* `items` is its content, or NULL; `value` the object in it, only to be compared. */
struct cell {
    struct shadow *source; /* or NULL: it was made here */
    bool is_outside;       /* another function has made it */
};

/* `items` are a callable and its arguments. */
struct effect {
    struct shadow *container; /* what the call changes; itself: it makes an object */
    Py_ssize_t nodes;         /* how many nodes come before it */
};

struct shadow {
    enum shadow_kind kind;
    bool frozen;           /* a container that must not change any more */
    uint32_t mirrors;      /* of a container: mirrored iterators over it that have not ended */
    uint32_t serial, kept; /* kept: of the frame that has an undo for it */
    PyObject *value;       /* the object, if it is known: borrowed from the arena; or NULL */
    PyObject *told;        /* what plan_part() made of it: borrowed likewise; or NULL */
    /* a list, dict or object that others can see: what it was when that began */
    struct shadow *origin;
    struct shadow **items;
    PyObject **keys; /* borrowed likewise: of a dict, of an object's attributes */
    Py_ssize_t count, room;
    /* By kind. `source` is that of CHANGED as well, of a list that was read, and all zero in
     * constants and in other containers. */
    union {
        struct source source;
        struct node node;
        struct method method;
        struct iterator iterator;
        struct generator generator;
        struct function function;
        struct cell cell;
        struct effect effect;
        struct {
            struct shadow *of_class;
        } object; /* `keys` and `items` are its attributes */
        struct {
            PyObject *self; /* borrowed */
        } super;            /* of the class `value`; `items` are the shadows of both */
    };
};

/* A frame that is stepped. */
struct watched {
    struct watched *outer;
    compat_frame *frame;
    PyCodeObject *code;   /* borrowed: the frame's */
    const uint8_t *bytes; /* of its bytecode as it was compiled */
    PyObject *held;       /* owned: them */
    /* unit: the instruction; group: where it or the call that it belongs to begins */
    int32_t units, unit, next, group;
    int op;
    int variables, depth, before; /* depth: of the stack; before: as the instruction began */
    /* owned: of variables, then the stack; then the stack as the instruction began */
    struct shadow **shadow;
    /* owned: each variable's value as it was put there, to be compared only: the frame has it */
    PyObject **put;
    /* borrowed: of keyword arguments, for the call that has begun; or NULL */
    PyObject *names;
    struct shadow *function; /* of the function, or NULL */
    struct shadow *globals;  /* source of its globals */
    uint32_t serial;         /* shadows made before it have a lower one */
    /* its code is a resume function's: arguments may stand for no value */
    bool resumed;
    bool unseen; /* its instruction has begun a frame that was not awaited */
};

enum ended { ENDED_NOT, ENDED_RETURN, ENDED_YIELD, ENDED_BEFORE, ENDED_BEHIND, ENDED_RAISED };

/* SHADOW as it was before a call that is stepped changed it. */
struct undo {
    struct undo *before;
    struct shadow *shadow, was;
};

enum {
    CAPTURE_LISTS = 5,
    OWN_CALLS = 100 /* deep, of our own, which the recursion limit does not see */
};
struct capture {
    PyThreadState *ts;
    PyObject *callback; /* borrowed */
    union {
        PyObject *lists[CAPTURE_LISTS]; /* owned */
        struct {
            PyObject *nodes, *inputs, *placeholders, *guards; /* nodes without placeholders */
            PyObject *places;                                 /* place_now() of each of nodes */
        };
    };
    PyArena *arena; /* owned: of shadows, and of what they refer to */
    /* items: of containers that were gone through; nesting: of those in an argument of a node */
    uint32_t serial, jumps, items, nesting;
    struct undo *undo; /* in the order made */
    /* borrowed, or NULL: by path, numbers that captures of this code have met, and shapes; None:
     * more than one */
    PyObject *numbers, *sizes;
    Py_ssize_t number_nodes; /* those of nodes that give a number */
    struct watched *innermost;
    struct shadow *locals, *globals, *builtins, *modules; /* the four roots */
    struct shadow *taken;                                 /* items: sources of the placeholders */
    struct shadow *effects;                               /* items: in their order */
    struct shadow *generators;                            /* items: that were made */
    PyObject *raised;        /* borrowed: by the last iterator's end; or NULL */
    const struct call *sent; /* what the generator that is resumed next is sent; or NULL */
    /* the function that is stepped next may raise StopIteration; it has, and nothing else */
    bool may_end, ends;
    bool shapes_read, failed; /* failed: no memory, or nothing that was read can be believed */
    bool make_bool;           /* what is on top, behind a comparison, is yet to be made a bool */
    bool handled;             /* what the operation raises would be handled there */
    /* so would what one of nodes raises; one of them, which does more than give a result, cannot be
     * done again */
    bool attempted, impure;
    bool begun;   /* it is a resume function, and has put its own things in place */
    bool foreign; /* an operation may have run code of the program's: value.c */
    /* items: sources of variables whose death may run such code; at of each: its references from
     * here */
    struct shadow *mortal;
    /* of the variables: of the call; and when the function, if a resume function, has begun */
    struct shadow **first, **initial;
    PyObject *closure; /* owned: the function's; or NULL */
    /* how it ended */
    const char *kind;
    char reason[400];
    PyObject *stack;                /* owned: place_now() there, or NULL */
    struct shadow *returned_shadow; /* of what is returned or yielded */
    struct shadow **awaited;        /* shadows of the arguments of the call that is to be stepped */
    struct shadow *awaited_function;
    PyCodeObject *awaited_code;
    Py_ssize_t awaited_count;
    const struct call *awaited_call; /* if it is no call: its arguments are those of the frame */
    PyObject *stepped;               /* what it returned, if it has; not to be used */
    bool entered, inner_broke;       /* it began; it could not be stepped to its end */
};

/* A callback is a tuple of these. */
enum {
    CAPTURE_FINISH,
    CAPTURE_BACKEND,
    CAPTURE_DYNAMIC,
    CAPTURE_FULLGRAPH,
    CAPTURE_EVERY,
    CAPTURE_PARTS
};
extern PyTypeObject *capture_type, plan_type;
/* ---- value.c ---- */
/* numpy and torch are looked for among the modules that are there. */
void values_begin(void);
bool value_is_array(PyObject *value);
bool value_is_simple(PyObject *value);
/* One of numpy's or torch's small descriptions: a dtype, a device, a layout. */
bool value_is_description(PyObject *value);
/* Of numbers, or the like? */
bool is_plain_slice(PyObject *value);
/* One of these, or a slice of simple values? */
static inline bool value_is_plain(PyObject *value)
{
    return value_is_simple(value) || value_is_description(value) || is_plain_slice(value);
}
int value_register(PyObject *type);
static inline bool is_kind(const struct shadow *shadow, enum shadow_kind kind)
{
    return shadow && shadow->kind == kind;
}
static inline bool is_source(const struct shadow *shadow)
{
    return is_kind(shadow, SHADOW_SOURCE);
}
/* A shape that was read, some of whose sizes are inputs of the graph? */
static inline bool is_varying_shape(const struct shadow *shadow)
{
    return is_source(shadow) && shadow->source.varies == VARIES_SHAPE;
}
static inline bool is_container(const struct shadow *shadow)
{
    return shadow && shadow->kind >= SHADOW_TUPLE && shadow->kind <= SHADOW_SLICE;
}
struct shadow *shadow_new(struct capture *c, enum shadow_kind kind, Py_ssize_t room);
struct shadow *shadow_const(struct capture *c, PyObject *value);
struct shadow *shadow_node(struct capture *c, PyObject *node, bool fixed, bool counted);
/* Is VALUE of the type that SHADOW is made for? Code of the program's may have put another value
 * where SHADOW's was: by f_locals, by a cell, into a list that it found. */
bool shadow_fits(const struct shadow *shadow, PyObject *value);
int shadow_add(struct capture *c, struct shadow *container, PyObject *key, struct shadow *item);
/* As it is now. NULL: no memory. */
struct shadow *shadow_copy(struct capture *c, const struct shadow *shadow);
/* What an object or dict that was made here has as KEY, or NULL; and its place. */
struct shadow *object_has(const struct shadow *object, PyObject *key);
struct shadow **object_place(const struct shadow *object, PyObject *key);
/* What has been put under KEY behind PARENT, or NULL. */
struct shadow *source_changed(const struct shadow *parent, char step, PyObject *key);
/* SHADOW, of what was made here, is about to change; it can be taken back with the call that is
 * stepped. False: no memory. */
bool shadow_change(struct capture *c, struct shadow *shadow);
/* All are as they were at MARK, of c->undo. */
void shadows_back(struct capture *c, struct undo *mark);
/* OBJECT lives as long as the capture. Borrowed, or NULL: no memory. */
PyObject *capture_keep(struct capture *c, PyObject *object);
/* The capture has one reference more to OBJECT, which may be one of mortal. */
void capture_holds(struct capture *c, PyObject *object);
void *capture_room(struct capture *c, size_t size);
/* The source STEP KEY behind PARENT, where VALUE was read now. NULL: something else was there
 * before, or no memory. */
struct shadow *source_read(struct capture *c, struct shadow *parent, char step, PyObject *key,
                           PyObject *value);
/* Likewise its attribute NAME. */
struct shadow *source_attribute(struct capture *c, struct shadow *parent, const char *name,
                                PyObject *value);
/* (That of what it is behind, or None; step; key), of which _capture.py makes what guards have;
 * borrowed, or NULL. */
PyObject *source_path(struct capture *c, struct shadow *source);
int guard_on(struct capture *c, struct shadow *source, const char *kind, PyObject *value);
void guard_length(struct capture *c, struct shadow *source, const char *kind, Py_ssize_t length);
/* What VALUE is follows from the guards from here on. False: that cannot be. */
bool value_known(struct capture *c, PyObject *value, struct shadow *shadow);
/* Likewise its type (and length, if it is a tuple or list). */
bool value_type_known(struct capture *c, PyObject *value, struct shadow *shadow);
bool is_nested(PyObject *value);
/* What VALUE, a tuple, list or dict whose type is known, has under KEY is ITEM: its shadow, or
 * NULL. And item I of a tuple or list. */
struct shadow *value_part(struct capture *c, PyObject *value, struct shadow *of, PyObject *key,
                          PyObject *item);
struct shadow *value_item(struct capture *c, PyObject *value, struct shadow *shadow, Py_ssize_t i);
/* The shadow of a tuple or list gets those of all items of VALUE as well. -1: one is not known, or
 * no memory. */
int shadow_add_items(struct capture *c, struct shadow *container, PyObject *value,
                     struct shadow *of);
/* NumPy 1 chooses a result's dtype by what a number is, so that none may be an input. */
bool numbers_may_vary(void);
/* Is it a number that was another one in an earlier capture of this code, or made of one? */
bool is_varying(struct capture *c, struct shadow *shadow);
/* The shape of VALUE, an array that was there before, if a size is another one than in an earlier
 * capture; or NULL. */
struct shadow *varying_shape(struct capture *c, PyObject *value, struct shadow *of);
/* What stands for VALUE in the arguments of a node: a new reference. NULL: nothing can, or an
 * exception is set. */
PyObject *value_argument(struct capture *c, PyObject *value, struct shadow *shadow);
bool value_has_array(PyObject *value, int depth);
/* An item of a container is gone through, as often as it is in there. False: those are too many. */
static inline bool may_go_on(struct capture *c)
{
    return ++c->items < 1 << 18;
}
static inline bool is_sequence(PyObject *value)
{
    return PyTuple_CheckExact(value) || PyList_CheckExact(value);
}
/* Is VALUE an array of numpy's or torch's own, whose operations run no code of the program's? */
bool value_is_theirs(PyObject *value);
/* One of torch's own? Those of numpy warn: of a division by zero, of a number that does not fit. */
bool value_is_quiet(PyObject *value);
/* May an operation on VALUE, an array, run code of the program's? And the end of its life, whatever
 * it is? */
bool value_is_foreign(PyObject *value);
bool value_dies_quietly(PyObject *value);
/* Is it a method with its object, which is no module and no class? */
bool value_is_bound(PyObject *value);

/* ---- operate.c ---- */
/* Each takes what it needs from the stack of W, and leaves what CPython would. */
enum ended break_at(struct capture *c, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
extern struct shadow shadow_of_null; /* on the stack */
PyObject *stack_value(const struct watched *w, int from_top);
struct shadow *stack_shadow(const struct watched *w, int from_top);
void stack_push(struct watched *w, PyObject *value, struct shadow *shadow);
void stack_drop(struct watched *w, int count);
/* COUNT values give way to RESULT (taken), with SHADOW; NULL: it raised. */
enum ended stack_result(struct capture *c, struct watched *w, int count, PyObject *result,
                        struct shadow *shadow);
/* Likewise, and RESULT is known, if it is of a type whose values are: else it breaks behind it. */
enum ended known_result(struct capture *c, struct watched *w, int count, PyObject *result);
struct call;
/* An operation whose operands have a value in the graph: the instruction's COUNT values give way to
 * what it gives. */
struct operation {
    const char *op;
    PyObject *target;          /* borrowed */
    PyObject *args, *keywords; /* owned, of the node; keywords may be NULL */
    bool fixed, counted;       /* as of its shadow */
    struct shadow *same;       /* it gives the very object that this has; or NULL */
};
/* OPERATION gave RESULT (taken; NULL: it raised). What OPERATION owns goes. */
enum ended node_result(struct capture *c, struct watched *w, int count, struct operation *operation,
                       PyObject *result);
/* Does CODE, of BYTES, handle exceptions of UNIT (-1: of any), other than by cleaning up behind a
 * comprehension? */
bool code_handles(PyCodeObject *code, const uint8_t *bytes, int32_t unit);
/* May an operation run here? PURE: it gives a result, and can be done again. ENDED_NOT: yes. */
enum ended may_operate(struct capture *c, bool pure);
/* Is VALUE one of the graph's, or an input? */
bool is_graph(PyObject *value, const struct shadow *shadow);
/* Is something in it? */
bool has_graph(struct capture *c, PyObject *value, const struct shadow *shadow);
/* Are its shape, and those of the arrays in it, known from the inputs'? */
bool is_fixed(struct capture *c, PyObject *value, const struct shadow *shadow);
/* Is VALUE a set that was made here, of what is known? Or at least a set whose items are known, but
 * not their order? */
bool is_set(PyObject *value, const struct shadow *of);
bool set_known(struct capture *c, PyObject *value, struct shadow *of);
/* CALL of one of itertools' classes that only move items. */
enum ended mirror_iterator(struct capture *c, struct watched *w, const struct call *call);
struct shadow *mirror_next(struct capture *c, struct shadow *of);
/* CALL of an operator's function, or of a method, of a set that was made here. ENDED_BEFORE: it is
 * none, or another argument is not known. */
enum ended set_call(struct capture *c, struct watched *w, const struct call *call);
/* Is something in it a number that varies? What it is an argument of may have a shape that follows
 * from it. */
bool has_number(const struct shadow *shadow);
PyObject *operator_named(const char *name); /* operator.NAME, or else the builtin, borrowed */
/* Where the user's code is: code and unit of the function, of the call that began it, and so on: a
 * new tuple. NULL: no memory. */
PyObject *place_now(const struct capture *c);
/* NODE is the next; 0, or -1: no memory. */
int add_node(struct capture *c, PyObject *node);
enum ended operate(struct capture *c, struct watched *w, struct compat_action action);
/* An object of a class of the program's that is on top gives way to whether it is true.
 * ENDED_BEFORE without c->kind: it is none. */
enum ended bool_of_object(struct capture *c, struct watched *w);
/* What is on top gives way to whether it is true. */
enum ended to_bool(struct capture *c, struct watched *w);
/* A container is built or changed. */
enum ended build(struct capture *c, struct watched *w, struct compat_action action);
/* NAME of OWNER, whose function FUNCTION, of SOURCE, gets SELF; NULL: a method in C. */
struct shadow *method_of(struct capture *c, struct shadow *owner, PyObject *name,
                         PyObject *function, struct shadow *source, struct shadow *self);
/* VALUE (taken) is pushed, with the NULL of a call. */
enum ended push_callable(struct watched *w, bool null, PyObject *value, struct shadow *shadow);
/* SLOTS of the stack give way to NAME of OWNER. */
enum ended read_attribute(struct capture *c, struct watched *w, int slots, PyObject *owner,
                          struct shadow *of, PyObject *name, bool method);
enum ended no_memory_at(struct capture *c);
/* The shadow of DICT, whose keys are words if it was not made here, with their order; or NULL. */
struct shadow *dict_shadow(struct capture *c, PyObject *dict, struct shadow *of);

/* ---- iterate.c ---- */
struct shadow *iterator_shadow(struct capture *c, enum iteration how, PyObject *value,
                               struct shadow *of);
/* iter(VALUE): a new reference. Not ENDED_NOT: there is none. */
enum ended iterator_of(struct capture *c, PyObject *value, struct shadow *of, PyObject **iterator,
                       struct shadow **shadow);
/* SLOTS of the stack give way to its next item, or to polyfill("end"). */
enum ended iterator_next(struct capture *c, struct watched *w, PyObject *iterator,
                         struct shadow *of, int slots);
enum ended import_module(struct capture *c, struct watched *w, PyObject *name);
/* So many BEFORE and BEHIND a starred one; BEHIND -1: there is none. */
enum ended unpack(struct capture *c, struct watched *w, Py_ssize_t before, Py_ssize_t behind);
/* CALL of iter() or reversed(), which has NAME. */
enum ended iterate_call(struct capture *c, struct watched *w, const struct call *call,
                        const char *name);

/* What an object of the program's has as NAME, found without running any of its code: a new
 * reference in *VALUE. */
enum found { FOUND_NOT, FOUND_OWN, FOUND_CLASS, FOUND_METHOD };
enum found find_attribute(PyObject *owner, PyObject *name, PyObject **value);

/* Has OWNER no attribute NAME, and says nothing else so? Guarded. */
bool lacks_attribute(struct capture *c, PyObject *owner, struct shadow *of, PyObject *name);

/* ---- effect.c ---- */
/* SHADOW, or the source of the same object that an effect has changed: now and at each hit. */
struct shadow *one_of(struct capture *c, struct shadow *shadow);
/* What is read behind SHADOW has not been changed by an effect under another name, now and at each
 * hit. */
bool is_apart(struct capture *c, struct shadow *shadow);
/* OLD, of SHADOW, is released by an effect: does it die quietly, and at each hit? */
bool lets_go(struct capture *c, PyObject *old, struct shadow *shadow);
/* May the container of SHADOW, of KIND, be changed now? A list that was there before is of that
 * kind then. */
bool may_change(struct capture *c, struct shadow *shadow, enum shadow_kind kind);
/* It is, by a call of CALLABLE with ARGS, and OLD goes (NULL: nothing): an effect, if it is seen
 * from outside. False: it must not be. */
bool change(struct capture *c, struct shadow *shadow, struct shadow *callable, PyObject *old,
            struct shadow *of_old, int count, struct shadow *const *args);
bool change_item(struct capture *c, struct shadow *shadow, struct shadow *key, struct shadow *value,
                 PyObject *old, struct shadow *of_old);
/* CALLABLE, called with ARGS, has made an object of none of the program's classes, and does so
 * again in its turn. NULL: it must not be. */
struct shadow *made_by(struct capture *c, struct shadow *callable, int count,
                       struct shadow *const *args);
/* Has an attribute NAME been set of a class, other than by the source BUT? */
bool class_changed(struct capture *c, const struct shadow *but, PyObject *name);
/* May CONTAINER's be changed as an effect, with COUNT VALUES? */
bool may_have_effect(struct capture *c, struct shadow *container, int count,
                     struct shadow *const *values);
/* CALLABLE is called with COUNT ARGS, which changes CONTAINER; NULL: it makes something. */
struct shadow *add_effect(struct capture *c, struct shadow *container, struct shadow *callable,
                          int count, struct shadow *const *args);
enum ended not_ours(struct capture *c, PyObject *container);
/* STEP KEY behind OF, which has OLD or NULL, is VALUE from now on; COUNT values of the stack go. */
enum ended set_place(struct capture *c, struct watched *w, int count, struct shadow *of, char step,
                     PyObject *key, PyObject *old, PyObject *value, struct shadow *of_value);
enum ended store_attribute(struct capture *c, struct watched *w, PyObject *name);
enum ended set_in_dict(struct capture *c, struct watched *w, int count, struct shadow *of,
                       PyObject *key, PyObject *value, struct shadow *of_value);

/* ---- invoke.c ---- */
/* COUNT arguments; the last have NAMES (NULL: none do), which are on top if ON_TOP. */
enum ended invoke(struct capture *c, struct watched *w, int count, PyObject *names, bool on_top);
/* The arguments are in a tuple; KEYWORDS: and in a dict. */
enum ended invoke_variable(struct capture *c, struct watched *w, bool keywords);
/* A call, as invoke() has found it on the stack. */
struct call {
    /* borrowed; names: of the last arguments, or NULL. As invoke() makes it, there is room before
     * args */
    PyObject *callable, **args, *names;
    struct shadow *of, **shadows; /* of the callable and of the arguments */
    /* arguments; values on the stack that give way to the result */
    int count, slots;
    /* callable is not what is stepped, but calls that; with its two arguments the other way round
     * */
    bool operates, reflected;
    bool bound;          /* the first argument is self, which callable has already */
    struct shadow *made; /* its result, whatever the function returns; or NULL */
};
/* Operands of an operator, in its order. */
struct operands {
    PyObject *values[3];
    struct shadow *of[3];
};
/* The call of operator.NAME with COUNT of them; SLOTS of the stack give way to the result. */
struct call operator_call(const char *name, int slots, int count, struct operands *operands);
/* It is a node of the graph. KEEPS: whose shape follows from those of the operands. */
enum ended operate_graph(struct capture *c, struct watched *w, const char *name,
                         const struct call *call, bool keeps);
/* It breaks: WHAT it would do, of what is not known or not understood. */
enum ended unknown_operand(struct capture *c, const struct call *call, const char *what);
/* It is done by the method for NAME of its first argument's class, or breaks. ENDED_BEFORE without
 * c->kind: that is none that can be stepped. */
enum ended operate_special(struct capture *c, struct watched *w, const char *name,
                           const struct call *call);
/* If CALL of NAME, an operator's or a method of its first argument, only moves items of lists,
 * tuples and dicts: their shadows are moved as well. ENDED_BEFORE without c->kind: it does not. */
enum ended move(struct capture *c, struct watched *w, const char *name, const struct call *call);
PyObject *run_call(const struct call *call);
/* Are its arguments integers, one of which varies? */
bool are_numbers(struct capture *c, const struct call *call);
PyObject *expression_of(struct capture *c, const struct call *call);
enum ended unknown_argument(struct capture *c, const struct call *call);
const char *name_of(PyObject *callable, char *text, size_t room);
enum ended array_method(struct capture *c, struct watched *w, const struct call *call,
                        PyObject *self);
enum ended array_function(struct capture *c, struct watched *w, const struct call *call);
/* The CALL, as invoke() makes it, of a method of SELF. */
struct call with_self(const struct call *call, PyObject *self, struct shadow *of_self);
/* The arguments of MADE, a node for CALL; is there something of the graph in the FIRST and in the
 * REST? SIZED: numbers say what shape it gives. False: one is not known. */
bool node_arguments(struct capture *c, const struct call *call, bool sized, struct operation *made,
                    bool *first, bool *rest);
/* What has been done since an attempt began is taken back: the graph's nodes, effects, changes of
 * shadows. */
struct attempt {
    Py_ssize_t nodes, number_nodes, effects;
    struct undo *undo;
};
struct attempt attempt_begin(const struct capture *c);
void attempt_undo(struct capture *c, const struct attempt *attempt);
/* CALL, of the array function or method NAME, becomes a node, or breaks. */
enum ended array_call(struct capture *c, struct watched *w, const struct call *call,
                      const char *name);
/* Is NAME, of a module or a type, numpy, torch, or in one of them? NULL is not. */
bool is_array_package(const char *name);
/* Is it PACKAGE, or in it? */
bool is_in_package(const char *name, const char *package);
/* A function, type or ufunc of theirs? */
bool is_array_function(PyObject *callable);

/* FUNCTION, whose source is OF, is called with CALL: step it. */
enum ended inlined(struct capture *c, struct watched *w, const struct call *call,
                   PyFunctionObject *function, struct shadow *of);
/* Can a call of FUNCTION be stepped? Its source, OF, is guarded then. */
bool can_step(struct capture *c, PyObject *function, struct shadow *of);

/* ---- object.c ---- */
PyObject *word_of(const char *name); /* a literal, interned: borrowed */
/* The source of VALUE's class, which is guarded; NULL: it cannot be. */
struct shadow *class_source(struct capture *c, PyObject *value, struct shadow *of);
/* CALL does what the method NAME of the first argument's class says. ENDED_BEFORE without c->kind:
 * it is no function that can be stepped. */
enum ended special(struct capture *c, struct watched *w, const char *name, const struct call *call);
enum ended step_method(struct capture *c, struct watched *w, const struct call *call,
                       PyObject *function, struct shadow *of, const char *name);
/* Instances of TYPE are made, and their attributes are set and found, as object does it, and die
 * without more. Guarded, on OF. */
bool is_ordinary(struct capture *c, PyTypeObject *type, struct shadow *of);
/* CALL of a class of the program's; likewise. */
enum ended construct(struct capture *c, struct watched *w, const struct call *call);
/* CALL has its object, and the value that it gets, if it is set. */
enum ended call_property(struct capture *c, struct watched *w, PyObject *name, PyObject *property,
                         const struct call *call);
/* super() is called; ENDED_BEFORE: it is not known. Then the shadow of an attribute of it. */
enum ended super_made(struct capture *c, struct watched *w, const struct call *call,
                      const char *name);
struct shadow *super_shadow(struct capture *c, struct shadow *of_type, struct shadow *of_self,
                            PyObject *type, PyObject *self);
struct shadow *super_method(struct capture *c, PyObject *type, PyObject *self, struct shadow *of,
                            PyObject *name);
enum ended super_attribute(struct capture *c, struct watched *w, PyObject *name, bool method);

/* ---- known.c ---- */
/* Does the shape of what the array function or method NAME gives follow from its arguments' shapes?
 * FIRST, REST: the first argument, those behind it, are of the graph. */
bool keeps_shape(const char *name, int count, bool first, bool rest);
/* May CALL of NAME, on tensors of torch's own, warn though it gives a result? By its arguments. */
bool torch_warns(const struct call *call, const char *name);
/* Is NAME in a set of dyntrace._polyfills? */
bool is_in(const char *name, const char *set);
extern PyObject
    *capture_builtins; /* a dict: CPython's own, of those that were there when we came */
/* That dict, a new reference; NULL with an exception. */
PyObject *builtins_as_cpython_made_them(void);
PyObject *builtin_named(const char *name);
/* What MODULE, that of WHICH name if it is NULL, has as NAME: borrowed, or NULL. */
PyObject *module_has(PyObject **module, const char *which, const char *name);
/* Are all arguments known, and no code of the program's runs by them? DEEP: so may lists and tuples
 * of such be. */
bool are_known(struct capture *c, const struct call *call, bool deep);
/* NAME of dyntrace._polyfills, borrowed; or NULL. */
PyObject *polyfill(const char *name);
/* CALL is one of that function. */
enum ended step_polyfill(struct capture *c, struct watched *w, const char *name,
                         const struct call *call);
/* CALL of the method NAME of its first argument, a list, dict or set. ENDED_BEFORE without c->kind:
 * it is not known. */
enum ended call_method(struct capture *c, struct watched *w, const struct call *call,
                       const char *name);
/* Builtins, and methods of builtin types, of what is known. ENDED_BEFORE: it is no such, and
 * nothing has happened. */
enum ended call_known(struct capture *c, struct watched *w, const struct call *call);

/* ---- step.c ---- */
enum ended watch(struct capture *c, struct watched *w);
int watched_open(struct capture *c, struct watched *w, compat_frame *frame);
/* The variables of W's frame have been put there by CPython. */
void watched_put(struct watched *w);
void watched_close(struct capture *c, struct watched *w);
/* Is FRAME, which is about to begin, the one that C has called? */
bool capture_awaits(struct capture *c, compat_frame *frame);
/* The frame of the function that C awaits is about to begin: step it. */
PyObject *capture_step(struct capture *c, PyThreadState *ts, compat_frame *frame);
/* FRAME, which was handed over, goes on. */
PyObject *capture_go_on(PyThreadState *ts, compat_frame *frame, int throws);

/* The frame of W goes on under CPython: where, and with what. 1: it is to throw PENDING. */
int hand_over(struct capture *c, struct watched *w, enum ended ended,
              struct tracer_exception *pending);

/* ---- plan.c ---- */
/* SHADOW as dyntrace._plan takes it: borrowed; None: it cannot be made again. COUNT of them: a new
 * tuple, or NULL. */
PyObject *plan_part(struct capture *c, struct shadow *shadow);
PyObject *plan_parts(struct capture *c, Py_ssize_t count, struct shadow *const *shadows);
/* What has become of W, whose stack has DEPTH SHADOWS, a new tuple: of its variables, (number,
 * part, value), or (number,): it has none any more; of its stack (part, value), or (): NULL; for
 * each variable its own cell, or None. Before other parts are asked for. */
PyObject *plan_state(struct capture *c, const struct watched *w, struct shadow *const *shadows,
                     int depth);
/* Called in the code that takes a function's place: runs the graph, and gives what the variables
 * and the stack have behind it. One that has nothing to run gives the globals there: globals()
 * counts against the recursion limit. */
struct plan {
    PyObject_HEAD vectorcallfunc call;
    PyObject *name, *run, *raised; /* owned; functions, or NULL */
    unsigned running;              /* calls of `run`, which has their globals meanwhile */
};
PyObject *plan_new(const char *name);

/* ---- capture.c ---- */
/* A node of the graph; the references of ARGS and KEYWORDS (NULL: none) go to it. */
PyObject *node_new(PyObject *op, PyObject *name, PyObject *target, PyObject *args,
                   PyObject *keywords);
/* Of struct watcher. */
bool capture_refuses(PyThreadState *ts, PyObject *callback, compat_frame *frame,
                     struct watched_answer *answer);
int capture_call(PyThreadState *ts, PyObject *callback, compat_frame *frame, PyObject *frame_state,
                 struct watched_answer *answer, struct watched_rest *rest);

/* ---- module.c ---- */
extern PyMethodDef graph_break_methods[];
extern PyObject *capture_modules; /* a function that gives sys.modules, for guards */

#endif
