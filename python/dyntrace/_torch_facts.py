"""Records torch's compiles: outcome, graph breaks, graphs, listings, phases.

Runs in: the traced process, within torch's compiles. The evaluator calls begin() before and end()
after each call of torch's set_eval_frame callback. prepare() wraps functions of torch, to record
facts that torch does not keep. This code raises nothing, prints nothing and does not change torch's
behaviour. If it fails, it records a loss, and torch continues.

Where each fact comes from:

    label           the compile id in torch's first timed event of the compile; so failed compiles
                    have a label, too
    outcome, reason the callback's result or exception; for an exception that torch suppressed, the
                    newest compilation metrics
    phases          torch._dynamo.utils calls record_chromium_event_internal(event) at the begin and
                    the end of each phase that it times. The function is empty and meant to be
                    replaced. It is a leaf, so our replacement appears in no traceback
    graphs          the graph module is a local variable of the frame that times "backend_compile",
                    before the backend sees it
    graph breaks    our wrappers of Unsupported.add_to_stats and GraphCompileReason.__post_init__,
                    which are leaves, too
    listings        the code objects and the guards in the callback's result; for inductor and
                    torch's caches, the texts of torch's structured log (_torch_caches)

**Graph breaks that torch counts.** When an `Unsupported` exception reaches an instruction at which
the graph can be broken, torch increments counters["graph_break"][message]. We record a row at this
moment, and use the counter's key as its `reason` (up to _REASON_BOUND characters). So each key has
as many rows as its count. Torch may restart its analysis of a frame and meet the same break again;
then it counts the break twice, and there are two rows. From about torch 2.8 on, the key's first
line is the type of the break.

**Graph breaks that torch does not count:**

    at a jump that depends on data ("generic_jump ...")
    at an instruction where the graph cannot be broken, so that torch breaks it at an earlier
        statement ("step_unsupported")
    at a comprehension
    made by the optimizer of DistributedDataParallel
    caused by a `UserError` (in torch 2.13; torch 2.6 counts these)

For these we record one row for each place, however often the analysis restarts. If the cause is
known, it follows the first line of the reason. For "step_unsupported" the cause is the last
operation that torch reported as unsupported.

If torch gives up a whole frame (fullgraph, a graph break in a loop), there is no break: the compile
has the outcome 'declined' or 'error'. If torch's rules exclude a frame, the outcome is 'skipped'.

A break's code, line and offset are the instruction at which the compiled frame stops and the resume
function continues. The last line of the user stack is the cause, perhaps in an inlined function.

**What we do not use, and why.** A handler on torch's trace log would make torch format every
payload. Python wrappers of functions that are no leaves would appear in torch's tracebacks and
stack filters. register_bytecode_hook would appear as a phase.
"""

import collections
import dis
import os
import re
import sys
import threading
import time
import types
import weakref

from . import _torch_caches as caches, _notes as notes, _torch_private as private
from ._native import native

_BOUND = 2000  # the most characters of a node's arguments, or of an instruction's argument
_REASON_BOUND = 16384  # the most characters of a reason, e.g. of a graph break
_PLACES_BOUND = 16  # the most lines of the program's stack in the reason of one graph break
# the most loss rows of a process, because a failure may repeat at every compile
_LOSSES_MAX = 20
_GUARDS_MAX = 20000  # the most lines in the listing of a guard tree
_EVENTS_MAX = 1000  # most open phases on a thread; torch might not report their ends

# The recorder counts the frames in each of these phases separately: enum compile_phase in
# src/vocabulary.h. A frame in any other phase of a compile is counted for the enclosing phase.
_COMPILE = 2
_PHASES = {
    "bytecode_tracing": 3,
    "backend_compile": 4,
    "build_guards": 5,
    "entire_backward_compile": 6,
    "backward._backward_impl": 6,  # of torch 2.6
}

# prepare() sets these names, because torch is not yet imported completely when this module is.
_torch = _dynamo_utils = _resume_cache = _node_class = None
_losses = 0
_rank_known = False


class _Thread(threading.local):
    """The compiles and phases that have begun on a thread and have not ended."""

    def __init__(self):
        # the innermost compile last: code that runs during a compile may be compiled, too
        self.compiles = []
        self.events = []  # (name, start_ns) of each phase that has begun
        self.names = None  # node -> made-up name; None unless a graph is printed without values
        self.phase = 0  # the number of the phase that was recorded last


_thread = _Thread()


