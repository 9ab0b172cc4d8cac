/* lib/md5.h -- the MD5 digest of a text (RFC 1321): torch's log has that of each of its texts.
 *
 * It tells a text that was cut or changed by accident. It protects from nobody. */
#ifndef DYNTRACE_MD5_H
#define DYNTRACE_MD5_H

#include <stddef.h>

enum { MD5_HEX = 33 }; /* digits, and a NUL */

/* The digest of the LENGTH bytes at DATA, in lower case. */
void md5_hex(const void *data, size_t length, char hex[MD5_HEX]);

#endif
