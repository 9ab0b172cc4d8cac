"""A test suite under pytest with the functions below its folder, and those of its package, split in two: as shim_cpython.py.

usage: resume_pytest.py MODE FOLDER [pytest's options]
"""
import functools
import json
import os
import sys

import pytest
from resume_help import Splitting
from shim_cpython import DECLINED, true

from dyntrace.eval_frame import get_eval_frame_callback, set_eval_frame
from dyntrace.types import GuardedCode

OURS = os.path.dirname(os.path.abspath(__file__))
LEFT = ("/_pytest/", "/pluggy/", "/hypothesis/", OURS, os.path.dirname(os.__file__) + "/", "/dyntrace/", "<")


def callback(splitting, frame, entry, state):
    code = frame.f_code
    if any(part in code.co_filename for part in LEFT):
        return DECLINED
    made = code.replace(co_name=code.co_name) if splitting is None else splitting.instead(code)
    return GuardedCode(made, true) if made else DECLINED


class Plugin:
    def __init__(self, mode):
        self.splitting = None if mode in ("declined", "replaced") else Splitting(mode)
        self.callback = functools.partial(callback, self.splitting) if mode != "declined" else lambda frame, entry, state: DECLINED
        self.ran, self.bad, self.off = 0, set(), []

    def pytest_sessionstart(self, session):
        """Of hypothesis, each mode runs the same examples, however long they take. A conftest.py has set its own profile by now."""
        import hypothesis  # not before pytest has: it warns then
        hypothesis.settings.register_profile("torture", hypothesis.settings.default, deadline=None, derandomize=True, database=None,
                                             suppress_health_check=list(hypothesis.HealthCheck))
        hypothesis.settings.load_profile("torture")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        set_eval_frame(self.callback)
        yield
        if not get_eval_frame_callback():
            self.off.append(item.nodeid)
        set_eval_frame(None)

    def pytest_runtest_logreport(self, report):
        self.ran += report.when == "call"
        if report.failed:
            self.bad.add(report.nodeid)


def main(mode, folder, *more):
    plugin = Plugin(mode)
    pytest.main(["-q", "-p", "no:cacheprovider", "-o", "addopts=", "--tb=no", folder, *more], plugins=[plugin])
    count = plugin.splitting.count if plugin.splitting else 0
    print(json.dumps({"ran": plugin.ran, "replaced": count, "bad": sorted(plugin.bad), "off": plugin.off}))


if __name__ == "__main__":
    main(*sys.argv[1:])
