"""Describes expected and actual values of torch's guards, kind by kind.

Runs in: the traced process, when _torch_guards has found a guard that does not hold.

    EXPLAIN["TENSOR_MATCH"](look)    [(source, expected, actual), ...], or None if the guard holds
                                     after all
    ASPECT["EQUALS_MATCH"]           "value": the property that guards of this kind check, in the
                                     words of recompile_cause.aspect
"""

import ast
import json
import re
import sys
import types

from ._torch_values import (
    MAX_ITEMS,
    MAX_VALUE,
    SIMPLE,
    clip,
    describe,
    evaluate,
    describe_by_name,
    parse_expression,
    qualname,
    get_torch,
    type_name,
)

# The functions _explain_... each explain why a guard of one kind failed. The argument `look` is a
# _GuardLook of _torch_guards, with the guard's kind, source, expression, codes (the parts of the
# expression), value and leaf; look.look is the _Look that searches all guards of the call.
#
# Each function returns a list of (source, expected, actual), (source, expected, actual, aspect) or
# (source, expected, actual, aspect, dimension). If the aspect is left out, it is that of the kind.
# An empty list means that only the guard's expression is known.


def _read_expected(look):
    """Return the expected value as text: the right side of the expression "source == value"."""
    head = look.source + " == "
    if look.expression.startswith(head):
        return look.expression[len(head) :]
    found = look.expression.rpartition(" == ")
    return found[2] if found[1] else ""


def _make_equals_row(source, expected, value):
    actual = describe(value)
    if expected == actual:
        actual = "%s (%s)" % (actual, type_name(type(value)))
    return source, expected, actual, "value"


def _explain_equals(look):
    return [_make_equals_row(look.source, clip(_read_expected(look), MAX_VALUE), look.value)]


_LENGTH = re.compile(r" == (\d+)$")


def _explain_length(look):
    found = _LENGTH.search(look.expression)
    expected = found.group(1) if found else "0" if look.expression.startswith("not ") else ""
    kind = type(look.value)
    base = next((b for b in (dict, list, tuple, set, frozenset, str) if issubclass(kind, b)), None)
    if base is not None:
        actual = "%d" % base.__len__(look.value)
    else:
        try:
            actual = "%d" % len(look.value)  # torch's check has called len(), too
        except Exception:
            actual = type_name(kind)
    return [(look.source, expected, actual)]


_IDENTITY = re.compile(r", (\d+)\)(?:, type=(.*))?$", re.S)
_CONSTANTS = {id(v): repr(v) for v in (None, True, False, ..., NotImplemented)}


def _explain_type(look):
    found = _IDENTITY.search(look.expression)
    expected = ""
    if found:
        expected = (found.group(2) or "").strip()
        if expected.startswith("<class '") and expected.endswith("'>"):
            expected = expected[8:-2]
        if not expected:
            kind = look.look.find_by_id(int(found.group(1)))
            expected = (
                type_name(kind)
                if issubclass(type(kind), type)
                else "class at %#x" % int(found.group(1))
            )
    actual = type_name(type(look.value))
    # the two classes have the same name, for example because a function defines one of them
    if expected == actual:
        expected, actual = "%s at %#x" % (expected, int(found.group(1))), "%s at %#x" % (
            actual,
            id(type(look.value)),
        )
    return [(look.source, expected, actual)]


def _explain_identity(look):
    found = _IDENTITY.search(look.expression)
    value, expected = look.value, ""
    actual = describe(value) if id(type(value)) in SIMPLE else describe_by_name(value, type(value))
    if found:
        identity = int(found.group(1))
        # torch 2.6 checks None by identity, where later versions have a NONE_MATCH
        if identity in _CONSTANTS:
            return [
                (
                    look.source,
                    _CONSTANTS[identity],
                    describe(value) if actual == type_name(type(value)) else actual,
                )
            ]
        thing = look.look.find_by_id(identity)
        expected = describe_by_name(thing, type(thing)) if thing is not None else ""
        if not expected:
            kind = (found.group(2) or "").strip()
            expected = "%s at %#x" % (
                kind[8:-2] if kind.startswith("<class '") else "object",
                identity,
            )
            actual = "%s at %#x" % (actual, id(value))
        # the two objects have the same name, for example two lambdas or modules
        elif expected == actual:
            expected, actual = "%s at %#x" % (expected, identity), "%s at %#x" % (actual, id(value))
    return [(look.source, expected, actual)]


