"""Programs that use torch as people do: dyntrace changes nothing in what they do, and its tables say what they know.

Each program of ./programs runs three times: alone, on our evaluator (shim) and on torch's own under our eyes (observe).
Its last line of output is what it knows of itself, in ways that have nothing to do with dyntrace (programs/know.py). What
observe mode cannot see may be NULL; it is never something else than the truth.
"""
import collections
import json
import re
import subprocess

import pytest

from torch_here import MODES, PROGRAMS
from shared import holds

ALL = sorted(path.stem for path in PROGRAMS.glob("*.py") if "from know import" in path.read_text() or path.stem == "no_torch")
# The others take minutes, together: `make torch-tests` has them, `./dev test` has not.
QUICK = {"batch_limit", "no_torch", "stances"}


def programs(but=()):
    return pytest.mark.parametrize(
        "program", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ALL if name not in but])


every, compiling = programs(), programs(but=["no_torch"])
# What starts by other words than its name alone cannot be counted so; ranks count for themselves.
monitored = programs(but=["no_torch", "ddp"])
modes = pytest.mark.parametrize("mode", MODES)


# ---- reading a trace ----

def name_of(qualname):
    """The name by which programs know a function; f@17 is what is left of f after a break in line 17."""
    found = re.fullmatch(r"(.*?)torch_dynamo_resume_in_(.*)_at_(\d+)", qualname or "")
    return f"{found[1]}{found[2]}@{found[3]}" if found else qualname


class Part:
    """What one process knows, and what the trace has of it. Without ranks that is the program's first process; its
    children's calls count as its own, as it knows of them."""

    def __init__(self, run, known):
        self.run, self.known = run, known
        if "rank" in known:
            rows = run.rows("SELECT process_id FROM process WHERE rank = ?", known["rank"])
        else:
            rows = run.rows("SELECT process_id FROM process WHERE parent_process_id IS NULL")
        assert len(rows) == 1, rows
        self.process, = rows[0]
        self.family = {self.process} if "rank" in known else {one for one, in run.rows("SELECT process_id FROM process")}

    def of(self, sql, family=False):
        """Rows of SQL, whose first column is a process that is left out."""
        wanted = self.family if family else {self.process}
        return [row[1:] for row in self.run.rows(sql) if row[0] in wanted]

    def compiles(self):
        """name -> its compiles: (compile_id, label, outcome, file, entry), oldest first."""
        found = collections.defaultdict(list)
        for qualname, *row in self.of(
                "SELECT c.process_id, c.qualname, m.compile_id, m.label, m.outcome, c.filename, m.cache_entry_id "
                "FROM compile m JOIN code c USING (code_id) "
                "ORDER BY m.start_ns, m.compile_id"):
            found[name_of(qualname)].append(row)
        return found


@pytest.fixture
def parts(runs):
    def parts(program, mode):
        run = runs(program, mode)
        return [Part(run, known) for known in run.known.get("ranks", [run.known])]
    return parts


def lines_of(text, sort):
    """What a program wrote to stderr, without our line and without what differs from run to run: time, process, address, port."""
    text = re.sub(r"\b([A-Z])\d{4} \d\d:\d\d:\d\d\.\d+ (\d+ )?", r"\1 ", text)
    text = re.sub(r"0x[0-9a-f]+|\b\d{9,}\b", "N", text)
    lines = [line for line in text.splitlines() if not line.startswith("dyntrace: ")]
    return sorted(lines) if sort else lines


# ---- nothing changes ----

@every
@modes
def test_each_program_does_the_same_with_and_without_dyntrace(runs, program, mode):
    alone, traced = runs(program, "plain"), runs(program, mode)
    assert alone.known
    ranks = "ranks" in alone.known  # whose stderr is in any order; what gloo prints before the program's line runs into each other
    printed = [run.out.splitlines()[-1] if ranks else run.out for run in (alone, traced)]
    assert (traced.status, printed[1]) == (alone.status, printed[0]), traced.err
    assert lines_of(traced.err, ranks) == lines_of(alone.err, ranks)


