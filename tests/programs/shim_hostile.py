"""Code of the program that changes the evaluator's state under it, from every place where it runs such code.

    shim_hostile.py [PLACE ...]         all places, or these; shim_hostile.py --list

An ACT (reset everything, invalidate, refill, ...) happens in the middle of a call that is being decided, from a PLACE (a
guard, an attribute of an answer, a finaliser, ...), with 0 to 9 entries there. Whatever it does, the call gives what the
function gives, the entries can be looked at, and calls that follow are decided as usual. The combination about to run
is the last line of the output if the interpreter dies.
"""
import collections
import gc
import os
import signal
import sys
import threading
import types
import weakref

import dyntrace
import dyntrace.config
from dyntrace import guards
from dyntrace._native import native
from dyntrace.eval_frame import (_debug_get_cache_entry_list, get_eval_frame_callback, reset_code, set_code_exec_strategy,
                                 set_eval_frame, set_guard_error_hook, set_guard_fail_hook, skip_code)
from dyntrace.guards import EQUALS_MATCH, ID_MATCH, G, GuardTree, L, LAMBDA, TENSOR_MATCH
from dyntrace.types import ConvertFrameReturn, FrameAction, FrameExecStrategy, GuardedCode

dyntrace.config.recompile_limit = dyntrace.config.accumulated_recompile_limit = 1000

SOURCE = """
def f(a, o=None, *rest, k=None):
    return a
"""


class Case:
    """One function, and what happens to it."""

    def __init__(self, act, count):
        self.space = {}
        exec(compile(SOURCE, __file__, "exec"), self.space)
        self.code = self.space["f"].__code__
        self.act_now, self.left = act, 0
        for i in range(count):
            under(self.compiler(), lambda: self.call(i))
        self.arm(2)

    def arm(self, times):
        self.left, self.busy = times, False

    def act(self, *ignored):
        """The act, at most as often as it is armed, and not within itself."""
        if self.left and not self.busy:
            self.left -= 1
            self.busy = True
            try:
                self.act_now(self)
            finally:
                self.busy = False
        return True

    def call(self, a, o=None):
        function = self.space.get("f")
        return a if function is None else function(a, o)

    def copy(self, constant=None):
        return self.code.replace(co_consts=self.code.co_consts + (constant,))

    def compiler(self):
        """A callback without tricks."""
        def callback(frame, entry, state):
            if frame.f_code.co_name == "f" and frame.f_code.co_filename == __file__:
                value = frame.f_locals["a"]
                return GuardedCode(frame.f_code.replace(), lambda f_locals: f_locals["a"] == value)
        callback._torchdynamo_orig_backend = "one"  # all entries are tried
        return callback

    def answering(self, answer):
        """A callback that answers ANSWER(frame) for f."""
        def callback(frame, entry, state):
            if frame.f_code.co_name == "f" and frame.f_code.co_filename == __file__:
                return answer(frame)
        callback._torchdynamo_orig_backend = "one"
        return callback


def under(callback, function, *args):
    prior = set_eval_frame(callback)
    try:
        return function(*args)
    finally:
        set_eval_frame(prior)


# ---- acts ------------------------------------------------------------------

def entries(case):
    return _debug_get_cache_entry_list(case.code)


def reset(case):
    dyntrace.reset()


def reset_the_code(case):
    reset_code(case.code)


def invalidate(case):
    for entry in entries(case):
        entry.invalidate("hostile")


def refill(case):
    under(case.compiler(), lambda: [case.call(1000 + i) for i in range(5)])


def reset_and_refill(case):
    dyntrace.reset()
    refill(case)
    gc.collect(0)


def other_code(case):
    if "f" in case.space:
        case.space["f"].__code__ = case.code.replace(co_name="f")
    gc.collect(0)


def other_callback(case):
    set_eval_frame(case.compiler())


def no_callback(case):
    set_eval_frame(None)


def run_only(case):
    set_eval_frame(False)


def death(case):
    case.space.clear()
    gc.collect(0)


def skip(case):
    skip_code(case.code)


def strategy(case):
    set_code_exec_strategy(case.code, FrameExecStrategy(FrameAction.RUN_ONLY, FrameAction.SKIP))


def raising(case):
    raise LookupError("hostile")


def hooks(case):
    set_guard_fail_hook(lambda *args: None)
    set_guard_fail_hook(None)
    set_guard_error_hook(None)


