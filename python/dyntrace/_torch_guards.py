"""Describes the guards of a torch entry: which one failed, its expected and actual value.

Runs in: the traced process, when an entry is made and after a check of the entry has failed. The
shim (src/tracer/torch/) calls this code. This code never prints, never calls torch's check() (which
counts failures and reorders guards), and keeps no object of the program alive.

    guards = Guards(entry.guard_manager)
    guards.rows                             [(kind, source, expression, user_stack), ...]
                                            ordinal = index
    guards.failing(f_locals, f_globals)     (ordinal of the guard at which the last check failed,
                                            how many guards ran, the new order if it has changed)
    guards.explain(f_locals, f_globals)     [(ordinal, kind, source, expected, actual, aspect,
                                            dimension, text), ...]

torch keeps an entry's guards as a tree. A guard manager stands for a value ("L['m'].weight"). Its
leaf guards are checked first, then its children, which are reached through accessors (.weight,
['a'], ...). A dict whose order matters has managers for its keys and values instead. Guards of the
whole call come last ("epilogue").

                root                     leaves: GLOBAL_STATE, ...        rows 0, 1, 2
               /    \\
          L['d']    L['x']               leaves: TYPE_MATCH, ...          3 .. 5 and 6 .. 8
          ['a']                          leaves: TENSOR_MATCH, ...        4, 5
        epilogue                         leaves: LAMBDA_GUARD             9

Torch makes three checks that are not leaf guards. We add rows for them: a dict whose order matters
must have the expected type and length (DICT_LENGTH), an attribute must exist (HASATTR), and any
other value must exist (EXISTS). HASATTR and EXISTS have a row only if there is no guard on the
value or below it. Otherwise a failure is reported at the first such guard.

When guards fail, torch moves them forward among their siblings. So we find a guard in the present
tree by its text, not by its position. The number of guards that ran is counted in the order of the
failed check, which _torch_order keeps.

Expected values are read from a guard's code (an expression). Actual values are read from the call,
by walking the tree with the same accessors as torch (_torch_values). _torch_kinds knows how, for
each kind of guard. Failing guards are found by calling torch's leaves one by one. If a guard calls
hasattr() and that would run the program's code a second time, torch is not asked to check again,
and leaves with hasattr() are not called. Then it is unknown which guard failed first.
"""

import array
import functools
import itertools
import linecache
import os
import re
import sys
import time
import types
import weakref

from . import _torch_private as private
from ._torch_order import RELATIONS, Order
from ._torch_kinds import ASPECT, EXPLAIN
from ._torch_values import (
    MAX_ITEMS,
    MAX_VALUE,
    Missing,
    Scope,
    Unreadable,
    read_attribute_name,
    clip,
    describe,
    evaluate,
    require_type,
    disable_torch_function,
    read,
    runs_program,
    get_torch,
    type_name,
)

__all__ = ["Guards", "describe"]

MAX_TEXT = 4000  # the most characters of an expression
MAX_SENTENCE = 1000  # the most characters of a message of torch
MAX_PARTS = 256  # the most expressions of a guard
MAX_CAUSES = 64  # the most rows of one explanation
MAX_KNOWN = 512  # the most messages of torch for which an entry remembers the failed guard
MAX_CACHE = 1024  # the most items of each cache in this module

# Limits the processor time for finding further guards that do not hold. The guard that ended the
# check is explained in any case.
MAX_SECONDS = 0.1
_CUT = -2  # in place of a guard's ordinal: not all other guards were checked
MAX_DICT = 100_000  # the most items that are visited to find the n-th key of a dict
# the most finalizers that are searched for an object that a guard names by its id
MAX_FINALIZERS = 20_000


# ---- torch's texts -------------------------------------------------------------------------------

# Matches code up to a comment. A "#" in a string literal does not begin a comment.
_CODE = re.compile(r"""(?:[^'"#]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*""", re.S)
_PLACE = re.compile(r"# ([^#\n]+?):(\d+) in ([^\s()]+)")
_comments = {}  # comment -> the file and line that it names
_paths = {}  # path as torch shortens it -> whole path


def _split_code_part(part):
    """Split PART, one of torch's verbose code parts, into code and comment: "L['k'] == 2 # return x
    * k # a/b.py:12 in f"."""
    if len(part) > 2 * MAX_TEXT:
        part = part[:MAX_TEXT] + part[-MAX_TEXT:]
    code, mark, comment = part.partition("  # ")
    if "#" in code or "\\" in code or code.count("'") % 2 or code.count('"') % 2:
        end = _CODE.match(part).end()
        if part[end : end + 1] == "#":
            code, comment = part[:end], part[end + 1 :]
        elif end == len(part):
            code, comment = part, ""
    code = code.rstrip()
    if not mark and code.endswith(")") and " (HINT: " in code:
        code = code[: code.rindex(" (HINT: ")].rstrip()
    if "\n" in code or "\r" in code:
        code = " ".join(code.split())
    return clip(code, MAX_TEXT), comment


