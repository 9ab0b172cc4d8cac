/* collector/absent.c -- what the absent say. See absent.h.
 *
 * Runs in: the collector. */
#include "absent.h"

int absent_open(const char *directory)
{
    struct sockaddr_un address;
    socklen_t length = absent_address(&address, directory);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) || bind(fd, (struct sockaddr *)&address, length))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool absent_next(int fd, struct absent *sender)
{
    char byte, control[CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(__alignof__(struct cmsghdr))));
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_name = &sender->address, .msg_namelen = sizeof sender->address, .msg_iov = &data,
                             .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head;
    struct ucred who = {0};

    if (fd < 0 || recvmsg(fd, &message, MSG_CMSG_CLOEXEC) < 0)
        return false;
    head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS && head->cmsg_len == CMSG_LEN(sizeof who))
        memcpy(&who, CMSG_DATA(head), sizeof who);
    sender->pid = (uint32_t)who.pid;
    sender->uid = who.uid;
    sender->length = message.msg_namelen;
    return true;
}

void absent_answer(int fd, const struct absent *sender)
{
    if (sender->length > sizeof(sa_family_t) &&
        sendto(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&sender->address, sender->length) < 0) {
        /* It waits no longer. */
    }
}
