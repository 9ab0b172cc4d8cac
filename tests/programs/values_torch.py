"""torch.compile where every value is a secret (SECRETS="word other 123 456", see values_work.py)."""
import collections
import dataclasses
import enum
import functools
import inspect
import os

import torch

WORDS = os.environ.pop("SECRETS").split()
WORD, OTHER = WORDS[:2]
NUMBER, ANOTHER = map(int, WORDS[2:])
compiled = functools.partial(torch.compile, backend="eager")
table = {WORD: NUMBER, NUMBER: WORD}
Colour = enum.Enum("Colour", {"RED": WORD, "BLUE": OTHER})
Pair = collections.namedtuple("Pair", "name pin")


@dataclasses.dataclass
class Account:
    name: str
    pin: int


class Net(torch.nn.Module):
    def __init__(self, key):
        super().__init__()
        self.first, self.parts, self.key = torch.nn.Linear(4, 4), torch.nn.ModuleDict({key: torch.nn.Linear(4, 4)}), key
        self.register_buffer("bias_of_" + key, torch.zeros(4))

    def forward(self, x):
        return self.parts[self.key](self.first(x)) + getattr(self, "bias_of_" + self.key)


def closure(word, number):
    def inner(x, default=word, *, other=number):
        return x + number if word == default else x - other
    return inner


@compiled
def values(x, s, n, b, f, account, pair, colour, options):
    y = x * n + f
    if s == WORD and b.decode() == WORD:
        y = y + 1
    if account.name == WORD and account.pin > 5 or pair.name == OTHER or colour is Colour.RED:
        y = y + account.pin
    return y + options[WORD] + options.get(NUMBER, 0) + len(options[WORD + "s"]) + table[WORD], s, b, colour


@compiled
def breaks(x, s, options):
    y = x + len(s)
    torch._dynamo.graph_break(msg="because of " + s)
    print(s, file=options["out"])
    y = y + sum(ord(c) for c in s.upper())
    try:
        raise KeyError(s)
    except KeyError as error:
        y = y + len(str(error))
    if y.sum() > 3:
        y = y - 1
    os.environ.get(s)
    return y, s


@compiled
def keyed(x, options):
    for key, value in options.items():
        x = x + value if isinstance(value, int) else x
    return x if WORD in options else x - 1


@functools.partial(torch.compile, backend="eager", dynamic=True)
def numbers(x, n):
    return x.reshape(-1, 2) * n + n // 3


@functools.partial(torch.compile, backend="eager", fullgraph=True)
def whole(x, s):
    print(s)
    return x


gives_reason = "reason" in inspect.signature(torch._dynamo.disable).parameters  # from torch 2.8 on


@functools.partial(torch._dynamo.disable, **{"reason": "not for " + WORD} if gives_reason else {})
def disabled(x, s):
    return x


@compiled
def calls_disabled(x, s):
    return disabled(x, s) + 1


@compiled
def raises(x, s):
    raise ValueError("nothing for " + s)


def backend(graph, inputs):
    raise RuntimeError("the backend does not like " + WORD)


backend.__name__ = backend.__qualname__ = "backend of " + WORD


def quietly(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__


x = torch.ones(4)
with open(os.devnull, "w") as out:
    for s, n in ((WORD, NUMBER), (OTHER, ANOTHER), (OTHER, 3)):
        options = {WORD: n, NUMBER: 2, WORD + "s": s, s: 1.5, "out": out}
        for value in (x, x.double(), torch.ones(6)[::2]):
            quietly(values, value, s, n, s.encode(), n / 1e4, Account(s, n), Pair(s, n), Colour(s), options)
            quietly(breaks, value, s, options)
            quietly(keyed, value, options)
        for value in (torch.ones(4), torch.ones(6), torch.ones(3, 4)):
            quietly(numbers, value, n)
            quietly(numbers, value, n / 1e4)
        for function in (whole, calls_disabled, raises, torch.compile(lambda x, s: x + len(s), backend=backend)):
            quietly(function, x, s)
        quietly(torch.compile(closure(s, n), backend="eager"), x)
        quietly(torch.compile(functools.partial(closure(s, n), default=s, other=n), backend="eager"), x)
        quietly(torch.compile(Net(s), backend="eager"), x)
        marked = torch.ones(5 if s == WORD else 7)
        torch._dynamo.mark_dynamic(marked, 0)
        quietly(keyed, marked, {s: n})
print("done")
