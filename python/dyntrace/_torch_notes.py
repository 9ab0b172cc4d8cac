"""What is noted of torch and its compiles: each function makes one fact of src/ring.h.

Runs in: the traced process. Numbers and texts are put together here as src/collector/traced_shim.c takes them apart. A
compile is named by the id that the evaluator gave it.
"""
from ._native import native

_TEXT = 256 << 10  # characters of a listing, or of a graph's nodes
_UNKNOWN = 2  # of a truth


def _cut(text, most):
    return text[:most].encode("utf-8", "backslashreplace") if isinstance(text, str) else b""


def torch(version, mode, why):
    """Which torch, and how it is watched."""
    native._note("torch", 0, 0, 0, 0, _cut(version, 100), _cut(mode, 20) + b"\0" + _cut(why, 1000))


def compile(compile, label, outcome, reason, sticky):
    """How a compile ended. "" and None: not known."""
    native._note("compile", compile, _UNKNOWN if sticky is None else sticky, 0, 0,
                 _cut(label, 100) + b"\0" + _cut(outcome, 100), _cut(reason, 4000))


def graph(compile, name, nodes):
    """NODES: (opcode, name, target, args, kwargs), all str."""
    texts = b"".join([_cut(text, 2000) + b"\0" for node in nodes for text in node])
    native._note("graph", compile, 0, 0, 0, _cut(name, 200), texts[:_TEXT])


def graph_break(compile, code, line, offset, reason, user_stack, resume):
    """Where a graph ends. OFFSET and LINE -1, RESUME, the code that goes on, None: not known."""
    native._note("break", compile, native._code_id(code), (line & 0xffffffff) << 32 | offset + 1, native._code_id(resume),
                 _cut(reason, 4000), _cut(user_stack, 16000))


def listing(compile, kind, text):
    """A text that a compile produced."""
    native._note("listing", compile, 0, 0, 0, _cut(kind, 100), _cut(text, _TEXT))


def phase(compile, name, start, end, label):
    """Times are of the wall clock, in ns. COMPILE -1: of the compile with that label."""
    native._note("phase", compile + 1, start, end, 0, _cut(name, 200), _cut(label, 100))


def origin(code, made_from, kind):
    """CODE is 'resume' or 'compiled', made from the code MADE_FROM."""
    id = native._code_id(code)
    if id:
        native._note("origin", id - 1, native._code_id(made_from), 0, 0, _cut(kind, 20), b"")


def rank(rank, local_rank):
    """-1: not known."""
    native._note("rank", 0, rank + 1, local_rank + 1, 0, b"", b"")


def loss(text):
    """Something could not be recorded."""
    native._note_loss(text[:1000])
