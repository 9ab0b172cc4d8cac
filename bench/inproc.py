"""Times one program under each mode, side by side in this one process.

bench.py starts it, plainly or under `dyntrace run`, and reads the JSON that it
leaves in --report. The modes take turns, and turns rotate, so that a machine
that slows down slows all of them:

    none        no hook
    pass        a pass-through PEP 523 hook
    setprofile  a C profile function that returns at once
    record      dyntrace's own hook, as `dyntrace run` was told to use it

    python3 inproc.py PROGRAM --yardstick DIR --report FILE [--modes none,pass,...]
"""
import argparse
import gc
import json
import os
import sys
import time

from programs import PROGRAMS

DRAIN_S = 0.02  # wait so long after recording, until the collector has finished, before the next mode


class Switch:
    """Switches a mode on or off. Between two modes, the mode is `none`."""

    yardsticks = {"none": "none", "pass": "pass", "stamp": "stamp", "setprofile": "profile", "count": "count"}

    def __init__(self, yardstick, recorder):
        self.yardstick = yardstick
        self.recorder = recorder  # the module _dyntrace, or None

    def on(self, mode):
        if mode == "record":
            self.recorder.resume()
        else:
            self.yardstick.use(self.yardsticks[mode])

    def off(self, mode):
        if mode == "record":
            self.recorder.pause()
            time.sleep(DRAIN_S)
        else:
            self.yardstick.use("none")


def main():
    options = parse_arguments()
    os.sched_setaffinity(0, {options.cpu})
    sys.path.insert(0, options.yardstick)
    import _yardstick

    recorder = None
    if options.load:
        sys.path.insert(0, options.load)
        import _dyntrace  # only to see what its presence costs
    elif "record" in options.modes:
        import _dyntrace as recorder
        recorder.pause()

    program = PROGRAMS[options.program]
    times = options.times or program.times
    report = measure(program, times, options.modes, options.rounds, Switch(_yardstick, recorder))
    with open(options.report, "w") as file:
        json.dump(report, file)


def measure(program, times, modes, rounds, switch):
    warm_up = max(1, times // 20)  # CPython discards specialised code when a hook is set or removed
    good = True
    for mode in modes:
        switch.on(mode)
        program.run(warm_up)
        switch.off(mode)

    # Count after the first recording, which makes frames visible that a bare hook
    # cannot see on 3.13 (specialised __init__). So hook and dyntrace see the same.
    switch.on("count")
    program.run(times)
    switch.off("count")
    frames = switch.yardstick.counted() - 1  # off() was seen too

    seconds = {mode: [] for mode in modes}
    gc.collect()
    gc.freeze()
    gc.disable()
    for turn in range(rounds):
        first = turn % len(modes)
        for mode in modes[first:] + modes[:first]:
            gc.collect()
            switch.on(mode)
            program.run(warm_up)
            start = time.perf_counter()
            result = program.run(times)
            stop = time.perf_counter()
            switch.off(mode)
            seconds[mode].append(stop - start)
            good = good and bool(program.check(result))
    return {"program": program.name, "frames": frames, "good": good, "seconds": seconds, "read_ns": switch.yardstick.counter_ns()}


def parse_arguments():
    parser = argparse.ArgumentParser(description="Times one program under each mode, in this process.")
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--yardstick", required=True, help="directory of the module _yardstick")
    parser.add_argument("--report", required=True, help="where to write the figures, as JSON")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=["none", "pass", "setprofile"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--times", type=int, help="units of work in one timing (default: the program's own)")
    parser.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--load", help="import _dyntrace from this directory, and nothing else")
    return parser.parse_args()


if __name__ == "__main__":
    main()