class _Compile:
    """A compile between begin() and end(). It refers to objects of torch and of the program, so it
    must be released after end()."""

    __slots__ = (
        "id",
        "code",
        "label",
        "breaks",
        "places",
        "globals",
        "event_depth",
        "counted",
        "unsupported",
        "unsupported_at",
        "skipped",
        "graphs",
    )

    def __init__(self, id, code, event_depth):
        self.id, self.code, self.event_depth = id, code, event_depth
        self.label = ""
        self.breaks = None  # list of _Break
        self.places = None  # set of (id of the code object, offset) for each graph break
        self.globals = None  # globals of the frame, in which torch puts the resume functions
        self.counted = None  # the reason of the graph break that add_to_stats() has just counted
        self.unsupported = ""  # torch's message about the last operation that it does not support
        self.unsupported_at = None  # StackSummary of the program at the unsupported operation
        self.skipped = ""  # why torch last gave up a whole frame, if torch does not return this
        self.graphs = 0


class _Break:
    __slots__ = ("code", "line", "offset", "reason", "user_stack", "targets")


def _note_loss(where, error):
    global _losses
    _losses += 1
    if _losses <= _LOSSES_MAX:
        try:
            notes.loss("facts of compiling: %s: %s" % (where, private.describe_error(error)))
        except Exception:
            pass


def _call_safely(where, function, *values):
    """Return FUNCTION(*VALUES). If it raises, return None and write a loss row."""
    try:
        return function(*values)
    except Exception as error:
        _note_loss(where, error)


# ---- functions that the evaluator calls: before the first compile, and around each compile


def prepare():
    """Wrap torch's functions. Called once, before the first compile, when torch._dynamo is imported
    completely."""
    global _torch, _dynamo_utils, _resume_cache, _node_class
    try:
        _torch = sys.modules["torch"]
        _dynamo_utils = sys.modules["torch._dynamo.utils"]
        _resume_cache = getattr(
            sys.modules.get("torch._dynamo.resume_execution"), "ContinueExecutionCache", None
        )
        _node_class = sys.modules["torch.fx.node"].Node
    except (KeyError, AttributeError) as error:
        _note_loss("prepare", error)
        return
    for hook in (
        _wrap_chromium_event,
        _wrap_add_to_stats,
        _wrap_skip_frame,
        _wrap_compile_reason,
        _wrap_trace_structured,
        _skip_ourselves,
        _note_rank_given,
    ):
        _call_safely(hook.__name__, hook)


def begin(compile, code):
    """Note that a compile of CODE begins. COMPILE is our id of the compile. Returns a token for
    end()."""
    token = _Compile(compile, code, len(_thread.events))
    _thread.compiles.append(token)
    _thread.phase = _COMPILE  # the phase that the evaluator has just recorded
    return token


def end(token, result, error):
    """Record the facts of a compile that has ended. RESULT is what torch's callback returned, ERROR
    the exception that it raised; one of the two is None."""
    if token is None:
        return
    state = _thread
    # Also drop compiles that began after this one and never ended.
    while state.compiles and state.compiles.pop() is not token:
        pass
    del state.events[token.event_depth :]
    state.phase = -1  # any number: the evaluator has recorded another phase meanwhile
    _write_phase(state)
    outcome = _call_safely("outcome", _note_outcome, token, result, error)
    made = _get_made_code(result)
    # Frames that torch skipped without analysing them get no listings: there may be thousands. They
    # have no label.
    if token.label and outcome != "limit":
        _call_safely("listing", _note_listings, token, result, made)
        caches.note_ended(token.label, token.id)
    if made is not None:
        _call_safely("caches", caches.note_miss, token.id)
        _call_safely("origin", notes.origin, made, token.code, "compiled")
    if token.breaks:
        _call_safely("graph breaks", _note_breaks, token, made)
    if not _rank_known and token.label:
        _call_safely("rank", _note_rank)


def _wrap_trace_structured():
    caches.wrap_trace_structured(
        lambda: _thread.compiles[-1] if _thread.compiles else None, _note_loss
    )


