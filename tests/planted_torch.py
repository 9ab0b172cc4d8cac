"""Traces of torch programs as real recordings have them, made by planted.py; and what torch says when it recompiles, skips and breaks a graph."""
from planted import MS, Plant

PRINT = """Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print` with argument types ['str'] (has_kwargs False)
  Hint: Avoid calling builtin `print` with argument types ['str'].
  Hint: Please report an issue to PyTorch.

  Developer debug context: builtin print [<class 'ConstantVariable'>] False
"""


class Torch(Plant):
    """A trace of a torch program whose function f() has the plants."""

    def __init__(self, path, version="2.13.0+cpu", mode="shim", note=None, qualname="f", **rest):
        super().__init__(path, qualname=qualname, **rest)
        self.db.execute("UPDATE process SET torch_version = ?, torch_mode = ?, torch_note = ?", (version, mode, note))
        self.observe = mode == "observe"

    def turned_away(self, reason, outcome="skipped", sticky=1, mark=True, calls=0):
        """A compile that made nothing, and calls that then ran eagerly."""
        self.compile(outcome="declined", reason=reason)
        self.db.execute("UPDATE compile SET outcome = ?, sticky = ?, label = '' WHERE compile_id = ?",
                        (outcome, sticky, self.ids["compile"]))
        if mark:
            self.insert("code_mark", code_id=1, at_ns=self.now, action="skip" if outcome == "skipped" else "run_only",
                        recursive_action="default" if outcome == "skipped" else "run_only", reason=reason)
        for _ in range(calls):
            self.call("skip" if outcome == "skipped" else "limit")

    def sizes(self, *sizes, source="L['x'].size()[0]", **rest):
        self.sequence("TENSOR_MATCH", source, sizes, signatures="x: Tensor float32[%d, 4] cpu", **rest)

    def limit(self, reason="recompile_limit (8) reached", calls=5):
        """No entry fits, and no more may be made."""
        self.turned_away(reason, outcome="limit")
        self.db.execute("UPDATE lookup SET outcome = 5 WHERE lookup_id = ?", (self.ids["lookup"],))
        first = self.ids["lookup"]
        for i in range(calls):
            self.call("limit", signature=f"x: Tensor float32[{i + 90}, 4] cpu")
        self.db.execute("UPDATE lookup SET signature_id = (SELECT signature_id FROM lookup WHERE lookup_id = ?) WHERE lookup_id = ?",
                        (first + 1, first))

    def breaks(self, reason=PRINT, line=14, times=1, stack='File "/src/app.py", line 14, in f', compile_id=1, calls=6, compiles=2):
        """With the function for the rest, of which torch makes two code objects and runs one."""
        rest = f"torch_dynamo_resume_in_f_at_{line}"
        base = 100 + 10 * line
        for code_id, kind in ((base, "resume"), (base + 1, "function")):
            self.insert("code", code_id=code_id, process_id=1, filename="/src/app.py", qualname=rest, first_line=line, kind=kind)
        self.insert("code_total", code_id=base + 1, calls=calls, total_ns=9, self_ns=9, raised=0)
        for i in range(compiles):
            self.insert("compile", compile_id=base + i, code_id=base + 1, label=f"1/{i}", start_ns=MS, end_ns=3 * MS,
                        outcome="compiled", cache_entry_id=base + i)
        for i in range(times):
            self.insert("graph_break", compile_id=compile_id, code_id=1, line=line, offset=30, reason=reason, user_stack=stack,
                        resume_code_id=base)