_TENSOR = re.compile(
    r"(?:, (?P<type>.*?))?, DispatchKeySet\((?P<keys>[^)]*)\), (?P<dtype>torch\.\w+), "
    r"device=(?P<device>\w+), requires_grad=(?P<grad>\w+), size=\[(?P<size>[^\]]*)\], "
    r"stride=\[(?P<stride>[^\]]*)\]\)$",
    re.S,
)
_DEVICES = {"privateuse1": "privateuseone"}
_KEY_DEVICE = re.compile(
    r"^(?:Autograd|SparseCsr|Sparse|Quantized|NestedTensor)?"
    r"(CPU|CUDA|HIP|XLA|MPS|IPU|XPU|HPU|VE|Lazy|Meta|MTIA|MAIA|PrivateUse\d)$"
)


def _split_keys(text):
    return [key.strip() for key in text.split(",") if key.strip()]


def _find_device(keys):
    for key in keys:
        found = _KEY_DEVICE.match(key)
        if found:
            name = found.group(1).lower()
            return _DEVICES.get(name, name)
    return ""


def _parse_numbers(text):
    """Parse "3, None, s0" into [3, None, None], because guards check only the numbers."""
    return [
        int(n) if n.strip().lstrip("-").isdigit() else None for n in text.split(",") if n.strip()
    ]


def _is_dense(sizes, strides):
    """Does a contiguous tensor of these sizes have these strides? Returns None if a number is
    unknown."""
    follow = 1
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if size is None or stride is None:
            return None
        if size != 1 and stride != follow:
            return False
        follow *= max(size, 1)
    return True


def _explain_tensor_match(look):
    torch, value, name = get_torch(), look.value, look.source
    found = _TENSOR.search(look.expression)
    if torch is None or found is None:
        return []
    kind = type(value)
    wanted_type = (found.group("type") or "").strip()
    if not issubclass(kind, torch.Tensor) or wanted_type and wanted_type != qualname(kind):
        actual = qualname(kind) if issubclass(kind, torch.Tensor) else type_name(kind)
        return [("type(%s)" % name, wanted_type or "Tensor", actual, "type")]
    rows = []
    keys = (
        torch._C._dispatch_keys(value) | torch._C._dispatch_tls_local_include_set()
    ) - torch._C._dispatch_tls_local_exclude_set()
    wanted, seen = _split_keys(found.group("keys")), _split_keys(
        repr(keys).partition("(")[2].rstrip(")")
    )
    device, index = _find_device(wanted) or value.device.type, found.group("device")
    expected, actual = device, value.device.type
    if index != "None" or value.device.index is not None:
        expected, actual = "%s:%s" % (device, index), "%s:%s" % (actual, value.device.index)
    if expected != actual:
        rows.append((name + ".device", expected, actual, "device"))
    elif set(wanted) != set(seen):
        lost, new = [k for k in wanted if k not in seen], [k for k in seen if k not in wanted]
        rows.append(
            (
                "torch._C._dispatch_keys(%s)" % name,
                ", ".join(lost + ["not " + k for k in new]),
                ", ".join(new + ["not " + k for k in lost]),
                "dispatch_keys",
            )
        )
    if found.group("dtype") != str(value.dtype):
        rows.append((name + ".dtype", found.group("dtype"), str(value.dtype), "dtype"))
    if found.group("grad") != str(value.requires_grad):
        rows.append(
            (
                name + ".requires_grad",
                found.group("grad"),
                str(value.requires_grad),
                "requires_grad",
            )
        )
    sizes, strides = _parse_numbers(found.group("size")), _parse_numbers(found.group("stride"))
    if len(sizes) != value.dim():
        rows.append((name + ".ndim", "%d" % len(sizes), "%d" % value.dim(), "ndim"))
        return rows
    actual = list(value.size())
    off = [i for i, n in enumerate(sizes) if n is not None and n != actual[i]]
    rows += [("%s.size()[%d]" % (name, i), "%d" % sizes[i], str(actual[i]), "size", i) for i in off]
    if value.layout is torch.strided:
        steps = list(value.stride())
        if not (off and _is_dense(sizes, strides) is not False and _is_dense(actual, steps)):
            rows += [
                ("%s.stride()[%d]" % (name, i), "%d" % n, str(steps[i]), "stride", i)
                for i, n in enumerate(strides)
                if n is not None and n != steps[i]
            ]
    return rows


