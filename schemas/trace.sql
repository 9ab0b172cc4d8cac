-- trace.sql -- what a dyntrace trace is: a paragraph per table, a phrase per column.
--
-- A trace is one plain SQLite file. Any client can read it; nothing here needs an extension, a trigger or a
-- function of ours. views.sql asks the usual questions of these tables, queries/ holds whole answers.
--
-- Rules that hold everywhere:
--   * Times (*_ns) are nanoseconds since the session began; durations too are nanoseconds.
--   * NULL means "not known" or "not yet", never zero. A frame, process or cache entry without an end was still
--     there when the recording ended.
--   * Ids are given in order of birth, are never used twice and may have gaps.
--   * What was not recorded is a row in `loss`. Nothing is dropped in silence.
--   * Readers read one meta.schema_version and refuse any other. Columns and views may be added without a new one.

PRAGMA application_id = 1146704978; -- "DYTR", so that file(1) and we can tell a trace from another database
PRAGMA user_version = 2;            -- the same number as meta.schema_version


-- Facts about the recording as a whole, one per row.
--
--   schema_version    2
--   dyntrace_version  of the program that recorded
--   state             'recording' while it runs, then 'complete'; 'recovered' when the recorder was killed and
--                     another finished the trace
--   started_unix_ns   wall clock at the session's start: add a *_ns to get the time of day
--   host              name of the machine
--   command           what was run, a JSON array; empty when it was not to be kept (--no-argv)
--   directory         where it ran; this and the next three are how `dyntrace try` runs it again, and not kept with --no-argv
--   executable        what was executed, a path: of a script, -m and -c the interpreter
--   options           options of `dyntrace run` that matter then, a JSON array: --torch, --capture, --include, ...
--   launcher          of a rank whose launcher started `dyntrace run` for it: the launcher's words before that, a JSON array
--   values            what was kept of arguments and of what guards compare (--values): 'all'; 'types', which is types, shapes
--                     and dtypes; 'off', nothing. Texts say "value not recorded" where one would stand, and a key in a
--                     guard's source is given by its type. Traces without this row have 'all'
--   redact            names whose values were not kept besides those that look secret (--redact), a JSON array; 'off' with
--                     --no-redact. Texts say <redacted> where such a value would stand. Traces without this row have all values
--   command_redacted  1 where `command` or `launcher` has <redacted> in it, and so cannot run again
--   settings          of `run --set`, as they were given: a JSON array. Without this row the program ran as it is
--   settings_unused   those of them that did nothing, a line each with the reason, SETTING: WHY; not before the recording has ended
--   clock             'tsc', 'monotonic' or 'coarse' (--clock coarse: times are those that the recorder last wrote down)
--   clock_resolution_ns  with 'coarse': how long that was ago at most, in the mean. Where it was ever over 20 ms `loss` has
--                     a row, "stall: for up to ..."
--   span_ns           from the start to the last event seen
--   recorder_cpu_ns   processor time of the recorder's own processes, until the trace was whole. No clock of the program has it
--                     in it, nor does time(1) of `dyntrace run`. Of a recorder that was killed it lacks a quarter of a second at
--                     most, and all where nothing was left to go on with: then there is no such row. Of a merged trace it is
--                     the sum, where all say it
--   frame_count       rows in `frame`; kept here because counting them is slow
--   open_frame_count  those of them without an end
--   counted_frame_count  frames in `frame_count`, which have no rows; only where there are any
--   min_duration_ns   shorter frames were not stored (code_total still counts them)
--   thin              with `run --thin`: of functions called over a million times one call in so many was stored, besides the first million
--                     and the slowest (code_total counts all)
--   keep_ns, keep_bytes  with `run --keep`: for how long, or in how many bytes, frames, lookups, guard checks, spans, arguments, stretches
--                     and processor times were kept. Older ones were dropped; all else is of the whole recording
--   kept_from_ns      since when they are all there, with frames that began earlier and ended later
--   kept_frame_id, kept_frame_ns  of a live trace, for the recorder alone
--   snapshots         what --snapshot-on wrote, a line each with the reason, FILE: WHY
--   snapshot_ns       of a trace that `dyntrace snapshot` made: when, and what ended later is open
--   keep_over_bytes   by how much what is always kept was more than keep_bytes
--   merged_from       of a trace that `dyntrace merge` made: a JSON array of {file, host, command, started_unix_ns, rank,
--                     decided}, the first 1,000 rows of the table `merged`; what the traces differ in is 'several', and ids are
--                     in order of birth within each of them only
--   imported_from     of a trace that `dyntrace import` made: the directory of torch's logs, a JSON string
--   session           directory of the live session, only while recording
--   job, rank, local_rank, world_size  what the launcher said of the recorded rank (torchrun, mpirun, srun, ray), where it did
--   destination       where the trace belongs, when it was recorded on a local disk to be moved there (run -o DIR/)
--   clock_offset_ns   by how much the clock of the machine that keeps that place is ahead of this one's, as the time of a new file
--                     there said; clock_doubt_ns: how wrong that may be
CREATE TABLE meta(
    key   TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema_version', 2);


-- The traces in a trace that `dyntrace merge` made, in order; in other traces no rows. Merging adds to the ids of each trace what
-- stands here, so that they are greater than those of the traces before it.
CREATE TABLE merged(
    merged_id       INTEGER PRIMARY KEY,
    file            TEXT,    -- its path when it was merged
    host            TEXT,    -- the machine that recorded it
    command         TEXT,    -- its meta.command
    started_unix_ns INTEGER, -- by the clock that the traces share, where they share one
    rank            INTEGER, -- the greatest of its processes; NULL: of none
    decided         INTEGER, -- 1: a compiler decided anything in it
    thread_id       INTEGER, -- added to ids of threads,
    code_id         INTEGER, -- of code objects,
    frame_id        INTEGER, -- of frames,
    lookup_id       INTEGER, -- of lookups,
    guard_check_id  INTEGER  -- and of checks of guards
);


-- Names of the small integers used in other tables; the views spell them out.
CREATE TABLE enum(
    kind  TEXT,     -- whose vocabulary: 'outcome', 'frame.kind', 'frame.exit'
    value INTEGER,  -- as stored
    name  TEXT,     -- as said
    PRIMARY KEY(kind, value)
) WITHOUT ROWID;

-- outcome: how a call was decided (frame.outcome, lookup.outcome)
INSERT INTO enum VALUES
    ('outcome', 0, 'plain'),           -- no compiler was asked
    ('outcome', 1, 'hit'),             -- an entry's guards passed and its code ran
    ('outcome', 2, 'compiled'),        -- no entry fitted; compiled one and ran it
    ('outcome', 3, 'run_only'),        -- no entry fitted, compiling was not allowed: ran as it is
    ('outcome', 4, 'skip'),            -- the code is marked never to be compiled
    ('outcome', 5, 'limit'),           -- no entry fitted, the limit of entries was reached: ran as it is
    ('outcome', 6, 'declined'),        -- the compiler was asked and gave no code
    ('outcome', 7, 'disabled'),        -- the compiler was off on this thread
    ('outcome', 8, 'guard_error'),     -- a guard raised instead of answering
    ('outcome', 9, 'callback_error');  -- the compiler raised
-- frame.kind: how the frame came to run
INSERT INTO enum VALUES
    ('frame.kind', 0, 'call'),         -- from its beginning
    ('frame.kind', 1, 'resume'),       -- a generator or coroutine carried on after a yield
    ('frame.kind', 2, 'throw'),        -- the same, by an exception thrown into it
    ('frame.kind', 3, 'inherited');    -- was already running when its process was forked, a gap in the recording ended, or `attach` began
-- frame.exit: how it ended
INSERT INTO enum VALUES
    ('frame.exit', 0, 'return'),
    ('frame.exit', 1, 'yield'),        -- suspended; the next frame of this activation is a 'resume'
    ('frame.exit', 2, 'raise'),        -- an exception left it
    ('frame.exit', 3, 'abandoned');    -- it never ended by itself (a cancelled thread): the end is that
                                        --   of the frame around it; or in a gap of the recording, and the end is
                                        --   where that begins; or it was inherited, and the end is when the next
                                        --   frame of the thread began. A frame open at the end has exit NULL


-- phase: in which part of torch's work frames were counted (frame_count.phase); all but 'import' are torch's names
INSERT INTO enum VALUES
    ('phase', 1, 'import'),            -- below the body of one of torch's modules
    ('phase', 2, 'compile'),           -- in a compile, and in none of the others
    ('phase', 3, 'bytecode_tracing'),
    ('phase', 4, 'backend_compile'),
    ('phase', 5, 'build_guards'),
    ('phase', 6, 'entire_backward_compile'); -- of a backward graph, when it is first needed


-- A Python process that was followed. Identity is (host, pid, start_ns): pids come back.
CREATE TABLE process(
    process_id        INTEGER PRIMARY KEY,
    pid               INTEGER, -- as the recorder saw it; NULL: it did not see it, as when that was in a pid namespace (a
                               --   container) and the process outside
    parent_process_id INTEGER, -- the process that forked or spawned it, if that was followed too
    rank              INTEGER, -- of a distributed job, NULL outside one
    local_rank        INTEGER, -- its rank among those on its machine
    argv              TEXT,    -- command line, a JSON array; NULL when it was not to be kept (--no-argv)
    executable        TEXT,    -- path of the interpreter
    python_version    TEXT,    -- "3.12.1"
    torch_version     TEXT,    -- NULL when torch's compiler was not loaded
    mode              TEXT,    -- what was recorded: 'all', 'user', 'decided' or 'none' of the frames; 'folded': all, but some of
                               --   them are counted and have no rows (frame_count)
    torch_mode        TEXT,    -- 'shim': torch ran on dyntrace's evaluator, every guard check was seen; 'observe': on its own,
                               --   and what could not be seen is NULL; 'import': this is what torch logged itself
                               --   (TORCH_TRACE), which is compiles without calls; 'off'; NULL without torch's compiler
    torch_note        TEXT,    -- why it was not 'shim'
    start_ns          INTEGER, -- when the recorder was loaded into it
    end_ns            INTEGER, -- when it was seen to have ended; NULL while it runs
    exit_code         INTEGER, -- status it exited with, or NULL: killed, or not our child and so not known
    exit_signal       INTEGER, -- signal that killed it, or NULL
    host              TEXT,    -- name of its machine, in a trace that was merged from several; NULL: meta.host
    own_pid           INTEGER, -- as the process itself knew it (os.getpid()): another than `pid` where it was in a pid
                               --   namespace of its own; several may be 1, and os_tid of its threads is in that, too. NULL: not
                               --   known
    -- What --frames user, --include, --exclude and --max-depth left out, as far as it ran; NULL: not known.
    left_out_functions INTEGER, -- code objects
    left_out_frames    INTEGER, -- calls and resumptions of these, and those that were too deep; on 3.13 without calls of
                                --   __init__ that CPython hides from a frame evaluator
    left_out_decisions INTEGER  -- lookups of calls of these, and of calls that were too deep; --frames user leaves none
                                --   out
);


-- A stack of frames: that of a thread that evaluated at least one frame, or of one of its greenlets. Greenlets that have no
-- frame in common may share a row.
CREATE TABLE thread(
    thread_id  INTEGER PRIMARY KEY,
    process_id INTEGER, -- whose
    os_tid     INTEGER, -- as the system knew it
    name       TEXT     -- threading's name for it, if it had one; of a greenlet "greenlet N"
);
CREATE INDEX thread_process ON thread(process_id);


-- A code object: a function as compiled by Python, or code that a compiler made from one. Known by process; the
-- same function in two processes is two rows with one fingerprint.
CREATE TABLE code(
    code_id        INTEGER PRIMARY KEY,
    process_id     INTEGER, -- the process in which it was first seen
    filename       TEXT,    -- co_filename
    qualname       TEXT,    -- co_qualname
    first_line     INTEGER, -- co_firstlineno
    kind           TEXT,    -- function, generator, coroutine, async_generator, class, module, lambda,
                            --   comprehension, resume (rest of a function after a graph break), compiled
    origin_code_id INTEGER, -- resume, compiled: the code it was made from
    fingerprint    INTEGER  -- of bytecode and constants: equal means the same code
);


-- One evaluation of a frame: a call, or one stretch of a generator between two yields. By far the largest table;
-- its pages are written without SQL, so it has no other index than its key.
--   * Parents have smaller ids than their children, and on a thread ids follow start_ns: a parent is found by
--     primary key, and the start of a time range by bisection.
--   * A child lies within its parent in time, siblings do not overlap.
CREATE TABLE frame(
    frame_id       INTEGER PRIMARY KEY,
    thread_id      INTEGER, -- on which it ran
    parent_id      INTEGER, -- the frame that called it; NULL at the bottom of a stack
    code_id        INTEGER, -- what it ran
    kind           INTEGER, -- enum 'frame.kind'
    outcome        INTEGER, -- enum 'outcome'
    start_ns       INTEGER, -- entered
    end_ns         INTEGER, -- left; NULL when still open at the end of the recording
    cache_entry_id INTEGER, -- compiled code that ran in its place, or NULL
    exit           INTEGER  -- enum 'frame.exit'
);


-- Totals per code object, kept while recording: right even for frames that were too short to be stored, and
-- readable while the program still runs.
CREATE TABLE code_total(
    code_id  INTEGER PRIMARY KEY,
    calls    INTEGER, -- frames entered that were not resumptions
    total_ns INTEGER, -- time inside, callees included; of recursive calls only the outermost counts
    self_ns  INTEGER, -- time inside, callees excluded
    raised   INTEGER, -- frames left by an exception
    max_ns   INTEGER, -- the longest of its frames; NULL: not known
    skipped  INTEGER  -- calls that have ended, with the outcome 'skip'; NULL: not known
);


-- Processor time of a thread, read from outside (/proc/PID/task/TID/schedstat) at most 100 times a second, less often while
-- nothing changes and with many threads. Between two rows with one cpu_ns the thread did not run. The kernel books the time of a
-- thread that runs up to 10 ms late, and that of a thread in the queue when it gets a processor. Greenlets have the rows of the thread that they run on. A thread has no rows where
-- the system does not tell, or where the recorder does not see the thread's ids (a pid namespace of its own).
CREATE TABLE thread_cpu(
    thread_id INTEGER, -- whose
    at_ns     INTEGER, -- when it was read
    cpu_ns    INTEGER, -- processor time since the thread began
    queued_ns INTEGER, -- how long since then it was ready to run, and other threads had the processors
    PRIMARY KEY(thread_id, at_ns)
) WITHOUT ROWID;


-- A stretch of at least a millisecond in which a thread began and ended no frame: the innermost frame waited, or ran C code
-- or a loop. ran_ns and waited_ns are lower bounds that follow from the samples in thread_cpu. The rest of the stretch was on
-- a processor or off it: the samples are too far apart to say which.
CREATE TABLE stretch(
    thread_id INTEGER, -- on which
    start_ns  INTEGER, -- the event before it
    end_ns    INTEGER, -- the event after it
    frame_id  INTEGER, -- the frame that was innermost; of one that was counted (frame_count) the innermost with a row
    code_id   INTEGER, -- the code of that frame, counted or not
    ran_ns    INTEGER, -- on a processor at least so long; NULL: not measured, or not yet
    waited_ns INTEGER, -- off the processor at least so long; NULL likewise
    queued_ns INTEGER, -- part of waited_ns: at most so long ready to run, without a free processor; NULL likewise. waited_ns less
                       --   queued_ns was certainly a wait for something else
    PRIMARY KEY(thread_id, start_ns)
) WITHOUT ROWID;


-- Frames that were counted while recording and have no rows in `frame`: with --frames folded those of libraries (not of the
-- program itself) inside torch's compiles and imports. code_total contains them. The view counted_frames spells a row out.
CREATE TABLE frame_count(
    code_id  INTEGER, -- what they ran
    phase    INTEGER, -- enum 'phase': the part of torch's work in which they ran
    outcome  INTEGER, -- enum 'outcome', as of a frame
    frames   INTEGER, -- how many there were. 0: the row is of the caller of some, for inner_ns
    calls    INTEGER, -- those of them that were not resumptions
    total_ns INTEGER, -- time inside, callees included; of recursive calls only the outermost counts
    self_ns  INTEGER, -- time inside, callees excluded
    raised   INTEGER, -- frames left by an exception
    max_ns   INTEGER, -- the longest of them
    first_ns INTEGER, -- when the first of them began
    last_ns  INTEGER, -- when the last of them began
    inner_ns INTEGER  -- time of counted frames of this phase that stored frames of this code called, without the time of stored
                      --   frames in these: by the rows of `frame` it is the caller's own, which it is not
);
CREATE INDEX frame_count_code ON frame_count(code_id);


-- The compiler's cache was asked for compiled code to run a call with.
CREATE TABLE lookup(
    lookup_id       INTEGER PRIMARY KEY,
    frame_id        INTEGER, -- the call; its row may be missing when min_duration_ns is set
    thread_id       INTEGER, -- on which
    code_id         INTEGER, -- the code that was called
    start_ns        INTEGER, -- asked
    duration_ns     INTEGER, -- until it was known what runs: guards, and the compiler if it was asked
    outcome         INTEGER, -- enum 'outcome'
    cache_entry_id  INTEGER, -- hit: the entry that fitted; compiled: the one made
    entries_checked INTEGER, -- entries whose guards were run
    signature_id    INTEGER  -- what the call's inputs were like; taken on misses
);
CREATE INDEX lookup_code ON lookup(code_id);


-- One entry's guards, tried by one lookup. Guards run in order up to the first that fails, so this row says for
-- each of them whether it ran and how it ended; the view guard_evaluation spells that out.
CREATE TABLE guard_check(
    guard_check_id  INTEGER PRIMARY KEY,
    lookup_id       INTEGER, -- during which
    position        INTEGER, -- index of this try in the lookup, from 0
    cache_entry_id  INTEGER, -- whose guards
    result          TEXT,    -- 'pass', 'fail', 'error' (a guard raised), 'backend_mismatch' (no guard ran)
    failed_guard_id INTEGER, -- the guard that failed or raised
    guards_run      INTEGER, -- how many ran, the failed one included, in the order of that moment (guard_order); 0 of one that
                             -- passed: only those of torch's that tell entries apart (its stance skip_guard_eval_unsafe). NULL of
                             -- one that did not: not known (the order was changed unseen or in the
                             -- middle of the lookup, torch's
                             -- guards held when they were asked again, ...). Of a dict that has not changed since all of its
                             -- guards held, torch does not ask those on constants once more: they count as run
    duration_ns     INTEGER  -- of all of them together
);
CREATE INDEX guard_check_lookup ON guard_check(lookup_id); -- made when the recording ends, like lookup_code


-- Lookups that were dropped from a recording with a bound (meta.keep_ns, keep_bytes), added up: those from before
-- meta.kept_from_ns that did not ask the compiler. Several rows may have one key.
CREATE TABLE lookup_count(
    process_id      INTEGER, -- in which process
    code_id         INTEGER, -- of which code
    outcome         INTEGER, -- enum 'outcome'
    cache_entry_id  INTEGER, -- the entry that was hit, or NULL
    lookups         INTEGER, -- how many
    duration_ns     INTEGER, -- of all of them
    entries_checked INTEGER, -- by all of them; NULL: not known
    first_ns        INTEGER, -- when the first of them began
    last_ns         INTEGER  -- when the last of them began
);


-- Compiled code for one code object, valid while its guards pass.
CREATE TABLE cache_entry(
    cache_entry_id INTEGER PRIMARY KEY,
    code_id        INTEGER, -- the code it stands in for
    compile_id     INTEGER, -- the compile that made it
    label          TEXT,    -- the compiler's own name for it, such as "0/1"
    backend        TEXT,    -- which backend compiled it
    region_id      INTEGER, -- entries of different regions do not see each other; NULL: every region sees it
    guard_count    INTEGER, -- rows it has in `guard`
    born_ns        INTEGER, -- added to the cache
    died_ns        INTEGER, -- taken out; NULL while alive
    death_cause    TEXT     -- in words
);
CREATE INDEX cache_entry_code ON cache_entry(code_id);


-- A condition that must hold for an entry to be used.
CREATE TABLE guard(
    guard_id       INTEGER PRIMARY KEY,
    cache_entry_id INTEGER, -- whose
    ordinal        INTEGER, -- place in the order of evaluation, from 0
    kind           TEXT,    -- such as TENSOR_MATCH
    source         TEXT,    -- what it looks at: "L['x']"
    expression     TEXT,    -- what it asks
    user_stack     TEXT     -- the user's code for whose sake it is there, where the compiler keeps that
);
CREATE INDEX guard_entry ON guard(cache_entry_id, ordinal);


-- The order in which an entry's guards are tried, from a moment on: guards that fail move forward within their
-- level. Before its first row an entry's guards are tried by ordinal.
CREATE TABLE guard_order(
    cache_entry_id INTEGER, -- whose guards
    from_ns        INTEGER, -- for lookups that start then or later
    ordinals       TEXT,    -- guard.ordinal in the order tried, a JSON array
    process_id     INTEGER  -- in which process: a forked one goes on from the order at the fork (the view guard_orders)
);
CREATE INDEX guard_order_entry ON guard_order(cache_entry_id, from_ns);


-- The compiler ran for a frame.
CREATE TABLE compile(
    compile_id     INTEGER PRIMARY KEY,
    frame_id       INTEGER, -- the call that caused it
    code_id        INTEGER, -- what was compiled
    thread_id      INTEGER, -- on which
    label          TEXT,    -- the compiler's own name for it, such as "0/1"
    start_ns       INTEGER,
    end_ns         INTEGER,
    outcome        TEXT,    -- 'compiled', 'declined' (it gave no code, or gave up), 'skipped' (its rules exclude the code),
                            --   'limit' (it made as many entries as it may), 'error' (it raised)
    cache_entry_id INTEGER, -- the entry made, if one was
    reason         TEXT,    -- why it did not succeed, or why it was asked for
    sticky         INTEGER  -- 1: it is not asked again for this code; 0: it is; NULL: not known, or it succeeded
);
CREATE INDEX compile_code ON compile(code_id);
CREATE INDEX compile_frame ON compile(frame_id);


-- A stretch of a compile, as the compiler measures itself. Phases lie within one another.
CREATE TABLE compile_phase(
    compile_id INTEGER, -- of which compile; NULL when it came later on its own, as backward graphs do
    name       TEXT,    -- the compiler's name for it
    start_ns   INTEGER, -- by the wall clock, so to a microsecond or so
    end_ns     INTEGER,
    label      TEXT     -- the compile's label, as far as it was known then
);
CREATE INDEX compile_phase_compile ON compile_phase(compile_id);


-- From a moment on calls of a code object were not compiled any more, or those that it makes.
CREATE TABLE code_mark(
    code_id          INTEGER, -- calls of which
    at_ns            INTEGER, -- since when
    action           TEXT,    -- what is done with them: 'default', 'skip' (run as they are), 'run_only' (entries, nothing new)
    recursive_action TEXT,    -- the same for the calls that they make
    region_id        INTEGER, -- where that holds; NULL: everywhere
    reason           TEXT     -- in the compiler's words; NULL: somebody asked for it
);
CREATE INDEX code_mark_code ON code_mark(code_id);


-- Why an older entry did not fit, so that a compile was needed: at least one row per older entry that was tried.
CREATE TABLE recompile_cause(
    compile_id     INTEGER, -- the compile that became necessary
    cache_entry_id INTEGER, -- the older entry that did not fit
    ordinal        INTEGER, -- 0: of the guard that decided, of which each thing that did not fit is a row; others would have
                            --   failed as well
    guard_id       INTEGER, -- the guard
    kind           TEXT,    -- its kind
    source         TEXT,    -- what it looked at; as narrow as is known: "L['x'].size()[0]"
    aspect         TEXT,    -- what of that differed: 'size', 'stride', 'ndim', 'dtype', 'device', 'requires_grad' or
                            --   'dispatch_keys' of a tensor, 'value', 'type', 'identity', 'length', 'keys', 'attribute',
                            --   'alive', 'state', 'relation' between sources, 'backend'; NULL: not known
    dimension      INTEGER, -- of a 'size' or 'stride', from 0; NULL: none, or all of them
    expected       TEXT,    -- the value for which it holds
    actual         TEXT,    -- the value that there was
    text           TEXT,    -- the whole in words
    how            TEXT     -- 'observed' when it happened, 're-checked' when it was asked afterwards; 're-checked in part':
                            --   no cause, but there was no time to ask all the others
);
CREATE INDEX recompile_cause_compile ON recompile_cause(compile_id);


-- A place where a compile had to stop and let Python go on by itself.
CREATE TABLE graph_break(
    graph_break_id INTEGER PRIMARY KEY,
    compile_id     INTEGER, -- during which
    code_id        INTEGER, -- where
    line           INTEGER, -- source line
    offset         INTEGER, -- of the instruction, in bytes
    reason         TEXT,    -- in words
    user_stack     TEXT,    -- the user's frames at that point, innermost last
    resume_code_id INTEGER  -- the function made for the rest
);
CREATE INDEX graph_break_compile ON graph_break(compile_id);


-- A graph of operations that a compile produced.
CREATE TABLE graph(
    graph_id   INTEGER PRIMARY KEY,
    compile_id INTEGER, -- which compile
    name       TEXT,    -- such as "__compiled_fn_1"
    node_count INTEGER  -- rows it has in `graph_node`
);
CREATE INDEX graph_compile ON graph(compile_id);


-- A node of a graph.
CREATE TABLE graph_node(
    graph_id INTEGER, -- whose
    ordinal  INTEGER, -- place in the graph, from 0
    opcode   TEXT,    -- placeholder, call_function, ..., output
    name     TEXT,    -- as other nodes call it
    target   TEXT,    -- what is called or fetched
    args     TEXT,    -- as text
    kwargs   TEXT,    -- as text
    PRIMARY KEY(graph_id, ordinal)
) WITHOUT ROWID;


-- A text that a compile produced.
CREATE TABLE listing(
    compile_id INTEGER, -- which compile
    kind       TEXT,    -- original_bytecode, modified_bytecode, guards, ...; of torch called_as, the addresses of the function and
                        --   of `self`, and automatic_dynamic_shapes, "False" where sizes that change are not made dynamic,
                        --   inductor_output_code, inductor_post_grad_graph, and fx_graph_cache_hit and the like: JSON, what
                        --   torch said of its cache (view compile_caches)
    text       TEXT
);
CREATE INDEX listing_compile ON listing(compile_id, kind);


-- What the inputs of a call were like: types, shapes, dtypes, small values. Each text is stored once.
CREATE TABLE signature(
    signature_id INTEGER PRIMARY KEY,
    text         TEXT
);


-- A named stretch of time that the program marked: `with dyntrace.span("request", id=271):`, a record_function of torch's
-- profiler, or a range of NVTX. Spans nest by what runs in them, also across tasks of asyncio, not by time.
CREATE TABLE span(
    span_id        INTEGER PRIMARY KEY, -- in order of birth within a process
    parent_span_id INTEGER, -- the span around it, by contextvars; NULL: none
    thread_id      INTEGER, -- on which it began
    frame_id       INTEGER, -- the innermost frame in which it began; NULL: none was recorded, or its row was not stored
    name           TEXT,    -- as the program says
    start_ns       INTEGER, -- begun
    end_ns         INTEGER, -- ended, perhaps on another thread; NULL: still open when its process or the recording ended
    attributes     TEXT,    -- a JSON object: numbers, strings, true, false, null; of other values the type; NULL: none, or --values off
    kind           TEXT     -- 'span', 'record_function' or 'nvtx'
);
CREATE INDEX span_thread ON span(thread_id, start_ns);
CREATE INDEX span_frame ON span(frame_id);


-- Arguments and return values of calls, of the functions that `run --args` named. No code of the program ran for these texts: values of
-- exact builtin types are written, two containers deep; of arrays and tensors type, format and shape; of others the type.
CREATE TABLE call_args(
    frame_id  INTEGER PRIMARY KEY, -- the call
    arguments TEXT, -- a JSON object by name; "...": 3 counts those that had no room; NULL: none, or --values off
    result    TEXT  -- what it returned, JSON; NULL: it raised, yielded or did not end. The call of a generator or coroutine function
                    --   returned that object; what this returned at its end has the row of its last part. Yielded values are not kept
);


-- Something that happened and was not recorded, or that the recording did to the program.
CREATE TABLE loss(
    process_id INTEGER, -- where
    thread_id  INTEGER, -- where, NULL when it concerns the process
    at_ns      INTEGER, -- noticed
    events     INTEGER, -- how many are missing; 0 for a stall or a doubt, NULL when nobody can know
    cause      TEXT     -- in words; 'stall: ...' when the program waited for the recorder and nothing is missing
);


-- A run of the recorded command that `dyntrace try` made, under one setting of `dyntrace run --set`, and what it measured.
-- Traces that were recorded before this table was have neither it nor trial_function until `try` stores something.
--   * The trials of one `dyntrace try` are a batch. The first of them ran unchanged: it is the baseline of the others.
--   * Counts are those of the whole run, by the definitions of views.sql; NULL: the run left no trace.
--   * Which trial works, and which is a gain, say the views `trials` and `trial_functions`.
CREATE TABLE trial(
    trial_id        INTEGER PRIMARY KEY,
    batch           INTEGER, -- trial_id of the baseline, the unchanged run; its own for that one
    setting         TEXT,    -- as given to --set; several are separated by a blank and quoted as a shell wants them; '': unchanged
    command         TEXT,    -- what ran, a JSON array
    function_id     INTEGER, -- whose calls step_ns is about: the function that was asked about, else the one with most
                             --   recompiles; the smallest code_id of it here (view functions). NULL: none
    started_unix_ns INTEGER, -- wall clock
    duration_ns     INTEGER, -- until it ended
    exit_code       INTEGER, -- status it exited with, or NULL: killed
    exit_signal     INTEGER, -- signal that killed it, or NULL
    output_same     INTEGER, -- 1: it wrote to stdout and stderr what the baseline wrote, but for addresses; 0: something else;
                             --   NULL: the baseline, or not compared
    difference      TEXT,    -- where output_same is 0: the first line that differs, "stdout: 'loss 3', unchanged 'loss 4'"
    values_same     TEXT,    -- --compare, what the function returned beside the baseline: 'equal', 'close', 'different';
                             --   NULL: not compared
    error           TEXT,    -- why it is no answer: the setting was refused or did nothing, its time was up, the last line of a
                             --   traceback that the baseline has not; NULL: it is one
    step_ns         INTEGER, -- median time of a call of the function after its last compile; NULL: it had too few
    compiles        INTEGER, -- that made code
    recompiles      INTEGER, -- of them, as in the view `compiles`
    breaks          INTEGER, -- graph breaks
    eager           INTEGER, -- calls that ran as Python though compiled code was wanted; NULL: not counted, for a function was
                             --   given up, whose later calls --frames decided does not record
    hits            INTEGER, -- calls that ran a cache entry
    compile_ns      INTEGER  -- time in the compiler
);


-- What a trial counted of one function: a row for each that was compiled or called.
CREATE TABLE trial_function(
    trial_id    INTEGER, -- in which
    function_id INTEGER, -- the smallest code_id of the function with this file, name and first line in this trace (view
                         --   functions); NULL: this trace has none
    compiles    INTEGER, -- as of a trial, and so are the others:
    recompiles  INTEGER, -- compiles of a function that had code,
    breaks      INTEGER, -- graph breaks,
    eager       INTEGER, -- calls that ran as Python; NULL: not counted, for the function was given up,
    hits        INTEGER, -- calls that ran a cache entry,
    compile_ns  INTEGER, -- time in the compiler,
    step_ns     INTEGER  -- median time of a call after the last compile
);
