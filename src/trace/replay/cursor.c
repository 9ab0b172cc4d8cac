/* trace/replay/cursor.c -- a place among a trace's decisions, moved either way. See trace/replay/cursor.h.
 *
 * Runs in: the viewer. */
#include "trace/replay/cursor.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/find_code.h"
#include "lib/say.h"
#include "trace/why/why.h"

const char *const cursor_whats[NEXT_KINDS] = {"lookup", "compile", "recompile", "break", "death",
                                              "hit",    "miss",    "event",     "frame"};

static bool say(const char *what, const char *why)
{
    say_error("replay: %s: %s", what, why);
    return false;
}

enum { FRAMES_NEAR = 256 }; /* ids, between which no bisection is needed */

/* ---- finding the next event ------------------------------------------------ */

uint32_t cursor_code(const struct replay *r, const struct replay_event *e)
{
    return e->kind == REPLAY_LOOKUP                     ? r->caches[r->lookups[e->index].cache].code
           : e->kind == REPLAY_COMPILE                  ? r->compiles[e->index].code
           : e->kind == REPLAY_DEATH                    ? r->entries[e->index].code
           : r->breaks[e->index].compile == REPLAY_NONE ? REPLAY_NONE
                                                        : r->compiles[r->breaks[e->index].compile].code;
}

uint32_t cursor_thread(const struct replay *r, const struct replay_event *e)
{
    return e->kind == REPLAY_LOOKUP    ? r->lookups[e->index].thread
           : e->kind == REPLAY_COMPILE ? r->compiles[e->index].thread
           : e->kind == REPLAY_DEATH || r->breaks[e->index].compile == REPLAY_NONE
               ? REPLAY_NONE
               : r->compiles[r->breaks[e->index].compile].thread;
}

static bool is_miss(const struct replay_lookup *l)
{
    return l->outcome != OUTCOME_HIT;
}

static bool event_is(const struct replay *r, const struct replay_event *e, enum cursor_what what)
{
    switch (what) {
    case NEXT_LOOKUP:
        return e->kind == REPLAY_LOOKUP;
    case NEXT_COMPILE:
        return e->kind == REPLAY_COMPILE;
    case NEXT_RECOMPILE:
        return e->kind == REPLAY_COMPILE && r->compiles[e->index].recompile;
    case NEXT_BREAK:
        return e->kind == REPLAY_BREAK;
    case NEXT_DEATH:
        return e->kind == REPLAY_DEATH;
    case NEXT_HIT:
        return e->kind == REPLAY_LOOKUP && !is_miss(&r->lookups[e->index]);
    case NEXT_MISS:
        return e->kind == REPLAY_LOOKUP && is_miss(&r->lookups[e->index]);
    default:
        return true;
    }
}

static bool passes(const struct cursor *c, const struct replay_event *e)
{
    uint32_t code, thread;

    if (c->codes && ((code = cursor_code(c->r, e)) == REPLAY_NONE || !c->codes[code]))
        return false;
    if (c->threads && ((thread = cursor_thread(c->r, e)) == REPLAY_NONE || !c->threads[thread]))
        return false;
    if ((c->by_outcome || c->lookups) && e->kind != REPLAY_LOOKUP)
        return false;
    if (c->by_outcome &&
        !c->outcomes[c->r->lookups[e->index].outcome < OUTCOMES ? c->r->lookups[e->index].outcome : OUTCOMES])
        return false;
    return !c->lookups || c->lookups[e->index];
}

/* The next WHAT after the place AT (or, with GAP, the gap before it), DIRECTION 1 or -1. event_count: there is none. */
static size_t find(const struct cursor *c, size_t at, bool gap, enum cursor_what what, int direction)
{
    if (direction > 0) {
        for (at += !gap; at < c->r->event_count; at++)
            if (event_is(c->r, &c->r->events[at], what) && passes(c, &c->r->events[at]))
                return at;
    } else {
        while (at-- > 0)
            if (event_is(c->r, &c->r->events[at], what) && passes(c, &c->r->events[at]))
                return at;
    }
    return c->r->event_count;
}

/* ---- moving ---------------------------------------------------------------- */

