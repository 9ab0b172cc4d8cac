"""Numbers of the code that may only go down, held in tests/ratchet.txt.

A limit on lines makes lines wide; these numbers measure what a reader meets instead:

* tokens in all, and tokens in a line of code, by folder: how much there is and how dense it is
* lines over 100 columns
* call cycles: how many source files call each other in a circle, from the symbols of their object files as the
  linker sees them; the largest cycle first

`make lint` fails where a number is above the file's. `make ratchet` lowers the file to today's numbers; it never
raises one. A change that has to raise a number edits the file by hand and gives the reason in its commit.

Usage: ratchet.py [--objects FOLDER]... [--renew]
"""

import argparse
import itertools
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
FILE = os.path.join(ROOT, "tests", "ratchet.txt")
TOPS = "src", "capture/src"
WIDTH = 100
TOKEN = re.compile(r"""[A-Za-z_]\w*|\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s\w]""")


def circles(edges):
    """Groups of nodes that lead to each other (Tarjan's strongly connected components)."""
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


def sources(top, ends):
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
        for name in sorted(names):
            if name.endswith(ends):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    yield os.path.relpath(folder, ROOT), file.read()


def density():
    """{folder: [tokens, lines of code]} of src/ and capture/src/; comments and blank lines do not count."""
    sums = {}
    for folder, text in itertools.chain(*(sources(top, (".c", ".h")) for top in TOPS)):
        code = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
        mine = sums.setdefault(folder, [0, 0])
        mine[0] += len(TOKEN.findall(code))
        mine[1] += sum(1 for line in code.split("\n") if line.strip())
    return sums


def calls(objects):
    """{file: {other file: its symbols that the first uses}} of the object files below OBJECTS."""
    defines, uses = {}, {}
    for folder, _, names in os.walk(objects):
        for name in names:
            if not name.endswith(".o"):
                continue
            path = os.path.join(folder, name)
            module = os.path.relpath(path, objects)[:-2]
            listed = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
            for line in listed.split("\n"):
                fields = line.split()
                if len(fields) >= 2 and fields[-2] == "U":
                    uses.setdefault(module, set()).add(fields[-1])
                elif len(fields) >= 2 and fields[-2] in "TDBRC":
                    defines[fields[-1]] = module
    edges = {}
    for module, names in uses.items():
        edges[module] = {}
        for name in names:
            other = defines.get(name, module)
            if other != module:
                edges[module].setdefault(other, set()).add(name)
    return edges


def measure(objects):
    """{name: numbers}, as tests/ratchet.txt has them."""
    sums = density()
    now = {f"tokens in {top}": [sum(tokens for folder, (tokens, _) in sums.items() if f"{folder}/".startswith(f"{top}/"))] for top in TOPS}
    for folder, (tokens, lines) in sums.items():
        now[f"tokens a line in {folder}"] = [round(tokens / lines, 2)]
    for top, ends in (*((top, (".c", ".h")) for top in TOPS), ("python", ".py"), ("capture/python", ".py")):
        wide = [line for _, text in sources(top, ends) for line in text.split("\n") if len(line) > WIDTH]
        now[f"lines over {WIDTH} columns in {top}"] = [len(wide)]
    for folder in objects:
        part = "extension" if "-cpython-" in os.path.basename(os.path.normpath(folder)) else "program"
        now[f"files in call cycles of the {part}"] = sorted((len(group) for group in circles(calls(folder))), reverse=True) or [0]
    return now


def allowed():
    with open(FILE, encoding="utf-8") as file:
        rows = [line.rsplit(":", 1) for line in file if line.strip() and not line.startswith("#")]
    return {name: [float(number) for number in numbers.split()] for name, numbers in rows}


def is_above(now, limit):
    """Is one of NOW above its place in LIMIT? Lists are largest first; a place beyond the end is 0."""
    return any(number > (limit[at] if at < len(limit) else 0) for at, number in enumerate(now))


def exceeded(objects):
    limits = allowed()
    for name, now in measure(objects).items():
        if name not in limits:
            yield f"tests/ratchet.txt: has no line for {name}: run `make ratchet`"
        elif is_above(now, limits[name]):
            yield "%s: %s, and tests/ratchet.txt allows %s" % (name, *(" ".join(f"{n:g}" if n < 1000 else f"{n:.0f}" for n in numbers)
                                                                   for numbers in (now, limits[name])))


def renew(objects):
    limits = allowed() if os.path.exists(FILE) else {}
    now = measure(objects)
    for name, limit in limits.items():
        unmeasured = name.startswith("files in call cycles") and name not in now
        if unmeasured or (name in now and is_above(now[name], limit)):
            now[name] = limit
    with open(FILE, "w", encoding="utf-8") as file:
        file.write("# Numbers that may only go down: tests/ratchet.py. `make ratchet` lowers them.\n")
        for name, numbers in now.items():
            file.write("%s: %s\n" % (name, " ".join(f"{n:g}" if n < 1000 else f"{n:.0f}" for n in numbers)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", action="append", default=[])
    parser.add_argument("--renew", action="store_true")
    given = parser.parse_args()
    if given.renew:
        renew(given.objects)
    wrong = [*exceeded(given.objects)]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
