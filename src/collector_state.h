/* collector_state.h -- what a collector must not forget when it is killed.
 *
 * Runs in: the collector.
 *
 * Two files of the session, mapped: `window` (struct frame_window, pages not
 * yet in the trace) and `state`: this header, then the decoders' places. */
#ifndef DYNTRACE_COLLECTOR_STATE_H
#define DYNTRACE_COLLECTOR_STATE_H

#include "decode.h"
#include "session.h"

enum { STATE_BLOCK = 16 /* places are mapped so many at a time */ };
#define STATE_MAGIC "DYNSTAT"

struct state_header {
    char magic[8];
    uint32_t format, places;                        /* places given so far */
    uint32_t next_process, next_thread, next_code;  /* row ids: the next to give */
    uint32_t next_entry, next_guard, next_compile, next_signature, next_graph, next_note;
    uint64_t next_lookup, next_check;
    uint64_t last_ns;                               /* the latest event taken */
};

struct collector_state {
    struct state_header *header;  /* shared */
    struct frame_window *window;  /* shared */
    struct decode_place **blocks; /* owned array of shared blocks */
    uint32_t block_count;
    int fd;                       /* of `state`; owned */
};

/* Make the files, or with RESUME take what is there. 0, or -1 with errno. */
int collector_state_open(struct collector_state *s, const struct session *session, bool resume);
/* The place of ring RING of process file FILE: the old one, or a new one. NULL: no room. */
struct decode_place *collector_state_place(struct collector_state *s, const char *file, uint32_t ring);
void collector_state_close(struct collector_state *s);

#endif
