/* tui.c -- `dyntrace tui`: the loop that reads keys, and the first and last rows of the screen. See
 * tui.h; tui/view.h declares the types and functions for views.
 *
 *     row 0       the trace's name, the names of the views on the stack ... the top view's note
 *     rows 1 to   the view on top
 *     last row    a message, a line being typed, or the keys
 *
 * Keys never wait for the trace: views run their queries in threads (tui/work.h) and draw the rows
 * that have arrived. With --keys the same code waits before each key until all queries are done, so
 * that a script always sees the same screens. */
#include "tui.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "lib/bounds.h"
#include "lib/out_file.h"
#include "lib/say.h"
#include "tui/loop.h"

enum {
    /* how long to wait for a key's query, so that the screen is drawn once instead of twice */
    DRAW_WAIT_MS = 20,
    TICK_MS = 500,   /* time between two reads of a live trace */
    DOUBLE_MS = 400, /* longest time between the two clicks of a double click */
};

static void show_error_message(void *context, const char *line)
{
    struct tui *tui = context;

    tui_alarm(tui, "%s", line);
}

/* ---- handling of keys ---------------------------------------------------- */

/* Return the request that the key CODE is bound to, or REQUEST_NONE. */
static enum request request_of_key(int code)
{
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++)
        for (int k = 0; k < 4 && bindings[i].keys[k]; k++)
            if (bindings[i].keys[k] == code)
                return (enum request)i;
    return REQUEST_NONE;
}

static void handle_key(struct loop *loop, const struct key *typed);

/* Handle a click on column X of the last line as if the user had typed the key that is shown
 * there. */
static void handle_hint_click(struct loop *loop, int x)
{
    int code = loop->hinted ? places_find_hint_key(&loop->places, x) : KEY_NONE;

    if (code != KEY_NONE)
        handle_key(loop, &(struct key){.code = code});
}

static void handle_key(struct loop *loop, const struct key *typed)
{
    const struct view *view = loop_top(loop);
    struct key at = *typed;
    struct key *key = &at;
    enum request request;

    if (key->code == K_RESIZE) {
        screen_resize(loop->face.screen, key->y, key->x);
        places_set_sizes(&loop->places);
        return;
    }
    if (key->code == K_CLOSED) {
        loop->quit = true;
        return;
    }
    loop->message[0] = 0;
    /* Ctrl-Z and Ctrl-L do not go to the prompt, so the line being typed stays as it is. */
    if (loop->prompt.active && key->code != K_CONTROL('z') && key->code != K_CONTROL('l')) {
        if (tui_prompt_handle_key(&loop->prompt, key)) {
            /* a copy, because loop_handle_answer() may open another prompt */
            char *text = strdup(loop->prompt.text);
            loop_handle_answer(loop, loop->asked, text);
            /* If the answer has to wait for a query, the prompt stays open, and Enter is handled
             * again later. */
            loop->prompt.active |= loop->waits;
            free(text);
        }
        return;
    }
    /* Ignore the second click of a double click: the first click has opened the row already. */
    if (key->code == K_CLICK && clock_monotonic_ms() - loop->opened_ms < DOUBLE_MS &&
        !loop->face.scripted)
        return;
    if (key->code == K_CLICK && key->y == loop->face.screen->rows - 1) {
        handle_hint_click(loop, key->x);
        return;
    }
    if (key->code == K_CLICK && !places_handle_click(&loop->places, key))
        return;
    if ((request = request_of_key(key->code)))
        loop_handle_request(loop, request, key);
    else
        tui_say(&loop->face, "no such key; ? lists them");
    if (key->code == K_CLICK && loop_top(loop) != view)
        loop->opened_ms = clock_monotonic_ms();
}

/* Handle the queued keys. Stop at a key that has to wait for a query. */
static void handle_typed_keys(struct loop *loop)
{
    size_t taken = 0;

    for (loop->waits = false; taken < loop->typed.count && !loop->waits && !loop->quit;
         taken += !loop->waits) {
        handle_key(loop, &loop->typed.at[taken]);
        places_update(&loop->places);
    }
    loop->typed.count -= taken;
    memmove(loop->typed.at, loop->typed.at + taken, loop->typed.count * sizeof *loop->typed.at);
}

/* Queue KEY and handle the queue. While an earlier key waits for a query, Esc, Ctrl-C, and a key
 * that opens another view or quits drop the waiting key and all keys behind it. */
