"""Records hits and misses of torch's caches, and inductor's output, as listings of a compile.

Runs in: the traced process, within torch's compiles. Torch writes each of these facts to its
structured log (TORCH_TRACE) by torch._logging.trace_structured(name, metadata_fn, payload_fn=...).
We wrap this function. No code of the program runs below this function, so it is in no traceback of
the program. We read only texts that torch computes anyway, also if the log is off. `dyntrace
import` reads the same facts from the log and records them under the same kinds:

    inductor_output_code, inductor_post_grad_graph      texts
    fx_graph_cache_hit, aotautograd_cache_bypass, ...   JSON: torch's report about the lookup, shown
                                                        by the view compile_caches
"""

import collections
import json
import re
import sys

from . import _notes as notes, _torch_private as private
from ._native import native

_TEXTS = ("inductor_output_code", "inductor_post_grad_graph")
_EVENT = re.compile(r"(?:fx_graph|aotautograd|precompile|dynamo)_cache_(?:hit|miss|bypass)")
_KEPT = (
    "key",
    "cache_bypass_reason",
    "_reason",
    "cache_status_detailed",
    "time_saved_ms",
    "time_taken_ns",
)
# most components of a cache key; most characters of a component's name, value and hash
_PARTS, _NAME, _VALUE, _HASH = 2000, 100, 40, 10

# torch's label of a compile -> our id of the compile, for recent compiles. A backward may be
# compiled long after its forward, under the forward's label.
_compiles = collections.OrderedDict()
# a function that returns the compile running on this thread, or None: see _torch_facts
_current = None
_lost = None


def wrap_trace_structured(current, lost):
    """Wrap torch's trace_structured. Called once, when torch._dynamo is imported. CURRENT() returns
    the compile that runs on this thread; LOST(where, error) records a loss. Modules that have
    imported trace_structured by name get the wrapper, too."""
    global _current, _lost
    _current, _lost = current, lost
    theirs = sys.modules["torch._logging"].trace_structured
    ours = native._around(None, theirs, _on_trace_structured)
    for name, module in list(sys.modules.items()):
        if (
            name.partition(".")[0] == "torch"
            and getattr(module, "__dict__", {}).get("trace_structured") is theirs
        ):
            module.trace_structured = ours


def note_ended(label, compile):
    """Note that COMPILE, our id of the compile with torch's label LABEL, has ended."""
    _compiles[label] = compile
    _compiles.move_to_end(label)
    if len(_compiles) > 1000:
        _compiles.popitem(last=False)


def note_miss(compile):
    """Record a miss of torch's cache of precompiled code: the program uses this cache
    (caching_precompile), but COMPILE was necessary."""
    if getattr(sys.modules.get("torch._dynamo.config"), "caching_precompile", False):
        notes.listing(compile, "precompile_cache_miss", "{}")


def _on_trace_structured(token, name, metadata_fn=dict, *_, payload_fn=None, **__):
    if name == "artifact":
        name = metadata_fn().get("name")
    if name == "after_post_grad_graph":  # the name of this graph in torch 2.8 and 2.9
        name = "inductor_post_grad_graph"
    if (
        payload_fn is None
        or name not in _TEXTS
        and not (type(name) is str and _EVENT.fullmatch(name))
    ):
        return
    try:
        _record_listing(name, payload_fn)
    except Exception as error:
        _lost("what torch's caches did", error)


def _record_listing(name, payload_fn):
    # do not record texts that contain constants of the program
    if name in _TEXTS and not private.may_show_all():
        return
    compile = _find_compile()
    if compile is not None:
        text = payload_fn()
        notes.listing(compile, name, text if name in _TEXTS else _shorten_report(text))


def _find_compile():
    token = _current()
    label = str(sys.modules["torch._guards"].CompileContext.current_compile_id())
    return token.id if token is not None and token.label == label else _compiles.get(label)


def _shorten_report(said):
    """Return SAID, torch's report about a cache lookup, as JSON, without the parts that we do not
    keep. Each component of the cache key keeps its hash, its name and the beginning of its
    value."""
    said = json.loads(said) if type(said) is str else said
    kept = {name: said[name] for name in _KEPT if said.get(name) is not None}
    parts = said.get("components")
    if type(parts) is list:
        kept["components"] = list(dict.fromkeys(map(_shorten_component, parts[:_PARTS])))
    for name in "cache_bypass_reason", "_reason":
        if name in kept:
            kept[name] = private.strip_reason(str(kept[name]))[:2000]
    return json.dumps(kept, default=lambda other: type(other).__name__)


def _shorten_component(line):
    """Shorten a component of a cache key, "[hash] name: value". The values of inductor's hundreds
    of settings are left out."""
    hash, mark, rest = str(line).partition("] ")
    name, colon, value = rest.partition(": ")
    value = (
        " ".join(value[: 2 * _VALUE].split())[:_VALUE]
        if private.may_show_all() and not name.startswith("inductor_config")
        else ""
    )
    return "%s%s%s%s%s" % (hash[:_HASH], mark, name[:_NAME], colon, value)
