/* collector/traced_shim.c -- the shim's facts and decisions become rows.
 *
 * Runs in: the collector. See collector/traced.h; ring.h lists the facts. The process's own
 * ids (entry 3, compilation 7) become row ids here; guards of one entry have row
 * ids in a row, so a guard is named by its entry and its ordinal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/collector.h"
#include "collector/traced.h"
#include "vocabulary.h"

/* What process T calls entry LOCAL, or NULL. */
static struct traced_entry *entry_at(struct traced *t, uint64_t local)
{
    return local < t->entry_count && t->entries[local].entry_id ? &t->entries[local] : NULL;
}

bool traced_entry_room(struct traced *t, uint32_t local)
{
    uint32_t room = t->entry_count ? t->entry_count : 64;
    struct traced_entry *more;

    if (local < t->entry_count)
        return true;
    if (local >= TRACED_IDS_MAX)
        return false;
    while (room <= local)
        room *= 2;
    more = realloc(t->entries, room * sizeof *more);
    if (!more)
        return false;
    memset(more + t->entry_count, 0, (room - t->entry_count) * sizeof *more);
    t->entries = more;
    t->entry_count = room;
    return true;
}

/* The row id of compilation LOCAL, which FACT_ASKED has given. 0: none. */
static uint32_t compile_id(const struct traced *t, uint64_t local)
{
    return local < t->compile_count ? t->compiles[local] : 0;
}

/* The row id of code object LOCAL. 0: none. */
static uint32_t code_id(const struct traced *t, uint64_t local)
{
    return local < t->codes.count ? t->codes.id[local] : 0;
}

static uint32_t note_id(struct traced *t, struct fact *shared)
{
    return traced_row_id(shared, &t->collector->state.header->next_note, t->collector->resumed);
}

/* A wall clock time in the session's. */
static uint64_t since_start(const struct traced *t, uint64_t unix_ns)
{
    uint64_t start = t->collector->session->file->start_unix_ns;

    return unix_ns > start ? unix_ns - start : 0;
}

/* Part number PART of a text of NUL-separated parts. */
static struct recorder_text part_of(const char *text, uint32_t bytes, int part)
{
    const char *end = text + bytes;

    for (; part; part--) {
        const char *stop = memchr(text, 0, (size_t)(end - text));
        if (!stop)
            return (struct recorder_text){"", 0};
        text = stop + 1;
    }
    return (struct recorder_text){text, (int)strnlen(text, (size_t)(end - text))};
}

static void take_entry(struct traced *t, const struct fact *fact, struct fact *shared)
{
    struct state_header *next = t->collector->state.header;
    struct traced_entry *entry;
    uint32_t bytes = fact->text_bytes[0];

    if (!traced_entry_room(t, fact->id))
        return;
    entry = &t->entries[fact->id];
    entry->entry_id = traced_row_id(shared, &next->next_entry, t->collector->resumed);
    entry->guards = (uint32_t)fact->number[2] < TRACED_IDS_MAX ? (uint32_t)fact->number[2] : 0;
    if (!t->collector->resumed || !fact->row_more || fact->row_more + (uint64_t)entry->guards > next->next_guard) {
        shared->row_more = next->next_guard;
        next->next_guard += entry->guards;
    }
    entry->guard_id = shared->row_more;
    recorder_entry(t->collector->recorder, entry->entry_id,
                   code_id(t, fact->number[0]), (struct recorder_text){fact->text, (int)bytes},
                   (struct recorder_text){fact->text + bytes, (int)fact->text_bytes[1]},
                   (int64_t)(fact->number[2] >> 32) - 1, entry->guards,
                   decode_ns(&t->collector->decode, fact->number[1]));
}

static void take_cause(struct traced *t, const struct fact *fact, struct fact *shared)
{
    const char *text = fact->text;
    struct traced_entry *entry = entry_at(t, fact->number[0]);
    uint32_t compile = compile_id(t, fact->id), bytes = fact->text_bytes[0], more = fact->text_bytes[1];
    int64_t guard = (int64_t)fact->number[1];
    uint32_t how = (uint32_t)fact->number[2];

    if (entry && compile)
        recorder_cause(t->collector->recorder, &(struct recorder_cause){
            .note_id = note_id(t, shared), .compile_id = compile, .entry_id = entry->entry_id, .ordinal = how == 1,
            .guard_id = guard >= 0 && guard < entry->guards ? entry->guard_id + (uint32_t)guard : 0,
            .kind = part_of(text, bytes, 0), .source = part_of(text, bytes, 1), .aspect = part_of(text, bytes, 2),
            .dimension = (int)(uint32_t)(fact->number[2] >> 32) - 1, .expected = part_of(text, bytes, 3),
            .actual = part_of(text + bytes, more, 0), .words = part_of(text + bytes, more, 1), .again = how != 0});
}

