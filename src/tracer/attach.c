/* tracer/attach.c -- `dyntrace attach` inside the process: joining and leaving at a signal.
 *
 * Runs in: the traced process; nothing here runs for a call.
 *
 * A process that is on standby, or in a session of `dyntrace attach`, has a handler of SIGURG: a
 * built-in function, which we set by signal.signal() as a program would. CPython calls it in the
 * main thread with the GIL, between two instructions or where a system call was interrupted.
 * Without a handler the system ignores SIGURG, so no harm is done if the signal comes after an
 * exec().
 *
 *     standby    the handler looks for a session with this process's pid, and joins it
 *     recording  the handler leaves the session if its `leave` is set
 *
 * A program that handles SIGURG itself keeps its handler; `dyntrace attach` then needs another way.
 *
 * A free-threaded build never joins here (join_with_running_frames). `standby` is set by the main
 * thread, before the program runs. */
#include "tracer/attach.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "inject.h"
#include "session_check.h"
#include "tracer/collect.h"

#define P tracer_process

/* the directories in which `dyntrace attach` makes a session */
static const char *const bases[] = {"/dev/shm", "/tmp", "/var/tmp"};

static const struct attach_calls *calls; /* borrowed */

void attach_register(const struct attach_calls *of_module)
{
    calls = of_module;
}

static struct {
    /* owned: the arguments of _standby(); NULL if the process is not on standby */
    char *library, *inject;
} standby;

/* ---- set and remove the handler of SIGURG ---- */

/* Return the program's handler of SIGURG, as signal.getsignal() does: a new reference, or NULL. */
static PyObject *get_signal_handler(PyObject *signals)
{
    OWNED PyObject *number = PyLong_FromLong(SIGURG);

    return number ? tracer_call_method(signals, "getsignal", number, NULL, NULL) : NULL;
}

/* Are the two signal handlers the same? SIG_DFL is an int. Other handlers are compared by identity,
 * because __eq__ would be code of the program. */
static bool is_same_handler(PyObject *one, PyObject *other)
{
    if (one == other)
        return true;
    if (!PyLong_CheckExact(one) || !PyLong_CheckExact(other))
        return false;
    return PyObject_RichCompareBool(one, other, Py_EQ) == 1;
}

/* Set the handler of SIGURG to TO if it is FROM now. In another thread than the main thread this
 * changes nothing, and sets no exception. */
static void exchange_signal_handler(PyObject *signals, PyObject *from, PyObject *to)
{
    OWNED PyObject *number = PyLong_FromLong(SIGURG), *now = get_signal_handler(signals);
    OWNED PyObject *done = NULL;

    if (now && is_same_handler(now, from))
        done = tracer_call_method(signals, "signal", number, to, NULL);
    PyErr_Clear();
}

/* LISTENS: set our handler of SIGURG, unless the program has one. Otherwise remove our handler, so
 * that the system ignores SIGURG again. */
static void set_attach_handler(PyObject *module, bool listens)
{
    OWNED PyObject *signals = PyImport_ImportModule("_signal");
    OWNED PyObject *none = signals ? tracer_get_attribute(signals, "SIG_DFL") : NULL;
    OWNED PyObject *ours = tracer_get_attribute(module, "_attach_signal");

    if (none && ours)
        exchange_signal_handler(signals, listens ? none : ours, listens ? ours : none);
    PyErr_Clear();
}

void attach_listen(PyObject *module)
{
    if (P.session && P.session->attach_pid)
        set_attach_handler(module, true);
}

/* ---- find a session of `dyntrace attach` and join it ---- */

/* Was the session in the directory PATH made for this process, and does it still record? */
static bool is_session_for_this_process(const char *path)
{
    struct session_file file = {0};
    int fd = session_open_in(path, "session", O_RDONLY);
    ssize_t got = fd < 0 ? -1 : pread(fd, &file, sizeof file, 0);

    if (fd >= 0)
        close(fd);
    if (got != (ssize_t)sizeof file || memcmp(file.magic, RING_SESSION_MAGIC, sizeof file.magic))
        return false;
    return file.attach_pid == (uint32_t)getpid() && !file.closed && !file.leave;
}

/* Report to `dyntrace attach` the reason WHY this process does not join the session in PATH. */
static void report_join_refusal(const char *path, const char *why)
{
    int fd = session_open_in(path, "attach.error", O_WRONLY | O_CREAT | O_EXCL);

    if (fd < 0)
        return;
    if (write(fd, why, strlen(why)) < 0) {
        /* without the report `dyntrace attach` gives up after its time limit */
    }
    close(fd);
}

/* Join the session in PATH. The frames that are running are recorded as inherited. Returns NULL, or
 * the reason why the process cannot join. */
static const char *join_with_running_frames(const char *path, const char *library,
                                            const char *inject)
{
    const char *why;

    if (COMPAT_FREE_THREADED)
        /* without a GIL the frames of a running thread cannot be read safely */
        return "free-threaded";
    P.inherits = true;
    why = calls->join(path, library, inject);
    if (why)
        P.inherits = false;
    else if (P.recording)
        rings_give_to_running_threads();
    return why;
}

