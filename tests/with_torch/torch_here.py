"""The Python that has torch, and the programs for it: what these tests import from each other.

A module of this name, not conftest: pytest loads several of those, and an import finds any of them."""
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
MODES = ("shim", "observe")


@functools.lru_cache(None)
def torch_python():
    """The Python with torch and why there is none."""
    named = os.environ.get("DYNTRACE_TORCH_PYTHON")
    library = Path(os.environ.get("DYNTRACE", ROOT / "build" / "dyntrace")).parent / "lib"
    why = "no Python with torch: set DYNTRACE_TORCH_PYTHON"
    for python in [shutil.which(named) or named] if named else [sys.executable, str(ROOT / "build" / "torch" / "bin" / "python")]:
        if not os.access(python, os.X_OK):
            continue
        ask = "import sys, sysconfig, importlib.util as u; print(u.find_spec('torch') is not None, sysconfig.get_config_var('SOABI'))"
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, cwd="/")
        has, _, abi = done.stdout.strip().partition(" ")
        if has != "True":
            continue
        if list(library.glob(f"**/_dyntrace.{abi}.so")):
            return python, ""
        why = f"{python} has torch, but dyntrace was not built for it: make PYTHONS={python}"
    return None, why