def _find_user_line(comment):
    """Return 'File "a/b.py", line 12, in f' for a comment that ends "# a/b.py:12 in f". Returns ""
    if this line is not in the program's own code."""
    if not comment:
        return ""
    place = _comments.get(comment)
    if place is None:
        if len(_comments) >= MAX_CACHE:
            _comments.clear()
        place = ""
        for found in _PLACE.finditer("# " + comment[-2 * MAX_SENTENCE :]):
            path, line, function = found.groups()
            if not path.lstrip("(").startswith("_dynamo/"):
                place = 'File "%s", line %s, in %s' % (_restore_path(path.strip()), line, function)
        _comments[comment] = place
    return place


def _restore_path(short):
    """Return the whole path for SHORT, a path that torch has shortened by the prefix that it shares
    with torch's own folder, and one character more. torch reads source lines by linecache, so
    linecache's cache has the whole path."""
    whole = _paths.get(short)
    if whole is None:
        if len(_paths) >= MAX_CACHE:
            _paths.clear()
        torch = sys.modules.get("torch")
        base = os.path.dirname(getattr(torch, "__file__", None) or "/")
        found = set()
        for path in list(linecache.cache):
            if type(path) is str and path.endswith(short) and os.path.isabs(path):
                if path[len(os.path.commonpath([path, base])) + 1 :] == short:
                    found.add(path)
        whole = _paths[short] = found.pop() if len(found) == 1 else short
    return whole


def _join_sentence(parts):
    return clip(" ".join("; ".join(str(part) for part in parts[:4]).split()), MAX_SENTENCE)


_STEPS = r"(?:\.\w+(?:\(\))?|\['[^']*'\]|\[\d+\])*"
_FIRST = r"[LG]\['[^']*'\]"
# Torch's source of a class attribute reads from the class: dict(type(L['self']).__dict__)['rate']
_CHAIN = re.compile(rf"(?:dict\(type\({_FIRST}{_STEPS}\)\.__dict__\)|{_FIRST}){_STEPS}")


def _find_sources(text):
    """Return the first few sources in the expression TEXT, for example "L['x'].size()[0],
    L['y'].size()[1]"."""
    return ", ".join(list(dict.fromkeys(_CHAIN.findall(text[:MAX_TEXT])))[:MAX_ITEMS])


# The source that we give to guards of these kinds, which check a state of torch and not a value.
_AMBIENT = {
    "GLOBAL_STATE": "global state",
    "DEFAULT_DEVICE": "torch.utils._device.CURRENT_DEVICE",
    "TORCH_FUNCTION_MODE_STACK": "torch function modes",
    "DUAL_LEVEL_MATCH": "torch.autograd.forward_ad._current_level",
}


def _name_ambient_source(kind, expression):
    if kind in _AMBIENT:
        return _AMBIENT[kind]
    if "saved_tensors_hooks" in expression:
        return "saved tensors hooks"
    return _find_sources(expression)


# ---- walking through torch's tree of guards ------------------------------------------------------


class _Step:
    """A step of the walk through the tree: a manager with its own guards, [(kind, source, parts,
    leaf), ...].

    `said` is the manager's source in the spelling of torch's messages. `how` tells how to get from
    the parent's value to this value: by an accessor; ("key", n) or ("value", n) in an ordered dict;
    None for the root; "epilogue" for the guards of the whole call.
    """

    __slots__ = (
        "serial",
        "parent",
        "index",
        "manager",
        "source",
        "said",
        "guards",
        "ordered_dict",
        "accessors",
    )

    def __init__(self, serial, parent, index, manager, source):
        self.serial, self.parent, self.index, self.manager = serial, parent, index, manager
        self.source = self.said = source
        self.guards = []
        self.ordered_dict = False
        self.accessors = None

    @property
    def how(self):
        if type(self.index) is not int:
            return self.index
        # list the accessors only when they are first needed
        if self.parent.accessors is None:
            self.parent.accessors = self.parent.manager.get_accessors()
        return self.parent.accessors[self.index]


