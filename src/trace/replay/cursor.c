/* trace/replay/cursor.c -- a cursor that moves through a trace's events. See
 * trace/replay/cursor.h. */
#include "trace/replay/cursor.h"

#include <errno.h>

#include "lib/say.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/find_code.h"
#include "trace/prose.h"

const char *const cursor_whats[NEXT_KINDS] = {"lookup", "compile", "recompile", "break",
                                              "death",  "hit",     "miss",      "event"};

static enum cursor_result report_error(const char *what, const char *why)
{
    say_error("replay: %s: %s", what, why);
    return CURSOR_ERROR;
}

/* ---- finding the next event ---------------------------------------------- */

static const enum replay_kind kinds[] = {
    [NEXT_LOOKUP] = REPLAY_LOOKUP,   [NEXT_HIT] = REPLAY_LOOKUP,
    [NEXT_MISS] = REPLAY_LOOKUP,     [NEXT_BREAK] = REPLAY_BREAK,
    [NEXT_COMPILE] = REPLAY_COMPILE, [NEXT_RECOMPILE] = REPLAY_COMPILE,
    [NEXT_DEATH] = REPLAY_DEATH};

static bool is_event_of_kind(const struct replay *r, const struct replay_event *e,
                             enum cursor_what what)
{
    if (what >= NEXT_EVENT)
        return true;
    if (e->kind != kinds[what])
        return false;
    if (what == NEXT_HIT || what == NEXT_MISS)
        return (r->lookups.at[e->index].outcome == OUTCOME_HIT) == (what == NEXT_HIT);
    return what != NEXT_RECOMPILE || r->compiles.at[e->index].recompile;
}

/* Is the element INDEX of MARKS true? REPLAY_NONE has no element, so it is not marked. */
static bool is_element_marked(const bool *marks, uint32_t index)
{
    return index != REPLAY_NONE && marks[index];
}

static bool does_event_pass_filters(const struct cursor *c, const struct replay_event *e)
{
    const struct replay_subject s = replay_subject_of_event(c->r, e->kind, e->index);
    const uint32_t lookup = e->kind == REPLAY_LOOKUP ? e->index : REPLAY_NONE;
    const uint32_t by[FILTERS] = {s.code, s.thread, lookup, lookup};

    for (int i = 0; i < FILTERS; i++)
        if (c->filters[i] && !is_element_marked(c->filters[i], by[i]))
            return false;
    return true;
}

/* Starting at event number AT, or in the gap before it if GAP, return the nearest event of the kind
 * WHAT that passes the filters. DIRECTION is 1 (forwards) or -1. Returns events.count if there is
 * no such event. */
static size_t find_event(const struct cursor *c, size_t at, bool gap, enum cursor_what what,
                         int direction)
{
    const struct replay_event *events = c->r->events.at;

    if (direction > 0) {
        for (at += !gap; at < c->r->events.count; at++)
            if (is_event_of_kind(c->r, &events[at], what) &&
                does_event_pass_filters(c, &events[at]))
                return at;
    } else {
        while (at-- > 0)
            if (is_event_of_kind(c->r, &events[at], what) &&
                does_event_pass_filters(c, &events[at]))
                return at;
    }
    return c->r->events.count;
}

/* ---- moving the cursor --------------------------------------------------- */

void cursor_init(struct cursor *c, struct db *db, struct replay *replay, FILE *out)
{
    *c = (struct cursor){.db = db, .r = replay, .out = out, .gap = true};
}

void cursor_end(struct cursor *c)
{
    cursor_remove_filters(c);
}

/* Move the cursor to event number EVENT. Returns CURSOR_NONE if EVENT is events.count, which means
 * that there is none. */
static enum cursor_result move_to_event(struct cursor *c, size_t event)
{
    if (event >= c->r->events.count)
        return CURSOR_NONE;
    c->at = event;
    c->gap = false;
    return CURSOR_THERE;
}

void cursor_move_to_time(struct cursor *c, int64_t at_ns)
{
    c->at = replay_find_event_at_time(c->r, at_ns);
    c->gap = true;
    c->gap_ns = at_ns;
}

const struct replay_event *cursor_get_event(const struct cursor *c)
{
    return c->at < c->r->events.count && !c->gap ? &c->r->events.at[c->at] : NULL;
}

struct replay_subject cursor_get_subject(const struct cursor *c)
{
    return replay_subject_of_event(c->r, c->r->events.at[c->at].kind, c->r->events.at[c->at].index);
}

