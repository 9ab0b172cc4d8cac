"""The commands of a document and what the document says they print, as a shell would run them in a folder with examples/."""
import re
import shutil
import subprocess

from shared import ROOT


def commands(text):
    """[(command, [expected line, ...])] of the blocks of TEXT that begin with `$ `."""
    found = []
    for block in re.findall(r"(?:^    .*\n|^\n)+", text, re.M):
        lines = [line[4:] for line in block.strip("\n").split("\n")]
        if not lines[0].startswith("$ "):
            continue
        for line in lines:
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def same_but_for_measures(line):
    """LINE without what differs between two runs: times, shares, ids, and the width of columns."""
    line = re.sub(r"[\d.]+ (?:ns|us|ms|s|min)\b", "TIME", line)
    line = re.sub(r"[\d.]+ %", "SHARE", line)
    if line.endswith(")") or " on a processor " in line:  # a busy machine makes any call wait for a processor
        line = re.sub(r"; it waited at least TIME \((?:at most )?TIME of that for a processor\)|; it was on a processor at least TIME", "", line)
    line = line.replace(", TIME waiting for a processor", "")
    line = re.sub(r"\b([Cc]all|process) \d+", r"\1 ID", line)
    return " ".join(line.split())


def unmet(expected, printed):
    """The first of the EXPECTED lines that the PRINTED ones do not have in this order, or None. `...` stands for any lines."""
    rest = [same_but_for_measures(line) for line in printed if line.strip()]
    skips = False
    for line in expected:
        wanted = same_but_for_measures(line)
        if wanted == "...":
            skips = True
        elif wanted:
            if skips:
                while rest and rest[0] != wanted:
                    rest.pop(0)
            if not rest or rest.pop(0) != wanted:
                return line
            skips = False
    return None


def hold(page, dyntrace, folder, programs=()):
    """Run the commands of the document PAGE in FOLDER, and compare. PROGRAMS: what to write for a word of them."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    for command, expected in commands((ROOT / page).read_text()):
        command = re.sub(r"^dyntrace\b", str(dyntrace), command)
        for word, program in dict(programs).items():
            command = command.replace(word, str(program))
        done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        assert done.returncode in (0, 1), (command, done.stderr)
        line = unmet(expected, done.stdout.split("\n")) if expected else None
        assert line is None, (command, line, done.stdout)
