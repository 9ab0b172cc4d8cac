/* test_frame_pages.c -- frame pages that we write are what SQLite reads.
 *
 * Each test puts rows, keeps what it put in a model, finishes, and compares what
 * SQLite reads (after PRAGMA integrity_check) with the model.
 *
 * pwrite and ftruncate are our own here: a disk of a given size can be full. */
#include <errno.h>
#include <sys/param.h>
#include <sys/syscall.h>

#include "frames_db.h"

/* ---- a disk that can be full ---- */

static uint64_t disk_blocks; /* pages it holds, 0 = any number */
static uint8_t *disk_used;   /* by page of the file */
static uint64_t disk_count;
enum { DISK_PAGES = 1 << 20 };

static void disk_make(uint64_t blocks, uint64_t used)
{
    free(disk_used);
    disk_used = calloc(DISK_PAGES, 1);
    memset(disk_used, 1, used);
    disk_count = used;
    disk_blocks = blocks;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    if (disk_blocks) {
        uint64_t from = (uint64_t)at / 4096, to = ((uint64_t)at + bytes + 4095) / 4096;
        for (uint64_t page = from; page < to; page++)
            if (!disk_used[page]) {
                if (disk_count == disk_blocks) {
                    if (page == from) {
                        errno = ENOSPC;
                        return -1;
                    }
                    return syscall(SYS_pwrite64, fd, data, page * 4096 - (uint64_t)at, at);
                }
                disk_used[page] = 1;
                disk_count++;
            }
    }
    return syscall(SYS_pwrite64, fd, data, bytes, at);
}

int ftruncate(int fd, off_t bytes)
{
    if (disk_blocks)
        for (uint64_t page = ((uint64_t)bytes + 4095) / 4096; page < DISK_PAGES; page++)
            if (disk_used[page]) {
                disk_used[page] = 0;
                disk_count--;
            }
    return (int)syscall(SYS_ftruncate, fd, bytes);
}

/* ---- the model ---- */

struct model {
    struct db_row *row; /* in any order */
    size_t rows, room;
};

static struct db_row *model_add(struct model *m, uint64_t id, const struct frame_row *row)
{
    if (m->rows == m->room) {
        m->room = m->room ? 2 * m->room : 256;
        m->row = realloc(m->row, m->room * sizeof *m->row);
    }
    m->row[m->rows] = (struct db_row){
        .frame_id = (int64_t)id, .thread_id = row->thread_id, .parent_id = row->parent_id ? (int64_t)row->parent_id : -1,
        .code_id = row->code_id, .kind = row->kind, .outcome = row->outcome, .start_ns = (int64_t)row->start_ns,
        .end_ns = row->ended ? (int64_t)row->end_ns : -1, .exit = row->ended ? row->exit : -1};
    return &m->row[m->rows++];
}

static int by_id(const void *a, const void *b)
{
    const struct db_row *x = a, *y = b;

    return x->frame_id < y->frame_id ? -1 : x->frame_id > y->frame_id;
}

static struct db_row *model_find(struct model *m, uint64_t id)
{
    for (size_t i = m->rows; i--; )
        if (m->row[i].frame_id == (int64_t)id)
            return &m->row[i];
    return NULL;
}

static void model_remove(struct model *m, uint64_t id)
{
    struct db_row *row = model_find(m, id);

    *row = m->row[--m->rows];
}

/* Finish F and compare; closes both. */
static void same(const char *what, struct frames_db *f, struct model *m)
{
    frames_db_finish(f);
    for (size_t i = 0; i < m->rows; i++)
        if (!m->row[i].end_ns) /* as one that was left open */
            m->row[i].end_ns = m->row[i].exit = -1;
    if (m->rows)
        qsort(m->row, m->rows, sizeof *m->row, by_id);
    CHECK(!strcmp(f->integrity, "ok"), "%s: integrity_check: %s", what, f->integrity);
    CHECK(f->finished == (int64_t)m->rows, "%s: finish returned %lld, not %zu", what, (long long)f->finished, m->rows);
    CHECK(f->rows == m->rows, "%s: %zu rows, not %zu", what, f->rows, m->rows);
    for (size_t i = 0; i < f->rows && i < m->rows; i++)
        if (memcmp(&f->row[i], &m->row[i], sizeof m->row[i])) {
            const struct db_row *a = &f->row[i], *b = &m->row[i];
            CHECK(false, "%s: row %zu differs: %lld|%lld|%lld|%lld|%lld|%lld|%lld|%lld|%lld, expected "
                  "%lld|%lld|%lld|%lld|%lld|%lld|%lld|%lld|%lld", what, i,
                  (long long)a->frame_id, (long long)a->thread_id, (long long)a->parent_id, (long long)a->code_id,
                  (long long)a->kind, (long long)a->outcome, (long long)a->start_ns, (long long)a->end_ns, (long long)a->exit,
                  (long long)b->frame_id, (long long)b->thread_id, (long long)b->parent_id, (long long)b->code_id,
                  (long long)b->kind, (long long)b->outcome, (long long)b->start_ns, (long long)b->end_ns, (long long)b->exit);
            break;
        }
    frames_db_close(f);
    free(m->row);
    *m = (struct model){0};
}

