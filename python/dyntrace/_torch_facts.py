"""Records torch's compiles: outcome, graph breaks, graphs, listings, phases.

Runs in: the traced process, within torch's compiles. begin() and end() enclose each call of torch's
set_eval_frame callback; prepare() sets three hooks for facts that are gone afterwards. Nothing here
raises, prints or changes torch's behaviour: our own failures become loss rows, and torch continues.

Where each fact comes from:

    label           the compile id that torch puts on its first timed event, so that failed compiles
                    have theirs too
    outcome, reason what the callback returned or raised; for what torch suppressed, the newest
    compilation metrics
    phases          torch._dynamo.utils calls record_chromium_event_internal(event) at both ends of
                    all that it times:
                    an empty function, there to be filled, and a leaf: filling it adds no frame to
                    any traceback
    graphs          the graph module is a local of the frame that times "backend_compile", before
                    the backend sees it
    graph breaks    Unsupported.add_to_stats and GraphCompileReason.__post_init__, both leaves as
                    well
    listings        the code objects and the guards in what the callback returned; of inductor and
                    of torch's caches what
                    it tells its structured log (_torch_caches)

**Graph breaks and torch's counter.** counters["graph_break"][message] goes up when an `Unsupported`
reaches an instruction that the graph can be broken at (also for one that came out of an inlined
call, and also again when the analysis starts over from nothing and meets the same instruction a
second time). A row is made at that very moment, and its `reason` is the counter's key to the letter
(up to _REASON_BOUND); so the rows whose reason is such a key are, by message, as many as the
counter says. From torch 2.8 or so the key's first line is the break's type.

Some breaks are not counted by torch: those at a jump that depends on data ("generic_jump ..."),
those that torch can only make at an earlier statement ("step_unsupported"), at a comprehension,
those that the optimizer of DistributedDataParallel makes, and those caused by a `UserError` (torch
2.13; 2.6 counts them). They are rows too, one for each place however often the analysis starts
over, and where it is known the cause follows the first line; for "step_unsupported" that is the
last thing that torch said it cannot do. Frames that torch gives up as a whole (fullgraph, a loop
with a break in it) are no breaks but compiles with the outcome 'declined' or 'error'; 'skipped' is
what its rules exclude.

A break's code, line and offset are where the frame stops that is being compiled, which is where its
resume function goes on; the last line of its user stack is the cause, possibly in a function that
was being inlined.

**What was not done and why.** A handler on torch's trace log makes torch render every payload;
wrapping torch's own functions puts our frame into its tracebacks and its stack filters;
register_bytecode_hook shows up as a phase.
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

_BOUND = 2000  # characters of one node's arguments, one instruction's argument
_REASON_BOUND = 16384  # characters of one reason
_PLACES_BOUND = 16  # lines of the program behind one
# per process: enough for a failure of ours that repeats at every compile
_LOSSES_MAX = 20
_GUARDS_MAX = 20000  # lines of one tree
_EVENTS_MAX = 1000  # open phases on a thread; more means that torch does not report ends

# Filled by prepare(). Late, because this module is imported while torch still is.
_torch = _dynamo_utils = _resume_cache = _node_class = None
_losses = 0
_rank_known = False


class _Thread(threading.local):
    """A thread's open compiles."""

    def __init__(self):
        self.compiles = []  # _Compile, innermost last: a compile may run code that is compiled
        self.events = []  # (name, start_ns) of phases that have begun
        self.names = None  # node -> what it is called in a graph that is shown without values


_thread = _Thread()


class _Compile:
    """A compile from begin() to end(). Holds objects of torch and the program only until end()."""

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
        self.places = None  # set of (id of the code, offset), one for each place with a break
        self.globals = None  # of the frame: there torch puts the resume functions
        self.counted = None  # reason of the break that add_to_stats has just counted
        self.unsupported = ""  # the last thing that torch said it cannot do
        self.unsupported_at = None  # the program's lines there, a StackSummary
        # why it last gave up a frame as a whole, where only its exception says so
        self.skipped = ""
        self.graphs = 0