def _walk_tree(root):
    """Yield a _Step for every manager, in torch's present order of evaluation."""
    serial = 0
    todo = [(root, None, None)]
    while todo:
        manager, parent, index = todo.pop()
        source = manager.get_source()
        step = _Step(serial, parent, index, manager, source)
        serial += 1
        guards = step.guards
        if type(manager).__name__ not in _ORDINARY and hasattr(manager, "get_key_value_managers"):
            step.ordered_dict = True
            guards.append(("DICT_LENGTH", source, None, None))
        for leaf in manager.get_leaf_guards():
            guards.append((type(leaf).__name__, source, leaf.verbose_code_parts(), leaf))
        children = manager.get_child_managers()
        if type(index) is int:
            bare = not guards and not children
            if bare or source == parent.said:
                kind = type(step.how).__name__
                if kind == "GetAttrGuardAccessor":
                    # a manager that exists only for hasattr() has the source of its parent
                    name = read_attribute_name(step.how)
                    if source == parent.said:
                        source = step.source = "%s.%s" % (source, name)
                if bare:
                    kind = "HASATTR" if kind == "GetAttrGuardAccessor" else "EXISTS"
                    guards.append((kind, source, None, None))
        yield step
        # push the children in reverse order onto the stack
        if step.ordered_dict:
            pairs = manager.get_key_value_managers()
            for place in sorted(pairs, reverse=True):
                key, value = pairs[place]
                if value is not None:
                    todo.append((value, step, ("value", place)))
                if key is not None:
                    todo.append((key, step, ("key", place)))
        for place in range(len(children) - 1, -1, -1):
            todo.append((children[place], step, place))
    epilogue = (
        root.get_epilogue_lambda_guards() if hasattr(root, "get_epilogue_lambda_guards") else ()
    )
    if epilogue:
        step = _Step(serial, None, "epilogue", root, "L")
        step.guards = [
            (type(leaf).__name__, "L", leaf.verbose_code_parts(), leaf) for leaf in epilogue
        ]
        yield step


_HASATTR = frozenset(("HASATTR", "NO_HASATTR"))
_ORDINARY = frozenset(("GuardManager", "RootGuardManager"))


def _hash_guard(guard):
    """Return a hash of GUARD that does not depend on the guard's position in the tree. Guards with
    the same hash check the same condition."""
    kind, source, parts, _ = guard
    return hash((kind, source)) if parts is None else hash((kind, source, *parts))


# ---- explaining why guards do not hold in a call -------------------------------------------------

# Kinds of guards that relate several values to each other.
_RELATIONS = frozenset(("OBJECT_ALIASING", "STORAGE_OVERLAPPING", "SYMBOLIC_SHAPE_GUARD"))

# If a guard of one of these kinds fails, further guards on the value are not checked.
_TYPE_KINDS = frozenset(("TYPE_MATCH", "FAKE_SCRIPT_TYPE_MATCH", "NONE_MATCH", "NOT_NONE"))


class _GuardLook:
    """A guard and the value that it checks in a call. Explains why the guard does not hold."""

    def __init__(self, look, guard, value):
        self.look, self.value = look, value
        self.kind, self.source, parts, self.leaf = guard
        self.codes = list(dict.fromkeys(_split_code_part(part)[0] for part in parts or ()))
        self.expression = " and ".join(self.codes)
        self.ambient = self.source == "L"
        if self.ambient:
            self.source = _name_ambient_source(self.kind, self.expression)

    def does_hold(self, code):
        """Does the expression CODE hold? Returns None if it cannot be evaluated."""
        try:
            return bool(evaluate(code, self.look.scope))
        except Exception:
            return None

    def evaluate_text(self, source):
        try:
            return describe(evaluate(source, self.look.scope))
        except Unreadable:
            return "?"

    def describe_by_helper(self, helper):
        """Call one of torch's helper functions with the value, and return the result as text."""
        try:
            return describe(self.look.scope.helpers[helper](self.value))
        except Exception:
            return type_name(type(self.value))

    def explain(self):
        """Return a list of (source, expected, actual), perhaps with aspect and dimension. Returns
        None if the guard holds after all."""
        try:
            rows = EXPLAIN[self.kind](self) if self.kind in EXPLAIN else []
        except Exception:
            rows = []
        if rows is None:
            return None
        return [
            (clip(source, MAX_TEXT), clip(expected, MAX_VALUE), clip(actual, MAX_VALUE), *rest)
            for source, expected, actual, *rest in rows
        ] or [(self.source, clip(self.expression, MAX_VALUE), "")]


