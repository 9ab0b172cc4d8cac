/* tracer/attributes.c -- values of the program as JSON. See tracer/attributes.h.
 *
 * Runs in: the traced process, under the GIL. Without a GIL another thread may change a container
 * meanwhile. So we own a reference to each item that we write, and the items may come from
 * different moments. If our reference becomes the last one, the item's finalizer runs here. */
#include "tracer/attributes.h"

#include <math.h>

#include "tracer/hooks.h"
#include "tracer/redact.h"

enum {
    KEY_BYTES = 100,   /* the most bytes of a name that are written */
    VALUE_BYTES = 200, /* the most bytes of a string that are written */
    TYPE_BYTES = 150,  /* the most bytes of a type's name that are written */
    ITEMS = 6,         /* the most items of a container that are written */
};

/* Append BYTES of TEXT, if there is room. */
static void put_bytes(struct attributes *to, const char *text, size_t bytes)
{
    if (to->full || bytes > sizeof to->text - to->used) {
        to->full = true;
        return;
    }
    memcpy(to->text + to->used, text, bytes);
    to->used += bytes;
}

static void put_text(struct attributes *to, const char *text)
{
    put_bytes(to, text, strlen(text));
}

/* Append TEXT as a JSON string. */
static void put_string(struct attributes *to, const char *text, size_t bytes)
{
    char escaped[8];

    put_text(to, "\"");
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            put_text(to, "\\");
        if (c >= 0x20 && c != 0x7f) {
            put_bytes(to, text + i, 1);
        } else {
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
            put_text(to, escaped);
        }
    }
    put_text(to, "\"");
}

/* Append the str VALUE without the secrets in it. */
static void put_unicode(struct attributes *to, PyObject *value)
{
    OWNED PyObject *keep = NULL;
    size_t bytes;
    const char *utf8 = values_convert_to_utf8(value, SIZE_MAX, &bytes, &keep);
    struct fact_text text = {utf8, (int64_t)bytes};
    struct secret_text made = redact_text(&text, VALUE_BYTES);

    put_string(to, text.text, (size_t)text.bytes);
    free(made.text);
}

/* Append the type of VALUE, and the length of a container or the shape of an array. Runs no code of
 * the program. */
static void put_type(struct attributes *to, PyObject *value)
{
    const char *name = Py_TYPE(value)->tp_name;
    const int bytes = (int)values_cut_utf8(name, strlen(name), TYPE_BYTES);
    char shape[100];
    char words[300];

    values_describe_shape(value, shape, sizeof shape);
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value))
        snprintf(words, sizeof words, "%s[%zd]", name, PySequence_Fast_GET_SIZE(value));
    else if (PyDict_CheckExact(value))
        snprintf(words, sizeof words, "dict[%zd]", PyDict_GET_SIZE(value));
    else
        snprintf(words, sizeof words, "%.*s%s", bytes, name, shape);
    put_string(to, words, strlen(words));
}

/* Append the int or float VALUE. JSON has no nan and no infinity: they become strings. */
static void put_number(struct attributes *to, PyObject *value)
{
    char words[64];
    int overflow = 0;
    long long number;
    char *text;

    if (PyLong_CheckExact(value)) {
        number = PyLong_AsLongLongAndOverflow(value, &overflow);
        snprintf(words, sizeof words, "%lld", number);
        put_text(to, overflow ? "\"an int of more than 64 bits\"" : words);
        return;
    }
    if (!isfinite(PyFloat_AS_DOUBLE(value))) {
        snprintf(words, sizeof words, "\"%f\"", PyFloat_AS_DOUBLE(value));
        put_text(to, words);
        return;
    }
    text = PyOS_double_to_string(PyFloat_AS_DOUBLE(value), 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    put_text(to, text ? text : "null");
    PyMem_Free(text);
    PyErr_Clear();
}

static void put_value(struct attributes *to, PyObject *value, enum secret level, int depth);

/* Append KEY and VALUE as a member of an object. LEVEL says how secret the name of the object
 * is. */
static void put_member(struct attributes *to, PyObject *key, PyObject *value, enum secret level,
                       int depth)
{
    OWNED PyObject *keep = NULL;
    size_t bytes;
    const char *name = values_convert_to_utf8(key, SIZE_MAX, &bytes, &keep);
    const enum secret own = redact_name(name, bytes);

    put_string(to, name, values_cut_utf8(name, bytes, KEY_BYTES));
    put_text(to, ": ");
    put_value(to, value, own > level ? own : level, depth);
}

/* Append the items of the list or tuple VALUE. LEVEL says how secret the value's name is. */
static void put_items(struct attributes *to, PyObject *value, enum secret level, int depth)
{
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);

    put_text(to, "[");
    for (Py_ssize_t i = 0; i < count && i < ITEMS; i++) {
        OWNED PyObject *item = compat_get_list_item(value, i);
        if (!item)
            break;
        put_text(to, i ? ", " : "");
        put_value(to, item, level, depth - 1);
    }
    put_text(to, count > ITEMS ? ", \"...\"]" : "]");
}

