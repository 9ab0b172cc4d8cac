"""Finds the C extension: the one that `dyntrace run` has loaded, one that lies in this package's
folder (pip) or beside it.

    from ._native import native         loads it; `import dyntrace` alone does not: a plugin of
                                        pytest's costs those nothing who have no use for it

Runs in: the traced process.
"""

import importlib.machinery
import importlib.util
import os
import sys

_package = os.path.realpath(os.path.dirname(__file__))  # Debian's Python finds a link to it
_library = os.path.dirname(os.path.dirname(_package))
_built = not os.path.isdir(os.path.join(_package, "inject"))  # by make, not by pip


def remedy():
    """How what this installation lacks is had: src/cmd/run/program.c says it, too."""
    if _library == "/usr/lib/dyntrace":
        return "apt install --reinstall dyntrace python3-dyntrace"
    return (
        "build it with `make PYTHONS=%s`" if _built else "reinstall it with `%s -m pip`"
    ) % sys.executable


def _load():
    if "_dyntrace" in sys.modules:
        return sys.modules["_dyntrace"]
    path = os.path.join(
        _library if _built else _package, "_dyntrace" + importlib.machinery.EXTENSION_SUFFIXES[0]
    )
    if not os.path.exists(path):
        raise ImportError("dyntrace has no extension for this Python (%s): %s" % (path, remedy()))
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
