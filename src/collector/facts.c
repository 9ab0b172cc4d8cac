/* collector/facts.c -- stores a process's facts, and the shim's decisions, as rows.
 *
 * Runs in: the collector. See collector/traced.h; facts.h lists the facts. This file turns the
 * process's own ids (entry 3, compile 7) into row ids. The guards of an entry have consecutive row
 * ids, so an entry and an ordinal tell the row id of a guard. A row with id 0 is not written
 * (recorder_put): it would describe a thing that is not known. */
#include <errno.h>
#include <fnmatch.h>
#include <sys/mman.h>
#include <sys/param.h>

#include "collector/traced.h"
#include "lib/json.h"
#include "schema.h"
#include "vocabulary.h"

/* FACT_MAX: most bytes of one fact; IDS_MAX: most ids of one kind in a process. Larger numbers mean
 * that the file is damaged */
enum { FACT_MAX = 64 << 20, IDS_MAX = 64 << 20 };

enum {
    NAME_MOST = 4096, /* a longer name is cut before it is compared with patterns */
    /* in ns: shorter than any call, so every call of threading's excepthook triggers a snapshot */
    LIMIT_OF_HOOK = 1,
};

/* Return the row id of fact SHARED: the one that a killed collector gave the fact, or a new one
 * from *NEXT. */
static uint32_t get_row_id_of_fact(struct traced *t, struct fact *shared, uint32_t *next)
{
    uint32_t given = t->collector->resumed ? shared->row_id : 0;

    if (given && given < *next)
        return given;
    given = *next;
    shared->row_id = given;
    ++*next;
    return given;
}

/* Return a row id for a fact from the counter next_note, which several tables share. Returns 0 if
 * the thing that the row describes has no row itself (KNOWN is false). */
static uint32_t get_id_from_note_counter(struct traced *t, struct fact *shared, bool known)
{
    return known ? get_row_id_of_fact(t, shared, &t->collector->state.file->header.next_note) : 0;
}

/* Process T has given a new thing the id LOCAL. Give it a row id, store the row id in IDS, and
 * return it. Returns 0 without room. */
static uint32_t assign_row_id(struct traced *t, decode_ids *ids, int64_t local, struct fact *shared,
                              uint32_t *next)
{
    uint32_t *id = (uint64_t)local < IDS_MAX ? list_reach(ids, (size_t)local) : NULL;

    if (!id)
        return 0;
    *id = get_row_id_of_fact(t, shared, next);
    return *id;
}

/* Return the row id of the thing that has the id LOCAL in its process; 0, which is stored as NULL,
 * if it has none. */
static uint32_t find_row_id(const decode_ids *ids, int64_t local)
{
    return (uint64_t)local < ids->count ? ids->at[local] : 0;
}

static const struct traced_entry *find_cache_entry(const struct traced *t, int64_t local)
{
    static const struct traced_entry none;

    return (uint64_t)local < t->entries.count ? &t->entries.at[local] : &none;
}

static uint32_t row_id_of_guard(const struct traced_entry *entry, int64_t ordinal)
{
    return ordinal >= 0 && ordinal < entry->guards ? entry->guard_id + (uint32_t)ordinal : 0;
}

/* Convert NUMBER, where -1 means not known, to a column's value. */
static int64_t number_or_null(int64_t number)
{
    return number < 0 ? ROW_NONE : number;
}

static int64_t clock_to_session_ns(const struct traced *t, int64_t clock)
{
    return (int64_t)decode_clock_to_ns(&t->collector->decode, (uint64_t)clock);
}

/* Convert a wall clock time to the session's time. */
static int64_t wall_clock_to_session_ns(const struct traced *t, int64_t unix_ns)
{
    int64_t start = (int64_t)t->collector->session->file->start_unix_ns;

    return unix_ns > start ? unix_ns - start : 0;
}

/* ---- write the rows for each kind of fact ---- */

/* Return the kind of a code object: a word that schemas/trace.sql lists. */
static const char *name_of_code_kind(const struct fact_CODE *code)
{
    /* co_flags */
    enum { NEW_LOCALS = 2, GENERATOR = 0x20, COROUTINE = 0x80, ASYNC_GENERATOR = 0x200 };
    static const char *const names[][2] = {{"<listcomp>", "comprehension"},
                                           {"<setcomp>", "comprehension"},
                                           {"<dictcomp>", "comprehension"},
                                           {"<lambda>", "lambda"},
                                           {"<module>", "module"}};
    const char *name = code->qualname.text;
    const char *end = name + code->qualname.bytes;
    const char *dot = end;
    size_t bytes;

    /* find the last part of the qualified name: "<locals>.f.<lambda>" -> "<lambda>" */
    while (dot > name && dot[-1] != '.')
        dot--;
    bytes = (size_t)(end - dot);
    if (code->flags & COROUTINE)
        return "coroutine";
    if (code->flags & ASYNC_GENERATOR)
        return "async_generator";
    if (code->flags & GENERATOR)
        return "generator";
    for (size_t i = 0; i < array_count(names); i++) {
        const char *name = names[i][0];
        if (bytes == strlen(name) && !memcmp(dot, name, bytes))
            return names[i][1];
    }
    return code->flags & NEW_LOCALS ? "function" : "class";
}

/* Return the first row id of ENTRY's guards: the one that a killed collector gave, or a new one. */
static uint32_t get_first_guard_id(struct traced *t, const struct traced_entry *entry,
                                   struct fact *shared)
{
    struct state_header *next = &t->collector->state.file->header;
    uint32_t first = shared->row_more; /* read once, because the program can change it */
    bool given = t->collector->resumed && first;

