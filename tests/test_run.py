"""`dyntrace run` through the real command: what it starts, records and refuses. Each trace is checked against the public
contract (../shared/contract/check_trace.py, if it is there) and by `dyntrace fsck`."""
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import pytest

from crash_help import fsck
from shared import PROGRAMS, PYTHONS, ROOT, calls, command_path, holds, query, script, version_of

PYENV = Path.home() / ".pyenv" / "versions"


def sessions():
    """Directories of recordings of this user that are there now."""
    bases = {"/dev/shm", "/tmp", os.environ.get("TMPDIR", "/tmp")}
    return {path for base in bases for path in Path(base).glob(f"dyntrace-{os.getuid()}-*")}


@pytest.fixture
def run(dyntrace, tmp_path):
    """run(*words, python=None) -> the finished `dyntrace run WORDS`, in tmp_path, on the first interpreter's PATH."""
    def run(*words, python=None, **rest):
        rest.setdefault("cwd", tmp_path)
        env = dict(rest.pop("env", os.environ))
        if python or "PATH" not in rest:
            env["PATH"] = os.path.dirname(python or PYTHONS[0]) + ":" + env.get("PATH", "/usr/bin:/bin")
        rest.setdefault("timeout", 120)
        return subprocess.run([dyntrace, "run", *map(str, words)], capture_output=True, text=True, env=env, **rest)
    return run


def one_line(done, *parts, status=2):
    """Check that the run was refused with one line that names each of PARTS."""
    assert done.returncode == status, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("dyntrace: "), done.stderr
    for part in parts:
        assert part in lines[0], done.stderr


MARK = "def mark(): pass\nmark()\n"


# ---- what can be run ----

@pytest.mark.newest_too
def test_a_script_a_module_and_code_are_recorded(run, tmp_path, python):
    script(tmp_path / "plain.py", MARK + "import sys; print(sys.argv)")
    (tmp_path / "package").mkdir()
    script(tmp_path / "package" / "__main__.py", MARK + "import sys; print(sys.argv[1:])")
    for words, out, name in (
        (["plain.py", "-o", "x", "--", "y"], "['plain.py', '-o', 'x', '--', 'y']\n", "plain.db"),
        (["-m", "package", "-o", "x"], "['-o', 'x']\n", "package.db"),
        (["-c", MARK + "import sys; print(sys.argv)", "-m", "z"], "['-c', '-m', 'z']\n", "command.db"),
        (["./package", "x"], "['x']\n", "package.db"),
        (["-o", "given.db", "--", "plain.py"], "['plain.py']\n", "given.db"),
    ):
        done = run("--force", "--python", python, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, out, "")
        trace = holds(tmp_path / name)
        assert calls(trace, "mark") == 1
        version, mode, executable = query(trace, "SELECT python_version, mode, executable FROM process")[0]
        assert version.startswith(version_of(python)) and mode == "all"
        assert os.path.samefile(executable, python)
        assert json.loads(query(trace, "SELECT value FROM meta WHERE key = 'command'")[0][0])[-1] == words[-1]


def test_a_zip_application_is_recorded(run, tmp_path):
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as app:
        app.writestr("__main__.py", MARK + "print('zipped')")
    done = run("-o", "t.db", "app.pyz")
    assert (done.returncode, done.stdout) == (0, "zipped\n")
    assert calls(holds(tmp_path / "t.db"), "mark") == 1


def test_a_program_on_path_is_recorded(run, tmp_path, python):
    done = run("python3", "-c", MARK, python=python)
    assert (done.returncode, done.stderr) == (0, "")
    assert calls(holds(tmp_path / "python3.db"), "mark") == 1


def test_a_program_that_is_not_python_is_run(run, tmp_path):
    done = run("-o", "t.db", "sh", "-c", "echo out; echo err >&2; exit 5")
    assert (done.returncode, done.stdout) == (5, "out\n")
    assert done.stderr.startswith("err\ndyntrace: ") and "nothing was recorded" in done.stderr
    assert query(holds(tmp_path / "t.db"), "SELECT exit_code, mode FROM process") == [(5, "none")]


def test_a_shell_script_that_starts_three_interpreters_is_recorded(run, tmp_path):
    """One of them starts Python through a second script, like a version manager's shim."""
    pythons = (PYTHONS * 3)[:3]
    script(tmp_path / "shim", f"""
        #!/usr/bin/env bash
        set -e
        exec "{pythons[0]}" "$@"
        """, 0o755)
    script(tmp_path / "three", f"""
        #!/bin/sh
        "{pythons[0]}" -c 'def one(): pass
        one()'
        "{pythons[1]}" -c 'def two(): pass
        two()' | cat
        ./shim -c 'def three(): pass
        three(); raise SystemExit(4)'
        """.replace("\n        one", "\none").replace("\n        two", "\ntwo").replace("\n        three", "\nthree"), 0o755)
    done = run("./three")
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "")
    trace = holds(tmp_path / "three.db")
    assert [calls(trace, name) for name in ("one", "two", "three")] == [1, 1, 1]
    pids = query(trace, "SELECT DISTINCT pid FROM frames WHERE qualname IN ('one', 'two', 'three')")
    assert len(pids) == 3


def test_a_script_without_a_shebang_is_recorded(run, tmp_path):
    script(tmp_path / "bare", f'"{PYTHONS[0]}" -c "def bare(): pass\nbare()"', 0o755)
    done = run("./bare")
    assert (done.returncode, done.stderr) == (0, "")
    assert calls(holds(tmp_path / "bare.db"), "bare") == 1


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    """A virtual environment without pip, with a console script and a .pth file as pip would have made them."""
    where = tmp_path_factory.mktemp("venv") / "a venv"
    subprocess.run([PYTHONS[0], "-m", "venv", "--without-pip", where], check=True)
    site = next((where / "lib").glob("python3*")) / "site-packages"
    (site / "tool.py").write_text("import threading\ndef main():\n    print('tool')\n    return 6\n")
    # What `pip install` writes for an interpreter whose path holds a space.
    script(where / "bin" / "tool", f"""
        #!/bin/sh
        '''exec' "{where}/bin/python" "$0" "$@"
        ' '''
        import sys
        from tool import main
        if __name__ == "__main__":
            sys.exit(main())
        """, 0o755)
    return where


def test_virtual_environments_and_console_scripts_are_recorded(run, tmp_path, venv):
    done = run(venv / "bin" / "tool", "argument")
    assert (done.returncode, done.stdout, done.stderr) == (6, "tool\n", "")
    trace = holds(tmp_path / "tool.db")
    assert calls(trace, "main") == 1
    done = run("--python", venv / "bin" / "python", "-c", MARK + "import sys, tool\nassert sys.prefix != sys.base_prefix")
    assert (done.returncode, done.stderr) == (0, "")
    trace = holds(tmp_path / "command.db")
    assert calls(trace, "mark") == 1
    assert query(trace, "SELECT executable FROM process") == [(str(venv / "bin" / "python"),)]


def test_a_thread_started_before_the_hook_is_recorded(run, tmp_path, venv):
    """A .pth file starts the thread. site reads .pth files before sitecustomize, which sets the hook."""
    site = next((venv / "lib").glob("python3*")) / "site-packages"
    (site / "early.py").write_text(textwrap.dedent("""
        import threading
        go, done = threading.Event(), threading.Event()
        def called_late(): pass
        def early():
            go.wait()
            for _ in range(10): called_late()
            done.set()
        threading.Thread(target=early, name="early bird", daemon=True).start()
        """))
    (site / "early.pth").write_text("import early\n")
    try:
        done = run("--python", venv / "bin" / "python", "-o", "t.db", "-c", "import early; early.go.set(); early.done.wait()")
    finally:
        (site / "early.pth").unlink()
    assert (done.returncode, done.stderr) == (0, "")
    trace = holds(tmp_path / "t.db")
    assert calls(trace, "called_late") == 10
    assert query(trace, "SELECT count(DISTINCT thread_id) FROM frames") == [(2,)]


# ---- the output file ----

def test_run_refuses_an_existing_output_file_and_leaves_it_unchanged(run, tmp_path):
    script(tmp_path / "s.py", "print('ran')")
    (tmp_path / "s.db").write_bytes(b"precious")
    done = run("s.py")
    one_line(done, "s.db", "--force")
    assert done.stdout == "" and (tmp_path / "s.db").read_bytes() == b"precious"
    assert not (tmp_path / "s.db-frames").exists()
    done = run("--force", "s.py")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    holds(tmp_path / "s.db")


def test_force_replaces_a_link_itself(run, tmp_path):
    """One link leads to a file, one to nothing. The target stays as it is."""
    (tmp_path / "other").write_bytes(b"precious")
    for target in ("other", "nowhere"):
        (tmp_path / "t.db").unlink(missing_ok=True)
        (tmp_path / "t.db").symlink_to(target)
        one_line(run("-o", "t.db", "-c", "print(1)"), "t.db", "--force")
        done = run("-o", "t.db", "--force", "-c", "print(1)")
        assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
        assert not (tmp_path / "t.db").is_symlink() and not (tmp_path / "nowhere").exists()
        holds(tmp_path / "t.db")
    assert (tmp_path / "other").read_bytes() == b"precious"


