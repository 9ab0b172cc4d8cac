-- trace.sql -- what a dyntrace trace is: a paragraph per table, a phrase per column.
--
-- A trace is one plain SQLite file. Any client can read it; nothing here needs an extension, a trigger or a
-- function of ours. views.sql answers common questions about these tables, and queries/ has whole reports.
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
--                     another finished the trace, and in the
--                     copy of what could be read of a damaged file
--   started_unix_ns   wall clock at the session's start; a *_ns added to it gives the time of day
--   host              name of the machine
--   command           the command line of the program, a JSON array; empty with --no-argv
--   directory         the directory in which the command ran. `dyntrace try` uses this row and the next three to run the
--                     command again; with --no-argv they are not stored
--   executable        path of the program that was executed: for a script, -m and -c the interpreter
--   options           options of `dyntrace run` that a new run needs, a JSON array: --torch, --capture, --include, ...
--   launcher          if a launcher started `dyntrace run` for this rank: the words of the launcher's command line before
--                     `dyntrace run`, a JSON array
--   values            which values of arguments and guards were recorded (--values): 'all'; 'types': only types, shapes and
--                     dtypes; 'off': none. Texts have "value not recorded" in place of a value, and a guard's source has
--                     the type in place of a key. Without this row all values were recorded
--   redact            names whose values were left out (--redact), in addition to names that look secret: a JSON array;
--                     'off' with --no-redact. Texts have <redacted> in place of such a value. Without this row all values
--                     were recorded
--   command_redacted  1 if `command` or `launcher` has <redacted> in it, so that it cannot be run again
--   settings          the settings of `run --set`, as the user gave them: a JSON array. Without this row there were none
--   settings_unused   the settings that had no effect, a line for each with the reason, SETTING: WHY. Stored at the end of the
--                     recording
--   clock             'tsc', 'monotonic' or 'coarse' (--clock coarse: an event has the time that the recorder wrote last)
--   clock_resolution_ns  with 'coarse': the mean time from one write of the recorder to the next. If it was ever over 20 ms,
--                     `loss` has a row, "stall: for up to ..."
--   span_ns           from the start to the last recorded event
--   recorder_cpu_ns   processor time of the recorder's own processes, until the trace was complete. It is neither in the
--                     program's own processor time nor in what time(1) prints for `dyntrace run`. If a recorder was killed,
--                     up to a quarter of a second is missing; if it left nothing from which another could continue, the
--                     time is not known, and there is no row. A merged trace has the sum, if all its traces have the row
--   frame_count       number of rows in `frame`; stored here because counting them is slow
--   open_frame_count  number of frames without an end
--   counted_frame_count  number of frames that were only counted (table frame_count); no row if there are none
--   min_duration_ns   shorter frames were not stored (code_total still counts them)
--   thin              with `run --thin`: a number N. Of a function with more than a million calls, these were stored: the
--                     first million, the slowest, and one in N of the others (code_total counts all calls)
--   keep_ns, keep_bytes  with `run --keep`: the bound, in nanoseconds or bytes. Frames, lookups, guard checks, spans, arguments,
--                     stretches and processor times were dropped when they were too old for it; all other rows were kept
--   decisions_only    1 in a trace of `merge --decisions-only`: it has only the frames of calls that were skipped or disabled,
--                     because these have no lookup; all other tables are whole
--   kept_from_ns      with `run --keep`: of these rows, those from this time on are all in the trace, and so are the frames
--                     that were open at this time
--   kept_frame_id, kept_frame_ns  only while recording, for the recorder itself
--   snapshots         the snapshots of --snapshot-on, a line for each with the reason, FILE: WHY
--   snapshot_ns       in a trace that `dyntrace snapshot` made: the moment of the snapshot. Frames and spans that ended
--                     later have no end
--   keep_over_bytes   by how much the rows that are never dropped exceeded keep_bytes
--   merged_from       in a trace that `dyntrace merge` made: a JSON array of {file, host, command, started_unix_ns, rank,
--                     decided}, the first 1,000 rows of the table `merged`. Rows of `meta` in which the traces differ have
--                     'several'. Ids are in order of birth only within each of the traces
--   imported_from     in a trace that `dyntrace import` made: the directory of torch's logs, a JSON string
--   session           directory of the live session, only while recording
--   job, rank, local_rank, world_size  what the launcher (torchrun, mpirun, srun, ray) told the recorded rank about itself
--   destination       the path to which the trace moves when it is complete (run -o DIR/ records on a local disk)
--   clock_offset_ns   by how much the clock of the destination's machine is ahead of this machine's, according to the time
--                     of a new file there; clock_doubt_ns: the possible error of this number
CREATE TABLE meta(
    key   TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema_version', 2);


-- The traces from which `dyntrace merge` made this trace, in order; no rows in other traces. The columns thread_id to
-- guard_check_id: the number that merging added to the ids of this trace, so that they are greater than those of the
-- traces before it.
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
    ('frame.exit', 3, 'abandoned');    -- its own end was not seen. end_ns is, in a cancelled thread, the end of the
                                        --   frame around it; in a gap of the recording, the beginning of the gap;
                                        --   for an inherited frame, when the next frame of the thread began. A
                                        --   frame that is open at the end of the recording has exit NULL


-- phase: in which part of torch's work frames were counted (frame_count.phase); all but 'import' are torch's names
INSERT INTO enum VALUES
    ('phase', 1, 'import'),            -- called by the body of one of torch's modules
    ('phase', 2, 'compile'),           -- in a compile, and in none of the others
    ('phase', 3, 'bytecode_tracing'),
    ('phase', 4, 'backend_compile'),
    ('phase', 5, 'build_guards'),
    ('phase', 6, 'entire_backward_compile'); -- of a backward graph, when it is first needed


-- A Python process that was recorded. Host, pid and start_ns identify it, because the system uses pids again.
CREATE TABLE process(
    process_id        INTEGER PRIMARY KEY,
    pid               INTEGER, -- in the recorder's pid namespace; NULL: the process has no pid there, because the recorder ran in
                               --   a container and the process outside it
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
    own_pid           INTEGER, -- os.getpid() in the process. In another pid namespace it differs from `pid`, and the os_tid of the
                               --   threads is of that namespace, too. Several processes may have the same. NULL: not known
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


-- A code object: a function as compiled by Python, or code that a compiler made from one. Each process has rows of
-- its own: the same function in two processes is two rows with the same fingerprint.
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
--   * A row is kept small: SQLite stores small numbers in few bytes, 0 and 1 in none, and nothing of last columns that have
--     their defaults. So a row has durations and distances, and SQLite computes end_ns and parent_id when they are read.
--     To write rows, give took_ns = end_ns - start_ns and parent_distance = frame_id - parent_id. PRAGMA table_info does not
--     list computed columns, so a client that asks it for columns finds these two in the view `frames` only.
--   * Parents have smaller ids than their children, and on a thread ids follow start_ns: a parent is found by
--     primary key, and the start of a time range by bisection.
--   * A child lies within its parent in time, siblings do not overlap.
CREATE TABLE frame(
    start_ns        INTEGER, -- entered
    took_ns         INTEGER, -- until it was left; NULL when still open at the end of the recording
    parent_distance INTEGER, -- by how much its id is greater than that of its caller; NULL at the bottom of a stack
    code_id         INTEGER, -- what it ran
    thread_id       INTEGER, -- on which it ran
    exit            INTEGER DEFAULT 0, -- enum 'frame.exit'
    kind            INTEGER DEFAULT 0, -- enum 'frame.kind'
    outcome         INTEGER DEFAULT 0, -- enum 'outcome'
    cache_entry_id  INTEGER, -- compiled code that ran in its place, or NULL
    frame_id        INTEGER PRIMARY KEY,
    parent_id       INTEGER AS (frame_id - parent_distance), -- the frame that called it; NULL at the bottom of a stack
    end_ns          INTEGER AS (start_ns + took_ns)          -- left; NULL when still open at the end of the recording
);


-- Totals for each code object, updated during the recording. So they include frames that were too short to be stored,
-- and can be read while the program still runs.
CREATE TABLE code_total(
    code_id  INTEGER PRIMARY KEY,
    calls    INTEGER, -- frames entered that were not resumptions
    total_ns INTEGER, -- time inside, callees included; of recursive calls only the outermost counts
    self_ns  INTEGER, -- time inside, callees excluded
    raised   INTEGER, -- frames left by an exception
    max_ns   INTEGER, -- the longest of its frames; NULL: not known
    skipped  INTEGER, -- calls that have ended, with the outcome 'skip'; NULL: not known
    -- library_ns leaves out imports and functions that wait (view waits); it is 0 for library code
    library_ns INTEGER -- own time of library code that it called, directly or through other library code; NULL: not known
);


-- Processor time of a thread, read from outside (/proc/PID/task/TID/schedstat) at most 100 times a second, and less
-- often while nothing changes or if there are many threads. Between two rows with the same cpu_ns the thread did not
-- run. The kernel adds the time of a running thread up to 10 ms late, and the time of a thread in the run queue only
-- when the thread gets a processor. Greenlets have no rows of their own: their thread has them. A thread has no rows
-- if the system does not tell its times, or if the recorder does not see the thread's ids (in a pid namespace of its
-- own).
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
    frame_id  INTEGER, -- the innermost frame, or the innermost one with a row if the innermost was only counted (frame_count)
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
    inner_ns INTEGER  -- time of the counted frames of this phase that stored frames of this code called, without the time of
                      --   stored frames inside them. Subtract it from the own time that the rows of `frame` give the callers
);
CREATE INDEX frame_count_code ON frame_count(code_id);


