"""Draws comments, function names and test names for a reader who has never seen the project.

    tests/sample_words.py [SEED]

Prints 100 comments, 60 function names and 40 test names, each with its place. The reader marks each
as understood at the first reading or not; CONTRIBUTING says what the count should be. The same seed
draws the same lines from the same sources.
"""

import ast
import io
import pathlib
import random
import re
import subprocess
import sys
import tokenize

from ratchet import COMMENT

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMENTS, FUNCTIONS, TESTS = 100, 60, 40
LEAST = 20  # characters of a comment; shorter ones are labels
# A C function's definition: its type, perhaps with __attribute__((..)) or on a line of its own,
# and its name.
FUNCTION = re.compile(
    r"^[a-z](?:__attribute__\(\(.*?\)\)|[^;={}()\n]|\n(?=\w))*?\b(?!__attribute__)(\w+)"
    r"\([^;{}]*\)\n\{",
    re.M,
)


def files(*patterns):
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return listed.stdout.split()


def place(path, text, at):
    return f"{path}:{text.count(chr(10), 0, at) + 1}"


def of_c(path):
    """(comments, function names) of a C file, each as (place, text)."""
    text = (ROOT / path).read_text()
    comments = [
        (place(path, text, found.start()), " ".join(re.sub(r"\n\s*\*", " ", found.group()).split()))
        for found in COMMENT.finditer(text)
        if not found[1] and "clang-format" not in found[0]
    ]
    names = [
        (place(path, text, found.start()), found.group(1))
        for found in FUNCTION.finditer(text)
    ]
    return comments, names


def of_python(path):
    """(comments and docstrings, function names) of a Python file, each as (place, text)."""
    text = (ROOT / path).read_text()
    comments, names, last = [], [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if line == last + 1 and token.line.lstrip().startswith("#"):  # goes on with the one above
            where, words = comments.pop()
            comments.append((where, words + token.string.lstrip("#")))
        else:
            comments.append((f"{path}:{line}", token.string))
        last = line
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
            words = ast.get_docstring(node)
            if words:
                comments.append((f"{path}:{node.body[0].lineno}", " ".join(words.split())))
        if isinstance(node, ast.FunctionDef):
            names.append((f"{path}:{node.lineno}", node.name))
    return comments, names


def main():
    chance = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    comments, functions, tests = [], [], []
    for path in files("src/*.[ch]", "capture/src/*.[ch]"):
        found = of_c(path)
        comments += found[0]
        functions += found[1]
    for path in files("python/*.py", "capture/python/*.py"):
        found = of_python(path)
        comments += found[0]
        functions += found[1]
    for path in files("tests/test_*.py", "tests/with_torch/test_*.py", "capture/tests/test_*.py"):
        tests += [name for name in of_python(path)[1] if name[1].startswith("test_")]
    comments = [comment for comment in comments if len(comment[1]) >= LEAST]
    for title, lines, count in (
        ("comments", comments, COMMENTS),
        ("function names", functions, FUNCTIONS),
        ("test names", tests, TESTS),
    ):
        print(f"== {count} of {len(lines)} {title}")
        for where, words in sorted(chance.sample(lines, count)):
            print(f"{where}  {words}")


if __name__ == "__main__":
    main()
