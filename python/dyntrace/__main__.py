"""`python -m dyntrace ...` runs the program `dyntrace`. Its command `run` then uses this Python."""

import os
import sys

from .record import _find_program


def main(words):
    if words[:1] == ["run"]:
        # the user may override this option by another --python
        words = ["run", "--python", sys.executable, *words[1:]]
    elif words == ["doctor"]:
        words = ["doctor", sys.executable]
    try:
        program = _find_program()
        os.execv(program, ["dyntrace", *words])
    except RuntimeError as error:
        return "dyntrace: %s" % error
    except OSError as error:
        return "dyntrace: %s: %s" % (program, error.strerror)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
