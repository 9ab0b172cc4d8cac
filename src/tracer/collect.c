/* tracer/collect.c -- starts `dyntrace collect`, which writes the trace of dyntrace.record().
 *
 * Runs in: the traced process, before and after a recording.
 *
 * The program must not notice `collect`: it is no child that wait() returns, and no SIGCHLD comes
 * for it. So an intermediate process starts it and exits at once:
 *
 *     program --clone()--> intermediate --clone()--> collect
 *
 * The intermediate's exit signal is 0, not SIGCHLD. Such a child sends no signal, and only a wait
 * with __WCLONE returns it. (execve() resets the exit signal, so `collect` itself cannot be started
 * that way.) Both share the program's memory until `collect` calls execve(), as with vfork(): a
 * program with much memory is not slower, and no handler of fork() runs. All functions that they
 * call are async-signal-safe.
 *
 * The program and `collect` are connected by one socket, which is standard input, output and error
 * of `collect`. */
#include "tracer/collect.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 64 << 10, FIRST_FD = 3 };

/* What the two processes share with us: their arguments and their result. */
struct start {
    char **argv;
    int end;     /* the end of the socket that `collect` gets */
    char *stack; /* memory for two stacks of STACK_BYTES each */
    pid_t pid;   /* of `collect` */
    int error;   /* errno if `collect` could not be started; 0 if it was */
};

static void close_inherited_descriptors(void)
{
    if (syscall(SYS_close_range, FIRST_FD, UINT_MAX, 0) == 0)
        return;
    for (int fd = FIRST_FD, count = getdtablesize(); fd < count; fd++)
        close(fd);
}

/* Main function of the process that becomes `collect`. It begins a POSIX session of its own, so
 * that Ctrl-C in a terminal reaches only the program. */
static int run_collect_command(void *of)
{
    /* Not on the stack: ASan would mark the memory around it, and execve() would leave the marks to
     * what is mapped there next. */
    static const sigset_t none;
    struct start *start = of;

    for (int number = 1; number < NSIG; number++)
        /* a handler of the program would run in the program's memory, which we share */
        signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    for (int fd = 0; fd < FIRST_FD; fd++)
        dup2(start->end, fd);
    close_inherited_descriptors();
    execve(start->argv[0], start->argv, environ);
    start->error = errno;
    return 127; /* the exit status */
}

static int run_intermediate_process(void *of)
{
    struct start *start = of;

    /* Process 1 of a pid namespace must not exit before the others. If it is the intermediate, it
     * becomes `collect` itself, and wait() in the program may return it. */
    if (getpid() == 1)
        return run_collect_command(of);
    start->pid = clone(run_collect_command, start->stack + STACK_BYTES,
                       CLONE_VM | CLONE_VFORK | SIGCHLD, start);
    if (start->pid < 0)
        start->error = errno;
    return 0;
}

/* Start `collect`, and wait for the exit of the intermediate process. */
static void start_collect_process(struct start *start)
{
    sigset_t all, old;
    pid_t pid;

    start->stack = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (start->stack == MAP_FAILED) {
        start->error = errno;
        return;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = clone(run_intermediate_process, start->stack + 2 * STACK_BYTES, CLONE_VM | CLONE_VFORK,
                start);
    if (pid < 0)
        start->error = errno;
    else if (waitpid(pid, NULL, __WCLONE) < 0)
        /* the intermediate has become `collect`, which __WCLONE does not return */
        start->pid = pid;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    munmap(start->stack, 2 * STACK_BYTES);
}

/* Has the kernel made `collect` our child when its parent exited? It does if we are process 1 or a
 * subreaper. */
static bool is_our_child(pid_t pid)
{
    siginfo_t ended;

    return waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Make the two ends of the socket. Their numbers are above those of standard input, output and
 * error, even if these are closed. Returns false with errno. */
static bool make_socket_pair(int ends[2])
{
    int made[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made))
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(made[i], F_DUPFD_CLOEXEC, FIRST_FD);
        close(made[i]);
    }
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    close(ends[0]);
    close(ends[1]);
    errno = EMFILE;
    return false;
}

/* Return an array of the strings of COMMAND, a list of bytes, with a NULL at the end. The caller
 * frees the array; the strings are borrowed from COMMAND. */
static char **list_strings(PyObject *command)
{
    const Py_ssize_t count = PyList_GET_SIZE(command);
    char **argv = calloc((size_t)count + 1, sizeof *argv);

    for (Py_ssize_t i = 0; argv && i < count; i++)
        if (PyBytes_AsStringAndSize(PyList_GET_ITEM(command, i), &argv[i], NULL)) {
            free(argv);
            return NULL;
        }
    return argv ? argv : (char **)PyErr_NoMemory();
}

PyObject *collect_start(PyObject *module, PyObject *args)
{
    struct start start = {0};
    PyObject *command, *result, *facts = NULL;
    struct stat status = {0};
    int ends[2];

    if (!PyArg_ParseTuple(args, "O!O!:_collect", &PyList_Type, &command, &PyList_Type, &result))
        return NULL;
    start.argv = list_strings(command);
    if (!start.argv)
        return NULL;
    if (!make_socket_pair(ends)) {
        free(start.argv);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    start.end = ends[1];
    start_collect_process(&start);
    free(start.argv);
    close(ends[1]);
    fstat(ends[0], &status);
    errno = start.error;
    if (start.error)
        PyErr_SetFromErrno(PyExc_OSError);
    else
        facts = Py_BuildValue("(iKKiN)", ends[0], (unsigned long long)status.st_dev,
                              (unsigned long long)status.st_ino, (int)start.pid,
                              PyBool_FromLong(is_our_child(start.pid)));
    if (!facts || PyList_Append(result, facts)) {
        Py_XDECREF(facts);
        close(ends[0]); /* `collect` ends when this end of the socket is closed */
        return NULL;
    }
    Py_DECREF(facts);
    Py_RETURN_NONE;
}

PyObject *collect_hang_up(PyObject *module, PyObject *fd)
{
    const long number = PyLong_AsLong(fd);

    if (number == -1 && PyErr_Occurred())
        return NULL;
    /* shutdown, not only close: forked children may have copies of the descriptor */
    shutdown((int)number, SHUT_WR);
    Py_RETURN_NONE;
}

PyObject *collect_can_record(PyObject *module, PyObject *ignored)
{
    return PyBool_FromLong(tracer_place() == PLACE_HOME);
}