/* ---- pages ---- */

/* A page with COUNT ended rows. */
static uint32_t page_put(struct frames_db *f, struct model *m, unsigned count)
{
    struct frame_row rows[FRAME_PAGE_ROWS];
    uint32_t page = frame_pages_reserve_page(&f->pages);

    for (unsigned i = 0; i < count; i++) {
        rows[i] = (struct frame_row){.parent_id = i ? frame_id(page, i - 1) : 0, .start_ns = page * 10u + i,
                                     .end_ns = page * 10u + i + 5, .code_id = 1 + i % 3, .thread_id = 1, .ended = true};
        measure(&rows[i], frame_id(page, i));
        model_add(m, frame_id(page, i), &rows[i]);
    }
    rows_put(&f->pages, page, rows, count);
    return page;
}

static void test_counts(void)
{
    /* pages: none, one (the root becomes a leaf), and around the fan-out of 250 and 250 * 250 */
    static const unsigned counts[] = {0, 1, 2, 3, 249, 250, 251, 499, 500, 501, 1023, 1024, 1025, 1281, 62499, 62500, 62501};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct frames_db f;
        struct model m = {0};
        char what[64];
        if (counts[i] > 5000 && under_valgrind())
            continue;
        frames_db_open(&f);
        for (unsigned n = 0; n < counts[i]; n++)
            page_put(&f, &m, counts[i] < 10 ? 40 + n : 1 + n % 2);
        snprintf(what, sizeof what, "%u pages", counts[i]);
        same(what, &f, &m);
    }
}

/* Pages that nobody put, some of them the last, go to the list of free pages. */
static void test_holes(void)
{
    for (unsigned every = 1; every <= 7; every += 2)
        for (unsigned pages = 1; pages < 3000; pages = pages * 3 + 1) {
            struct frames_db f;
            struct model m = {0};
            frames_db_open(&f);
            for (unsigned n = 0; n < pages; n++)
                if (n % every)
                    frame_pages_reserve_page(&f.pages);
                else
                    page_put(&f, &m, 3);
            same("holes", &f, &m);
        }
}

/* As if PAGES pages had been taken before and came to nothing. */
static void skip_pages(struct frames_db *f, uint32_t pages)
{
    f->window->next_page = f->window->written = pages;
    list_add_many(&f->pages.cells, pages);
}

static void test_lock_page(void)
{
    for (int before = -2; before < 4; before++)
        for (unsigned pages = 1; pages < 300; pages = pages * 2 + 1) {
            struct frames_db f;
            struct model m = {0};
            char what[64];
            if (under_valgrind() && (before || pages > 4))
                continue;
            frames_db_open(&f);
            skip_pages(&f, (uint32_t)(FRAME_LOCK_PAGE - frames_first - before));
            for (unsigned n = 0; n < pages; n++)
                page_put(&f, &m, 2);
            snprintf(what, sizeof what, "%u pages from %d before the lock page", pages, before);
            same(what, &f, &m);
        }
}

/* An interior page falls on the lock page: 300 leaves that end just before it. */
static void test_interior_at_lock_page(void)
{
    for (uint32_t before = 298; before <= 304; before++) {
        struct frames_db f;
        struct model m = {0};
        if (under_valgrind() && before != 300)
            continue;
        frames_db_open(&f);
        skip_pages(&f, FRAME_LOCK_PAGE - frames_first - before);
        for (unsigned n = 0; n < 300; n++)
            page_put(&f, &m, 1);
        same("interior page at the lock page", &f, &m);
    }
}

/* Past 1 GiB for real: 12 s and 1.1 GB of memory, hence only when asked for. */
static void test_past_1_gib(void)
{
    struct frames_db f;
    struct model m = {0};

    if (!getenv("DYNTRACE_BIG"))
        return;
    frames_db_open(&f);
    for (unsigned n = 0; n < 280000; n++)
        page_put(&f, &m, 5);
    same("more than 1 GiB", &f, &m);
}

