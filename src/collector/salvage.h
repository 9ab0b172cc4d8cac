/* collector/salvage.h -- a trace whose recording cannot be carried on.
 *
 * Runs in: the collector, and `fsck --recover`. */
#ifndef DYNTRACE_SALVAGE_H
#define DYNTRACE_SALVAGE_H

#include <stddef.h>
#include <stdint.h>

/* Finish TRACE, whose pages are in FRAMES and WINDOW (a descriptor of the session's file; -1: it is gone), from these alone.
 * 0 with what recorder_mend counts, or -1 with ERROR. */
int salvage(const char *trace, const char *frames, int window, uint64_t *frame_count, uint32_t *processes, char *error,
            size_t room);

#endif
