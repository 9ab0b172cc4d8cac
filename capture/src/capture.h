/* capture/src/capture.h -- dyntrace.compile: graphs of the array operations of functions.
 *
 * Runs in: the main interpreter of the traced process, under the GIL.
 *
 * When a call misses the cache under a capture callback, capture watches the call: step.c executes
 * its instructions one by one, in the call's own frame, with the C functions that CPython uses.
 * This is called stepping. Array operations become nodes of a graph, and later calls run the graph.
 *
 * Beside each slot of the frame capture keeps a shadow: a record of where the slot's value comes
 * from. A value is *known* if it is a constant, or if guards ensure that it is the same in later
 * calls. Some functions below have the remark "Adds guards": they add the guards that keep their
 * return value true in later calls. If capture cannot handle an instruction, the graph breaks
 * there. CPython then continues, in the same frame or in code that dyntrace._assemble makes.
 *
 * An *effect* is a change that is visible outside the function, for example `config.last = x`. The
 * compiled code repeats effects after the graph. A *part* describes to dyntrace._plan how to make a
 * value again; a *plan* is the function that runs the graph and makes the values again.
 *
 * A file calls only functions of the files above it in this list. Exception: value.c and effect.c
 * call each other.
 *
 *    names.c      find objects by name: builtins, polyfills, functions of numpy and torch
 *    value.c      shadows, and guards on values that were read
 *    effect.c     effects
 *    plan.c       parts and plans
 *    stack.c      the stack of a watched frame, graph breaks, descriptions of calls
 *    node.c       nodes of the graph
 *    inline.c     step through calls of Python functions
 *    object.c     objects of the program's classes: special methods, properties, super()
 *    attribute.c  read attributes; imports
 *    store.c      set attributes, globals, items and cells
 *    build.c      build, read and change containers
 *    iterate.c    iterators, generators and unpacking
 *    known.c      calls of builtins
 *    operate.c    operators
 *    invoke.c     dispatch a call to the code that handles it
 *    step.c       execute one instruction after the other
 *    capture.c    one watched call, from its start to the compiled code
 *    module.c     the extension module and the types that Python sees
 *
 * Python code writes the compiled code (dyntrace._assemble, dyntrace._plan) and has tables that say
 * what builtins, methods, and functions of numpy and torch do (dyntrace._polyfills). */
#ifndef DYNTRACE_CAPTURE_H
#define DYNTRACE_CAPTURE_H

#include "tracer/compat/guards.h"
#include "tracer/compat/step.h"
#include "tracer/evaluator/watcher.h"

/* The tag of struct shadow: where a value of the watched call came from. The kinds TUPLE, LIST,
 * DICT and SLICE are called containers. */
enum shadow_kind {
    SHADOW_CONST,  /* an object that nobody can change */
    SHADOW_SOURCE, /* read from outside the function: a variable, a global, an attribute, an item */
    SHADOW_NODE,   /* the result of a node of the graph */
    SHADOW_TUPLE,  /* a tuple; `items` has the shadows of its items */
    SHADOW_LIST,
    SHADOW_DICT,
    SHADOW_SLICE,
    SHADOW_OBJECT,    /* an instance of a class of the program, made by the watched call */
    SHADOW_CALL,      /* the result of a call that the compiled code repeats; see struct effect */
    SHADOW_SUPER,     /* super() */
    SHADOW_METHOD,    /* a bound method */
    SHADOW_ITERATOR,  /* an iterator, or a view of a dict */
    SHADOW_GENERATOR, /* a generator that the watched call made */
    SHADOW_FUNCTION,  /* a function that the watched call made */
    SHADOW_CELL,      /* the cell of a variable */
    SHADOW_CHANGED,   /* the value that an effect has stored in an attribute, item or cell */
};

/* How strict the guard is on a value that was read. */
enum guarded {
    GUARDED_NOT,   /* no guard yet */
    GUARDED_TYPE,  /* a guard checks the type and, for a tuple or list, the length */
    GUARDED_VALUE, /* a guard checks the value */
};

/* An integer that the function reads becomes an input of the graph if it differs between calls;
 * otherwise it is a constant. */
enum varying {
    VARIES_UNKNOWN, /* not known yet */
    VARIES_INPUT,   /* an input */
    /* no input of the graph: a guard ensures that later calls have the same value */
    VARIES_NOT,
    /* the shape of an array: `items` has the shadows of the sizes that are inputs of the graph, and
     * NULL for other sizes */
    VARIES_SHAPE,
};

/* A value that was read from outside the function. For `x.shape[0]` the value's parent is the
 * source of `x.shape`, `step` is '[' and `key` is 0. The four roots (locals, globals, builtins,
 * sys.modules) have no parent and no key. */
struct source {
    /* child: the first source whose parent is this source. next: the next source with the same
     * parent */
    struct shadow *parent, *child, *next;
    /* borrowed from the arena: the name of the variable or attribute, or the key of the item */
    PyObject *key;
    /* what was read from `parent`: 'l' a variable, '.' an attribute, '[' an item, '!' a global that
     * does not exist, 'C' the cell of a free variable. In a root, which has no parent: 'L' locals,
     * 'G' globals, 'B' builtins, 'S' sys.modules */
    char step;
    unsigned char steps; /* number of steps from the root to this source */
    enum guarded guarded;
    enum varying varies;
    bool changed; /* an effect has changed an item or attribute of this object */
    bool listed;  /* a guard checks the order of a dict's keys, or the items of a set */
    /* guards ensure that this class creates instances and finds attributes as `object` does */
    bool is_ordinary;
    bool is_new;     /* in a SHADOW_CHANGED: the effect has added the item or attribute */
    Py_ssize_t cell; /* if `step` is 'C': the index of the free variable */
    /* for a source in capture->mortal: the number of references to the value that the capture
     * holds */
    Py_ssize_t references;
    /* guards ensure that the first `apart` effects do not change this object */
    Py_ssize_t apart;
    PyObject *path; /* borrowed: the result of source_make_path(); NULL before the first call */
    /* borrowed: the node for this input of the graph; NULL if the value is no input */
    PyObject *placeholder;
};

