"""Attaches to running programs of five kinds and detaches, again and again, and compares.

    python tests/attach_cycles.py --cycles 200 --python PY gunicorn torch celery kernel embed

PY has what the program needs: gunicorn; torch; celery; ipykernel and jupyter_client; for `embed` a
library and headers. Each program works and checks its own results all the while. Before the first
cycle and after the last one its descriptors, threads, children and signal handlers are compared,
and the memory maps after the first and the last; every trace is checked by fsck and has no losses.

Used by tests/test_attach.py (`Program`, `state`, `cycle`) and by `make attach-cycles`.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DYNTRACE = os.environ.get("DYNTRACE") or str(ROOT / "build" / "dyntrace")


def until(condition, what, seconds=30):
    """Return the first true value of condition()."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what}: not within {seconds} s")


def read(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def children(pid):
    return sorted(
        int(child)
        for task in os.listdir(f"/proc/{pid}/task")
        for child in read(f"/proc/{pid}/task/{task}/children").split()
    )


def state(pid):
    """What a process has: descriptors, threads, children, handlers of signals."""
    names = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            name = os.readlink(f"/proc/{pid}/fd/{fd}")
            if not re.match(r"socket:|anon_inode:\[eventpoll\]|/.* \(deleted\)$|/tmp/", name):
                names.append(name)  # the program's own work opens and closes the others
    status = read(f"/proc/{pid}/status")
    kept = {key: re.search(rf"{key}:\s*(\S+)", status)[1] for key in ("Threads", "SigCgt", "SigBlk")}
    kept["SigCgt"] = hex(int(kept["SigCgt"], 16) & ~2)  # ipykernel sets SIGINT's for each cell
    return {"fds": sorted(names), "children": children(pid), **kept}


def maps(pid):
    """The files of ours that a process has mapped."""
    return sorted({line.split()[-1] for line in read(f"/proc/{pid}/maps").splitlines() if "dyntrace" in line})


def is_recorded(pid):
    return ".ring" in read(f"/proc/{pid}/maps")


def cycle(pid, trace, *options, hold=0.05):
    """Attach, record for HOLD seconds, detach. Returns the seconds that both took."""
    began = time.monotonic()
    words = [DYNTRACE, "attach", str(pid), "-o", str(trace), "--force", *options]
    attach = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: attach.poll() is not None or is_recorded(pid), "attach")
        attached = time.monotonic()
        time.sleep(hold)
        detaching = time.monotonic()
        done = subprocess.run([DYNTRACE, "detach", str(pid)], capture_output=True, text=True, timeout=60)
        detached = time.monotonic()
        _, errors = attach.communicate(timeout=60)
    finally:
        if attach.poll() is None:
            attach.kill()
    errors = re.sub(r"dyntrace: torch .* is observed, .*\n", "", errors)
    assert (done.returncode, done.stderr, attach.returncode, errors) == (0, "", 0, ""), (done, attach.returncode, errors)
    return attached - began, detached - detaching


