"""Makes wheels and the source distribution (PEP 517, PEP 660), for `pip install .`,
`pip install -e .`, `make wheel` and `make sdist`.

    python packaging/backend.py wheel DIRECTORY        a wheel for this python, one that runs elsewhere, or the reason why not
    python packaging/backend.py sdist DIRECTORY
    python packaging/backend.py metadata DIRECTORY     what pip and pytest know a package by, for one that pip did not install
    python packaging/backend.py version

make does the work (its target `bundle`); here the files are put where pip wants them. Nothing but Python's own library is
needed, so that pip needs no network.

    bin/dyntrace                                the program, as it is
    site-packages/dyntrace/                     the package, which is the program's library directory, too:
        _dyntrace.SOABI.so                      the extension
        _dyntrace_capture.SOABI.so              that of dyntrace.compile, from capture/
        inject/sitecustomize.py                 alone in its folder (SECURITY.md)
        share/                                  manual page and completion; pip would leave the folders of share/man/man1 behind

A folder's __pycache__ is in the wheel (a file .keep), so that whoever installs makes it, with the rights that he gives: a recorded program
would make it with those that its umask leaves.

A wheel is for the glibc whose symbols it needs, at most that of the machine where it is made.
"""

import base64
import csv
import gzip
import hashlib
import io
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.chdir(ROOT)  # pip's front end is there already

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = re.search(r'#define DYNTRACE_VERSION "(.*)"', (ROOT / "src/versions.h").read_text())[1]
DISTRIBUTION = PROJECT["name"]  # not the name that is imported: on PyPI that is another package's
NAME = f"{DISTRIBUTION.replace('-', '_')}-{VERSION}"
TREE = "build/release"  # of its own, and with its own flags: what lies in build/ may be made for a debugger
LIBRARIES = re.compile(rb"\blib(?:sqlite3|edit|ncursesw|tinfo|bsd|md)\.so\.\d+")
GLIBC = re.compile(rb"GLIBC_2\.(\d+)\0")


def stop(why):
    raise SystemExit(f"dyntrace: {why}")


def moment():
    """What files are dated: SOURCE_DATE_EPOCH, for builds that are compared."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())


# ---- what is said of the package -------------------------------------------------------------------------------------


def metadata():
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {DISTRIBUTION}",
        f"Version: {VERSION}",
        f"Summary: {PROJECT['description']}",
        f"Keywords: {','.join(PROJECT['keywords'])}",
        f"License-Expression: {PROJECT['license']}",
    ]
    for author in PROJECT["authors"]:
        lines += [f"Author-email: {author['name']} <{author['email']}>"]
    lines += [f"Project-URL: {label}, {url}" for label, url in PROJECT["urls"].items()]
    lines += [f"License-File: {path}" for path in PROJECT["license-files"]]
    lines += [f"Classifier: {words}" for words in PROJECT["classifiers"]]
    lines += [
        f"Requires-Python: {PROJECT['requires-python']}",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (ROOT / PROJECT["readme"]).read_text()


def entry_points():
    return "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in PROJECT["entry-points"].items()
    )


def about(tag):
    """The files of NAME.dist-info, but for RECORD."""
    files = {
        "METADATA": metadata(),
        "entry_points.txt": entry_points(),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: dyntrace\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }
    files |= {f"licenses/{path}": (ROOT / path).read_text() for path in PROJECT["license-files"]}
    return {f"{NAME}.dist-info/{name}": text.encode() for name, text in files.items()}


# ---- wheel -----------------------------------------------------------------------------------------------------------


def run_make(tree, target, flags):
    """Build TARGET in TREE for this Python, with CFLAGS of FLAGS unless the caller has set some.
    Returns the suffix of the extension.
    """
    facts = subprocess.run(
        [sys.executable, "python/build_facts.py", sys.executable], capture_output=True, text=True
    ).stdout.strip()
    if not facts.startswith("ok "):
        stop(facts or f"{sys.executable}: cannot be run")
    try:
        os.makedirs(tree, exist_ok=True)
    except OSError as error:
        stop(
            f"{ROOT / tree}: cannot be written: {error.strerror}; build from a copy of these files that is yours"
        )
    if not os.access(tree, os.W_OK):
        stop(f"{ROOT / tree}: cannot be written; build from a copy of these files that is yours")
    environment = flags | os.environ
    jobs = (
        [] if "jobserver" in os.environ.get("MAKEFLAGS", "") else [f"-j{os.cpu_count() or 1}"]
    )  # `make -j wheel` shares its own
    command = ["make", "-s", *jobs, f"BUILD={tree}", f"PYTHONS={sys.executable}", target]
    try:
        status = subprocess.run(command, stdout=sys.stderr, env=environment).returncode
    except OSError as error:
        stop(
            f"make: {error.strerror}: apt install gcc make libsqlite3-dev libedit-dev libmd-dev libncurses-dev"
        )
    if status:
        stop(
            "make failed, see above; it needs gcc, libsqlite3-dev, libedit-dev, libmd-dev and libncurses-dev"
        )
    return facts.split()[2]


def built(tree):
    """make's part; the path of the program and those of the extensions."""
    suffix = run_make(tree, "bundle", {"CFLAGS": "-O2"})
    names = [name + suffix for name in ("_dyntrace", "_dyntrace_capture")]
    return Path(tree, "bundle/dyntrace"), [Path(tree, "bundle", name) for name in names]


