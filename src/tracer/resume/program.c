/* tracer/resume/program.c -- see program.h. What is read was made by a program, perhaps by hand: nothing in it is believed. */
#include "tracer/resume/program.h"

#include "tracer/tracer.h"

void program_close(struct program *p)
{
    free(p->steps);
    free(p->spans);
    free(p->step_at);
}

static void *no_memory(void *memory)
{
    if (!memory)
        PyErr_NoMemory();
    return memory;
}

/* ---- reading ---- */

/* One instruction at *UNIT, of UNITS, which becomes the next: one step, or two. */
static bool read_step(struct program *p, const unsigned char *bytes, int32_t *unit)
{
    struct step *step = &p->steps[p->count];
    int32_t at = *unit, size, way;
    uint32_t arg = 0;
    int op, half[2];

    do {
        if (at >= p->units || arg >> 24)
            return false;
        op = bytes[2 * at];
        arg = arg << 8 | bytes[2 * at + 1];
        at++;
    } while (op == EXTENDED_ARG);
    size = at - *unit;
    at += compat_caches(op);
    if (at > p->units || !op || arg > INT32_MAX || size > 4)
        return false;
    p->step_at[*unit] = p->count++;
    *step = (struct step){.op = (uint8_t)op, .starts = true, .size = (uint8_t)size, .arg = arg, .to = -1, .from = *unit};
    way = compat_jumps(op);
    if (way) { /* a unit for now */
        int64_t to = at + (int64_t)way * arg;
        if (to < 0 || to >= p->units)
            return false;
        step->to = (int32_t)to;
    } else if (compat_halves(op, half)) {
        step[1] = (struct step){.op = (uint8_t)half[1], .arg = arg & 15, .to = -1, .from = *unit};
        step[0].op = (uint8_t)half[0];
        step[0].arg = arg >> 4;
        p->count++;
    }
    *unit = at;
    return true;
}

static bool read_number(const unsigned char **at, const unsigned char *end, uint32_t *number)
{
    unsigned char byte;

    *number = 0;
    do {
        if (*at == end || *number >> 25)
            return false;
        byte = *(*at)++;
        *number = *number << 6 | (byte & 63);
    } while (byte & 64);
    return true;
}

/* The step at UNIT; the end of the code has one, too. */
static int32_t step_of(const struct program *p, int64_t unit)
{
    return unit == p->units ? p->count : unit < p->units ? p->step_at[unit] : -1;
}

static int read_spans(struct program *p)
{
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(p->code->co_exceptiontable);
    const unsigned char *end = at + PyBytes_GET_SIZE(p->code->co_exceptiontable);
    uint32_t first, length, to, depth;

    p->spans = no_memory(malloc(sizeof *p->spans * (size_t)(end - at + 2))); /* a byte for each number at least, and one to spare */
    if (!p->spans)
        return -1;
    while (at < end) {
        struct span *span = &p->spans[p->span_count];
        if (!read_number(&at, end, &first) || !read_number(&at, end, &length) || !read_number(&at, end, &to) ||
            !read_number(&at, end, &depth))
            return 1;
        *span = (struct span){step_of(p, first), step_of(p, (int64_t)first + length), step_of(p, to), depth};
        if (span->first < 0 || span->end < span->first || span->to < 0 || span->to >= p->count ||
            (p->span_count && span->first < span[-1].end))
            return 1;
        p->span_count++;
    }
    return 0;
}