static const uint64_t edges[] = {
    0, 1, 2, 127, 128, 129, 255, 256, 32767, 32768, 65535, 65536, (1 << 23) - 1, 1 << 23, (1 << 24), INT32_MAX,
    UINT64_C(1) << 31, UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 47) - 1, UINT64_C(1) << 47, (UINT64_C(1) << 47) + 1,
    UINT64_C(1) << 48, UINT64_C(1) << 62, INT64_MAX};
enum { EDGES = sizeof edges / sizeof *edges };

/* Each width of each column, ended in its place, later, or never. */
static void test_widths(uint32_t first_page)
{
    enum { NOW, LATER, NEVER, WAYS };
    struct frames_db f;
    struct model m = {0};

    frames_db_open(&f);
    if (first_page)
        skip_pages(&f, first_page);
    for (unsigned column = 0; column < 7; column++)
        for (unsigned edge = 0; edge < EDGES; edge++)
            for (unsigned way = 0; way < WAYS; way++) {
                uint32_t page = frame_pages_reserve_page(&f.pages);
                struct frame_row row = {.start_ns = 7, .code_id = 1, .thread_id = 2,
                                        .ended = way == NOW};
                struct frame_row rows[3], back;
                uint64_t value = edges[edge], took = 2;
                switch (column) {
                case 1: row.start_ns = MIN(value, INT64_MAX - 2); break;
                case 2: took = MIN(value, INT64_MAX - 7); break;
                case 3: row.code_id = (uint32_t)value; break;
                case 4: row.thread_id = (uint32_t)value; break;
                case 5: row.kind = value % 4; row.exit = (value / 4) % 4; break;
                case 6: row.outcome = value % 10; row.exit = value % 3; break;
                }
                row.end_ns = row.start_ns + took;
                rows[0] = rows[1] = rows[2] = row;
                for (unsigned i = 0; i < 3; i++) {
                    uint64_t distance = column == 0 ? value : 3;
                    rows[i].parent_id = distance && distance < frame_id(page, i) ? frame_id(page, i) - distance : 0;
                    model_add(&m, frame_id(page, i), &rows[i]);
                    measure(&rows[i], frame_id(page, i));
                }
                rows_put(&f.pages, page, rows, 3);
                CHECK(frame_pages_read_row(&f.pages, frame_id(page, 1), &back) && back.parent_id == rows[1].parent_id &&
                      back.start_ns == row.start_ns && back.code_id == row.code_id && back.thread_id == row.thread_id &&
                      back.kind == row.kind, "a stored row is read back (column %u, edge %u, way %u)", column, edge, way);
                for (unsigned i = 0; i < 3; i++) {
                    if (way == LATER) {
                        struct db_row *expected = model_find(&m, frame_id(page, i));
                        frame_pages_set_frame_end(&f.pages, frame_id(page, i), row.end_ns, row.outcome, row.exit);
                        expected->end_ns = (int64_t)row.end_ns;
                        expected->outcome = row.outcome;
                        expected->exit = row.exit;
                    }
                }
            }
    same("widths", &f, &m);
}

/* ---- threads that come and go between each other ---- */

struct thread {
    uint32_t page, rows, used;
    bool has_page;
    struct frame_row row[FRAME_PAGE_ROWS];
    uint64_t open[64]; /* ids */
    unsigned depth;
};

static void thread_put(struct frames_db *f, struct thread *t)
{
    if (t->has_page && t->rows)
        rows_put(&f->pages, t->page, t->row, t->rows);
    t->has_page = false;
    t->rows = t->used = 0;
}

static void thread_enter(struct frames_db *f, struct model *m, struct thread *t, uint32_t id, uint64_t now)
{
    struct frame_row made = {.parent_id = t->depth ? t->open[t->depth - 1] : 0, .start_ns = now,
                             .code_id = (uint32_t)random_below(70000), .thread_id = id, .kind = random_below(4)};

    if (t->has_page) {
        measure(&made, frame_id(t->page, t->rows));
        if (t->rows == FRAME_PAGE_ROWS || t->used + made.open_bytes + 2u > FRAME_PAGE_ROOM ||
            !random_below(12)) /* small pages: more of them */
            thread_put(f, t);
    }
    if (!t->has_page) {
        t->page = frame_pages_reserve_page(&f->pages);
        t->has_page = true;
        measure(&made, frame_id(t->page, 0));
    }
    t->used += made.open_bytes + 2u;
    t->row[t->rows] = made;
    model_add(m, frame_id(t->page, t->rows), &made);
    t->open[t->depth++] = frame_id(t->page, t->rows++);
}

