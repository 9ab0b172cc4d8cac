"""--help, the manual page and the completions describe the commands' options alike, and correctly."""
import os
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pages
import pytest

from planted import ROWS
from shared import ROOT, SCHEMA

pytestmark = pytest.mark.one_python

COMMANDS = "run attach detach tui report why tree try show replay check export merge import diff ranks sql fsck ls snapshot doctor".split()
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*[a-z]|-[a-z])(?![\w-])")
INTERNAL = {"-h", "--help"}


def options(text):
    return set(OPTION.findall(text)) - INTERNAL


def helped(run, command):
    """Return a command's own options. The text may name another command's options in backquotes."""
    return options(re.sub(r"`[^`]*`", "", run(command, "--help").stdout))


def manual(dyntrace):
    """The manual page as (text of the synopsis, text of the section) by command."""
    listed = subprocess.run([dyntrace, "help", "--options"], capture_output=True, text=True, check=True).stdout
    page = subprocess.run(["awk", "-f", ROOT / "docs/man.awk", "-", ROOT / "docs/dyntrace.1.in"], input=listed,
                          capture_output=True, text=True, check=True).stdout.replace("\\-", "-")
    page = re.sub(r"\\f[A-Z]", "", page)
    top = page[page.index(".SH SYNOPSIS"):page.index(".SH DESCRIPTION")]
    synopsis = {}
    for block in re.split(r"^\.PP\n", top, flags=re.M):
        name = re.match(r"\.B dyntrace (\w+)", block)
        if name:
            synopsis[name[1]] = synopsis.get(name[1], "") + block
    commands = page[page.index(".SH COMMANDS"):page.index(".SH EXIT STATUS")]
    sections = {part.split("\n", 1)[0]: part for part in commands.split(".SS ")[1:]}
    return {name: (synopsis.get(name, ""), sections.get(name, "")) for name in COMMANDS}


