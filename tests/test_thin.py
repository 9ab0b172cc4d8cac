"""`run --thin`: functions that are called over a million times."""
import textwrap

import pytest

from crash_help import fsck
from test_keep import DECIDED

pytestmark = pytest.mark.one_python

MANY = textwrap.dedent("""
    import time
    def leaf(i):
        if i in (1_500_000, 1_700_000):
            time.sleep(0.02)
        return i
    def mid(start):
        for i in range(start, start + 1000):
            leaf(i)
    def few():
        mid(0)
    few()
    for start in range(1000, 2_000_000, 1000):
        mid(start)
    """)


def test_the_option_thin_stores_the_slowest_calls_and_a_sample(dyntrace, record, python):
    trace = record(["-c", MANY], "--thin", python=python)
    assert trace.err == ""
    count = "SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf'"
    assert trace.rows("SELECT calls FROM code_total JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(2_000_000,)]
    (stored,), = trace.rows(count)
    assert 1_001_000 <= stored < 1_020_000
    assert trace.rows(count + " AND end_ns - start_ns >= 20000000")[0][0] >= 2
    assert trace.rows("SELECT MAX(f.end_ns - f.start_ns) = MAX(n.max_ns) FROM frame f JOIN code_total n USING (code_id) JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(1,)]
    assert trace.rows("SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'mid'") == [(2000,)]
    assert trace.rows("SELECT value FROM meta WHERE key = 'thin'") == [(1000,)]
    fsck(dyntrace, trace.path)


def test_the_option_thin_stores_every_decision(dyntrace, record, python):
    trace = record(["-c", DECIDED, "1200000"], "--thin", "--frames", "decided", python=python)
    assert trace.rows("SELECT COUNT(*) FROM lookup WHERE outcome = 1") == [(1_200_000,)]
    assert trace.rows("SELECT COUNT(*) FROM frame WHERE outcome = 1") == [(1_200_000,)]
    fsck(dyntrace, trace.path)


def test_the_option_thin_stores_all_calls_of_rarely_called_functions(dyntrace, record, run, python):
    trace = record(["-c", MANY.replace("2_000_000", "100_000")], "--thin", python=python)
    assert trace.rows("SELECT COUNT(*) FROM frame JOIN code USING (code_id) WHERE qualname = 'leaf'") == [(100_000,)]
    fsck(dyntrace, trace.path)
    assert "the first million calls, the slowest, and one in 1000" in run("report", trace.path).stdout
