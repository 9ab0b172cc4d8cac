/* capture/src/capture.h -- dyntrace.compile: graphs of the array operations of functions.
 *
 * Runs in: the traced process, under the GIL. The shim's place only (tracer/place.c).
 *
 * A call that misses under a capture callback is watched: step.c executes its first run itself, in
 * the call's own frame, by the C functions that CPython calls. Beside each slot of the frame it
 * keeps a shadow: where the value comes from. Where it does not understand an instruction it breaks
 * the graph, and CPython goes on, in the same frame or in code made here.
 *
 * A file uses those above it, and none below; but value.c and effect.c use each other:
 *
 *     names.c      objects by name: builtins, polyfills, numpy's and torch's functions
 *     value.c      shadows, sources, and the guards on what was read
 *     effect.c     effects: changes of objects that others can see
 *     plan.c       parts: how to make a value again behind the graph; plans, which do it
 *     stack.c      the stack of a watched frame, breaks and calls
 *     node.c       nodes of the graph
 *     inline.c     calls of Python functions that are stepped
 *     object.c     objects of the program's classes: special methods, properties, super()
 *     attribute.c  attributes that are read, and imports
 *     store.c      attributes, globals, items and cells that are set
 *     build.c      containers: built, read and changed
 *     iterate.c    iterators, generators and unpacking
 *     known.c      calls of builtins
 *     operate.c    operators
 *     invoke.c     calls
 *     step.c       one instruction after the other
 *     capture.c    a watched call, from its start to the code that is made of it
 *     module.c     the module and the types that Python sees
 *
 * Python makes the code that runs instead (dyntrace._assemble, dyntrace._plan) and has the tables
 * of what builtins, methods, numpy's and torch's functions do (dyntrace._polyfills). */
#ifndef DYNTRACE_CAPTURE_H
#define DYNTRACE_CAPTURE_H

#include "tracer/compat/guards.h"
#include "tracer/compat/step.h"
#include "tracer/evaluator/watcher.h"

/* The tag of struct shadow: where a value of the watched call came from. TUPLE to SLICE are
 * containers. */
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
    const uint8_t *bytes; /* its bytecode as it was compiled, of `held` */
    PyObject *held;       /* owned */
    int32_t units;
    int32_t unit;  /* the instruction */
    int32_t next;  /* the one after it */
    int32_t group; /* the first instruction of the call that `unit` belongs to, or `unit` */
    int op;
    int variables;
    int depth;  /* of the stack */
    int before; /* of the stack, as the instruction began */
    /* owned: of variables, then of the stack, then of the stack as the instruction began */
    struct shadow **shadow;
    PyObject **put;  /* owned: each variable's value as stored, only to be compared */
    PyObject *names; /* borrowed: of keyword arguments of the call that has begun, or NULL */
    struct shadow *function; /* of the function, or NULL */
    struct shadow *globals;  /* the source of its globals */
    uint32_t serial;         /* shadows made before it have a lower one */
    bool resumed;            /* a resume function: some of its arguments may stand for no value */
    bool unseen;             /* its instruction has begun a frame that nobody awaited */
};

/* How an instruction ended. */
enum ended {
    ENDED_NOT,    /* it is done, and the function goes on */
    ENDED_RETURN, /* the function returns what is on top */
    ENDED_YIELD,
    ENDED_BEFORE, /* a break: CPython is to execute it */
    ENDED_BEHIND, /* a break: it is done, and its result is not known */
    ENDED_RAISED, /* it raised */
};

/* SHADOW as it was before a call that is stepped changed it. */
struct undo {
    struct undo *before;
    struct shadow *shadow, was;
};

enum {
    CAPTURE_LISTS = 5,
    OWN_CALLS = 100 /* depth of our own calls, which the recursion limit does not see */
};

