"""Runs a region of real code and counts its frames by a means that is not ours.

    python3 counted.py REGION COUNTS.json

The oracle is sys.monitoring on 3.12 and later, sys.setprofile on 3.11. On each
thread that takes part the region lies between calls of marker_begin() and
marker_end(), so that a reader of the trace finds the same region there:

    marker_begin()
    counting on          no frame of its own: a dict or a C function
    function()
    counting off
    marker_end()

Counted are, for each code object: `start` (a function's beginning, or the first
run of a generator), `resume` and `throw`. A call that only makes a generator is
no event for either oracle; `unstarted` says of how many a region knows that
they were made and never ran.
"""
import asyncio
import contextlib
import dataclasses
import enum
import functools
import importlib
import io
import json
import logging
import os
import string
import sys
import threading
import traceback
from _thread import get_ident

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
from programs import library, constraints, scheduler

UNSTARTED = {}  # qualname -> generators that a region makes and never runs

# ---- the oracle ----

START, RESUME, THROW = "start", "resume", "throw"
armed = {}   # thread -> its counts, while it is in its region
totals = []  # a {(code, event): n} for each thread that was in a region


def oracle_count(code, event):
    counts = armed.get(get_ident())
    if counts is not None:
        # Not the code object itself: two that look alike are equal.
        key = (id(code), event)
        entry = counts.get(key)
        if entry is None:
            counts[key] = [code, event, 1]
        else:
            entry[2] += 1


def oracle_start(code, offset):
    oracle_count(code, START)


def oracle_resume(code, offset):
    oracle_count(code, RESUME)


def oracle_throw(code, offset, exception):
    oracle_count(code, THROW)


oracle_bytecode = {}
oracle_entered = {}  # thread -> ids of the frames that had a "call" and no "return" yet
ORACLE_RESUME_OPCODE = 151  # of 3.11, where alone it is used


def oracle_profile(frame, what, argument):
    """3.11: tells the three apart by the instruction that the frame stands at.

    It has no "call" for a generator that goes on after its `yield from` because
    throw() ended the one delegated to: execution begins behind the RESUME
    instruction that would tell. The "return" is there, so that tells."""
    entered = oracle_entered.setdefault(get_ident(), [])
    if what == "return":
        if entered and entered[-1] == id(frame):
            entered.pop()
        else:
            oracle_count(frame.f_code, RESUME)
        return
    if what != "call":
        return
    entered.append(id(frame))
    code = frame.f_code
    bytecode = oracle_bytecode.get(id(code))
    if bytecode is None:
        bytecode = code.co_code
        oracle_bytecode[id(code)] = bytecode
    at = frame.f_lasti
    if at < 0 or bytecode[at] != ORACLE_RESUME_OPCODE:
        oracle_count(code, THROW)
    elif bytecode[at + 1] == 0:
        oracle_count(code, START)
    else:
        oracle_count(code, RESUME)


def marker_begin():
    pass


def marker_end():
    pass


def in_region(function, *args):
    """Runs function(*args) as this thread's region."""
    counts = {}
    totals.append(counts)
    marker_begin()
    armed[get_ident()] = counts
    if MONITORING is None:
        sys.setprofile(oracle_profile)
    result = function(*args)
    if MONITORING is None:
        sys.setprofile(None)
    armed.pop(get_ident())
    marker_end()
    return result


MONITORING = getattr(sys, "monitoring", None)


def oracle_install():
    if MONITORING is None:
        return
    events = MONITORING.events
    MONITORING.use_tool_id(MONITORING.PROFILER_ID, "oracle")
    for event, callback in ((events.PY_START, oracle_start), (events.PY_RESUME, oracle_resume),
                            (events.PY_THROW, oracle_throw)):
        MONITORING.register_callback(MONITORING.PROFILER_ID, event, callback)
    MONITORING.set_events(MONITORING.PROFILER_ID, events.PY_START | events.PY_RESUME | events.PY_THROW)


# ---- the regions ----


def region_json():
    assert library.check_json(library.run_json(2))


def region_pprint():
    assert library.check_pprint(library.run_pprint(2))


