"""Loads dyntrace into an interpreter that `dyntrace run` started, then imports the user's own
sitecustomize.

Runs in: the traced process, while site.py starts up. This file lies in the directory inject/ of the
installation, which is an entry of PYTHONPATH; DYNTRACE_SESSION names the session (src/inject.h).
Before the program runs, this file removes every sign of dyntrace that the program could see: the
entry in sys.path, the variables in os.environ, this module in sys.modules. Then it imports the
user's own sitecustomize. If there is none, site.py gets the ImportError, which it expects and
ignores.

A daemon may start interpreters long after the session has ended. In these interpreters this file
only removes the entries, and prints nothing. Any version of Python may read this file, so it uses
only old syntax.
"""

import os
import sys


def _find_package(library, name):
    """Return the spec for importing our package as NAME. Returns None if the package's files do not
    exist or are hidden from this process."""
    from _frozen_importlib_external import SourceFileLoader, spec_from_file_location

    directory = os.path.join(library, "python", "dyntrace")
    if not os.path.exists(directory):  # pip puts the package and the extension into the same folder
        directory = library
    path = os.path.join(directory, "__init__.py")
    if not os.path.exists(path):
        return None
    loader = SourceFileLoader(name, path)
    return spec_from_file_location(
        name, path, loader=loader, submodule_search_locations=[directory]
    )


def _find_extension(name="_dyntrace"):
    """Return the path of the extension NAME for this interpreter, or None."""
    try:
        import _imp
    except ImportError:  # Python 2
        return None
    # Use only the first suffix: it names the implementation and its version, and so do the files of
    # our extensions.
    for suffix in _imp.extension_suffixes()[:1]:
        path = os.path.join(os.path.dirname(_inject), name + suffix)
        if os.path.exists(path):
            return path
    return None


def _find_extension_spec(name):
    """Return the spec for importing the extension NAME, or None."""
    path = _find_extension(name)
    if not path:
        return None
    import _frozen_importlib
    import _frozen_importlib_external

    loader = _frozen_importlib_external.ExtensionFileLoader(name, path)
    return _frozen_importlib.ModuleSpec(name, loader, origin=path)


def _load_extension(spec):
    """Load and return the extension that SPEC describes. Returns None if this interpreter cannot
    load it."""
    if not spec:
        return None
    import _imp

    try:
        module = _imp.create_dynamic(spec)
    except ImportError:
        return None
    _imp.exec_dynamic(module)
    return module


def _make_importable(module, spec, private):
    """Make the package importable. MODULE is the extension. SPEC and PRIVATE are the specs of the
    package under its public name and under the name that only the extension uses."""
    sys.modules["_dyntrace"] = module
    # compare by `is`, because `in` would call __eq__ of the program's finders
    if spec and not any(finder is module for finder in sys.meta_path):
        module._package = spec
        module._private_package = private
        # The extension's find_spec() finds the package under the names of the two specs. The
        # extension is the last finder: if the program has its own package called dyntrace, that
        # package is found first.
        sys.meta_path.append(module)


def _undo_make_importable(module):
    """Undo _make_importable()."""
    sys.modules.pop("_dyntrace", None)
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not module]


def _start_recording(inject, session):
    """Begin to record this process. Returns None, or one of the words that the extension's
    _start.__doc__ lists: the reason why this process is not recorded."""
    library, module = os.path.dirname(inject), _load_extension(_find_extension_spec("_dyntrace"))
    if module:
        spec = _find_package(library, "dyntrace")
        # the spec of the package under the name by which the extension imports it
        private = _find_package(library, "_dyntrace_package")
        standard = os.path.dirname(os.__file__)
        if session == "standby":  # src/inject.h
            _make_importable(module, spec, private)
            module._standby(standard, inject)
            return None
        capture = _find_extension_spec("_dyntrace_capture")
        _make_importable(module, spec, private)
        # from this call on, calls of Python functions are recorded
        why = module._start(session, standard, inject, capture)
        if why is None:
            module._begin_settings()
            return None
        _undo_make_importable(module)
        # "another" means that the extension is of another version than the session
        if why != "another":
            return why
    if session == "standby":
        return "unsupported"
    _report_to_run(
        session,
        "%s %d.%d at %s"
        % (
            getattr(getattr(sys, "implementation", None), "name", "python"),
            sys.version_info[0],
            sys.version_info[1],
            sys.executable,
        ),
    )
    return "unsupported"


