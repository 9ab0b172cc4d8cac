/* trace/pages.c -- reads an SQLite file page by page. See trace/pages.h. */
#include "trace/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER = 100,      /* size of the file's header, which is at the beginning of the first page */
    LOG_HEADER = 32,   /* size of a write-ahead log's header */
    FRAME_HEADER = 24, /* size of the header before each page in a write-ahead log */
    PAGE_LEAST = 512,
    PAGE_MOST = 65536,
    DEPTH_MOST = 30,    /* the most levels of a B-tree; SQLite's have at most 20 */
    ROW_MOST = 64 << 20 /* the most bytes of a row; a longer row is treated as damage */
};

/* The kinds of pages of a B-tree: the first byte of the page's header. */
enum page_kind { INDEX_INNER = 2, TABLE_INNER = 5, INDEX_LEAF = 10, TABLE_LEAF = 13 };

static uint32_t read_big_endian_number(const unsigned char *bytes, int count)
{
    uint32_t value = 0;

    for (int i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Read the varint (1 to 9 bytes) at AT into *VALUE. Returns the position behind the varint, or NULL
 * if the varint does not end before END. */
static const unsigned char *read_varint(const unsigned char *at, const unsigned char *end,
                                        uint64_t *value)
{
    *value = 0;
    for (int i = 0; i < 9 && at < end; i++) {
        unsigned char byte = *at++;
        if (i == 8) {
            *value = *value << 8 | byte;
            return at;
        }
        *value = *value << 7 | (byte & 0x7f);
        if (byte < 0x80)
            return at;
    }
    return NULL;
}

static bool read_bytes_of_file(int file, int64_t offset, void *to, size_t bytes)
{
    return pread(file, to, bytes, offset) == (ssize_t)bytes;
}

/* ---- reading the write-ahead log ----------------------------------------- */

/* Add WORDS to the two running checksums of a write-ahead log. WORDS are big-endian if BIG,
 * otherwise little-endian. */
static void add_to_checksums(uint32_t sum[2], const unsigned char *words, size_t bytes, bool big)
{
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint32_t pair[2];
        for (int n = 0; n < 2; n++) {
            const unsigned char *at = words + i + 4 * n;
            uint32_t little = at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
            pair[n] = big ? read_big_endian_number(at, 4) : little;
        }
        sum[0] += pair[0] + sum[1];
        sum[1] += pair[1] + sum[0];
    }
}

/* Is SUM equal to the two checksums that are stored at AT? */
static bool is_checksum_at(const uint32_t sum[2], const unsigned char *at)
{
    return read_big_endian_number(at, 4) == sum[0] && read_big_endian_number(at + 4, 4) == sum[1];
}

/* Find the last version of each page in the log, up to the last commit. SQLite ignores what follows
 * the last commit, and what follows a frame with a wrong checksum; so does this function. */
static void read_write_ahead_log(struct pages *pages)
{
    unsigned char head[LOG_HEADER];
    unsigned char *frame = malloc(FRAME_HEADER + PAGE_MOST);
    LIST(struct {
        uint32_t page;
        int64_t place;
    })
    waiting = {0};
    uint32_t sum[2] = {0};
    uint32_t page_bytes;
    int64_t place = LOG_HEADER;
    bool big;

    if (!read_bytes_of_file(pages->log, 0, head, sizeof head) ||
        read_big_endian_number(head, 4) >> 1 != 0x377f0682 >> 1)
        goto end;
    big = read_big_endian_number(head, 4) & 1;
    page_bytes = read_big_endian_number(head + 8, 4);
    add_to_checksums(sum, head, LOG_HEADER - 8, big);
    if (page_bytes < PAGE_LEAST || page_bytes > PAGE_MOST)
        goto end;
    if (!is_checksum_at(sum, head + LOG_HEADER - 8))
        goto end;
    pages->log_sound = true;
    if (!pages->page_bytes)
        pages->page_bytes = page_bytes;
    if (pages->page_bytes != page_bytes)
        goto end;
    for (;; place += FRAME_HEADER + page_bytes) {
        uint32_t committed;
        bool is_of_now;
        if (!read_bytes_of_file(pages->log, place, frame, FRAME_HEADER + page_bytes)) {
            pages->log_torn = place < pages->log_bytes;
            break;
        }
        committed = read_big_endian_number(frame + 4, 4);
        /* the frame has the log's salt; if not, SQLite wrote it before it restarted the log */
        is_of_now = !memcmp(frame + 8, head + 16, 8);
        add_to_checksums(sum, frame, 8, big);
        add_to_checksums(sum, frame + FRAME_HEADER, page_bytes, big);
        if (!is_of_now || !is_checksum_at(sum, frame + 16)) {
            pages->log_torn = is_of_now;
            break;
        }
        *list_add(&waiting) =
            (__typeof__(*waiting.at)){read_big_endian_number(frame, 4), place + FRAME_HEADER};
        if (!committed)
            continue;
        for (size_t i = 0; i < waiting.count; i++)
            *map_put(&pages->logged, waiting.at[i].page) = waiting.at[i].place;
        waiting.count = 0;
        pages->log_used = place + FRAME_HEADER + page_bytes;
        pages->said = committed;
    }
end:
    list_free(&waiting);
    free(frame);
}

/* ---- reading pages of the file ------------------------------------------- */

static void read_file_header(struct pages *pages)
{
    unsigned char head[HEADER];
    uint32_t page_bytes;
    bool is_power, is_fixed;

    if (!read_bytes_of_file(pages->file, 0, head, sizeof head))
        return;
    pages->is_sqlite = !memcmp(head, "SQLite format 3", 16);
    page_bytes = read_big_endian_number(head + 16, 2);
    if (page_bytes == 1)
        page_bytes = PAGE_MOST;
    is_power = page_bytes >= PAGE_LEAST && !(page_bytes & (page_bytes - 1));
    is_fixed = head[21] == 64 && head[22] == 32 && head[23] == 32;
    pages->is_sound = is_power && is_fixed && head[18] - 1u < 2 && head[19] - 1u < 2;
    if (!is_power || !is_fixed)
        return;
    pages->page_bytes = page_bytes;
    pages->said = read_big_endian_number(head + 28, 4);
    pages->there = (uint32_t)(pages->bytes / page_bytes);
}

bool pages_open(struct pages *pages, const char *path)
{
    char *log = say_print("%s-wal", path);
    struct stat st;

    *pages = (struct pages){.file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .log = -1};
    if (pages->file >= 0 && fstat(pages->file, &st) == 0)
        pages->bytes = st.st_size;
    if (pages->file >= 0) {
        read_file_header(pages);
        pages->log = open(log, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    if (pages->log >= 0 && fstat(pages->log, &st) == 0)
        pages->log_bytes = st.st_size;
    if (pages->log_bytes)
        read_write_ahead_log(pages);
    free(log);
    return pages->file >= 0;
}

void pages_close(struct pages *pages)
{
    if (pages->file >= 0)
        close(pages->file);
    if (pages->log >= 0)
        close(pages->log);
    map_free(&pages->logged);
    map_free(&pages->visited);
    list_free(&pages->row_pages);
}

/* Read the newest version of page NUMBER, which may be in the log or in the file. Returns false if
 * it cannot be read. */
static bool read_newest_page(struct pages *pages, uint32_t number, unsigned char *page)
{
    int64_t *place = map_get(&pages->logged, number);
    int64_t offset = (int64_t)(number - 1) * pages->page_bytes;

    if (!number)
        return false;
    if (place)
        return read_bytes_of_file(pages->log, *place, page, pages->page_bytes);
    return read_bytes_of_file(pages->file, offset, page, pages->page_bytes);
}

/* ---- reading the rows of a B-tree ---------------------------------------- */

struct visit {
    struct pages *pages;
    struct tree *tree;
    /* the function that gets each row; NULL if the caller only needs the number of rows */
    pages_row *row;
    void *context;
};

/* A page of a B-tree. */
struct page {
    unsigned char *bytes;
    uint32_t number;
    /* where the page's header begins: at HEADER in the first page of a file, otherwise at 0 */
    size_t begin;
    enum page_kind kind;
    uint32_t cells;
};

static bool is_inner_page(const struct page *page)
{
    return page->kind == INDEX_INNER || page->kind == TABLE_INNER;
}

/* Read the header of PAGE, whose members `bytes` and `number` are set. Returns false if the
 * page is malformed. */
static bool read_page_header(const struct pages *pages, struct page *page)
{
    size_t header, pointers;
    bool is_leaf;

    page->begin = page->number == 1 ? HEADER : 0;
    page->kind = (enum page_kind)page->bytes[page->begin];
    page->cells = read_big_endian_number(page->bytes + page->begin + 3, 2);
    is_leaf = page->kind == INDEX_LEAF || page->kind == TABLE_LEAF;
    if (!is_leaf && !is_inner_page(page))
        return false;
    header = page->begin + (is_inner_page(page) ? 12 : 8);
    pointers = header + 2 * (size_t)page->cells;
    if (pointers > pages->page_bytes)
        return false;
    for (uint32_t i = 0; i < page->cells; i++)
        if (read_big_endian_number(page->bytes + header + 2 * i, 2) < pointers)
            return false;
    return true;
}

/* Return how many bytes of a row with LENGTH bytes are in its cell. The other bytes are in
 * overflow pages. */
static size_t count_bytes_in_cell(const struct pages *pages, bool is_leaf_of_table, uint64_t length)
{
    size_t usable = pages->page_bytes;
    size_t most = is_leaf_of_table ? usable - 35 : (usable - 12) * 64 / 255 - 23;
    size_t least = (usable - 12) * 32 / 255 - 23;
    size_t kept = least + (size_t)((length - least) % (usable - 4));

    if (length <= most)
        return (size_t)length;
    return kept <= most ? kept : least;
}

/* Read the last LEFT bytes of a row into TO. They are in overflow pages, of which NUMBER is the
 * first. Returns false if a page is missing. */
static bool read_overflow_pages(struct pages *pages, uint32_t number, unsigned char *to,
                                size_t left)
{
    unsigned char *page = malloc(pages->page_bytes);
    bool whole = true;

    while (left && whole) {
        size_t part = pages->page_bytes - 4;
        if (part > left)
            part = left;
        whole = read_newest_page(pages, number, page);
        *list_add(&pages->row_pages) = number;
        if (whole) {
            memcpy(to, page + 4, part);
            to += part;
            left -= part;
            number = read_big_endian_number(page, 4);
        }
    }
    free(page);
    return whole;
}

/* Read the row in the cell at AT and pass it to visit->row. Returns false if the cell is
 * damaged. */
static bool read_cell_row(struct visit *visit, const struct page *page, const unsigned char *at)
{
    const unsigned char *end = page->bytes + visit->pages->page_bytes;
    uint64_t length = 0;
    uint64_t rowid = 0;
    unsigned char *row;
    size_t local;
    bool whole;

    at = read_varint(at, end, &length);
    if (at && page->kind == TABLE_LEAF)
        at = read_varint(at, end, &rowid);
    if (!at || length > ROW_MOST)
        return false;
    local = count_bytes_in_cell(visit->pages, page->kind == TABLE_LEAF, length);
    if (local + (local < length ? 4 : 0) > (size_t)(end - at))
        return false;
    row = malloc(length + 1);
    memcpy(row, at, local);
    visit->pages->row_pages.count = 0;
    *list_add(&visit->pages->row_pages) = page->number;
    whole =
        local == length || read_overflow_pages(visit->pages, read_big_endian_number(at + local, 4),
                                               row + local, length - local);
    if (whole && visit->row)
        visit->row(visit->context, (int64_t)rowid, row, length);
    free(row);
    return whole;
}

static void visit_page(struct visit *visit, uint32_t number, int depth);

static void visit_cells(struct visit *visit, const struct page *page, int depth)
{
    const unsigned char *bytes = page->bytes;
    size_t header = page->begin + (is_inner_page(page) ? 12 : 8);
    bool has_row = page->kind != TABLE_INNER;
    bool damaged = false;

    for (uint32_t i = 0; i < page->cells; i++) {
        size_t place = read_big_endian_number(bytes + header + 2 * i, 2);
        if (is_inner_page(page) && place + 4 <= visit->pages->page_bytes) {
            visit_page(visit, read_big_endian_number(bytes + place, 4), depth + 1);
            place += 4;
        }
        if (!has_row)
            continue;
        if (place < visit->pages->page_bytes && read_cell_row(visit, page, bytes + place))
            visit->tree->rows++;
        else
            damaged = true;
    }
    if (is_inner_page(page))
        visit_page(visit, read_big_endian_number(bytes + page->begin + 8, 4), depth + 1);
    if (damaged)
        *list_add(&visit->tree->missing) = page->number;
}

static void visit_page(struct visit *visit, uint32_t number, int depth)
{
    struct page page = {.bytes = malloc(visit->pages->page_bytes), .number = number};
    int64_t *seen = map_put(&visit->pages->visited, number);
    bool is_new = !*seen && depth < DEPTH_MOST;

    *seen = 1;
    if (is_new && read_newest_page(visit->pages, number, page.bytes) &&
        read_page_header(visit->pages, &page)) {
        visit->tree->pages++;
        visit_cells(visit, &page, depth);
    } else {
        *list_add(&visit->tree->missing) = number;
    }
    free(page.bytes);
}

bool pages_is_header_of_database(const unsigned char head[8])
{
    bool is_kind = head[0] == INDEX_INNER || head[0] == TABLE_INNER || head[0] == INDEX_LEAF ||
                   head[0] == TABLE_LEAF;

    return is_kind && read_big_endian_number(head + 5, 2) <= PAGE_MOST / 16 && head[7] < 60;
}

void pages_visit_tree(struct pages *pages, uint32_t root, struct tree *tree, pages_row *row,
                      void *context)
{
    struct visit visit = {pages, tree, row, context};

    *tree = (struct tree){0};
    if (pages->page_bytes)
        visit_page(&visit, root, 0);
}

/* ---- reading the values of a row ----------------------------------------- */

/* Read the value at AT into *VALUE. TYPE is SQLite's number for the value's type and length.
 * Returns the value's length, or more than LEFT if the value is invalid. */
static size_t read_record_value(uint64_t type, const unsigned char *at, size_t left,
                                struct record_value *value)
{
    static const uint8_t lengths[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
    size_t length = type < 10 ? lengths[type] : (size_t)((type - 12) / 2);
    uint64_t bits = 0;

    *value = (struct record_value){.type = RECORD_NULL};
    if (length > left || type == 10 || type == 11)
        return left + 1;
    if (type >= 12) {
        value->type = type % 2 ? RECORD_TEXT : RECORD_BLOB;
        value->text = (const char *)at;
        value->length = length;
        return length;
    }
    if (length && at[0] >= 0x80)
        bits = UINT64_MAX;
    for (size_t i = 0; i < length; i++)
        bits = bits << 8 | at[i];
    if (type)
        value->type = type == 7 ? RECORD_REAL : RECORD_INTEGER;
    value->integer = type >= 8 ? (int64_t)type - 8 : (int64_t)bits;
    memcpy(&value->real, &bits, sizeof bits);
    return length;
}

int record_read_values(const unsigned char *payload, size_t length, struct record_value *values,
                       int most)
{
    const unsigned char *end = payload + length;
    const unsigned char *at = payload;
    const unsigned char *types_end, *body;
    uint64_t head, type;
    int count = 0;

    at = read_varint(at, end, &head);
    if (!at || head > length)
        return -1;
    if (payload + head < at)
        return -1;
    types_end = payload + head;
    body = types_end;
    while (at < types_end && count < most) {
        size_t taken;
        at = read_varint(at, types_end, &type);
        if (!at)
            return -1;
        taken = read_record_value(type, body, (size_t)(end - body), &values[count]);
        if (taken > (size_t)(end - body))
            return -1;
        body += taken;
        count++;
    }
    return count;
}