def _note_rank_given():
    if "RANK" in os.environ:
        notes.rank(int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", -1)))


def _note_rank():
    """Record the process's rank, which becomes known when the program joins its process group."""
    global _rank_known
    distributed = _torch.distributed
    _rank_known = True  # set the flag now: if the next line raises, the rank is not read again
    _rank_known = distributed.is_available() and distributed.is_initialized()
    if _rank_known:
        notes.rank(int(distributed.get_rank()), int(os.environ.get("LOCAL_RANK", -1)))


def _skip_ourselves():
    """Mark our functions, so that torch never compiles them. Our hooks may run while torch's
    evaluator is on, for example when a backward is compiled lazily.

    Torch has a list of files to skip. skip_code() has the same effect for our functions and leaves
    the list unchanged.
    """
    skip_code = sys.modules["torch._dynamo.eval_frame"].skip_code
    owners = (
        globals(),
        vars(caches),
        vars(private),
        vars(notes),
        vars(_Compile),
        vars(_Thread),
        vars(_Hidden),
    )
    pending = [
        value.__code__
        for owner in owners
        for value in owner.values()
        if isinstance(value, types.FunctionType)
    ]
    while pending:
        code = pending.pop()
        skip_code(code)
        pending += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


# ---- outcome


def _get_made_code(result):
    """Return the code object that the compile made, or None. Torch 2.6 returns the guarded code
    itself; later versions return it in another object."""
    code = getattr(getattr(result, "guarded_code", result), "code", None)
    return code if isinstance(code, types.CodeType) else None


def _note_outcome(token, result, error):
    outcome, reason, sticky = _classify_outcome(token, result, error)
    if outcome == "declined":
        reason = _append_places(reason, _find_declined_places(token))
    notes.compile(token.id, token.label, outcome, reason[:_REASON_BOUND], sticky)
    return outcome


def _format_stack(stack):
    """Return the lines of a StackSummary, outermost first, like a traceback without the source
    lines."""
    return [
        'File "%s", line %s, in %s' % (entry.filename, entry.lineno, entry.name)
        for entry in stack or ()
    ]


def _find_declined_places(token):
    """Return the lines of the program's stack at the operation because of which torch declined the
    frame. Returns [] if the reason may be another than the last unsupported operation."""
    what = token.unsupported.partition("\n")[0]
    failure = _find_suppressed_failure(token)
    return _format_stack(token.unsupported_at) if what and (what in failure or not failure) else []


def _append_places(reason, places):
    """Append PLACES, lines of a stack, to REASON. If there are too many lines, the outermost are
    left out. If the text is too long, REASON is cut. Names of files and functions are not values,
    so --values does not hide them."""
    added = "".join("\n" + place for place in places[-_PLACES_BOUND:])
    if not added or len(added) > notes.REASON // 2:
        return reason
    added = "\nfrom user code:" + added
    return reason[: notes.REASON - len(added)] + added


def _classify_outcome(token, result, error):
    """Return (outcome, reason, sticky) of a compile for _notes.compile(). Sticky: does torch's
    answer also apply to later calls of the code? None if this is not known."""
    if error is not None:
        return "error", private.strip_reason(_exception_text(error)), None
    if _get_made_code(result) is not None:
        return "compiled", "", None
    strategy = getattr(result, "frame_exec_strategy", None)
    said = getattr(result, "skip_reason", None) or ""
    if not said and getattr(result, "apply_to_code", True) is False:
        # Only in this case does torch's answer apply to a single call. Torch 2.8 to 2.12 gives no
        # reason then, so use the text of torch 2.13.
        said = "tracing is non-recursively disabled for this frame"
    flags = sys.modules["torch._C._dynamo.eval_frame"]
    if strategy is not None:
        action = str(getattr(strategy, "cur_action", "")).rpartition(".")[2]
        sticky = bool(getattr(result, "apply_to_code", True)) and action != "DEFAULT"
    elif result is None:
        # In torch 2.6, None means that torch skips this code from now on. In versions with a
        # ConvertFrameReturn, None is not a valid answer.
        action = (
            "DEFAULT"
            if hasattr(sys.modules.get("torch._dynamo.types"), "ConvertFrameReturn")
            else "SKIP"
        )
        sticky = action == "SKIP" or None
    elif result is getattr(flags, "cache_limit_hit_flag", token):
        action, sticky = "RUN_ONLY", True
    elif result is getattr(flags, "skip_code_recursive_flag", token):
        action, sticky = "SKIP", True
    else:
        return "declined", "torch returned %s" % type(result).__name__, None
    failure = _find_suppressed_failure(token)
    # torch also raises SkipFrame for a graph break in a loop, but that does not count as skipped
    in_loop = not failure and "graph break in a" in token.skipped
    if token.skipped and not failure:
        cause = "Unsupported: %s\n" % token.unsupported if in_loop and token.unsupported else ""
        failure = cause + "SkipFrame: " + token.skipped
    limit = _find_limit(failure)
    if limit:
        return "limit", limit, sticky
    reason = (
        said + (": " if said and failure else "") if private.may_show_all() else ""
    ) + private.strip_reason(failure)
    if action == "RUN_ONLY":
        # Torch answers RUN_ONLY only if a limit is reached. The metrics may not name the limit, so
        # return the reason that is known.
        return "limit", reason, sticky
    excluded = (
        (action == "SKIP" or said)
        and (not failure or failure.startswith("SkipFrame"))
        and not in_loop
    )
    return ("skipped" if excluded else "declined"), reason, sticky


def _find_suppressed_failure(token):
    """Return the exception that torch caught and suppressed in this compile, as "Type: message",
    from torch's compilation metrics; "" if there was none."""
    if not token.label:
        return ""
    metrics = getattr(_dynamo_utils, "_compilation_metrics", ())
    # search several records, because the newest may be those of nested compiles
    for position in range(len(metrics) - 1, max(len(metrics) - 9, -1), -1):
        record = metrics[position]
        if str(getattr(record, "compile_id", None)) == token.label:
            kind = getattr(record, "fail_type", None)
            return "%s: %s" % (kind, getattr(record, "fail_reason", "") or "") if kind else ""
    return ""


def _find_limit(failure):
    """Return which limit was reached, from FAILURE, the text of an exception; "" if it names
    none."""
    found = re.search(r"Limit type: (\w+)|^\w+: (\w+_limit) reached", failure)
    if not found:
        return ""
    name = found[1] or found[2]
    value = re.search(r"currently set to (\w+)", failure)
    value = value[1] if value else getattr(sys.modules.get("torch._dynamo.config"), name, None)
    return "%s (%s) reached" % (name, value) if value is not None else "%s reached" % name


def _exception_text(error):
    """Return the type and the first line of an exception. For an exception of torch, return the
    whole text with explanation and hints. Does not call a __str__ that the program has defined."""
    kind = type(error)
    if kind.__str__ is BaseException.__str__ or _is_type_of_torch(kind):
        lines = [line.strip() for line in str(error)[:_REASON_BOUND].splitlines() if line.strip()]
        message = lines[0] if lines else ""
        if _is_type_of_torch(kind):
            message = "\n".join(lines)
        # after torch's "backend='inductor' raised:" the exception is in the next line
        elif message.endswith(":") and len(lines) > 1:
            message += " " + lines[1]
    else:
        arguments = BaseException.__getattribute__(error, "args")
        message = next((argument for argument in arguments if type(argument) is str), "").partition(
            "\n"
        )[0]
    return "%s: %s" % (kind.__qualname__, message) if message else kind.__qualname__


# ---- phases and graphs


def _wrap_chromium_event():
    # the function is empty in torch, but the program may have replaced it
    filled = _dynamo_utils.record_chromium_event_internal

    _dynamo_utils.record_chromium_event_internal = native._around(
        None, filled, lambda token, event: _call_safely("phase", _record_event, event)
    )


def _write_phase(state):
    """Tell the recorder in which phase this thread is, if the phase has changed."""
    number = _COMPILE if state.compiles else 0
    for name, _ in reversed(state.events):
        if name in _PHASES:
            number = _PHASES[name]
            break
    if number != state.phase:
        native._phase(number)
        state.phase = number


def _record_event(event):
    """Handle EVENT, which torch reports at the begin ("B") or end ("E") of a phase. event["ts"] is
    wall clock in microseconds, a float, which is exact to a quarter of a microsecond."""
    state = _thread
    name = event["name"]
    if event["ph"] == "B":
        token = state.compiles[-1] if state.compiles else None
        if token is not None and not token.label:
            token.label = _read_label(event)
        start = int(event["ts"] * 1000)
        if name == "backend_compile" and token is not None:
            _call_safely("graph", _record_graph, token)
            # start later, so that the time for our text of the graph does not count
            start = time.time_ns()
        if len(state.events) >= _EVENTS_MAX:
            state.events.clear()
        state.events.append((name, start))
        if name in _PHASES:
            _write_phase(state)
    elif event["ph"] == "E":
        for position in range(len(state.events) - 1, -1, -1):
            if state.events[position][0] == name:
                break
        else:
            return  # the phase began before our hook was set
        start = state.events[position][1]
        del state.events[position:]
        if name in _PHASES:
            _write_phase(state)
        label = _read_label(event)
        token = state.compiles[-1] if state.compiles else None
        # A backward may be compiled when it is first needed. It has the label of its forward, and
        # no compile of its own.
        compile = token.id if token is not None and token.label == label else -1
        notes.phase(compile, name, start, max(start, int(event["ts"] * 1000)), label)


def _read_label(event):
    label = (event.get("args") or {}).get("compile_id")
    return "" if label is None or label == "None" else str(label)


def _record_graph(token):
    """Record the graph that torch is about to pass to the backend. The graph is in a local variable
    of one of torch's frames on this stack."""
    frame, module, name = sys._getframe(2), None, ""
    for _ in range(20):
        frame = frame.f_back
        if frame is None:
            break
        if frame.f_code.co_name == "call_user_compiler":
            module = frame.f_locals.get("gm")
            name = getattr(module, "meta", {}).get("backend_id") or ""
            if name:
                break
        # torch 2.6 has the name in this frame, and only there
        elif frame.f_code.co_name == "compile_and_call_fx_graph":
            name = frame.f_locals.get("name") or ""
            break
    if module is None:
        raise LookupError("the graph module was not found")
    token.graphs += 1
    name = str(name or getattr(module, "_backend_id", "") or "graph_%d" % token.graphs)
    rows, lines = [], []
    try:
        _thread.names = None if private.may_show_all() else {}
        with _torch._C.DisableTorchFunction():
            _render_graph(module, name, rows, lines, 0)
    finally:  # record the nodes and lines that have been collected, even after an exception
        _thread.names = None
        notes.graph(token.id, name, rows)
        notes.listing(token.id, "graph", "\n".join(lines))


def _render_graph(module, name, rows, lines, depth):
    """Append the graph's nodes to ROWS, and a text of the graph and its nested graphs to LINES."""
    lines.append("%s:" % name)
    at = where = None
    for node in module.graph.nodes:
        op, node_name, arguments, keywords = node.op, _name_node(node), node.args, node.kwargs
        target, args = _describe_target(node.target), _describe_arg(arguments)
        if _thread.names is not None and op not in _CALLS:
            target = node_name
        kwargs = _describe_arg(keywords) if keywords else "{}"
        if depth == 0:
            rows.append((op, node_name, target, args, kwargs))
        stack = node.meta.get("stack_trace")
        if stack is not at:  # compare first, because nodes often share one stack
            at, before, where = stack, where, _describe_place(stack)
            if where and where != before:
                lines.append(where)
        if op == "output":
            lines.append("    return %s" % (_describe_arg(arguments[0]) if arguments else ""))
            continue
        if op == "placeholder":
            right = target
        elif op == "get_attr":
            right = "self." + target
        else:
            inside = args[1:-2] if len(arguments) == 1 else args[1:-1]
            if keywords:
                named = ["%s=%s" % (key, _describe_arg(value)) for key, value in keywords.items()]
                inside += (", " if inside else "") + ", ".join(named)
            if op == "call_method":
                receiver, _, inside = inside.partition(", ")
                right = "%s.%s(%s)" % (receiver, target, inside)
            else:
                right = "%s%s(%s)" % ("self." if op == "call_module" else "", target, inside)
        lines.append("    %s%s = %s" % (node_name, _describe_shape(node), right))
    if depth < 8:
        for child_name, child in module.named_children():
            if hasattr(child, "graph"):
                lines.append("")
                _render_graph(child, "%s.%s" % (name, child_name), rows, lines, depth + 1)


_CALLS = ("call_function", "call_method")


def _name_node(node):
    """Return the name of NODE; if values may not be shown, a made-up name. Torch derives names of
    inputs and attributes from keys of the program, which are values."""
    names = _thread.names
    if names is None or node.op in _CALLS or node.op == "output":
        return node.name
    return names.setdefault(node, "%s_%d" % (node.op, len(names)))


def _describe_shape(node):
    """Return ": dtype[shape]" for the value of NODE, or "". Only torch's fake tensors are read,
    because reading other objects may run the program's code."""
    value = node.meta.get("example_value", node.meta.get("val"))
    if private.values_option() == "off":
        return ""
    if type(value).__name__ != "FakeTensor":
        return ""
    try:
        return ": %s[%s]" % (str(value.dtype).partition(".")[2], ", ".join(map(str, value.shape)))
    except Exception:
        return ""


def _describe_place(stack):
    """Return a line of text with the file and line of the innermost frame of STACK, the stack that
    torch keeps for a node."""
    if type(stack) is not str:
        return ""
    # Search at the start of a line, because lines of the program's source in between may contain
    # the same words.
    file, mark, rest = ("\n" + stack).rpartition('\n  File "')[2].partition('", line ')
    line = rest.partition(",")[0].partition("\n")[0]
    # Inputs of torch._dynamo.export() have the line -1: they exist before the first instruction.
    return "    # %s:%s" % (file, line) if mark and line.isdigit() else ""


_functions = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    type,
)
_target_texts = {}  # builtin -> text; builtins are never freed