/* The result of a node of the graph. */
struct node {
    PyObject *node; /* borrowed */
    /* borrowed: the expression that calculates the result from inputs of the graph, if the result
     * is a number (see make_expression()); otherwise NULL */
    PyObject *expression;
    /* if the node returns one of its arguments, as `a += b` does: the shadow of this argument;
     * otherwise NULL */
    struct shadow *same;
    unsigned char steps; /* number of operands in `expression` */
    bool is_number;      /* the result is an integer, calculated from the integers `items` */
    bool fixed;          /* the result's shape follows from those of the graph's inputs */
    /* if the result is a tuple: the number and shapes of its items follow from the inputs'
     * shapes */
    bool counted;
};

struct method {
    struct shadow *owner;
    PyObject *name; /* borrowed */
    /* source: the source of the function. bound: the shadow of `self`. Both are NULL for a method
     * in C */
    struct shadow *source, *bound;
};

/* What an iterator iterates over. This decides where its next item comes from. */
enum iteration {
    ITERATES_ITEMS,     /* iterates forwards over a container, an array or a view of a dict */
    ITERATES_BACKWARDS, /* reversed() of a tuple or list */
    /* an iterator of itertools; `mirror` is an iterator of the same class over capsules: see
     * build.c */
    ITERATES_MIRROR,
    ITERATES_ZIP, /* zip(): `keys` holds its iterators, and `items` holds their shadows */
    /* enumerate(): keys[0] is the iterator that it numbers, and items[0] is this iterator's
     * shadow */
    ITERATES_ENUMERATE,
    /* map() and filter(): `value` is the function; `keys` and `items` have the same meaning as for
     * zip() */
    ITERATES_MAP,
    ITERATES_FILTER,
    ITERATES_UNKNOWN, /* the position in the iterable is unknown */
};

struct iterator {
    enum iteration how;
    /* the shadow of `value`, which is the iterable, or the function of map() and filter() */
    struct shadow *of;
    /* number of items taken from the iterator; counted only if it iterates over a result of the
     * graph, or if `mirror` is set */
    Py_ssize_t at;
    /* borrowed: the same kind of iterator over capsules of the items' shadows (build.c); or NULL */
    PyObject *mirror;
    /* all copies of this shadow share `mirrored`. Its `at` counts the items taken from `mirror`: an
     * undo restores this shadow, but cannot move `mirror` back */
    struct shadow *mirrored;
};

/* A generator that the watched call made. The shadow's `items` are the shadows of the generator's
 * variables, then the shadows of its stack. */
struct generator {
    struct shadow *function;
    struct shadow *given; /* the shadow of the item that the generator yielded last */
    bool has_begun;       /* the generator has been resumed before, so its cells have shadows */
    /* capture could not step through the generator, so its variables and stack are unknown */
    bool lost;
};

/* A function that the watched call made. The shadow's `items` are the cells of its closure. */
struct function {
    PyObject *code;                             /* borrowed; NULL for a polyfill */
    struct shadow *defaults, *keyword_defaults; /* NULL if there are none */
    struct shadow *globals;
};

/* A cell. The shadow's item 0 is the shadow of the cell's content, NULL if the content is unknown.
 * The shadow's `value` is the address of the content: only compare this address, do not use the
 * object. */
struct cell {
    struct shadow *source; /* where the cell was read; NULL if the watched call made it */
    bool is_outside;       /* another function made the cell */
};

/* A call that the compiled code repeats. The shadow's `items` are the callable and its
 * arguments. */
struct effect {
    /* the shadow of the object that the call changes; this shadow itself if the call makes an
     * object */
    struct shadow *container;
    Py_ssize_t nodes; /* number of graph nodes that come before this call */
};

struct shadow {
    enum shadow_kind kind;
    bool frozen; /* a container that must not change any more */
    /* in a container: number of unfinished itertools iterators over the container, which must not
     * change before these iterators end */
    uint32_t mirrors;
    /* `serial` counts up: a shadow that was made later has a higher number. `kept` is the serial of
     * the frame for which the undo list last got a copy of this shadow */
    uint32_t serial, kept;
    PyObject *value; /* borrowed from the arena: the object; NULL if only the kind is known */
    /* borrowed from the arena: the result of get_plan_part(); NULL before the first call */
    PyObject *plan_part;
    /* for a list, dict or object that is visible outside: a copy of the shadow from the moment when
     * the value became visible */
    struct shadow *origin;
    struct shadow **items;
    /* borrowed from the arena: the keys of a dict, or the names of an object's attributes */
    PyObject **keys;
    Py_ssize_t count, room;
    /* The fields of each kind of shadow; `kind` is the tag. SHADOW_CHANGED, and a list that was
     * read and then changed, use `source`. In constants and in containers without fields here all
     * bytes are zero. */
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
        } object; /* `keys` has the names of the attributes, `items` their shadows */
        struct {
            PyObject *self; /* borrowed */
        } super; /* `value` is the class; `items` are the shadows of the class and of `self` */
    };
};

/* A frame through which capture steps. */
struct watched {
    struct watched *outer;
    compat_frame *frame;
    PyCodeObject *code; /* borrowed from the frame */
    /* the bytecode as it was compiled, without CPython's specialized instructions; its memory is in
     * `held` */
    const uint8_t *bytes;
    PyObject *held; /* owned */
    int32_t units;
    int32_t unit; /* index of the current instruction, in code units */
    int32_t next; /* index of the next instruction, in code units */
    /* index of the first instruction of the current call, where CPython uses several (KW_NAMES,
     * PRECALL, CALL); otherwise equal to `unit` */
    int32_t group;
    int op;
    int variables;
    int depth;  /* number of values on the stack */
    int before; /* number of values on the stack when the instruction began */
    /* owned: shadows of the variables, of the stack, and of the stack when the instruction began */
    struct shadow **shadow;
    /* owned: the address of each variable's value as last stored, only for comparison */
    PyObject **stored;
    PyObject *names; /* borrowed: the keyword names for the next call (KW_NAMES), or NULL */
    /* the shadow of the frame's function; NULL for the captured function itself */
    struct shadow *function;
    struct shadow *globals; /* the source of the function's globals */
    /* A shadow with a higher serial was made after this frame began. Undoing the frame drops the
     * shadow, so changes of the shadow need no undo copy. */
    uint32_t serial;
    /* the function is a resume function: an argument may be the marker for "this variable is
     * unbound" */
    bool resumed;
    /* the instruction started a Python frame that capture did not expect, so unknown code ran */
    bool unexpected_frame;
};

