#!/usr/bin/env python3
"""CPython's own test modules with every function captured, those without arrays as well: part of `make capture-judges`.

usage: watched.py [--python PY]... [--build DIR] [--modules NAME... | --all]

`dyntrace run --capture` looks at functions that see arrays only. Here each call of a test, of what it calls in the standard library,
too, is watched instruction by instruction, and what comes of it runs in its place; a second run of all tests of the module runs
what the first has made, and its guards decide. The tests that fail must be those that fail with a callback that replaces
nothing, or frames by copies.

exit status: 0 the same, 1 not.
"""
import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "cpython"))
from compare import QUICK  # noqa: E402
from resume import KNOWN as SPLIT, LEFT_OUT, PROGRAMS, ROOT, answer, compare  # noqa: E402

# What goes through instructions and builtins of all kinds, in seconds.
MODULES = """test_list test_dict test_set test_tuple test_builtin test_itertools test_collections test_dataclasses test_enum test_grammar
    test_class test_descr test_iter test_unpack test_unpack_ex test_extcall test_super test_with test_operator test_math test_statistics
    test_fractions test_string test_re test_json test_copy test_pickle test_heapq test_bisect test_typing test_scope test_slice test_range
    test_bool test_int test_float test_complex test_long test_bytes test_str test_format test_fstring test_sort test_enumerate test_genexps
    test_listcomps test_setcomps test_dictcomps test_generator_stop test_yield_from test_contains test_compare test_richcmp test_binop
    test_augassign test_opcodes test_patma test_property test_decorators test_closure test_funcattrs test_keywordonlyarg
    test_positional_only_arg test_named_expressions test_call test_raise test_exception_group test_except_star test_exception_variations
    test_frame test_types test_userdict test_userlist test_userstring test_abc test_metaclass test_deque test_defaultdict test_ordered_dict
    test_structseq test_weakset test_index test_isinstance test_subclassinit test_string_literals test_textwrap test_reprlib test_pprint
    test_random test_decimal test_array test_memoryview test_struct test_shlex test_configparser test_argparse test_difflib test_ast
    test_graphlib test_hashlib test_datetime test_calendar test_ipaddress test_csv test_io test_tempfile test_pathlib test_logging""".split()

# Tests that tell a captured function from itself by what capturing is, each with its reason; those of SPLIT do as well, by what a
# resume function is.
KNOWN = {
    "test_preallocation (test.test_list.": "sys.getsizeof(list): one that is made again behind the graph has no room to spare",
    "test_cycle_through_dict (test.test_descr.": "an object in a cycle: what a capture has read lives as long as the call of it that goes on",
    "test_cycle (test.test_slice.": "the same",
    "test_refcycle (test.test_generators.": "the same",
    "test_weak_keyed_len_cycles (test.test_weakref.": "the same",
    "test_weak_valued_len_cycles (test.test_weakref.": "the same",
    "test_slots (test.test_descr.": "counts all objects; an entry has some",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", action="append")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--modules", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--patience", type=int, default=1800)
    options = parser.parse_args()
    build, wrong = options.build.resolve(), []
    for python in options.python or [sys.executable]:
        version = subprocess.run([python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"], capture_output=True, text=True).stdout.strip()
        for module in options.modules or [m for m in QUICK if m not in LEFT_OUT] + (MODULES if options.all else []):
            wrong += compare(f"{version} {module}", lambda mode: answer([python, PROGRAMS / "shim_cpython.py", mode, module, module], build,
                                                                        options.patience), ["captured"], {**SPLIT, **KNOWN})
    print(f"watched: {len(wrong)} differences", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
