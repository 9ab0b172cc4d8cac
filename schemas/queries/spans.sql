-- Spans by name: how many, how long, and the longest of each
--
-- Why: Shows on what the program itself says that it spends its time: `with
--   dyntrace.span("request", id=271):`.
-- Columns: name: the name that the program gave; kind: span, record_function or nvtx; spans: how
--   many there were; total_ms: their time together, in which a span within one of the same name
--   counts twice; p50_ms, max_ms: the median and the longest time of one; open: how many never
--   ended; longest: span_id of the longest, for the view spans; attributes: those of the longest.
WITH longest AS MATERIALIZED (
    SELECT span_id, name, kind, attributes, ROW_NUMBER() OVER (PARTITION BY name, kind ORDER BY duration_ns DESC, span_id) AS place FROM spans)
SELECT n.name, n.kind, n.spans, round(n.total_ns / 1e6, 3) AS total_ms, round(n.p50_ns / 1e6, 3) AS p50_ms, round(n.max_ns / 1e6, 3) AS max_ms,
       n.open, l.span_id AS longest, l.attributes
FROM span_names n JOIN longest l ON l.name IS n.name AND l.kind IS n.kind AND l.place = 1
ORDER BY n.total_ns DESC, n.name
LIMIT 1000;