/* How an instruction, or a function, ended. */
enum ended {
    ENDED_NOT,    /* the instruction is done, and the function continues */
    ENDED_RETURN, /* the function returns the value on top of the stack */
    ENDED_YIELD,
    ENDED_BEFORE, /* graph break before the instruction: CPython executes the instruction */
    ENDED_BEHIND, /* graph break after the instruction: its result is unknown */
    ENDED_RAISED, /* the instruction raised */
};

/* A copy of `shadow`, made before an inner call changed it. If capture cannot step through the
 * inner call to its end, the list of these copies is used to undo the changes. */
struct undo {
    struct undo *before;
    struct shadow *shadow, was;
};

enum {
    CAPTURE_LISTS = 5,
    /* number of nested Python calls that dyntrace may make beyond the recursion limit */
    OWN_CALLS = 100
};

struct capture {
    PyThreadState *ts;
    PyObject *callback; /* borrowed */
    union {
        PyObject *lists[CAPTURE_LISTS]; /* owned */
        struct {
            PyObject *nodes; /* the nodes of the graph, without placeholders */
            PyObject *inputs, *placeholders, *guards;
            /* for each node, the call stack at the node's operation: see make_node_call_stack() */
            PyObject *places;
        };
    };
    /* owned: memory of all shadows, and references to the objects that they use */
    PyArena *arena;
    uint32_t serial, jumps;
    /* number of container items visited so far; a limit on it keeps capture out of huge
     * containers */
    uint32_t items;
    /* nesting depth of the container that is being converted to an argument of a node */
    uint32_t nesting;
    struct undo *undo; /* the latest */
    /* borrowed, or NULL: the integers and shapes that earlier captures of this code met, by guard
     * path. None in place of an integer or size means that earlier captures met different values */
    PyObject *numbers, *sizes;
    Py_ssize_t number_nodes; /* number of nodes whose result is a number */
    struct watched *innermost;
    struct shadow *locals, *globals, *builtins, *modules; /* the sources that have no parent */
    struct shadow *taken;      /* `items`: the sources of the graph's inputs */
    struct shadow *effects;    /* `items`: the effects, in order */
    struct shadow *generators; /* `items`: all generators that the watched call made */
    /* `items`: the sources of variables whose values may run code when they die */
    struct shadow *mortal;
    PyObject *raised; /* borrowed: the StopIteration that ended the last iterator; or NULL */
    /* the call of send() that is about to resume a generator; NULL for next() */
    const struct call *sent;
    /* the next function that capture steps through is a __next__, so it may raise StopIteration */
    bool may_end;
    /* the __next__ through which capture stepped raised StopIteration and had no other effect */
    bool ends;
    /* the function has read a shape, so the guards on arrays must compare all sizes */
    bool shapes_read;
    /* memory ran out, or a value changed during the watched call: discard the whole capture */
    bool failed;
    /* the result of a comparison, on top of the stack, must still be converted to a bool */
    bool make_bool;
    /* the graph breaks here, because the function has a handler for an exception of the
     * operation */
    bool handled;
    bool attempted; /* the graph has an operation for whose exceptions the function has a handler */
    /* an operation of the graph does more than compute its result, so it must not run twice */
    bool impure;
    /* the captured function is a resume function, and has restored its variables and stack */
    bool begun;
    bool foreign; /* an array operation may have run code of the program: see value.c */
    /* shadows of the variables: `first` when the call began, `initial` after a resume function has
     * restored them */
    struct shadow **first, **initial;
    PyObject *closure; /* owned: the closure of the captured function; or NULL */

    /* How the capture ended. */
    const char *kind; /* the kind of the graph break; NULL if there is none so far */
    char reason[400];
    PyObject *stack; /* owned: the call stack at the break, by make_call_stack(); or NULL */
    struct shadow *returned_shadow; /* the shadow of the value that is returned or yielded */

    /* The inner call whose frame capture expects, to step through it. */
    struct shadow **awaited; /* the shadows of the arguments */
    struct shadow *awaited_function;
    PyCodeObject *awaited_code;
    Py_ssize_t awaited_count;
    /* the operation, such as `a + b`, that calls the inner function: the arguments of the expected
     * frame must be the operands of this operation. NULL for a plain call */
    const struct call *awaited_call;
    /* the address of the object that the inner call returned, only for comparison */
    PyObject *stepped;
    bool entered;     /* the frame of the inner call has begun */
    bool inner_broke; /* capture could not step through the called function to its end */
};

/* Indexes of the items of a callback, which is a tuple. module.c describes the items. */
enum {
    CAPTURE_FINISH,
    CAPTURE_BACKEND,
    CAPTURE_DYNAMIC,
    CAPTURE_FULLGRAPH,
    CAPTURE_EVERY,
    CAPTURE_PARTS
};

/* A call. An operation such as `a + b` is described as a call of operator.add(a, b). */
struct call {
    /* borrowed. In a call made by execute_call(), args[-1] may be overwritten (for `self`) */
    PyObject *callable, **args;
    PyObject *names; /* borrowed: the names of the last arguments; NULL if all are positional */
    struct shadow *of, **shadows; /* the shadows of the callable and of the arguments */
    int count;                    /* number of arguments */
    int slots;                    /* number of stack slots that the result replaces */
    /* `callable` is an operation, such as operator.add, which itself calls the function that
     * capture steps through */
    bool operates;
    /* the operation calls the function with the two operands swapped, as for __radd__ */
    bool reflected;
    /* args[0] is `self`. Do not pass `self` to `callable`: it is a bound method, which adds
     * `self` */
    bool bound;
    /* the shadow of the result, if the result is not what the stepped function returns, e.g. a new
     * object after its __init__; otherwise NULL */
    struct shadow *made;
};