_QUOTED = re.compile(r"\(('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,()]+), ")
_HAS = re.compile(r"hasattr\(.*, ('(?:[^'\\]|\\.)*')\)", re.S)


def _explain_contains(look):
    found = _QUOTED.search(look.expression) if "___dict_contains" in look.expression else None
    what = found.group(1) if found else look.expression.rpartition(", ")[2].rstrip(")")
    lacks = look.expression.startswith("not ")
    return [
        (
            look.source,
            "lacks " + what if lacks else "has " + what,
            "has " + what if lacks else "lacks " + what,
        )
    ]


def _explain_no_attribute(look):
    found = _HAS.search(look.expression)
    name = found.group(1)[1:-1] if found else "?"
    return [("%s.%s" % (look.source, name), "missing", "present")]


_MARKING = re.compile(r"'(_dynamo_\w+)'")


def _explain_marking(look):
    """Explain a guard on the attributes that mark_dynamic() and similar functions set on tensors.
    Each part of the guard's expression checks one attribute."""
    rows = []
    fields = object.__getattribute__(look.value, "__dict__")
    for code in look.codes:
        found = _MARKING.search(code)
        if found is None or look.does_hold(code) is not False:
            continue
        name = found.group(1)
        subset = re.search(r"issubset\((.*?)\)\)", code)
        rows.append(
            (
                "%s.%s" % (look.source, name),
                "within " + subset.group(1) if subset else "missing",
                describe(fields[name]) if name in fields else "missing",
            )
        )
    return rows


def _explain_iterator_length(look):
    return [(look.source, _read_expected(look), look.describe_by_helper("___tuple_iterator_len"))]


def _explain_range_iterator(look):
    return [(look.source, _read_expected(look), look.describe_by_helper("___normalize_range_iter"))]


def _explain_version(look):
    return [(look.source, _read_expected(look), look.describe_by_helper("___dict_version"))]


def _explain_mapping_keys(look):
    return [(look.source, _read_expected(look), describe(list(look.value.keys())))]


def _explain_default_device(look):
    device = sys.modules["torch.utils._device"].CURRENT_DEVICE
    return [(look.source, _read_expected(look), describe(device))]


def _explain_modes(look):
    """Explain a guard on the types of the active torch function modes. torch's check is a Python
    function, and the expected types are in its closure."""
    torch, expected = get_torch(), ""
    check = look.look.scope.helpers.get("___check_torch_function_mode_stack")
    if type(check) is types.FunctionType and "types" in check.__code__.co_freevars:
        cell = check.__closure__[check.__code__.co_freevars.index("types")].cell_contents
        expected = "[%s]" % ", ".join(type_name(kind) for kind in cell[:MAX_ITEMS])
    count = torch._C._len_torch_function_stack()
    actual = [
        type_name(type(torch._C._get_function_stack_at(i))) for i in range(min(count, MAX_ITEMS))
    ]
    return [(look.source, expected, "[%s]" % ", ".join(actual))]


_AUTOCAST = ("cpu", "cuda", "mtia", "maia", "xpu", "ipu", "hpu", "xla", "privateuseone", "mps")
_DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    15: "bfloat16",
}


def _flatten_state(state):
    """Return torch's global state as a flat dict, with the names that torch uses in messages."""
    flags = {}
    for name, value in state.items():
        if name == "autocast_state" and isinstance(value, dict):
            flags["autocast_cache_enabled"] = value.get("cached_enabled")
            for i, enabled in enumerate(value.get("enabled", ())):
                device = _AUTOCAST[i] if i < len(_AUTOCAST) else i
                flags["autocast(%s)_enabled" % device] = enabled
                flags["autocast(%s)_dtype" % device] = _DTYPES.get(
                    (value.get("dtype") or {i: None})[i]
                )
        elif name.startswith("allow_") and type(value) is int and value in (0, 1):
            flags[name] = bool(value)
        else:
            flags[name] = (
                "torch." + _DTYPES[value] if name == "default_dtype" and value in _DTYPES else value
            )
    return flags


