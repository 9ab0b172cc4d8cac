"""Tells the Makefile how to build the extension for the interpreter that runs this file.

    python3 build_facts.py python3    prints "ok SOABI SUFFIX -isystem DIR ...", or a sentence that
                                      says why no extension can be built for this interpreter
    python3 build_facts.py            prints the supported versions, "3.N 3.M ...", for ./dev

The argument is used only in the sentence, as the name of the interpreter. This file runs on any
version of Python, so that an unsupported version gets its sentence, too. The sentence is pasted
between double quotes in a shell, so it must not contain quotes, `$` or backquotes.
"""

import os
import re
import sys
import sysconfig

version = "%d.%d" % sys.version_info[:2]


def read_supported():
    """Return three minor versions of CPython 3, read from src/versions.h: the oldest and the newest
    supported version, and the oldest whose free-threaded build is supported."""
    with open(
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "versions.h")
    ) as header:
        text = header.read()
    return [
        int(re.search("#define CPYTHON_%s ([0-9]+)" % which, text).group(1))
        for which in ("OLDEST", "NEWEST", "THREADED")
    ]


def describe_interpreter(name):
    """Return the line to print for this interpreter, which the user calls NAME."""
    oldest, newest, threaded = read_supported()
    if sys.version_info[0] < 3 or sys.implementation.name != "cpython":
        return "%s: this is not CPython 3.%d to 3.%d" % (name, oldest, newest)
    if not oldest <= sys.version_info[1] <= newest or sys.version_info[0] != 3:
        return "%s: CPython %s is not supported, only 3.%d to 3.%d are, build for one of those" % (
            name,
            version,
            oldest,
            newest,
        )
    if sysconfig.get_config_var("Py_GIL_DISABLED") and sys.version_info[1] < threaded:
        return "%s: this CPython %s is free-threaded, such builds are supported from 3.%d on" % (
            name,
            version,
            threaded,
        )
    directories = []
    for key in "include", "platinclude":
        directory = sysconfig.get_path(key)
        if directory not in directories:
            directories.append(directory)
    if not os.path.exists(os.path.join(directories[-1], "pyconfig.h")) or not os.path.exists(
        os.path.join(directories[0], "internal", "pycore_frame.h")
    ):
        package = (
            "python%s-dev" % version
            if sys.prefix == "/usr"
            else "the development files of this Python"
        )
        return "%s: CPython %s has no C headers in %s, install %s" % (
            name,
            version,
            directories[0],
            package,
        )
    flags = " ".join("-isystem " + directory for directory in directories)
    return "ok %s %s %s" % (
        sysconfig.get_config_var("SOABI"),
        sysconfig.get_config_var("EXT_SUFFIX"),
        flags,
    )


if len(sys.argv) > 1:
    print(describe_interpreter(sys.argv[1]))
else:
    print(" ".join("3.%d" % minor for minor in range(read_supported()[0], read_supported()[1] + 1)))
