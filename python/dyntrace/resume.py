"""A function split in two at an instruction: a prefix, and a resume function that goes on from there.

Runs in: the traced process. docs/resume.md has the rules.
"""
from ._native import native as _native

Split = _native.Split
UNBOUND = _native.UNBOUND
split = _native.split
points = _native.points
why_not = _native.why_not
call_resume = _native.call_resume
