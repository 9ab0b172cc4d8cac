/* collector/facts.c -- what a process says beside its rings becomes rows: facts, and what the shim decided.
 *
 * Runs in: the collector. See collector/traced.h; facts.h lists the facts. The process's own ids (entry 3, compile 7) become
 * row ids here; the guards of an entry have row ids that follow each other, so a guard is named by its entry and its
 * ordinal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/traced.h"
#include "lib/json.h"
#include "vocabulary.h"

enum { FACT_MAX = 64 << 20 /* bytes of one record that we believe */ };

/* Room for element ID in an array of *COUNT elements of SIZE bytes; new ones are zero. */
static bool room_for(void *array, uint32_t *count, uint64_t id, size_t size)
{
    uint32_t room = *count ? *count : 64;
    char *more;

    if (id < *count)
        return true;
    if (id >= TRACED_IDS_MAX)
        return false;
    while (room <= id)
        room *= 2;
    memcpy(&more, array, sizeof more); /* ARRAY is where the pointer is, whatever it points to */
    more = realloc(more, room * size);
    if (!more)
        return false;
    memset(more + *count * size, 0, (room - *count) * size);
    memcpy(array, &more, sizeof more);
    *count = room;
    return true;
}

/* The row id that the fact already has (a killed collector gave it), or a new one. */
static uint32_t row_id(struct traced *t, struct fact *shared, uint32_t *next)
{
    if (!t->collector->resumed || !shared->row_id || shared->row_id >= *next)
        shared->row_id = (*next)++;
    return shared->row_id;
}

/* The row of a table without ids of its own. */
static uint32_t note_id(struct traced *t, struct fact *shared)
{
    return row_id(t, shared, &t->collector->state.header->next_note);
}

/* The row ids of what process T calls entry, compile, code LOCAL; 0 (NULL): none. */
static struct traced_entry *entry_at(struct traced *t, int64_t local)
{
    return local >= 0 && local < t->entry_count && t->entries[local].entry_id ? &t->entries[local] : NULL;
}

static uint32_t compile_id(const struct traced *t, int64_t local)
{
    return local >= 0 && local < t->compile_count ? t->compiles[local] : 0;
}

static uint32_t code_id(const struct traced *t, int64_t local)
{
    return local >= 0 && local < t->codes.count ? t->codes.id[local] : 0;
}

static uint32_t guard_id(const struct traced_entry *entry, int64_t ordinal)
{
    return ordinal >= 0 && ordinal < entry->guards ? entry->guard_id + (uint32_t)ordinal : 0;
}

static int64_t session_ns(const struct traced *t, int64_t clock)
{
    return (int64_t)decode_ns(&t->collector->decode, (uint64_t)clock);
}

/* A wall clock time in the session's. */
static int64_t since_start(const struct traced *t, int64_t unix_ns)
{
    int64_t start = (int64_t)t->collector->session->file->start_unix_ns;

    return unix_ns > start ? unix_ns - start : 0;
}

static struct row_text row_text(struct fact_text text)
{
    return (struct row_text){text.text, (int64_t)text.bytes};
}

static void keep_text(struct traced *t, char **kept, struct fact_text text)
{
    free(*kept);
    *kept = text.bytes ? strndup(text.text, text.bytes) : NULL;
    t->changed = true;
}

/* ---- each fact ---- */

/* The words of schemas/trace.sql for what a code object is. */
static const char *code_kind(const struct fact_CODE *code)
{
    enum { NEW_LOCALS = 2, GENERATOR = 0x20, COROUTINE = 0x80, ASYNC_GENERATOR = 0x200 }; /* co_flags */
    static const char *const names[][2] = {{"<listcomp>", "comprehension"}, {"<setcomp>", "comprehension"},
                                           {"<dictcomp>", "comprehension"}, {"<lambda>", "lambda"}, {"<module>", "module"}};
    const char *name = code->qualname.text, *end = name + code->qualname.bytes, *dot;

    /* The last part of the qualified name: "<locals>.f.<lambda>" -> "<lambda>". */
    for (dot = end; dot > name && dot[-1] != '.'; dot--)
        ;
    if (code->flags & COROUTINE)
        return "coroutine";
    if (code->flags & ASYNC_GENERATOR)
        return "async_generator";
    if (code->flags & GENERATOR)
        return "generator";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((size_t)(end - dot) == strlen(names[i][0]) && !memcmp(dot, names[i][0], (size_t)(end - dot)))
            return names[i][1];
    return code->flags & NEW_LOCALS ? "function" : "class";
}

