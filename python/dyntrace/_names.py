"""The public names of the package: the one list of them.

Runs in: the traced process. __init__.py makes `__all__` of it. Under `dyntrace run` the package
is not read before a program asks for one of these names; the stand-in in sitecustomize.py reads
them here.
"""

# Of dyntrace.capture, which is loaded when one of them is first asked for.
CAPTURE = ("compile", "disable", "explain", "graph_break", "register_array")
ALL = sorted(("config", "record", "reset") + CAPTURE)
MODULES = ("resume",)  # loaded when they are first asked for; not in __all__