# ---- the trace as a whole ----

@every
@modes
def test_each_trace_is_sound_and_keeps_the_public_contract(runs, program, mode):
    holds(runs(program, mode))


@every
@modes
def test_recordings_of_all_torch_programs_have_no_loss(runs, program, mode):
    assert runs(program, mode).rows("SELECT cause, events FROM losses WHERE NOT is_stall") == []


@every
@modes
def test_each_process_has_its_torch_version_mode_and_rank(runs, parts, program, mode):
    run = runs(program, mode)
    if program == "no_torch":
        assert run.rows("SELECT torch_version, torch_mode, torch_note FROM process") == [(None, None, None)]
        return
    for part in parts(program, mode):
        (version, how, note), = part.of("SELECT process_id, torch_version, torch_mode, torch_note FROM process")
        assert [int(number) for number in version.split(".")[:2]] == part.known["torch"]
        assert how == mode and (note is None or mode == "observe"), note
        if "rank" in part.known:
            assert part.of("SELECT process_id, rank, local_rank FROM process") == [(part.known["rank"], part.known["local_rank"])]


# ---- calls ----

@every
@modes
def test_outcomes_of_calls_match_the_programs_own_list(parts, program, mode):
    """The outcomes of each function's calls are compared in order. Where several threads call, their numbers are."""
    for part in parts(program, mode):
        wanted = dict(part.known.get("calls", {}))
        found = {name: [] for name in wanted}
        for filename, qualname, outcome in part.of(
                "SELECT c.process_id, c.filename, c.qualname, "
                "(SELECT name FROM enum WHERE kind = 'outcome' AND value = l.outcome) "
                "FROM lookup l JOIN code c USING (code_id) ORDER BY c.process_id, l.start_ns, l.lookup_id", family=True):
            name = name_of(qualname)
            if name in wanted or filename.endswith("/" + part.known["file"]):
                found.setdefault(name, []).append(outcome)
        # A frame whose code is marked is not looked up: its outcome stands with the frame alone.
        for qualname, outcome in part.of("SELECT process_id, qualname, outcome FROM frames WHERE outcome = 'skip' "
                                         "ORDER BY start_ns", family=True):
            if name_of(qualname) in wanted:
                found[name_of(qualname)].append(outcome)
        if mode == "shim":
            assert agree(found, wanted) is None
        else:
            assert observed(found, wanted) is None


def test_both_modes_record_the_same_skip_marks(runs):
    """Marks, and who asked for them, are the same in both modes."""
    marks = [sorted(runs("stances", mode).rows(
        "SELECT qualname, action, recursive_action, reason FROM code_mark JOIN code USING (code_id)"), key=str) for mode in MODES]
    assert marks[0] == marks[1]
    if runs("stances", "shim").known["torch"] < [2, 7]: # since then a wrapper of torch's is marked
        assert ("only_me", "skip", "default", None) in marks[0]
    assert marks[0]


def agree(found, wanted):
    if program_has_threads(wanted):
        found, wanted = ({name: sorted(map(str, all_)) for name, all_ in one.items()} for one in (found, wanted))
    return None if found == wanted else differences(found, wanted)


def observed(found, wanted):
    """Observe mode: hits and compilations in their order; whatever else is said is right, or nothing is said."""
    for name in wanted:
        known = [one for one in found.get(name, []) if one is not None]
        if len(known) == len(wanted[name]):
            if sorted(known) != sorted(wanted[name]):
                return name, known, wanted[name]
        for outcome in ("hit", "compiled"):
            if known.count(outcome) != wanted[name].count(outcome):
                return name, outcome, known, wanted[name]
        for outcome in set(known):
            if known.count(outcome) > wanted[name].count(outcome):
                return name, outcome, known, wanted[name]
    return None


def program_has_threads(wanted):
    return any(name.startswith("own_") for name in wanted)


def differences(found, wanted):
    return {name: {"found": found.get(name), "wanted": wanted.get(name)} for name in {*found, *wanted}
            if found.get(name) != wanted.get(name)}