void cursor_begin(struct cursor *c, struct db *db, struct replay *replay, FILE *out)
{
    *c = (struct cursor){.db = db, .r = replay, .out = out, .gap = true};
    c->frame_thread = db_integer(db, 0, "SELECT MIN(thread_id) FROM thread");
}

void cursor_end(struct cursor *c)
{
    cursor_filter_off(c);
    cursor_stops_off(c);
}

void cursor_to_event(struct cursor *c, size_t event)
{
    uint32_t thread = event < c->r->event_count ? cursor_thread(c->r, &c->r->events[event]) : REPLAY_NONE;

    c->at = event;
    c->gap = event >= c->r->event_count;
    c->frame_id = 0;
    c->frame_ns = c->r->last_ns;
    if (thread != REPLAY_NONE)
        c->frame_thread = c->r->threads[thread].id;
}

void cursor_to_time(struct cursor *c, int64_t at_ns)
{
    c->at = replay_seek(c->r, at_ns);
    c->gap = true;
    c->frame_id = 0;
    c->frame_ns = at_ns;
}

const struct replay_event *cursor_event(const struct cursor *c)
{
    return c->at < c->r->event_count && !c->gap && !c->frame_id ? &c->r->events[c->at] : NULL;
}

int64_t cursor_ns(const struct cursor *c)
{
    if (c->gap)
        return c->frame_ns;
    return c->at < c->r->event_count ? c->r->events[c->at].at_ns : c->r->last_ns;
}

int64_t cursor_frame(const struct cursor *c)
{
    const struct replay_event *e = cursor_event(c);
    struct query *query;
    int64_t id = 0;

    if (c->frame_id)
        return c->frame_id;
    if (!e || (e->kind != REPLAY_LOOKUP && e->kind != REPLAY_COMPILE))
        return 0;
    query = db_query(c->db, e->kind == REPLAY_LOOKUP ? "SELECT frame_id FROM lookup WHERE lookup_id = ?1"
                                                     : "SELECT frame_id FROM compile WHERE compile_id = ?1");
    query_bind_integer(query, 1, e->kind == REPLAY_LOOKUP ? c->r->lookups[e->index].id : c->r->compiles[e->index].id);
    if (query_step(query))
        id = query_integer(query, 0);
    query_close(query);
    return id;
}

static void to_frame(struct cursor *c, struct query *row)
{
    c->frame_id = query_integer(row, 0);
    c->frame_ns = query_integer(row, 1);
    c->frame_thread = query_integer(row, 2);
    c->at = replay_seek(c->r, c->frame_ns);
    c->gap = true;
}

/* An id from which on, or soon after, the frames of THREAD start at AT_NS or later: on a thread ids follow time. */
static int64_t frame_near(struct cursor *c, int64_t thread, int64_t at_ns)
{
    int64_t low = db_integer(c->db, 0, "SELECT MIN(frame_id) FROM frame");
    int64_t high = db_integer(c->db, 0, "SELECT MAX(frame_id) FROM frame");
    struct query *query = db_query(c->db, "SELECT frame_id, start_ns FROM frame WHERE frame_id >= ?1 AND frame_id < ?2"
                                          " AND thread_id = ?3 ORDER BY frame_id LIMIT 1");

    while (low < high && (uint64_t)high - (uint64_t)low > FRAMES_NEAR) {
        int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
        query_reset(query);
        query_bind_integer(query, 1, middle);
        query_bind_integer(query, 2, high);
        query_bind_integer(query, 3, thread);
        if (query_step(query) && query_integer(query, 1) < at_ns)
            low = query_integer(query, 0) + 1;
        else
            high = middle;
        if (query_failed(query))
            break;
    }
    query_close(query);
    return low;
}

/* The next frame of the thread that the cursor is on; frames stay in the file. */
static enum cursor_result frame_step(struct cursor *c, int direction)
{
    int64_t from = cursor_frame(c);
    struct query *query;
    bool found;