/* The operands of an operator, in order. */
struct operands {
    PyObject *values[3];
    struct shadow *of[3];
};

/* A node that is being made. */
struct operation {
    const char *op;
    PyObject *target;          /* borrowed */
    PyObject *args, *keywords; /* owned; keywords may be NULL */
    bool fixed, counted;       /* the meaning is the same as in struct node */
    /* first: the first argument is an array or contains an array. rest: a later argument is one or
     * contains one */
    bool first, rest;
    /* the shadow of the argument that the operation returns; NULL if it returns a new object */
    struct shadow *same;
};

/* How far a capture had come at some moment. attempt_undo() undoes what came later. */
struct attempt {
    Py_ssize_t nodes, number_nodes, effects;
    struct undo *undo;
};

/* A constant in the compiled code. The compiled code calls the plan: the plan runs the graph and
 * returns the values for the variables and the stack. If `run` is NULL, the plan instead returns
 * the globals of its caller. The compiled code uses it in place of globals(), because a call of
 * globals() would count against the recursion limit. */
struct plan {
    PyObject_HEAD vectorcallfunc call;
    PyObject *name, *run, *raised; /* owned: functions, or NULL */
    /* number of calls of `run` in progress. During these calls the globals of `run` are those of
     * the frame that called the plan */
    unsigned running;
};

static inline bool is_kind(const struct shadow *shadow, enum shadow_kind kind)
{
    return shadow && shadow->kind == kind;
}

static inline bool is_source(const struct shadow *shadow)
{
    return is_kind(shadow, SHADOW_SOURCE);
}

/* Is SHADOW the shape of an array that was read, with a size that is an input of the graph? */
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

/* Count one more visited item of a container. Returns false if too many items have been visited. */
static inline bool count_visited_item(struct capture *c)
{
    return ++c->items < 1 << 18;
}

/* Has the instruction been handled: it was executed, it raised, or it broke the graph? If not
 * (ENDED_BEFORE without a kind of break), nothing has changed, and the caller tries another way to
 * execute the instruction. */
static inline bool is_instruction_handled(const struct capture *c, enum ended ended)
{
    return ended != ENDED_BEFORE || c->kind;
}

/* Has the instruction left its result on the stack? */
static inline bool is_instruction_done(enum ended ended)
{
    return ended == ENDED_NOT || ended == ENDED_BEHIND;
}

static inline int count_names(const struct call *call)
{
    return call->names ? (int)PyTuple_GET_SIZE(call->names) : 0;
}

/* ---- functions of names.c ---- */
/* the functions of the shim; _attach() in module.c sets it */
extern const struct shim_services *shim;
/* a dict of CPython's own builtins, copied when capture was loaded */
extern PyObject *capture_builtins;
/* Return the string literal NAME as an interned str: borrowed. */
PyObject *intern_word(const char *name);
/* Return attribute NAME of *MODULE: borrowed, or NULL. If *MODULE is NULL, import the module WHICH
 * into *MODULE first. */
PyObject *find_module_attribute(PyObject **module, const char *which, const char *name);
/* Make the dict for capture_builtins. Returns NULL with an exception. */
PyObject *copy_cpython_builtins(void);
PyObject *get_builtin(const char *name); /* borrowed, or NULL */
/* Return operator.NAME or, if there is none, the builtin NAME: borrowed, or NULL. */
PyObject *get_operator(const char *name);
PyObject *get_polyfill(const char *name); /* Return dyntrace._polyfills.NAME: borrowed, or NULL. */
/* Is NAME in the set dyntrace._polyfills.SET? */
bool is_in_set(const char *name, const char *set);
/* Look up NAME in the dict dyntrace._polyfills.TABLE: borrowed, or NULL. */
PyObject *get_table_entry(const char *table, const char *name);
/* Is the module NAME the package PACKAGE, or a module in this package? */
bool is_in_package(const char *name, const char *package);
/* NAME is the name of a module, or of a type's module. Is it in numpy or torch? False if NAME is
 * NULL. */
bool is_array_package(const char *name);
/* Is CALLABLE a function, type or ufunc of numpy or torch? */
bool is_array_function(PyObject *callable);
/* Is CALLABLE a C function of MODULE? */
bool is_c_function_of(PyObject *callable, const char *module);

/* ---- functions of value.c ---- */
/* Register the array types of numpy and torch, if the program has imported these packages. */
void register_array_types(void);
int register_array_type(PyObject *type);
bool value_is_array(PyObject *value);
/* Is VALUE of an immutable type whose operations run no code of the program, e.g. int or str? */
bool value_is_simple(PyObject *value);
/* Is VALUE a dtype, device or layout of numpy or torch? */
bool value_is_description(PyObject *value);
bool is_plain_slice(PyObject *value); /* Is VALUE a slice whose bounds are simple values? */
bool value_has_array(PyObject *value, int depth);
/* Is VALUE an array whose class is numpy's or torch's own? */
bool value_is_library_array(PyObject *value);
/* Is VALUE an array of torch's own class? Operations on such an array cause no warning; operations
 * on numpy's arrays may, e.g. a division by zero. */
bool value_is_silent_when_used(PyObject *value);
bool value_may_run_code(PyObject *value); /* May an operation on VALUE run code of the program? */
/* Can VALUE be released without running code of the program? */
bool value_can_die_quietly(PyObject *value);
/* Is VALUE a method that is bound to an object, not to a module or class? */
bool value_is_bound_method(PyObject *value);
bool is_nested(PyObject *value); /* Is VALUE a function that was defined inside another function? */
static inline bool value_is_plain(PyObject *value)
{
    return value_is_simple(value) || value_is_description(value) || is_plain_slice(value);
}

