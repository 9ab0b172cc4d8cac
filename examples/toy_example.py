"""A function that branches on its data, captured as graphs: the first ends at the branch, resume functions go on behind it.

    dyntrace run -o toy.db examples/toy_example.py && dyntrace show toy_example toy.db
"""
import numpy as np

import dyntrace


def my_compiler(module, example_inputs):
    module.print_tabular()
    return module.forward


@dyntrace.compile(backend=my_compiler)
def toy_example(a, b):
    x = a / (np.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


for step in (-0.5, 0.5, -0.25):
    toy_example(np.ones(10), np.full(10, step))
