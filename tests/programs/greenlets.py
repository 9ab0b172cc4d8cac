"""Greenlets of all kinds. Each call notes whose call it is, as CPython's own frames say; tests/test_greenlet.py compares.

    greenlets.py HOW OUT [N]   HOW: a function below. OUT gets what was noted, a line of JSON per process: {os_tid: {"calls":
                               [[function, caller], ...], "ends": [call, ...]}}; a caller is the number of its call, -1: none
"""
import asyncio
import contextlib
import functools
import itertools
import json
import os
import random
import sys
import threading

noted = {}


def here():
    return noted.setdefault(threading.get_native_id(), {"calls": [], "ends": []})


def note():
    """To be called first thing: the number of the call that calls this, for its variable `me`."""
    frame = sys._getframe(1)
    caller = frame.f_back
    while caller and (caller.f_code.co_filename != __file__ or "me" not in caller.f_locals):
        caller = caller.f_back
    calls = here()["calls"]
    calls.append([frame.f_code.co_qualname, caller.f_locals["me"] if caller else -1])
    return len(calls) - 1


def done(me):
    """To be called last thing."""
    here()["ends"].append(me)


def save(out):
    with open(out, "a") as file:
        file.write(json.dumps(noted) + "\n")


class Stop(Exception):
    pass


class Life:
    """Calls of random depth; a moment of them is PAUSE's."""

    def __init__(self, pause, seed, deepest=6):
        self.pause, self.random, self.deepest = pause, random.Random(seed), deepest

    def run(self, times):
        me = note()
        try:
            for _ in range(times):
                with contextlib.suppress(Stop):
                    self.walk(0)
        finally:
            done(me)

    def walk(self, depth):
        me = note()
        try:
            for _ in range(self.random.randrange(3)):
                what = self.random.randrange(5)
                if what == 0:
                    self.pause()
                elif what == 1:
                    self.leaf()
                elif what == 2 and depth:
                    raise Stop
                elif what == 3:
                    for _ in self.numbers():
                        self.leaf()
                elif depth < self.deepest:
                    self.walk(depth + 1)
        finally:
            done(me)

    def leaf(self):
        me = note()
        done(me)

    def numbers(self):
        """Resumed in one greenlet, or paused within."""
        for n in range(2):
            if self.random.random() < 0.3:
                self.pause()
            yield n

    def deep(self, depth):
        me = note()
        try:
            if depth:
                self.deep(depth - 1)
            if depth % 100 == 0:
                self.pause()
                self.leaf()
        finally:
            done(me)


def raw(n, deep=0):
    """Greenlets that switch to each other as chance has it; some never come to their end, some are ended by force."""
    import greenlet
    chance, alive = random.Random(n), []

    def pause():
        others = [g for g in alive if not g.dead and g is not greenlet.getcurrent()]
        if others:
            chance.choice(others).switch()

    for i in range(12):
        life = Life(pause, i)
        alive.append(greenlet.greenlet(functools.partial(life.deep, deep) if deep else functools.partial(life.run, n)))
    for g in alive[:-3]:
        while not g.dead:
            g.switch()
    for g in alive[-3:]:
        if g and not g.dead:
            g.throw(greenlet.GreenletExit)


def deep(n):
    """Stacks so deep that their frames' memory grows and shrinks."""
    sys.setrecursionlimit(20000)
    raw(1, deep=n * 50)


def threads(n):
    running = [threading.Thread(target=raw, args=(n,)) for _ in range(3)]
    for thread in running:
        thread.start()
    raw(n)
    for thread in running:
        thread.join()


def fork(n):
    """A child goes on with what its parent's greenlets were at."""
    import greenlet
    main = greenlet.getcurrent()
    lives = [greenlet.greenlet(Life(main.switch, i).run) for i in range(4)]
    for g in lives:
        g.switch(n)
    pid = os.fork()
    if not pid: # it has no notes of what began before, and its thread another number
        noted.clear()
    while any(not g.dead for g in lives):
        for g in lives:
            if not g.dead:
                g.switch()
    if pid:
        os.waitpid(pid, 0)


def pairs(n):
    """Each greenlet has a function and a callee of its own, which nobody else calls."""
    import greenlet
    alive = []
    for i in range(6):
        names = {"switch": lambda: alive[random.randrange(6)].switch()}
        exec(f"def l{i}(): return 1\n"
             f"def f{i}():\n    for i in range({n}):\n        l{i}()\n        switch()\n        l{i}()\n", names)
        alive.append(greenlet.greenlet(names[f"f{i}"]))
    for g in alive:
        while not g.dead:
            g.switch()


def shim(n):
    """A compiler and guards during which other greenlets run."""
    import greenlet
    from dyntrace.eval_frame import set_eval_frame
    from dyntrace.types import GuardedCode
    alive, wanted = [], {}

    def switch():
        random.choice(alive).switch()

    def callback(frame, entry, state):
        if frame.f_code in wanted:
            switch()
            kind = type(frame.f_locals["x"])
            return GuardedCode(frame.f_code.replace(), lambda f_locals: (switch(), type(f_locals["x"]) is kind)[1])

    def work(function):
        for i in range(n):
            set_eval_frame(callback)
            function((1, 2.0, "three")[i % 3])

    for i in range(4):
        names = {}
        exec(f"def f{i}(x): return x", names)
        wanted[names[f"f{i}"].__code__] = i
        alive.append(greenlet.greenlet(functools.partial(work, names[f"f{i}"])))
    while any(not g.dead for g in alive):
        alive = [g for g in alive if not g.dead]
        alive[0].switch()
    set_eval_frame(None)


def pool(n):
    import gevent.pool
    workers = gevent.pool.Pool(10)
    for i in range(20):
        workers.spawn(Life(lambda: gevent.sleep(0), i).run, n)
    workers.join()


def server(n):
    """gevent's own server, with clients that all come at once."""
    import gevent.monkey
    gevent.monkey.patch_all(thread=False)
    import socket
    import gevent.pywsgi
    seeds = itertools.count()

    def application(environ, start_response):
        me = note()
        Life(lambda: gevent.sleep(0), next(seeds)).run(2)
        start_response("200 OK", [("Content-Type", "text/plain")])
        done(me)
        return [environ["PATH_INFO"].encode()]

    def client(port, number):
        for i in range(n):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"GET /%d/%d HTTP/1.0\r\n\r\n" % (number, i))
                answer = b""
                while part := connection.recv(1000):
                    answer += part
            assert answer.endswith(b"/%d/%d" % (number, i)), answer

    listening = gevent.pywsgi.WSGIServer(("127.0.0.1", 0), application, log=None)
    listening.start()
    gevent.joinall([gevent.spawn(client, listening.server_port, i) for i in range(20)], raise_error=True)
    listening.stop()


def eventlet(n):
    import eventlet as e
    workers = e.GreenPool(10)
    for i in range(20):
        workers.spawn_n(Life(lambda: e.sleep(0), i).run, n)
    workers.waitall()


def sqlalchemy(n):
    """Its bridge from plain calls to asyncio: greenlet_spawn() and await_only()."""
    from sqlalchemy.util import await_only, greenlet_spawn

    async def all_of_them():
        await asyncio.gather(*(greenlet_spawn(Life(lambda: await_only(asyncio.sleep(0)), i).run, n) for i in range(20)))

    asyncio.run(all_of_them())


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[3]) if len(sys.argv) > 3 else 20)
    save(sys.argv[2])