class _Break:
    __slots__ = ("code", "line", "offset", "reason", "user_stack", "targets")


def _lost(where, error):
    global _losses
    _losses += 1
    if _losses <= _LOSSES_MAX:
        try:
            notes.loss("facts of compiling: %s: %s" % (where, private.error(error)))
        except Exception:
            pass


def _try(where, function, *values):
    """FUNCTION(*VALUES); None, and a loss row, when it raises."""
    try:
        return function(*values)
    except Exception as error:
        _lost(where, error)


# ---- the front: what the evaluator calls


def prepare():
    """Set the hooks. Called once, before the first compile, when torch._dynamo is wholly
    imported.
    """
    global _torch, _dynamo_utils, _resume_cache, _node_class
    try:
        _torch = sys.modules["torch"]
        _dynamo_utils = sys.modules["torch._dynamo.utils"]
        _resume_cache = getattr(
            sys.modules.get("torch._dynamo.resume_execution"), "ContinueExecutionCache", None
        )
        _node_class = sys.modules["torch.fx.node"].Node
    except (KeyError, AttributeError) as error:
        _lost("prepare", error)
        return
    for hook in (
        _hook_events,
        _hook_unsupported,
        _hook_skipped,
        _hook_break,
        _hook_caches,
        _skip_ourselves,
        _note_rank_given,
    ):
        _try(hook.__name__, hook)


def begin(compile, code):
    """Start compile COMPILE (our id) of CODE. Returns a token for end()."""
    token = _Compile(compile, code, len(_thread.events))
    _thread.compiles.append(token)
    return token


def end(token, result, error):
    """End a compile. RESULT: the callback's result, or None. ERROR: its exception, or None."""
    if token is None:
        return
    state = _thread
    # Compiles above it began later and never ended.
    while state.compiles and state.compiles.pop() is not token:
        pass
    del state.events[token.event_depth :]
    outcome = _try("outcome", _note_outcome, token, result, error)
    made = _made_code(result)
    # Stay cheap for frames that torch skipped unread: there may be thousands.
    if token.label and outcome != "limit":
        _try("listing", _note_listings, token, result, made)
        caches.ended(token.label, token.id)
    if made is not None:
        _try("caches", caches.missed, token.id)
        _try("origin", notes.origin, made, token.code, "compiled")
    if token.breaks:
        _try("graph breaks", _note_breaks, token, made)
    if not _rank_known and token.label:
        _try("rank", _note_rank)


def _hook_caches():
    caches.hook(lambda: _thread.compiles[-1] if _thread.compiles else None, _lost)


