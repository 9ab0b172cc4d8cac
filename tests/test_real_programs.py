"""Real programs by other authors are recorded whole: they behave as alone, and the trace keeps every promise."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from shared import PROGRAMS, PYTHONS, calls, holds

pytestmark = pytest.mark.one_python

NOT_A_CI_RUN = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "_")}


def no_loss(trace):
    """Nothing is missing (a stall is not a loss)."""
    assert trace.rows("SELECT cause FROM losses WHERE NOT is_stall") == []
    assert trace.rows("SELECT count(*) FROM process WHERE end_ns IS NULL") == [(0,)]
    return holds(trace)


def alone(python, words, **rest):
    return subprocess.run([python, *map(str, words)], capture_output=True, text=True, env=NOT_A_CI_RUN, **rest)


def has(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


@pytest.mark.parametrize("module", ["test_textwrap", "test_generators", "test_fractions", "test_contextlib"])
def test_pythons_own_tests_pass_while_recorded(record, python, tmp_path, module):
    """The same number of tests runs, with the same result. `make cpython-tests` runs the long test modules."""
    if not has(python, f"test.{module}"):
        pytest.skip("this Python comes without its tests")
    words = ["-m", "unittest", f"test.{module}"]
    before = alone(python, words, cwd=tmp_path)
    trace = record(words, python=python, status=None, env=NOT_A_CI_RUN)
    def summary(text):
        return re.findall(r"^(Ran \d+ tests?|OK.*|FAILED.*|(?:FAIL|ERROR): .*)$", re.sub(r" in [\d.]+s$", "", text, flags=re.M), re.M)
    assert (trace.status, summary(trace.err)) == (before.returncode, summary(before.stderr))
    assert summary(before.stderr)
    no_loss(trace)
    tests = trace.rows("SELECT count(*) FROM frames WHERE kind = 'call' AND qualname = 'TestCase.run'")[0][0]
    assert tests == int(re.search(r"Ran (\d+)", trace.err)[1])


def test_pip_list_runs_while_recorded(record, python, tmp_path):
    if not has(python, "pip"):
        pytest.skip("this Python comes without pip")
    words = ["-m", "pip", "--disable-pip-version-check", "list", "--format", "json"]
    before = alone(python, words, cwd=tmp_path)
    trace = no_loss(record(words, python=python, env=NOT_A_CI_RUN))
    assert (trace.out, trace.err) == (before.stdout, before.stderr)
    assert trace.rows("SELECT count(*) > 5000, count(DISTINCT code_id) > 500 FROM frame") == [(1, 1)]


@pytest.fixture(scope="module")
def black(tmp_path_factory):
    """The program `black` in a virtual environment: installed where there is a network, or copied from the user's own."""
    where = tmp_path_factory.mktemp("black") / "venv"
    subprocess.run([PYTHONS[0], "-m", "venv", where], capture_output=True, check=True)
    try:
        done = subprocess.run([where / "bin" / "python", "-m", "pip", "install", "--quiet", "--retries", "0", "--timeout", "10", "black"],
                              capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("black cannot be installed here: pip took too long")
    if done.returncode:
        pytest.skip("black cannot be installed here: " + (done.stderr.strip().splitlines() or ["?"])[-1])
    return where / "bin" / "black"


@pytest.mark.slow
def test_black_formats_standard_library_files_while_recorded(dyntrace, tmp_path, black):
    """black formats several files, and so starts worker processes."""
    stdlib = Path(subprocess.run([PYTHONS[0], "-c", "import os; print(os.path.dirname(os.__file__))"], capture_output=True,
                                 text=True, check=True).stdout.strip())
    results = []
    for before in ([], [dyntrace, "run", "-o", tmp_path / "t.db"]):
        work = tmp_path / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        for name in ("bisect.py", "keyword.py", "sched.py", "this.py"):
            shutil.copy(stdlib / name, work)
        done = subprocess.run([*map(str, before), str(black), "--line-length", "60", "--quiet", "--workers", "2", "."], cwd=work, capture_output=True,
                              text=True, env=NOT_A_CI_RUN | {"BLACK_CACHE_DIR": str(work / "cache")}, timeout=300)
        results.append((done.returncode, done.stdout, done.stderr, {p.name: p.read_text() for p in work.glob("*.py")}))
    assert results[0] == results[1] and results[0][0] == 0
    assert results[0][3]["sched.py"] != (stdlib / "sched.py").read_text()
    holds(tmp_path / "t.db")


def test_a_process_pool_works_and_is_recorded(record, python):
    """concurrent.futures uses the pool. One call raises in a worker, and the parent gets the exception."""
    program = """if True:
        import concurrent.futures, multiprocessing, sys
        def work(n):
            if n == 13: raise ValueError(n)
            return sum(i * i for i in range(n))
        if __name__ == '__main__':
            with concurrent.futures.ProcessPoolExecutor(3, mp_context=multiprocessing.get_context('fork')) as pool:
                futures = [pool.submit(work, n) for n in range(40)]
                got = [f.exception() or f.result() for f in futures]
            print(sum(x for x in got if isinstance(x, int)), [x for x in got if not isinstance(x, int)])
        """
    trace = no_loss(record(["-c", program], python=python))
    before = alone(python, ["-c", program])
    assert trace.out == before.stdout and "ValueError(13)" in trace.out
    assert calls(trace, "work") == 40
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'work' AND exit = 'raise'") == [(1,)]
    assert trace.rows("SELECT count(*) FROM process WHERE parent_process_id IS NOT NULL") == [(3,)]


def test_an_asyncio_server_and_clients_are_recorded(record, python):
    trace = no_loss(record([PROGRAMS / "run_server.py", 20], python=python))
    assert (trace.out, trace.err) == ("20 400 285 5\n", "")
    assert calls(trace, "serve") == calls(trace, "client") == 20
    assert calls(trace, "blocking") == 10 and calls(trace, "child") == 1
    assert trace.rows("SELECT code_kind, count(*) FROM frames WHERE qualname = 'client' AND exit = 'return' AND kind = 'resume'") == [("coroutine", 20)]
    # What a thread of the executor ran does not hang below the event loop's frames.
    assert trace.rows("SELECT count(*) FROM frames f JOIN frames m ON m.thread_id = f.thread_id WHERE f.qualname = 'blocking' "
                      "AND m.qualname = 'main'") == [(0,)]


def test_compileall_with_two_workers_is_recorded(record, python, tmp_path):
    """compileall compiles real files in two worker processes."""
    stdlib = subprocess.run([python, "-c", "import json; print(json.__path__[0])"], capture_output=True, text=True, check=True).stdout.strip()
    shutil.copytree(stdlib, tmp_path / "json", ignore=shutil.ignore_patterns("__pycache__"))
    trace = no_loss(record(["-m", "compileall", "-f", "-j", "2", "json"], python=python))
    assert len(trace.out.splitlines()) == 1 + len(list((tmp_path / "json").glob("*.py"))), trace.out


def test_tools_of_the_standard_library_are_recorded(record, python, tmp_path):
    for words in (["-m", "pydoc", "json"], ["-m", "timeit", "-n", "1", "-r", "1", "-s", "import json", "json.loads('[1]')"],
                  ["-m", "dis", PROGRAMS / "run_everything.py"], ["-m", "tokenize", PROGRAMS / "run_everything.py"],
                  ["-m", "cProfile", "-s", "name", PROGRAMS / "run_limits.py", "plain"], ["-m", "trace", "--count", "-C", tmp_path / "covered",
                                                                                        PROGRAMS / "run_limits.py", "plain"]):
        before = alone(python, words, cwd=tmp_path)
        trace = no_loss(record(words, python=python, status=before.returncode, env=NOT_A_CI_RUN))

        def without_numbers(text):
            text = re.sub(r"[\d.]+ seconds|[\d.]+ [nmu]?sec\b|0x[0-9a-f]+|^ *\d+(/\d+)? +[\d. ]+", "", text, flags=re.M)
            return sorted(text.splitlines())  # cProfile's ties come in any order
        assert (without_numbers(trace.out), trace.err) == (without_numbers(before.stdout), before.stderr)
