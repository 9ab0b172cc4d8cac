/* Guard sources as the program's own expressions: every form that torch 2.6 to 2.15 write. */
#include "trace/expression.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void expression_is(const char *text, const char *expected)
{
    char *is = expression_from_source(text);

    if (strcmp(is, expected) != 0) {
        printf("FAIL expression_of(%s)\n  is       %s\n  expected %s\n", text, is, expected);
        failures++;
    }
    free(is);
}

/* No text crashes, loops, or grows without bound, wherever it is cut. */
static void hostile_text_is_survived(void)
{
    static const char whole[] =
        "not ___dict_contains('a', dict(type(L['s']).__dict__)['f'].size()[0]) and G['__import_a_dot_b']"
        "[dict.__getitem__(L['d'], 'k\\'')].__neg__()";
    size_t bytes = sizeof whole;
    char *deep = malloc(1 << 16), *is;

    for (size_t cut = 0; cut < bytes; cut++) {
        char *text = strndup(whole, cut);
        is = expression_from_source(text);
        if (strlen(is) > 2 * bytes) {
            printf("FAIL %zu bytes of %zu\n", strlen(is), cut);
            failures++;
        }
        free(is);
        free(text);
    }
    *deep = 0;
    for (char *at = deep; at - deep < 60000; at += 14)
        strcpy(at, "___from_numpy(");
    is = expression_from_source(deep);
    free(is);
    memset(deep, '[', 65535);
    memcpy(deep, "L['x'][", 7);
    deep[65535] = 0;
    is = expression_from_source(deep);
    free(is);
    free(deep);
}

int main(void)
{
    static const char *const unchanged[] = {
        "",
        "global state",
        "torch function modes",
        "torch.utils._device.CURRENT_DEVICE",
        "x == 'L[]' and y == \"G['n']\"",
        "HTML['x']",
        "L['a b']",
        "L['\\x1b[31m']",
        "L[",
        "L['",
        "L['x",
        "L['x'",
        "G[]",
        "___from_numpy(",
        "getattr(x, 'a b')",
        "dict(x)",
        "size=[20, 2], stride=[2, 1])",
    };

    for (size_t i = 0; i < sizeof unchanged / sizeof *unchanged; i++)
        expression_is(unchanged[i], unchanged[i]);
    expression_is("L['x']", "x");
    expression_is("L['größe']", "größe");
    expression_is("L['x'].size()[0]", "x.size(0)");
    expression_is("L['x'].stride()[12]", "x.stride(12)");
    expression_is("L['x'].size()[-1]", "x.size()[-1]");
    expression_is("L['x'].shape[0]", "x.shape[0]");
    expression_is("L['x'].dtype", "x.dtype");
    expression_is("L['self'].lin.weight", "self.lin.weight");
    expression_is("L['self']._modules['kv'].size", "self.kv.size");
    expression_is("L['self']._modules['layers']._modules['0']._parameters['weight']",
                  "self.layers[0].weight");
    expression_is("L['self']._modules['a-b']", "self._modules['a-b']");
    expression_is("L['self']._modules", "self._modules");
    expression_is("L['self']._modules['kv'].__dict__['_buffers']['k'].size()[1]",
                  "self.kv.k.size(1)");
    expression_is("L['self'].__dict__['n']", "self.n");
    expression_is("L['d'].__dict__['0']", "d.__dict__['0']");
    expression_is("len(L['self']._modules['net1']._modules['layers']._modules)",
                  "len(self.net1.layers._modules)");
    expression_is("L['args'][0]['mask']", "args[0]['mask']");
    expression_is("L['d'][L['k']]", "d[k]");
    expression_is("L['d'][<str>]", "d[<str>]");
    expression_is("L['d'][(1, 'a')]", "d[(1, 'a')]");
    expression_is("L['d']['a]b']", "d['a]b']");
    expression_is("___from_numpy(L['obs'])", "obs");
    expression_is("type(___from_numpy(L['w']))", "type(w)");
    expression_is("___from_numpy(L['obs']).size()[0]", "obs.size(0)");
    expression_is("___as_tensor(L['lr'])", "lr");
    expression_is("___odict_getitem(L['self'].state, 'a').n", "self.state['a'].n");
    expression_is("dict.__getitem__(L['batch'], 'x')", "batch['x']");
    expression_is("list.__getitem__(L['xs'], 3)", "xs[3]");
    expression_is("tuple.__getitem__(L['xs'], 3).size()[0]", "xs[3].size(0)");
    expression_is("___tuple_iterator_getitem(L['it'], 1)", "it[1]");
    expression_is("___list_reverseiterator_len(L['it']) == 3", "len(it) == 3");
    expression_is("len(___list_reverseiterator_backing_list(L['it']))", "len(the list of it)");
    expression_is("list(dict.keys(L['feats']))[0]", "list(feats.keys())[0]");
    expression_is("object.__getattribute__(L['m'], 'n').size()[0]", "m.n.size(0)");
    expression_is("getattr(L['m'], 'n')", "m.n");
    expression_is("getattr(L['m'], 'a.b')", "getattr(m, 'a.b')");
    expression_is("dict(type(L['self']).__dict__)['factor']", "type(self).factor");
    expression_is("type(L['self']).__mro__[1].__dict__['forward'].__defaults__[0]",
                  "type(self).__mro__[1].forward.__defaults__[0]");
    expression_is("type(L['self'].param_groups[0]['lr'])", "type(self.param_groups[0]['lr'])");
    expression_is("L['f'].__closure__[0].cell_contents", "f.__closure__[0].cell_contents");
    expression_is("G['SCALE']", "SCALE");
    expression_is("G['torch'].softmax", "torch.softmax");
    expression_is("G['__builtins_dict___20']['len']", "len");
    expression_is("G['__builtins_dict___20']", "builtins.__dict__");
    expression_is("G['__import_torch_dot_nn_dot_modules_dot_linear'].F.linear",
                  "torch.nn.modules.linear.F.linear");
    expression_is("__import__('torch.nn').F", "torch.nn.F");
    expression_is("L['self'].state[G['__dict_key_140_c0']()]['step']",
                  "self.state[<a parameter>]['step']");
    expression_is("L['___stack0'].size()[0]", "(value 0 at the break).size(0)");
    expression_is("L['.0']", "(the iterable)");
    expression_is("L['n'].__neg__()", "-n");
    expression_is("L['a'] < L['n'].__neg__()", "a < -n");
    expression_is("L['m'].get_base().weight", "m.weight");
    expression_is("L['start'], L['end']", "start, end");
    expression_is("L['n'] == 6 and 2 <= L['x'].size()[0]", "n == 6 and 2 <= x.size(0)");
    expression_is("not ___dict_contains('update', L['m'].__dict__)",
                  "not 'update' in m.__dict__");
    expression_is("check_no_aliasing(L['x'], L['self']._modules['kv']._buffers['k'])",
                  "check_no_aliasing(x, self.kv.k)");
    hostile_text_is_survived();
    return failures > 0;
}
