"""What the tree of src/ and capture/src/ promises, held: `make lint`.

* Includes run downwards: BELOW lists the folders that a folder may include besides itself and the headers at the top.
* No circle of includes: a file (its .c and .h are one) includes nothing that leads back to it.
* C code is formatted as .clang-format has it: `make format` does it.
* Calls run downwards, as the linker sees them: by BELOW, too; where a lower layer needs an upper one, that registers a
  function. No circle of calls leads through two folders, and none through more than CIRCLE_MOST files.
* Density, width and call cycles only shrink: tests/ratchet.py.
* CPython's versions are listed in src/versions.h, and documents agree with it. What differs between them is named in
  src/tracer/compat/ and python/dyntrace/_torch_versions.py alone.
* The pairs of torch and CPython that take the shim by default are those that passed in the table of docs/torch.md.
* No text uses a phrase of tests/phrases.txt.
* A statement that C asks for, schema_statement("report/functions"), and a block of a page, "pages/why/head", is in schemas/:
  src/schema.h. Every block of a page is printed.

Usage: lint.py [--objects FOLDER]...   folders of object files, for call cycles
"""

import argparse
import os
import re
import runpy
import shutil
import subprocess
import sys

import ratchet

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
TOP = os.path.join(ROOT, "src")
FORMATTER = 14  # the major version of clang-format; others lay out some lines in another way

# The four doors lie at the top of src/; each belongs to a folder.
# The file that makes the extension is a layer of its own, above all parts of the tracer.
DOORS = {
    "tracer_shim": "tracer",
    "tracer/module": "tracer/module",
    "tracer/services": "tracer/module",  # for capture/, of all parts
    "tracer/attach": "tracer/module",  # joins and leaves
    "recorder_sqlite": "collector",
    "replay": "trace",
    "tui": "tui",
    "main": "cmd",
}
# The order of the tree: which layers a layer may include and call besides itself. `tracer` is the base of the tracer,
# with compat/; src/tracer/hooks.h is how it calls upwards.
BELOW = {
    "lib": set(),
    "tracer": set(),
    "tracer/guards": {"tracer"},
    "tracer/evaluator": {"tracer", "tracer/guards"},
    "tracer/resume": {"tracer", "tracer/guards", "tracer/evaluator"},
    "tracer/torch": {"tracer", "tracer/guards", "tracer/evaluator"},
    "tracer/module": {"tracer", "tracer/guards", "tracer/evaluator", "tracer/resume", "tracer/torch"},
    "capture": {"tracer", "tracer/evaluator"},
    "collector": {"lib"},
    "trace": {"lib"},
    "tui": {"trace", "lib"},
    "cmd": {"tui", "trace", "collector", "lib"},
}
CIRCLE_MOST = 3  # files of one folder that call each other in a circle
VERSION = re.compile(r"\bPY_(VERSION_HEX|M[AJIN]+OR_VERSION)\b|\b3\.1[1-9]\b|\b0x030[B-Fb-f]|\(3, 1[1-9]\)")
VERSIONED = ("src/tracer/compat/", "src/versions.h", "python/dyntrace/_torch_versions.py")


def folder(path):
    """The layer that a path relative to src/ belongs to; None for the headers that all share."""
    file = path.rsplit(".", 1)[0]
    if file in DOORS:
        return DOORS[file]
    parts = path.split("/")
    if len(parts) == 1:
        return None
    part = "/".join(parts[:2])
    return part if part in BELOW else parts[0]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read().split("\n")


def files(top, *ends):
    """Paths from the root of files below TOP (or TOP itself), by name."""
    if os.path.isfile(os.path.join(ROOT, top)):
        return [top]
    found = []
    for directory, _, names in os.walk(os.path.join(ROOT, top)):
        found += [os.path.relpath(os.path.join(directory, name), ROOT) for name in names if name.endswith(ends)]
    return sorted(found)


def sources():
    return files("src", ".c", ".h") + files("capture/src", ".c", ".h")