def look(case):
    """Every entry, from outside."""
    for entry in entries(case):
        repr(entry), entry.code, entry.check_fn, entry.next, entry.valid, entry.hits, entry.compile_id
    gc.collect(1)


def fork(case):
    child = os.fork()
    if not child:
        try:
            reset_and_refill(case)
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def generator_dies(case):
    """A generator of the same program is closed while it is under way."""
    def made():
        try:
            yield 1
        finally:
            reset(case)
    generator = made()
    next(generator)
    del generator


ACTS = [reset, reset_the_code, invalidate, refill, reset_and_refill, other_code, other_callback, no_callback, run_only, death, skip,
        strategy, raising, hooks, look, generator_dies]
FORKING = [fork]


# ---- places ----------------------------------------------------------------

PLACES = {}


def place(function):
    PLACES[function.__name__] = function
    return function


def plain(case, guard=None, **more):
    return case.answering(lambda frame: GuardedCode(case.copy(), guard or (lambda f_locals: True), **more))


class Acting:
    """Any attribute of this acts, and so does comparing, calling, hashing, testing it."""

    def __init__(self, case, **values):
        self.__dict__.update(values, case=case)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__["case"].act()
        raise AttributeError(name)

    def __eq__(self, other):
        self.case.act()
        return self is other

    def __hash__(self):
        return 1

    def __bool__(self):
        self.case.act()
        return True

    def __call__(self, *args):
        return self.case.act()

    def __str__(self):
        self.case.act()
        return "0/0"

    def __index__(self):
        self.case.act()
        return 0


class Dying:
    """Acts when it dies."""

    def __init__(self, case):
        self.case = case

    def __del__(self):
        self.case.act()


def acting_property(name, value):
    """A class whose attribute NAME acts and is VALUE(instance); others are the instance's."""
    def read(self):
        self.case.act()
        return value(self) if callable(value) else value

    def create(self, case, **values):
        self.__dict__.update(values, case=case)
    return type("Answer", (), {name: property(read), "__init__": create})


def a_tree(case, *leaves):
    return GuardTree(list(leaves) + [EQUALS_MATCH(L["a"])], example={"a": 0, "o": None}, globals=globals())


def with_tree(case, make):
    """Entries with trees whose first guard acts and whose last fails for some: they move."""
    def answer(frame):
        return GuardedCode(case.copy(), GuardTree([make(frame), EQUALS_MATCH(L["k"]), EQUALS_MATCH(L["a"])],
                                                  example=frame.f_locals, globals=frame.f_globals))
    case.left, times = 0, case.left
    under(case.answering(answer), lambda: [case.call(a) for a in (1, 2, 1, 2, 1)])
    case.arm(times)
    return case.answering(answer)


@place
def guard_call(case):
    return plain(case, Acting(case))


@place
def guard_attribute(case):
    return case.answering(lambda frame: GuardedCode(case.copy(), acting_property("check", lambda self: case.act)(case)))


@place
def guard_returns_nonsense(case):
    class Nonsense:
        def __del__(self):
            case.act()
    return plain(case, lambda f_locals: Nonsense() if case.left else True)


@place
def guard_keeps_locals(case):
    """And empties them while they are looked at."""
    kept = []

    def guard(f_locals):
        kept.append(f_locals)
        case.act()
        f_locals.clear()
        return False
    return plain(case, guard)


@place
def tree_lambda(case):
    return with_tree(case, lambda frame: LAMBDA(case.act, "act", L["a"]))


@place
def tree_lambda_of_all(case):
    return with_tree(case, lambda frame: LAMBDA(case.act, "act"))


@place
def tree_equals(case):
    class Other(Acting):
        def __eq__(self, other):
            return self.case.act()
        __hash__ = None
    case.space["__builtins__"]["hostile"] = Other(case)
    return with_tree(case, lambda frame: EQUALS_MATCH(guards.B["hostile"], Other(case)))


@place
def tree_equals_in_a_list(case):
    """__eq__ empties both lists that are being compared."""
    class Other:
        __hash__ = None

        def __eq__(self, other):
            wanted.clear()
            got.clear()
            case.act()
            return True
    wanted, got = [Other(), Other(), Other()], [Other(), Other(), Other()]
    case.space["__builtins__"]["hostile"] = got
    return with_tree(case, lambda frame: EQUALS_MATCH(guards.B["hostile"], wanted))


