"""What was read is not believed behind code of the program's: an operation on objects, a callback, an object that dies. And what a result's
shape depends on, which object is which, what changes while it is gone through."""
import types

count = 0
kept = types.SimpleNamespace(value=[1])
grown = []


class Item:
    """In an array of objects: its operations do things."""

    def __init__(self, n, does):
        self.n, self.does = n, does

    def __add__(self, other):
        self.does()
        return Item(self.n + other, self.does)

    def __lt__(self, other):
        self.does()
        return self.n < other

    def __repr__(self):
        return "Item(%d)" % self.n


def objects(does, n=1):
    import numpy
    array = numpy.empty(1, dtype=object)
    array[0] = Item(n, does)
    return array


def counts():
    global count
    count += 1


def replaces():
    kept.value = [kept.value[0] + 1]


@calls(*["objects(counts), A(3)"] * 4)
def read_behind(o, x):
    y = o + 1
    return y, x * count


@calls(*["objects(counts), A(3)"] * 4)
def read_again(o, x):
    before = count
    y = o < 9
    return y, x * (count - before)


@calls(*["objects(counts), A(3)"] * 4)
def read_in_call(o, x):
    return o + 1, counted(x)


def counted(x):
    return x * count


@calls(*["objects(replaces), A(3)"] * 4)
def read_before(o, x):
    before = kept.value
    y = o + 1
    return y, before, x * kept.value[0]


@calls(*["objects(lambda: grown.append(2)), A(3), grown"] * 3)
def grows(o, x, values):
    y = o + 1
    for value in values:
        x = x * value
    return x, len(values), 2 in values


def resets():
    import dyntrace
    dyntrace.reset()


def changes():
    resets_and_changes.__code__ = (lambda o: ("changed", o)).__code__


def forks():
    import os
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def starts():
    import threading
    thread = threading.Thread(target=counted, args=(2,))
    thread.start()
    thread.join()


@calls("objects(resets)", "objects(forks)", "objects(starts)", "objects(changes)", "objects(resets)")
def resets_and_changes(o):
    y = o + 1
    print("between")
    return y + 1


@calls("objects(lambda: 1 / 0)", "objects(counts)", "objects(lambda: 1 / 0)")
def raises(o):
    y = o + 1
    return y + 1


def doubled(row):
    counts()
    return row * 2


@calls("A(2, 3)", "A(2, 3)", "A(2, 3)")
def called_back(x):
    y = xp.apply_along_axis(doubled, 0, x) if hasattr(xp, "apply_along_axis") else doubled(x)
    return y * count


# ---- objects that die ----

class Dies:
    n = 2

    def __del__(self):
        counts()


def uses(o, x):
    return x * o.n


def overwritten(x):
    o = Dies()
    y = x + 1
    o = None
    return y * count


def deleted(x):
    o = [Dies()]
    y = x * o[0].n
    del o
    return y * count


def dropped(x):
    y = uses(Dies(), x + 1)
    return y * count


def unpacked(x):
    a, b = Dies(), x + 1
    a, b = b, x
    return a * count, b


# ---- which object is which, what is true ----

class Tuple(tuple):
    pass


class Told(tuple):
    def __bool__(self):
        log("bool")
        return len(self) > 1


class Equal(type):
    def __eq__(cls, other):
        log("eq")
        return True
    __hash__ = type.__hash__


class WithEqual(metaclass=Equal):
    pass


@calls("A(3), Tuple((1, 2))", "A(3), Tuple()", "A(3), Told((1,))", "A(3), Told((1, 2))", "A(3), Told((1, 2))")
def true(x, t):
    y = x + 1
    if t:
        return y * 2
    return y, not t


@calls("A(3), 3", "A(3), 3")
def among_classes(x, n):
    return x + (1 if n in (int, WithEqual) else 2)


@calls("A(3), (1, 1 << 70), 1 << 70", "A(3), (1, 1 << 70), 1 << 70")
def passed_on(x, t, n):
    before = t
    t += (2,)
    return x * len(t) + n % 3, before, n


# ---- changed while it is gone through ----

def by_number(x):
    values = [x, x, x]
    for i, value in enumerate(values):
        x = x * i + value
        values[2] = x
    return x, values


def together(x):
    values = [1, 2, 3]
    for a, b in zip(values, values):
        x = x * a + b
        values[2] = 9
    return x, values


def backwards(x):
    values = [1, 2, 3]
    for value in reversed(values):
        x = x * value
        values[0] = 9
    return x, values


def by_key(x):
    values = {"a": 1, "b": 2}
    for key, value in values.items():
        x = x * value
        values["b"] = 9
    return x, values


# ---- sizes that depend on data ----

@calls("I(3), A(6)", "-I(3), A(6)", "I(3), A(6)")
def made_of_data(i, x):
    n = abs(i).sum() - 3
    return xp.arange(n).shape, xp.zeros((n,)).shape, xp.ones(n)


@calls("A(6), 2", "A(6), 3", "A(6), 2")
def reshaped_by_data(x, n):
    n = xp.asarray(n) + 0
    y = x.reshape((n, -1))
    return y.shape, y


@calls("A(4)", "-A(4)", "A(4)")
def joined_by_data(x):
    y = xp.concatenate([x[x > 0], x])
    return y.shape, len(xp.stack([x, x]))


@calls("I(3)", "-I(4)", "I(3)")
def repeated_by_data(x):
    y = xp.repeat(repeats=abs(x[0]), a=(1, 2)) if hasattr(xp, "ufunc") else x
    return y.shape