def _note_rank_given():
    if "RANK" in os.environ:
        notes.rank(int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", -1)))


def _note_rank():
    """The rank becomes known when the program joins its process group."""
    global _rank_known
    distributed = _torch.distributed
    _rank_known = True  # if this raises, once is enough
    _rank_known = distributed.is_available() and distributed.is_initialized()
    if _rank_known:
        notes.rank(int(distributed.get_rank()), int(os.environ.get("LOCAL_RANK", -1)))


def _skip_ourselves():
    """A lazily compiled backward may run while torch's evaluator is on: it would compile our hooks.

    Torch's own files are on its list of files to skip; this is the same for ours, without touching
    that list.
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


def _made_code(result):
    """The code that the compile made, or None. Torch 2.6 returns the guarded code itself, later
    ones a wrapper.
    """
    code = getattr(getattr(result, "guarded_code", result), "code", None)
    return code if isinstance(code, types.CodeType) else None


def _note_outcome(token, result, error):
    outcome, reason, sticky = _outcome(token, result, error)
    if outcome == "declined":
        reason = _with_places(reason, _places_of(token))
    notes.compile(token.id, token.label, outcome, reason[:_REASON_BOUND], sticky)
    return outcome


def _places(stack):
    """The lines of a StackSummary, outermost first, as a traceback has them but for the code."""
    return [
        'File "%s", line %s, in %s' % (entry.filename, entry.lineno, entry.name)
        for entry in stack or ()
    ]


def _places_of(token):
    """The program's stack at the operation for which torch declined the frame."""
    what = token.unsupported.partition("\n")[0]
    failure = _suppressed_failure(token)
    return _places(token.unsupported_at) if what and (what in failure or not failure) else []


def _with_places(reason, places):
    """REASON, cut so that PLACES fit behind it. Where they do not, the outermost are left out.
    Names of files and functions are no values, so --values does not hide them."""
    added = "".join("\n" + place for place in places[-_PLACES_BOUND:])
    if not added or len(added) > notes.REASON // 2:
        return reason
    added = "\nfrom user code:" + added
    return reason[: notes.REASON - len(added)] + added


def _outcome(token, result, error):
    """(outcome, reason, sticky): see _notes.compile(). Sticky: the answer holds for the calls to
    come as well.
    """
    if error is not None:
        return "error", private.reason(_exception_text(error)), None
    if _made_code(result) is not None:
        return "compiled", "", None
    strategy = getattr(result, "frame_exec_strategy", None)
    said = getattr(result, "skip_reason", None) or ""
    if not said and getattr(result, "apply_to_code", True) is False:
        # Torch 2.8 to 2.12 does not say why, but answers for a single call in this case only.
        # 2.13's words.
        said = "tracing is non-recursively disabled for this frame"
    flags = sys.modules["torch._C._dynamo.eval_frame"]
    if strategy is not None:
        action = str(getattr(strategy, "cur_action", "")).rpartition(".")[2]
        sticky = bool(getattr(result, "apply_to_code", True)) and action != "DEFAULT"
    elif result is None:
        # Torch 2.6 skips from then on; where there is a ConvertFrameReturn, None is no proper
        # answer.
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
    failure = _suppressed_failure(token)
    # a failure, though torch says it skips
    in_loop = not failure and "graph break in a" in token.skipped
    if token.skipped and not failure:
        cause = "Unsupported: %s\n" % token.unsupported if in_loop and token.unsupported else ""
        failure = cause + "SkipFrame: " + token.skipped
    limit = _limit(failure)
    if limit:
        return "limit", limit, sticky
    reason = (
        said + (": " if said and failure else "") if private.whole() else ""
    ) + private.reason(failure)
    if action == "RUN_ONLY":
        # Today torch does this only at a limit; if the metrics are missing or differ, report only
        # known facts.
        return "limit", reason, sticky
    excluded = (
        (action == "SKIP" or said)
        and (not failure or failure.startswith("SkipFrame"))
        and not in_loop
    )
    return ("skipped" if excluded else "declined"), reason, sticky


def _suppressed_failure(token):
    """The exception that torch met and kept to itself, "Type: message", from the metrics of this
    compile; else "".
    """
    if not token.label:
        return ""
    metrics = getattr(_dynamo_utils, "_compilation_metrics", ())
    # nested compiles come before it
    for position in range(len(metrics) - 1, max(len(metrics) - 9, -1), -1):
        record = metrics[position]
        if str(getattr(record, "compile_id", None)) == token.label:
            kind = getattr(record, "fail_type", None)
            return "%s: %s" % (kind, getattr(record, "fail_reason", "") or "") if kind else ""
    return ""


def _limit(failure):
    """Which limit was hit, from the text of a failure, or ""."""
    found = re.search(r"Limit type: (\w+)|^\w+: (\w+_limit) reached", failure)
    if not found:
        return ""
    name = found[1] or found[2]
    value = re.search(r"currently set to (\w+)", failure)
    value = value[1] if value else getattr(sys.modules.get("torch._dynamo.config"), name, None)
    return "%s (%s) reached" % (name, value) if value is not None else "%s reached" % name


def _exception_text(error):
    """The exception's type and first line; for torch's own, the whole text with explanation and
    hints. A program's __str__ is not called, because it is the program's code."""
    kind = type(error)
    if kind.__str__ is BaseException.__str__ or _of_torch(kind):
        lines = [line.strip() for line in str(error)[:_REASON_BOUND].splitlines() if line.strip()]
        message = lines[0] if lines else ""
        if _of_torch(kind):
            message = "\n".join(lines)
        # "backend='inductor' raised:", and the next line says what
        elif message.endswith(":") and len(lines) > 1:
            message += " " + lines[1]
    else:
        arguments = BaseException.__getattribute__(error, "args")
        message = next((argument for argument in arguments if type(argument) is str), "").partition(
            "\n"
        )[0]
    return "%s: %s" % (kind.__qualname__, message) if message else kind.__qualname__


# ---- phases and graphs


def _hook_events():
    # here, or whatever it was filled with before us
    filled = _dynamo_utils.record_chromium_event_internal

    _dynamo_utils.record_chromium_event_internal = native._around(
        None, filled, lambda token, event: _try("phase", _event, event)
    )


def _event(event):
    """An end of something that torch times. Times are in microseconds; a float holds them to a
    quarter of one.
    """
    state = _thread
    name = event["name"]
    if event["ph"] == "B":
        token = state.compiles[-1] if state.compiles else None
        if token is not None and not token.label:
            token.label = _label(event)
        start = int(event["ts"] * 1000)
        if name == "backend_compile" and token is not None:
            _try("graph", _graph, token)
            start = time.time_ns()  # our rendering is not the backend's work
        if len(state.events) >= _EVENTS_MAX:
            state.events.clear()
        state.events.append((name, start))
    elif event["ph"] == "E":
        for position in range(len(state.events) - 1, -1, -1):
            if state.events[position][0] == name:
                break
        else:
            return  # began before us
        start = state.events[position][1]
        del state.events[position:]
        label = _label(event)
        token = state.compiles[-1] if state.compiles else None
        # A backward, compiled when it is first needed, has the label of its forward and no compile
        # of its own.
        compile = token.id if token is not None and token.label == label else -1
        notes.phase(compile, name, start, max(start, int(event["ts"] * 1000)), label)


def _label(event):
    label = (event.get("args") or {}).get("compile_id")
    return "" if label is None or label == "None" else str(label)


def _graph(token):
    """Note the graph that the backend is about to get."""
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
        elif frame.f_code.co_name == "compile_and_call_fx_graph":  # torch 2.6: only there
            name = frame.f_locals.get("name") or ""
            break
    if module is None:
        raise LookupError("the graph module was not found")
    token.graphs += 1
    name = str(name or getattr(module, "_backend_id", "") or "graph_%d" % token.graphs)
    rows, lines = [], []
    try:
        _thread.names = None if private.whole() else {}
        with _torch._C.DisableTorchFunction():
            _render_graph(module, name, rows, lines, 0)
    finally:  # as far as it came
        _thread.names = None
        notes.graph(token.id, name, rows)
        notes.listing(token.id, "graph", "\n".join(lines))


def _render_graph(module, name, rows, lines, depth):
    """Append the graph's nodes to ROWS, and a text of it and its nested graphs to LINES."""
    lines.append("%s:" % name)
    at = where = None
    for node in module.graph.nodes:
        op, node_name, arguments, keywords = node.op, _name(node), node.args, node.kwargs
        target, args = _target(node.target), _text(arguments)
        if _thread.names is not None and op not in _CALLS:
            target = node_name
        kwargs = _text(keywords) if keywords else "{}"
        if depth == 0:
            rows.append((op, node_name, target, args, kwargs))
        stack = node.meta.get("stack_trace")
        if stack is not at:  # nodes often share one
            at, before, where = stack, where, _where(stack)
            if where and where != before:
                lines.append(where)
        if op == "output":
            lines.append("    return %s" % (_text(arguments[0]) if arguments else ""))
            continue
        if op == "placeholder":
            right = target
        elif op == "get_attr":
            right = "self." + target
        else:
            inside = args[1:-2] if len(arguments) == 1 else args[1:-1]
            if keywords:
                named = ["%s=%s" % (key, _text(value)) for key, value in keywords.items()]
                inside += (", " if inside else "") + ", ".join(named)
            if op == "call_method":
                receiver, _, inside = inside.partition(", ")
                right = "%s.%s(%s)" % (receiver, target, inside)
            else:
                right = "%s%s(%s)" % ("self." if op == "call_module" else "", target, inside)
        lines.append("    %s%s = %s" % (node_name, _annotation(node), right))
    if depth < 8:
        for child_name, child in module.named_children():
            if hasattr(child, "graph"):
                lines.append("")
                _render_graph(child, "%s.%s" % (name, child_name), rows, lines, depth + 1)


_CALLS = ("call_function", "call_method")


def _name(node):
    """A node's name. Torch makes names of inputs and attributes from the program's keys, which are
    values."""
    names = _thread.names
    if names is None or node.op in _CALLS or node.op == "output":
        return node.name
    return names.setdefault(node, "%s_%d" % (node.op, len(names)))


def _annotation(node):
    """The shape that torch found for a value. Reads only torch's fake tensors: other objects may
    run the program's code."""
    value = node.meta.get("example_value", node.meta.get("val"))
    if private.kept() == "off":
        return ""
    if type(value).__name__ != "FakeTensor":
        return ""
    try:
        return ": %s[%s]" % (str(value.dtype).partition(".")[2], ", ".join(map(str, value.shape)))
    except Exception:
        return ""


def _where(stack):
    """A line that says where the innermost frame is of the stack that torch remembers for a
    node.
    """
    if type(stack) is not str:
        return ""
    # At the start of a line: the program's own lines, which stand between, may have such words in
    # them.
    file, mark, rest = ("\n" + stack).rpartition('\n  File "')[2].partition('", line ')
    line = rest.partition(",")[0].partition("\n")[0]
    # Inputs that are made before the first instruction have the line -1: those of
    # torch._dynamo.export().
    return "    # %s:%s" % (file, line) if mark and line.isdigit() else ""


_functions = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    type,
)
_target_texts = {}  # of builtins, which live for ever