    if (from)
        query = db_query(c->db, direction > 0 ? "SELECT frame_id, start_ns, thread_id FROM frame WHERE frame_id > ?1"
                                                " AND thread_id = ?2 ORDER BY frame_id LIMIT 1"
                                              : "SELECT frame_id, start_ns, thread_id FROM frame WHERE frame_id < ?1"
                                                " AND thread_id = ?2 ORDER BY frame_id DESC LIMIT 1");
    else
        query = db_query(c->db, direction > 0
                                    ? "SELECT frame_id, start_ns, thread_id FROM frame WHERE frame_id >= ?1"
                                      " AND thread_id = ?2 AND start_ns >= ?3 ORDER BY frame_id LIMIT 1"
                                    : "SELECT frame_id, start_ns, thread_id FROM frame WHERE frame_id < ?1"
                                      " AND thread_id = ?2 AND start_ns < ?3 ORDER BY frame_id DESC LIMIT 1");
    query_bind_integer(query, 2, c->frame_thread);
    if (from) {
        query_bind_integer(query, 1, from);
    } else {
        int64_t near = frame_near(c, c->frame_thread, cursor_ns(c));
        if (direction < 0 && near < INT64_MAX - 2 * FRAMES_NEAR)
            near += 2 * FRAMES_NEAR;
        query_bind_integer(query, 1, near);
        query_bind_integer(query, 3, cursor_ns(c));
    }
    found = query_step(query);
    if (found)
        to_frame(c, query);
    return !query_close(query) ? CURSOR_ERROR : found ? CURSOR_THERE : CURSOR_NONE;
}

enum cursor_result cursor_step(struct cursor *c, enum cursor_what what, int direction)
{
    size_t found;

    if (what == NEXT_FRAME)
        return frame_step(c, direction);
    found = find(c, c->at, c->gap, what, direction);
    if (found == c->r->event_count)
        return CURSOR_NONE;
    cursor_to_event(c, found);
    return CURSOR_THERE;
}

enum cursor_result cursor_far(struct cursor *c, enum cursor_what what, bool last)
{
    size_t found = find(c, last ? c->r->event_count : 0, true, what, last ? -1 : 1);

    if (found == c->r->event_count)
        return CURSOR_NONE;
    cursor_to_event(c, found);
    return CURSOR_THERE;
}

/* The place of WHAT with row id ID; event_count when there is none. */
static size_t place_of(const struct replay *r, enum cursor_what what, int64_t id)
{
    uint32_t index = REPLAY_NONE;

    switch (what) {
    case NEXT_EVENT:
        return id > 0 && (uint64_t)id <= r->event_count ? (size_t)id - 1 : r->event_count;
    case NEXT_LOOKUP:
    case NEXT_HIT:
    case NEXT_MISS:
        index = replay_lookup_at(r, id);
        return index == REPLAY_NONE ? r->event_count : replay_event_of(r, REPLAY_LOOKUP, index);
    case NEXT_BREAK:
        for (index = 0; index < r->break_count && r->breaks[index].id != id;)
            index++;
        return index == r->break_count ? r->event_count : replay_event_of(r, REPLAY_BREAK, index);
    case NEXT_DEATH:
        index = replay_map_get(&r->entry_ids, id);
        return index == REPLAY_NONE || r->entries[index].died_ns == REPLAY_NEVER
                   ? r->event_count
                   : replay_event_of(r, REPLAY_DEATH, index);
    default:
        index = replay_map_get(&r->compile_ids, id);
        return index == REPLAY_NONE ? r->event_count : replay_event_of(r, REPLAY_COMPILE, index);
    }
}

enum cursor_result cursor_to(struct cursor *c, enum cursor_what what, int64_t id)
{
    size_t at;

    if (what == NEXT_FRAME) {
        struct query *query = db_query(c->db, "SELECT frame_id, start_ns, thread_id FROM frame WHERE frame_id = ?1");
        bool found;
        query_bind_integer(query, 1, id);
        found = query_step(query);
        if (found)
            to_frame(c, query);
        return !query_close(query) ? CURSOR_ERROR : found ? CURSOR_THERE : CURSOR_NONE;
    }
    at = place_of(c->r, what, id);
    if (at == c->r->event_count)
        return CURSOR_NONE;
    cursor_to_event(c, at);
    return CURSOR_THERE;
}

/* ---- words ----------------------------------------------------------------- */

char *cursor_word(char **text)
{
    char *at = *text + strspn(*text, " \t"), *end;

    if (!*at)
        return NULL;
    end = at + strcspn(at, " \t");
    *text = end + (*end != 0);
    *end = 0;
    return at;
}