int program_read(struct program *p, PyCodeObject *code)
{
    OWNED PyObject *bytes = PyCode_GetCode(code);
    int32_t unit = 0;

    *p = (struct program){.code = code};
    if (!bytes)
        return -1;
    p->units = (int32_t)(PyBytes_GET_SIZE(bytes) / 2);
    p->steps = no_memory(malloc(sizeof *p->steps * 2 * (size_t)(p->units + 1)));
    p->step_at = no_memory(malloc(sizeof *p->step_at * (size_t)(p->units + 1)));
    if (!p->steps || !p->step_at)
        return -1;
    memset(p->step_at, -1, sizeof *p->step_at * (size_t)(p->units + 1));
    while (unit < p->units)
        if (!read_step(p, (const unsigned char *)PyBytes_AS_STRING(bytes), &unit))
            return 1;
    for (int32_t i = 0; i < p->count; i++) {
        struct step *step = &p->steps[i];
        if (step->to >= 0 && (step->to = p->step_at[step->to]) < 0)
            return 1;
        if (step->to >= 0 && (step->to > i) != (compat_jumps(step->op) > 0))
            return 1;
        if (compat_has_variable(step->op) && step->arg >= (uint32_t)code->co_nlocalsplus)
            return 1;
    }
    return p->count ? read_spans(p) : 1;
}

/* ---- changing ---- */

int program_insert(struct program *p, int32_t at, const struct step *steps, int32_t count, bool led)
{
    struct step *more = no_memory(realloc(p->steps, sizeof *more * (size_t)(p->count + count)));
    int32_t spans = p->span_count;

    if (!more)
        return -1;
    p->steps = more;
    memmove(more + at + count, more + at, sizeof *more * (size_t)(p->count - at));
    p->count += count;
    for (int32_t i = 0; i < p->count; i++) {
        struct step *step = &more[i];
        if (i >= at && i < at + count)
            *step = steps[i - at];
        else if (step->to > at || (step->to == at && !led))
            step->to += count;
    }
    for (int32_t i = 0; i < spans; i++) {
        struct span *span = &p->spans[i];
        span->to += span->to >= at ? count : 0;
        if (span->first < at && span->end > at) { /* one at most: spans do not overlap */
            memmove(span + 1, span, sizeof *span * (size_t)(spans++ - i));
            p->span_count++;
            span->end = at;
            span[1].first = at + count;
            span[1].end += count;
            i++;
        } else if (span->first >= at) {
            span->first += count;
            span->end += count;
        }
    }
    return 0;
}

/* ---- writing ---- */

static void arrange(struct program *p)
{
    bool grown = true;

    for (int32_t i = 0; i < p->count; i++)
        p->steps[i].size = 1;
    while (grown) {
        int32_t at = 0;
        grown = false;
        for (int32_t i = 0; i < p->count; i++) {
            p->steps[i].at = at;
            at += p->steps[i].size + compat_caches(p->steps[i].op);
        }
        p->units = at;
        for (int32_t i = 0; i < p->count; i++) {
            struct step *step = &p->steps[i];
            uint8_t size;
            if (step->to >= 0)
                step->arg = (uint32_t)abs(p->steps[step->to].at - step->at - step->size - compat_caches(step->op));
            size = step->arg >> 24 ? 4 : step->arg >> 16 ? 3 : step->arg >> 8 ? 2 : 1;
            if (size > step->size) {
                step->size = size;
                grown = true;
            }
        }
    }
}

static PyObject *write_code(const struct program *p)
{
    PyObject *made = PyBytes_FromStringAndSize(NULL, 2 * (Py_ssize_t)p->units);
    unsigned char *bytes = made ? (unsigned char *)PyBytes_AS_STRING(made) : NULL;

    if (!made)
        return NULL;
    memset(bytes, 0, 2 * (size_t)p->units);
    for (int32_t i = 0; i < p->count; i++) {
        const struct step *step = &p->steps[i];
        unsigned char *at = bytes + 2 * step->at;
        for (int more = step->size - 1; more >= 0; more--, at += 2) {
            at[0] = more ? EXTENDED_ARG : step->op;
            at[1] = (unsigned char)(step->arg >> 8 * more);
        }
    }
    return made;
}

struct bytes {
    unsigned char *data; /* owned */
    size_t count, room;
    bool failed;
};

static void put(struct bytes *b, unsigned byte)
{
    if (b->count == b->room) {
        unsigned char *more = realloc(b->data, b->room = 2 * b->room + 256);
        if (!more) {
            b->failed = true;
            b->count = 0;
            b->room = b->data ? 1 : 0;
        }
        b->data = more ? more : b->data;
    }
    if (!b->failed)
        b->data[b->count++] = (unsigned char)byte;
}

