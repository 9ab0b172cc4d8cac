-- why.sql -- the statements of `dyntrace why` about one function. --sql prints them. ?1: the ids of the
-- function's code objects, a JSON array.
--
-- The first line of each statement describes its result. Columns have the names of the members in
-- src/trace/why/why.h. `lookup`, `guard_check` and `frame` are long tables. There --sql prints a
-- GROUP BY, but the program runs the statement X-rows and sums up its rows: SQLite's GROUP BY sorts,
-- which takes four times as long.

-- name: totals
-- number of calls, and their time
SELECT SUM(calls) AS all_calls, SUM(total_ns) AS total_ns, SUM(self_ns) AS self_ns, SUM(raised) AS raised FROM code_total
    WHERE code_id IN (SELECT value FROM json_each(?1));

-- name: has-compiler
-- does the trace have compiles or lookups at all?
SELECT EXISTS (SELECT 1 FROM compile) OR EXISTS (SELECT 1 FROM lookup);

-- name: entries
-- the function's cache entries
SELECT cache_entry_id, code_id, compile_id, COALESCE(label, 'entry ' || cache_entry_id) AS label, backend,
       guard_count AS guards, born_ns, died_ns, substr(death_cause, 1, 1000) AS death_cause, region_id
FROM cache_entry WHERE code_id IN (SELECT value FROM json_each(?1)) ORDER BY cache_entry_id;

-- name: compiles
-- the function's compiles
-- user_stack: the lines of the program at which a compile failed. Some compilers put them at the
-- end of the reason.
SELECT compile_id, code_id, cache_entry_id, label, start_ns, end_ns, outcome, substr(reason, 1, 2000) AS reason, sticky, rank,
       is_recompile AS recompile,
       COALESCE(substr(reason, NULLIF(instr(reason, 'from user code:'), 0), 8000),
                substr(reason, NULLIF(instr(reason, 'User stack:'), 0), 8000)) AS user_stack
FROM compiles WHERE code_id IN (SELECT value FROM json_each(?1)) ORDER BY compile_id;

-- name: reasons
-- the first reason of each kind why a compile made no code; or why the function was marked
WITH ours AS MATERIALIZED (
    SELECT m.outcome, iif(m.reason IN ('first call', 'no entry fitted') AND p.torch_version <> '', NULL, m.reason) AS reason
    FROM compile m JOIN code c USING (code_id) LEFT JOIN process p USING (process_id)
    WHERE m.code_id IN (SELECT value FROM json_each(?1)) AND m.cache_entry_id IS NULL AND m.outcome NOT IN ('ok', 'compiled')
    ORDER BY m.compile_id)
SELECT (SELECT substr(reason, 1, 2000) FROM ours WHERE outcome = 'limit' AND reason <> '' LIMIT 1) AS limit_reason,
       (SELECT substr(reason, 1, 2000) FROM ours WHERE outcome IN ('failed', 'error') AND reason <> '' LIMIT 1) AS raised_reason,
       COALESCE((SELECT substr(reason, 1, 2000) FROM ours WHERE outcome NOT IN ('limit', 'failed', 'error') AND reason <> '' LIMIT 1),
                (SELECT COALESCE(NULLIF(substr(k.reason, 1, 2000), ''),
                                 iif(EXISTS (SELECT 1 FROM ours WHERE outcome IN ('skipped', 'declined')), NULL, 'it was asked to'))
                 FROM code_mark k WHERE k.action = 'skip' AND k.code_id IN (SELECT value FROM json_each(?1))
                 ORDER BY COALESCE(k.reason, '') = '', k.at_ns LIMIT 1)) AS declined_reason;

-- name: errors
-- exceptions that the function's compiler raised, grouped by first line, with their number
WITH failed AS MATERIALIZED (
    SELECT compile_id, substr(reason, 1, 2000) AS reason FROM compile
    WHERE code_id IN (SELECT value FROM json_each(?1)) AND cache_entry_id IS NULL AND outcome IN ('failed', 'error'))
SELECT reason, times FROM (
    SELECT MIN(compile_id), reason, COUNT(*) AS times FROM failed WHERE reason <> ''
    GROUP BY substr(reason, 1, instr(replace(reason, ':' || char(10), '  ') || char(10), char(10)) - 1) ORDER BY 1 LIMIT 8)
UNION ALL SELECT NULL, COUNT(*) FROM failed WHERE COALESCE(reason, '') = '' HAVING COUNT(*) > 0 OR NOT EXISTS (SELECT 1 FROM failed);

-- name: deaths
-- why entries died before the last compile of their code object
WITH last AS MATERIALIZED (
    SELECT code_id, MAX(start_ns) AS start_ns FROM compile WHERE code_id IN (SELECT value FROM json_each(?1)) GROUP BY 1)
SELECT substr(death_cause, 1, 1000) AS text, COUNT(*) AS deaths
FROM cache_entry e JOIN last USING (code_id)
WHERE death_cause <> '' AND died_ns IS NOT NULL GROUP BY 1 HAVING MAX(start_ns >= died_ns)
ORDER BY MIN(cache_entry_id) LIMIT 1000;

-- name: causes
-- why each recompile was needed; the guard that decided comes first
SELECT r.compile_id, r.cache_entry_id, COALESCE(e.label, 'entry ' || r.cache_entry_id) AS older_entry, r.guard_id,
       substr(r.kind, 1, 200) AS kind, substr(r.source, 1, 400) AS source, r.aspect, r.dimension,
       substr(r.expected, 1, 400) AS expected, substr(r.actual, 1, 400) AS actual, substr(r.text, 1, 400) AS text,
       substr(g.user_stack, 1, 4000) AS user_stack,
       iif(COALESCE(r.how, 'observed') = 'observed', 'observed', 'rechecked') AS how,
       COALESCE(r.ordinal, 0) = 0 AND 1 = ROW_NUMBER() OVER (
           PARTITION BY r.compile_id, r.cache_entry_id, COALESCE(r.ordinal, 0) = 0
           ORDER BY COALESCE(r.how, 'observed') <> 'observed', r.rowid) AS decided,
       MIN(iif(r.aspect = 'stride', 'stride', COALESCE(r.source, '') || COALESCE(r.aspect, ''))) OVER guard
           = MAX(iif(r.aspect = 'stride', 'stride', COALESCE(r.source, '') || COALESCE(r.aspect, ''))) OVER guard AS whole
FROM compile m CROSS JOIN recompile_cause r ON r.compile_id = m.compile_id
LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id LEFT JOIN guard g ON g.guard_id = r.guard_id
WHERE m.code_id IN (SELECT value FROM json_each(?1))
WINDOW guard AS (PARTITION BY m.code_id, g.kind, g.source)
ORDER BY r.compile_id, COALESCE(r.how, 'observed') <> 'observed', r.ordinal, r.cache_entry_id, r.rowid LIMIT 20000;