char *cursor_words(char *text)
{
    char *end;

    text += strspn(text, " \t");
    for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = 0;
    return text;
}

bool cursor_what(const char *word, enum cursor_what *what)
{
    size_t length = strlen(word);

    for (int i = 0; i < NEXT_KINDS; i++)
        if (length && (!strcmp(cursor_whats[i], word) || (!strncmp(cursor_whats[i], word, strlen(cursor_whats[i])) &&
                                                          (!strcmp(word + strlen(cursor_whats[i]), "s") ||
                                                           !strcmp(word + strlen(cursor_whats[i]), "es"))))) {
            *what = (enum cursor_what)i;
            return true;
        }
    return false;
}

/* "1.5s", "20ms", "3us", "7ns": nanoseconds, or -1. */
static int64_t time_from(const char *word)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};
    char *end;
    double value = strtod(word, &end);

    for (size_t i = 0; end != word && i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].unit) && value >= 0 && value * units[i].ns < 9e18)
            return (int64_t)(value * units[i].ns);
    return -1;
}

enum cursor_result cursor_goto(struct cursor *c, const char *place, enum cursor_what *what)
{
    char *text = strdup(place), *rest = text, *word = text ? cursor_word(&rest) : NULL,
         *more = word ? cursor_word(&rest) : NULL, *end;
    enum cursor_result result = CURSOR_ERROR;
    double percent;
    int64_t ns;

    *what = NEXT_EVENT;
    if (!word) {
        say("goto", "where to? A time (1.5s), a part (50%), lookup 20, first miss, last compile");
    } else if (!strcmp(word, "first") || !strcmp(word, "last")) {
        if ((more && !cursor_what(more, what)) || *what == NEXT_FRAME)
            say(more, "no such event: lookup, compile, recompile, break, death, hit, miss or event");
        else
            result = cursor_far(c, *what, !strcmp(word, "last"));
    } else if (more && cursor_what(word, what)) {
        errno = 0;
        ns = strtoll(more, &end, 10);
        if (*end || end == more || errno)
            say(more, "not a number");
        else if ((result = cursor_to(c, *what, ns)) == CURSOR_NONE) {
            say(more, "the trace has none with that number");
            result = CURSOR_ERROR;
        }
    } else {
        percent = strtod(word, &end);
        ns = end != word && !strcmp(end, "%") && percent >= 0 && percent <= 100
                 ? (int64_t)((double)c->r->last_ns * percent / 100)
                 : time_from(word);
        if (ns < 0 || more) {
            say(word, "not a time (1.5s, 20ms), a part (50%) or an event (lookup 20, first miss)");
        } else {
            cursor_to_time(c, ns);
            result = CURSOR_THERE;
        }
    }
    free(text);
    return result;
}

/* ---- filters and stops ----------------------------------------------------- */

/* Marks in a new array the codes of the functions that NAME is; NULL: it was said why not. */
static bool *codes_named(struct cursor *c, const char *name)
{
    struct found_code found;
    bool *codes = NULL;

    if (find_code(c->db, name, &found, c->out, false) != FIND_ONE)
        return NULL;
    codes = calloc(c->r->code_count + 1, sizeof *codes);
    for (char *at = found.ids; codes && at && *at; at += strspn(at, ", ")) {
        uint32_t code = replay_map_get(&c->r->code_ids, strtoll(at, &at, 10));
        if (code != REPLAY_NONE)
            codes[code] = true;
    }
    found_code_free(&found);
    return codes;
}

/* Marks in a new array of COUNT what MAP gives for the ids of a query's rows; without a MAP they are lookups. TEXT is
 * its ?1. */
static bool *ids_marked(struct cursor *c, const char *sql, const char *text, const struct replay_map *map, size_t count)
{
    struct query *query = db_query(c->db, sql);
    bool *marked = query ? calloc(count + 1, sizeof *marked) : NULL, any = false;

    query_bind_text(query, 1, text);
    while (marked && query_step(query)) {
        uint32_t at =
            map ? replay_map_get(map, query_integer(query, 0)) : replay_lookup_at(c->r, query_integer(query, 0));
        if (at != REPLAY_NONE)
            any = marked[at] = true;
    }
    if (!query_close(query)) {
        free(marked);
        return NULL;
    }
    if (!any) {
        say(text, "nothing recorded is like that");
        free(marked);
        return NULL;
    }
    return marked;
}