def _is_type_of_torch(kind):
    return kind.__module__.partition(".")[0] in ("torch", "builtins")


def _describe_target(target):
    if type(target) is str:
        return target
    builtin = type(target) is types.BuiltinFunctionType
    if builtin and target in _target_texts:
        return _target_texts[target]
    kind = type(target)
    if builtin or _is_type_of_torch(kind):
        text = getattr(target, "__name__", None)
        # do not call torch._get_qualified_name() for a lambda: it would read the source file
        if text == "<lambda>":
            text = "%s.<lambda>" % getattr(target, "__module__", "")
        elif kind in _functions:
            try:
                text = _torch.fx.node._get_qualified_name(target)
            except Exception:
                text = "%s.%s" % (getattr(target, "__module__", ""), text)
        else:
            text = str(target) if hasattr(target, "_schema") else text or kind.__name__
        if builtin and len(_target_texts) < 4096:
            _target_texts[target] = text
        return text
    return "<%s>" % kind.__name__


_AS_REPR = frozenset((int, float, bool, complex, type(None), str, bytes, type(Ellipsis)))


def _describe_arg(value, depth=0):
    """Describe an argument of a node by a text of limited length, without running code of the
    program's objects."""
    kind = type(value)
    if kind is _node_class:
        return _name_node(value)
    if kind in _AS_REPR and _thread.names is not None and value is not None:
        return "<%s>" % kind.__name__
    if kind in _AS_REPR:
        return (
            repr(value) if kind is not str or len(value) <= _BOUND else repr(value[:_BOUND]) + "..."
        )
    if isinstance(value, _node_class):
        return _name_node(value)
    if depth > 6:
        return "..."
    if isinstance(value, (tuple, list)):
        inside = _describe_arguments(value, depth)
        if isinstance(value, tuple):
            return "(%s,)" % inside if len(value) == 1 else "(%s)" % inside
        return "[%s]" % inside
    if isinstance(value, dict):
        return "{%s}" % _describe_arguments(value.items(), depth)
    if kind is slice:
        return "slice(%s)" % _describe_arguments((value.start, value.stop, value.step), depth)
    if (
        kind.__name__
        in ("dtype", "device", "layout", "memory_format", "SymInt", "SymFloat", "SymBool")
        and kind.__module__.partition(".")[0] == "torch"
    ):
        return str(value)
    if callable(value) and _is_type_of_torch(kind):
        return _describe_target(value)
    return "<%s>" % kind.__name__


