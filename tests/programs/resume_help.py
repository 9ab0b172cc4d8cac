"""Splits functions for test programs: what makes code to run in place of other code, as a MODE says.

    split=N    at a random point; N: another number, other points. Every second resume function again
    none       nowhere
    every      functions of up to 200 instructions at every point in turn: each resume function at the point after its own

What runs has the names of the original, so that programs that print names can be compared.
"""
import bisect
import operator
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
        offset = self.next(code, before)
        made = code
        if offset is not None:
            split = resume.split(code, offset)
            self.splits[id(split.resume)] = split
            self.count += 1
            made = split.prefix
        if before:
            made = made.replace(co_name=before.origin.co_name, co_qualname=before.origin.co_qualname)
        return made if split or before else None

    def anywhere(self, code, before):
        points = resume.points(code)
        return None if not points or before and self.random.random() < 0.5 else self.random.choice(points)

    def behind(self, code, before):
        """The first of resume.points(), in a resume function the first behind its own: to look for them all would take most of the time."""
        if not before:
            points = resume.points(code)
            return points[0] if 0 < len(points) <= MOST else None
        program = resume._Program(code)  # its steps are the original's
        behind = range(bisect.bisect(program.steps, before.offset, key=operator.itemgetter(0)), len(program.steps))
        return next((program.places[step][0] for step in behind if not program.find_obstacle(step)), None)
