"""Call-heavy programs of our own, each small enough to time and easy to check.

A program is a function `run(times)` that does the same unit of work `times`
times and returns the last unit's result, so that `check(result)` says whether
it worked, however often it ran. `times` is chosen so that a run without any
hook takes about a tenth of a second on a 2020s server core.
"""
from typing import Any, Callable, NamedTuple, Optional

from . import calls, constraints, library, scheduler


class Program(NamedTuple):
    name: str
    run: Callable[[int], Any]
    check: Callable[[Any], bool]
    times: int
    target: Optional[float]  # recording : pass-through hook, at most; None = shown, not judged


PROGRAMS = {
    program.name: program
    for program in (
        Program("fib", calls.run_fib, calls.check_fib, 500, 1.25),
        Program("methods", calls.run_methods, calls.check_methods, 1500, 1.15),
        Program("objects", calls.run_objects, calls.check_objects, 800, 1.3),
        Program("generators", calls.run_generators, calls.check_generators, 1500, 1.5),
        Program("coroutines", calls.run_coroutines, calls.check_coroutines, 800, None),
        Program("scheduler", scheduler.run, scheduler.check, 60, 1.15),
        Program("constraints", constraints.run, constraints.check, 100, 1.20),
        Program("json", library.run_json, library.check_json, 300, 1.10),
        Program("pprint", library.run_pprint, library.check_pprint, 250, 1.10),
        Program("difflib", library.run_difflib, library.check_difflib, 500, None),
        Program("syntax", library.run_syntax, library.check_syntax, 40, None),
    )
}
