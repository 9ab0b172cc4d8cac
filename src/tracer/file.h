/* tracer/file.h -- what the recorder's files share of a process's file and its rings (ring.h).
 *
 * Runs in: the traced process; everything here is a slow path. */
#ifndef DYNTRACE_TRACER_FILE_H
#define DYNTRACE_TRACER_FILE_H

#include "tracer/tracer.h"

/* tracer/file.c */
/* Make this process's file. PARENT is the file of the process that it was forked from at CLOCK, or
 * "". Without success P.file is NULL, and it is noted where the collector sees it. */
void file_open(const char *parent, uint64_t clock);
/* In a forked child: all but the header of the parent's file is unmapped. */
void file_forked(void);
void file_close(void);
/* BYTES (whole pages) of the file not in use yet, zeroed, RESERVED of them with memory. NULL with
 * errno. */
void *file_extent(size_t bytes, size_t reserved, uint64_t *offset);
/* Memory for [AT, AT + BYTES), or an errno: where a store would be SIGBUS, a system call says so.
 * */
int file_reserve(char *at, size_t bytes);
/* What is true of the whole process image. Not repeated in a forked child. */
void facts_of_process(void);
/* A session is about to be left: names that the next session's words may use, as code objects keep
 * their ids. */
void facts_keep(void);
void facts_again(void);

/* tracer/ring.c */
/* In a forked child: all rings were the parent's, and THREAD (or NULL: none of ours) is the only
 * thread left. */
void rings_forked(struct tracer *thread);
/* The session is left: threads that wait stop that, and none has a ring. */
void rings_leave(void);

#endif
