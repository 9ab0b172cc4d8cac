"""A program for test_settings.py, which prints torch's counters, with the hand-edited form of what is named:

    settings_whole.py [SETTING ...]     NAME=VALUE of torch.compile(), stance=, config.NAME=VALUE, number, rows
"""
import json
import sys

import torch

hand = dict(word.partition("=")[::2] for word in sys.argv[1:])
literal = {"True": True, "False": False}
arguments = {name: literal.get(value, value) for name, value in hand.items() if name in ("dynamic", "fullgraph", "backend", "isolate_recompiles")}
given = {"backend": "eager", "dynamic": None}


def compiled(function):
    return torch.compile(function, **{**given, **arguments})


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x, n):
        return self.linear(x).sum() * n


def helper(x):
    torch._dynamo.graph_break()
    return x + 1


def broken(x, n):
    return helper(x) * 2 + n


def plain(x):
    return x + x.sum().item()


if __name__ == "__main__":
    import torch._dynamo.config
    import torch._dynamo.utils

    for name, value in hand.items():
        if name.startswith("config."):
            setattr(torch._dynamo.config, name[7:], literal.get(value, value if not value.isdigit() else int(value)))
    if "stance" in hand:
        torch.compiler.set_stance(hand["stance"])
    torch.manual_seed(0)
    net, rest, whole = compiled(Net()), torch.compile(**{**given, **arguments})(broken), compiled(plain)
    seen = []
    for n in range(4):
        number = torch.tensor(n) if "number" in hand else n
        for function, more in (net, (number,)), (rest, (number,)), (whole, ()):
            x = torch.ones(3 + n, 4)
            if "rows" in hand:
                torch._dynamo.mark_dynamic(x, 0)
            try:
                seen.append(function(x, *more).sum().item())
            except Exception as error:
                seen.append(type(error).__name__)
    counters = torch._dynamo.utils.counters
    print(json.dumps({"seen": seen, "frames": counters["frames"], "stats": counters["stats"], "breaks": sum(counters["graph_break"].values()),
                      "aot": counters["aot_autograd"].get("total")}))
