/* trace/replay/cursor.c -- a place among a trace's decisions, moved either way. See trace/replay/cursor.h.
 *
 * Runs in: the viewer. */
#include "trace/replay/cursor.h"

#include <ctype.h>
#include <errno.h>

#include "trace/db.h"
#include "trace/find_code.h"
#include "lib/say.h"

const char *const cursor_whats[NEXT_KINDS] = {"lookup", "compile", "recompile", "break", "death",
                                              "hit",    "miss",    "event",     "frame"};

static bool say(const char *what, const char *why)
{
    say_error("replay: %s: %s", what, why);
    return false;
}

enum { FRAMES_NEAR = 256 }; /* ids, between which no bisection is needed */

/* ---- finding the next event ------------------------------------------------ */

static bool event_is(const struct replay *r, const struct replay_event *e, enum cursor_what what)
{
    static const enum replay_kind kinds[] = {
        [NEXT_LOOKUP] = REPLAY_LOOKUP, [NEXT_HIT] = REPLAY_LOOKUP,       [NEXT_MISS] = REPLAY_LOOKUP,
        [NEXT_BREAK] = REPLAY_BREAK,   [NEXT_COMPILE] = REPLAY_COMPILE, [NEXT_RECOMPILE] = REPLAY_COMPILE,
        [NEXT_DEATH] = REPLAY_DEATH};

    if (what >= NEXT_EVENT)
        return true;
    if (e->kind != kinds[what])
        return false;
    if (what == NEXT_HIT || what == NEXT_MISS)
        return (r->lookups.at[e->index].outcome == OUTCOME_HIT) == (what == NEXT_HIT);
    return what != NEXT_RECOMPILE || r->compiles.at[e->index].recompile;
}

/* Does INDEX, which may be REPLAY_NONE, pass the filter MARKED? NULL: all do. */
static bool passes_one(const bool *marked, uint32_t index)
{
    return !marked || (index != REPLAY_NONE && marked[index]);
}

static bool passes(const struct cursor *c, const struct replay_event *e)
{
    struct replay_subject s;
    uint8_t outcome;

    if (c->codes || c->threads) {
        s = replay_about(c->r, e->kind, e->index);
        if (!passes_one(c->codes, s.code) || !passes_one(c->threads, s.thread))
            return false;
    }
    if (!c->by_outcome && !c->lookups)
        return true;
    if (e->kind != REPLAY_LOOKUP)
        return false;
    outcome = c->r->lookups.at[e->index].outcome;
    return (!c->by_outcome || c->outcomes[outcome < OUTCOMES ? outcome : OUTCOMES]) &&
           passes_one(c->lookups, e->index);
}

