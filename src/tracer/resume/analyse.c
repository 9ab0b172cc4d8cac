/* tracer/resume/analyse.c -- what the stack and the variables hold before each step of a program.
 *
 * Steps are followed from the first one with everything that may be in each slot, and again
 * wherever that becomes more. An exception leads from each step of a span to its handler, with the
 * lower part of the stack. */
#include "tracer/resume/program.h"

enum { MOST_SLOTS = 256 << 20 };

/* The slots as before STEP, to be changed. */
static unsigned char *slots_now(const struct program *p, int32_t step)
{
    return memcpy(program_slots(p, p->count), program_slots(p, step), (size_t)p->width);
}

/* The slots may be NOW before STEP, with DEPTH on the stack. False: that makes no sense. */
static bool lead(struct program *p, const unsigned char *now, int32_t step, int32_t depth)
{
    unsigned char *slots;
    bool more;

    if (step >= p->count || (p->depth[step] >= 0 && p->depth[step] != depth))
        return false;
    slots = program_slots(p, step);
    more = p->depth[step] < 0;
    p->depth[step] = depth;
    for (int32_t i = 0; i < p->variables + depth; i++) {
        more |= (now[i] & ~slots[i]) != 0;
        slots[i] |= now[i];
    }
    p->steps[step].due |= more;
    return true;
}

/* STEP raises. */
static bool raises(struct program *p, int32_t step)
{
    if (p->steps[step].span < 0)
        return true;
    const struct span *span = &p->spans[p->steps[step].span];
    const int32_t depth = (int32_t)(span->depth >> 1), pushed = 1 + (int32_t)(span->depth & 1);
    unsigned char *now;

    if (depth > p->depth[step] || depth + pushed > p->width - p->variables)
        return false;
    now = slots_now(p, step);
    memset(now + p->variables + depth, SLOT_HANDLER, (size_t)pushed);
    return lead(p, now, span->to, depth + pushed);
}

/* Follow STEP to where it leads, JUMPing or not. */
static bool follow(struct program *p, int32_t at, bool jump)
{
    const struct step *step = &p->steps[at];
    int64_t depth =
        (int64_t)p->depth[at] + PyCompile_OpcodeStackEffectWithJump(step->op, (int)step->arg, jump);
    unsigned char *now = slots_now(p, at);

    return depth >= 0 && depth <= p->width - p->variables &&
           compat_run(step->op, step->arg, now, now + p->variables, p->depth[at], (int)depth) &&
           lead(p, now, jump ? step->to : at + 1, (int32_t)depth);
}

static bool walk(struct program *p)
{
    bool again = true;

    while (again) {
        again = false;
        for (int32_t i = 0; i < p->count; i++) {
            struct step *step = &p->steps[i];
            if (!step->due)
                continue;
            again = true;
            step->due = false;
            if (!raises(p, i) || (step->to >= 0 && !follow(p, i, true)) ||
                (!compat_ops[step->op].ends && !follow(p, i, false)))
                return false;
        }
    }
    return true;
}

/* Arguments have values, free variables cells. */
static bool walk_all(struct program *p, int32_t first)
{
    const PyCodeObject *code = p->code;
    const int arguments = code->co_argcount + code->co_kwonlyargcount +
                          !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
    unsigned char *now = slots_now(p, 0);
    int32_t depth;

    memset(p->depth, -1, sizeof *p->depth * (size_t)p->count);
    for (int32_t i = 0; i < p->variables; i++)
        now[i] = i < arguments                                                   ? SLOT_VALUE
                 : _PyLocals_GetKind(code->co_localspluskinds, i) & CO_FAST_FREE ? SLOT_CELL
                                                                                 : SLOT_NULL;
    if (!lead(p, now, 0, 0) || !walk(p))
        return false;
    if (!first)
        return true;
    depth = p->depth[first];
    memset(p->depth, -1, sizeof *p->depth * (size_t)p->count);
    return lead(p, program_slots(p, first), first, depth) && walk(p);
}

int program_open(struct program *p, PyCodeObject *code, int32_t first)
{
    *p = (struct program){.code = code};
    if (((int64_t)code->co_nlocalsplus + code->co_stacksize) * (Py_SIZE(code) + 1) > MOST_SLOTS) {
        PyErr_SetString(PyExc_ValueError, "it is too large");
        return -1;
    }
    if (program_read(p, code))
        return -1;
    p->depth = malloc(sizeof *p->depth * (size_t)p->count);
    p->slots = calloc((size_t)p->count + 1, (size_t)p->width + 1);
    if (!p->depth || !p->slots) {
        PyErr_NoMemory();
        return -1;
    }
    return first >= 0 && first < p->count && walk_all(p, first) ? 0 : program_is_none();
}