static void take_code(struct traced *t, const struct fact_CODE *code, struct fact *shared)
{
    if (room_for(&t->codes.id, &t->codes.count, (uint64_t)code->code, sizeof *t->codes.id))
        recorder_put(t->collector->recorder, CODE,
                     .code_id = t->codes.id[code->code] = row_id(t, shared, &t->collector->state.header->next_code),
                     .process_id = t->row.process_id, .filename = row_text(code->filename), .qualname = row_text(code->qualname),
                     .first_line = code->first_line, .kind = ROW_TEXT(code_kind(code)), .fingerprint = code->fingerprint);
}

static void take_entry(struct traced *t, const struct fact_ENTRY *fact, struct fact *shared)
{
    struct state_header *next = t->collector->state.header;
    struct traced_entry *entry;

    if (!room_for(&t->entries, &t->entry_count, (uint64_t)fact->entry, sizeof *t->entries))
        return;
    entry = &t->entries[fact->entry];
    entry->entry_id = row_id(t, shared, &next->next_entry);
    entry->guards = fact->guards >= 0 && fact->guards < TRACED_IDS_MAX ? (uint32_t)fact->guards : 0;
    if (!t->collector->resumed || !shared->row_more || shared->row_more + (uint64_t)entry->guards > next->next_guard) {
        shared->row_more = next->next_guard;
        next->next_guard += entry->guards;
    }
    entry->guard_id = shared->row_more;
    recorder_put(t->collector->recorder, ENTRY, .cache_entry_id = entry->entry_id, .code_id = code_id(t, fact->code),
                 .label = row_text(fact->label), .backend = row_text(fact->backend), .region_id = fact->region < 0 ? ROW_NONE : fact->region,
                 .guard_count = entry->guards, .born_ns = session_ns(t, fact->clock));
}

static void take_cause(struct traced *t, const struct fact_CAUSE *fact, struct fact *shared)
{
    struct traced_entry *entry = entry_at(t, fact->entry);

    if (entry && compile_id(t, fact->compile))
        recorder_put(t->collector->recorder, CAUSE, .rowid = note_id(t, shared), .compile_id = compile_id(t, fact->compile),
                     .cache_entry_id = entry->entry_id, .ordinal = fact->how == CAUSE_ALSO, .guard_id = guard_id(entry, fact->guard),
                     .kind = row_text(fact->kind), .source = row_text(fact->source), .aspect = row_text(fact->aspect),
                     .dimension = fact->dimension < 0 ? ROW_NONE : fact->dimension, .expected = row_text(fact->expected),
                     .actual = row_text(fact->actual), .text = row_text(fact->words),
                     .how = ROW_TEXT(fact->how == CAUSE_DECIDED ? "observed" : "re-checked"));
}

static void take_graph(struct traced *t, const struct fact_GRAPH *fact, struct fact *shared)
{
    const char *at = fact->nodes.text, *end = at + fact->nodes.bytes;
    uint32_t id, nodes = 0;

    if (!compile_id(t, fact->compile))
        return;
    id = row_id(t, shared, &t->collector->state.header->next_graph);
    while (at < end) {
        struct row_text fields[5];
        int field;
        for (field = 0; field < 5; field++) {
            const char *stop = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
            if (!stop)
                break;
            fields[field] = (struct row_text){at, stop - at};
            at = stop + 1;
        }
        if (field < 5)
            break; /* cut off */
        recorder_put(t->collector->recorder, GRAPH_NODE, .graph_id = id, .ordinal = nodes++, .opcode = fields[0], .name = fields[1],
                     .target = fields[2], .args = fields[3], .kwargs = fields[4]);
    }
    recorder_put(t->collector->recorder, GRAPH, .graph_id = id, .compile_id = compile_id(t, fact->compile), .name = row_text(fact->name),
                 .node_count = nodes);
}