def _describe_arguments(values, depth):
    """Describe several values, separated by commas. If VALUES is not a list or tuple, it has the
    items of a dict: pairs of key and value."""
    pairs = not isinstance(values, (tuple, list))
    parts, length = [], 0
    for value in values:
        part = (
            "%s: %s" % (_describe_arg(value[0], depth + 1), _describe_arg(value[1], depth + 1))
            if pairs
            else _describe_arg(value, depth + 1)
        )
        parts.append(part)
        length += len(part) + 2
        if length > _BOUND:
            parts.append("...")
            break
    return ", ".join(parts)


# ---- graph breaks


def _wrap_add_to_stats():
    unsupported = sys.modules["torch._dynamo.exc"].Unsupported

    def note_counted_break(token, self, category="unimplemented"):
        if _thread.compiles and category == "graph_break":
            _call_safely("graph break", _note_counted_break, self, sys._getframe(1))
        elif _thread.compiles:
            _thread.compiles[-1].unsupported = getattr(self, "msg", "")
            _thread.compiles[-1].unsupported_at = getattr(self, "real_stack", None)

    unsupported.add_to_stats = native._around(None, unsupported.add_to_stats, note_counted_break)


def _wrap_skip_frame():
    """Wrap SkipFrame.__init__ in versions of torch that do not return why they skip a frame. In
    these versions the reason is only in this exception, which torch raises and catches."""
    if hasattr(
        getattr(sys.modules.get("torch._dynamo.types"), "ConvertFrameReturn", None), "skip_reason"
    ):
        return
    skipped = sys.modules["torch._dynamo.exc"].SkipFrame

    def note_skip_reason(token, self, *words):
        if _thread.compiles:
            _thread.compiles[-1].skipped = str(words[0]) if words else ""

    skipped.__init__ = native._around(None, skipped.__init__, note_skip_reason)


