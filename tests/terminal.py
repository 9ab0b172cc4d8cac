"""The TUI from outside: its views by name, its screen as text (--dump), and a real terminal (tmux)."""
import os
import re
import shutil
import subprocess
import time

import pytest

# Name of the golden file: keys that lead there from the first screen.
VIEWS = {
    "overview": "",
    "functions": "2",
    "functions-sorted": "2 Right Right s",
    "functions-filter": "2 f recompiles Space > Space 0 Enter",
    "function": "2 Enter",
    "function-source": "2 Enter G",
    "entries": ":entries Enter",
    "entry": ":entries Enter j Enter",
    "entry-bytecode": ":entries Enter Enter G",
    "recompiles": "3",
    "causes": "3 Enter",
    "compile": "3 Enter j Enter",
    "compiles": ":compiles Enter",
    "breaks": "4",
    "break": "4 Enter",
    "ledger": "5",
    "ledger-end": "5 G",
    "ledger-filter": "5 f limit Enter",
    "ledger-search": "5 /Net Enter n",
    "call": "5 j j j j j j j Enter",
    "call-plain": ":frames Enter j j j j Enter",
    "guards": "6",
    "checks": "6 Right Right Right Right Enter",
    "timeline": "7",
    "timeline-zoomed": "7 n + + + + + +",
    "flame": "8",
    "flame-graph": "8 Tab j j",
    "replay": "9",
    "replay-miss": "9 ] ] ] ]",
    "replay-filter": "9 f outcome Space limit Enter",
    "what-if": "3 Enter j Enter w",
    "what-if-asked": ":what-if Space recompile_limit=2 Enter",
    "processes": "0",
    "process": "0 j Enter",
    "frames": ":frames Enter",
    "losses": ":losses Enter",
    "trials": ":trials Enter",
    "spans": ":spans Enter",
    "sql-result": ":sql Space SELECT Space compile_id, Space code_id, Space label Space FROM Space compile Enter",
    "sql-error": ":sql Space SELECT Space nothing Enter",
    "sql": "! Esc",
    "output": ":output Enter",
    "help": "?",
    "dyntrace": ":check Space --max-recompiles Space 0 Enter",
    "split": "2 v",
    "prompt": "2 f self Space > 1",
}


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "LANG", "LC_CTYPE", "EDITOR", "VISUAL")}
    return {**kept, "LC_ALL": "C.UTF-8", **more}


PATIENCE_S = 3600 if os.environ.get("DYNTRACE_CHECKED") else 300  # valgrind takes thirty times as long


def run(dyntrace, place, *arguments, status=0, **rest):
    done = subprocess.run([dyntrace, "tui", *arguments], cwd=place, capture_output=True, text=True, timeout=PATIENCE_S,
                          env=rest.pop("env", environment()), **rest)
    assert done.returncode == status, done.stderr
    return done


class Terminal:
    """A tmux of its own."""

    def __init__(self, folder, columns, rows, command, **env):
        self.socket = f"dyntrace-{os.getpid()}-{time.monotonic_ns()}"
        self.env = environment(**env)
        self.xterm = env.get("TERM", "").startswith("xterm")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(folder), "bash --norc")
        self.tmux("set", "-g", "status", "off")
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        self.wait(lambda screen: "bash" in screen)
        self.type(f"PS1='ready> '; {' '.join(f'export {k}={v};' for k, v in env.items())} clear; stty size", "Enter")
        self.wait(lambda screen: f"{rows} {columns}" in screen)
        self.type(f"clear; {command}", "Enter")

    def tmux(self, *arguments, check=True):
        return subprocess.run(["tmux", "-L", self.socket, *arguments], capture_output=True, text=True, check=check, env=self.env).stdout

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def mouse(self, button, column, row, times=1):
        """A press, and a button's release, in the words of an xterm, or of what a tmux is; all at once."""
        sent = b""
        for let_go in ((False, True) if button < 64 else (False,)) * times:
            if self.xterm:
                sent += f"\x1b[<{button};{column + 1};{row + 1}{'m' if let_go else 'M'}".encode()
            else:
                sent += b"\x1b[M" + bytes(32 + n for n in (3 if let_go else button, column + 1, row + 1))
        self.tmux("send-keys", "-H", *(f"{byte:x}" for byte in sent))

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, good, seconds=PATIENCE_S // 5):
        end = time.time() + seconds
        while time.time() < end:
            screen = self.screen()
            if good(screen):
                return screen
            time.sleep(0.02)
        raise AssertionError(f"never came; the screen is\n{screen}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.tmux("kill-server", check=False)


needs_tmux = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")


def rows_of(screen):
    return [line.rstrip() for line in screen.rstrip("\n").split("\n")]


def dump(dyntrace, place, keys, size="80x24", trace="t.db", **rest):
    return run(dyntrace, place, trace, "--dump", "--screen", size, "--keys", keys, **rest).stdout


def pressed(keys):
    """Keys of a script, a typed line being one with its Enter."""
    words, count = keys.split(), 0
    while words:
        word = words.pop(0)
        if word[0] in "/:@f" and "Enter" in words:
            del words[:words.index("Enter") + 1]
        count += 1
    return count


def answered(dyntrace, place, trace, keys, pattern):
    """At most three keys lead to a screen that fits PATTERN."""
    assert pressed(keys) <= 3
    out = dump(dyntrace, place, keys, "120x40", trace=trace)
    assert re.search(pattern, out, re.M | re.S), out