int64_t cursor_get_time(const struct cursor *c)
{
    return c->gap ? c->gap_ns : c->r->events.at[c->at].at_ns;
}

/* Return the first column of QUERY's first row, or 0 without a row. Closes QUERY. */
static int64_t read_number_and_close(struct query *query)
{
    int64_t number = query_step(query) ? query_integer(query, 0) : 0;

    query_close(query);
    return number;
}

int64_t cursor_find_frame(const struct cursor *c)
{
    const struct replay_event *e = cursor_get_event(c);

    if (!e || e->kind == REPLAY_DEATH)
        return 0;
    return read_number_and_close(
        db_query_with(c->db,
                      schema_statement(e->kind == REPLAY_LOOKUP    ? "replay/frame-of-lookup"
                                       : e->kind == REPLAY_COMPILE ? "replay/frame-of-compile"
                                                                   : "replay/frame-of-break"),
                      cursor_get_subject(c).id));
}

enum cursor_result cursor_move_by_step(struct cursor *c, enum cursor_what what, int direction)
{
    return move_to_event(c, find_event(c, c->at, c->gap, what, direction));
}

enum cursor_result cursor_move_to_first_or_last(struct cursor *c, enum cursor_what what, bool last)
{
    return move_to_event(c,
                         find_event(c, last ? c->r->events.count : 0, true, what, last ? -1 : 1));
}

enum cursor_result cursor_move_to_id(struct cursor *c, enum cursor_what what, int64_t id)
{
    const struct replay *r = c->r;
    const struct replay_break *b;
    uint32_t index;

    if (what == NEXT_EVENT)
        return move_to_event(c, id > 0 && (uint64_t)id <= r->events.count ? (size_t)id - 1
                                                                          : r->events.count);
    switch (kinds[what]) {
    case REPLAY_LOOKUP:
        index = replay_find_lookup(r, id);
        break;
    case REPLAY_BREAK:
        b = list_find(&r->breaks, id, id);
        index = b ? (uint32_t)(b - r->breaks.at) : REPLAY_NONE;
        break;
    case REPLAY_DEATH:
        index = replay_index_of_id(&r->entry_ids, id);
        if (index != REPLAY_NONE && r->entries.at[index].died_ns == REPLAY_NEVER)
            index = REPLAY_NONE;
        break;
    default:
        index = replay_index_of_id(&r->compile_ids, id);
    }
    return index == REPLAY_NONE ? CURSOR_NONE
                                : move_to_event(c, replay_find_event(r, kinds[what], index));
}

/* ---- parsing what the user typed: "miss", "1.5s", "lookup 20" ------------ */

/* END follows the word "lookup" or "miss". Is it empty, or the ending of a plural? */
static bool is_plural_ending(const char *end)
{
    return !*end || !strcmp(end, "s") || !strcmp(end, "es");
}

bool cursor_parse_event_kind(const char *word, enum cursor_what *what)
{
    for (int i = 0; i < NEXT_KINDS; i++) {
        size_t bytes = strlen(cursor_whats[i]);
        if (strncmp(cursor_whats[i], word, bytes))
            continue;
        if (is_plural_ending(word + bytes)) {
            *what = (enum cursor_what)i;
            return true;
        }
    }
    return false;
}

/* Return WORD in nanoseconds. WORD is "1.5s", "20ms", "3us", "7ns", or "50%", which is that part of
 * ALL. Returns -1 if WORD is no time. */
static int64_t parse_time(const char *word, int64_t all)
{
    char *end;
    double value = strtod(word, &end);
    double unit_ns = times_parse_unit(end, strlen(end));

    if (!strcmp(end, "%") && value <= 100)
        unit_ns = (double)all / 100;
    return end != word && unit_ns && value >= 0 && value * unit_ns < 9e18
               ? (int64_t)(value * unit_ns)
               : -1;
}

enum cursor_result cursor_move_to_place(struct cursor *c, const char *place, enum cursor_what *what)
{
    char word[32], more[32], *end;
    int words = sscanf(place, "%31s %31s", word, more);
    enum cursor_result result;
    int64_t number;