/* The next WHAT after the place AT (or, with GAP, the gap before it), DIRECTION 1 or -1. events.count: none. */
static size_t find(const struct cursor *c, size_t at, bool gap, enum cursor_what what, int direction)
{
    const struct replay_event *events = c->r->events.at;

    if (direction > 0) {
        for (at += !gap; at < c->r->events.count; at++)
            if (event_is(c->r, &events[at], what) && passes(c, &events[at]))
                return at;
    } else {
        while (at-- > 0)
            if (event_is(c->r, &events[at], what) && passes(c, &events[at]))
                return at;
    }
    return c->r->events.count;
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

/* To the place of EVENT; events.count: there is none. */
static enum cursor_result to_event(struct cursor *c, size_t event)
{
    uint32_t thread;

    if (event >= c->r->events.count)
        return CURSOR_NONE;
    c->at = event;
    c->gap = false;
    c->frame_id = 0;
    thread = cursor_subject(c).thread;
    if (thread != REPLAY_NONE)
        c->frame_thread = c->r->threads.at[thread].id;
    return CURSOR_THERE;
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
    return c->at < c->r->events.count && !c->gap ? &c->r->events.at[c->at] : NULL;
}

struct replay_subject cursor_subject(const struct cursor *c)
{
    return replay_about(c->r, c->r->events.at[c->at].kind, c->r->events.at[c->at].index);
}

int64_t cursor_ns(const struct cursor *c)
{
    return c->gap ? c->frame_ns : c->r->events.at[c->at].at_ns;
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
    query_bind_integer(query, 1, cursor_subject(c).id);
    if (query_step(query))
        id = query_integer(query, 0);
    query_close(query);
    return id;
}

/* To the frame that is the first row of QUERY, which this ends. */
static enum cursor_result to_frame(struct cursor *c, struct query *query)
{
    bool found = query_step(query);

    if (found) {
        cursor_to_time(c, query_integer(query, 1));
        c->frame_id = query_integer(query, 0);
        c->frame_thread = query_integer(query, 2);
    }
    return !query_close(query) ? CURSOR_ERROR : found ? CURSOR_THERE : CURSOR_NONE;
}

/* An id from which on, or soon after, the frames of THREAD start at AT_NS or later: on a thread ids follow time. */
static int64_t frame_near(struct cursor *c, int64_t thread, int64_t at_ns)
{
    int64_t low = db_integer(c->db, 0, "SELECT MIN(frame_id) FROM frame");
    int64_t high = db_integer(c->db, 0, "SELECT MAX(frame_id) FROM frame");
    struct query *query = db_query(c->db, "SELECT frame_id, start_ns FROM frame WHERE frame_id >= ?1 AND frame_id < ?2"
                                          " AND thread_id = ?3 ORDER BY frame_id LIMIT 1");

    while (low < high && (uint64_t)high - (uint64_t)low > FRAMES_NEAR && !query_failed(query)) {
        int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
        query_reset(query);
        query_bind_integer(query, 1, middle);
        query_bind_integer(query, 2, high);
        query_bind_integer(query, 3, thread);
        if (query_step(query) && query_integer(query, 1) < at_ns)
            low = query_integer(query, 0) + 1;
        else
            high = middle;
    }
    query_close(query);
    return low;
}

/* The next frame of the thread that the cursor is on; frames stay in the file. */
static enum cursor_result frame_step(struct cursor *c, int direction)
{
    int64_t from = cursor_frame(c), limit_ns = direction > 0 ? INT64_MIN : INT64_MAX; /* of a frame: ids say it all */
    struct query *query;

    if (!from) {
        limit_ns = cursor_ns(c);
        from = frame_near(c, c->frame_thread, limit_ns);
        if (direction > 0 && from > INT64_MIN)
            from--;
        if (direction < 0 && from < INT64_MAX - 2 * FRAMES_NEAR)
            from += 2 * FRAMES_NEAR;
    }
    query = db_query(c->db, direction > 0 ? "SELECT frame_id, start_ns, thread_id FROM frame WHERE frame_id > ?1"
                                            " AND thread_id = ?2 AND start_ns >= ?3 ORDER BY frame_id LIMIT 1"
                                          : "SELECT frame_id, start_ns, thread_id FROM frame WHERE frame_id < ?1"
                                            " AND thread_id = ?2 AND start_ns < ?3 ORDER BY frame_id DESC LIMIT 1");
    query_bind_integer(query, 1, from);
    query_bind_integer(query, 2, c->frame_thread);
    query_bind_integer(query, 3, limit_ns);
    return to_frame(c, query);
}

enum cursor_result cursor_step(struct cursor *c, enum cursor_what what, int direction)
{
    return what == NEXT_FRAME ? frame_step(c, direction) : to_event(c, find(c, c->at, c->gap, what, direction));
}

enum cursor_result cursor_far(struct cursor *c, enum cursor_what what, bool last)
{
    return to_event(c, find(c, last ? c->r->events.count : 0, true, what, last ? -1 : 1));
}

enum cursor_result cursor_to(struct cursor *c, enum cursor_what what, int64_t id)
{
    const struct replay *r = c->r;
    const struct replay_break *b;
    enum replay_kind kind = REPLAY_COMPILE;
    uint32_t index;

    switch (what) {
    case NEXT_FRAME: {
        struct query *query = db_query(c->db, "SELECT frame_id, start_ns, thread_id FROM frame WHERE frame_id = ?1");
        query_bind_integer(query, 1, id);
        return to_frame(c, query);
    }
    case NEXT_EVENT:
        return to_event(c, id > 0 && (uint64_t)id <= r->events.count ? (size_t)id - 1 : r->events.count);
    case NEXT_LOOKUP:
    case NEXT_HIT:
    case NEXT_MISS:
        kind = REPLAY_LOOKUP;
        index = replay_lookup_at(r, id);
        break;
    case NEXT_BREAK:
        kind = REPLAY_BREAK;
        b = list_find(&r->breaks, id, id);
        index = b ? (uint32_t)(b - r->breaks.at) : REPLAY_NONE;
        break;
    case NEXT_DEATH:
        kind = REPLAY_DEATH;
        index = replay_index(&r->entry_ids, id);
        if (index != REPLAY_NONE && r->entries.at[index].died_ns == REPLAY_NEVER)
            index = REPLAY_NONE;
        break;
    default:
        index = replay_index(&r->compile_ids, id);
    }
    return index == REPLAY_NONE ? CURSOR_NONE : to_event(c, replay_event_of(r, kind, index));
}

/* ---- words ----------------------------------------------------------------- */

char *cursor_word(char **text)
{
    char *at = *text + strspn(*text, " \t"), *end = at + strcspn(at, " \t");

    *text = end + (*end != 0);
    *end = 0;
    return *at ? at : NULL;
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
    for (int i = 0; i < NEXT_KINDS; i++) {
        size_t bytes = strlen(cursor_whats[i]);
        if (strncmp(cursor_whats[i], word, bytes))
            continue;
        if (!word[bytes] || !strcmp(word + bytes, "s") || !strcmp(word + bytes, "es")) {
            *what = (enum cursor_what)i;
            return true;
        }
    }
    return false;
}

/* "1.5s", "20ms", "3us", "7ns": nanoseconds; "50%" of ALL; or -1. */
static int64_t time_from(const char *word, int64_t all)
{
    const struct {
        const char *unit;
        double ns, most;
    } units[] = {{"ns", 1, 9e18},  {"us", 1e3, 9e15},  {"ms", 1e6, 9e12},
                 {"s", 1e9, 9e9}, {"min", 60e9, 1e8}, {"%", (double)all / 100, 100}};
    char *end;
    double value = strtod(word, &end);

    for (size_t i = 0; end != word && i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].unit) && value >= 0 && value <= units[i].most)
            return (int64_t)(value * units[i].ns);
    return -1;
}