    if (given && first + (uint64_t)entry->guards <= next->next_guard)
        return first;
    first = next->next_guard;
    shared->row_more = first;
    next->next_guard += entry->guards;
    return first;
}

static void store_entry(struct traced *t, const struct fact_ENTRY *fact, struct fact *shared)
{
    struct state_header *next = &t->collector->state.file->header;
    bool fits = (uint64_t)fact->entry < IDS_MAX;
    struct traced_entry *entry = fits ? list_reach(&t->entries, (size_t)fact->entry) : NULL;
    uint32_t code_id;

    if (!entry)
        return;
    entry->entry_id = get_row_id_of_fact(t, shared, &next->next_entry);
    entry->guards = 0;
    if (fact->guards >= 0 && fact->guards < IDS_MAX)
        entry->guards = (uint32_t)fact->guards;
    entry->guard_id = get_first_guard_id(t, entry, shared);
    code_id = find_row_id(&t->codes, fact->code);
    recorder_put(t->collector->recorder, ENTRY,
                 {
                     .cache_entry_id = entry->entry_id,
                     .code_id = code_id,
                     .label = fact->label,
                     .backend = fact->backend,
                     .region_id = number_or_null(fact->region),
                     .guard_count = entry->guards,
                     .born_ns = clock_to_session_ns(t, fact->clock),
                 });
}

/* Read the next COUNT texts at *AT, each ended by a NUL, and move *AT behind them. Returns false if
 * there are fewer texts. */
static bool read_texts_of_fact(const char **at, const char *end, struct fact_text *texts, int count)
{
    for (int i = 0; i < count; i++) {
        const char *stop = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;
        if (!stop)
            return false;
        texts[i] = (struct fact_text){*at, stop - *at};
        *at = stop + 1;
    }
    return true;
}

static void store_graph(struct traced *t, const struct fact_GRAPH *fact, struct fact *shared)
{
    struct recorder *r = t->collector->recorder;
    struct state_header *next = &t->collector->state.file->header;
    const char *at = fact->nodes.text;
    const char *end = at + fact->nodes.bytes;
    uint32_t compile = find_row_id(&t->compiles, fact->compile);
    uint32_t id = compile ? get_row_id_of_fact(t, shared, &next->next_graph) : 0;
    uint32_t nodes = 0;
    struct fact_text fields[5];

    while (at < end && read_texts_of_fact(&at, end, fields, 5)) {
        recorder_put(r, GRAPH_NODE,
                     {
                         .graph_id = id,
                         .ordinal = nodes,
                         .opcode = fields[0],
                         .name = fields[1],
                         .target = fields[2],
                         .args = fields[3],
                         .kwargs = fields[4],
                     });
        nodes++;
    }
    recorder_put(r, GRAPH,
                 {
                     .graph_id = id,
                     .compile_id = compile,
                     .name = fact->name,
                     .node_count = nodes,
                 });
}

static void store_compile_mark(struct traced *t, const struct fact_MARK *fact, struct fact *shared)
{
    static const char *const actions[] = {"default", "skip", "run_only"};
    uint32_t code = find_row_id(&t->codes, fact->code);
    bool sound = (uint64_t)fact->own < 3 && (uint64_t)fact->callees < 3;
    const char *own;
    const char *callees;
    uint32_t row;

    if (!sound)
        return;
    own = actions[fact->own];
    callees = actions[fact->callees];
    row = get_id_from_note_counter(t, shared, code);
    recorder_put(t->collector->recorder, MARK,
                 {
                     .rowid = row,
                     .code_id = code,
                     .at_ns = clock_to_session_ns(t, fact->clock),
                     .action = fact_make_text(own),
                     .recursive_action = fact_make_text(callees),
                     .region_id = number_or_null(fact->region),
                     .reason = fact->reason,
                 });
}

static void store_graph_break(struct traced *t, const struct fact_BREAK *fact, uint32_t compile,
                              struct fact *shared)
{
    uint32_t row = get_id_from_note_counter(t, shared, compile);
    uint32_t code_id = find_row_id(&t->codes, fact->code);
    uint32_t resume_code_id = find_row_id(&t->codes, fact->rest);

    recorder_put(t->collector->recorder, BREAK,
                 {
                     .graph_break_id = row,
                     .compile_id = compile,
                     .code_id = code_id,
                     .line = fact->line,
                     .offset = number_or_null(fact->offset),
                     .reason = fact->reason,
                     .user_stack = fact->stack,
                     .resume_code_id = resume_code_id,
                 });
}

static void store_compile_phase(struct traced *t, const struct fact_PHASE *fact, uint32_t compile,
                                struct fact *shared)
{
    uint32_t row = get_id_from_note_counter(t, shared, true);
    int64_t start_ns = wall_clock_to_session_ns(t, fact->start);
    int64_t end_ns = wall_clock_to_session_ns(t, fact->end);

    recorder_put(t->collector->recorder, PHASE,
                 {
                     .rowid = row,
                     .compile_id = compile,
                     .name = fact->name,
                     .start_ns = start_ns,
                     .end_ns = end_ns,
                     .label = fact->label,
                 });
}

