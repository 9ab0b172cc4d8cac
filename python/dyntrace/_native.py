"""Finds the C extension: the one that `dyntrace run` has loaded, or the one that lies beside this package's folder.

Runs in: the traced process.
"""
import importlib.machinery
import importlib.util
import os
import sys


def _load():
    if "_dyntrace" in sys.modules:
        return sys.modules["_dyntrace"]
    directory = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for suffix in importlib.machinery.EXTENSION_SUFFIXES[:1]:
        path = os.path.join(directory, "_dyntrace" + suffix)
        if os.path.exists(path):
            loader = importlib.machinery.ExtensionFileLoader("_dyntrace", path)
            spec = importlib.util.spec_from_file_location("_dyntrace", path, loader=loader)
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            sys.modules["_dyntrace"] = module
            return module
    raise ImportError("dyntrace has no extension for this Python (%s in %s): build it with `make PYTHONS=%s`"
                      % ("_dyntrace" + importlib.machinery.EXTENSION_SUFFIXES[0], directory, sys.executable))


native = _load()
