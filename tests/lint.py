"""What the tree of src/ promises, held: `make lint`.

* Includes run downwards: ABOVE says what a folder may include besides itself and the headers at the top.
* No circle: a file (its .c and .h are one) includes nothing that leads back to it.
* No file is longer than 800 lines, and resume functions, with what differs between versions for them, take no more than 1,000.
* CPython's versions are listed in src/versions.h, and documents agree with it. What differs between them is named in
  src/tracer/compat/ and python/dyntrace/_torch_versions.py alone.
* The pairs of torch and CPython that take the shim by default are those that passed in the table of docs/torch.md.
* A statement that C asks for, schema_statement("report/functions"), is in schemas/: src/schema.h.
"""

import os
import re
import runpy
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
TOP = os.path.join(ROOT, "src")
LINES = 800
PARTS = {"resume functions": (("tracer/resume/", "tracer/compat/bytecode."), 1000),  # comments and blank lines included
         "capture": (("tracer/capture/", "tracer/compat/step."), 5600)}

# The four doors lie at the top of src/; each belongs to a folder.
DOORS = {"tracer_shim": "tracer", "recorder_sqlite": "collector", "replay": "trace", "tui": "tui", "main": "cmd"}
BELOW = {
    "lib": set(),
    "tracer": set(),
    "collector": {"lib"},
    "trace": {"lib"},
    "tui": {"trace", "lib"},
    "cmd": {"tui", "trace", "collector", "lib"},
}
VERSION = re.compile(r"\bPY_(VERSION_HEX|M[AJIN]+OR_VERSION)\b|\b3\.1[1-9]\b|\b0x030[B-Fb-f]|\(3, 1[1-9]\)")
VERSIONED = ("src/tracer/compat/", "src/versions.h", "python/dyntrace/_torch_versions.py")


def folder(path):
    """The layer that a path relative to src/ belongs to; None for the headers that all share."""
    if "/" in path:
        return path.split("/")[0]
    return DOORS.get(path.rsplit(".", 1)[0])


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


def versions():
    """Where a CPython version is named outside its file, and documents that name others than are supported."""
    code = files("src", ".c", ".h") + files("python", ".py") + ["dev"]
    for path in code:
        for at, line in enumerate(read(path), 1):
            if VERSION.search(line) and not path.startswith(VERSIONED):
                yield f"{path}:{at}: names a CPython version: that belongs in {' or '.join(VERSIONED)}"
    oldest, newest = (re.search(rf"#define CPYTHON_{end} (\d+)", "\n".join(read("src/versions.h")))[1]
                      for end in ("OLDEST", "NEWEST"))
    for path in ["README.md", "CONTRIBUTING.md"] + files("docs", ".md", ".1.in"):
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


def circles(edges):
    """Groups of nodes that lead to each other (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for next_ in sorted(edges.get(node, ())):
            if next_ not in number:
                visit(next_)
                low[node] = min(low[node], low[next_])
            elif next_ in stack:
                low[node] = min(low[node], number[next_])
        if low[node] == number[node]:
            group = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return found


def statements():
    """The names that schemas/ gives to statements."""
    for path in files("schemas", ".sql"):
        own = re.findall(r"^-- name: (\S+)$", "\n".join(read(path)), re.M)
        yield from (f"{path[len('schemas/'):-4]}/{name}" for name in own) if own else [path[len("schemas/"):-4]]
    yield "import/aspects"  # which schemas/embed.sh makes


def main():
    wrong, edges, total, known, parts = [*versions(), *torches()], {}, 0, set(statements()), dict.fromkeys(PARTS, 0)
    for name in files("src", ".c", ".h"):
        path, lines = name[len("src/"):], read(name)
        total += len(lines) - 1
        for part, (places, _) in PARTS.items():
            parts[part] += len(lines) - 1 if path.startswith(places) else 0
        if len(lines) - 1 > LINES:
            wrong.append(f"{name}: {len(lines) - 1} lines, {LINES} allowed: a file is one idea")
        mine, module = folder(path), path.rsplit(".", 1)[0]
        for at, line in enumerate(lines, 1):
            wrong += [f"{name}:{at}: schemas/ has no statement {asked}" for asked in re.findall(r'schema_statement\("([^"]+)"\)', line)
                      if asked not in known and path != "schema.h"]
            include = re.match(r'#include "([^"]+)"', line)
            if not include:
                continue
            theirs, other = folder(include[1]), include[1].rsplit(".", 1)[0]
            if theirs and theirs != mine and theirs not in BELOW.get(mine, set()):
                wrong.append(f"{name}:{at}: {mine or 'a shared header'} may not include {include[1]}")
            if module != other:
                edges.setdefault(module, set()).add(other)
    wrong += [f"src/: a circle of includes: {', '.join(group)}" for group in circles(edges)]
    wrong += [f"{part}: {parts[part]} lines, {most} allowed" for part, (_, most) in PARTS.items() if most and parts[part] > most]
    for line in wrong:
        print(line)
    print(f"{total} lines in src/: " + ", ".join(f"{lines} for {part}" for part, lines in parts.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