/* Record the torch of process T. An unknown version is an empty text: NULL means no torch. */
static void store_torch_version(struct traced *t, const struct fact_TORCH *fact)
{
    struct collector *c = t->collector;
    size_t room = sizeof c->torch_note;

    recorder_put(c->recorder, PROCESS_SAYS,
                 {
                     .process_id = t->row.process_id,
                     .torch_version = fact->version,
                     .torch_mode = fact->mode,
                     .torch_note = fact->why,
                 });
    if (fact->version.bytes > 0)
        c->torch = true;
    if (!c->torch_note[0])
        snprintf(c->torch_note, room, "%.*s", (int)MIN(fact->why.bytes, 511), fact->why.text);
}

/* Store a fact that torch's bridge wrote (tracer/torch/bridge.c): about a compile, about the
 * function that a resume function continues, or about torch's version. */
static void store_fact_of_bridge(struct traced *t, enum fact_kind kind, const union fact_any *fact,
                                 struct fact *shared)
{
    struct recorder *r = t->collector->recorder;
    uint32_t compile = find_row_id(&t->compiles, fact->numbers[0]);

    switch (kind) {
    case FACT_NOTE:
        recorder_put(r, COMPILE_NOTE,
                     {
                         .compile_id = compile,
                         .label = fact->NOTE.label,
                         .outcome = fact->NOTE.outcome,
                         .reason = fact->NOTE.reason,
                         .sticky = number_or_null(fact->NOTE.sticky),
                     });
        break;
    case FACT_GRAPH:
        store_graph(t, &fact->GRAPH, shared);
        break;
    case FACT_BREAK:
        store_graph_break(t, &fact->BREAK, compile, shared);
        break;
    case FACT_LISTING:
        recorder_put(r, LISTING,
                     {
                         .rowid = get_id_from_note_counter(t, shared, compile),
                         .compile_id = compile,
                         .kind = fact->LISTING.kind,
                         .text = fact->LISTING.text,
                     });
        break;
    case FACT_PHASE:
        store_compile_phase(t, &fact->PHASE, compile, shared);
        break;
    case FACT_ORIGIN:
        recorder_put(r, ORIGIN,
                     {
                         .code_id = find_row_id(&t->codes, fact->ORIGIN.code),
                         .origin_code_id = find_row_id(&t->codes, fact->ORIGIN.from),
                         .kind = fact->ORIGIN.kind,
                     });
        break;
    case FACT_TORCH:
        store_torch_version(t, &fact->TORCH);
        break;
    default:
        break;
    }
}

static void store_command_line(struct traced *t, const struct fact_ARGV *fact)
{
    char *argv = json_array(fact->argv.text, (size_t)fact->argv.bytes);

    recorder_put(t->collector->recorder, PROCESS_SAYS,
                 {.process_id = t->row.process_id, .argv = fact_make_text(argv)});
    free(argv);
}

static void store_loss(struct traced *t, const struct fact_LOSS *fact, struct fact *shared)
{
    struct collector *c = t->collector;
    uint64_t *next = &c->state.file->header.next[NEXT_LOSS];
    uint32_t loss = (uint32_t)*next;
    uint64_t at_ns = (uint64_t)clock_to_session_ns(t, fact->clock);
    size_t bytes = MIN((size_t)fact->cause.bytes, ROW_CAUSE_MAX);

    get_row_id_of_fact(t, shared, &loss);
    *next = loss;
    collector_write_loss_row(c, shared->row_id, t->row.process_id, 0, at_ns,
                             (uint64_t)number_or_null(fact->events),
                             strndupa(fact->cause.text, bytes));
}

/* Does PATTERN match the code of FACT: its qualified name or its file? */
static bool does_pattern_match_code(const char *pattern, const struct fact_CODE *fact)
{
    const char *name = strndupa(fact->qualname.text, (size_t)MIN(fact->qualname.bytes, NAME_MOST));
    const char *file = strndupa(fact->filename.text, (size_t)MIN(fact->filename.bytes, NAME_MOST));

    return !fnmatch(pattern, name, 0) || !fnmatch(pattern, file, 0);
}

/* Is this the function to which threading passes an exception that nobody caught? */
static bool is_threading_excepthook(const struct fact_CODE *fact)
{
    return does_pattern_match_code("_make_invoke_excepthook.<locals>.invoke_excepthook", fact);
}

/* Set how long a call of code object ID may take without triggering a snapshot (run
 * --snapshot-on). */
static void set_slow_call_limit(struct collector *c, uint32_t id, const struct fact_CODE *fact)
{
    uint64_t limit_ns = 0;
    uint64_t *limit;

    if (!c->decode.limits_on)
        return;
    list_each(condition, &c->trigger.conditions)
        if (does_pattern_match_code(condition->pattern, fact))
            limit_ns = limit_ns ? MIN(limit_ns, condition->limit_ns) : condition->limit_ns;
    if (c->trigger.on_exception && is_threading_excepthook(fact))
        limit_ns = LIMIT_OF_HOOK;
    limit = limit_ns ? list_reach(&c->decode.limits, id) : NULL;
    if (limit)
        *limit = limit_ns;
}

static void trigger_snapshot(struct collector *c, const char *why)
{
    if (!c->decode.tripped)
        snprintf(c->decode.why_tripped, sizeof c->decode.why_tripped, "%s", why);
    c->decode.tripped = true;
}

void traced_trigger_slow_call(struct traced *t, uint32_t code_id, uint64_t duration_ns)
{
    struct collector *c = t->collector;
    char why[128];

    snprintf(why, sizeof why, "a call took %.3f ms", (double)duration_ns / 1e6);
    trigger_snapshot(
        c, c->decode.limits.at[code_id] == LIMIT_OF_HOOK ? "uncaught exception in a thread" : why);
}

