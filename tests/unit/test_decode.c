/* test_decode.c -- words of a ring become the rows that they mean, and the same
 * rows when the decoder is killed at any point and another carries on.
 *
 * What a kill leaves is the shared state: the place, the window, the file. Here
 * a decoder is abandoned
 *     between batches of any size,
 *     before any word of a batch (reading it faults),
 *     inside what it asks of its host,
 *     and after any instruction: a child is single-stepped, and each state of
 *     its shared memory that is new is copied and carried on from. */
#include <setjmp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "collector/decode.h"
#include "collector/trace_files.h"
#include "decode_host.h"
#include "frames_db.h"
#include "ring.h"

/* ---- words ---- */

enum { WORDS_MAX = 1 << 18 };
static uint64_t words[WORDS_MAX];
static size_t count;
static uint64_t now; /* clock */

static void word(uint64_t w)
{
    words[count++] = w;
}
static void thread_word(uint32_t thread)
{
    word(RING_CONTROL_WORD(CONTROL_THREAD, 2, thread));
    word(now);
}
static void enter(unsigned tag, uint32_t code)
{
    word(RING_WORD(tag, code, now));
}
static void leave(unsigned tag, uint32_t ordinal)
{
    word(RING_WORD(tag, ordinal & RING_ID_MASK, now));
}

/* ---- a recording in memory ---- */

enum { CODES = 70000, LOSSES = 64 };

struct recording {
    struct frames_db db;
    struct decode_session session;
    struct decode_place *place; /* shared */
    struct decoder decoder;
    struct counts counts;
    struct session_dir {
        char path[64];
        struct session session;
    } dir;
    decode_ids codes;
    struct loss {
        uint64_t events;
        char cause[100];
    } loss[LOSSES];
    int losses;
};

static sigjmp_buf killed;
static unsigned host_calls, host_kill; /* the host_kill'th question to the host is a kill; 0: none */

static void host_called(void)
{
    if (++host_calls == host_kill)
        siglongjmp(killed, 1);
}
uint32_t traced_row_id_of_code(struct traced *t, uint32_t local)
{
    (void)t;
    host_called();
    return local + 1;
}
uint32_t traced_row_id_of_thread(struct traced *t, uint32_t local)
{
    (void)t;
    host_called();
    return local + 1;
}

void traced_write_loss(struct traced *t, uint32_t thread_id, uint64_t at_ns, uint64_t events, const char *cause)
{
    struct recording *r = (struct recording *)t;

    (void)thread_id, (void)at_ns;
    host_called();
    if (r->losses < LOSSES) {
        r->loss[r->losses].events = events;
        snprintf(r->loss[r->losses++].cause, sizeof r->loss->cause, "%s", cause);
    }
}

struct count_ring *traced_find_journal(struct traced *t, const struct decoder *d, bool make)
{
    struct recording *r = (struct recording *)t;

    host_called();
    return counts_find_journal(&r->counts, d->place->file, d->place->ring, make);
}

/* Library frames inside torch's work are counted, in the recordings that are made from here on. Even code ids are the
 * library's, every tenth is a module of torch. */
static bool counting;

static void counts_begin(struct recording *r, bool resume)
{
    counts_open(&r->counts, &r->dir.session, resume);
    for (uint32_t id = 2; id < 400; id += 2)
        counts_set_code_place(&r->counts, id, CODE_OF_LIBRARY | (id % 10 ? 0 : CODE_OF_IMPORT));
    r->session.counts = &r->counts;
}

/* Whether words may be taken as runs of ordinary ones: that takes code objects with known rows, and words that do not
 * begin a stretch, as with 0 ticks each does. */
static bool in_runs;
enum { KNOWN_CODES = 500 };

static struct decode_session session_of(struct recording *r, uint64_t min_duration_ns)
{
    return (struct decode_session){.pages = &r->db.pages, .ns_per_tick_32 = UINT64_C(1) << 32,
                                   .min_duration_ns = min_duration_ns, .stretch_ticks = in_runs ? UINT64_MAX : 0};
}

static void decoder_open(struct recording *r)
{
    decode_open(&r->decoder, &r->session, (struct traced *)r, &r->codes, r->place);
}

static struct recording *recording_open(uint64_t min_duration_ns)
{
    struct recording *r = calloc(1, sizeof *r);

