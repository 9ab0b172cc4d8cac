"""Names for the numbers of src/vocabulary.h in the SQL of schemas/ (schemas/names.awk)."""
import re
import subprocess

import pytest

from shared import ROOT, one_line

pytestmark = pytest.mark.one_python
COMMAND = ["awk", "-f", ROOT / "schemas/names.awk", ROOT / "src/vocabulary.h"]


def named(tmp_path, text):
    (tmp_path / "one.sql").write_text(text)
    return subprocess.run([*COMMAND, "one.sql"], cwd=tmp_path, capture_output=True, text=True)


@pytest.mark.parametrize("text, made", [
    ("outcome IN ($PLAIN, $HIT, $CALLBACK_ERROR)", "outcome IN (0, 1, 9)"),
    ("f.kind = $FRAME_INHERITED OR exit = $EXIT_RAISE", "f.kind = 3 OR exit = 2"),
    ("result <> $CHECK_PASS", "result <> 'pass'"),
    ("CASE result $CHECK_NUMBERS ELSE $CHECK_RESULTS END",
     "CASE result WHEN 'fail' THEN 0 WHEN 'pass' THEN 1 WHEN 'error' THEN 2 WHEN 'backend_mismatch' THEN 3 ELSE 4 END"),
    ("cause LIKE $LOSS_STALL || '%'", "cause LIKE 'stall: ' || '%'"),
    ("code_id IN $codes AND NOT $quick AND json_extract(x, '$.A')", "code_id IN $codes AND NOT $quick AND json_extract(x, '$.A')"),
])
def test_a_dollar_name_in_sql_becomes_its_number_or_text(tmp_path, text, made):
    done = named(tmp_path, text + "\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, made + "\n", "")


def test_an_unknown_name_is_an_error_with_file_and_line(tmp_path):
    done = named(tmp_path, "SELECT 1\nWHERE outcome = $HITS;\n")
    assert done.returncode != 0 and done.stderr == "one.sql:2: src/vocabulary.h has no $HITS\n"


def test_the_build_stops_at_an_unknown_name(tmp_path):
    for folder in ("schemas", "src", "python"):
        (tmp_path / folder).symlink_to(ROOT / folder) if folder != "schemas" else subprocess.run(["cp", "-r", ROOT / "schemas", tmp_path], check=True)
    with open(tmp_path / "schemas/tui/rates.sql", "a") as file:
        file.write("-- $NEVER\n")
    done = subprocess.run(["sh", "schemas/embed.sh", "build"], cwd=tmp_path, capture_output=True, text=True)
    lines = (tmp_path / "schemas/tui/rates.sql").read_text().count("\n")
    assert done.returncode != 0 and done.stderr == f"schemas/tui/rates.sql:{lines}: src/vocabulary.h has no $NEVER\n"


def test_sql_compares_no_outcome_kind_or_exit_with_a_bare_number():
    number = re.compile(r"\b(?:outcome|kind|exit)(?:, \d+\))? *(?:=|<>|IS(?: NOT)?|(?:NOT )?IN) *\(?\d|CASE (?:\w+\.)?(?:outcome|kind|exit) WHEN \d|"
                        r"result *(?:=|<>|(?:NOT )?IN) *\(?'")
    files = [path for path in (ROOT / "schemas").rglob("*.sql") if path.name != "trace.sql"] + list((ROOT / "src").rglob("*.c"))
    bare = [f"{path}:{at}: {line}" for path in files for at, line in enumerate(path.read_text().splitlines(), 1)
            if number.search(line) and (path.suffix == ".sql" or '"' in line)]
    assert bare == []


def test_sql_print_prints_queries_with_their_names_replaced(run):
    text = run("sql", "--print", "call-outcomes").stdout
    assert "SUM(outcome = 1) AS hit" in text and "$" not in text
    assert "(1, 'hit', 1, 0, 0)" in run("sql", "--print", "views").stdout
    assert run("sql", "--print", "find/names").stdout.rstrip().endswith(";")
    failed = run("sql", "--print", "no-such")
    assert failed.returncode == 2 and "no-such: no such query" in one_line(failed.stderr)
