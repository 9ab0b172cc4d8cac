"""`run --metrics`: counters as Prometheus text, for node_exporter's textfile collector."""
import os
import re
import time

import pytest

from crash_help import rows, until
from test_keep import DECIDED
from test_snapshot import recorded

pytestmark = pytest.mark.one_python

SAMPLE = re.compile(r'(dyntrace_[a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+)\} (\S+)')


def parse(text):
    """{(name, outcome or None): value}; each metric has its HELP and TYPE, once and before its samples."""
    found, kinds = {}, {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            assert re.fullmatch(r"# HELP dyntrace_[a-z_]+ [A-Z].*\.", line), line
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds and kind in ("counter", "gauge") and name.endswith("_total") == (kind == "counter"), line
            kinds[name] = kind
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        labels = dict(re.findall(r'([a-z]+)="((?:[^"\\\n]|\\.)*)"', labels))
        assert name in kinds and set(labels) <= {"trace", "outcome"}
        found[name, labels.get("outcome")] = float(value)
    return found


def test_the_metrics_file_has_the_counts_of_the_trace(record, python, tmp_path):
    metrics = tmp_path / "m.prom"
    trace = record(["-c", DECIDED, "5000"], "--metrics", metrics, "--frames", "all", python=python)
    assert trace.err == ""
    found = parse(metrics.read_text())
    assert found["dyntrace_recording", None] == 0
    (calls,), = trace.rows("SELECT SUM(calls) FROM code_total")
    assert found["dyntrace_calls_total", None] == calls > 5000
    assert found["dyntrace_lookups_total", "hit"] == 5000 and found["dyntrace_lookups_total", "compiled"] == 4
    assert found["dyntrace_compiles_total", None] == 4 and found["dyntrace_recompiles_total", None] == 2
    assert found["dyntrace_losses_total", None] == 0 and found["dyntrace_bytes", None] > 0
    assert oct(metrics.stat().st_mode & 0o777) == "0o644"
    assert [path.name for path in tmp_path.glob("m.prom*")] == ["m.prom"]


def test_the_metrics_file_is_updated_while_the_program_runs(dyntrace, python, tmp_path):
    metrics = tmp_path / 'a "name"\\.prom'
    with recorded(dyntrace, python, tmp_path, "--metrics", str(metrics), "--keep", "2s"):
        until(metrics.exists, "the first file")
        first = parse(metrics.read_text())
        assert first["dyntrace_recording", None] == 1
        seen = metrics.stat().st_mtime_ns
        until(lambda: metrics.stat().st_mtime_ns != seen, "the next file", 20)
        second = parse(metrics.read_text())
        assert second["dyntrace_calls_total", None] > first["dyntrace_calls_total", None]
        assert 1.5 < second["dyntrace_window_seconds", None] < 4


def test_a_metrics_path_that_cannot_be_written_is_refused(run, tmp_path):
    done = run("run", "-o", "t.db", "--metrics", "no/m.prom", "-c", "0")
    assert done.returncode == 2 and done.stderr == "dyntrace: run: --metrics no/m.prom: cannot be written: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []


def test_a_metrics_file_that_cannot_be_replaced_is_recorded_as_a_loss(record, python, tmp_path):
    (tmp_path / "m.prom").mkdir()
    trace = record(["-c", "0"], "--metrics", "m.prom", python=python)
    assert "metrics: " in trace.err and "cannot be written (Is a directory)" in trace.err