enum cursor_result cursor_goto(struct cursor *c, const char *place, enum cursor_what *what)
{
    char *text = strdup(place), *rest = text, *word = text ? cursor_word(&rest) : NULL,
         *more = word ? cursor_word(&rest) : NULL, *end;
    enum cursor_result result = CURSOR_ERROR;
    int64_t number;

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
        number = strtoll(more, &end, 10);
        if (*end || end == more || errno)
            say(more, "not a number");
        else if ((result = cursor_to(c, *what, number)) == CURSOR_NONE) {
            say(more, "the trace has none with that number");
            result = CURSOR_ERROR;
        }
    } else if (more || (number = time_from(word, c->r->last_ns)) < 0) {
        say(word, "not a time (1.5s, 20ms), a part (50%) or an event (lookup 20, first miss)");
    } else {
        cursor_to_time(c, number);
        result = CURSOR_THERE;
    }
    free(text);
    return result;
}

/* ---- filters and stops ----------------------------------------------------- */

/* Marks in a new array the codes of the functions that NAME is; NULL: it was said why not. */
static bool *codes_named(struct cursor *c, const char *name)
{
    struct found_code found;
    bool *codes;

    if (find_code(c->db, name, &found, c->out, false) != FIND_ONE)
        return NULL;
    codes = replay_codes(c->r, found.ids);
    found_code_free(&found);
    return codes;
}

/* Marks in a new array of COUNT the index that MAP has for the ids of a query's rows; without a MAP they are lookups.
 * TEXT is its ?1. NULL: it was said why not. */