@every
@modes
def test_number_of_frames_equals_the_programs_own_count_of_calls(parts, program, mode):
    """Each call of a function that Python entered has a frame, whatever code ran. Inlined calls have none."""
    for part in parts(program, mode):
        for name, count in part.known.get("frames", {}).items():
            rows = part.of(f"SELECT process_id, count(*) FROM frames WHERE qualname = '{name}' AND kind = 'call' "
                           f"AND filename LIKE '%/{part.known['file']}' GROUP BY process_id", family=True)
            assert (name, sum(row[0] for row in rows)) == (name, count)


@monitored
@modes
def test_number_of_frames_equals_the_count_by_sys_monitoring(runs, program, mode):
    """In a fourth run, without us, sys.monitoring counts how often each function of the program's file was entered."""
    counted = runs(program, "counted")
    assert counted.known
    with open(counted.path, encoding="utf-8") as file:
        counts = collections.Counter(json.load(file))
    run = runs(program, mode)
    found = collections.Counter()
    # a call that ended in an error of the compiler never entered the function
    for qualname, line, count in run.rows(
            "SELECT qualname, first_line, count(*) FROM frames JOIN process p USING (process_id) WHERE p.parent_process_id IS NULL "
            f"AND filename LIKE '%/{run.known['file']}' AND kind = 'call' AND COALESCE(outcome, '') NOT IN ('callback_error', 'guard_error') "
            "GROUP BY code_id"):
        found[f"{qualname.rpartition('.')[2]}:{line}"] += count
    assert found == counts


@compiling
@modes
def test_a_frame_has_the_outcome_and_entry_of_its_lookup(runs, program, mode):
    assert runs(program, mode).rows(
        "SELECT l.lookup_id, l.outcome, f.outcome, l.cache_entry_id, f.cache_entry_id FROM lookup l JOIN frame f USING (frame_id) "
        "WHERE l.outcome <> f.outcome OR COALESCE(l.cache_entry_id, -1) <> COALESCE(f.cache_entry_id, -1) LIMIT 5") == []


# ---- compilations and entries ----

@compiling
@modes
def test_compiles_match_the_metrics_of_torch(parts, program, mode):
    """torch's own metrics have a record for each compile that got an id."""
    for part in parts(program, mode):
        found = [(label, name.partition("@")[0].rpartition(".")[2], outcome)
                 for name, compiles in part.compiles().items() for _, label, outcome, _, _ in compiles if label]
        for label, name, _, failure, _ in part.known["metrics"]:
            name = re.sub(r"torch_dynamo_resume_in_(.*)_at_\d+", r"\1", name or "")
            # a record lacks the name where torch gave up early; a frame without operations is no failure to it
            able = ("error", "limit", "skipped", "declined") if failure else ("compiled", "skipped")
            if part.known["torch"] < [2, 11]: # nor is one with a break in a loop, before 2.11
                able += ("declined",)
            here = [one for one in found if one[0] == label and (not name or one[1] == name) and one[2] in able]
            assert here, ((label, name, failure), found)
            found.remove(here[0])
        assert found == []


@compiling
@modes
def test_each_function_has_the_compiles_that_its_calls_needed(parts, program, mode):
    """The program knows the outcome of each call, and so which calls compiled, and which attempts gave no code and why."""
    made_by = {"compiled": ["compiled"], "declined": ["declined", "skipped"], "callback_error": ["error", "limit"], "limit": ["limit"]}
    for part in parts(program, mode):
        if part.family != {part.process}:
            continue        # workers' compilations are their own
        compiles = part.compiles()
        for name, outcomes in part.known["calls"].items():
            wanted = [made_by[outcome] for at, outcome in enumerate(outcomes)
                      if outcome in made_by and not (outcome == "limit" and "limit" in outcomes[:at])]
            found = [one[2] for one in compiles.get(name, [])]
            assert len(found) == len(wanted) and all(one in able for one, able in zip(found, wanted)), (name, found, wanted)