/* Allocate zeroed memory in the arena. Returns NULL if there is no memory. */
void *capture_allocate(struct capture *c, size_t size);
/* Hold a reference to OBJECT until the capture ends. Returns OBJECT, borrowed; NULL if there is no
 * memory. */
PyObject *capture_keep(struct capture *c, PyObject *object);
/* If OBJECT is in c->mortal, count one more reference that the capture holds. */
void capture_count_reference(struct capture *c, PyObject *object);
struct shadow *shadow_new(struct capture *c, enum shadow_kind kind, Py_ssize_t room);
struct shadow *shadow_new_const(struct capture *c, PyObject *value);
struct shadow *shadow_new_node(struct capture *c, PyObject *node, bool fixed, bool counted);
struct shadow *shadow_copy(struct capture *c, const struct shadow *shadow);
struct shadow *make_iterator_shadow(struct capture *c, enum iteration how, PyObject *value,
                                    struct shadow *of);
/* Make the shadow of method NAME of OWNER. FUNCTION is the Python function, SOURCE its source, and
 * BOUND the shadow of `self`; all three are NULL for a method in C. */
struct shadow *make_method_shadow(struct capture *c, struct shadow *owner, PyObject *name,
                                  PyObject *function, struct shadow *source, struct shadow *bound);
/* Does VALUE have the type that SHADOW expects? If not, code of the program has replaced the value
 * unnoticed: through f_locals, a cell, or a list. */
bool shadow_matches_value(const struct shadow *shadow, PyObject *value);
/* Append ITEM; KEY is its key in a dict, else NULL. Returns -1 if there is no memory. */
int shadow_add(struct capture *c, struct shadow *container, PyObject *key, struct shadow *item);
/* Append the shadows of all items of VALUE, a tuple or list. Returns -1 if an item is unknown or
 * there is no memory. */
int shadow_add_items(struct capture *c, struct shadow *container, PyObject *value,
                     struct shadow *of);
/* object_find() returns the shadow of the item or attribute KEY of OBJECT; object_find_place()
 * returns the address where OBJECT stores this shadow. Both return NULL if there is none. */
struct shadow *object_find(const struct shadow *object, PyObject *key);
struct shadow **object_find_place(const struct shadow *object, PyObject *key);
/* Save a copy of SHADOW before a change, so that shadows_undo() can undo the change. Returns false
 * if there is no memory. */
bool shadow_save_for_undo(struct capture *c, struct shadow *shadow);
/* Undo all changes of shadows that were made after MARK, an earlier head of the undo list. */
void shadows_undo(struct capture *c, struct undo *mark);

/* Store that VALUE was read from PARENT, and return VALUE's source. STEP and KEY are as in struct
 * source. Returns NULL if an earlier read found another value, or if there is no memory. */
struct shadow *source_read(struct capture *c, struct shadow *parent, char step, PyObject *key,
                           PyObject *value);
struct shadow *source_read_attribute(struct capture *c, struct shadow *parent, const char *name,
                                     PyObject *value);
/* Return the SHADOW_CHANGED of an effect that has changed attribute KEY (STEP '.') or item KEY
 * (STEP '[') of PARENT; NULL if there is none. */
struct shadow *source_find_changed(const struct shadow *parent, char step, PyObject *key);
/* Describe SOURCE as (path of its parent or None, step, key): borrowed, or NULL. _capture.py makes
 * a guard source of this path. */
PyObject *source_make_path(struct capture *c, struct shadow *source);
extern PyObject *capture_modules; /* a function that returns sys.modules; guards call it */
int guard_add(struct capture *c, struct shadow *source, const char *kind, PyObject *value);
void guard_length(struct capture *c, struct shadow *source, const char *kind, Py_ssize_t length);
/* Add a guard that keeps the value of SHADOW the same in later calls. Returns false if no guard can
 * ensure this. */
bool ensure_value_known(struct capture *c, PyObject *value, struct shadow *shadow);
/* Add a guard on the type of SHADOW's value and, for a tuple or list, on the length. Returns false
 * if no guard can be added. */
bool ensure_type_known(struct capture *c, PyObject *value, struct shadow *shadow);
/* Are all arguments of CALL known, and can operations on them run no code of the program? With
 * DEEP, a list or tuple of known simple values also counts as known. Adds guards. */
bool ensure_arguments_known(struct capture *c, const struct call *call, bool deep);
/* Return the shadow of ITEM, which is VALUE[KEY]; or NULL. VALUE is a tuple, list or dict whose
 * type is guarded. */
struct shadow *get_item_shadow(struct capture *c, PyObject *value, struct shadow *of, PyObject *key,
                               PyObject *item);
struct shadow *get_item_shadow_at(struct capture *c, PyObject *value, struct shadow *shadow,
                                  Py_ssize_t i);
/* Is VALUE a set with known items that the watched call made? */
bool is_known_set(PyObject *value, const struct shadow *of);
/* Are the items of the set VALUE known? Their order may be unknown. */
bool ensure_set_known(struct capture *c, PyObject *value, struct shadow *of);
/* Make a node; steals ARGS and KEYWORDS (which may be NULL). Returns NULL with an exception. */
PyObject *node_new(PyObject *op, PyObject *name, PyObject *target, PyObject *args,
                   PyObject *keywords);
/* May an integer be an input of a graph? Not with NumPy 1, where its value decides a result's
 * dtype. */
bool numbers_may_vary(void);
/* Is SHADOW's value an integer that differed between captures of this code? Also true if it was
 * calculated from integers of which one differed. */
bool is_varying(struct capture *c, struct shadow *shadow);
/* Return the shape of the array VALUE as a source if one of its sizes differs from an earlier
 * capture; else NULL. */
struct shadow *find_varying_shape(struct capture *c, PyObject *value, struct shadow *of);
/* Convert VALUE to an argument of a node: a new reference. Returns NULL if this is impossible. */
PyObject *make_node_argument(struct capture *c, PyObject *value, struct shadow *shadow);

