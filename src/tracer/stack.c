/* tracer/stack.c -- deep recursion without overflowing the C stack.
 *
 * Without a hook a Python-to-Python call uses no C stack. With a hook each call takes about half a
 * kilobyte, and a program that recurses 50,000 deep would crash only because of us. So the hook
 * compares its own frame address with a limit. When the lower half of the thread's stack is
 * reached, the evaluator continues on a new segment of 64 MB of address space, whose memory the
 * kernel gives out as it is used.
 *
 * A segment's lowest part is a margin for C code that recurses on its own below the last Python
 * frame (repr of nested lists, the compiler, pickle). A thread keeps one unused segment, so that a
 * loop that crosses the boundary does not map one each time. All segments together may take half of
 * the machine's memory; a recursion that needs more gets CPython's own RecursionError.
 *
 * Without a GIL: each segment belongs to one thread, and the count of all segments is atomic. */
#include "tracer/tracer.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEGMENT_BYTES = 64 << 20, SEGMENT_MARGIN = 8 << 20, HUGE_STACK = 100 << 20 };

/* tracer_call_on_stack(ts, frame, throwflag, top, evaluate): call evaluate(ts, frame, throwflag)
 * with the stack pointer at `top`. The frame pointer still points to the old stack, for the return
 * and for unwinders. */
PyObject *tracer_call_on_stack(PyThreadState *ts, compat_frame *frame, int throwflag, char *top,
                               _PyFrameEvalFunction evaluate) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".globl tracer_call_on_stack\n"
        ".hidden tracer_call_on_stack\n"
        ".type tracer_call_on_stack, %function\n"
        "tracer_call_on_stack:\n"
        "    .cfi_startproc\n"
#if defined __x86_64__
        "    endbr64\n"
        "    push %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    mov %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    mov %rcx, %rsp\n"
        "    call *%r8\n"
        "    mov %rbp, %rsp\n"
        "    pop %rbp\n"
        "    .cfi_def_cfa %rsp, 8\n"
#elif defined __aarch64__
        "    hint #34\n" /* bti c */
        "    stp x29, x30, [sp, #-16]!\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset x29, -16\n"
        "    .cfi_offset x30, -8\n"
        "    mov x29, sp\n"
        "    .cfi_def_cfa_register x29\n"
        "    mov sp, x3\n"
        "    blr x4\n"
        "    mov sp, x29\n"
        "    .cfi_def_cfa_register sp\n"
        "    ldp x29, x30, [sp], #16\n"
        "    .cfi_restore x29\n"
        "    .cfi_restore x30\n"
        "    .cfi_def_cfa_offset 0\n"
#else
    #error \
        "dyntrace does not know this processor: say here how a function is called on another stack"
#endif
        "    ret\n"
        "    .cfi_endproc\n"
        ".size tracer_call_on_stack, . - tracer_call_on_stack\n");

static atomic_size_t segments; /* number of stack segments that all threads use */

static size_t most_stack_segments(void)
{
    static size_t max;

    if (!max)
        max =
            (size_t)sysconf(_SC_PHYS_PAGES) / 2 * (size_t)sysconf(_SC_PAGESIZE) / SEGMENT_BYTES + 1;
    return max;
}

/* Map a stack segment and return its lowest address. Returns NULL without memory, or if too many
 * segments are in use. */
static char *map_stack_segment(void)
{
    char *base = segments < most_stack_segments()
                     ? mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0)
                     : MAP_FAILED;

    if (base == MAP_FAILED)
        return NULL;
    mprotect(base, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
    segments++;
    return base;
}

static void unmap_stack_segment(char *base)
{
    segments--;
    munmap(base, SEGMENT_BYTES);
}

PyObject *tracer_evaluate_on_new_stack(struct tracer *t, PyThreadState *ts, compat_frame *frame,
                                       int throwflag, _PyFrameEvalFunction evaluate)
{
    char *segment = t->greenlets ? NULL : t->spare;
    struct compat_bounds bounds;
    PyObject *result;

    if (segment)
        t->spare = NULL;
    /* no segments with greenlets, which copy everything between two addresses of the C stack */
    else if (!t->greenlets)
        segment = map_stack_segment();
    if (!segment) {
        int remaining = compat_recursion_remaining(ts);
        compat_recursion_remaining(ts) = 0;
        result = evaluate(ts, frame, throwflag);
        compat_recursion_remaining(ts) = remaining;
        return result;
    }
    t->stack_low = segment + SEGMENT_MARGIN;
    bounds = compat_set_stack_bounds(ts, segment, segment + SEGMENT_BYTES);
    result = tracer_call_on_stack(ts, frame, throwflag, segment + SEGMENT_BYTES - 64, evaluate);
    /* Keep the segment if a greenlet has begun on it, because the greenlet may go on there.
     * greenlet does not switch the bounds, so they must be low enough for both stacks; CPython then
     * no longer stops C code that overflows the old stack. */
    compat_restore_stack_bounds(ts, bounds, t->greenlets);
    if (t->greenlets)
        return result;
    if (t->spare)
        unmap_stack_segment(segment);
    else
        t->spare = segment;
    return result;
}

void tracer_return_to_thread_stack(struct tracer *t, char *low)
{
    const bool is_own = t->greenlets && low == tracer_find_stack_limit(false);

    t->stack_low = is_own ? tracer_find_stack_limit(true) : low;
}

/* A thread has ended: free its spare stack segment. */
void tracer_free_spare_stack(struct tracer *t)
{
    if (t->spare)
        unmap_stack_segment(t->spare);
    t->spare = NULL;
}

/* Return the address below which half of the calling thread's C stack is used; with MOST, nearly
 * all of it. Returns NULL if the stack's bounds are not known, so that the thread never switches
 * stacks. */
char *tracer_find_stack_limit(bool most)
{
    const size_t part = most ? 16 : 2;
    pthread_attr_t attributes;
    void *base = NULL;
    size_t bytes = 0;

    if (pthread_getattr_np(pthread_self(), &attributes))
        return NULL;
    if (pthread_attr_getstack(&attributes, &base, &bytes))
        base = NULL;
    pthread_attr_destroy(&attributes);
    if (!base)
        return NULL;
    /* If the main thread's stack is "unlimited", other mappings may lie in its lower part, so only
     * the top is certain. */
    if (bytes > HUGE_STACK)
        return (char *)base + bytes - HUGE_STACK + HUGE_STACK / part;
    return (char *)base + bytes / part;
}