@compiling
@modes
def test_living_entries_match_the_list_that_torch_has(parts, program, mode):
    """torch itself lists a function's entries. Each was hit as often as the recorded calls say."""
    for part in parts(program, mode):
        rows = part.of("SELECT c.process_id, c.qualname, e.label, e.died_ns IS NULL, e.backend, "
                       "(SELECT count(*) FROM lookup l WHERE l.cache_entry_id = e.cache_entry_id AND l.outcome = 1) "
                       "FROM cache_entry e JOIN code c USING (code_id) WHERE c.qualname <> 'plain'")
        for name, labels in part.known["live"].items():
            assert sorted(row[1] for row in rows if name_of(row[0]) == name and row[2]) == sorted(labels), name
        for name, outcomes in part.known["calls"].items():
            if part.family == {part.process}:
                assert (name, sum(row[4] for row in rows if name_of(row[0]) == name)) == (name, outcomes.count("hit"))
        assert all(row[3] for row in rows if name_of(row[0]) in part.known["calls"]), rows


@compiling
@modes
def test_deaths_of_entries_match_the_programs_own_list(parts, program, mode):
    for part in parts(program, mode):
        compiles = part.compiles()
        dead = dict(part.of("SELECT c.process_id, e.cache_entry_id, e.death_cause FROM cache_entry e JOIN code c USING (code_id) "
                            "WHERE e.died_ns IS NOT NULL AND c.filename LIKE '%/' || '" + part.known["file"] + "'"))
        for name, compilation, words in part.known["deaths"]:
            cause = dead.pop(compiles[name][compilation][4], "alive")
            assert words in (cause or ""), (name, compilation, cause)
        assert dead == {}


@compiling
@modes
def test_compiled_code_and_resume_functions_have_an_origin(runs, program, mode):
    rows = runs(program, mode).rows("SELECT c.qualname, c.kind, o.qualname FROM code c LEFT JOIN code o ON o.code_id = c.origin_code_id "
                                    "WHERE c.kind IN ('resume', 'compiled') OR c.qualname LIKE '%torch_dynamo_resume_in_%'")
    for qualname, kind, origin in rows:
        assert kind in ("resume", "compiled") and origin, (qualname, kind, origin)
        if kind == "resume":
            assert name_of(qualname).partition("@")[0] == name_of(origin).partition("@")[0], (qualname, origin)


# ---- causes ----

def deciding(part):
    """(name, compilation, older compilation of that name) -> the causes that decided: (source, expected, actual, kind, text, how)"""
    place = {}
    for name, compiles in part.compiles().items():
        for number, one in enumerate(compiles):
            place[one[0]] = name, number
    found = collections.defaultdict(list)
    for compilation, older, *row in part.of(
            "SELECT c.process_id, r.compile_id, e.compile_id, r.source, r.expected, r.actual, r.kind, r.text, r.how "
            "FROM recompile_cause r JOIN compile m ON m.compile_id = r.compile_id JOIN code c ON c.code_id = m.code_id "
            "JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id WHERE r.ordinal = 0 ORDER BY r.rowid"):
        if compilation in place and older in place:
            found[(*place[compilation], place[older][1])].append(row)
    return found


@compiling
@modes
def test_causes_of_recompiles_match_those_that_the_program_planted(parts, program, mode):
    """The author of the program knows which guard decides, and its expected and actual value."""
    for part in parts(program, mode):
        found = deciding(part)
        ours = {key for key in found if any(file.endswith("/" + part.known["file"]) for *_, file, _ in part.compiles()[key[0]])}
        wanted = {(name, compilation, older): rest for name, compilation, older, *rest in part.known["causes"]}
        assert ours == set(wanted), (ours ^ set(wanted))
        wrong = []
        for key, (source, expected, actual, kind) in wanted.items():
            assert {row[5] for row in found[key]} == {"observed" if mode == "shim" else "re-checked"}, (key, found[key])
            # one guard may have had several reasons
            wanted_row = [known if known is None else str(known) for known in (source, expected, actual, kind)]
            if mode == "observe" and wanted_row[3] == "BACKEND_MATCH" and found[key][0][:4] == [None] * 4:
                continue        # no guard of the entry fails when asked: that it was for another backend is not seen
            if not any(all(known is None or said == known for said, known in zip(row, wanted_row)) for row in found[key]):
                wrong.append((key, wanted_row, found[key]))
        assert wrong == []