static void take_mark(struct traced *t, const struct fact_MARK *fact, struct fact *shared)
{
    static const char *const actions[] = {"default", "skip", "run_only"};

    if (code_id(t, fact->code) && (uint64_t)fact->own < 3 && (uint64_t)fact->callees < 3)
        recorder_put(t->collector->recorder, MARK, .rowid = note_id(t, shared), .code_id = code_id(t, fact->code),
                     .at_ns = session_ns(t, fact->clock), .action = ROW_TEXT(actions[fact->own]),
                     .recursive_action = ROW_TEXT(actions[fact->callees]), .region_id = fact->region < 0 ? ROW_NONE : fact->region,
                     .reason = row_text(fact->reason));
}

/* What torch's bridge notes of a compile. */
static void take_note(struct traced *t, enum fact_kind kind, const union fact_any *fact, struct fact *shared)
{
    struct recorder *r = t->collector->recorder;
    uint32_t compile = compile_id(t, fact->numbers[0]);

    switch (kind) {
    case FACT_NOTE:
        if (compile)
            recorder_put(r, COMPILE_NOTE, .compile_id = compile, .label = row_text(fact->NOTE.label), .outcome = row_text(fact->NOTE.outcome),
                         .reason = row_text(fact->NOTE.reason), .sticky = fact->NOTE.sticky < 0 ? ROW_NONE : fact->NOTE.sticky);
        break;
    case FACT_GRAPH:
        take_graph(t, &fact->GRAPH, shared);
        break;
    case FACT_BREAK:
        if (compile)
            recorder_put(r, BREAK, .graph_break_id = note_id(t, shared), .compile_id = compile, .code_id = code_id(t, fact->BREAK.code),
                         .line = fact->BREAK.line, .offset = fact->BREAK.offset < 0 ? ROW_NONE : fact->BREAK.offset,
                         .reason = row_text(fact->BREAK.reason), .user_stack = row_text(fact->BREAK.stack),
                         .resume_code_id = code_id(t, fact->BREAK.rest));
        break;
    case FACT_LISTING:
        if (compile)
            recorder_put(r, LISTING, .rowid = note_id(t, shared), .compile_id = compile, .kind = row_text(fact->LISTING.kind),
                         .text = row_text(fact->LISTING.text));
        break;
    case FACT_PHASE:
        recorder_put(r, PHASE, .rowid = note_id(t, shared), .compile_id = compile, .name = row_text(fact->PHASE.name),
                     .start_ns = since_start(t, fact->PHASE.start), .end_ns = since_start(t, fact->PHASE.end),
                     .label = row_text(fact->PHASE.label));
        break;
    case FACT_ORIGIN:
        if (code_id(t, fact->ORIGIN.code))
            recorder_put(r, ORIGIN, .code_id = code_id(t, fact->ORIGIN.code), .origin_code_id = code_id(t, fact->ORIGIN.from),
                         .kind = row_text(fact->ORIGIN.kind));
        break;
    case FACT_TORCH:
        keep_text(t, &t->torch[0], fact->TORCH.version);
        if (!t->torch[0])
            t->torch[0] = strdup(""); /* a torch without a version; NULL is no torch */
        keep_text(t, &t->torch[1], fact->TORCH.mode);
        keep_text(t, &t->torch[2], fact->TORCH.why);
        if (t->torch[2] && !t->collector->torch_note[0])
            snprintf(t->collector->torch_note, sizeof t->collector->torch_note, "%s", t->torch[2]);
        break;
    default:
        break;
    }
}