static PyObject *put_end(struct bytes *b)
{
    PyObject *made = b->failed ? PyErr_NoMemory() : PyBytes_FromStringAndSize((char *)b->data, (Py_ssize_t)b->count);

    free(b->data);
    return made;
}

/* Six bits a byte, the highest first, as the exception table has them. */
static void put_high(struct bytes *b, uint32_t number, unsigned flag)
{
    for (int shift = 30; shift >= 0; shift -= 6)
        if (!shift || number >> shift) {
            put(b, (number >> shift & 63) | (shift ? 64 : 0) | flag);
            flag = 0;
        }
}

static PyObject *write_spans(const struct program *p)
{
    struct bytes b = {0};

    for (int32_t i = 0; i < p->span_count; i++) {
        const struct span *span = &p->spans[i];
        int32_t first = p->steps[span->first < p->count ? span->first : 0].at;
        int32_t end = span->end < p->count ? p->steps[span->end].at : p->units;
        if (span->first >= span->end)
            continue;
        put_high(&b, (uint32_t)first, 128);
        put_high(&b, (uint32_t)(end - first), 0);
        put_high(&b, (uint32_t)p->steps[span->to].at, 0);
        put_high(&b, span->depth, 0);
    }
    return put_end(&b);
}

/* The lowest first, as the line table has them. */
static void put_low(struct bytes *b, uint32_t number)
{
    for (; number > 63; number >>= 6)
        put(b, (number & 63) | 64);
    put(b, number);
}

/* Each unit's line, last line, column and last column, -1: none, of the code that was read. */
static int (*read_places(const struct program *p, Py_ssize_t *count))[4]
{
    OWNED PyObject *places = PyObject_CallMethod((PyObject *)p->code, "co_positions", NULL);
    OWNED PyObject *all = places ? PySequence_List(places) : NULL;
    int(*made)[4];

    if (!all)
        return NULL;
    *count = PyList_GET_SIZE(all);
    made = no_memory(malloc(sizeof *made * (size_t)(*count + 1)));
    for (Py_ssize_t i = 0; i < *count && made; i++)
        for (Py_ssize_t j = 0; j < 4; j++) {
            PyObject *number = PyTuple_GET_ITEM(PyList_GET_ITEM(all, i), j);
            made[i][j] = number == Py_None ? -1 : (int)PyLong_AsLong(number);
        }
    return made;
}

static PyObject *write_lines(const struct program *p)
{
    static const int none[4] = {-1, -1, -1, -1};
    Py_ssize_t known;
    int(*places)[4] = read_places(p, &known);
    struct bytes b = {0};
    int line = p->code->co_firstlineno;

    if (!places)
        return NULL;
    for (int32_t i = 0; i < p->count; i++) {
        const struct step *step = &p->steps[i];
        const int *place = step->silent || step->from >= known ? none : places[step->from];
        int left = step->size + compat_caches(step->op);
        bool whole = place[0] >= 0 && place[1] >= place[0] && place[2] >= 0 && place[3] >= 0;
        for (; left > 0; left -= 8) {
            unsigned units = left > 8 ? 7 : (unsigned)left - 1;
            int moved = place[0] - line;
            put(&b, 128 | (place[0] < 0 ? 15 : whole ? 14 : 13) << 3 | units);
            if (place[0] < 0)
                continue;
            put_low(&b, moved < 0 ? (uint32_t)-moved << 1 | 1 : (uint32_t)moved << 1);
            line = place[0];
            if (whole)
                for (int j = 1; j < 4; j++)
                    put_low(&b, (uint32_t)(j == 1 ? place[1] - line : place[j] + 1));
        }
    }
    free(places);
    return put_end(&b);
}

int program_code(struct program *p, PyObject *made[3])
{
    arrange(p);
    made[0] = write_code(p);
    made[1] = write_lines(p);
    made[2] = write_spans(p);
    return made[0] && made[1] && made[2] ? 0 : -1;
}
