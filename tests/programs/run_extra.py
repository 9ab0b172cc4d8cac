"""Keeps data of its own in code objects, with a free function: prints what that is called with, and leaves it registered.

usage: run_extra.py never | first | last: is dyntrace's evaluator set after the index was requested, or before?
"""
import ctypes
import gc
import sys

api, freed = ctypes.pythonapi, []
Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
free = Free(freed.append)
name = "PyUnstable_%s" if sys.version_info >= (3, 12) else "_Py%s"
request = getattr(api, name % "Eval_RequestCodeExtraIndex")
setter, getter = (getattr(api, name % ("Code_%sExtra" % what)) for what in ("Set", "Get"))
request.argtypes, request.restype = (Free,), ctypes.c_ssize_t
setter.argtypes = ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p
getter.argtypes = ctypes.py_object, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_void_p)


def evaluator():
    from dyntrace.eval_frame import set_eval_frame
    from dyntrace.types import GuardedCode
    set_eval_frame(lambda frame, entry, state: GuardedCode(frame.f_code.replace(), lambda f_locals: True))


def function():
    space = {}
    exec("def f(x): return x", space)
    assert space["f"](1) == 1
    return space["f"]


def data(f):
    value = ctypes.c_void_p(1)
    assert getter(f.__code__, index, value) == 0
    return value.value


when = sys.argv[1]
if when == "last":
    evaluator()
before = function()
index = request(free)
if when == "first":
    evaluator()
called, new = before, function()
new(2)
del called, before, new
gc.collect()
print("never set:", freed)

early, late = function(), eval("lambda x: x")
setter(early.__code__, index, 1)
setter(late.__code__, index, 2)
print("before and after the first call:", data(early), data(late), early(3), late(3), data(early), data(late), data(function()))
setter(late.__code__, index, 3)
print("set again:", freed)
del early, late
gc.collect()
print("dead:", freed)
del freed[:]
kept = function()  # its code dies after ctypes has
