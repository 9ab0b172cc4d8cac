/* trace/whatif/facts.h -- what a trace says of inputs and guards, taken apart.
 *
 * Runs in: the viewer. Between trace/whatif/like.c and trace/whatif/facts.c. Each is read when it is first needed. */
#ifndef DYNTRACE_WHATIF_FACTS_H
#define DYNTRACE_WHATIF_FACTS_H

#include "lib/list.h"

struct db;
struct replay;

enum { DIMENSIONS = 16, SIZE_ANY = -1 };

/* A TENSOR_MATCH's or a signature's sizes. */
struct shape {
    int rank;                 /* -1: not a shape */
    int64_t size[DIMENSIONS]; /* SIZE_ANY: dynamic */
};

struct part {               /* of a signature: "x: Tensor float32[4, 3] cpu" */
    const char *name, *text; /* TEXT: what comes after the name */
    int before, after;       /* of a shape: bytes of TEXT up to '[', and where ']' is */
    struct shape shape;
};

struct signature {
    int64_t id;
    LIST(struct part) parts;
    bool read;
};

struct guard {
    int64_t id;
    const char *kind, *source, *expression;
    struct shape shape; /* of a TENSOR_MATCH */
    int before;         /* bytes of its expression that come before the sizes */
};

struct guards { /* by source, then kind */
    struct guard *at;
    size_t count, room;
    bool read;
};

struct facts {
    struct db *db;                     /* borrowed */
    const struct replay *r;            /* borrowed */
    LIST(struct signature) signatures; /* by id */
    struct guards *guards;             /* owned; by entry */
    struct arena texts;
    bool blind;  /* the trace is without values */
    bool failed; /* out of memory, or the trace cannot be read */
};

bool facts_open(struct facts *facts, struct db *db, const struct replay *replay);
void facts_close(struct facts *facts);

/* The signature with that row id; NULL: there is none. */
const struct signature *facts_signature(struct facts *facts, int64_t id);
const struct part *signature_part(const struct signature *signature, const char *name);
/* Both are of one type. */
bool parts_typed_alike(const struct part *a, const struct part *b);

const struct guards *facts_guards(struct facts *facts, uint32_t entry);
/* The one with that row id; NULL: there is none. */
const struct guard *facts_guard(struct facts *facts, uint32_t entry, int64_t id);

/* Guards of this kind exclude each other when their expressions differ. */
bool guard_exact(const char *kind);

/* Does a guard of KIND at SOURCE see something that signatures do not show? */
bool guard_hidden(const struct facts *facts, const char *kind, const char *source);

/* "x" of "L['x']", else NULL. The length is put into *BYTES. REST: what follows it. */
const char *source_local(const char *source, size_t *bytes, const char **rest);

#endif
