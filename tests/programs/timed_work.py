"""Rows of what takes time: spans in threads and a forked child, arguments and results, samples of processor time, stretches."""
import os
import threading
import time

import dyntrace


def work(n, name="x"):
    with dyntrace.span("inner", n=n):
        time.sleep(0.03)
    return [n]


def bad(n):
    raise ValueError(n)


def outer(n):
    with dyntrace.span("outer"):
        work(n)
        try:
            bad(n)
        except ValueError:
            pass


threads = [threading.Thread(target=outer, args=(n,)) for n in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with dyntrace.span("fork"):
    pid = os.fork()
    outer(3)
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
