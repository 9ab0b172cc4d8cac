# Makes a process join a session of `dyntrace attach`, or leave it. Runs in a thread of the process,
# in a new namespace. src/cmd/attach/inject.c puts a line like this before it:
#     session, inject, page, size = "", "", 0, 0
# session and inject are directories in hexadecimal. `session` is empty if the process should leave
# its session. page and size are the memory that holds this text, if gdb has put it there. After
# _attach() no Python function is called, because it would be recorded.
import posix
import sys

why = None
try:
    session, inject = [
        bytes.fromhex(name).decode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
        for name in (session, inject)
    ]
    if session:
        posix.stat(session)  # fails if `attach` has given up and removed it
        ours = sys.modules.get("_dyntrace")
        if ours and ours._active():  # the process has joined a session in another way meanwhile
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