def _of_torch(kind):
    return kind.__module__.partition(".")[0] in ("torch", "builtins")


def _target(target):
    if type(target) is str:
        return target
    builtin = type(target) is types.BuiltinFunctionType
    if builtin and target in _target_texts:
        return _target_texts[target]
    kind = type(target)
    if builtin or _of_torch(kind):
        text = getattr(target, "__name__", None)
        # Torch reads the source file to name a lambda.
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


def _text(value, depth=0):
    """An argument of a node as text, bounded, without asking the program's objects."""
    kind = type(value)
    if kind is _node_class:
        return _name(value)
    if kind in _AS_REPR and _thread.names is not None and value is not None:
        return "<%s>" % kind.__name__
    if kind in _AS_REPR:
        return (
            repr(value) if kind is not str or len(value) <= _BOUND else repr(value[:_BOUND]) + "..."
        )
    if isinstance(value, _node_class):
        return _name(value)
    if depth > 6:
        return "..."
    if isinstance(value, (tuple, list)):
        inside = _texts(value, depth)
        if isinstance(value, tuple):
            return "(%s,)" % inside if len(value) == 1 else "(%s)" % inside
        return "[%s]" % inside
    if isinstance(value, dict):
        return "{%s}" % _texts(value.items(), depth)
    if kind is slice:
        return "slice(%s)" % _texts((value.start, value.stop, value.step), depth)
    if (
        kind.__name__
        in ("dtype", "device", "layout", "memory_format", "SymInt", "SymFloat", "SymBool")
        and kind.__module__.partition(".")[0] == "torch"
    ):
        return str(value)
    if callable(value) and _of_torch(kind):
        return _target(value)
    return "<%s>" % kind.__name__


