-- Spans by name: how many, how long, and the longest of each
--
-- Why: What the program itself says its time is spent on: `with dyntrace.span("request", id=271):`.
-- Columns: name: as the program gave it; kind: span, record_function or nvtx; spans: how many; total_ms: together (a span within one of
--   the same name counts in both); p50_ms, max_ms: of one; open: never ended; longest: span_id of the longest, for the view spans; attributes: of the longest.
WITH longest AS MATERIALIZED (
    SELECT span_id, name, kind, attributes, ROW_NUMBER() OVER (PARTITION BY name, kind ORDER BY duration_ns DESC, span_id) AS place FROM spans)
SELECT n.name, n.kind, n.spans, round(n.total_ns / 1e6, 3) AS total_ms, round(n.p50_ns / 1e6, 3) AS p50_ms, round(n.max_ns / 1e6, 3) AS max_ms,
       n.open, l.span_id AS longest, l.attributes
FROM span_names n JOIN longest l ON l.name IS n.name AND l.kind IS n.kind AND l.place = 1
ORDER BY n.total_ns DESC, n.name
LIMIT 1000;
