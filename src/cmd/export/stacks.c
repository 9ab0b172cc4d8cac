/* cmd/export/stacks.c -- stacks: folded lines, and speedscope's file format.
 *
 * Runs in: the viewer.
 *
 * Both walk the frames in order of id, as trace/stacks.h tells.
 *
 * folded      "process;thread;outer;inner 1234": own time in nanoseconds, for
 *             flamegraph.pl, inferno and speedscope.
 * speedscope  an evented profile for each thread. A thread's events must stand
 *             together, so a pass over the frames spreads them over temporary
 *             files, FILES threads at a time. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/export.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/stacks.h"

enum {
    FILES = 200,
};

/* ---- folded ---------------------------------------------------------------- */

static bool folded_tick(void *context, int64_t id)
{
    struct export *export = context;

    return export_tick(export, id, export->last_frame);
}

/* A name within a line: no ';', which parts, and nothing that could end the line. */
static void folded_name(FILE *out, const char *text, size_t bytes)
{
    char *escaped = say_escape(text, bytes);

    for (const char *s = escaped ? escaped : "?"; *s; s++)
        putc(*s == ';' ? ':' : *s, out);
    free(escaped);
}

/* The line of NODE. NAMES is a query for a code's name, ROOTS one for a thread's. */
static void folded_line(FILE *out, const struct tree *tree, uint32_t node, struct query *names, struct query *roots,
                        uint32_t *path, size_t room)
{
    size_t depth = 0, bytes;
    const char *text;

    for (uint32_t at = node; at && depth < room; at = tree->nodes[at].parent)
        path[depth++] = at;
    while (depth--) {
        const struct node *n = &tree->nodes[path[depth]];
        struct query *query = n->parent ? names : roots;
        query_reset(query);
        query_bind_integer(query, 1, n->code_id);
        if (query_step(query)) {
            text = query_text(query, 0, &bytes);
            folded_name(out, text, bytes);
            if (!n->parent) {
                putc(';', out);
                text = query_text(query, 1, &bytes);
                folded_name(out, text, bytes);
            }
        } else {
            putc('?', out);
        }
        putc(depth ? ';' : ' ', out);
    }
    fprintf(out, "%" PRId64 "\n", tree->nodes[node].self_ns);
}

bool export_folded(struct export *export)
{
    FILE *out = export->out->file;
    struct tracks tracks = {0};
    struct tree tree = {0};
    struct fold fold = {.context = export, .tick = folded_tick};
    struct query *names = db_query(export->db, schema_statement("export/folded_code"));
    struct query *roots = db_query(export->db, schema_statement("export/folded_thread"));
    uint32_t *path = malloc((STACKS_NODES + 2) * sizeof *path);
    bool ok = false;

    export->progress.what = "folding stacks";
    if (!path) {
        say_error("%s: out of memory", db_path(export->db));
        goto out;
    }
    if (!names || !roots || !stacks_fold(export->db, &tree, &tracks, export->end_ns, &fold))
        goto out;
    for (uint32_t node = 1; node <= tree.count; node++) {
        if (tree.nodes[node].parent && tree.nodes[node].self_ns > 0)
            folded_line(out, &tree, node, names, roots, path, STACKS_NODES + 2);
        if (!(node % EXPORT_TICK) && !export_tick(export, 0, 0))
            break;
    }
    ok = !query_failed(names) && !query_failed(roots);
    if (tree.cut)
        say_error("%s: more than %d different stacks: %" PRIu32 " frames are counted for their callers", db_path(export->db),
                  STACKS_NODES, tree.cut);
out:
    query_close(names);
    query_close(roots);
    tracks_free(&tracks);
    tree_free(&tree);
    free(path);
    return ok;
}

/* ---- speedscope ------------------------------------------------------------ */

typedef LIST(int64_t) names; /* code ids; the place is the index in shared.frames */

/* shared.frames; after the last a "?" for code that is not known. */
static bool names_put(struct export *export, struct json *json, names *names)
{
    struct query *query = db_query(export->db, schema_statement("export/codes"));

    json_line(json);
    json_object(json, "shared");
    json_list(json, "frames");
    while (query_step(query)) {
        int64_t *id = list_add(names);
        if (!id) {
            say_error("%s: out of memory", db_path(export->db));
            query_close(query);
            return false;
        }
        *id = query_integer(query, 0);
        json_line(json);
        json_object(json, NULL);
        export_string(json, "name", query, 1);
        if (query_type(query, 2) != QUERY_NULL)
            export_string(json, "file", query, 2);
        if (query_type(query, 3) == QUERY_INTEGER)
            json_integer(json, "line", query_integer(query, 3));
        json_end(json);
    }
    json_line(json);
    json_object(json, NULL);
    json_string(json, "name", "?");
    for (int i = 0; i < 3; i++) /* the code, the list and what is shared */
        json_end(json);
    return query_close(query);
}

static uint32_t name_find(const names *names, int64_t id)
{
    size_t at = sorted_count(names->count, i, names->at[i] < id);

    return (uint32_t)(at < names->count && names->at[at] == id ? at : names->count);
}

