/* trace/alike.h -- a text without what differs between any two processes.
 *
 * Two ranks of a job that do the same still write different guards: an object has another
 * address, the tensor is on the next GPU, and torch numbers the globals that it makes by a
 * counter of the process. In the text that is made here each of those is a `*`, so that texts
 * which mean the same are equal:
 *
 *     ___check_obj_id(G['__builtins_dict___20']['len'], 140222591751072), type=<class 'x'>
 *     ___check_obj_id(G['__builtins_dict___*']['len'], *), type=<class 'x'>
 *
 * Sets are put in order, since each process hashes strings by a secret of its own.
 *
 * All that is compared or shown of several processes goes through text_alike: guards' sources
 * and expressions, reasons, expected and actual values. */
#ifndef DYNTRACE_ALIKE_H
#define DYNTRACE_ALIKE_H

/* TEXT with a `*` for each address, object id, uuid, number of a device, and counter in a name
 * of torch's. Other numbers stay: a size, a line, a value of the program's. The caller frees it. */
char *text_alike(const char *text);

/* The parts of TEXT, "check_tensor(L['x'], ..., size=[8, 4], stride=[4, 1])", that OTHER has
 * otherwise at the same place: "size=[8, 4]". All of TEXT when the two are not so alike. Both
 * are text_alike's. The caller frees it. */
char *text_differing(const char *text, const char *other);

#endif