class _Look:
    """Walks through the tree with the values of a call, and lists the failing guards in the order
    of evaluation."""

    def __init__(self, guards, manager, root, f_locals, f_globals):
        self.scope = Scope(manager, f_locals, f_globals)
        self.guards = guards
        self.root = root
        # (ordinal, kind, source, expected, actual, aspect, dimension) for each failing guard
        self.causes = []
        self.tensors = {}  # id of a tensor -> its source, for NO_TENSOR_ALIASING
        self.relations = {}  # code of a relation -> (start, end) of its slice of `causes`
        self.message = ""  # torch's message about the guard that failed first
        self.cut = False  # the time limit was reached before all guards were checked
        self.asks_program = False  # never call hasattr(), as this would run the program's code
        self._alive = None  # id of an object -> weak reference to the object, see find_by_id()

    def run(self, most=MAX_CAUSES):
        """Fill `causes` with at most MOST causes. If MOST is above 1, stop at the time limit. The
        limit is in processor time, because other programs on the machine must not matter."""
        ordinals = self.guards._make_places()
        end = time.thread_time() + MAX_SECONDS
        # serial of a step -> what was found at the step:
        #     ("is", value)           the value was read
        #     ("missing", [source])   the value does not exist; [] once that has been reported
        #     ("skip", None)          the value was not read
        values = {}
        steps = _walk_tree(self.root)
        self._check_step(next(steps), values, ordinals)
        with disable_torch_function():  # as torch does for all managers below the root
            for step in steps:
                if len(self.causes) >= most or most > 1 and time.thread_time() > end:
                    self.cut = len(self.causes) < most
                    break
                self._check_step(step, values, ordinals)
        del self.causes[most:]

    def explain_one(self, ordinal):
        """Return the causes of the guard ORDINAL, which ended the check. Reads only the values on
        the path to this guard, so there is no time limit."""
        ordinals = self.guards._make_places()
        for step in _walk_tree(self.root):
            found = [
                guard
                for guard in step.guards
                if ordinals.next_ordinal(_hash_guard(guard)) == ordinal
            ]
            if found:
                break
        else:
            return []
        path, values, state, value, self.causes = [step], {}, "skip", None, []
        while path[0].parent is not None:
            path.insert(0, path[0].parent)
        with disable_torch_function():
            for each in path:
                state, value = values[each.serial] = self._read_step_value(each, values)
            if state == "is":
                self._check_guard(step, found[0], value, ordinal)
        return self.causes

    def _add_cause(self, ordinal, kind, source, expected, actual, aspect=None, dimension=-1):
        self.causes.append(
            (ordinal, kind, source, expected, actual, aspect or ASPECT.get(kind, ""), dimension)
        )

    def _check_step(self, step, values, ordinals):
        state, value = self._read_step_value(step, values)
        values[step.serial] = state, value
        for guard in step.guards:
            ordinal = ordinals.next_ordinal(_hash_guard(guard))
            if state == "missing" and value:
                self._add_cause(ordinal, guard[0], value.pop(), "present", "missing", "attribute")
            elif state == "is":
                try:
                    senseless = self._check_guard(step, guard, value, ordinal)
                except Exception:
                    senseless = False
                if senseless:
                    values[step.serial] = state, value = "skip", None

    def _read_step_value(self, step, values):
        if step.parent is None:
            return "is", self.scope.locals
        parent, index = step.parent, step.index
        state, value = values.get(parent.serial, ("skip", None))
        if state != "is":
            return state, value
        try:
            if type(index) is tuple:
                items = self._list_items(parent, value, values)
                if index[1] >= len(items):
                    raise Missing
                return "is", items[index[1]][index[0] == "value"]
            return "is", read(step.how, step.source, value, self.scope)
        except Missing:
            return "missing", [step.source]
        except Exception:
            return "skip", None

    def _list_items(self, parent, value, values):
        """Return the first items of a dict, as many as its managers need. Caches them in VALUES."""
        key = ("items", parent.serial)
        if key not in values:
            last = max(parent.manager.get_key_value_managers(), default=-1)
            if last >= MAX_DICT:
                raise Unreadable
            values[key] = list(itertools.islice(dict.items(require_type(value, dict)), last + 1))
        return values[key]

    def _check_guard(self, step, guard, value, ordinal):
        """Check one guard, and add causes if it does not hold. Returns True if VALUE is of a type
        for which the manager's further guards make no sense."""
        kind, source, parts, leaf = guard
        if leaf is None:
            return (
                self._check_ordered_dict(step, value, ordinal) if kind == "DICT_LENGTH" else False
            )
        if kind == "NO_TENSOR_ALIASING":
            other = self.tensors.setdefault(id(value), source)
            if other != source:
                self._add_cause(
                    ordinal, kind, source, "its own tensor", "the same tensor as " + other
                )
            return False
        if kind == "MAPPING_KEYS_MATCH" and type(value) is not types.MappingProxyType:
            return True  # torch's own check would crash here
        if kind in _RELATIONS:
            self._check_relation(guard, value, ordinal)
            return False
        if not callable(leaf) or self.asks_program and kind in _HASATTR:
            return False
        try:
            if leaf(value):
                return False
        except Exception:
            pass
        rows = _GuardLook(self, guard, value).explain()
        for row in rows or ():
            self._add_cause(ordinal, kind, *row)
        if kind == "TENSOR_MATCH":
            torch = get_torch()
            return torch is None or not issubclass(type(value), torch.Tensor)
        return kind in _TYPE_KINDS or kind == "DICT_LENGTH" and not issubclass(type(value), dict)

    def _check_relation(self, guard, value, ordinal):
        """Check a relation, a guard of several managers, of which each adds its value. torch's
        check object cannot be called for a relation alone, so evaluate the guard's expression. The
        failure is reported for the last of these managers."""
        kind, parts = guard[0], tuple(guard[2])
        if parts in self.relations:
            start, end = self.relations[parts]
            self.causes[start:end] = [(ordinal, *cause[1:]) for cause in self.causes[start:end]]
            return
        look = _GuardLook(self, guard, value)
        rows = None
        if kind == "STORAGE_OVERLAPPING" or any(
            look.does_hold(code) is False for code in look.codes
        ):
            rows = look.explain()
        start = len(self.causes)
        for row in rows or ():
            self._add_cause(ordinal, kind, *row)
        self.relations[parts] = start, len(self.causes)

    def find_by_id(self, identity):
        """Return the object with the id IDENTITY, which a guard of torch names; None if it is not
        found. When torch made the guard, it registered a finalizer for the object. The finalizer
        has a weak reference."""
        if self._alive is None:
            self._alive = {}
            for info in list(getattr(weakref.finalize, "_registry", {}).values())[-MAX_FINALIZERS:]:
                if type(info.func) is functools.partial and "obj_str" in info.func.keywords:
                    thing = info.weakref()
                    if thing is not None:
                        self._alive[id(thing)] = info.weakref
        found = self._alive.get(identity)
        return found() if found is not None else None

    def _check_ordered_dict(self, step, value, ordinal):
        """Check type and length of a dict whose order matters. In torch the dict's manager checks
        them, not a guard of the tree. Torch tells the expected length only in the message of a
        check that failed for the length."""
        manager, kind, source = step.manager, type(value), step.source
        wanted = (
            manager.get_type_of_guarded_value()
            if hasattr(manager, "get_type_of_guarded_value")
            else None
        )
        if issubclass(type(wanted), type) and kind is not wanted:
            self._add_cause(
                ordinal,
                "DICT_LENGTH",
                "type(%s)" % source,
                type_name(wanted),
                type_name(kind),
                "type",
            )
            return True
        if not issubclass(kind, dict) or self.message == "TYPE_MISMATCH(%s)" % source:
            self._add_cause(
                ordinal, "DICT_LENGTH", "type(%s)" % source, "dict", type_name(kind), "type"
            )
            return True
        head = "len(%s) != " % source
        if self.message.startswith(head):
            self._add_cause(
                ordinal,
                "DICT_LENGTH",
                "len(%s)" % source,
                self.message[len(head) :],
                "%d" % dict.__len__(value),
            )
        else:
            least = max(manager.get_key_value_managers(), default=-1) + 1
            if dict.__len__(value) < least:
                self._add_cause(
                    ordinal,
                    "DICT_LENGTH",
                    "len(%s)" % source,
                    "%d or more" % least,
                    "%d" % dict.__len__(value),
                )
        return False


