"""What ui.perfetto.dev makes of a Trace Event JSON file: the rules of its importer, each an assertion.

Read from Perfetto's sources (importers/json/json_trace_tokenizer.cc, json_trace_parser.cc, common/slice_tracker.cc; 2026) and
from Google's "Trace Event Format". Where the importer would count an error or drop an event, this raises.
"""
import collections
import json

METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index", "thread_sort_index": "sort_index"}
SCOPES = {"t", "p", "g"}
UINT32 = 1 << 32
Slice = collections.namedtuple("Slice", "start end name args parent")


def nanoseconds(value, text):
    """CoerceToTs: whole numbers are microseconds; others are doubles, rounded to a nanosecond. TEXT is what was meant."""
    assert not isinstance(value, bool) and isinstance(value, (int, float)), text
    ns = value * 1000 if isinstance(value, int) else int(value * 1000.0 + (0.5 if value >= 0 else -0.5))
    whole, _, part = str(text).partition(".")
    assert ns == int(whole) * 1000 + int((part + "000")[:3] or 0), f"{text} is read as {ns} ns"
    return ns


class Number(float):
    """A JSON number that remembers how it was written."""

    def __new__(cls, text):
        made = super().__new__(cls, text)
        made.text = text
        return made


def slices_of(text):
    """The slices that are drawn, by track: (pid, tid) of threads, ("process", pid), ("async", pid, cat, id)."""
    document = json.loads(text, parse_float=Number)
    assert isinstance(document["traceEvents"], list) and document.get("displayTimeUnit") in ("ms", "ns")
    events, tracks, stacks, names = [], collections.defaultdict(list), collections.defaultdict(list), {}
    for event in document["traceEvents"]:
        ph = event["ph"]
        assert ph in "MXibe" and len(ph) == 1, f"ph {ph!r}: not one that we write"
        for key in ("pid", "tid"):  # above 32 bits they would all be 0
            assert isinstance(event[key], int) and 0 <= event[key] < UINT32, event
        assert isinstance(event["name"], str) and event["name"], event  # else "[No name]"
        args = event.get("args")
        assert args is None or isinstance(args, dict)
        if ph == "M":
            key = METADATA[event["name"]]
            value = args[key]
            assert isinstance(value, int) if key == "sort_index" else isinstance(value, str) and value, event
            names.setdefault((event["name"], event["pid"], event["tid"]), value)
            continue
        assert isinstance(event["cat"], str) and event["cat"], event
        ts = nanoseconds(event["ts"], getattr(event["ts"], "text", event["ts"]))
        assert ts >= 0, f"events before 0 are dropped: {event}"
        events.append((ts, event))
    events.sort(key=lambda e: e[0])  # stable, as the importer's sorter is: of one moment, in the order of the file

    def begin(track, start, end, event):
        stack = stacks[track]
        while stack and stack[-1].end is not None and stack[-1].end <= start:
            stack.pop()
        if end is not None:
            for outer in stack:
                assert outer.end is None or end <= outer.end, f"overlaps {outer.args}: {event}"
        made = Slice(start, end, event["name"], event.get("args"), stack[-1] if stack else None)
        stack.append(made)
        tracks[track].append(made)

    for ts, event in events:
        ph, thread = event["ph"], (event["pid"], event["tid"])
        if ph == "X":
            dur = nanoseconds(event["dur"], getattr(event["dur"], "text", event["dur"]))
            assert dur >= 0 and ("thread_name", *thread) in names, event
            begin(thread, ts, ts + dur, event)
        elif ph == "i":
            assert event["s"] in SCOPES, event
            begin(thread if event["s"] == "t" else ("process", event["pid"]), ts, ts, event)
        else:
            assert isinstance(event["id"], (str, int)), event
            track = ("async", event["pid"], event["cat"], event["id"], event["name"])
            if ph == "b":
                begin(track, ts, None, event)
            else:
                opened = stacks[track].pop()  # an end without a begin raises
                tracks[track][tracks[track].index(opened)] = opened._replace(end=ts)
    for track, stack in stacks.items():
        assert track[0] != "async" or not stack, f"begun and not ended: {stack}"
    for pid in {track[0] for track in tracks if isinstance(track[0], int)}:
        assert any(key[0] == "process_name" and key[1] == pid for key in names), pid
    for key in names:  # a tid is one thread's, whatever its process: two would be drawn as one
        assert key[0] != "thread_name" or sum(k[0] == "thread_name" and k[2] == key[2] for k in names) == 1, key
    return tracks