    *what = NEXT_EVENT;
    if (words < 1)
        return report_error("goto",
                            "where to? Event 12, a time (1.5s), a part (50%), lookup 20, first "
                            "miss, last compile");
    if (!strcmp(word, "first") || !strcmp(word, "last")) {
        if (words > 1 && !cursor_parse_event_kind(more, what))
            return report_error(
                more,
                "no such event: lookup, compile, recompile, break, death, hit, miss or event");
        return cursor_move_to_first_or_last(c, *what, !strcmp(word, "last"));
    }
    if (words == 1 && !word[strspn(word, "0123456789")]) {
        words = 2;
        strcpy(more, word);
        strcpy(word, cursor_whats[NEXT_EVENT]);
    }
    if (words > 1 && cursor_parse_event_kind(word, what)) {
        errno = 0;
        number = strtoll(more, &end, 10);
        if (*end || errno)
            return report_error(more, "not a number");
        result = cursor_move_to_id(c, *what, number);
        return result == CURSOR_NONE ? report_error(more, "the trace has none with that number")
                                     : result;
    }
    if (words > 1 || (number = parse_time(word, c->r->last_ns)) < 0)
        return report_error(
            word, "not a time (1.5s, 20ms), a part (50%) or an event (lookup 20, first miss)");
    cursor_move_to_time(c, number);
    return CURSOR_THERE;
}

/* ---- filters: parsing them, and marking what passes ---------------------- */

/* Return a new array with a true for each code object of the function NAME. Returns NULL after
 * reporting an error. */
static bool *mark_codes_named(struct cursor *c, const char *name)
{
    struct found_code found;
    bool *codes;

    if (find_code(c->db, name, &found, c->out, false) != FIND_ONE)
        return NULL;
    codes = replay_mark_codes(c->r, found.ids);
    found_code_free(&found);
    return codes;
}

/* Return a new array of COUNT bools with a true for each row of QUERY, and close QUERY. The
 * first column of a row is a row id, for which MAP has the index in the array. If MAP is NULL,
 * it is the row id of a lookup. TEXT is what the user typed, for error messages. Returns NULL
 * after reporting an error. */
static bool *mark_rows_of_query(struct cursor *c, struct query *query, const char *text,
                                const struct map *map, size_t count)
{
    bool *marks = calloc(count + 1, sizeof *marks);
    bool any = false;
    bool failed;

    while (query_step(query)) {
        int64_t id = query_integer(query, 0);
        uint32_t at = map ? replay_index_of_id(map, id) : replay_find_lookup(c->r, id);
        if (at != REPLAY_NONE)
            any = marks[at] = true;
    }
    failed = query_failed(query);
    query_close(query);
    if (any && !failed)
        return marks;
    if (!any && !failed)
        report_error(text, "nothing recorded is like that");
    free(marks);
    return NULL;
}

/* Return a query of STATEMENT with TEXT bound to ?1. */
static struct query *open_query_with_text(const struct cursor *c, const char *statement,
                                          const char *text)
{
    struct query *query = db_query(c->db, schema_statement(statement));

    query_bind_text(query, 1, text);
    return query;
}

void cursor_remove_filters(struct cursor *c)
{
    for (int i = 0; i < FILTERS; i++) {
        free(c->filters[i]);
        c->filters[i] = NULL;
    }
    free(c->filtered);
    c->filtered = NULL;
}

/* Return a new array with a true for each lookup whose outcome is in LIST, such as "skip, limit".
 * Returns NULL after reporting an error. */
