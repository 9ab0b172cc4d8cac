-- run.sql -- what `dyntrace run` says of a trace at its end.

-- name: more-than-decided
-- Of a program that used torch: the bytes of frames that --frames decided would not have stored. A page of 4,096 bytes has 128.
SELECT ((SELECT MAX(frame_id) FROM frame) / 128 + 1 - (SELECT COUNT(*) FROM lookup) / 128 - 1) * 4096
WHERE EXISTS (SELECT 1 FROM process WHERE torch_version <> '');
