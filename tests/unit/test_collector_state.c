/* test_collector_state.c -- a session is made, left and taken over; places are found again by name. */
#include "collector/state.h"
#include "frames_db.h"

int main(void)
{
    enum { PLACES = 100 };
    struct session session, other;
    struct collector_state state;
    struct decode_place *place[PLACES];
    char path[300], name[64];
    const char *globs[] = {"+a*", "-b"};
    struct session_options options = {.frames = SESSION_USER, .max_depth = 7, .globs = {globs, 2}};
    struct stat status;
    bool busy;

    CHECK(session_create(&session, "/somewhere/t.db", &options) == 0, "a session is made");
    CHECK(stat(session.directory, &status) == 0 && (status.st_mode & 0777) == 0700, "its owner's only");
    CHECK(session_open(&other, session.directory, &busy) && busy, "it is locked");
    CHECK(collector_state_open(&state, &session, true), "there is no state yet");
    CHECK(collector_state_open(&state, &session, false) == 0, "state is made");
    CHECK(fstatat(session.place[SESSION_MAIN], "state", &status, 0) == 0 && (status.st_mode & 0777) == 0600, "its owner's only");
    state.file->window.first = 30;
    state.file->window.root[TREE_FRAME] = 2;
    state.file->header.next_code = 55;
    for (uint32_t n = 0; n < PLACES; n++) {
        snprintf(name, sizeof name, "%u-1-0.ring", n / 3);
        place[n] = collector_state_find_place(&state, name, n % 3);
        CHECK(place[n] && place[n]->at[0].tail == 0, "place %u", n);
        place[n]->at[0].tail = n;
    }
    for (uint32_t n = 0; n < PLACES; n++)
        CHECK(place[n]->at[0].tail == n, "place %u is its own", n);
    collector_state_close(&state);
    snprintf(path, sizeof path, "%s", session.directory);
    session_close(&session); /* killed */

    CHECK(session_open(&session, path, &busy) == 0, "taken over");
    CHECK(!strcmp(session.trace, "/somewhere/t.db") && !strcmp(session.frames, "/somewhere/t.db-frames"), "%s", session.trace);
    CHECK(session.file->frames == SESSION_USER && session.file->max_depth == 7 && session.file->globs == 2, "its options");
    CHECK(collector_state_open(&state, &session, false), "not made anew over the old");
    CHECK(collector_state_open(&state, &session, true) == 0, "its state");
    CHECK(state.file->header.next_code == 55 && state.file->header.places == PLACES, "what was counted");
    for (uint32_t n = PLACES; n--; ) {
        snprintf(name, sizeof name, "%u-1-0.ring", n / 3);
        struct decode_place *found = collector_state_find_place(&state, name, n % 3);
        CHECK(found && found->at[0].tail == n, "place %u is found again", n);
    }
    CHECK(collector_state_find_place(&state, "new", 0)->at[0].tail == 0 && state.file->header.places == PLACES + 1, "a new one");
    CHECK(collector_state_read_header(&session).next_code == 55, "its header, for who only looks");
    state.file->window.written = 9; /* more than there are */
    collector_state_close(&state);
    CHECK(collector_state_open(&state, &session, true), "a window that cannot be is not taken");

    /* a session file that is not one */
    snprintf(name, sizeof name, "%s", strrchr(path, '/') + 1);
    session_close(&session);
    static const struct { off_t at; uint64_t value; } bad[] = {{0, 1}, {8, 77}, {12, 5}, {12, UINT32_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char file[400];
        uint64_t before;
        snprintf(file, sizeof file, "%s/session", path);
        int fd = open(file, O_RDWR);
        if (pread(fd, &before, 8, bad[i].at) != 8 || pwrite(fd, &bad[i].value, bad[i].at ? 4 : 8, bad[i].at) < 0)
            return 1;
        CHECK(session_open(&other, path, &busy) && !busy, "field at %lld is %llu", (long long)bad[i].at,
              (unsigned long long)bad[i].value);
        if (pwrite(fd, &before, 8, bad[i].at) != 8)
            return 1;
        close(fd);
    }
    CHECK(session_open(&session, path, &busy) == 0, "as it was before");
    session_remove(&session);
    session_close(&session);
    CHECK(stat(path, &status), "nothing is left of it");
    return failures != 0;
}
