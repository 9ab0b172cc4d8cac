/* tracer/redact.h -- leaves secret values out of facts.
 *
 * Runs in: the traced process. */
#ifndef DYNTRACE_TRACER_REDACT_H
#define DYNTRACE_TRACER_REDACT_H

#include "secret.h"
#include "tracer/tracer.h"

/* Copies of a fact and of its texts, without secret values. */
struct redacted {
    union fact_any fact;
    unsigned count;
    struct secret_text owned[8];
};

/* Return FACT of KIND as it may be recorded: FACT itself, or a copy in R without secret values,
 * which lives until redacted_free(). */
const void *redact_fact(enum fact_kind kind, const void *fact, struct redacted *r);
void redacted_free(struct redacted *r);

/* redact_name: does NAME look secret in this session? redact_source: does a name in a guard's
 * SOURCE? */
enum secret redact_name(const char *name, size_t bytes);
enum secret redact_source(struct fact_text source);

/* *TEXT is the value of a name of secrecy LEVEL. Replace its strings and, with SECRET_ALL, its
 * numbers. The caller frees `text` of the result when *TEXT is no longer needed. */
struct secret_text redact_literals_of_value(struct fact_text *text, enum secret level);
/* Replace the values of secret names in *TEXT. Then cut it to at most MOST bytes; not before,
 * because what shows that a value is secret may come after it. The caller frees `text` of the
 * result when *TEXT is no longer needed. */
struct secret_text redact_text(struct fact_text *text, size_t most);

#endif
