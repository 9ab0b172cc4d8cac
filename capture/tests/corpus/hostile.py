"""What a capture must not stumble over: objects that raise when they are looked at, code that changes, frames that are asked."""
import sys
import types


class Raises:
    def __getattr__(self, name):
        raise RuntimeError("getattr")

    def __eq__(self, other):
        raise RuntimeError("eq")

    def __bool__(self):
        raise RuntimeError("bool")

    def __hash__(self):
        raise RuntimeError("hash")

    def __len__(self):
        raise RuntimeError("len")

    def __iter__(self):
        raise RuntimeError("iter")

    def __repr__(self):
        raise RuntimeError("repr")

    def __add__(self, other):
        raise RuntimeError("add")

    __radd__ = __add__


class Lies:
    @property
    def __class__(self):
        log("class")
        return int

    def __instancecheck__(self, o):
        return True


thing = Raises()


@calls("A(3), Raises()", "A(3), Raises()")
def passed_by(x, o):
    return x + 1


@calls("A(3), Raises()")
def added(x, o):
    y = x * 2
    return o + 1


@calls("A(3), Raises()")
def compared(x, o):
    y = x * 2
    return o == y


@calls("A(3), Raises()")
def tested(x, o):
    y = x * 2
    if o:
        return y


@calls("A(3), Raises()")
def iterated(x, o):
    for v in o:
        x = x + v
    return x


@calls("A(3), Raises()")
def as_key(x, o):
    y = x + 1
    return {o: y}


@calls("A(3), {1: Raises(), 'k': 2}")
def inside_dict(x, d):
    return x * d["k"], d[1] is not None


def from_global(x):
    return x + 1, thing is None


@calls("A(3), Lies()", "A(3), Lies()")
def liar(x, o):
    return isinstance(o, int), x + 1


def own_locals(x):
    y = x + 1
    return sorted(locals()), y


def own_frame(x):
    y = x + 1
    return sys._getframe().f_code.co_filename == __file__, y * 2


def callers_frame(x):
    def inner():
        return sorted(sys._getframe(1).f_locals)
    return inner(), x + 1


def traced(x):
    seen = []
    sys.settrace(lambda *a: seen.append(a[1]))
    y = x + 1
    sys.settrace(None)
    return y


def changes_itself(x):
    return x + 1


def changer(x):
    y = x * 2
    changes_itself.__code__ = (lambda x: x + 100).__code__
    return changes_itself(y)


@calls("A(3)", "A(3)")
def changes_its_own_code(x):
    y = x + 1
    changes_its_own_code.__code__ = (lambda x: x + 100).__code__
    return y


def made_by_exec(x):
    scope = {}
    exec("def f(v):\n    w = v + 1\n    print('inside')\n    return w * 2", scope)
    return scope["f"](x)


def without_lines(x):
    code = helper.__code__.replace(co_linetable=b"")
    return types.FunctionType(code, globals())(x)


def helper(v):
    w = v + 1
    return w * 2


def many_constants():
    body = "\n".join(f"    x = x + {i}.5" for i in range(400))
    scope = {}
    exec(f"def f(x):\n{body}\n    return x", scope)
    return scope["f"]


entry(many_constants(), "four_hundred_constants")


class BadShape:
    ndim = 1

    @property
    def shape(self):
        log("shape")
        raise RuntimeError("shape")


@calls("BadShape()")
def array_that_is_none(o):
    return o.ndim + 1


class Callable:
    def __call__(self, *args):
        log("call")
        return args[0] * 2


def odd_callables(x):
    return Callable()(x), (lambda: x)(), types.MethodType(lambda s: s, x)()


def unset_local(x):
    if x.ndim == 7:
        y = 1
    return y


def deleted_local(x):
    y = x + 1
    del y
    return y


def subclass_of_int(x):
    class N(int):
        def __add__(self, other):
            log("N add")
            return 7
    n = N(3)
    return n + 1, x * n


def subclass_of_list(x):
    class L(list):
        def __getitem__(self, i):
            log("L getitem")
            return x * 9
    return L([x])[0], len(L([1, 2]))


def subclass_of_dict(x):
    class D(dict):
        def __missing__(self, key):
            log("missing")
            return x
    return D()["k"] + 1


def signal_handler(x):
    import os
    import signal
    before = signal.signal(signal.SIGUSR1, lambda *a: log("signal"))
    os.kill(os.getpid(), signal.SIGUSR1)
    y = x + 1
    signal.signal(signal.SIGUSR1, before)
    return y


def collected(x):
    import gc
    class Cycle:
        def __del__(self):
            log("collected")
    c = Cycle()
    c.me = c
    y = x + 1
    del c
    gc.collect()
    return y * 2


def threads(x):
    import threading
    out = []
    t = threading.Thread(target=lambda: out.append(x * 3))
    t.start()
    t.join()
    return out[0] + 1
