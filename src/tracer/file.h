/* tracer/file.h -- a process's shared file and its rings: functions of file.c and ring.c (see
 * ring.h).
 *
 * Runs in: the traced process; everything here is a slow path. */
#ifndef DYNTRACE_TRACER_FILE_H
#define DYNTRACE_TRACER_FILE_H

#include "tracer/tracer.h"

/* tracer/file.c */
/* Make this process's file. PARENT is the file of the process that forked this one, at CLOCK; or
 * "". On failure P.file is NULL, and the collector learns it from the parent's file or from an
 * empty file. */
void file_open(const char *parent, uint64_t clock);
/* In a forked child: unmap the parent's file except its header. */
void file_forked(void);
void file_close(void);
/* Allocate BYTES, which are whole pages, in the file and map them, zeroed. The first RESERVED bytes
 * get memory. Returns NULL with errno on failure. */
void *file_extent(size_t bytes, size_t reserved, uint64_t *offset);
/* Reserve memory for [AT, AT + BYTES). Returns an errno where a plain store would raise SIGBUS. */
int file_reserve(char *at, size_t bytes);
/* Write the facts about the whole process image, such as its command line. A forked child does not
 * repeat them. */
void facts_of_process(void);
/* Copy the facts whose ids the next session may use, since code objects keep their ids. Called
 * before a session is left; facts_again() writes the copies into the next session's file. */
void facts_keep(void);
void facts_again(void);

/* tracer/ring.c */
/* In a forked child: drop all rings, because they are those of the parent. THREAD is the only
 * thread that is left, or NULL if it was not recorded. */
void rings_forked(struct tracer *thread);
/* The session is being left: wake the threads that wait for the collector, and take each thread's
 * ring away. */
void rings_leave(void);

#endif
