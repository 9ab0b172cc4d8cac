/* tui/trace_file.c -- opens the trace that the loop shows, and follows its changes. See tui/loop.h.
 * While the trace is shown, its file may be deleted, written to, or replaced by another file. */
#include <errno.h>

#include "clock.h"
#include "lib/say.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "tui/loop.h"

void loop_reopen(struct loop *loop)
{
    struct stat st;
    struct db *fresh = db_open(loop->path);

    if (!fresh || stat(loop->path, &st) != 0) {
        db_close(fresh);
        return;
    }
    db_close(loop->face.db);
    loop->face.db = fresh;
    loop->file = st;
    loop->gone = loop->replaced = false;
    loop->version = 0;
    work_reconnect(loop->face.work);
}

/* Show how the recorded program ended in a message. The program is the first
 * process of the trace. */
static void show_end_of_program(struct loop *loop, const char *state)
{
    struct query *query =
        db_query(loop->face.db, "SELECT ended FROM process_tree ORDER BY path LIMIT 1");
    char *ended = query_step(query) && query_type(query, 0) != QUERY_NULL
                      ? prose_describe_end(query_text(query, 0, NULL))
                      : NULL;

    tui_print(&loop->face, ended && !strncmp(ended, "signal", 6),
              "the program has ended%s%s: the trace is %s", ended ? ", " : "", ended ? ended : "",
              state);
    free(ended);
    query_close(query);
}

static void set_live_state(struct loop *loop, bool live)
{
    loop->live = live;
    loop->face.below = live;
    places_set_sizes(&loop->places);
}

void loop_check_file(struct loop *loop)
{
    struct stat st;
    int64_t version;
    char *state;
    bool recording;

    loop->ticked_ms = clock_monotonic_ms();
    if (!loop->gone && !loop->replaced) {
        loop->gone = stat(loop->path, &st) != 0;
        loop->replaced =
            !loop->gone && (st.st_dev != loop->file.st_dev || st.st_ino != loop->file.st_ino);
        if (loop->gone)
            tui_alarm(&loop->face, "the trace was deleted; what it had can still be read here");
        else if (loop->replaced && !loop->live)
            tui_alarm(&loop->face, "the trace was replaced by another file; R looks into that");
    }
    if (!loop->live || (loop->hold && !loop->replaced))
        return;
    /* at its end, a recording replaces the live file by the finished trace */
    if (loop->replaced)
        loop_reopen(loop);
    rates_read_counts(&loop->rates, loop->face.db);
    version = db_integer(loop->face.db, 0, "PRAGMA data_version");
    if (version == loop->version)
        return;
    loop->version = version;
    state = db_meta(loop->face.db, "state");
    recording = !state || !strcmp(state, "recording");
    if (!recording)
        /* open new connections: frames were appended to the file without SQLite, which may
         * not notice that */
        work_reconnect(loop->face.work);
    places_refresh(&loop->places);
    if (!recording) {
        set_live_state(loop, false);
        show_end_of_program(loop, state);
    }
    free(state);
}

void loop_close_trace(struct loop *loop)
{
    places_close(&loop->places);
    work_close(loop->face.work);
    sql_words_free(&loop->words);
    loop->words = (struct sql_words){0};
    db_close(loop->face.db);
    free(loop->path);
}

bool loop_take_trace(struct loop *loop, const char *path)
{
    /* the status of the file before it is opened: if the file is replaced in between, the next
     * loop_check_file() notices */
    struct stat before;
    bool found = stat(path, &before) == 0;
    struct db *db = db_open(path);
    char *absolute = db ? db_make_absolute_path(db_get_path(db)) : NULL;
    struct work *work = NULL;

    if (absolute && !found && stat(absolute, &before) != 0)
        say_error("%s: %s", db_get_path(db), strerror(errno));
    else if (absolute)
        work = work_open(absolute, loop->ended_fd);
    if (!work) {
        db_close(db);
        free(absolute);
        return false;
    }
    loop_close_trace(loop);
    loop->face.work = work;
    loop->face.db = db;
    loop->path = absolute;
    loop->file = before;
    loop->name = strrchr(absolute, '/') + 1;
    loop->gone = loop->replaced = false;
    return true;
}

void loop_open(struct loop *loop, const char *path)
{
    if (!loop_take_trace(loop, path))
        return;
    set_live_state(loop, false);
    loop->face.moment_ns = 0;
    tui_open_view(&loop->face, &(struct target){.kind = VIEW_OVERVIEW});
}
