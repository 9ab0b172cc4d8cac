/* tracer/greenlet.c -- one thread, several stacks of frames: greenlet, gevent, eventlet, and other
 * libraries that switch them.
 *
 * A library that switches stacks replaces, in the thread state, the memory chunks that hold the
 * frames' data. So each event compares the current chunk with that of the event before: two loads
 * and a compare. A stack is identified by its lowest chunk. Each stack has its own list of open
 * frames (struct open_frame). The list lies on the stack's C stack, which greenlet moves to the
 * heap while another stack runs. So a list is read only while its stack runs. A CONTROL_SWITCH word
 * in the ring names the stack that the following words are about (tracer/ring.c). */
#include "tracer/tracer.h"

#include <search.h>

/* The bottom of a stack without chunks: a greenlet that has run nothing but a generator's frame. */
static const char no_chunk;

const void *tracer_stack_bottom(PyThreadState *ts)
{
    const _PyStackChunk *chunk = compat_chunk(ts);

    while (chunk && chunk->previous)
        chunk = chunk->previous;
    return chunk ? (const void *)chunk : &no_chunk;
}

static int by_bottom(const void *a, const void *b)
{
    const char *x = ((const struct tracer_stack *)a)->bottom;
    const char *y = ((const struct tracer_stack *)b)->bottom;

    return (x > y) - (x < y);
}

/* Is no code of ours running on T's stack, so that a switch has nothing to save? */
static bool is_idle(const struct tracer *t)
{
    const struct stack_state *own = &t->own;
    const bool runs = own->capturing || own->replay || own->pending || own->replacement;

    return !runs && !own->quiet && !own->masked && own->callback == t->given;
}

/* Save the state of T's running stack before a switch to another. No last reference is dropped
 * here, because T->given holds the callback, too. */
static void save_stack_state(struct tracer *t)
{
    struct tracer_stack *here = t->here;

    here->open = t->open;
    here->stack_low = t->stack_low;
    here->apart = t->callback != t->given;
    if (here->apart)
        t->apart += t->callback != NULL;
    else
        Py_CLEAR(t->callback);
    here->own = t->own;
}

/* Switch T to the stack TO. If none of our code is active on TO, TO gets the thread's callback. */
static void restore_stack_state(struct tracer *t, struct tracer_stack *to)
{
    t->here = to;
    t->open = to->open;
    t->stack_low = to->stack_low;
    t->own = to->own;
    to->own = (struct stack_state){0};
    if (to->apart) {
        t->apart -= t->callback != NULL;
    } else {
        t->callback = Py_XNewRef(t->given);
        t->front = t->given_front;
    }
    to->apart = false;
}

/* Clear STACK, whose greenlet is gone, and drop the state that an unfinished greenlet left. */
static void clear_stack(struct tracer *t, struct tracer_stack *stack)
{
    PyObject *callback = stack->own.callback;

    stack->open = NULL;
    stack->own = (struct stack_state){0};
    if (stack->apart)
        t->apart -= callback != NULL;
    stack->apart = false;
    Py_XDECREF(callback);
}

static void forget_state(const void *node, VISIT which, int depth)
{
    struct tracer_stack *stack = *(struct tracer_stack *const *)node;

    if (which == postorder || which == leaf) {
        stack->own = (struct stack_state){0};
        stack->apart = false;
    }
}

void tracer_stacks_forget(struct tracer *t)
{
    twalk(t->stacks, forget_state);
    t->apart = 0;
}

/* Set the lowest chunk of the running stack to BOTTOM. */
static void set_bottom(struct tracer *t, const void *bottom)
{
    tdelete(t->here, &t->stacks, by_bottom);
    t->here->bottom = bottom;
    /* without memory the stack is not found at the next switch, and a new one is made */
    tsearch(t->here, &t->stacks, by_bottom);
}

void tracer_stack_claim(struct tracer *t, PyThreadState *ts)
{
    const void *bottom = tracer_stack_bottom(ts);

    t->switches = ts;
    t->chunk = compat_chunk(ts);
    if (t->here->bottom != bottom)
        set_bottom(t, bottom);
}

struct tracer_stack *tracer_stack_new(struct tracer *t, const void *bottom)
{
    struct tracer_stack *stack = calloc(1, sizeof *stack);

    if (!stack)
        return NULL;
    *stack = (struct tracer_stack){.bottom = bottom, .stack_low = t->stack_low};
    if (tsearch(stack, &t->stacks, by_bottom))
        return stack;
    free(stack);
    return NULL;
}

void tracer_stacks_release(struct tracer *t)
{
    tdestroy(t->stacks, free);
}

static void switched(struct tracer *t, PyThreadState *ts, compat_frame *frame)
{
    struct tracer_stack key = {.bottom = tracer_stack_bottom(ts)};
    struct tracer_stack **found, *to;

    if (t->switches != ts) {
        /* another interpreter, or the program that embeds Python, runs frames on top of ours */
        if (t->open || !is_idle(t))
            return;
        t->switches = ts;
        set_bottom(t, key.bottom);
        return;
    }
    if (t->here->bottom == key.bottom) /* the same stack has grown or shrunk */
        return;
    found = tfind(&key, &t->stacks, by_bottom);
    to = found ? *found : NULL;
    if (to && frame && compat_is_first(ts, frame))
        clear_stack(t, to); /* a new stack has the address of a former one, which is gone */
    if (!to && ((!t->open && is_idle(t)) || t->here->bottom == &no_chunk)) {
        /* the former stack has no open frame, so it has probably ended */
        set_bottom(t, key.bottom);
        return;
    }
    if (!to && !(to = tracer_stack_new(t, key.bottom))) {
        tracer_loss(
            "memory: no room to follow another greenlet; the callers of its frames are not true");
        return;
    }
    /* from now on do not continue deep recursion on segments of our own (tracer/stack.c) */
    if (!t->greenlets && t->stack_low == tracer_stack_low(false))
        t->stack_low = to->stack_low = tracer_stack_low(true);
    t->greenlets = true;
    save_stack_state(t);
    restore_stack_state(t, to);
    t->limit = 0; /* the next event makes room for a CONTROL_SWITCH */
}

void tracer_switched(struct tracer *t, PyThreadState *ts, compat_frame *frame)
{
    int saved_errno = errno;

    t->chunk = compat_chunk(ts);
    switched(t, ts, frame);
    errno = saved_errno;
}
