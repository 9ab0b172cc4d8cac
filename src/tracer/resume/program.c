/* tracer/resume/program.c -- reads and writes bytecode. See program.h.
 *
 * The code object may have been made by the traced program, perhaps by hand, so everything in it is
 * checked. */
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

/* ---- read a code object as steps ---- */

/* Read the instruction at code unit *UNIT as one or two steps, and move *UNIT behind it. Returns
 * false for invalid bytecode. */
static bool read_step(struct program *p, const unsigned char *bytes, int32_t *unit)
{
    struct step *step = &p->steps[p->count];
    const struct compat_op *is;
    int32_t at = *unit;
    int32_t size;
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
    /* a code unit; resolve_jump_target() replaces it by the index of a step */
    to = is->jumps ? at + (int64_t)is->jumps * arg : -1;
    if (at > p->units || !op)
        return false;
    if (arg > INT32_MAX || size > 4)
        return false;
    if (is->jumps && (to <= 0 || to >= p->units))
        return false;
    p->step_at[*unit] = p->count;
    p->count++;
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

/* Return the index of the step that begins at code unit UNIT, or -1. The end of the code counts as
 * a step. */
static int32_t find_step(const struct program *p, int64_t unit)
{
    if (unit > p->units)
        return -1;
    return unit == p->units ? p->count : p->step_at[unit];
}

/* Read the four numbers of a row of the exception table at *AT, and move *AT behind them. */
static bool read_exception_row(const unsigned char **at, const unsigned char *end,
                               uint32_t numbers[4])
{
    for (int i = 0; i < 4; i++)
        if (!compat_read_exception_number(at, end, &numbers[i]))
            return false;
    return true;
}

static bool read_exception_table(struct program *p)
{
    PyObject *table = p->code->co_exceptiontable;
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(table);
    const unsigned char *end = at + PyBytes_GET_SIZE(table);
    /* first code unit, number of units, handler, depth */
    uint32_t numbers[4];
    int32_t done = 0;
    int32_t spans = 0;

    while (at < end) {
        if (!read_exception_row(&at, end, numbers))
            return false;
        const int32_t begin = find_step(p, numbers[0]);
        const int32_t behind = find_step(p, (int64_t)numbers[0] + numbers[1]);
        const int32_t handler = find_step(p, numbers[2]);
        if (begin < done || behind < begin)
            return false;
        if (handler < 0 || handler >= p->count)
            return false;
        for (done = begin; done < behind; done++)
            p->steps[done].span = spans;
        p->spans[spans] = (struct span){handler, numbers[3]};
        spans++;
    }
    return true;
}

int program_raise_invalid(void)
{
    PyErr_SetString(PyExc_ValueError, "its bytecode is none that CPython's compiler makes");
    return -1;
}

/* Allocate the arrays for the program of CODE, which has P->units code units. */
static bool allocate_program(struct program *p, const PyCodeObject *code)
{
    const size_t units = (size_t)p->units + 1;
    /* enough, because a row of the exception table takes four bytes or more */
    const size_t spans = (size_t)PyBytes_GET_SIZE(code->co_exceptiontable) + 1;

    p->steps = malloc(sizeof *p->steps * 2 * units);
    p->spans = malloc(sizeof *p->spans * spans);
    p->step_at = malloc(sizeof *p->step_at * units);
    if (!p->steps || !p->spans || !p->step_at) {
        PyErr_NoMemory();
        return false;
    }
    memset(p->step_at, -1, sizeof *p->step_at * units);
    return true;
}

/* Replace the code unit to which STEP jumps by the index of a step. Returns false if STEP is
 * invalid. */
static bool resolve_jump_target(struct program *p, struct step *step)
{
    if (step->to >= 0) {
        step->to = p->step_at[step->to];
        if (step->to < 0)
            return false;
    }
    return !compat_ops[step->op].has_variable || step->arg < (uint32_t)p->variables;
}

static bool read_steps(struct program *p, const unsigned char *bytes)
{
    int32_t unit = 0;

    while (unit < p->units)
        if (!read_step(p, bytes, &unit))
            return false;
    for (int32_t i = 0; i < p->count; i++)
        if (!resolve_jump_target(p, &p->steps[i]))
            return false;
    return p->count && read_exception_table(p);
}

int program_read(struct program *p, PyCodeObject *code)
{
    OWNED PyObject *bytes = PyCode_GetCode(code);

    *p = (struct program){.code = code,
                          .variables = code->co_nlocalsplus,
                          .width = code->co_nlocalsplus + code->co_stacksize};
    if (!bytes)
        return -1;
    p->units = (int32_t)(PyBytes_GET_SIZE(bytes) / 2);
    if (!allocate_program(p, code))
        return -1;
    if (!read_steps(p, (const unsigned char *)PyBytes_AS_STRING(bytes)))
        return program_raise_invalid();
    return 0;
}

/* ---- make a code object from the new steps ---- */

struct step *program_add_step(struct program *p, int op, uint32_t arg, int32_t from)
{
    static struct step nowhere;
    struct step *step = &nowhere;

    if (p->made_count == p->made_room) {
        const int32_t room = 2 * p->made_room + 64;
        struct step *more = realloc(p->made, sizeof *more * (size_t)room);
        if (more) {
            p->made = more;
            p->made_room = room;
        } else {
            p->failed = true;
        }
    }
    if (!p->failed) {
        step = &p->made[p->made_count];
        p->made_count++;
    }
    *step =
        (struct step){.op = (uint8_t)op, .size = 1, .arg = arg, .to = -1, .span = -1, .from = from};
    return step;
}

struct step *program_keep_step(struct program *p, int32_t step)
{
    struct step *kept = program_add_step(p, 0, 0, 0);

    if (!p->steps[step].at)
        p->steps[step].at = p->made_count - 1;
    *kept = p->steps[step];
    return kept;
}

/* Set the code unit at which each new step will begin. */
static void set_positions_of_new_steps(struct program *p)
{
    p->units = 0;
    for (int32_t i = 0; i < p->made_count; i++) {
        struct step *step = &p->made[i];
        step->at = p->units;
        p->units += step->size + compat_caches(step->op);
    }
}

/* Return the code unit in the new code that stands for the old step TO. */
static int32_t new_code_unit_of_step(const struct program *p, int32_t to)
{
    return p->made[p->steps[to].at].at;
}

/* Set the code units of the new steps, and the arguments of jumps. A longer argument moves later
 * steps, so this is repeated until no step grows. */
static void arrange_steps_until_stable(struct program *p)
{
    bool grown = true;

    while (grown) {
        grown = false;
        set_positions_of_new_steps(p);
        for (int32_t i = 0; i < p->made_count; i++) {
            struct step *step = &p->made[i];
            const int32_t behind = step->at + step->size + compat_caches(step->op);
            if (step->to >= 0)
                step->arg = (uint32_t)abs(new_code_unit_of_step(p, step->to) - behind);
            for (; step->size < 4 && step->arg >> 8 * step->size; grown = true)
                step->size++;
        }
    }
}

static void write_bytecode(const struct program *p, FILE *out)
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

/* Write a number of the exception table, in bytes of six bits, the highest first. */
static void write_exception_number(uint32_t number, int flag, FILE *out)
{
    for (int shift = 30; shift >= 0; shift -= 6)
        if (!shift || number >> shift) {
            const int bits = (int)(number >> shift & 63);
            const int more = shift ? 64 : 0;
            putc_unlocked(bits | more | flag, out);
            flag = 0;
        }
}

static void write_exception_table(const struct program *p, FILE *out)
{
    int32_t span = -1;
    int32_t first = 0;

    for (int32_t i = 0; i <= p->made_count; i++) {
        const struct step *step = i < p->made_count ? &p->made[i] : NULL;
        const int32_t at = step ? step->at : p->units;
        if (step && step->span == span)
            continue;
        if (span >= 0) {
            const struct span *row = &p->spans[span];
            write_exception_number((uint32_t)first, 128, out);
            write_exception_number((uint32_t)(at - first), 0, out);
            write_exception_number((uint32_t)new_code_unit_of_step(p, row->to), 0, out);
            write_exception_number(row->depth, 0, out);
        }
        span = step ? step->span : -1;
        first = at;
    }
}

/* Write a number of the line table, in bytes of six bits, the lowest first. */
static void write_line_table_number(uint32_t number, FILE *out)
{
    for (; number > 63; number >>= 6)
        putc_unlocked((int)(number & 63) | 64, out);
    putc_unlocked((int)number, out);
}

/* A source position: lines and columns, -1 if not known. */
struct place {
    int line;
    int last_line;
    int column;
    int last_column;
};

/* Return number I of POSITION, an item of co_positions(); -1 if it is None. */
static int number_of_position(PyObject *position, int i)
{
    PyObject *number = PyTuple_GET_ITEM(position, i);

    return number == Py_None ? -1 : (int)PyLong_AsLong(number);
}

static struct place read_source_position(PyObject *position)
{
    return (struct place){.line = number_of_position(position, 0),
                          .last_line = number_of_position(position, 1),
                          .column = number_of_position(position, 2),
                          .last_column = number_of_position(position, 3)};
}

/* Write a row of the line table: the next UNITS code units, at most 8, are at PLACE. LINE is the
 * line of the row before. */
static void write_source_position(int units, const struct place *place, int line, FILE *out)
{
    const int kind = place->line < 0 ? 15 : 14;
    const int down = place->line - line;

    putc_unlocked(128 | kind << 3 | (units - 1), out);
    if (place->line < 0)
        return;
    write_line_table_number(down < 0 ? (uint32_t)-down << 1 | 1 : (uint32_t)down << 1, out);
    write_line_table_number(
        place->last_line < place->line ? 0 : (uint32_t)(place->last_line - place->line), out);
    write_line_table_number((uint32_t)(place->column + 1), out);
    write_line_table_number((uint32_t)(place->last_column + 1), out);
}

/* Write the line table. A RESUME that was added gets the position that CPython gives to a
 * function's first RESUME. */
static void write_line_table(const struct program *p, FILE *out)
{
    OWNED PyObject *positions = PyObject_CallMethod((PyObject *)p->code, "co_positions", NULL);
    OWNED PyObject *position = NULL;
    const int first_line = p->code->co_firstlineno;
    int32_t unit = -1;
    int32_t line = first_line;

    if (!positions)
        return;
    for (int32_t n = 0; n < p->made_count; n++) {
        const struct step *step = &p->made[n];
        struct place place = {-1, -1, -1, -1};
        if (step->from < 0 && step->op == RESUME)
            place = (struct place){first_line, first_line, 0, 0};
        for (; unit < step->from; unit++)
            Py_XSETREF(position, PyIter_Next(positions));
        if (step->from >= 0 && position)
            place = read_source_position(position);
        for (int units = step->size + compat_caches(step->op); units > 0; units -= 8) {
            write_source_position(units < 8 ? units : 8, &place, line, out);
            if (place.line >= 0)
                line = place.line;
        }
    }
}

/* Let WRITE write a table of program P, and store its bytes under NAME in CHANGES. Returns -1 with
 * an exception. */
static int store_table_in_changes(const struct program *p,
                                  void (*write)(const struct program *, FILE *), PyObject *changes,
                                  const char *name)
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
    OWNED PyObject *with = changes;
    OWNED PyObject *replace = tracer_get_attribute((PyObject *)p->code, "replace");
    OWNED PyObject *none = PyTuple_New(0);

    if (p->failed)
        return PyErr_NoMemory();
    arrange_steps_until_stable(p);
    if (!with || !replace || !none)
        return NULL;
    if (store_table_in_changes(p, write_bytecode, with, "co_code"))
        return NULL;
    if (store_table_in_changes(p, write_line_table, with, "co_linetable"))
        return NULL;
    if (store_table_in_changes(p, write_exception_table, with, "co_exceptiontable"))
        return NULL;
    return PyObject_Call(replace, none, with);
}
