"""count_calls.py OUT PROGRAM: runs PROGRAM, and leaves in OUT how often Python entered each function of its file, as
sys.monitoring tells it: {"name:first line": count}. Nothing here knows of dyntrace.

A program's threads are counted; processes that it starts are not.
"""
import atexit
import collections
import json
import os
import runpy
import sys

if not hasattr(sys, "monitoring"):
    print(json.dumps({"skip": "this Python has no sys.monitoring"}))
    sys.exit()
out, path = sys.argv[1:3]
del sys.argv[:2]
counts, pid = collections.Counter(), os.getpid()


def entered(code, offset):
    if code.co_filename != path:
        return sys.monitoring.DISABLE
    counts[f"{code.co_name}:{code.co_firstlineno}"] += 1


def keep():
    sys.monitoring.set_events(3, 0)
    if os.getpid() == pid:
        with open(out, "w", encoding="utf-8") as file:
            json.dump(counts, file)


atexit.register(keep)
sys.monitoring.use_tool_id(3, "count_calls")
sys.monitoring.register_callback(3, sys.monitoring.events.PY_START, entered)
sys.monitoring.set_events(3, sys.monitoring.events.PY_START)
sys.path[0] = os.path.dirname(path)
runpy.run_path(path, run_name="__main__")