struct capture {
    PyThreadState *ts;
    PyObject *callback; /* borrowed */
    union {
        PyObject *lists[CAPTURE_LISTS]; /* owned */
        struct {
            PyObject *nodes; /* without placeholders */
            PyObject *inputs, *placeholders, *guards;
            PyObject *places; /* of each node: place_of_node() */
        };
    };
    PyArena *arena; /* owned: of shadows, and of the objects that they refer to */
    uint32_t serial, jumps;
    uint32_t items;    /* visited in containers so far */
    uint32_t nesting;  /* of containers in an argument of a node */
    struct undo *undo; /* the last one */
    /* borrowed, or NULL: numbers and shapes that captures of this code have met, by path; None:
     * several */
    PyObject *numbers, *sizes;
    Py_ssize_t number_nodes; /* nodes that give a number */
    struct watched *innermost;
    struct shadow *locals, *globals, *builtins, *modules; /* the four roots */
    struct shadow *taken;                                 /* items: sources of the placeholders */
    struct shadow *effects;                               /* items: in their order */
    struct shadow *generators;                            /* items: those that were made */
    struct shadow *mortal;   /* items: sources of variables whose death may run code */
    PyObject *raised;        /* borrowed: by the end of the last iterator; or NULL */
    const struct call *sent; /* send(): what the next generator is resumed with; or NULL */
    bool may_end;            /* the next function that is stepped may raise StopIteration */
    bool ends;               /* it has raised that, and nothing else has happened */
    bool shapes_read;
    bool failed;    /* no memory, or a value that was read has changed: nothing is kept */
    bool make_bool; /* the result of a comparison, on top, is yet to be made a bool */
    bool handled;   /* the function would handle an exception of the operation that breaks */
    bool attempted; /* it would handle an exception of one of the nodes */
    bool impure;    /* one of the nodes does more than give a result, so cannot be done again */
    bool begun;     /* a resume function, which has put its own values in place */
    bool foreign;   /* an operation may have run code of the program: value.c */
    struct shadow **first, **initial; /* of the variables: of the call; after a resume's entry */
    PyObject *closure;                /* owned: the function's; or NULL */

    /* How it ended. */
    const char *kind; /* of the break; NULL: none yet */
    char reason[400];
    PyObject *stack;                /* owned: place_now() there, or NULL */
    struct shadow *returned_shadow; /* of the value that is returned or yielded */