-- name: histories
-- For each source that decided recompiles: the values that it had, in order, each value once.
-- The first value is the one that the oldest entry expects; then follows the value at each
-- recompile.
-- This text is appended to "WITH causes AS (...)", the statement above. `place` is the position,
-- in its order, of the last cause that decided. A recompile counts once for a source, even if
-- the source failed in several older entries or by several kinds of guard. An expression that a
-- guard expects is not a value. If it is not known which guard decided, the first guard that
-- failed when all guards were re-evaluated stands for it.
, again AS MATERIALIZED (SELECT compile_id FROM compiles WHERE is_recompile AND code_id IN (SELECT value FROM json_each(?1))),
told AS MATERIALIZED (SELECT ROW_NUMBER() OVER () - 1 AS place, *, guard_id IS NULL AND COALESCE(source, '') = '' AS unnamed FROM causes),
named AS MATERIALIZED (
    SELECT *, iif(MAX(decided AND unnamed) OVER entry AND MIN(unnamed) OVER entry = 0,
                  NOT unnamed AND 1 = ROW_NUMBER() OVER (PARTITION BY compile_id, cache_entry_id, unnamed ORDER BY place), decided) AS decides
    FROM told WINDOW entry AS (PARTITION BY compile_id, cache_entry_id)),
headed AS (
    SELECT t.*, m.code_id, t.compile_id IN again AS made, m.cache_entry_id IS NULL AS refused,
           t.aspect || iif(t.dimension >= 0, '[' || t.dimension || '] = ', ' ') AS head -- the same text as in cause_name_part()
    FROM named t CROSS JOIN compile m ON m.compile_id = t.compile_id),
parted AS MATERIALIZED (
    SELECT *, iif(actual <> head AND substr(actual, 1, length(head)) = head AND COALESCE(substr(expected, 1, length(head)) = head, 1),
                  length(head), 0) AS cut
    FROM headed),
cut AS MATERIALIZED (
    SELECT *, iif(kind GLOB 'LAMBDA_GUARD*' OR kind GLOB '*SHAPE*', source IS NULL OR instr(expected, source) OR instr(expected, '['), 0)
                  AS is_expression,
           substr(NULLIF(expected, ''), cut + 1) AS wanted, substr(NULLIF(actual, ''), cut + 1) AS actually,
           FIRST_VALUE(place) OVER same AS history, FIRST_VALUE(compile_id) OVER same AS began,
           ROW_NUMBER() OVER (PARTITION BY code_id, source, COALESCE(aspect, kind), dimension, compile_id ORDER BY place) AS nth
    FROM parted WINDOW same AS (PARTITION BY code_id, source, COALESCE(aspect, kind), dimension ORDER BY place)),
value AS (
    SELECT history, -1 AS place, iif(is_expression, NULL, wanted) AS value
    FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY history ORDER BY cache_entry_id, place) AS age FROM cut WHERE compile_id = began)
    WHERE age = 1
    UNION ALL -- the actual value of a guard that is an expression: "L['x'].size()[0] = 8"
    SELECT history, place, iif(source <> '' AND actually GLOB '?* = ?*' AND substr(actually, 1, length(source) + 3) = source || ' = ',
                               substr(actually, length(source) + 4), actually) FROM cut WHERE nth = 1),
changed AS (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY history ORDER BY place) AS nth
    FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY history, value ORDER BY place) AS time FROM value WHERE value IS NOT NULL)
    WHERE time = 1),
said AS (
    SELECT history, '[' || group_concat(json_quote(CAST(value AS TEXT)), ', ') || ']' AS "values",
           group_concat(CASE WHEN nth <= 12 THEN substr(value, 1, 70) WHEN nth = 13 THEN '…' END, ', ') AS text
    FROM (SELECT * FROM changed WHERE nth <= 1000 ORDER BY history, nth) GROUP BY history),
kept AS (
    SELECT history, code_id, kind, source, MAX(iif(decides, place, NULL)) AS place,
           COUNT(DISTINCT iif(decides AND made, compile_id, NULL)) AS recompiles,
           COUNT(DISTINCT iif(decides AND refused, compile_id, NULL)) AS refused
    FROM cut GROUP BY history HAVING place IS NOT NULL)
SELECT k.code_id, k.kind, k.source, k.place, k.recompiles, k.refused, iif(c.cut, substr(c.head, 1, instr(c.head, ' ') - 1), NULL) AS aspect, COALESCE(s."values", '[]') AS "values", s.text
FROM kept k JOIN cut c ON c.place = k.place LEFT JOIN said s ON s.history = k.history
ORDER BY k.recompiles + k.refused DESC, k.place LIMIT 1000;

-- name: about
-- The cases that apply to the cause with source ?2, aspect ?3 and dimension ?4. Each row has the name
-- of a case, a detail for its text, and the what-if setting that avoids it.
--   never       an entry expects a value that the call which made the entry did not have
--   many        each compile was for another function, or for a method of another object
--   again       the expected and the actual class have the same name but are different classes
--   constant    torch made a size or number constant again after it had changed, although torch makes such numbers dynamic by
--               itself; for a number the detail is the user's stack that needs it
--   nested      the tensor is nested, and the tensor with the offsets of its parts changed as well
--   several     other sizes changed as well, in this compile or in another
--   ragged      the first dimension became smaller than before, after several calls
--   breaks      the function has a graph break, after which the same sizes are checked again
--   needs       the compiled code is valid for some sizes only
--   numbered    integers changed in the same compile as this size
--   together    other sizes changed in the same compile
--   order       the keys were the same, but in another order
--   transforms  other transforms of torch.func (vmap, grad) were active
--   grown       a number and a tensor's size in the same argument grew alike
--   numbers     other floats changed with this number, and none of them alone
--   flags       a bool changed together with this number
--   integers    other integers changed together with this number
--   items       other items of the same list changed together with this item
--   longer      a container of one object grew with each compile
--   momentum    the momentum of an optimizer changed together with this number
--   module      the number is the name of the one module of a container that the older entry uses
--   slice       the number is the start, stop or step of a slice
--   rate        the learning rate of an optimizer, a number, changed together with this length
WITH ours AS MATERIALIZED (
    SELECT compile_id, cache_entry_id, outcome, start_ns FROM compile WHERE code_id IN (SELECT value FROM json_each(?1)) LIMIT 10000),
mine AS MATERIALIZED (
    SELECT m.compile_id, m.cache_entry_id, m.start_ns, r.cache_entry_id AS older, r.expected, r.actual
    FROM ours m CROSS JOIN recompile_cause r ON r.compile_id = m.compile_id
    WHERE COALESCE(r.source, '') = ?2 AND COALESCE(r.aspect, '') = ?3 AND COALESCE(r.dimension, -1) = ?4 LIMIT 10000),
called AS MATERIALIZED (
    SELECT l.text, LAG(l.text) OVER (ORDER BY m.compile_id) AS before
    FROM ours m CROSS JOIN listing l ON l.compile_id = m.compile_id AND l.kind = 'called_as'
    WHERE m.cache_entry_id IS NOT NULL OR m.outcome IN ('limit', 'failed', 'error')),
objects AS MATERIALIZED (SELECT COUNT(*) AS compiles, COUNT(DISTINCT text) AS addresses, COALESCE(SUM(text = before), 0) AS same FROM called),
sizes AS MATERIALIZED (
    SELECT r.compile_id, r.source, r.dimension FROM ours m CROSS JOIN recompile_cause r ON r.compile_id = m.compile_id
    WHERE ?3 = 'size' AND r.aspect = 'size' AND r.source GLOB 'L*.size()[[]*' AND r.source NOT GLOB '*_parameters*'
          AND r.dimension >= 0 AND length(r.source) < 200 LIMIT 20000),
nested AS MATERIALIZED (
    SELECT 1 FROM sizes WHERE source GLOB 'L*._offsets.size()*' AND substr(source, 1, instr(source, '._offsets.')) = substr(?2, 1, instr(?2, '.size()'))
    LIMIT 1),