/* ---- functions of effect.c ---- */
/* If an effect has changed SHADOW's object through another source, return that source, and add a
 * guard that both are the same object. Otherwise return SHADOW. Returns NULL if the guard cannot be
 * added. */
struct shadow *resolve_alias(struct capture *c, struct shadow *shadow);
/* Is it certain that no effect has changed SHADOW's object through another source? Adds guards. */
bool ensure_not_aliased(struct capture *c, struct shadow *shadow);
/* May an effect release OLD? It may if OLD's death runs no code, neither now nor in later calls. */
bool can_release(struct capture *c, PyObject *old, struct shadow *shadow);
/* May the container of SHADOW be changed now? KIND is the kind that SHADOW must have. If SHADOW is
 * the source of a list, it becomes a SHADOW_LIST. */
bool may_change_container(struct capture *c, struct shadow *shadow, enum shadow_kind kind);
/* May an effect change the object of CONTAINER and store the COUNT values there? Marks these values
 * as visible outside the function. Adds guards. */
bool prepare_effect(struct capture *c, struct shadow *container, int count,
                    struct shadow *const *values);
/* Add an effect: a call of CALLABLE with ARGS. CONTAINER is the object that the call changes, or
 * NULL if it makes an object. Returns NULL if there is no memory. */
struct shadow *add_effect(struct capture *c, struct shadow *container, struct shadow *callable,
                          int count, struct shadow *const *args);
/* A call of CALLABLE with ARGS is about to change SHADOW's container and to release OLD (or NULL).
 * If the container is visible outside, add an effect. Returns false if the change is not
 * allowed. */
bool add_change_effect(struct capture *c, struct shadow *shadow, struct shadow *callable,
                       PyObject *old, struct shadow *of_old, int count, struct shadow *const *args);
bool add_item_change_effect(struct capture *c, struct shadow *shadow, struct shadow *key,
                            struct shadow *value, PyObject *old, struct shadow *of_old);
/* Return the shadow of an object that a call of CALLABLE with ARGS makes; the compiled code repeats
 * this call. Returns NULL if capture cannot repeat the call. */
struct shadow *add_creation_effect(struct capture *c, struct shadow *callable, int count,
                                   struct shadow *const *args);
/* Has an effect set attribute NAME of a class? The class whose source is BUT does not count. */
bool was_class_attribute_set(struct capture *c, const struct shadow *but, PyObject *name);

/* ---- functions of plan.c ---- */
extern PyTypeObject plan_type;
/* Describe how dyntrace._plan can make SHADOW's value again: borrowed; None if this is
 * impossible. */
PyObject *get_plan_part(struct capture *c, struct shadow *shadow);
/* Return a new tuple with get_plan_part() of each of COUNT shadows, or NULL. */
PyObject *make_plan_parts(struct capture *c, Py_ssize_t count, struct shadow *const *shadows);
/* Describe the variables and the stack of W to dyntrace._plan. SHADOWS are the shadows of the
 * stack, DEPTH is their number. Call this function before get_plan_part(). Returns a new tuple of
 * three:
 * for each variable (number, part, value), or (number,) if the variable is unbound;
 * for each stack slot (part, value), or () if the slot is NULL;
 * for each variable the cell that the function made for it, or None. */
PyObject *describe_plan_state(struct capture *c, const struct watched *w,
                              struct shadow *const *shadows, int depth);
PyObject *plan_new(const char *name);

/* ---- functions of stack.c ---- */
extern struct shadow shadow_of_null; /* the shadow of a NULL on the stack */
/* Break the graph before the current instruction. KIND and FORMAT give the reason. Returns
 * ENDED_BEFORE. */
