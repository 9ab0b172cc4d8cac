/* tracer/resume/analyse.c -- finds out which kinds of values the stack and the variables may hold
 * before each step of a bytecode program.
 *
 * A step is an instruction (program.h). The walk starts at the first step. Each step passes the
 * kinds of values in its slots (enum compat_slot) on to the steps that may follow. A step whose
 * slots may then hold more kinds than before is visited again. An exception leads from each step of
 * a span to the span's handler, with the lower part of the stack. */
#include "tracer/resume/program.h"

enum { MOST_SLOTS = 256 << 20 };

/* Copy the kinds of the slots before STEP to the working row, which the caller may change, and
 * return it. */
static unsigned char *copy_slot_kinds(const struct program *p, int32_t step)
{
    return memcpy(program_slots_before_step(p, p->count), program_slots_before_step(p, step),
                  (size_t)p->width);
}

/* Add the kinds of NOW to those that the slots may hold before STEP, where the stack has DEPTH
 * slots. Returns false for invalid bytecode. */
static bool merge_slot_kinds(struct program *p, const unsigned char *now, int32_t step,
                             int32_t depth)
{
    unsigned char *slots;
    bool more;

    if (step >= p->count || (p->depth[step] >= 0 && p->depth[step] != depth))
        return false;
    slots = program_slots_before_step(p, step);
    more = p->depth[step] < 0;
    p->depth[step] = depth;
    for (int32_t i = 0; i < p->variables + depth; i++) {
        more |= (now[i] & ~slots[i]) != 0;
        slots[i] |= now[i];
    }
    p->steps[step].due |= more;
    return true;
}

/* STEP may raise: add what its slots may hold to what they may hold before its exception handler.
 * Returns false for invalid bytecode. */
static bool propagate_slots_to_handler(struct program *p, int32_t step)
{
    const int32_t number = p->steps[step].span;

    if (number < 0)
        return true;
    const struct span *span = &p->spans[number];
    const int32_t depth = (int32_t)(span->depth >> 1);
    const int32_t pushed = 1 + (int32_t)(span->depth & 1);
    unsigned char *now;

    if (depth > p->depth[step] || depth + pushed > p->width - p->variables)
        return false;
    now = copy_slot_kinds(p, step);
    memset(now + p->variables + depth, SLOT_HANDLER, (size_t)pushed);
    return merge_slot_kinds(p, now, span->to, depth + pushed);
}

/* Add what the slots may hold after step AT to what they may hold before the next step; with JUMP,
 * before the step to which it jumps. Returns false for invalid bytecode. */
static bool propagate_slots_to_next_step(struct program *p, int32_t at, bool jump)
{
    const struct step *step = &p->steps[at];
    const int32_t before = p->depth[at];
    const int effect = PyCompile_OpcodeStackEffectWithJump(step->op, (int)step->arg, jump);
    const int64_t depth = (int64_t)before + effect;
    unsigned char *now = copy_slot_kinds(p, at);
    unsigned char *stack = now + p->variables;

    if (depth < 0 || depth > p->width - p->variables)
        return false;
    if (!compat_update_slots_for_instruction(step->op, step->arg, now, stack, before, (int)depth))
        return false;
    return merge_slot_kinds(p, now, jump ? step->to : at + 1, (int32_t)depth);
}

/* Add what the slots may hold after step AT to what they may hold before all steps that may come
 * next. */
static bool propagate_slots_to_successors(struct program *p, int32_t at)
{
    const struct step *step = &p->steps[at];

    if (!propagate_slots_to_handler(p, at))
        return false;
    if (step->to >= 0 && !propagate_slots_to_next_step(p, at, true))
        return false;
    return compat_ops[step->op].ends || propagate_slots_to_next_step(p, at, false);
}

static bool analyse_reachable_steps(struct program *p)
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
            if (!propagate_slots_to_successors(p, i))
                return false;
        }
    }
    return true;
}

/* Return what variable number I of CODE holds at the beginning: an argument has a value, a free
 * variable has a cell. */
static unsigned char kind_of_slot_at_start(const PyCodeObject *code, int32_t i)
{
    if (i < compat_count_arguments(code))
        return SLOT_VALUE;
    return _PyLocals_GetKind(code->co_localspluskinds, i) & CO_FAST_FREE ? SLOT_CELL : SLOT_NULL;
}

/* Follow all steps from the beginning. If FIRST is not 0, then drop the results and follow all
 * steps from FIRST instead. */
static bool analyse_from_entry(struct program *p, int32_t first)
{
    unsigned char *now = copy_slot_kinds(p, 0);
    int32_t depth;

    memset(p->depth, -1, sizeof *p->depth * (size_t)p->count);
    for (int32_t i = 0; i < p->variables; i++)
        now[i] = kind_of_slot_at_start(p->code, i);
    if (!merge_slot_kinds(p, now, 0, 0) || !analyse_reachable_steps(p))
        return false;
    if (!first)
        return true;
    depth = p->depth[first];
    memset(p->depth, -1, sizeof *p->depth * (size_t)p->count);
    return merge_slot_kinds(p, program_slots_before_step(p, first), first, depth) &&
           analyse_reachable_steps(p);
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
    return first >= 0 && first < p->count && analyse_from_entry(p, first) ? 0
                                                                          : program_raise_invalid();
}