def region_difflib():
    assert library.check_difflib(library.run_difflib(3))


def region_syntax():
    assert library.check_syntax(library.run_syntax(1))


def region_solver():
    assert constraints.check(constraints.run(1))


def region_scheduler():
    assert scheduler.check(scheduler.run(1))


def region_imports():
    """Module bodies, and the frozen import system that runs them."""
    for name in ("argparse", "configparser", "csv", "email.message", "fractions", "html.parser", "statistics",
                 "xml.dom.minidom"):
        for module in [m for m in sys.modules if m == name or m.startswith(name + ".")]:
            del sys.modules[module]
        importlib.import_module(name)


def region_asyncio():
    async def numbers(n):
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    async def consume(queue):
        total = 0
        while (item := await queue.get()) is not None:
            total += item
        return total

    async def cancelled(event):
        try:
            await event.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            raise

    async def serve(reader, writer):
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.close()

    async def main():
        queue = asyncio.Queue(maxsize=3)
        consumer = asyncio.create_task(consume(queue))
        async for i in numbers(20):
            await queue.put(i)
        await queue.put(None)
        assert await consumer == 190
        task = asyncio.create_task(cancelled(asyncio.Event()))
        await asyncio.sleep(0)
        task.cancel()
        assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)
        except asyncio.TimeoutError:
            pass
        assert [i async for i in numbers(3)] == [0, 1, 2]
        async for i in numbers(9):
            if i == 4:
                break
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            for i in range(5):
                writer.write(b"line %d\n" % i)
                assert await reader.readline() == b"LINE %d\n" % i
            writer.close()
            await writer.wait_closed()

    asyncio.run(main())


def region_generators():
    """Every way into a generator: next, send, throw, close, delegation, and never."""
    def inner():
        received = []
        while True:
            try:
                received.append((yield len(received)))
            except ValueError as error:
                received.append(error)
            except KeyError:
                return received

    def outer():
        result = yield from inner()
        yield result

    def leaves(tree):
        if isinstance(tree, list):
            for branch in tree:
                yield from leaves(branch)
        else:
            yield tree

    def stubborn():
        try:
            yield 1
        finally:
            yield_in_cleanup()

    def yield_in_cleanup():
        return sum(x for x in range(3))

    def never_run():
        yield "never"

    def thrown_before_start():
        yield "never"

    delegating = outer()
    assert next(delegating) == 0
    assert delegating.send("a") == 1
    assert delegating.throw(ValueError("b")) == 2
    assert len(delegating.throw(KeyError())) == 2
    delegating.close()
    assert list(leaves([1, [2, [3, [4]], 5], []])) == [1, 2, 3, 4, 5]
    for _ in stubborn():
        break
    suspended = stubborn()
    next(suspended)
    try:
        suspended.throw(RuntimeError("out"))
    except RuntimeError:
        pass
    unused = never_run()
    unused.close()
    del unused
    never_run()
    early = thrown_before_start()
    try:
        early.throw(LookupError("early"))
    except LookupError:
        pass
    UNSTARTED[never_run.__qualname__] = 2
    UNSTARTED[thrown_before_start.__qualname__] = 1

    @contextlib.contextmanager
    def guarded():
        try:
            yield
        except ZeroDivisionError:
            pass

    for _ in range(3):
        with guarded():
            1 / 0

    async def agen():
        try:
            while True:
                yield
        except LookupError:
            yield "caught"

    async def drive():
        it = agen()
        await it.__anext__()
        await it.asend(1)
        assert await it.athrow(LookupError) == "caught"
        await it.aclose()

    coroutine = drive()
    try:
        coroutine.send(None)
    except StopIteration:
        pass


