"""Finds the C extension: the one loaded by `dyntrace run`, or the one in this package's folder
(pip) or beside it.

    from ._native import native    loads it

`import dyntrace` alone does not load it: a plugin of pytest costs nothing where nobody uses it.

Runs in: the traced process.
"""

from __future__ import annotations

import os
import sys

__all__ = ["native", "remedy"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import _dyntrace

    native = _dyntrace

_package = os.path.realpath(os.path.dirname(__file__))  # Debian's Python finds a link to it
_library = os.path.dirname(os.path.dirname(_package))
_built = not os.path.isdir(os.path.join(_package, "inject"))  # by make, not by pip


def remedy() -> str:
    """How to mend this installation. src/cmd/run/program.c prints the same words."""
    if _library == "/usr/lib/dyntrace":
        return "apt install --reinstall dyntrace python3-dyntrace"
    words = "build it with `make PYTHONS=%s`" if _built else "reinstall it with `%s -m pip`"
    return words % sys.executable


def load(extension, lacks):
    """The EXTENSION, which is not in sys.modules yet. ImportError begins with LACKS if its file is
    not there."""
    import importlib.machinery
    import importlib.util

    name = extension + importlib.machinery.EXTENSION_SUFFIXES[0]
    path = os.path.join(_library if _built else _package, name)
    if not os.path.exists(path):
        raise ImportError("%s (%s): %s" % (lacks, path, remedy()))
    loader = importlib.machinery.ExtensionFileLoader(extension, path)
    spec = importlib.util.spec_from_file_location(extension, path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _load():
    if "_dyntrace" not in sys.modules:
        sys.modules["_dyntrace"] = load("_dyntrace", "dyntrace has no extension for this Python")
    return sys.modules["_dyntrace"]


if not TYPE_CHECKING:

    def __getattr__(name):
        if name != "native":
            raise AttributeError("module %r has no attribute %r" % (__name__, name))
        return globals().setdefault("native", _load())
