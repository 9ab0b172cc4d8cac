# Runs in the main thread of a process that `dyntrace attach` has chosen, and in nobody's namespace.
# Before it stand the lines that src/cmd/attach/inject.c adds:
#     session, inject, page, size = "", "", 0, 0
# the directories as hexadecimal bytes; `session` is empty if the process is to leave its session.
# page and size are the memory in which this text is. After _attach() there is no call of a Python
# function, because it would be recorded.
import posix
import sys

why = None
try:
    session, inject = [
        bytes.fromhex(name).decode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
        for name in (session, inject)
    ]
    if session:
        posix.stat(session)  # attach may have given up
        ours = sys.modules.get("_dyntrace")
        if ours and ours._active():  # it came in by another way meanwhile
            why = ours._attach(session, session, session)
    if session and not why:
        scope = {"__name__": "dyntrace", "__file__": inject + "/sitecustomize.py"}
        with open(scope["__file__"], "rb") as file:
            source = file.read()
        exec(compile(source, "<dyntrace>", "exec"), scope)
        why = scope["_attach"](session)
    elif not session:
        sys.modules["_dyntrace"]._attach_signal(0, None)
except BaseException as error:
    why = "%s: %s" % (type(error).__name__, error)
try:
    if page:
        sys.modules["_dyntrace"]._unmap(page, size)
    if why:
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW
        answer = posix.open(session + "/attach.error", flags | posix.O_CLOEXEC, 0o600)
        posix.write(answer, why.encode("utf-8", "replace"))
        posix.close(answer)
except BaseException:
    pass
