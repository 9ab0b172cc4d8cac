/* frames_db.h -- a small trace of frame pages, and what SQLite reads in it.
 *
 * Runs in: unit tests and fuzz programs.
 *
 *     frames_db_open(&f)               an empty trace in shared memory, an empty window
 *     ... rows_put(&f.pages, ...) ...
 *     frames_db_finish(&f)             frame_pages_finish_file, integrity_check, read all rows
 *     f.row[i], f.rows
 *     frames_db_close(&f)
 */
#ifndef FRAMES_DB_H
#define FRAMES_DB_H

#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/frame_pages.h"
#include "collector/trace_files.h"
#include "recorder_sqlite.h"

/* A row as SQLite gives it; -1 stands for NULL. */
struct db_row {
    int64_t frame_id, thread_id, parent_id, code_id, kind, outcome, start_ns, end_ns, exit;
};

struct frames_db {
    struct frame_pages pages;
    struct frame_window *window; /* owned */
    char path[64];               /* of the file, in shared memory */
    int file;                    /* a second descriptor of the file; owned */
    struct db_row *row;          /* owned */
    size_t rows;
    char integrity[4096];        /* "ok", or what is wrong */
    int64_t finished;            /* what frame_pages_finish_file returned */
};

static char *frames_template; /* an empty trace */
static size_t frames_template_bytes;
static uint32_t frames_first, frames_root[PAGE_TREES];

static inline void frames_template_make(void)
{
    char directory[] = "/tmp/dyntrace-unit-XXXXXX", path[64], frames[64];
    struct frame_window *window;
    struct stat status;
    int fd;

    if (frames_template)
        return;
    if (!mkdtemp(directory)) {
        perror(directory);
        exit(1);
    }
    snprintf(path, sizeof path, "%s/t.db", directory);
    snprintf(frames, sizeof frames, "%s/t.db-frames", directory);
    window = aligned_alloc(4096, sizeof *window);
    if (recorder_create(path, frames, false) || !recorder_open_window(frames, true, window))
        exit(1);
    frames_first = window->first;
    memcpy(frames_root, window->root, sizeof frames_root);
    free(window);
    fd = open(frames, O_RDONLY);
    fstat(fd, &status);
    frames_template_bytes = (size_t)status.st_size;
    frames_template = malloc(frames_template_bytes);
    if (read(fd, frames_template, frames_template_bytes) != (ssize_t)frames_template_bytes)
        exit(1);
    close(fd);
    unlink(path);
    unlink(frames);
    rmdir(directory);
}

/* A file that holds an empty trace; PATH (64 bytes) becomes its name. */
static inline int frames_file_make(char *path)
{
    int fd = mkostemp(strcpy(path, access("/dev/shm", W_OK) ? "/tmp/unit-XXXXXX" : "/dev/shm/unit-XXXXXX"), O_CLOEXEC);

    if (fd < 0 || write(fd, frames_template, frames_template_bytes) != (ssize_t)frames_template_bytes) {
        perror(path);
        exit(1);
    }
    return fd;
}

