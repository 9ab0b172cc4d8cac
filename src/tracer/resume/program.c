/* tracer/resume/program.c -- see program.h. What is read was made by a program, perhaps by hand:
 * nothing in it is believed. */
#include "tracer/resume/program.h"

#include "tracer/tracer.h"

void program_close(struct program *p)
{
    free(p->steps);
    free(p->made);
    free(p->spans);
    free(p->step_at);
    free(p->depth);
    free(p->slots);
}

/* ---- reading ---- */

/* One instruction at *UNIT, which becomes the next: one step, or two. */
static bool read_step(struct program *p, const unsigned char *bytes, int32_t *unit)
{
    struct step *step = &p->steps[p->count];
    const struct compat_op *is;
    int32_t at = *unit, size;
    int64_t to;
    uint32_t arg = 0;
    int op;

    do {
        if (at >= p->units || arg >> 24)
            return false;
        op = bytes[2 * at];
        arg = arg << 8 | bytes[2 * at + 1];
        at++;
    } while (op == EXTENDED_ARG);
    is = &compat_ops[op];
    size = at - *unit;
    at += compat_caches(op);
    to = is->jumps ? at + (int64_t)is->jumps * arg : -1; /* a unit for now */
    if (at > p->units || !op || arg > INT32_MAX || size > 4 ||
        (is->jumps && (to <= 0 || to >= p->units)))
        return false;
    p->step_at[*unit] = p->count++;
    *step = (struct step){.op = (uint8_t)op,
                          .size = (uint8_t)size,
                          .starts = true,
                          .arg = arg,
                          .to = (int32_t)to,
                          .span = -1,
                          .from = *unit};
    if (is->half[0]) {
        step[1] = (struct step){
            .op = is->half[1], .size = 1, .arg = arg & 15, .to = -1, .span = -1, .from = *unit};
        step[0].op = is->half[0];
        step[0].arg = arg >> 4;
        p->count++;
    }
    *unit = at;
    return true;
}

/* The step at UNIT; the end of the code has one, too. */
static int32_t step_of(const struct program *p, int64_t unit)
{
    return unit == p->units ? p->count : unit < p->units ? p->step_at[unit] : -1;
}

static bool read_spans(struct program *p)
{
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(p->code->co_exceptiontable);
    const unsigned char *end = at + PyBytes_GET_SIZE(p->code->co_exceptiontable);
    uint32_t first, length, to, depth;
    int32_t done = 0, spans = 0;

    while (at < end) {
        if (!compat_read_number(&at, end, &first) || !compat_read_number(&at, end, &length) ||
            !compat_read_number(&at, end, &to) || !compat_read_number(&at, end, &depth))
            return false;
        const int32_t begin = step_of(p, first), behind = step_of(p, (int64_t)first + length),
                      handler = step_of(p, to);
        if (begin < done || behind < begin || handler < 0 || handler >= p->count)
            return false;
        for (done = begin; done < behind; done++)
            p->steps[done].span = spans;
        p->spans[spans++] = (struct span){handler, depth};
    }
    return true;
}

int program_is_none(void)
{
    PyErr_SetString(PyExc_ValueError, "its bytecode is none that CPython's compiler makes");
    return -1;
}

int program_read(struct program *p, PyCodeObject *code)
{
    OWNED PyObject *bytes = PyCode_GetCode(code);
    int32_t unit = 0;
    bool good = true;

    *p = (struct program){.code = code,
                          .variables = code->co_nlocalsplus,
                          .width = code->co_nlocalsplus + code->co_stacksize};
    if (!bytes)
        return -1;
    p->units = (int32_t)(PyBytes_GET_SIZE(bytes) / 2);
    p->steps = malloc(sizeof *p->steps * (2 * (size_t)p->units + 1));
    /* a byte for each number */
    p->spans = malloc(sizeof *p->spans * (size_t)(PyBytes_GET_SIZE(code->co_exceptiontable) + 1));
    p->step_at = malloc(sizeof *p->step_at * (size_t)(p->units + 1));
    if (!p->steps || !p->spans || !p->step_at) {
        PyErr_NoMemory();
        return -1;
    }
    memset(p->step_at, -1, sizeof *p->step_at * (size_t)(p->units + 1));
    while (good && unit < p->units)
        good = read_step(p, (const unsigned char *)PyBytes_AS_STRING(bytes), &unit);
    for (int32_t i = 0; i < p->count && good; i++) {
        struct step *step = &p->steps[i];
        good = (step->to < 0 || (step->to = p->step_at[step->to]) >= 0) &&
               (!compat_ops[step->op].has_variable || step->arg < (uint32_t)p->variables);
    }
    return good && p->count && read_spans(p) ? 0 : program_is_none();
}

/* ---- writing ---- */

struct step *program_put(struct program *p, int op, uint32_t arg, int32_t from)
{
    static struct step nowhere;
    struct step *step = &nowhere;

    if (p->made_count == p->made_room) {
        const int32_t room = 2 * p->made_room + 64;
        struct step *more = realloc(p->made, sizeof *more * (size_t)room);
        p->failed |= !more;
        p->made = more ? more : p->made;
        p->made_room = more ? room : p->made_room;
    }
    if (!p->failed)
        step = &p->made[p->made_count++];
    *step =
        (struct step){.op = (uint8_t)op, .size = 1, .arg = arg, .to = -1, .span = -1, .from = from};
    return step;
}

struct step *program_keep(struct program *p, int32_t step)
{
    struct step *kept = program_put(p, 0, 0, 0);