/* Trigger a snapshot if process T ended with a failure, and one of its outermost frames with an
 * exception. Called when either becomes known. */
static void trigger_snapshot_if_failed(struct traced *t)
{
    bool is_uncaught = t->raised && t->failed;

    if (is_uncaught && t->collector->trigger.on_exception)
        trigger_snapshot(t->collector, "a process ended with an uncaught exception");
}

void traced_note_end_of_outermost_frame(struct traced *t, bool raised)
{
    t->raised = t->raised || raised;
    trigger_snapshot_if_failed(t);
}

void traced_note_failure(struct traced *t)
{
    if (t->failed)
        return;
    t->failed = true;
    trigger_snapshot_if_failed(t);
}

static bool is_same_text(struct fact_text text, const char *other)
{
    size_t bytes = strlen(other);

    return (size_t)text.bytes == bytes && memcmp(text.text, other, bytes) == 0;
}

/* Does PATH end in '/' and the first BYTES of FILE? */
static bool does_path_end_in(struct fact_text path, const char *file, size_t bytes)
{
    const char *end;

    if ((size_t)path.bytes <= bytes)
        return false;
    end = path.text + path.bytes - bytes;
    if (end[-1] != '/')
        return false;
    return memcmp(end, file, bytes) == 0;
}

/* Is FACT's code object in the view `waits`? */
static bool is_waiting_function(const struct fact_CODE *fact)
{
#define X(number, NAME, words) words,
    static const char *const waits[] = {WAIT_ROWS(X)};
#undef X

    for (size_t i = 0; i < array_count(waits); i++) {
        const char *colon = strchr(waits[i], ':');
        if (!is_same_text(fact->qualname, colon + 1))
            continue;
        if (does_path_end_in(fact->filename, waits[i], (size_t)(colon - waits[i])))
            return true;
    }
    return false;
}

/* Is FACT's code object the function that imports a module? */
static bool is_import_function(const struct fact_CODE *fact)
{
    return is_same_text(fact->qualname, IMPORT_FUNCTION) &&
           is_same_text(fact->filename, IMPORT_FILE);
}

/* Return to which function the time of FACT's code object belongs. The statement recover/owners
 * finds the same from the rows of a trace. */
static enum code_owner find_owner(const struct fact_CODE *fact)
{
    if (!(fact->place & CODE_OF_LIBRARY))
        return OWNER_ITSELF;
    /* Libraries make code of this name, but so does a program. The view `functions` takes it for
     * the program's. */
    if (is_same_text(fact->filename, "<string>"))
        return OWNER_ITSELF;
    if (is_import_function(fact))
        return OWNER_NOBODY;
    if (is_waiting_function(fact))
        return OWNER_NOBODY;
    return OWNER_CALLER;
}

static void store_code(struct traced *t, const struct fact_CODE *fact, struct fact *shared)
{
    struct state_header *next = &t->collector->state.file->header;
    uint32_t id = assign_row_id(t, &t->codes, fact->code, shared, &next->next_code);

    counts_set_code_place(&t->collector->counts, id, fact->place);
    decode_set_owner(&t->collector->decode, id, find_owner(fact));
    set_slow_call_limit(t->collector, id, fact);
    recorder_put(t->collector->recorder, CODE,
                 {
                     .code_id = id,
                     .process_id = t->row.process_id,
                     .filename = fact->filename,
                     .qualname = fact->qualname,
                     .first_line = fact->first_line,
                     .kind = fact_make_text(name_of_code_kind(fact)),
                     .fingerprint = fact->fingerprint,
                 });
}

static void store_compile(struct traced *t, const struct fact_COMPILE *fact, uint32_t compile)
{
    recorder_put(t->collector->recorder, COMPILE,
                 {
                     .compile_id = compile,
                     .code_id = find_row_id(&t->codes, fact->code),
                     .label = fact->label,
                     .outcome = fact->outcome,
                     .reason = fact->reason,
                     .start_ns = clock_to_session_ns(t, fact->began),
                     .end_ns = clock_to_session_ns(t, fact->ended),
                 });
}

static void store_compile_end(struct traced *t, const struct fact_COMPILED *fact, uint32_t compile)
{
    struct recorder *r = t->collector->recorder;
    uint32_t entry = find_cache_entry(t, fact->entry)->entry_id;

    recorder_put(r, COMPILE_ENTRY, {.compile_id = compile, .cache_entry_id = entry});
    recorder_put(r, ENTRY_COMPILE, {.cache_entry_id = entry, .compile_id = compile});
}

/* Return the trace's word for how a cause was found. */
static const char *word_for_cause_method(int64_t how)
{
    if (how == CAUSE_DECIDED)
        return "observed";
    return how == CAUSE_CUT ? "re-checked in part" : "re-checked";
}

static void store_cause(struct traced *t, const struct fact_CAUSE *fact, uint32_t compile,
                        struct fact *shared)
{
    const struct traced_entry *entry = find_cache_entry(t, fact->entry);
    bool also = fact->how == CAUSE_ALSO || fact->how == CAUSE_CUT;
    uint32_t row = get_id_from_note_counter(t, shared, entry->entry_id && compile);
    uint32_t failed = row_id_of_guard(entry, fact->guard);
    const char *how = word_for_cause_method(fact->how);

