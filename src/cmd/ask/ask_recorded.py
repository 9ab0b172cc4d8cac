# Run by `dyntrace doctor` under `dyntrace run`. Imports torch and CinderX if they are installed. Prints, separated by tabs:
#     the nanoseconds of a recorded call
#     the owner of CPython's PEP 523 slot after these imports
#     why torch or CinderX cannot be imported, or that another package is named dyntrace; otherwise nothing
# The import of torch._dynamo is stopped at its first submodule: dyntrace has attached to torch by then, and the whole
# import takes long.
import sys, time
def do_nothing(): pass
def time_calls():
    begin = time.perf_counter_ns()
    for _ in range(200000): do_nothing()
    return (time.perf_counter_ns() - begin) / 200000
ns, why = min(time_calls() for _ in range(6)), ''
import importlib.util
class Enough(BaseException): pass
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name.startswith('torch._dynamo.'): raise Enough
for name, needed in ('torch', 'torch._dynamo'), ('cinderx', 'cinderx'):
    try:
        if importlib.util.find_spec(name):
            __import__(name)
            sys.meta_path.insert(0, Stop())
            __import__(needed)
    except Enough:
        pass
    except BaseException as error:
        why = why or '%s cannot be imported: %s: %s' % (name, type(error).__name__, str(error).partition('\n')[0])
try:
    place = importlib.util.find_spec('dyntrace').origin
    ours = b'import _native' in open(place, 'rb').read()
except (AttributeError, OSError, TypeError):
    ours = True
if not ours:
    why = why or ('`import dyntrace` is another package here (%s): only recording works, '
                  'not dyntrace.record() and the like; pip uninstall dyntrace, then pip install dyntrace-recorder' % place)
def afterwards(): pass  # schemas/doctor.sql looks for this call in the trace
afterwards()
print('\t%.1f\t%s\t%s' % (ns, sys.modules['_dyntrace']._owner(), why))