    frames_db_open(&r->db);
    r->session = session_of(r, min_duration_ns);
    if (counting) {
        strcpy(r->dir.path, "/dev/shm/unit-counts-XXXXXX");
        if (!mkdtemp(r->dir.path))
            perror(r->dir.path);
        r->dir.session = SESSION_CLOSED;
        r->dir.session.place[SESSION_MAIN] = open(r->dir.path, O_RDONLY | O_DIRECTORY);
        counts_begin(r, false);
    }
    r->place = mmap(NULL, sizeof *r->place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(r->place->file, "1-1-0.ring");
    for (uint32_t id = 0; in_runs && id < KNOWN_CODES; id++)
        *list_reach(&r->codes, id) = id + 1;
    decoder_open(r);
    return r;
}

/* As a new collector would find it: nothing private is left. */
static void recording_resume(struct recording *r)
{
    for (size_t i = 0; i < r->decoder.parked.count; i++)
        list_free(&r->decoder.parked.at[i].frames);
    list_free(&r->decoder.parked);
    list_free(&r->decoder.stack);
    list_free(&r->decoder.active);
    frame_pages_close(&r->db.pages);
    if (frame_pages_open(&r->db.pages, dup(r->db.file), r->db.window, true))
        perror("frame_pages_open");
    r->session.pages = &r->db.pages;
    if (r->session.counts) {
        counts_close(&r->counts);
        counts_begin(r, true);
    }
    decoder_open(r);
}

/* Decode what is left, in batches of BATCH words. */
static void decode_rest(struct recording *r, size_t batch)
{
    while (r->decoder.now.tail < count) {
        size_t left = count - r->decoder.now.tail;
        if (!decode_words(&r->decoder, words + r->decoder.now.tail, batch < left ? batch : left) && batch++ >= left)
            break; /* the last record is cut off */
    }
}

static void recording_finish(struct recording *r)
{
    decode_close(&r->decoder);
    frames_db_finish(&r->db);
    CHECK(!strcmp(r->db.integrity, "ok"), "integrity_check: %s", r->db.integrity);
    CHECK(r->db.finished == (int64_t)r->db.rows, "finish: %lld, rows: %zu", (long long)r->db.finished, r->db.rows);
}

static void recording_close(struct recording *r)
{
    frames_db_close(&r->db);
    list_free(&r->session.totals);
    list_free(&r->codes);
    if (r->session.counts) {
        counts_close(&r->counts);
        unlinkat(r->dir.session.place[SESSION_MAIN], "counts", 0);
        close(r->dir.session.place[SESSION_MAIN]);
        rmdir(r->dir.path);
    }
    munmap(r->place, sizeof *r->place);
    free(r);
}

static const struct loss *loss_like(struct recording *r, const char *beginning)
{
    for (int i = 0; i < r->losses; i++)
        if (!strncmp(r->loss[i].cause, beginning, strlen(beginning)))
            return &r->loss[i];
    return NULL;
}

/* ---- comparing ---- */

static size_t index_of(const struct frames_db *f, int64_t id)
{
    size_t low = 0, high = f->rows;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (f->row[middle].frame_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < f->rows && f->row[low].frame_id == id ? low : SIZE_MAX;
}

/* The same rows in the same order, but for their page numbers: a kill may leave a
 * page out. With MIN_NS more rows may be there that are shorter than that. */
static bool same_rows(const struct frames_db *a, const struct frames_db *b, uint64_t min_ns, char *why, size_t room)
{
    static size_t *place; /* in A, of B's rows */
    size_t i = 0;

    place = realloc(place, (b->rows + 1) * sizeof *place);
    for (size_t n = 0; n < b->rows; n++) {
        const struct db_row *x = &a->row[i], *y = &b->row[n];
        size_t parent = y->parent_id < 0 ? SIZE_MAX : index_of(b, y->parent_id);
        if (i < a->rows && x->code_id == y->code_id && x->thread_id == y->thread_id && x->start_ns == y->start_ns &&
            x->end_ns == y->end_ns && x->exit == y->exit && x->kind == y->kind && x->outcome == y->outcome &&
            (x->parent_id < 0) == (y->parent_id < 0) &&
            (x->parent_id < 0 || (parent != SIZE_MAX && place[parent] == index_of(a, x->parent_id)))) {
            place[n] = i++;
            continue;
        }
        place[n] = SIZE_MAX;
        if (min_ns && y->end_ns >= 0 && (uint64_t)(y->end_ns - y->start_ns) < min_ns)
            continue;
        snprintf(why, room, "row %zu is %lld: thread %lld parent %lld code %lld kind %lld %lld..%lld exit %lld, expected %lld: "
                 "thread %lld parent %lld code %lld kind %lld %lld..%lld exit %lld", n,
                 (long long)y->frame_id, (long long)y->thread_id, (long long)y->parent_id, (long long)y->code_id,
                 (long long)y->kind, (long long)y->start_ns, (long long)y->end_ns, (long long)y->exit,
                 i < a->rows ? (long long)x->frame_id : -99, i < a->rows ? (long long)x->thread_id : -99,
                 i < a->rows ? (long long)x->parent_id : -99, i < a->rows ? (long long)x->code_id : -99,
                 i < a->rows ? (long long)x->kind : -99, i < a->rows ? (long long)x->start_ns : -99,
                 i < a->rows ? (long long)x->end_ns : -99, i < a->rows ? (long long)x->exit : -99);
        return false;
    }
    snprintf(why, room, "%zu rows, expected %zu", b->rows, a->rows);
    return i == a->rows;
}

/* Decode all words at once; CHECK the rows against EXPECTED. */
static struct recording *decoded(uint64_t min_duration_ns)
{
    struct recording *r = recording_open(min_duration_ns);

    decode_rest(r, SIZE_MAX);
    recording_finish(r);
    return r;
}

struct expected {
    int thread, parent, code, kind, start, end, exit; /* parent: index, -1 none; end -1: NULL */
};

static void is(const char *what, struct recording *r, const struct expected *e, size_t n)
{
    const struct frames_db *f = &r->db;

    CHECK(f->rows == n, "%s: %zu rows, expected %zu", what, f->rows, n);
    for (size_t i = 0; i < f->rows && i < n; i++) {
        const struct db_row *x = &f->row[i];
        int64_t parent = e[i].parent < 0 ? -1 : f->row[e[i].parent].frame_id;
        CHECK(x->thread_id == e[i].thread && x->parent_id == parent && x->code_id == e[i].code && x->kind == e[i].kind &&
              x->start_ns == e[i].start && x->end_ns == e[i].end && x->exit == e[i].exit,
              "%s: row %zu: thread %lld parent %lld code %lld kind %lld %lld..%lld exit %lld", what, i,
              (long long)x->thread_id, (long long)x->parent_id, (long long)x->code_id, (long long)x->kind,
              (long long)x->start_ns, (long long)x->end_ns, (long long)x->exit);
    }
}
#define IS(what, r, ...) \
    is(what, r, (const struct expected[]){__VA_ARGS__}, sizeof (const struct expected[]){__VA_ARGS__} / sizeof(struct expected))

static void fresh(void)
{
    count = 0;
    now = 1000;
}

/* ---- what each word means ---- */

static void test_tags(void)
{
    struct recording *r;

    fresh();
    thread_word(6);
    now = 1010, enter(RING_CALL, 4);
    now = 1020, enter(RING_RESUME, 5);
    now = 1030, leave(RING_YIELD, 1);
    now = 1040, enter(RING_THROW, 5);
    now = 1050, leave(RING_RAISE, 2);
    now = 1060, leave(RING_RETURN, 0);
    now = 1070, enter(RING_INHERITED, 9);
    r = decoded(0);
    IS("tags", r, {7, -1, 5, 0, 1010, 1060, 0}, {7, 0, 6, 1, 1020, 1030, 1}, {7, 0, 6, 2, 1040, 1050, 2},
       {7, -1, 10, 3, 1070, -1, -1});
    CHECK(r->losses == 0 && r->session.open_frames == 1, "tags: %d losses, %llu open", r->losses,
          (unsigned long long)r->session.open_frames);
    CHECK(r->session.totals.at[5].calls == 1 && r->session.totals.at[5].total_ns == 50 && r->session.totals.at[5].self_ns == 30,
          "totals of the call: %llu %llu %llu", (unsigned long long)r->session.totals.at[5].calls,
          (unsigned long long)r->session.totals.at[5].total_ns, (unsigned long long)r->session.totals.at[5].self_ns);
    CHECK(r->session.totals.at[6].calls == 0 && r->session.totals.at[6].raised == 1, "totals of the generator");
    recording_close(r);
}

static void test_recursion_totals(void)
{
    struct recording *r;

    fresh();
    thread_word(0);
    for (unsigned i = 0; i < 5; i++)
        now += 10, enter(RING_CALL, 1);
    for (unsigned i = 5; i--; )
        now += 10, leave(RING_RETURN, i);
    r = decoded(0);
    CHECK(r->session.totals.at[2].calls == 5 && r->session.totals.at[2].total_ns == 90 && r->session.totals.at[2].self_ns == 90,
          "of recursive calls only the outermost counts: %llu", (unsigned long long)r->session.totals.at[2].total_ns);
    recording_close(r);
}

static void test_clock(void)
{
    struct recording *r;
    const uint64_t wrap = UINT64_C(1) << RING_CLOCK_BITS;

    fresh();
    now = wrap - 5;
    thread_word(0);
    enter(RING_CALL, 1);
    now += 10, leave(RING_RETURN, 0); /* past the end of the 40 bits */
    r = decoded(0);
    CHECK(r->db.rows == 1 && (uint64_t)r->db.row[0].end_ns == wrap + 5, "wraps: %lld", (long long)r->db.row[0].end_ns);
    recording_close(r);

    fresh();
    thread_word(0);
    enter(RING_CALL, 1);
    now += 5 * wrap + 7; /* a long pause: an epoch says the full clock */
    word(RING_CONTROL_WORD(CONTROL_EPOCH, 2, 0));
    word(now);
    leave(RING_RETURN, 0);
    r = decoded(0);
    CHECK(r->db.rows == 1 && (uint64_t)r->db.row[0].end_ns == now, "epoch: %lld", (long long)r->db.row[0].end_ns);
    CHECK(r->losses == 0, "epoch: no loss");
    recording_close(r);

    fresh();
    thread_word(0);
    enter(RING_CALL, 1);
    now = 900, enter(RING_CALL, 2); /* backwards: the time before is kept */
    now = 950, leave(RING_RETURN, 1);
    word(RING_CONTROL_WORD(CONTROL_EPOCH, 2, 0));
    word(10); /* backwards as well */
    now = 1100, leave(RING_RETURN, 0);
    r = decoded(0);
    IS("backwards", r, {1, -1, 2, 0, 1000, 1100, 0}, {1, 0, 3, 0, 1000, 1000, 0});
    CHECK(loss_like(r, "clock: ") && loss_like(r, "clock: ")->events == 3, "backwards: a loss row");
    recording_close(r);

    fresh(); /* the longest there is */
    now = 0;
    thread_word(0);
    enter(RING_CALL, 1);
    now = (UINT64_C(1) << 60) - 1;
    word(RING_CONTROL_WORD(CONTROL_EPOCH, 2, 0));
    word(now);
    leave(RING_RETURN, 0);
    r = decoded(0);
    CHECK(r->db.rows == 1 && (uint64_t)r->db.row[0].end_ns == now && r->db.row[0].start_ns == 1, "extremes");
    CHECK(decode_clock_to_ns(&(struct decode_session){.ns_per_tick_32 = UINT64_MAX}, UINT64_MAX) == INT64_MAX, "never negative");
    CHECK(decode_clock_to_ns(&(struct decode_session){.start_clock = 7, .ns_per_tick_32 = UINT64_MAX}, 7) == 1,
          "never 0, which as an end says that there was none");
    recording_close(r);
}

static void test_control(void)
{
    struct recording *r;

    fresh();
    thread_word(0);
    now = 1010;
    word(RING_CONTROL_WORD(CONTROL_ENTER, 2, (uint64_t)RING_RESUME << 37 | (CODES - 1)));
    word(now);
    now = 1020;
    word(RING_CONTROL_WORD(CONTROL_ENTER, 2, 3000000u)); /* more than 21 bits */
    word(now);
    now = 1030, leave(RING_RETURN, 1);
    now = 1035;
    word(RING_CONTROL_WORD(CONTROL_STALL, 3, 0));
    word(now);
    word(12345678);
    now = 1040, leave(RING_YIELD, 0);
    r = recording_open(0);
    r->session.totals.count = 0;
    decode_rest(r, SIZE_MAX);
    CHECK(r->place->fill.rows[1].code_id == 3000001u, "a wide code id: %u", r->place->fill.rows[1].code_id);
    CHECK(loss_like(r, "stall: the program waited 12.3 ms") && r->loss[0].events == 0, "a stall is a loss of no events");
    recording_finish(r);
    CHECK(r->db.rows == 2 && r->db.row[0].kind == 1 && r->db.row[0].exit == 1 && r->db.row[0].code_id == CODES, "wide");
    recording_close(r);
}

/* A thread ends, the next uses its ring; ordinals begin anew. */
static void test_threads(void)
{
    struct recording *r;

    fresh();
    thread_word(0);
    now = 1010, enter(RING_CALL, 1);
    now = 1020, enter(RING_CALL, 2); /* cancelled within */
    now = 1030;
    thread_word(1);
    now = 1040, enter(RING_CALL, 3);
    now = 1050, leave(RING_RETURN, 0);
    now += UINT64_C(3) << RING_CLOCK_BITS; /* its ring lay idle */
    thread_word(2);
    enter(RING_CALL, 4);
    r = decoded(0);
    CHECK(r->db.rows == 4 && r->db.row[0].thread_id == 1 && r->db.row[2].thread_id == 2 && r->db.row[3].thread_id == 3,
          "three threads");
    CHECK(r->db.row[2].parent_id == -1 && r->db.row[2].end_ns == 1050, "the second begins at its bottom");
    CHECK(r->db.row[0].exit == 3 && r->db.row[1].exit == 3, "what the first left was abandoned");
    CHECK((uint64_t)r->db.row[3].start_ns == now && r->db.row[3].end_ns == -1, "the third has the clock of its own");
    recording_close(r);
}

/* A greenlet's frames are its own, whoever runs meanwhile; those of which an exit was lost are not kept open. */
static void test_greenlets(void)
{
    struct recording *r;

    fresh();
    thread_word(0);
    now = 1010, enter(RING_CALL, 1);
    now = 1020, word(RING_CONTROL_WORD(CONTROL_SWITCH, 3, 1)), word(now), word(0);
    now = 1030, enter(RING_CALL, 2);
    now = 1040, enter(RING_CALL, 3);
    now = 1050, word(RING_CONTROL_WORD(CONTROL_SWITCH, 3, 0)), word(now), word(1);
    now = 1060, enter(RING_CALL, 3);
    now = 1070, leave(RING_RETURN, 3);
    now = 1080, word(RING_CONTROL_WORD(CONTROL_SWITCH, 3, 1)), word(now), word(1);
    now = 1090, leave(RING_RETURN, 1);
    r = decoded(0);
    CHECK(r->db.rows == 4 && r->db.row[1].thread_id == 2 && r->db.row[2].thread_id == 2 && r->db.row[3].thread_id == 1, "rows");
    CHECK(r->db.row[1].parent_id == -1 && r->db.row[2].parent_id == r->db.row[1].frame_id &&
              r->db.row[3].parent_id == r->db.row[0].frame_id, "callers");
    CHECK(r->db.row[0].end_ns == -1 && r->db.row[1].end_ns == 1090 && r->db.row[1].exit == 0 && r->db.row[2].end_ns == 1080 &&
              r->db.row[2].exit == 3 && r->db.row[3].end_ns == 1070, "ends");
    CHECK(r->session.totals.at[4].calls == 2 && r->session.totals.at[4].total_ns == 10 + 40, "one did not call the other");
    recording_close(r);
}

static void test_order(void)
{
    struct recording *r;

    fresh(); /* greenlet-like: an outer frame ends first, the inner's exit comes later */
    thread_word(0);
    now = 1010, enter(RING_CALL, 1);
    now = 1020, enter(RING_CALL, 2);
    now = 1030, enter(RING_CALL, 3);
    now = 1040, leave(RING_RETURN, 1);
    now = 1050, leave(RING_RETURN, 2); /* it has ended with 1 */
    now = 1060, leave(RING_RETURN, 77);
    now = 1070, leave(RING_RETURN, 0);
    now = 1080, leave(RING_RETURN, 0);
    r = decoded(0);
    IS("order", r, {1, -1, 2, 0, 1010, 1070, 0}, {1, 0, 3, 0, 1020, 1040, 0}, {1, 1, 4, 0, 1030, 1040, 3});
    CHECK(loss_like(r, "order: exits") && loss_like(r, "order: exits")->events == 3, "three exits of nothing open");
    CHECK(loss_like(r, "order: frames") && loss_like(r, "order: frames")->events == 1, "one frame was overtaken");
    recording_close(r);
}

static void test_min_duration(void)
{
    struct recording *r;
    size_t frames = 3000;

    fresh();
    thread_word(0);
    enter(RING_CALL, 1);
    for (size_t i = 0; i < frames; i++) { /* the short ones' places are used again and again */
        now += 10, enter(RING_CALL, 2);
        now += 10, enter(RING_CALL, 3);
        now += i % 10 ? 20 : 500, leave(RING_RETURN, 2 * i + 2);
        now += 10, leave(RING_RETURN, 2 * i + 1);
    }
    leave(RING_RETURN, 0);
    r = decoded(100);
    CHECK(r->db.rows == 1 + 2 * frames / 10, "min-duration: %zu rows", r->db.rows);
    for (size_t i = 0; i < r->db.rows; i++)
        CHECK(r->db.row[i].end_ns - r->db.row[i].start_ns >= 100, "a short frame was stored");
    CHECK(r->session.totals.at[3].calls == frames && r->session.totals.at[4].calls == frames, "the totals count them all");
    recording_close(r);

    fresh(); /* deep, all short: rows are dropped from pages that were stored */
    thread_word(0);
    for (unsigned i = 0; i < 1000; i++)
        enter(RING_CALL, 1);
    for (unsigned i = 1000; i--; )
        leave(RING_RETURN, i);
    r = decoded(1);
    CHECK(r->db.rows < 1000, "some of them were dropped");
    recording_close(r);
}

static void test_depth(void)
{
    struct recording *r;
    unsigned depth = 100000;

    fresh();
    thread_word(0);
    for (unsigned i = 0; i < depth; i++)
        now++, enter(RING_CALL, i % 3);
    for (unsigned i = depth; i--; )
        now++, leave(RING_RETURN, i);
    r = decoded(0);
    CHECK(r->db.rows == depth, "deep: %zu", r->db.rows);
    for (size_t i = 1; i < r->db.rows; i++)
        if (r->db.row[i].parent_id != r->db.row[i - 1].frame_id || r->db.row[i].end_ns < 0) {
            CHECK(false, "deep: row %zu", i);
            break;
        }
    recording_close(r);
}

static void test_not_ours(void)
{
    static const struct {
        uint64_t word;
        const char *cause;
        uint64_t next;
    } cases[] = {
        {RING_WORD(RING_CALL, 1, 1000), "ring: it begins without a thread", 0},
        {RING_CONTROL_WORD(CONTROL_KEEP + 1, 2, 0), "ring: it holds a word", 0},
        {RING_CONTROL_WORD(31, 2, 0), "ring: it holds a word", 0},
        {RING_CONTROL_WORD(CONTROL_EPOCH, 1, 0), "ring: it holds a word", 0},
        {RING_CONTROL_WORD(CONTROL_EPOCH, 0, 0), "ring: it holds a word", 0},
        {RING_CONTROL_WORD(CONTROL_THREAD, 65535, 0), "ring: it holds a word", 0},
        {RING_CONTROL_WORD(CONTROL_ENTER, 2, (uint64_t)4 << 37), "ring: it holds a word", 0},
        {RING_CONTROL_WORD(CONTROL_EPOCH, 2, 0), "ring: it holds a word", UINT64_MAX},
        {RING_CONTROL_WORD(CONTROL_THREAD, 2, 0), "ring: it holds a word", UINT64_C(1) << 60},
    };
    struct recording *r;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fresh();
        if (i) {
            thread_word(0);
            enter(RING_CALL, 1);
        }
        word(cases[i].word);
        word(cases[i].next ? cases[i].next : now);
        enter(RING_CALL, 2);
        enter(RING_CALL, 3);
        r = recording_open(0);
        decode_rest(r, SIZE_MAX);
        CHECK(r->decoder.now.tail == count, "everything is taken, unread: %llu", (unsigned long long)r->decoder.now.tail);
        recording_finish(r);
        CHECK(loss_like(r, cases[i].cause), "case %zu: no loss", i);
        CHECK(r->db.rows == (i > 0), "case %zu: the frame before it is kept: %zu", i, r->db.rows);
        recording_close(r);
    }
    fresh(); /* cut off: wait for the rest */
    thread_word(0);
    enter(RING_CALL, 1);
    word(RING_CONTROL_WORD(CONTROL_STALL, 3, 0));
    word(now);
    r = recording_open(0);
    CHECK(decode_words(&r->decoder, words, count) == 3 && decode_words(&r->decoder, words + 3, count - 3) == 0, "cut off");
    word(1);
    CHECK(decode_words(&r->decoder, words + 3, count - 3) == 3 && loss_like(r, "stall"), "whole");
    recording_finish(r);
    recording_close(r);
}

/* ---- kills ---- */

/* Some life of a thread, with some greenlets: about N words. */
static void story(size_t n, unsigned deepest, bool odd)
{
    enum { GREENLETS = 5 };
    struct {
        uint32_t stack[64], thread;
        unsigned depth;
    } greenlet[GREENLETS] = {0}, *g = greenlet;
    uint32_t entered = 0, threads = 0;

    fresh();
    now = UINT64_C(1) << 34; /* wide times: fewer rows in a page */
    thread_word(threads++);
    while (count < n) {
        now += random_below(random_below(50) ? 2000 : 3000000);
        if (!random_below(300)) {
            word(RING_CONTROL_WORD(CONTROL_EPOCH, 2, 0));
            word(now);
        } else if (odd && !random_below(400)) {
            memset(greenlet, 0, sizeof greenlet);
            entered = 0;
            g = greenlet;
            thread_word(g->thread = threads++);
        } else if (odd && !random_below(300)) {
            word(RING_CONTROL_WORD(CONTROL_STALL, 3, 0));
            word(now);
            word(20000000);
        } else if (counting && !random_below(25)) {
            word(RING_CONTROL_WORD(CONTROL_PHASE, 1, random_below(PHASES)));
        } else if (counting && !random_below(60)) {
            word(RING_CONTROL_WORD(CONTROL_KEEP, 1, 0));
        } else if (counting && g->depth && !random_below(60)) {
            word(RING_CONTROL_WORD(CONTROL_OUTCOME, 1, OUTCOME_SKIP));
        } else if (!counting && !random_below(20)) {
            g = &greenlet[random_below(GREENLETS)];
            if (g != greenlet && !g->thread)
                g->thread = threads++;
            word(RING_CONTROL_WORD(CONTROL_SWITCH, 3, g->thread));
            word(now);
            word(g->depth);
        } else if (g->depth < 2 || (g->depth < deepest && random_below(2))) {
            uint32_t code = (uint32_t)random_below(300);
            if (odd && !random_below(50)) {
                word(RING_CONTROL_WORD(CONTROL_ENTER, 2, (uint64_t)random_below(4) << 37 | (code + 60000)));
                word(now);
            } else {
                enter((unsigned)random_below(4), code);
            }
            g->stack[g->depth++] = entered++;
        } else {
            leave(RING_RETURN + (unsigned)random_below(3), g->stack[--g->depth]);
        }
    }
}

/* Every frame that R counted is in the right cell. A killed decoder makes cells in another order, some for nothing. */
static void counts_check(const char *what, size_t at, struct recording *whole, struct recording *r)
{
    for (uint32_t i = 0; i < whole->counts.cells; i++) {
        const struct count_cell *a = counts_get_cell(&whole->counts, i);
        uint32_t cell = counts_find_or_make_cell(&r->counts, a->code_id, a->phase, a->outcome);
        const struct count_cell *b = counts_get_cell(&r->counts, cell);
        if (a->frames == b->frames && a->calls == b->calls && a->total_ns == b->total_ns && a->self_ns == b->self_ns &&
            a->raised == b->raised && a->max_ns == b->max_ns && a->first_ns == b->first_ns && a->last_ns == b->last_ns &&
            a->inner_ns == b->inner_ns)
            continue;
        CHECK(false, "%s %zu: cell of code %u, phase %u: frames %lld self %lld inner %lld, expected %lld %lld %lld", what, at,
              a->code_id, a->phase, (long long)b->frames, (long long)b->self_ns, (long long)b->inner_ns, (long long)a->frames,
              (long long)a->self_ns, (long long)a->inner_ns);
        break;
    }
    CHECK(counts_total_frames(&r->counts) == counts_total_frames(&whole->counts), "%s %zu: %lld frames counted", what, at,
          (long long)counts_total_frames(&r->counts));
}

static void kill_check(const char *what, size_t at, struct recording *whole, struct recording *r, uint64_t min_ns)
{
    char why[500];

    host_kill = 0;
    decode_rest(r, SIZE_MAX);
    recording_finish(r);
    if (!same_rows(&whole->db, &r->db, min_ns, why, sizeof why))
        CHECK(false, "%s %zu: %s", what, at, why);
    if (counting)
        counts_check(what, at, whole, r);
    recording_close(r);
}

static void on_fault(int number)
{
    (void)number;
    siglongjmp(killed, 1);
}

/* WORDS[0 .. upto) so that reading the next one is a fault. */
static const uint64_t *words_up_to(size_t upto)
{
    static char *area;
    enum { BYTES = WORDS_MAX * 8 };

    if (!area) {
        area = mmap(NULL, BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(area + BYTES, 4096, PROT_NONE);
    }
    memcpy(area + BYTES - upto * 8, words, upto * 8);
    return (uint64_t *)(area + BYTES) - upto;
}

static void test_kills(size_t n, uint64_t min_ns, bool late)
{
    struct recording *whole, *volatile r;
    unsigned asked;

    story(n, 40, true);
    host_calls = host_kill = 0;
    whole = decoded(min_ns);
    asked = host_calls;
    signal(SIGSEGV, on_fault);
    for (volatile size_t at = 0; at < count; at += 1 + random_below(n / 60)) {
        /* in the middle of a batch, with a committed one before it */
        r = recording_open(min_ns);
        if (late)
            r->db.window->written = 1000; /* every page goes to the file at once */
        volatile size_t before = random_below(at + 1);
        if (sigsetjmp(killed, 1) == 0) {
            const uint64_t *cut = words_up_to(at);
            decode_words(&r->decoder, cut, before);
            size_t tail = r->decoder.now.tail;
            decode_words(&r->decoder, cut + tail, count - tail);
            CHECK(false, "no fault at word %zu", at);
        }
        recording_resume(r);
        kill_check("killed before word", at, whole, r, min_ns);
    }
    for (volatile unsigned at = 1; at <= asked; at += 1 + (unsigned)random_below(asked / 50)) {
        r = recording_open(min_ns);
        host_calls = 0;
        host_kill = at;
        if (sigsetjmp(killed, 1) == 0) {
            decode_rest(r, 100);
            decode_close(&r->decoder);
            CHECK(false, "question %u was not asked", at);
        }
        host_kill = 0;
        recording_resume(r);
        kill_check("killed in question", at, whole, r, min_ns);
    }
    for (int times = 0; times < 20; times++) { /* again and again */
        r = recording_open(min_ns);
        while (r->decoder.now.tail < count) {
            size_t left = count - r->decoder.now.tail, batch = 1 + random_below(n / 20);
            size_t took = decode_words(&r->decoder, words + r->decoder.now.tail, batch < left ? batch : left);
            if (!took && batch >= left)
                break;
            recording_resume(r);
        }
        kill_check("killed often", (size_t)times, whole, r, min_ns);
    }
    signal(SIGSEGV, SIG_DFL);
    recording_close(whole);
}

/* ---- frames that are counted ---- */

/* What a code object's rows and cells add up to. */
struct sum {
    int64_t calls, self_ns, raised, frames;
};

static void sum_rows(struct recording *r, struct sum *sums, size_t codes)
{
    for (size_t i = 0; i < r->db.rows; i++) {
        const struct db_row *row = &r->db.row[i];
        int64_t end = row->end_ns < 0 ? (int64_t)r->session.last_ns : row->end_ns;
        if ((size_t)row->code_id >= codes)
            continue;
        sums[row->code_id].frames++;
        sums[row->code_id].calls += row->kind == FRAME_CALL;
        sums[row->code_id].raised += row->exit == EXIT_RAISE;
        sums[row->code_id].self_ns += end - row->start_ns;
        if (row->parent_id >= 0)
            sums[r->db.row[index_of(&r->db, row->parent_id)].code_id].self_ns -= end - row->start_ns;
    }
    for (uint32_t i = 0; i < r->counts.cells; i++) {
        const struct count_cell *cell = counts_get_cell(&r->counts, i);
        sums[cell->code_id].frames += cell->frames;
        sums[cell->code_id].calls += cell->calls;
        sums[cell->code_id].raised += cell->raised;
        sums[cell->code_id].self_ns += cell->self_ns - cell->inner_ns;
    }
}

/* Counting changes no total, and rows and cells together are all frames. */
static void test_counted(void)
{
    enum { MOST = 400 };
    static struct sum sums[MOST], plain[MOST];
    struct recording *all, *r;

    memset(sums, 0, sizeof sums);
    memset(plain, 0, sizeof plain);
    counting = true;
    story(60000, 40, false);
    counting = false;
    all = decoded(0);
    counting = true;
    r = decoded(0);
    sum_rows(all, plain, MOST);
    sum_rows(r, sums, MOST);
    CHECK(counts_total_frames(&r->counts) > 1000 && r->db.rows > 1000 && r->db.rows + (size_t)counts_total_frames(&r->counts) == all->db.rows,
          "%lld counted, %zu rows, %zu frames", (long long)counts_total_frames(&r->counts), r->db.rows, all->db.rows);
    for (size_t id = 1; id < all->session.totals.count; id++) {
        const struct decode_total *a = &all->session.totals.at[id], *b = &r->session.totals.at[id];
        CHECK(a->calls == b->calls && a->total_ns == b->total_ns && a->self_ns == b->self_ns && a->raised == b->raised &&
                  a->max_ns == b->max_ns, "code %zu has other totals", id);
        CHECK(id >= MOST || (sums[id].frames == plain[id].frames && sums[id].calls == (int64_t)b->calls &&
                             sums[id].raised == (int64_t)b->raised && sums[id].self_ns == (int64_t)b->self_ns),
              "code %zu: rows and cells add up to %lld calls, %lld ns of %lld, %lld", id, (long long)sums[id].calls,
              (long long)sums[id].self_ns, (long long)b->calls, (long long)b->self_ns);
    }
    CHECK(r->losses == 0, "%d losses", r->losses);
    recording_close(all);
    recording_close(r);
    counting = false;
}

/* A child decodes and is killed at some moment. The moment is chosen by processor time: by the clock
 * of a busy machine the test would wait for minutes after each child has ended. */
static void test_counted_kills(int times)
{
    struct recording *whole;
    int64_t before_ns, most_us;

    counting = true;
    story(60000, 60, false);
    before_ns = recorder_cpu_ns();
    whole = decoded(0);
    most_us = (recorder_cpu_ns() - before_ns) / 1000 + 1000;
    for (int i = 0; i < times; i++) {
        struct recording *r = recording_open(0);
        for (int again = 0; again < 3; again++) {
            pid_t child = fork();
            if (child == 0) {
                decode_rest(r, again ? 1000 : SIZE_MAX);
                decode_close(&r->decoder);
                raise(SIGKILL); /* _exit() would have valgrind report what the parent still holds */
            }
            usleep((useconds_t)random_below((uint64_t)most_us / 2));
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
            recording_resume(r);
        }
        kill_check("counting, killed", (size_t)i, whole, r, 0);
    }
    recording_close(whole);
    counting = false;
}

/* ---- after any instruction ---- */

/* What a kill leaves, in one piece of shared memory, pages [0, PAGES) only. */
enum { PAGES = 8 };
struct left {
    struct decode_place place;
    uint32_t next_page, written, holds[PAGES];
    uint8_t page[PAGES][FRAME_PAGE_BYTES], file[PAGES][FRAME_PAGE_BYTES];
};

static void left_copy(struct left *left, struct recording *r)
{
    left->place = *r->place;
    left->next_page = r->db.window->next_page;
    left->written = r->db.window->written;
    memcpy(left->holds, r->db.window->holds, sizeof left->holds);
    memcpy(left->page, r->db.window->page, sizeof left->page);
    memset(left->file, 0, sizeof left->file);
    if (pread(r->db.file, left->file, sizeof left->file, (frames_first - 1) * 4096) < 0)
        perror("pread");
}

static struct recording *left_restore(const struct left *left, uint64_t min_ns)
{
    struct recording *r = recording_open(min_ns);

    *r->place = left->place;
    r->db.window->next_page = left->next_page;
    r->db.window->written = left->written;
    memcpy(r->db.window->holds, left->holds, sizeof left->holds);
    memcpy(r->db.window->page, left->page, sizeof left->page);
    if (pwrite(r->db.file, left->file, sizeof left->file, (frames_first - 1) * 4096) < 0)
        perror("pwrite");
    recording_resume(r);
    return r;
}

/* WINDOWED: pages are kept in the window; else they go to the file at once. A child decodes BATCH
 * words at a time. Of the states that differ from the one before these are tried: one in `every`,
 * and each in which a page was taken or stored or a commit made; all with DYNTRACE_ALL_KILLS. */
static void test_every_instruction(size_t n, uint64_t min_ns, bool windowed, size_t batch)
{
    static struct left left, before;
    struct recording *whole, *r;
    size_t states = 0, tried = 0, every = getenv("DYNTRACE_ALL_KILLS") ? 1 : 41, steps = 0;
    bool step;
    int status;
    pid_t child;

    if (under_valgrind())
        return;
    story(n, 60, false);
    whole = decoded(min_ns);
    r = recording_open(min_ns);
    if (!windowed)
        r->db.window->written = PAGES;
    child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(77);
        raise(SIGSTOP);
        decode_rest(r, batch);
        decode_close(&r->decoder);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) {
        fprintf(stderr, "test_decode: no ptrace here: kills after any instruction were not tried\n");
        recording_close(whole);
        recording_close(r);
        return;
    }
    left_copy(&before, r);
    while (WIFSTOPPED(status)) {
        ptrace(PTRACE_SINGLESTEP, child, NULL, WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status));
        waitpid(child, &status, 0);
        steps++;
        /* Cheap first: has anything changed? The file changes by a system call only, seen at the next change. */
        if (!memcmp(&before.place, r->place, sizeof before.place) && before.next_page == r->db.window->next_page &&
            !memcmp(before.holds, r->db.window->holds, sizeof before.holds) &&
            !memcmp(before.page, r->db.window->page, sizeof before.page) && steps % 16)
            continue;
        left_copy(&left, r);
        if (!memcmp(&left, &before, sizeof left))
            continue;
        step = left.next_page != before.next_page || left.place.which != before.place.which ||
               memcmp(left.holds, before.holds, sizeof left.holds);
        before = left;
        if (states++ % every == 0 || random_below(every) == 0 || step) {
            tried++;
            kill_check(windowed ? "killed in state" : "killed in state (file)", states, whole, left_restore(&left, min_ns), min_ns);
        }
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child that was stepped ended with %d", status);
    CHECK(tried > 20, "%zu of %zu states were tried", tried, states);
    if (getenv("DYNTRACE_ALL_KILLS"))
        fprintf(stderr, "test_decode: %zu steps, %zu states, %zu tried\n", steps, states, tried);
    recording_close(whole);
    recording_close(r);
}

/* A run of ordinary words gives what its words give one by one. */
static void test_runs(size_t n)
{
    struct recording *one, *run;
    char why[300];

    story(n, 40, true);
    in_runs = false;
    one = decoded(0);
    in_runs = true;
    run = decoded(0);
    CHECK(same_rows(&one->db, &run->db, 0, why, sizeof why), "in runs: %s", why);
    CHECK(run->session.totals.count == one->session.totals.count, "in runs: %zu totals", run->session.totals.count);
    for (size_t i = 0; i < run->session.totals.count && i < one->session.totals.count; i++)
        CHECK(!memcmp(&one->session.totals.at[i], &run->session.totals.at[i], sizeof run->session.totals.at[i]),
              "in runs: the total of code object %zu", i);
    CHECK(run->session.last_ns == one->session.last_ns && run->session.open_frames == one->session.open_frames, "in runs: the end");
    recording_close(one);
    recording_close(run);
}

static void test_all(void)
{
    bool quick = under_valgrind();

    test_tags();
    test_recursion_totals();
    test_clock();
    test_control();
    test_threads();
    test_greenlets();
    test_order();
    test_min_duration();
    test_depth();
    test_not_ours();
    test_counted();
    counting = true;
    test_kills(quick ? 600 : 6000, 0, false);
    test_kills(quick ? 600 : 6000, 0, true);
    counting = false;
    test_counted_kills(quick ? 3 : 100);
    test_kills(quick ? 600 : 6000, 0, false);
    test_kills(quick ? 600 : 6000, 0, true);
    test_kills(quick ? 600 : 6000, 20000, false);
    test_kills(quick ? 600 : 6000, 20000, true);
    test_every_instruction(450, 0, true, SIZE_MAX);
    test_every_instruction(250, 20000, false, 37);
    if (getenv("DYNTRACE_ALL_KILLS")) {
        test_every_instruction(1000, 0, false, SIZE_MAX);
        test_every_instruction(1000, 20000, true, 37);
    }
}

int main(void)
{
    test_runs(20000);
    for (int i = 0; i < 2; i++) {
        in_runs = i;
        test_all();
    }
    return failures != 0;
}