static void take_graph(struct traced *t, const struct fact *fact, struct fact *shared)
{
    uint32_t compile = compile_id(t, fact->id), id, bytes = fact->text_bytes[0], nodes = 0;
    const char *at = fact->text + bytes, *end = at + fact->text_bytes[1];

    if (!compile)
        return;
    id = traced_row_id(shared, &t->collector->state.header->next_graph, t->collector->resumed);
    while (at < end) {
        struct recorder_text fields[5];
        int field;
        for (field = 0; field < 5; field++) {
            const char *stop = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
            if (!stop)
                break;
            fields[field] = (struct recorder_text){at, (int)(stop - at)};
            at = stop + 1;
        }
        if (field < 5)
            break; /* cut off */
        recorder_graph_node(t->collector->recorder, id, nodes++, fields);
    }
    recorder_graph(t->collector->recorder, id, compile, (struct recorder_text){fact->text, (int)bytes}, nodes);
}

static void take_mark(struct traced *t, const struct fact *fact, struct fact *shared)
{
    static const char *const actions[] = {"default", "skip", "run_only"};
    unsigned own = fact->number[1] & 255, callees = fact->number[1] >> 8 & 255;

    if (code_id(t, fact->id) && own < 3 && callees < 3)
        recorder_mark(t->collector->recorder, note_id(t, shared), code_id(t, fact->id),
                      decode_ns(&t->collector->decode, fact->number[0]), actions[own], actions[callees],
                      (int64_t)fact->number[2] - 1, (struct recorder_text){fact->text, (int)fact->text_bytes[0]});
}

/* Torch's version, and how it is watched. */
static void take_torch(struct traced *t, const struct fact *fact)
{
    uint32_t bytes = fact->text_bytes[0], more = fact->text_bytes[1];
    struct recorder_text mode = part_of(fact->text + bytes, more, 0), why = part_of(fact->text + bytes, more, 1);

    free(t->torch[0]);
    free(t->torch[1]);
    free(t->torch[2]);
    t->torch[0] = strndup(fact->text, bytes);
    t->torch[1] = strndup(mode.text, (size_t)mode.bytes);
    t->torch[2] = why.bytes ? strndup(why.text, (size_t)why.bytes) : NULL;
    if (t->torch[2] && !t->collector->torch_note[0])
        snprintf(t->collector->torch_note, sizeof t->collector->torch_note, "%s", t->torch[2]);
    t->changed = true;
}

/* What torch's bridge notes of a compile. */
static void traced_note(struct traced *t, const struct fact *fact, struct fact *shared)
{
    struct recorder *r = t->collector->recorder;
    uint32_t bytes = fact->text_bytes[0], compile = compile_id(t, fact->id);
    struct recorder_text first = {fact->text, (int)bytes}, second = {fact->text + bytes, (int)fact->text_bytes[1]};

    switch (fact->kind) {
    case FACT_NOTE:
        if (compile)
            recorder_note(r, compile, part_of(fact->text, bytes, 0), part_of(fact->text, bytes, 1), second,
                          fact->number[0] < 2 ? (int)fact->number[0] : 2);
        break;
    case FACT_GRAPH:
        take_graph(t, fact, shared);
        break;
    case FACT_BREAK:
        if (compile)
            recorder_break(r, note_id(t, shared), compile, fact->number[0] ? code_id(t, fact->number[0] - 1) : 0,
                           (int32_t)(fact->number[1] >> 32), (int64_t)(fact->number[1] & UINT32_MAX) - 1, first, second,
                           fact->number[2] ? code_id(t, fact->number[2] - 1) : 0);
        break;
    case FACT_LISTING:
        if (compile)
            recorder_listing(r, note_id(t, shared), compile, first, second);
        break;
    case FACT_PHASE:
        recorder_phase(r, note_id(t, shared), fact->id ? compile_id(t, fact->id - 1) : 0, first, since_start(t, fact->number[0]),
                       since_start(t, fact->number[1]), second);
        break;
    case FACT_ORIGIN:
        if (code_id(t, fact->id))
            recorder_origin(r, code_id(t, fact->id), fact->number[0] ? code_id(t, fact->number[0] - 1) : 0, first);
        break;
    case FACT_MARK:
        take_mark(t, fact, shared);
        break;
    case FACT_TORCH:
        take_torch(t, fact);
        break;
    default:
        break; /* of a newer dyntrace: not ours to judge */
    }
}