void cursor_filter_off(struct cursor *c)
{
    free(c->codes);
    free(c->threads);
    free(c->lookups);
    free(c->filtered);
    c->codes = c->threads = c->lookups = NULL;
    c->filtered = NULL;
    c->by_outcome = false;
    memset(c->outcomes, 0, sizeof c->outcomes);
}

static bool outcomes_of(struct cursor *c, char *list)
{
    bool chosen[OUTCOMES + 1] = {false};

    for (char *name = strtok(list, ", "); name; name = strtok(NULL, ", ")) {
        int i = 0;
        while (i < OUTCOMES && strcmp(name, outcome_word(i)))
            i++;
        if (i == OUTCOMES) {
            say(name, "no such outcome: plain, hit, compiled, run_only, skip, limit, declined, disabled, guard_error "
                      "or callback_error");
            return false;
        }
        chosen[i] = true;
    }
    memcpy(c->outcomes, chosen, sizeof chosen);
    c->by_outcome = true;
    return true;
}

bool cursor_filter(struct cursor *c, const char *by)
{
    char *text = strdup(by), *rest = text, *kind = text ? cursor_word(&rest) : NULL, *sql = NULL, *more = NULL;
    bool **place = NULL, *marked = NULL, ok = false;

    if (!kind)
        goto out;
    rest = cursor_words(rest);
    if (!*rest) {
        say(kind, "filter by what? function NAME, file GLOB, thread ID, process ID, outcome NAME, where SQL; or off");
    } else if (!strcmp(kind, "function")) {
        place = &c->codes;
        marked = codes_named(c, rest);
    } else if (!strcmp(kind, "file")) {
        place = &c->codes;
        marked = ids_marked(c, "SELECT code_id FROM code WHERE filename GLOB ?1 OR filename GLOB '*/' || ?1", rest,
                            &c->r->code_ids, c->r->code_count);
    } else if (!strcmp(kind, "thread")) {
        place = &c->threads;
        marked = ids_marked(c, "SELECT thread_id FROM thread WHERE thread_id = CAST(?1 AS INTEGER) OR name = ?1", rest,
                            &c->r->thread_ids, c->r->thread_count);
    } else if (!strcmp(kind, "process")) {
        place = &c->threads;
        marked = ids_marked(c,
                            "SELECT t.thread_id FROM thread t JOIN process p ON p.process_id = t.process_id"
                            " WHERE p.process_id = CAST(?1 AS INTEGER) OR p.pid = CAST(?1 AS INTEGER)",
                            rest, &c->r->thread_ids, c->r->thread_count);
    } else if (!strcmp(kind, "outcome")) {
        ok = outcomes_of(c, rest);
    } else if (!strcmp(kind, "where")) {
        place = &c->lookups;
        if (asprintf(&sql, "SELECT lookup_id FROM call_ledger WHERE (%s\n) AND ?1 IS NOT NULL", rest) >= 0)
            marked = ids_marked(c, sql, rest, NULL, c->r->lookup_count);
    } else {
        say(kind, "no such filter: function, file, thread, process, outcome, where; or off");
    }
    if (marked) {
        free(*place);
        *place = marked;
        ok = true;
    }
    if (ok && asprintf(&more, "%s%s%s", c->filtered ? c->filtered : "", c->filtered ? ", " : "",
                       by + strspn(by, " \t")) >= 0) {
        free(c->filtered);
        c->filtered = more;
    }
out:
    free(sql);
    free(text);
    return ok;
}

size_t cursor_passing(const struct cursor *c)
{
    size_t count = 0;

    for (size_t i = 0; i < c->r->event_count; i++)
        count += passes(c, &c->r->events[i]);
    return count;
}

static void stop_free(struct cursor_stop *stop)
{
    free(stop->text);
    free(stop->codes);
    free(stop->entries);
}

void cursor_stops_off(struct cursor *c)
{
    while (c->stop_count)
        stop_free(&c->stops[--c->stop_count]);
}

