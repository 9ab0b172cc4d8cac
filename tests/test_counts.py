"""Frame counts are equal to those of sys.monitoring (3.11: sys.setprofile), which counts in the same run and shares no
code with the PEP 523 hook. programs/counted.py runs a region of real code under it and writes the counts by code object
and kind of entry. Here the same region of the trace is counted."""
import collections
import json
import re

import pytest

from shared import ROOT

pytestmark = pytest.mark.newest_too

PROGRAM = ROOT / "tests" / "programs" / "counted.py"
REGIONS = re.findall(r"^def region_(\w+)", PROGRAM.read_text(), re.M)


def frames_in_regions(trace):
    """Counter of (filename, qualname, first line, kind) and the number of regions."""
    frames = trace.rows("""
        SELECT f.thread_id, f.frame_id, c.filename, c.qualname, c.first_line, c.co_generator, k.name
        FROM frame f
        JOIN (SELECT code_id, filename, qualname, first_line,
                     kind IN ('generator', 'coroutine', 'async_generator') AS co_generator FROM code) c USING (code_id)
        JOIN enum k ON k.kind = 'frame.kind' AND k.value = f.kind
        ORDER BY f.thread_id, f.frame_id""")
    counts = collections.Counter()
    inside, regions, thread_before = False, 0, None
    for thread, _, filename, qualname, line, is_generator, kind in frames:
        if thread != thread_before:
            assert not inside, "a region that has no end"
            thread_before = thread
        if qualname == "marker_begin":
            inside = True
            regions += 1
        elif qualname == "marker_end":
            inside = False
        elif inside and not qualname.startswith("oracle_"):
            if kind == "call" and is_generator:
                kind = "made"
            counts[filename, qualname, line, kind] += 1
    return counts, regions


def frames_by_oracle(told):
    """Return the same from the counts that the program wrote. sys.monitoring reports the first run of a generator as a
    `start`; the trace has a call that made the generator, and a resume."""
    events = collections.Counter()
    for filename, qualname, line, event, n in told["events"]:
        events[filename, qualname, line, event] += n
    return events


@pytest.mark.parametrize("region", REGIONS)
def test_frame_counts_equal_those_of_sys_monitoring(record, python, tmp_path, region):
    counts_path = tmp_path / "counts.json"
    trace = record([PROGRAM, region, counts_path], python=python)
    told = json.loads(counts_path.read_text())
    seen, regions = frames_in_regions(trace)
    events = frames_by_oracle(told)
    unstarted = told["unstarted"]

    generators = {key[:3] for key in seen if key[3] in ("made", "resume", "throw")}
    expected = collections.Counter()
    for (filename, qualname, line, event), n in events.items():
        code = filename, qualname, line
        if event == "start" and code in generators:
            expected[(*code, "made")] += n
            expected[(*code, "resume")] += n
        else:
            expected[(*code, "call" if event == "start" else event)] += n
    for filename, qualname, line in generators:
        expected[filename, qualname, line, "made"] += unstarted.get(qualname, 0)

    differences = {key: (seen[key], expected[key]) for key in seen.keys() | expected.keys() if seen[key] != expected[key]}
    assert differences == {}, "(file, function, line, kind): (in the trace, by the oracle)"
    assert regions == told["regions"]
    assert sum(seen.values()) > 20
    assert trace.rows("SELECT * FROM loss") == []