@compiling
@modes
def test_causes_match_those_that_torch_gave(parts, program, mode):
    """Torch keeps the first reason that it finds for each recompilation, as `older label: sentence`."""
    for part in parts(program, mode):
        wanted = {label: reason for label, _, _, _, reason in part.known["metrics"] if reason}
        found = collections.defaultdict(list)
        for label, older, text in part.of(
                "SELECT c.process_id, m.label, e.label, r.text FROM recompile_cause r JOIN compile m ON m.compile_id = r.compile_id "
                "JOIN code c ON c.code_id = m.code_id JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id"):
            found[label].append(f"{older}: " + re.sub(r"\d{9,}", "N", (text or "").split("\n")[0].split("  #")[0].strip()))
        for label, reason in wanted.items():
            if "Cache line invalidated" in reason or all("another backend" in one for one in found[label]):
                continue            # torch asks entries afterwards that the call did not ask, and the other way round
            assert any(same_sentence(one, reason) for one in found[label]), (label, reason, found[label])


def same_sentence(one, other):
    bare = lambda text: " ".join(re.sub(r"[LG]\['(\w+)'\]", r"\1", text).replace("GLOBAL_STATE changed: ", "").split())
    return bare(one) == bare(other) or bare(one).startswith(bare(other)) or bare(other).startswith(bare(one))


@compiling
def test_guards_that_failed_are_named(runs, parts, program):
    """Shim: a check that failed says which guard failed and how many ran before; there are as many as lookups need."""
    run = runs(program, "shim")
    unknown = run.rows("SELECT c.qualname, k.* FROM guard_check k JOIN lookup l USING (lookup_id) JOIN code c USING (code_id) "
                       "WHERE k.result = 'fail' AND (k.failed_guard_id IS NULL OR k.guards_run < 1)")
    # Under skip_guard_eval_unsafe only guards that tell entries apart are checked: which one failed is not known.
    assert not unknown or (program == "stances" and {row[0] for row in unknown} == {"f"})
    assert run.rows("SELECT l.lookup_id, l.entries_checked, count(k.guard_check_id) FROM lookup l LEFT JOIN guard_check k "
                    "ON k.lookup_id = l.lookup_id AND k.result <> 'backend_mismatch' GROUP BY l.lookup_id HAVING l.entries_checked <> count(k.guard_check_id)") == []
    # the one that failed stands among the causes, and is the one that decided
    assert run.rows("SELECT r.* FROM recompile_cause r JOIN compile m USING (compile_id) JOIN lookup l ON l.frame_id = m.frame_id "
                    "JOIN guard_check k ON k.lookup_id = l.lookup_id AND k.cache_entry_id = r.cache_entry_id "
                    "WHERE r.ordinal = 0 AND k.result = 'fail' AND r.guard_id IS NOT k.failed_guard_id") == []


@pytest.mark.parametrize("program", ["stances"])
def test_why_says_that_a_hit_did_not_run_all_guards(runs, dyntrace, program):
    """Under skip_guard_eval_unsafe torch runs only the guards that tell entries apart. Two calls of the program do that."""
    page, found = (subprocess.run([dyntrace, "why", "f", runs(program, "shim").path, *more], capture_output=True, text=True,
                                  check=True).stdout for more in ([], ["--json"]))
    assert page.count("; 1 hit under set_stance(skip_guard_eval_unsafe=True): not all guards ran") == 2
    assert sum(entry["few_guards"] for entry in json.loads(found)["entries"]) == 2
    rows = runs(program, "shim").rows("SELECT k.guards_run FROM guard_check k JOIN cache_entry e USING (cache_entry_id) "
                                      "WHERE k.result = 'pass' AND k.guards_run <> e.guard_count")
    assert rows == [(0,), (0,)]