/* SHARED, where the row ids are kept, may change or go away at any moment; FACT is a copy. */
static void fact_take(struct traced *t, enum fact_kind kind, const union fact_any *fact, struct fact *shared)
{
    struct collector *c = t->collector;
    struct state_header *next = c->state.header;
    struct traced_entry *entry = entry_at(t, fact->numbers[0]);
    uint32_t compile = compile_id(t, fact->numbers[0]);

    switch (kind) {
    case FACT_ARGV:
        free(t->argv);
        t->argv = json_array(fact->ARGV.argv.text, fact->ARGV.argv.bytes);
        t->changed = true;
        break;
    case FACT_EXECUTABLE:
        keep_text(t, &t->executable, fact->EXECUTABLE.path);
        break;
    case FACT_PYTHON:
        keep_text(t, &t->version, fact->PYTHON.version);
        break;
    case FACT_RANK:
        t->row.rank = fact->RANK.rank;
        t->row.local_rank = fact->RANK.local_rank;
        t->changed = true;
        break;
    case FACT_LOSS:
        collector_loss_row(c, row_id(t, shared, &next->next_loss), t->row.process_id, 0, (uint64_t)session_ns(t, fact->LOSS.clock),
                           (uint64_t)fact->LOSS.events,
                           strndupa(fact->LOSS.cause.text, fact->LOSS.cause.bytes < ROW_CAUSE_MAX ? fact->LOSS.cause.bytes : ROW_CAUSE_MAX));
        break;
    case FACT_THREAD:
        if (room_for(&t->threads, &t->thread_count, (uint64_t)fact->THREAD.thread, sizeof *t->threads))
            recorder_put(c->recorder, THREAD, .thread_id = t->threads[fact->THREAD.thread] = row_id(t, shared, &next->next_thread),
                         .process_id = t->row.process_id, .os_tid = fact->THREAD.os_tid, .name = row_text(fact->THREAD.name));
        break;
    case FACT_CODE:
        take_code(t, &fact->CODE, shared);
        break;
    case FACT_ENTRY:
        take_entry(t, &fact->ENTRY, shared);
        break;
    case FACT_GUARD:
        if (entry && guard_id(entry, fact->GUARD.ordinal))
            recorder_put(c->recorder, GUARD, .guard_id = guard_id(entry, fact->GUARD.ordinal), .cache_entry_id = entry->entry_id,
                         .ordinal = fact->GUARD.ordinal, .kind = row_text(fact->GUARD.kind), .source = row_text(fact->GUARD.source),
                         .expression = row_text(fact->GUARD.expression), .user_stack = row_text(fact->GUARD.stack));
        break;
    case FACT_ASKED:
        if (room_for(&t->compiles, &t->compile_count, (uint64_t)fact->ASKED.compile, sizeof *t->compiles))
            recorder_put(c->recorder, COMPILE_BEGUN, .compile_id = t->compiles[fact->ASKED.compile] = row_id(t, shared, &next->next_compile),
                         .code_id = code_id(t, fact->ASKED.code), .start_ns = session_ns(t, fact->ASKED.clock));
        break;
    case FACT_COMPILE:
        if (compile)
            recorder_put(c->recorder, COMPILE, .compile_id = compile, .code_id = code_id(t, fact->COMPILE.code),
                         .label = row_text(fact->COMPILE.label), .outcome = row_text(fact->COMPILE.outcome),
                         .reason = row_text(fact->COMPILE.reason), .start_ns = session_ns(t, fact->COMPILE.began),
                         .end_ns = session_ns(t, fact->COMPILE.ended));
        break;
    case FACT_COMPILED:
        if (compile && (entry = entry_at(t, fact->COMPILED.entry))) {
            recorder_put(c->recorder, COMPILE_ENTRY, .compile_id = compile, .cache_entry_id = entry->entry_id);
            recorder_put(c->recorder, ENTRY_COMPILE, .cache_entry_id = entry->entry_id, .compile_id = compile);
        }
        break;
    case FACT_CAUSE:
        take_cause(t, &fact->CAUSE, shared);
        break;
    case FACT_ORDER:
        if (entry)
            recorder_put(c->recorder, GUARD_ORDER, .rowid = note_id(t, shared), .cache_entry_id = entry->entry_id,
                         .from_ns = session_ns(t, fact->ORDER.clock), .ordinals = row_text(fact->ORDER.ordinals));
        break;
    case FACT_DEATH:
        if (entry)
            recorder_put(c->recorder, ENTRY_DIED, .cache_entry_id = entry->entry_id, .died_ns = session_ns(t, fact->DEATH.clock),
                         .death_cause = row_text(fact->DEATH.cause));
        break;
    case FACT_SIGNATURE:
        if (room_for(&t->signatures, &t->signature_count, (uint64_t)fact->SIGNATURE.signature, sizeof *t->signatures))
            recorder_put(c->recorder, SIGNATURE, .text = row_text(fact->SIGNATURE.text),
                         .signature_id = t->signatures[fact->SIGNATURE.signature] = row_id(t, shared, &next->next_signature));
        break;
    case FACT_MARK:
        take_mark(t, &fact->MARK, shared);
        break;
    default:
        take_note(t, kind, fact, shared);
        break;
    }
}

/* ---- reading them ---- */