def _read_flag_now(torch, name):
    """Return the present value of the global state NAME, for versions of torch that cannot list the
    state."""
    asked = {
        "grad_mode": torch.is_grad_enabled,
        "torch_function": torch._C._is_torch_function_enabled,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
        "deterministic_algorithms_warn_only": torch.is_deterministic_algorithms_warn_only_enabled,
        "num_threads": torch.get_num_threads,
        "default_dtype": torch.get_default_dtype,
    }.get(name)
    return asked() if asked else None


def _read_state_text(guard):
    """Return the global state that torch's guard GUARD expects, as JSON; None if this torch cannot
    return it."""
    for name in ("__getstate__", "dump"):  # the method is called dump in torch 2.7 to 2.9
        said = getattr(guard, name, None)
        text = said() if said is not None else None
        if type(text) is str:
            return text


def _explain_global_state(look):
    torch = get_torch()
    check = look.look.scope.helpers.get("___check_global_state")
    guard = getattr(check, "__self__", None)
    changed = str(guard.reason()).split() if hasattr(guard, "reason") else []
    before = _read_state_text(guard)
    if before is None:
        found = look.expression.partition(" against ")
        before = found[2] or None
    if before is None:
        rows = []
        for name in changed:
            now = _read_flag_now(torch, name)
            rows.append(
                (name, str(not now) if type(now) is bool else "", "" if now is None else str(now))
            )
        return rows
    was, now = _flatten_state(json.loads(before)), _flatten_state(
        json.loads(_read_state_text(torch._C._dynamo.guards.GlobalStateGuard()))
    )
    names = [name for name in was if was[name] != now.get(name)]
    # Sort the names in the order in which torch compares. Then the first name is the difference at
    # which torch's check ended. Up to torch 2.9, "autocast" is a single name in torch's message.
    names = [
        name
        for said in changed
        for name in names
        if name == said or said == "autocast" and name.startswith(said)
    ] or names
    return [(name, str(was[name]), str(now.get(name))) for name in names]


def _is_class_step(call):
    """Is CALL a call of dict() or type() that is part of a source? torch writes the class attribute
    `rate` of `self` as dict(type(L['self']).__dict__)['rate']."""
    is_named = isinstance(call.func, ast.Name) and call.func.id in ("dict", "type")
    return is_named and len(call.args) == 1 and not call.keywords


def _list_longest_sources(tree):
    """Return the longest expressions in TREE that begin with L or G: its sources."""
    found, todo = [], [tree]
    while todo:
        node = todo.pop()
        inner = node
        while isinstance(inner, (ast.Attribute, ast.Subscript, ast.Call)):
            if not isinstance(inner, ast.Call):
                inner = inner.value
            elif _is_class_step(inner):
                inner = inner.args[0]
            else:
                inner = inner.func
        if isinstance(inner, ast.Name) and inner.id in ("L", "G") and inner is not node:
            found.append(ast.unparse(node))
        else:
            todo.extend(reversed(list(ast.iter_child_nodes(node))))
    return list(dict.fromkeys(found))


_NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?")


def _find_only_number(tree, sources):
    """If the expression TREE says that a source equals a number, as in "L['n'] == 2", return the
    number as text; otherwise None. torch makes such a guard if it first made the number dynamic and
    then had to make it constant."""
    if len(sources) != 1 or _OF_SHAPE.search(sources[0]):
        return None
    if (
        not isinstance(tree, ast.Compare)
        or len(tree.ops) != 1
        or not isinstance(tree.ops[0], ast.Eq)
    ):
        return None
    sides = [ast.unparse(tree.left), ast.unparse(tree.comparators[0])]
    if sources[0] not in sides:
        return None
    sides.remove(sources[0])
    return sides[0] if _NUMBER.fullmatch(sides[0]) else None


def _is_arithmetic(tree):
    """Is the expression TREE arithmetic on sources and numbers alone, as L['x'].size()[0] + 1? It
    is if it has no names but L and G."""
    return all(node.id in ("L", "G") for node in ast.walk(tree) if isinstance(node, ast.Name))


_OF_SHAPE = re.compile(r"\.(size|stride)\(\)\[(\d+)\]$")


