/* cmd/export/stacks.c -- stacks: folded lines, and speedscope's file format.
 *
 * Runs in: the viewer.
 *
 * Both walk the frames in order of id (trace/stacks.h).
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
#include "lib/say.h"
#include "schema.h"
#include "trace/result.h"
#include "trace/stacks.h"

enum { FILES = 200 };

static bool frames_tick(void *context, int64_t frame_id)
{
    struct export *export = context;

    return export_tick(export, frame_id, export->last_frame);
}

/* ---- folded ---------------------------------------------------------------- */

/* What the code or thread ID is called, by QUERY, as a part of a line: no ';', which parts, but between the columns, and
 * nothing that could end the line. */
static void folded_name(FILE *out, struct query *query, int64_t id)
{
    query_reset(query);
    query_bind_integer(query, 1, id);
    if (!query_step(query))
        putc('?', out);
    else
        for (int i = 0; i < query_columns(query); i++) {
            size_t bytes;
            const char *text = query_text(query, i, &bytes);
            char *escaped = say_escape(text, bytes);
            for (char *s = escaped; (s = strchr(s, ';'));)
                *s = ':';
            fprintf(out, "%s%s", i ? ";" : "", escaped);
            free(escaped);
        }
}

void export_folded(struct export *export)
{
    FILE *out = export->out->file;
    struct stacks stacks = {0};
    struct tree *tree = &stacks.tree;
    struct query *codes = db_query(export->db, schema_statement("export/folded_code"));
    struct query *threads = db_query(export->db, schema_statement("export/folded_thread"));
    LIST(uint32_t) path = {0};

    export->progress.what = "folding stacks";
    stacks_walk(export->db, &stacks, export->end_ns, &(struct walk){.context = export, .fold = true, .tick = frames_tick});
    for (uint32_t node = 1; node < tree->nodes.count; node++) {
        if (!(node % EXPORT_TICK) && !export_tick(export, 0, 0))
            break;
        if (!tree->nodes.at[node].parent || tree->nodes.at[node].self_ns <= 0)
            continue;
        path.count = 0;
        for (uint32_t at = node; at; at = tree->nodes.at[at].parent)
            *list_add(&path) = at;
        for (size_t depth = path.count; depth--;) {
            const struct node *n = &tree->nodes.at[path.at[depth]];
            folded_name(out, n->parent ? codes : threads, n->code_id);
            putc(depth ? ';' : ' ', out);
        }
        fprintf(out, "%" PRId64 "\n", tree->nodes.at[node].self_ns);
    }
    if (tree->cut)
        say_error("%s: more than %d different stacks: %" PRIu32 " frames are counted for their callers", db_path(export->db),
                  STACKS_NODES, tree->cut);
    query_close(codes);
    query_close(threads);
    stacks_free(&stacks);
    list_free(&path);
}

/* ---- speedscope ------------------------------------------------------------ */

struct speedscope {
    LIST(int64_t) codes;   /* by their index in shared.frames */
    struct stacks stacks;
    size_t from;           /* the threads from there on have profiles */
    struct profile {
        FILE *events;      /* owned; NULL: it has none */
        int64_t first_ns, last_ns;
    } profiles[FILES];
};

/* shared.frames; after the last a "?" for code that is not known. */
static void codes_put(struct export *export, struct json *json)
{
    struct query *query = db_query(export->db, schema_statement("export/codes"));

    json_line(json);
    json_object(json, "shared");
    json_list(json, "frames");
    while (query_step(query)) {
        *list_add(&export->speedscope->codes) = query_integer(query, 0);
        json_line(json);
        json_object(json, NULL);
        export_string(json, "name", query, 1);
        for (int i = 2; i < 4; i++)
            if (query_type(query, i) != QUERY_NULL)
                result_member(json, query_name(query, i), query, i);
        json_end(json);
    }
    query_close(query);
    json_line(json);
    json_object(json, NULL);
    json_string(json, "name", "?");
    for (int i = 0; i < 3; i++) /* the code, the list and what is shared */
        json_end(json);
}