@place
def tree_attribute(case):
    case.space["__builtins__"]["hostile"] = acting_property("x", 5)(case)
    return with_tree(case, lambda frame: EQUALS_MATCH(guards.B["hostile"].x, 5))


@place
def tree_attribute_gives_another_dict(case):
    """A key's __eq__ takes the instance's dict away while an attribute is looked for in it."""
    class Key(str):
        def __hash__(self):
            return str.__hash__(self)

        def __eq__(self, other):
            if case.left:
                holder.__dict__ = {"x": 5}
                case.act()
            return str.__eq__(self, other)

    class Holder:
        pass
    holder = Holder()
    holder.__dict__ = {Key("y"): 1, Key("x"): 5}
    case.space["__builtins__"]["hostile"] = holder
    return with_tree(case, lambda frame: EQUALS_MATCH(guards.B["hostile"].x, 5))


@place
def tree_item(case):
    class Items:
        def __getitem__(self, key):
            case.act()
            return 5
    case.space["__builtins__"]["hostile"] = Items()
    return with_tree(case, lambda frame: EQUALS_MATCH(guards.B["hostile"]["x"], 5))


@place
def tree_method(case):
    class Sized:
        def size(self):
            case.act()
            return 5
    case.space["__builtins__"]["hostile"] = Sized()
    return with_tree(case, lambda frame: EQUALS_MATCH(guards.B["hostile"].size(), 5))


@place
def tree_state(case):
    guards.register_global_state("hostile", lambda: case.act() and 5)
    return with_tree(case, lambda frame: EQUALS_MATCH(guards.global_state("hostile"), 5))


@place
def tree_checked_within(case):
    """The guard checks its own tree, and another thread does."""
    trees = []

    def check(a):
        if case.left:
            case.act()
            for tree in trees:
                tree.check({"a": 1}), tree.explain({"a": 2}), tree.order(), tree.guards()
            thread = threading.Thread(target=lambda: [tree.check({"a": 7}) for tree in trees])
            thread.start()
            thread.join()
        return True

    def answer(frame):
        trees.append(GuardTree([LAMBDA(check, "check", L["a"]), EQUALS_MATCH(L["a"])], example=frame.f_locals))
        return GuardedCode(case.copy(), trees[-1])
    return case.answering(answer)


@place
def tree_in_the_making(case):
    """Found by its kind before it has all its guards, and checked."""
    class Shy:
        def __repr__(self):
            for tree in gc.get_objects():
                if type(tree) is GuardTree:
                    tree.check({"a": 1, "o": 1})
            case.act()
            return "shy"

    def answer(frame):
        return GuardedCode(case.copy(), GuardTree([EQUALS_MATCH(L["a"]), EQUALS_MATCH(L["o"], Shy()), EQUALS_MATCH(L["a"])],
                                                  example=frame.f_locals))
    return case.answering(answer)


@place
def tensor_attribute(case):
    class Tensor:
        dtype, device, requires_grad = "float", "cpu", False

        @property
        def shape(self):
            case.act()
            return (2, 3)

        def stride(self):
            case.act()
            return (3, 1)
    tensor = Tensor()
    case.space["__builtins__"]["hostile"] = tensor
    return with_tree(case, lambda frame: TENSOR_MATCH(guards.B["hostile"], value=tensor))


@place
def backend_equals(case):
    callback = plain(case)
    callback._torchdynamo_orig_backend = Acting(case)
    under(callback, case.call, 1)
    case.arm(2)
    other = plain(case)
    other._torchdynamo_orig_backend = Acting(case)
    return other


@place
def backend_equals_all(case):
    class Same(Acting):
        def __eq__(self, other):
            return self.case.act()
        __hash__ = None

    def callback():
        made = case.answering(lambda frame: GuardedCode(case.copy(), GuardTree([EQUALS_MATCH(L["a"])], example=frame.f_locals)))
        made._torchdynamo_orig_backend = Same(case)
        return made
    case.left, times = 0, case.left
    under(callback(), case.call, 1)
    case.arm(times)
    return callback()


@place
def backend_lookup(case):
    inner = plain(case)

    class Callback(Acting):
        def __call__(self, *args):
            return inner(*args)
    return Callback(case)


