-- What `dyntrace doctor` prints about the trace of a trial run: how torch was recorded, what was
-- lost, and ?1, the file of an evaluator that took the place of ours meanwhile ('' if none did).
SELECT CASE WHEN torch_mode = 'shim' THEN 'torch ' || torch_version || ' runs on dyntrace''s evaluator, and every lookup is recorded'
            ELSE coalesce(torch_note, 'torch ' || torch_version || ' is not recorded (' || torch_mode || ')') END
FROM process WHERE torch_version <> ''
UNION ALL SELECT 'lost: ' || cause FROM loss
UNION ALL SELECT ?1 || ' takes the PEP 523 slot' ||
    CASE WHEN EXISTS (SELECT 1 FROM frames WHERE qualname = 'afterwards') THEN ' and passes calls on: they are recorded'
         ELSE ', and nothing is recorded from then on: leave out what loads it' END WHERE ?1 <> '';
