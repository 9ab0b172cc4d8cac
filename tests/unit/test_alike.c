/* Of a text that is compared between processes: what is hidden, and what is not. */
#include "trace/alike.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void alike_is(const char *text, const char *expected)
{
    char *alike = text_alike(text);

    if (strcmp(alike, expected) != 0) {
        printf("FAIL text_alike(%s)\n  is       %s\n  expected %s\n", text, alike, expected);
        failures++;
    }
    free(alike);
}

static void differing_is(const char *text, const char *other, const char *expected)
{
    char *found = text_differing(text, other);

    if (strcmp(found, expected) != 0) {
        printf("FAIL text_differing(%s)\n  is       %s\n  expected %s\n", text, found, expected);
        failures++;
    }
    free(found);
}

int main(void)
{
    static const char *const unchanged[] = {
        "",
        "L['x'].size()[0] == 12 and L['y'].stride()[1] == 16",
        "tensor 'x' size mismatch at index 0. expected 2, actual 3",
        "check_tensor(L['x'], Tensor, torch.float32, device=None, size=[s0, 4], stride=[4, 1])",
        "L['n'] == 1000000007 and L['m'] == 20261128 and L['flags'] == 0x10 and L['us'] == 1789000000000000000",
        "G['__import_my_dot_layers_dot_block_1'].f and G['layer_1'] and L['__layer_1'] and L['___stack_3']",
        "torch_dynamo_resume_in_f_at_12",
        "foo:1 a/b.py:4 in f",
        "L['d'] == {'a': 1, 'b': 2}",
        "device='cuda' index=1 {unclosed, 'a",
        "0x 0xg 9'",
    };

    for (size_t i = 0; i < sizeof unchanged / sizeof *unchanged; i++)
        alike_is(unchanged[i], unchanged[i]);
    alike_is("___check_obj_id(G['__builtins_dict___20']['len'], 140222591751072), type=<class 'x'>",
             "___check_obj_id(G['__builtins_dict___*']['len'], *), type=<class 'x'>");
    alike_is("___check_obj_id(tuple.__getitem__(L['x'], 0), 94022259)",
             "___check_obj_id(tuple.__getitem__(L['x'], 0), *)");
    alike_is("___check_type_id(L['x'], 9463552), type=<class 'int'>",
             "___check_type_id(L['x'], *), type=<class 'int'>");
    alike_is("check_tensor(L['x'], Tensor, device=1, size=[1])",
             "check_tensor(L['x'], Tensor, device=*, size=[1])");
    alike_is("L['x'].device == device(type='cuda', index=1)",
             "L['x'].device == device(type='cuda', index=*)");
    alike_is("___get_current_stream(torch.device('xpu', 1))",
             "___get_current_stream(torch.device('xpu', *))");
    alike_is("L['d'] == 'cuda:3', npu:0", "L['d'] == 'cuda:*', npu:*");
    alike_is("<torch.Stream device_type=cuda, device_index=1, stream_id=3>",
             "<torch.Stream device_type=cuda, device_index=*, stream_id=*>");
    alike_is("Tensor device index mismatch. Expected device index to be 1, actual 2",
             "Tensor device index mismatch. Expected device index to be *, actual *");
    alike_is("G['___unnamed_scope_140222591751072_c7']['k']", "G['___unnamed_scope_*_c*']['k']");
    alike_is("G['_140222591751072_c2'].float", "G['_*_c*'].float");
    alike_is("__compiled_fn_4_0a1b2c3d_1111_2222_3333_444444444444(x)", "__compiled_fn_*_*(x)");
    alike_is("__compiled_fn_12 __resume_at_30_5", "__compiled_fn_* __resume_at_30_*");
    alike_is("G['__something_new_7']", "G['__something_new_*']");
    alike_is("___dict_version(L['d']) == 1234", "___dict_version(L['d']) == *");
    alike_is("top_saved_tensors_hooks ids == (94123456, 94123457)",
             "top_saved_tensors_hooks ids == (*, *)");
    alike_is("<function f at 0x7f0012> object at 0x1", "<function f at *> object at *");
    alike_is("GPU-0a1b2c3d-1111-2222-3333-444444444444 <eval_with_key>.12",
             "GPU-* <eval_with_key>.*");
    alike_is("frozenset({'b', 'a, c', 'a'}) {2, 1}", "frozenset({'a', 'a, c', 'b'}) {1, 2}");

    differing_is("check_tensor(L['x'], T, torch.float32, size=[8, 4], stride=[4, 1])",
                 "check_tensor(L['x'], T, torch.float64, size=[8, 4], stride=[8, 1])",
                 "torch.float32, stride=[4, 1]");
    differing_is("f(a, b)", "f(a, b)", "f(a, b)");
    differing_is("f(a, b)", "f(a)", "f(a, b)");
    differing_is("L['t'] == (1, 2)", "L['t'] == (1, 3)", "L['t'] == (1, 2)");
    differing_is("___check() against {\"a\":1,\"b\":[1,2],\"c\":3}",
                 "___check() against {\"a\":1,\"b\":[1,3],\"c\":3}", "\"b\":[1,2]");
    return failures != 0;
}