@place
def backend_name(case):
    """Read for the trace."""
    class Backend:
        def __getattr__(self, name):
            if name != "__qualname__":
                raise AttributeError(name)
            case.act()
            return "hostile"
    callback = plain(case)
    callback._torchdynamo_orig_backend = Backend()
    return callback


@place
def callback(case):
    return case.answering(lambda frame: case.act() and GuardedCode(case.copy(), lambda f_locals: True))


@place
def callback_declines(case):
    def answer(frame):
        case.act()
    return case.answering(answer)


@place
def callback_not_now(case):
    return case.answering(lambda frame: case.act() and ConvertFrameReturn(FrameExecStrategy(), apply_to_code=False))


@place
def callback_dies(case):
    """The callback's last reference goes while it is asked."""
    class Callback(Dying):
        def __call__(self, frame, entry, state):
            if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "f":
                set_eval_frame(None)
                return GuardedCode(case.copy(), lambda f_locals: True)
    return Callback(case)


@place
def callback_keeps_the_entry(case):
    class Callback:
        kept = []

        def __call__(self, frame, entry, state):
            while entry is not None:
                self.kept.append(entry)
                entry = entry.next
            if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "f":
                case.act()
                return GuardedCode(case.copy(), lambda f_locals: True)
    return Callback()


def answer_attribute(name, strategy=False):
    def made(case):
        values = {"code": case.copy(), "check_fn": lambda f_locals: True, "guard_manager": lambda f_locals: True,
                  "trace_annotation": "x", "compile_id": "0/0"}
        if name == "guard_manager":
            values["check_fn"] = None
        value = values.pop(name)
        Answer = acting_property(name, lambda self: value)
        if strategy:
            return case.answering(lambda frame: ConvertFrameReturn(FrameExecStrategy(), True, Answer(case, **values)))
        return case.answering(lambda frame: Answer(case, **values))
    made.__name__ = "answer_%s%s" % (name, "_of_a_strategy" if strategy else "")
    place(made)


for name in "code", "check_fn", "guard_manager", "trace_annotation", "compile_id":
    answer_attribute(name)
answer_attribute("compile_id", strategy=True)
answer_attribute("trace_annotation", strategy=True)


def whole_answer_attribute(name, value):
    def made(case):
        values = {"frame_exec_strategy": FrameExecStrategy(), "apply_to_code": True, "skip_reason": None,
                  "guarded_code": GuardedCode(case.copy(), lambda f_locals: True)}
        if name == "skip_reason":
            values["guarded_code"] = None
        values.pop(name, None)
        Answer = acting_property(name, lambda self: value(case))
        return case.answering(lambda frame: Answer(case, **values))
    made.__name__ = "whole_answer_" + name
    place(made)


whole_answer_attribute("frame_exec_strategy", lambda case: FrameExecStrategy())
whole_answer_attribute("apply_to_code", lambda case: True)
whole_answer_attribute("guarded_code", lambda case: GuardedCode(case.copy(), lambda f_locals: True))
whole_answer_attribute("skip_reason", lambda case: "hostile")


@place
def whole_answer_apply_to_code_as_bool(case):
    return case.answering(lambda frame: ConvertFrameReturn(FrameExecStrategy(), Acting(case),
                                                           GuardedCode(case.copy(), lambda f_locals: True)))


@place
def whole_answer_action(case):
    Strategy = acting_property("cur_action", 0)
    return case.answering(lambda frame: ConvertFrameReturn(Strategy(case, recursive_action=Acting(case)), True,
                                                           GuardedCode(case.copy(), lambda f_locals: True)))


@place
def compile_id_as_text(case):
    """Read for the trace, and for what a guard's error says."""
    return plain(case, lambda f_locals: True if case.left else "no bool", compile_id=Acting(case))


@place
def fail_hook(case):
    set_guard_fail_hook(lambda *args: case.act())
    return plain(case, lambda f_locals: False)


@place
def fail_hook_dies(case):
    class Hook(Dying):
        def __call__(self, *args):
            set_guard_fail_hook(None)
            self.case.act()
    set_guard_fail_hook(Hook(case))
    return plain(case, lambda f_locals: False)


@place
def error_hook(case):
    set_guard_error_hook(lambda *args: case.act())

    def guard(f_locals):
        if case.left:
            raise LookupError
        return True
    return plain(case, guard)


