-- import/text.sql -- what `dyntrace import` makes of torch's texts: guards, which src/cmd/import.c reads, causes and breaks.

-- name: guards
-- The guards that torch wrote of each entry.
SELECT e.cache_entry_id, l.text, c.filename FROM cache_entry e
 JOIN listing l ON l.compile_id = e.compile_id AND l.kind = 'guards' LEFT JOIN code c ON c.code_id = e.code_id ORDER BY e.cache_entry_id;

-- name: guard
-- What the guards of the whole call look at has the names that our own recorder gives it.
INSERT INTO guard(cache_entry_id, ordinal, kind, source, expression, user_stack)
 VALUES (?1, ?2, ?3, COALESCE(substr(?4, 1, 2000), CASE ?3 WHEN 'GLOBAL_STATE' THEN 'global state'
 WHEN 'TORCH_FUNCTION_MODE_STACK' THEN 'torch function modes' WHEN 'DEFAULT_DEVICE' THEN 'torch.utils._device.CURRENT_DEVICE'
 ELSE iif(instr(?5, 'top_saved_tensors_hooks'), 'saved tensors hooks', NULL) END), ?5, ?6);

-- name: rest
UPDATE cache_entry SET guard_count = (SELECT NULLIF(COUNT(*), 0) FROM guard g WHERE g.cache_entry_id = cache_entry.cache_entry_id);

