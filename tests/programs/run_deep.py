"""Recursion of many kinds, N deep, in the main thread or in another.   run_deep.py KIND N [thread]"""
import sys
import threading


def plain(n):
    return plain(n - 1) + 1 if n else 0


class Init:
    def __init__(self, n):
        self.inner = Init(n - 1) if n else None


class Methods:
    def __call__(self, n):
        return self.method(n - 1) + 1 if n else 0

    def method(self, n):
        return self(n - 1) + 1 if n else 0


def by_map(n):
    return next(map(by_map, [n - 1])) + 1 if n else 0


def by_sorted(n):
    def key(_):
        nonlocal below
        below = by_sorted(n - 1)
        return 0
    below = -1
    if n:
        sorted([0], key=key)
    return below + 1


def by_generator(n):
    if n:
        yield from by_generator(n - 1)
    yield n


def mutual(n):
    return sum(mutual(n - 1) + 1 for _ in range(1)) if n else 0


def init(n):
    deepest, got = Init(n), 0
    while deepest.inner:
        deepest.inner, deepest = None, deepest.inner  # taken apart without recursion
        got += 1
    return got


def generator(n):
    return sum(1 for _ in by_generator(n)) - 1


KINDS = {"plain": plain, "init": init, "methods": Methods(), "map": by_map, "sorted": by_sorted, "generator": generator, "mutual": mutual}


def runaway(kind):
    depths = []
    for _ in range(3):
        try:
            KINDS[kind](1 << 40)
        except RecursionError:
            depths.append("RecursionError")
    print(*depths)


def run():
    if sys.argv[2] == "runaway":
        runaway(sys.argv[1])
    else:
        n = int(sys.argv[2])
        print(KINDS[sys.argv[1]](n) == n)


if sys.argv[2] != "runaway":
    sys.setrecursionlimit(3 * int(sys.argv[2]) + 1000)
elif sys.argv[3:]:
    sys.setrecursionlimit(int(sys.argv[3]))
if sys.argv[3:] == ["thread"]:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
else:
    run()
