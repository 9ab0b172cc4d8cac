/* collector/trace_files.h -- the two files that become a trace.
 *
 * Runs in: the collector, and the commands that begin or recover a recording.
 *
 *     recorder_create(path, frames)     an empty trace, and a copy of it for the frames
 *     ...                               the recorder writes to PATH, collector/frame_pages.c to FRAMES
 *     recorder_join(path, frames)       one plain file, under PATH */
#ifndef DYNTRACE_TRACE_FILES_H
#define DYNTRACE_TRACE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Make the live database PATH (owner-only) with every table, and FRAMES beside
 * it for the pages of `frame`. With FORCE an existing PATH is replaced.
 * Prints what is wrong; 0 or -1. FIRST and ROOT are file pages (collector/frame_pages.h). */
int recorder_create(const char *path, const char *frames, bool force, uint32_t *first, uint32_t *root);

/* What a killed collector had only in its memory, made from the finished trace
 * PATH: rows for the code and threads that it had no time to name, and totals, unless
 * --min-duration keeps some of them to itself. How many FRAMES, of how many PROCESSES. */
int recorder_mend(const char *path, uint64_t *frames, uint32_t *processes);

/* A trace whose recording cannot be carried on: the session's files were damaged, or they are gone, because the machine was
 * started again, and its shared memory with it. What is on the disk is a database with the small tables, TRACE, and another,
 * FRAMES, behind whose last page lie those of `frame`; of the window, if it is left (a descriptor of the session's file, or
 * -1), the latest pages are taken too. Which frames were open is not known any more: all that have no end stay so.
 * 0 with what recorder_mend counts, or -1 with ERROR. */
int recorder_salvage(const char *trace, const char *frames, int window, uint64_t *frame_count, uint32_t *processes, char *error,
                     size_t room);

/* Copy the tables of the live database LIVE into FRAMES, whose `frame` table is
 * finished, write STATE in it, and publish it. Nothing may be open on either. 0, or -1 with *ERROR
 * (static). LIVE stays as it is when that fails. */
int recorder_join(const char *live, const char *frames, const char *state, const char **error);
/* Are LIVE and FRAMES the two files of the recording in directory SESSION? Whoever has their names from a session
 * asks before it writes to them. */
bool recorder_is_of(const char *live, const char *frames, const char *session);
/* Is PATH a whole trace? (A kill may come between any two steps of the above.) */
bool recorder_finished(const char *path);
/* The session that records PATH on this machine, to be freed; NULL: none does. */
char *recorder_session(const char *path);
/* Rename FRAMES to LIVE, and take away what belongs to the old LIVE. */
int recorder_publish(const char *live, const char *frames, const char **error);

#endif