static bool *mark_outcomes(struct cursor *c, char *list)
{
    bool *marks = calloc(c->r->lookups.count + 1, sizeof *marks);
    char *rest;

    for (char *name = strtok_r(list, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        int outcome = 0;
        while (outcome < OUTCOMES && strcmp(name, outcome_to_word(outcome)))
            outcome++;
        if (outcome == OUTCOMES) {
            report_error(name,
                         "no such outcome: plain, hit, compiled, run_only, skip, limit, declined, "
                         "disabled, guard_error or callback_error");
            free(marks);
            return NULL;
        }
        for (size_t i = 0; i < c->r->lookups.count; i++)
            marks[i] = marks[i] || c->r->lookups.at[i].outcome == outcome;
    }
    return marks;
}

/* Return a new array with a true for each row that passes a filter of the kind KIND ("function",
 * "thread", ...). TEXT is what the user typed after the kind. *FILTER gets the number of the kind.
 * Returns NULL after reporting an error. */
static bool *mark_rows_that_pass_filter(struct cursor *c, const char *kind, char *text, int *filter)
{
    static const struct {
        const char *kind;
        int filter;
        const char *statement;
    } filters[] = {{"function", FILTER_CODE, NULL},
                   {"file", FILTER_CODE, "replay/in-file"},
                   {"thread", FILTER_THREAD, "replay/on-thread"},
                   {"process", FILTER_THREAD, "replay/in-process"},
                   {"outcome", FILTER_OUTCOME, NULL},
                   {"where", FILTER_WHERE, NULL}};
    const struct replay *r = c->r;
    struct query *query;
    size_t i = 0;

    while (i < array_count(filters) && strcmp(kind, filters[i].kind))
        i++;
    if (i == array_count(filters)) {
        report_error(kind,
                     "no such filter: function, file, thread, process, outcome, where; or off");
        return NULL;
    }
    *filter = filters[i].filter;
    if (*filter == FILTER_OUTCOME)
        return mark_outcomes(c, text);
    if (*filter == FILTER_WHERE) {
        char *sql = say_print(
            "SELECT lookup_id FROM call_ledger WHERE lookup_id IS NOT NULL AND (%s\n)", text);
        query = db_query(c->db, sql);
        free(sql);
        return mark_rows_of_query(c, query, text, NULL, r->lookups.count);
    }
    if (!filters[i].statement)
        return mark_codes_named(c, text);
    query = open_query_with_text(c, filters[i].statement, text);
    return *filter == FILTER_CODE
               ? mark_rows_of_query(c, query, text, &r->code_ids, r->codes.count)
               : mark_rows_of_query(c, query, text, &r->thread_ids, r->threads.count);
}

bool cursor_add_filter(struct cursor *c, const char *by)
{
    char *text = strdup(by);
    char *rest;
    char *kind = strtok_r(text, " \t", &rest);
    char *before = c->filtered;
    bool *marks = NULL;
    int filter;

    rest += kind ? strspn(rest, " \t") : 0;
    if (kind && !*rest)
        report_error(kind,
                     "filter by what? function NAME, file GLOB, thread ID, process ID, outcome "
                     "NAME, where SQL; or off");
    else if (kind)
        marks = mark_rows_that_pass_filter(c, kind, rest, &filter);
    if (marks) {
        free(c->filters[filter]);
        c->filters[filter] = marks;
        c->filtered = say_print("%s%s%s", before ? before : "", before ? ", " : "", by);
        free(before);
    }
    free(text);
    return marks;
}

size_t cursor_count_passing(const struct cursor *c)
{
    size_t count = 0;

    for (size_t i = 0; i < c->r->events.count; i++)
        count += does_event_pass_filters(c, &c->r->events.at[i]);
    return count;
}

/* ---- commands that the user types ---------------------------------------- */

/* Run the user's command "filter BY": add the filter BY, or remove all filters if BY is "off". */
static enum cursor_result run_filter_command(struct cursor *c, const char *by)
{
    if (strcmp(by, "off")) {
        if (!cursor_add_filter(c, by))
            return CURSOR_ERROR;
        fprintf(c->out, "%zu of %zu events pass\n", cursor_count_passing(c), c->r->events.count);
        return CURSOR_NONE;
    }
    cursor_remove_filters(c);
    fputs("no filter\n", c->out);
    return CURSOR_NONE;
}

enum cursor_result cursor_run_command(struct cursor *c, const char *name, const char *rest)
{
    bool next = !strcmp(name, "next");
    enum cursor_result result;
    enum cursor_what what;

    if (!strcmp(name, "filter"))
        return run_filter_command(c, rest);
    if (!strcmp(name, "goto")) {
        result = cursor_move_to_place(c, rest, &what);
    } else {
        if (!cursor_parse_event_kind(rest, &what))
            return report_error(rest,
                                "no such event: lookup, compile, recompile, break, death, hit, "
                                "miss or event");
        result = cursor_move_by_step(c, what, next ? 1 : -1);
    }
    if (result == CURSOR_NONE)
        fprintf(c->out, "(no %s%s%s)\n",
                *name == 'g' ? ""
                : next       ? "later "
                             : "earlier ",
                cursor_whats[what], c->filtered ? " that passes the filter" : "");
    return result;
}

/* ---- finding the cache at the cursor ------------------------------------- */

bool cursor_get_cache_state(const struct cursor *c, struct replay_state *state)
{
    const struct replay_event *e = cursor_get_event(c);
    struct replay_subject s;
    uint32_t cache = REPLAY_NONE;

    if (!e)
        return false;
    s = cursor_get_subject(c);
    if (s.code != REPLAY_NONE)
        cache = replay_index_of_id(&c->r->cache_ids, replay_cache_key(s.code, s.process));
    if (cache == REPLAY_NONE)
        return false;
    if (e->kind == REPLAY_LOOKUP)
        replay_get_state_at_lookup(c->r, e->index, state);
    else
        replay_get_state_at_time(c->r, cache, e->at_ns, state);
    return true;
}
