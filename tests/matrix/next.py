#!/usr/bin/env python3
"""Show what a torch that is not tested yet has changed, then run the quick tests with it.

usage: next.py VERSION [--before VERSION] [--python PY] [--wheels DIR] [--no-tests]

    next.py 2.16.0                      beside the newest version of matrix.py
    next.py 2.16.0 --before 2.14.1      beside this one

Three parts are printed, in this order:

    1. What the evaluator's C headers, its type stubs and the Python files beside it have that the older torch had not. The
       whole differences lie in build/torch-next/. dyntrace replaces this evaluator, so a person reads them.
    2. Names that dyntrace does not know: functions of the evaluator, kinds of guards; and settings that remedies name and
       that only the older torch has.
    3. The quick tests of tests/with_torch, by matrix.py. They ask for shim mode, whether the pair is tested or not.

exit status: 0 nothing is unknown and all tests passed, 1 not, 2 bad usage.
"""
import argparse
import difflib
import json
import re
import subprocess
import sys
from pathlib import Path

import environment
import matrix

PLACE = matrix.BUILD / "torch-next"
# What dyntrace replaces or calls, in torch's folder.
READ = ["include/torch/csrc/dynamo/*.h", "_C/_dynamo/*.pyi", "_dynamo/eval_frame.py", "_dynamo/convert_frame.py", "_dynamo/guards.py",
        "_dynamo/resume_execution.py", "_dynamo/types.py"]
# Runs in the new torch, with dyntrace's Python package and argv[1] = names of settings.
ASK = """
import json, sys
import torch, torch._dynamo, torch._dynamo.guards
from torch._C._dynamo import eval_frame
names = {}
names["functions"] = [name for name in dir(eval_frame) if not name.startswith("__")]
names["guards"] = [name for name in dir(torch._dynamo.guards.GuardBuilder) if name.isupper() and len(name) > 2]
names["settings"] = [name for name in json.loads(sys.argv[1]) if hasattr(torch._dynamo.config, name)]
print(json.dumps(names))
"""


def site(python):
    return next(Path(python).parent.parent.glob("lib/python3.*/site-packages"))


def names_of(python, settings):
    done = subprocess.run([python, "-c", ASK, json.dumps(settings)], capture_output=True, text=True, check=True, cwd="/")
    return json.loads(done.stdout.splitlines()[-1])


def quoted(path, pattern, name=None):
    """The quoted words in PATH, or in the part of it that NAME begins and a closing bracket ends, that match PATTERN."""
    text = (matrix.ROOT / path).read_text()
    if name:
        text = re.search(rf"^{name} = .*?^[}})\]]", text, re.M | re.S)[0]
    return set(re.findall(rf'"({pattern})"', text))


def differences(old, new, name):
    """Print how many lines each file of READ has lost and got, and write the whole to PLACE."""
    files = sorted({path.relative_to(folder) for folder in (old, new) for pattern in READ for path in folder.glob(pattern)})
    whole = []
    for file in files:
        lines = [(folder / file).read_text().splitlines(keepends=True) if (folder / file).exists() else [] for folder in (old, new)]
        found = list(difflib.unified_diff(*lines, f"old/{file}", f"new/{file}"))
        whole += found
        lost, got = (sum(line.startswith(sign) and not line.startswith(sign * 3) for line in found) for sign in "-+")
        if found:
            print(f"  {file}: {lost} lines less, {got} more")
    PLACE.mkdir(parents=True, exist_ok=True)
    path = PLACE / f"{name}.diff"
    path.write_text("".join(whole))
    print(f"  read them: {path}")


def unknown(old, new, settings):
    """Print what the new torch has and dyntrace does not know -> whether there is anything."""
    ours = quoted("src/tracer/torch/torch.c", r"\w+") | quoted("python/dyntrace/_torch.py", r"\w+")
    ours |= quoted("python/dyntrace/_torch_versions.py", r"\w+", "STATELESS")
    kinds = quoted("python/dyntrace/_torch_kinds.py", "[A-Z_]+", "ASPECT")
    lists = {
        "functions of the evaluator": set(new["functions"]) - ours,
        "kinds of guards": set(new["guards"]) - set(old["guards"]) - kinds,
        "settings that remedies name and this torch lacks": set(old["settings"]) - set(new["settings"]),
    }
    for words, names in lists.items():
        print(f"  {words}: {', '.join(sorted(names)) or 'none'}")
    return any(lists.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("version")
    parser.add_argument("--before", default=matrix.VERSIONS[-1], help="the torch to compare with")
    parser.add_argument("--python", default=sys.executable, help="the Python to make environments from")
    parser.add_argument("--wheels", type=Path, help="keep wheels of torch in this folder, and take them from there")
    parser.add_argument("--no-tests", action="store_true", help="stop before the tests")
    options = parser.parse_args()
    for version in (options.version, options.before):
        if not re.fullmatch(r"\d+\.\d+\.\d+", version):
            parser.error(f"{version}: not a version, as 2.16.0")
    if options.version == options.before:
        parser.error(f"{options.version} is compared with itself; name an older one with --before")
    minor = subprocess.run([options.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                           capture_output=True, text=True, check=True).stdout.strip()
    pythons = {}
    for version in (options.before, options.version):
        place = matrix.BUILD / f"torch-{version}-{minor}"
        pythons[version] = place / "bin" / "python"
        if subprocess.run([pythons[version], "-c", "import torch, pytest"], cwd="/").returncode if pythons[version].exists() else True:
            matrix.say(f"making {place}")
            try:
                environment.make(version, options.python, place, options.wheels)
            except environment.NoWheel as error:
                parser.error(str(error))
    old, new = pythons[options.before], pythons[options.version]
    matrix.say(f"what {options.version} changed beside {options.before}")
    differences(site(old) / "torch", site(new) / "torch", f"{options.before}-{options.version}")
    settings = sorted(set(re.findall(r"config\.([a-z_]+)", (matrix.ROOT / "src/trace/remedies.txt").read_text())))
    matrix.say("what dyntrace does not know")
    found = unknown(names_of(old, settings), names_of(new, settings), settings)
    failed = False
    if not options.no_tests:
        command = [sys.executable, Path(__file__).with_name("matrix.py"), "--keep", str(new)]
        failed = subprocess.run(command, cwd=matrix.ROOT).returncode != 0
    sys.exit(1 if found or failed else 0)


if __name__ == "__main__":
    main()
