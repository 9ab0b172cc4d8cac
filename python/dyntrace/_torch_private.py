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

    values_option = native._values
except ImportError:  # a test uses this module without the extension, and records nothing

    def values_option():
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


def may_show_all():
    """May all values be shown?"""
    return values_option() == "all"


def hidden_value_text():
    return _HIDDEN % values_option()


def strip_source(text):
    """Return the source TEXT without its keys and indices; only the indices of sizes and strides
    stay. The text is cut at the first part that cannot be parsed."""
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


def _hide_shape_keys(text):
    """Return the expression TEXT without the keys in its sources. Returns "" if it contains
    anything but sizes and strides."""
    chains = []
    rest = _CHAIN.sub(lambda found: chains.append(strip_source(found[0])) or "", text)
    if not chains or not _ARITHMETIC.fullmatch(rest):
        return ""
    shown = iter(chains)
    return _CHAIN.sub(lambda found: next(shown), text)


def strip_row(kind, where, expression, place):
    """Return the row of a guard, without the values that --values forbids to record."""
    if may_show_all():
        return kind, where, expression, place
    where = strip_source(where)
    if kind in _BY_KIND:
        expression = "%s is %s" % (where, _BY_KIND[kind])
    elif kind == "EXISTS":
        expression = "%s exists" % where
    else:
        expression = (
            _strip_expression(kind, where, expression) if values_option() == "types" else ""
        ) or "%s of %s: %s" % (kind, where, hidden_value_text())
    return kind, where, expression, place


def _strip_expression(kind, where, expression):
    """Return the expression of a guard without values, if the guard checks types or shapes; return
    "" for other guards."""
    if kind == "TENSOR_MATCH":
        found = _TENSOR.search(expression)
        return "check_tensor(%s%s" % (where, found[0]) if found else ""
    if kind in ("TYPE_MATCH", "FAKE_SCRIPT_TYPE_MATCH"):
        found = _TYPE.search(expression)
        return "type(%s) is %s" % (where, found[1]) if found else ""
    if kind in ("LENGTH_CHECK", "DICT_LENGTH", "TUPLE_ITERATOR_LEN"):
        found = _LENGTH.search(expression)
        return "len(%s) == %s" % (where, found[1]) if found else "type and length of %s" % where
    return _hide_shape_keys(expression) if kind in _SHAPES else ""


def strip_cause(ordinal, kind, where, expected, actual, aspect, dimension, text):
    """Return the columns of a cause (why a guard did not hold), without the values that --values
    forbids to record. TEXT is torch's message, which contains values of the call, so it is left out
    under `--values types` and `--values off`."""
    if may_show_all():
        return ordinal, kind, where, expected, actual, aspect, dimension, text
    return (
        ordinal,
        kind,
        strip_source(where),
        _strip_expected(kind, expected),
        _strip_value(kind, actual),
        aspect,
        dimension,
        "",
    )


def _strip_expected(kind, text):
    return _BY_KIND.get(kind) or _strip_value(kind, text)


def _strip_value(kind, text):
    if text in _NO_VALUES:
        return text
    if text.startswith("the same tensor as "):
        return "the same tensor as " + strip_source(text[len("the same tensor as ") :])
    shown = ""
    if values_option() == "types":
        shown = (
            text
            if kind in _TYPES and _PLAIN.fullmatch(text)
            else _hide_shape_keys(text) if kind in _SHAPES else ""
        )
    return shown or hidden_value_text()


def describe_error(error):
    """Describe ERROR, an exception of our own code. If values may not be shown, return only its
    type."""
    name = type(error).__name__
    return "%s: %s" % (name, str(error)[:200]) if may_show_all() else name


# ---- torch's reasons for graph breaks and errors -------------------------------------------------

_fixed = None
_KIND = re.compile(r"[A-Z]\w*(?=: )|[A-Z]\w*$")
_OLD_WORDS = (
    "step_unsupported",
    "generic_jump",
    "graph_break_in_inlined_function",
    "comprehension",
)


def _load_fixed_words():
    """Return torch's names for the types of graph breaks. They are constants in torch's source, so
    they contain no values."""
    global _fixed
    if _fixed is None:
        _fixed = set(_OLD_WORDS)
        known = getattr(sys.modules.get("torch._dynamo.exc"), "_load_gb_type_to_gb_id_map", None)
        try:
            _fixed.update(known() if known is not None else ())
        except Exception:
            pass
    return _fixed


def strip_reason(text):
    """Return TEXT, torch's reason for a graph break or an error, without values that may not be
    shown. TEXT is "Type: message". The type is kept. Of the message only the first line or the
    first word is kept, if it is one of torch's fixed words; if not, hidden_value_text() replaces
    it."""
    if may_show_all() or not text:
        return text
    kind = _KIND.match(text)
    words = text[kind.end() :].lstrip(": ") if kind else text
    first = words.partition("\n")[0].strip()
    fixed = _load_fixed_words()
    shown = next((words for words in (first, first.partition(" ")[0]) if words in fixed), "")
    return ": ".join(
        part for part in (kind and kind[0] or "", shown or hidden_value_text()) if part
    )