# Guards that expect one of two states (torch 2.14 and 2.15): a pattern for the guard's expression,
# and the text for each of the two states.
_EITHER = [
    (
        re.compile(r"___cow_tensor_matches\((.+), (True|False)\)$"),
        {"True": "copy-on-write", "False": "not copy-on-write"},
    ),
    (
        re.compile(r"(.+) (==|!=) ___get_current_stream\("),
        {"==": "the current stream", "!=": "another stream"},
    ),
]


def _explain_either(code):
    """If CODE, the expression of a failed guard, expects one of two states, return the row; the
    actual state is the other of the two. Returns None if CODE is another guard."""
    for pattern, words in _EITHER:
        found = pattern.match(code)
        if found:
            expected = words[found[2]]
            (actual,) = set(words.values()) - {expected}
            return found[1], expected, actual
    return None


# The expression of a guard on the length of the iterator that reversed(list) returns (torch 2.14).
_LENGTH_HELPER = re.compile(r"(___list_reverseiterator_len)\((.+)\) == (\d+)$")


def _explain_expressions(look):
    """Explain a guard whose parts are expressions over the variables of the call. There is a row
    for each part that is false, with the values of its sources."""
    rows, unknown = [], False
    for code in look.codes:
        if "saved_tensors_hooks ids == " in code:
            rows.append(_explain_hooks(code))
            continue
        either = _explain_either(code)
        if either:
            rows.append(either)
            continue
        length = _LENGTH_HELPER.match(code)
        if length:
            rows.append((length[2], length[3], look.describe_by_helper(length[1]), "length"))
            continue
        found = parse_expression(code)
        if found is None:
            unknown = True
        if found is None or look.does_hold(code) is not False:
            continue
        tree = found[0].body
        sources = _list_longest_sources(tree)
        if isinstance(tree, ast.Compare) and isinstance(tree.ops[0], (ast.Is, ast.IsNot)):
            same = isinstance(tree.ops[0], ast.Is)
            words = ("the same object", "different objects")
            rows.append((", ".join(sources), words[not same], words[same], "relation"))
            continue
        number = _find_only_number(tree, sources)
        # use the texts of an EQUALS_MATCH, which other entries of the function have for this value
        if number:
            value = evaluate(sources[0], look.look.scope)
            rows.append(_make_equals_row(sources[0], clip(number, MAX_VALUE), value))
            continue
        values = [
            "%s = %s" % (source, look.evaluate_text(source)) for source in sources[:MAX_ITEMS]
        ]
        found = _OF_SHAPE.search(sources[0]) if len(sources) == 1 else None
        aspect = (found[1], int(found[2])) if found else ("relation",) if len(sources) > 1 else ()
        if len(sources) == 1 and not found and _is_arithmetic(tree):
            aspect = ("value",)
        rows.append(
            (
                ", ".join(sources[:MAX_ITEMS]) or look.source,
                clip(code, MAX_VALUE),
                ", ".join(values),
                *aspect,
            )
        )
    # Return None for a guard over the whole call of which no part is false. The guard failed only
    # because one of its sources does not exist, which another guard reports.
    return rows if rows or unknown or not look.ambient else None


def _explain_hooks(code):
    """Explain a guard on the active hooks of torch.autograd.graph.saved_tensors_hooks()."""
    module = sys.modules.get("torch._functorch._aot_autograd.utils")
    hooks = module.top_saved_tensors_hooks() if module is not None else None
    actual = (
        "None"
        if hooks is None
        else "(%s)" % ", ".join(describe_by_name(h, type(h)) for h in tuple(hooks)[:2])
    )
    return "saved tensors hooks", code.rpartition(" == ")[2], actual


def _explain_overlapping(look):
    """Explain a guard on which tensors share memory. The guard's expression lists the tensors that
    should share memory and those that should not."""
    try:
        call = ast.parse(look.expression, mode="eval").body
        should = [ast.unparse(node) for node in call.keywords[0].value.elts]
        names = should + [ast.unparse(node) for node in call.keywords[1].value.elts]
        tensors = [evaluate(name, look.look.scope) for name in names]
        shared = get_torch()._C._dynamo.guards.compute_overlapping_tensors(tensors, symbolic=False)
    except Exception:
        return []
    actual = [names[i] for i in sorted(shared)]
    if set(actual) == set(should):
        return None
    return [
        (
            ", ".join(names),
            "sharing memory: %s" % (", ".join(should) or "none"),
            "sharing memory: %s" % (", ".join(actual) or "none"),
        )
    ]


