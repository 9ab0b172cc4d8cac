"""`pip install`: a wheel is built, installed in its own environment and used from there, without the checkout. Builds
need no network. DYNTRACE_WHEELS=all (`make wheel-test`): released wheels for every interpreter, the source distribution,
and auditwheel."""
import csv
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from shared import PYTHONS, ROOT, holds, one_line, query, script, version_of

pytestmark = [pytest.mark.no_sanitizer, pytest.mark.slow]

ALL = os.environ.get("DYNTRACE_WHEELS") == "all"
LOADED = "next(line.split()[-1] for line in open('/proc/self/maps') if '/_dyntrace.' in line)"  # in a program: the extension's path
SHAPES = (ROOT / "examples/shapes.py").read_text()


def clean(**changes):
    """An environment in which no variable leads to the checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DYNTRACE", "PYTEST", "VIRTUAL_ENV", "MAKE"))}
    return {**kept, "PATH": "/usr/local/bin:/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "TERM": "xterm", "COLUMNS": "200", **changes}


class Environment:
    """A virtual environment, and a folder beside it to work in."""

    def __init__(self, python, place):
        self.path, self.here = place / "env", place / "here"
        self.here.mkdir(parents=True)
        done = subprocess.run([python, "-m", "venv", "--system-site-packages", self.path], capture_output=True, text=True, env=clean())
        if done.returncode:
            pytest.skip(f"{python} makes no environments: {done.stdout + done.stderr}")
        self.python, self.program = self.path / "bin/python", self.path / "bin/dyntrace"
        self.package, = (self.path / "lib").glob("python3.*/site-packages")
        self.package /= "dyntrace"

    def run(self, *argv, status=0, start=(), timeout=300, **changes):
        done = subprocess.run([*start, *map(str, argv)], cwd=self.here, env=clean(**changes), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout)
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done

    def pip(self, *argv, **rest):
        return self.run(self.python, "-m", "pip", *argv, timeout=3600, **rest)  # it may build

    def listing(self):
        return sorted(str(path) for path in self.path.rglob("*"))

    def write(self, name, text):
        return script(self.here / name, text)


@pytest.fixture(scope="module")
def interpreter(python):
    if not ALL and python != PYTHONS[0]:
        pytest.skip("one interpreter is enough here; make wheel-test has all")
    return python


@pytest.fixture(scope="module")
def bare(interpreter, tmp_path_factory):
    """An environment without dyntrace, and what is in it."""
    environment = Environment(interpreter, tmp_path_factory.mktemp("wheel"))
    if ALL and environment.run(environment.python, "-c", "import pytest", status=None).returncode:
        environment.pip("install", "pytest", status=None, PIP_NO_INDEX="0")  # for the plugin, if there is a network
    environment.run(environment.python, "-O", "-c", "pass")  # what Python itself leaves
    environment.pip("--version")
    environment.before = environment.listing()
    return environment


@pytest.fixture(scope="module")
def wheel(bare, dyntrace):
    """A wheel, made by pip from the build of the tests; or, with DYNTRACE_WHEELS=all, from all builds."""
    tree = [] if ALL else [f"--config-settings=build={Path(dyntrace).resolve().parent}"]
    bare.pip("wheel", "--no-deps", "-w", bare.here / "dist", *tree, ROOT)
    made, = (bare.here / "dist").iterdir()
    return made


@pytest.fixture(scope="module")
def there(bare, wheel):
    """An environment with dyntrace."""
    bare.pip("install", wheel)
    return bare


@pytest.fixture
def half(there, tmp_path):
    """half(PATH): remove PATH until the test is over."""
    moved = []

    def gone(path):
        moved.append((path, tmp_path / f"gone{len(moved)}"))
        shutil.move(*moved[-1])
    yield gone
    for path, place in moved:
        shutil.move(place, path)


# ---- the wheel -------------------------------------------------------------------------------------------------------

def test_the_wheel_has_its_files_and_metadata(wheel):
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        about = next(name for name in names if name.endswith(".dist-info/RECORD")).rpartition("/")[0]
        assert {row[0] for row in csv.reader(io.StringIO(files.read(f"{about}/RECORD").decode()))} == set(names)
        assert [name for name in names if "/inject/" in name and "__pycache__" not in name] == ["dyntrace/inject/sitecustomize.py"]
        said = {name: files.read(f"{about}/{name}").decode() for name in ("METADATA", "WHEEL", "licenses/packaging/BUNDLED.txt")}
        program = files.read(next(name for name in names if name.endswith("/scripts/dyntrace")))
    version = re.search(r'DYNTRACE_VERSION "(.*)"', (ROOT / "src/versions.h").read_text())[1]
    assert f"\nVersion: {version}\n" in said["METADATA"] and f"\nTag: {wheel.stem.partition(f'{version}-')[2]}\n" in said["WHEEL"]
    assert all(name in said["licenses/packaging/BUNDLED.txt"] for name in ("SQLite", "libedit", "ncurses", "terminfo"))
    assert program[:4] == b"\x7fELF"  # no Python that starts it


def test_the_wheels_tag_names_the_libc_that_it_needs(wheel, tmp_path):
    """The tag says what the files need, and they need nothing but the C library."""
    if not shutil.which("objdump"):
        pytest.skip("no objdump (apt install binutils)")
    if not (tag := re.search(r"manylinux_2_(\d+)_", wheel.name)):
        pytest.skip("this machine lacks archives of the libraries")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(tmp_path)
    found = set()
    for path in [*tmp_path.rglob("*.so"), *tmp_path.rglob("scripts/dyntrace")]:
        head = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True).stdout
        assert set(re.findall(r"NEEDED +(\S+)", head)) <= {"libc.so.6", "libm.so.6", "libresolv.so.2", "libpthread.so.0"}, head
        found |= {int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)\b", head)}
    assert max(found) == int(tag[1])


def test_the_source_distribution_has_what_git_has(interpreter, tmp_path):
    """It has the files that git has, and the right metadata."""
    done = subprocess.run([interpreter, ROOT / "packaging/backend.py", "sdist", tmp_path], capture_output=True, text=True, check=True)
    with tarfile.open(next(tmp_path.iterdir())) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert done.stdout.startswith(f"{tmp_path}/dyntrace_recorder-") and "PKG-INFO" in names
    assert {"pyproject.toml", "Makefile", "src/main.c", "packaging/backend.py", "tests/test_wheel.py"} <= names
    assert not [name for name in names if name.startswith("build/") or "__pycache__" in name]


# ---- used from there -------------------------------------------------------------------------------------------------

def test_a_first_recording_works_after_pip_install(there):
    there.write("shapes.py", SHAPES)
    done = there.run(there.program, "run", "shapes.py")
    assert done.stderr == ""
    holds(there.here / "shapes.db")
    (executable,), = query(there.here / "shapes.db", "SELECT executable FROM process")
    assert os.path.dirname(executable) == str(there.path / "bin")  # not that of PATH
    assert "function" in there.run(there.program, "why", "total", "shapes.db").stdout
    assert "hits" in there.run(there.program, "replay", "shapes.db", "--what-if", "dynamic=all").stdout
    assert "total" in there.run(there.program, "report", "shapes.db").stdout
    assert "shapes.db" in there.run(there.program, "tui", "shapes.db", "--dump", "--screen", "100x24").stdout
    assert "2" in there.run(there.program, "sql", "shapes.db", "SELECT 1 + 1").stdout
    assert there.run(there.program, "doctor").stdout.count(f"{there.path}/bin/python3: CPython") == 1


def test_python_m_dyntrace_works(there):
    there.write("f.py", "import sys\ndef f(): pass\nf()\nprint(sys.executable)")
    assert there.run(there.python, "-m", "dyntrace", "run", "f.py").stdout == f"{there.python}\n"
    assert there.run(there.python, "-m", "dyntrace", "why", "f", "f.db").stdout
    assert "recorded " in there.run(there.python, "-m", "dyntrace", "doctor").stdout
    # a recorded program that starts it
    there.run(there.program, "run", "-o", "outer.db", "-m", "dyntrace", "run", "-o", "inner.db", "f.py")
    assert query(there.here / "outer.db", "SELECT count(*) FROM process") == [(1,)]
    assert query(there.here / "inner.db", "SELECT count(*) FROM process") == [(1,)]


def test_the_package_imports_without_pythonpath(there):
    """Recorded programs and others import it without PYTHONPATH."""
    there.write("own.py", "import dyntrace, dyntrace.eval_frame\ndef f(): pass\n"
                          f"with dyntrace.record('own.db', force=True): f()\nprint(dyntrace.config.recompile_limit, {LOADED}, dyntrace.__file__)")
    limit, extension, package = there.run(there.python, "own.py").stdout.split()
    assert limit == "8" and Path(extension).parent == Path(package).parent == there.package
    assert query(there.here / "own.db", "SELECT count(*) FROM frames WHERE qualname = 'f'") == [(1,)]
    done = there.run(there.program, "run", "-o", "d.db", "-c", f"import dyntrace.eval_frame; print({LOADED}, dyntrace.__file__)")
    assert [Path(path).parent for path in done.stdout.split()] == [there.package] * 2


def test_the_environments_python_is_recorded(there, tmp_path):
    """The environment's Python is recorded, not the one on PATH. For a link from elsewhere, as pipx makes, it is the one
    on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script(folder / "python3", f'#!/bin/sh\nexec {there.python} "$@"\n', 0o755)
    (folder / "dyntrace").symlink_to(there.program)
    argv = ["run", "--force", "-o", "whose.db", "-c", "import sys; print(sys.orig_argv[0])"]
    where = dict(PATH=f"{folder}:/usr/bin:/bin")
    own, linked = (there.run(program, *argv, **where).stdout.strip() for program in (there.program, folder / "dyntrace"))
    assert own == str(there.path / "bin/python3") and linked == str(there.python)