def _wrap_compile_reason():
    reason_class = sys.modules["torch._dynamo.output_graph"].GraphCompileReason

    def note_end_reason(token, self):
        if _thread.compiles and getattr(self, "graph_break", False):
            # frame 1 is the __init__ that dataclass has generated
            _call_safely("graph break", _note_break_reason, self, sys._getframe(2))

    reason_class.__post_init__ = native._around(None, reason_class.__post_init__, note_end_reason)


def _note_counted_break(error, frame):
    """Record a graph break that torch has just counted. FRAME is torch's Python frame that
    translates the instruction at which the graph breaks."""
    token = _thread.compiles[-1]
    token.counted = error.msg
    _add_break(token, frame, error.msg, getattr(error, "real_stack", None), True)


def _note_break_reason(reason, frame):
    """Called when torch records the REASON why a graph ends. If torch has just counted this break,
    the break has a row already. Otherwise torch never counts the break, so add a row."""
    token = _thread.compiles[-1]
    counted, token.counted = token.counted, None
    if counted is not None and counted == reason.reason:
        return
    text = str(reason.reason)
    cause = frame.f_locals.get("exc") or frame.f_locals.get("excp")
    cause, user_stack = getattr(cause, "msg", None), reason.user_stack
    if not cause and text == "step_unsupported":
        # take the stack of the unsupported operation: the stack of REASON ends at the earlier
        # statement at which torch breaks the graph instead
        cause, user_stack = token.unsupported, token.unsupported_at or user_stack
    if cause and cause != text:
        text += "\n" + cause
    _add_break(token, frame, text, user_stack, False)


