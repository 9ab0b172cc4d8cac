"""Frames that CPython runs with tracing set (audit hooks, trace and profile functions, callbacks of sys.monitoring), in
the middle of decisions and of what the recorder does, which raise audit events of their own: each is recorded, and none
is decided but those of a hook that wants to be traced, for which tracing is not set.

Prints how often each ran, as JSON.
"""
import json
import os
import sys
import threading
import warnings

from dyntrace import reset
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode

ran = dict.fromkeys(("hook", "open_hook", "trace", "profile", "started"), 0)
asked, watching, within = [], True, threading.local()


def deeper(name):
    ran[name] += 1
    return name


def watched(name):
    """Once at a time: what a hook does raises events as well, and those of an open hook are seen."""
    if not watching or getattr(within, "in_it", False):
        return
    within.in_it = True
    deeper(name)
    within.in_it = False


def hook(event, args):
    watched("hook")


def open_hook(event, args):
    watched("open_hook")


open_hook.__cantrace__ = True


def trace(frame, event, arg):
    watched("trace")
    return trace


def profile(frame, event, arg):
    watched("profile")


def started(code, offset):
    watched("started")


def callback(frame, entry, state):
    code = frame.f_code
    asked.append(code.co_name)
    if code is f.__code__ or code is flat.__code__:
        return GuardedCode(code.replace(co_name=code.co_name), lambda f_locals: True)


def f(x):
    sys.audit("tracing.event", x)
    return flat(x, k=1)


def flat(x, *rest, k, **more):  # its code is made anew to run in place of a frame: that is an event
    return x + k


def work():
    for _ in range(3):
        reset()
        prior = set_eval_frame(callback)
        try:
            assert [f(n) for n in range(5)] == [1, 2, 3, 4, 5]
        finally:
            set_eval_frame(prior)
        exec("def new(): return 1\nassert new() == 1")
        open(os.devnull).close()


def in_threads():
    """work() in four threads at a time. Each starts by itself: where an audit hook of one lets the
    GIL go in the middle of sys.settrace(), CPython refuses the trace function of another."""
    together = threading.Barrier(4)
    has_begun = threading.Semaphore(0)

    def begin_and_work():
        has_begun.release()
        together.wait()
        work()

    threads = [threading.Thread(target=begin_and_work) for _ in range(4)]
    for thread in threads:
        thread.start()
        has_begun.acquire()
    for thread in threads:
        thread.join()


sys.addaudithook(hook)
sys.addaudithook(open_hook)
for begin, watch, job in ((sys.settrace, trace, work), (sys.setprofile, profile, work), (threading.settrace, trace, in_threads),
                          (threading.setprofile, profile, in_threads)):
    begin(watch)
    try:
        job()
    finally:
        begin(None)
if hasattr(sys, "monitoring"):
    events = sys.monitoring.events
    sys.monitoring.use_tool_id(3, "tracing")
    sys.monitoring.register_callback(3, events.PY_START, started)
    sys.monitoring.set_events(3, events.PY_START)
    work()
    sys.monitoring.set_events(3, 0)
warnings.simplefilter("ignore")
if hasattr(os, "fork"):
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
watching = False
decided = {"hook", "open_hook", "trace", "profile", "started", "watched", "deeper"} & set(asked)
print(json.dumps({"ran": ran, "decided": sorted(decided)}))
