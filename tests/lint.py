"""What the tree of src/ promises, held: `make lint`.

* Includes run downwards: ABOVE says what a folder may include besides itself and the headers at the top.
* No circle: a file (its .c and .h are one) includes nothing that leads back to it.
* No file is longer than 800 lines.
* A version of CPython is named in src/tracer/compat/ and python/dyntrace/_versions.py alone.
"""

import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src")
LINES = 800

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
VERSION = re.compile(r"\bPY_VERSION_HEX\b|\b3\.1[1-9]\b|\b0x030[B-Fb-f]")
VERSIONS = ("tracer/compat/",)


def folder(path):
    """The layer that a path relative to src/ belongs to; None for the headers that all share."""
    if "/" in path:
        return path.split("/")[0]
    return DOORS.get(path.rsplit(".", 1)[0])


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


def main():
    wrong, edges, total = [], {}, 0
    for directory, _, names in os.walk(TOP):
        for name in sorted(names):
            if not name.endswith((".c", ".h")):
                continue
            path = os.path.relpath(os.path.join(directory, name), TOP)
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                lines = file.read().split("\n")
            total += len(lines) - 1
            if len(lines) - 1 > LINES:
                wrong.append(f"src/{path}: {len(lines) - 1} lines, {LINES} allowed: a file is one idea")
            mine = folder(path)
            for at, line in enumerate(lines, 1):
                if VERSION.search(line) and not path.startswith(VERSIONS):
                    wrong.append(f"src/{path}:{at}: names a CPython version, which belongs in src/tracer/compat/")
                include = re.match(r'#include "([^"]+)"', line)
                if not include:
                    continue
                theirs = folder(include[1])
                if theirs and theirs != mine and theirs not in BELOW.get(mine, set()):
                    wrong.append(f"src/{path}:{at}: {mine or 'a shared header'} may not include {include[1]}")
                module, other = path.rsplit(".", 1)[0], include[1].rsplit(".", 1)[0]
                if module != other:
                    edges.setdefault(module, set()).add(other)
    wrong += [f"src/: a circle of includes: {', '.join(group)}" for group in circles(edges)]
    for line in wrong:
        print(line)
    print(f"{total} lines in src/")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