def _add_break(token, frame, reason, user_stack, counted):
    found = _Break()
    found.reason = private.strip_reason(reason)[:_REASON_BOUND]
    found.user_stack = "\n".join(_format_stack(user_stack))
    found.code, found.line, found.offset, found.targets = token.code, -1, -1, ()
    translator, instruction = frame.f_locals.get("self"), frame.f_locals.get("inst")
    if not hasattr(translator, "current_instruction"):
        translator = frame.f_locals.get("tx")
    if hasattr(translator, "current_instruction"):
        if not hasattr(instruction, "offset"):
            instruction = translator.current_instruction
        found.code = getattr(translator, "f_code", token.code)
        found.offset = _find_offset(found.code, translator.instructions, instruction)
        line = getattr(instruction.positions, "lineno", None) or getattr(translator, "lineno", None)
        found.line = line if isinstance(line, int) else -1
        # The resume function begins after the instruction. If the instruction is a jump, a second
        # resume function begins at the target of the jump.
        instructions, position = translator.instructions, getattr(
            translator, "instruction_pointer", None
        )
        following = (
            instructions[position]
            if isinstance(position, int) and position < len(instructions)
            else None
        )
        found.targets = [
            place.offset
            for one in (following, getattr(instruction, "target", None))
            if one is not None
            for place in (one, getattr(one, "target", None))
            if place is not None
        ]
        token.globals = getattr(getattr(translator, "output", None), "global_scope", None)
    # identify the place by torch's own offset, which is different for each instruction
    place = (id(found.code), getattr(instruction, "offset", None))
    if token.breaks is None:
        token.breaks, token.places = [], set()
    # When torch restarts its analysis, it reaches the same break again. Add a second row for a
    # break only if torch has counted it a second time.
    if counted or place[1] is None or place not in token.places:
        token.breaks.append(found)
    token.places.add(place)


def _find_offset(code, instructions, instruction):
    """Return the offset in CODE of INSTRUCTION, one of torch's INSTRUCTIONS. Torch rewrites some
    instructions and renumbers the offsets. So search CODE for the instruction with the same
    operation and source position; if there are several, take the one with the same number among
    them. Returns -1 if there is none, because torch has added INSTRUCTION."""
    positions, opcode, nth = instruction.positions, instruction.opcode, 0
    for other in instructions:
        if other is instruction:
            break
        nth += other.opcode == opcode and other.positions == positions
    bytecode = code.co_code
    for index, place in enumerate(code.co_positions()):
        if bytecode[2 * index] == opcode and place == positions:
            if nth == 0:
                return 2 * index
            nth -= 1
    return -1


def _note_breaks(token, made):
    """Record the graph breaks of a compile. The compiled code ends at the last break and calls the
    resume functions there: after each earlier break torch has restarted its analysis."""
    resumes = _find_resume_codes(token, made)
    metadata = getattr(_resume_cache, "generated_code_metadata", {})
    for _, code in resumes:
        origin = getattr(metadata.get(code) if code in metadata else None, "code", token.code)
        notes.origin(code, origin, "resume")
    for found in token.breaks:
        resume = None
        if found is token.breaks[-1]:
            # choose the resume function that begins at one of the break's targets. There may be
            # none, because torch has moved the offsets. In that case choose the resume function if
            # it is the only one.
            resume = next(
                (code for offset in found.targets for at, code in resumes if at == offset), None
            )
            if resume is None and len(resumes) == 1:
                resume = resumes[0][1]
        notes.graph_break(
            token.id, found.code, found.line, found.offset, found.reason, found.user_stack, resume
        )


def _find_resume_codes(token, made):
    """Return [(offset, code)] for the resume functions that the compiled code MADE calls. Torch
    stores a resume function in the frame's globals, as a function, a code object or a function that
    makes closures. The name has the offset at which the resume function begins."""
    if made is None or token.globals is None:
        return []
    resumes = []
    for name in made.co_names:
        found = re.match(r"__resume_at_(\d+)_", name)
        value = dict.get(token.globals, name) if found else None
        if isinstance(value, types.FunctionType):
            held = [cell.cell_contents for cell in value.__closure__ or ()]
            value = next((one for one in held if isinstance(one, types.CodeType)), value.__code__)
        if isinstance(value, types.CodeType):
            resumes.append((int(found[1]), value))
    # Torch 2.6 loads the code of a closure as a constant. The global for this code exists only for
    # debuggers, so its name is not in co_names.
    if _resume_cache is not None:
        known = _resume_cache.generated_code_metadata
        for constant in made.co_consts:
            if isinstance(constant, types.CodeType) and constant in known:
                offset = next(
                    (
                        int(name.split("_")[4])
                        for name, value in list(token.globals.items())
                        if value is constant and name.startswith("__resume_at_")
                    ),
                    -1,
                )
                resumes.append((offset, constant))
    return resumes