def _explain_constant(expected):
    return lambda look: [(look.source, expected, describe(look.value))]


# kind of guard -> the property that guards of this kind check (recompile_cause.aspect). A row that
# a function of EXPLAIN returns may name another property. schemas/embed.sh reads these lines for
# `dyntrace import`, too.
ASPECT = {
    "EQUALS_MATCH": "value",
    "CONSTANT_MATCH": "value",
    "TRUE_MATCH": "value",
    "FALSE_MATCH": "value",
    "NONE_MATCH": "value",
    "NOT_NONE": "value",
    "FLOAT_IS_NAN": "value",
    "COMPLEX_IS_NAN": "value",
    "RANGE_ITERATOR_MATCH": "value",
    "TYPE_MATCH": "type",
    "FAKE_SCRIPT_TYPE_MATCH": "type",
    "ID_MATCH": "identity",
    "NO_TENSOR_ALIASING": "relation",
    "LENGTH_CHECK": "length",
    "DICT_LENGTH": "length",
    "TUPLE_ITERATOR_LEN": "length",
    "DICT_CONTAINS": "keys",
    "SET_CONTAINS": "keys",
    "MAPPING_KEYS_MATCH": "keys",
    "DICT_VERSION": "keys",
    "HASATTR": "attribute",
    "NO_HASATTR": "attribute",
    "EXISTS": "attribute",
    "GLOBAL_STATE": "state",
    "DEFAULT_DEVICE": "state",
    "TORCH_FUNCTION_MODE_STACK": "state",
    "DUAL_LEVEL_MATCH": "state",
    "OBJECT_ALIASING": "relation",
    "STORAGE_OVERLAPPING": "relation",
    "WEAKREF_ALIVE": "alive",
}

EXPLAIN = {
    "EQUALS_MATCH": _explain_equals,
    "CONSTANT_MATCH": _explain_equals,
    "TRUE_MATCH": _explain_constant("True"),
    "FALSE_MATCH": _explain_constant("False"),
    "NONE_MATCH": _explain_constant("None"),
    "NOT_NONE": _explain_constant("not None"),
    "FLOAT_IS_NAN": _explain_constant("nan"),
    "COMPLEX_IS_NAN": _explain_constant("nan"),
    "TYPE_MATCH": _explain_type,
    "FAKE_SCRIPT_TYPE_MATCH": _explain_type,
    "ID_MATCH": _explain_identity,
    "LENGTH_CHECK": _explain_length,
    "DICT_LENGTH": _explain_length,
    "TUPLE_ITERATOR_LEN": _explain_iterator_length,
    "RANGE_ITERATOR_MATCH": _explain_range_iterator,
    "TENSOR_MATCH": _explain_tensor_match,
    "DICT_CONTAINS": _explain_contains,
    "SET_CONTAINS": _explain_contains,
    "NO_HASATTR": _explain_no_attribute,
    "DIMENSION_DYNAMIC_MARKING_GUARD": _explain_marking,
    "DYNAMIC_INDICES": _explain_marking,
    "DICT_VERSION": _explain_version,
    "MAPPING_KEYS_MATCH": _explain_mapping_keys,
    "GLOBAL_STATE": _explain_global_state,
    "DEFAULT_DEVICE": _explain_default_device,
    "TORCH_FUNCTION_MODE_STACK": _explain_modes,
    "DUAL_LEVEL_MATCH": lambda look: [
        (
            look.source,
            _read_expected(look),
            describe(sys.modules["torch.autograd.forward_ad"]._current_level),
        )
    ],
    "LAMBDA_GUARD": _explain_expressions,
    "LAMBDA_GUARD_NO_ARGS": _explain_expressions,
    "LAMBDA_GUARD_NO_FRAMELOCALS": _explain_expressions,
    "SYMBOLIC_SHAPE_GUARD": _explain_expressions,
    "OBJECT_ALIASING": _explain_expressions,
    "STORAGE_OVERLAPPING": _explain_overlapping,
}