# ---- the plugin ------------------------------------------------------------------------------------------------------

TESTS = """
import sys
import pytest

def test_plain():
    assert "_dyntrace" not in sys.modules and "sqlite3" not in sys.modules

def f(): pass

@pytest.mark.skipif("not config.getoption('-m')")
@pytest.mark.dyntrace(max_recompiles=0, require_compiled="f")
def test_marked(): f()

def test_ok(): pass

@pytest.mark.skipif("not config.getoption('dyntrace', False)")
def test_wrong():
    f()
    assert False
"""


@pytest.fixture
def suite(there):
    if there.run(there.python, "-c", "import pytest", status=None).returncode:
        pytest.skip("this Python has no pytest")
    there.write("test_it.py", TESTS)
    return lambda *options, status: there.run(there.python, "-m", "pytest", "-p", "no:cacheprovider", "-q", f"--basetemp={there.here}/base",
                                              "test_it.py", *options, status=status, PYTHONDONTWRITEBYTECODE="1").stdout


def test_the_pytest_plugin_is_found_after_pip_install(suite, there):
    assert "2 passed, 2 skipped" in suite(status=0)
    said = suite("-m", "dyntrace", "-p", "dyntrace.pytest_plugin", status=1)  # once, although it is asked for as before, too
    assert "dyntrace: not within the limits of this test:\n  require-compiled" in said
    assert query(re.search(r"^trace: (\S+)", said, re.M)[1], "SELECT count(*) FROM frames WHERE qualname = 'f'") == [(1,)]
    said = suite("--dyntrace", "-k", "wrong or ok", status=1)
    assert "1 failed, 1 passed" in said
    trace = re.search(r"^trace: (\S+)", said, re.M)[1]
    assert query(trace, "SELECT count(*) FROM frames WHERE qualname = 'f'") == [(1,)]
    assert [str(path) for path in (there.here / "base").rglob("*.db")] == [trace]  # of those that fail


