/* tracer/resume/analyse.c -- see analyse.h.
 *
 * Steps are followed from the first one with everything that may be in each slot, and again wherever that becomes more. An
 * exception leads from each step of a span to its handler, with the lower part of the stack. */
#include "tracer/resume/analyse.h"

#include "tracer/tracer.h"

enum { MOST_SLOTS = 256 << 20 };

static const char SENSELESS[] = "its bytecode is none that CPython's compiler makes";
static const char TOO_LARGE[] = "it is too large";

struct walk {
    struct analysis *a;
    int32_t *queue; /* owned: steps to look at */
    bool *queued;   /* owned: by step */
    int32_t length;
    unsigned char *now; /* owned: what the slots are after a step */
};

void analysis_close(struct analysis *a)
{
    program_close(&a->program);
    free(a->depth);
    free(a->slots);
}

/* The slots may be w->now before STEP, with DEPTH on the stack. False: that makes no sense. */
static bool lead(struct walk *w, int32_t step, int32_t depth)
{
    struct analysis *a = w->a;
    unsigned char *slots;
    bool more;

    if (step >= a->program.count || depth < 0 || depth > a->width - a->variables ||
        (a->depth[step] >= 0 && a->depth[step] != depth))
        return false;
    slots = analysis_slots(a, step);
    more = a->depth[step] < 0;
    a->depth[step] = depth;
    for (int32_t i = 0; i < a->variables + depth; i++) {
        more |= (w->now[i] & ~slots[i]) != 0;
        slots[i] |= w->now[i];
    }
    if (more && !w->queued[step]) {
        w->queued[step] = true;
        w->queue[w->length++] = step;
    }
    return true;
}

/* What handles exceptions of STEP; NULL: nothing does. */
static const struct span *span_of(const struct program *p, int32_t step)
{
    int32_t low = 0, high = p->span_count;

    while (low < high) { /* the first that ends behind it */
        int32_t middle = (low + high) / 2;
        if (p->spans[middle].end <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low == p->span_count || p->spans[low].first > step ? NULL : &p->spans[low];
}

/* STEP raises. */
static bool raises(struct walk *w, int32_t step)
{
    const struct span *span = span_of(&w->a->program, step);
    int32_t depth;

    if (!span)
        return true;
    depth = (int32_t)(span->depth >> 1);
    if (depth > w->a->depth[step] || depth + 2 > w->a->width - w->a->variables)
        return false;
    memcpy(w->now, analysis_slots(w->a, step), (size_t)w->a->width);
    for (uint32_t i = 0; i <= (span->depth & 1); i++)
        w->now[w->a->variables + depth++] = SLOT_HANDLER;
    return lead(w, span->to, depth);
}

/* What STEP does to the variables, TOP being what was on the stack. */
static void change_variable(struct walk *w, const struct step *step, unsigned char top, unsigned char *pushed)
{
    unsigned char *variable = &w->now[step->arg];

    switch (step->op) {
    case MAKE_CELL:
        *variable = SLOT_CELL;
        break;
    case STORE_FAST:
        *variable = top & (SLOT_VALUE | SLOT_NULL | SLOT_CELL) ? top & (SLOT_VALUE | SLOT_NULL | SLOT_CELL) : SLOT_VALUE;
        break;
    case DELETE_FAST:
        *variable = SLOT_NULL;
        break;
#ifdef LOAD_FAST_AND_CLEAR
    case LOAD_FAST_AND_CLEAR:
        *pushed = *variable;
        *variable = SLOT_NULL;
        break;
#endif
    case LOAD_FAST:
        if (!(*variable & SLOT_CELL))
            *variable = SLOT_VALUE;
    }
}

/* Follow STEP to where it leads, JUMPing or not. */
static bool follow(struct walk *w, int32_t at, bool jump)
{
    const struct step *step = &w->a->program.steps[at];
    int32_t before = w->a->depth[at], effect = PyCompile_OpcodeStackEffectWithJump(step->op, (int)step->arg, jump);
    unsigned char *stack = w->now + w->a->variables;
    int64_t depth = (int64_t)before + effect;

    if (effect == INT_MAX || depth < 0 || depth > w->a->width - w->a->variables)
        return false;
    memcpy(w->now, analysis_slots(w->a, at), (size_t)w->a->width);
    for (int64_t i = before; i < depth; i++)
        stack[i] = SLOT_VALUE;
    if (!compat_correct(step->op, step->arg, stack, before, (int)depth))
        return false;
    if (compat_has_variable(step->op) && (before || effect >= 0))
        change_variable(w, step, before ? analysis_slots(w->a, at)[w->a->variables + before - 1] : 0,
                        effect > 0 ? &stack[depth - 1] : NULL);
    return lead(w, jump ? step->to : at + 1, (int32_t)depth);
}

/* Arguments have values, free variables cells. */
static void begin(struct walk *w)
{
    const PyCodeObject *code = w->a->program.code;
    int arguments = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) +
                    !!(code->co_flags & CO_VARKEYWORDS);

    for (int32_t i = 0; i < w->a->variables; i++)
        w->now[i] = i < arguments ? SLOT_VALUE : _PyLocals_GetKind(code->co_localspluskinds, i) & CO_FAST_FREE ? SLOT_CELL : SLOT_NULL;
}

static bool walk(struct walk *w)
{
    begin(w);
    if (!lead(w, 0, 0))
        return false;
    while (w->length) {
        int32_t at = w->queue[--w->length];
        const struct step *step = &w->a->program.steps[at];
        w->queued[at] = false;
        if (!raises(w, at) || (step->to >= 0 && !follow(w, at, true)) ||
            (compat_falls_through(step->op) && !follow(w, at, false)))
            return false;
    }
    return true;
}

static const char *refuses(PyCodeObject *code)
{
    if (code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))
        return "it is a coroutine, which a call cannot carry on";
    if (code->co_flags & CO_GENERATOR)
        return "it is a generator, which a call cannot carry on";
    if ((code->co_flags & (CO_OPTIMIZED | CO_NEWLOCALS)) != (CO_OPTIMIZED | CO_NEWLOCALS))
        return "its variables lie in a mapping: it is a module, a class body or the like";
    return NULL;
}