    recorder_put(t->collector->recorder, CAUSE,
                 {
                     .rowid = row,
                     .compile_id = compile,
                     .cache_entry_id = entry->entry_id,
                     .ordinal = also,
                     .guard_id = failed,
                     .kind = fact->kind,
                     .source = fact->source,
                     .aspect = fact->aspect,
                     .dimension = number_or_null(fact->dimension),
                     .expected = fact->expected,
                     .actual = fact->actual,
                     .text = fact->words,
                     .how = fact_make_text(how),
                 });
}

/* Store a fact about a cache entry. */
static void store_entry_fact(struct traced *t, enum fact_kind kind, const union fact_any *fact,
                             struct fact *shared)
{
    struct recorder *r = t->collector->recorder;
    const struct traced_entry *entry = find_cache_entry(t, fact->numbers[0]);
    const struct fact_GUARD *guard = &fact->GUARD;
    uint32_t id = entry->entry_id;
    uint32_t row;

    switch (kind) {
    case FACT_GUARD:
        row = row_id_of_guard(entry, guard->ordinal);
        recorder_put(r, GUARD,
                     {
                         .guard_id = row,
                         .cache_entry_id = id,
                         .ordinal = guard->ordinal,
                         .kind = guard->kind,
                         .source = guard->source,
                         .expression = guard->expression,
                         .user_stack = guard->stack,
                     });
        break;
    case FACT_ORDER:
        row = get_id_from_note_counter(t, shared, id);
        recorder_put(r, GUARD_ORDER,
                     {
                         .rowid = row,
                         .cache_entry_id = id,
                         .from_ns = clock_to_session_ns(t, fact->ORDER.clock),
                         .ordinals = fact->ORDER.ordinals,
                         .process_id = t->row.process_id,
                     });
        break;
    default:
        recorder_put(r, ENTRY_DIED,
                     {
                         .cache_entry_id = id,
                         .died_ns = clock_to_session_ns(t, fact->DEATH.clock),
                         .death_cause = fact->DEATH.cause,
                     });
    }
}

/* Store a fact of any kind. */
static void store_fact(struct traced *t, enum fact_kind kind, const union fact_any *fact,
                       struct fact *shared)
{
    struct collector *c = t->collector;
    struct recorder *r = c->recorder;
    struct state_header *next = &c->state.file->header;
    int64_t process = t->row.process_id;
    uint32_t compile = find_row_id(&t->compiles, fact->numbers[0]);
    uint32_t id;

    switch (kind) {
    case FACT_ARGV:
        store_command_line(t, &fact->ARGV);
        break;
    case FACT_EXECUTABLE:
        recorder_put(r, PROCESS_SAYS, {.process_id = process, .executable = fact->EXECUTABLE.path});
        break;
    case FACT_PYTHON:
        recorder_put(r, PROCESS_SAYS,
                     {.process_id = process, .python_version = fact->PYTHON.version});
        break;
    case FACT_RANK:
        recorder_put(r, PROCESS_RANK,
                     {
                         .process_id = process,
                         .rank = number_or_null(fact->RANK.rank),
                         .local_rank = number_or_null(fact->RANK.local_rank),
                     });
        break;
    case FACT_LOSS:
        store_loss(t, &fact->LOSS, shared);
        break;
    case FACT_THREAD:
        id = assign_row_id(t, &t->threads, fact->THREAD.thread, shared, &next->next_thread);
        recorder_put(r, THREAD,
                     {
                         .thread_id = id,
                         .process_id = process,
                         .os_tid = fact->THREAD.os_tid,
                         .name = fact->THREAD.name,
                     });
        /* do not sample the thread if os_tid is its id in another pid namespace */
        if (!t->hidden && t->row.pid == t->row.own_pid)
            thread_cpu_add(&t->samples, t->row.pid, id, fact->THREAD.os_tid);
        break;
    case FACT_CODE:
        store_code(t, &fact->CODE, shared);
        break;
    case FACT_ENTRY:
        store_entry(t, &fact->ENTRY, shared);
        break;
    case FACT_ASKED:
        id = assign_row_id(t, &t->compiles, fact->ASKED.compile, shared, &next->next_compile);
        recorder_put(r, COMPILE_BEGUN,
                     {
                         .compile_id = id,
                         .code_id = find_row_id(&t->codes, fact->ASKED.code),
                         .start_ns = clock_to_session_ns(t, fact->ASKED.clock),
                     });
        break;
    case FACT_COMPILE:
        store_compile(t, &fact->COMPILE, compile);
        break;
    case FACT_COMPILED:
        store_compile_end(t, &fact->COMPILED, compile);
        break;
    case FACT_CAUSE:
        store_cause(t, &fact->CAUSE, compile, shared);
        break;
    case FACT_GUARD:
    case FACT_ORDER:
    case FACT_DEATH:
        store_entry_fact(t, kind, fact, shared);
        break;
    case FACT_SIGNATURE:
        id = assign_row_id(t, &t->signatures, fact->SIGNATURE.signature, shared,
                           &next->next_signature);
        recorder_put(r, SIGNATURE, {.text = fact->SIGNATURE.text, .signature_id = id});
        break;
    case FACT_SPAN_END:
        traced_write_span_end(t, (uint32_t)fact->SPAN_END.span,
                              (uint64_t)clock_to_session_ns(t, fact->SPAN_END.clock));
        break;
    case FACT_UNCAUGHT:
        recorder_put(r, UNCAUGHT,
                     {
                         .process_id = process,
                         .at_ns = clock_to_session_ns(t, fact->UNCAUGHT.clock),
                         .type = fact->UNCAUGHT.type,
                         .code_id = find_row_id(&t->codes, fact->UNCAUGHT.code),
                         .line = number_or_null(fact->UNCAUGHT.line),
                     });
        break;
    case FACT_SETTING:
        settings_note_use(c, &fact->SETTING);
        break;
    case FACT_MARK:
        store_compile_mark(t, &fact->MARK, shared);
        break;
    default:
        store_fact_of_bridge(t, kind, fact, shared);
        break;
    }
}