/* The frame on top of TRACK's stack begins or ends, AT. */
static void event_put(struct export *export, const struct track *track, const char *type, int64_t at)
{
    struct speedscope *s = export->speedscope;
    size_t index = (size_t)(track - s->stacks.tracks.at);
    struct profile *profile = &s->profiles[index - s->from];
    struct json json = {.compact = true};

    if (index < s->from || index >= s->from + FILES || export->failed)
        return;
    if (profile->events) {
        fputs(",\n", profile->events);
        if (at < profile->last_ns) /* only in a broken trace: the viewer wants them in order */
            at = profile->last_ns;
    } else if (!(profile->events = tmpfile())) {
        say_error("a temporary file: %s", strerror(errno));
        export->failed = true;
        return;
    } else {
        profile->first_ns = at;
    }
    profile->last_ns = at;
    json.out = profile->events;
    json_object(&json, NULL);
    json_string(&json, "type", type);
    json_integer(&json, "frame", track_top(track)->what);
    json_integer(&json, "at", at);
    json_end(&json);
}

static void speedscope_push(void *context, struct track *track)
{
    struct speedscope *s = ((struct export *)context)->speedscope;
    struct open_frame *frame = track_top(track);

    frame->what = (uint32_t)sorted_count(s->codes.count, i, s->codes.at[i] < frame->code_id);
    if (frame->what < s->codes.count && s->codes.at[frame->what] != frame->code_id)
        frame->what = (uint32_t)s->codes.count;
    event_put(context, track, "O", frame->start_ns);
}

static void speedscope_pop(void *context, struct track *track)
{
    event_put(context, track, "C", track_top(track)->end_ns);
}

/* PROFILE, of the thread that ABOUT is asked about. */
static void profile_put(struct export *export, struct json *json, const struct profile *profile, struct query *about)
{
    char buffer[1 << 16];
    size_t got;

    json_line(json);
    json_object(json, NULL);
    json_string(json, "type", "evented");
    if (query_step(about))
        export_string(json, "name", about, 0);
    json_string(json, "unit", "nanoseconds");
    json_integer(json, "startValue", profile->first_ns);
    json_integer(json, "endValue", profile->last_ns);
    json_list(json, "events");
    json_line(json);
    json_raw(json, NULL, "", 0); /* what is in the file */
    rewind(profile->events);
    while ((got = fread(buffer, 1, sizeof buffer, profile->events)) > 0)
        fwrite(buffer, 1, got, json->out);
    if (ferror(profile->events) && !export->failed) {
        say_error("a temporary file: %s", strerror(errno));
        export->failed = true;
    }
    json_end(json);
    json_end(json);
}

void export_speedscope(struct export *export)
{
    struct json *json = &(struct json){.out = export->out->file, .compact = true};
    struct speedscope *s = export->speedscope = calloc(1, sizeof *s);
    struct query *about = db_query(export->db, schema_statement("export/profile"));
    size_t count = FILES;

    json_object(json, NULL);
    json_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_line(json);
    json_string(json, "exporter", "dyntrace");
    json_string(json, "name", db_path(export->db));
    codes_put(export, json);
    export->progress.what = "exporting frames";
    json_line(json);
    json_list(json, "profiles");
    for (; s->from < count && !export->failed; s->from += FILES) {
        stacks_free(&s->stacks);
        stacks_walk(export->db, &s->stacks, export->end_ns,
                    &(struct walk){.context = export, .tick = frames_tick, .push = speedscope_push, .pop = speedscope_pop});
        count = s->stacks.tracks.count;
        for (size_t i = 0; i < FILES; i++) {
            struct profile *profile = &s->profiles[i];
            if (!profile->events)
                continue;
            query_reset(about);
            query_bind_integer(about, 1, s->stacks.tracks.at[s->from + i].thread_id);
            profile_put(export, json, profile, about);
            fclose(profile->events);
            profile->events = NULL;
        }
    }
    json_end(json);
    json_line(json);
    json_integer(json, "activeProfileIndex", 0);
    json_end(json);
    putc('\n', json->out);
    query_close(about);
    stacks_free(&s->stacks);
    list_free(&s->codes);
    free(s);
}
