"""Rows of the TUI's screens on the trace of tui_trace.py, of 120 columns, with one blank for several; test_tui.py looks for them.

The views that are not here have a page in golden/tui/. What a row is from: terminal.VIEWS."""
ROWS = {
    "functions-sorted": [
        'function calls hits↓ misses recompiles breaks entries guards compiling self total',
        '>step 296 293 3 2 2 3 166 us 330 ms 348 ms 696 ms',
        'evil\\x1b[31m\\x1b]0;t\\x07\\n… 8 6 2 0 0 0 - - 9.4 ms 18.8 ms',
    ],
    "functions-filter": [
        'function calls hits misses recompiles breaks entries guards compiling self total per call',
        '>step 296 293 3 2 2 3 166 us 330 ms 348 ms 696 ms 2.35 ms',
    ],
    "function-source": [
        'Its calls, and when',
        '0/2 80 ms x size[0]: expected 16 (0/0), actual 20, +1 entry, same guard',
        'Durations of 296 calls: p50 ~2.35 ms, p95 ~2.35 ms, longest 2.35 ms',
        '> 8 return [value * 2 for value in y]',
    ],
    "entries": [
        'function label hits tried guards born (s) last used (s) died (s) death cause backend where',
        '>step 0/0 74 295 4 0.250000 0.570600 - inductor model.py:5',
        "Net.forward 1/0 50 0 1 0.300000 1.966500 1.000000 L['self'] died inductor model.py:12",
        'step 0/2 149 147 4 0.780000 1.980600 - inductor model.py:5',
    ],
    "entry-bytecode": [
        'entry 0/0 of step model.py:5',
        "3 295 222 L['x'] TENSOR_MATCH check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32,",
        '0 295 0 global state GLOBAL_STATE ___check_global_state()',
        '> │ RETURN_VALUE',
    ],
    "recompiles": [
        'function recompiles source expected actual needed by kind compiling first (s) last (s) where',
        '>step 2 x size[0] 16 18, 20 model.py:6 TENSOR_MATCH 180 ms 0.400000 0.700000 model.py:5',
    ],
    "causes": [
        'at (s) function compile older entry source expected actual needed by kind compiling how',
        '>0.400000 step 0/1 0/0 x size[0] 16 18 model.py:6 TENSOR_MATCH 100 ms observed',
        '0.700000 step 0/2 0/1 x size[0] 18 20 model.py:6 TENSOR_MATCH 80 ms observed',
    ],
    "compiles": [
        'compile_id↑ at (s) outcome function label compiling breaks causes reason where',
        '> 1 0.100000 compiled step 0/0 150 ms 1 0 first call model.py:5',
        '4 0.260000 compiled Net.forward 1/0 40 ms 0 0 first call model.py:12',
        '6 0.910000 skipped work 1 ms 0 0 frame is in the skip list worker.py:3',
    ],
    "break": [
        '>Failed to trace builtin operator',
        'Hoist the print at line 7 out of step, or let torch print at the end of the graph:',
        'Explanation: Dynamo does not know how to trace builtin operator `print`',
    ],
    "ledger-end": [
        'lookup_id↑ at (s) outcome function entry checked lookup call thread inputs where',
        '364 1.816100 hit Net.forward 1/0 0 300 ns 2.35 ms 1 model.py:12',
        '> 400 1.985300 limit evil\\x1b[31m\\x1b]0;t… 0 900 ns 2.35 ms 2 dir\\x1b[2J/\\t…',
    ],
    "ledger-filter": [
        'lookup_id↑ at (s) outcome function entry checked lookup call thread inputs where',
        '> 8 0.142900 limit helper 0 900 ns 2.35 ms 2 model.py:16',
        '104 0.594100 limit helper 0 900 ns 2.35 ms 2 model.py:16',
        '200 1.045300 limit evil\\x1b[31m\\x1b]0;t… 0 900 ns 2.35 ms 2 dir\\x1b[2J/\\t…',
    ],
    "ledger-search": [
        'lookup_id↑ at (s) outcome function entry checked lookup call thread inputs',
        '> 5 0.128800 compiled step 0/0 0 25 ms 2.35 ms 1 model: Net, x: Te…',
        '12 0.161700 hit Net.forward 1/0 0 300 ns 2.35 ms 1',
    ],
    "call-plain": [
        '>step model.py:5 function',
        '███ 1 x step.<locals>.<listcomp> 588 us first 0.115288 s, longest 588 us model.py:8',
        'Called by, innermost first; lines are where functions begin',
    ],
    "guards": [
        'kind source entries evaluations failures time (est.) expression',
        '>GLOBAL_STATE global state 3 663 0 41.4 us ___check_global_state()',
        "TENSOR_MATCH x 3 663 370 41.4 us check_tensor(L['x'], Tensor, DispatchKeySet(C…",
    ],
    "checks": [
        'guard_check_id↑ at (s) result function entry position ran time kind failed',
        'there are none here; :checks has those of the whole trace',
    ],
    "timeline-zoomed": [
        '0.098437 s 0.129688 s',
        '>MainThread [4711] rank 0 350 calls looked up',
        '0.100000 s (a column is 260 us) compile, 150 ms, graph broke 0 lookups <module>',
    ],
    "flame": [
        'share total self calls function',
        '> 48.6 % 2.00 s 0 ns - ▾ MainThread [4711] rank 0',
        '0.3 % 14.1 ms 14.1 ms 6 evil\\x1b[31m\\x1b]0;t\\x07\\n\\u202egnp.́́日本語\\u200dxxxxxxxxxxxxxxxxxxxxxxxxx…',
    ],
    "replay-miss": [
        'lookup 24 event 26 of 409 0.218100 s 10.9 % thread 2 (loader) of process 4711',
        'helper (model.py:16): limit, 0 entries checked, 900 ns',
        'cache as this lookup found it, in the order tried',
        '> 16 def helper(x):',
    ],
    "replay-filter": [
        'compile 1 event 1 of 409 0.100000 s 5.0 % thread 1 (MainThread) of process 4711',
        'step (model.py:5): compiled 0/0, 150 ms; first call',
        'cache at that moment, in the order tried',
        '> 5 def step(model, x):',
        '50 of 409 events pass',
    ],
    "what-if-asked": [
        '>recompile_limit=2',
        'evil\\x1b[31m\\x1b]0;t\\x07\\n\\xe2\\x80\\xaegnp.́́日本語\\u200dxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…',
    ],
    "processes": [
        'pid rank ended ran threads started (s) python torch mode command',
        '>4711 0 exit 0 2 s 2 0.000000 3.11.7 2.13.0 all python train.py',
        '4712 1 signal 9 (SIGKILL) 1.99 s 1 0.005000 3.11.7 all python worker.py 日本',
    ],
    "process": [
        '>process 4712, rank 1 python worker.py 日本',
        'signal 9 (SIGKILL) at 2.000 s, after 1.99 s',
        'Open when it ended: thread 3 MainThread, innermost first; lines are where functions begin',
    ],
    "frames": [
        'frame_id↑ at (s) call ended outcome function thread pid where',
        '> 1 0.001000 2.00 s return plain <module> MainThread 4711 model.py:1',
        '11 0.129387 588 us return plain step.<locals>.<listcomp> MainThread 4711 model.py:8',
        '13 0.134087 588 us return plain step.<locals>.<listcomp> MainThread 4711 model.py:8',
    ],
    "losses": [
        'at (s) events pid thread cause',
        '>1.500000 120 4712 MainThread ring was full',
        '0.000000 0 4711 MainThread stall: waited 3 ms',
    ],
    "trials": [
        'trial setting note compiles recompiles breaks eager hits compiling step function ran exit',
        'no trials: dyntrace try runs the recorded command under settings',
    ],
    "spans": [
        'span_id↑ at (s) took name attributes within function thread pid of',
        'no spans: dyntrace.span("name") in the program makes them',
    ],
    "sql-result": [
        'compile_id code_id label',
    ],
    "sql-error": [
        'near "nothing": syntax error',
    ],
    "sql": [
        'name what it shows',
        '>cache-entries Cache entries and how often each was tried and hit; those never hit and…',
        'recompile-causes Guards that made recompiles necessary, most recompiles first: function,…',
        'resume-functions Functions that run the rest after a graph break, and what they were mad…',
    ],
    "output": [
        'nothing was printed',
    ],
    "help": [
        '>In this view, overview: the answer on one screen',
        'v split the screen: show beside or below what Enter would open; again: end the split :split',
    ],
    "dyntrace": [
        '>120 events were lost (`dyntrace report` says where): there may be more than was counted',
        'check allowed found pid function where calls compile compile_id at_ns why',
        'max-recompiles 0 2 4711 step model.py:5 296 0/1 2 400000000 x size[0]: expected…',
    ],
    "split": [
        'function calls hits misses recompiles│ function step',
        '>step 296 293 3 2│ step model.py:5 function',
        'Net.forward 48 48 0 0│ 296 calls, 696 ms in it, 348 ms of that its own',
        '│ Durations of 296 calls: p50 ~2.35 ms, p95 ~2.35 ms, longe…',
    ],
    "prompt": [
        'function calls hits misses recompiles breaks entries guards compiling self total',
        '>step 296 293 3 2 2 3 166 us 330 ms 348 ms 696 ms',
        'evil\\x1b[31m\\x1b]0;t\\x07\\n\\u202… 8 6 2 0 0 0 - - 9.4 ms 18.8 ms',
        'filter: self >1',
    ],
}
