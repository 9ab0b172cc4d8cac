-- import/map.sql -- turns the records of torch's log into rows of the trace. `dyntrace import` runs
-- this script from beginning to end.
--
--     record    a row for each record: process, time, name, label ("0/1"), data (JSON), body (text); import/log.sql
--     event     chromium_event: torch's clock, in UTC; the records' own times are the machine's local ones
--     attempt   a compile: from its "dynamo" event on, because a reset of torch's compiler uses a label again
--     piece     records with their compile
--
-- Facts that torch did not log stay NULL.

-- Torch's events. A phase needs both its begin and its end.
CREATE TEMP TABLE event AS SELECT id, process_id, COALESCE(label, json_extract(data, '$.args.compile_id')) AS label,
  json_extract(data, '$.name') AS name, json_extract(data, '$.ph') AS ph,
  CAST(json_extract(data, '$.ts') AS INTEGER) * 1000 -- not the product: a double has no room for it
  + CAST(ROUND((json_extract(data, '$.ts') - CAST(json_extract(data, '$.ts') AS INTEGER)) * 1000) AS INTEGER) AS unix_ns
FROM record WHERE name = 'chromium_event' AND typeof(json_extract(data, '$.ts')) IN ('integer', 'real')
  AND typeof(json_extract(data, '$.name')) = 'text' AND json_extract(data, '$.ts') BETWEEN 1e14 AND 9e15;

-- The difference between local time and UTC, in whole quarters of an hour. It follows from the
-- first event of each process, or else from the time zone of this machine.
CREATE TEMP TABLE zone AS SELECT s.process_id, COALESCE(
  (SELECT CAST(ROUND((e.unix_ns - r.at_ns) / 900e9) AS INTEGER) * 900000000000 FROM event e JOIN record r ON r.id = e.id
   WHERE e.process_id = s.process_id ORDER BY e.id LIMIT 1),
  (SELECT (at_ns / 1000000000 - CAST(strftime('%s', at_ns / 1000000000, 'unixepoch', 'localtime') AS INTEGER)) * 1000000000
   FROM record r WHERE r.process_id = s.process_id LIMIT 1), 0) AS utc_ns FROM source s;
UPDATE record SET at_ns = at_ns + (SELECT utc_ns FROM zone z WHERE z.process_id = record.process_id);

-- All times count from the first record.
INSERT INTO meta SELECT 'started_unix_ns', MIN(t) FROM (SELECT MIN(at_ns) AS t FROM record UNION ALL SELECT MIN(unix_ns) FROM event);
INSERT INTO meta SELECT 'span_ns', MAX(t) - (SELECT value FROM meta WHERE key = 'started_unix_ns') FROM
 (SELECT MAX(at_ns) AS t FROM record UNION ALL SELECT MAX(unix_ns) FROM event);
UPDATE record SET at_ns = at_ns - (SELECT value FROM meta WHERE key = 'started_unix_ns');
UPDATE event SET unix_ns = unix_ns - (SELECT value FROM meta WHERE key = 'started_unix_ns');
INSERT INTO meta VALUES ('frame_count', 0), ('open_frame_count', 0);

INSERT INTO process(process_id, pid, rank, python_version, torch_version, mode, torch_mode, torch_note, start_ns)
SELECT s.process_id, s.pid,
  COALESCE((SELECT CAST(data AS INTEGER) FROM record r WHERE r.process_id = s.process_id AND r.name = 'rank'), s.rank),
  (SELECT substr(json_extract(data, '$.python_version'), 1, instr(json_extract(data, '$.python_version') || ' ', ' ') - 1)
   FROM record r WHERE r.process_id = s.process_id AND r.name = 'compilation_metrics'
   AND json_extract(data, '$.python_version') IS NOT NULL LIMIT 1),
  COALESCE((SELECT json_extract(body, '$.pytorch_version') FROM record r WHERE r.process_id = s.process_id AND r.name = 'artifact'
            AND json_extract(data, '$.name') = 'torch_version' AND json_valid(body)),
           (SELECT json_extract(data, '$.pytorch_version') FROM record r WHERE r.process_id = s.process_id
            AND r.name = 'compilation_metrics' AND json_extract(data, '$.pytorch_version') IS NOT NULL LIMIT 1)),
  'none', 'import', 'from torch''s own log: it tells of compiles; calls, lookups and hits are not in it',
  (SELECT MIN(at_ns) FROM record r WHERE r.process_id = s.process_id) FROM source s;

