/* tracer/gap.c -- a thread goes on while nothing of it can be written. See ring.h.
 *
 * Runs in: the traced process; everything here is a slow path.
 *
 * When the collector takes nothing for --max-stall, or the filesystem is full, a
 * thread goes on in a *gap*: nothing is written, frames are counted. It ends with
 * the first event for which there is room: a CONTROL_GAP says how many frames were
 * lost and which of the open ones are left, and those that began in the gap are
 * named. After a fork the open frames are named likewise: struct open_frame lies
 * on the C stack, which the child has a copy of, so what it runs next has its
 * parents. */
#include "tracer/file.h"

#include <stdlib.h>

void gap_begin(struct tracer *t, uint64_t now, int error)
{
    t->limit = 0;
    if (!t->ring->lost_since) {
        t->ring->lost_since = now;
        t->ring->lost_error = (uint64_t)error;
    }
}

bool gap_write_open(struct tracer *t, uint64_t *now)
{
    struct open_frame **stack, *open;
    size_t count = 0, at;
    bool room = true;

    for (open = t->open; open && open->code & OPEN_LOST; open = open->outer)
        count++;
    stack = count ? malloc(count * sizeof *stack) : NULL;
    if (!stack)
        return true; /* none; or what runs next has other parents: there is no memory for more */
    for (at = count, open = t->open; at; open = open->outer)
        stack[--at] = open;
    for (size_t n = 0; n < count && room; n++) {
        room = ring_room_held(t, now);
        if (room) {
            stack[n]->ordinal = t->entered++;
            stack[n]->code &= ~OPEN_LOST;
            tracer_put_control(t, CONTROL_ENTER, (uint64_t)RING_INHERITED << 37 | stack[n]->code, 1, now);
        }
    }
    free(stack);
    return room;
}

/* Say in the ring what is missing from it. LEFT open frames are those from before the gap. */
static void write_gap(struct tracer *t, uint64_t now, uint64_t left, uint32_t innermost, uint64_t still_open)
{
    struct ring *ring = t->ring;
    uint64_t lost = ring->lost > still_open ? ring->lost - still_open : 0;
    const uint64_t words[] = {now, ring->lost_since, (lost > UINT32_MAX ? UINT32_MAX : lost) << 32 | innermost};

    ring->lost = ring->lost_since = 0;
    tracer_put_control(t, CONTROL_GAP, left, 3, words);
    t->epoch = now;
}

bool gap_end(struct tracer *t, uint64_t *now)
{
    uint64_t left = 0, still_open = 0;
    struct open_frame *open = t->open;
    uint32_t innermost;

    for (; open && open->code & OPEN_LOST; open = open->outer)
        still_open++;
    innermost = open ? open->ordinal : 0;
    for (; open; open = open->outer)
        left++;
    write_gap(t, *now, left, innermost, still_open);
    if (!gap_write_open(t, now)) {
        gap_begin(t, *now, 0);
        for (open = t->open; open && open->code & OPEN_LOST; open = open->outer)
            t->ring->lost++;
    }
    return !t->ring->lost_since;
}

void gap_inherited(struct tracer *t, uint64_t now)
{
    write_gap(t, now, 0, 0, 0);
}
