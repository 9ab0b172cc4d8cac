/* cmd/attach/gdb_ptrace.c -- lets gdb 13 write the vector registers of newer processors.
 *
 * Runs in: gdb, which `dyntrace attach` starts with this library in LD_PRELOAD.
 *
 * When a function that gdb called in the process has returned, gdb writes back all registers. Linux
 * takes the vector registers only as a whole: an area that is as large as the processor's XSAVE
 * area. gdb 13, which Debian 12 has, writes at most 2,696 bytes. On a processor with AMX, whose
 * area has 11,008 bytes, gdb therefore fails with "Couldn't write extended state status: Bad
 * address". The ptrace() below reads the thread's whole area, puts gdb's bytes over its beginning,
 * and writes all of it back. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

/* size of the buffer for a thread's registers; more than five times the area with AMX */
enum { AREA_MOST = 1 << 16 };

typedef long ptrace_function(enum __ptrace_request request, ...);

/* Replaces ptrace(2) in gdb. */
long ptrace(enum __ptrace_request request, ...)
{
    ptrace_function *real = (ptrace_function *)dlsym(RTLD_NEXT, "ptrace");
    static _Alignas(64) unsigned char area[AREA_MOST];
    struct iovec all = {area, sizeof area};
    const struct iovec *given;
    va_list arguments;
    pid_t thread;
    void *address, *data;
    long result;

    va_start(arguments, request);
    thread = va_arg(arguments, pid_t);
    address = va_arg(arguments, void *);
    data = va_arg(arguments, void *);
    va_end(arguments);
    result = real(request, thread, address, data);
    if (result != -1 || errno != EFAULT || request != PTRACE_SETREGSET ||
        address != (void *)NT_X86_XSTATE)
        return result;
    given = data;
    if (real(PTRACE_GETREGSET, thread, address, &all) == -1)
        return -1;
    if (given->iov_len > all.iov_len) {
        errno = EFAULT;
        return -1;
    }
    memcpy(area, given->iov_base, given->iov_len);
    return real(PTRACE_SETREGSET, thread, address, &all);
}
