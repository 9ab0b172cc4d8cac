-- import/doubt.sql -- what is not taken from torch's logs, and why: rows of `loss`, and lines for
-- the user (`notice`). `dyntrace import` runs this script after map.sql and text.sql. A text that
-- is missing, cut, altered or in an unknown form gives no facts.

CREATE TEMP TABLE notice(text TEXT);

-- Texts that differ from what torch wrote: a row for each, at most a thousand for each process, and
-- a mark on their compile.
CREATE TEMP TABLE damaged AS
SELECT r.id, r.process_id, r.at_ns, ROW_NUMBER() OVER (PARTITION BY r.process_id ORDER BY r.id) AS place, p.compile_id,
       'import: ' || s.file || ':' || r.line || ': the text of ' || CASE WHEN r.name = 'artifact' AND json_valid(r.data)
           THEN COALESCE(json_extract(r.data, '$.name'), r.name) ELSE r.name END || COALESCE(' of ' || r.label, '') || ' ' || r.damage AS cause
FROM record r JOIN source s USING(process_id) LEFT JOIN piece p ON p.id = r.id WHERE r.damage IS NOT NULL;
INSERT INTO loss(process_id, at_ns, events, cause) SELECT process_id, at_ns, 1, cause FROM damaged WHERE place <= 1000 ORDER BY id;
INSERT INTO loss(process_id, at_ns, events, cause)
SELECT process_id, MIN(at_ns), COUNT(*), 'import: ' || file || ': more texts that are missing, cut or altered' FROM damaged
JOIN source USING(process_id) WHERE place > 1000 GROUP BY process_id;
INSERT INTO listing(compile_id, kind, text) SELECT compile_id, 'damaged', group_concat(cause, char(10)) FROM damaged
WHERE compile_id IS NOT NULL AND place <= 1000 GROUP BY compile_id;

-- Texts that are complete, but in an unknown form.
CREATE TEMP TABLE strange AS
SELECT r.process_id, r.at_ns, r.line, 'dynamo_cpp_guards_str' AS name, 'no line of it is a guard' AS why
FROM text t JOIN record r ON r.id = t.id JOIN cache_entry e ON e.compile_id = t.compile_id
WHERE t.name = 'dynamo_cpp_guards_str' AND e.guard_count IS NULL
UNION ALL
SELECT r.process_id, r.at_ns, r.line, 'recompile_reasons', 'it has no sentences'
FROM text t JOIN record r ON r.id = t.id
WHERE t.name = 'recompile_reasons' AND NOT EXISTS (SELECT 1 FROM recompile_cause c WHERE c.compile_id = t.compile_id)
UNION ALL
SELECT r.process_id, r.at_ns, r.line, 'chromium_event', 'it is no event with a name and a time'
FROM record r LEFT JOIN event e ON e.id = r.id WHERE r.name = 'chromium_event' AND r.damage IS NULL AND e.id IS NULL
UNION ALL
SELECT r.process_id, r.at_ns, r.line, 'compilation_metrics', 'it names no compile of a frame'
FROM record r LEFT JOIN piece p ON p.id = r.id WHERE r.name = 'compilation_metrics' AND p.compile_id IS NULL;
CREATE TEMP TABLE stranger AS
SELECT process_id, MIN(at_ns) AS at_ns, COUNT(*) AS events,
       file || ':' || MIN(line) || iif(COUNT(*) = 1, ': ', ' and others: ') || name || ': ' || why AS said
FROM strange JOIN source USING(process_id) GROUP BY process_id, name, why;
INSERT INTO loss(process_id, at_ns, events, cause) SELECT process_id, at_ns, events, 'import: ' || said FROM stranger;
INSERT INTO notice SELECT 'records of a form that is not known were left out: ' || SUM(events) || '; the first: ' || said
FROM (SELECT * FROM stranger ORDER BY at_ns) HAVING COUNT(*) > 0;

-- Versions of torch that were never tested. A log that names no version, and does not say whether a
-- compile made code, is from a version older than all tested ones.
CREATE TEMP TABLE torch AS
SELECT p.process_id, s.file, p.start_ns, p.torch_version AS version, CAST(p.torch_version AS INTEGER) * 100
           + CAST(substr(p.torch_version, instr(p.torch_version, '.') + 1) AS INTEGER) AS number,
       EXISTS (SELECT 1 FROM piece k JOIN metrics m ON m.compile_id = k.compile_id
               WHERE k.process_id = p.process_id AND json_type(m.data, '$.has_guarded_code') IS NULL) AS is_silent
FROM process p JOIN source s USING(process_id);
CREATE TEMP TABLE old AS
SELECT *, COALESCE('torch ' || version, 'a torch that does not log its version') || ', older than ' || (least / 100) || '.' || (least % 100)
    || ', the oldest that is supported' || iif(is_silent, ': it does not log how each compile ended', '') AS said
FROM torch JOIN tested WHERE number < least OR (version IS NULL AND is_silent);
UPDATE process SET torch_note = torch_note || '; written by ' || (SELECT said FROM old o WHERE o.process_id = process.process_id)
WHERE process_id IN (SELECT process_id FROM old);
INSERT INTO loss(process_id, at_ns, events, cause)
SELECT process_id, start_ns, NULL, 'import: ' || file || ': written by ' || said FROM old;
INSERT INTO notice SELECT MIN(file) || iif(COUNT(*) > 1, ' and ' || (COUNT(*) - 1) || ' more', '') || ': written by ' || said FROM old GROUP BY said;
INSERT INTO notice SELECT MIN(file) || iif(COUNT(*) > 1, ' and ' || (COUNT(*) - 1) || ' more', '') || ': written by torch ' || version
    || ', newer than ' || (most / 100) || '.' || (most % 100) || ', the newest that was tested' FROM torch JOIN tested WHERE number > most GROUP BY version;

-- Ranks: a file name and records that disagree, and a rank that several processes claim. Nobody
-- knows which of them is right.
INSERT INTO notice SELECT s.file || ': its name says rank ' || s.rank || ', its records say rank ' || p.rank || ', which is taken'
FROM source s JOIN process p USING(process_id) WHERE s.rank <> p.rank;
INSERT INTO loss(process_id, at_ns, events, cause)
SELECT process_id, p.start_ns, 0, 'import: ' || s.file || ': its name says rank ' || s.rank || ', its records say rank ' || p.rank
FROM source s JOIN process p USING(process_id) WHERE s.rank <> p.rank;
CREATE TEMP TABLE claimed AS
SELECT rank, COUNT(*) AS claims, group_concat(file || ' (pid ' || pid || ')', ', ') AS said
FROM (SELECT p.rank, s.file, s.pid FROM process p JOIN source s USING(process_id) WHERE p.rank IS NOT NULL ORDER BY s.process_id)
GROUP BY rank HAVING claims > 1;
INSERT INTO notice SELECT 'rank ' || rank || ' is claimed by ' || claims || ' processes: ' || substr(said, 1, 500) FROM claimed;
INSERT INTO loss(process_id, at_ns, events, cause)
SELECT p.process_id, p.start_ns, 0, 'import: rank ' || c.rank || ' is claimed by ' || c.claims || ' processes: ' || substr(c.said, 1, 500)
FROM claimed c JOIN process p ON p.process_id = (SELECT MAX(o.process_id) FROM process o WHERE o.rank = c.rank);

INSERT INTO notice SELECT 'nothing in its logs is a compile of a frame' WHERE NOT EXISTS (SELECT 1 FROM compile);
