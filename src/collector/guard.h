/* collector/guard.h -- a program's file that shrinks under us.
 *
 * Runs in: the collector. Touching what is no longer in a mapped file is SIGBUS. Only the program's files may be cut short
 * and we go on: in the middle of SQLite or of our own state there is no going on, and the next collector begins from what
 * was certain. */
#ifndef DYNTRACE_GUARD_H
#define DYNTRACE_GUARD_H

#include "collector/traced.h"

/* From now on, for C's files. */
void guard_install(struct collector *c);
/* Call WHAT with ARGUMENT. False: a file of the program's that it read was cut short meanwhile. */
bool guarded_call(struct collector *c, void (*what)(void *argument), void *argument);

#endif
