"""A service under steady load, for tests/soak.py: soak_work.py SECONDS FRAMES_A_SECOND MINUTES. Prints what it did, as JSON.

Threads serve requests: plain calls, generators, exceptions, calls of compiled code, and now and then a compile. A thread more does
little and sleeps. Threads come and go. MINUTES times in all there is what a service does once a minute: a new thread, a forked child
and a code object that is new each time.
"""
import json
import os
import sys
import threading
import time

from dyntrace.eval_frame import set_eval_frame
from dyntrace.types import GuardedCode

done = {"leaf": 0, "request": 0, "model": 0, "raises": 0, "compiles": 0, "minute": 0}
lock = threading.Lock()


def leaf(value):
    return value + 1


def rows(count):
    for i in range(count):
        yield leaf(i)


def raises(value):
    raise ValueError(value)


def model(shape):
    return shape * 2


def compile_model(frame, *rest):
    if frame.f_code is not model.__code__:
        return None
    done["compiles"] += 1
    shape = frame.f_locals["shape"]
    return GuardedCode(frame.f_code.replace(), lambda f_locals: f_locals["shape"] == shape)


def request(number, shape):
    for _ in rows(20):
        pass
    for i in range(30):
        leaf(i)
    for _ in range(3):
        try:
            raises(number)
        except ValueError:
            pass
    return model(shape)


FRAMES = 20 * 2 + 2 + 30 + 3 + 2  # of a request


def serve(seconds, rate, shapes):
    set_eval_frame(compile_model)
    begin = time.monotonic()
    count = 0
    while (now := time.monotonic() - begin) < seconds:
        due = int(now * rate / FRAMES)
        while count < due:
            request(count, shapes(now))
            count += 1
        time.sleep(0.005)
    set_eval_frame(None)
    with lock:
        done["request"] += count
        done["leaf"] += count * 50
        done["raises"] += count * 3
        done["model"] += count


def idle(stop):
    while not stop.wait(1):
        leaf(0)
        with lock:
            done["leaf"] += 1


def calls_leaf():
    for i in range(10):
        leaf(i)


def minute(number):
    thread = threading.Thread(target=calls_leaf)
    thread.start()
    thread.join()
    child = os.fork()
    if not child:
        calls_leaf()
        os._exit(0)
    os.waitpid(child, 0)
    made = {}
    exec(compile(f"def made(): return {number}", f"made-{number}", "exec"), made)
    made["made"]()


def minutes(seconds, count):
    begin = time.monotonic()
    for number in range(count):
        minute(number)
        with lock:
            done["minute"] += 1
            done["leaf"] += 20
        time.sleep(max(0, begin + seconds * (number + 1) / count - time.monotonic()))


def main(seconds, rate, count):
    stop = threading.Event()
    beside = threading.Thread(target=idle, args=(stop,))
    beside.start()
    by_minute = threading.Thread(target=minutes, args=(seconds, count))
    by_minute.start()
    begin = time.monotonic()
    turn = 0
    while time.monotonic() - begin < seconds:
        length = min(20, seconds - (time.monotonic() - begin))
        # a shape that was never there, once in a turn
        shapes = [lambda now, turn=turn: turn % 4 if now > 1 else 100 + turn, lambda now: 7]
        threads = [threading.Thread(target=serve, args=(length, rate / 2, of)) for of in shapes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        turn += 1
    by_minute.join()
    stop.set()
    beside.join()
    print(json.dumps(done))


main(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