together AS MATERIALIZED (
    SELECT source, 'dynamic=' || substr(source, 1, instr(source, '.size()') - 1) || '[' || dimension || ']' AS setting
    FROM sizes WHERE compile_id IN (SELECT compile_id FROM mine) GROUP BY 1 ORDER BY 1 LIMIT 8),
several AS MATERIALIZED (SELECT DISTINCT source FROM sizes ORDER BY 1 LIMIT 8),
static AS MATERIALIZED (
    SELECT '[' || replace(substr(size, 1, instr(size, ']') - 1), 'None', 'null') || ']' AS sizes
    FROM (SELECT substr(g.expression, instr(g.expression, 'size=[') + 6, 400) AS size
          FROM mine m CROSS JOIN guard g ON g.cache_entry_id = m.cache_entry_id
          WHERE ?3 = 'size' AND g.kind = 'TENSOR_MATCH' AND g.source = substr(?2, 1, instr(?2, '.size()') - 1)
            AND CAST(m.actual AS INTEGER) > 1
            AND (SELECT MIN(kind) FROM listing l WHERE l.compile_id = m.compile_id
                 AND kind IN ('automatic_dynamic_shapes', 'called_as')) = 'called_as' -- otherwise automatic dynamic shapes were off, or the trace does not tell
          LIMIT 1000)),