def completed(dyntrace, *words):
    done = subprocess.run(["bash", "-c", 'compopt() { :; }; . "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dyntrace;'
                           ' printf "%s\\n" "${COMPREPLY[@]}"', ROOT / "completions/dyntrace.bash", dyntrace, *words],
                          capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_help_man_page_and_completions_name_every_command(run, dyntrace):
    listed = re.findall(r"^  (\w+)  ", run("help").stdout, re.M)
    assert listed == COMMANDS
    assert completed(dyntrace, "") == {*COMMANDS, "help", "--help", "--version", "-V"}
    assert completed(dyntrace, "help", "") == {*COMMANDS}
    assert all(part for both in manual(dyntrace).values() for part in both)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_help_man_page_and_completions(run, dyntrace, command):
    known = helped(run, command)
    synopsis, section = manual(dyntrace)[command]
    told = options(re.sub(r"\n\.B replay --what-if\n", "\n", section))
    assert known - told == set(), "not in the manual page"
    assert told - known == set(), "in the manual page only"
    assert options(synopsis) - known == set() and known - options(synopsis) <= {"--output"}, "synopsis"
    assert completed(dyntrace, command, "-") - INTERNAL - {"--"} == known
    for option in known:
        said = run(command, option).stderr
        assert "no such option" not in said and "unknown" not in said, option
    assert "no such option" in run(command, "--nix").stderr


@pytest.mark.parametrize("words, offered", [
    (["run", "--fr"], {"--frames"}), (["run", "--frames", ""], {"all", "user", "decided", "none", "folded"}), (["run", "--frames", "d"], {"decided"}),
    (["run", "--force", "x.py", "--fr"], set()), (["run", "--frames", "all", "x.py", ""], set()), (["run", "-m", "x", "-"], set()),
    (["export", "t.db", "--format", "s"], {"speedscope"}), (["diff", "--fail-on", "out"], {"outcome"}),
    (["replay", "--what-if", "dyn"], {"dynamic=", "dynamic=all"}), (["check", "--limit", ""], set()),
    (["sql", "hot-f"], {"hot-functions"}), (["nix", ""], set()),
])
def test_completions_offer_only_the_words_that_fit(dyntrace, words, offered):
    assert completed(dyntrace, *words) == offered


NAMED = """
    INSERT INTO code(code_id, process_id, qualname, kind) VALUES (901, 1, 'Net.forward', 'function'),
        (902, 1, 'make.<locals>.inner', 'function'), (903, 1, '$(touch here)', 'function'),
        (904, 1, 'a; b`c`.d e', 'function'), (905, 1, 'main.<locals>.<lambda>', 'function');
"""


@pytest.fixture
def named(tmp_path):
    """A trace with functions whose names a shell must not see as they are."""
    with sqlite3.connect(tmp_path / "named.db") as db:
        db.executescript(SCHEMA + ROWS + NAMED)
    db.close()
    return tmp_path / "named.db"


def test_completions_offer_the_functions_of_the_trace(run, named, tmp_path):
    """The trace is the newest one here, or the one on the command line. Names that a shell would expand are not offered."""
    names = {"Net.forward", "inner", "e"}
    for words in (["why", ""], ["why", str(named), ""], ["replay", "--function", ""], ["check", "--require-compiled", ""]):
        offered = run("help", "--complete", *words, cwd=tmp_path).stdout.split("\n")
        assert {word for word in offered if word and word[0] != "@"} >= names, words
        assert not [word for word in offered if set(word) & set("$`;<>() ")], words
    assert "Net.forward" not in run("help", "--complete", "report", "", cwd=tmp_path).stdout


ZSH = r"""
    zmodload zsh/zpty; zpty shell zsh -f
    say() { zpty -w shell "$1"; }
    say "PS1=; unsetopt zle_bracketed_paste; fpath=($COMPLETIONS \$fpath); autoload -U compinit; compinit -u -D; echo rea''dy"
    zpty -r shell line '*ready*'
    zpty -n -w shell "$1"$'\t'; sleep 1; zpty -n -w shell $'\C-u'
    say "echo en''ded"
    zpty -r shell line '*ended*'; print -r -- "$line"
"""
FISH = 'source $COMPLETIONS/dyntrace.fish; complete -C "$argv[1]"'


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize("typed, offered", [("dyntrace rep", ["report", "replay"]), ("dyntrace run --frames ", ["all", "user", "decided", "none"]),
                                            ("dyntrace why ", ["Net.forward", "inner"]), ("dyntrace sql hot-f", ["hot-functions"])])
def test_completions_work_in_zsh_and_fish(dyntrace, named, tmp_path, shell, typed, offered):
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    env = {**os.environ, "COMPLETIONS": str(ROOT / "completions"), "PATH": f"{Path(dyntrace).parent}:{os.environ['PATH']}", "TERM": "dumb",
           "HOME": str(tmp_path)}
    words = ["zsh", "-f", "-c", ZSH, "zsh", typed] if shell == "zsh" else ["fish", "-c", FISH, typed]
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert all(word in done.stdout for word in offered), (done.stdout, done.stderr)


# ---- the documents ----

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "capture/README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_docs_readme_names_every_document():
    index = (ROOT / "docs/README.md").read_text()
    for page in [*PAGES[1:]]:
        assert page == ROOT / "docs/README.md" or os.path.relpath(page, ROOT / "docs") in index, page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_in_documents_lead_to_existing_files(page):
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("http") or (page.parent / link).exists(), link
    for path in re.findall(r"(?<![\w/.-])((?:src/[\w/]+\.[ch]|schemas/[\w/-]+\.sql|(?:capture/)?python/[\w/]+\.py|capture/[\w/]*\w\.(?:[ch]|py)|(?:src|capture|schemas|tests|bench|examples)/[\w/-]*\w/))", text):
        assert (ROOT / path).exists(), path


def test_the_readme_begins_with_output_of_the_torch_page():
    """tests/with_torch/test_try.py runs the commands of the torch page."""
    page = dict(reversed(pages.commands((ROOT / "docs/start-torch.md").read_text())))
    shown = pages.commands((ROOT / "README.md").read_text())
    assert len(shown) == 3
    for command, expected in shown:
        whole = command if command in page else f"{command} lengths.db"
        assert pages.unmet(expected, page[whole]) is None, command


@pytest.mark.parametrize("page", ["docs/start-python.md", "docs/start-compiler.md"])
def test_programs_of_the_five_minute_pages_print_what_the_pages_say(dyntrace, tmp_path, page):
    pages.hold(page, dyntrace, tmp_path)
