"""The recording's clock agrees with the program's."""
from shared import query

PROGRAM = """
import time

def sleeps():
    began = time.perf_counter_ns()
    time.sleep(0.3)
    return time.perf_counter_ns() - began

print(sleeps())
"""


def test_a_call_takes_as_long_as_the_program_measures_inside_it(record, python):
    """Each recording measures how many nanoseconds a tick of the clock takes."""
    for _ in range(3):
        trace = record(["-c", PROGRAM], python=python)
        ((recorded,),) = query(trace.path, "SELECT end_ns - start_ns FROM frame JOIN code USING (code_id) WHERE qualname = 'sleeps'")
        assert recorded >= int(trace.out) * 0.9999
