"""A virtual environment with a torch that runs on the CPU, from PyPI's wheel, which is the one for CUDA.

That wheel is 0.5 to 0.9 GB; the libraries of CUDA that it asks for are 3 GB more. A program without a GPU calls nothing in
them, but the dynamic linker wants them all the same. So each library that is missing is made here, with the symbols that
torch's own libraries want of it: functions that give an error. What the linker must find with contents (the CUDA runtime and
CUPTI, which torch's profiler asks at import) comes from PyPI, 10 MB.
"""
import collections
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

# What torch imports and the tests need. filelock's later releases add an audit hook, which Dynamo would meet.
BESIDE = ["filelock<3.21", "typing_extensions", "sympy", "networkx", "jinja2", "fsspec", "numpy", "pytest", "setuptools", "expecttest"]
CUDA12 = ["nvidia-cuda-runtime-cu12", "nvidia-cuda-cupti-cu12"]
CUDA13 = ["nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cupti==13.0.85"]
SYSTEM = ["libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"]
FOLDERS = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"]


class NoWheel(Exception):
    pass


def output(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


def make(version, python, place, wheels=None):
    """PLACE becomes an environment of PYTHON with torch VERSION. WHEELS: a folder that keeps the wheel. Raises NoWheel."""
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([python, "-m", "venv", place], check=True)
    pip = [place / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-q"]
    site = next(place.glob("lib/python3.*/site-packages"))
    tag = "cp" + site.parent.name.replace("python", "").replace(".", "")
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        folder = Path(wheels or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        find = lambda: sorted(folder.glob(f"torch-{version}-*{tag}-{tag}-*.whl")) # 2.10.0 has a build number there
        if not find():
            done = subprocess.run([*pip, "download", "--no-cache-dir", "--no-deps", "--only-binary=:all:", "-d", folder, f"torch=={version}"],
                                  capture_output=True, text=True)
            if done.returncode and "No matching distribution" in done.stderr:
                raise NoWheel(f"no wheel of torch {version} for {python}")
            assert done.returncode == 0, done.stderr
        with zipfile.ZipFile(find()[0]) as wheel:
            wheel.extractall(site)
    for tool in (site / "torch" / "bin").glob("*"):
        tool.chmod(0o755)
    subprocess.run([*pip, "install", *BESIDE], check=True)
    needs = next(site.glob("torch-*.dist-info/METADATA")).read_text()
    if "nvidia-" in needs:
        subprocess.run([*pip, "install", "--no-deps", *(CUDA12 if "nvidia-cuda-runtime-cu12" in needs else CUDA13)], check=True)
        stub(site)
    # pip compiles what it installs; of what was unpacked, this compiles what programs import, so that not each of them does.
    warm = "import torch, torch._inductor.compile_fx; torch.compile(lambda x: x + 1, backend='eager')(torch.ones(3))"
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([place / "bin" / "python", "-c", warm], check=True, cwd="/", env=environ)


def symbols(path):
    """What the library PATH wants of others, and what it gives."""
    wants, gives = set(), set()
    for line in output("nm", "-D", path).splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "U":
            wants.add(words[1])
        elif len(words) == 3:
            gives.add(words[2].partition("@")[0])
    return wants, gives


def stub(site):
    """Beside torch's libraries in SITE, one for each that they need and nobody here has."""
    library = site / "torch" / "lib"
    ours = [*sorted(library.glob("*.so*")), *(site / "torch").glob("_C*.so")]
    others = [path for pattern in ("nvidia/**/lib/*.so*", "cu*/lib/*.so*") for path in site.glob(pattern)]
    have = {path.name for path in ours + others} | set(re.findall(r"^\s*(\S+\.so\S*)", output("ldconfig", "-p"), re.M))
    needed, wanted, given = {}, set(), set()
    for path in ours:
        needed.update((name, None) for name in re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", path)) if name not in have)
        wants, gives = symbols(path)
        wanted |= wants
        given |= gives
    for path in [*others, *(path for name in SYSTEM for path in [Path(folder, name) for folder in FOLDERS] if path.exists())]:
        given |= symbols(path)[1]
    versioned, plain = collections.defaultdict(set), set()
    for one in wanted:
        name, _, version = one.partition("@")
        if name in given or name.startswith(("Py", "_Py", "_ZN", "_ZT", "_ZS", "GLIBC")):
            continue
        (versioned[version] if version else plain).add(name)
    with tempfile.TemporaryDirectory() as scratch:
        source, script = Path(scratch, "stub.c"), Path(scratch, "stub.map")
        for name in needed:
            mine = {version: names for version, names in versioned.items()
                    if version.partition(".so")[0] == name.partition(".so")[0] or (version == "NVSHMEM" and "nvshmem" in name)}
            # A symbol without a version can be anywhere; libcublas is always there.
            named = {one for names in mine.values() for one in names} | (plain if name.startswith("libcublas.so") else set())
            source.write_text("".join(f"int {one}(void) {{ return 100; }}\n" for one in sorted(named)) + "static int unused;\n")
            script.write_text("".join(f"{version} {{ global: {' '.join(f'{one};' for one in sorted(names))} }};\n"
                                      for version, names in mine.items()))
            subprocess.run(["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{name}",
                            *([f"-Wl,--version-script={script}"] if mine else []), "-o", library / name, source], check=True)