# ---- listings

# id(code) -> (weak reference to the code, its disassembly, does the disassembly show constants?).
# Spares a second disassembly if code is compiled again.
_listings = collections.OrderedDict()


def _note_listings(token, result, made):
    known, whole = _listings.get(id(token.code)), private.may_show_all()
    if known is None or known[0]() is not token.code or known[2] != whole:
        known = _listings[id(token.code)] = (
            weakref.ref(token.code),
            _disassemble_code(token.code, whole),
            whole,
        )
        if len(_listings) > 64:
            _listings.popitem(last=False)
    notes.listing(token.id, "original_bytecode", known[1])
    config = sys.modules.get("torch._dynamo.config")
    # torch.compile(dynamic=False) sets this to False
    if not getattr(config, "automatic_dynamic_shapes", True):
        notes.listing(token.id, "automatic_dynamic_shapes", "False")
    if made is None:
        return
    notes.listing(token.id, "modified_bytecode", _disassemble_code(made, whole))
    guards = getattr(getattr(result, "guarded_code", result), "guard_manager", None)
    root = getattr(guards, "root", None)
    # If values may not be shown, a listing has only what the table `guard` has already.
    if root is not None and whole:
        notes.listing(token.id, "guards", _list_guards(root))


def _list_guards(root):
    """Return the tree of guards as text: the source and the guards of each manager. torch's own
    text, str(manager), tells little more and takes four times as long."""
    lines = []
    _list_guards_below(root, "", "", lines)
    epilogue = getattr(root, "get_epilogue_lambda_guards", None)
    for guard in epilogue() if epilogue else ():
        lines.append(
            "+- %s: %s" % (type(guard).__name__, "; ".join(guard.verbose_code_parts()).rstrip())
        )
    if len(lines) > _GUARDS_MAX:
        lines.append("...")
    return "\n".join(lines)


def _list_guards_below(manager, indent, role, lines):
    if manager is None or len(lines) > _GUARDS_MAX:
        return
    lines.append("%s+- %s%s" % (indent, role, manager.get_source() if indent else "root"))
    indent += "| "
    for guard in manager.get_leaf_guards():
        lines.append(
            "%s+- %s: %s"
            % (indent, type(guard).__name__, "; ".join(guard.verbose_code_parts()).rstrip())
        )
    if hasattr(manager, "get_key_value_managers"):  # the manager of a dict whose order matters
        for position, (key, value) in sorted(manager.get_key_value_managers().items()):
            _list_guards_below(key, indent, "key %d: " % position, lines)
            _list_guards_below(value, indent, "value %d: " % position, lines)
    for child in manager.get_child_managers():
        _list_guards_below(child, indent, "", lines)


class _Hidden:
    """Stands in a listing for a constant that may not be shown: its repr() is the constant's
    type."""

    def __init__(self, constant):
        self.type = type(constant).__name__

    def __repr__(self):
        return "<%s>" % self.type


_RELATIVE_JUMPS = frozenset(dis.hasjrel)  # a list in dis


def _disassemble_code(code, whole=True):
    """Disassemble CODE. Each line has: line number, `>>` if the instruction is the target of a jump
    or an exception handler, offset, operation, argument. A constant may be a value of the program,
    which torch has put there. If WHOLE is false, only the types of constants are shown."""
    listing = dis.Bytecode(
        code if whole else code.replace(co_consts=tuple(map(_Hidden, code.co_consts)))
    )
    lines, line = [], None
    targets = {
        *dis.findlabels(code.co_code),
        *(entry.target for entry in listing.exception_entries),
    }
    for one in listing:
        text, argument = one.argrepr[:_BOUND], "" if one.arg is None else one.arg
        if one.opcode in _RELATIVE_JUMPS:
            text = "to %d" % one.argval
        # the argument of this instruction is a constant itself
        elif one.opname == "LOAD_SMALL_INT" and not whole:
            text = argument = ""
        at, line = (
            "" if one.positions.lineno == line else one.positions.lineno
        ), one.positions.lineno or line
        row = "%5s %s %5d %-24s %s" % (
            at or "",
            ">>" if one.offset in targets else "  ",
            one.offset,
            one.opname,
            argument,
        )
        lines.append("%s (%s)" % (row, text) if text else row)
    if listing.exception_entries:
        lines.append("exceptions:")
        for entry in listing.exception_entries:
            lines.append(
                "      %d to %d -> %d, depth %d%s"
                % (
                    entry.start,
                    entry.end,
                    entry.target,
                    entry.depth,
                    ", with the instruction" if entry.lasti else "",
                )
            )
    return "\n".join(lines)