# ---- what goes wrong -------------------------------------------------------------------------------------------------

def test_a_wheel_for_another_python_is_refused(there, wheel, tmp_path):
    other = shutil.copy(wheel, tmp_path / re.sub(r"cp3\d+-cp3\d+", "cp310-cp310", wheel.name))
    said = there.pip("install", "--force-reinstall", other, status=1).stderr
    assert said.count("\n") == 1 and "is not a supported wheel on this platform" in said


def answers(path, version, file="python3"):
    """A program that says that it is CPython VERSION."""
    path.mkdir(exist_ok=True)
    return script(path / file, f"#!/bin/sh\necho cpython 3 {version} .cpython-3{version}-none.so\n", 0o755)


def test_a_python_without_extension_is_refused(there, tmp_path):
    other = answers(tmp_path / "other", 13)
    said = one_line(there.run(there.program, "run", "--python", other, "-c", "pass", status=2).stderr)
    assert said.startswith(f"dyntrace: {other}: no extension for this CPython 3.13 is built ({there.package}/") and f"`{other} -m pip`" in said


def test_two_installations_do_not_mix(there, dyntrace, tmp_path):
    """Only files of the started installation are used. If one is missing there but present in the other installation, a
    message says so."""
    done = there.run(dyntrace, "run", "-o", "two.db", "--python", there.python, "-c", f"import dyntrace.eval_frame; print({LOADED})",
                     PATH=f"{there.path}/bin:/usr/bin:/bin")
    assert Path(done.stdout.strip()).parent == Path(dyntrace).resolve().parent / "lib" and done.stderr == ""
    done = there.run(there.python, "-m", "dyntrace", "doctor", PATH=f"{Path(dyntrace).parent}:/usr/bin:/bin")
    assert done.stdout.endswith(f"Extensions\n  {there.package}\n")
    other = answers(tmp_path / "other", 12)
    shutil.copy(there.program, tmp_path / "other/dyntrace")
    said = one_line(there.run(there.program, "run", "--python", other, "-c", "pass", status=2).stderr)
    assert said.endswith(f": {tmp_path}/other/dyntrace is another dyntrace: use that\n")