static inline struct frame_window *frames_window_make(void)
{
    struct frame_window *window = mmap(NULL, sizeof *window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (window == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    window->first = frames_first;
    memcpy(window->root, frames_root, sizeof frames_root);
    return window;
}

static inline void frames_db_open(struct frames_db *f)
{
    frames_template_make();
    *f = (struct frames_db){.window = frames_window_make()};
    f->file = frames_file_make(f->path);
    if (frame_pages_open(&f->pages, dup(f->file), f->window, false)) {
        perror("frame_pages_open");
        exit(1);
    }
}

static inline int64_t column_or_null(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(statement, column);
}

/* Read the database in FILE into f->integrity and, if WITH_ROWS, f->row. */
static inline void frames_db_read(struct frames_db *f, bool with_rows)
{
    char uri[128];
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    size_t room = 0;

    snprintf(uri, sizeof uri, "file:%s?mode=ro&immutable=1", f->path);
    snprintf(f->integrity, sizeof f->integrity, "not read");
    f->rows = 0;
    if (sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        snprintf(f->integrity, sizeof f->integrity, "%s", sqlite3_errmsg(db));
        goto done;
    }
    snprintf(f->integrity, sizeof f->integrity, "%s", sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    statement = NULL;
    if (!with_rows)
        goto done;
    sqlite3_prepare_v2(db, "SELECT frame_id, thread_id, parent_id, code_id, kind, outcome, start_ns, end_ns, exit,"
                           " cache_entry_id, took_ns FROM frame ORDER BY frame_id", -1, &statement, NULL);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        if (f->rows == room) {
            room = room ? 2 * room : 1024;
            f->row = realloc(f->row, room * sizeof *f->row);
        }
        f->row[f->rows++] = (struct db_row){
            column_or_null(statement, 0), column_or_null(statement, 1), column_or_null(statement, 2),
            column_or_null(statement, 3), column_or_null(statement, 4), column_or_null(statement, 5),
            column_or_null(statement, 6), column_or_null(statement, 7), column_or_null(statement, 8)};
        if (sqlite3_column_int64(statement, 10) == -1) /* left open: SQL takes that away where a trace is finished */
            f->row[f->rows - 1].end_ns = f->row[f->rows - 1].exit = -1;
        if (sqlite3_column_type(statement, 9) != SQLITE_NULL)
            snprintf(f->integrity, sizeof f->integrity, "a row has a cache entry");
    }
done:
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

static inline void frames_db_finish(struct frames_db *f)
{
    f->finished = frame_pages_finish_file(&f->pages);
    frames_db_read(f, true);
}

static inline void frames_db_close(struct frames_db *f)
{
    frame_pages_close(&f->pages);
    close(f->file);
    unlink(f->path);
    munmap(f->window, sizeof *f->window);
    free(f->row);
}

/* Slow under valgrind: what only grows is made smaller there. */
static inline bool under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload");
}

static inline unsigned measure_number(uint64_t value)
{
    return value < 2 ? 0 : value < 1 << 7 ? 1 : value < 1 << 15 ? 2 : value < 1 << 23 ? 3
           : value < UINT64_C(1) << 31 ? 4 : value < UINT64_C(1) << 47 ? 6 : 8;
}

/* Say how long ROW's cell is while its frame is open, and return how long it is now. From the file format, not from our
 * code. */
static inline unsigned measure(struct frame_row *row, uint64_t id)
{
    unsigned bytes = 1 + 1 + 1 + 5 + measure_number(row->start_ns) + measure_number(row->code_id) + measure_number(row->thread_id);

    if (row->parent_id)
        bytes += measure_number(id - row->parent_id);
    for (uint64_t rest = id >> 7; rest; rest >>= 7)
        bytes++;
    row->open_bytes = (uint8_t)(bytes + 3 + measure_number(row->kind) + FRAME_OPEN_BYTES);
    if (!row->ended)
        return row->open_bytes;
    bytes += measure_number(row->end_ns - row->start_ns) + measure_number(row->outcome) + measure_number(row->exit) + measure_number(row->kind);
    return bytes + (row->outcome ? 3 : row->kind ? 2 : row->exit != 0);
}

static uint64_t random_state = 88172645463325252u;

static inline uint64_t random_next(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static inline uint64_t random_below(uint64_t limit)
{
    return limit ? random_next() % limit : 0;
}

static __attribute__((unused)) int failures;

#define CHECK(condition, ...) \
    do { \
        if (!(condition)) { \
            if (++failures <= 20) { \
                fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
                fprintf(stderr, __VA_ARGS__); \
                fputc('\n', stderr); \
            } \
        } \
    } while (0)

/* Store ROWS as PAGE. The cells of those that have ended are made first, the last row's first. */
static inline void rows_put(struct frame_pages *pages, uint32_t page, const struct frame_row *rows, uint32_t count)
{
    struct frame_repeats repeats = FRAME_REPEATS_NONE;
    struct frame_fill fill = {0};
    uint32_t at = 0;

    memcpy(fill.rows, rows, count * sizeof *rows);
    for (uint32_t i = count; i--; )
        if (rows[i].ended) {
            unsigned expected = measure(&fill.rows[i], frame_id(page, i)),
                     made = frame_write_filled_cell(&fill, page, i, at, false, &repeats);
            CHECK(made == expected, "a cell of %u bytes, expected %u", made, expected);
            at += made;
        }
    frame_pages_store_filled_page(pages, page, &fill, count, at);
}

#endif
