/* collector/row_log.h -- rows that are on their way into the trace.
 *
 * Runs in: the collector.
 *
 * SQLite commits now and then; what a killed collector had said since the last
 * commit is forgotten, and most of it cannot be written again: the words that it
 * came from have been taken from their ring. So every such row is written here
 * as well, in shared memory of the session, until a commit has it:
 *
 *          start            sure           end
 *            v                v             v
 *     .......[row][row][row]...[row][row].....
 *     in the trace              of words that a decoder may take again
 *
 * Positions only grow; data[] holds what lies from `start` on. Each decoder
 * commits `end` together with its own place (decode_at.logged). The next
 * collector puts the rows back up to the highest of those places and `sure`.
 * Every row has a key of its own, so twice is as good as once.
 *
 * Rows made from facts are not here: facts are read again. */
#ifndef DYNTRACE_ROW_LOG_H
#define DYNTRACE_ROW_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ROW_LOG_BYTES = 8 << 20,
    ROW_CAUSE_MAX = 1000, /* bytes of a text in it */
    ROW_LOG_ENOUGH = ROW_LOG_BYTES / 2, /* time to commit: the other half is for what comes before one may */
};

struct row_log {             /* shared */
    uint64_t start, sure, end;
    uint64_t reserved;       /* bytes of data[] that have memory */
    char data[ROW_LOG_BYTES];
};

/* A row: this, then BYTES of what it says. */
struct row_head {
    uint32_t kind, bytes;    /* whole, a multiple of 8 */
};

/* FD is the log's file. Rows that find no room are only in SQLite's hands. */
void row_log_append(struct row_log *log, int fd, uint32_t kind, const void *row, size_t bytes, const void *more,
                    size_t more_bytes);

#endif
