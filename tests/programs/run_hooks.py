"""Programs that watch themselves: sys.settrace, sys.setprofile, threading's, sys.monitoring. Prints every event."""
import sys
import threading

EVENTS = []
MINE = __file__


def note(frame, event, arg):
    if frame.f_code.co_filename == MINE:
        EVENTS.append((event, frame.f_code.co_name, frame.f_lineno, type(arg).__name__))
    return note


class C:
    def __init__(self, x):
        self.x = x

    def __len__(self):
        return self.x


def generator():
    try:
        yield 1
        yield 2
    finally:
        len("x")


def raises():
    raise ValueError


def work():
    for i in range(3):
        len(C(i))
    list(generator())
    g = generator()
    next(g)
    g.close()
    try:
        raises()
    except ValueError:
        pass
    [x for x in range(2)]
    sorted([2, 1], key=lambda x: -x)


def watched(start, stop):
    start(note)
    work()
    stop(None)


for _ in range(20):
    work()  # specialised before anybody watches
watched(sys.settrace, sys.settrace)
watched(sys.setprofile, sys.setprofile)
threading.setprofile(note)
threading.settrace(note)
thread = threading.Thread(target=work)
thread.start()
thread.join()
threading.setprofile(None)
threading.settrace(None)
if hasattr(sys, "monitoring"):
    M = sys.monitoring
    M.use_tool_id(2, "run_hooks")
    for name in sorted(dir(M.events)):
        event = getattr(M.events, name)
        if name.startswith(("_", "C_")) or not event:
            continue

        def callback(code, *rest, name=name):
            if code.co_filename == MINE:
                EVENTS.append((name, code.co_name, len(rest)))
        M.register_callback(2, event, callback)
    M.set_events(2, M.events.PY_START | M.events.PY_RETURN | M.events.PY_YIELD | M.events.PY_RESUME | M.events.PY_THROW
                 | M.events.PY_UNWIND | M.events.CALL | M.events.LINE | M.events.RAISE | M.events.RERAISE)
    work()
    M.set_events(2, 0)
for event in EVENTS:
    print(*event)
