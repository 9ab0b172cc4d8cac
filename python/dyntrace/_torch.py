"""Runs torch.compile on dyntrace's evaluator, or observes torch's own evaluator.

Runs in: the traced process. The extension calls attach() just before the module code of
torch._dynamo runs. At this time torch itself is loaded, but its compiler is not. So when the
compiler imports names from torch._C._dynamo.eval_frame, it gets our functions. There are two modes:

    shim      each attribute of torch._C._dynamo.eval_frame that uses the evaluator's state is
              replaced by ours, so torch.compile runs on dyntrace's evaluator
    observe   torch's evaluator stays; set_eval_frame is wrapped, so that one hook of ours is called
              before torch's evaluator, and another one by it (_torch_observe)

This code raises nothing to the program and prints nothing. A failure becomes a row of the table
`loss`, or the process's torch_note.
"""

import functools
import operator
import sys

import _dyntrace

from . import _notes as notes, _torch_private as private, _torch_versions as versions

AUTO, SHIM, OBSERVE, OFF = range(4)

_attached = None  # (version, mode, why) of torch, kept for later recordings of this process


def attach(wanted, late):
    """Watch torch in the mode WANTED (AUTO, SHIM, OBSERVE, OFF). If this torch cannot run on our
    evaluator (shim), observe it.

    LATE: torch's compiler is loaded already. Its cache entries cannot be moved to our evaluator, so
    torch is observed.
    """
    global _attached
    if _attached is None:
        _attached = str(getattr(sys.modules.get("torch"), "__version__", "")), "off", ""
        if wanted != OFF:
            try:
                _attached = _attach(sys.modules["torch"], wanted, late)
            except Exception as error:
                notes.loss("torch bridge: not attached: %s" % private.describe_error(error))
    notes.torch(*_attached)


def _attach(torch, wanted, late):
    version, module = str(torch.__version__), torch._C._dynamo.eval_frame
    if not callable(getattr(module, "set_eval_frame", None)):
        raise AttributeError("torch._C._dynamo.eval_frame has no set_eval_frame")
    why = ""
    if late and wanted != OBSERVE:
        why = "its compiler was loaded before the recording began"
    elif wanted != OBSERVE:
        why = _why_not_our_evaluator(version, module, wanted == SHIM) or _run_canary()
    _register_parts(torch, module)
    if wanted == OBSERVE or why:
        from . import _torch_observe

        _torch_observe.attach(module, late)
        return (
            version,
            "observe",
            why and "torch %s is observed, not run on dyntrace's evaluator: %s" % (version, why),
        )
    _replace_attributes(module)
    return version, "shim", ""


def _why_not_our_evaluator(version, module, asked):
    """Return why torch cannot run on our evaluator, or "" if it can. ASKED: the user gave `--torch
    shim`, so versions of torch and Python that were never tested together are allowed."""
    ours = _make_attributes()
    unknown = [
        name
        for name in dir(module)
        if not name.startswith("__")
        and name not in ours
        and name not in versions.STATELESS
        and name not in versions.ANSWERS
        and name != "skip_code"
    ]
    if unknown:
        return "its evaluator has functions that dyntrace does not know (%s)" % ", ".join(
            unknown[:5]
        )
    # In torch these functions are written in C. If one is a Python function, the program has
    # replaced it and expects that its replacement is called. So we must not replace it again.
    theirs = [
        name
        for name, value in vars(module).items()
        if name in ours and callable(value) and not isinstance(value, (type, type(len)))
    ]
    if theirs:
        return "the program has replaced %s" % ", ".join(theirs[:5])
    owner = _dyntrace._owner()
    if owner != "-" and "_dyntrace" not in owner:
        return "%s has taken CPython's place for a frame evaluator" % owner
    if not asked and _parse_minor(version) not in versions.TESTED.get(sys.version_info[:2], ()):
        return (
            "it was not tested with Python %d.%d; --torch shim runs it all the same"
            % sys.version_info[:2]
        )
    return ""


def _parse_minor(version):
    parts = version.split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (ValueError, IndexError):
        return None


def _make_attributes():
    """Return replacements for the attributes of torch._C._dynamo.eval_frame, by name. Functions
    that run in every call or compile are written in C, because trace functions of the program would
    see Python functions. The Python functions below only set or return a value."""
    part = _dyntrace._torch_bridge
    types = dict.fromkeys(("_CacheEntry", "_PrecompileEntry", "_ExtraState"), _dyntrace.CacheEntry)
    return {
        **_dyntrace._torch_attributes(),
        **types,
        "_PyInterpreterFrame": _dyntrace.DynamoFrameType,
        "set_guard_error_hook": _make_setter("guard_error_hook"),
        "set_guard_complete_hook": functools.partial(part, "guard_complete_hook"),
        "set_bytecode_debugger_callback": _make_setter("debugger"),
        "get_bytecode_debugger_callback": functools.partial(part, "debugger"),
        "register_breakpoint_code": _register_breakpoint,
        "set_eval_frame_override": functools.partial(part, "override"),
        "set_c_recursion_limit": _set_c_recursion_limit,
        "get_c_recursion_limit": lambda: part("c_recursion_limit") or -1,
    }


def _make_setter(name):
    def set_part(value):  # unlike _torch_bridge(), return None and not the old value
        _dyntrace._torch_bridge(name, value)

    return set_part


