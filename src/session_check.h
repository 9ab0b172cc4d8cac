/* session_check.h -- checks that a directory is a session of ours, and a file one of its files.
 *
 * Runs in: the traced process, the command line and the collector.
 *
 * A session lies in a directory that everybody may write to (/dev/shm, /tmp). Programs that were
 * started during the recording keep the session's name in their environment after its end, and
 * anybody may then make a directory of that name. So a session and its files are opened here and
 * nowhere else, and the checks look at the opened descriptor, not at the path. A directory or file
 * that is not ours counts as missing: errno is then ENOENT. */
#ifndef DYNTRACE_SESSION_CHECK_H
#define DYNTRACE_SESSION_CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Is PATH absolute, and is its last part "dyntrace-UID-XXXXXX" as mkdtemp makes it? UID is not
 * compared: the same user has another number in another user namespace. The owner of the directory
 * is checked instead. */
static inline bool session_check_name(const char *path)
{
    const char *name = basename(path);
    int random = 0;
    int end = 0;

    sscanf(name, "dyntrace-%*[0-9]-%n%*6[a-zA-Z0-9]%n", &random, &end);
    return *path == '/' && end - random == 6 && !name[end];
}

/* Does STATUS describe a directory in which no user can replace another user's entries? */
static inline bool session_check_parent(const struct stat *status)
{
    return S_ISDIR(status->st_mode) &&
           (!(status->st_mode & (S_IWGRP | S_IWOTH)) || status->st_mode & S_ISVTX);
}

/* Open the session's directory PATH. Returns a descriptor, or -1 with errno set. */
static inline int session_open_directory(const char *path)
{
    int fd = -1;
    struct stat own, parent;

    errno = ENOENT;
    if (session_check_name(path))
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* A directory on another device than its parent's is a mount. The mounted filesystem may claim
     * any owner for it. */
    if (fd >= 0 && (fstat(fd, &own) || own.st_uid != geteuid() || (own.st_mode & 0777) != 0700 ||
                    fstatat(fd, "..", &parent, 0) || !session_check_parent(&parent) ||
                    parent.st_dev != own.st_dev)) {
        close(fd);
        fd = -1;
        errno = ENOENT;
    }
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        errno = ENOENT;
    return fd;
}

/* Open the regular file NAME in DIRECTORY, a descriptor of session_open_directory(). FLAGS may be
 * O_CREAT | O_EXCL. The file's mode does not matter: no other user gets through the directory.
 * Returns a descriptor, or -1 with errno set. */
static inline int session_open_file(int directory, const char *name, int flags)
{
    int fd =
        strchr(name, '/')
            ? -1
            : openat(directory, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    struct stat status;

    if (fd < 0)
        return -1;
    if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    return fd;
}

/* Open the regular file NAME in the session directory PATH. Checks both, as
 * session_open_directory() and session_open_file() do. */
static inline int session_open_in(const char *path, const char *name, int flags)
{
    int directory = session_open_directory(path);
    int fd = -1;
    int saved;

    if (directory >= 0) {
        fd = session_open_file(directory, name, flags);
        saved = errno;
        close(directory);
        errno = saved;
    }
    return fd;
}

/* Fill ADDRESS with the collector's socket for Pythons that should be recorded but cannot join the
 * session in DIRECTORY. Returns the length of the address.
 *
 * Example: a child changed its user, or a chroot hides the directory. Such a child has the
 * session's name in its environment but cannot open the directory. The child sends a datagram to
 * the abstract socket of that name, which needs neither rights nor a file. Then the child waits
 * briefly for the answer, so that it is still alive when the collector looks at it. Anyone may send
 * a datagram: its content is ignored. The kernel tells who sent it, and /proc tells whether the
 * sender is a descendant of the command. */
static inline socklen_t absent_set_address(struct sockaddr_un *address, const char *directory)
{
    const char *name = basename(directory);
    size_t length = strnlen(name, sizeof address->sun_path - 1);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

#endif
