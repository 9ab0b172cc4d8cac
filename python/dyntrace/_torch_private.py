"""Removes values from torch's texts, if the option --values demands it.

Runs in: the traced process. torch's texts contain values in many places. A text is left out unless
it is known to contain no value. _guard_words.py does the same for our own texts.

    may_show_all()                  is the option `--values all`?
    strip_source("L['d']['key']")   "L['d'][<str>]": keys are values
    strip_row(), strip_cause()      rows of _torch_guards, without values that may not be shown
    strip_reason(text)              why a graph broke or a compile failed, in torch's fixed words
"""

import re
import sys

try:
    from ._native import native

    kept = native._values
except ImportError:  # the guards are used without the extension, so nothing is recorded

    def kept():
        return "all"


_HIDDEN = "value not recorded (--values %s)"
_STRING = re.compile(r"""[bB]?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_WORDS = re.compile(r"[A-Za-z_][\w.]*|[.(), ]|[A-Za-z_]+")
_OF_SHAPE = re.compile(r"\b(?:size|stride|shape)(?:\(\))?$")
_CHAIN = re.compile(
    r"\b[LG]\[(?:[^'\"\[\]()]|\[|\]|\(\)|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")*?"
    r"(?:\.(?:size|stride)\(\)\[\d+\]|\.(?:storage_offset|dim|ndimension)\(\))"
)
_ARITHMETIC = re.compile(
    r"(?:[\s\d<>=!()+*/%,.-]|and|or|not|Mod|FloorDiv|Max|Min|Eq|Ne|math|floor|ceil)*"
)
_TENSOR = re.compile(
    r"(?:, [\w.]*)?, DispatchKeySet\([\w, ]*\), torch\.\w+, device=\w+, requires_grad=\w+, "
    r"size=\[[\w, *+/()-]*\], stride=\[[\w, *+/()-]*\]\)$"
)
_TYPE = re.compile(r"type=<class '([\w.<>]+)'>$")
_LENGTH = re.compile(r" == (\d+)$")

# kinds of guards for which the kind alone determines the expected value
_BY_KIND = {
    "NONE_MATCH": "None",
    "NOT_NONE": "not None",
    "TRUE_MATCH": "True",
    "FALSE_MATCH": "False",
}
_SHAPES = frozenset(
    ("SYMBOLIC_SHAPE_GUARD", "LAMBDA_GUARD", "LAMBDA_GUARD_NO_ARGS", "LAMBDA_GUARD_NO_FRAMELOCALS")
)
_TYPES = frozenset(
    ("TENSOR_MATCH", "TYPE_MATCH", "LENGTH_CHECK", "DICT_LENGTH", "TUPLE_ITERATOR_LEN")
)
_PLAIN = re.compile(r"[\w.:, -]*( at 0x[0-9a-f]+)?")
_NO_VALUES = frozenset(
    (
        "present",
        "missing",
        "its own tensor",
        "the same object",
        "different objects",
        "copy-on-write",
        "not copy-on-write",
        "the current stream",
        "another stream",
    )
)


def whole():
    return kept() == "all"


def hidden():
    return _HIDDEN % kept()


def source(text):
    """Return a source without its keys and indices, except those of sizes and strides. The text is
    cut at the first part that is not understood."""
    shown, at = "", 0
    while at < len(text):
        if text[at] == "[" and (shown[-1:].isidentifier() or shown[-1:] in "])"):
            found = _STRING.match(text, at + 1) or _NUMBER.match(text, at + 1)
            end = found.end() if found else -1
            if not found or text[end : end + 1] != "]":
                return shown + "[<key>]"
            key = found[0]
            name = key[1:-1] if key[0] in "'\"" else ""
            if (
                name.isidentifier()
                and shown[-1:] in "LG"
                and not shown[-2:-1].isidentifier()
                and shown[-2:-1] not in (".", "]", ")")
            ):
                shown += "['%s']" % name
            elif not name and key[0] not in "bB'\"" and len(key) < 3 and _OF_SHAPE.search(shown):
                shown += "[%s]" % key
            else:
                shown += "[<%s>]" % (
                    "str"
                    if key[0] in "'\""
                    else "bytes" if key[0] in "bB" else "float" if "." in key else "int"
                )
            at = end + 1
            continue
        found = _STRING.match(text, at) or _NUMBER.match(text, at)
        if found:
            shown += "<value>"
        else:
            found = _WORDS.match(text, at)
            if not found:
                return shown + "<...>"
            shown += found[0]
        at = found.end()
    return shown


def _shape(text):
    """Return an expression over sizes and strides, without keys; or "" if the expression contains
    anything else."""
    chains = []
    rest = _CHAIN.sub(lambda found: chains.append(source(found[0])) or "", text)
    if not chains or not _ARITHMETIC.fullmatch(rest):
        return ""
    shown = iter(chains)
    return _CHAIN.sub(lambda found: next(shown), text)


def row(kind, where, expression, place):
    """Return a guard's row, as far as --values lets it be recorded."""
    if whole():
        return kind, where, expression, place
    where = source(where)
    if kind in _BY_KIND:
        expression = "%s is %s" % (where, _BY_KIND[kind])
    elif kind == "EXISTS":
        expression = "%s exists" % where
    else:
        expression = (
            _expression(kind, where, expression) if kept() == "types" else ""
        ) or "%s of %s: %s" % (kind, where, hidden())
    return kind, where, expression, place


def _expression(kind, where, expression):
    """Return the expression of a guard on types and shapes; for other guards ""."""
    if kind == "TENSOR_MATCH":
        found = _TENSOR.search(expression)
        return "check_tensor(%s%s" % (where, found[0]) if found else ""
    if kind in ("TYPE_MATCH", "FAKE_SCRIPT_TYPE_MATCH"):
        found = _TYPE.search(expression)
        return "type(%s) is %s" % (where, found[1]) if found else ""
    if kind in ("LENGTH_CHECK", "DICT_LENGTH", "TUPLE_ITERATOR_LEN"):
        found = _LENGTH.search(expression)
        return "len(%s) == %s" % (where, found[1]) if found else "type and length of %s" % where
    return _shape(expression) if kind in _SHAPES else ""


def cause(ordinal, kind, where, expected, actual, aspect, dimension, text):
    """Return the columns of a cause (why a guard did not hold), as far as --values lets them be
    recorded. TEXT, torch's own sentence, contains values of the call: it is recorded only with
    `--values all`."""
    if whole():
        return ordinal, kind, where, expected, actual, aspect, dimension, text
    return (
        ordinal,
        kind,
        source(where),
        _expected_shown(kind, expected),
        _value_shown(kind, actual),
        aspect,
        dimension,
        "",
    )


def _expected_shown(kind, text):
    return _BY_KIND.get(kind) or _value_shown(kind, text)


def _value_shown(kind, text):
    if text in _NO_VALUES:
        return text
    if text.startswith("the same tensor as "):
        return "the same tensor as " + source(text[len("the same tensor as ") :])
    shown = ""
    if kept() == "types":
        shown = (
            text
            if kind in _TYPES and _PLAIN.fullmatch(text)
            else _shape(text) if kind in _SHAPES else ""
        )
    return shown or hidden()


def error(error):
    """Describe an exception of our own code: without values, by its type alone."""
    return "%s: %s" % (type(error).__name__, str(error)[:200]) if whole() else type(error).__name__


# ---- torch's reasons for graph breaks and errors -------------------------------------------------

_fixed = None
_KIND = re.compile(r"[A-Z]\w*(?=: )|[A-Z]\w*$")
_OLD_WORDS = (
    "step_unsupported",
    "generic_jump",
    "graph_break_in_inlined_function",
    "comprehension",
)


def _fixed_words():
    """Return the types of graph breaks that this torch knows, which are constants in its source."""
    global _fixed
    if _fixed is None:
        _fixed = set(_OLD_WORDS)
        known = getattr(sys.modules.get("torch._dynamo.exc"), "_load_gb_type_to_gb_id_map", None)
        try:
            _fixed.update(known() if known is not None else ())
        except Exception:
            pass
    return _fixed


def reason(text):
    """Return TEXT, "Type: words of torch", or what may be shown of it without values."""
    if whole() or not text:
        return text
    kind = _KIND.match(text)
    words = text[kind.end() :].lstrip(": ") if kind else text
    first = words.partition("\n")[0].strip()
    fixed = _fixed_words()
    shown = next((words for words in (first, first.partition(" ")[0]) if words in fixed), "")
    return ": ".join(part for part in (kind and kind[0] or "", shown or hidden()) if part)
