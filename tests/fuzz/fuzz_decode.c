/* fuzz_decode.c -- any words, in any batches, killed anywhere: a valid table.
 *
 * The first byte chooses: bit 0 --min-duration, bit 1 kill and resume between
 * batches, bit 2 pages go to the file at once; the rest is the batch's size. The
 * other bytes are the ring's words. */
#include "collector/decode.h"
#include "ring.h"
#include "../unit/decode_host.h"
#include "../unit/frames_db.h"

int fuzz_one(const uint8_t *data, size_t bytes);

uint32_t traced_row_id_of_code(struct traced *t, uint32_t local)
{
    (void)t;
    return local % 1000 + 1;
}

uint32_t traced_row_id_of_thread(struct traced *t, uint32_t local)
{
    (void)t;
    return local % 100 + 1;
}

void traced_write_loss(struct traced *t, uint32_t thread_id, uint64_t at_ns, uint64_t events, const char *cause)
{
    (void)t, (void)thread_id, (void)at_ns, (void)events, (void)cause;
}

struct count_ring *traced_find_journal(struct traced *t, const struct decoder *d, bool make)
{
    (void)t, (void)d, (void)make;
    return NULL;
}

static struct frames_db f;
static struct decode_place place;

static void clean_up(void)
{
    unlink(f.path);
    frames_db_close(&f);
    free(frames_template);
}

int fuzz_one(const uint8_t *data, size_t bytes)
{
    struct decode_session session = {.pages = &f.pages, .start_clock = 1000, .ns_per_tick_32 = UINT64_C(1) << 31};
    decode_ids codes = {0};
    struct decoder decoder;
    size_t count = bytes ? (bytes - 1) / 8 : 0, at = 0, batch;
    uint64_t *words;

    if (!bytes)
        return 0;
    if (!f.window) {
        frames_db_open(&f);
        atexit(clean_up);
    } else { /* as new, but for the mappings */
        frame_pages_close(&f.pages);
        memset(f.window->holds, 0, sizeof f.window->holds);
        f.window->next_page = f.window->written = 0;
        if (ftruncate(f.file, 0) || pwrite(f.file, frames_template, frames_template_bytes, 0) < 0 ||
            frame_pages_open(&f.pages, dup(f.file), f.window, false))
            abort();
    }
    session.min_duration_ns = data[0] & 1 ? 100000 : 0;
    if (data[0] & 8) { /* runs of ordinary words */
        session.stretch_ticks = UINT64_MAX;
        for (uint32_t id = 0; id < 100; id++)
            *list_reach(&codes, id) = id + 1;
    }
    f.window->written = data[0] & 4 ? 5000 : 0;
    batch = (size_t)(data[0] >> 3) * 4 + 1;
    words = malloc(count * 8 + 1);
    memcpy(words, data + 1, count * 8);
    memset(&place, 0, sizeof place);
    decode_open(&decoder, &session, NULL, &codes, &place);
    while (at < count) {
        size_t took = decode_words(&decoder, words + at, count - at < batch ? count - at : batch);
        if (took > count - at)
            abort();
        at += took;
        if (!took && batch >= count - at)
            break; /* cut off */
        batch += !took;
        if (data[0] & 2 && took) {
            uint64_t *whole = malloc(8 * (count - at) + 1); /* and reads nothing before what is left */
            memcpy(whole, words + at, 8 * (count - at));
            free(words);
            words = whole;
            count -= at;
            at = 0;
            list_free(&decoder.stack);
            list_free(&decoder.active);
            frame_pages_close(&f.pages);
            if (frame_pages_open(&f.pages, dup(f.file), f.window, true))
                abort();
            decode_open(&decoder, &session, NULL, &codes, &place);
        }
    }
    decode_close(&decoder);
    f.finished = frame_pages_finish_file(&f.pages);
    frames_db_read(&f, true);
    if (strcmp(f.integrity, "ok") || f.finished < 0 || (size_t)f.finished != f.rows) {
        fprintf(stderr, "%s; finish: %lld, rows: %zu\n", f.integrity, (long long)f.finished, f.rows);
        abort();
    }
    for (size_t i = 0; i < f.rows; i++) {
        const struct db_row *row = &f.row[i];
        if (row->parent_id >= row->frame_id || row->kind > 3 || row->exit > 3 || row->start_ns < 0 ||
            (row->end_ns >= 0 && row->end_ns < row->start_ns)) {
            fprintf(stderr, "row %lld: parent %lld kind %lld exit %lld %lld..%lld\n", (long long)row->frame_id,
                    (long long)row->parent_id, (long long)row->kind, (long long)row->exit, (long long)row->start_ns,
                    (long long)row->end_ns);
            abort();
        }
    }
    free(f.row);
    f.row = NULL;
    free(words);
    list_free(&session.totals);
    list_free(&codes);
    return 0;
}
