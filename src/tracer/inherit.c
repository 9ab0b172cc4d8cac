/* tracer/inherit.c -- frames that were running when `dyntrace attach` began.
 *
 * Runs in: the traced process; everything here is a slow path.
 *
 * The hook was not called for these frames, so it notices neither their begin nor their end. Each
 * gets an ENTER of the kind inherited, and a struct open_frame on the heap. This struct is linked
 * into the same list as the open_frames on the C stack:
 *
 *     t->open -> step() -> [train()] -> main() -> [<module>]     [inherited frame]
 *                  OPEN_BASE                OPEN_BASE
 *
 * An inherited frame has returned if it is not among the callers of a frame that begins later. So
 * while an inherited frame is the innermost open frame of a thread, `limit` is 0, and each event
 * takes the slow path, where tracer_remove_returned() looks for the frame among those that run. If
 * it is not there, the trace has the time of this event as its end, with the exit 'abandoned'. */
#include "tracer/hooks.h"

struct inherited {
    struct open_frame open;
    const compat_frame *frame;
    const PyCodeObject *code; /* borrowed: only its address is compared */
    struct inherited *next;   /* next in the list tracer.found */
};

/* A running frame that should be recorded as inherited. */
struct caller {
    compat_frame *frame;
    uint32_t code; /* code id */
};

static compat_frame *find_innermost_frame(PyThreadState *ts)
{
    return compat_find_python_frame(compat_current_frame(ts));
}

/* Does the frame of FOUND still run on this thread? A later frame may have the same address, so the
 * code is compared, too. */
static bool is_inherited_frame_running(const struct inherited *found)
{
    compat_frame *frame = find_innermost_frame(PyThreadState_GET());

    while (frame && frame != found->frame)
        frame = compat_find_python_frame(frame->previous);
    return frame && compat_get_code(frame) == found->code;
}

bool tracer_remove_returned(struct tracer *t)
{
    bool any = false;

    while (tracer_is_inherited(t->open) &&
           !is_inherited_frame_running((struct inherited *)t->open)) {
        t->open = t->open->outer;
        any = true;
    }
    return any;
}

void tracer_inherited_release(struct tracer *t)
{
    while (t->found) {
        struct inherited *next = t->found->next;
        free(t->found);
        t->found = next;
    }
}

/* Remove inherited frames of an earlier session from the open frames of thread T. */
static void remove_old_inherited(struct tracer *t)
{
    struct open_frame **link = &t->open;

    while (*link) {
        if (tracer_is_inherited(*link)) {
            *link = (*link)->outer;
            continue;
        }
        (*link)->code &= ~OPEN_BASE;
        link = &(*link)->outer;
    }
    if (!t->greenlets) /* with greenlets, stacks that wait may still link to inherited frames */
        tracer_inherited_release(t);
}

/* Store the frames of thread state TS that should be recorded in CALLERS, innermost first, at most
 * MOST. Returns their number. */
static size_t find_callers(PyThreadState *ts, struct caller *callers, size_t most)
{
    size_t count = 0;

    for (compat_frame *frame = find_innermost_frame(ts); frame && count < most;
         frame = compat_find_python_frame(frame->previous)) {
        const uintptr_t mark = tracer_hooks.mark_code(compat_get_code(frame));
        if (!(mark & CODE_SKIP))
            callers[count++] = (struct caller){frame, (uint32_t)(mark >> CODE_SHIFT)};
    }
    return count;
}

/* Insert an inherited frame for CALLER before the frame at *LINK. Returns the link behind the new
 * frame; LINK if memory ran out. */
static struct open_frame **insert_inherited_frame(struct tracer *t, struct open_frame **link,
                                                  const struct caller *caller)
{
    struct inherited *found = malloc(sizeof *found);

    if (!found)
        return link;
    *found = (struct inherited){.open = {.outer = *link, .code = caller->code | OPEN_FOUND},
                                .frame = caller->frame,
                                .code = compat_get_code(caller->frame),
                                .next = t->found};
    t->found = found;
    *link = &found->open;
    return &found->open.outer;
}

/* Return the index of the first of the CALLERS, from index AT on, that runs CODE; COUNT if there is
 * none. */
static size_t find_caller(const struct caller *callers, size_t at, size_t count, uint32_t code)
{
    while (at < count && callers[at].code != (code & ~OPEN_BITS))
        at++;
    return at;
}

/* Insert inherited frames for CALLERS into the open frames of thread T. An open frame of an earlier
 * session may still run: if a caller has the same code, it is taken for this frame and gets no
 * inherited frame. An open frame without such a caller is about to end. */
static void insert_callers(struct tracer *t, const struct caller *callers, size_t count)
{
    struct open_frame **link = &t->open;
    size_t at = 0;

    for (; *link; link = &(*link)->outer) {
        size_t match = find_caller(callers, at, count, (*link)->code);
        if (match == count)
            continue;
        while (at < match)
            link = insert_inherited_frame(t, link, &callers[at++]);
        at++;
    }
    while (at < count)
        link = insert_inherited_frame(t, link, &callers[at++]);
    for (struct open_frame *open = t->open; open; open = open->outer)
        if (tracer_is_inherited(open->outer))
            open->code |= OPEN_BASE;
}

void tracer_insert_running_frames(struct tracer *t, PyThreadState *ts)
{
    size_t most = 0;
    struct caller *callers;

    remove_old_inherited(t);
    for (compat_frame *frame = find_innermost_frame(ts); frame;
         frame = compat_find_python_frame(frame->previous))
        most++;
    callers = most ? calloc(most, sizeof *callers) : NULL;
    if (!callers)
        return;
    if (t->switches != ts)
        tracer_claim_running_stack(t, ts);
    insert_callers(t, callers, find_callers(ts, callers, most));
    free(callers);
}
