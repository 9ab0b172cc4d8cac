"""Every way to start a process from Python, one for each argument; each child calls a function named after it.

    run_processes.py KIND...        then the parent waits for each child in turn
"""
import multiprocessing
import os
import subprocess
import sys


def code_for(kind):
    return "def child_%s(): pass\nchild_%s()\n" % (kind, kind)


def command(kind):
    return [sys.executable, "-c", code_for(kind)]


def call(kind):
    exec(code_for(kind), {})


def fork(kind):
    pid = os.fork()
    if pid == 0:
        call(kind)
        os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


def forked_to(kind, function, *args):
    pid = os.fork()
    if pid == 0:
        try:
            function(*args)
        finally:
            os._exit(99)
    return os.waitpid(pid, 0)[1] == 0


def execv(kind):
    return forked_to(kind, os.execv, sys.executable, command(kind))


def execve(kind):
    return forked_to(kind, os.execve, sys.executable, command(kind), {"ONLY": "this"})


def execvp(kind):
    os.environ["PATH"] = os.path.dirname(sys.executable) + ":" + os.environ.get("PATH", "")
    return forked_to(kind, os.execvp, os.path.basename(sys.executable), command(kind))


def execve_bytes(kind):
    return forked_to(kind, os.execve, sys.executable, command(kind), {b"PYTHONPATH": b"/nowhere"})


def popen_none(kind):
    return subprocess.run(command(kind)).returncode == 0


def popen_empty(kind):
    return subprocess.run(command(kind), env={}).returncode == 0


def popen_copy(kind):
    return subprocess.run(command(kind), env=os.environ.copy()).returncode == 0


def popen_path(kind):
    code = code_for(kind) + "import os, sys\nassert os.environ['PYTHONPATH'] == '/nowhere', os.environ\nassert '/nowhere' in sys.path"
    return subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": "/nowhere"}).returncode == 0


def popen_shell(kind):
    return subprocess.run("'%s' -c '%s'" % (sys.executable, code_for(kind)), shell=True).returncode == 0


def popen_putenv(kind):
    """The variable that leads children to the recorder, overwritten and taken away."""
    os.environ["PYTHONPATH"] = "/nowhere"
    good = subprocess.run(command(kind)).returncode == 0
    del os.environ["PYTHONPATH"]
    return good and subprocess.run(command(kind)).returncode == 0


def popen_preexec(kind):
    return subprocess.run(command(kind), preexec_fn=lambda: None).returncode == 0


def system(kind):
    return os.system("'%s' -c '%s'" % (sys.executable, code_for(kind))) == 0


def posix_spawn(kind):
    return os.waitpid(os.posix_spawn(sys.executable, command(kind), os.environ), 0)[1] == 0


def posix_spawn_empty(kind):
    return os.waitpid(os.posix_spawn(sys.executable, command(kind), {}), 0)[1] == 0


def spawnv(kind):
    return os.spawnv(os.P_WAIT, sys.executable, command(kind)) == 0


def pool(kind, method):
    with multiprocessing.get_context(method).Pool(2) as workers:
        return workers.map(call, [kind] * 4, chunksize=1) == [None] * 4


def pool_fork(kind):
    return pool(kind, "fork")


def pool_spawn(kind):
    return pool(kind, "spawn")


def pool_forkserver(kind):
    return pool(kind, "forkserver")


def grandchild(kind):
    """A fork that starts a shell that starts a Python that forks."""
    code = "import os\n" + code_for(kind) + "pid = os.fork()\nif pid == 0:\n  exec('def grand_fork(): pass\\ngrand_fork()')\n  os._exit(0)\nos.waitpid(pid, 0)"
    return forked_to(kind, os.execv, "/bin/sh", ["sh", "-c", '"$0" -c "$1"; :', sys.executable, code])


def main():
    for kind in sys.argv[1:]:
        if not globals()[kind](kind):
            sys.exit("%s: the child did not do well" % kind)


if __name__ == "__main__":
    main()
