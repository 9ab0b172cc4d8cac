# Run by `dyntrace doctor` in each interpreter. Prints three lines:
#     implementation, major, minor, and the suffix of extensions, as ask_which.py does
#     the path of the interpreter itself, not of a link or script that starts it
#     the nanoseconds of a call without a hook and with one, measured by the extension in the directory argv[1]
# The last line is left out if argv[2:] has the path, because the interpreter has been measured already.
import os, sys, _imp
suffix = _imp.extension_suffixes()[0]
print(sys.implementation.name, sys.version_info[0], sys.version_info[1], suffix, flush=True)
itself = os.path.realpath(sys.executable)
print(itself, flush=True)
if itself in sys.argv[2:]:
    sys.exit()
import _frozen_importlib as b, _frozen_importlib_external as e
import re
path = re.sub('/python3[.][0-9]+/', '/python%d.%d/' % sys.version_info[:2], sys.argv[1]) + '/_dyntrace' + suffix  # pip has a folder for each Python
module = _imp.create_dynamic(b.ModuleSpec('_dyntrace', e.ExtensionFileLoader('_dyntrace', path), origin=path))
_imp.exec_dynamic(module)
def do_nothing(): pass
def call_often():
    for _ in range(200000): do_nothing()
call_often()
costs = [module._cost(call_often) for _ in range(5)]
print(*('%.1f' % (min(c[i] for c in costs) / 200000) for i in (0, 1)))