def phrases():
    """Uses of the phrases that tests/phrases.txt forbids, also where a line ends in the middle of one."""
    gap = r"(?:\s|\n\s*(?:\*|//|#|--)\s)+"
    rules = [line.partition(" -> ") for line in read("tests/phrases.txt") if line and not line.startswith("#")]
    found = [(re.compile(gap.join(map(re.escape, phrase.split())), re.I), phrase, better) for phrase, _, better in rules]
    folders = ("src", "capture", "python", "schemas", "docs", "bench", "packaging", "examples", "tests")
    paths = [path for top in folders for path in files(top, ".c", ".h", ".py", ".sql", ".txt", ".md", ".in", ".awk", ".sh")]
    for path in paths + ["README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "dev"]:
        if path == "tests/phrases.txt":
            continue
        text = "\n".join(read(path))
        for pattern, phrase, better in found:
            for use in pattern.finditer(text):
                at = text.count("\n", 0, use.start()) + 1
                yield f"{path}:{at}: {phrase!r}: write {better}"


def versions():
    """Where a CPython version is named outside its file, and documents that name others than are supported."""
    code = sources() + files("python", ".py") + files("capture/python", ".py") + ["dev"]
    for path in code:
        for at, line in enumerate(read(path), 1):
            if VERSION.search(line) and not path.startswith(VERSIONED):
                yield f"{path}:{at}: names a CPython version: that belongs in {' or '.join(VERSIONED)}"
    oldest, newest = (re.search(rf"#define CPYTHON_{end} (\d+)", "\n".join(read("src/versions.h")))[1]
                      for end in ("OLDEST", "NEWEST"))
    for path in ["README.md", "CONTRIBUTING.md", "capture/README.md"] + files("docs", ".md", ".1.in"):
        for said in re.finditer(r"CPython 3\.(\d+) to 3\.(\d+)", " ".join(read(path))):
            if said.groups() != (oldest, newest):
                yield f"{path}: says {said[0]}, src/versions.h 3.{oldest} to 3.{newest}"


def torches():
    """Pairs that python/dyntrace/_torch_versions.py calls tested and docs/torch.md does not, or the other way round."""
    path, minor = VERSIONED[2], lambda version: tuple(int(number) for number in version.split(".")[:2])
    tested = {(torch, python) for python, all_ in runpy.run_path(os.path.join(ROOT, path))["TESTED"].items() for torch in all_}
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| \w+ \|(?!.*failed)", "\n".join(read("docs/torch.md")), re.M)
    passed = {(minor(torch), minor(python)) for torch, python in rows}
    for torch, python in sorted(tested ^ passed):
        has, lacks = (path, "docs/torch.md") if (torch, python) in tested else ("docs/torch.md", path)
        yield "%s: has torch %d.%d with CPython %d.%d as tested, %s has not" % (has, *torch, *python, lacks)


def unformatted():
    """Files of C that clang-format would change. None where FORMATTER is not installed."""
    program = os.environ.get("CLANG_FORMAT", "clang-format")
    version = shutil.which(program) and subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if not version or not re.search(rf"version {FORMATTER}\.", version):
        print(f"formatting was not checked: that needs clang-format {FORMATTER}")
        return
    for path in sources():
        made = subprocess.run([program, path], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        if made != "\n".join(read(path)):
            yield f"{path}: not formatted: run `make format`"


def statements():
    """The names that schemas/ gives to statements."""
    for path in files("schemas", ".sql"):
        own = re.findall(r"^-- name: (\S+)$", "\n".join(read(path)), re.M)
        yield from (f"{path[len('schemas/'):-4]}/{name}" for name in own) if own else [path[len("schemas/"):-4]]
    for path in files("schemas/pages", ".txt"):
        yield from (f"{path[len('schemas/'):-4]}/{name}" for name in re.findall(r"^-- name: (\S+)$", "\n".join(read(path)), re.M))
    yield "import/aspects"  # which schemas/embed.sh makes
    yield "import/tested"


def includes():
    """Includes that run upwards or in a circle, statements and blocks of pages that do not exist, blocks that nothing prints."""
    edges, known, used = {}, set(statements()), set()
    for name in sources():
        path = name if name.startswith("capture/") else name[len("src/"):]
        mine, module = folder(path), path.rsplit(".", 1)[0]
        for at, line in enumerate(read(name), 1):
            for asked in re.findall(r'schema_statement\("([^"]+)"|"(pages/[^"]+)"', line):
                asked = asked[0] or asked[1]
                used.add(asked)
                if asked not in known and path != "schema.h":
                    yield f"{name}:{at}: schemas/ has no statement {asked}"
            include = re.match(r'#include "([^"]+)"', line)
            if not include:
                continue
            asked = include[1]
            if mine == "capture" and os.path.exists(os.path.join(ROOT, os.path.dirname(path), asked)):
                asked = f"{os.path.dirname(path)}/{asked}"
            theirs, other = folder(asked), asked.rsplit(".", 1)[0]
            if theirs and theirs != mine and theirs not in BELOW.get(mine, set()):
                yield f"{name}:{at}: {mine or 'a shared header'} may not include {include[1]}"
            if module != other:
                edges.setdefault(module, set()).add(other)
    for name in sorted(known - used):
        if name.startswith("pages/"):
            yield f"schemas/: nothing prints the block {name}"
    for group in ratchet.circles(edges):
        yield f"src/: a circle of includes: {', '.join(group)}"


def upward_calls(edges):
    """Calls between files that run upwards in BELOW. EDGES as ratchet.calls() gives them."""
    for module in sorted(edges):
        mine = folder(module)
        for other, names in sorted(edges[module].items()):
            theirs = folder(other)
            if mine and theirs and theirs != mine and theirs not in BELOW[mine]:
                yield f"src/{module}.c: {mine} may not call {theirs}: {', '.join(sorted(names))} of src/{other}.c"


def call_circles(edges):
    """Circles of calls between folders, and those of many files in one; but of capture, which tests/ratchet.txt holds."""
    below = {module: [other for other in others if folder(other) != "capture"] for module, others in edges.items()}
    for group in ratchet.circles(below):
        folders = {os.path.dirname(module) or folder(module) for module in group}
        if len(folders) > 1:
            yield f"src/: a circle of calls between folders: {', '.join(group)}"
        elif len(group) > CIRCLE_MOST:
            yield f"src/: a circle of calls of more than {CIRCLE_MOST} files: {', '.join(group)}"


def linked(objects):
    """What is wrong with the calls in the object files below each of OBJECTS, as the linker sees them."""
    for top in objects:
        edges = ratchet.calls(top)
        yield from upward_calls(edges)
        yield from call_circles(edges)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", action="append", default=[])
    given = parser.parse_args()
    wrong = [*phrases(), *versions(), *torches(), *unformatted(), *includes(), *linked(given.objects)]
    wrong += ratchet.exceeded(given.objects)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