def _register_breakpoint(code):
    known = _dyntrace._torch_bridge("breakpoints") or set()
    known.add(code)
    _dyntrace._torch_bridge("breakpoints", known)


def _set_c_recursion_limit(limit):
    if limit != -1 and not 1 <= limit <= 0x7FFFFFFF:
        raise ValueError("recursion limit must be >= 1, or -1 to reset")
    _dyntrace._torch_bridge("c_recursion_limit", operator.index(limit))


def _replace_attributes(module):
    ours = _make_attributes()
    for name in dir(module):
        if name in ours:
            setattr(module, name, ours[name])
        elif name == "skip_code":
            setattr(module, name, _dyntrace.skip_code)


def _prepare_at_first_call(facts):
    """Return a function that is called in place of FACTS.begin for the first compile. It also does
    the work that must wait until torch._dynamo is imported completely. Later compiles call
    FACTS.begin directly."""

    def prepare_and_begin(compile, code):
        _dyntrace._torch_bridge("begin", facts.begin)
        facts.prepare()
        observe = sys.modules.get(__package__ + "._torch_observe")
        if observe:
            observe.wrap_invalidate()
        return facts.begin(compile, code)

    return prepare_and_begin


def _register_parts(torch, module):
    """Pass to the extension the Python functions and torch objects that its C code uses
    (src/tracer/torch/bridge.c). If one of our modules cannot be imported, fewer facts are
    recorded."""
    parts = {
        part: getattr(module, name)
        for name, part in versions.ANSWERS.items()
        if hasattr(module, name)
    }
    parts.update(
        while_tracing=versions.decides_while_tracing(_parse_minor(str(torch.__version__))) or None,
        rules_by_thread=versions.rules_by_thread(_parse_minor(str(torch.__version__))) or None,
        tensor=getattr(torch, "Tensor", None),
        override=getattr(getattr(module, "_EvalFrameOverride", None), "NONE", None),
        range=getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None),
    )
    try:
        from . import _torch_guards

        parts.update(guards=_torch_guards.Guards, describe=_torch_guards.describe)
    except Exception as error:
        notes.loss("torch bridge: guards: %s" % private.describe_error(error))
    try:
        from . import _torch_facts

        parts.update(begin=_prepare_at_first_call(_torch_facts), end=_torch_facts.end)
    except Exception as error:
        notes.loss("torch bridge: compiles: %s" % private.describe_error(error))
    for name, part in parts.items():
        _dyntrace._torch_bridge(name, part)


# ---- the canary, a test whether our evaluator works in this process ----

_CANARY = """
def original(a, *rest, b=2, **more):
    return None

def compiled(a, *rest, b=2, **more):
    if b == 3:
        raise KeyError(a)
    return a, rest, b, more, depth()

def depth():
    frame, count = _getframe(), 0
    while frame:
        frame, count = frame.f_back, count + 1
    return count
"""


class _Guarded:
    def __init__(self, code):
        self.code = code

    def check_fn(self, f_locals):
        return True


def _run_canary():
    """Make our evaluator replace the code of a small function, and call this function. Returns why
    the evaluator cannot be trusted in this process, or ""."""
    monitoring = getattr(sys, "monitoring", None)
    if sys.gettrace() or sys.getprofile() or monitoring and any(map(monitoring.get_tool, range(6))):
        # do not test: a trace or profile function of the program would see the calls of the test
        return ""
    try:
        return _test_replacement(sys._getframe)
    except BaseException as error:
        return "the function that it replaced raised %s" % type(error).__name__


def _test_replacement(getframe):
    """Run a function whose code is replaced. Check its results, the depth of the stack, the
    traceback of an exception, and the reference count of an argument. Returns what is wrong, or
    ""."""
    scope = {"_getframe": getframe}
    exec(compile(_CANARY, "<dyntrace>", "exec"), scope)
    original, depth, code = scope["original"], scope["depth"], scope["compiled"].__code__
    value, error, prior = object(), None, None
    before = sys.getrefcount(value)

    def callback(frame, entry, state):
        return _Guarded(code) if frame.f_code is original.__code__ else None

    def call_replaced():
        nonlocal prior, error
        prior = _dyntrace.set_eval_frame(callback)
        try:
            results = [original(value, 4, c=5) for _ in range(3)]
            deep = depth()
            try:
                original(7, b=3)
            except KeyError as raised:
                error = raised
        finally:
            _dyntrace.set_eval_frame(prior)
        return results, deep

    # The extension calls attach() while CPython's tracing is off, and then the evaluator ignores
    # all frames. call_tracing() turns tracing on for the test.
    results, deep = sys.call_tracing(call_replaced, ())
    _dyntrace.reset_code(original.__code__)
    names, at = [], error.__traceback__ if error else None
    while at:
        names.append(at.tb_frame.f_code.co_name)
        at = at.tb_next
    if (
        any(result[:4] != (value, (4,), 2, {"c": 5}) for result in results if result)
        or None in results
    ):
        return "a function that it replaced gave another result than it should"
    if results[0][4] - deep not in ((1, 2) if versions.REPLACED_MAY_BE_DEEPER else (1,)):
        return "in a function that it replaced the stack is %d deep, not %d" % (
            results[0][4],
            deep + 1,
        )
    if names != ["call_replaced", "compiled"]:
        return (
            "a traceback through a function that it replaced is another than it should be: %s"
            % names
        )
    del results, error, at
    if sys.getrefcount(value) != before:
        return "a function that it replaced kept its argument alive"
    return ""
