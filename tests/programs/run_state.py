"""What a program can find out about its surroundings, printed. With and without a recorder it must be the same."""
import sys

# CPython's development mode loads encodings.ascii with the first extension module, which may be ours.
MODULES = sorted(name for name in sys.modules if name not in ("_dyntrace", "encodings.ascii"))
IMPORTERS = sorted(sys.path_importer_cache)
FRAMES = []
frame = sys._getframe()
while frame:
    FRAMES.append(frame.f_code.co_name)
    frame = frame.f_back

import builtins
import gc
import inspect
import json
import os
import resource
import signal
import site
import threading
import traceback
import warnings

state = {
    "modules": MODULES,
    "importers": IMPORTERS,
    "frames": FRAMES,
    "environ": sorted(os.environ.items()),
    "environb": sorted(map(repr, os.environb.items())),
    "PYTHONPATH": [os.getenv("PYTHONPATH"), "PYTHONPATH" in os.environ, list(map(str, os.environ)).count("PYTHONPATH")],
    "path": sys.path,
    "argv": [sys.argv, sys.orig_argv],
    "flags": repr(sys.flags),
    "site": [site.ENABLE_USER_SITE, site.USER_SITE, site.PREFIXES],
    "prefixes": [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.executable],
    "hooks": list(map(repr, map(type, sys.path_hooks))) + [
        repr(finder) for finder in sys.meta_path if getattr(finder, "__name__", "") != "_dyntrace"],
    "hooked": list(map(repr, (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile(),
                              sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook))),
    "recursion": [sys.getrecursionlimit(), len(inspect.stack()), inspect.stack()[0].function],
    "interval": sys.getswitchinterval(),
    "warnings": list(map(repr, warnings.filters)),
    "gc": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
    "builtins": sorted(vars(builtins)),
    "threads": [(t.name, t.daemon) for t in threading.enumerate()],
    "cwd": os.getcwd(),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "limits": [(name, resource.getrlimit(getattr(resource, name))) for name in sorted(dir(resource)) if name.startswith("RLIMIT")],
    "umask": os.umask(0o22),
    "signals": [(int(n), repr(signal.getsignal(n))) for n in sorted(signal.valid_signals())],
    "masks": [line.strip() for line in open("/proc/self/status") if line.startswith(("Sig", "Shd", "NoNewPrivs", "Seccomp", "Threads"))
              and not line.startswith("SigQ")],
    "nice": [os.nice(0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))],
    "groups": [os.getsid(0) == os.getsid(os.getppid()), os.getpgid(0) == os.getpgid(os.getppid())],
    "terminals": [os.isatty(fd) for fd in range(3)],
    "streams": [(f.encoding, f.errors, f.line_buffering, f.name, f.mode) for f in (sys.stdin, sys.stdout, sys.stderr)],
    "times": [bool(sys.flags.dev_mode), sys.dont_write_bytecode, sys.pycache_prefix],
    "customised": [getattr(sys, "customised", None)],
    "built-ins": [(repr(f).split(" at ")[0], f.__name__, f.__qualname__, f.__module__, f.__doc__, f.__text_signature__,
                   type(f).__name__)
                  for f in (os.execv, os.execve, os.posix_spawn, os.posix_spawnp, os.system, os.fork,
                            __import__("_posixsubprocess").fork_exec)],
}


def attempt(function, *args, **named):
    try:
        return repr(function(*args, **named))
    except BaseException as error:
        return [repr(error), traceback.format_exc()]


state["errors"] = [
    attempt(os.execv), attempt(os.execv, "/missing", ["x"]), attempt(os.execv, "/missing", []), attempt(os.execv, 1, 2),
    attempt(os.execve, "/missing", ["x"], {}), attempt(os.execve, "/missing", ["x"], None),
    attempt(os.execve, "/missing", ["x"], {1: 2}), attempt(os.execve, "/missing", ["x"], {"a=b": "c"}),
    attempt(os.execve, "/missing", ["x"], {"PYTHONPATH": 3}), attempt(os.execve, "/missing", ["x"], [("a", "b")]),
    attempt(os.execve, path="/missing", argv=["x"], env={}), attempt(os.execve, "/missing", ["x"]),
    attempt(os.posix_spawn, "/missing", ["x"], {}), attempt(os.posix_spawn, "/missing", ["x"]), attempt(os.posix_spawn, "/missing", ["x"], 5),
    attempt(os.posix_spawn, "/missing", ["x"], {}, nonsense=1), attempt(os.posix_spawn, path="/missing", argv=["x"], env={}),
    attempt(os.system), attempt(os.system, None), attempt(os.system, "exit 3"), attempt(os.system, command="exit 4"),
    attempt(os.system, b"exit 5"), attempt(os.system, "nul \0"), attempt(os.system, "true", "false"),
    attempt(__import__("_posixsubprocess").fork_exec), attempt(__import__("_posixsubprocess").fork_exec, 1, 2, env=3),
    attempt(__import__("subprocess").run, ["/missing"]), attempt(__import__("subprocess").run, ["/missing"], env={"a=b": "c"}),
    attempt(__import__("subprocess").run, ["true"], env={"x": 1}), attempt(__import__("subprocess").run, ["true"], env=5),
]


class Environment(dict):
    """Counts how often it is read."""
    reads = 0

    def keys(self):
        Environment.reads += 1
        return super().keys()

    def __getitem__(self, key):
        Environment.reads += 1
        return super().__getitem__(key)


state["mapping"] = [attempt(os.execve, "/missing", ["x"], Environment(a="b")), Environment.reads]
json.dump(state, sys.stdout, indent=1, default=repr)
print()
warnings.warn("a warning", stacklevel=1)
if "--raise" in sys.argv:
    def outer():
        inner()

    def inner():
        try:
            {}["x"]
        except KeyError:
            raise ValueError("y")
    outer()