/* An event of TRACK, written to its file. */
static void event_put(struct track *track, const char *type, uint32_t name, int64_t at)
{
    struct json json = {.out = track->events, .compact = true};

    if (!track->count)
        track->first_ns = at;
    if (at < track->last_ns && track->count) /* only in a broken trace: the viewer wants them in order */
        at = track->last_ns;
    track->last_ns = at;
    if (track->count++)
        fputs(",\n", track->events);
    json_object(&json, NULL);
    json_string(&json, "type", type);
    json_integer(&json, "frame", name);
    json_integer(&json, "at", at);
    json_end(&json);
}

/* Tracks FROM to TO, whose events are spread over their files. */
struct spread {
    struct export *export;     /* borrowed, all of them */
    const names *names;
    struct track *from, *to;
    bool failed;
};

static bool spread_tick(void *context, int64_t frame_id)
{
    struct spread *s = context;

    s->failed = !export_tick(s->export, frame_id, s->export->last_frame);
    for (struct track *track = s->from; track < s->to && !s->failed; track++)
        if (track->events && ferror(track->events)) {
            say_error("a temporary file: %s", strerror(errno));
            s->failed = true;
        }
    return !s->failed;
}

static void spread_pop(void *context, struct track *track)
{
    const struct spread *s = context;
    const struct open_frame *top = &track->stack.at[track->stack.count - 1];

    if (track >= s->from && track < s->to)
        event_put(track, "C", top->what, top->end_ns);
}

static bool spread_push(void *context, struct track *track, const struct walked *frame, uint32_t *what)
{
    const struct spread *s = context;

    if (track >= s->from && track < s->to) {
        *what = name_find(s->names, frame->code_id);
        event_put(track, "O", *what, frame->start_ns);
    }
    return true;
}

/* Spread the events of tracks FROM to TO over their files. */
static bool events_walk(struct export *export, struct tracks *tracks, size_t from, size_t to, const names *names)
{
    struct spread spread = {export, names, tracks->at + from, tracks->at + to, false};
    bool ok = stacks_walk(export->db, tracks, export->end_ns, &(struct walk){&spread, spread_tick, spread_pop, spread_push});

    for (size_t i = 0; i < tracks->count; i++)
        for (struct track *track = &tracks->at[i]; track->stack.count; track->stack.count--)
            spread_pop(&spread, track);
    return ok && !spread.failed;
}

/* The profile of TRACK, whose events are in its file. */
static bool profile_put(struct json *json, struct track *track, struct query *about)
{
    char buffer[1 << 16];
    size_t got;

    query_reset(about);
    query_bind_integer(about, 1, track->thread_id);
    json_line(json);
    json_object(json, NULL);
    json_string(json, "type", "evented");
    if (query_step(about))
        export_string(json, "name", about, 0);
    else
        json_string(json, "name", "?");
    json_string(json, "unit", "nanoseconds");
    json_integer(json, "startValue", track->first_ns);
    json_integer(json, "endValue", track->last_ns);
    json_list(json, "events");
    json_line(json);
    json_raw(json, NULL, "", 0); /* what is in the file */
    if (fflush(track->events) != 0 || fseek(track->events, 0, SEEK_SET) != 0) {
        say_error("a temporary file: %s", strerror(errno));
        return false;
    }
    while ((got = fread(buffer, 1, sizeof buffer, track->events)) > 0)
        fwrite(buffer, 1, got, json->out);
    json_end(json);
    json_end(json);
    return !ferror(track->events) && !query_failed(about);
}

bool export_speedscope(struct export *export)
{
    struct json *json = &(struct json){.out = export->out->file, .compact = true};
    struct tracks tracks = {0};
    names names = {0};
    struct query *about = db_query(export->db, schema_statement("export/profile"));
    bool ok = false;

    json_object(json, NULL);
    json_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_line(json);
    json_string(json, "exporter", "dyntrace");
    json_string(json, "name", db_path(export->db));
    if (!about || !names_put(export, json, &names) || !tracks_read(export->db, &tracks))
        goto out;
    export->progress.what = "exporting frames";
    json_line(json);
    json_list(json, "profiles");
    for (size_t from = 0; from < tracks.count; from += FILES) {
        size_t to = from + FILES < tracks.count ? from + FILES : tracks.count;
        for (size_t i = from; i < to; i++)
            if (!(tracks.at[i].events = tmpfile())) {
                say_error("a temporary file: %s", strerror(errno));
                goto out;
            }
        if (!events_walk(export, &tracks, from, to, &names))
            goto out;
        for (size_t i = from; i < to; i++) {
            struct track *track = &tracks.at[i];
            if (track->count && !profile_put(json, track, about))
                goto out;
            fclose(track->events);
            track->events = NULL;
        }
    }
    json_end(json);
    json_line(json);
    json_integer(json, "activeProfileIndex", 0);
    json_end(json);
    putc('\n', json->out);
    ok = true;
out:
    query_close(about);
    tracks_free(&tracks);
    list_free(&names);
    return ok;
}
