/* tracer/file.h -- what file.c, ring.c and their callers share: a process's file and its rings
 * (ring.h).
 *
 * Runs in: the traced process; everything here is a slow path. */
#ifndef DYNTRACE_TRACER_FILE_H
#define DYNTRACE_TRACER_FILE_H

#include "tracer/tracer.h"

/* tracer/file.c */
/* Make this process's file. PARENT is the file of the process that it was forked from at CLOCK, or
 * "". On failure P.file is NULL, and the collector can see that. */
void file_open(const char *parent, uint64_t clock);
/* In a forked child: unmap the parent's file except its header. */
void file_forked(void);
void file_close(void);
/* BYTES (whole pages) of unused file, zeroed; the first RESERVED bytes have memory. NULL with
 * errno. */
void *file_extent(size_t bytes, size_t reserved, uint64_t *offset);
/* Reserve memory for [AT, AT + BYTES). Returns an errno where a plain store would raise SIGBUS. */
int file_reserve(char *at, size_t bytes);
/* Facts about the whole process image. A forked child does not repeat them. */
void facts_of_process(void);
/* A session is about to be left: names that the next session's words may use, as code objects keep
 * their ids. */
void facts_keep(void);
void facts_again(void);

/* tracer/ring.c */
/* In a forked child: drop all rings, which are the parent's. THREAD is the only thread left (NULL:
 * not one of ours). */
void rings_forked(struct tracer *thread);
/* The session is left: wake waiting threads, and detach every thread's ring. */
void rings_leave(void);

#endif
