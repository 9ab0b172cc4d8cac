"""Splits functions for test programs: what makes code to run in place of other code, as a MODE says.

    split=N    at a random point; N: another number, other points. Every second resume function again
    none       nowhere
    every      functions of up to 200 instructions at every point in turn: each resume function at the point after its own

What runs has the names of the original, so that programs that print names can be compared.
"""
import bisect
import random

from dyntrace import resume

MOST = 200


class Splitting:
    def __init__(self, mode):
        mode, _, seed = mode.partition("=")
        self.random = random.Random(seed)
        self.next = {"split": self.anywhere, "every": self.behind, "none": lambda *_: None}[mode]
        self.splits = {}  # by the id of the resume function
        self.count = 0

    def instead(self, code):
        """Code to run in place of CODE, or None."""
        split, before = None, self.splits.get(id(code))
        points = resume.points(code)
        offset = self.next(points, before, code) if points else None
        made = code
        if offset is not None:
            split = resume.split(code, offset)
            self.splits[id(split.resume)] = split
            self.count += 1
            made = split.prefix
        if before:
            made = made.replace(co_name=before.origin.co_name, co_qualname=before.origin.co_qualname)
        return made if split or before else None

    def anywhere(self, points, before, code):
        return None if before and self.random.random() < 0.5 else self.random.choice(points)

    def behind(self, points, before, code):
        """A resume function has the points of its original that it reaches, in the same order."""
        if len(points) > MOST:
            return None
        at = bisect.bisect(points, before.offset, key=lambda at: resume.split(code, at).offset) if before else 0
        return points[at] if at < len(points) else None