-- A search of the compiler's cache for compiled code that can run a call.
CREATE TABLE lookup(
    lookup_id       INTEGER PRIMARY KEY,
    frame_id        INTEGER, -- the call; its row may be missing when min_duration_ns is set
    thread_id       INTEGER, -- on which
    code_id         INTEGER, -- the code that was called
    start_ns        INTEGER, -- asked
    duration_ns     INTEGER, -- until the code to run was known: the time of guards, and of the compiler if it was called
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
    guards_run      INTEGER, -- how many guards ran, the failed guard included, in the order of that moment (guard_order).
                             --   0 for a check that passed: only the guards that tell torch's entries apart ran (stance
                             --   skip_guard_eval_unsafe). NULL for a check that failed: not known, because the order had
                             --   changed without a record, or torch's guards held when they were checked again. For a dict
                             --   that is unchanged since all of its guards held, torch does not check guards on constants
                             --   again: these count as run
    duration_ns     INTEGER  -- of all of them together
);
CREATE INDEX guard_check_lookup ON guard_check(lookup_id); -- made when the recording ends, like lookup_code


-- Sums of the lookups that a recording with a bound (meta.keep_ns, keep_bytes) dropped: those that began before
-- meta.kept_from_ns and did not ask the compiler. Several rows may have the same process, code, outcome and entry.
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
    source         TEXT,    -- the value that it checks: "L['x']"
    expression     TEXT,    -- its condition
    user_stack     TEXT     -- the user's code that needs it; NULL: the compiler does not tell
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


