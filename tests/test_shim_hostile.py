"""The evaluator is sound: whatever the program does from a guard, a callback, an attribute, a finaliser, it does not crash.

tests/programs/shim_hostile.py has the places and the acts; its children run alone and under `dyntrace run`, with every
Python, and under ASan and UBSan in `make check-san`.
"""


from test_shim import run  # noqa: F401, the fixture



def test_every_act_in_every_place(run):  # noqa: F811
    """Resets, invalidations, refills, other code, death, a fork, ... in the middle of a decision: the call's result is the
    function's, entries can be looked at, later calls are decided as usual."""
    out, _, _ = run("shim_hostile.py")
    assert int(out.splitlines()[-1].split(" combinations")[0]) > 4000


def test_a_reset_while_other_threads_are_in_guards(run):  # noqa: F811
    assert run("shim_hostile_threads.py")[0] == "OK\n"