static void thread_leave(struct frames_db *f, struct model *m, struct thread *t, uint64_t now)
{
    uint64_t id = t->open[--t->depth];
    struct db_row *expected = model_find(m, id);
    unsigned exit = (unsigned)random_below(3), outcome = (unsigned)random_below(4);

    if (t->has_page && id >= frame_id(t->page, 0)) {
        struct frame_row *row = &t->row[id - frame_id(t->page, 0)];
        row->ended = true;
        row->end_ns = now;
        row->exit = (uint8_t)exit;
        row->outcome = (uint8_t)outcome;
        measure(row, id);
    } else {
        frame_pages_set_frame_end(&f->pages, id, now, outcome, exit);
    }
    expected->end_ns = (int64_t)now;
    expected->exit = exit;
    expected->outcome = outcome;
}

/* THREADS threads; the last is slow: its page waits until the end, and its frames
 * end when their pages are long on disk. RESUME: forget what is private now and then. */
static void test_threads(unsigned threads, unsigned events, bool resume)
{
    struct thread *t = calloc(threads, sizeof *t);
    struct frames_db f;
    struct model m = {0};
    uint64_t now = 1;

    frames_db_open(&f);
    for (unsigned n = 0; n < events; n++) {
        unsigned which = n % 2000 == 1 ? threads - 1 : (unsigned)random_below(threads - (threads > 1));
        struct thread *one = &t[which];
        now += random_below(100000);
        if (one->depth < 2 || (one->depth < 60 && random_below(2)))
            thread_enter(&f, &m, one, which + 1, now);
        else
            thread_leave(&f, &m, one, now);
        if (resume && !random_below(events / 8)) {
            uint32_t count = f.window->next_page;
            uint8_t *before = memcpy(malloc(count), f.pages.cells.at, count);
            frame_pages_close(&f.pages);
            if (frame_pages_open(&f.pages, dup(f.file), f.window, true))
                perror("frame_pages_open");
            CHECK(!memcmp(before, f.pages.cells.at, count), "the rows of each page are known again");
            free(before);
        }
    }
    for (unsigned i = 0; i < threads; i++)
        thread_put(&f, &t[i]);
    same(resume ? "threads, resumed" : "threads", &f, &m);
    free(t);
}

static void test_drop(void)
{
    struct frames_db f;
    struct model m = {0};
    uint32_t near[3], far[3];

    frames_db_open(&f);
    for (int i = 0; i < 3; i++)
        far[i] = page_put(&f, &m, 3);
    for (unsigned n = 0; n < FRAME_WINDOW_PAGES + 300; n++)
        frame_pages_reserve_page(&f.pages);
    for (int i = 0; i < 3; i++)
        near[i] = page_put(&f, &m, 3);
    CHECK(far[2] < f.window->written && near[0] >= f.window->written, "one is on disk, one in the window");
    for (int side = 0; side < 2; side++) {
        uint32_t *page = side ? near : far;
        frame_pages_remove_row(&f.pages, frame_id(page[0], 1)); /* not the last: stays */
        frame_pages_remove_row(&f.pages, frame_id(page[0], 2));
        model_remove(&m, frame_id(page[0], 2));
        frame_pages_remove_row(&f.pages, frame_id(page[0], 2)); /* gone already */
        for (int slot = 2; slot >= 0; slot--) {           /* a whole page */
            frame_pages_remove_row(&f.pages, frame_id(page[1], (uint32_t)slot));
            model_remove(&m, frame_id(page[1], (uint32_t)slot));
        }
    }
    frame_pages_set_frame_end(&f.pages, frame_id(near[1], 0), 5, 0, 0); /* no such rows: no harm */
    frame_pages_set_frame_end(&f.pages, 0, 5, 0, 0);
    frame_pages_set_frame_end(&f.pages, UINT64_MAX, 5, 0, 0);
    frame_pages_set_frame_end(&f.pages, frame_id(near[2], FRAME_PAGE_ROWS - 1), 5, 0, 0);
    same("drop", &f, &m);
}