static bool *ids_marked(struct cursor *c, const char *sql, const char *text, const struct map *map, size_t count)
{
    struct query *query = db_query(c->db, sql);
    bool *marked = query ? calloc(count + 1, sizeof *marked) : NULL, any = false;

    query_bind_text(query, 1, text);
    while (marked && query_step(query)) {
        int64_t id = query_integer(query, 0);
        uint32_t at = map ? replay_index(map, id) : replay_lookup_at(c->r, id);
        if (at != REPLAY_NONE)
            any = marked[at] = true;
    }
    if (query_close(query) && any)
        return marked;
    if (marked && !any && !db_damaged(c->db))
        say(text, "nothing recorded is like that");
    free(marked);
    return NULL;
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
}

static bool filter_outcomes(struct cursor *c, char *list)
{
    bool chosen[OUTCOMES + 1] = {false};

    for (char *name = strtok(list, ", "); name; name = strtok(NULL, ", ")) {
        int i = 0;
        while (i < OUTCOMES && strcmp(name, outcome_word(i)))
            i++;
        if (i == OUTCOMES)
            return say(name, "no such outcome: plain, hit, compiled, run_only, skip, limit, declined, disabled, "
                             "guard_error or callback_error");
        chosen[i] = true;
    }
    memcpy(c->outcomes, chosen, sizeof chosen);
    c->by_outcome = true;
    return true;
}

/* KIND, "function", "thread", ..., like TEXT: marks take the place of those that the filter has. */
static bool filter_marks(struct cursor *c, const char *kind, const char *text)
{
    const struct {
        const char *name, *sql; /* ?1: TEXT; with %s TEXT is SQL and takes its place */
        bool **marks;
        const struct map *map;
        size_t count;
    } filters[] = {
        {"function", NULL, &c->codes, NULL, 0},
        {"file", "SELECT code_id FROM code WHERE filename GLOB ?1 OR filename GLOB '*/' || ?1", &c->codes,
         &c->r->code_ids, c->r->codes.count},
        {"thread", "SELECT thread_id FROM thread WHERE thread_id = CAST(?1 AS INTEGER) OR name = ?1", &c->threads,
         &c->r->thread_ids, c->r->threads.count},
        {"process",
         "SELECT t.thread_id FROM thread t JOIN process p ON p.process_id = t.process_id"
         " WHERE p.process_id = CAST(?1 AS INTEGER) OR p.pid = CAST(?1 AS INTEGER)",
         &c->threads, &c->r->thread_ids, c->r->threads.count},
        {"where", "SELECT lookup_id FROM call_ledger WHERE (%s\n) AND ?1 IS NOT NULL", &c->lookups, NULL,
         c->r->lookups.count},
    };
    size_t i = 0;
    char *sql = NULL;
    bool *marked;

    while (i < sizeof filters / sizeof *filters && strcmp(kind, filters[i].name))
        i++;
    if (i == sizeof filters / sizeof *filters)
        return say(kind, "no such filter: function, file, thread, process, outcome, where; or off");
    if (!filters[i].sql)
        marked = codes_named(c, text);
    else if (!strcmp(kind, "where"))
        marked = asprintf(&sql, filters[i].sql, text) < 0 ? NULL : ids_marked(c, sql, text, NULL, filters[i].count);
    else
        marked = ids_marked(c, filters[i].sql, text, filters[i].map, filters[i].count);
    free(sql);
    if (marked) {
        free(*filters[i].marks);
        *filters[i].marks = marked;
    }
    return marked;
}

bool cursor_filter(struct cursor *c, const char *by)
{
    char *text = strdup(by), *rest = text, *kind = text ? cursor_word(&rest) : NULL, *all = NULL;
    bool ok = false;

    if (kind && !*(rest = cursor_words(rest)))
        say(kind, "filter by what? function NAME, file GLOB, thread ID, process ID, outcome NAME, where SQL; or off");
    else if (kind)
        ok = strcmp(kind, "outcome") ? filter_marks(c, kind, rest) : filter_outcomes(c, rest);
    if (ok && asprintf(&all, "%s%s%s", c->filtered ? c->filtered : "", c->filtered ? ", " : "",
                       by + strspn(by, " \t")) >= 0) {
        free(c->filtered);
        c->filtered = all;
    }
    free(text);
    return ok;
}