# Makes a session one of another version of dyntrace: struct session_file of src/ring.h.
AGE = "import os; file = os.open(session + '/session', os.O_WRONLY); os.pwrite(file, b'\\x63', 8); os.close(file)"


def test_a_program_of_another_version_is_reported(there, half, dyntrace, tmp_path):
    """The package has lost its own program and finds another version on PATH."""
    half(there.program)
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin/another", f"""
        #!{sys.executable}
        import os, subprocess, sys
        real = subprocess.Popen([{os.path.realpath(dyntrace)!r}, *sys.argv[1:]], stdout=subprocess.PIPE)
        said = b""
        while said.count(b"\\0") < 2:
            said += os.read(real.stdout.fileno(), 4096)
        session = said.partition(b"\\0")[0].decode()
        {AGE}
        os.write(1, said)
        os.write(1, real.stdout.read())
        sys.exit(real.wait())
        """, 0o755)
    script(tmp_path / "bin/older", """
        #!/bin/sh
        echo /dev/shm/dyntrace-session
        exec cat
        """, 0o755)
    for name in "another", "older":  # the collector of an older version writes a line
        shutil.copy(tmp_path / "bin" / name, tmp_path / "bin/dyntrace")
        said = there.run(there.python, "-c", "import dyntrace\nwith dyntrace.record('x.db', force=True): pass", status=1,
                         PATH=f"{tmp_path}/bin:/usr/bin:/bin").stderr
        assert said.splitlines()[-1] == (f"RuntimeError: {tmp_path}/bin/dyntrace is of another version of dyntrace than this package: "
                                         f"reinstall it with `{there.python} -m pip`")


def test_an_extension_of_another_version_is_reported(there):
    """It cannot join the recording. The program runs as usual, and the last line names what was not recorded."""
    there.write("age.py", f"import os\nsession = os.environ['DYNTRACE_SESSION']\n{AGE}\n")
    said = there.run(there.program, "run", "-o", "aged.db", "/bin/sh", "-c", f"{sys.executable} -ISE age.py; {there.python} -c pass").stderr
    assert re.fullmatch(rf"dyntrace: cpython 3\.\d+ at {there.python} was not recorded: there is no extension of dyntrace [\d.]+ for it: "
                        rf"install dyntrace, or reinstall it, with `{there.python} -m pip`\n", one_line(said))


def test_an_extension_that_cannot_be_loaded_is_reported(there, half):
    extension, = there.package.glob("_dyntrace.*.so")
    half(extension)
    extension.write_bytes(b"cut off")
    done = there.run(there.program, "run", "-o", "cut.db", "-c", "print(1)")
    assert done.stdout == "1\n" and "was not recorded: there is no extension of dyntrace" in one_line(done.stderr)
    assert "file too short" in there.run(there.python, "-c", "import dyntrace.eval_frame", status=1).stderr.splitlines()[-1]
    extension.unlink()


def test_a_missing_extension_is_reported(there, half, suite):
    extension, = there.package.glob("_dyntrace.*.so")
    half(extension)
    said = one_line(there.run(there.program, "run", "-c", "pass", status=2).stderr)
    assert str(extension) in said and f"`{there.path}/bin/python3 -m pip`" in said
    assert there.run(there.python, "-m", "dyntrace", "run", "-c", "pass", status=2).stderr.count("\n") == 1
    said = there.run(there.python, "-c", "import dyntrace.eval_frame", status=1).stderr.splitlines()[-1]
    assert said == f"ImportError: dyntrace has no extension for this Python ({extension}): reinstall it with `{there.python} -m pip`"
    assert "2 passed, 2 skipped" in suite(status=0)
    assert "dyntrace: dyntrace has no extension for this Python" in suite("-m", "dyntrace", status=1)


def test_a_missing_program_is_reported(there, half, suite):
    half(there.program)
    said = one_line(there.run(there.python, "-m", "dyntrace", "why", status=1).stderr)
    assert "neither beside this package nor on PATH: reinstall it" in said
    said = there.run(there.python, "-c", "import dyntrace\nwith dyntrace.record('x.db'): pass", status=1).stderr.splitlines()[-1]
    assert said.startswith("RuntimeError: the program `dyntrace` is neither beside")
    assert "2 passed, 2 skipped" in suite(status=0)
    assert "dyntrace: the program `dyntrace` is neither beside" in suite("-m", "dyntrace", status=1)


def test_a_missing_package_is_reported(there, half):
    half(there.package)
    assert "not there: run `make`, or reinstall dyntrace" in one_line(there.run(there.program, "run", "-c", "pass", status=2).stderr)


def rightless():
    """How a command is started so that the mode of a file counts."""
    if os.geteuid():
        return []
    start = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
    if not shutil.which("setpriv") or subprocess.run([*start, "true"], capture_output=True).returncode:
        pytest.skip("root may write everywhere, and there is no setpriv")
    return start


def test_a_read_only_environment_can_record(there, wheel, tmp_path):
    """An environment of another user can be used for a recording. Nothing is installed or left in it."""
    start = rightless()
    before = there.listing()
    folders = [path for path in [there.path, *there.path.rglob("*")] if path.is_dir() and not path.is_symlink()]
    for folder in folders:
        folder.chmod(0o555)
    try:
        there.run(there.program, "run", "-o", "read.db", "-c", "import dyntrace.guards", start=start)
        said = there.pip("install", "--force-reinstall", "--no-deps", wheel, status=1, start=start).stderr
        assert "Permission denied" in said and "Traceback" not in said
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert there.listing() == before
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    said = there.run(there.python, "-c", f"import sys; sys.path[:0] = ['{ROOT}/packaging']; import backend; backend.build_wheel('.', {{'build': '{locked}'}})",
                     status=1, start=start).stderr
    assert one_line(said).startswith(f"dyntrace: {locked}: cannot be written")


# ---- and gone again --------------------------------------------------------------------------------------------------

def test_an_open_umask_makes_no_folder_writable(there):
    """No other user may write to the folders that every recorded Python reads. They exist before a program sets its
    umask."""
    there.run("/bin/sh", "-c", f"umask 0; exec {there.program} run -o umask.db -c 'import dyntrace.guards'")
    for folder in (there.package, there.package / "inject"):
        for path in (folder, folder / "__pycache__"):
            assert not path.stat().st_mode & 0o022, path


def test_uninstalling_leaves_no_file(there):
    """Before, this Python (with and without -O) and a Python without an extension have used the package."""
    there.run(there.program, "run", "-o", "o.db", there.python, "-O", "-c", "pass")
    for other in [python for python in PYTHONS if version_of(python) != version_of(there.python)][:1]:
        there.run(there.program, "run", "-o", "other.db", "/bin/sh", "-c", f"{other} -c pass")
    there.pip("uninstall", "-y", "dyntrace-recorder")
    assert there.listing() == there.before


# ---- as they are released --------------------------------------------------------------------------------------------

# ---- an editable installation ------------------------------------------------------------------


@pytest.fixture
def editable(interpreter, tmp_path, dyntrace):
    """An environment with what `pip install -e .` installs from a copy of the sources.

    The copy has a copy of what was built for the tests, so that make has nothing to compile.
    """
    sources = tmp_path / "sources"
    for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, sources / name)
    shutil.copytree(Path(dyntrace).resolve().parent, sources / "build")
    environment = Environment(interpreter, tmp_path)
    environment.before = environment.listing()
    environment.sources = sources
    environment.pip("install", "--no-deps", "-e", sources)
    return environment


def test_an_editable_install_follows_the_sources(editable):
    """Tested are program, extension, changed sources, a recording, a later `make`, and the uninstall."""
    python, sources = editable.python, editable.sources
    assert not editable.package.exists()
    look = "import dyntrace; print(dyntrace.__file__, dyntrace.__version__, vars(dyntrace).get('EDITED'))"
    file, version, *_ = editable.run(python, "-c", look).stdout.split()
    assert Path(file).resolve() == sources / "python/dyntrace/__init__.py"
    assert editable.run(editable.program, "--version").stdout == f"dyntrace {version}\n"
    source = sources / "python/dyntrace/__init__.py"
    source.write_text(source.read_text() + "EDITED = 'by hand'\n")
    assert "by hand" in editable.run(python, "-c", look).stdout
    editable.run("make", "-s", f"PYTHONS={python}", start=["env", "-C", sources])
    assert "by hand" in editable.run(python, "-c", look).stdout
    program = editable.write("program.py", "import dyntrace\ndyntrace.reset()\nprint('ran')\n")
    done = editable.run(editable.program, "run", "-o", "t.db", "--python", python, "--", program)
    assert done.stdout == "ran\n" and holds(editable.here / "t.db")
    code = "import dyntrace\nwith dyntrace.record('r.db'): (lambda: 1)()"
    editable.run(python, "-c", code)
    assert holds(editable.here / "r.db")
    assert "dyntrace-recorder" in editable.pip("list", "--editable").stdout
    editable.pip("uninstall", "-y", "dyntrace-recorder")
    left = set(editable.listing()) - set(editable.before)
    assert not [path for path in left if "dyntrace" in path]


@pytest.mark.skipif(not ALL, reason="make wheel-test")
def test_the_source_distribution_builds_and_records(interpreter, tmp_path):
    environment = Environment(interpreter, tmp_path)
    subprocess.run([interpreter, ROOT / "packaging/backend.py", "sdist", tmp_path], check=True)
    environment.pip("install", next(tmp_path.glob("*.tar.gz")))
    environment.run(environment.program, "run", "-o", "t.db", "-c", "pass")
    holds(environment.here / "t.db")


@pytest.mark.skipif(not ALL, reason="make wheel-test")
def test_auditwheel_agrees_with_the_wheels_tag(wheel, tmp_path):
    """auditwheel finds our tag, and no library that must be copied into the wheel."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "audit"], check=True)
    if subprocess.run([tmp_path / "audit/bin/pip", "install", "-q", "auditwheel"]).returncode:
        pytest.skip("no auditwheel can be had here")
    said = " ".join(subprocess.run([tmp_path / "audit/bin/auditwheel", "show", wheel], capture_output=True, text=True, check=True).stdout.split())
    tag = re.search(r"manylinux_2_\d+_\w+", wheel.name)[0]
    assert f'the following platform tag: "{tag}"' in said, said