-- A compile begins with the event "dynamo". In a log without events it begins with the record
-- dynamo_start of its first attempt.
CREATE TEMP TABLE begins(id INTEGER PRIMARY KEY);
INSERT INTO begins SELECT id FROM event WHERE name = 'dynamo' AND ph = 'B' AND label IS NOT NULL;
INSERT OR IGNORE INTO begins SELECT id FROM record r WHERE name = 'dynamo_start' AND COALESCE(attempt, 0) = 0
  AND NOT EXISTS (SELECT 1 FROM event e WHERE e.process_id = r.process_id AND e.name = 'dynamo');
CREATE TEMP TABLE piece AS SELECT r.id, r.process_id, COALESCE(r.label, e.label) AS label,
  MAX(1, COALESCE(SUM(b.id IS NOT NULL) OVER (PARTITION BY r.process_id, COALESCE(r.label, e.label) ORDER BY r.id), 1)) AS nth,
  NULL AS compile_id
FROM record r LEFT JOIN event e ON e.id = r.id LEFT JOIN begins b ON b.id = r.id WHERE COALESCE(r.label, e.label) IS NOT NULL;
CREATE TEMP TABLE attempt(compile_id INTEGER PRIMARY KEY, process_id INTEGER, label TEXT, nth INTEGER, frame TEXT);
-- Only a compile with one of these records compiled a frame. Compiled autograd and others have
-- labels of their own.
INSERT INTO attempt(process_id, label, nth, frame) SELECT p.process_id, p.label, p.nth, MAX(r.frame) FROM piece p
  JOIN record r ON r.id = p.id LEFT JOIN begins b ON b.id = p.id
GROUP BY p.process_id, p.label, p.nth HAVING SUM(b.id IS NOT NULL OR r.name IN ('dynamo_start', 'compilation_metrics')) > 0
  ORDER BY MIN(p.id);
CREATE INDEX temp.attempt_label ON attempt(process_id, label, nth);
UPDATE piece SET compile_id = (SELECT a.compile_id FROM attempt a WHERE a.process_id = piece.process_id AND a.label = piece.label
  AND a.nth = piece.nth);
CREATE INDEX temp.piece_compile ON piece(compile_id);

-- The code object that each compile compiled. The metrics name it; if a compile failed early, its
-- first record names it; otherwise it is that of the previous compile of the same frame.
CREATE TEMP TABLE string AS SELECT process_id, json_extract(data, '$[1]') AS number, json_extract(data, '$[0]') AS text FROM record
  WHERE name = 'str' AND json_valid(data);
CREATE INDEX temp.string_number ON string(process_id, number);
CREATE TEMP TABLE metrics AS SELECT p.compile_id, r.data, MAX(r.id) AS id FROM piece p JOIN record r ON r.id = p.id
  WHERE p.compile_id IS NOT NULL AND json_valid(r.data) AND (r.name = 'compilation_metrics'
-- the name under which torch 2.6 logs a frame that is at its limit and therefore not compiled
    OR (r.name = 'bwd_compilation_metrics' AND json_extract(r.data, '$.fail_type') GLOB '*Limit*')) GROUP BY p.compile_id;
CREATE TEMP TABLE made AS SELECT a.compile_id, a.process_id, a.frame, json_extract(m.data, '$.co_filename') AS filename,
  json_extract(m.data, '$.co_name') AS name, json_extract(m.data, '$.co_firstlineno') AS line
FROM attempt a LEFT JOIN metrics m ON m.compile_id = a.compile_id;
UPDATE made SET (filename, name, line) = (SELECT (SELECT text FROM string s WHERE s.process_id = made.process_id
    AND s.number = json_extract(r.data, '$.stack[#-1].filename')),
    json_extract(r.data, '$.stack[#-1].name'), json_extract(r.data, '$.stack[#-1].line')
  FROM piece p JOIN record r ON r.id = p.id WHERE p.compile_id = made.compile_id AND r.name = 'dynamo_start' LIMIT 1)
