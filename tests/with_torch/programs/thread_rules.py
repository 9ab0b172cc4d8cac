"""What torch sets around a call holds for its thread, or, before torch 2.15, for all threads."""
import threading

import torch
from torch._C._dynamo import eval_frame

from know import Know

know = Know(__file__, needs=(2, 9))
backend = know.backend()


@torch.compile(backend=backend, dynamic=False)
def f(x):
    return x.sin() + 1


def in_a_thread(work):
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def old_values():
    """The values on this thread. Setting a value returns the old one."""
    values = [eval_frame.set_skip_guard_eval_unsafe(False), eval_frame.set_fullgraph_error_on_nested_compile(False),
              eval_frame.set_fullgraph_compiled_frame_count(-1)]
    eval_frame.set_skip_guard_eval_unsafe(values[0])
    eval_frame.set_fullgraph_error_on_nested_compile(values[1])
    eval_frame.set_fullgraph_compiled_frame_count(values[2])
    return values


results = [know.call("f: compiled", f, torch.ones(2))]
eval_frame.set_skip_guard_eval_unsafe(True)
eval_frame.set_fullgraph_error_on_nested_compile(True)
results += [old_values(), in_a_thread(old_values), old_values()]
eval_frame.set_fullgraph_error_on_nested_compile(False)
eval_frame.set_skip_guard_eval_unsafe(False)
results.append(know.call("f: hit", f, torch.ones(2)))
# Setting whether a hit moves its entry to the front returns the old value, or, before torch 2.15, None.
results += [eval_frame._set_lru_cache(False), eval_frame._set_lru_cache(True), eval_frame._set_lru_cache(True)]
know.done(f, results=results)