size_t cursor_passing(const struct cursor *c)
{
    size_t count = 0;

    for (size_t i = 0; i < c->r->events.count; i++)
        count += passes(c, &c->r->events.at[i]);
    return count;
}

void cursor_stops_off(struct cursor *c)
{
    while (c->stop_count) {
        struct cursor_stop *stop = &c->stops[--c->stop_count];
        free(stop->text);
        free(stop->codes);
        free(stop->entries);
    }
}

/* "when FUNC recompiles", "when entry 0/3 is hit"; "when" and "is" may be left out. */
bool cursor_stop_add(struct cursor *c, const char *text)
{
    static const struct {
        const char *verb;
        enum cursor_what when;
    } verbs[] = {{"recompiles", NEXT_RECOMPILE}, {"compiles", NEXT_COMPILE}, {"misses", NEXT_MISS},
                 {"called", NEXT_LOOKUP},        {"hit", NEXT_HIT},          {"dies", NEXT_DEATH}};
    struct cursor_stop stop = {.text = strdup(text), .when = NEXT_KINDS};
    char *copy = strdup(text), *rest = copy, *word, *subject = NULL;
    bool entry = false;

    if (!copy || !stop.text || c->stop_count == CURSOR_STOPS) {
        say("stop", copy && stop.text ? "no room for more; `stop off` takes all away" : "out of memory");
        goto out;
    }
    while ((word = cursor_word(&rest))) {
        if (!subject && !strcmp(word, "entry"))
            entry = true;
        else if (!subject && strcmp(word, "when"))
            subject = word;
        for (size_t i = 0; subject && word != subject && i < sizeof verbs / sizeof *verbs; i++)
            if (!strcmp(word, verbs[i].verb))
                stop.when = verbs[i].when;
    }
    if (stop.when == NEXT_KINDS || entry != (stop.when == NEXT_HIT || stop.when == NEXT_DEATH))
        say("stop", "when what? FUNC recompiles, compiles, misses or is called; entry LABEL is hit or dies");
    else if (entry)
        stop.entries = ids_marked(c, "SELECT cache_entry_id FROM cache_entry WHERE label = ?1", subject,
                                  &c->r->entry_ids, c->r->entries.count);
    else
        stop.codes = codes_named(c, subject);
out:
    free(copy);
    if (!stop.codes && !stop.entries) {
        free(stop.text);
        return false;
    }
    c->stops[c->stop_count++] = stop;
    return true;
}

const struct cursor_stop *cursor_stopped(const struct cursor *c)
{
    const struct replay_event *e = cursor_event(c);

    for (int i = 0; e && i < c->stop_count; i++) {
        const struct cursor_stop *stop = &c->stops[i];
        struct replay_subject s = cursor_subject(c);
        if (event_is(c->r, e, stop->when) &&
            (stop->codes ? passes_one(stop->codes, s.code) : passes_one(stop->entries, s.entry)))
            return stop;
    }
    return NULL;
}

/* ---- the cache as it stood ------------------------------------------------- */

enum cursor_result cursor_cache(const struct cursor *c, struct replay_state *state)
{
    const struct replay_event *e = cursor_event(c);
    struct replay_subject s;
    uint32_t cache;
    bool ok;

    if (!e)
        return CURSOR_NONE;
    s = cursor_subject(c);
    cache = s.code == REPLAY_NONE ? REPLAY_NONE : replay_index(&c->r->cache_ids, replay_cache_key(s.code, s.process));
    if (cache == REPLAY_NONE)
        return CURSOR_NONE;
    ok = e->kind == REPLAY_LOOKUP ? replay_state_at(c->r, e->index, state)
                                  : replay_state_when(c->r, cache, e->at_ns, state);
    if (!ok)
        say("cache", "out of memory");
    return ok ? CURSOR_THERE : CURSOR_ERROR;
}