def _merge_causes(causes):
    """Merge those of CAUSES that are about the same guard and the same value. For example, "L['n']
    >= 0 and L['n'] <= 9" has two parts, and torch repeats some parts."""
    found = {}
    for cause in causes:
        ordinal, kind, source, expected, actual, aspect, dimension = cause
        key = ordinal, source, actual, aspect, dimension
        before = found.setdefault(key, cause)
        if before[3] != expected and expected not in before[3].split(" and "):
            both = clip("%s and %s" % (before[3], expected), MAX_VALUE)
            found[key] = (*before[:3], both, *before[4:])
    return list(found.values())


# ---- the guards of an entry ----------------------------------------------------------------------


class _Places:
    """Maps guards of the present tree to their ordinals: their numbers in the order that the tree
    had when the entry was made.

    Several guards may have the same hash. Each call of next_ordinal() with this hash returns the
    next of their ordinals.
    """

    def __init__(self, marks):
        self._of = {}
        for ordinal, mark in enumerate(marks):
            self._of.setdefault(mark, []).append(ordinal)
        self._next = {}

    def next_ordinal(self, mark):
        ordinals = self._of.get(mark)
        if ordinals is None:
            return -1
        if len(ordinals) == 1:
            return ordinals[0]
        at = self._next.get(mark, 0)
        self._next[mark] = at + 1
        return ordinals[min(at, len(ordinals) - 1)]


