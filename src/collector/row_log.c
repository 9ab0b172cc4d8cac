/* collector/row_log.c -- rows that are on their way into the trace. See collector/row_log.h.
 *
 * Runs in: the collector. */
#include "collector/row_log.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>

enum { RESERVE_STEP = 256 << 10 };

/* Memory for the next part, before it is touched. False: there is none. */
static bool reserve(struct row_log *log, int fd, uint64_t wanted)
{
    uint64_t bytes = log->reserved;

    while (bytes < wanted)
        bytes += RESERVE_STEP;
    if (wanted > ROW_LOG_BYTES || posix_fallocate(fd, offsetof(struct row_log, data), (off_t)bytes))
        return false;
    log->reserved = bytes;
    return true;
}

void row_log_append(struct row_log *log, int fd, uint32_t kind, const void *row, size_t bytes, const void *more,
                    size_t more_bytes)
{
    size_t whole = (sizeof(struct row_head) + bytes + more_bytes + 7) & ~(size_t)7;
    uint64_t at = log->end - log->start;
    char *place = log->data + at;

    if (at + whole > log->reserved && !reserve(log, fd, at + whole))
        return;
    *(struct row_head *)place = (struct row_head){kind, (uint32_t)whole};
    memcpy(place + sizeof(struct row_head), row, bytes);
    if (more_bytes)
        memcpy(place + sizeof(struct row_head) + bytes, more, more_bytes);
    atomic_signal_fence(memory_order_release); /* a kill stops between two stores */
    log->end += whole;
}