/* A key of a dict and its value. */
struct pair {
    PyObject *key, *value; /* owned */
};

/* Store the first keys and values of DICT in PAIRS, up to a key that is not a str. Returns how
 * many. */
static int copy_pairs_of_dict(PyObject *dict, struct pair pairs[ITEMS])
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int count = 0;

    world_hold(dict);
    while (count < ITEMS && PyDict_Next(dict, &at, &key, &value)) {
        if (!PyUnicode_CheckExact(key))
            break;
        pairs[count++] = (struct pair){Py_NewRef(key), Py_NewRef(value)};
    }
    world_release();
    return count;
}

/* Append the items of the dict VALUE whose keys are str. LEVEL says how secret the value's name
 * is. */
static void put_dict(struct attributes *to, PyObject *value, enum secret level, int depth)
{
    struct pair pairs[ITEMS];
    const int count = copy_pairs_of_dict(value, pairs);

    put_text(to, "{");
    for (int i = 0; i < count; i++) {
        put_text(to, i ? ", " : "");
        put_member(to, pairs[i].key, pairs[i].value, level, depth - 1);
        Py_DECREF(pairs[i].key);
        Py_DECREF(pairs[i].value);
    }
    if (count < PyDict_GET_SIZE(value))
        put_text(to, count ? ", \"...\": true" : "\"...\": true");
    put_text(to, "}");
}

/* Append a description of VALUE if it is a tensor. Returns false if it is not. */
static bool put_tensor(struct attributes *to, PyObject *value)
{
    OWNED PyObject *words =
        PyObject_CheckBuffer(value) || !tracer_hooks.describe ? NULL : tracer_hooks.describe(value);

    PyErr_Clear();
    if (words && PyUnicode_Check(words))
        put_unicode(to, words);
    return words != NULL;
}

/* Append VALUE if it is None, a bool, a number or a str. Returns false if it is another object. */
static bool put_simple_value(struct attributes *to, PyObject *value, enum secret level)
{
    const bool is_number = PyLong_CheckExact(value) || PyFloat_CheckExact(value);
    const bool is_string = PyUnicode_CheckExact(value);
    const bool is_hidden = (is_string && level) || (is_number && level == SECRET_ALL);

    if (value == Py_None)
        put_text(to, "null");
    else if (PyBool_Check(value))
        put_text(to, value == Py_True ? "true" : "false");
    else if (is_hidden)
        put_text(to, "\"" SECRET_WORD "\"");
    else if (is_string)
        put_unicode(to, value);
    else if (is_number)
        put_number(to, value);
    else
        return false;
    return true;
}

/* Append VALUE, whatever it is. LEVEL says how secret the value's name is. */
static void put_value(struct attributes *to, PyObject *value, enum secret level, int depth)
{
    const bool is_list = PyTuple_CheckExact(value) || PyList_CheckExact(value);

    if (values_get_session_option() == SESSION_VALUES_ALL) {
        if (put_simple_value(to, value, level))
            return;
        if (depth > 0 && is_list) {
            put_items(to, value, level, depth);
            return;
        }
        if (depth > 0 && PyDict_CheckExact(value)) {
            put_dict(to, value, level, depth);
            return;
        }
    }
    if (!depth || !put_tensor(to, value))
        put_type(to, value);
}

/* Append the attribute KEY with VALUE, or nothing if there is no room. Returns false then. */
static bool put_attribute(struct attributes *to, PyObject *key, PyObject *value, int depth)
{
    const size_t before = to->used;

    put_text(to, before > 1 ? ", " : "");
    put_member(to, key, value, SECRET_NO, depth);
    if (to->full || to->used + sizeof ", \"...\": 1234}" > sizeof to->text) {
        to->used = before;
        to->full = false;
        return false;
    }
    return true;
}

void attributes_write(struct attributes *to, PyObject *keys, PyObject *const *values, int depth)
{
    const Py_ssize_t count = keys ? PyTuple_GET_SIZE(keys) : 0;
    Py_ssize_t i = 0;
    char words[32];

    to->used = 0;
    to->full = false;
    if (!count || values_get_session_option() == SESSION_VALUES_OFF)
        return;
    put_text(to, "{");
    while (i < count && put_attribute(to, PyTuple_GET_ITEM(keys, i), values[i], depth))
        i++;
    if (i < count) {
        snprintf(words, sizeof words, "%s\"...\": %d", i ? ", " : "", (int)(count - i));
        put_text(to, words);
    }
    put_text(to, "}");
}

void attributes_write_value(struct attributes *to, PyObject *value, enum secret level, int depth)
{
    to->used = 0;
    to->full = false;
    if (values_get_session_option() == SESSION_VALUES_OFF)
        return;
    put_value(to, value, level, depth);
    if (!to->full)
        return;
    to->used = 0;
    to->full = false;
    put_type(to, value);
}