/* "when FUNC recompiles", "when entry 0/3 is hit"; "when" and "is" may be left out. */
bool cursor_stop_add(struct cursor *c, const char *text)
{
    static const struct {
        const char *verb;
        int when;
    } verbs[] = {
        {"recompiles", STOP_RECOMPILE}, {"compiles", STOP_COMPILE}, {"misses", STOP_MISS},
        {"called", STOP_LOOKUP},        {"hit", STOP_HIT},          {"dies", STOP_DEATH},
    };
    struct cursor_stop stop = {.text = strdup(text)};
    char *copy = strdup(text), *rest = copy, *word, *subject = NULL;
    bool entry = false, known = false;

    if (!copy || !stop.text || c->stop_count == CURSOR_STOPS) {
        say("stop", copy && stop.text ? "no room for more; `stop off` takes all away" : "out of memory");
        goto out;
    }
    while ((word = cursor_word(&rest))) {
        if (!strcmp(word, "when") && !subject)
            continue;
        if (!strcmp(word, "entry") && !subject)
            entry = true;
        else if (!subject)
            subject = word;
        else if (strcmp(word, "is"))
            for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
                if (!strcmp(word, verbs[i].verb)) {
                    stop.when = (__typeof__(stop.when))verbs[i].when;
                    known = true;
                }
    }
    if (!known || !subject || entry != (stop.when == STOP_HIT || stop.when == STOP_DEATH)) {
        say("stop", "when what? FUNC recompiles, compiles, misses or is called; entry LABEL is hit or dies");
        goto out;
    }
    if (entry)
        stop.entries = ids_marked(c, "SELECT cache_entry_id FROM cache_entry WHERE label = ?1", subject,
                                  &c->r->entry_ids, c->r->entry_count);
    else
        stop.codes = codes_named(c, subject);
out:
    free(copy);
    if (!stop.codes && !stop.entries) {
        stop_free(&stop);
        return false;
    }
    c->stops[c->stop_count++] = stop;
    return true;
}

const struct cursor_stop *cursor_stopped(const struct cursor *c)
{
    const struct replay *r = c->r;
    const struct replay_event *e = cursor_event(c);
    uint32_t code = e ? cursor_code(r, e) : REPLAY_NONE;

    for (int i = 0; e && i < c->stop_count; i++) {
        const struct cursor_stop *stop = &c->stops[i];
        const struct replay_lookup *l = e->kind == REPLAY_LOOKUP ? &r->lookups[e->index] : NULL;
        if (stop->codes && (code == REPLAY_NONE || !stop->codes[code]))
            continue;
        if ((stop->when == STOP_RECOMPILE && e->kind == REPLAY_COMPILE && r->compiles[e->index].recompile) ||
            (stop->when == STOP_COMPILE && e->kind == REPLAY_COMPILE) || (stop->when == STOP_MISS && l && is_miss(l)) ||
            (stop->when == STOP_LOOKUP && l) ||
            (stop->when == STOP_HIT && l && !is_miss(l) && l->entry != REPLAY_NONE && stop->entries[l->entry]) ||
            (stop->when == STOP_DEATH && e->kind == REPLAY_DEATH && stop->entries[e->index]))
            return stop;
    }
    return NULL;
}

/* ---- the cache as it stood ------------------------------------------------- */

enum cursor_result cursor_cache(const struct cursor *c, struct replay_state *state)
{
    const struct replay *r = c->r;
    const struct replay_event *e = cursor_event(c);
    uint32_t code, thread, process, cache;
    bool ok;

    if (!e)
        return CURSOR_NONE;
    if (e->kind == REPLAY_LOOKUP) {
        ok = replay_state_at(r, e->index, state);
    } else {
        code = cursor_code(r, e);
        thread = cursor_thread(r, e);
        process = e->kind == REPLAY_DEATH ? r->entries[e->index].process
                  : thread == REPLAY_NONE ? REPLAY_NONE
                                          : r->threads[thread].process;
        cache =
            code == REPLAY_NONE ? REPLAY_NONE : replay_map_get(&r->cache_ids, (int64_t)code << 32 | (int64_t)process);
        if (cache == REPLAY_NONE)
            return CURSOR_NONE;
        ok = replay_state_when(r, cache, e->at_ns, state);
    }
    if (!ok)
        say("cache", "out of memory");
    return ok ? CURSOR_THERE : CURSOR_ERROR;
}