    if (!p->steps[step].at)
        p->steps[step].at = p->made_count - 1;
    *kept = p->steps[step];
    return kept;
}

/* Each step gets its place, and jumps their arguments. */
static void arrange(struct program *p)
{
    bool grown = true;

    while (grown) {
        grown = false;
        p->units = 0;
        for (int32_t i = 0; i < p->made_count; i++) {
            struct step *step = &p->made[i];
            step->at = p->units;
            p->units += step->size + compat_caches(step->op);
        }
        for (int32_t i = 0; i < p->made_count; i++) {
            struct step *step = &p->made[i];
            if (step->to >= 0)
                step->arg = (uint32_t)abs(p->made[p->steps[step->to].at].at - step->at -
                                          step->size - compat_caches(step->op));
            for (; step->size < 4 && step->arg >> 8 * step->size; grown = true)
                step->size++;
        }
    }
}

static void write_code(const struct program *p, FILE *out)
{
    for (int32_t i = 0; i < p->made_count; i++) {
        const struct step *step = &p->made[i];
        for (int more = step->size - 1; more >= 0; more--) {
            putc_unlocked(more ? EXTENDED_ARG : step->op, out);
            putc_unlocked(step->arg >> 8 * more & 255, out);
        }
        for (int bytes = 2 * compat_caches(step->op); bytes > 0; bytes--)
            putc_unlocked(0, out);
    }
}

/* Six bits a byte, the highest first. */
static void write_number(uint32_t number, int flag, FILE *out)
{
    for (int shift = 30; shift >= 0; shift -= 6)
        if (!shift || number >> shift) {
            putc_unlocked((int)(number >> shift & 63) | (shift ? 64 : 0) | flag, out);
            flag = 0;
        }
}

static void write_spans(const struct program *p, FILE *out)
{
    int32_t span = -1, first = 0;

    for (int32_t i = 0; i <= p->made_count; i++) {
        const struct step *step = i < p->made_count ? &p->made[i] : NULL;
        const int32_t at = step ? step->at : p->units;
        if (step && step->span == span)
            continue;
        if (span >= 0) {
            write_number((uint32_t)first, 128, out);
            write_number((uint32_t)(at - first), 0, out);
            write_number((uint32_t)p->made[p->steps[p->spans[span].to].at].at, 0, out);
            write_number(p->spans[span].depth, 0, out);
        }
        span = step ? step->span : -1;
        first = at;
    }
}

/* The lowest first, as the line table has them. */
static void write_low(uint32_t number, FILE *out)
{
    for (; number > 63; number >>= 6)
        putc_unlocked((int)(number & 63) | 64, out);
    putc_unlocked((int)number, out);
}

/* A place in the source is line, last line, column, last column; -1: none. A RESUME that was put
 * has that of a function's beginning. */
static void write_lines(const struct program *p, FILE *out)
{
    OWNED PyObject *places = PyObject_CallMethod((PyObject *)p->code, "co_positions", NULL),
                   *place = NULL;
    int32_t unit = -1, line = p->code->co_firstlineno;

    for (int32_t n = 0; n < p->made_count && places; n++) {
        const struct step *step = &p->made[n];
        int at[4] = {-1, -1, -1, -1};
        if (step->from < 0 && step->op == RESUME)
            memcpy(at, (int[4]){p->code->co_firstlineno, p->code->co_firstlineno, 0, 0}, sizeof at);
        for (; unit < step->from; unit++)
            Py_XSETREF(place, PyIter_Next(places));
        for (int i = 0; i < 4 && step->from >= 0 && place; i++)
            at[i] = PyTuple_GET_ITEM(place, i) == Py_None
                        ? -1
                        : (int)PyLong_AsLong(PyTuple_GET_ITEM(place, i));
        for (int units = step->size + compat_caches(step->op); units > 0; units -= 8) {
            putc_unlocked(128 | (at[0] < 0 ? 15 : 14) << 3 | (units < 8 ? units - 1 : 7), out);
            if (at[0] < 0)
                continue;
            write_low(at[0] < line ? (uint32_t)(line - at[0]) << 1 | 1
                                   : (uint32_t)(at[0] - line) << 1,
                      out);
            line = at[0];
            write_low(at[1] < line ? 0 : (uint32_t)(at[1] - line), out);
            write_low((uint32_t)(at[2] + 1), out);
            write_low((uint32_t)(at[3] + 1), out);
        }
    }
}

/* Under NAME in CHANGES. */
static int put_written(const struct program *p, void (*write)(const struct program *, FILE *),
                       PyObject *changes, const char *name)
{
    char *data = NULL;
    size_t size;
    FILE *out = open_memstream(&data, &size);
    OWNED PyObject *made = NULL;

    if (out)
        write(p, out);
    if (!out || fclose(out))
        PyErr_NoMemory();
    else if (!PyErr_Occurred())
        made = PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    free(data);
    return made ? PyDict_SetItemString(changes, name, made) : -1;
}

PyObject *program_make(struct program *p, PyObject *changes)
{
    OWNED PyObject *with = changes, *replace = tracer_attribute((PyObject *)p->code, "replace"),
                   *none = PyTuple_New(0);

    if (p->failed)
        return PyErr_NoMemory();
    arrange(p);
    return with && replace && none && !put_written(p, write_code, with, "co_code") &&
                   !put_written(p, write_lines, with, "co_linetable") &&
                   !put_written(p, write_spans, with, "co_exceptiontable")
               ? PyObject_Call(replace, none, with)
               : NULL;
}
