"""Finds the C extension. `dyntrace run` may have loaded it already. Otherwise it lies in this
package's folder (installed by pip), or two folders above it (built by make).

    from ._native import native    loads the extension

`import dyntrace` alone does not load the extension, so that the pytest plugin costs nothing where
nobody uses it.

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

# Debian's Python finds the package through a symbolic link, so resolve it
_package = os.path.realpath(os.path.dirname(__file__))
_library = os.path.dirname(os.path.dirname(_package))
# make has built the package, which pip has not installed
_built = not os.path.isdir(os.path.join(_package, "inject"))


def remedy() -> str:
    """Return the command that repairs this installation. src/cmd/run/program.c prints the same
    text."""
    if _library == "/usr/lib/dyntrace":
        return "apt install --reinstall dyntrace python3-dyntrace"
    words = "build it with `make PYTHONS=%s`" if _built else "reinstall it with `%s -m pip`"
    return words % sys.executable


def load(extension, lacks):
    """Load EXTENSION, which is not in sys.modules yet, and return it. If its file does not exist,
    raise an ImportError that begins with LACKS."""
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


def _load_native():
    package = sys.modules[__package__]
    if getattr(package, "__file__", None) and not hasattr(package, "_MODULES"):
        raise ImportError(
            "dyntrace: another package called dyntrace was installed over this one (%s): pip "
            "uninstall dyntrace, then pip install --force-reinstall dyntrace-recorder" % _package
        )
    if "_dyntrace" not in sys.modules:
        sys.modules["_dyntrace"] = load("_dyntrace", "dyntrace has no extension for this Python")
    return sys.modules["_dyntrace"]


if not TYPE_CHECKING:

    def __getattr__(name):
        if name != "native":
            raise AttributeError("module %r has no attribute %r" % (__name__, name))
        return globals().setdefault("native", _load_native())
