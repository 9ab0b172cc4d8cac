"""A program that can be killed at any moment, and knows exactly what it had called.

    crash_work.py COUNTERS THREADS [ROUNDS [HOW]]

Each thread calls round_() again and again, ROUNDS times or for ever. COUNTERS is a file of 64-bit numbers:

    [0] pid    [1] 1: all threads are at work    [2] 1: all rounds are done
    [4 + 2 * thread]  rounds begun      [5 + 2 * thread]  rounds finished

A thread stores `begun` before and `finished` after its round, so a kill finds it inside round begun = finished + 1, or
between two rounds. HOW: in the middle of the last round thread 0 calls os._exit, os.abort or runs into a segfault.
"""
import mmap
import os
import struct
import sys
import threading
import time


def leaf(die):
    if die == "exit":
        os._exit(7)
    elif die == "abort":
        os.abort()
    elif die == "segfault":
        import faulthandler
        faulthandler._sigsegv()


def middle(die):
    leaf(None)
    leaf(die)


def round_(die):
    middle(None)
    middle(die)


def work(number, counters, rounds, how):
    begun, finished = 4 + 2 * number, 5 + 2 * number
    n = 0
    while n != rounds:
        n += 1
        die = how if n == rounds and not number else None
        counters[begun] = n
        round_(die)
        counters[finished] = n


def main():
    path, threads = sys.argv[1], int(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else -1
    how = sys.argv[4] if len(sys.argv) > 4 else None
    with open(path, "r+b") as file:
        counters = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")
    counters[0] = os.getpid()
    others = [threading.Thread(target=work, args=(n, counters, rounds, how), name=f"worker {n}") for n in range(1, threads)]
    for thread in others:
        thread.start()
    counters[1] = 1
    work(0, counters, rounds, how)
    for thread in others:
        thread.join()
    print("finished", [counters[5 + 2 * n] for n in range(threads)], flush=True)
    counters[2] = 1
    sys.exit(5)


main()
