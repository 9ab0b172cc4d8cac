"""build_facts.py -- what the Makefile must know of one interpreter.

Run by that interpreter. Prints one line: "ok SOABI SUFFIX -isystem DIR ...",
or a sentence that says why no extension can be built for it. It must itself
run on any Python, so that an old one gets its sentence too. The sentence goes
through a shell's double quotes: keep it plain.
"""
import os
import sys
import sysconfig

name = sys.argv[1]
version = "%d.%d" % sys.version_info[:2]


def facts():
    if sys.version_info[0] < 3 or sys.implementation.name != "cpython":
        return "%s: this is not CPython 3.11 to 3.14" % name
    if not (3, 11) <= sys.version_info[:2] <= (3, 14):
        return "%s: CPython %s is not supported, only 3.11 to 3.14 are" % (name, version)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "%s: this CPython %s is free-threaded, only builds with the GIL are supported" % (name, version)
    directories = []
    for key in "include", "platinclude":
        directory = sysconfig.get_path(key)
        if directory not in directories:
            directories.append(directory)
    if not os.path.exists(os.path.join(directories[-1], "pyconfig.h")) or \
       not os.path.exists(os.path.join(directories[0], "internal", "pycore_frame.h")):
        package = "python%s-dev" % version if sys.prefix == "/usr" else "the development files of this Python"
        return "%s: CPython %s has no C headers in %s, install %s" % (name, version, directories[0], package)
    flags = " ".join("-isystem " + directory for directory in directories)
    return "ok %s %s %s" % (sysconfig.get_config_var("SOABI"), sysconfig.get_config_var("EXT_SUFFIX"), flags)


print(facts())