int analysis_open(struct analysis *a, PyCodeObject *code, const char **why)
{
    struct program *p = &a->program;
    struct walk w = {.a = a};
    int status;

    *a = (struct analysis){.begun = -1};
    *why = refuses(code);
    if (!*why && (int64_t)code->co_nlocalsplus + code->co_stacksize > MOST_SLOTS)
        *why = TOO_LARGE;
    if (*why)
        return 1;
    a->variables = code->co_nlocalsplus;
    a->width = code->co_nlocalsplus + code->co_stacksize;
    status = program_read(p, code);
    *why = status > 0 ? SENSELESS : NULL;
    if (!status && (uint64_t)p->count * (uint64_t)a->width > MOST_SLOTS) {
        *why = TOO_LARGE;
        status = 1;
    }
    if (status)
        return status;
    a->depth = malloc(sizeof *a->depth * (size_t)p->count);
    a->slots = calloc((size_t)p->count, (size_t)a->width + 1);
    w.queue = malloc(sizeof *w.queue * (size_t)p->count);
    w.queued = calloc((size_t)p->count, 1);
    w.now = calloc((size_t)a->width + 1, 1);
    if (!a->depth || !a->slots || !w.queue || !w.queued || !w.now) {
        PyErr_NoMemory();
        status = -1;
    } else {
        memset(a->depth, -1, sizeof *a->depth * (size_t)p->count);
        while (a->begun + 1 < p->count && p->steps[a->begun + 1].op != RESUME)
            a->begun++;
        a->begun++;
        if (a->begun >= p->count || !walk(&w)) {
            *why = SENSELESS;
            status = 1;
        }
    }
    free(w.queue);
    free(w.queued);
    free(w.now);
    return status;
}

int analysis_from(struct analysis *a, int32_t first)
{
    const struct program *p = &a->program;
    int32_t *queue = malloc(sizeof *queue * (3 * (size_t)p->count + 1)), length = 0;
    bool *seen = calloc((size_t)p->count, sizeof *seen);

    if (!queue || !seen) {
        free(queue);
        free(seen);
        PyErr_NoMemory();
        return -1;
    }
    for (queue[length++] = first; length;) {
        int32_t at = queue[--length];
        const struct span *span = span_of(p, at);
        if (seen[at])
            continue;
        seen[at] = true;
        if (span)
            queue[length++] = span->to;
        if (p->steps[at].to >= 0)
            queue[length++] = p->steps[at].to;
        if (compat_falls_through(p->steps[at].op))
            queue[length++] = at + 1;
    }
    for (int32_t i = 0; i < p->count; i++)
        a->depth[i] = seen[i] ? a->depth[i] : -1;
    free(queue);
    free(seen);
    return 0;
}

const char *analysis_forbids(const struct analysis *a, int32_t step)
{
    const struct step *steps = a->program.steps;
    const unsigned char *slots = analysis_slots(a, step), *stack = slots + a->variables;

    if (!steps[step].starts)
        return "it is in the midst of an instruction";
    if (a->depth[step] < 0)
        return "it is never reached";
    if (step <= a->begun)
        return "variables are still being set up there";
    for (int32_t i = 0; i < a->depth[step]; i++)
        if (stack[i] & SLOT_HANDLER)
            return "it is inside an except handler, where CPython keeps the exception on the stack";
    for (int32_t i = 0; i < a->variables; i++)
        if (slots[i] & SLOT_CELL && slots[i] != SLOT_CELL)
            return "a comprehension's variable is being set up there, or not";
    return compat_inseparable(steps[step - 1].op, steps[step].op);
}
