"""Code objects, threads and files whose names nobody expects."""
import sys
import threading


def renamed(name, filename=None):
    def f():
        pass
    named = {"co_name": name}
    if hasattr(f.__code__, "co_qualname"):
        named["co_qualname"] = name
    if filename:
        named["co_filename"] = filename
    f.__code__ = f.__code__.replace(**named)
    return f


renamed("red \x1b[31m\r\n\x07 bell")()
renamed("nul \0 after")()
renamed("lone \udc80 surrogate", "file \ud800.py")()
renamed("\N{SNOWMAN} and \U0001f600")()
renamed("")()
renamed("M" * (10 << 20))()
renamed("\N{SNOWMAN}" * (1 << 20), "/" + "d" * (1 << 20))()
for name in ("\x1b[2J", "lone \udcff", "x" + "\N{SNOWMAN}" * 200, "", "n" * 5000):
    thread = threading.Thread(target=renamed("in a thread"), name=name or "x")
    if not name:
        thread._name = name
    thread.start()
    thread.join()
print(len(sys.argv))