def test_statistics_go_into_a_new_file_only(run, tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("precious", "link", "new"):
        done = run("-o", "t.db", "--force", "-c", "print(1)", env={**os.environ, "DYNTRACE_STATS": str(tmp_path / name)})
        assert done.returncode == 0
    assert (tmp_path / "precious").read_bytes() == b"precious" and not (tmp_path / "nowhere").exists()
    assert json.loads((tmp_path / "new").read_text())["frames"] > 0


def test_an_output_that_cannot_be_written_is_refused(run, tmp_path):
    one_line(run("-o", "missing/t.db", "-c", "print(1)"), "missing/t.db")
    (tmp_path / "directory.db").mkdir()
    done = run("-o", "directory.db", "--force", "-c", "print(1)")
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert (tmp_path / "directory.db").is_dir()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["directory.db"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_an_unwritable_directory_is_refused(run, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    one_line(run("-o", "closed/t.db", "-c", "print(1)"), "closed/t.db", "ermission")


def test_a_read_only_directory_is_refused_for_root_too(run):
    """The directory is /proc, where root cannot make a file either."""
    done = run("-o", "/proc/t.db", "-c", "print(1)")
    one_line(done, "/proc/t.db")
    assert done.stdout == ""


def test_two_recorders_of_one_file_are_refused(dyntrace, run, tmp_path):
    first = subprocess.Popen([dyntrace, "run", "--python", PYTHONS[0], "-o", tmp_path / "t.db", "-c", "print(1, flush=True); input()"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    first.stdout.readline()
    try:
        done = run("-o", "t.db", "--force", "-c", "print(2)")
        one_line(done, "t.db")
        assert done.stdout == ""
    finally:
        first.communicate("\n", timeout=120)
    assert first.returncode == 0
    holds(tmp_path / "t.db")


# Opens the newest of the traces sys.argv[1:] again and again.
LOOK = textwrap.dedent("""
    import collections, json, os, sqlite3, sys
    said = collections.Counter()
    print(flush=True)
    while not os.path.exists("over"):
        for trace in [trace for trace in sys.argv[1:] if os.path.exists(trace)][-1:]:
            db = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
            try:
                db.execute("SELECT COUNT(*) FROM frame, lookup").fetchone()
                said["read"] += 1
            except sqlite3.Error as error:
                said[str(error)] += 1
            db.close()
    print(json.dumps(said))
    """)


def test_a_reader_that_opens_the_trace_at_any_moment_finds_a_whole_database(dyntrace, run, tmp_path):
    """At any moment: when the recording begins, while it goes on, and when it ends."""
    traces = [tmp_path / f"{number}.db" for number in range(20)]
    readers = [subprocess.Popen([sys.executable, "-c", LOOK, *traces], cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    try:
        for reader in readers:
            reader.stdout.readline()
        for trace in traces:
            assert run("-o", trace, "-c", MARK * 500).returncode == 0
    finally:
        (tmp_path / "over").touch()
        said = [json.loads(reader.communicate(timeout=120)[0]) for reader in readers]
    assert all(set(one) == {"read"} for one in said), said
    for trace in traces:  # a program that opened it just before the end may have left an empty -wal and its -shm
        assert query(trace, "SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'mark'") == [(500,)]
        fsck(dyntrace, trace)


def test_only_the_owner_can_read_the_trace(dyntrace, tmp_path):
    """Whatever the umask is, during and after the recording."""
    program = "import os; print(os.getpid(), flush=True); input()"
    child = subprocess.Popen([dyntrace, "run", "--python", PYTHONS[0], "-o", tmp_path / "t.db", "-c", program],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, umask=0)
    pid = child.stdout.readline().strip()
    ours = {path.name for path in sessions() if any(path.glob(f"{pid}-*.ring"))}  # other tests record meanwhile
    made = {path for path in sessions() if path.name in ours}
    try:
        assert made
        for path in made:
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
            for file in path.iterdir():
                if file.is_file():
                    assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    finally:
        child.communicate("\n", timeout=120)
    assert stat.S_IMODE((tmp_path / "t.db").stat().st_mode) == 0o600
    assert not made & sessions()


# ---- settings ----

LIMITS = """
import dyntrace.config
from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode
made = []
def f(n): return n
def g(n): return n
def callback(frame, *rest):
    if frame.f_code.co_name not in ("f", "g"):
        return None
    n = frame.f_locals["n"]
    made.append(frame.f_code.co_name)
    return GuardedCode(frame.f_code, lambda L: L["n"] == n)
dyntrace.config.recompile_limit = 5
before = set_eval_frame(callback)
for n in range(20):
    f(n), g(n)
set_eval_frame(before)
print(made.count("f"), made.count("g"))
"""


def test_settings_limit_the_programs_own_compiler(run, tmp_path, python):
    script(tmp_path / "limits.py", LIMITS)
    for settings, printed in (([], "5 5"), (["limit=3"], "3 3"), (["limit=3@f", "limit=30@g"], "3 20"), (["accumulated_limit=2@g"], "5 2"),
                              (["limit=0@limits.py:6"], "5 0")):
        words = [word for setting in settings for word in ("--set", setting)]
        done = run("--force", *words, "limits.py", python=python)
        assert (done.returncode, done.stdout, done.stderr) == (0, printed + "\n", ""), settings
        stored = query(tmp_path / "limits.db", "SELECT value FROM meta WHERE key LIKE 'settings%'")
        assert stored == ([(json.dumps(settings),)] if settings else [])
        holds(tmp_path / "limits.db")


def test_a_setting_that_matched_nothing_is_an_error_when_the_program_has_ended(run, tmp_path, python):
    script(tmp_path / "limits.py", LIMITS)
    done = run("--set", "limit=3@h", "limits.py", python=python)
    one_line(done, "run: --set limit=3@h: matched nothing")
    assert done.stdout == "5 5\n"
    assert query(tmp_path / "limits.db", "SELECT value FROM meta WHERE key = 'settings_unused'") == [("limit=3@h: matched nothing\n",)]
    assert "; without effect: limit=3@h: matched nothing" in subprocess.run([command_path(), "report", "limits.db"], capture_output=True, text=True,
                                                                            cwd=tmp_path, check=True).stdout
    tree = subprocess.run([command_path(), "tree", "f", "limits.db"], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert tree.stderr == "dyntrace: limits.db: was recorded under --set limit=3@h; without effect: limit=3@h: matched nothing\n" and tree.stdout


def test_invalid_settings_are_refused(run, tmp_path):
    for setting, why in (("nosuch=1", "no such setting: dynamic, "), ("dynamic", "NAME=VALUE"), ("dynamic=", "NAME=VALUE"), ("dynamic=yes", "True or False"),
                         ("fullgraph=None", "True or False"), ("limit=-1", "from 0 on"), ("limit=x@f", "from 0 on"), ("tensor=1+2", "no source"),
                         ("tensor=L[x]", "constants"), ("mark_static=L['x'](", "no source"), ("skip_guard_eval_unsafe=True", "how many calls"),
                         ("config=3", "no such setting"), ("drop_guard= x", "a kind of guard"), ("guard_filter_fn=a.b", "torch.compiler")):
        done = run("--set", setting, "-c", "print(1)")
        one_line(done, f"run: --set {setting}: ", why)
        assert done.stdout == ""
    done = run("--set", "nosuch=1", "--set", "limit=2", "--set", "also=2", "-c", "print(1)")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 2
    one_line(run("--set", "limit=2", "--frames", "none", "-c", "1"), "--set", "--frames none")
    assert not list(tmp_path.iterdir())


def test_names_of_config_are_looked_up_in_torchs_sources(run, tmp_path):
    """The sources of this torch cannot be imported, so the test shows that they are only read."""
    for name, text in (("__init__", "raise SystemExit(3)"), ("version", "__version__ = '9.8'"), ("_dynamo/config", "limit: int = Config(default=3)\nword = 'a'"),
                       ("_inductor/config", "class triton:\n    deep = True\nclass cuda(triton):\n    pass\nword = 'b'"), ("compiler/config", "own = 1"),
                       ("fx/experimental/_config", "other = 1")):
        (tmp_path / "lib/torch" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lib/torch" / f"{name}.py").write_text(text)
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}
    for setting, why in (("config.limits=3", "torch 9.8 has no config limits; near: limit"), ("config.limit=a", "is int, not a"),
                         ("config.triton.depe=True", "near: triton.deep"), ("config.triton.deep=1", "is bool, not 1"),
                         ("config.word=c", "is in torch._dynamo.config and torch._inductor.config: write config.torch._dynamo.config.word")):
        one_line(run("--set", setting, "-c", "print(1)", env=env), f"run: --set {setting}: ", why)
    for setting in "config.limit=4", "config.torch._inductor.config.word=c", "config.cuda.deep=False":
        done = run("--force", "-o", "t.db", "--set", setting, "-c", "print(1)", env=env)
        assert done.stdout == "1\n"
        one_line(done, "matched nothing")


TORCH = """
def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None):
    if model is None:
        return lambda model: compile(model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options)
    import traceback
    names = [one.name for one in traceback.extract_stack()][-2:]
    return model, fullgraph, dynamic, backend, mode, options, names
"""
COMPILES = """
import functools, sys, torch
class Net:
    def forward(self): pass
    def other(self): pass
def f(): pass
net = Net()
for model in f, net, net.other, functools.partial(f, 1), len:
    print(*torch.compile(model, dynamic=False, options={"a": 1})[1:])
print(*torch.compile(fullgraph=None)(f)[1:], sys.getrefcount(None) > 0)
"""


@pytest.mark.parametrize("frames", ["all", "decided"])
def test_settings_change_the_arguments_of_torch_compile(run, tmp_path, python, frames):
    """This torch has only that function, and so works on every CPython. The function sees no frame of ours."""
    (tmp_path / "lib/torch").mkdir(parents=True)
    (tmp_path / "lib/torch/__init__.py").write_text(TORCH)
    script(tmp_path / "compiles.py", COMPILES)
    words = [word for one in ("dynamic=True", "fullgraph=True@f", "backend=inductor@Net.other", "mode=none@Net") for word in ("--set", one)]
    done = run("--frames", frames, *words, "compiles.py", python=python, env={**os.environ, "PYTHONPATH": str(tmp_path / "lib")})
    names = "['<module>', 'compile']"
    assert (done.stdout.splitlines(), done.stderr, done.returncode) == ([
        "True True inductor None {'a': 1} " + names,
        "False True inductor none None " + names,
        "False True inductor None {'a': 1} " + names,
        "True True inductor None {'a': 1} " + names,
        "False True inductor None {'a': 1} " + names,
        "True True inductor None None ['<lambda>', 'compile'] True"], "", 0)
    holds(tmp_path / "compiles.db")


def test_settings_outlive_a_collector_that_is_killed(run, tmp_path, python):
    script(tmp_path / "limits.py", LIMITS + """
import os, signal, time
parent = os.getppid()
for name in os.listdir("/proc"):
    try:
        own, fields = open(f"/proc/{name}/cmdline").read(), open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
    except OSError:
        continue
    if name.isdigit() and fields[1] == str(parent) and "dyntrace" in own:
        time.sleep(0.3)
        os.kill(int(name), signal.SIGKILL)
time.sleep(0.5)
""")
    done = run("--set", "limit=3", "--set", "limit=4@h", "limits.py", python=python)
    assert (done.returncode, done.stdout) == (2, "3 3\n"), done.stderr
    assert "another took its place" in done.stderr
    assert [line for line in done.stderr.splitlines() if "--set" in line] == ["dyntrace: run: --set limit=4@h: matched nothing"]


# ---- bad usage ----

def test_bad_usage_gives_a_one_line_error_and_status_2(run, tmp_path):
    (tmp_path / "empty").mkdir()
    for words, parts in (
        ([], ["no program"]),
        (["--force"], ["no program"]),
        (["--"], ["no program"]),
        (["missing.py"], ["missing.py", "No such file"]),
        (["./missing"], ["missing"]),
        (["no-such-program"], ["no-such-program"]),
        (["empty"], ["empty", "__main__"]),
        (["--no-such-option", "x.py"], ["--no-such-option"]),
        (["-Z", "x.py"], ["-Z"]),
        (["-o"], ["-o", "value"]),
        (["--frames"], ["--frames", "value"]),
        (["--frames", "some", "-c", "1"], ["some"]),
        (["--max-depth", "0", "-c", "1"], ["--max-depth", "0"]),
        (["--max-depth", "-1", "-c", "1"], ["--max-depth"]),
        (["--max-depth", "1x", "-c", "1"], ["1x"]),
        (["--max-depth", "99999999999999999999", "-c", "1"], ["--max-depth"]),
        (["-m"], ["-m"]),
        (["-c"], ["-c"]),
        (["--python", "no-such-python", "-c", "1"], ["no-such-python"]),
        (["--python", "./empty", "-c", "1"], ["empty"]),
    ):
        one_line(run(*words), *parts)
    assert [p.name for p in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize("text", ["", "5", "-1ms", "ms", "1 ms", "1m", "1e99s", "nan", "nans", "infs", "0x", "1msx"])
def test_a_wrong_duration_is_refused(run, text):
    one_line(run("--min-duration", text, "-c", "1"), "--min-duration")


def test_a_minimum_duration_may_have_any_unit(run, tmp_path):
    for text, ns in (("500ns", 500), ("20us", 20000), ("1.5ms", 1500000), ("2s", 2 * 10**9), ("0s", 0)):
        assert run("--force", "-o", "t.db", "--min-duration", text, "-c", "1").returncode == 0
        assert query(tmp_path / "t.db", "SELECT value FROM meta WHERE key = 'min_duration_ns'") == [(ns,)]


def test_interpreter_options_that_disable_the_recorder_are_refused(run, tmp_path):
    for option in ("-I", "-E", "-S", "-BI", "-bE"):
        done = run("-o", "t.db", PYTHONS[0], option, "-c", "print(1)")
        one_line(done, f"-{option[-1]}")
        assert done.stdout == "" and not (tmp_path / "t.db").exists()
        done = run("-o", "t.db", "--frames", "none", PYTHONS[0], option, "-c", "print(1)")
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    # These letters mean something else behind another option, or belong to the program.
    for words in (["-W", "ignore", "-c", "print(1)"], ["-Xdev", "-c", "print(1)", "-I"], ["-W", "I", "-c", "print(1)"]):
        done = run("--force", "-o", "t.db", PYTHONS[0], *words)
        assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
        holds(tmp_path / "t.db")


def test_a_script_whose_interpreter_ignores_the_recorder_is_reported(run, tmp_path):
    script(tmp_path / "isolated", f"#!/bin/sh\n'{PYTHONS[0]}' -I -c 'print(1)'\n", 0o755)
    done = run("./isolated")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert len(done.stderr.splitlines()) == 1 and "nothing was recorded" in done.stderr and "-I" in done.stderr


UNSUPPORTED = [str(p) for p in (PYENV / "3.10.13/bin/python3.10", PYENV / "2.7.18/bin/python2.7", PYENV / "3.6.15/bin/python3.6")
               if p.exists()]


@pytest.mark.parametrize("old", UNSUPPORTED)
def test_an_unsupported_interpreter_is_refused_or_reported(run, tmp_path, old):
    """`run` refuses the interpreter as its command. One that another program starts runs unrecorded and is reported."""
    script(tmp_path / "s.py", "import sys; print(sys.version_info[0])")
    for words in (["--python", old, "s.py"], ["--python", old, "-c", "print(1)"], [old, "-c", "print(1)"]):
        done = run("-o", "t.db", *words)
        one_line(done, os.path.basename(old), "supported")
        assert done.stdout == "" and not (tmp_path / "t.db").exists()
    state = "import os, sys; print(sorted(os.environ.items()), sys.path, sorted(sys.modules))"
    script(tmp_path / "via", f"#!/bin/sh\n'{old}' -c '{state}'\nexit 3\n", 0o755)
    env = {k: v for k, v in os.environ.items() if k != "_"}
    alone = subprocess.run(["./via"], capture_output=True, text=True, cwd=tmp_path,
                           env=env | {"PATH": os.path.dirname(PYTHONS[0]) + ":" + env["PATH"]})
    done = run("./via", env=env)
    assert (done.returncode, done.stdout) == (3, alone.stdout)
    assert len(done.stderr.splitlines()) == 1 and old.rsplit("/", 1)[0] in done.stderr
    assert query(holds(tmp_path / "via.db"), "SELECT count(*) FROM loss WHERE cause LIKE '%interpreter%'") == [(1,)]


def test_a_newer_cpython_than_supported_is_refused(run, tmp_path):
    """One sentence names the remedy, wherever the interpreter is met: given directly, by doctor, started by another
    program, when built for."""
    text = (ROOT / "src/versions.h").read_text()
    oldest, newest = (int(re.search(rf"#define CPYTHON_{end} (\d+)", text)[1]) for end in ("OLDEST", "NEWEST"))
    ours, theirs = f"CPython 3.{oldest} to 3.{newest}", f"3.{newest + 1}"
    python = script(tmp_path / f"python{theirs}", f"""
        #!/bin/sh
        [ "$1" != -m ] || {{ umask 077; echo -n "cpython {theirs} at $0" > "$DYNTRACE_SESSION/$$.unsupported"; exit 3; }}
        echo "cpython 3 {newest + 1} .cpython-3{newest + 1}-x86_64-linux-gnu.so"
        """, 0o755)
    for words in (["--python", python, "-c", "print(1)"], [python, "-c", "print(1)"]):
        done = run("-o", "t.db", *words)
        one_line(done, f"CPython {theirs} is not supported: use {ours}, or run untraced with --frames none")
        assert done.stdout == "" and not (tmp_path / "t.db").exists()
    done = subprocess.run([command_path(), "doctor", python], capture_output=True, text=True)
    assert f"cpython {theirs} is not supported: use {ours}\n" in done.stdout
    done = run("-o", "t.db", "sh", "-c", f"'{python}' -m x")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"dyntrace: cpython {theirs} at {python} was not recorded: it is not supported; use {ours}\n"
    facts = str(ROOT / "python/build_facts.py")
    done = subprocess.run([PYTHONS[0], "-c", f"import runpy, sys; sys.version_info = (3, {newest + 1}, 0); sys.argv = ['', 'python{theirs}']; "
                                             f"runpy.run_path({facts!r}, run_name='__main__')"], capture_output=True, text=True)
    assert done.stdout == f"python{theirs}: CPython {theirs} is not supported, only {ours.removeprefix('CPython ')} are, build for one of those\n"


@pytest.mark.skipif(sys.version_info < (3, 15), reason="lazy imports are 3.15's")
def test_lazy_imports_stay_lazy(run, tmp_path):
    """PEP 810: what the program imports lazily stays so, by the statement and by -X lazy_imports=all."""
    script(tmp_path / "s.py", """
        import sys
        lazy import json
        lazy from textwrap import dedent
        import email
        print(sorted(sys.lazy_modules), *("_json" in sys.modules for _ in [0]), sys.path[1:], json.dumps([1]), dedent(" x"))
        """)
    for option in ("normal", "all"):
        words = ["-X", f"lazy_imports={option}", "s.py"]
        alone = subprocess.run([PYTHONS[0], *words], capture_output=True, text=True, cwd=tmp_path)
        done = run("--force", "-o", "t.db", PYTHONS[0], *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, alone.stdout, alone.stderr) and "json" in alone.stdout
        assert calls(holds(tmp_path / "t.db"), "dumps") == 1


@pytest.mark.skipif(not UNSUPPORTED, reason="no such interpreter here")
def test_an_unsupported_interpreter_in_development_mode_gets_no_warning(run, tmp_path):
    """In this mode CPython warns of files that were left open."""
    script(tmp_path / "via", f"#!/bin/sh\n'{UNSUPPORTED[0]}' -X dev -c 'print(1)'\n", 0o755)
    done = run("./via")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_our_sitecustomize_does_nothing_outside_a_session(tmp_path):
    """The source tree's python/ is on PYTHONPATH: nothing happens, and no file is left."""
    (tmp_path / "python").mkdir()
    script(tmp_path / "python/sitecustomize.py", (ROOT / "python/sitecustomize.py").read_text())
    done = subprocess.run([PYTHONS[0], "-B", "-c", "print(1)"], capture_output=True, text=True, cwd=tmp_path,
                          env=os.environ | {"PYTHONPATH": str(tmp_path / "python")})
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert [p.name for p in tmp_path.iterdir()] == ["python"]


# ---- choosing ----

CHOICE = """
    import json, textwrap, lib
    class Kept:
        def method(self): return lib.helper()
    def dropped(): return Kept().method()
    def deep(n): return deep(n - 1) if n else 0
    json.dumps({'a': [1]}, indent=1)
    textwrap.dedent('x')
    for _ in range(3): dropped()
    deep(20)
    eval('dropped()')
    """


@pytest.fixture
def choice(tmp_path):
    script(tmp_path / "lib.py", "def helper(): return 1")
    return script(tmp_path / "choice.py", CHOICE)


def names(trace, where="1"):
    return {name for name, in trace.rows(f"SELECT DISTINCT qualname FROM frames WHERE {where}")}


def test_frames_user_records_the_programs_own_frames(record, python, choice):
    trace = holds(record([choice], "--frames", "user", python=python))
    assert {"Kept.method", "dropped", "deep", "helper", "<module>"} <= names(trace)
    files = {f for f, in trace.rows("SELECT filename FROM code")}
    assert files == {str(choice), str(choice.parent / "lib.py"), "<string>"}
    assert trace.rows("SELECT DISTINCT mode FROM process") == [("user",)]


def test_frames_none_records_no_frame(record, python, choice):
    trace = holds(record([choice], "--frames", "none", python=python))
    assert trace.rows("SELECT count(*) FROM frame") == [(0,)]
    assert trace.rows("SELECT exit_code, mode FROM process") == [(0, "none")]
    assert trace.err == ""


def test_include_and_exclude_choose_frames(record, choice):
    def chosen(*options):
        return names(holds(record([choice], *options)))
    assert chosen("--include", "*.method") >= {"Kept.method"}
    assert not chosen("--include", "*.method") & {"dropped", "deep", "helper"}
    assert chosen("--include", "*/lib.py") == {"<module>", "helper"}
    assert chosen("--include", "*/lib.py", "--include", "drop*", "--exclude", "<module>") == {"helper", "dropped"}
    assert chosen("--frames", "user", "--exclude", "*choice.py") == {"<module>", "helper"}
    assert chosen("--frames", "user", "--include", "d*", "--exclude", "deep") == {"dropped"}
    assert chosen("--include", "no such thing") == set()


def test_the_parent_is_the_nearest_recorded_frame(record, python, choice):
    """A frame's parent is the nearest recorded one around it."""
    trace = holds(record([choice], "--include", "helper", "--include", "dropped", python=python))
    assert trace.rows("SELECT f.qualname, p.qualname, count(*) FROM frames f LEFT JOIN frames p ON p.frame_id = f.parent_id "
                      "GROUP BY 1, 2 ORDER BY 1") == [("dropped", None, 4), ("helper", "dropped", 4)]


def test_max_depth_leaves_out_deeper_frames(record, python, choice):
    for depth in (1, 3):
        trace = holds(record([choice], "--max-depth", depth, python=python))
        assert trace.rows("""WITH RECURSIVE level(id, n) AS (
            SELECT frame_id, 1 FROM frame WHERE parent_id IS NULL
            UNION ALL SELECT frame_id, n + 1 FROM frame JOIN level ON parent_id = id) SELECT max(n) FROM level""") == [(depth,)]
    # main's module is at depth 1, so deep() is entered twice below it.
    assert calls(trace, "deep") == 2


def test_min_duration_leaves_out_short_frames_and_counts_them(record, python):
    """Short frames are not stored, but counted."""
    program = "import time\ndef short(): pass\ndef long(): time.sleep(.03); short()\nfor _ in range(100): short()\nlong()"
    trace = holds(record(["-c", program], "--min-duration", "20ms", python=python))
    assert (calls(trace, "short"), calls(trace, "long")) == (0, 1)
    assert trace.rows("SELECT qualname, calls FROM hot_functions WHERE qualname IN ('short', 'long') ORDER BY 2") == [
        ("long", 1), ("short", 101)]
    assert trace.rows("SELECT count(*) FROM frame WHERE end_ns - start_ns < 20000000") == [(0,)]


# ---- frames ----

@pytest.mark.newest_too
def test_every_kind_of_frame_is_recorded(record, python):
    trace = holds(record([PROGRAMS / "run_everything.py"], python=python, status=7))
    counts = collections.Counter()
    for name, kind, how, exit, n in trace.rows(
            "SELECT qualname, code_kind, kind, exit, count(*) FROM frames WHERE filename LIKE '%run_everything.py' OR filename = '<made>' "
            "GROUP BY 1, 2, 3, 4"):
        counts[name, kind, how, exit] = n
    inlined = tuple(map(int, version_of(python).split("."))) >= (3, 12)  # comprehensions have no frames
    expected = {
        ("<module>", "module", "call", "raise"): 1,  # sys.exit
        ("<module>", "module", "call", "return"): 1,  # <made>
        ("main", "function", "call", "return"): 1,
        ("plain", "function", "call", "return"): 3,
        ("raises", "function", "call", "raise"): 1,
        ("passes_on", "function", "call", "raise"): 1,
        # made twice; next, next, next on the first, next on the second; throw and close
        ("generator", "generator", "call", "return"): 2,
        ("generator", "generator", "resume", "yield"): 3,
        ("generator", "generator", "resume", "return"): 1,
        ("generator", "generator", "throw", "yield"): 1,
        ("generator", "generator", "throw", "raise"): 1,
        ("delegating", "generator", "call", "return"): 1,
        ("delegating", "generator", "resume", "yield"): 2,
        ("delegating", "generator", "resume", "return"): 1,
        ("inner", "generator", "call", "return"): 1,
        ("inner", "generator", "resume", "yield"): 2,
        ("inner", "generator", "resume", "return"): 1,
        ("consume", "coroutine", "call", "return"): 1,
        ("consume", "coroutine", "resume", "yield"): 2,
        ("consume", "coroutine", "resume", "return"): 1,
        ("coroutine", "coroutine", "call", "return"): 1,
        ("coroutine", "coroutine", "resume", "yield"): 1,
        ("coroutine", "coroutine", "resume", "return"): 1,
        ("awaited", "coroutine", "call", "return"): 1,
        ("awaited", "coroutine", "resume", "return"): 1,
        ("async_generator", "async_generator", "call", "return"): 1,
        ("async_generator", "async_generator", "resume", "yield"): 3,
        ("async_generator", "async_generator", "resume", "return"): 1,
        ("Body", "class", "call", "return"): 1,
        ("Body.Nested", "class", "call", "return"): 1,
        ("Body.__init__", "function", "call", "return"): 50,
        ("Body.method", "function", "call", "return"): 50,
        ("Body.method.<locals>.<lambda>", "lambda", "call", "return"): 50,
        ("comprehensions", "function", "call", "return"): 1,
        ("recursive", "function", "call", "return"): 10,
        ("in_thread", "function", "call", "return"): 1,
    }
    seen = {key: n for key, n in counts.items() if "comp>" not in key[0] and "genexpr" not in key[0]}
    assert seen == expected
    comprehensions = collections.Counter()
    for key, n in counts.items():
        if "comp>" in key[0]:
            comprehensions[key[0]] += n
    assert {key[1] for key in counts if "comp>" in key[0] and key[0] != "consume.<locals>.<listcomp>"} <= {"comprehension"}
    assert comprehensions == ({"Body.Nested.<listcomp>": 1} if inlined and "Body.Nested.<listcomp>" in comprehensions else
                              {} if inlined else {
                                  "Body.Nested.<listcomp>": 1, "comprehensions.<locals>.<listcomp>": 1,
                                  "comprehensions.<locals>.<setcomp>": 1, "comprehensions.<locals>.<dictcomp>": 1,
                                  "consume.<locals>.<listcomp>": 3})  # asynchronous: made, yields, returns
    generator_expression = {key[1:]: n for key, n in counts.items() if key[0] == "comprehensions.<locals>.<genexpr>"}
    assert generator_expression[next(iter(generator_expression))[0], "resume", "yield"] == 3
    # Who called whom.
    parents = {}
    for child, parent in trace.rows("SELECT DISTINCT f.qualname, p.qualname FROM frames f JOIN frames p ON p.frame_id = f.parent_id"):
        parents.setdefault(child, set()).add(parent)
    assert parents["raises"] == {"passes_on"}
    assert parents["inner"] == {"delegating"}
    assert parents["awaited"] == {"coroutine"}
    assert parents["recursive"] == {"main", "recursive"}
    assert parents["Body.Nested"] == {"Body"}
    assert parents["plain"] == {"main", "in_thread", "<module>"}
    assert trace.rows("SELECT DISTINCT thread FROM frames WHERE qualname = 'in_thread'") == [("the worker",)]
    assert trace.rows("SELECT DISTINCT thread FROM frames WHERE qualname = 'main'") == [("MainThread",)]
    assert trace.rows("SELECT exit_code, exit_signal FROM process") == [(7, None)]
    assert trace.rows("SELECT count(*) FROM loss") == [(0,)]


def test_code_objects_have_the_lines_files_and_kinds_of_python(record, python):
    """The expected values come from Python itself."""
    program = "import sys\ndef f():\n    pass\nf()\nprint(f.__code__.co_firstlineno, f.__code__.co_filename)"
    trace = holds(record(["-c", program], python=python))
    assert trace.rows("SELECT first_line || ' ' || filename FROM code WHERE qualname = 'f'") == [(trace.out.strip(),)]


def test_odd_function_names_are_recorded(record, python):
    trace = holds(record([PROGRAMS / "run_names.py"], python=python))
    assert trace.out == "1\n"
    found = {name for name, in trace.rows("SELECT qualname FROM code")}
    assert {"red \x1b[31m\r\n\x07 bell", "\N{SNOWMAN} and \U0001f600", ""} <= found
    assert any(name.startswith("lone ") and "dc80" in name for name in found)
    assert any(name.startswith("nul ") for name in found)
    assert any(name.startswith("M" * 1000) for name in found)
    assert any(name.startswith("\N{SNOWMAN}" * 1000) for name in found)
    assert calls(trace, "in a thread") == 5
    threads = {name for name, in trace.rows("SELECT name FROM thread")}
    assert {"\x1b[2J", "MainThread"} <= threads
    assert any((name or "").startswith("x" + "\N{SNOWMAN}" * 50) for name in threads)
    assert any(name.startswith("lone ") for name in threads if name)
    # And every command can show it without sending escapes to a terminal.
    for words in (["report", trace.path], ["sql", trace.path, "SELECT qualname FROM code ORDER BY 1 LIMIT 30"]):
        done = subprocess.run([command_path(), *words], capture_output=True, text=True, errors="surrogateescape")
        assert done.returncode == 0 and "\x1b" not in done.stdout + done.stderr


def test_arguments_that_are_not_utf8_are_recorded(dyntrace, tmp_path):
    """Every SQLite client must be able to read the stored text of the arguments."""
    done = subprocess.run([dyntrace.encode(), b"run", b"-o", str(tmp_path / "t.db").encode(), b"--python", PYTHONS[0].encode(), b"-c",
                           b"import sys, os; print(os.fsencode(sys.argv[1]))", b"a\xffb\x1b\"\\\n\x7f"], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == repr(b"a\xffb\x1b\"\\\n\x7f").encode() + b"\n"
    trace = holds(tmp_path / "t.db")
    for sql in ("SELECT argv FROM process", "SELECT value FROM meta WHERE key = 'command'"):
        last = json.loads(query(trace, sql)[0][0])[-1]
        assert last[0] == "a" and last.endswith("b\x1b\"\\\n\x7f")


# ---- threads ----

def test_short_threads_reuse_rings(record, python):
    program = """if True:
        import threading
        def work(n):
            for _ in range(n): leaf()
        def leaf(): pass
        for n in range(200):
            t = threading.Thread(target=work, args=(n,), name='short %d' % n)
            t.start(); t.join()
        """
    trace = holds(record(["-c", program], python=python))
    assert trace.rows("SELECT count(*) FROM loss") == [(0,)]
    got = dict(trace.rows("SELECT thread, count(*) FROM frames WHERE qualname = 'leaf' GROUP BY thread_id"))
    assert got == {f"short {n}": n for n in range(1, 200)}
    assert trace.rows("SELECT count(*) FROM thread") == [(201,)]
    assert trace.rows("SELECT count(*) FROM thread WHERE os_tid > 0") == [(201,)]


def test_300_threads_at_once_are_recorded(record, python):
    program = """if True:
        import threading
        barrier = threading.Barrier(300)
        def leaf(): pass
        def work():
            leaf(); barrier.wait()
            for _ in range(100): leaf()
            barrier.wait()
        threads = [threading.Thread(target=work) for _ in range(300)]
        for t in threads: t.start()
        for t in threads: t.join()
        """
    trace = holds(record(["-c", program], python=python))
    assert trace.rows("SELECT cause FROM losses WHERE NOT is_stall") == []
    assert trace.rows("SELECT count(*), min(n), max(n) FROM (SELECT count(*) AS n FROM frames WHERE qualname = 'leaf' "
                      "GROUP BY thread_id)") == [(300, 101, 101)]


def test_a_thread_that_never_ends_is_recorded(record, python):
    program = """if True:
        import threading, time, os
        def forever():
            ready.set()
            while True: time.sleep(.01)
        ready = threading.Event()
        threading.Thread(target=forever, daemon=True, name='daemon').start()
        ready.wait()
        """
    trace = holds(record(["-c", program], python=python))
    assert trace.rows("SELECT thread, end_ns, exit FROM frames WHERE qualname = 'forever'") == [("daemon", None, None)]


# ---- ends ----

ENDS = {
    "return": ("pass", 0, None, "return"),
    "exit 0": ("import sys; sys.exit()", 0, None, "raise"),
    "exit 42": ("import sys; sys.exit(42)", 42, None, "raise"),
    "exit text": ("import sys; sys.exit('bye')", 1, None, "raise"),
    "exit -1": ("import sys; sys.exit(-1)", 255, None, "raise"),
    "exception": ("1/0", 1, None, "raise"),
    "_exit": ("import os; os._exit(9)", 9, None, None),
    "kill": ("import os; os.kill(os.getpid(), 9)", 137, 9, None),
    "term": ("import os; os.kill(os.getpid(), 15)", 143, 15, None),
    "segv": ("import ctypes; ctypes.string_at(0)", 139, 11, None),
    "abort": ("import os; os.abort()", 134, 6, None),
}


@pytest.mark.parametrize("how", ENDS)
def test_run_ends_with_the_programs_status_and_records_it(record, how):
    code, status, number, exit = ENDS[how]
    program = f"def done(): pass\ndef last():\n    done()\n    {code}\ndef outer():\n    last()\nfor _ in range(10): done()\nouter()"
    trace = holds(record(["-c", program], status=status))
    assert trace.rows("SELECT exit_code, exit_signal FROM process") == [(None, number) if number else (status, None)]
    assert calls(trace, "done") == 11
    rows = trace.rows("SELECT qualname, exit, end_ns IS NULL FROM frames WHERE qualname IN ('last', 'outer') ORDER BY frame_id")
    assert rows == [("outer", exit, exit is None), ("last", exit, exit is None)]
    assert trace.rows("SELECT count(*) FROM process WHERE end_ns IS NULL") == [(0,)]
    assert trace.rows("SELECT count(*) FROM frame WHERE end_ns IS NULL")[0][0] == int(
        trace.rows("SELECT value FROM meta WHERE key = 'open_frame_count'")[0][0])


def test_ends_of_children_are_in_the_trace(record, python):
    """The exit status is stored if the kernel reports it (Linux 6.15). Otherwise it is NULL, never a guess."""
    program = """if True:
        import os, time
        def end(how):
            time.sleep(.05)
            if how < 0: os.kill(os.getpid(), -how)
            os._exit(how)
        for how in (0, 5, -9, -15, -11):
            pid = os.fork()
            if pid == 0: end(how)
            os.waitpid(pid, 0)
        """
    trace = holds(record(["-c", program], python=python))
    rows = trace.rows("SELECT exit_code, exit_signal FROM process WHERE parent_process_id IS NOT NULL ORDER BY start_ns")
    kernel = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in os.uname().release.split(".")[:2])
    assert len(rows) == 5
    wanted = [(0, None), (5, None), (None, 9), (None, 15), (None, 11)]
    assert all(row in (want, (None, None)) for row, want in zip(rows, wanted))
    assert kernel < (6, 15) or set(rows) & set(wanted)
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = 'end' AND end_ns IS NULL") == [(5,)]
    assert trace.rows("SELECT count(*) FROM process WHERE end_ns IS NULL") == [(0,)]


def test_a_script_whose_interpreter_does_not_exist_is_reported(run, tmp_path):
    """The kernel finds no interpreter for the script."""
    script(tmp_path / "broken", "#!/no/such/interpreter\n", 0o755)
    done = run("-o", "t.db", "./broken")
    one_line(done, "broken", status=126)
    assert not (tmp_path / "t.db").exists()


# ---- processes ----

KINDS = ["fork", "execv", "execve", "execvp", "execve_bytes", "popen_none", "popen_empty", "popen_copy", "popen_path",
         "popen_shell", "popen_putenv", "popen_preexec", "system", "posix_spawn", "posix_spawn_empty", "spawnv",
         "grandchild"]


def markers(trace):
    """{process_id: (parent_process_id, {its marker functions})}"""
    found = {p: (parent, set()) for p, parent in trace.rows("SELECT process_id, parent_process_id FROM process")}
    for p, name in trace.rows("SELECT DISTINCT process_id, qualname FROM frames WHERE qualname GLOB 'child_*' OR qualname = 'grand_fork'"):
        found[p][1].add(name)
    return found


def lineage(found, process):
    while process is not None:
        yield process
        process = found[process][0]


@pytest.mark.newest_too
@pytest.mark.no_sanitizer
def test_each_child_is_a_process_with_its_parent(record, python):
    """The ancestors of each process lead to the one row that has no parent."""
    trace = holds(record([PROGRAMS / "run_processes.py", *KINDS], python=python))
    assert trace.err == ""
    found = markers(trace)
    roots = [p for p, (parent, _) in found.items() if parent is None]
    assert len(roots) == 1
    for kind in KINDS:
        processes = [p for p, (_, names) in found.items() if f"child_{kind}" in names]
        assert len(processes) == (2 if kind == "popen_putenv" else 1), kind
        for p in processes:
            assert roots[0] in lineage(found, p) and p != roots[0], kind
    # fork then exec: three rows, one pid twice.
    image = next(p for p, (_, names) in found.items() if "child_execv" in names)
    before = found[image][0]
    pids = dict(trace.rows("SELECT process_id, pid FROM process"))
    assert pids[image] == pids[before] and found[before][0] == roots[0]
    # The fork inside the exec'ed grandchild has it as its parent.
    grand = next(p for p, (_, names) in found.items() if "grand_fork" in names)
    assert found[found[grand][0]][1] == {"child_grandchild"}
    assert trace.rows("SELECT count(*) FROM process WHERE end_ns IS NULL OR python_version IS NULL") == [(0,)]
    assert trace.rows("SELECT count(*) FROM loss") == [(0,)]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_process_pools_of_each_start_method_are_recorded(record, python, method):
    trace = holds(record([PROGRAMS / "run_processes.py", f"pool_{method}"], python=python))
    assert calls(trace, f"child_pool_{method}") == 4
    found = markers(trace)
    roots = [p for p, (parent, _) in found.items() if parent is None]
    assert len(roots) == 1
    assert all(roots[0] in lineage(found, p) for p in found)
    assert trace.rows("SELECT cause FROM losses WHERE NOT is_stall") == []


def test_a_program_that_calls_exec_keeps_its_pid_in_the_trace(record, python):
    """The command replaces itself by another program. The recorded status is that of the new program."""
    program = "import os, sys\ndef first(): pass\nfirst()\nos.execv(sys.executable, [sys.executable, '-c', 'def second(): pass\\nsecond(); raise SystemExit(8)'])"
    trace = holds(record(["-c", program], python=python, status=8))
    rows = trace.rows("SELECT process_id, pid, parent_process_id, exit_code FROM process ORDER BY process_id")
    assert len(rows) == 2 and rows[0][1] == rows[1][1] and rows[1][2] == rows[0][0]
    assert rows[1][3] == 8 and rows[0][3] is None
    assert calls(trace, "first") == calls(trace, "second") == 1
    assert trace.rows("SELECT count(*) FROM frames WHERE qualname = '<module>' AND end_ns IS NULL") == [(1,)]


@pytest.mark.newest_too
def test_open_frames_are_inherited_by_a_fork(record, python):
    program = """if True:
        import os
        def child(): pass
        def inner():
            pid = os.fork()
            if pid == 0:
                child(); return 0
            os.waitpid(pid, 0)
            return pid
        def outer(): return inner()
        outer()
        """
    trace = holds(record(["-c", program], python=python))
    parent, forked = [p for p, in trace.rows("SELECT process_id FROM process ORDER BY process_id")]
    rows = trace.rows("SELECT f.qualname, f.kind, p.qualname, f.exit FROM frames f LEFT JOIN frames p ON p.frame_id = f.parent_id "
                      "WHERE f.process_id = ? AND f.qualname IN ('outer', 'inner', 'child', '<module>') ORDER BY f.frame_id", forked)
    assert rows[:4] == [("<module>", "inherited", None, "return"), ("outer", "inherited", "<module>", "return"),
                        ("inner", "inherited", "outer", "return"), ("child", "call", "inner", "return")]
    assert trace.rows("SELECT count(*) FROM frame WHERE end_ns IS NULL") == [(0,)]


def test_a_fork_in_c_code_that_released_the_gil_is_recorded(record, python):
    trace = holds(record(["-c", """if True:
        import ctypes, os, threading
        def child(): pass
        def go(libc):
            pid = libc.fork()
            if pid == 0:
                child()
                os._exit(3)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        go(ctypes.PyDLL(None))
        go(ctypes.CDLL(None))  # without the GIL
        """], python=python))
    assert trace.rows("SELECT COUNT(DISTINCT process_id), COUNT(*) FROM frames WHERE qualname = 'child'") == [(2, 2)]


FORKS = """
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int over;
static pthread_t thread[4];
static void *loop(void *nothing)
{
    while (!over) {
        pid_t child = fork();
        if (!child)
            _exit(0);
        waitpid(child, 0, 0);
    }
    return nothing;
}
void begin(void) { for (int i = 0; i < 4; i++) pthread_create(&thread[i], 0, loop, 0); }
void end(void) { over = 1; for (int i = 0; i < 4; i++) pthread_join(thread[i], 0); }
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs cc")
def test_forks_of_several_threads_at_once_are_told_apart(record, python, tmp_path):
    """Four threads of C code fork while the main thread forks, too: each child writes into its own file."""
    (tmp_path / "forks.c").write_text(FORKS)
    subprocess.run(["cc", "-shared", "-fPIC", "-pthread", "-o", tmp_path / "forks.so", tmp_path / "forks.c"], check=True)
    trace = holds(record(["-c", """if True:
        import ctypes, os, sys
        import warnings
        warnings.simplefilter("ignore")  # of a fork beside other threads
        forks = ctypes.CDLL(sys.argv[1])
        def child(): pass
        forks.begin()
        for _ in range(100):
            pid = os.fork()
            if pid == 0:
                child()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        forks.end()
        """, tmp_path / "forks.so"], python=python))
    assert trace.rows("SELECT COUNT(DISTINCT process_id), COUNT(*) FROM frames WHERE qualname = 'child'") == [(100, 100)]
    assert trace.rows("SELECT cause FROM loss") == []


def test_the_shared_memory_of_a_fork_that_runs_long_grows(record, python):
    """A fork's ring and its file of names begin with a few pages. 400,000 frames of 2,000 functions need more of both."""
    program = """if True:
        import os
        def child():
            scope = {}
            for n in range(2000):
                exec(f"def function_{n}_{'x' * 80}(): pass", scope)
            functions = [scope[name] for name in scope if name.startswith("function_")]
            for function in functions:
                for _ in range(200):
                    function()
        if os.fork() == 0:
            child()
            os._exit(0)
        os.wait()
        """
    trace = holds(record(["-c", program], python=python))
    assert trace.rows("SELECT count(*), min(n), max(n) FROM (SELECT count(*) AS n FROM frames WHERE qualname LIKE 'function\\_%' ESCAPE '\\' "
                      "GROUP BY qualname)") == [(2000, 200, 200)]
    assert trace.rows("SELECT cause FROM losses WHERE NOT is_stall") == []


def test_a_hundred_short_children_have_one_row_and_their_own_frames_each(record, python):
    """A hundred children one after the other, over several commits. Each has one row, its parent and its own frames."""
    program = """if True:
        import os, time
        def leaf(): pass
        def child(): leaf()
        for _ in range(100):
            if os.fork() == 0:
                if os.fork() == 0:
                    child()
                    os._exit(0)
                os.wait()
                os._exit(0)
            os.wait()
            time.sleep(0.01)
        """
    trace = holds(record(["-c", program], python=python))
    assert trace.rows("SELECT count(*), count(parent_process_id), count(end_ns) FROM process") == [(201, 200, 201)]
    assert trace.rows("SELECT generation, count(*) FROM (SELECT (p.parent_process_id != 1) + (p.process_id != 1) AS generation FROM process p) "
                      "WHERE generation GROUP BY 1") == [(1, 100), (2, 100)]
    assert trace.rows("SELECT count(*), count(DISTINCT process_id) FROM frames WHERE qualname = 'leaf'") == [(100, 100)]
    assert trace.rows("SELECT cause FROM losses WHERE NOT is_stall") == []


def test_a_child_that_outlives_the_command_is_recorded(record, python):
    """The child is recorded until it ends."""
    program = """if True:
        import os, time
        def late(): pass
        if os.fork() == 0:
            for _ in range(30):
                time.sleep(.05); late()
            os._exit(4)
        """
    trace = holds(record(["-c", program], python=python, stdin=subprocess.DEVNULL))
    assert calls(trace, "late") == 30
    assert trace.rows("SELECT count(*) FROM process WHERE end_ns IS NULL") == [(0,)]
    assert "outlived" in trace.err and len(trace.err.splitlines()) == 1
    assert trace.rows("SELECT count(*) FROM loss") == [(0,)]


def test_arguments_with_broken_utf8_are_recorded(record, dyntrace, python):
    """The first bits of a truncated UTF-8 sequence are those of a line end, a quote or a backslash."""
    words = [b"\xea\x1da", b"\xe9=", b"\xe0\xa2x", b"\xe1\x9c\x22", b"\xf0\x80\x9c", b"\xe0\xa2"]
    trace = holds(record(["-c", "pass", *map(os.fsdecode, words)], python=python, timeout=120))
    told = [os.fsencode(word) for word in json.loads(trace.rows("SELECT argv FROM process")[0][0])[3:]]
    assert told == words
    for command in ["report"], ["report", "--json"], ["sql", "SELECT argv FROM process"], ["export", "--format", "jsonl", "-o", "-"]:
        subprocess.run([dyntrace, command[0], trace.path, *command[1:]], capture_output=True, check=True, timeout=120)


def test_an_interpreter_with_a_version_in_its_name_is_not_started_to_ask_it(record, python, tmp_path):
    """If there is an extension for this version, the interpreter is not started to ask for it. If the name is wrong, only
    the recording is lost."""
    version = version_of(python)
    log, honest, liar = tmp_path / "log", tmp_path / "python3", tmp_path / "bin" / f"python{version}"
    liar.parent.mkdir()
    for place, command in (honest, python), (liar, "echo"):
        place.write_text(f'#!/bin/sh\necho started >> {log}\nexec {command} "$@"\n')
        place.chmod(0o755)
    assert record(["-c", "print(5)"], python=honest).out == "5\n" and log.read_text() == "started\n" * 2  # asked first
    log.unlink()
    lied = record(["-c", "print(5)"], python=liar)
    assert (lied.out, log.read_text()) == ("-c print(5)\n", "started\n")
    assert "nothing was recorded" in lied.err and len(lied.err.splitlines()) == 1


@pytest.fixture(scope="module")
def slow_to_start(tmp_path_factory):
    """A library whose child handler of fork() comes before ours and takes its time, as a busy machine does."""
    where = tmp_path_factory.mktemp("slow")
    source = where / "slow.c"
    source.write_text("#include <pthread.h>\n#include <unistd.h>\nstatic void late(void) { usleep(300000); }\n"
                      "__attribute__((constructor)) static void begin(void) { pthread_atfork(0, 0, late); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", where / "slow.so", source], check=True)
    return str(where / "slow.so")


@pytest.mark.no_sanitizer
@pytest.mark.parametrize("generations", [1, 3])
def test_a_child_started_after_the_command_ended_is_recorded(record, python, slow_to_start, generations):
    """`run` waits for this child, and for its forks."""
    program = f"""if True:
        import os
        def late(): pass
        for _ in range({generations}):
            if os.fork():
                os._exit(0)
        late()
        """
    trace = holds(record(["-c", program], python=python, stdin=subprocess.DEVNULL, env={**os.environ, "LD_PRELOAD": slow_to_start}))
    assert calls(trace, "late") == 1
    assert trace.rows("SELECT count(*) FROM process") == [(generations + 1,)]
    assert trace.rows("SELECT count(*) FROM loss") == [(0,)]


def test_run_does_not_wait_long_for_forks_that_failed(record, python):
    program = """if True:
        import ctypes, os, resource
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        ctypes.CDLL(None).setresuid(65534, 65534, 65534)
        try:
            os.fork()
        except OSError:
            print("no child")
        """
    trace = holds(record(["-c", program], python=python))
    assert trace.out == "no child\n"
    assert trace.rows("SELECT count(*) FROM process") == [(1,)]


def started_pids(trace):
    return [pid for pid, in trace.rows("SELECT pid FROM process WHERE end_ns IS NULL")]


@pytest.mark.parametrize("detach", ["os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0)", "pass"],
                         ids=["daemon", "idle orphan"])
def test_a_sleeping_child_does_not_hang_run(record, detach):
    program = f"""if True:
        import os, time
        def sleeper():
            os.write(begun, b"1")
            time.sleep(120)
        wait, begun = os.pipe()
        if os.fork() == 0:
            {detach}
            null = os.open(os.devnull, os.O_RDWR)
            for fd in range(3): os.dup2(null, fd)
            sleeper()
            os._exit(0)
        os.read(wait, 1)
        """
    trace = record(["-c", program], timeout=60)
    pids = started_pids(trace)
    try:
        holds(trace)
        assert len(pids) == 1
        assert trace.rows("SELECT count(*) FROM loss WHERE cause LIKE '%still running%'") == [(1,)]
        assert trace.rows("SELECT exit_code, exit_signal FROM process WHERE end_ns IS NULL") == [(None, None)]
        os.kill(pids[0], 0)  # it lives
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def test_a_child_that_is_no_longer_recorded_runs_on(record, tmp_path):
    """After its recording has ended, the child works as usual."""
    program = f"""if True:
        import os, time, threading, subprocess, sys
        def busy(): return sum(range(10))
        if os.fork() == 0:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for fd in range(3): os.dup2(null, fd)
            while not os.path.exists('go'): time.sleep(.01)
            for _ in range(300000): busy()
            t = threading.Thread(target=busy); t.start(); t.join()
            out = subprocess.run([sys.executable, '-c', 'print(5)'], capture_output=True, text=True)
            pid = os.fork()
            if pid == 0:
                busy(); os._exit(0)
            status = os.waitpid(pid, 0)[1]
            open('said.part', 'w').write(repr((out.stdout, out.stderr, out.returncode, status)))
            os.rename('said.part', 'said')
            os._exit(0)
        """
    trace = holds(record(["-c", program]))
    (tmp_path / "go").touch()
    for _ in range(1000):
        if (tmp_path / "said").exists():
            break
        time.sleep(0.02)
    assert (tmp_path / "said").read_text() == repr(("5\n", "", 0, 0))


def test_an_interrupt_ends_the_wait_for_remaining_children(dyntrace, tmp_path):
    """The trace has everything that was recorded before the interrupt."""
    program = """if True:
        import os, time
        def beat(): time.sleep(.005)
        if os.fork() == 0:
            while True: beat()
        """
    child = subprocess.Popen([dyntrace, "run", "--python", PYTHONS[0], "-o", tmp_path / "t.db", "-c", program],
                             stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True)
    assert "outlived" in child.stderr.readline()
    child.send_signal(signal.SIGINT)
    try:
        assert child.wait(30) == 0
        trace = holds(tmp_path / "t.db")
        assert calls(trace, "beat") > 10
        assert query(trace, "SELECT count(*) FROM loss WHERE cause LIKE '%still running%'") == [(1,)]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.stderr.close()


# ---- while it records ----

def test_a_trace_can_be_read_while_it_is_recorded(dyntrace, tmp_path):
    program = "def early(): pass\nfor _ in range(1234): early()\nprint('go', flush=True); input()\nfor _ in range(10): early()"
    child = subprocess.Popen([dyntrace, "run", "--python", PYTHONS[0], "-o", tmp_path / "t.db", "-c", program],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "go\n"
    rows = []
    for _ in range(500):
        rows = query(tmp_path / "t.db", "SELECT n.calls, p.pid > 0, c.first_line FROM code_total n JOIN code c USING (code_id) "
                                        "JOIN process p USING (process_id) WHERE qualname = 'early'")
        if rows and rows[0][0] == 1234:
            break
        time.sleep(0.02)
    state = query(tmp_path / "t.db", "SELECT value FROM meta WHERE key = 'state'")
    child.communicate("\n", timeout=120)
    assert rows == [(1234, 1, 1)] and state == [("recording",)]
    trace = holds(tmp_path / "t.db")
    assert calls(trace, "early") == 1244
    assert query(trace, "SELECT value FROM meta WHERE key = 'state'") == [("complete",)]


@pytest.mark.no_sanitizer
def test_a_program_that_changes_directory_or_root_is_recorded(record, tmp_path):
    """The trace is at the given path, whatever the program does to its directory and environment."""
    (tmp_path / "gone").mkdir()
    program = """if True:
        import os, shutil, subprocess, sys
        os.environ.clear()
        os.chdir('/')
        shutil.rmtree(%r)
        def after(): pass
        after()
        for fd in range(3, 256):
            try: os.close(fd)
            except OSError: pass
        subprocess.run([sys.executable, '-c', 'def child(): pass\\nchild()'], check=True)
        """ % str(tmp_path / "gone")
    trace = holds(record(["-c", program], cwd=tmp_path / "gone"))
    assert calls(trace, "after") == calls(trace, "child") == 1


def test_a_small_file_size_limit_ends_only_the_recording(run, tmp_path):
    """The program continues, and the part of the trace that was written is a valid database."""
    program = "def f(): pass\nfor _ in range(2000000): f()\nprint('end')"
    done = run("-o", "t.db", "-c", program, preexec_fn=lambda: __import__("resource").setrlimit(
        __import__("resource").RLIMIT_FSIZE, (20 << 20, 20 << 20)))
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert len(done.stderr.splitlines()) == 1 and "t.db" in done.stderr
    assert query(tmp_path / "t.db", "PRAGMA integrity_check") == [("ok",)]


# ---- children that ignore us ----

def test_children_that_ignore_the_environment_are_recorded_as_losses(run, tmp_path, python):
    """A Python child started with -I, -E or -S, in any way, is a row of loss, and `run` reports it once. A command line
    that only looks like one makes no row."""
    script(tmp_path / "starts.py", """
        import os, subprocess, sys
        py = sys.executable
        os.environ["PATH"] = os.path.dirname(py) + ":" + os.environ["PATH"]
        os.environ["PY"] = py
        subprocess.run([py, "-I", "-c", "1"])
        subprocess.run(["python3", "-sE", "-c", "1"], close_fds=False)
        subprocess.run("\\n A=b exec python3 -W ignore -S -c 'pass; 1' -I; true", shell=True)
        os.system("python3 -bI -c 1 >/dev/null; echo 'x; python3 -I' | cat")
        os.posix_spawn(py, [py, "-IS", "-c", "1"], os.environ); os.wait()
        if not os.fork():
            os.execv(py, [py, "-E", "-c", "1"])
        os.wait()
        # none of these
        subprocess.run([py, "-c", "1", "-I"])
        subprocess.run([py, "-W", "ignore", "-c", "1", "-E"])
        subprocess.run(["grep", "-E", "x", "/dev/null"])
        subprocess.run("false && python3 -I", shell=True)
        subprocess.run("if false; then env -i python3; fi", shell=True)
        os.system("cat >/dev/null <<END\\npython3 -I\\nEND\\n")
        try:
            subprocess.run(["/nowhere/python3", "-I"])
        except FileNotFoundError:
            pass
        """)
    done = run("--force", "starts.py", python=python)
    assert done.returncode == 0 and done.stdout == "x; python3 -I\n", done.stderr
    assert done.stderr.count("\n") == 1 and "is not complete: child: a python" in done.stderr, done.stderr
    causes = query(tmp_path / "starts.db", "SELECT cause, events FROM loss ORDER BY at_ns")
    assert [cause.split(" was started with ")[1][:2] for cause, events in causes if events == 1] == [
        "-I", "-E", "-S", "-I", "-I", "-E"]
    assert query(tmp_path / "starts.db", "SELECT count(*) FROM process")[0][0] == 4


LAUNCHED = """
    import os, subprocess, sys
    py, code = sys.executable, "def leaf(): pass\\nfor i in range(10): leaf()"
    os.environ["PATH"] = os.path.dirname(os.path.abspath(__file__)) + ":" + os.path.dirname(py) + ":" + os.environ["PATH"]
    def go(*words, **more):
        assert subprocess.run(words[0] if more.get("shell") else words, **more).returncode == 0
    """


def losses_of_children(path):
    return [cause for cause, in query(path, "SELECT cause FROM loss WHERE cause LIKE 'child: %' ORDER BY at_ns")]


@pytest.mark.no_sanitizer
def test_scripts_whose_shebang_ignores_the_environment_are_recorded_as_losses(run, tmp_path, python):
    """A started script whose #! line keeps the recorder out is a row of loss. Other scripts are recorded and make no row."""
    first = {"one": f"{python} -I", "two": f"{python} -sE ", "three": f"/usr/bin/env -S {python} -S", "four": f"/usr/bin/env -S -i {python}",
             "plain": python, "late": f"/bin/sh\n#!{python} -I"}
    for name, line in first.items():
        (tmp_path / name).write_text(f"#!{line}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one").symlink_to(tmp_path / "plain")
    os.mkfifo(tmp_path / "fifo", 0o755)
    lost = [("with -I,", 'go("./one")'), ("with -E,", 'go("two")'), ("with -S,", 'go("timeout", "60", here + "/three")'), ("by env,", 'go(here + "/four")'),
            ("with -I,", 'go(here + "/one; true", shell=True)'), ("with -I,", 'os.posix_spawn(here + "/one", ["name"], os.environ); assert os.wait()[1] == 0')]
    kept = ['go(here + "/plain")', 'go("./late")', 'go("./one", cwd="in")', 'go("cd in && ./one", shell=True)', 'go("true", here + "/one")',
            'try:\n        go("./fifo")\n    except OSError:\n        pass']
    script(tmp_path / "p.py", LAUNCHED + "\n    here = os.getcwd()" + "".join(f"\n    {how}" for how in [how for _, how in lost] + kept))
    done = run("--force", "p.py", python=python)
    assert done.returncode == 0, done.stderr
    causes = losses_of_children(tmp_path / "p.db")
    assert len(causes) == len(lost), "\n".join(causes)
    for (word, how), cause in zip(lost, causes):
        assert word in cause, (how, cause)


@pytest.mark.no_sanitizer
def test_children_without_the_environment_are_recorded_as_losses(run, tmp_path, python):
    """A Python that another program starts without the environment is a row of loss. Each of these calls leaf() ten
    times, unrecorded. A Python with the environment is recorded and makes no row."""
    for name in ("sudo", "systemd-run"):
        script(tmp_path / name, """
            #!/bin/sh
            while case "$1" in -*) true;; *) false;; esac; do shift; done
            exec env -i "$@"
            """, 0o755)
    lost = [
        ("by env,", 'go("env", "-i", py, "-c", code)'),
        ("by env,", 'go("env", "-", "A=b", py, "-c", code)'),
        ("by env,", 'go("env", "--ignore-environment", "A=b", "B=c", py, "-c", code)'),
        ("with a PYTHONPATH", 'go("env", "-u", "PYTHONPATH", py, "-c", code)'),
        ("with a PYTHONPATH", 'go("env", "PYTHONPATH=/nowhere", py, "-c", code)'),
        ("by env,", 'go("nohup", "timeout", "-k", "1", "60", "nice", "-n", "1", "env", "-i", "stdbuf", "-oL", py, "-c", code)'),
        ("by env,", 'go("env", "-i", "PATH=" + os.environ["PATH"], "sh", "-ec", "python3 -c \'" + code + "\'")'),
        ("by env,", 'go("env", "-S", "-i " + py + " -c pass")'),
        ("by env,", 'go("nice env -i PATH=$PATH python3 -c \'" + code + "\'", shell=True)'),
        ("with a PYTHONPATH", 'go("A=b PYTHONPATH=/nowhere python3 -c \'" + code + "\'", shell=True)'),
        ("by exec,", 'go("bash", "-c", "exec -c " + py + " -c \'" + code + "\'")'),
        ("by sudo,", 'go("sudo", "-n", py, "-c", code)'),
        ("by systemd-run,", 'go("systemd-run", "--user", py, "-c", code)'),
        ("with -I,", 'go("timeout", "60", py, "-I", "-c", code)'),
        ("by env,", 'assert os.system("env -i " + py + " -c \'" + code + "\'") == 0'),
        ("by env,", 'os.posix_spawn("/usr/bin/env", ["env", "-i", py, "-c", code], {}); assert os.wait()[1] == 0'),
    ]
    kept = ['go(py, "-c", code, env={})', 'go("env", "-u", "B", "A=b", py, "-c", code)', 'go("timeout", "60", "nice", py, "-c", code)',
            'go("PYTHONPATH=/nowhere:$PYTHONPATH exec python3 -c \'" + code + "\'", shell=True)',
            'go("env", "PYTHONPATH=/nowhere", "true")', 'go("sudo", "true")', 'go("env", "-i", "/bin/echo", "-n", "python3")']
    script(tmp_path / "p.py", LAUNCHED + "".join(f"\n    {how}" for _, how in lost) + "".join(f"\n    {how}" for how in kept))
    done = run("--force", "p.py", python=python)
    assert (done.returncode, done.stdout) == (0, "python3"), done.stderr
    causes = losses_of_children(tmp_path / "p.db")
    assert len(causes) == len(lost), "\n".join(causes)
    for (word, how), cause in zip(lost, causes):
        assert word in cause and cause.endswith("would have loaded the recorder: it was not recorded"), (how, cause)
    assert query(tmp_path / "p.db", "SELECT sum(calls) FROM code_total JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(40,)]
    one_line(done, "is not complete: child: a python", status=0)
