# Makes a process run Python code. `dyntrace attach` starts gdb, whose Python runs this file.
# src/cmd/attach/inject.c puts lines like these before it:
#     pid, blocked = 1, False
#     before, after = "", ""       # the code; the address and size of its page go between the parts
#
# The code is written to a new page of the process, made by mmap(). One of two threads runs it:
#
#   * the main thread, if it has the GIL: it gets a pending call of PyRun_SimpleString(), whose type
#     fits Py_AddPendingCall(). The thread makes the call later, between two bytecode instructions,
#     and so never inside malloc() or another C function.
#   * a thread that sleeps in a system call without the GIL, if Python code made the system call and
#     not malloc(), the dynamic linker or the like. It takes the GIL and runs the code at once, as if
#     the sleeping function called back. If `blocked` is set, only this way is tried.
#
# Prints "attach: done", "attach: later ADDRESS" or "attach: cannot REASON".
import re
import time

import gdb

TRIES = 40
# Only the symbols of these libraries are loaded: the process is stopped while symbols load.
LIBRARIES = ("libpython", "libc.so", "libpthread", "ld-linux", "malloc")
SLEEPS = re.compile(
    r"^_*(GI_)?_*(libc_|internal_)?(p?select|p?poll|epoll_p?wait2?|accept4?|recv(from|m?msg)?|p?read(v|v2)?"
    r"|(clock_)?nanosleep|wait(3|4|pid|id)|pause|sig(suspend|wait|waitinfo|timedwait)|connect|flock)"
    r"(64|_time64|_chk|_nocancel)*(@.*)?$"
)
WAITS = re.compile(r"^(PyThread_acquire_lock(_timed)?|PyEvent_Wait(Timed)?|_PyParkingLot_Park)$")
UNSAFE = re.compile(
    r"^_*(GI_)?_*(libc_|int_)?(malloc|free|calloc|realloc|reallocarray|memalign|posix_memalign|aligned_alloc"
    r"|malloc_.*|sysmalloc.*|systrim.*|arena_.*|tcache_.*|int_(malloc|free|realloc|memalign).*|unlink_chunk.*"
    r"|dl(open|close|sym|addr|iterate_phdr).*|dl_.*|tls_get_addr.*|v?fork|_?exit|abort|pthread_create.*"
    r"|je_.*|tc_(malloc|free|calloc|realloc|new|delete).*|mi_.*|operator (new|delete).*"
    r"|_?Py_(AddPendingCall|MakePendingCalls|Finalize.*)|_PyEval_(Add|Make)PendingCalls?.*"
    r"|_?PyMutex_.*|make_pending_calls|handle_signals|_PyObject_(Malloc|Free|Calloc|Realloc)|_PyMem_.*)(@.*)?$"
)
PYTHON = re.compile(r"^_?PyEval_")


def call(function, result, types, *values):
    words = ", ".join(str(int(value)) for value in values)
    return gdb.parse_and_eval("((%s (*)(%s)) &%s)(%s)" % (result, types, function, words))


def has(function):
    try:
        return address(function)
    except gdb.error:
        return 0


def address(function):
    return int(gdb.parse_and_eval("(unsigned long) &%s" % function))


def names():
    """The functions of the thread, innermost first, up to the first that runs Python."""
    found, frame = [], gdb.newest_frame()
    while frame and len(found) < 64:
        found.append(frame.name() or "?")
        if PYTHON.match(found[-1]):
            break
        try:
            frame = frame.older()
        except gdb.error:
            break
    return found


def is_safe(found):
    return not any(UNSAFE.match(name) for name in found)


def sleeps(found):
    return any(SLEEPS.match(name) for name in found[:6]) or any(WAITS.match(n) for n in found)


def state_of_thread():
    """(has a thread state, has the GIL)"""
    own = int(call("PyGILState_GetThisThreadState", "unsigned long", "void"))
    # made public, under another name, by 3.13
    public = has("PyThreadState_GetUnchecked")
    name = "PyThreadState_GetUnchecked" if public else "_PyThreadState_UncheckedGet"
    running = int(call(name, "unsigned long", "void"))
    return bool(own), own == running


def put_text(page_known):
    """Put the text into a page of the process. Returns its address and size."""
    size = (len(before) + len(after) + 64 + 4095) & ~4095
    types = "unsigned long, unsigned long, int, int, int, long"
    page = int(call("mmap", "unsigned long", types, 0, size, 3, 0x22, -1, 0)) & (2**64 - 1)
    if page >= 2**64 - 4096:
        raise gdb.error("there is no memory for its code")
    numbers = "%d, %d" % ((page, size) if page_known else (0, 0))
    text = before + numbers.encode().hex() + after
    gdb.selected_inferior().write_memory(page, text.encode() + b"\0")
    return page, size


def run_here():
    page, size = put_text(False)
    kept = int(call("PyGILState_Ensure", "int", "void"))
    call("PyRun_SimpleString", "int", "unsigned long", page)
    call("PyGILState_Release", "void", "int", kept)
    call("munmap", "int", "unsigned long, unsigned long", page, size)


def run_soon():
    page, size = put_text(True)
    types = "unsigned long, unsigned long"
    failed = int(call("Py_AddPendingCall", "int", types, address("PyRun_SimpleString"), page))
    if failed:
        call("munmap", "int", "unsigned long, unsigned long", page, size)
        raise gdb.error("too many other calls are pending in it")
    return page


def threads():
    """The threads, the main one first."""
    found = gdb.selected_inferior().threads()
    return sorted(found, key=lambda thread: (thread.ptid[1] != pid, thread.num))


def attempt():
    """What to print, or None: try once more."""
    first = True
    for thread in threads():
        thread.switch()
        found = names()
        if not is_safe(found):
            first = False
            continue
        if first and not int(call("Py_IsInitialized", "int", "void")):
            return "cannot its Python is not initialised"
        has_state, has_gil = state_of_thread()
        if has_state and not has_gil and sleeps(found):
            run_here()
            return "done"
        if first and has_gil and has_state and not blocked:
            return "later %d" % run_soon()
        first = False
    return None


def main():
    for setting in ("confirm off", "pagination off", "auto-solib-add off", "unwindonsignal on"):
        gdb.execute("set " + setting)
    gdb.execute("handle all nostop noprint pass", to_string=True)
    for _ in range(TRIES):
        gdb.execute("attach %d" % pid, to_string=True)
        for library in LIBRARIES:
            gdb.execute("sharedlibrary " + library, to_string=True)
        try:
            answer = attempt()
        finally:
            gdb.execute("detach", to_string=True)
        if answer:
            return answer
        time.sleep(0.025)
    return "cannot no thread of it was at a point where Python code can be run"


try:
    print("\nattach: " + main())
except gdb.error as error:
    print("\nattach: cannot gdb: %s" % str(error).partition("\n")[0])