/* ---- read the facts of a process from its file ---- */

bool traced_is_next_fact_at(struct traced *t, uint64_t at)
{
    struct facts head = {0};
    struct facts *chunk = NULL;
    int error = ERANGE;
    bool is_read = pread(t->fd, &head, sizeof head, (off_t)at) == sizeof head;
    bool has_size = is_read && head.bytes && head.bytes < UINT32_MAX;
    /* a chunk must lie behind the chunk before it, or reading might never end */
    bool leads_back = t->facts && at <= t->facts_off;

    if (has_size) {
        chunk = traced_map_part(t, at, head.bytes + sizeof head);
        error = chunk ? ERANGE : errno;
    }
    if (!chunk || leads_back) {
        if (chunk)
            munmap(chunk, head.bytes + sizeof head);
        traced_mark_broken_by_map(t, "its names lie", error);
        return false;
    }
    if (t->facts)
        munmap(t->facts, t->facts_bytes);
    t->facts = chunk;
    t->facts_off = at;
    t->facts_bytes = head.bytes + sizeof head;
    t->facts_read = 0;
    return true;
}

/* Store the rows of the next fact. USED is where the facts end. Returns NULL, or what is wrong with
 * the fact. */
static const char *store_next_fact(struct traced *t, uint64_t used)
{
    struct collector *c = t->collector;
    struct fact *shared = (struct fact *)(t->facts->data + t->facts_read);
    struct fact head;
    uint64_t end = t->facts_bytes - sizeof *t->facts;
    union fact_any fact;

    if (used > end || end - t->facts_read < sizeof *shared)
        return "its names do not end where they say";
    /* copy the header, because the program could change it after the check */
    head = *shared;
    if (head.bytes < sizeof *shared || head.bytes % 8)
        return "a name's length makes no sense";
    if (head.bytes > used - t->facts_read || head.bytes > FACT_MAX)
        return "a name's length makes no sense";
    /* Copy the fact before SQLite reads it: the program could cut the mapped file short. */
    if (!list_reach(&c->fact, head.bytes))
        return "no memory for a name of it";
    memcpy(c->fact.at, shared, head.bytes);
    memcpy(c->fact.at, &head, sizeof head);
    if (!fact_read((struct fact *)c->fact.at, &fact))
        return "a name's length makes no sense";
    /* pass SHARED only to keep row ids in it: the program may change it at any moment */
    store_fact(t, (enum fact_kind)head.kind, &fact, shared);
    t->facts_read += head.bytes;
    return NULL;
}

void traced_read_facts(struct traced *t)
{
    while (!t->broken && t->facts) {
        uint64_t used = atomic_load_explicit(&t->facts->used, memory_order_acquire);
        uint64_t next;
        bool is_whole;
        while (t->facts_read < used) {
            const char *wrong = store_next_fact(t, used);
            if (wrong) {
                traced_mark_broken(t, wrong);
                return;
            }
        }
        next = t->facts->next_off;
        /* Go on to the next chunk only if the program has added no facts to this one meanwhile. */
        is_whole = used == atomic_load_explicit(&t->facts->used, memory_order_acquire);
        if (!next || !is_whole)
            return;
        if (!traced_is_next_fact_at(t, next))
            return;
    }
}

/* Copy ids from the parent's list FROM to TO, which is empty: the first NUMBER, or as many as FROM
 * has. */
#define inherit(to, from, number)                                                 \
    do {                                                                          \
        size_t ids = (number); /* read once, because the program can change it */ \
        ids = MIN(ids, (from)->count);                                            \
        if (ids && list_add_many(to, ids))                                        \
            memcpy((to)->at, (from)->at, ids * sizeof *(to)->at);                 \
    } while (0)

void traced_copy_ids_of_parent(struct traced *t, struct traced *parent)
{
    traced_read_facts(parent);
    inherit(&t->codes, &parent->codes, t->file->inherited_codes);
    inherit(&t->entries, &parent->entries, t->file->inherited_entries);
    inherit(&t->signatures, &parent->signatures, t->file->inherited_signatures);
    t->forked_from = parent;
    parent->heirs++;
    t->inherited_spans = t->file->inherited_spans;
    recorder_put(t->collector->recorder, PROCESS_FORKED,
                 {.process_id = t->row.process_id, .parent_process_id = parent->row.process_id});
}

/* ---- functions that the decoder calls, declared in collector/decode.h ---- */

uint32_t traced_row_id_of_code(struct traced *t, uint32_t local)
{
    struct collector *c = t->collector;

    traced_read_facts(t);
    if (find_row_id(&t->codes, local))
        return find_row_id(&t->codes, local);
    /* the fact about this code object was lost for want of room, or the ring is damaged */
    if (!t->unknown_code) {
        t->unknown_code = c->state.file->header.next_code++;
        recorder_put(c->recorder, CODE,
                     {
                         .code_id = t->unknown_code,
                         .process_id = t->row.process_id,
                         .filename = fact_make_text(""),
                         .qualname = fact_make_text("(unknown code)"),
                         .kind = fact_make_text("function"),
                     });
        collector_record_loss(
            c, t->row.process_id, 0,
            "names: no room for the names of some code; its frames are of \"(unknown code)\"");
    }
    return t->unknown_code;
}

