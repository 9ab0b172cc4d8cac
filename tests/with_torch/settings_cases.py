"""Programs for test_settings.py: each function below recompiles, breaks or runs eagerly, and has one hand-edited remedy.

    settings_cases.py          as the program is
    settings_cases.py hand     with each remedy written into it

Prints what each case gave and how often torch compiled its function, by torch's own counters. SETTINGS is what --set says instead of the
edits, each for its own function.
"""
import collections
import inspect
import json
import sys

import torch
import torch._dynamo.config
import torch._dynamo.utils

HAND = "hand" in sys.argv
SETTINGS = {
    "sizes": "dynamic=True@sizes",
    "marked": "mark_dynamic=L['x'][0]@marked",
    "specialized": "mark_dynamic=x[0]@specialized",
    "maybe": "maybe_mark_dynamic=L['pair'][1][0]@maybe",
    "unbacked": "mark_unbacked=L['x'].size()[0]@unbacked",
    "static": "mark_static=x[1]@static",
    "scaled": "tensor=L['n']@scaled",
    "Net.forward": "tensor=L['self'].k@Net.forward",
    "step": "tensor=self.param_groups[0]['lr']@Optimizer.step",
    "star": "tensor=args[1]@star",
    "keyword": "tensor=L['more']['n']@keyword",
    "inner": "tensor=L['captured']@closure.<locals>.inner",
    "Scaled.forward": "tensor=type(L['self']).factor@Scaled.forward",
    "whole": "fullgraph=True@whole",
    "made": "isolate_recompiles=True@maker.<locals>.made",
    "limited": "config.recompile_limit=2@limited",
    "scalar": "config.capture_scalar_outputs=True@scalar",
    "unspec": "config.allow_unspec_int_on_nn_module=True@Unspec.forward",
    "reads": "guard_filter_fn=skip_guard_on_globals_unsafe@reads",
    "dropped": "drop_guard=CONSTANT_MATCH L['flag']@dropped",
    "stance": "stance=eager_on_recompile@stance",
    "warm": "skip_guard_eval_unsafe=2@warm",
    "Free": "install_free_tensors=True@Free.forward",
}
results = {}


FILTERS = hasattr(torch.compiler, "skip_guard_on_globals_unsafe")  # torch 2.8 and later


def compiled(hand=None, **more):
    """torch.compile() with what HAND edits in, as far as this torch has it."""
    edits = {name: value for name, value in (hand or {}).items() if HAND and name in inspect.signature(torch.compile).parameters}
    if not FILTERS:
        edits.pop("options", None)
    return torch.compile(backend="eager", **{**more, **edits})


def case(function):
    torch.manual_seed(0)
    try:
        given = function()
    except Exception as error:
        given = type(error).__name__
    results[function.__name__] = [str(one) for one in given] if isinstance(given, list) else given
    return function


def number(value):
    return torch.tensor(value) if HAND else value


def rows(count, mark=None, *dimension):
    made = torch.ones(count, 4)
    if HAND and mark:
        getattr(torch._dynamo.decorators, mark)(made, *dimension)
    return made


@compiled({"dynamic": True})
def sizes(x):
    return x.sum()


@case
def case_sizes():
    return [sizes(rows(n)).item() for n in (5, 6, 7)]


@compiled(dynamic=None)
def marked(x):
    return x + 1


@case
def case_marked():
    return [tuple(marked(rows(n, "mark_dynamic", 0)).shape) for n in (5, 6, 7)]


@compiled()
def specialized(x):
    return x + 1 if x.shape[0] == 6 else x


@case
def case_specialized():
    """The mark is an error: torch makes the size a number."""
    return [tuple(specialized(rows(n, "mark_dynamic", 0)).shape) for n in (6, 7)]


@compiled()
def maybe(pair):
    return pair[1] + 1


@case
def case_maybe():
    return [tuple(maybe((0, rows(n, "maybe_mark_dynamic", 0))).shape) for n in (5, 6, 7)]


@compiled()
def unbacked(x):
    return x * 2


@case
def case_unbacked():
    return [tuple(unbacked(rows(n, "mark_unbacked", 0)).shape) for n in (1, 5, 6)]


@compiled(dynamic=True)
def static(x):
    return x * 2


@case
def case_static():
    given = []
    for n in (4, 5, 6):
        x = torch.ones(3, n)
        if HAND:
            torch._dynamo.mark_static(x, 1)
        given.append(tuple(static(x).shape))
    return given


@compiled()
def scaled(x, n):
    return x * n


@case
def case_number():
    return [scaled(torch.ones(2), number(n)).tolist() for n in range(4)]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.k = number(0)

    def forward(self, x):
        return x * self.k


