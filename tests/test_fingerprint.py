"""code.fingerprint: equal for the same code in all processes, different for different code."""
import os
import sqlite3
import subprocess

import pytest

pytestmark = pytest.mark.newest_too

# Two bodies of a function that are alike but for one constant, name or place.
PAIRS = {
    "number": ("return x * 2", "return x * 3"), "minus": ("return x * -1", "return x * -2"), "large": (f"return x * {2**70}", f"return x * {2**70 + 1}"),
    "truth": ("return g(True)", "return g(False)"), "float": ("return x * 0.5", "return x * 0.25"), "zero": ("return x * 0.0", "return x * -0.0"),
    "complex": ("return x * 1j", "return x * 2j"), "text": ("return 'a'", "return 'b'"), "bytes": ("return b'a'", "return b'b'"),
    "none": ("return None", "return ..."), "set": ("return x in {1, 2}", "return x in {1, 3}"), "names": ("return 'a' in {'a', 'b'}", "return 'a' in {'a', 'c'}"),
    "tuple": ("return x, (1, (2, 3))", "return x, (1, (2, 4))"), "slice": ("return 'abc'[1:2]", "return 'abc'[1:3]"),
    "inner": ("return (lambda y: y * 2)(x)", "return (lambda y: y * 3)(x)"), "deep": ("return [[z * 2 for z in y] for y in [[x]]]", "return [[z * 3 for z in y] for y in [[x]]]"),
    "handler": ("try:\n  a = x\n  b = x\n except ValueError: pass", "try:\n  a = x\n except ValueError: pass\n b = x"),
    "callee": ("return g(x)", "return h(x)"), "attribute": ("return x.real", "return x.imag"),
    "same": ("return 'a' in {'a', 'b', 'c', 'd', 'e'}", "return 'a' in {'a', 'b', 'c', 'd', 'e'}"), "moved": ("return x + 1", "\n\n\n return x + 1"),
}
PROGRAM = """
import sys
g = h = lambda *a: 0
for name, pair in {pairs!r}.items():
    names = dict(globals())
    exec(compile("def f_%s(x):\\n %s\\n" % (name, pair[int(sys.argv[1])]), "/made/%s.py" % name, "exec"), names)
    names["f_" + name](1)
"""


@pytest.fixture(scope="module")
def fingerprints(dyntrace, python, tmp_path_factory):
    """Return the fingerprints of both bodies, from processes with different hash seeds."""
    folder, found = tmp_path_factory.mktemp("fingerprints"), []
    (folder / "made.py").write_text(PROGRAM.format(pairs=PAIRS))
    for which in "01":
        path = folder / f"{which}.db"
        subprocess.run([dyntrace, "run", "-o", path, "--python", python, folder / "made.py", which], check=True, env={**os.environ, "PYTHONHASHSEED": which})
        with sqlite3.connect(path) as db:
            found.append(dict(db.execute("SELECT qualname, fingerprint FROM code WHERE filename GLOB '/made/*' AND qualname GLOB 'f_*' AND qualname NOT GLOB '*.*'")))
        db.close()
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_equal_code_has_equal_and_different_code_different_fingerprints(fingerprints, name):
    one, other = (found[f"f_{name}"] for found in fingerprints)
    assert (one == other) == (name in ("same", "moved"))
