"""Finds the C extension: the one that `dyntrace run` has loaded, one that lies in this package's folder (pip) or beside it.

    from ._native import native         loads it; `import dyntrace` alone does not: a plugin of pytest's costs those nothing who have no use for it

Runs in: the traced process.
"""
import importlib.machinery
import importlib.util
import os
import sys


def _load():
    if "_dyntrace" in sys.modules:
        return sys.modules["_dyntrace"]
    package = os.path.dirname(os.path.abspath(__file__))
    file = "_dyntrace" + importlib.machinery.EXTENSION_SUFFIXES[0]
    built = os.path.basename(os.path.dirname(package)) == "python"  # by make, not by pip
    path = os.path.join(os.path.dirname(os.path.dirname(package)) if built else package, file)
    if not os.path.exists(path):
        raise ImportError("dyntrace has no extension for this Python (%s): %s" %
                          (path, ("build it with `make PYTHONS=%s`" if built else "reinstall it with `%s -m pip`") % sys.executable))
    loader = importlib.machinery.ExtensionFileLoader("_dyntrace", path)
    spec = importlib.util.spec_from_file_location("_dyntrace", path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules["_dyntrace"] = module
    return module


def __getattr__(name):
    if name != "native":
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    return globals().setdefault("native", _load())
