"""`python -m dyntrace ...` is the program dyntrace, asked to record with this Python."""

import os
import sys

from .record import _program


def main(words):
    if words[:1] == ["run"]:
        words = ["run", "--python", sys.executable, *words[1:]]  # a later --python wins
    elif words == ["doctor"]:
        words = ["doctor", sys.executable]
    try:
        program = _program()
        os.execv(program, ["dyntrace", *words])
    except RuntimeError as error:
        return "dyntrace: %s" % error
    except OSError as error:
        return "dyntrace: %s: %s" % (program, error.strerror)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