void traced_shim_fact(struct traced *t, const struct fact *fact, struct fact *shared)
{
    struct collector *c = t->collector;
    uint32_t bytes = fact->text_bytes[0];
    struct recorder_text first = {fact->text, (int)bytes}, second = {fact->text + bytes, (int)fact->text_bytes[1]};
    struct traced_entry *entry;

    switch (fact->kind) {
    case FACT_ENTRY:
        take_entry(t, fact, shared);
        break;
    case FACT_GUARD:
        entry = entry_at(t, fact->id);
        if (entry && fact->number[0] < entry->guards)
            recorder_guard(c->recorder, entry->guard_id + (uint32_t)fact->number[0], entry->entry_id,
                           (uint32_t)fact->number[0], part_of(fact->text, bytes, 0), part_of(fact->text, bytes, 1), second,
                           part_of(fact->text, bytes, 2));
        break;
    case FACT_ASKED:
        if (traced_room_for(&t->compiles, &t->compile_count, fact->id)) {
            t->compiles[fact->id] = traced_row_id(shared, &c->state.header->next_compile, c->resumed);
            recorder_compile_begun(c->recorder, t->compiles[fact->id], code_id(t, fact->number[0]),
                                   decode_ns(&c->decode, fact->number[1]));
        }
        break;
    case FACT_COMPILE:
        if (compile_id(t, fact->id))
            recorder_compile(c->recorder, compile_id(t, fact->id), code_id(t, fact->number[0]),
                             part_of(fact->text, bytes, 0), part_of(fact->text, bytes, 1), second,
                             decode_ns(&c->decode, fact->number[1]), decode_ns(&c->decode, fact->number[2]));
        break;
    case FACT_COMPILED:
        entry = entry_at(t, fact->number[0]);
        if (entry && compile_id(t, fact->id))
            recorder_compile_entry(c->recorder, compile_id(t, fact->id), entry->entry_id);
        break;
    case FACT_CAUSE:
        take_cause(t, fact, shared);
        break;
    case FACT_ORDER:
        entry = entry_at(t, fact->id);
        if (entry)
            recorder_guard_order(c->recorder, note_id(t, shared), entry->entry_id, decode_ns(&c->decode, fact->number[0]), first);
        break;
    case FACT_DEATH:
        entry = entry_at(t, fact->id);
        if (entry)
            recorder_entry_died(c->recorder, entry->entry_id, decode_ns(&c->decode, fact->number[0]), first);
        break;
    case FACT_SIGNATURE:
        if (traced_room_for(&t->signatures, &t->signature_count, fact->id)) {
            t->signatures[fact->id] = traced_row_id(shared, &c->state.header->next_signature, c->resumed);
            recorder_signature(c->recorder, t->signatures[fact->id], first);
        }
        break;
    default:
        traced_note(t, fact, shared);
        break;
    }
}

uint32_t traced_shim_entry(void *context, uint32_t local)
{
    struct traced *t = context;

    if (!entry_at(t, local))
        traced_facts(t);
    return entry_at(t, local) ? entry_at(t, local)->entry_id : 0;
}

void traced_shim_late_entry(void *context, uint64_t frame_id, uint32_t cache_entry_id)
{
    struct traced *t = context;

    recorder_late_entry(t->collector->recorder, frame_id, cache_entry_id);
}

/* Did D try an entry of which nothing was read yet? Another thread may have made any of them just now. */
static bool tries_unknown(struct traced *t, const struct decode_decision *d)
{
    for (uint32_t i = 0; i < d->count; i++)
        if (!entry_at(t, d->checks[i].entry))
            return true;
    return false;
}

void traced_shim_decision(void *context, const struct decode_decision *d)
{
    struct traced *t = context;
    struct recorder *r = t->collector->recorder;
    struct state_header *next = t->collector->state.header;
    struct recorder_lookup lookup = {
        .lookup_id = next->next_lookup++, .frame_id = d->frame_id, .thread_id = d->thread_id, .code_id = d->code_id,
        .start_ns = d->start_ns, .duration_ns = d->duration_ns, .outcome = d->outcome, .entry_id = d->cache_entry_id};

    if (d->compile || d->signature || tries_unknown(t, d))
        traced_facts(t);
    if (d->signature && d->signature <= t->signature_count)
        lookup.signature_id = t->signatures[d->signature - 1];
    for (uint32_t i = 0, position = 0; i < d->count; i++) {
        const struct decode_check *c = &d->checks[i];
        struct traced_entry *entry = entry_at(t, c->entry);
        if (!entry || c->result >= CHECK_RESULTS)
            continue;
        lookup.checked += c->result != CHECK_BACKEND_MISMATCH;
        recorder_check(r, &(struct recorder_check){
            .check_id = next->next_check++, .lookup_id = lookup.lookup_id, .position = position++, .entry_id = entry->entry_id,
            .result = c->result,
            .failed_guard_id = c->failed && c->failed <= entry->guards ? entry->guard_id + c->failed - 1 : 0,
            .guards_run = c->guards_run || c->result != CHECK_FAIL ? (int64_t)c->guards_run : -1,
            .duration_ns = c->ticks == RING_TICKS_UNKNOWN ? -1
                : (int64_t)decode_ns(&t->collector->decode, t->collector->decode.start_clock + c->ticks)});
    }
    if (d->observed)
        lookup.checked = RECORDER_UNKNOWN;
    recorder_lookup(r, &lookup);
    if (d->compile && compile_id(t, d->compile - 1))
        recorder_compile_frame(r, compile_id(t, d->compile - 1), d->frame_id, d->thread_id);
}