@compiling
def test_observe_mode_records_no_guard_count_of_a_failed_check(runs, program):
    """In observe mode torch runs the guards, and we do not see how many ran."""
    assert runs(program, "observe").rows("SELECT count(*) FROM guard_check WHERE guards_run IS NOT NULL AND result = 'fail'") == [(0,)]


# ---- what a compile did ----

@compiling
@modes
def test_graph_breaks_match_the_programs_own_list(parts, program, mode):
    for part in parts(program, mode):
        found = collections.Counter()
        for qualname, place, line, resumed in part.of(
                "SELECT c.process_id, c.qualname, p.qualname, b.line, b.resume_code_id IS NOT NULL FROM graph_break b "
                "JOIN compile m USING (compile_id) JOIN code c ON c.code_id = m.code_id LEFT JOIN code p ON p.code_id = b.code_id "
                f"WHERE c.filename LIKE '%/{part.known['file']}'"):
            assert name_of(place) == name_of(qualname)
            found[name_of(qualname), line, bool(resumed)] += 1
        wanted = collections.Counter()
        for name, line, times, resumes in part.known["breaks"]:
            wanted[name, line, resumes] += times
        assert found == wanted


@compiling
@modes
def test_graph_breaks_match_the_count_by_torch(parts, program, mode):
    """The breaks are compared by message, as in torch's counter."""
    for part in parts(program, mode):
        counted = part.known["counters"].get("graph_break", {})
        found = collections.Counter(re.sub(r"0x[0-9a-f]+|\d{9,}", "N", reason) for reason, in part.of(
            "SELECT c.process_id, b.reason FROM graph_break b JOIN compile m USING (compile_id) JOIN code c ON c.code_id = m.code_id"))
        assert {reason: found[reason] for reason in counted} == counted


@compiling
@modes
def test_graphs_match_those_that_the_backend_was_given(parts, program, mode):
    """Each graph has the nodes that the program's own backend was given, in that order."""
    for part in parts(program, mode):
        nodes = collections.defaultdict(list)
        for graph, op, name in part.of("SELECT c.process_id, g.graph_id, n.opcode, n.name FROM graph g JOIN graph_node n USING (graph_id) "
                                       "JOIN compile m USING (compile_id) JOIN code c ON c.code_id = m.code_id "
                                       "ORDER BY g.graph_id, n.ordinal"):
            nodes[graph].append([op, name])
        found = list(nodes.values())
        at = 0
        for wanted in part.known["graphs"]:         # a graph that went to another backend may stand between
            assert wanted in found[at:], (wanted, found[at:])
            at = found.index(wanted, at) + 1
        assert len(found) == part.known["counters"].get("stats", {}).get("unique_graphs", 0) - part.known.get("unseen_graphs", 0)


@compiling
@modes
def test_a_compile_has_its_listings(runs, program, mode):
    """Each compile has its bytecode before and after, and its guards."""
    run = runs(program, mode)
    wanted = {"original_bytecode", "modified_bytecode", "guards"}
    for compilation, in run.rows("SELECT compile_id FROM compile WHERE outcome = 'compiled'"):
        assert wanted <= {kind for kind, in run.rows("SELECT kind FROM listing WHERE compile_id = ?", compilation)}


@compiling
@modes
def test_misses_have_a_signature_of_their_inputs(runs, program, mode):
    if mode == "shim":
        assert runs(program, mode).rows("SELECT count(*) FROM call_ledger WHERE outcome IN ('compiled', 'limit', 'run_only') "
                                        "AND signature IS NULL") == [(0,)]


# ---- single programs ----

def test_a_function_at_its_recompile_limit_is_marked_run_only(runs):
    """The mark says when the function was given up, and why."""
    rows = runs("batch_limit", "shim").rows("SELECT c.qualname, k.action, k.reason FROM code_mark k JOIN code c USING (code_id) "
                                            "WHERE c.qualname = 'score'")
    assert [(name, action) for name, action, _ in rows] == [("score", "run_only")]


