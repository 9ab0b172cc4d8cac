"""Code whose variables are in a mapping of the program's is offered to a callback; the mapping is asked what the code asks it."""
from dyntrace.eval_frame import set_eval_frame

class Mapping:
    def __getitem__(self, key):
        print("asked for", key)
        raise KeyError(key)

set_eval_frame(lambda frame, entry, state: None)
try:
    print(eval("len(str(n))", {"n": 12}, Mapping()))
finally:
    set_eval_frame(None)