    /* The call that is to be stepped. */
    struct shadow **awaited; /* of its arguments */
    struct shadow *awaited_function;
    PyCodeObject *awaited_code;
    Py_ssize_t awaited_count;
    const struct call *awaited_call; /* an operation, not a call: the frame has its arguments */
    PyObject *stepped;               /* the object it returned, only to be compared */
    bool entered;                    /* it has begun */
    bool inner_broke;                /* it could not be stepped to its end */
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

/* A call, or an operation as a call of a function of `operator`. */
struct call {
    PyObject *callable, **args;   /* borrowed. In a call that invoke() made, args[-1] is free */
    PyObject *names;              /* borrowed: of the last arguments; NULL: all are positional */
    struct shadow *of, **shadows; /* of the callable, of the arguments */
    int count;                    /* arguments */
    int slots;                    /* values on the stack that the result replaces */
    bool operates;       /* the callable is an operation, which calls the function to be stepped */
    bool reflected;      /* and swaps its two arguments */
    bool bound;          /* the first argument is self, which the callable has already */
    struct shadow *made; /* its result, whatever the function returns; or NULL */
};

/* Operands of an operator, in its order. */
struct operands {
    PyObject *values[3];
    struct shadow *of[3];
};

/* A node in the making. */
struct operation {
    const char *op;
    PyObject *target;          /* borrowed */
    PyObject *args, *keywords; /* owned; keywords may be NULL */
    bool fixed, counted;       /* as in struct node */
    bool first, rest;          /* is the first argument, are others, of the graph? */
    struct shadow *same;       /* it returns this very object; or NULL */
};

/* Where a capture was, to take back what has been done since: nodes, effects and shadows. */
struct attempt {
    Py_ssize_t nodes, number_nodes, effects;
    struct undo *undo;
};

/* A constant of the code that runs in a function's place. Called there, it runs the graph and
 * returns the variables and the stack behind it. One without `run` returns the globals: globals()
 * would count against the recursion limit. */
struct plan {
    PyObject_HEAD vectorcallfunc call;
    PyObject *name, *run, *raised; /* owned; functions, or NULL */
    unsigned running;              /* calls of `run`, which has their globals meanwhile */
};

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

static inline bool is_sequence(PyObject *value)
{
    return PyTuple_CheckExact(value) || PyList_CheckExact(value);
}

/* Count the visit of an item of a container. False: there have been too many. */
static inline bool may_go_on(struct capture *c)
{
    return ++c->items < 1 << 18;
}

/* Has an attempt to do an instruction done it, raised or broken the graph? If not, the next way is
 * tried: ENDED_BEFORE without a kind of break means that nothing has happened. */
static inline bool is_decided(const struct capture *c, enum ended ended)
{
    return ended != ENDED_BEFORE || c->kind;
}

/* Has it left its result on the stack? */
static inline bool is_done(enum ended ended)
{
    return ended == ENDED_NOT || ended == ENDED_BEHIND;
}

static inline int count_names(const struct call *call)
{
    return call->names ? (int)PyTuple_GET_SIZE(call->names) : 0;
}

/* ---- names.c ---- */
extern const struct shim_services *shim; /* set when the module is attached to the shim */
extern PyObject *capture_builtins;   /* a dict: the builtins that are CPython's own, of the start */
PyObject *word_of(const char *name); /* the interned string of a literal: borrowed */
/* Attribute NAME of MODULE, which is imported as WHICH if it is NULL: borrowed, or NULL. */
PyObject *module_has(PyObject **module, const char *which, const char *name);
/* A new dict for capture_builtins; NULL with an exception. */
PyObject *builtins_as_cpython_made_them(void);
PyObject *builtin_named(const char *name);  /* borrowed, or NULL */
PyObject *operator_named(const char *name); /* operator.NAME, or else the builtin: borrowed */
PyObject *polyfill(const char *name);       /* NAME of dyntrace._polyfills: borrowed, or NULL */
/* Is NAME in the set SET of dyntrace._polyfills? */
bool is_in(const char *name, const char *set);
/* What the dict TABLE of dyntrace._polyfills has for NAME: borrowed, or NULL. */
PyObject *table_entry(const char *table, const char *name);
/* Is NAME the package, or a module in it? */
bool is_in_package(const char *name, const char *package);
/* Is NAME, of a module or a type, of numpy or torch? NULL is not. */
bool is_array_package(const char *name);
bool is_array_function(PyObject *callable); /* a function, type or ufunc of theirs */
/* Is CALLABLE a C function of MODULE? */
bool is_c_function_of(PyObject *callable, const char *module);

/* ---- value.c ---- */
void values_begin(void); /* looks for numpy and torch among the modules that are there */
int value_register(PyObject *type);
bool value_is_array(PyObject *value);
/* Is VALUE of a type that nobody can change and whose operations run no code of the program? */
bool value_is_simple(PyObject *value);
bool value_is_description(PyObject *value); /* a dtype, device or layout of numpy or torch */
bool is_plain_slice(PyObject *value);       /* a slice of simple values */
bool value_has_array(PyObject *value, int depth);
bool value_is_theirs(PyObject *value); /* an array of numpy's or torch's own class */
/* One of torch's own? numpy's operations warn: of a division by zero, of an overflow. */
bool value_is_quiet(PyObject *value);
bool value_is_foreign(PyObject *value);   /* may an operation on it run code of the program? */
bool value_dies_quietly(PyObject *value); /* does its death run no such code? */
bool value_is_bound(PyObject *value);     /* a method of an object that is no module or class */
bool is_nested(PyObject *value);          /* a function that was made in another one */
static inline bool value_is_plain(PyObject *value)
{
    return value_is_simple(value) || value_is_description(value) || is_plain_slice(value);
}

void *capture_room(struct capture *c, size_t size); /* zeroed, from the arena; or NULL */
/* Keep OBJECT alive as long as the capture. Returns it, borrowed; NULL: no memory. */
PyObject *capture_keep(struct capture *c, PyObject *object);
/* Count one more reference of the capture to OBJECT, which may be in c->mortal. */
void capture_holds(struct capture *c, PyObject *object);
struct shadow *shadow_new(struct capture *c, enum shadow_kind kind, Py_ssize_t room);
struct shadow *shadow_const(struct capture *c, PyObject *value);
struct shadow *shadow_node(struct capture *c, PyObject *node, bool fixed, bool counted);
struct shadow *shadow_copy(struct capture *c, const struct shadow *shadow);
struct shadow *iterator_shadow(struct capture *c, enum iteration how, PyObject *value,
                               struct shadow *of);
/* The method NAME of OWNER: FUNCTION, of SOURCE, bound to BOUND; or in C, all three NULL. */
struct shadow *method_of(struct capture *c, struct shadow *owner, PyObject *name,
                         PyObject *function, struct shadow *source, struct shadow *bound);
/* Is VALUE of SHADOW's type? The program's code may have replaced the value that SHADOW is for: by
 * f_locals, a cell, in a list that it found. */
bool shadow_fits(const struct shadow *shadow, PyObject *value);
/* Append ITEM, with KEY or NULL. -1: no memory. */
int shadow_add(struct capture *c, struct shadow *container, PyObject *key, struct shadow *item);
/* Append the shadows of all items of VALUE, a tuple or list. -1: one is unknown, or no memory. */
int shadow_add_items(struct capture *c, struct shadow *container, PyObject *value,
                     struct shadow *of);
/* The item or attribute KEY of an object or dict that was made here, or NULL; and its place. */
struct shadow *object_has(const struct shadow *object, PyObject *key);
struct shadow **object_place(const struct shadow *object, PyObject *key);
/* Prepare a change of SHADOW, so that it can be undone with the call that is stepped. False: no
 * memory. */
bool shadow_change(struct capture *c, struct shadow *shadow);
void shadows_back(struct capture *c, struct undo *mark); /* undo all changes since MARK */

/* The source of VALUE, which was read at STEP KEY behind PARENT. NULL: another value was there
 * before, or no memory. */
struct shadow *source_read(struct capture *c, struct shadow *parent, char step, PyObject *key,
                           PyObject *value);
struct shadow *source_attribute(struct capture *c, struct shadow *parent, const char *name,
                                PyObject *value);
/* The SHADOW_CHANGED at STEP KEY behind PARENT, or NULL. */
struct shadow *source_changed(const struct shadow *parent, char step, PyObject *key);
/* (path of its parent or None, step, key), of which _capture.py makes the source of a guard:
 * borrowed, or NULL. */
PyObject *source_path(struct capture *c, struct shadow *source);
extern PyObject *capture_modules; /* a function that returns sys.modules, for guards */
int guard_on(struct capture *c, struct shadow *source, const char *kind, PyObject *value);
void guard_length(struct capture *c, struct shadow *source, const char *kind, Py_ssize_t length);
/* Guard what SHADOW was read from, so that its value is the same at each hit. False: that cannot
 * be. */
bool value_known(struct capture *c, PyObject *value, struct shadow *shadow);
/* Likewise its type, and the length of a tuple or list. */
bool value_type_known(struct capture *c, PyObject *value, struct shadow *shadow);
/* Are all arguments known, and of types whose operations run no code of the program? DEEP: lists
 * and tuples of such as well. */
bool are_known(struct capture *c, const struct call *call, bool deep);
/* The shadow of ITEM, which VALUE, a tuple, list or dict of known type, has as KEY; or NULL. */
struct shadow *value_part(struct capture *c, PyObject *value, struct shadow *of, PyObject *key,
                          PyObject *item);
struct shadow *value_item(struct capture *c, PyObject *value, struct shadow *shadow, Py_ssize_t i);
bool is_set(PyObject *value, const struct shadow *of); /* a set made here, of known items */
bool set_known(struct capture *c, PyObject *value, struct shadow *of); /* known but for its order */
/* A new node; steals ARGS and KEYWORDS (NULL: none). NULL with an exception. */
PyObject *node_new(PyObject *op, PyObject *name, PyObject *target, PyObject *args,
                   PyObject *keywords);
/* NumPy 1 chooses a result's dtype by the value of a number, so that none may be an input. */
bool numbers_may_vary(void);
/* Is it a number that differed in an earlier capture of this code, or was made of such? */
bool is_varying(struct capture *c, struct shadow *shadow);
/* The shape of VALUE, an array that was read, if a size differs from an earlier capture's; or
 * NULL. */
struct shadow *varying_shape(struct capture *c, PyObject *value, struct shadow *of);
/* VALUE as an argument of a node: a new reference. NULL: it cannot be one, or an exception. */
PyObject *value_argument(struct capture *c, PyObject *value, struct shadow *shadow);

/* ---- effect.c ---- */
/* SHADOW, or the source by which an effect has changed the same object; guarded. */
struct shadow *one_of(struct capture *c, struct shadow *shadow);
/* Has no effect changed SHADOW's object by another source? Guarded. */
bool is_apart(struct capture *c, struct shadow *shadow);
/* May an effect release OLD, of SHADOW: does it die quietly at each hit? */
bool can_release(struct capture *c, PyObject *old, struct shadow *shadow);
/* May SHADOW's container, of KIND, be changed now? A list that was read becomes a container. */
bool may_change(struct capture *c, struct shadow *shadow, enum shadow_kind kind);
bool may_have_effect(struct capture *c, struct shadow *container, int count,
                     struct shadow *const *values);
/* The call of CALLABLE with ARGS becomes an effect on CONTAINER; NULL: it makes an object. NULL: no
 * memory. */
struct shadow *add_effect(struct capture *c, struct shadow *container, struct shadow *callable,
                          int count, struct shadow *const *args);
/* The call of CALLABLE with ARGS changes SHADOW's container and releases OLD (or NULL): an effect,
 * if others can see it. False: it may not be. */
bool change(struct capture *c, struct shadow *shadow, struct shadow *callable, PyObject *old,
            struct shadow *of_old, int count, struct shadow *const *args);
bool change_item(struct capture *c, struct shadow *shadow, struct shadow *key, struct shadow *value,
                 PyObject *old, struct shadow *of_old);
/* The shadow of an object that CALLABLE has made of ARGS, and makes again at each hit. NULL: it may
 * not be. */
struct shadow *made_by(struct capture *c, struct shadow *callable, int count,
                       struct shadow *const *args);
/* Has an attribute NAME of a class been set, other than by the source BUT? */
bool class_changed(struct capture *c, const struct shadow *but, PyObject *name);

/* ---- plan.c ---- */
extern PyTypeObject plan_type;
/* How dyntrace._plan makes SHADOW's value again: borrowed; None: it cannot. */
PyObject *plan_part(struct capture *c, struct shadow *shadow);
PyObject *plan_parts(struct capture *c, Py_ssize_t count, struct shadow *const *shadows); /* new */
/* The variables and the stack of W, for dyntrace._plan. SHADOWS are those of the stack. A new tuple
 * of: (number, part, value) of each variable, or (number,) of one without value; (part, value) of
 * each slot, or () of a NULL; each variable's own cell or None. Call it before plan_part(). */
PyObject *plan_state(struct capture *c, const struct watched *w, struct shadow *const *shadows,
                     int depth);
PyObject *plan_new(const char *name);

/* ---- stack.c ---- */
extern struct shadow shadow_of_null; /* of a NULL on the stack */
/* Break the graph before the instruction, for a reason. Returns ENDED_BEFORE. */
enum ended break_at(struct capture *c, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum ended no_memory_at(struct capture *c);
enum ended not_ours(struct capture *c, PyObject *container);
enum ended unknown_operand(struct capture *c, const struct call *call, const char *what);
PyObject *stack_value(const struct watched *w, int from_top);
struct shadow *stack_shadow(const struct watched *w, int from_top);
void stack_push(struct watched *w, PyObject *value, struct shadow *shadow); /* steals VALUE */
void stack_drop(struct watched *w, int count);
/* Replace COUNT values by RESULT, which is stolen; NULL: it raised. */
enum ended stack_result(struct capture *c, struct watched *w, int count, PyObject *result,
                        struct shadow *shadow);
/* Likewise, of known operands. A result of a type that is not simple breaks behind it. */
enum ended known_result(struct capture *c, struct watched *w, int count, PyObject *result);
/* Push VALUE, which is stolen, with the NULL of a call if there is to be one. */
enum ended push_callable(struct watched *w, bool null, PyObject *value, struct shadow *shadow);
void watched_put(struct watched *w); /* its variables are as CPython left them */
/* The call of operator.NAME with COUNT operands. */
struct call operator_call(const char *name, int slots, int count, struct operands *operands);
/* CALL, which invoke() made, with SELF before its arguments. */
struct call with_self(const struct call *call, PyObject *self, struct shadow *of_self);
PyObject *run_call(const struct call *call);
struct attempt attempt_begin(const struct capture *c);
void attempt_undo(struct capture *c, const struct attempt *attempt);

/* ---- node.c ---- */
bool is_graph(PyObject *value, const struct shadow *shadow); /* an array, or a node's result */
bool has_graph(struct capture *c, PyObject *value, const struct shadow *shadow); /* in it as well */
/* Do its shape, and those of the arrays in it, follow from the inputs' shapes? */
bool is_fixed(struct capture *c, PyObject *value, const struct shadow *shadow);
bool has_number(const struct shadow *shadow);                 /* is a varying number in it? */
bool are_numbers(struct capture *c, const struct call *call); /* integers, of which one varies */
/* How the number that CALL gives is calculated: (operator, operands...). An operand is (path of an
 * input,), another such tuple, or a number. A new reference; NULL: it is too long. */
PyObject *expression_of(struct capture *c, const struct call *call);
/* The code and unit of the function, of its caller, and so on: a new tuple, or NULL. */
PyObject *place_now(const struct capture *c);
int add_node(struct capture *c, PyObject *node); /* -1: no memory */
/* Does CODE, of BYTES, handle exceptions of UNIT (-1: of any), other than to clean up behind a
 * comprehension? */
bool code_handles(PyCodeObject *code, const uint8_t *bytes, int32_t unit);
/* ENDED_NOT: an operation may run here. PURE: it only gives a result, and can be done again. */
enum ended may_operate(struct capture *c, bool pure);
/* Replace COUNT values by RESULT of OPERATION; steals RESULT (NULL: it raised) and what OPERATION
 * owns. */
enum ended node_result(struct capture *c, struct watched *w, int count, struct operation *operation,
                       PyObject *result);
/* CALL of an operator becomes a node. KEEPS: its shape follows from the operands' shapes. */
enum ended operate_graph(struct capture *c, struct watched *w, const char *name,
                         const struct call *call, bool keeps);
/* Does the shape that the array function NAME gives follow from its arguments' shapes? FIRST, REST:
 * the first argument, those behind it, are of the graph. */
bool keeps_shape(const char *name, int count, bool first, bool rest);
/* The name of CALLABLE, for a reason; written to TEXT. */
const char *name_of(PyObject *callable, char *text, size_t room);
enum ended unknown_argument(struct capture *c, const struct call *call);
/* CALL of an array function or method becomes a node. */
enum ended array_call(struct capture *c, struct watched *w, const struct call *call,
                      const char *name);
enum ended array_method(struct capture *c, struct watched *w, const struct call *call,
                        PyObject *self);
enum ended array_function(struct capture *c, struct watched *w, const struct call *call);

/* ---- inline.c ---- */
/* Can a call of FUNCTION, of the source OF, be stepped? Guarded. */
bool can_step(struct capture *c, PyObject *function, struct shadow *of);
/* Step FUNCTION, which CALL calls. */
enum ended inlined(struct capture *c, struct watched *w, const struct call *call,
                   PyFunctionObject *function, struct shadow *of);
/* Step the function NAME of dyntrace._polyfills instead of CALL's callable. */
enum ended step_polyfill(struct capture *c, struct watched *w, const char *name,
                         const struct call *call);

/* ---- object.c ---- Not decided: the method is no function that can be stepped. */
/* The source of VALUE's class, guarded; NULL: it cannot be. */
struct shadow *class_source(struct capture *c, PyObject *value, struct shadow *of);
/* Do instances of TYPE, of the source OF, come into being, have attributes and die as those of
 * object do? Guarded. */
bool is_ordinary(struct capture *c, PyTypeObject *type, struct shadow *of);
/* Step FUNCTION (or NULL), which the class that OF is the source of has as NAME. */
enum ended step_method(struct capture *c, struct watched *w, const struct call *call,
                       PyObject *function, struct shadow *of, const char *name);
/* Step the method NAME of the first argument's class. */
enum ended special(struct capture *c, struct watched *w, const char *name, const struct call *call);
/* Likewise its method for the operator NAME. */
enum ended operate_special(struct capture *c, struct watched *w, const char *name,
                           const struct call *call);
enum ended construct(struct capture *c, struct watched *w,
                     const struct call *call); /* of a class */
/* CALL has the property's object and, if it is set, the value. It breaks if it is not stepped. */
enum ended call_property(struct capture *c, struct watched *w, PyObject *name, PyObject *property,
                         const struct call *call);
/* Replace an object of the program's class, on top, by its truth. */
enum ended bool_of_object(struct capture *c, struct watched *w);
enum ended call_super(struct capture *c, struct watched *w, const struct call *call);
/* super(TYPE, SELF), or NULL. */
struct shadow *super_shadow(struct capture *c, struct shadow *of_type, struct shadow *of_self,
                            PyObject *type, PyObject *self);
/* NAME of super(TYPE, SELF), or NULL. */
struct shadow *super_method(struct capture *c, PyObject *type, PyObject *self, struct shadow *of,
                            PyObject *name);

/* ---- attribute.c ---- */
/* Where an object has an attribute. */
enum found { FOUND_NOT, FOUND_OWN, FOUND_CLASS, FOUND_METHOD };
/* Find NAME of OWNER, an object of the program's class, without running any of its code: a new
 * reference in *VALUE. */
enum found find_attribute(PyObject *owner, PyObject *name, PyObject **value);
/* Does CPython raise AttributeError for NAME of OWNER without running code? Guarded. */
bool lacks_attribute(struct capture *c, PyObject *owner, struct shadow *of, PyObject *name);
/* Replace SLOTS of the stack by NAME of OWNER. */
enum ended read_attribute(struct capture *c, struct watched *w, int slots, PyObject *owner,
                          struct shadow *of, PyObject *name, bool method);
enum ended super_attribute(struct capture *c, struct watched *w, PyObject *name, bool method);
enum ended import_module(struct capture *c, struct watched *w, PyObject *name);

/* ---- store.c ---- */
/* Set STEP KEY behind OF, where OLD was (NULL: nothing), to VALUE; drop COUNT of the stack. */
enum ended set_place(struct capture *c, struct watched *w, int count, struct shadow *of, char step,
                     PyObject *key, PyObject *old, PyObject *value, struct shadow *of_value);
enum ended store_attribute(struct capture *c, struct watched *w, PyObject *name);
/* Set KEY of a dict that was read, or a global. */
enum ended set_in_dict(struct capture *c, struct watched *w, int count, struct shadow *of,
                       PyObject *key, PyObject *value, struct shadow *of_value);

/* ---- build.c ---- */
/* An instruction that builds, reads or changes a container. */
enum ended build(struct capture *c, struct watched *w, struct compat_action action);
/* The shadow of DICT, with its keys and their order; those of one that was read are words. NULL:
 * unknown. */
struct shadow *dict_shadow(struct capture *c, PyObject *dict, struct shadow *of);
/* CALL of NAME, an operator or a method of its first argument, if it only moves items of lists,
 * tuples and dicts. */
enum ended move(struct capture *c, struct watched *w, const char *name, const struct call *call);
/* CALL of a class of itertools that only moves items. ENDED_BEFORE: it cannot be followed. */
enum ended mirror_iterator(struct capture *c, struct watched *w, const struct call *call);
struct shadow *mirror_next(struct capture *c, struct shadow *of);
/* CALL of an operator, or of a method, of a set that was made here. ENDED_BEFORE: it is none, or
 * another argument is unknown. */
enum ended set_call(struct capture *c, struct watched *w, const struct call *call);
/* CALL of the method NAME of its first argument, a list, dict or set. */
enum ended call_method(struct capture *c, struct watched *w, const struct call *call,
                       const char *name);

/* ---- iterate.c ---- */
/* iter(VALUE): a new reference, and its shadow. Not ENDED_NOT: there is none. */
enum ended iterator_of(struct capture *c, PyObject *value, struct shadow *of, PyObject **iterator,
                       struct shadow **shadow);
/* Replace SLOTS of the stack by its next item, or by polyfill("end"). */
enum ended iterator_next(struct capture *c, struct watched *w, PyObject *iterator,
                         struct shadow *of, int slots);
/* Unpack the top: BEFORE values, and with BEHIND >= 0 a starred one and BEHIND more. */
enum ended unpack(struct capture *c, struct watched *w, Py_ssize_t before, Py_ssize_t behind);
enum ended call_iter(struct capture *c, struct watched *w, const struct call *call);
enum ended call_reversed(struct capture *c, struct watched *w, const struct call *call);

/* ---- known.c ---- */
/* Calls of builtins, and of methods of built-in types. Not decided: it is neither. */
enum ended call_known(struct capture *c, struct watched *w, const struct call *call);

/* ---- operate.c ---- */
enum ended operate(struct capture *c, struct watched *w, struct compat_action action);
enum ended to_bool(struct capture *c, struct watched *w); /* replace the top by its truth */

/* ---- invoke.c ---- */
extern PyMethodDef graph_break_methods[];
/* Call with COUNT arguments; the last have NAMES (NULL: none), which are on top if ON_TOP. */
enum ended invoke(struct capture *c, struct watched *w, int count, PyObject *names, bool on_top);
/* f(*args), or with KEYWORDS f(*args, **kwargs): the tuple and the dict are on the stack. */
enum ended invoke_variable(struct capture *c, struct watched *w, bool keywords);

/* ---- step.c ---- */
/* Step W until its function ends or the graph breaks. */
enum ended watch(struct capture *c, struct watched *w);
int watched_open(struct capture *c, struct watched *w, compat_frame *frame);
void watched_close(struct capture *c, struct watched *w);
/* Hand the frame of W to CPython, which goes on there. 1: it is to throw PENDING. */
int hand_over(struct capture *c, struct watched *w, enum ended ended,
              struct tracer_exception *pending);
/* Of struct watcher. */
bool capture_awaits(struct capture *c, compat_frame *frame);
PyObject *capture_step(struct capture *c, PyThreadState *ts, compat_frame *frame);
PyObject *capture_go_on(PyThreadState *ts, compat_frame *frame, int throws);

/* ---- capture.c ---- Of struct watcher. */
bool capture_refuses(PyThreadState *ts, PyObject *callback, compat_frame *frame,
                     struct watched_answer *answer);
int capture_call(PyThreadState *ts, PyObject *callback, compat_frame *frame, PyObject *frame_state,
                 struct watched_answer *answer, struct watched_rest *rest);

/* ---- module.c ---- */
extern PyTypeObject *capture_type;

#endif