bool traced_facts_next(struct traced *t, uint64_t at)
{
    struct facts *chunk = traced_map(t, at, 4096);
    uint64_t bytes = chunk ? chunk->bytes : 0;

    if (chunk)
        munmap(chunk, 4096);
    chunk = bytes && bytes < UINT32_MAX ? traced_map(t, at, bytes + sizeof *chunk) : NULL;
    if (!chunk || (t->facts && at <= t->facts_off)) { /* a chain that leads back would never end */
        if (chunk)
            munmap(chunk, bytes + sizeof *chunk);
        traced_broken(t, "its names lie outside the file");
        return false;
    }
    if (t->facts)
        munmap(t->facts, t->facts_bytes);
    t->facts = chunk;
    t->facts_off = at;
    t->facts_bytes = bytes + sizeof *chunk;
    t->facts_read = 0;
    return true;
}

/* SQLite must not meet memory that can go away: facts are copied first. */
static bool copy_room(struct collector *c, size_t bytes)
{
    struct fact *more;

    if (bytes <= c->fact_room)
        return true;
    more = realloc(c->fact, bytes * 2);
    if (!more)
        return false;
    c->fact = more;
    c->fact_room = bytes * 2;
    return true;
}

void traced_facts(struct traced *t)
{
    while (!t->broken && t->facts) {
        uint64_t used = atomic_load_explicit(&t->facts->used, memory_order_acquire), next;
        uint64_t end = t->facts_bytes - sizeof *t->facts;
        while (t->facts_read < used) {
            struct fact *shared = (struct fact *)(t->facts->data + t->facts_read), head;
            union fact_any fact;
            if (used > end || end - t->facts_read < sizeof *shared) {
                traced_broken(t, "its names do not end where they say");
                return;
            }
            head = *shared; /* what is checked must not change before it is used */
            if (head.bytes < sizeof *shared || head.bytes % 8 || head.bytes > used - t->facts_read || head.bytes > FACT_MAX) {
                traced_broken(t, "a name's length makes no sense");
                return;
            }
            if (!copy_room(t->collector, head.bytes)) {
                traced_broken(t, "no memory for a name of it");
                return;
            }
            memcpy(t->collector->fact, shared, head.bytes);
            *t->collector->fact = head;
            if (!fact_read(t->collector->fact, &fact)) {
                traced_broken(t, "a name's length makes no sense");
                return;
            }
            fact_take(t, (enum fact_kind)head.kind, &fact, shared);
            t->facts_read += head.bytes;
        }
        next = t->facts->next_off;
        if (!next || used != atomic_load_explicit(&t->facts->used, memory_order_acquire) || !traced_facts_next(t, next))
            return;
    }
}

/* COUNT elements of the parent's array FROM, which has ROOM. */
static void inherit_ids(void *array, uint32_t *have, const void *from, uint32_t room, uint32_t count, size_t size)
{
    char *to;

    if (!count || count > room || !room_for(array, have, count - 1, size))
        return;
    memcpy(&to, array, sizeof to);
    memcpy(to, from, count * size);
}

void traced_inherit(struct traced *t, struct traced *parent)
{
    traced_facts(parent);
    t->row.parent_process_id = parent->row.process_id;
    t->row.rank = parent->row.rank;
    t->row.local_rank = parent->row.local_rank;
    for (int i = 0; i < 3; i++)
        t->torch[i] = parent->torch[i] ? strdup(parent->torch[i]) : NULL;
    t->argv = parent->argv ? strdup(parent->argv) : NULL;
    t->executable = parent->executable ? strdup(parent->executable) : NULL;
    t->version = parent->version ? strdup(parent->version) : NULL;
    inherit_ids(&t->codes.id, &t->codes.count, parent->codes.id, parent->codes.count, t->file->inherited_codes, sizeof *t->codes.id);
    inherit_ids(&t->entries, &t->entry_count, parent->entries, parent->entry_count, t->file->inherited_entries, sizeof *t->entries);
    inherit_ids(&t->signatures, &t->signature_count, parent->signatures, parent->signature_count, t->file->inherited_signatures,
                sizeof *t->signatures);
}

/* ---- what a decoder asks ---- */