parts AS MATERIALIZED (
    SELECT '["' || replace(replace(replace(substr(g.expression, 1, 4000), '\', '\\'), '"', '\"'), ' and ', '","') || '"]' AS parts,
           g.user_stack
    FROM ours m CROSS JOIN guard g ON g.cache_entry_id = m.cache_entry_id
    WHERE ?3 IN ('size', 'value', '') AND (g.kind GLOB 'LAMBDA_GUARD*' OR g.kind GLOB '*SHAPE*') AND ?2 <> '' AND instr(g.expression, ?2)
    LIMIT 1000),
part AS MATERIALIZED (
    SELECT part.value AS part, user_stack FROM parts CROSS JOIN json_each(iif(json_valid(parts), parts, '[]')) part
    WHERE instr(part.value, ?2)),
needs AS MATERIALIZED ( -- conditions on strides are left out, because strides follow from sizes
    SELECT part FROM part WHERE ?3 = 'size' AND part <> '2 <= ' || ?2 AND part NOT GLOB 'L* == L*' AND part NOT GLOB '*.stride()*'
                                AND part NOT GLOB '*.storage_offset()*' LIMIT 1),
number AS MATERIALIZED ( -- "L['n'] == 2", or "___as_tensor(L['a']).item() == 1.5"
    SELECT user_stack FROM part
    WHERE ?3 <> 'size' AND (substr(part, instr(part, ?2) + length(?2), 5) GLOB ' == [-0-9]'
                            OR substr(part, instr(part, ?2) + length(?2), 13) GLOB ').item() == [-0-9]') LIMIT 100),
needed AS MATERIALIZED (
    SELECT user_stack FROM number WHERE user_stack GLOB '*File "*'
    UNION ALL SELECT g.user_stack FROM ours m CROSS JOIN guard g ON g.cache_entry_id = m.cache_entry_id
    WHERE ?3 <> 'size' AND ?2 <> '' AND g.source = ?2 AND g.user_stack GLOB '*File "*' LIMIT 1),
first AS MATERIALIZED (SELECT start_ns, CAST(expected AS INTEGER) AS size FROM mine WHERE expected NOT GLOB '*[^0-9]*'
                       ORDER BY compile_id, older LIMIT 1),
smaller AS MATERIALIZED (SELECT DISTINCT CAST(actual AS INTEGER) AS size FROM (
    SELECT iif(instr(actual, ' = '), substr(actual, instr(actual, ' = ') + 3), actual) AS actual FROM mine) LIMIT 100),
pair AS MATERIALIZED (SELECT DISTINCT compile_id, older FROM mine WHERE ?2 GLOB 'list(dict.keys(*' LIMIT 1000),
keys AS MATERIALIZED (
    SELECT (SELECT group_concat(key, char(10)) FROM (
                SELECT r.expected AS key FROM recompile_cause r WHERE r.compile_id = p.compile_id AND r.cache_entry_id = p.older
                    AND substr(r.source, 1, instr(?2, '))')) = substr(?2, 1, instr(?2, '))')) ORDER BY 1)) AS expected,
           (SELECT group_concat(key, char(10)) FROM (
                SELECT r.actual AS key FROM recompile_cause r WHERE r.compile_id = p.compile_id AND r.cache_entry_id = p.older
                    AND substr(r.source, 1, instr(?2, '))')) = substr(?2, 1, instr(?2, '))')) ORDER BY 1)) AS actual
    FROM pair p),
state AS MATERIALIZED (
    SELECT DISTINCT substr(g.expression, instr(g.expression, 'functorch_state(') + 16, 200) AS state
    FROM ours m CROSS JOIN guard g ON g.cache_entry_id = m.cache_entry_id
    WHERE EXISTS (SELECT 1 FROM mine WHERE expected GLOB '*compare_functorch_state(*')
      AND g.kind GLOB 'LAMBDA_GUARD*' AND instr(g.expression, 'compare_functorch_state(') LIMIT 8),
beside AS MATERIALIZED ( -- other sources that had changed at the same compiles
    SELECT DISTINCT r.source, r.expected, r.actual
    FROM (SELECT DISTINCT compile_id FROM mine LIMIT 1000) m CROSS JOIN recompile_cause r ON r.compile_id = m.compile_id
    WHERE ?3 IN ('value', 'size') AND r.aspect = 'value' AND r.source GLOB '[LG][[]*' AND length(r.source) < 200 LIMIT 1000),
grown AS MATERIALIZED (
    SELECT b.source FROM beside b JOIN (
        SELECT r.expected, r.actual
        FROM (SELECT DISTINCT compile_id FROM mine LIMIT 1000) m CROSS JOIN recompile_cause r ON r.compile_id = m.compile_id
        WHERE r.aspect = 'size' AND r.source GLOB 'L[[]*].*.size()[[]*' LIMIT 1000) size
    WHERE b.source GLOB 'L[[]*].*' AND b.expected = size.expected AND b.actual = size.actual AND CAST(b.actual AS INTEGER) > CAST(b.expected AS INTEGER)
    LIMIT 1),
fraction AS MATERIALIZED (
    SELECT DISTINCT source FROM beside WHERE expected GLOB '*[0-9].[0-9]*' AND actual GLOB '*[0-9].[0-9]*'
        AND expected NOT GLOB '*[^-+.0-9e]*' AND actual NOT GLOB '*[^-+.0-9e]*' AND source NOT GLOB '*(*' ORDER BY 1 LIMIT 8),
integer AS MATERIALIZED (
    SELECT DISTINCT source FROM beside WHERE expected <> '' AND actual <> '' AND expected NOT GLOB '*[^-0-9]*' AND actual NOT GLOB '*[^-0-9]*'
        AND source NOT GLOB '*(*' ORDER BY 1 LIMIT 8),
alone AS MATERIALIZED ( -- one of these numbers was all that differed from an older entry: as a tensor it would have spared the compile
    SELECT 1 FROM (
        SELECT r.source, r.compile_id, r.cache_entry_id FROM ours m CROSS JOIN recompile_cause r ON r.compile_id = m.compile_id LIMIT 10000)
    WHERE ?3 = 'value' GROUP BY compile_id, cache_entry_id
    HAVING COUNT(DISTINCT COALESCE(source, '')) = 1 AND MIN(source) IN (SELECT source FROM fraction) LIMIT 1),
item AS MATERIALIZED (
    SELECT rtrim(?2, '0123456789]') AS list FROM integer
    WHERE ?2 GLOB '*[[][0-9]*]' AND rtrim(source, '0123456789]') = rtrim(?2, '0123456789]')),
longer AS MATERIALIZED (
    SELECT COUNT(*) FROM mine WHERE ?3 = 'length' AND expected NOT GLOB '*[^0-9]*' AND actual NOT GLOB '*[^0-9]*'
    HAVING COUNT(DISTINCT actual) > 1 AND MIN(CAST(actual AS INTEGER) - CAST(expected AS INTEGER)) > 0),
used AS MATERIALIZED ( -- modules, by the length of the path to their container
    SELECT g.cache_entry_id AS older, g.source, m.expected, length(g.source) - length(m.expected) - 4 AS path
    FROM (SELECT DISTINCT older, expected FROM mine WHERE ?3 = 'value' AND expected GLOB '[0-9]*' AND expected NOT GLOB '*[^0-9]*' LIMIT 100) m
    CROSS JOIN guard g ON g.cache_entry_id = m.older
    WHERE g.kind = 'TYPE_MATCH' AND g.source GLOB '*._modules[[]''' || m.expected || ''']'),
chosen AS MATERIALIZED ( -- those of which no other module of the container is used
    SELECT DISTINCT u.older, u.expected FROM used u WHERE NOT EXISTS (
        SELECT 1 FROM guard g
        WHERE g.cache_entry_id = u.older AND g.kind = 'TYPE_MATCH' AND g.source <> u.source
          AND substr(g.source, 1, u.path) = substr(u.source, 1, u.path) AND substr(g.source, u.path + 1) GLOB '[[]''[0-9]*'']'
          AND NOT instr(substr(g.source, u.path + 1), '.'))),
rate AS MATERIALIZED (
    SELECT MIN(r.source) AS source
    FROM (SELECT DISTINCT compile_id FROM mine LIMIT 1000) m CROSS JOIN recompile_cause r ON r.compile_id = m.compile_id
    WHERE ?3 = 'length' AND r.aspect = 'value' AND r.source GLOB '*[[]''lr'']' AND length(r.source) < 200 HAVING COUNT(*) > 0),
flag AS MATERIALIZED (
    SELECT DISTINCT r.source
    FROM (SELECT DISTINCT compile_id FROM mine LIMIT 1000) m CROSS JOIN recompile_cause r ON r.compile_id = m.compile_id
    WHERE ?3 = 'value' AND r.expected IN ('True', 'False') AND r.actual IN ('True', 'False') AND r.expected <> r.actual
          AND r.source GLOB '[LG][[]*' AND r.source NOT GLOB '*training*' AND r.source NOT GLOB '*.requires_grad'
          AND length(r.source) < 200 ORDER BY 1 LIMIT 8),
constant AS MATERIALIZED (
    SELECT 1 FROM static WHERE json_type(iif(json_valid(sizes), sizes, '[]'), '$[' || MIN(MAX(?4, 0), 99) || ']') = 'integer' LIMIT 1)
SELECT 'never' AS "is", NULL AS more, NULL AS setting WHERE EXISTS (
    SELECT 1 FROM mine a JOIN mine b ON b.older = a.cache_entry_id
    WHERE ?2 <> '' AND a.expected = b.expected AND a.actual = b.actual AND a.actual <> a.expected)
UNION ALL SELECT 'many', (SELECT iif(addresses < compiles, 'at least ', '') || addresses FROM objects), NULL WHERE
    (replace(replace(replace(?2, 'len(', ''), 'dict(', ''), 'type(', '') GLOB 'L[[]''self''*'
     OR ?3 <> 'size' AND (SELECT COUNT(DISTINCT substr(text, 1, 30)) > 1 FROM called))
    AND EXISTS (SELECT 1 FROM objects WHERE compiles > 2 AND same = 0 AND addresses * 4 >= compiles * 3) -- addresses of dead objects are reused, so less than all need to differ
UNION ALL SELECT * FROM (
    SELECT 'again', substr(expected, 1, instr(expected, ' at 0x') - 1), NULL FROM mine
    WHERE ?3 = 'type' AND instr(expected, ' at 0x') > 0 AND expected <> actual
      AND substr(expected, 1, instr(expected, ' at 0x')) = substr(actual, 1, instr(actual, ' at 0x')) LIMIT 1)
UNION ALL SELECT 'constant', (SELECT user_stack FROM needed), NULL WHERE EXISTS (SELECT 1 FROM constant) OR EXISTS (SELECT 1 FROM number)
UNION ALL SELECT 'module', NULL, NULL WHERE EXISTS (SELECT 1 FROM chosen)
    AND NOT EXISTS (SELECT 1 FROM mine m WHERE (m.older, m.expected) NOT IN (SELECT older, expected FROM chosen))
UNION ALL SELECT 'slice', NULL, NULL WHERE ?2 GLOB '*].st[aoe]*' AND EXISTS (
    SELECT 1 FROM mine m CROSS JOIN guard g ON g.cache_entry_id = m.older
    WHERE g.kind = 'TYPE_MATCH' AND ?2 IN (g.source || '.start', g.source || '.stop', g.source || '.step') AND instr(g.expression, '<class ''slice''>'))
UNION ALL SELECT 'nested', NULL, NULL FROM nested
UNION ALL SELECT 'several', (SELECT group_concat(source, ', ') FROM several), NULL
    WHERE (SELECT COUNT(*) FROM several) > 1 AND NOT EXISTS (SELECT 1 FROM constant)
UNION ALL SELECT 'ragged', (SELECT size || ', then ' || (SELECT group_concat(size, ', ') FROM smaller) FROM first), NULL
    WHERE ?3 = 'size' AND ?4 = 0 AND ?2 GLOB 'L*.size()[[]0]' AND ?2 NOT GLOB '*_parameters*'
      AND (SELECT MAX(size) FROM smaller) < (SELECT size FROM first)
      AND (SELECT COUNT(*) FROM (SELECT 1 FROM lookup l WHERE l.code_id IN (SELECT value FROM json_each(?1))
                                 AND l.start_ns < (SELECT start_ns FROM first) LIMIT 3)) = 3
UNION ALL SELECT 'breaks', NULL, NULL WHERE ?3 = 'size' AND EXISTS (
    SELECT 1 FROM ours m CROSS JOIN graph_break b ON b.compile_id = m.compile_id WHERE b.resume_code_id IS NOT NULL)
UNION ALL SELECT 'needs', part, NULL FROM needs
UNION ALL SELECT 'numbered', group_concat(source, ', '), NULL FROM integer WHERE ?3 = 'size' HAVING COUNT(*) > 0
UNION ALL SELECT 'together', (SELECT group_concat(source, ', ') FROM together), (SELECT group_concat(setting) FROM together)
    WHERE (SELECT COUNT(*) FROM together) > 1
UNION ALL SELECT 'order', NULL, NULL WHERE EXISTS (SELECT 1 FROM keys) AND NOT EXISTS (SELECT 1 FROM keys WHERE expected IS NOT actual)
UNION ALL SELECT 'transforms', (
    SELECT group_concat(CASE WHEN state GLOB '[[]]*' THEN 'none' ELSE
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(substr(state, 1, instr(state, ']')), '), (', '/'), '(', ''), ')', ''), '[', ''), ']', ''), '''', ''), ', error', ''), ', different', ''), ', same', ''), ', True', ''), ', False', ''), 'Vmap, ', 'vmap '), 'Grad, ', 'grad '), 'Jvp, ', 'jvp '), '/', ' in ') END, '; ') FROM state), NULL
    WHERE EXISTS (SELECT 1 FROM state)
UNION ALL SELECT 'grown', source, NULL FROM grown
UNION ALL SELECT 'numbers', (SELECT group_concat(source, ', ') FROM fraction), (SELECT group_concat('dynamic=' || source) FROM fraction)
    WHERE (SELECT COUNT(*) FROM fraction) > 1 AND NOT EXISTS (SELECT 1 FROM alone)
UNION ALL SELECT 'flags', group_concat(source, ', '), NULL FROM flag HAVING COUNT(*) > 0
UNION ALL SELECT 'integers', group_concat(source, ', '), NULL FROM integer HAVING COUNT(*) > 1
UNION ALL SELECT 'items', MIN(substr(list, 1, length(list) - 1)), NULL FROM item HAVING COUNT(*) > 1
UNION ALL SELECT 'longer', NULL, NULL FROM longer WHERE (SELECT addresses <= 1 FROM objects)
UNION ALL SELECT 'rate', source, NULL FROM rate
UNION ALL SELECT 'momentum', MIN(source), NULL FROM beside WHERE source GLOB '*[[]''betas'']*' OR source GLOB '*[[]''momentum'']'
    HAVING COUNT(*) > 0;

-- name: unguarded
-- hooks of modules that were registered after a compile, and that no guard of a later hit checks
WITH made AS MATERIALIZED (
    SELECT cache_entry_id, born_ns FROM cache_entry WHERE code_id IN (SELECT value FROM json_each(?1))),
registered AS MATERIALIZED (
    SELECT c.qualname, f.start_ns FROM code c CROSS JOIN frame f ON f.code_id = c.code_id
    WHERE c.qualname GLOB 'Module.register_*_hook' AND c.filename GLOB '*/torch/nn/modules/module.py'
      AND c.process_id IN (SELECT process_id FROM code WHERE code_id IN (SELECT value FROM json_each(?1)))
      AND f.start_ns > (SELECT MIN(born_ns) FROM made) LIMIT 1000)
SELECT qualname AS text, COUNT(*) AS times FROM registered
WHERE EXISTS (SELECT 1 FROM lookup l JOIN made e ON e.cache_entry_id = l.cache_entry_id
              WHERE l.outcome = $HIT AND l.code_id IN (SELECT value FROM json_each(?1)) AND l.start_ns > registered.start_ns
                AND e.born_ns < registered.start_ns)
  AND EXISTS (SELECT 1 FROM guard g WHERE g.cache_entry_id IN (SELECT cache_entry_id FROM made) AND g.source GLOB '*_modules*')
  AND NOT EXISTS (SELECT 1 FROM guard g WHERE g.cache_entry_id IN (SELECT cache_entry_id FROM made) AND g.source GLOB 'L*_hooks*')
GROUP BY 1 ORDER BY 1 LIMIT 4;

-- name: lookups
-- how its calls were decided, hits by entry
SELECT outcome, cache_entry_id, COUNT(*) AS calls, MIN(start_ns) AS first_ns, MAX(start_ns) AS last_ns,
       SUM(duration_ns) AS lookup_ns
FROM lookup WHERE code_id IN (SELECT value FROM json_each(?1)) GROUP BY outcome, cache_entry_id;

-- name: dropped
-- those of its calls that the window of the recording has dropped (run --keep)
SELECT outcome, cache_entry_id, lookups AS calls, first_ns, last_ns, duration_ns AS lookup_ns
FROM lookup_count WHERE code_id IN (SELECT value FROM json_each(?1));

-- name: lookups-rows
SELECT outcome, cache_entry_id, start_ns, duration_ns FROM lookup
    WHERE code_id IN (SELECT value FROM json_each(?1));

-- name: skipped
-- calls after the compiler gave up the function
SELECT COUNT(*) AS skipped FROM skipped_calls WHERE code_id IN (SELECT value FROM json_each(?1))
-- skipped_calls reads every frame, so it is not read if each call had a lookup. A generator may have more lookups than calls.
AND (COALESCE((SELECT SUM(calls) FROM code_total WHERE code_id IN (SELECT value FROM json_each(?1))), 1e18)
     > (SELECT COUNT(*) FROM lookup WHERE code_id IN (SELECT value FROM json_each(?1)))
     OR EXISTS (SELECT 1 FROM code WHERE code_id IN (SELECT value FROM json_each(?1)) AND kind NOT IN ('function', 'lambda')));

-- name: frames
-- how calls without a lookup were decided, from their frames
SELECT outcome, COUNT(*) AS calls, MIN(start_ns) AS first_ns, MAX(start_ns) AS last_ns FROM frame
WHERE code_id IN (SELECT value FROM json_each(?1)) AND COALESCE(kind, $FRAME_CALL) = $FRAME_CALL AND COALESCE(outcome, $PLAIN) IN ($PLAIN, $SKIP, $DISABLED)
    GROUP BY outcome;

-- name: frames-rows
SELECT outcome, start_ns FROM frame
WHERE code_id IN (SELECT value FROM json_each(?1)) AND COALESCE(kind, $FRAME_CALL) = $FRAME_CALL AND COALESCE(outcome, $PLAIN) IN ($PLAIN, $SKIP, $DISABLED);

-- name: checks
-- checks of the entries' guards: number, failed guard, time
SELECT k.*, g.kind, g.source, g.expression
FROM (SELECT cache_entry_id, result, failed_guard_id, COUNT(*) AS times, SUM(duration_ns) AS duration_ns,
             SUM(result = $CHECK_PASS AND guards_run = 0) AS few_guards
      FROM guard_check WHERE cache_entry_id IN (SELECT cache_entry_id FROM cache_entry
          WHERE code_id IN (SELECT value FROM json_each(?1)))
      GROUP BY cache_entry_id, result, failed_guard_id) k
LEFT JOIN guard g ON g.guard_id = k.failed_guard_id
ORDER BY k.result = $CHECK_ERROR DESC, k.times DESC;

-- name: checks-rows
-- If the function has few lookups, its checks are found by the index on lookups. Otherwise all
-- checks are read in their order, which takes as long as finding a tenth of them by the index.
WITH ours AS MATERIALIZED (SELECT cache_entry_id FROM cache_entry WHERE code_id IN (SELECT value FROM json_each(?1))),
few(lookups) AS MATERIALIZED (SELECT COUNT(*) < (SELECT MAX(lookup_id) FROM lookup) / 10 FROM (
    SELECT 1 FROM lookup WHERE code_id IN (SELECT value FROM json_each(?1)) LIMIT (SELECT MAX(lookup_id) / 10 + 1 FROM lookup)))
SELECT cache_entry_id, result, failed_guard_id, duration_ns, guards_run = 0 AS few_guards FROM guard_check
WHERE (SELECT lookups FROM few) AND cache_entry_id IN ours
AND lookup_id IN (SELECT lookup_id FROM lookup WHERE code_id IN (SELECT value FROM json_each(?1)))
UNION ALL
SELECT cache_entry_id, result, failed_guard_id, duration_ns, guards_run = 0 AS few_guards FROM guard_check NOT INDEXED
WHERE NOT (SELECT lookups FROM few) AND cache_entry_id IN ours;

-- name: guard
-- the guard with this id
SELECT kind, source, substr(expression, 1, 400) AS expression, substr(user_stack, 1, 4000) AS user_stack
FROM guard WHERE guard_id = ?1;

-- name: signatures
-- the inputs for which the function was compiled
WITH ours AS MATERIALIZED (SELECT compile_id, frame_id, cache_entry_id FROM compile
                           WHERE code_id IN (SELECT value FROM json_each(?1)) ORDER BY compile_id LIMIT 10000),
taken AS (SELECT lookup_id, frame_id, cache_entry_id, signature_id, outcome FROM lookup
          WHERE outcome IN ($COMPILED, $LIMIT, $DECLINED, $GUARD_ERROR, $CALLBACK_ERROR) AND signature_id IS NOT NULL AND code_id IN (SELECT value FROM json_each(?1)))
SELECT m.compile_id, (SELECT substr(text, 1, 400) FROM signature s WHERE s.signature_id = l.signature_id) AS inputs
FROM taken l JOIN ours m ON m.cache_entry_id = l.cache_entry_id WHERE l.outcome = $COMPILED
UNION ALL
SELECT m.compile_id, (SELECT substr(text, 1, 400) FROM signature s WHERE s.signature_id = l.signature_id)
FROM taken l JOIN ours m ON m.frame_id = l.frame_id WHERE l.outcome > 2 AND m.cache_entry_id IS NULL;

-- name: self
-- for a function that wraps others: the classes of its `self`
SELECT group_concat(class, ', ') AS self_class FROM (
    SELECT DISTINCT substr(text, 7, instr(substr(text, 1, 400) || ',', ',') - 7) AS class FROM signature
    WHERE text GLOB 'self: *' AND signature_id IN (SELECT signature_id FROM lookup WHERE code_id IN (SELECT value FROM json_each(?1)))
    ORDER BY 1 LIMIT 4);

-- name: inputs
-- inputs of calls that no entry fitted and that ran as Python
SELECT (SELECT substr(text, 1, 400) FROM signature s WHERE s.signature_id = l.signature_id) AS inputs, calls
FROM (SELECT signature_id, COUNT(*) AS calls FROM lookup
      WHERE outcome IN ($RUN_ONLY, $LIMIT) AND signature_id IS NOT NULL AND code_id IN (SELECT value FROM json_each(?1))
      GROUP BY signature_id ORDER BY calls DESC, signature_id LIMIT 20) l ORDER BY calls DESC;

-- name: different
-- number of different inputs in all misses, and number of misses that ran as Python with unknown inputs
SELECT COUNT(DISTINCT signature_id) AS different_inputs,
       SUM(outcome <> $COMPILED AND signature_id IS NULL) AS unknown_inputs FROM lookup
WHERE outcome IN ($COMPILED, $RUN_ONLY, $LIMIT) AND code_id IN (SELECT value FROM json_each(?1));

-- name: limit
-- The limit that is enough for all calls with outcome ?2, of the code object that needs the highest one, and how many different
-- inputs it had if that says the limit (?3: all inputs are known). Each process has code objects of its own.
WITH ours AS MATERIALIZED (SELECT value AS code_id FROM json_each(?1)),
missed AS (
    SELECT code_id, 1 AS calls, outcome, signature_id FROM lookup
    WHERE outcome IN ($COMPILED, $RUN_ONLY, $LIMIT, ?2) AND code_id IN ours
    UNION ALL SELECT code_id, lookups, outcome, NULL FROM lookup_count WHERE outcome = ?2 AND code_id IN ours),
asked AS (
    SELECT code_id, SUM(iif(outcome = ?2, calls, 0)) AS calls, COUNT(DISTINCT signature_id) AS inputs FROM missed GROUP BY code_id),
each AS (
    SELECT a.calls, a.inputs, (SELECT COUNT(*) FROM compile m WHERE m.code_id = a.code_id
                               AND (m.cache_entry_id IS NOT NULL OR m.outcome IN ('ok', 'compiled'))) AS made
    FROM asked a WHERE a.calls > 0)
SELECT MAX(iif(?3 AND inputs > made, inputs, made + calls)) AS raised, MAX(iif(?3 AND inputs > made, inputs, 0)) AS needed FROM each;

-- name: processes
-- the processes that ran the function: version of torch, oldest first, and how torch was watched
WITH ran AS MATERIALIZED (
    SELECT torch_version AS version, COALESCE(torch_mode, '') AS mode, substr(torch_note, 1, 1000) AS note, COUNT(*) AS processes
    FROM process WHERE process_id IN (SELECT process_id FROM code WHERE code_id IN (SELECT value FROM json_each(?1)))
        AND torch_version GLOB '[1-9]*.[0-9]*'
    GROUP BY torch_version, torch_mode, torch_note)
SELECT version, NULLIF(mode, '') AS mode, note, processes, (SELECT COUNT(DISTINCT version) FROM ran) AS versions,
       (SELECT COUNT(DISTINCT mode) FROM ran) AS modes, (SELECT MAX(mode = 'observe') FROM ran) AS observed
FROM ran ORDER BY CAST(version AS INTEGER), CAST(substr(version, instr(version, '.') + 1) AS INTEGER), processes DESC
LIMIT 100;

-- name: ranks
-- compiles in each rank of a distributed job
SELECT p.rank, COUNT(m.cache_entry_id) AS compiles FROM code c JOIN process p ON p.process_id = c.process_id
LEFT JOIN compile m ON m.code_id = c.code_id
WHERE c.code_id IN (SELECT value FROM json_each(?1)) AND p.rank IS NOT NULL GROUP BY p.rank ORDER BY p.rank LIMIT 100000;

-- name: breaks
-- the function's graph breaks, and the calls, compiles and lookups of their resume functions
WITH broken AS MATERIALIZED (
    SELECT b.graph_break_id, b.line, substr(b.reason, 1, 4000) AS reason, substr(b.user_stack, 1, 4000) AS user_stack,
           iif(replace(substr(b.user_stack, -2000), rtrim(substr(b.user_stack, -2000), replace(substr(b.user_stack, -2000), char(10), '')), '')
               LIKE '%/torch/%', 'torch', NULL) AS made_by, -- the innermost place is the last line
           r.qualname AS resume_function, r.function_id,
           '[' || replace(json_quote(CAST(substr(b.reason, 1, 4000) AS TEXT)), '0x', '","') || ']' AS at -- split where addresses begin
    FROM compile m CROSS JOIN graph_break b ON b.compile_id = m.compile_id
    LEFT JOIN functions r ON r.code_id = b.resume_code_id
    WHERE m.code_id IN (SELECT value FROM json_each(?1))
    ORDER BY b.graph_break_id
    LIMIT 10000),
alike AS MATERIALIZED ( -- breaks with the same line and, apart from addresses, the same reason; a restarted analysis has no resume function yet
    SELECT *, COUNT(*) AS times, MIN(graph_break_id + iif(function_id IS NULL, 1 << 60, 0)) AS first
    FROM broken
    GROUP BY line, COALESCE((SELECT group_concat(ltrim(part.value, '0123456789abcdef'))
                             FROM json_each(iif(json_valid(at), at, '[]')) part), reason)),
same AS MATERIALIZED (
    SELECT f.code_id, f.function_id
    FROM functions f
    WHERE f.kind IS NOT 'compiled' AND f.function_id IN (
        SELECT function_id FROM broken WHERE function_id IS NOT NULL GROUP BY 1 ORDER BY MIN(graph_break_id) LIMIT 16)),
rest AS MATERIALIZED (
    SELECT s.function_id, iif(EXISTS (SELECT 1 FROM code_total), COALESCE(SUM(n.calls), 0), NULL) AS rest_calls, COALESCE(SUM(l.eager), 0) AS rest_eager_calls,
           COALESCE(SUM(m.compiles), 0) AS rest_compiles, COALESCE(SUM(m.entries), 0) AS rest_entries,
           COALESCE(SUM(m.recompiles), 0) AS rest_recompiles, COALESCE(SUM(m.compile_ns), 0) AS rest_compile_ns,
           CAST(TOTAL(l.hit_ns) AS INTEGER) AS rest_lookup_ns
    FROM same s LEFT JOIN code_total n ON n.code_id = s.code_id
    LEFT JOIN (SELECT code_id, COUNT(*) AS compiles, COUNT(cache_entry_id) AS entries, SUM(is_recompile) AS recompiles,
                      SUM(compile_ns) AS compile_ns
               FROM compiles WHERE code_id IN (SELECT code_id FROM same) GROUP BY code_id) m ON m.code_id = s.code_id
    LEFT JOIN (SELECT code_id, SUM(o.ran_as_python) AS eager, TOTAL(iif(o.name = 'hit', duration_ns, 0)) AS hit_ns
               FROM lookup JOIN outcomes o USING (outcome) WHERE code_id IN (SELECT code_id FROM same)
               GROUP BY code_id) l ON l.code_id = s.code_id
    GROUP BY s.function_id)
SELECT * FROM alike LEFT JOIN rest USING (function_id) ORDER BY times DESC, line, first LIMIT 1000;

-- name: graphs
-- number of graphs from the function's compiles that are not empty
SELECT COUNT(*) FROM compile m CROSS JOIN graph g ON g.compile_id = m.compile_id
WHERE m.code_id IN (SELECT value FROM json_each(?1)) AND g.node_count > 0;

-- name: phases
-- time of each phase of the function's compiles
-- self_ns is a phase's time outside the phases within it. late = 1: a phase that was compiled
-- later on its own, as backward graphs are. Such a phase has no compile_id; its label is used
-- only if no other function and process has it, because labels are reused after a reset.
WITH RECURSIVE ours AS (
    SELECT p.*, 0 AS late FROM compile m CROSS JOIN compile_phase p ON p.compile_id = m.compile_id
    WHERE m.code_id IN (SELECT value FROM json_each(?1))
    UNION ALL SELECT *, 1 FROM compile_phase WHERE compile_id IS NULL AND label IN (
        SELECT m.label FROM compile m LEFT JOIN code c ON c.code_id = m.code_id WHERE m.label <> ''
        GROUP BY m.label HAVING SUM(m.code_id IN (SELECT value FROM json_each(?1))) = COUNT(*)
            AND COUNT(DISTINCT c.process_id) = 1)),
phase AS MATERIALIZED ( -- a phase comes before the phases within it; times above ten hours are cut, because they cannot be true
    SELECT ROW_NUMBER() OVER (ORDER BY late, compile_id, label, start_ns, end_ns DESC) AS place, compile_id, late,
           iif(name GLOB 'compile_attempt_[0-9]*', rtrim(rtrim(name, '0123456789'), '_'), COALESCE(name, '?')) AS name,
           iif(start_ns >= 0 AND end_ns >= start_ns, start_ns, 0) AS start_ns,
           iif(start_ns >= 0 AND end_ns >= start_ns, MIN(end_ns, start_ns + (1 << 45)), 0) AS end_ns
    FROM ours ORDER BY place LIMIT 200000),
walk AS ( -- each phase with the places and ends of the phases around it, the innermost last
    SELECT 0 AS place, 0 AS compile_id, 0 AS start_ns, 0 AS end_ns, '[]' AS around
    UNION ALL
    SELECT p.place, p.compile_id, p.start_ns, p.end_ns, (
        SELECT json_group_array(json(value)) FROM (
            SELECT value FROM (SELECT value FROM json_each(w.around) UNION ALL SELECT json_array(w.place, w.end_ns))
            WHERE p.compile_id IS w.compile_id AND value ->> 1 > p.start_ns LIMIT 64))
    FROM walk w CROSS JOIN phase p ON p.place = w.place + 1),
held AS (
    SELECT around ->> '$[#-1][0]' AS place, SUM(MIN(end_ns, around ->> '$[#-1][1]') - start_ns) AS within_ns FROM walk GROUP BY 1)
SELECT name, late, COUNT(*) AS times, SUM(end_ns - start_ns) AS total_ns,
       SUM(MAX(end_ns - start_ns - COALESCE(within_ns, 0), 0)) AS self_ns
FROM phase LEFT JOIN held USING (place) GROUP BY late, name ORDER BY self_ns DESC, name LIMIT 500;

-- name: caches
-- results of torch's caches for the function's compiles, and the time of the compiles that a cache served
WITH had AS (SELECT * FROM compile_caches WHERE code_id IN (SELECT value FROM json_each(?1))),
warm AS (SELECT DISTINCT compile_id FROM had WHERE state = 'hit')
SELECT (SELECT group_concat(words, ', ') FROM (
            SELECT CASE cache WHEN 'fx_graph' THEN 'FX graph' WHEN 'aotautograd' THEN 'AOTAutograd' WHEN 'precompile' THEN 'precompiled code'
                       ELSE 'Dynamo' END || ' ' || COUNT(*) || ' ' || state
                   || COALESCE(' (' || substr(COALESCE(MAX(reason), 'another key: ' || MAX(differed)), 1, 300) || ')', '') AS words
            FROM had GROUP BY cache, state ORDER BY cache, state)) AS caches,
       (SELECT SUM(m.end_ns - m.start_ns) FROM compile m WHERE m.compile_id IN (SELECT compile_id FROM warm)) AS warm_ns,
       (SELECT SUM(p.end_ns - p.start_ns) FROM compile_phase p WHERE p.name = 'backend_compile' AND p.compile_id IN (SELECT compile_id FROM warm)) AS warm_backend_ns,
       (SELECT SUM(saved_ns) FROM had) AS saved_ns;

-- name: marks
-- from when on the function's calls, or their callees, were not compiled
SELECT at_ns, action, recursive_action, region_id, substr(reason, 1, 2000) AS reason FROM code_mark
WHERE code_id IN (SELECT value FROM json_each(?1)) ORDER BY at_ns LIMIT 100;

-- name: by-frames
-- recompiles of callers for the same change
WITH RECURSIVE up(compile_id, code_id, frame_id, depth) AS (
    SELECT o.compile_id, o.code_id, f.parent_id, 1
    FROM (SELECT * FROM compile WHERE code_id IN (SELECT value FROM json_each(?1))
        AND compile_id IN (SELECT compile_id FROM recompile_cause)
          ORDER BY compile_id LIMIT 500) o
    CROSS JOIN frame f ON f.frame_id = o.frame_id WHERE f.parent_id < f.frame_id
    UNION ALL SELECT compile_id, up.code_id, f.parent_id, depth + 1 FROM up
        CROSS JOIN frame f ON f.frame_id = up.frame_id
    WHERE depth < 200 AND f.parent_id < f.frame_id)
SELECT of.compile_id AS of_compile_id, m.compile_id, c.qualname AS function, m.label,
       substr(r.kind, 1, 200) AS kind, substr(r.source, 1, 400) AS source, r.aspect, r.dimension,
       substr(r.expected, 1, 400) AS expected, substr(r.actual, 1, 400) AS actual, substr(r.text, 1, 400) AS text
FROM up of CROSS JOIN compile m ON m.frame_id = of.frame_id
JOIN recompile_cause r ON r.compile_id = m.compile_id
LEFT JOIN code c ON c.code_id = m.code_id
WHERE m.code_id <> of.code_id AND m.compile_id < of.compile_id
ORDER BY of.compile_id, of.depth DESC, m.compile_id, COALESCE(r.how, 'observed') <> 'observed', r.ordinal, r.rowid
    LIMIT 20000;

-- name: by-origin
-- the recompile before the graph break for the same change
SELECT of.compile_id AS of_compile_id, m.compile_id, c.qualname AS function, m.label,
       substr(r.kind, 1, 200) AS kind, substr(r.source, 1, 400) AS source, r.aspect, r.dimension,
       substr(r.expected, 1, 400) AS expected, substr(r.actual, 1, 400) AS actual, substr(r.text, 1, 400) AS text
FROM (SELECT * FROM compile WHERE code_id IN (SELECT value FROM json_each(?1))
    AND compile_id IN (SELECT compile_id FROM recompile_cause)
      ORDER BY compile_id LIMIT 500) of
CROSS JOIN code o ON o.code_id = of.code_id
CROSS JOIN compile m ON m.code_id = o.origin_code_id
JOIN recompile_cause r ON r.compile_id = m.compile_id
LEFT JOIN code c ON c.code_id = m.code_id
WHERE m.compile_id = (SELECT MAX(p.compile_id) FROM compile p WHERE p.code_id = o.origin_code_id
                      AND p.thread_id = of.thread_id AND p.end_ns <= of.start_ns)
AND NOT EXISTS (SELECT 1 FROM lookup l WHERE l.code_id = m.code_id AND l.thread_id = m.thread_id
                AND l.start_ns > m.end_ns AND l.start_ns < of.start_ns)
ORDER BY of.compile_id, COALESCE(r.how, 'observed') <> 'observed', r.ordinal, r.rowid LIMIT 20000;

-- name: forbidders
-- callers that prevented compiles of the function's calls
WITH RECURSIVE up(call, frame_id, depth) AS (
    SELECT * FROM (SELECT frame_id AS call, frame_id, 0 FROM lookup WHERE outcome = $RUN_ONLY
        AND code_id IN (SELECT value FROM json_each(?1)) LIMIT 100)
    UNION ALL SELECT call, f.parent_id, depth + 1 FROM up CROSS JOIN frame f ON f.frame_id = up.frame_id
    WHERE depth < 200 AND f.parent_id < f.frame_id)
SELECT COALESCE(c.qualname, '?') AS function,
       substr(COALESCE((SELECT m.reason FROM compile m WHERE m.code_id = k.code_id AND m.outcome = 'limit'),
                       k.reason), 1, 2000) AS reason, COUNT(DISTINCT up.call) AS calls
FROM up CROSS JOIN frame f ON f.frame_id = up.frame_id CROSS JOIN code_mark k ON k.code_id = f.code_id
JOIN code c ON c.code_id = f.code_id
WHERE up.depth > 0 AND k.recursive_action = 'run_only' AND k.at_ns <= COALESCE(f.end_ns, k.at_ns)
GROUP BY 1, 2 ORDER BY COUNT(*) DESC, c.qualname LIMIT 10;

-- name: disabled
-- a graph break whose reason says that the function is disabled
SELECT c.qualname AS disabled_by, b.line AS disabled_line, substr(b.reason, 1, 400) AS disabled_words FROM graph_break b
JOIN (SELECT DISTINCT qualname FROM code WHERE code_id IN (SELECT value FROM json_each(?1))) n ON instr(b.reason,
    '<function ' || n.qualname || ' at ')
LEFT JOIN code c ON c.code_id = b.code_id WHERE b.reason LIKE '%disable%' ORDER BY b.graph_break_id LIMIT 1;

-- name: method
-- whether the function is a method of a class whose forward was compiled
SELECT 1 FROM code c CROSS JOIN code w ON w.process_id = c.process_id AND w.filename = c.filename
WHERE c.code_id IN (SELECT value FROM json_each(?1)) AND c.qualname GLOB '?*.?*' AND c.qualname NOT GLOB '*.forward'
  AND w.qualname = rtrim(c.qualname, replace(c.qualname, '.', '')) || 'forward'
  AND EXISTS (SELECT 1 FROM compile m WHERE m.code_id = w.code_id AND m.cache_entry_id IS NOT NULL) LIMIT 1;

-- name: kinds
-- the function's guards by kind, and their estimated time: an entry's time, divided equally among its guards
SELECT COALESCE(g.kind, '?') AS kind, COUNT(*) AS guards, CAST(TOTAL(k.ns / e.guard_count) AS INTEGER) AS estimated_ns
FROM cache_entry e JOIN guard g ON g.cache_entry_id = e.cache_entry_id
LEFT JOIN (SELECT cache_entry_id, SUM(duration_ns) AS ns FROM guard_check GROUP BY 1) k ON k.cache_entry_id = e.cache_entry_id
WHERE e.code_id IN (SELECT value FROM json_each(?1)) GROUP BY 1 ORDER BY estimated_ns DESC, guards DESC, kind LIMIT 100;

-- name: kinds-rows
-- ?2: for each entry its id and the time of its checks, [[12, 3400], ...].
SELECT COALESCE(g.kind, '?') AS kind, COUNT(*) AS guards, CAST(TOTAL(k.value ->> 1 / e.guard_count) AS INTEGER) AS estimated_ns
FROM json_each(?2) k CROSS JOIN cache_entry e ON e.cache_entry_id = k.value ->> 0
JOIN guard g ON g.cache_entry_id = e.cache_entry_id GROUP BY 1 ORDER BY estimated_ns DESC, guards DESC, kind LIMIT 100;

-- name: share
-- time of the lookup, and of the whole call, for the last calls that hit
-- Both are medians, because a call that was interrupted can take as long as hundreds of others.
WITH last AS MATERIALIZED (
    SELECT l.duration_ns AS lookup_ns, f.end_ns - f.start_ns AS call_ns
    FROM (SELECT frame_id, duration_ns FROM lookup WHERE outcome = $HIT AND code_id IN (SELECT value FROM json_each(?1))
          ORDER BY lookup_id DESC LIMIT 1000) l
    CROSS JOIN frame f ON f.frame_id = l.frame_id WHERE l.duration_ns <= f.end_ns - f.start_ns)
SELECT (SELECT lookup_ns FROM last ORDER BY 1 LIMIT 1 OFFSET (SELECT COUNT(*) / 2 FROM last)) AS share_ns,
       (SELECT call_ns FROM last ORDER BY 1 LIMIT 1 OFFSET (SELECT COUNT(*) / 2 FROM last)) AS share_of_ns
WHERE EXISTS (SELECT 1 FROM last);