enum ended break_graph(struct capture *c, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum ended break_at_no_memory(struct capture *c);
enum ended break_at_mutation(struct capture *c, PyObject *container);
enum ended break_at_unknown_operand(struct capture *c, const struct call *call, const char *what);
PyObject *stack_value(const struct watched *w, int from_top);
struct shadow *stack_shadow(const struct watched *w, int from_top);
void stack_push(struct watched *w, PyObject *value, struct shadow *shadow); /* steals VALUE */
void stack_drop(struct watched *w, int count);
/* Replace the top COUNT values by RESULT, which is stolen. Returns ENDED_RAISED if RESULT is
 * NULL. */
enum ended stack_replace(struct capture *c, struct watched *w, int count, PyObject *result,
                         struct shadow *shadow);
/* Replace the top COUNT values by RESULT, which was calculated from known operands; steals RESULT.
 * If the type of RESULT is not simple, the graph breaks after the instruction. */
enum ended stack_replace_known(struct capture *c, struct watched *w, int count, PyObject *result);
/* Push VALUE, a callable, and steal it. If `null` is set, also push the NULL that a call expects
 * beside its callable. */
enum ended push_callable(struct watched *w, bool null, PyObject *value, struct shadow *shadow);
/* Store the current value of each variable in w->stored. */
void watched_save_variables(struct watched *w);
/* Describe a call of operator.NAME with COUNT operands. */
struct call describe_operator_call(const char *name, int slots, int count,
                                   struct operands *operands);
/* Copy CALL, which execute_call() made, with SELF before its arguments. */
struct call prepend_self(const struct call *call, PyObject *self, struct shadow *of_self);
PyObject *run_call(const struct call *call);
struct attempt attempt_begin(const struct capture *c);
void attempt_undo(struct capture *c, const struct attempt *attempt);

/* ---- functions of node.c ---- */
/* Is VALUE an array, or the result of a node? */
bool is_graph_value(PyObject *value, const struct shadow *shadow);
/* Is VALUE, or an item of VALUE, an array or the result of a node? */
bool has_graph_value(struct capture *c, PyObject *value, const struct shadow *shadow);
/* Do the shape of VALUE, and the shapes of the arrays in it, follow from the shapes of the
 * inputs? */
bool has_fixed_shape(struct capture *c, PyObject *value, const struct shadow *shadow);
/* Does the value of SHADOW contain an integer that is an input, or that was calculated from an
 * input? */
bool has_varying_number(const struct shadow *shadow);
/* Are all arguments of CALL integers, and is at least one of them an input, or calculated from an
 * input? */
bool are_varying_numbers(struct capture *c, const struct call *call);
/* Describe how the number that CALL returns is calculated: (operator, operands...). An operand is
 * (path of an input,), another such tuple, or a number. Returns a new reference; NULL if an operand
 * is unknown. */
PyObject *make_expression(struct capture *c, const struct call *call);
/* Return the call stack, innermost first, as a flat tuple (code, unit, code, unit, ...): a new
 * reference, or NULL. */
PyObject *make_call_stack(const struct capture *c);
/* Add NODE to the graph. Returns -1 if there is no memory. */
int add_node(struct capture *c, PyObject *node);
/* Does CODE, with the bytecode BYTES, handle an exception of the instruction at UNIT, or with -1 of
 * any instruction? The clean-up after a comprehension does not count. */
bool code_handles_exception(PyCodeObject *code, const uint8_t *bytes, int32_t unit);
/* Return ENDED_NOT if an operation may run here; otherwise break the graph. PURE: the operation
 * only computes a result, so it may run again. */
enum ended may_add_operation(struct capture *c, bool pure);
/* Replace the top COUNT values by RESULT of OPERATION. RESULT is NULL if the operation raised.
 * Steals RESULT and the references that OPERATION owns. */
enum ended stack_replace_node(struct capture *c, struct watched *w, int count,
                              struct operation *operation, PyObject *result);
/* Run the operator of CALL and add a node for it. KEEPS: the shape of the result follows from the
 * shapes of the operands. */
enum ended run_graph_operator(struct capture *c, struct watched *w, const char *name,
                              const struct call *call, bool keeps);
/* Does the shape of the result of array function NAME follow from the shapes of its COUNT
 * arguments? FIRST: the first argument contains an array. REST: a later argument contains one. */
bool keeps_shape(const char *name, int count, bool first, bool rest);
/* Write the name of CALLABLE to TEXT, for the reason of a break. Returns TEXT. */
const char *write_callable_name(PyObject *callable, char *text, size_t room);
enum ended break_at_unknown_argument(struct capture *c, const struct call *call);
/* Call an array function or method and add a node for it. */
enum ended run_array_call(struct capture *c, struct watched *w, const struct call *call,
                          const char *name);
enum ended call_array_method(struct capture *c, struct watched *w, const struct call *call,
                             PyObject *self);
enum ended call_array_function(struct capture *c, struct watched *w, const struct call *call);

/* ---- functions of inline.c ---- */
/* Can capture step through FUNCTION, whose source is OF? Adds guards. */
bool can_step_through(struct capture *c, PyObject *function, struct shadow *of);
/* Call FUNCTION as CALL says, and step through it. */
enum ended step_through_function(struct capture *c, struct watched *w, const struct call *call,
                                 PyFunctionObject *function, struct shadow *of);
/* Step through the function NAME of dyntrace._polyfills instead of calling CALL's callable. */
enum ended step_through_polyfill(struct capture *c, struct watched *w, const char *name,
                                 const struct call *call);

/* ---- functions of object.c ----
 *
 * If the class has no Python method of this kind, or capture cannot step through the method, the
 * functions below leave the outcome undecided (see is_instruction_handled). */
/* Return the source of VALUE's class, with guards; NULL if there is none. */
struct shadow *find_class_source(struct capture *c, PyObject *value, struct shadow *of);
/* Does `object` create and release the instances of TYPE, and find their attributes? OF is the
 * source of TYPE. Adds guards. */
bool is_ordinary(struct capture *c, PyTypeObject *type, struct shadow *of);
/* Step through FUNCTION (or NULL), which is attribute NAME of the class whose source is OF. */
enum ended step_through_method(struct capture *c, struct watched *w, const struct call *call,
                               PyObject *function, struct shadow *of, const char *name);
/* Step through the method NAME of the first argument's class. */
enum ended step_special_method(struct capture *c, struct watched *w, const char *name,
                               const struct call *call);
/* Step through the special method for operator NAME, e.g. __add__ for "add". */
enum ended step_operator_method(struct capture *c, struct watched *w, const char *name,
                                const struct call *call);
/* Execute a call of a class. */
enum ended call_class(struct capture *c, struct watched *w, const struct call *call);
/* Step through the getter of a property or, if CALL has two arguments (the object and the new
 * value), through its setter. Breaks the graph if this is impossible. */
enum ended call_property(struct capture *c, struct watched *w, PyObject *name, PyObject *property,
                         const struct call *call);
/* Replace the object on top, of a class of the program, by its truth value. */
enum ended convert_object_to_bool(struct capture *c, struct watched *w);
enum ended call_super(struct capture *c, struct watched *w, const struct call *call);
/* Return the shadow of super(TYPE, SELF), or NULL. */
struct shadow *make_super_shadow(struct capture *c, struct shadow *of_type, struct shadow *of_self,
                                 PyObject *type, PyObject *self);
/* Return the shadow of method NAME of super(TYPE, SELF), or NULL. */
struct shadow *find_super_method(struct capture *c, PyObject *type, PyObject *self,
                                 struct shadow *of, PyObject *name);

/* ---- functions of attribute.c ---- */
/* Where find_attribute() has found an attribute of an object. */
enum found { FOUND_NOT, FOUND_OWN, FOUND_CLASS, FOUND_METHOD };
/* Find attribute NAME of OWNER, an object of a class of the program, without running code of the
 * program. *VALUE is a new reference, or NULL. */
enum found find_attribute(PyObject *owner, PyObject *name, PyObject **value);
/* Does reading NAME of OWNER raise AttributeError, without running code of the program? Adds
 * guards. */
bool lacks_attribute(struct capture *c, PyObject *owner, struct shadow *of, PyObject *name);
/* Replace the top SLOTS values by attribute NAME of OWNER. METHOD: the attribute will be called, so
 * push the NULL that a call expects, too. */
enum ended read_attribute(struct capture *c, struct watched *w, int slots, PyObject *owner,
                          struct shadow *of, PyObject *name, bool method);
enum ended read_super_attribute(struct capture *c, struct watched *w, PyObject *name, bool method);
enum ended import_module(struct capture *c, struct watched *w, PyObject *name);

/* ---- functions of store.c ---- */
/* Set the attribute (STEP '.') or item (STEP '[') KEY of the object of OF to VALUE, and add the
 * effect. OLD is the former value, or NULL. Drops COUNT values of the stack. */
enum ended set_value_at_place(struct capture *c, struct watched *w, int count, struct shadow *of,
                              char step, PyObject *key, PyObject *old, PyObject *value,
                              struct shadow *of_value);
enum ended store_attribute(struct capture *c, struct watched *w, PyObject *name);
/* Handle the program's `d[KEY] = VALUE`, where OF stands for the dict d, or for the globals. */
enum ended set_in_dict(struct capture *c, struct watched *w, int count, struct shadow *of,
                       PyObject *key, PyObject *value, struct shadow *of_value);

/* ---- functions of build.c ---- */
/* Execute an instruction that builds, reads or changes a container. */
enum ended execute_build(struct capture *c, struct watched *w, struct compat_action action);
/* Return the shadow of DICT with its keys, in order; NULL if they are unknown. The keys of a dict
 * that was read must be of type str. */
struct shadow *find_dict_shadow(struct capture *c, PyObject *dict, struct shadow *of);
/* If CALL only moves items of lists, tuples and dicts, run it. CALL is operator NAME, or method
 * NAME of the first argument. */
enum ended execute_move(struct capture *c, struct watched *w, const char *name,
                        const struct call *call);
/* Call a class of itertools whose iterators only move items. Returns ENDED_BEFORE if an argument is
 * unknown. */
enum ended call_itertools_class(struct capture *c, struct watched *w, const struct call *call);
/* Take the next item of the mirror of iterator OF. Returns the shadow of the item, or NULL. */
struct shadow *advance_mirror(struct capture *c, struct shadow *of);
/* Run CALL, an operator or method of a set that the watched call made. Returns ENDED_BEFORE if the
 * first argument is something else, or if another argument is unknown. */
enum ended call_set_operation(struct capture *c, struct watched *w, const struct call *call);
/* Call the method NAME of the first argument, a list, dict or set. */
enum ended call_method(struct capture *c, struct watched *w, const struct call *call,
                       const char *name);

/* ---- functions of iterate.c ---- */
/* Set *ITERATOR to iter(VALUE), a new reference, and *SHADOW to the shadow of this iterator.
 * Returns ENDED_NOT if this succeeds. */
enum ended make_iterator(struct capture *c, PyObject *value, struct shadow *of, PyObject **iterator,
                         struct shadow **shadow);
/* Replace the top SLOTS values by the next item of ITERATOR. If the iterator has ended, the object
 * `end` of dyntrace._polyfills takes the place of the item. */
enum ended iterator_push_next(struct capture *c, struct watched *w, PyObject *iterator,
                              struct shadow *of, int slots);
/* Unpack the object on top of the stack. BEHIND < 0: `a, b = value`, with BEFORE targets. Otherwise
 * `a, *b, c = value`, with BEFORE targets before the starred one and BEHIND targets after it. */
enum ended execute_unpack(struct capture *c, struct watched *w, Py_ssize_t before,
                          Py_ssize_t behind);
enum ended execute_iter_call(struct capture *c, struct watched *w, const struct call *call);
enum ended execute_reversed_call(struct capture *c, struct watched *w, const struct call *call);

/* ---- functions of known.c ---- */
/* Call a builtin, or a method of a built-in type. Leaves the outcome undecided (see
 * is_instruction_handled) if CALL is neither. */
enum ended call_known(struct capture *c, struct watched *w, const struct call *call);

/* ---- functions of operate.c ---- */
enum ended execute_operator(struct capture *c, struct watched *w, struct compat_action action);
/* Replace the value on top of the stack by its truth value. */
enum ended convert_to_bool(struct capture *c, struct watched *w);

/* ---- functions of invoke.c ---- */
extern PyMethodDef graph_break_methods[];
/* Execute a call with COUNT arguments. NAMES is the tuple of the names of the last arguments, or
 * NULL. ON_TOP: this tuple is on top of the stack. */
enum ended execute_call(struct capture *c, struct watched *w, int count, PyObject *names,
                        bool on_top);
/* Execute f(*args) or, with KEYWORDS, f(*args, **kwargs). The tuple and the dict are on the
 * stack. */
enum ended execute_starred_call(struct capture *c, struct watched *w, bool keywords);

/* ---- functions of step.c ---- */
/* Step W until its function ends or the graph breaks. */
enum ended watch_frame(struct capture *c, struct watched *w);
int watched_begin_frame(struct capture *c, struct watched *w, compat_frame *frame);
void watched_end_frame(struct capture *c, struct watched *w);
/* Prepare the frame of W so that CPython can continue it. Returns 1 if the frame must continue with
 * exception PENDING. */
int hand_frame_to_cpython(struct capture *c, struct watched *w, enum ended ended,
                          struct tracer_exception *pending);
/* The members `awaits`, `step` and `go_on` of struct watcher (tracer/evaluator/watcher.h). */
bool capture_expects_frame(struct capture *c, compat_frame *frame);
PyObject *capture_step(struct capture *c, PyThreadState *ts, compat_frame *frame);
PyObject *capture_go_on(PyThreadState *ts, compat_frame *frame, int throws);

/* ---- functions of capture.c ----
 *
 * The members `refuses` and `watch` of struct watcher (tracer/evaluator/watcher.h). */
bool capture_refuses(PyThreadState *ts, PyObject *callback, compat_frame *frame,
                     struct watched_answer *answer);
int capture_call(PyThreadState *ts, PyObject *callback, compat_frame *frame, PyObject *frame_state,
                 struct watched_answer *answer, struct watched_rest *rest);

/* ---- functions of module.c ---- */
extern PyTypeObject *capture_type;

#endif
