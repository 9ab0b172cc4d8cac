/* decode_host.h -- what the test and the fuzzer of decode.c answer it alike: entries that are there, and checks that can be read.
 *
 * Runs in: tests. */
#include <stdlib.h>

#include "collector/decode.h"

void traced_write_lookup(struct traced *t, const struct decoder *d, uint64_t start_ns, uint64_t duration_ns, unsigned outcome,
                   bool observed, uint32_t cache_entry_id)
{
    (void)t, (void)start_ns, (void)duration_ns, (void)outcome, (void)observed, (void)cache_entry_id;
    for (uint32_t i = 0; i < d->now.check_count; i++) /* all of it can be read */
        if (d->place->checks[i].guards_run > 0xfffff)
            abort();
}

uint32_t traced_row_id_of_entry(struct traced *t, uint32_t local)
{
    (void)t;
    return local < 1000 ? local + 1 : 0;
}

void traced_write_span(struct traced *t, const struct decoder *d, const struct decode_span *span)
{
    const char *end = span->attributes.text + span->attributes.bytes;

    (void)t, (void)d;
    for (const char *at = span->name.text; at < end; at++) /* all of it can be read */
        *(volatile const char *)at;
}

void traced_write_call_arguments(struct traced *t, uint64_t frame_id, bool returned, struct fact_text text)
{
    (void)t, (void)frame_id, (void)returned;
    for (int64_t i = 0; i < text.bytes; i++)
        *(volatile const char *)(text.text + i);
}

void traced_write_span_end(struct traced *t, uint32_t local, uint64_t end_ns)
{
    (void)t, (void)local, (void)end_ns;
}

void traced_commit_rows(struct traced *t)
{
    (void)t;
}

void traced_write_late_cache_entry(struct traced *t, uint64_t frame_id, uint32_t cache_entry_id)
{
    (void)t, (void)frame_id, (void)cache_entry_id;
}

void traced_write_quiet_stretch(struct traced *t, uint32_t thread_id, const struct decode_frame *frame, uint64_t start_ns, uint64_t end_ns)
{
    (void)t, (void)thread_id, (void)frame, (void)start_ns, (void)end_ns;
}

/* Their rows stay as they were stored: with an end of 0 (frames_db.h). */
void traced_write_frame_left_open(struct traced *t, uint64_t frame_id)
{
    (void)t, (void)frame_id;
}

void traced_trigger_slow_call(struct traced *t, uint32_t code_id, uint64_t duration_ns)
{
    (void)t, (void)code_id, (void)duration_ns;
}

void traced_note_end_of_outermost_frame(struct traced *t, bool raised)
{
    (void)t, (void)raised;
}

/* Nothing is kept beside the pages. */
bool traced_write_long_frame(struct traced *t, uint64_t frame_id, struct frame_row *row)
{
    (void)t, (void)frame_id, (void)row;
    return false;
}

void traced_write_long_frame_end(struct traced *t, uint64_t frame_id, uint64_t end_ns, unsigned outcome, unsigned exit)
{
    (void)t, (void)frame_id, (void)end_ns, (void)outcome, (void)exit;
}
