"""Nobody gets in: surviving parts of a recording name no place that another user can write, and a session is examined
before it is joined. The other user is uid 65534, so most tests need root. SECURITY.md has the promises."""
import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from crash_help import Work, collector_of, gone, until
from shared import PROGRAMS, PYTHONS, ROOT, calls, environment, holds, query, script

NOBODY = 65534
STATE = PROGRAMS / "run_state.py"
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root and a second user")
unshares = pytest.mark.skipif(os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0,
                              reason="needs a mount namespace of its own, which a chroot cannot have")


def by_nobody(*words, **rest):
    return subprocess.run([str(word) for word in words], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", capture_output=True,
                          text=True, **rest)


@pytest.fixture(scope="module")
def public():
    """A directory of root's that everybody can read."""
    path = Path(tempfile.mkdtemp(prefix="door-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def installed(dyntrace, public):
    """`make install` of what is tested: the program, where everybody can read all of it."""
    build = Path(dyntrace).resolve().parent
    done = subprocess.run(["make", "-s", "install", f"BUILD={os.path.relpath(build, ROOT)}", f"DESTDIR={public}", "PREFIX=/usr",
                           f"PYTHONS={' '.join(PYTHONS)}"], cwd=ROOT, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return public / "usr" / "bin" / "dyntrace"


@pytest.fixture
def for_all(python, public):
    """An interpreter that every user can start: PYTHON, or another one with the same extension if PYTHON's home is
    closed."""
    suffix = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
    wanted = subprocess.run([python, "-c", suffix], capture_output=True, text=True, check=True).stdout
    for candidate in (python, shutil.which(os.path.basename(os.path.realpath(python)), path="/usr/bin:/usr/local/bin")):
        with contextlib.suppress(OSError, TypeError):
            if by_nobody(candidate, "-c", suffix).stdout == wanted:
                return candidate
    pytest.skip("no interpreter of this version that another user can start")


# ---- what a program sees ----

PATHS = {"unset": None, "empty": "", "set": "/nowhere", "colon": ":", "trailing": "/nowhere:"}
WAYS = {
    "env": ["env", "A=b"],
    "exec": ["sh", "-c", 'exec "$0" "$@"'],
    "shell": ["sh", "-c", '"$0" "$@"; exit $?'],
    "setpriv": ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"],
    "unshare": ["unshare", "-m"],
    "other /dev/shm": ["unshare", "-m", "sh", "-c",
                       'mount -t tmpfs none /dev/shm; exec "$0" "$@"'],
    "setsid": ["setsid", "-w"],
}
NEEDS = {"setpriv": [as_root], "unshare": [unshares], "other /dev/shm": [unshares]}


def pairs(firsts, seconds, marks):
    """Each of FIRSTS with each of SECONDS. ./dev test has those with "set", "exec" or "-P"."""
    found = []
    for first in firsts:
        for second in seconds:
            quick = second == "set" or first in ("exec", "-P")
            more = [] if quick else [pytest.mark.slow]
            found.append(pytest.param(first, second, marks=[*marks.get(first, []), *more]))
    return found


@pytest.mark.parametrize("way, paths", pairs(WAYS, PATHS, NEEDS))
@pytest.mark.one_python
def test_a_python_started_by_another_program_sees_the_same_state_as_without_us(installed, for_all, public, tmp_path, way, paths):
    """sys.path, PYTHONPATH and os.environ are those of a run without dyntrace, whoever runs the interpreter, and whether
    or not it can see the session."""
    shutil.copy(STATE, public / "state.py")
    said = [subprocess.run([*before, *WAYS[way], for_all, "-P", public / "state.py"], env=environment(PYTHONPATH=PATHS[paths]), cwd=public,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            for before in ([], [installed, "run", "-o", tmp_path / "t.db", "--"])]
    assert said[0].returncode == 0, said[0].stderr
    alone, recorded = (json.loads(re.sub(r"\b0x[0-9a-f]+", "0x", done.stdout)) for done in said)
    assert recorded == alone
    others = [line for line in said[1].stderr.splitlines() if not line.startswith("dyntrace: ")]
    assert others == said[0].stderr.splitlines()
    holds(tmp_path / "t.db")


@pytest.mark.parametrize(
    "options, paths", pairs(["-P", "-s", "-B", "-X utf8"], ["unset", "empty", "set"], {}))
def test_a_python_with_options_sees_the_same_state_as_without_us(dyntrace, python, tmp_path, options, paths):
    words = [python, *options.split(), STATE]
    alone, recorded = [subprocess.run([*before, *words], capture_output=True, text=True,
                                      cwd=tmp_path, env=environment(PYTHONPATH=PATHS[paths]))
                       for before in ([], [dyntrace, "run", "-o", tmp_path / "t.db"])]
    said = [re.sub(r"\b0x[0-9a-f]+", "0x", text) for text in (alone.stdout, recorded.stdout)]
    assert (said[1], recorded.stderr, recorded.returncode) == (said[0], alone.stderr, alone.returncode)
    holds(tmp_path / "t.db")


def test_a_python_of_a_venv_sees_the_same_state_as_without_us(dyntrace, python, tmp_path):
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    inner = tmp_path / "venv" / "bin" / "python"
    alone, recorded = [subprocess.run([*before, inner, STATE], capture_output=True, text=True, cwd=tmp_path)
                       for before in ([], [dyntrace, "run", "-o", tmp_path / "t.db"])]
    assert (recorded.returncode, recorded.stdout, recorded.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert holds(tmp_path / "t.db")


LOOK = "import os, sys; print(sorted(os.environ.items()), sys.path, sorted(sys.modules))"


@pytest.mark.one_python
@pytest.mark.parametrize("before", ["/x:$PYTHONPATH", "$PYTHONPATH:/x"])
def test_a_shell_that_extends_pythonpath_keeps_its_entry(dyntrace, python, tmp_path, before):
    """A shell that extends PYTHONPATH puts its entry beside ours. Our entry is removed, and the shell's stays."""
    subprocess.run([dyntrace, "run", "-o", tmp_path / "t.db", "--", "sh", "-c", f'PYTHONPATH="{before}" "$0" -c "$1" > out', python,
                    LOOK], env=environment(PYTHONPATH="/y", DYNTRACE=None), cwd=tmp_path, check=True)
    assert "dyntrace" not in (tmp_path / "out").read_text().replace(str(tmp_path), "").replace("_dyntrace", "").replace("'dyntrace'", "")
    assert f"('PYTHONPATH', '{before.replace('$PYTHONPATH', '/y')}')" in (tmp_path / "out").read_text()


@pytest.mark.one_python
@pytest.mark.parametrize("paths", [None, "", "/nowhere"], ids=["unset", "empty", "set"])
def test_a_recorded_program_can_record_others(dyntrace, python, tmp_path, paths):
    """The inner `dyntrace run` records the programs that it starts, and the outer program sees neither recording."""
    words = [dyntrace, "run", "-o", "inner.db", "--python", python, "-c", "def f(): pass\nf()\n" + LOOK]
    alone = subprocess.run([python, "-c", words[-1]], env=environment(PYTHONPATH=paths), cwd=tmp_path, capture_output=True, text=True)
    both_of_them = subprocess.run([dyntrace, "run", "-o", "outer.db", "--python", python, "-c",
                                   f"import subprocess; subprocess.run({list(map(str, words))!r})"],
                                  env=environment(PYTHONPATH=paths), cwd=tmp_path, capture_output=True, text=True)
    assert both_of_them.stdout.replace("'_dyntrace', ", "").replace("'dyntrace', ", "") == alone.stdout
    assert calls(holds(tmp_path / "inner.db"), "f") == 1 and calls(holds(tmp_path / "outer.db"), "f") == 0


@as_root
@pytest.mark.one_python
def test_run_reports_an_installation_that_others_cannot_read(installed, for_all, public, tmp_path):
    """The other user's interpreter cannot read sitecustomize.py: that is the reason, not -I."""
    library = public / "usr" / "lib" / "dyntrace"
    library.chmod(0o700)
    try:
        done = subprocess.run([installed, "run", "-o", tmp_path / "t.db", "--", "setpriv", "--reuid", str(NOBODY), "--clear-groups",
                               for_all, "-c", "print(1)"], capture_output=True, text=True, cwd="/")
    finally:
        library.chmod(0o755)
    assert done.stdout == "1\n" and f"a user who cannot read {library}/inject" in done.stderr, done.stderr


# ---- the installation ----

@pytest.mark.no_sanitizer
def test_an_installed_program_records_children(installed, python, public, tmp_path):
    """After `make install`, `run` records children, and record() finds the program that it needs."""
    library = public / "usr" / "lib" / "dyntrace"
    assert sorted(path.name for path in library.iterdir() if path.suffix != ".so") == ["inject", "python"]
    assert [path.name for path in (library / "inject").iterdir() if path.name != "__pycache__"] == ["sitecustomize.py"]
    code = "import subprocess, sys\ndef f(): pass\nf()\n"
    subprocess.run([installed, "run", "-o", tmp_path / "t.db", "--python", python, "-c",
                    code + f"subprocess.run([sys.executable, '-c', {code!r}], env={{}})"], check=True)
    assert calls(holds(tmp_path / "t.db"), "f") == 2
    subprocess.run([python, "-c", "import dyntrace\nwith dyntrace.record('r.db'):\n  (lambda: 1)()"], check=True, cwd=tmp_path,
                   env=environment(PYTHONPATH=library / "python"))
    assert calls(holds(tmp_path / "r.db"), "<lambda>") == 1


@pytest.mark.one_python
def test_a_program_with_umask_0_makes_none_of_our_files_writable(installed, python, public, tmp_path):
    """A recorded program with umask 0 leaves no bytecode, and no directory for it, that others can write."""
    subprocess.run([installed, "run", "-o", tmp_path / "t.db", "--python", python, "-c",
                    "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import dyntrace; dyntrace.config, dyntrace.record'])"],
                   check=True, umask=0, env=environment(PYTHONDONTWRITEBYTECODE=None))
    library = public / "usr" / "lib" / "dyntrace"
    assert list(library.rglob("*.pyc"))
    for path in [library, *library.rglob("*")]:
        assert not path.stat().st_mode & 0o022, path


@pytest.mark.one_python
def test_an_installation_path_with_a_colon_works(dyntrace, python, tmp_path):
    build = tmp_path / "a:b"
    (build / "lib" / "inject").mkdir(parents=True)
    shutil.copy(dyntrace, build)
    shutil.copy(ROOT / "python" / "sitecustomize.py", build / "lib" / "inject")
    done = subprocess.run([build / "dyntrace", "run", "--frames", "all", "--", "true"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "colon" in done.stderr and len(done.stderr.splitlines()) == 1


# ---- another user makes what a survivor looks for ----

LATER = """
import json, os, subprocess, sys
print(json.dumps([sys.path, sorted(os.environ.items()), sorted(sys.modules)]))
"""

# Leaves a daemon that starts interpreters when the file "go" is there, and ends when all have said what they see.
SHELL_DAEMON = """#!/bin/sh
setsid sh -c 'while [ ! -e go ]; do sleep 0.02; done; "$0" later.py > said.1 2>&1; "$0" -P later.py > said.2 2>&1; : > done' "$1" \
    < /dev/null > /dev/null 2>&1 &
echo $! > pid
while [ ! -e leave ]; do sleep 0.02; done
"""
PYTHON_WAITS = """
import os, subprocess, sys, time
def wait():
    with open("pid", "w") as file:
        print(os.getpid(), file=file)
    while not os.path.exists("go"):
        time.sleep(.02)
    out = lambda n: open("said.%d" % n, "w")
    subprocess.run([sys.executable, "later.py"], stdout=out(1), stderr=subprocess.STDOUT)
    subprocess.run([sys.executable, "later.py"], stdout=out(2), stderr=subprocess.STDOUT, env={})
    subprocess.run([sys.executable, "later.py"], stdout=out(3), stderr=subprocess.STDOUT, env=dict(os.environ, PYTHONPATH="/nowhere"))
    os.system("'%s' later.py > said.4 2>&1" % sys.executable)
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.dup2(os.open("said.5", os.O_WRONLY | os.O_CREAT), 1)
        os.execv(sys.executable, [sys.executable, "later.py"])
    os.waitpid(pid, 0)
    open("done", "w").close()
"""
PYTHON_DAEMON = PYTHON_WAITS + """
if not os.fork():
    os.setsid()
    if not os.fork():
        null = os.open("/dev/null", os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        wait()
    os._exit(0)
os.wait()
while not os.path.exists("leave"):
    time.sleep(.02)
"""


def plant(places, loot, session, link):
    """As the other user: make each of PLACES, or a link of that name, with all that we ever looked for there. What was made."""
    evil = f"import os\nopen('{loot}/%d' % os.getuid(), 'w').close()\n"
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.umask(0)
            made = []
            for at, place in enumerate(places):
                with contextlib.suppress(OSError):
                    path = Path(place)
                    if link and not path.exists():
                        os.makedirs(f"{loot}/links/{at}")
                        path.symlink_to(f"{loot}/links/{at}")
                    for name in ("", "inject", "inject-empty", "inject/__pycache__", "python/dyntrace"):
                        (path / name).mkdir(parents=True, exist_ok=True)
                        for file in ("sitecustomize.py", "usercustomize.py", "_dyntrace.py", "dyntrace.py", "__init__.py", "later.py"):
                            (path / name / file).write_text(evil)
                    (path / "session").write_bytes(session)
                    (path / "collector.lock").write_bytes(b"")
                    os.mkfifo(path / "state")
                    path.chmod(0o700)
                    made.append(place)
            os.write(write, json.dumps(made).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        made = json.loads(file.read())
    os.waitpid(pid, 0)
    return made


def paths_in(environ):
    return {path for variable in environ.split(b"\0") for path in re.split("[:=]", variable.decode(errors="replace"))
            if path.startswith("/")}


def tree(path):
    return {str(name): name.lstat().st_size for name in Path(path).rglob("*")} | {str(path): os.readlink(path) if os.path.islink(path) else 0}


@pytest.mark.sweep(3)
@pytest.mark.no_sanitizer
@as_root
@pytest.mark.one_python
@pytest.mark.parametrize("link", [False, True], ids=["directory", "link"])
@pytest.mark.parametrize("way", ["shell daemon", "python daemon", "recorder killed"])
def test_processes_that_outlive_a_recording_run_no_file_of_another_user(dyntrace, python, tmp_path, public, way, link):
    """Root records a program, and a part of it lives on. Another user makes all files that its environment or memory
    names. None of them is run or joined, and interpreters started later see no trace of us."""
    loot = Path(tempfile.mkdtemp(prefix="door-"))
    loot.chmod(0o777)
    made = []
    script(tmp_path / "later.py", LATER)
    script(tmp_path / "shell", SHELL_DAEMON, 0o755)
    script(tmp_path / "daemon.py", PYTHON_DAEMON)
    script(tmp_path / "waits.py", PYTHON_WAITS + "print('ready', flush=True)\nwait()\n")
    command = {"shell daemon": ["./shell", python], "python daemon": [python, "daemon.py"], "recorder killed": [python, "waits.py"]}[way]
    env = {"PATH": os.environ["PATH"], "HOME": "/root"}
    alone = json.loads(subprocess.run([python, "later.py"], env=env, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    recording = subprocess.Popen([dyntrace, "run", "-o", "t.db", "--", *command], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"), "the program runs")
        pid = int((tmp_path / "pid").read_text())
        session = Path(query(tmp_path / "t.db", "SELECT value FROM meta WHERE key = 'session'")[0][0])
        good = (session / "session").read_bytes()
        (tmp_path / "leave").touch()
        places = {str(session), f"/tmp/{session.name}", f"/dev/shm/{session.name}"}
        if way == "recorder killed":
            collector = collector_of(recording.pid)
            recording.kill()
            os.kill(collector, signal.SIGKILL)
            recording.wait()
            subprocess.run([dyntrace, "run", "-o", "next.db", "--python", python, "-c", "1"], cwd=tmp_path, env=env, check=True,
                           stderr=subprocess.DEVNULL)
        else:
            recording.wait(60)
            assert not session.exists()
        places |= paths_in(Path(f"/proc/{pid}/environ").read_bytes())
        places -= {f"{place}/{rest}" for place in places for rest in ("inject", "inject-empty")}
        made = plant(sorted(places), loot, good, link)
        before = [tree(path) for path in made]
        if way != "recorder killed":
            assert made, "the attack was none"
        (tmp_path / "go").touch()
        until(lambda: (tmp_path / "done").exists(), "the survivor has started its interpreters")
        assert [path.name for path in loot.iterdir() if path.name != "links"] == [], "somebody got in"
        assert [tree(path) for path in made] == before, "a session of somebody else's was joined"
        said = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("said.*")}
        assert said["said.1"][0] == alone[0]
        for name, (paths, environ, modules) in said.items():
            if way != "recorder killed":  # where the session may still be there, and be joined
                assert not {"dyntrace", "_dyntrace"} & set(modules), name
            assert not [value for value in [*paths, *map(str, environ)] if "dyntrace-0-" in value or "/inject" in value], name
    finally:
        (tmp_path / "go").touch()
        (tmp_path / "leave").touch()
        if recording.poll() is None:
            recording.kill()
            recording.wait()
        for path in made:
            shutil.rmtree(path, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.unlink(path)
        shutil.rmtree(loot)


# ---- a session that is none ----

def own(path, uid):
    os.chown(path, uid, uid, follow_symlinks=False)


def make_fifo(place):
    (place / "session").unlink()
    os.mkfifo(place / "session", 0o600)


def places_of_fields():
    """Where each field of struct session_file (src/ring.h) lies; none needs padding."""
    struct_ = re.search(r"^struct session_file \{(.*?)^\};", (ROOT / "src" / "ring.h").read_text(), re.M | re.S)[1]
    places, at = {}, 0
    for type_, names in re.findall(r"^    (?:_Atomic )?(\w+) ([^;]*);", struct_, re.M):
        for name in names.split(", "):
            places[name] = at
            at += 8 if name == "magic[8]" else {"char": 0, "uint32_t": 4, "uint64_t": 8, "int64_t": 8}[type_]
    return places


CLOSED_AT, TEXT_AT = places_of_fields()["closed"], places_of_fields()["text[]"]


WRONG = {
    "directory of another user": lambda place: own(place, NOBODY),
    "file of another user": lambda place: own(place / "session", NOBODY),
    "open to the group": lambda place: place.chmod(0o750),
    "open to all": lambda place: place.chmod(0o777),
    "another name": lambda place: place.rename(place.with_name("session-0-aaaaaa")),
    "a longer name": lambda place: place.rename(place.with_name(place.name + "a")),
    "link to the directory": lambda place: place.rename(place.with_name("real")) and place.symlink_to("real"),
    "link to the file": lambda place: (place / "session").rename(place / "real") and (place / "session").symlink_to("real"),
    "a pipe": make_fifo,
    "empty": lambda place: os.truncate(place / "session", 0),
    "too large": lambda place: os.truncate(place / "session", 1 << 21),
    "a place that all can write": lambda place: place.parent.chmod(0o777),
    "over": lambda place: scribble(place / "session", CLOSED_AT, struct.pack("<I", 1)),
}


def scribble(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.fixture
def left(dyntrace, python, tmp_path, public):
    """left() -> a session directory, a copy of a real one, in a place like /tmp. No collector reads it, but its lock does
    not show that."""
    def left(name="dyntrace-0-aaaaaa"):
        base = Path(tempfile.mkdtemp(dir=public))
        base.chmod(0o1777)
        work = Work(dyntrace, python, tmp_path, 1)
        try:
            (base / name).mkdir(mode=0o700)
            for file in ("session", "collector.lock"):  # not the rings, which are sparse
                shutil.copy(Path(work.session()) / file, base / name)
            os.kill(work.pid, signal.SIGKILL)
            work.wait()
        finally:
            work.end()
        return base / name
    return left


def join(dyntrace, python, place, timeout=60):
    """Start an interpreter that is led to PLACE; the names in PLACE that it made."""
    inject = Path(dyntrace).resolve().parent / "lib" / "inject"
    before = {path for path in place.parent.rglob("*")}
    done = subprocess.run([python, "-c", "import os, sys; print(os.environ.get('PYTHONPATH'), os.environ.get('DYNTRACE_SESSION'),"
                           " [p for p in sys.path if 'inject' in p])"], timeout=timeout,
                          env=environment(PYTHONPATH=inject, DYNTRACE_SESSION=place), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "None None []\n", "")
    return [path.name for path in place.parent.rglob("*") if path not in before]


@pytest.mark.sweep(2)
@pytest.mark.one_python
@pytest.mark.parametrize("wrong", [None, *WRONG])
def test_a_session_is_joined_only_if_it_is_valid(dyntrace, python, left, wrong):
    """A valid session is joined. A session with any fault is ignored silently."""
    if wrong and "user" in wrong and os.getuid():
        pytest.skip("needs root and a second user")
    place = left()
    if wrong:
        WRONG[wrong](place)
    for path in (place, place.with_name("session-0-aaaaaa"), place.with_name(place.name + "a")):
        joined = join(dyntrace, python, path)
        assert bool([name for name in joined if name.endswith(".ring")]) == (not wrong and path == place)
        assert bool(joined) == (not wrong and path == place)


@pytest.mark.one_python
def test_an_invalid_session_path_is_ignored(dyntrace, python, tmp_path):
    for place in ("", "x", "/", "/dev/shm", "/nowhere/dyntrace-0-aaaaaa", "/dev/null", "x" * 5000, "\udcff/dyntrace-0-aaaaaa"):
        inject = Path(dyntrace).resolve().parent / "lib" / "inject"
        done = subprocess.run([python, "-c", "import os; print(os.environ.get('DYNTRACE_SESSION'))"], capture_output=True, text=True,
                              cwd=tmp_path, env=environment(PYTHONPATH=inject, DYNTRACE_SESSION=place))
        assert (done.stdout, done.stderr) == ("None\n", "")
        assert list(tmp_path.iterdir()) == []


# ---- a session file that was written over ----

@pytest.fixture
def killed(dyntrace, python, tmp_path):
    """killed() -> the session directory of a recording whose recorder and program were killed."""
    def killed(name="work"):
        work = Work(dyntrace, python, tmp_path, 1, name=name)
        session = Path(work.session())
        collector = collector_of(work.run.pid)
        for pid in (work.run.pid, collector, work.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        work.run.communicate()
        until(lambda: gone(work.pid) and gone(collector), "all are dead")
        return session, work
    return killed


def recover(dyntrace, python, tmp_path, by):
    if by == "run":
        subprocess.run([dyntrace, "run", "-o", tmp_path / "next.db", "--force", "--python", python, "-c", "1"], check=True,
                       capture_output=True)
    else:
        subprocess.run([dyntrace, "fsck", "--recover", tmp_path / "work.db"], capture_output=True)


def write_names(session, spill, trace):
    """Put other names into the session file, whose room is that of the old ones."""
    path = session / "session"
    data = bytearray(path.read_bytes())
    assert data[TEXT_AT:TEXT_AT + 1] in (b"/", b"\0")
    text = f"{spill}\0{trace}\0".encode()
    data = data[:TEXT_AT] + text
    struct.pack_into("<I", data, 12, len(data))
    path.write_bytes(data)


@pytest.mark.sweep(3)
@pytest.mark.one_python
@pytest.mark.parametrize("by", ["run", "fsck FILE"])
@pytest.mark.parametrize("place", ["dyntrace-notes", "dyntrace-0-zzzzzz", "dyntrace-0-zzzzzz/", "link"])
def test_a_forged_session_does_not_make_us_empty_a_users_directory(dyntrace, python, tmp_path, killed, by, place):
    """The session file names a directory of the user's as its second directory. That is not emptied."""
    session, work = killed()
    mine = tmp_path / place.rstrip("/")
    (tmp_path / "precious").mkdir()
    mine.symlink_to("precious") if place == "link" else mine.mkdir(mode=0o700)
    (mine / "file").write_text("mine")
    (mine / "1-1-0.ring").write_bytes(b"mine")
    write_names(session, f"{tmp_path}/{place}", work.trace)
    recover(dyntrace, python, tmp_path, by)
    assert sorted(path.name for path in mine.iterdir()) == ["1-1-0.ring", "file"]
    assert (mine / "file").read_text() == "mine" and (mine / "1-1-0.ring").read_bytes() == b"mine"
    until(lambda: not session.exists(), "the session is recovered all the same")
    work.check([0])


@pytest.mark.sweep(3)
@pytest.mark.one_python
@pytest.mark.parametrize("by", ["run", "fsck FILE"])
@pytest.mark.parametrize("what", ["text", "database", "another trace", "a recording", "link", "half"])
def test_a_forged_session_does_not_make_us_write_a_users_file(dyntrace, python, tmp_path, killed, by, what):
    """The session file names a file of the user's as its trace. That is not written, and files beside it are not deleted."""
    mine, beside = tmp_path / "mine.db", tmp_path / "mine.db-frames"
    if what == "another trace":
        subprocess.run([dyntrace, "run", "-o", mine, "--python", python, "-c", "1"], check=True)
    session, work = killed()
    beside.write_text("mine too")
    if what == "text":
        mine.write_text("mine")
    elif what == "database":
        with contextlib.closing(__import__("sqlite3").connect(mine)) as db:
            db.executescript("CREATE TABLE meta(key, value); INSERT INTO meta VALUES('state', 'recording'), ('frame_count', 5);")
        shutil.copy(mine, beside)
    elif what == "a recording":  # which somebody else's session belongs to
        shutil.copy(work.trace, mine)
        with contextlib.closing(__import__("sqlite3").connect(mine)) as db:
            db.executescript("PRAGMA journal_mode=DELETE; UPDATE meta SET value = value || 'x' WHERE key = 'session'")
        shutil.copy(f"{work.trace}-frames", beside)
    elif what == "link":
        shutil.copy(work.trace, tmp_path / "real.db")
        mine.symlink_to("real.db")
        beside.unlink()
        beside.symlink_to("precious")
        (tmp_path / "precious").write_text("mine too")
    before = [path.read_bytes() if path.exists() else None for path in (mine, beside)]
    write_names(session, "", str(mine)[:-6] if what == "half" else mine)
    recover(dyntrace, python, tmp_path, by)
    assert [path.read_bytes() if path.exists() else None for path in (mine, beside)] == before
    assert mine.is_symlink() == (what == "link")
    shutil.rmtree(session, ignore_errors=True)


@pytest.mark.one_python
def test_a_named_pipe_in_the_session_does_not_block_us(dyntrace, python, tmp_path):
    """The session has a named pipe with the name of a ring. Opening it must not block."""
    code = "import os, sqlite3\nplace = sqlite3.connect('t.db').execute(\"SELECT value FROM meta WHERE key = 'session'\").fetchone()[0]\n" \
           "for name in ('1-1-0.ring', '2-1.lost', '3.unsupported'): os.mkfifo(place + '/' + name)"
    done = subprocess.run([dyntrace, "run", "-o", "t.db", "--python", python, "-c", code], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert holds(tmp_path / "t.db")
