"""`python -m dyntrace ...` runs the program dyntrace, and lets it record with this Python."""

import os
import sys

from .record import _program


def main(words):
    if words[:1] == ["run"]:
        # a later --python overrides this one
        words = ["run", "--python", sys.executable, *words[1:]]
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