def _texts(values, depth):
    """Several, with commas. A dict's items come as pairs."""
    pairs = not isinstance(values, (tuple, list))
    parts, length = [], 0
    for value in values:
        part = (
            "%s: %s" % (_text(value[0], depth + 1), _text(value[1], depth + 1))
            if pairs
            else _text(value, depth + 1)
        )
        parts.append(part)
        length += len(part) + 2
        if length > _BOUND:
            parts.append("...")
            break
    return ", ".join(parts)


# ---- graph breaks


def _hook_unsupported():
    unsupported = sys.modules["torch._dynamo.exc"].Unsupported

    def after(token, self, category="unimplemented"):
        if _thread.compiles and category == "graph_break":
            _try("graph break", _counted_break, self, sys._getframe(1))
        elif _thread.compiles:
            _thread.compiles[-1].unsupported = getattr(self, "msg", "")
            _thread.compiles[-1].unsupported_at = getattr(self, "real_stack", None)

    unsupported.add_to_stats = native._around(None, unsupported.add_to_stats, after)


def _hook_skipped():
    """Where torch does not return why it skips a frame, only the exception that it catches has
    it.
    """
    if hasattr(
        getattr(sys.modules.get("torch._dynamo.types"), "ConvertFrameReturn", None), "skip_reason"
    ):
        return
    skipped = sys.modules["torch._dynamo.exc"].SkipFrame

    def after(token, self, *words):
        if _thread.compiles:
            _thread.compiles[-1].skipped = str(words[0]) if words else ""

    skipped.__init__ = native._around(None, skipped.__init__, after)


