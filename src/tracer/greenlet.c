/* tracer/greenlet.c -- one thread, several stacks of frames: greenlet, gevent, eventlet, and other
 * libraries that switch them.
 *
 * A library that switches stacks replaces, in the thread state, the memory chunks that hold the
 * frames' data. So each event compares the current chunk with the chunk at the event before: two
 * loads and a compare. A stack is identified by its lowest chunk. Each stack has its own list of
 * open frames (struct open_frame). The list lies on the stack's C stack, which greenlet moves to
 * the heap while another stack runs. So we read a stack's list only while the stack runs. A
 * CONTROL_SWITCH word in the ring names the stack that the following words are about
 * (tracer/ring.c). */
#include "tracer/tracer.h"

#include <search.h>

/* Stands for the bottom of a stack without chunks: a greenlet that has run nothing but a
 * generator's frame. */
static const char no_chunk;

const void *tracer_stack_bottom(PyThreadState *ts)
{
    const _PyStackChunk *chunk = compat_chunk(ts);

    while (chunk && chunk->previous)
        chunk = chunk->previous;
    return chunk ? (const void *)chunk : &no_chunk;
}

static int compare_stack_bottoms(const void *a, const void *b)
{
    const char *x = ((const struct tracer_stack *)a)->bottom;
    const char *y = ((const struct tracer_stack *)b)->bottom;

    return (x > y) - (x < y);
}

/* Has a switch from thread T's stack nothing to save, because no code of ours is running there? */
static bool is_no_code_of_ours_running(const struct tracer *t)
{
    const struct stack_state *own = &t->own;
    const bool runs = own->capturing || own->replay || own->pending || own->replacement;

    return !runs && !own->quiet && !own->masked && own->callback == t->given;
}

/* Save what belongs to the running stack of thread T, before a switch to another stack. The
 * callback's reference dropped here is not the last one, because T->given holds the callback,
 * too. */
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

/* Make TO the running stack of thread T. If no code of ours is running on it, it gets the thread's
 * callback. */
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

/* The greenlet of STACK is gone: drop what it has left there. */
static void free_stack_of_dead_greenlet(struct tracer *t, struct tracer_stack *stack)
{
    PyObject *callback = stack->own.callback;

    stack->open = NULL;
    stack->own = (struct stack_state){0};
    if (stack->apart)
        t->apart -= callback != NULL;
    stack->apart = false;
    Py_XDECREF(callback);
}

static void forget_references_of_stack(const void *node, VISIT which, int depth)
{
    struct tracer_stack *stack = *(struct tracer_stack *const *)node;

    if (which == postorder || which == leaf) {
        stack->own = (struct stack_state){0};
        stack->apart = false;
    }
}

void tracer_forget_stack_references(struct tracer *t)
{
    twalk(t->stacks, forget_references_of_stack);
    t->apart = 0;
}

/* Note BOTTOM as the lowest chunk of the running stack, by which the stack is found. */
static void set_bottom_of_stack(struct tracer *t, const void *bottom)
{
    tdelete(t->here, &t->stacks, compare_stack_bottoms);
    t->here->bottom = bottom;
    /* if memory runs out here, the next switch does not find the stack and makes a new one */
    tsearch(t->here, &t->stacks, compare_stack_bottoms);
}

void tracer_claim_running_stack(struct tracer *t, PyThreadState *ts)
{
    const void *bottom = tracer_stack_bottom(ts);

    t->switches = ts;
    t->chunk = compat_chunk(ts);
    if (t->here->bottom != bottom)
        set_bottom_of_stack(t, bottom);
}

struct tracer_stack *tracer_make_stack(struct tracer *t, const void *bottom)
{
    struct tracer_stack *stack = calloc(1, sizeof *stack);

    if (!stack)
        return NULL;
    *stack = (struct tracer_stack){.bottom = bottom, .stack_low = t->stack_low};
    if (tsearch(stack, &t->stacks, compare_stack_bottoms))
        return stack;
    free(stack);
    return NULL;
}

void tracer_stacks_release(struct tracer *t)
{
    tdestroy(t->stacks, free);
}

static void handle_greenlet_switch(struct tracer *t, PyThreadState *ts, compat_frame *frame)
{
    struct tracer_stack key = {.bottom = tracer_stack_bottom(ts)};
    struct tracer_stack **found, *to;

    if (t->switches != ts) {
        /* do nothing while another interpreter, or a program that embeds Python, runs frames on top
         * of ours */
        if (t->open || !is_no_code_of_ours_running(t))
            return;
        t->switches = ts;
        set_bottom_of_stack(t, key.bottom);
        return;
    }
    if (t->here->bottom == key.bottom) /* no switch: the stack has grown or shrunk */
        return;
    found = tfind(&key, &t->stacks, compare_stack_bottoms);
    to = found ? *found : NULL;
    if (to && frame && compat_is_first_frame_on_stack(ts, frame))
        free_stack_of_dead_greenlet(
            t, to); /* a new stack of frames, at the address of a stack that is gone */
    if (!to && ((!t->open && is_no_code_of_ours_running(t)) || t->here->bottom == &no_chunk)) {
        /* take the former stack for the new one, because it has no open frame and has probably
         * ended */
        set_bottom_of_stack(t, key.bottom);
        return;
    }
    if (!to && !(to = tracer_make_stack(t, key.bottom))) {
        tracer_write_loss(
            "memory: no room to follow another greenlet; the callers of its frames are not true");
        return;
    }
    /* from now on do not continue deep recursion on our stack segments (tracer/stack.c) */
    if (!t->greenlets && t->stack_low == tracer_find_stack_limit(false))
        t->stack_low = to->stack_low = tracer_find_stack_limit(true);
    t->greenlets = true;
    save_stack_state(t);
    restore_stack_state(t, to);
    t->limit = 0; /* makes the next event write a CONTROL_SWITCH */
}

void tracer_find_running_stack(struct tracer *t, PyThreadState *ts, compat_frame *frame)
{
    int saved_errno = errno;

    t->chunk = compat_chunk(ts);
    handle_greenlet_switch(t, ts, frame);
    errno = saved_errno;
}