def _report_to_run(session, text):
    """Write TEXT into a file of the session's directory. `dyntrace run` reads the file and reports
    TEXT, and the program goes on. Checks the directory as src/session_check.h does."""
    directory = os.open(session, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(directory)
        if status.st_uid == os.geteuid() and status.st_mode & 0o777 == 0o700:
            name = "/proc/self/fd/%d/%d.unsupported" % (directory, os.getpid())
            note = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            os.write(note, text if isinstance(text, bytes) else text.encode("utf-8", "replace"))
            os.close(note)
    finally:
        os.close(directory)


def _remove_entries(inject):
    """Remove the entries by which the program could see dyntrace. Returns the session that this
    process should join, or None."""
    ours = (inject, inject + "/")
    sys.path[:] = [entry for entry in sys.path if entry not in ours]
    for entry in ours:
        sys.path_importer_cache.pop(entry, None)
    # Change only the dict behind os.environ. C's environment must stay, because child processes
    # inherit it.
    data = getattr(os.environ, "_data", None)
    if data is None:  # Python 2
        data = os.environ.data
    encode = (lambda text: text) if sys.version_info[0] == 2 else os.fsencode
    key, colon, empty = encode("PYTHONPATH"), encode(":"), encode("")
    ours = [encode(entry) for entry in ours]
    value = data.get(key)
    if value == ours[0]:
        del data[key]
    elif value == ours[1]:
        data[key] = empty
    elif value is not None:
        data[key] = colon.join([entry for entry in value.split(colon) if entry not in ours])
    session = data.pop(encode("DYNTRACE_SESSION"), None)
    return session if session is None or isinstance(session, str) else os.fsdecode(session)


def _remove_cached_bytecode():
    """Remove the cached bytecode of this file if `pip uninstall` would leave it behind. That is so
    if it lies in the user's pycache_prefix, or was written under -O, or by an interpreter for which
    there is no extension."""
    cached = getattr(globals().get("__spec__"), "cached", None)
    if not cached:
        return
    try:
        if getattr(sys, "pycache_prefix", None):
            os.remove(cached)
            os.rmdir(os.path.dirname(cached))
            os.rmdir(os.path.dirname(os.path.dirname(cached)))
        elif sys.flags.optimize or not _find_extension():
            os.remove(cached)
    except OSError:  # a child process has removed the file, or the file belongs to another user
        pass


def _attach(session):
    """Begin to record this process, which runs already. Called by code that src/cmd/attach/
    injects. Returns None, or the reason why the process is not recorded. Nothing may run after the
    extension's _attach(), because it would be recorded."""
    library = os.path.dirname(_inject)
    module = sys.modules.get("_dyntrace") or _load_extension(_find_extension_spec("_dyntrace"))
    if not module:
        return "no extension for %s %d.%d at %s" % (
            sys.implementation.name,
            sys.version_info[0],
            sys.version_info[1],
            sys.executable,
        )
    _make_importable(
        module, _find_package(library, "dyntrace"), _find_package(library, "_dyntrace_package")
    )
    return module._attach(session, os.path.dirname(os.__file__), _inject)


_inject = os.path.dirname(os.path.abspath(__file__))
if __name__ == "sitecustomize":  # `dyntrace attach` runs this file under another name
    _session = _remove_entries(_inject)
    _remove_cached_bytecode()
    try:
        if _session:
            _start_recording(_inject, _session)
    except Exception:  # an error of dyntrace must not stop the program
        pass
    sys.modules.pop("sitecustomize", None)
    # import the user's sitecustomize; if there is none, site.py ignores the ImportError
    import sitecustomize  # noqa: E402