/* Whenever the disk is full: a valid database of whole threads' beginnings, and every row is stored or counted. */
static void test_disk_full(void)
{
    unsigned step = under_valgrind() ? 1500 : 97;

    for (uint64_t blocks = 400; blocks < 6500; blocks += step) {
        struct frames_db f;
        struct model m = {0};
        struct frame_row slow = {.start_ns = 1, .end_ns = 2, .code_id = 1, .thread_id = 9, .ended = true};
        uint32_t slow_page;
        uint64_t lost;

        frames_db_open(&f);
        disk_make(blocks + frames_template_bytes / 4096, frames_template_bytes / 4096);
        page_put(&f, &m, 3);
        slow_page = frame_pages_reserve_page(&f.pages); /* put when the window has long moved on */
        measure(&slow, frame_id(slow_page, 0));
        for (unsigned n = 0; n < 6000; n++)
            page_put(&f, &m, 3);
        if (blocks % 2) /* and others have taken what we gave back */
            disk_blocks = disk_count;
        rows_put(&f.pages, slow_page, &slow, 1);
        frames_db_finish(&f);
        lost = f.pages.lost;
        CHECK(f.pages.error == (blocks > 6100 && blocks % 2 == 0 ? 0 : ENOSPC), "%llu: error %d", (unsigned long long)blocks, f.pages.error);
        CHECK(f.finished >= 0, "%llu: finished: %s", (unsigned long long)blocks, strerror(f.pages.error));
        CHECK(!strcmp(f.integrity, "ok"), "%llu: integrity_check: %s", (unsigned long long)blocks, f.integrity);
        CHECK(f.rows + lost == m.rows + 1 && f.finished == (int64_t)f.rows, "%llu: %zu rows (finish: %lld) and %llu lost of %zu",
              (unsigned long long)blocks, f.rows, (long long)f.finished, (unsigned long long)lost, m.rows + 1);
        disk_blocks = 0;
        frames_db_close(&f);
        free(m.row);
    }
    free(disk_used);
    disk_used = NULL;
}

/* ---- with --keep ---- */

struct saved {
    bool is_saved[4000]; /* by page: its rows were passed to row() */
    unsigned rows;
};

static void begin_drop(void *context)
{
}

static void save_row(void *context, uint64_t id, const struct frame_row *row)
{
    struct saved *saved = context;

    saved->is_saved[(id - 1) / FRAME_PAGE_ROWS] = true;
    saved->rows++;
}

/* A page of COUNT frames that began from START_NS on, a nanosecond after each other. */
static uint32_t page_put_from(struct frames_db *f, unsigned count, uint64_t start_ns)
{
    struct frame_row rows[FRAME_PAGE_ROWS];
    uint32_t page = frame_pages_reserve_page(&f->pages);

    for (unsigned i = 0; i < count; i++) {
        rows[i] = (struct frame_row){.start_ns = start_ns + i, .end_ns = start_ns + i, .code_id = 1, .thread_id = 1, .ended = true};
        measure(&rows[i], frame_id(page, i));
    }
    rows_put(&f->pages, page, rows, count);
    return page;
}

/* A busy thread fills pages. A slow thread, decoded ahead of it by AHEAD pages, stores a page of COUNT rows after each EVERY
 * of those. Every frame from from_ns on must be stored. Returns how far from_ns is ahead of the dropped pages of the busy thread. */
static uint64_t most_ahead(unsigned ahead, unsigned count, unsigned every, struct saved *saved)
{
    enum { MOST = 1280, PAGES = 4000, PAGE_NS = 1000, BUSY_ROWS = 150 };
    static uint64_t last_ns[PAGES], busy_ns;
    struct frames_db f;
    uint64_t most = 0, dropped_ns = 0;

    *saved = (struct saved){0};
    frames_db_open(&f);
    frame_pages_close(&f.pages);
    frame_pages_open_window(&f.pages, dup(f.file), f.window, false,
                            &(struct page_window){.on = true, .most = MOST, .begin = begin_drop, .row = save_row,
                                                  .rows_end = begin_drop, .context = saved});
    busy_ns = 0;
    for (uint32_t n = 0, low = 0; n < PAGES; n++) {
        bool is_slow = n % every == every - 1;
        uint64_t start_ns = is_slow ? busy_ns + (uint64_t)ahead * PAGE_NS : (busy_ns += PAGE_NS);
        unsigned rows = is_slow ? count : BUSY_ROWS;
        uint32_t page = page_put_from(&f, rows, start_ns);
        last_ns[page] = start_ns + rows - 1;
        for (; low < f.window->low; low++) {
            if (low % every != every - 1)
                dropped_ns = last_ns[low];
            CHECK(last_ns[low] <= f.window->from_ns || saved->is_saved[low], "page %u, dropped: frames from %llu on are lost", low,
                  (unsigned long long)f.window->from_ns);
        }
        if (f.window->from_ns > dropped_ns)
            most = MAX(most, (f.window->from_ns - dropped_ns) / PAGE_NS);
    }
    CHECK(f.window->next_page - f.window->low <= MOST + 1, "%u pages", f.window->next_page - f.window->low);
    frames_db_close(&f);
    return most;
}