static uint32_t host_code(void *context, uint32_t local)
{
    struct traced *t = context;
    struct collector *c = t->collector;

    traced_facts(t);
    if (code_id(t, local))
        return code_id(t, local);
    if (!t->unknown_code) { /* its fact found no room, or the ring is not to be trusted */
        t->unknown_code = c->state.header->next_code++;
        recorder_put(c->recorder, CODE, .code_id = t->unknown_code, .process_id = t->row.process_id, .filename = ROW_TEXT(""),
                     .qualname = ROW_TEXT("(unknown code)"), .kind = ROW_TEXT("function"));
        collector_loss(c, t->row.process_id, 0, collector_now_ns(c), 0,
                       "names: no room for the names of some code; its frames are of \"(unknown code)\"");
    }
    return t->unknown_code;
}

static uint32_t host_thread(void *context, uint32_t local)
{
    struct traced *t = context;
    uint32_t id;

    traced_facts(t);
    if (local < t->thread_count && t->threads[local])
        return t->threads[local];
    id = t->collector->state.header->next_thread++;
    recorder_put(t->collector->recorder, THREAD, .thread_id = id, .process_id = t->row.process_id, .os_tid = ROW_NONE);
    return id;
}

static uint32_t host_entry(void *context, uint32_t local)
{
    struct traced *t = context;

    if (!entry_at(t, local))
        traced_facts(t);
    return entry_at(t, local) ? entry_at(t, local)->entry_id : 0;
}

static void host_late_entry(void *context, uint64_t frame_id, uint32_t cache_entry_id)
{
    struct traced *t = context;

    recorder_put(t->collector->recorder, LATE_ENTRY, .frame_id = frame_id, .cache_entry_id = cache_entry_id);
}

static void host_loss(void *context, uint32_t thread_id, uint64_t at_ns, uint64_t events, const char *cause)
{
    struct traced *t = context;

    collector_loss(t->collector, t->row.process_id, thread_id, at_ns, events, cause);
}

/* Did D try an entry whose facts were not read yet? Another thread may have made it just now. */
static bool tries_unknown(struct traced *t, const struct decode_decision *d)
{
    for (uint32_t i = 0; i < d->count; i++)
        if (!entry_at(t, d->checks[i].entry))
            return true;
    return false;
}

static void host_decision(void *context, const struct decode_decision *d)
{
    struct traced *t = context;
    struct recorder *r = t->collector->recorder;
    struct state_header *next = t->collector->state.header;
    uint64_t lookup_id = next->next_lookup++;
    int64_t checked = 0, position = 0;

    if (d->compile || d->signature || tries_unknown(t, d))
        traced_facts(t);
    for (uint32_t i = 0; i < d->count; i++) {
        const struct decode_check *c = &d->checks[i];
        struct traced_entry *entry = entry_at(t, c->entry);
        if (!entry || c->result >= CHECK_RESULTS)
            continue;
        checked += c->result != CHECK_BACKEND_MISMATCH;
        recorder_put(r, CHECK, .guard_check_id = next->next_check++, .lookup_id = lookup_id, .position = position++,
                     .cache_entry_id = entry->entry_id, .result = ROW_TEXT(check_words[c->result]),
                     .failed_guard_id = c->failed ? guard_id(entry, (int64_t)c->failed - 1) : 0,
                     .guards_run = c->guards_run || c->result != CHECK_FAIL ? (int64_t)c->guards_run : ROW_NONE,
                     .duration_ns = c->ticks == RING_TICKS_UNKNOWN ? ROW_NONE
                                    : session_ns(t, (int64_t)(t->collector->decode.start_clock + c->ticks)));
    }
    recorder_put(r, LOOKUP, .lookup_id = lookup_id, .frame_id = d->frame_id, .thread_id = d->thread_id, .code_id = d->code_id,
                 .start_ns = (int64_t)d->start_ns, .duration_ns = (int64_t)d->duration_ns, .outcome = d->outcome,
                 .cache_entry_id = d->cache_entry_id, .entries_checked = d->observed ? ROW_NONE : checked,
                 .signature_id = d->signature && d->signature <= t->signature_count ? t->signatures[d->signature - 1] : 0);
    if (d->compile && compile_id(t, d->compile - 1))
        recorder_put(r, COMPILE_FRAME, .compile_id = compile_id(t, (int64_t)d->compile - 1), .frame_id = d->frame_id,
                     .thread_id = d->thread_id);
}

struct decode_host traced_host(struct traced *t)
{
    return (struct decode_host){t, &t->codes, host_code, host_thread, host_decision, host_entry, host_late_entry, host_loss};
}