class Guards:
    """The guards of one cache entry. Holds only texts and a weak reference to torch's guard
    manager, but no object of the program."""

    __slots__ = (
        "rows",
        "_manager",
        "_marks",
        "_known",
        "_known_tensors",
        "_order",
        "_instead",
        "_hasattrs",
        "__weakref__",
    )

    def __init__(self, guard_manager):
        self._manager = weakref.ref(guard_manager)
        # (torch's message, number of guards that torch counted) -> ordinal of the failed guard;
        # only valid until the order of the tree changes
        self._known = {}
        # (source, number of guards that torch counted) -> ordinal, for TENSOR_MATCH, whose messages
        # contain the sizes of the call
        self._known_tensors = {}
        # the expressions of guards that call hasattr(): see _would_run_program()
        self._hasattrs = []
        rows, marks = [], array.array("q")
        order = Order(guard_manager.root)
        for step in _walk_tree(guard_manager.root):
            order.add_manager(step, len(rows))
            for guard in step.guards:
                marks.append(_hash_guard(guard))
                row = self._make_row(step, guard)
                rows.append(private.strip_row(*row))
                if row[0] in _HASATTR:
                    self._hasattrs.append(row[2])
        order.finish_walk(len(rows))
        self.rows, self._marks, self._order = rows, marks, order
        # None, or (A, B) if the first check of a call failed at guard B and a second check of the
        # same call at guard A. B is a relation in that case.
        self._instead = None

    @staticmethod
    def _make_row(step, guard):
        kind, source, parts, _ = guard
        if parts is None:
            if kind == "HASATTR":
                base, _, name = source.rpartition(".")
                return kind, source, "hasattr(%s, %r)" % (base, name), ""
            return (
                kind,
                source,
                "%s exists" % source if kind == "EXISTS" else "type and length of %s" % source,
                "",
            )
        expression, comment = _split_code_part(parts[0]) if parts else ("", "")
        place = _find_user_line(comment)
        if len(parts) > 1:
            codes, tail = [expression], "  # " + comment
            for part in parts[1:MAX_PARTS]:
                if comment and part.endswith(tail):  # most parts of a guard have the same comment
                    codes.append(part[: -len(tail)].rstrip())
                else:
                    code, other = _split_code_part(part)
                    codes.append(code)
                    other = _find_user_line(other)
                    if other and other not in place:
                        place = place + "\n" + other if place else other
            expression = clip(" and ".join(dict.fromkeys(codes)), MAX_TEXT)
        if step.parent is None:
            source = _name_ambient_source(kind, expression)
        return kind, source, expression, place

    def _make_places(self):
        return _Places(self._marks)

    def _would_run_program(self, scope):
        """Would a second check run code of the program, such as a __getattr__ or a property? Only
        guards that call hasattr() may do that: before torch reads an attribute in another way, a
        guard has checked the object's class."""
        return any(runs_program(code, scope) for code in self._hasattrs)

    def order(self):
        """Return the ordinals in the order in which torch would check the guards now."""
        manager = self._manager()
        if manager is None:
            return []
        try:
            places = self._make_places()
            return [
                places.next_ordinal(_hash_guard(guard))
                for step in _walk_tree(manager.root)
                for guard in step.guards
            ]
        except Exception:
            return []

    def failed(self, f_locals, f_globals):
        """Return (ordinal or -1, number): the guard at which a check of this call would fail in the
        present order, and how many guards would run. Unlike torch's check(), this counts no failure
        and moves no guard."""
        manager = self._manager()
        try:
            ordinal = (
                self._find_ending_guard(manager, f_locals, f_globals)[0]
                if manager is not None
                else -1
            )
            if ordinal < 0:
                return -1, 0
            if self._order.is_current(manager.root):
                return ordinal, self._order.count_guards_before(ordinal) + 1
            return ordinal, self.order().index(ordinal) + 1
        except Exception:
            return -1, 0

    def _find_ending_guard(self, manager, f_locals, f_globals):
        """Check again by torch's check_verbose(), which moves no guard. Returns (ordinal of the
        guard at which this check failed, or -1; how many guards torch counted)."""
        if self._hasattrs and self._would_run_program(Scope(manager, f_locals, f_globals)):
            return -1, 0
        root = manager.root
        return self._find_first_failure(
            manager, root, self._check_again(root, f_locals), f_locals, f_globals
        )

    def failing(self, f_locals, f_globals):
        """Find out at which guard the last check of this entry failed. Returns a tuple:

        ordinal of the guard, or -1
        how many guards ran, or 0 if not known
        the order of the next checks as JSON, or None if the order has not changed
        """
        manager, ordinal, ran, changed = self._manager(), -1, 0, False
        if manager is not None:
            try:
                said, count = self._find_ending_guard(manager, f_locals, f_globals)
                if said >= 0:
                    ordinal, ran, changed = self._order.find_failed_guard(said, count, manager.root)
                    self._instead = (said, ordinal) if said != ordinal else None
                else:
                    changed = self._order.note_unknown_failure(manager.root)
            except Exception:
                ran = 0
        if changed:  # with the new order torch may count other numbers of guards for all messages
            self._known.clear()
            self._known_tensors.clear()
        return ordinal, ran, str(self._order.list_ordinals()) if changed else None

    @staticmethod
    def _check_again(root, f_locals):
        """Let torch check again and report the failing guard. Returns None if the check raises, for
        example in the __str__ of a metaclass."""
        try:
            return root.check_verbose(f_locals)
        except Exception:
            return None

    def _find_first_failure(self, manager, root, info, f_locals, f_globals):
        """Return (ordinal of the failed guard, or -1; how many guards torch counted up to this
        guard). INFO is the result of check_verbose()."""
        if info is None:  # torch's second check raised an exception
            parts, count = [], 0
        # all guards hold now: in the first check a guard raised, or a value has changed meanwhile
        elif info.result:
            return -1, 0
        else:
            parts, count = info.verbose_code_parts, info.num_guards_executed
        message = parts[0] if parts else ""
        found = self._known.get((message, count))
        if found is not None:
            return found, count
        if message.startswith("tensor '"):
            end = message.find("' ", 8)
            while end > 0:
                found = self._known_tensors.get((message[8:end], count))
                if found is not None:
                    return found, count
                end = message.find("' ", end + 1)
        found, tensor = self._locate_guard(root, parts, count) if parts else (None, None)
        if found is None:
            look = _Look(self, manager, root, f_locals, f_globals)
            look.message = message
            look.run(1)
            found = look.causes[0][0] if look.causes else -1
        if tensor is not None:
            known, key = self._known_tensors, (tensor, count)
        else:
            known, key = self._known, (message, count)
        # Do not remember a relation. Its message is the same at each of its managers, so the
        # message does not tell at which manager the check failed.
        if message and found >= 0 and self.rows[found][0] not in RELATIONS:
            if len(known) >= MAX_KNOWN:
                known.clear()
            known[key] = found
        return found, count

    def _locate_guard(self, root, parts, count):
        """Find the guard that produced the message PARTS after torch had counted COUNT leaves.
        Returns (its ordinal, the tensor's source or None), or (None, None).

        torch counts only leaf guards. It leaves out the leaf guards on an ordered dict itself if it
        then checks the dict's keys and values. We count in the same way.
        """
        places, counted, message = self._make_places(), 0, parts[0] if parts else ""
        said, loosely, reached = None, [], None
        inside = {}  # serial of an ordered dict -> torch's count before the dict's own guards
        pending = []  # (step, torch's count before it) of managers whose guards have not come yet
        for step in _walk_tree(root):
            if type(step.index) is tuple and step.parent.serial in inside:
                counted = inside.pop(step.parent.serial)
            if step.ordered_dict:
                inside[step.serial] = counted
            pending = [entry for entry in pending if self._is_step_above(entry[0], step)]
            pending.append((step, counted))
            for kind, source, texts, leaf in step.guards:
                ordinal = places.next_ordinal(_hash_guard((kind, source, texts, leaf)))
                for above, entered in pending:
                    # The check has reached no guard below ABOVE: the value does not exist, or the
                    # ordered dict has another type or length.
                    if (
                        entered == count
                        and above.parent is not None
                        and above.said in message
                        and (reached is None or len(above.said) >= len(reached[1]))
                    ):
                        reached = ordinal, above.said
                pending = []
                if leaf is None:
                    continue
                counted += 1
                # the message of a shape guard in C++ has another part, with the numbers of the call
                if (
                    texts == parts
                    or kind == "SYMBOLIC_SHAPE_GUARD"
                    and texts == parts[: len(texts)]
                ):
                    if counted == count:
                        return ordinal, None
                    loosely.append(ordinal)
                elif counted == count and said is None:
                    if kind == "TENSOR_MATCH" and message.startswith(
                        ("tensor '%s' " % source, "expected type of '%s'" % source)
                    ):
                        return ordinal, source if message.startswith("tensor") else None
                    if (
                        kind == "GLOBAL_STATE"
                        and message.startswith("GLOBAL_STATE")
                        or kind == "NO_TENSOR_ALIASING"
                        and message.startswith("Duplicate tensor")
                    ):
                        return ordinal, None
                    if kind.startswith("LAMBDA_GUARD"):
                        said = ordinal  # the guard raised, so the message is that of the exception
        if reached is not None:
            return reached[0], None
        if len(loosely) == 1:
            return loosely[0], None
        return said, None

    @staticmethod
    def _is_step_above(step, below):
        while below is not None:
            if below is step:
                return True
            below = below.parent
        return False

    def causes(self, f_locals, f_globals):
        """Return the rows of explain() in the form that the extension reads. The first columns are
        those of GuardTree._why()."""
        return [
            (ordinal, expected, actual, aspect, dimension, kind, source, text)
            for ordinal, kind, source, expected, actual, aspect, dimension, text in self.explain(
                f_locals, f_globals
            )
        ]

    def explain(self, f_locals, f_globals):
        """Return the guards that do not hold now: a list of (ordinal, kind, source, expected,
        actual, aspect, dimension, text). The guard that ended the check is the first. A guard may
        have several rows, e.g. one for each property of a tensor. The list is empty if all guards
        hold."""
        manager = self._manager()
        if manager is None:
            return []
        try:
            root = manager.root
            look = _Look(self, manager, root, f_locals, f_globals)
            look.asks_program = self._would_run_program(look.scope)
            info = None if look.asks_program else self._check_again(root, f_locals)
            if info is not None and info.result:
                return []
            parts = list(info.verbose_code_parts) if info is not None else []
            look.message = str(parts[0]) if parts else ""
            first = (
                -1
                if look.asks_program
                else self._find_first_failure(manager, root, info, f_locals, f_globals)[0]
            )
            try:
                look.run()
            except Exception:
                pass
            causes = look.causes
            if first >= 0 and not any(cause[0] == first for cause in causes):
                try:
                    causes = look.explain_one(first)
                except Exception:
                    causes = []
            if self._instead is not None and self._instead[0] == first:
                first = self._instead[1]
                causes = self._put_relation_first(causes, first)
            rows = (
                self._sort_rows(causes, first, parts)
                if not look.asks_program
                else [
                    (
                        -1,
                        "",
                        "",
                        "",
                        "",
                        "",
                        -1,
                        "it did not hold when it was checked; asking which one would run the "
                        "program's code again",
                    ),
                    *(
                        private.strip_cause(*cause, clip(self.rows[cause[0]][2], MAX_SENTENCE))
                        for cause in causes[:MAX_CAUSES]
                    ),
                ]
            )
            if look.cut:
                rows.append(
                    (
                        _CUT,
                        "",
                        "",
                        "",
                        "",
                        "",
                        -1,
                        "not every guard was looked at: there was no time for more",
                    )
                )
            return rows
        except Exception:
            return []

    def _put_relation_first(self, causes, first):
        """Put the causes of the relation FIRST before all others. They get the ordinal that the
        relation has at the manager where the check failed. In the present order the relation fails
        at another manager: see _torch_order."""
        kind, source, expression = self.rows[first][:3]
        tensors = kind == "NO_TENSOR_ALIASING"
        made, others = [], []
        for cause in causes:
            if cause[1] != kind or not tensors and self.rows[cause[0]][2] != expression:
                others.append(cause)
            elif tensors and cause[2] != source:
                made.append(
                    (first, kind, source, cause[3], "the same tensor as " + cause[2], *cause[5:])
                )
            else:
                made.append((first, *cause[1:]))
        return made + others

    def _sort_rows(self, causes, first, parts):
        """Make rows of CAUSES. The rows of the guard FIRST, which ended the check, come first.
        Their text is torch's message, PARTS; the text of other rows is the expression of the
        guard."""
        if first < 0 and causes:
            first = causes[0][0]
        # drop failures found before FIRST: in torch's check these guards held
        at = next((i for i, cause in enumerate(causes) if cause[0] == first), 0)
        causes = causes[at:]
        decided = [cause for cause in causes if cause[0] == first]
        if not decided:
            kind, source, expression = self.rows[first][:3] if first >= 0 else ("", "", "")
            decided = [
                (first, kind, source, clip(expression, MAX_VALUE), "", ASPECT.get(kind, ""), -1)
            ]
        rows = []
        for number, cause in enumerate(_merge_causes(decided)):
            # the message of a shape guard has several parts: take the part of this row or, if there
            # is none, all
            if len(parts) > 1:
                rows.append(
                    (
                        *cause,
                        _join_sentence(
                            [p for p in parts if _split_code_part(p)[0] == cause[3]] or parts
                        ),
                    )
                )
            else:
                rows.append((*cause, _join_sentence(parts) if number == 0 else ""))
        seen = {first}
        for cause in _merge_causes(causes):
            if cause[0] != first and not any(cause[2:] == other[2:7] for other in rows):
                text = (
                    ""
                    if cause[0] in seen or cause[0] < 0
                    else clip(self.rows[cause[0]][2], MAX_SENTENCE)
                )
                seen.add(cause[0])
                rows.append((*cause, text))
        return [private.strip_cause(*cause) for cause in rows[:MAX_CAUSES]]