/* from_ns must not run ahead of the stored frames of a busy thread because of a thread with few frames that was decoded first. */
static void test_thread_decoded_ahead(void)
{
    static struct saved saved;
    uint64_t most;

    most = most_ahead(1000, 5, 160, &saved);
    CHECK(most == 0, "from_ns is %llu pages ahead of the dropped ones", (unsigned long long)most);
    CHECK(saved.rows > 0 && saved.rows <= 5 * 4000 / 160, "%u rows saved", saved.rows);
    most = most_ahead(0, 5, 160, &saved);
    CHECK(most == 0 && saved.rows == 0, "%llu pages ahead, %u rows saved", (unsigned long long)most, saved.rows);
    /* as many rows as these would take more room than the pages did */
    most = most_ahead(1000, 100, 2, &saved);
    CHECK(saved.rows <= 1024 + 4000 / 16, "%u rows saved", saved.rows);
}

/* Memory ran out, so that the newest pages have no place. What lies in memory behind the places must not be read. */
static void test_drop_beside_pages_without_memory(void)
{
    enum { PAGES = 3000 };
    struct frames_db f;
    struct frame_pages *pages = &f.pages;

    frames_db_open(&f);
    frame_pages_close(pages);
    frame_pages_open_window(pages, dup(f.file), f.window, false,
                            &(struct page_window){.on = true, .most = UINT64_MAX, .begin = begin_drop, .rows_end = begin_drop});
    for (uint32_t n = 0; n < PAGES; n++)
        page_put_from(&f, 1, 10 + n);
    CHECK(pages->keep.places.room > PAGES + 16 && pages->cells.room > PAGES + 16, "the lists have no room for garbage");
    for (size_t i = PAGES; i < PAGES + 16; i++) {
        pages->keep.places.at[i] = (struct page_place){.last_start_ns = 1};
        pages->cells.at[i] = 1;
    }
    pages->limit = PAGES;
    f.window->next_page = PAGES + 1000;
    f.window->written = PAGES + 8;
    pages->keep.before_ns = UINT64_MAX;
    frame_pages_drop_old_pages(pages);
    CHECK(f.window->low == PAGES, "%u pages dropped", f.window->low);
    CHECK(f.window->from_ns == 10 + PAGES - 1, "from_ns is %llu", (unsigned long long)f.window->from_ns);
    frames_db_close(&f);
}

/* What a page holds as garbage must neither crash nor be believed. */
static void test_hostile_pages(void)
{
    struct frames_db f;
    struct model m = {0};
    struct frame_row row;

    frames_db_open(&f);
    for (int i = 0; i < 20; i++)
        page_put(&f, &m, 100);
    for (int i = 0; i < 20000; i++) {
        uint8_t *page = f.window->page[random_below(20)];
        if (random_below(20) == 0)
            page[random_below(12)] = (uint8_t)random_next();
        page[random_below(4096)] = (uint8_t)random_next();
        uint64_t id = 1 + random_below(20 * FRAME_PAGE_ROWS);
        frame_pages_read_row(&f.pages, id, &row);
        frame_pages_set_frame_end(&f.pages, id, random_next(), 1, 1);
        if (!random_below(8))
            frame_pages_remove_row(&f.pages, id);
    }
    frames_db_close(&f);
    free(m.row);
}

int main(void)
{
    bool quick = under_valgrind();

    test_counts();
    test_holes();
    test_drop();
    test_widths(0);
    test_widths(1 << 17);                          /* ids from 2^24 on */
    test_widths((1 << 21) - 40);                   /* across 2^28 */
    test_widths((1 << 21) + 5);
    test_threads(1, 3000, false);
    test_threads(5, quick ? 2000 : 30000, false);
    test_threads(40, quick ? 2000 : 60000, false);
    test_threads(7, quick ? 2000 : 40000, true);
    test_lock_page();
    test_interior_at_lock_page();
    test_past_1_gib();
    test_disk_full();
    test_thread_decoded_ahead();
    test_drop_beside_pages_without_memory();
    test_hostile_pages();
    return failures != 0;
}
