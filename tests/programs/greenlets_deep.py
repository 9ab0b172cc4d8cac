"""A greenlet that began deep in a recursion goes on when that has ended, and began anew: what it stands on is still there."""
import sys

import greenlet

sys.setrecursionlimit(200000)
hub, made = greenlet.getcurrent(), []


def inner(k):
    return inner(k - 1) + 1 if k else 0


def leaf(n):
    hub.switch(n)
    hub.switch(inner(50))
    return "end"


def down(n):
    if n == 5:
        made.append(greenlet.greenlet(leaf))
        made[-1].switch(n)
    return down(n - 1) + 1 if n else 0


print(down(30000), down(3000))
print([one.switch() for one in made])
try:
    inner(20000)
except RecursionError:  # with greenlets the C stack is not made larger
    pass
print([one.switch() for one in made])