def region_classes():
    """Class bodies, metaclasses, dataclasses, enums, descriptors, operators called from C."""
    class Meta(type):
        def __prepare__(name, bases, **named):
            return {}

        def __call__(cls, *args):
            return super().__call__(*args)

    class Point(metaclass=Meta):
        def __init__(self, x, y=0):
            self.x, self.y = x, y

        def __eq__(self, other):
            return (self.x, self.y) == (other.x, other.y)

        def __lt__(self, other):
            return self.x < other.x

        def __hash__(self):
            return hash(self.x)

        def __getattr__(self, name):
            return name

        def __getitem__(self, i):
            return (self.x, self.y)[i]

        @property
        def norm(self):
            return abs(self.x) + abs(self.y)

        def __del__(self):
            self.x

    class Fast:
        def __init__(self, x):
            self.x = x

    class Faster(Fast):
        def __init__(self, x):
            super().__init__(x)

    @dataclasses.dataclass(order=True, frozen=True)
    class Record:
        name: str
        number: int = 0
        rest: list = dataclasses.field(default_factory=list, compare=False)

        def __post_init__(self):
            assert self.number >= 0

    class Colour(enum.Flag):
        RED = enum.auto()
        BLUE = enum.auto()

    for i in range(200):
        Fast(i)
        Faster(i)
        Point(i).norm
    points = [Point(i % 7, i) for i in range(50)]
    points.sort()
    assert len(set(points)) == 50 and points[0].missing == "missing" and points[3][0] == 0
    records = sorted(Record(f"r{i % 5}", i) for i in range(20))
    assert dataclasses.replace(records[0], number=9).number == 9 and repr(records[0]) and dataclasses.asdict(records[1])
    assert (Colour.RED | Colour.BLUE) & Colour.BLUE is Colour.BLUE and Colour["RED"]


def region_comprehensions():
    """Frames of their own before 3.12, none since; generator expressions and lambdas always."""
    rows = [[i * j for j in range(5)] for i in range(5)]
    assert {i: {j for j in row} for i, row in enumerate(rows)}
    assert sum(x for row in rows for x in row) == 100
    assert sorted(rows, key=lambda row: -row[1])[0][1] == 4
    assert functools.reduce(lambda a, b: a + b, map(lambda x: x + 1, range(10))) == 55
    assert any(x > 3 for x in range(10))  # left before its end
    exec("def made(n):\n    return [made(n - 1) for _ in range(2)] if n else 0\nmade(4)", {})
    assert eval("[x for x in range(3)]") == [0, 1, 2]


def region_errors():
    """Exceptions through many frames, tracebacks, logging, formatting."""
    def deep(n):
        try:
            if n == 0:
                raise KeyError("bottom")
            deep(n - 1)
        except KeyError as error:
            if n % 3 == 0:
                raise KeyError(n) from error
            raise
        finally:
            len(str(n))

    stream = io.StringIO()
    logger = logging.getLogger("counted")
    logger.addHandler(logging.StreamHandler(stream))
    logger.propagate = False
    try:
        deep(12)
    except KeyError:
        logger.error("failed", exc_info=True)
        assert "bottom" in traceback.format_exc()
    assert stream.getvalue()
    assert string.Template("$a-${b}").substitute(a=1, b=2) == "1-2"
    with contextlib.ExitStack() as stack:
        stack.callback(len, "x")
        stack.enter_context(contextlib.suppress(IndexError))
        [][0]


def region_threads():
    """Each thread has a region of its own; they run at the same time."""
    def work(n):
        assert json.loads(json.dumps(list(range(n)))) == list(range(n))
        barrier.wait()
        for _ in range(n):
            region_generators()
        return sum(x for x in range(100))

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=in_region, args=(work, 3 + i), name=f"worker {i}") for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in UNSTARTED:
        UNSTARTED[name] *= 3 + 4 + 5 + 6


REGIONS = {name[len("region_"):]: function for name, function in list(globals().items()) if name.startswith("region_")}


def main():
    name, path = sys.argv[1:]
    oracle_install()
    in_region(REGIONS[name])
    if MONITORING is not None:
        MONITORING.set_events(MONITORING.PROFILER_ID, 0)
    events = [[code.co_filename, code.co_qualname, code.co_firstlineno, event, n]
              for counts in totals for code, event, n in counts.values()]
    with open(path, "w") as file:
        json.dump({"events": events, "unstarted": UNSTARTED, "regions": len(totals)}, file)


if __name__ == "__main__":
    main()
