"""Records facts about compiles and torch: one function for each fact of src/facts.h.

Runs in: the traced process. native._note(name, numbers, texts) takes the members of struct
fact_NAME in their order. A compile is identified by its id from the evaluator."""

from ._native import native

REASON = 4000  # characters of why a compile gave no code
_TEXT = 256 << 10  # characters of a listing, or of a graph's nodes


def _cut(text, most):
    return text[:most].encode("utf-8", "backslashreplace") if isinstance(text, str) else b""


def torch(version, mode, why):
    """Which torch, and how it is watched."""
    native._note("TORCH", (), (_cut(version, 100), _cut(mode, 20), _cut(why, 1000)))


def compile(compile, label, outcome, reason, sticky):
    """How a compile ended. "" and None: not known."""
    native._note(
        "NOTE",
        (compile, -1 if sticky is None else sticky),
        (_cut(label, 100), _cut(outcome, 100), _cut(reason, REASON)),
    )


def graph(compile, name, nodes):
    """NODES: (opcode, name, target, args, kwargs), all str."""
    texts = b"".join([_cut(text, 2000) + b"\0" for node in nodes for text in node])
    native._note("GRAPH", (compile,), (_cut(name, 200), texts[:_TEXT]))


def graph_break(compile, code, line, offset, reason, user_stack, resume):
    """Where a graph ends. OFFSET and LINE -1: not known. RESUME: the resume function's code, or
    None."""
    native._note(
        "BREAK",
        (compile, native._code_id(code), line, offset, native._code_id(resume)),
        (_cut(reason, 4000), _cut(user_stack, 16000)),
    )


def listing(compile, kind, text):
    """A text that a compile produced."""
    native._note("LISTING", (compile,), (_cut(kind, 100), _cut(text, _TEXT)))


def phase(compile, name, start, end, label):
    """Times are of the wall clock, in ns. COMPILE -1: of the compile with that label."""
    native._note("PHASE", (compile, start, end), (_cut(name, 200), _cut(label, 100)))


def origin(code, made_from, kind):
    """CODE is 'resume' or 'compiled', made from the code MADE_FROM."""
    id = native._code_id(code)
    if id >= 0:
        native._note("ORIGIN", (id, native._code_id(made_from)), (_cut(kind, 20),))


def rank(rank, local_rank):
    """-1: not known."""
    native._note("RANK", (rank, local_rank), ())


def loss(text):
    """Something could not be recorded."""
    native._note_loss(text[:1000])