CAUSES = [  # kind, source, values, torch's sentence, case, words of the remedy
    ("TENSOR_MATCH", "L['x'].size()[0]", [16, 18, 20], None, "dynamic dimension",
     ["torch._dynamo.mark_dynamic(x, 0)", "maybe_mark_dynamic", "dynamic=True", "16, 18, 20"]),
    ("TENSOR_MATCH", "L['self'].cache.size()[2]", [4, 5], None, "dynamic dimension", ["mark_dynamic(self.cache, 2)"]),
    ("TENSOR_MATCH", "L['x'].size()[1]", [5, 1, 7], None, "dynamic dimension", ["Sizes 0 and 1 are compiled apart"]),
    ("TENSOR_MATCH", "L['x'].size()[1]", [1, 7], None, "sizes 0 and 1", ["mark_unbacked(x, 1)"]),
    ("TENSOR_MATCH", "L['x'].size()[1]", [10, 11, 1], None, "dynamic dimension", []),
    ("TENSOR_MATCH", "L['x'].size()[1]", [1, 0], None, "sizes 0 and 1", ["to 2 at least"]),
    ("TENSOR_MATCH", "L['self']._modules['fc']._parameters['weight'].size()[0]", [4, 8], None, "dynamic parameter",
     ["force_parameter_static_shapes = False"]),
    ("TENSOR_MATCH", "L['x'].dtype", ["torch.float32", "torch.float64"], None, "one dtype", ["torch.float32, torch.float64"]),
    ("TENSOR_MATCH", "L['x'].device", ["cpu", "cuda:0"], None, "one device", []),
    ("TENSOR_MATCH", "L['x'].requires_grad", ["True", "False"], None, "requires_grad", ["detach()"]),
    ("TENSOR_MATCH", "L['x'].ndim", [1, 2], None, "one rank", []),
    ("TENSOR_MATCH", "L['x'].stride()[0]", [4, 1], None, "dynamic stride", [".contiguous()"]),
    ("TENSOR_MATCH", "type(L['x'])", ["torch.Tensor", "app.Sub"], None, "one type", []),
    ("TENSOR_MATCH", "torch._C._dispatch_keys(L['x'])", ["not AutocastCPU", "AutocastCPU"], None, "modes", ["autocast"]),
    ("LAMBDA_GUARD", "L['x'].size()[0]", ["2 <= L['x'].size()[0] <= 4", "L['x'].size()[0] = 8"], None, "shape relation",
     ["holds only while", "it was 8"]),
    ("LAMBDA_GUARD", "L['step']", ["(L['step'] % 3) != 0", "L['step'] = 3"], None, "test outside", ["Make the test before the call", "(step % 3) != 0"]),
    ("LAMBDA_GUARD", "L['x']._min_seqlen_tensor.size()[0]", ["2 <= L['x']._min_seqlen_tensor.size()[0]", "1"], None, "nested lengths",
     ["sequences of length 0 and 1"]),
    ("LAMBDA_GUARD", "L['a'], L['b']", ["the same object", "different objects"], None, "aliasing", ["clone()"]),
    ("NO_TENSOR_ALIASING", "L['b']", ["its own tensor", "the same tensor as L['a']"], None, "aliasing", []),
    ("DIMENSION_DYNAMIC_MARKING_GUARD", "L['x']._dynamo_dynamic_indices", ["missing", "{0}"], None, "marking", ["mark_static"]),
    ("EQUALS_MATCH", "L['self'].n", [0, 1, 2], "L['self'].n == 0 (HINT: ... torch._dynamo.config.allow_unspec_int_on_nn_module = True)",
     "module integer", ["allow_unspec_int_on_nn_module = True", "register_buffer"]),
    ("EQUALS_MATCH", "L['self'].scale", [1.0, 2.5], None, "move into a tensor", ["in a tensor"]),
    ("EQUALS_MATCH", "L['n']", [2, 3], None, "move into a tensor", ["torch.tensor(n)"]),
    ("EQUALS_MATCH", "L['___stack0']", [0, 1], None, "mend the break", ["Mend the graph break", "computed before the break"]),
    ("ID_MATCH", "L['___stack0']", ["True", "False"], None, "mend the break", []),
    ("EQUALS_MATCH", "L['lr']", [0.1, 0.2], None, "learning rate", ["lr=torch.tensor(...)"]),
    ("LAMBDA_GUARD", "L['lr']", [0.1, 0.2], None, "learning rate", ["lr=torch.tensor(...)"]),
    ("LAMBDA_GUARD", "L['rate']", [0.1, 0.2], None, "move into a tensor", ["torch.tensor(rate)"]),
    ("EQUALS_MATCH", "list(dict.keys(L['d']))[0]", ["'a'", "'b'"], None, "one set of keys", ["the same keys in d"]),
    ("TENSOR_MATCH", "L['p'].size()[0]", [4, 8], "tensor 'L['p']' size mismatch. Guard failed on a parameter, consider using ...",
     "dynamic parameter", ["force_parameter_static_shapes = False"]),
    ("EQUALS_MATCH", "G['step']", [2, 3], None, "move into a tensor", ["Set the global"]),
    ("EQUALS_MATCH", "G['o'].param_groups[0]['lr']", [0.1, 0.2], None, "learning rate", ["lr=torch.tensor(...)"]),
    ("EQUALS_MATCH", "L['mode']", ["'train'", "'eval'"], None, "one value", ["'train', 'eval'"]),
    ("TRUE_MATCH", "L['self']._modules['drop'].training", ["True", "False"], None, "training flag", ["train() and eval()"]),
    ("GLOBAL_STATE", "grad_mode", ["True", "False"], None, "grad mode", ["training and evaluation"]),
    ("GLOBAL_STATE", "autocast(cpu)_enabled", ["False", "True"], None, "autocast", ["autocast"]),
    ("GLOBAL_STATE", "deterministic_algorithms", ["False", "True"], None, "global state", ["deterministic_algorithms once"]),
    ("GLOBAL_STATE", "global state", ["True", "False"], "GLOBAL_STATE changed: grad_mode", "grad mode", ["training and evaluation"]),
    ("TORCH_FUNCTION_MODE_STACK", "torch function modes", ["[]", "[Mode]"], None, "function modes", []),
    ("DEFAULT_DEVICE", "torch.utils._device.CURRENT_DEVICE", ["None", "cuda"], None, "default device", ["set_default_device"]),
    ("ID_MATCH", "L['fn']", ["function f.<locals>.<lambda> at 0x1", "function f.<locals>.<lambda> at 0x2"], None, "define once", []),
    ("ID_MATCH", "L['cfg']", ["Config object at 0x1", "Config object at 0x2"], None, "one object", []),
    ("ID_MATCH", "G['cfg']", ["Config object at 0x1", "Config object at 0x2"], None, "one object", ["Set the global"]),
    ("ID_MATCH", "L['mask']", ["None", "Tensor float32[3] cpu"], None, "one value", ["always or never"]),
    ("ID_MATCH", "L['flag']", ["True", "False"], None, "one value", ["True and False need"]),
    ("ID_MATCH", "L['fn']", ["None", "function f (a.py:3)"], None, "one value", ["always or never"]),
    ("DICT_LENGTH", "L['d']", [1, 2], None, "one set of keys", ["there were 1, 2 of them"]),
    ("LENGTH_CHECK", "L['items']", [1, 2], None, "one length", ["stack them into one"]),
    ("TUPLE_ITERATOR_LEN", "L['it']", [1, 2], None, "one length", []),
    ("DICT_CONTAINS", "L['d']", ["has 'a'", "lacks 'a'"], None, "one set of keys", []),
    ("DICT_LENGTH", "L['m']._forward_hooks", [0, 1], None, "hooks", ["Register hooks"]),
    ("HASATTR", "L['m'].mask", ["present", "missing"], None, "attribute", ["in __init__"]),
    ("NONE_MATCH", "L['mask']", ["None", "Tensor float32[3] cpu"], None, "one value", ["always or never"]),
    ("TYPE_MATCH", "L['x']", ["int", "float"], None, "one type", []),
    ("SOMETHING_NEW", "L['x']", ["a", "b"], None, "one value", ["SOMETHING_NEW asks for a"]),
]

