"""Loads dyntrace into an interpreter that `dyntrace run` started, then steps aside.

Runs in: the traced process, while site.py starts up. A session's inject/ directory leads here and is the first
entry of PYTHONPATH. Everything that shows it is undone before the program runs: the entry in sys.path, the
variable in os.environ, this module in sys.modules. Then the user's own sitecustomize is imported in our place; if
there is none, the ImportError is the one that site.py expects and ignores.

Any Python version may read this file, so its syntax is as old as can be.
"""
import os
import sys


def _package(directory):
    """The package dyntrace, for programs that use it; nothing of it is read before they do."""
    import _thread

    package = type(sys)("dyntrace")
    package.__path__ = [directory]
    package.__file__ = os.path.join(directory, "__init__.py")

    lock = _thread.RLock()
    state = []

    def load(name):
        # Only for what is the package's: programs ask every module for all sorts of
        # attributes while they walk sys.modules, which must not change then.
        with lock:
            if name in ("config", "record", "reset") and not state:
                state.append("loading")  # an attribute that the package itself lacks ends here
                with open(package.__file__, encoding="utf-8") as source:
                    exec(compile(source.read(), package.__file__, "exec"), package.__dict__)
        if name in package.__dict__:
            return package.__dict__[name]
        raise AttributeError("module 'dyntrace' has no attribute %r" % name)

    package.__package__ = "dyntrace"
    package.__getattr__ = load
    return package


def _start(inject):
    library = os.path.dirname(os.path.realpath(__file__))
    session = os.path.dirname(inject)
    if not os.path.exists(os.path.join(session, "session")):
        return  # not a session's inject/: somebody has the source tree on PYTHONPATH
    if (3, 11) <= sys.version_info < (3, 15) and sys.implementation.name == "cpython":
        import _frozen_importlib
        import _frozen_importlib_external
        import _imp

        path = os.path.join(library, "_dyntrace" + _imp.extension_suffixes()[0])
        if os.path.exists(path):
            loader = _frozen_importlib_external.ExtensionFileLoader("_dyntrace", path)
            module = _imp.create_dynamic(_frozen_importlib.ModuleSpec("_dyntrace", loader, origin=path))
            _imp.exec_dynamic(module)
            sys.modules["_dyntrace"] = module
            sys.modules["dyntrace"] = _package(os.path.join(library, "python", "dyntrace"))
            module._start(session, os.path.dirname(os.__file__))
            return
    # The parent reads this name and tells the user; the program just runs.
    note = open(os.path.join(session, "%d.unsupported" % os.getpid()), "w")
    note.write("%s %d.%d at %s" % (getattr(getattr(sys, "implementation", None), "name", "python"),
                                   sys.version_info[0], sys.version_info[1], sys.executable))
    note.close()


def _hide(inject):
    sys.path[:] = [entry for entry in sys.path if entry != inject]
    sys.path_importer_cache.pop(inject, None)
    data = getattr(os.environ, "_data", None)  # so that C's environment, which children inherit, keeps it
    if data is None:  # Python 2
        data = os.environ.data
    key = "PYTHONPATH" if sys.version_info[0] == 2 else b"PYTHONPATH"
    mine = inject if sys.version_info[0] == 2 else os.fsencode(inject)
    value = data.get(key)
    if value == mine and inject.endswith("-empty"):
        data[key] = mine[:0]
    elif value == mine:
        del data[key]
    elif value is not None and value.startswith(mine + (":" if sys.version_info[0] == 2 else b":")):
        data[key] = value[len(mine) + 1:]


def _uncache():
    """With -X pycache_prefix our bytecode lies among the user's: take it away again."""
    cached = globals().get("__cached__")
    if getattr(sys, "pycache_prefix", None) and cached:
        try:
            os.remove(cached)
            os.rmdir(os.path.dirname(cached))
            os.rmdir(os.path.dirname(os.path.dirname(cached)))
        except OSError:  # a child process was quicker
            pass


_inject = os.path.dirname(os.path.abspath(__file__))
_hide(_inject)
_uncache()
try:
    _start(_inject)
except Exception:  # never the program's trouble
    pass
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402  the user's own, or the ImportError that site.py ignores
