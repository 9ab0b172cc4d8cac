/* tracer/file.h -- what the recorder's files share of a process's file and its rings (ring.h).
 *
 * Runs in: the traced process; everything here is a slow path. */
#ifndef DYNTRACE_TRACER_FILE_H
#define DYNTRACE_TRACER_FILE_H

#include "tracer/tracer.h"

/* tracer/file.c */
enum {
    FIRST_FACTS = 128 << 10, /* bytes of the first chunk of facts */
    HEADER_BYTES = (sizeof(struct process_file) + 4095) & ~4095,
};
/* Make this process's file. PARENT is the file of the process that it was forked from at CLOCK, or "". Without success
 * P.file is NULL, and it is noted where the collector sees it. */
void file_open(const char *parent, uint64_t clock);
/* In a forked child: all but the header of the parent's file is unmapped. */
void file_forked(void);
void file_close(void);
/* BYTES (whole pages) of the file not in use yet, zeroed, RESERVED of them with memory. NULL with errno. */
void *file_extent(size_t bytes, size_t reserved, uint64_t *offset);
/* What is mapped of the file at OFFSET. NULL: nothing. */
void *file_at(uint64_t offset);
/* Memory for [AT, AT + BYTES), or an errno: where a store would be SIGBUS, a system call says so. */
int file_reserve(char *at, size_t bytes);

/* tracer/fact.c */
/* The facts go to CHUNK from here on, of BYTES; NULL: there is no file. */
void facts_begin(struct facts *chunk, size_t bytes);
/* What is true of the whole process image. Not repeated in a forked child. */
void facts_of_process(void);
/* A session is about to be left: names that the next session's words may use, as code objects keep their ids. */
void facts_keep(void);
void facts_again(void);

/* tracer/ring.c */
/* In a forked child: all rings were the parent's, and THREAD (or NULL: none of ours) is the only thread left. */
void rings_forked(struct tracer *thread);
/* The session is left: threads that wait stop that, and none has a ring. */
void rings_leave(void);
/* Can T's ring take a control word and an event? Looks at its tail again. False with no limit: it has no memory. */
bool ring_has_room(struct tracer *t);
/* Wait for room where no gap may begin while others run. False: there is none. */
bool ring_room_held(struct tracer *t, uint64_t *now);

/* tracer/gap.c */
/* From now on nothing is written, for ERROR, or because the collector takes nothing (0). */
void gap_begin(struct tracer *t, uint64_t now, int error);
/* There is room again: the words go on, unless it does not suffice for what is open. */
bool gap_end(struct tracer *t, uint64_t *now);
/* T has a ring of which the thread before ended in a gap: say so. */
void gap_inherited(struct tracer *t, uint64_t now);
/* ENTERs of the open frames whose ENTER is not in the ring, the outermost first. False: there was no room for all. */
bool gap_write_open(struct tracer *t, uint64_t *now);

/* tracer/fork.c */
/* Handlers of fork() that were registered before ours run before it in the child, and may be Python code: the first
 * thing that comes here does what ours would do. */
void fork_check(void);
/* Is a fork() under way? Then the next event may be the child's. */
bool fork_is_near(void);
/* 0, or an errno. */
int fork_watch(void);

#endif