/* Look in directory BASE for a session for this process, and join it. */
static void find_session_and_join(const char *base)
{
    DIR *directory = opendir(base);
    struct dirent *entry;
    char path[sizeof P.session_directory];
    const char *why;

    if (!directory)
        return;
    while (!P.session && (entry = readdir(directory))) {
        int length = snprintf(path, sizeof path, "%s/%s", base, entry->d_name);
        bool fits = length > 0 && (size_t)length < sizeof path;
        if (strncmp(entry->d_name, "dyntrace-", 9) || !fits)
            continue;
        if (!is_session_for_this_process(path))
            continue;
        why = join_with_running_frames(path, standby.library, standby.inject);
        if (why)
            report_join_refusal(path, why);
    }
    closedir(directory);
}

/* Should this process leave its session, because the session has ended or is about to end? */
static bool should_leave_session(void)
{
    return P.session && (atomic_load(&P.session->leave) || atomic_load(&P.session->closed));
}

static PyObject *handle_attach_signal(PyObject *module, PyObject *args)
{
    if (should_leave_session()) {
        calls->leave();
        if (!standby.inject)
            set_attach_handler(module, false);
    }
    for (size_t i = 0; standby.inject && i < sizeof bases / sizeof *bases; i++)
        if (!P.session)
            find_session_and_join(bases[i]);
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* ---- the functions of module _dyntrace that attach uses ---- */

static PyObject *attach_this_process(PyObject *module, PyObject *args)
{
    OWNED PyObject *session = NULL, *library = NULL, *inject = NULL;
    const char *why;

    if (!PyArg_ParseTuple(args, "O&O&O&:_attach", PyUnicode_FSConverter, &session,
                          PyUnicode_FSConverter, &library, PyUnicode_FSConverter, &inject))
        return NULL;
    if (P.session && !should_leave_session())
        return PyUnicode_FromString("recorded");
    why = join_with_running_frames(PyBytes_AS_STRING(session), PyBytes_AS_STRING(library),
                                   PyBytes_AS_STRING(inject));
    if (why)
        return PyUnicode_FromString(why);
    attach_listen(module);
    Py_RETURN_NONE;
}

static PyObject *prepare_for_attach(PyObject *module, PyObject *args)
{
    OWNED PyObject *library = NULL, *inject = NULL;

    if (!PyArg_ParseTuple(args, "O&O&:_standby", PyUnicode_FSConverter, &library,
                          PyUnicode_FSConverter, &inject))
        return NULL;
    if (standby.inject || tracer_place() != PLACE_HOME)
        Py_RETURN_NONE; /* in a sub-interpreter do nothing */
    standby.library = strdup(PyBytes_AS_STRING(library));
    standby.inject = strdup(PyBytes_AS_STRING(inject));
    if (!standby.library || !standby.inject)
        Py_RETURN_NONE;
    P.standby = standby.inject;
    tracer_record_child_programs(standby.inject);
    set_attach_handler(module, true);
    Py_RETURN_NONE;
}

static PyObject *unmap_memory(PyObject *module, PyObject *args)
{
    unsigned long long at;
    Py_ssize_t bytes;

    if (!PyArg_ParseTuple(args, "Kn:_unmap", &at, &bytes))
        return NULL;
    if (at && munmap((void *)(uintptr_t)at, (size_t)bytes))
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

PyMethodDef attach_methods[] = {
    {"_attach", attach_this_process, METH_VARARGS,
     "_attach($module, session, standard_library, inject, /)\n--\n\n"
     "Join the session of `dyntrace attach` in directory SESSION, in a program that runs already. "
     "Returns None, or\n"
     "a reason like _start, or 'recorded' (in another session)."},
    {"_standby", prepare_for_attach, METH_VARARGS,
     "_standby($module, standard_library, inject, /)\n--\n\n"
     "Wait for SIGURG, and then join the session that was made for this process."},
    {"_attach_signal", handle_attach_signal, METH_VARARGS,
     "_attach_signal($module, number, frame, /)\n--\n\nThe handler of SIGURG."},
    {"_can_record", collect_can_record, METH_NOARGS,
     "_can_record($module, /)\n--\n\nCan record() record here? Only in the main interpreter."},
    {"_collect", collect_start, METH_VARARGS,
     "_collect($module, command, result, /)\n--\n\n"
     "Start the program of COMMAND, a list of bytes, as no child of ours. Append a tuple to the "
     "list RESULT:\n"
     "a socket that is its standard input, output and error; the socket's device and inode; the "
     "program's pid; and\n"
     "whether it is our child, because we adopt orphans. A result that is returned would be lost "
     "if a signal's handler\n"
     "raised an exception."},
    {"_hang_up", collect_hang_up, METH_O,
     "_hang_up($module, socket, /)\n--\n\nMake the other end of SOCKET read its end."},
    {"_unmap", unmap_memory, METH_VARARGS,
     "_unmap($module, address, bytes, /)\n--\n\nUnmap the memory in which `dyntrace attach` put "
     "its code."},
    {NULL, NULL, 0, NULL},
};
