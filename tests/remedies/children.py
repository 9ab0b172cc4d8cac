"""Programs of programs/, each run in a child by fork: to import torch takes longer than most of them.

children.py [NAME | NAME:FIX]...    runs them, and prints {"NAME:FIX": {"status": ..., "out": ..., "error": the last line}}
"""
import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"


def warm_up():
    """Have torch import what it imports at the first compile, before this process forks.

    Nothing is differentiated here: a torch with CUDA refuses to, in a process that was forked from one with autograd's threads."""
    import torch
    import torch._dynamo.utils
    torch.set_num_threads(1)
    torch.compile(lambda x, n: (x * n).sum(), backend="eager")(torch.ones(2), 2.5)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def run_program(name, fix):
    """Run NAME in this process, as `python NAME.py FIX` does, and return its exit status."""
    path = PROGRAMS / f"{name}.py"
    sys.argv = [str(path), fix] if fix else [str(path)]
    sys.path[0] = str(path.parent)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def in_child(function, *arguments):
    """Return the dict that FUNCTION returns in a child, with what the child printed."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, tempfile.TemporaryFile("w+") as result:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            try:
                json.dump(function(*arguments), result)
                result.flush()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
        os.waitpid(child, 0)
        for file in (out, err, result):
            file.seek(0)
        text = result.read()
        given = json.loads(text) if text else {"status": None}
        given["out"] = out.read()
        if given["status"] != 0:
            given["error"] = err.read().strip().rpartition("\n")[2]
        return given


def main():
    warm_up()
    given = {}
    for word in sys.argv[1:]:
        name, _, fix = word.partition(":")
        given[word] = in_child(lambda name, fix: {"status": run_program(name, fix)}, name, fix)
    print(json.dumps(given))


if __name__ == "__main__":
    main()
