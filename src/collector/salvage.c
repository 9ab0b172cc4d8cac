/* collector/salvage.c -- a trace whose recording cannot be carried on. See collector/salvage.h.
 *
 * Runs in: the collector, and `fsck --recover`.
 *
 * The session's files were damaged, or they are gone: the machine was started
 * again, and its shared memory with it. What is on the disk is a database with
 * the small tables, and another behind whose last page lie those of `frame`
 * (collector/frame_pages.h); of the window, if it is left, the latest pages are taken too.
 * Which frames were open is not known any more: all that have no end stay so. */
#include "collector/salvage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/frame_pages.h"
#include "collector/trace_files.h"
#include "recorder_sqlite.h"
#include "vocabulary.h"

/* The window as it was left, or what can be known without it. */
static int window_read(struct frame_window *window, int fd, const char *frames, off_t bytes)
{
    uint32_t pages, root, last;

    if (recorder_pages(frames, &pages, &root) || bytes < (off_t)pages * FRAME_PAGE_BYTES)
        return -1;
    last = (uint32_t)(bytes / FRAME_PAGE_BYTES) - pages; /* one more than there are, beyond SQLite's lock page */
    if (fd < 0 || pread(fd, window, sizeof *window, 0) != sizeof *window || window->first != pages + 1 ||
        window->root != root || window->written > window->next_page) {
        memset(window, 0, sizeof *window);
        window->first = pages + 1;
        window->root = root;
        window->next_page = window->written = last;
    }
    return 0;
}

/* The rest, once there is a window. */
static int finish(const char *trace, const char *frames, int fd, struct frame_window *window, uint64_t *frame_count,
                  uint32_t *processes, const char **error)
{
    struct frame_pages pages;
    struct recorder *r = NULL;
    int64_t rows = -1;
    int result = -1;

    if (frame_pages_open(&pages, fd, window, true) == 0) {
        frame_pages_leave_all_open(&pages);
        rows = frame_pages_finish(&pages);
    }
    if (rows < 0)
        *error = pages.error ? strerror(pages.error) : "no memory";
    frame_pages_close(&pages);
    if (rows < 0 || !(r = recorder_open(trace, error)))
        return -1;
    recorder_put(r, LOSS, .events = ROW_NONE, .cause = ROW_TEXT(LOSS_KILLED ", and the state that it left was damaged or is gone; "
                 "frames that were not yet written, and what the programs had not handed over, are missing"));
    recorder_meta_integer(r, "frame_count", rows);
    if (!recorder_commit(r))
        *error = recorder_error(r);
    recorder_close(r);
    if (!*error && recorder_join(trace, frames, "recovered", error) == 0 && recorder_orphans(trace) == 0)
        result = recorder_mend(trace, frame_count, processes);
    return result;
}

int salvage(const char *trace, const char *frames, int window, uint64_t *frame_count, uint32_t *processes, char *error,
            size_t room)
{
    struct frame_window *read = aligned_alloc(_Alignof(struct frame_window), sizeof *read);
    int fd = open(frames, O_RDWR | O_CLOEXEC | O_NOFOLLOW), result = -1;
    const char *why = NULL;
    struct stat status;

    if (read && fd >= 0 && fstat(fd, &status) == 0 && window_read(read, window, frames, status.st_size) == 0) {
        result = finish(trace, frames, fd, read, frame_count, processes, &why); /* closes it */
        fd = -1;
    }
    if (result)
        snprintf(error, room, "%s: cannot be recovered: %s", trace, why ? why : "its frames are not there, or damaged");
    if (fd >= 0)
        close(fd);
    free(read);
    return result;
}
