/* session_check.h -- is this directory a session of ours, this file one of its files?
 *
 * Runs in: the traced process, the command line and the collector.
 *
 * A session lies in a directory that everybody may write to (/dev/shm, /tmp). Its name is known to
 * whoever was started while it was recorded, and outlives it: anybody may make a directory of that
 * name afterwards. So a session and its files are opened here and nowhere else, and what was opened
 * is looked at by its descriptor. What is not ours is not there: errno is then ENOENT. */
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

/* Is PATH absolute, and its last part "dyntrace-UID-XXXXXX" as mkdtemp makes it? Which UID does not
 * matter: it has another number in another user namespace, and the directory itself says who owns
 * it. */
static inline bool session_check_name(const char *path)
{
    const char *name = basename(path);
    int random = 0, end = 0;

    sscanf(name, "dyntrace-%*[0-9]-%n%*6[a-zA-Z0-9]%n", &random, &end);
    return *path == '/' && end - random == 6 && !name[end];
}

/* Can only its owner replace an entry of the directory that STATUS is of? */
static inline bool session_check_parent(const struct stat *status)
{
    return S_ISDIR(status->st_mode) &&
           (!(status->st_mode & (S_IWGRP | S_IWOTH)) || status->st_mode & S_ISVTX);
}

/* Open the session's directory PATH. */
static inline int session_open_directory(const char *path)
{
    int fd = -1;
    struct stat own, parent;

    errno = ENOENT;
    if (session_check_name(path))
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* Another device than its parent's is a mount: its owner is then who some filesystem says. */
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
 * O_CREAT | O_EXCL. Its mode does not matter: no one else gets through the directory. */
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

/* Both at once. */
static inline int session_open_in(const char *path, const char *name, int flags)
{
    int directory = session_open_directory(path), fd = -1, saved;

    if (directory >= 0) {
        fd = session_open_file(directory, name, flags);
        saved = errno;
        close(directory);
        errno = saved;
    }
    return fd;
}

/* The socket at which the collector of the session in DIRECTORY hears of Pythons that should be
 * recorded and cannot join: a child that became another user, or lost sight of the directory, has
 * its name in the environment and cannot open it. It sends a datagram to the abstract socket of
 * that name, which needs neither rights nor a file, and waits briefly for the answer, so that it is
 * still there to be looked at. Anyone may send one: its content is ignored. The kernel says who
 * sent it, and /proc whether that is a descendant of the command. */
static inline socklen_t absent_address(struct sockaddr_un *address, const char *directory)
{
    const char *name = basename(directory);
    size_t length = strnlen(name, sizeof address->sun_path - 1);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

#endif
