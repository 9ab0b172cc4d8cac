"""The numbers in tests/ratchet.txt may only go down: `make lint` fails above them, and `make ratchet` never raises them."""

import pytest

import ratchet

pytestmark = pytest.mark.one_python


@pytest.fixture
def held(tmp_path, monkeypatch):
    """A function that holds the file to TEXT and returns the file."""
    file = tmp_path / "ratchet.txt"
    monkeypatch.setattr(ratchet, "FILE", str(file))
    monkeypatch.setattr(ratchet, "measure", lambda objects: {"tokens": [50], "cycles": [8, 3]})

    def hold(text):
        file.write_text(text)
        return file

    return hold


def test_numbers_at_the_ratchets_limit_pass(held):
    held("tokens: 50\ncycles: 8 3\n")
    assert not [*ratchet.exceeded([])]


@pytest.mark.parametrize("text, wrong", [("tokens: 49\ncycles: 8 3\n", "tokens: 50, and tests/ratchet.txt allows 49"),
                                         ("tokens: 50\ncycles: 8\n", "cycles: 8 3, and tests/ratchet.txt allows 8"),
                                         ("tokens: 50\n", "has no line for cycles")])
def test_a_number_above_the_ratchets_limit_fails(held, text, wrong):
    held(text)
    assert wrong in "\n".join(ratchet.exceeded([]))


def test_renewing_the_ratchet_lowers_and_never_raises_numbers(held):
    file = held("tokens: 49\ncycles: 9 9 2\n")
    ratchet.renew([])
    assert "tokens: 49\ncycles: 8 3\n" in file.read_text()


def test_files_that_use_each_others_symbols_are_counted_as_a_cycle():
    assert ratchet.circles({"ring": {"file"}, "file": {"ring", "code"}, "code": set()}) == [["file", "ring"]]


def test_comments_and_blank_lines_are_not_counted_as_code(tmp_path, monkeypatch):
    monkeypatch.setattr(ratchet, "ROOT", str(tmp_path))
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.c").write_text('/* a comment\n * of two lines */\n\nint a = f("one token");\n// no\n')
    assert ratchet.density() == {"src": [8, 1]}


@pytest.mark.parametrize("pattern, lines, code", [
    ("comma", [2], "void f(void) {\n    a = 1, b = 2;\n    int c = 1, d = 2;\n    g(c, d);\n}"),
    ("comma", [2], "void f(void) {\n    free(a), free(b);\n}"),
    ("comma", [2], "void f(void) {\n    if ((a = g(1), a > 2))\n        h();\n}"),
    ("comma", [3], "void f(void) {\n    if (a)\n        b = 1, c = 2;\n}"),
    ("comma", [], "struct s x = {.a = 1, .b = 2};\nint y[] = {1, 2};"),
    ("return", [2, 3], "int f(void) {\n    return a = 1;\n    return !(errno = g());\n    return a == 1 && b <= 2;\n}"),
    ("return", [], "struct s f(void) {\n    return (struct s){.a = 1, .b = g(2)};\n}"),
    ("condition", [2, 4], "void f(void) {\n    if (a && b && c)\n        g();\n    while (a || (b && c))\n        g();\n}"),
    ("condition", [], "void f(void) {\n    bool all = a && b && c;\n    if (a && g(b && c && d))\n        h();\n}"),
    ("condition", [], "/* if (a && b && c) */\nconst char *s = \"if (a && b && c)\";"),
])
def test_the_ratchet_counts_comma_operators_and_long_conditions(pattern, lines, code):
    assert [line for found, line in ratchet.dense(code) if found == pattern] == lines