WHERE name IS NULL;
UPDATE made SET (filename, name, line) = (SELECT o.filename, o.name, o.line FROM made o WHERE o.process_id = made.process_id
  AND o.frame = made.frame AND o.name IS NOT NULL AND o.compile_id < made.compile_id ORDER BY o.compile_id DESC LIMIT 1)
WHERE name IS NULL;

-- Torch logs the name of a code object, but not its qualified name.
INSERT INTO code(process_id, filename, qualname, first_line, kind) SELECT process_id, filename, name, line,
  CASE WHEN name GLOB $RESUME_IN || '*' THEN 'resume' WHEN name = '<lambda>' THEN 'lambda' WHEN name = '<module>' THEN 'module'
       ELSE 'function' END
FROM made WHERE name IS NOT NULL GROUP BY process_id, filename, name, line ORDER BY MIN(compile_id);
CREATE INDEX temp_code ON code(process_id, qualname);
UPDATE code SET origin_code_id = (SELECT o.code_id FROM code o WHERE o.process_id = code.process_id AND o.filename IS code.filename
  AND o.kind <> 'resume' AND code.qualname GLOB $RESUME_IN || o.qualname || $RESUME_AT || '[0-9]*'
  AND o.first_line <= code.first_line ORDER BY o.first_line DESC LIMIT 1) WHERE kind = 'resume';

-- A compile failed if it reached a limit, or if it raised (torch logs this as dynamo_error). Other
-- compiles may give no code. Before 2.11 torch says that they did if a loop has a graph break, but
-- counts no guards. Torch of early 2024 does not say whether there was code, so nobody knows.
INSERT INTO compile(compile_id, code_id, label, start_ns, end_ns, outcome, reason)
SELECT a.compile_id, (SELECT c.code_id FROM made w JOIN code c ON c.process_id = w.process_id AND c.qualname = w.name
         AND c.filename IS w.filename AND c.first_line IS w.line WHERE w.compile_id = a.compile_id), a.label,
  COALESCE((SELECT MIN(e.unix_ns) FROM piece p JOIN event e ON e.id = p.id WHERE p.compile_id = a.compile_id AND e.ph = 'B'
            AND e.name IN ('dynamo', 'entire_frame_compile')),
           (SELECT MIN(r.at_ns) FROM piece p JOIN record r ON r.id = p.id WHERE p.compile_id = a.compile_id)),
  COALESCE((SELECT MAX(e.unix_ns) FROM piece p JOIN event e ON e.id = p.id WHERE p.compile_id = a.compile_id AND e.ph = 'E'
            AND e.name IN ('dynamo', 'entire_frame_compile')),
           (SELECT MAX(r.at_ns) FROM piece p JOIN record r ON r.id = p.id WHERE p.compile_id = a.compile_id
            AND r.name = 'compilation_metrics')),
  CASE WHEN json_extract(m.data, '$.has_guarded_code') AND json_type(m.data, '$.guard_count') IS NOT 'null' THEN 'compiled'
       WHEN json_extract(m.data, '$.fail_reason') GLOB '*Limit type:*' OR json_extract(m.data, '$.fail_reason') GLOB '*_limit reached*'
         OR json_extract(m.data, '$.fail_type') GLOB '*Limit*' THEN 'limit'
       WHEN EXISTS (SELECT 1 FROM piece p JOIN record r ON r.id = p.id WHERE p.compile_id = a.compile_id AND r.name = 'artifact'
                    AND json_extract(r.data, '$.name') = 'dynamo_error') THEN 'error'
       WHEN json_type(m.data, '$.has_guarded_code') IS NOT NULL THEN 'declined' END,
  CASE WHEN json_extract(m.data, '$.fail_type') IS NOT NULL THEN json_extract(m.data, '$.fail_type')
       || COALESCE(': ' || json_extract(m.data, '$.fail_reason'), '') END
FROM attempt a LEFT JOIN metrics m ON m.compile_id = a.compile_id ORDER BY a.compile_id;
UPDATE compile SET end_ns = start_ns WHERE end_ns < start_ns;

INSERT INTO cache_entry(code_id, compile_id, label, guard_count, born_ns) SELECT code_id, compile_id, label, NULL, end_ns FROM compile
  WHERE outcome = 'compiled' ORDER BY compile_id;