@pytest.mark.parametrize("mode", ["shim", pytest.param("observe", marks=pytest.mark.slow)])
def test_entries_of_each_region_are_told_apart(runs, mode):
    rows = runs("regions", mode).rows("SELECT e.label, e.region_id FROM cache_entry e JOIN code c USING (code_id) "
                                      "WHERE c.qualname = 'f' ORDER BY e.born_ns")
    assert rows == [("0/0", 0), ("0/1", 1), ("0/2", None)]


@pytest.mark.slow
@modes
def test_dataloader_workers_are_recorded_as_separate_processes(runs, mode):
    run = runs("dataloader", mode)
    parents = run.rows("SELECT parent_process_id IS NULL, count(*) FROM process GROUP BY 1 ORDER BY 1")
    assert parents == [(0, 4), (1, 1)]
    assert run.rows("SELECT DISTINCT exit_code FROM process") == [(0,)]
    # each worker's entries are its own, with what it inherited beside them
    assert len(run.rows("SELECT DISTINCT c.process_id FROM cache_entry e JOIN code c USING (code_id) WHERE c.qualname = 'in_worker'")) == 4


@pytest.mark.slow
@modes
def test_ranks_of_a_job_are_recorded(runs, mode):
    assert runs("ddp", mode).rows("SELECT rank, local_rank FROM process WHERE rank IS NOT NULL ORDER BY rank") == [(0, 0), (1, 1)]


@pytest.mark.slow
@modes
def test_calls_of_each_thread_are_on_that_thread(runs, mode):
    """Each worker's own function was compiled and called on that worker's thread."""
    rows = runs("threads", mode).rows("SELECT c.qualname, t.name, count(*) FROM lookup l JOIN code c USING (code_id) "
                                      "JOIN thread t ON t.thread_id = l.thread_id WHERE c.qualname LIKE 'own%' GROUP BY 1, 2")
    assert rows == [(f"own_{number}", f"worker-{number}", 26) for number in range(4)]


@pytest.mark.parametrize("program", ["stances", pytest.param("late_import", marks=pytest.mark.slow)])
def test_torch_off_records_no_decision(runs, program):
    alone, traced = runs(program, "plain"), runs(program, "off")
    assert (traced.status, traced.out, lines_of(traced.err, False)) == (alone.status, alone.out, lines_of(alone.err, False))
    assert traced.rows("SELECT torch_mode FROM process") == [("off",)]
    for table in ("lookup", "compile", "cache_entry", "graph", "graph_break"):
        assert traced.rows(f"SELECT count(*) FROM {table}") == [(0,)]


def test_torch_auto_becomes_shim_or_observe_and_says_why_observe(runs):
    traced = runs("late_import", "auto")
    (mode, note), = traced.rows("SELECT torch_mode, torch_note FROM process")
    assert mode in MODES and bool(note) == (mode == "observe")
    assert [line for line in traced.err.splitlines() if line.startswith("dyntrace: ")] == ([f"dyntrace: {note}"] if note else [])


# ---- replay ----

REPLAYED = ["batch_limit", "stances", "regions", "tokenizer", "dynamic", "shared_forward", "exceptions", "kv_generate", "reset_reload", "threads"]


@programs(but=set(ALL) - set(REPLAYED))
@modes
def test_replaying_a_recording_gives_the_recorded_decisions(runs, dyntrace, program, mode):
    """--verify accepts every lookup, and a what-if without a change predicts the recorded outcome of each call."""
    path = runs(program, mode).path
    done = subprocess.run([dyntrace, "replay", path, "--verify", "--json"], capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout)
    assert (done.returncode, found["do_not_follow"], found["orphan_checks"]) == (0, 0, 0), found["findings"][:3]
    assert found["lookups"] > 0
    done = subprocess.run([dyntrace, "replay", path, "--what-if", "isolate=no", "--json"], capture_output=True, text=True, timeout=60)
    same = json.loads(done.stdout)
    keys = ["calls", "hits", "misses", "compiles", "eager", *(["checks"] if mode == "shim" else [])]
    assert (same["changed"], same["gone"]) == (0, 0)
    assert same["undecided"] == 0
    assert [same["recorded"][key] for key in keys] == [same["predicted"][key] for key in keys]