def check(trace):
    """Returns the frames of a whole trace without losses."""
    done = subprocess.run([DYNTRACE, "fsck", str(trace)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    with contextlib.closing(sqlite3.connect(trace)) as db:
        assert db.execute("SELECT cause FROM loss WHERE cause NOT LIKE 'stall:%'").fetchall() == []
        return db.execute("SELECT count(*) FROM frame").fetchone()[0]


# ---- the programs: each yields the pid to attach to, and a function that ends it and returns its
# ---- result, "ok" if the program's answers were right


@contextlib.contextmanager
def started(words, **more):
    process = subprocess.Popen(
        list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **more
    )
    try:
        yield process
    finally:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


GUNICORN = """
def work(n):
    return sum(leaf(i) for i in range(n))
def leaf(i):
    return i * i
def app(environ, start):
    n = int(environ["QUERY_STRING"] or 0)
    start("200 OK", [("Content-Type", "text/plain")])
    return [str(work(n)).encode()]
"""


@contextlib.contextmanager
def gunicorn(python, folder):
    (folder / "web.py").write_text(GUNICORN)
    words = [python, "-m", "gunicorn", "-b", "127.0.0.1:0", "-w", "1", "--threads", "2", "web:app"]
    with started(words, cwd=folder) as process, open(folder / "log", "w") as log:
        port = None
        for line in process.stdout:
            log.write(line)
            port = port or re.search(r"http://127.0.0.1:(\d+)", line)
            if "Booting worker" in line:
                break
        threading.Thread(target=lambda: log.writelines(process.stdout), daemon=True).start()
        counts, wrong, stop = [0], [], threading.Event()

        def load():
            while not stop.is_set():
                n = counts[0] % 300
                with contextlib.suppress(AttributeError):
                    answer = urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/?{n}", timeout=30).read()
                    if answer != str(sum(i * i for i in range(n))).encode():
                        wrong.append((n, answer))
                counts[0] += 1

        clients = [threading.Thread(target=load, daemon=True) for _ in range(2)]
        until(lambda: children(process.pid), "a worker")
        time.sleep(1)
        [client.start() for client in clients]
        time.sleep(2)

        def end():
            stop.set()
            [client.join() for client in clients]
            return ("ok" if not wrong else f"wrong: {wrong[:3]}"), f"{counts[0]} requests"

        yield children(process.pid)[0], end


TORCH = """
import sys, signal, torch
torch.manual_seed(7); torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
@torch.compile(backend="eager")
def loss_of(x, y): return torch.nn.functional.mse_loss(model(x), y)
def step(x, y):
    optimizer.zero_grad(); loss = loss_of(x, y); loss.backward(); optimizer.step()
    return loss.item()
stopped = []
signal.signal(signal.SIGUSR1, lambda *_: stopped.append(1))
most, n = int(sys.argv[1]), 0
print("ready", flush=True)
while n != most and not stopped:
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(8, 16, generator=generator); loss = step(x, x.sum(1, keepdim=True)); n += 1
print(n, loss.hex(), sum(p.double().sum().item() for p in model.parameters()).hex(), flush=True)
"""


@contextlib.contextmanager
def torch(python, folder):
    (folder / "train.py").write_text(TORCH)
    with started([python, "train.py", "-1"], cwd=folder, env=dict(os.environ, OMP_NUM_THREADS="1")) as process:
        while process.stdout.readline() not in ("ready\n", ""):
            pass
        time.sleep(10)  # the first compile

        def end():
            process.send_signal(signal.SIGUSR1)
            said = process.stdout.read()
            process.wait()
            steps = said.split()[0]
            alone = subprocess.run([python, "train.py", steps], cwd=folder, capture_output=True, text=True)
            same = alone.stdout == "ready\n" + said
            return ("ok" if same else f"wrong: {said!r}, alone {alone.stdout!r}"), f"{steps} steps"

        yield process.pid, end


CELERY = """
import celery
app = celery.Celery("tasks", broker="filesystem://", backend="file://%(folder)s/results")
app.conf.broker_transport_options = {"data_folder_in": "%(folder)s/queue", "data_folder_out": "%(folder)s/queue"}
app.conf.worker_enable_remote_control = False
def leaf(i): return i * i
@app.task
def work(n): return sum(leaf(i) for i in range(n))
"""
CLIENT = """
import sys, time, tasks
n = wrong = 0
while not sys.stdin.isatty() and not __import__("select").select([sys.stdin], [], [], 0)[0]:
    wrong += tasks.work.delay(n % 300).get(timeout=60, interval=0.02) != sum(i * i for i in range(n % 300)); n += 1
print(n, wrong)
"""


@contextlib.contextmanager
def celery(python, folder):
    for name in ("queue", "results"):
        (folder / name).mkdir()
    (folder / "tasks.py").write_text(CELERY % {"folder": folder})
    words = [python, "-m", "celery", "-A", "tasks", "worker", "--concurrency", "1", "--loglevel", "INFO", "-P", "prefork"]
    with started(words, cwd=folder, env=dict(os.environ, C_FORCE_ROOT="1")) as process:
        for line in process.stdout:
            if " ready." in line:
                break
        threading.Thread(target=process.stdout.read, daemon=True).start()
        client = subprocess.Popen(
            [python, "-c", CLIENT], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

        def end():
            said, errors = client.communicate("stop\n", timeout=120)
            done, wrong = (said.split() + ["0", "all: " + errors[-200:]])[:2]
            return ("ok" if wrong == "0" and int(done) else f"wrong: {wrong}"), f"{done} tasks"

        time.sleep(2)
        yield until(lambda: children(process.pid), "a worker")[0], end


KERNEL = """
import sys, jupyter_client
manager = jupyter_client.KernelManager(); manager.start_kernel(); client = manager.client(); client.start_channels()
client.wait_for_ready(timeout=60)
print(manager.provisioner.process.pid, flush=True)
client.execute("def leaf(i): return i * i")
n = wrong = 0
while not __import__("select").select([sys.stdin], [], [], 0)[0]:
    seen = []
    client.execute_interactive(f"print(sum(leaf(i) for i in range({n % 300})))", timeout=60, output_hook=lambda m: seen.append(m["content"].get("text", "")))
    wrong += "".join(seen) != f"{sum(i * i for i in range(n % 300))}\\n"; n += 1
print(n, wrong, flush=True)
manager.shutdown_kernel(now=True)
"""


@contextlib.contextmanager
def kernel(python, folder):
    with started([python, "-W", "ignore", "-c", KERNEL], stdin=subprocess.PIPE, cwd=folder) as process:
        pid = int(until(lambda: re.match(r"\d+$", process.stdout.readline()), "a kernel")[0])
        time.sleep(3)

        def end():
            process.stdin.write("stop\n")
            process.stdin.close()
            done, wrong = process.stdout.readline().split()
            return ("ok" if wrong == "0" else f"wrong: {wrong}"), f"{done} cells"

        yield pid, end


EMBED = r"""
#include <Python.h>
#include <signal.h>
static volatile sig_atomic_t stopped;
static void stop(int number) { stopped = 1; }
int main(void)
{
    long long rounds = 0, sum = 0, expected = 0;
    Py_Initialize();
    signal(SIGUSR1, stop);
    PyRun_SimpleString("def leaf(i):\n    return i * i\ndef work(n):\n    return sum(leaf(i) for i in range(n % 300))\n");
    PyObject *work = PyObject_GetAttrString(PyImport_AddModule("__main__"), "work");
    puts("ready"), fflush(stdout);
    for (; !stopped; rounds++) {
        PyObject *result = PyObject_CallFunction(work, "L", rounds);
        long long n = rounds % 300;
        sum += PyLong_AsLongLong(result);
        expected += (n - 1) * n * (2 * n - 1) / 6;
        Py_DECREF(result);
    }
    printf("%lld %s\n", rounds, sum == expected ? "0" : "1");
    Py_DECREF(work);
    return Py_FinalizeEx();
}
"""


@contextlib.contextmanager
def embed(python, folder):
    (folder / "host.c").write_text(EMBED)
    real = os.path.realpath(python)  # a virtual environment has no python3-config
    config = [
        subprocess.run([real + "-config", *what], capture_output=True, text=True, check=True).stdout.split()
        for what in (["--includes"], ["--embed", "--ldflags"])
    ]
    library = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_config_var('LIBDIR'))"], capture_output=True, text=True, check=True
    ).stdout.strip()
    subprocess.run(["gcc", "-o", folder / "host", folder / "host.c", *config[0], *config[1], f"-Wl,-rpath,{library}"], check=True)
    with started([folder / "host"], cwd=folder) as process:
        process.stdout.readline()

        def end():
            process.send_signal(signal.SIGUSR1)
            done, wrong = process.stdout.read().split()
            return ("ok" if (wrong, process.wait()) == ("0", 0) else f"wrong: {wrong}"), f"{done} calls"

        yield process.pid, end


PROGRAMS = {"gunicorn": gunicorn, "torch": torch, "celery": celery, "kernel": kernel, "embed": embed}


def measure(name, python, cycles, seconds=float("inf")):
    """Returns a dict: what was found of the program NAME, after CYCLES or SECONDS."""
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        with PROGRAMS[name](python, folder) as (pid, end):
            before, times, frames = state(pid), [], 0
            for i in range(cycles):
                times.append(cycle(pid, folder / "t.db"))
                frames += check(folder / "t.db")
                if not i:
                    first = maps(pid)
                if time.monotonic() > deadline:
                    break
            with contextlib.suppress(AssertionError):  # the program's own work may be under way
                until(lambda: state(pid) == before, "as before", 10)
            left = {k: (before[k], v) for k, v in state(pid).items() if v != before[k]}
            assert maps(pid) == first, (first, maps(pid))
            verdict, work = end()
    return {
        "program": name,
        "cycles": len(times),
        "result": verdict,
        "work": work,
        "frames": frames,
        "left": left or "nothing",
        "attach_s": round(sum(a for a, _ in times) / len(times), 2),
        "attach_max_s": round(max(a for a, _ in times), 2),
        "detach_s": round(sum(d for _, d in times) / len(times), 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    given = parser.parse_args()
    for name in given.programs:
        print(json.dumps(measure(name, given.python, given.cycles, given.seconds)), flush=True)


if __name__ == "__main__":
    main()