uint32_t traced_row_id_of_thread(struct traced *t, uint32_t local)
{
    uint32_t id;

    traced_read_facts(t);
    id = find_row_id(&t->threads, local);
    if (!id) {
        id = t->collector->state.file->header.next_thread++;
        recorder_put(t->collector->recorder, THREAD,
                     {
                         .thread_id = id,
                         .process_id = t->row.process_id,
                         .os_tid = ROW_NONE,
                     });
    }
    return id;
}

uint32_t traced_row_id_of_entry(struct traced *t, uint32_t local)
{
    if (!find_cache_entry(t, local)->entry_id)
        traced_read_facts(t);
    return find_cache_entry(t, local)->entry_id;
}

void traced_write_quiet_stretch(struct traced *t, uint32_t thread_id,
                                const struct decode_frame *frame, uint64_t start_ns,
                                uint64_t end_ns)
{
    recorder_put(t->collector->recorder, STRETCH,
                 {
                     .thread_id = thread_id,
                     .start_ns = (int64_t)start_ns,
                     .end_ns = (int64_t)end_ns,
                     .frame_id = frame->frame_id,
                     .code_id = frame->code_id,
                     .ran_ns = ROW_NONE,
                     .waited_ns = ROW_NONE,
                     .queued_ns = ROW_NONE,
                 });
}

void traced_write_late_cache_entry(struct traced *t, uint64_t frame_id, uint32_t cache_entry_id)
{
    recorder_put(t->collector->recorder, LATE_ENTRY,
                 {.frame_id = frame_id, .cache_entry_id = cache_entry_id});
}

/* Return the row id of the span that has the id LOCAL in process T. It is computed, so that each
 * collector computes the same one: each process has a range of 2^32 row ids. */
static uint64_t row_id_of_span(const struct traced *t, uint32_t local)
{
    while (t->forked_from && local < t->inherited_spans)
        t = t->forked_from;
    return (uint64_t)(t->row.process_id - 1) << 32 | ((uint64_t)local + 1);
}

void traced_write_span(struct traced *t, const struct decoder *d, const struct decode_span *span)
{
    const struct decode_frame *frame = d->stack.count ? &d->stack.at[d->stack.count - 1] : NULL;

    recorder_put(t->collector->recorder, SPAN,
                 {
                     .span_id = row_id_of_span(t, span->local),
                     .parent_span_id = span->parent ? row_id_of_span(t, span->parent - 1) : 0,
                     .thread_id = d->now.thread_id,
                     .frame_id = frame ? frame->frame_id : 0,
                     .name = span->name,
                     .start_ns = (int64_t)span->start_ns,
                     .attributes = span->attributes,
                     .kind = fact_make_text(span_words[span->kind]),
                 });
}

void traced_write_span_end(struct traced *t, uint32_t local, uint64_t end_ns)
{
    recorder_put(t->collector->recorder, SPAN_END,
                 {.span_id = row_id_of_span(t, local), .end_ns = (int64_t)end_ns});
}

void traced_write_call_arguments(struct traced *t, uint64_t frame_id, bool returned,
                                 struct fact_text text)
{
    struct recorder *r = t->collector->recorder;

    if (returned)
        recorder_put(r, CALL_RESULT, {.frame_id = frame_id, .result = text});
    else
        recorder_put(r, CALL_ARGUMENTS, {.frame_id = frame_id, .arguments = text});
}

void traced_commit_rows(struct traced *t)
{
    recorder_commit_if_unrepeatable(t->collector->recorder);
}

bool traced_write_long_frame(struct traced *t, uint64_t frame_id, struct frame_row *row)
{
    int64_t found[6];

    if (!keep_is_set(&t->collector->keep))
        return false;
    if (!recorder_query_row(t->collector->recorder, schema_statement("recorder/long_frame"),
                            (int64_t)frame_id, found, array_count(found)))
        return false;
    *row = (struct frame_row){.parent_id = (uint64_t)found[0],
                              .start_ns = (uint64_t)found[1],
                              .code_id = (uint32_t)found[2],
                              .thread_id = (uint32_t)found[3],
                              .kind = (uint8_t)found[4],
                              .outcome = (uint8_t)found[5]};
    return true;
}

void traced_write_long_frame_end(struct traced *t, uint64_t frame_id, uint64_t end_ns,
                                 unsigned outcome, unsigned exit)
{
    recorder_put(t->collector->recorder, LONG_FRAME_END,
                 {
                     .frame_id = frame_id,
                     .outcome = outcome,
                     .end_ns = (int64_t)end_ns,
                     .exit = exit,
                 });
}

void traced_write_frame_left_open(struct traced *t, uint64_t frame_id)
{
    recorder_put(t->collector->recorder, LEFT_OPEN, {.frame_id = frame_id});
}

void traced_write_loss(struct traced *t, uint32_t thread_id, uint64_t at_ns, uint64_t events,
                       const char *cause)
{
    collector_write_loss(t->collector, t->row.process_id, thread_id, at_ns, events, cause);
}

/* Did the decoder's lookup try an entry whose fact was not read yet, because another thread has
 * just made the entry? */