-- A cause of a recompile is a sentence after the label of an entry,
--
--     0/0: tensor 'x' size mismatch at index 0. expected 2, actual 3
--     0/1: k == 1   # def f(x, k): ...  # a/b.py:4 in f
--
-- in which locals have their bare names ("L['" and "']" are left out on both sides of a comparison). The guard is the one
-- of that entry that says so; when none does, the sentence is kept and nothing is guessed. One reason is logged as it is,
-- several as an array; older torch logs an array always.
INSERT INTO recompile_cause(compile_id, cache_entry_id, ordinal, guard_id, kind, source, aspect, dimension, expected, actual, text, how)
WITH word(mark, narrow, aspect) AS (VALUES
    (''' size mismatch at index ', '.size()', 'size'), (''' stride mismatch at index ', '.stride()', 'stride'),
    (''' dtype mismatch', '.dtype', 'dtype'), (''' rank mismatch', '.dim()', 'ndim'),
    (''' requires_grad mismatch', '.requires_grad', 'requires_grad'), (''' dispatch key set mismatch', '', 'dispatch_keys')),
reason AS MATERIALIZED (
    SELECT t.id, j.key, t.compile_id, j.value AS reason, instr(j.value, ': ') AS colon
    FROM text t JOIN record r ON r.id = t.id,
    json_each(CASE WHEN json_valid(r.body) AND json_type(r.body) = 'array' THEN r.body ELSE json_array(r.body) END) j
    WHERE t.name = 'recompile_reasons' AND typeof(j.value) = 'text'),
labelled AS (
    SELECT *, substr(reason, 1, colon - 1) AS label, substr(reason, colon + 2, instr(substr(reason || char(10), colon + 2), char(10)) - 1) AS line
    FROM reason WHERE colon AND substr(reason, 1, colon - 1) NOT GLOB '*[^!0-9/]*'),
said AS (
    -- The entry of that label that was there last: labels are used again after a reset.
    SELECT *, rtrim(substr(line, 1, instr(line || '  # ', '  # ') - 1)) AS text,
        (SELECT m.cache_entry_id FROM attempt b JOIN attempt a ON a.process_id = b.process_id AND a.label = l.label
         JOIN compile m ON m.compile_id = a.compile_id AND m.cache_entry_id IS NOT NULL
         WHERE b.compile_id = l.compile_id AND a.compile_id < b.compile_id ORDER BY a.compile_id DESC LIMIT 1) AS entry
    FROM labelled l),
marked AS MATERIALIZED (
    SELECT *, (SELECT mark FROM (SELECT mark, instr(substr(text, 9), mark) AS at FROM word WHERE text GLOB 'tensor ''*')
               WHERE at ORDER BY at LIMIT 1) AS mark
    FROM said),
cut AS (
    SELECT m.*, narrow, aspect, substr(text, 9, instr(substr(text, 9), m.mark) - 1) AS tensor,
        substr(text, 8 + instr(substr(text, 9), m.mark) + length(m.mark)) AS after,
        iif(text GLOB 'GLOBAL_STATE changed: *', substr(text, 23), NULL) AS flag
    FROM marked m LEFT JOIN word w USING (mark)),
parted AS MATERIALIZED (
    SELECT *, iif(mark GLOB '* ' AND after GLOB '[0-9]*', CAST(after AS INTEGER), NULL) AS dimension,
        iif(after GLOB '*expected *, actual *', substr(after, instr(after, 'expected ') + 9), NULL) AS values_
    FROM cut),
found AS MATERIALIZED (
    SELECT p.*, (SELECT g.guard_id FROM guard g WHERE g.cache_entry_id = p.entry AND CASE
        WHEN flag IS NOT NULL THEN g.kind = 'GLOBAL_STATE'
        WHEN mark IS NOT NULL THEN g.kind = 'TENSOR_MATCH'
             AND replace(replace(g.source, 'L[''', ''), ''']', '') = replace(replace(tensor, 'L[''', ''), ''']', '')
        WHEN g.kind = 'LAMBDA_GUARD' THEN text <> '' AND instr(' and ' || replace(replace(g.expression, 'L[''', ''), ''']', '') || ' and ',
             ' and ' || replace(replace(text, 'L[''', ''), ''']', '') || ' and ')
        ELSE replace(replace(g.expression, 'L[''', ''), ''']', '') = replace(replace(text, 'L[''', ''), ''']', '') END
        ORDER BY g.ordinal LIMIT 1) AS guard
    FROM parted p)
SELECT r.compile_id, f.entry, ROW_NUMBER() OVER (PARTITION BY r.compile_id, f.entry ORDER BY r.id, r.key) - 1, g.guard_id, g.kind,
    iif(flag IS NOT NULL AND guard, substr(flag, 1, instr(flag || ' ', ' ') - 1),
        g.source || COALESCE(narrow, '') || COALESCE('[' || dimension || ']', '')),
    COALESCE(aspect, iif(instr(f.text, ' got deallocated'), 'alive', NULL),
        CASE WHEN g.kind IN ('EQUALS_MATCH', 'CONSTANT_MATCH', 'NONE_MATCH', 'NOT_NONE', 'TRUE_MATCH', 'FALSE_MATCH') THEN 'value'
             WHEN g.kind = 'TYPE_MATCH' THEN 'type' WHEN g.kind = 'ID_MATCH' THEN 'identity' WHEN g.kind GLOB '*LENGTH*' THEN 'length'
             WHEN g.kind GLOB '*CONTAINS' THEN 'keys' WHEN g.kind GLOB '*HASATTR' THEN 'attribute' WHEN g.kind GLOB '*ALIASING' THEN 'relation'
             WHEN g.kind IN ('GLOBAL_STATE', 'DEFAULT_DEVICE', 'TORCH_FUNCTION_MODE_STACK') THEN 'state' END),
    dimension,
    COALESCE(substr(values_, 1, instr(values_, ', actual ') - 1), iif(g.kind = 'EQUALS_MATCH' AND instr(f.text, ' == '),
                                                                     substr(f.text, instr(f.text, ' == ') + 4), NULL)),
    substr(values_, instr(values_, ', actual ') + 9), COALESCE(f.text, r.reason), 're-checked'
FROM reason r LEFT JOIN found f USING (id, key) LEFT JOIN guard g ON g.guard_id = f.guard ORDER BY r.id, r.key;

-- A break is
--
--     Graph break in user code at FILE:LINE
--     Graph Break Reason: ...
--     User code traceback:
--       File "FILE", line N, in f
--
-- When torch gives the function up for a break, that is the compile's reason, and nothing goes on after it. A break that makes
-- torch start again is met again: it is one. It is at a line of the compiled function, which may be in the middle of calling
-- another one that torch looked into: the line is that of the innermost frame that is the function. (A resume function has
-- its function's name there.)
INSERT INTO graph_break(compile_id, code_id, line, reason, user_stack)
WITH logged AS (
    SELECT t.id, t.compile_id, m.code_id, c.filename, c.qualname, r.body,
        substr(r.body, 1, instr(r.body || char(10), char(10)) - 1) AS head,
        instr(r.body, 'Reason: ') AS reason, instr(r.body, char(10) || 'User code traceback:' || char(10)) AS user
    FROM text t JOIN record r ON r.id = t.id JOIN compile m ON m.compile_id = t.compile_id LEFT JOIN code c ON c.code_id = m.code_id
    WHERE t.name = 'dynamo_graph_break_reason' AND COALESCE(m.outcome, 'compiled') = 'compiled'),
parts AS (
    SELECT *, iif(user, substr(body, 1, user - 1), body) AS before, -- then "NoneType: None", or the exception's own traceback
        iif(user, substr(body, user + 22, MIN(iif(instr(substr(body, user + 22), char(10) || char(10)),
            instr(substr(body, user + 22), char(10) || char(10)) - 1, 8000), 100000)), NULL) AS stack,
        iif(qualname GLOB 'torch_dynamo_resume_in_*',
            substr(qualname, 24, MAX(length(rtrim(qualname, '0123456789')) - 27, 0)), qualname) AS name
    FROM logged),
broken AS MATERIALIZED (
    SELECT id, compile_id, code_id, stack,
        substr(rtrim(substr(before, iif(reason AND reason <= length(before), reason + 8, 1)), ' ' || char(10)), 1, 8000) AS reason,
        NULLIF(COALESCE(NULLIF((
            SELECT CAST(substr(line.value, instr(line.value, '", line ') + 8) AS INTEGER)
            FROM json_each('[' || replace(json_quote(replace(stack, '\', '')), '\n', '","') || ']') line
            WHERE instr(ltrim(line.value), 'File "' || filename || '", line ') = 1
              AND substr(line.value, -length(name) - 5) = ', in ' || name
            ORDER BY line.key DESC LIMIT 1), 0),
          iif(instr(head, ' in user code at '), CAST(substr(head, length(rtrim(head, '0123456789')) + 1) AS INTEGER), NULL)), 0) AS line
    FROM parts)
SELECT compile_id, code_id, line, reason, stack FROM (SELECT *, MIN(id) AS first FROM broken GROUP BY compile_id, line, reason) ORDER BY first;

-- The rest after a break is known when it was compiled, too.
UPDATE graph_break SET resume_code_id = (SELECT r.code_id FROM code c JOIN code r ON r.process_id = c.process_id
    AND r.filename IS c.filename AND r.kind = 'resume' WHERE c.code_id = graph_break.code_id
    AND r.qualname = CASE WHEN c.kind = 'resume' THEN substr(c.qualname, 1, length(rtrim(c.qualname, '0123456789')))
                     ELSE 'torch_dynamo_resume_in_' || c.qualname || '_at_' END || graph_break.line);
