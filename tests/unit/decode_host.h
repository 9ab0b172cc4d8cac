/* decode_host.h -- what the test and the fuzzer of decode.c answer it alike: entries that are there, and checks that can be read.
 *
 * Runs in: tests. */
#include <stdlib.h>

#include "collector/decode.h"

static void host_decision(void *context, const struct decode_decision *decision)
{
    (void)context;
    for (uint32_t i = 0; i < decision->count; i++) /* all of it can be read */
        if (decision->checks[i].guards_run > 0xfffff)
            abort();
}

static uint32_t host_entry(void *context, uint32_t local)
{
    (void)context;
    return local < 1000 ? local + 1 : 0;
}

static void host_late_entry(void *context, uint64_t frame_id, uint32_t cache_entry_id)
{
    (void)context, (void)frame_id, (void)cache_entry_id;
}
