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
void file_unmap_parent_file(void);
void file_close(void);
/* Allocate BYTES (whole pages) in the file and map them, zeroed. The first RESERVED bytes get
 * memory. Sets *OFFSET. Returns NULL with errno on failure. */
void *file_allocate_extent(size_t bytes, size_t reserved, uint64_t *offset);
/* Get memory for BYTES from address AT on. Returns 0, or an errno where a plain store would raise
 * SIGBUS. */
int file_reserve_memory(char *at, size_t bytes);
/* Write the facts about the process image, such as its command line. A forked child need not: it
 * has its parent's. */
void write_process_facts(void);
/* Keep copies of the facts whose ids the next session may use, because code objects keep their ids.
 * Called before a session is left; write_kept_facts() writes the copies into the file of the next
 * session. */
void facts_copy_for_next_session(void);
void write_kept_facts(void);

/* tracer/ring.c */
/* In a forked child: drop all rings, because they are those of the parent. THREAD is the only
 * thread that is left, or NULL if it was not recorded. */
void rings_drop_after_fork(struct tracer *thread);
/* The session is being left: wake the threads that wait for the collector, and take each thread's
 * ring away. */
void rings_leave_session(void);

#endif