-- A run of the compiler, which a call caused.
CREATE TABLE compile(
    compile_id     INTEGER PRIMARY KEY,
    frame_id       INTEGER, -- the call that caused it
    code_id        INTEGER, -- what was compiled
    thread_id      INTEGER, -- on which
    label          TEXT,    -- the compiler's own name for it, such as "0/1"
    start_ns       INTEGER,
    end_ns         INTEGER,
    outcome        TEXT,    -- 'compiled', 'declined' (the compiler made no code, or gave up), 'skipped' (its rules exclude the
                            --   code), 'limit' (it has made as many entries as it may), 'error' (it raised)
    cache_entry_id INTEGER, -- the entry made, if one was
    reason         TEXT,    -- why it did not succeed, or why it was asked for
    sticky         INTEGER  -- 1: the compiler is not called again for this code; 0: it is; NULL: not known, or it succeeded
);
CREATE INDEX compile_code ON compile(code_id);
CREATE INDEX compile_frame ON compile(frame_id);


-- A part of a compile, as the compiler measures it. A phase may contain other phases.
CREATE TABLE compile_phase(
    compile_id INTEGER, -- of which compile; NULL when it came later on its own, as backward graphs do
    name       TEXT,    -- the compiler's name for it
    start_ns   INTEGER, -- by the wall clock, so to a microsecond or so
    end_ns     INTEGER,
    label      TEXT     -- the compile's label, if it was known then
);
CREATE INDEX compile_phase_compile ON compile_phase(compile_id);


