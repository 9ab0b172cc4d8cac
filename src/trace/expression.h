/* trace/expression.h -- guard sources as the program's own expressions.
 *
 * A trace has guard sources in the compiler's words (left). The author of the program wrote
 * something else (right):
 *
 *     L['x'].size()[0]                              x.size(0)
 *     L['self']._modules['kv']._buffers['k']        self.kv.k
 *     ___from_numpy(L['obs'])                       obs
 *     list.__getitem__(L['batch'], 2)               batch[2]
 *     G['__builtins_dict___20']['len']              len
 *     L['n'] == 6 and L['m'] <= 8                   n == 6 and m <= 8
 *
 * Every page that shows a source uses expression_from_source. Settings (`dynamic=L['x'][0]`), JSON
 * and comparisons use the compiler's text. */
#ifndef DYNTRACE_EXPRESSION_H
#define DYNTRACE_EXPRESSION_H

/* Rewrite the guard sources in TEXT as the program's own expressions; other text is copied. Returns
 * NULL if TEXT is NULL. The caller frees the result. */
char *expression_from_source(const char *text);

#endif
