/* fuzz_session.c -- any bytes as a session's file, which its program can write over, when somebody opens and removes it.
 *
 * The input lies over a file that is whole. Beside the session's directory there is a file that is not ours to remove. */
#include <errno.h>
#include <stdint.h>

#include "commands.h"
#include "collector/session.h"

static char directory[128], beside[128];

static void canary_make(void)
{
    fuzz_path(beside, sizeof beside, "dyntrace-not-ours");
    mkdir(beside, 0700);
    fuzz_path(beside, sizeof beside, "dyntrace-not-ours/kept");
    fuzz_write(beside, "kept", 4);
}

int fuzz_one(const uint8_t *data, size_t bytes)
{
    char path[256];
    struct session_file *file;
    struct session session = SESSION_CLOSED;
    size_t room = sizeof *file + 64 + bytes;
    bool busy;

    if (!fuzz_directory[0]) {
        fuzz_begin();
        canary_make();
    }
    snprintf(directory, sizeof directory, "%s/dyntrace-%u-abcdef", fuzz_directory, (unsigned)getuid());
    mkdir(directory, 0700);
    file = calloc(1, room);
    memcpy(file->magic, RING_SESSION_MAGIC, sizeof file->magic);
    file->format = RING_FORMAT;
    file->bytes = (uint32_t)room;
    snprintf(file->text, 64, "%s/dyntrace-not-ours%c/tmp/t.db%c", fuzz_directory, 0, 0);
    for (size_t at = 0; at + 6 <= bytes; at += 6) /* where 2, what 4 */
        memcpy((char *)file + ((size_t)data[at] | (size_t)data[at + 1] << 8) % (room - 4), data + at + 2, 4);
    snprintf(path, sizeof path, "%s/session", directory);
    fuzz_write(path, file, bytes && data[0] == 255 ? bytes % room : room); /* now and then cut short */
    free(file);
    snprintf(path, sizeof path, "%s/collector.lock", directory);
    fuzz_write(path, "", 0);
    if (session_open(&session, directory, &busy) == 0)
        session_remove(&session);
    session_close(&session);
    if (access(beside, F_OK)) {
        fprintf(stderr, "%s was removed\n", beside);
        abort();
    }
    return 0;
}
