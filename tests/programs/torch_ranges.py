"""record_function and NVTX ranges, within and around compiled code. Without CUDA a stub counts NVTX's ranges."""
import sys

import torch
import torch.cuda.nvtx as nvtx
from torch.profiler import record_function


class Stub:
    depth = handles = 0

    def rangePushA(self, message):
        self.depth += 1
        return self.depth - 1

    def rangePop(self):
        self.depth -= 1
        return self.depth

    def rangeStartA(self, message):
        self.handles += 1
        return self.handles

    def rangeEnd(self, handle):
        pass


class Counted(record_function):
    """Its name is a property: reading it runs code of the program, which nobody but torch may do."""

    reads = 0

    @property
    def name(self):
        Counted.reads += 1
        return self.text

    @name.setter
    def name(self, text):
        self.text = text


nvtx._nvtx = Stub()
compiled = torch.compile(lambda x: x + 1, backend="eager")


def work():
    return compiled(torch.ones(2))


@record_function("decorated")
def decorated():
    return work()


for i in range(2):
    with record_function(f"step {i}", "the args"):
        with record_function("inner"):
            work()
decorated()
try:
    with record_function("raises"):
        raise KeyError
except KeyError:
    pass
with Counted("counted"):
    work()
print("read", Counted.reads)
print(nvtx.range_push("pushed"), nvtx.range_push("pushed inner"))
work()
print(nvtx.range_pop(), nvtx.range_pop())
with nvtx.range("ranged {}", 3):
    work()
first, second = nvtx.range_start("first"), nvtx.range_start("second")
nvtx.range_end(first)
nvtx.range_end(second)
with torch.profiler.profile() as profile:
    with record_function("profiled"):
        work()
print(sorted(event.name for event in profile.events() if event.name == "profiled"))
sys.stdout.flush()