SKIPS = [  # reason, kind of code, case, words
    ("frame is in the Dynamo skipfiles list", "function", "compile a caller", []),
    ("no tensor-related objects found in frame", "function", "nothing to compile", []),
    ("Dynamo decided to skip the frame while tracing: No ops traced for the FX graph.\nFrame info", "function", "nothing to compile", []),
    ("non-infra torch dispatch mode present, this is not supported today in torch.compile", "function", "first call outside",
     ["FlopCounterMode", "torch.compiler.reset()"]),
    ("an error was suppressed during compilation", "generator", "no generator", ["calls the generator f"]),
    ("an error was suppressed during compilation: Unsupported: " + PRINT, "function", "hoist the print",
     ["reorderable_logging_functions.add(print)"]),
    ("an error was suppressed during compilation: Unsupported: graph break in loop", "function", "give up less", ["out of the loop"]),
    ("a reason that nobody knows", "function", "look again", ["a reason that nobody knows"]),
    (None, "function", "look again", ["TORCH_LOGS"]),
]

BREAKS = [  # reason, torch, case, words
    (PRINT, "2.13.0", "hoist the print", ["Hoist the print at line 14 out of f", "reorderable_logging_functions.add(print)"]),
    ("builtin: print [<class 'torch._dynamo.variables.constant.ConstantVariable'>] False", "2.6.0", "hoist the print", []),
    ("Unsupported Tensor.item() call with capture_scalar_outputs=False", "2.13.0", "capture scalars", ["capture_scalar_outputs = True"]),
    ("Tensor.item", "2.6.0", "capture scalars", ["capture_scalar_outputs = True"]),
    ("Dynamic shape operator\n  Explanation: Operator `aten.nonzero.default`'s output", "2.13.0", "capture shapes",
     ["capture_dynamic_output_shape_ops = True"]),
    ("dynamic shape operator: aten.nonzero.default; to enable, set ...", "2.6.0", "capture shapes", []),
    ("Dynamic shape operator (no meta kernel)", "2.13.0", "another operator", []),
    ("generic_jump TensorVariable()\nData-dependent branching\n  Explanation: Detected", "2.13.0", "no branch", ["torch.where or torch.cond"]),
    ("generic_jump TensorVariable()", "2.6.0", "no branch", []),
    ("Skip calling `torch.compiler.disable()`d function\n  Explanation: Skip calling function `<function loud at 0x7f8f538a5800>`",
     "2.13.0", "enable", ["Take torch.compiler.disable off loud"]),
    ("call torch._dynamo.disable() wrapped function <function loud at 0x7f01>", "2.6.0", "enable", ["off loud"]),
    ("Call to `torch._dynamo.graph_break()`\n  Explanation: User-inserted", "2.13.0", "remove graph_break", []),
    ("'skip function graph_break in file /x/decorators.py'", "2.6.0", "remove graph_break", []),
    ("logging.Logger method not supported for non-export cases", "2.11.0", "hoist the logging", ["ignore_logging_functions"]),
    ("Logger not supported for non-export cases. To avoid", "2.10.0", "hoist the logging", ["ignore_logger_methods"]),
    ("Unsupported Tensor.backward() call", "2.13.0", "call backward outside", []),
    ("Attempted to copy.deepcopy a tensor\n  Explanation: x", "2.13.0", "clone", ["Call .clone()", "line 14"]),
    ("copy.deepcopy TensorVariable()", "2.7.1", "clone", []),
    ("Unsupported method call\n  Explanation: x\n  Hint: Avoid calling `SGD.step` in your code.\n\n  Developer debug context: "
     "call_method OptimizerVariable(SGD) step [] {}", "2.9.1", "optimizer", ["Make the call at line 14 outside of f"]),
    ("Unsupported function call (delayed)\n  Explanation: x Reason: Dynamo does not support RNN, GRU, or LSTM. Set allow_rnn=True", "2.15.0",
     "allow RNNs", ["allow_rnn = True"]),
    ("copy.deepcopy UserDefinedObjectVariable(Config)", "2.6.0", "copy before", ["Make the copy at line 14 before the call"]),
    ("Import failure\n  Explanation: Failure when attempting to import.", "2.13.0", "import before", ["Import at line 14 once"]),
    ("Attempted to wrap sparse Tensor\n  Explanation: x", "2.13.0", "sparse tensors", ["dense or as indices and values"]),
    ("step_unsupported\nAttempted to wrap sparse Tensor", "2.13.0", "sparse tensors", []),
    ("Tensor.requires_grad_", "2.7.1", "gradients outside", ["requires_grad_() at line 14"]),
    ("Attempted to wrap RNN, GRU, or LSTM", "2.13.0", "allow RNNs", ["allow_rnn = True"]),
    ("Attempted to call function marked as skipped\n  Explanation: x", "2.13.0", "allow in graph", ["allow_in_graph", "custom_op"]),
    ("Graph break under GenericContextWrappingVariable", "2.13.0", "break outside of with", []),
    ("Something new\n  Explanation: It is new\n  Hint: Please report an issue to PyTorch.\n  Hint: Do it in another way.", "2.13.0",
     "as torch says", ["Do it in another way", "line 14 (Something new)"]),
    ("Something new", "2.13.0", "move it", ["Something new"]),
]
