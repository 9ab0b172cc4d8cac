/* lib/state_file.h -- where a user's histories are kept.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_STATE_FILE_H
#define DYNTRACE_STATE_FILE_H

/* Path of the file NAME, made for its owner alone; NULL when there is no place
 * for one. The caller frees it. */
char *state_file(const char *name);

#endif