@place
def finaliser_of_a_guard(case):
    def answer(frame):
        dying = Dying(case)
        return GuardedCode(case.copy(), lambda f_locals: dying and f_locals["a"] == frame.f_code)
    return case.answering(answer)


@place
def finaliser_of_a_constant(case):
    return case.answering(lambda frame: GuardedCode(case.copy(Dying(case)), lambda f_locals: True))


@place
def finaliser_of_an_annotation(case):
    return case.answering(lambda frame: GuardedCode(case.copy(), lambda f_locals: True, Dying(case), Dying(case)))


@place
def finaliser_of_frame_state(case):
    def callback(frame, entry, state):
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "f":
            state["dying"] = Dying(case)
            reset_code(frame.f_code)
            return GuardedCode(case.copy(), lambda f_locals: True)
    return callback


@place
def finaliser_of_an_argument(case):
    case.argument = lambda: Dying(case)
    return plain(case)


@place
def finaliser_of_an_exception(case):
    class Hostile(LookupError):
        def __del__(self):
            case.act()

    class Guard:
        def __getattr__(self, name):
            raise Hostile

        def __call__(self, f_locals):
            if case.left:
                raise Hostile
            return True
    return plain(case, Guard())


@place
def finaliser_of_the_functions_name(case):
    class Name(str):
        def __del__(self):
            case.act()
    case.space["f"].__name__ = Name("f")
    case.space["f"].__qualname__ = Name("f")
    under(plain(case), case.call, 1)
    if "f" in case.space:
        case.space["f"].__name__ = Name("f")
        case.space["f"].__qualname__ = Name("f")
    return plain(case)


@place
def weakref_of_a_guard(case):
    def answer(frame):
        class Guard:
            def __call__(self, f_locals):
                return f_locals["a"] == frame
        guard = Guard()
        case.watch = weakref.ref(guard, case.act)
        return GuardedCode(case.copy(), guard)
    return case.answering(answer)


@place
def weakref_of_a_guarded_object(case):
    """It dies while the guard that names it is being checked; so do the tree's entries."""
    class Named:
        pass
    holder = [Named()]

    def drop(a):
        if case.left:
            case.watch = weakref.ref(holder[0], case.act) if holder else None
            holder.clear()
        return True

    def answer(frame):
        if not holder:
            holder.append(Named())
        case.space["__builtins__"]["hostile"] = holder
        return GuardedCode(case.copy(), GuardTree([LAMBDA(drop, "drop", L["a"]), ID_MATCH(L["o"], holder[0]), EQUALS_MATCH(L["a"])],
                                                  example=frame.f_locals))
    case.argument = lambda: holder[0] if holder else None
    return case.answering(answer)


@place
def weakref_of_the_tree(case):
    """The last reference to an object that the tree guards is in a weakref callback of the tree."""
    class Tree(GuardTree):
        pass

    class Named:
        pass

    def answer(frame):
        holder = [Named()]
        tree = Tree([ID_MATCH(L["o"], holder[0]), EQUALS_MATCH(L["a"])], example=frame.f_locals)

        def dead(ref):
            holder.clear()
            case.act()
        case.watch = weakref.ref(tree, dead)
        return GuardedCode(case.copy(), tree)
    return case.answering(answer)


@place
def collector(case):
    """The garbage collector runs at every allocation, and finds something to finalise."""
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            case.act()
            if case.left:
                Cycle()
    case.arm(6)
    for _ in range(3):
        Cycle()
    gc.set_threshold(1)
    return case.answering(lambda frame: GuardedCode(case.copy(), a_tree(case)))


@place
def audit(case):
    """Code objects that we make are audited."""
    auditing.append(case)
    return plain(case)


auditing = []


def audited(event, args):
    if auditing and event == "code.__new__":
        auditing[-1].act()


@place
def thread(case):
    """Another thread acts while this one is in a guard."""
    def guard(f_locals):
        if case.left and not case.busy:
            other = threading.Thread(target=quietly, args=(case.act,))
            other.start()
            other.join()
        return True
    return plain(case, guard)


def quietly(function):
    try:
        function()
    except LookupError:
        pass


@place
def signal_handler(case):
    def guard(f_locals):
        if case.left:
            signal.raise_signal(signal.SIGUSR1)
        return True
    signal.signal(signal.SIGUSR1, case.act)
    return plain(case, guard)


