"""Each call of a Python __init__ is recorded, with its caller and its callees, as sys.monitoring sees them. CPython 3.13
has specialised calls of classes that no hook sees."""
import json
import os
import subprocess

import pytest

from shared import PROGRAMS, command_path, environment, holds, query, script, version_of

pytestmark = pytest.mark.newest_too

FRAMES = """
SELECT code.qualname, above.qualname, count(*) FROM frame JOIN code USING (code_id)
LEFT JOIN frame parent ON parent.frame_id = frame.parent_id LEFT JOIN code above ON above.code_id = parent.code_id
WHERE code.filename = '<inits>' AND (code.qualname LIKE '$_$_init$_$_$_%' ESCAPE '$' OR code.qualname LIKE 'helper%')
GROUP BY 1, 2 ORDER BY 1, 2"""


def needs_monitoring(python):
    if version_of(python) == "3.11":
        pytest.skip("no sys.monitoring to compare with")


def same(said, trace):
    truth = sorted(map(tuple, json.loads(said.splitlines()[-1])))
    found = query(trace, FRAMES)
    assert set(found) ^ set(truth) == set() and found == truth
    assert query(trace, "SELECT * FROM loss") == []


@pytest.mark.parametrize("options", [(), ("--exclude", "other_init"), ("--frames", "user")], ids=["all", "exclude", "user"])
@pytest.mark.parametrize("seed", range(3))
def test_calls_of_init_of_many_kinds_of_classes_are_recorded(dyntrace, python, tmp_path, seed, options):
    needs_monitoring(python)
    trace = tmp_path / "t.db"
    done = subprocess.run([dyntrace, "run", "-o", trace, "--python", python, *options, "--", PROGRAMS / "inits.py", str(seed), "200"],
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    same(done.stdout, trace)
    holds(trace)


@pytest.mark.parametrize("seed", range(3))
def test_calls_of_init_of_classes_made_before_recording_are_recorded(python, tmp_path, seed):
    needs_monitoring(python)
    trace = tmp_path / "t.db"
    done = subprocess.run([python, PROGRAMS / "inits.py", str(100 + seed), "100", "record", trace], capture_output=True, text=True, timeout=120,
                          env=environment(PYTHONPATH=os.path.join(os.path.dirname(command_path()), "lib", "python")))
    assert (done.returncode, done.stderr) == (0, "")
    same(done.stdout, trace)


COUNTED = """
def helper(): pass
def build_a(cls): return cls()
def build_b(cls): return cls()
def build_c(cls): return cls()
class A:
    def __init__(self): helper()
class B:
    def __init__(self): helper()
class C:
    def __init__(self): helper()
for warm, build, cls in (0, build_a, A), (1, build_b, B), (2, build_c, C):
    for _ in range(warm): build(dict)
    for _ in range(50): build(cls)
"""


def test_an_init_is_recorded_at_a_specialised_call_site(dyntrace, python, tmp_path):
    trace = tmp_path / "t.db"
    subprocess.run([dyntrace, "run", "-o", trace, "--python", python, script(tmp_path / "p.py", COUNTED)], check=True, timeout=60)
    found = query(trace, """SELECT c.qualname, p.qualname, count(*) FROM frame f JOIN code c USING (code_id)
        JOIN frame q ON q.frame_id = f.parent_id JOIN code p ON p.code_id = q.code_id
        WHERE c.filename LIKE '%/p.py' AND (c.qualname LIKE '%init%' OR c.qualname = 'helper') GROUP BY 1, 2 ORDER BY 1, 2""")
    assert found == [("A.__init__", "build_a", 50), ("B.__init__", "build_b", 50), ("C.__init__", "build_c", 50),
                     ("helper", "A.__init__", 50), ("helper", "B.__init__", 50), ("helper", "C.__init__", 50)]


ENDED = """
import dyntrace, gc, sys
def site(cls): return cls()
def later(cls): return cls()
class Older:
    def __init__(self): pass
class Base: pass
def specialised(site):
    import dis
    return [i.opname for i in dis.get_instructions(site, adaptive=True) if "INIT" in i.opname]
for _ in range(99): site(Older)
before = specialised(site)
with dyntrace.record(sys.argv[1]):
    class Newer(Base):
        def __init__(self): pass
    for cls in Older, Newer:
        for _ in range(99): site(cls)
    during = specialised(site)
    below = Base.__subclasses__()
for _ in range(99): later(Newer)
assert below == Base.__subclasses__() == [Newer] and Newer.__subclasses__() == []
del below, Newer, cls
gc.collect()
assert Base.__subclasses__() == []
print(before, during, specialised(later))
"""


def test_after_the_recording_calls_are_specialised_again(python, tmp_path):
    if version_of(python) != "3.13":
        pytest.skip("only 3.13 hides such calls")
    done = subprocess.run([python, script(tmp_path / "p.py", ENDED), tmp_path / "t.db"], capture_output=True, text=True, timeout=60,
                          env=environment(PYTHONPATH=os.path.join(os.path.dirname(command_path()), "lib", "python")))
    assert (done.stdout, done.stderr) == ("['CALL_ALLOC_AND_ENTER_INIT'] [] ['CALL_ALLOC_AND_ENTER_INIT']\n", "")
    assert query(tmp_path / "t.db", "SELECT qualname, count(*) FROM frame JOIN code USING (code_id) WHERE filename LIKE '%/p.py' AND qualname LIKE '%.__init__' GROUP BY 1 ORDER BY 1") == [
        ("Newer.__init__", 99), ("Older.__init__", 99)]


def test_an_init_that_is_not_recorded_stays_specialised(dyntrace, python, tmp_path):
    if version_of(python) != "3.13":
        pytest.skip("only 3.13 hides such calls")
    program = script(tmp_path / "p.py", """
        import dis
        def site(cls): return cls()
        class Unwanted:
            def __init__(self): pass
        for _ in range(9999): site(Unwanted)
        print([i.opname for i in dis.get_instructions(site, adaptive=True) if "INIT" in i.opname])
    """)
    done = subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--python", python, "--exclude", "Unwanted.*", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "['CALL_ALLOC_AND_ENTER_INIT']\n"
