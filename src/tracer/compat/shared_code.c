/* tracer/compat/shared_code.c -- the marks of code objects that all interpreters share.
 *
 * Runs in: the traced process.
 *
 * There is memory of the main interpreter's in such a code object, which no other may make or free, so the others look
 * here, by its address. It grows to some hundreds. Under tracer_lock(). */
#include "tracer/tracer.h"

#include <stdlib.h>

#if COMPAT_SHARES_CODE

static struct shared_mark {
    PyCodeObject *code;
    uintptr_t mark;
} *shared_marks;
static size_t shared_count, shared_room;

static struct shared_mark *shared_find(struct shared_mark *marks, size_t room, PyCodeObject *code)
{
    size_t at = ((uintptr_t)code >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (room - 1);

    while (marks[at].code && marks[at].code != code)
        at = (at + 1) & (room - 1);
    return &marks[at];
}

/* CODE's mark. It is MARK if it has none yet; 0: none, and none given. */
uintptr_t tracer_shared_mark(PyCodeObject *code, uintptr_t mark)
{
    struct shared_mark *more, *found = NULL;

    tracer_lock();
    if (mark && shared_count * 2 >= shared_room && (more = calloc(shared_room ? shared_room * 2 : 256, sizeof *more))) {
        size_t room = shared_room ? shared_room * 2 : 256;
        for (size_t i = 0; i < shared_room; i++)
            if (shared_marks[i].code)
                *shared_find(more, room, shared_marks[i].code) = shared_marks[i];
        free(shared_marks);
        shared_marks = more;
        shared_room = room;
    }
    if (shared_room)
        found = shared_find(shared_marks, shared_room, code);
    if (found && found->code) {
        mark = found->mark;
    } else if (found && mark && shared_count + 1 < shared_room) {
        *found = (struct shared_mark){code, mark};
        shared_count++;
    }
    tracer_unlock();
    return mark;
}

#endif
