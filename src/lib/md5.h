/* lib/md5.h -- RFC 1321: torch's log has the digest of each record's text.
 *
 * Runs in: the viewer. It tells an accident, not an attack. */
#ifndef DYNTRACE_MD5_H
#define DYNTRACE_MD5_H

#include <stddef.h>

/* The digest of BYTES of DATA in hexadecimal. */
void md5_hex(const void *data, size_t bytes, char made[33]);

#endif