static void queue_key(struct loop *loop, const struct key *key)
{
    enum request request = loop->waits ? request_of_key(key->code) : REQUEST_NONE;

    if (request == REQUEST_BACK || request == REQUEST_CANCEL || request == REQUEST_QUIT ||
        bindings[request].view)
        loop->typed.count = loop->message[0] = loop->waits = loop->prompt.active = 0;
    if (request == REQUEST_BACK)
        return;
    if (loop->waits && (key->code == K_RESIZE || key->code == K_CLOSED || request == REQUEST_STOP ||
                        request == REQUEST_REDRAW)) {
        handle_key(loop, key);
        loop->waits = true;
        return;
    }
    *list_add(&loop->typed) = *key;
    if (!loop->waits)
        handle_typed_keys(loop);
}

/* ---- drawing the whole screen -------------------------------------------- */

static void draw_last_line(struct loop *loop)
{
    struct screen *screen = loop->face.screen;
    int y = screen->rows - 1;
    char line[SCREEN_MOST];

    loop->hinted = false;
    if (loop->live) {
        rates_print(&loop->rates, loop->options->running ? loop->options->program_pid : 0,
                    screen->columns, line, sizeof line);
        screen_put(screen, y - 1, 0, screen->columns, STYLE_HEAD, line);
    }
    if (loop->prompt.active) {
        tui_prompt_draw(&loop->prompt, screen);
    } else if (loop->message[0]) {
        screen_put(screen, y, 0, screen->columns, loop->alarm ? STYLE_ALARM : STYLE_NORMAL,
                   loop->message);
    } else if (loop->output.screen && loop->output.open) {
        screen_put(screen, y, 0, screen->columns, STYLE_ALARM,
                   "the program draws a screen of its own: run it without --live, and `dyntrace "
                   "tui --live` on its trace in another terminal");
    } else if (loop->output.text.count && loop_top(loop)->target.kind != VIEW_OUTPUT) {
        char *last = output_get_last_line(&loop->output);
        int x = screen_put(screen, y, 0, screen->columns, STYLE_DIM, "O: ");
        screen_put(screen, y, x, screen->columns - x, STYLE_NORMAL, last);
        free(last);
    } else {
        loop->hinted = true;
        places_hint_draw(&loop->places);
    }
}

static void draw_screen(struct loop *loop)
{
    struct screen *screen = loop->face.screen;

    screen_clear(screen);
    if (screen->rows < SCREEN_ROWS_LEAST || screen->columns < SCREEN_COLUMNS_LEAST) {
        screen_put(screen, screen->rows / 2, 0, screen->columns, STYLE_BOLD,
                   "too small: 40x12 is needed");
    } else {
        places_draw(&loop->places);
        places_bar_draw(&loop->places, loop->name,
                        !loop->live  ? ""
                        : loop->hold ? " (held)"
                                     : " (live)");
        draw_last_line(loop);
    }
    screen_show_on_terminal(screen);
}

/* ---- the loop that waits and draws --------------------------------------- */

/* Wait at most MS milliseconds for the end of a job. If ALSO, typed keys and output of the
 * program end the wait, too. Returns true if a job has ended. */
static bool wait_for_job(struct loop *loop, int64_t ms, bool also)
{
    struct pollfd polled[3] = {{loop->ended_fd, POLLIN, 0},
                               {loop->face.screen->keys_fd, POLLIN, 0},
                               {loop->options->output_fd, POLLIN, 0}};
    eventfd_t ended;

    poll(polled, !also ? 1 : loop->output.open ? 3 : 2, (int)ms);
    if (polled[0].revents)
        eventfd_read(polled[0].fd, &ended);
    if (polled[2].revents)
        loop->output.open = output_read_from_program(&loop->output, polled[2].fd);
    return polled[0].revents;
}

/* Wait until no query is running, and the views have taken all results. */
static void wait_for_queries(struct loop *loop)
{
    /* three rounds, because settling a view may start more queries */
    for (int quiet = 0; quiet < 3; quiet++) {
        places_update(&loop->places);
        while (work_is_job_pending(loop->face.work)) {
            wait_for_job(loop, 1000, false);
            places_update(&loop->places);
            quiet = 0;
        }
    }
}