@case
def case_attribute():
    net = Net()
    run = compiled()(net)
    given = []
    for k in range(4):
        net.k = number(k)
        given.append(run(torch.ones(2)).tolist())
    return given


class Optimizer:
    def __init__(self):
        self.param_groups = [{"lr": number(0.5)}]

    @compiled()
    def step(self, x):
        return x - self.param_groups[0]["lr"]


@case
def case_item():
    optimizer = Optimizer()
    given = []
    for k in range(4):
        optimizer.param_groups[0]["lr"] = number(0.5 / (k + 1))
        given.append(optimizer.step(torch.ones(2)).tolist())
    return given


@compiled()
def star(*args):
    return args[0] + args[1]


@case
def case_star():
    return [star(torch.ones(2), number(n), "kept").tolist() for n in range(4)]


@compiled()
def keyword(x, **more):
    return x + more["n"]


@case
def case_keyword():
    return [keyword(torch.ones(2), n=number(n), other="kept").tolist() for n in range(4)]


def closure(captured):
    @compiled()
    def inner(x):
        return x + captured

    return inner


@case
def case_closure():
    return [closure(number(n))(torch.ones(2)).tolist() for n in range(4)]


class Scaled(torch.nn.Module):
    factor = 1

    def forward(self, x):
        return x * self.factor


@case
def case_class_attribute():
    run = compiled()(Scaled())
    given = []
    for k in range(4):
        Scaled.factor = number(k)
        given.append(run(torch.ones(2)).tolist())
    return given


@compiled({"fullgraph": True})
def whole(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


@case
def case_whole():
    return [whole(torch.ones(2)).tolist()]


def maker(number):
    def made(x):
        return x + len(number)

    return compiled({"isolate_recompiles": True})(made)


@case
def case_isolated():
    return [maker("a" * n)(torch.ones(2)).tolist() for n in range(12)]


@compiled()
def limited(x, word):
    return x + len(word)


@case
def case_limited():
    with torch._dynamo.config.patch(recompile_limit=2 if HAND else torch._dynamo.config.recompile_limit):
        return [limited(torch.ones(2), "a" * n).tolist() for n in range(5)]


@compiled()
def scalar(x):
    return x.sum().item() + x


@case
def case_scalar():
    with torch._dynamo.config.patch(capture_scalar_outputs=HAND):
        return [scalar(torch.ones(n)).tolist() for n in (2, 2)]


class Unspec(torch.nn.Module):
    k = 0

    def forward(self, x):
        return x * self.k


@case
def case_unspec():
    net = Unspec()
    run = compiled()(net)
    given = []
    with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=HAND):
        for k in range(6):
            net.k = k
            given.append(run(torch.ones(2)).tolist())
    return given


SCALE = 1


@compiled({"options": {"guard_filter_fn": getattr(torch.compiler, "skip_guard_on_globals_unsafe", None)}})
def reads(x):
    return x * SCALE


@case
def case_reads():
    global SCALE
    given = []
    for SCALE in range(3):
        given.append(reads(torch.ones(2)).tolist())
    return given


def keeps(entries):
    return [not (one.guard_type == "CONSTANT_MATCH" and one.orig_guard.name == "L['flag']") for one in entries]


@compiled({"options": {"guard_filter_fn": keeps}})
def dropped(x, flag):
    return x + 1 if flag == "a" else x


@case
def case_dropped():
    return [dropped(torch.ones(2), flag).tolist() for flag in "aab"]


@compiled()
def stance(x):
    return x + 1


@case
def case_stance():
    with torch.compiler.set_stance("eager_on_recompile" if HAND else "default"):
        return [tuple(stance(torch.ones(n)).shape) for n in (2, 3, 4)]


@compiled()
def warm(x):
    return x + 1


@case
def case_warm():
    given = [tuple(warm(torch.ones(n)).shape) for n in (2, 3)]
    with torch.compiler.set_stance("default", skip_guard_eval_unsafe=HAND):
        given += [tuple(warm(torch.ones(n)).shape) for n in (4, 5)]
        try:
            warm(torch.ones(2, 2))
        except RuntimeError as error:
            given.append(str(error)[:20])
    return given


class Free(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.weight


@case
def case_free():
    graphs = []

    def backend(graph, inputs):
        graphs.append(len(inputs))
        return graph.forward

    with torch._dynamo.config.patch(install_free_tensors=HAND):
        torch.compile(Free(), backend=backend)(torch.ones(2))
    return graphs


counts = collections.Counter("%s:%s" % (one.co_name, one.co_firstlineno) for one in torch._dynamo.utils.get_compilation_metrics() if one.co_name)
print(json.dumps({"results": results, "compiles": counts,
                  "graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"], "breaks": sum(torch._dynamo.utils.counters["graph_break"].values())}))
