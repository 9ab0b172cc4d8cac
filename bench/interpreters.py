"""The Python interpreters to measure, each with its yardstick and its dyntrace.

    python = find("python3.12")
    python.build_yardstick()
    report = python.run(["bench/mix.py", ...], report=True, dyntrace=["-o", db])
"""
import glob
import json
import os
import subprocess
import tempfile
import time

BENCH = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(BENCH), "build")
DYNTRACE = os.path.join(BUILD, "dyntrace")

ASK = """
import json, sys, sysconfig
print(json.dumps({"executable": sys.executable, "version": "%d.%d.%d" % sys.version_info[:3],
                  "suffix": sysconfig.get_config_var("EXT_SUFFIX"), "include": sysconfig.get_path("include")}))
"""


class Failed(Exception):
    """A measurement failed, or its result is wrong."""


class Interpreter:
    def __init__(self, name):
        try:
            answer = subprocess.run([name, "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    universal_newlines=True)
        except OSError as error:
            raise Failed(f"{name}: {error.strerror}") from error
        if answer.returncode:
            raise Failed(f"{name}: does not run: {answer.stderr.strip()}")
        facts = json.loads(answer.stdout)
        self.executable = facts["executable"]  # not the wrapper of a version manager, which takes time itself
        self.version = facts["version"]
        self.suffix = facts["suffix"]
        self.include = facts["include"]
        self.yardstick = os.path.join(BUILD, "bench", self.version)
        found = glob.glob(os.path.join(BUILD, "lib", "**", "_dyntrace*" + self.suffix), recursive=True)
        self.extension = os.path.dirname(found[0]) if found and os.access(DYNTRACE, os.X_OK) else None

    def build_yardstick(self):
        source = os.path.join(BENCH, "yardstick.c")
        target = os.path.join(self.yardstick, "_yardstick" + self.suffix)
        if os.path.exists(target) and os.path.getmtime(target) > os.path.getmtime(source):
            return
        os.makedirs(self.yardstick, exist_ok=True)
        command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared",
                   "-I" + self.include, source, "-o", target]
        built = subprocess.run(command, stderr=subprocess.PIPE, universal_newlines=True)
        if built.returncode:
            raise Failed(f"{self.executable}: the yardstick does not build:\n{built.stderr}")

    def has_module(self, name):
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
        return subprocess.run([self.executable, "-c", code]).returncode == 0

    def run(self, arguments, dyntrace=None, report=False, stats=None, keep_off=None, program=None):
        """Runs the interpreter, or PROGRAM, to its end, under `dyntrace run` if its options are given.

        All processes start on other processors than KEEP_OFF. A measured program
        then moves itself to KEEP_OFF, so that the collector takes no time from it.

        Returns a dict: `start_ns` and `end_ns` of the whole command, its `output`,
        `report`, the contents of the program's --report file (if report=True), and
        `stats`, the collector's figures from `dyntrace run` (if stats=True)."""
        command = [program or self.executable] + arguments
        others = os.sched_getaffinity(0) - {keep_off}
        environment = {name: value for name, value in os.environ.items() if name != "DYNTRACE_STATS"}
        with tempfile.TemporaryDirectory(prefix="dyntrace-bench-") as directory:
            report_path = os.path.join(directory, "report")
            stats_path = os.path.join(directory, "stats")
            if report:
                command += ["--report", report_path]
            if dyntrace is not None:
                command = [DYNTRACE, "run", "--force"] + dyntrace + ["--"] + command
            if stats:
                environment["DYNTRACE_STATS"] = stats_path
            answer = {"start_ns": time.monotonic_ns()}
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  universal_newlines=True, env=environment,
                                  preexec_fn=lambda: os.sched_setaffinity(0, others) if others else None)
            answer["end_ns"] = time.monotonic_ns()
            answer["wall_s"] = (answer["end_ns"] - answer["start_ns"]) / 1e9
            answer["output"] = done.stdout
            if done.returncode:
                raise Failed(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
            if report:
                answer["report"] = load(report_path)
                if not answer["report"]["good"]:
                    raise Failed(f"{' '.join(command)}: the program's result is wrong")
            if stats:
                answer["stats"] = load(stats_path)
        return answer


def load(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Failed(f"{path}: {error}") from error