@place
def signal_in_the_answer(case):
    """Handled while we put an entry's description together."""
    class Id:
        def __str__(self):
            signal.raise_signal(signal.SIGUSR1)
            return "0/0"
    signal.signal(signal.SIGUSR1, case.act)
    return plain(case, compile_id=Id())


# torch's front end finds the evaluator under these names; what it hands over are objects of Python as well.

TORCH = native._torch_attributes()


class Root:
    def __init__(self, case):
        self.case = case

    def check(self, f_locals):
        TORCH["_reset_precompile_entries"](self.case.code) if self.case.left else None
        return self.case.act()


@place
def torch_precompiled(case):
    manager = types.SimpleNamespace(root=Root(case))
    for _ in range(3):
        TORCH["_load_precompile_entry"](case.code, manager, case.copy())
    assert len(TORCH["_debug_get_precompile_entries"](case.code)) == 3
    return plain(case)


@place
def torch_precompiled_loading(case):
    class Manager:
        @property
        def root(self):
            case.act()
            return Root(case)
    for _ in range(2):
        quietly(lambda: TORCH["_load_precompile_entry"](case.code, Manager(), case.copy()))
    case.arm(2)
    return plain(case)


def torch_manager(case, name):
    """A guard manager whose attribute NAME acts when it is read or set."""
    class Manager:
        def __getattribute__(self, asked):
            if asked == name:
                case.act()
            return object.__getattribute__(self, asked)

        def __setattr__(self, asked, value):
            if asked == name:
                case.act()
            object.__setattr__(self, asked, value)
    Manager.root = types.SimpleNamespace(check=lambda f_locals: f_locals["a"] > 50)
    Manager.diff_guard_root = Manager.root
    case.torch = True
    return case.answering(lambda frame: ConvertFrameReturn(FrameExecStrategy(), True, types.SimpleNamespace(
        code=case.copy(), guard_manager=Manager(), trace_annotation="x", compile_id="0/0")))


for name in "root", "diff_guard_root", "cache_entry", "extra_state":
    PLACES["torch_manager_" + name] = lambda case, name=name: torch_manager(case, name)


# ---- one combination -------------------------------------------------------

def expected(case, error):
    """May a hostile program have led to this?"""
    text = str(error)
    return case.act_now is raising or isinstance(error, LookupError) or "not bool" in text or "cannot be called" in text or "no code object" in text


def check(case, a):
    """A call gives its argument, or an error that the act or the place has made."""
    argument = getattr(case, "argument", lambda: None)()
    try:
        result = case.call(a, argument)
    except Exception as error:
        assert expected(case, error), error
    else:
        assert result == a, (result, a)


def combination(act, name, count):
    print(name, act.__name__, count, flush=True)
    case = Case(act, count)
    callback = PLACES[name](case)
    set_callback = TORCH["set_eval_frame"] if hasattr(case, "torch") else set_eval_frame
    set_callback(callback)
    del callback
    for a in (99, 98, 1, 0, 99):
        check(case, a)
        if get_eval_frame_callback() is None and case.left:
            set_callback(PLACES[name](case))
            case.left = 1
    set_eval_frame(None)
    gc.set_threshold(700)
    set_guard_fail_hook(None)
    set_guard_error_hook(None)
    auditing.clear()
    case.arm(0)
    # All that is left can be looked at, and is decided as usual.
    TORCH["_reset_precompile_entries"](case.code)
    for entry in entries(case):
        assert entry.valid == (entry.code is not None), entry
        repr(entry)
    dyntrace.reset()
    assert entries(case) == []
    if "f" in case.space and case.code is case.space["f"].__code__:
        under(case.compiler(), lambda: [case.call(i, None) for i in (1, 2, 1)])
        assert [entry.hits for entry in entries(case)] == [2, 1], entries(case)
    case.space.pop("f", None)


def main():
    if sys.argv[1:] == ["--list"]:
        print(*PLACES, sep="\n")
        return
    sys.addaudithook(audited)
    sys.unraisablehook = lambda raised: None
    acts = ACTS + (FORKING if not os.environ.get("LD_PRELOAD") else [])
    done = collections.Counter()
    for name in sys.argv[1:] or PLACES:
        for act in acts:
            for count in (0, 1, 3, 4, 9):
                combination(act, name, count)
                done[name] += 1
    print("%d combinations" % sum(done.values()))


main()