def platform(program, extensions):
    """The platform tag. A program that needs libraries that other machines may lack is for this one: linux_MACHINE."""
    all_ = b"".join(path.read_bytes() for path in (program, *extensions))
    machine = sysconfig.get_platform().rpartition("-")[2]
    if LIBRARIES.search(all_):
        return f"linux_{machine}"
    return f"manylinux_2_{max(map(int, GLIBC.findall(all_)))}_{machine}"


def interpreter():
    return "cp%d%d" % sys.version_info[:2]


def pack(path, files):
    """A wheel of FILES, {name: (bytes, mode)}, with its RECORD."""
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    date = time.gmtime(max(moment(), 315532800))[:6]  # a zip begins in 1980
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(name, content, mode):
            info = zipfile.ZipInfo(name, date)
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, content)

        for name, (content, mode) in files.items():
            digest = (
                base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            )
            rows.writerow([name, f"sha256={digest}", len(content)])
            add(name, content, mode)
        rows.writerow([f"{NAME}.dist-info/RECORD", "", ""])
        add(f"{NAME}.dist-info/RECORD", record.getvalue().encode(), 0o644)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None, everywhere=False):
    """config_settings: build=DIRECTORY, a tree of make's to be used instead of build/release.
    EVERYWHERE: only one that other machines can run."""
    program, extensions = built((config_settings or {}).get("build", TREE))
    where = platform(program, extensions)
    if everywhere and not where.startswith("manylinux"):
        stop(
            "a wheel for other machines needs libsqlite3.a, libedit.a, libncursesw.a and libtinfo.a, which are not here; "
            "Debian's -dev packages have them. `pip install .` works as it is"
        )
    tag = f"{interpreter()}-{interpreter()}-{where}"
    inject = "dyntrace/inject"
    modules = [*Path("python/dyntrace").glob("*.py*"), Path("python/dyntrace/py.typed")]
    modules += Path("capture/python").glob("*.py*")
    sources = {f"dyntrace/{path.name}": path for path in sorted(modules)}
    sources |= {
        f"{inject}/sitecustomize.py": Path("python/sitecustomize.py"),
        "dyntrace/share/dyntrace.1": program.parent.parent / "dyntrace.1",
        "dyntrace/share/dyntrace.bash": Path("completions/dyntrace.bash"),
        "dyntrace/share/_dyntrace": Path("completions/_dyntrace"),
        "dyntrace/share/dyntrace.fish": Path("completions/dyntrace.fish"),
    }
    files = {name: (path.read_bytes(), 0o644) for name, path in sources.items()}
    files |= {f"{folder}/__pycache__/.keep": (b"", 0o644) for folder in ("dyntrace", inject)}
    files |= {f"dyntrace/{path.name}": (path.read_bytes(), 0o755) for path in extensions}
    files[f"{NAME}.data/scripts/dyntrace"] = program.read_bytes(), 0o755
    files |= {name: (content, 0o644) for name, content in about(tag).items()}
    pack(Path(wheel_directory, f"{NAME}-{tag}.whl"), files)
    return f"{NAME}-{tag}.whl"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    for name, content in about(
        f"{interpreter()}-{interpreter()}-{sysconfig.get_platform().replace('-', '_')}"
    ).items():
        path = Path(metadata_directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return f"{NAME}.dist-info"


# ---- editable installation ---------------------------------------------------------------------


def link_sources(package):
    """Have PACKAGE, which make has filled with copies, lead to the sources. make keeps the links:
    they are as new as their sources.
    """
    for folder in ("python/dyntrace", "capture/python"):
        for source in Path(folder).glob("*.py*"):
            link = package / source.name
            link.unlink(missing_ok=True)
            link.symlink_to(source.resolve())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel that leads to this checkout (PEP 660): to what make builds in build/, and to the
    Python sources. After a change of C, or a new file, `make` is enough.
    config_settings: as for build_wheel.
    """
    tree = (config_settings or {}).get("build", "build")
    run_make(tree, "all", {})
    place = Path(tree).resolve()
    link_sources(place / "lib/python/dyntrace")
    tag = f"{interpreter()}-{interpreter()}-linux_{sysconfig.get_platform().rpartition('-')[2]}"
    program = f'#!/bin/sh\nexec {shlex.quote(str(place / "dyntrace"))} "$@"\n'
    files = {
        "__editable__.dyntrace.pth": (f"{place}/lib/python\n".encode(), 0o644),
        f"{NAME}.data/scripts/dyntrace": (program.encode(), 0o755),
    }
    files |= {name: (content, 0o644) for name, content in about(tag).items()}
    pack(Path(wheel_directory, f"{NAME}-{tag}.whl"), files)
    return f"{NAME}-{tag}.whl"


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


# ---- source distribution ---------------------------------------------------------------------------------------------


def sources():
    """What git knows, or, in an unpacked source distribution, what is there and was not made."""
    if (ROOT / ".git").exists():
        return sorted(
            subprocess.run(
                ["git", "ls-files"], capture_output=True, text=True, check=True
            ).stdout.splitlines()
        )
    found = []
    for folder, folders, names in os.walk("."):
        folders[:] = [
            name
            for name in folders
            if name not in ("__pycache__", ".pytest_cache") and (folder, name) != (".", "build")
        ]
        found += [os.path.relpath(os.path.join(folder, name), ".") for name in names]
    return sorted(set(found) - {"PKG-INFO"})


def build_sdist(sdist_directory, config_settings=None):
    def member(name, content, mode):
        info = tarfile.TarInfo(f"{NAME}/{name}")
        info.size, info.mtime, info.mode = len(content), moment(), mode
        archive.addfile(info, io.BytesIO(content))

    with (
        open(Path(sdist_directory, f"{NAME}.tar.gz"), "wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=moment()) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in map(Path, sources()):
            member(path, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        member("PKG-INFO", metadata().encode(), 0o644)
    return f"{NAME}.tar.gz"


def main(what, directory="."):
    if what == "version":
        return print(VERSION)
    os.makedirs(directory, exist_ok=True)
    if what == "metadata":
        return prepare_metadata_for_build_wheel(directory)
    name = build_sdist(directory) if what == "sdist" else build_wheel(directory, everywhere=True)
    print(f"{directory}/{name}: {os.path.getsize(os.path.join(directory, name)) / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