UPDATE compile SET cache_entry_id = (SELECT e.cache_entry_id FROM cache_entry e WHERE e.compile_id = compile.compile_id)
  WHERE outcome = 'compiled';

-- The n-th end of a name belongs to its n-th begin. An event that began after its compile had ended
-- is later work on its own.
CREATE TEMP TABLE phase AS SELECT e.process_id, e.label, e.name, e.ph, e.unix_ns, p.compile_id,
  ROW_NUMBER() OVER (PARTITION BY e.process_id, e.label, e.name, e.ph ORDER BY e.id) AS n FROM event e LEFT JOIN piece p ON p.id = e.id
  WHERE e.ph IN ('B', 'E');
CREATE INDEX temp.phase_end ON phase(process_id, label, name, ph, n);
INSERT INTO compile_phase(compile_id, name, start_ns, end_ns, label) SELECT
  (SELECT m.compile_id FROM compile m WHERE m.compile_id = b.compile_id AND b.unix_ns <= m.end_ns), b.name, b.unix_ns,
  MAX(b.unix_ns, e.unix_ns), b.label
FROM phase b JOIN phase e ON e.process_id = b.process_id AND e.label IS b.label AND e.name = b.name AND e.n = b.n AND e.ph = 'E'
  WHERE b.ph = 'B' ORDER BY e.unix_ns, b.unix_ns DESC;

-- Texts are those of the last attempt of each compile. Torch 2.8 and 2.9 use another name for one
-- of them.
CREATE TEMP TABLE text AS SELECT p.compile_id, r.id, COALESCE(r.attempt, 0) AS attempt,
  CASE WHEN r.name <> 'artifact' THEN r.name ELSE replace(json_extract(r.data, '$.name'), 'after_post_grad_', 'inductor_post_grad_') END AS name FROM piece p JOIN record r ON r.id = p.id
  WHERE p.compile_id IS NOT NULL AND r.body IS NOT NULL AND (r.name IN ('dynamo_cpp_guards_str', 'dynamo_output_graph', 'optimize_ddp_split_graph', 'aot_joint_graph', 'aot_forward_graph', 'aot_backward_graph', 'aot_inference_graph', 'inductor_post_grad_graph', 'inductor_output_code')
  OR (r.name = 'artifact' AND (json_extract(r.data, '$.name') IN ('dynamo_graph_break_reason', 'recompile_reasons', 'inductor_post_grad_graph', 'after_post_grad_graph')
      OR json_extract(r.data, '$.name') GLOB '*_cache_[hmb]*'
      OR json_extract(r.data, '$.name') GLOB '*_ORIGINAL_BYTECODE' OR json_extract(r.data, '$.name') GLOB '*_MODIFIED_BYTECODE')));
CREATE INDEX temp.text_name ON text(compile_id, name, attempt);
DELETE FROM text WHERE name GLOB '*_graph' AND attempt < (SELECT MAX(t.attempt) FROM text t WHERE t.compile_id = text.compile_id
  AND t.name = text.name);
INSERT INTO graph(compile_id, node_count) SELECT compile_id, NULL FROM text WHERE name = 'dynamo_output_graph' ORDER BY id;
INSERT INTO listing SELECT t.compile_id, CASE t.name WHEN 'dynamo_output_graph' THEN 'graph' ELSE t.name END, r.body
  FROM text t CROSS JOIN record r ON r.id = t.id WHERE t.name IN ('dynamo_output_graph', 'optimize_ddp_split_graph', 'aot_joint_graph', 'aot_forward_graph', 'aot_backward_graph', 'aot_inference_graph', 'inductor_post_grad_graph', 'inductor_output_code')
    OR t.name GLOB '*_cache_[hmb]*' ORDER BY t.id;
INSERT INTO listing SELECT l.compile_id, l.kind, r.body FROM (SELECT compile_id, MAX(id) AS id, CASE WHEN name GLOB '*_ORIGINAL_BYTECODE'
  THEN 'original_bytecode' WHEN name GLOB '*_MODIFIED_BYTECODE' THEN 'modified_bytecode' WHEN name = 'dynamo_cpp_guards_str' THEN 'guards'
  END AS kind FROM text GROUP BY compile_id, 3) l CROSS JOIN record r ON r.id = l.id WHERE l.kind IS NOT NULL ORDER BY l.id;

DROP INDEX temp_code;
