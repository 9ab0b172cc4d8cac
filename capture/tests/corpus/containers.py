"""Tuples, lists, dicts and sets, with arrays in them or not."""


def tuple_made(x):
    return x, x + 1, (x * 2,)


def list_made(x):
    return [x, [x + 1]]


def dict_made(x):
    return {"x": x, "more": {"y": x + 1}}


def unpacked(x):
    a, b = x + 1, x * 2
    a, b = b, a
    return a - b


def star_unpacked(x):
    first, *rest = [x, x + 1, x + 2]
    return first + rest[0] * rest[1], len(rest)


def nested_unpacked(x):
    (a, b), c = (x, x + 1), x + 2
    return a * b + c


def indexed(x):
    t = (x, x + 1, 3)
    return t[0] * t[-1] + t[1], t[1:]


def list_changed(x):
    many = [x]
    many.append(x + 1)
    many.extend([x * 2, x * 3])
    many[0] = x - 1
    many.insert(1, x)
    del many[-1]
    many.reverse()
    return many, many.pop()


def dict_changed(x):
    d = {"a": x}
    d["b"] = x + d["a"]
    d.update(c=x * 2)
    d.setdefault("d", x * 3)
    del d["a"]
    return d, sorted(d), d.pop("c")


def set_made(x):
    s = {1, 2}
    s.add(3)
    return x * len(s), 2 in s, s | {9}


def merged(x):
    return {**{"a": x}, "b": 1}, [*[x], 2, *(3, 4)], (*[1], x)


def sorted_list(x):
    return x * sorted([3, 1, 2])[0], sorted([3, 1, 2], key=lambda v: -v)


def membership(x):
    return 1 in [1, 2], "a" not in {"a": 1}, x


def list_of_sums(x):
    many = [x + i for i in range(3)]
    return sum(many) + many[0]


def list_multiplied(x):
    return [x] * 2 + [x + 1]


def tuple_compared(x):
    return (1, 2) < (1, 3), (x.shape, 1) == ((3,), 1)


@calls("[A(3), A(3)]", "[A(3), A(3)]", "[A(4), A(4)]", "[A(3)]")
def list_argument(many):
    return many[0] + many[1]


@calls("[A(3)]", "[A(3)]")
def list_argument_grows(many):
    many.append(many[0] * 2)
    return len(many)


@calls("{'x': A(3), 'n': 1}", "{'x': A(3), 'n': 1}", "{'x': A(3), 'n': 2}", "{'x': A(3)}")
def dict_argument(d):
    d["y"] = d["x"] * d["n"]
    return d["y"] + 1


@calls("(A(3), (A(3), [A(3)]))", "(A(3), (A(3), [A(4)]))")
def deep_argument(t):
    a, (b, [c]) = t
    return a + b + c


@calls("{'b': A(3), 'a': A(3)}", "{'a': A(3), 'b': A(3)}")
def dict_order(d):
    out = None
    for k in d:
        out = d[k] * 2 if out is None else out - d[k]
        log(k)
    return out


def missing_key(x):
    return {"a": x}["b"]


def index_out_of_range(x):
    return [x, x][5]


def slice_assigned(x):
    many = [1, 2, 3, 4]
    many[1:3] = [x, x]
    return many


def list_comparison(x):
    return [1, 2] == [1, 2], [1] is [1], len([x, x])


def used_as_key(x):
    try:
        return {x: 1}
    except TypeError as error:
        return str(error)[:11]


def namedtuple_made(x):
    import collections
    P = collections.namedtuple("P", "a b")
    p = P(x, 2)
    return p.a * p.b, p._replace(b=3).b


def default_dict(x):
    import collections
    d = collections.defaultdict(list)
    d["k"].append(x)
    d["k"].append(x + 1)
    return d["k"], len(d["none"])


def deque_made(x):
    import collections
    q = collections.deque([x, x + 1], maxlen=2)
    q.append(x + 2)
    return q.popleft() + q[-1]


def list_methods(x):
    many = [x, 1]
    many.insert(0, x + 1)
    many.insert(-1, "a")
    last = many.pop()
    first = many.pop(0)
    many.extend((x * 2, x * 3))
    many.reverse()
    copy = many.copy()
    del many[0], many[-1]
    many[0:1] = [last, x, x]
    copy.clear()
    return many, copy, first, [x, 2] * 2, many * 1


