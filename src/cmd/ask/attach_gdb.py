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


def gdb_call(function, result, types, *values):
    words = ", ".join(str(int(value)) for value in values)
    return gdb.parse_and_eval("((%s (*)(%s)) &%s)(%s)" % (result, types, function, words))


def address_or_zero(function):
    try:
        return address(function)
    except gdb.error:
        return 0


def address(function):
    return int(gdb.parse_and_eval("(unsigned long) &%s" % function))


def function_names():
    """Return the thread's C functions, innermost first, up to one that evaluates Python."""
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


def is_sleeping(found):
    return any(SLEEPS.match(name) for name in found[:6]) or any(WAITS.match(n) for n in found)


def read_thread_state():
    """Return whether the thread has a Python thread state, and whether it has the GIL."""
    own = int(gdb_call("PyGILState_GetThisThreadState", "unsigned long", "void"))
    # CPython 3.13 has the function under a public name
    public = address_or_zero("PyThreadState_GetUnchecked")
    name = "PyThreadState_GetUnchecked" if public else "_PyThreadState_UncheckedGet"
    running = int(gdb_call(name, "unsigned long", "void"))
    return bool(own), own == running


def write_code(page_known):
    """Write the code to a new page of the process. Returns the page's address and size."""
    size = (len(before) + len(after) + 64 + 4095) & ~4095
    types = "unsigned long, unsigned long, int, int, int, long"
    page = int(gdb_call("mmap", "unsigned long", types, 0, size, 3, 0x22, -1, 0)) & (2**64 - 1)
    if page >= 2**64 - 4096:
        raise gdb.error("there is no memory for its code")
    numbers = "%d, %d" % ((page, size) if page_known else (0, 0))
    text = before + numbers.encode().hex() + after
    gdb.selected_inferior().write_memory(page, text.encode() + b"\0")
    return page, size


def run_now():
    page, size = write_code(False)
    kept = int(gdb_call("PyGILState_Ensure", "int", "void"))
    gdb_call("PyRun_SimpleString", "int", "unsigned long", page)
    gdb_call("PyGILState_Release", "void", "int", kept)
    gdb_call("munmap", "int", "unsigned long, unsigned long", page, size)


def add_pending_call():
    page, size = write_code(True)
    types = "unsigned long, unsigned long"
    failed = int(gdb_call("Py_AddPendingCall", "int", types, address("PyRun_SimpleString"), page))
    if failed:
        gdb_call("munmap", "int", "unsigned long, unsigned long", page, size)
        raise gdb.error("too many other calls are pending in it")
    return page


def list_threads():
    """Return the threads of the process, the main thread first."""
    found = gdb.selected_inferior().threads()
    return sorted(found, key=lambda thread: (thread.ptid[1] != pid, thread.num))


def try_threads():
    """Try each thread. Returns the text to print, or None if no thread can run the code now."""
    first = True
    for thread in list_threads():
        thread.switch()
        found = function_names()
        if not is_safe(found):
            first = False
            continue
        if first and not int(gdb_call("Py_IsInitialized", "int", "void")):
            return "cannot its Python is not initialised"
        has_state, has_gil = read_thread_state()
        if has_state and not has_gil and is_sleeping(found):
            run_now()
            return "done"
        if first and has_gil and has_state and not blocked:
            return "later %d" % add_pending_call()
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
            answer = try_threads()
        finally:
            gdb.execute("detach", to_string=True)
        if answer:
            return answer
        time.sleep(0.025)
    return "cannot no thread of it was at a point where Python code can be run"


try:
    print("\nattach: " + main())
except gdb.error as error:
    print("\nattach: cannot gdb: %s" % str(error).partition("\n")[0].rstrip("."))
