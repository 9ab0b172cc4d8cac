"""Numbers of the code that may only go down, held in tests/ratchet.txt.

A limit on lines makes lines wide; these numbers measure what a reader meets instead:

* tokens in all, and tokens in a line of code, by folder: how much there is and how dense it is
* lines over 100 columns
* patterns that put several thoughts into one statement, in src/: PATTERNS
* call cycles: how many source files call each other in a circle, from the symbols of their object files as the
  linker sees them; the largest cycle first

`make lint` fails where a number is above the file's. `make ratchet` lowers the file to today's numbers; it never
raises one. A change that has to raise a number edits the file by hand and gives the reason in its commit.

Usage: ratchet.py [--objects FOLDER]... [--renew]
       ratchet.py --places      where the patterns are
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


# What `dense()` finds, by the name of its line in tests/ratchet.txt.
PATTERNS = {
    "comma": "comma operators that join effects in src",
    "return": "assignments inside return in src",
    "condition": "conditions of more than two parts without a name in src",
}
PARTS = 2  # of an unnamed condition
# What `lex()` keeps: words, texts, operators that are one thing, and single signs.
LEXEME = re.compile(r"""[A-Za-z_]\w*|\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|&&|\|\||<<=|>>=|[-+*/%&|^<>=!]=|\+\+|--|[^\s\\]""")
COMMENT = re.compile(r"""/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.S)
ASSIGNS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"}
CLOSES = {"(": ")", "[": "]", "{": "}"}


def lex(text):
    """[(token, line)] of C, without comments and directives but what macros expand to."""
    text = COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n"), text)
    text = re.sub(r"^[ \t]*#(?!\s*define)[^\n]*", "", text, flags=re.M)
    text = re.sub(r"#\s*define\s+\w+(\([^)]*\))?", ";", text)
    return [(token[0], at) for at, line in enumerate(text.split("\n"), 1) for token in LEXEME.finditer(line)]


def ends(tokens):
    """{place of an opening bracket: place of the one that closes it}."""
    open_, found = [], {}
    for at, (token, _) in enumerate(tokens):
        if token in CLOSES:
            open_.append(at)
        elif open_ and token == CLOSES[tokens[open_[-1]][0]]:
            found[open_.pop()] = at
    return found


def own(tokens, close, from_, to):
    """The places from FROM_ to TO that lie in no bracket of their own."""
    while from_ < to:
        yield from_
        from_ = close.get(from_, from_) + 1


def has_effect(tokens, from_, to):
    """Is something assigned or called there? `.x =` of a literal is no assignment."""
    for at in range(from_, to):
        token, before = tokens[at][0], tokens[at - 1][0]
        if token in ASSIGNS and not (token == "=" and tokens[at - 2][0] == "."):
            return True
        if token == "(" and re.match(r"[A-Za-z_]\w*$", before) and before not in ("sizeof", "return", "if", "while"):
            return True
    return False


def joined(tokens, close, from_, to):
    """How many parts && and || join there, in brackets too, but for arguments of calls."""
    count, at = 1, from_
    while at < to:
        token, before = tokens[at][0], tokens[at - 1][0]
        call = token == "(" and (re.match(r"\w+$", before) or before in (")", "]"))
        at = close.get(at, at) if call or token in "{[" else at
        count += token in ("&&", "||")
        at += 1
    return count


def statement(tokens, close, at):
    """Where the statement that begins at AT ends: its `;`."""
    while at < len(tokens) and tokens[at][0] not in (";", "}"):
        at = close.get(at, at) + 1
    return at


def dense(text):
    """(pattern, line) of each place in TEXT, C code, that PATTERNS names."""
    tokens = lex(text)
    close = ends(tokens)
    tokens += [(";", 0)] * 3  # so that there is a next one
    for at, (token, line) in enumerate(tokens[:-3]):
        before = tokens[at - 1][0] if at else ";"
        if token == "return":
            end = statement(tokens, close, at + 1)
            if any(tokens[i][0] in ASSIGNS and tokens[i - 2][0] != "." for i in range(at + 1, end) if tokens[i][0] != "{"):
                yield "return", line
        elif token == "(" and before in ("if", "while") and at in close:
            if joined(tokens, close, at + 1, close[at]) > PARTS:
                yield "condition", line
        # An expression statement with a comma outside of brackets.
        starts = before in (";", "{", "}", "else", "do") or (before == ")" and is_header(tokens, close, at - 1))
        if starts and re.match(r"[A-Za-z_*(]|\+\+|--", token) and token not in ("return", "for", "if", "case", "else", "while", "switch"):
            end = statement(tokens, close, at)
            macro = tokens[at + 1][0] == "(" and re.match(r"\w+$", tokens[close.get(at + 1, at) + 1][0])
            places = [i for i in own(tokens, close, at, end)]
            declares = any(re.match(r"[A-Za-z_]\w*$", tokens[i][0]) and re.match(r"[A-Za-z_]\w*$|\*", tokens[i + 1][0])
                           and tokens[i][0] != "sizeof" for i in places[:1])
            commas = [i for i in places if tokens[i][0] == ","]
            if commas and not declares and not macro and tokens[end][0] == ";" and has_effect(tokens, at, commas[0]):
                yield "comma", line
        # A comma in brackets that are no call's.
        if token == "(" and at in close and not re.match(r"\w+$|[\])]$", before):
            commas = [i for i in own(tokens, close, at + 1, close[at]) if tokens[i][0] == ","]
            if commas and has_effect(tokens, at + 1, commas[-1]):
                yield "comma", line


def is_header(tokens, close, end):
    """Does a bracket of `if`, `for` or `while` close at END?"""
    start = next((a for a, b in close.items() if b == end), None)
    return start is not None and tokens[start - 1][0] in ("if", "for", "while", "db_rows", "list_each")


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
        code = COMMENT.sub(lambda found: found[1] or "", text)
        mine = sums.setdefault(folder, [0, 0])
        mine[0] += len(TOKEN.findall(code))
        mine[1] += sum(1 for line in code.split("\n") if line.strip())
    return sums


def places():
    """A line for each place in src/ that PATTERNS names."""
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, "src"))):
        for name in sorted(name for name in names if name.endswith((".c", ".h"))):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            lines = text.split("\n")
            for pattern, line in dense(text):
                yield f"{os.path.relpath(path, ROOT)}:{line}: {pattern}: {lines[line - 1].strip()}"


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
    counts = dict.fromkeys(PATTERNS, 0)
    for _, text in sources("src", (".c", ".h")):
        for pattern, _ in dense(text):
            counts[pattern] += 1
    now.update((PATTERNS[pattern], [count]) for pattern, count in counts.items())
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
    parser.add_argument("--places", action="store_true")
    given = parser.parse_args()
    if given.places:
        for line in places():
            print(line)
        return 0
    if given.renew:
        renew(given.objects)
    wrong = [*exceeded(given.objects)]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
