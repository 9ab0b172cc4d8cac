"""Real library code: the Python halves of json, pprint, difflib, tokenize, ast."""
import ast
import difflib
import importlib
import io
import pprint
import sys
import tokenize


def import_without(name, accelerator):
    """A private copy of a package, imported as if its C half were missing."""
    def ours(module):
        return module == name or module.startswith(name + ".")

    hidden = {m: sys.modules.pop(m) for m in list(sys.modules) if ours(m) or m == accelerator}
    sys.modules[accelerator] = None
    try:
        return importlib.import_module(name)
    finally:
        for module in [m for m in sys.modules if ours(m) or m == accelerator]:
            del sys.modules[module]
        sys.modules.update(hidden)


json = import_without("json", "_json")

DOCUMENT = {
    str(i): [i, {"name": f"n{i}", "values": [1.5, None, True, "x\u00e9\"y"], "empty": {}}] for i in range(12)
}
WORDS = "alpha beta gamma delta epsilon zeta eta theta".split()
OLD = [" ".join(WORDS[(i * k) % 8] for k in range(1, 2 + i % 5)) + "\n" for i in range(40)]
NEW = [line.replace("beta", "bet") if i % 7 == 3 else line for i, line in enumerate(OLD) if i % 11]
SOURCE = "".join(
    f"""
class C{i}(Base, metaclass=Meta):
    "Holds {i} things."
    field: int = {i}

    def method(self, a, *rest, b=({i}, "two"), **named):
        for k, v in sorted(named.items(), key=lambda pair: pair[1]):
            if k in self.seen and not v >= {i} or a[1:-1]:
                yield [x * 2 for x in rest if x], f"{{k!r}}: {{v}}"
        try:
            return await_(self)[b] + ~a ** 2
        except (KeyError, ValueError) as error:
            raise RuntimeError("no") from error
"""
    for i in range(6)
)


def run_json(times):
    for _ in range(times):
        text = json.dumps(DOCUMENT, indent=1)
        result = json.loads(text)
    return result


def check_json(result):
    return result == DOCUMENT


def run_pprint(times):
    for _ in range(times):
        result = pprint.pformat(DOCUMENT, width=60)
    return result


def check_pprint(result):
    return result.count("\n") > len(DOCUMENT) and ast.literal_eval(result) == DOCUMENT


def run_difflib(times):
    for _ in range(times):
        result = list(difflib.ndiff(OLD, NEW)), list(difflib.unified_diff(OLD, NEW))
    return result


def check_difflib(result):
    delta, unified = result
    return list(difflib.restore(delta, 1)) == OLD and list(difflib.restore(delta, 2)) == NEW and len(unified) > 10


def run_syntax(times):
    for _ in range(times):
        tokens = list(tokenize.generate_tokens(io.StringIO(SOURCE).readline))
        tree = ast.parse(SOURCE)
        result = ast.unparse(tree), tokens
    return result


def check_syntax(result):
    text, tokens = result
    return ast.dump(ast.parse(text)) == ast.dump(ast.parse(SOURCE)) and tokenize.untokenize(tokens) == SOURCE