def list_pop_of_nothing(x):
    many = [x]
    many.pop()
    return many.pop()


def list_delete_beyond(x):
    many = [x]
    del many[3]
    return many


def list_of_itself(x):
    many = [x]
    many.insert(0, many)
    return len(many), many[0] is many


def dict_methods(x):
    d = {"a": x, 1: x + 1}
    d.update({"b": x * 2}, c=5)
    had = d.pop("a")
    none, five, seven = d.get("zz"), d.get("c"), d.get("zz", x)
    d.setdefault("e", x - 1)
    d.setdefault("n")
    del d[1]
    copy = d.copy()
    d.clear()
    return copy, d, had, none, five, seven, "e" in copy, "zz" not in copy, list(copy), [v for k, v in copy.items() if k == "b"]


def dict_pop_of_nothing(x):
    d = {"a": x}
    return d.pop("b", x + 1), d.pop("c")


@calls("A(3), {'a': A(3), 'b': 2}", "A(3), {'a': A(3), 'b': 2}", "A(3), {'b': 2, 'a': A(3)}", "A(3), {'a': A(3)}", "A(3), {}", "A(3), {1: A(3), True: 5}",
       "A(3), {'a': A(3), 'b': 3}")
def dict_gone_through(x, d):
    out = [x]
    for k, v in d.items():
        out.append(v * 2)
    for k in d:
        out.append(k)
    return out, list(d.values()), {**d, "z": x}, d.get("a"), d.get("q", x), dict(d) == d, list(d)


def takes_named(x, *, a=1, b=2):
    return x * a + b


@calls("A(3), {'a': 3}", "A(3), {'a': 3}", "A(3), {'b': 3, 'a': A(3)}", "A(3), {}")
def dict_as_keywords(x, d):
    return takes_named(x, **d) + 1


@calls("[A(3), 1]", "[A(3), 1]", "[A(3), 2, 3]", "[]")
def list_argument_changed(many):
    many.insert(0, 5)
    many.append(7)
    many.reverse()
    last = many.pop()
    return last, len(many)


@calls("A(3), [A(3), 1]", "A(3), [A(3), 1]", "A(3), [A(3), 2, 3]")
def list_argument_popped(x, many):
    y = x + many.pop()
    del many[0]
    many[0:0] = [x, y]
    return y * 2


def helper_changes(x):
    def fill(many, d):
        many.insert(0, x)
        d.update(k=x)
        log("filled")
        many.pop()
        d.pop("k")
    many, d = [x, 1], {}
    fill(many, d)
    return many, d, x + 1


class Numbered:
    def __getattr__(self, name):
        return int(name[1:])


@calls("A(3), Numbered()", "A(3), Numbered()", "A(3), Numbered()")
def long_display(x, o):
    """CPython appends to a list of more than 30 items one by one: the list is an argument of resume functions."""
    y = x + 1
    return y, [o.n0, o.n1, o.n2, o.n3, o.n4, o.n5, o.n6, o.n7, o.n8, o.n9, o.n10, o.n11, o.n12, o.n13, o.n14, o.n15, o.n16, o.n17, o.n18, o.n19, o.n20, o.n21, o.n22, o.n23, o.n24, o.n25, o.n26, o.n27, o.n28, o.n29, o.n30, o.n31, o.n32]


@calls("A(3), {'k': 3}", "A(3), {'k': 4}", "A(3), {}", "A(3), {'k': 4}")
def got_behind_a_break(x, d):
    y = d.get("k", 12)
    log(y)
    return x + y


@calls("A(3), {1, 2}", "A(3), (1, 2)", "A(3), None", "A(3), {1: 2}")
def chained_with_other(x, other):
    import itertools
    return x * len(list(itertools.chain([1], other)))


@calls("A(3), [1, 2, 3]", "A(3), (1,)", "A(3), [1, 2]", "A(3), []")
def unpacked_as_many_as_there_are(x, many):
    try:
        a, b = [*many]
    except ValueError as error:
        return x + 1, str(error)
    return x + a, b


@calls("A(3), [1, 2, 3]", "A(3), (1,)", "A(3), (1, 2)", "A(3), 'abc'")
def unpacked_as_they_are_given(x, many):
    a, b = many
    return x + a, b
