"""Loads dyntrace into an interpreter started by `dyntrace run`, then makes room for the user's own
sitecustomize.

Runs in: the traced process, while site.py starts up. The directory inject/ of the installation,
where this lies, is an entry of PYTHONPATH; DYNTRACE_SESSION names the session (src/inject.h). All
visible traces are removed before the program runs: the entry in sys.path, the variables in
os.environ, this module in sys.modules. Then the user's own sitecustomize is imported in our place;
if there is none, the ImportError is the one that site.py expects and ignores.

Daemons start interpreters long after the session: then this file does nothing else, and prints
nothing.

Any Python version may read this file, so its syntax is as old as can be.
"""

import os
import sys


def _spec(library, name):
    """The spec of our package under NAME, or None if its files cannot be seen."""
    from _frozen_importlib_external import SourceFileLoader, spec_from_file_location

    directory = os.path.join(library, "python", "dyntrace")
    if not os.path.exists(directory):  # pip: they are one
        directory = library
    path = os.path.join(directory, "__init__.py")
    if not os.path.exists(path):
        return None
    loader = SourceFileLoader(name, path)
    return spec_from_file_location(
        name, path, loader=loader, submodule_search_locations=[directory]
    )


def _extension(name="_dyntrace"):
    """The extension NAME for this interpreter, or None."""
    try:
        import _imp
    except ImportError:  # Python 2
        return None
    # The first suffix names the implementation and its version: no extension of ours is for
    # another.
    for suffix in _imp.extension_suffixes()[:1]:
        path = os.path.join(os.path.dirname(_inject), name + suffix)
        if os.path.exists(path):
            return path
    return None


def _extension_spec(name):
    """The spec of the extension NAME, or None."""
    path = _extension(name)
    if not path:
        return None
    import _frozen_importlib
    import _frozen_importlib_external

    loader = _frozen_importlib_external.ExtensionFileLoader(name, path)
    return _frozen_importlib.ModuleSpec(name, loader, origin=path)


def _load(spec):
    """The extension of SPEC. None: this interpreter cannot load one."""
    if not spec:
        return None
    import _imp

    try:
        module = _imp.create_dynamic(spec)
    except ImportError:
        return None
    _imp.exec_dynamic(module)
    return module


def _start(inject, session):
    """Record this process. None, or why that cannot be: see _start.__doc__ of the extension."""
    library, module = os.path.dirname(inject), _load(_extension_spec("_dyntrace"))
    if module:
        spec = _spec(library, "dyntrace")
        private = _spec(library, "_dyntrace_package")  # the tracer's own name for the package
        standard = os.path.dirname(os.__file__)
        capture = _extension_spec("_dyntrace_capture")
        # from here on calls of Python functions are recorded
        why = module._start(session, standard, inject, capture)
        if why is None:
            sys.modules["_dyntrace"] = module
            if spec:
                module._package = spec
                module._private_package = private
                # The extension has a find_spec() for these two names. It comes last, so that
                # imports that succeed do not see it, and a package called dyntrace that the
                # program has stays the program's.
                sys.meta_path.append(module)
            module._begin_settings()
            return None
        sys.modules.pop("_dyntrace", None)
        if why != "another":  # an extension of another version is as good as none
            return why
    _note(
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


def _note(session, text):
    """The parent reads this file and tells the user; the program just runs. The directory is
    checked as in src/session_check.h."""
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


def _hide(inject):
    """Undo what shows us. The session that this process was to join, or None."""
    ours = (inject, inject + "/")
    sys.path[:] = [entry for entry in sys.path if entry not in ours]
    for entry in ours:
        sys.path_importer_cache.pop(entry, None)
    # so that C's environment, which children inherit, keeps them
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


def _uncache():
    """Remove our bytecode if it is among the user's (-X pycache_prefix): `pip uninstall` would not
    find it there."""
    cached = getattr(globals().get("__spec__"), "cached", None)
    if not cached:
        return
    try:
        if getattr(sys, "pycache_prefix", None):
            os.remove(cached)
            os.rmdir(os.path.dirname(cached))
            os.rmdir(os.path.dirname(os.path.dirname(cached)))
        elif sys.flags.optimize or not _extension():
            os.remove(cached)
    except OSError:  # a child process was quicker, or it is not ours
        pass


_inject = os.path.dirname(os.path.abspath(__file__))
_session = _hide(_inject)
_uncache()
try:
    if _session:
        _start(_inject, _session)
except Exception:  # never the program's trouble
    pass
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402  the user's own, or the ImportError that site.py ignores
