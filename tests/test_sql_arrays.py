"""`dyntrace sql` for a program that asks: --arrays, --bind, a query on standard input."""

import json
import sqlite3

import pytest

from planted import make_trace
from shared import one_line

pytestmark = pytest.mark.one_python


@pytest.fixture
def ask(run, trace):
    """ask(sql, *values) -> [names, row, ...]"""

    def ask(sql, *values):
        done = run("sql", trace, "--arrays", "--bind", json.dumps(values), input=sql)
        assert (done.returncode, done.stderr) == (0, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    return ask


def test_sql_arrays_have_every_type_of_value(ask):
    sql = "SELECT 1 AS a, 1.5, 9e999, -9e999, NULL, 'a\"\n\u00e9', x'00ff', x''"
    names, row = ask(sql)
    assert len(names) == 8 and names[0] == "a"
    infinite = float("inf")
    assert row == [1, 1.5, infinite, -infinite, None, 'a"\n\u00e9', {"hex": "00ff"}, {"hex": ""}]


def test_sql_arrays_keep_equal_column_names_and_those_of_an_empty_result(ask):
    assert ask("SELECT 1 AS a, 2 AS a") == [["a", "a"], [1, 2]]
    assert ask("SELECT pid, argv FROM process WHERE 0") == [["pid", "argv"]]


def test_each_array_of_sql_arrays_is_one_line(run, trace):
    done = run("sql", trace, "--arrays", "SELECT 'a' AS b UNION ALL SELECT char(10)")
    assert done.stdout == '["b"]\n["a"]\n["\\n"]\n'


def test_the_option_bind_gives_parameters_their_values(ask):
    values = [3, 1.5, "a'b", None, True]
    assert ask("SELECT ?1, ?2, ?3, ?4, ?5", *values)[1] == [3, 1.5, "a'b", None, 1]
    assert ask("SELECT ?2 || ?1, typeof(?1)", "x", "y")[1] == ["yx", "text"]


@pytest.mark.parametrize(
    "bind, sql, words",
    [
        ("[1]", "SELECT ?1, ?2", "has 2 parameters, and the values given are 1"),
        ("[1, 2]", "SELECT ?1", "has 1 parameter, and the values given are 2"),
        ("[]", "SELECT ?", "has 1 parameter, and the values given are 0"),
        ('{"a": 1}', "SELECT ?", "--bind {"),
        ("[1", "SELECT ?", "not a JSON array"),
        ("1", "SELECT ?", "not a JSON array"),
        ("[]", "SELECT 1; SELECT 2", "one statement"),
    ],
)
def test_values_of_the_option_bind_that_do_not_fit_are_an_error(run, trace, bind, sql, words):
    done = run("sql", trace, "--bind", bind, sql)
    assert done.returncode == 2 and words in one_line(done.stderr)


def test_the_option_bind_gives_several_traces_the_same_values(run, tmp_path):
    for name in "ab":
        path = make_trace(tmp_path / f"{name}.db")
        with sqlite3.connect(path) as db:
            db.execute("UPDATE process SET pid = pid + ?", (1000 * ord(name),))
    done = run("sql", "a.db", "b.db", "--arrays", "--bind", "[7]", "SELECT ?1 AS n")
    assert done.stdout == '["trace","n"]\n["a.db",7]\n["b.db",7]\n', done.stderr
    assert run("sql", "a.db", "b.db", "--bind", "[]", "SELECT ?1 AS n").returncode == 2


def test_sql_reads_the_name_of_a_query_from_standard_input(run, trace):
    named = run("sql", trace, "process-tree")
    assert named.stdout and run("sql", trace, input="process-tree\n").stdout == named.stdout
    done = run("sql", trace, input="proces-tree")
    assert done.returncode == 2 and "did you mean process-tree?" in one_line(done.stderr)
    assert "no such file" not in done.stderr
    assert run("sql", trace, input="").returncode == 0