static void handle_keys_of_script(struct loop *loop, const char *keys)
{
    char *spaced = say_print(" %s", keys); /* the key script's syntax needs a space before a word */
    const char *at = spaced;
    struct key key;

    wait_for_queries(loop);
    draw_screen(loop);
    while (!loop->quit && script_read_key(&at, &key)) {
        handle_key(loop, &key);
        wait_for_queries(loop);
        draw_screen(loop);
    }
    free(spaced);
}

/* After a TYPED key wait a moment for the key's query, so that the next screen shows the query's
 * first rows. If nothing was typed, a query's rows have arrived: draw them at once, without waiting
 * for the queries that these rows start. */
static void wait_for_first_rows(struct loop *loop, bool typed)
{
    int64_t until = typed ? clock_monotonic_ms() + DRAW_WAIT_MS : 0;
    int64_t left;
    bool ended = false;

    places_update(&loop->places);
    while (!ended && loop_top(loop)->busy && (left = until - clock_monotonic_ms()) > 0) {
        ended = wait_for_job(loop, left, false);
        places_update(&loop->places);
    }
}

static void handle_keys(struct loop *loop)
{
    bool any = true;

    while (!loop->quit) {
        int64_t idle;
        struct key key;
        /* no query is running: the next key's queries get the full time limit */
        if (!work_is_job_pending(loop->face.work))
            bounds_wait_for_interrupt();
        wait_for_first_rows(loop, any);
        if (loop->waits) {
            handle_typed_keys(loop);
            wait_for_first_rows(loop, true);
        }
        draw_screen(loop);
        any = false;
        idle = clock_monotonic_ms() - loop->ticked_ms;
        wait_for_job(loop, idle < TICK_MS ? TICK_MS - idle : 0, true);
        /* Take all keys that have been typed, then draw one screen, so that a held key does not
         * queue up screens. */
        while (!loop->quit && (key = screen_read_key(loop->face.screen)).code != KEY_NONE) {
            bounds_wait_for_interrupt();
            queue_key(loop, &key);
            any = true;
        }
        if (!any && clock_monotonic_ms() - loop->ticked_ms >= TICK_MS)
            loop_check_file(loop);
    }
}

int tui_run(const struct tui_options *options, const char *path)
{
    struct loop all = {.options = options,
                       .live = options->live,
                       .ended_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    struct loop *loop = &all;
    struct screen *screen = NULL;
    const char *why;
    bool damaged = false;

    loop->places.tui = &loop->face;
    loop->face.calls = &loop_calls;
    loop->face.views = loop_views;
    loop->face.parts = loop_parts;
    if (loop_take_trace(loop, path)) {
        screen = options->dump ? screen_open_memory(options->rows, options->columns, options->ascii)
                               : screen_open_terminal(options->ascii, &why);
        if (!screen)
            say_error("%s: %s", options->running ? "run: --live" : "tui", why);
    }
    if (screen) {
        loop->face.screen = screen;
        loop->face.scripted = options->keys;
        loop->face.below = loop->live;
        loop->face.output = options->running ? &loop->output : NULL;
        loop->name = options->name ? options->name : loop->name;
        loop->prompt = (struct prompt){.complete = loop_complete_word, .context = loop};
        loop->output.open = options->running;
        loop->output.input_fd =
            options->running && options->program_reads ? options->output_fd : -1;
        tui_prompt_read_history(&loop->prompt,
                                options->keys ? NULL : state_file_path("tui_history"));
        say_redirect_errors(show_error_message, &loop->face);
        tui_open_view(&loop->face, &(struct target){.kind = VIEW_OVERVIEW});
        if (options->replay)
            tui_open_view(&loop->face, &(struct target){.kind = VIEW_REPLAY});
        if (options->keys)
            handle_keys_of_script(loop, options->keys);
        loop->face.scripted = false;
        if (options->dump)
            screen_write_to_file(screen, stdout);
        else if (!loop->quit)
            handle_keys(loop);
        damaged = options->dump && work_is_trace_damaged(loop->face.work);
        say_redirect_errors(NULL, NULL);
        /* Restore the terminal first: closing the trace may wait for a query that never ends,
         * and then Ctrl-C must be able to stop this process. */
        screen_close(screen);
        tui_prompt_add_to_history(&loop->prompt);
    }
    loop_close_trace(loop);
    close(loop->ended_fd);
    output_print(&loop->output); /* print it on the terminal, as the program would have done */
    list_free(&loop->output.text);
    list_free(&loop->typed);
    return screen && !damaged ? 0 : 2;
}
