"""The compiler's and linker's protections against our own mistakes are on, in the program and in the extensions."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("readelf"), reason="no readelf (apt install binutils)")


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True).stdout


def built(dyntrace):
    return [Path(dyntrace), *sorted((Path(dyntrace).resolve().parent / "lib").glob("**/_dyntrace*.so"))]


@pytest.fixture(scope="module")
def files(dyntrace):
    found = built(dyntrace)
    if "__asan_init" in readelf(found[0], "--dyn-syms"):
        pytest.skip("built with sanitizers, which check more")
    assert len(found) > 1
    return found


def test_linker_tables_are_read_only_before_main_and_stacks_not_executable(files):
    """Full RELRO: every symbol is bound when the file is loaded, then the table is read-only; no stack is executable."""
    for path in files:
        segments, dynamic = readelf(path, "--program-headers"), readelf(path, "--dynamic")
        assert "GNU_RELRO" in segments and "BIND_NOW" in dynamic, path
        assert re.search(r"GNU_STACK .* RW ", segments), path


def test_the_program_is_a_position_independent_executable(files):
    assert "DYN" in readelf(files[0], "--file-header") and re.search(r"Flags:.* PIE", readelf(files[0], "--dynamic"))


def test_buffers_have_a_stack_protector_and_checked_libc_functions(files):
    """The libc functions are those that know the size of the buffer, such as __memcpy_chk."""
    for path in files:
        symbols = readelf(path, "--dyn-syms")
        assert "__stack_chk_fail" in symbols, path
        assert re.search(r"__\w+_chk", symbols.replace("__stack_chk_fail", "")), path


def test_hot_functions_have_no_stack_protector(files):
    """The functions that every call and lookup runs through have no canary: they hold no buffer."""
    if not shutil.which("objdump") or os.uname().machine != "x86_64":
        pytest.skip("x86-64 and objdump")
    for path in files[1:]:
        if path.name.startswith("_dyntrace_capture."):  # calls reach it only while one is watched
            continue
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
        bodies = dict(re.findall(r"^[0-9a-f]+ <([\w.]+)>:\n((?:.+\n)+)", text, re.M))
        hot = [name for name in bodies if re.match(r"record_by_|decide_frame$|decision_hit$|decision_outcome$|guard_tree_check$|guard_read_step$", name)]
        assert len(hot) > 5, path
        assert [name for name in hot if "%fs:0x28" in bodies[name]] == [], path
