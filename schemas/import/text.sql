-- import/text.sql -- what `dyntrace import` takes from torch's texts: guards, causes and graph
-- breaks.

-- Torch prints the tree of guards as a list of managers, each with the guards of its value. Two
-- blanks and a '#' begin a comment:
--
--     | +- GuardManager: source=L['x'], accessed_by=...
--     | | +- TENSOR_MATCH: check_tensor(L['x'], ...)    # y = x * k  # a/b.py:4 in f
--
-- Makes a row for each line of an entry's text; `kind` is NULL in the line of a manager. A manager
-- can also look like "KeyManager: GuardManager: source=...". (Backslashes are replaced while JSON
-- splits the text into lines, so that "\n" certainly means the end of a line.)
CREATE TEMP TABLE leaf(entry INTEGER, line INTEGER, depth INTEGER, kind TEXT, source TEXT, said TEXT, comment TEXT, PRIMARY KEY (entry, line));
INSERT INTO leaf
WITH line AS MATERIALIZED (
    SELECT e.cache_entry_id AS entry, j.key AS line, replace(j.value, char(57344), '\') AS text, instr(j.value, '+- ') AS mark
    FROM cache_entry e JOIN listing l ON l.compile_id = e.compile_id AND l.kind = 'guards',
         json_each('[' || replace(json_quote(replace(l.text, '\', char(57344))), '\n', '","') || ']') j),
named AS (
    SELECT entry, line, (mark - 1) / 2 AS depth, substr(text, mark + 3) AS text, instr(substr(text, mark + 3), ': ') AS colon
    FROM line WHERE mark BETWEEN 1 AND 400 AND replace(substr(text, 1, mark - 1), '| ', '') = ''),
parted AS MATERIALIZED (
    SELECT *, iif(colon, substr(text, 1, colon - 1), text) AS kind, iif(colon, substr(text, colon + 2), '') AS said
    FROM named WHERE colon OR text NOT GLOB '*[^A-Z_]*'), -- not "RootGuardManager"
sourced AS (
    SELECT *, kind GLOB '*Manager*' OR kind GLOB '*Accessor*' AS is_manager, instr(said, '  # ') AS hash,
           iif(said GLOB 'GuardManager: *', substr(said, 15), said) AS manager
    FROM parted)
SELECT entry, line, depth, iif(is_manager, NULL, kind),
       iif(is_manager AND manager GLOB 'source=*', substr(manager, 8, COALESCE(NULLIF(instr(manager, ', accessed_by='), 0),
               NULLIF(instr(manager, ', type=<class '), 0), length(manager) + 1) - 8), NULL),
       rtrim(iif(hash, substr(said, 1, hash - 1), said)), iif(hash, substr(substr(said, hash + 2), -4000), NULL)
FROM sourced ORDER BY entry, line;

-- Torch prints each part of a long guard on its own line. The lines of OBJECT_ALIASING are separate
-- guards, and so are those of LAMBDA_GUARD, except the last one, which is about all sizes. A guard
-- between several values is printed once. The program's line is the last "# a/b.py:4 in f" of a
-- comment that is not in torch's own code. Torch shortens paths, so the path of the compiled
-- function is used if it ends in the shortened one. Guards of the whole call get the names that our
-- own recorder gives them.
INSERT INTO guard(cache_entry_id, ordinal, kind, source, expression, user_stack)
WITH begun AS (
    SELECT *, kind IS NULL OR kind IS NOT LAG(kind) OVER entry OR depth IS NOT LAG(depth) OVER entry
              OR kind = 'OBJECT_ALIASING' OR kind = 'LAMBDA_GUARD' AND depth AS begins,
           MAX(iif(kind IS NULL, line, NULL)) OVER (PARTITION BY entry, depth - (kind IS NOT NULL) ORDER BY line) AS manager,
           MAX(iif(kind GLOB '*ALIASING*' AND said <> '', line, NULL)) OVER (PARTITION BY entry, kind ORDER BY line) AS relation
    FROM leaf WINDOW entry AS (PARTITION BY entry ORDER BY line)),
part AS (
    SELECT b.*, SUM(begins) OVER (PARTITION BY b.entry ORDER BY b.line) AS guard, iif(begins AND b.said = '', COALESCE(r.said, ''), b.said) AS says
    FROM begun b LEFT JOIN leaf r ON r.entry = b.entry AND r.line = b.relation),
whole AS (
    SELECT entry, kind, MIN(line) AS line, manager, comment, group_concat(says, ' and ') AS expression
    FROM (SELECT * FROM part WHERE kind IS NOT NULL ORDER BY entry, line) GROUP BY entry, guard),
marked AS (SELECT *, replace(comment, '# ', char(1)) AS marks FROM whole),
placed AS MATERIALIZED (SELECT *, substr(marks, length(rtrim(marks, replace(marks, char(1), ''))) + 1) AS place FROM marked),
stack AS MATERIALIZED (
    SELECT *, substr(place, 1, instr(place, ':') - 1) AS file, substr(place, instr(place, ':') + 1) AS rest FROM placed)
SELECT s.entry, ROW_NUMBER() OVER (PARTITION BY s.entry ORDER BY s.line) - 1, s.kind,
    COALESCE(substr(m.source, 1, 2000), CASE s.kind WHEN 'GLOBAL_STATE' THEN 'global state'
        WHEN 'TORCH_FUNCTION_MODE_STACK' THEN 'torch function modes' WHEN 'DEFAULT_DEVICE' THEN 'torch.utils._device.CURRENT_DEVICE'
        ELSE iif(instr(expression, 'top_saved_tensors_hooks'), 'saved tensors hooks', NULL) END), expression,
    iif(file <> '' AND file NOT GLOB '_dynamo/*' AND file NOT GLOB 'torch/*' AND rest GLOB '[0-9]* in ?*',
        'File "' || iif(length(file) >= 8 AND length(filename) > length(file) AND substr(filename, -length(file)) = file, filename, file)
        || '", line ' || CAST(rest AS INTEGER) || ', in ' || substr(rest, instr(rest, ' in ') + 4, instr(substr(rest, instr(rest, ' in ') + 4) || ' ', ' ') - 1),
        NULL)
FROM stack s JOIN cache_entry e ON e.cache_entry_id = s.entry LEFT JOIN code c ON c.code_id = e.code_id
LEFT JOIN leaf m ON m.entry = s.entry AND m.line = s.manager ORDER BY s.entry, s.line;
DROP TABLE leaf;
UPDATE cache_entry SET guard_count = (SELECT NULLIF(COUNT(*), 0) FROM guard g WHERE g.cache_entry_id = cache_entry.cache_entry_id);

-- The cause of a recompile is a sentence after the label of an entry,
--
--     0/0: tensor 'x' size mismatch at index 0. expected 2, actual 3
--     0/1: k == 1   # def f(x, k): ...  # a/b.py:4 in f
--
-- in which local variables have their bare names ("L['" and "']" are removed on both sides before a
-- comparison). The guard is the one of this entry that has the same text. If there is no such
-- guard, the sentence is kept and no guard is guessed. Torch logs a single reason as a string and
-- several reasons as an array; older versions always log an array.
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
    -- The last entry before with this label, because a reset of torch uses labels again.
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
        (SELECT a.aspect FROM aspect a WHERE a.kind = g.kind)), -- embed.sh
    dimension,
    COALESCE(substr(values_, 1, instr(values_, ', actual ') - 1), iif(g.kind = 'EQUALS_MATCH' AND instr(f.text, ' == '),
                                                                     substr(f.text, instr(f.text, ' == ') + 4), NULL)),
    substr(values_, instr(values_, ', actual ') + 9), COALESCE(f.text, r.reason), 're-checked'
FROM reason r LEFT JOIN found f USING (id, key) LEFT JOIN guard g ON g.guard_id = f.guard ORDER BY r.id, r.key;

-- A graph break looks like this:
--
--     Graph break in user code at FILE:LINE
--     Graph Break Reason: ...
--     User code traceback:
--       File "FILE", line N, in f
--
-- If torch gives up the function because of a break, the break is the compile's reason, and no code
-- runs after it. If a break makes torch start the compile again, torch meets the same break again,
-- which is counted once. The line of a break is a line of the compiled function, which may be
-- calling another function that torch inlined: it is the line of the innermost frame of the
-- compiled function. (A resume function has the name of its function there.)
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
        iif(qualname GLOB $RESUME_IN || '*', substr(qualname, length($RESUME_IN) + 1,
            MAX(length(rtrim(qualname, '0123456789')) - length($RESUME_IN || $RESUME_AT), 0)), qualname) AS name
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

-- The code after a break is known if it was compiled, too.
UPDATE graph_break SET resume_code_id = (SELECT r.code_id FROM code c JOIN code r ON r.process_id = c.process_id
    AND r.filename IS c.filename AND r.kind = 'resume' WHERE c.code_id = graph_break.code_id
    AND r.qualname = CASE WHEN c.kind = 'resume' THEN substr(c.qualname, 1, length(rtrim(c.qualname, '0123456789')))
                     ELSE $RESUME_IN || c.qualname || $RESUME_AT END || graph_break.line);
