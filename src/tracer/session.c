/* tracer/session.c -- joining a session, and leaving it.
 *
 * Runs in: the traced process. */
#include "tracer/file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "session_check.h"

#define P tracer_process

/* The session file of the session in DIRECTORY, mapped. MAP_FAILED with errno. */
static struct session_file *session_map(const char *directory)
{
    int fd = session_open_in(directory, "session", O_RDONLY);
    struct session_file *session = MAP_FAILED;
    struct stat status;

    if (fd < 0)
        return MAP_FAILED;
    if (fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof *session && status.st_size <= 1 << 20)
        session = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (session != MAP_FAILED &&
        (memcmp(session->magic, RING_SESSION_MAGIC, sizeof session->magic) || session->format != RING_FORMAT ||
         session->bytes != status.st_size || ((char *)session)[status.st_size - 1] != 0 ||
         session->ring_bytes < RING_SMALLEST || (session->ring_bytes & (session->ring_bytes - 1)))) {
        munmap(session, (size_t)status.st_size);
        session = MAP_FAILED;
        errno = ENOENT;
    }
    return session;
}

const char *tracer_open_session(const char *directory)
{
    struct session_file *session = MAP_FAILED;
    const char *spill;

    errno = ENOENT;
    if (strlen(directory) < sizeof P.session_directory)
        session = session_map(directory);
    if (session == MAP_FAILED)
        return errno == ENOENT ? "gone" : errno == EACCES ? "denied" : "memory";
    if (atomic_load(&session->closed)) {
        munmap(session, session->bytes);
        return "over";
    }
    strcpy(P.session_directory, directory);
    /* Two directories of one name: what the file says is not believed to be anywhere else. */
    spill = session->text;
    P.spill_directory[0] = 0;
    if (strlen(spill) < sizeof P.spill_directory && !strcmp(session_check_base(spill), session_check_base(directory)))
        strcpy(P.spill_directory, spill);
    P.session = session;
    P.monotonic = session->clock == SESSION_MONOTONIC;
    P.decided_only = session->frames == SESSION_DECIDED;
    if (fork_watch()) {
        P.session = NULL;
        return "memory";
    }
    file_open("", tracer_now(P.monotonic));
    if (!P.file) {
        P.session = NULL;
        return "room";
    }
    facts_of_process();
    facts_again();
    return NULL;
}

/* The GIL is held, so no other thread is writing; those in the middle of a frame
 * find no ring at its end. */
void tracer_close_session(void)
{
    if (!P.session)
        return;
    tracer_record(false);
    if (P.file) {
        facts_keep();
        atomic_store(&P.file->left, 1);
    }
    rings_leave();
    file_close();
    munmap((void *)P.session, P.session->bytes);
    P.session = NULL;
}