static bool did_lookup_try_unread_entry(struct traced *t, const struct decoder *d)
{
    for (uint32_t i = 0; i < d->now.check_count; i++)
        if (!find_cache_entry(t, d->place->checks[i].entry)->entry_id)
            return true;
    return false;
}

static bool is_number_of_guards_run_known(const struct decode_check *c)
{
    return c->guards_run || c->result == CHECK_PASS || c->result == CHECK_BACKEND_MISMATCH;
}

/* Return how long a check took in ns, or ROW_NONE if that was not measured. */
static int64_t duration_of_check(const struct traced *t, const struct decode_check *c)
{
    const struct decode_session *decode = &t->collector->decode;

    if (c->ticks == RING_TICKS_UNKNOWN)
        return ROW_NONE;
    return clock_to_session_ns(t, (int64_t)(decode->start_clock + c->ticks));
}

/* Write the next row of TABLE: to pages of our own, or with --keep through SQLite. */
static void add_lookup_row(struct collector *c, enum lookup_table table, const int64_t *values,
                           const char *word)
{
    enum recorder_put put = table == PAGES_LOOKUP ? PUT_LOOKUP : PUT_CHECK;
    const unsigned columns = table == PAGES_LOOKUP ? LOOKUP_COLUMNS : CHECK_COLUMNS;
    int64_t row[LOOKUP_COLUMNS];

    if (!keep_is_set(&c->keep)) {
        lookup_pages_add(&c->lookups, table, values, word);
        return;
    }
    row[0] = (int64_t)c->lookups.next[table]++;
    memcpy(row + 1, values, (columns - 1) * sizeof *row);
    if (word)
        row[CHECK_WORD] = (int64_t)strlen(word);
    recorder_write_values(c->recorder, put, row, &word);
    recorder_mark_unrepeatable(c->recorder);
    c->keep.rows += table == PAGES_LOOKUP;
}

/* Must lookups go without rows, because a reader keeps SQLite from reusing its log? */
static bool must_lookups_go_without_rows(const struct collector *c)
{
    return keep_is_set(&c->keep) && recorder_is_log_held(c->recorder);
}

/* Write the check of one entry, which has POSITION in the lookup. */
static void write_check_row(struct traced *t, const struct decode_check *c,
                            const struct traced_entry *entry, int64_t position)
{
    struct lookup_pages *pages = &t->collector->lookups;
    uint32_t failed = row_id_of_guard(entry, (int64_t)c->failed - 1);
    /* the columns of guard_check, without the first */
    int64_t values[] = {
        (int64_t)pages->next[NEXT_LOOKUP],
        position,
        entry->entry_id,
        0, /* place of the column `result`, which is a text */
        failed ? failed : ROW_NONE,
        is_number_of_guards_run_known(c) ? (int64_t)c->guards_run : ROW_NONE,
        duration_of_check(t, c),
    };

    add_lookup_row(t->collector, PAGES_CHECK, values, check_words[c->result]);
}

/* Write the checks of the decoder's lookup. Returns in how many of them guards ran. */
static int64_t write_check_rows(struct traced *t, const struct decoder *d)
{
    int64_t checked = 0;
    int64_t position = 0;

    for (uint32_t i = 0; i < d->now.check_count; i++) {
        const struct decode_check *c = &d->place->checks[i];
        const struct traced_entry *entry = find_cache_entry(t, c->entry);
        if (!entry->entry_id || c->result >= CHECK_RESULTS)
            continue;
        checked += c->result != CHECK_BACKEND_MISMATCH;
        write_check_row(t, c, entry, position);
        position++;
    }
    return checked;
}

struct count_ring *traced_find_journal(struct traced *t, const struct decoder *d, bool make)
{
    struct count_ring *ring =
        counts_find_journal(&t->collector->counts, d->place->file, d->place->ring, make);

    if (ring && strcmp(t->row.mode, "folded")) {
        t->row.mode = "folded";
        traced_write_row(t);
    }
    return ring;
}

void traced_write_lookup(struct traced *t, const struct decoder *d, uint64_t start_ns,
                         uint64_t duration_ns, unsigned outcome, bool observed,
                         uint32_t cache_entry_id)
{
    const struct decode_frame *frame = &d->stack.at[d->stack.count - 1];
    uint32_t thread_id = d->now.thread_id;
    uint32_t signature;
    int64_t checked;

    bool names_new = d->now.compile || d->now.signature;

    if (names_new || did_lookup_try_unread_entry(t, d))
        traced_read_facts(t);
    t->collector->lookup_counts[outcome]++;
    if (must_lookups_go_without_rows(t->collector) && !names_new) {
        t->collector->keep.uncounted++;
        return;
    }
    checked = write_check_rows(t, d);
    signature = find_row_id(&t->signatures, (int64_t)d->now.signature - 1);
    /* the columns of lookup, without the first */
    int64_t values[] = {
        (int64_t)frame->frame_id,
        thread_id,
        frame->code_id,
        (int64_t)start_ns,
        (int64_t)duration_ns,
        outcome,
        cache_entry_id ? cache_entry_id : ROW_NONE,
        observed ? ROW_NONE : checked,
        signature ? signature : ROW_NONE,
    };
    add_lookup_row(t->collector, PAGES_LOOKUP, values, NULL);
    if (d->now.compile)
        recorder_put(t->collector->recorder, COMPILE_FRAME,
                     {
                         .compile_id = find_row_id(&t->compiles, (int64_t)d->now.compile - 1),
                         .frame_id = frame->frame_id,
                         .thread_id = thread_id,
                     });
}
