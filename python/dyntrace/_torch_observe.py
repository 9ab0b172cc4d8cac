"""Observes torch's own evaluator: puts hooks around it, and records why entries are invalidated.

Runs in: the traced process. The hooks themselves are in src/tracer/torch/observe.c.
"""

import sys

import _dyntrace


def attach(module, late):
    """Put our functions into MODULE, which is torch._C._dynamo.eval_frame. LATE: other modules have
    already imported the functions by name, so replace the functions in these modules, too."""
    before = dict(vars(module))
    for name in ("_debug_get_cache_entry_list", "_PyInterpreterFrame"):
        _dyntrace._torch_bridge(name, getattr(module, name))
    for name in (
        "set_eval_frame",
        "set_code_exec_strategy",
        "skip_code",
        "reset_code",
        "get_eval_frame_isolate_recompiles_id",
    ):
        _dyntrace._torch_bridge(name, before.get(name))  # None if this torch lacks the function
    for name, ours in _dyntrace._observe().items():
        if name in before:
            setattr(module, name, ours)
    if late:
        changed = {
            id(before[name]): value
            for name, value in vars(module).items()
            if before.get(name) is not value
        }
        for name, other in list(sys.modules.items()):
            if name.startswith("torch") and other is not module:
                for key, value in list(getattr(other, "__dict__", {}).items()):
                    if id(value) in changed:
                        setattr(other, key, changed[id(value)])


def wrap_invalidate():
    """Wrap torch's function that invalidates an entry, in order to record the reason: the hooks do
    not see it. Called once, when torch._dynamo is imported."""
    manager = getattr(sys.modules.get("torch._dynamo.guards"), "CheckFunctionManager", None)
    original = getattr(manager, "invalidate", None)
    if original is None:
        return

    def get_code(self, *args, **kwargs):
        return getattr(
            getattr(getattr(self, "guard_manager", None), "cache_entry", None), "code", None
        )

    def record_death(code, self, *args, **kwargs):
        reason = getattr(getattr(self, "guard_manager", None), "invalidation_reason", None)
        if code is not None:
            _dyntrace._observe_death(code, str(reason or "invalidated by torch"))

    manager.invalidate = _dyntrace._around(get_code, original, record_death)
