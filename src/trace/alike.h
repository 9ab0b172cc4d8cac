/* trace/alike.h -- texts with process-specific parts replaced by `*`.
 *
 * Two ranks of a job that run the same program still write different guards: their objects have
 * different addresses, their tensors are on other GPUs, and torch numbers its globals by a counter
 * of the process. text_alike replaces each of these by `*`, so that texts with the same meaning are
 * equal:
 *
 *     ___check_obj_id(G['__builtins_dict___20']['len'], 140222591751072), type=<class 'x'>
 *     ___check_obj_id(G['__builtins_dict___*']['len'], *), type=<class 'x'>
 *
 * Sets are sorted, because each process hashes strings with its own secret.
 *
 * `dyntrace ranks` compares two processes by these texts. They are guards' sources and expressions,
 * reasons, and expected and actual values. */
#ifndef DYNTRACE_ALIKE_H
#define DYNTRACE_ALIKE_H

/* Copy TEXT with a `*` for each address, object id, uuid, device number, and counter in a name that
 * torch generated. All other numbers are copied, such as sizes, line numbers and values of the
 * program. The caller frees the copy. */
char *text_alike(const char *text);

/* Return the parts of TEXT that differ from the parts of OTHER at the same positions: "size=[8, 4]"
 * of "check_tensor(L['x'], ..., size=[8, 4], stride=[4, 1])". Returns all of TEXT if the texts are
 * not similar. Both texts must be results of text_alike(). The caller frees the result. */
char *text_differing(const char *text, const char *other);

#endif
