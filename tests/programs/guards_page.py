"""Runs docs/guards.md: every guard of its tables passes for the one value and fails for the other."""
import pathlib
import re
import sys

from dyntrace import guards


def rows(heading, columns):
    """The code of each row of the tables whose first column is called HEADING."""
    for table in re.findall(rf"^\| {heading} \|.*\n\|-.*\n((?:\|.*\n)+)", page, re.M):
        for row in table.splitlines():
            cells = row.strip("|").split(" | ")
            assert len(cells) == columns, row
            yield [(re.match(r" *`([^`]*)`", cell) or [None, cell])[1] for cell in cells]


page = pathlib.Path(sys.argv[1]).read_text()
first, names, trees = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
exec(first, {})
space = {}
exec(names, space)
exec(trees, space)
kinds = set()


def holds(guard, variables):
    exec(variables, space)
    tree = eval(f"GuardTree([{guard}], globals=globals())", space)
    kinds.add(guard.partition("(")[0])
    return tree.check({name: space[name] for name in ("x", "y") if name in space})


for source, variables, value in rows("source", 3):
    exec("mode = 'train'", space)
    assert holds(f"EQUALS_MATCH({source}, {value})", variables), source
    assert not holds(f"EQUALS_MATCH({source}, 'another')", variables), source
kinds.clear()
for guard, passes, fails in rows("guard", 3):
    assert holds(guard, passes), (guard, passes)
    assert not holds(guard, fails), (guard, fails)

assert kinds == {name for name in guards.__all__ if name.isupper() and len(name) > 1}
tree = space["tree"]
for method, _ in rows("method", 2):
    eval("tree." + method, {"tree": tree, "f_locals": {"n": 3, "x": "a"}})
assert tree.check_verbose({"n": 3, "x": "a"}) == (False, 1, 0)
assert tree.explain({"n": 3, "x": 1}) == [(0, "2", "3"), (1, "str", "int")], tree.explain({"n": 3, "x": 1})
print("as the page says")