def _hook_break():
    reason_class = sys.modules["torch._dynamo.output_graph"].GraphCompileReason

    def after(token, self):
        if _thread.compiles and getattr(self, "graph_break", False):
            # 1 is the __init__ that dataclass wrote
            _try("graph break", _reasoned_break, self, sys._getframe(2))

    reason_class.__post_init__ = native._around(None, reason_class.__post_init__, after)


def _counted_break(error, frame):
    """Torch has just counted a break. FRAME handles the instruction."""
    token = _thread.compiles[-1]
    token.counted = error.msg
    _add_break(token, frame, error.msg, getattr(error, "real_stack", None), True)


def _reasoned_break(reason, frame):
    """Called when torch records why a graph ends: the reason of the break just counted, or of one
    that it never counts."""
    token = _thread.compiles[-1]
    counted, token.counted = token.counted, None
    if counted is not None and counted == reason.reason:
        return
    text = str(reason.reason)
    cause = frame.f_locals.get("exc") or frame.f_locals.get("excp")
    cause = getattr(cause, "msg", None) or (token.unsupported if text == "step_unsupported" else "")
    if cause and cause != text:
        text += "\n" + cause
    _add_break(token, frame, text, reason.user_stack, False)


def _add_break(token, frame, reason, user_stack, counted):
    found = _Break()
    found.reason = private.reason(reason)[:_REASON_BOUND]
    found.user_stack = "\n".join(_places(user_stack))
    found.code, found.line, found.offset, found.targets = token.code, -1, -1, ()
    translator, instruction = frame.f_locals.get("self"), frame.f_locals.get("inst")
    if not hasattr(translator, "current_instruction"):
        translator = frame.f_locals.get("tx")
    if hasattr(translator, "current_instruction"):
        if not hasattr(instruction, "offset"):
            instruction = translator.current_instruction
        found.code = getattr(translator, "f_code", token.code)
        found.offset = _offset(found.code, translator.instructions, instruction)
        line = getattr(instruction.positions, "lineno", None) or getattr(translator, "lineno", None)
        found.line = line if isinstance(line, int) else -1
        # Where the function resumes: after the instruction, or there and at the jump's target.
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
    place = (id(found.code), getattr(instruction, "offset", None))  # torch's number: each has one
    if token.breaks is None:
        token.breaks, token.places = [], set()
    # An analysis that starts over comes by the same place again. Torch counts some of these twice,
    # so we do.
    if counted or place[1] is None or place not in token.places:
        token.breaks.append(found)
    token.places.add(place)


