"""Records facts about compiles and torch: one function for each fact of src/facts.h.

Runs in: the traced process. native._note(name, numbers, texts) takes the members of struct
fact_NAME, in the order of the struct. The argument `compile` of the functions below is the id that
the evaluator gave the compile.
"""

from ._native import native

REASON = 4000  # the most characters of the reason why a compile gave no code
_TEXT = 256 << 10  # the most characters of a listing, or of all nodes of a graph


def _cut_text(text, most):
    return text[:most].encode("utf-8", "backslashreplace") if isinstance(text, str) else b""


def torch(version, mode, why):
    """Record torch's version, the mode in which torch is watched ("shim", "observe" or "off"), and
    why it is this mode, or ""."""
    native._note("TORCH", (), (_cut_text(version, 100), _cut_text(mode, 20), _cut_text(why, 1000)))


def compile(compile, label, outcome, reason, sticky):
    """Record how a compile ended. The arguments "" and None mean that a value is not known."""
    native._note(
        "NOTE",
        (compile, -1 if sticky is None else sticky),
        (_cut_text(label, 100), _cut_text(outcome, 100), _cut_text(reason, REASON)),
    )


def graph(compile, name, nodes):
    """Record a graph. NODES are tuples (opcode, name, target, args, kwargs), all str."""
    texts = b"".join([_cut_text(text, 2000) + b"\0" for node in nodes for text in node])
    native._note("GRAPH", (compile,), (_cut_text(name, 200), texts[:_TEXT]))


def graph_break(compile, code, line, offset, reason, user_stack, resume):
    """Record where and why a graph ends. OFFSET and LINE are -1 if not known. RESUME is the resume
    function's code, or None."""
    native._note(
        "BREAK",
        (compile, native._code_id(code), line, offset, native._code_id(resume)),
        (_cut_text(reason, 4000), _cut_text(user_stack, 16000)),
    )


def listing(compile, kind, text):
    """Record a text that a compile produced."""
    native._note("LISTING", (compile,), (_cut_text(kind, 100), _cut_text(text, _TEXT)))


def phase(compile, name, start, end, label):
    """Record a phase of a compile. Times are wall clock, in ns. If COMPILE is -1, the phase belongs
    to the compile with the label LABEL."""
    native._note("PHASE", (compile, start, end), (_cut_text(name, 200), _cut_text(label, 100)))


def origin(code, made_from, kind):
    """Record that CODE was made from the code MADE_FROM. KIND is 'resume' or 'compiled'."""
    id = native._code_id(code)
    if id >= 0:
        native._note("ORIGIN", (id, native._code_id(made_from)), (_cut_text(kind, 20),))


def rank(rank, local_rank):
    """Record the process's rank. A rank is -1 if it is not known."""
    native._note("RANK", (rank, local_rank), ())


def loss(text):
    """Record a loss: that something could not be recorded."""
    native._note_loss(text[:1000])