-- From at_ns on, the calls of a code object, or the calls that it makes, were not compiled any more.
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
    ordinal        INTEGER, -- 0: a row of the guard that decided, which may have several rows; other numbers: the guards that
                            --   would have failed, too
    guard_id       INTEGER, -- the guard
    kind           TEXT,    -- its kind
    source         TEXT,    -- the value that it checked, as exactly as is known: "L['x'].size()[0]"
    aspect         TEXT,    -- the property that differed: 'size', 'stride', 'ndim', 'dtype', 'device', 'requires_grad' or
                            --   'dispatch_keys' of a tensor, 'value', 'type', 'identity', 'length', 'keys', 'attribute',
                            --   'alive', 'state', 'relation' between sources, 'backend'; NULL: not known
    dimension      INTEGER, -- of a 'size' or 'stride', from 0; NULL: none, or all of them
    expected       TEXT,    -- the value for which it holds
    actual         TEXT,    -- the value that there was
    text           TEXT,    -- the cause as a sentence
    how            TEXT     -- 'observed': when the lookup checked it; 're-checked': when it was checked again afterwards;
                            --   're-checked in part': no cause, but there was no time to check all other guards again
);
CREATE INDEX recompile_cause_compile ON recompile_cause(compile_id);


-- A place where a compile had to end its graph. Python runs the instruction there, and a resume function continues.
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
-- profiler, or a range of NVTX. Spans nest by the code that runs in them, also across asyncio tasks, and not by time.
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


-- Arguments and return values of calls of the functions that `run --args` named. No code of the program ran to make
-- these texts: they have the values of exact builtin types, in containers up to two levels deep; the type, format and
-- shape of arrays and tensors; and only the type of other objects.
CREATE TABLE call_args(
    frame_id  INTEGER PRIMARY KEY, -- the call
    arguments TEXT, -- a JSON object by name; "...": 3 counts those that had no room; NULL: none, or --values off
    result    TEXT  -- what it returned, JSON; NULL: it raised, yielded or did not end. The call of a generator or coroutine function
                    --   returned that object; what this returned at its end has the row of its last part. Yielded values are not kept
);


-- An exception that left a process's main module, the last if several did. It ended the process unless that was embedded
-- (view `endings`).
CREATE TABLE uncaught(
    process_id INTEGER PRIMARY KEY, -- where
    at_ns      INTEGER, -- when it left the module
    type       TEXT,    -- name of its class; NULL: the module ended otherwise after all, as by sys.exit()
    code_id    INTEGER, -- the innermost of the traceback's functions that is the program's own; NULL: none is known
    line       INTEGER  -- the line in it
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
-- Traces that are older than this table have neither it nor trial_function until `try` stores a trial.
--   * The trials of one `dyntrace try` are a batch. The first of them ran unchanged: it is the baseline of the others.
--   * Counts are those of the whole run, by the definitions of views.sql; NULL: the run left no trace.
--   * The views `trials` and `trial_functions` tell which trial works, and which is a gain.
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


-- The counts of a trial for one function: a row for each function that the trial compiled or called.
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