def _offset(code, instructions, instruction):
    """The offset in CODE of one of torch's INSTRUCTIONS. Torch rewrites some, and then numbers all
    of them anew: what remains are operation and position in the source, and its place among those
    with the same. -1: torch's invention.
    """
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
    """A compile stops at its first break, so the resume functions are the last one's; the others
    led to a new start.
    """
    resumes = _resume_codes(token, made)
    metadata = getattr(_resume_cache, "generated_code_metadata", {})
    for _, code in resumes:
        origin = getattr(metadata.get(code) if code in metadata else None, "code", token.code)
        notes.origin(code, origin, "resume")
    for found in token.breaks:
        resume = None
        if found is token.breaks[-1]:
            # By offset; if torch has moved the place, the only one there is.
            resume = next(
                (code for offset in found.targets for at, code in resumes if at == offset), None
            )
            if resume is None and len(resumes) == 1:
                resume = resumes[0][1]
        notes.graph_break(
            token.id, found.code, found.line, found.offset, found.reason, found.user_stack, resume
        )


def _resume_codes(token, made):
    """[(offset, code)] of the resume functions that the compiled code calls. Torch names them by
    the offset at which they go on and puts them among the frame's globals: a function, a code
    object, or a maker of closures around one.
    """
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
    # Torch 2.6 loads the code of a closure as a constant: its global is for the debugger and not
    # among the names.
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

# id(code) -> (weak code, text, whether with constants): what is compiled again is not listed anew
_listings = collections.OrderedDict()


def _note_listings(token, result, made):
    known, whole = _listings.get(id(token.code)), private.whole()
    if known is None or known[0]() is not token.code or known[2] != whole:
        known = _listings[id(token.code)] = (
            weakref.ref(token.code),
            _bytecode(token.code, whole),
            whole,
        )
        if len(_listings) > 64:
            _listings.popitem(last=False)
    notes.listing(token.id, "original_bytecode", known[1])
    config = sys.modules.get("torch._dynamo.config")
    if not getattr(config, "automatic_dynamic_shapes", True):  # torch.compile(dynamic=False)
        notes.listing(token.id, "automatic_dynamic_shapes", "False")
    if made is None:
        return
    notes.listing(token.id, "modified_bytecode", _bytecode(made, whole))
    guards = getattr(getattr(result, "guarded_code", result), "guard_manager", None)
    root = getattr(guards, "root", None)
    if root is not None and whole:  # else the rows of `guard` have all that may be shown
        notes.listing(token.id, "guards", _guards(root))


def _guards(root):
    """The tree of guards: each manager's source and its guards. str(manager) has little more and
    takes four times as long."""
    lines = []
    _guards_below(root, "", "", lines)
    epilogue = getattr(root, "get_epilogue_lambda_guards", None)
    for guard in epilogue() if epilogue else ():
        lines.append(
            "+- %s: %s" % (type(guard).__name__, "; ".join(guard.verbose_code_parts()).rstrip())
        )
    if len(lines) > _GUARDS_MAX:
        lines.append("...")
    return "\n".join(lines)


def _guards_below(manager, indent, role, lines):
    if manager is None or len(lines) > _GUARDS_MAX:
        return
    lines.append("%s+- %s%s" % (indent, role, manager.get_source() if indent else "root"))
    indent += "| "
    for guard in manager.get_leaf_guards():
        lines.append(
            "%s+- %s: %s"
            % (indent, type(guard).__name__, "; ".join(guard.verbose_code_parts()).rstrip())
        )
    if hasattr(manager, "get_key_value_managers"):  # of a dict whose order matters
        for position, (key, value) in sorted(manager.get_key_value_managers().items()):
            _guards_below(key, indent, "key %d: " % position, lines)
            _guards_below(value, indent, "value %d: " % position, lines)
    for child in manager.get_child_managers():
        _guards_below(child, indent, "", lines)


class _Hidden:
    """Stands for a constant that may not be shown: its type."""

    def __init__(self, constant):
        self.type = type(constant).__name__

    def __repr__(self):
        return "<%s>" % self.type


def _bytecode(code, whole=True):
    """A disassembly: line, `>>` at targets of jumps and at handlers, offset, operation, argument.
    Constants may be values that torch put there: without WHOLE only their types are shown."""
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
        if one.opcode in dis.hasjrel:
            text = "to %d" % one.argval
        elif one.opname == "LOAD_SMALL_INT" and not whole:  # a constant in the instruction
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
