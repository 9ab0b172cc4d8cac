/* tracer/code.c -- gives each code object an id, writes its facts, and decides whether to record
 * it.
 *
 * Runs in: the traced process, once per code object.
 *
 * The code object's extra slot keeps the result as a "mark":
 *
 *     id << CODE_SHIFT | CODE_SEEN  [| CODE_SKIP [| CODE_LEFT [| CODE_NAMED]]] [| CODE_INIT]
 *     [| CODE_ARGS] [| CODE_RANGE] [| session << CODE_STAMP_SHIFT]
 *
 * so that --frames, --include and --exclude are applied only once per code object.
 *
 * Without a GIL: two threads may meet a code object for the first time at once. Each of them first
 * reads the data for the code's facts. Then one thread, in a critical section of the code object,
 * sets the mark, which the other thread finds. */
#include "tracer/hooks.h"

#include <fnmatch.h>

#include "tracer/uncaught.h"

#define P tracer_process

enum { NAME_MAX_BYTES = 16 << 10 };

/* ---- decide whether frames of a code object are recorded ---- */

/* Does FILE belong to the standard library or to an installed package? "<frozen ...>" counts as the
 * standard library; "<string>" and "<stdin>" are the user's code. */
static bool is_library_file(const char *file)
{
    size_t length = strlen(P.standard_library);

    return (length && !strncmp(file, P.standard_library, length) && file[length] == '/') ||
           strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") ||
           !strncmp(file, "<frozen ", 8);
}

/* Was the program given by `python -c`? Then "<string>" is the file name of its own code. */
static bool is_program_from_command_line(void)
{
    PyObject *argv = PySys_GetObject("orig_argv"); /* borrowed */
    OWNED PyObject *words = argv && PyList_Check(argv) ? PyList_AsTuple(argv) : NULL;
    const Py_ssize_t count = words ? PyTuple_GET_SIZE(words) : 0;

    PyErr_Clear();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *word = PyTuple_GET_ITEM(words, i);
        if (!PyUnicode_Check(word))
            continue;
        if (PyUnicode_CompareWithASCIIString(word, "-c") == 0)
            return true;
    }
    return false;
}

/* Was the code of FILE made by a library, with exec or compile? In a process with torch, the column
 * is_own of the view `functions` has the same rule. */
static bool is_generated_code(const char *file)
{
    static const char *const of_users[] = {
        "<stdin>", "<console>", "<input>", "<ipython-input", "<doctest ",
    };

    if (!strcmp(file, "<string>"))
        return !is_program_from_command_line();
    for (size_t i = 0; i < sizeof of_users / sizeof *of_users; i++)
        if (!strncmp(file, of_users[i], strlen(of_users[i])))
            return false;
    return *file == '<';
}

static bool does_name_end_with(const char *name, size_t bytes, const char *end);

/* Is the function NAME of FILE the body of a torch module? */
static bool is_body_of_torch_module(const char *file, struct fact_text name)
{
    return does_name_end_with(name.text, (size_t)name.bytes, "<module>") &&
           strstr(file, "/torch/") && is_library_file(file);
}

/* Is FILE dyntrace's own Python code that runs in the traced program? */
static bool is_file_of_dyntrace(const char *file)
{
    const char *at = strstr(file, "/dyntrace/_");
    const char *name = at ? at + strlen("/dyntrace/_") : "";

    return !strcmp(file, "<dyntrace>") ||
           ((!strncmp(name, "torch", 5) || !strncmp(name, "guard", 5)) && !strchr(name, '/'));
}

/* Does --frames user leave out frames of the function NAME of FILE? */
static bool is_left_out_by_frames_user(const char *file, const char *name)
{
    /* keep this function of torch, because it wraps each user function */
    const bool around_users = !strcmp(name, "wrap_inline.<locals>.inner");

    return P.session->frames == SESSION_USER && is_library_file(file) && !around_users;
}

/* Is the function NAME of FILE recorded under --include and --exclude? */
static bool is_selected_by_patterns(const char *file, const char *name)
{
    const char *glob = P.session->text;
    bool any_include = false;
    bool included = false;

    glob += strlen(glob) + 1; /* the first string is the spill directory */
    glob += strlen(glob) + 1; /* the second string is the path of the trace */
    for (uint32_t n = 0; n < P.session->globs; n++, glob += strlen(glob) + 1) {
        bool match = !fnmatch(glob + 1, file, 0) || !fnmatch(glob + 1, name, 0);
        if (*glob == '-' && match)
            return false;
        if (*glob == '+') {
            any_include = true;
            included |= match;
        }
    }
    return included || !any_include;
}

/* Does --args name the function NAME of FILE? */
static bool is_named_by_args_option(const char *file, const char *name)
{
    const struct session_file *session = P.session;
    const char *glob = session->text;

    if (!session->arguments)
        return false;
    for (uint32_t n = 0; n < 2 + session->globs + session->settings + session->secrets; n++)
        glob += strlen(glob) + 1;
    for (uint32_t n = 0; n < session->arguments; n++) {
        bool match = !fnmatch(glob, file, 0) || !fnmatch(glob, name, 0);
        if (match)
            return true;
        glob += strlen(glob) + 1;
    }
    return false;
}

/* Return 0 if frames of the function NAME of FILE are recorded. If not, return CODE_SKIP and the
 * bit of the reason. */
static uintptr_t reason_bits_to_skip_code(const char *file, const char *name)
{
    if (is_file_of_dyntrace(file))
        return CODE_SKIP;
    if (!is_selected_by_patterns(file, name))
        return CODE_SKIP | CODE_EXCLUDED;
    return is_left_out_by_frames_user(file, name) ? CODE_SKIP | CODE_LEFT : 0;
}

bool tracer_is_user_code(PyCodeObject *code)
{
    OWNED PyObject *keep = NULL;
    size_t bytes;
    const char *file = values_convert_to_utf8(code->co_filename, NAME_MAX_BYTES, &bytes, &keep);

    size_t library = strlen(P.standard_library);

    /* CPython's own tests lie in the standard library, but are the user's program when they run */
    if (library && !strncmp(file, P.standard_library, library) &&
        !strncmp(file + library, "/test/", 6))
        return true;
    return !is_library_file(file) && !is_file_of_dyntrace(file) &&
           !strstr(file, "/python/dyntrace/");
}

bool tracer_is_code_recorded(PyCodeObject *code)
{
    OWNED PyObject *keep_name = NULL, *keep_file = NULL;
    size_t bytes;
    const char *name =
        values_convert_to_utf8(code->co_qualname, NAME_MAX_BYTES, &bytes, &keep_name);
    const char *file =
        values_convert_to_utf8(code->co_filename, NAME_MAX_BYTES, &bytes, &keep_file);

    return !P.session || !reason_bits_to_skip_code(file, name);
}

/* ---- compute the fingerprint of a code object ---- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;

    while (bytes--)
        hash = (hash ^ *p++) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

enum { HASHED_DEPTH = 8 }; /* deeper nested tuples and functions are not hashed */

static uint64_t hash_object(uint64_t hash, PyObject *object, int depth);
static uint64_t hash_code(uint64_t hash, PyCodeObject *code, int depth);

/* Hash the items of SET. The result does not depend on their order, which differs between
 * processes. No object is created here that the garbage collector tracks, because a collection may
 * run code of the program. */
static uint64_t hash_set(uint64_t hash, PySetObject *set, int depth)
{
    uint64_t sum = 0;

    for (Py_ssize_t i = 0; i <= set->mask; i++)
        if (set->table[i].key)
            sum += hash_object(0, set->table[i].key, depth + 1);
    return hash_bytes(hash, &sum, sizeof sum);
}

/* Hash the value of NUMBER. Python's own hash would be the same for -1 and -2. */
static uint64_t hash_integer(uint64_t hash, PyObject *number)
{
    int is_large;
    long long value = PyLong_AsLongLongAndOverflow(number, &is_large);

    if (is_large)
        /* other than for str, Python's hashes of numbers are the same in each process */
        value = PyObject_Hash(number);
    return hash_bytes(hash, &value, sizeof value);
}

static uint64_t hash_slice(uint64_t hash, PySliceObject *slice, int depth)
{
    hash = hash_object(hash, slice->start, depth + 1);
    hash = hash_object(hash, slice->stop, depth + 1);
    return hash_object(hash, slice->step, depth + 1);
}

/* Hash OBJECT, a constant of a code object. DEPTH is how deep it is nested in tuples and
 * functions. */
static uint64_t hash_object(uint64_t hash, PyObject *object, int depth)
{
    const char *type = Py_TYPE(object)->tp_name;

    hash = hash_bytes(hash, type, strlen(type));
    if (depth >= HASHED_DEPTH)
        return hash;
    if (PyUnicode_CheckExact(object)) {
        hash = hash_bytes(hash, PyUnicode_DATA(object),
                          (size_t)PyUnicode_GET_LENGTH(object) * PyUnicode_KIND(object));
    } else if (PyBytes_CheckExact(object)) {
        hash = hash_bytes(hash, PyBytes_AS_STRING(object), (size_t)PyBytes_GET_SIZE(object));
    } else if (PyTuple_CheckExact(object)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
            hash = hash_object(hash, PyTuple_GET_ITEM(object, i), depth + 1);
    } else if (PyLong_Check(object)) {
        hash = hash_integer(hash, object);
    } else if (PyFloat_CheckExact(object)) {
        double value = PyFloat_AS_DOUBLE(object);
        hash = hash_bytes(hash, &value, sizeof value);
    } else if (PyComplex_CheckExact(object)) {
        Py_complex value = ((PyComplexObject *)object)->cval;
        hash = hash_bytes(hash, &value, sizeof value);
    } else if (PyFrozenSet_CheckExact(object)) {
        hash = hash_set(hash, (PySetObject *)object, depth);
    } else if (PySlice_Check(object)) {
        hash = hash_slice(hash, (PySliceObject *)object, depth);
    } else if (PyCode_Check(object)) {
        hash = hash_code(hash, (PyCodeObject *)object, depth + 1);
    }
    return hash;
}

/* Hash CODE and its nested functions. For a module or a class only the names of functions are
 * hashed, because each function has a fingerprint of its own. */
static uint64_t hash_code(uint64_t hash, PyCodeObject *code, int depth)
{
    /* the bytecode as compiled, not specialised by CPython */
    OWNED PyObject *bytecode = NULL;
    bool is_inside = depth > 0;
    bool is_function = code->co_flags & CO_OPTIMIZED;

    if (is_inside)
        hash = hash_object(hash, code->co_qualname, depth);
    if (!compat_is_shared(code))
        bytecode = PyCode_GetCode(code);
    if (bytecode)
        hash = hash_bytes(hash, PyBytes_AS_STRING(bytecode), (size_t)PyBytes_GET_SIZE(bytecode));
    PyErr_Clear();
    hash = hash_object(hash, code->co_names, depth);
    hash = hash_object(hash, code->co_exceptiontable, depth);
    hash = hash_bytes(hash, &code->co_argcount, sizeof code->co_argcount);
    hash = hash_bytes(hash, &code->co_kwonlyargcount, sizeof code->co_kwonlyargcount);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); i++) {
        PyObject *constant = PyTuple_GET_ITEM(code->co_consts, i);
        if (!is_function && PyCode_Check(constant))
            constant = ((PyCodeObject *)constant)->co_qualname;
        hash = hash_object(hash, constant, depth);
    }
    return hash;
}

/* Return the fingerprint of CODE: a hash of its bytecode, names and constants, but not of line
 * numbers. A function has the same fingerprint in another run, and after an edit elsewhere in its
 * file. For code that interpreters share the bytecode is not hashed: PyCode_GetCode() would store a
 * bytes object in it. */
static uint64_t compute_fingerprint(PyCodeObject *code)
{
    return hash_code(UINT64_C(0xcbf29ce484222325), code, 0);
}

/* ---- read and set the marks of code that interpreters share ---- */

/* Do interpreters share CODE, and is this not the main interpreter? Shared code objects have the
 * marks of the main interpreter in their extra slots. */
static bool is_shared_code_in_subinterpreter(PyCodeObject *code)
{
    return compat_is_shared(code) && PyInterpreterState_Get() != P.interpreter;
}

/* Put MARK into CODE's extra slot, where the hook finds it. */
static void store_mark_in_code(PyCodeObject *code, uintptr_t mark)
{
    uintptr_t slot = compat_get_extra(code, P.extra);

    if (tracer_is_slot_code_state(slot))
        *(uintptr_t *)slot = mark;
    else if (compat_set_extra(code, P.extra, (void *)mark))
        PyErr_Clear();
}

/* Set CODE's mark to MARK, unless another interpreter has set a mark first. Returns CODE's mark. */
static uintptr_t store_mark_unless_set(PyCodeObject *code, uintptr_t mark)
{
    if (compat_is_shared(code))
        mark = tracer_shared_mark_setdefault(code, mark);
    if (!is_shared_code_in_subinterpreter(code))
        store_mark_in_code(code, mark);
    return mark;
}

/* ---- set the mark of a code object when it is first seen ---- */

static bool does_name_end_with(const char *name, size_t bytes, const char *end)
{
    size_t length = strlen(end);

    return bytes >= length && !strcmp(name + bytes - length, end);
}

/* What the fact of a code object says about it. */
struct described {
    struct fact_text name, file;
    int64_t place, fingerprint;
};

static struct described describe_code(PyCodeObject *code, struct fact_text name,
                                      struct fact_text file)
{
    struct described is = {.name = name, .file = file};

    if (is_library_file(file.text) || is_generated_code(file.text))
        is.place |= CODE_OF_LIBRARY;
    if (is_body_of_torch_module(file.text, name))
        is.place |= CODE_OF_IMPORT;
    is.fingerprint = (int64_t)compute_fingerprint(code);
    return is;
}

/* Give CODE a new id and write its facts. Returns the bits of the mark: the id, shifted by
 * CODE_SHIFT. */
static uintptr_t give_id_to_code(PyCodeObject *code, const struct described *is)
{
    uint32_t id = __atomic_fetch_add(&P.codes, 1, __ATOMIC_RELAXED);
    PyCodeObject *origin = NULL;
    uintptr_t from;

    tracer_fact(CODE, .code = id, .first_line = code->co_firstlineno, .flags = code->co_flags,
                .fingerprint = is->fingerprint, .place = is->place, .qualname = is->name,
                .filename = is->file);
    if (!tracer_hooks.is_resume || !tracer_hooks.is_resume(code, &origin))
        return (uintptr_t)id << CODE_SHIFT;
    from = origin ? tracer_mark_code_with_id(origin) : CODE_SKIP;
    tracer_fact(ORIGIN, .code = id,
                .from = tracer_has_id(from) ? (int64_t)(from >> CODE_SHIFT) : -1,
                .kind = fact_make_text("resume"));
    Py_XDECREF(origin);
    return (uintptr_t)id << CODE_SHIFT;
}

/* Is CODE the line of Python that `dyntrace attach` injects into the program
 * (src/cmd/attach/inject.c)? That line has the constant "<dyntrace>", the file name of the code
 * that it runs. */
static bool is_code_of_attach(PyCodeObject *code)
{
    PyObject *constants = code->co_consts;
    bool found = false;

    if (!P.inherits || code->co_flags & CO_OPTIMIZED)
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants) && !found; i++) {
        PyObject *constant = PyTuple_GET_ITEM(constants, i);
        found = PyUnicode_CheckExact(constant) &&
                PyUnicode_CompareWithASCIIString(constant, "<dyntrace>") == 0;
    }
    return found;
}

/* Must frames of CODE call values_before_frame() and values_after_frame()? */
static bool needs_argument_hooks(PyCodeObject *code, const char *file, const char *name)
{
    if (code->co_flags & CO_OPTIMIZED)
        return is_named_by_args_option(file, name);
    return uncaught_is_watched(code);
}

/* Set the mark of CODE to MADE, and give CODE an id if its frames are recorded. IS describes CODE;
 * SESSION is the session for which MADE was computed. Changes nothing if another thread has set a
 * mark meanwhile, or if that session is over. Returns the mark to use. */
static uintptr_t make_mark_unless_set(PyCodeObject *code, const struct described *is,
                                      uintptr_t made, uint32_t session)
{
    uintptr_t mark = COMPAT_FREE_THREADED ? compat_get_extra(code, P.extra) : 0;

    if (mark & CODE_SEEN)
        return mark;
    if (!P.session || P.sessions != session)
        return CODE_SEEN | CODE_SKIP;
    if (!(made & CODE_SKIP))
        made |= give_id_to_code(code, is);
    if (made & (CODE_LEFT | CODE_EXCLUDED) && !(tracer_thread && tracer_thread->quiet))
        tracer_count_left_out(LEFT_CODES);
    return store_mark_unless_set(code, made);
}

/* Return NAME, that of a function or of its file, as values_convert_to_utf8() does. Without memory
 * it is "?", which is recorded as a loss. */
static const char *read_name_of_code(PyObject *name, size_t *bytes, PyObject **keep)
{
    const char *utf8 = values_convert_to_utf8(name, NAME_MAX_BYTES, bytes, keep);

    if (*bytes == 1 && !PyUnicode_IS_ASCII(name))
        tracer_write_loss("names: no memory for that of a function or of its file: it is \"?\"");
    return utf8;
}

uintptr_t tracer_mark_code(PyCodeObject *code)
{
    OWNED PyObject *keep_name = NULL, *keep_file = NULL;
    struct described is = {0};
    size_t bytes[2];
    const char *name, *file;
    uint32_t session;
    uintptr_t mark = is_shared_code_in_subinterpreter(code)
                         ? 0
                         : tracer_mark_in_slot(compat_get_extra(code, P.extra));

    if (!(mark & CODE_SEEN) && compat_is_shared(code) &&
        (mark = tracer_shared_mark_setdefault(code, 0)))
        store_mark_unless_set(code, mark);
    if (mark & CODE_SEEN)
        return mark;
    /* the session may have ended since the caller checked */
    if (!P.session || slot_is_probe(code))
        return CODE_SEEN | CODE_SKIP;

    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    name = read_name_of_code(code->co_qualname, &bytes[0], &keep_name);
    file = read_name_of_code(code->co_filename, &bytes[1], &keep_file);
    if (!P.session)
        return CODE_SEEN | CODE_SKIP;
    session = P.sessions;
    mark = CODE_SEEN | (is_code_of_attach(code) ? CODE_SKIP : reason_bits_to_skip_code(file, name));
    if (needs_argument_hooks(code, file, name))
        mark |= mark & CODE_SKIP ? 0 : CODE_ARGS;
    if (tracer_hooks.is_range && tracer_hooks.is_range(file, name))
        mark |= CODE_RANGE;
    if (COMPAT_INIT_BYPASSES_HOOK && code->co_argcount >= 1 &&
        !PyUnicode_CompareWithASCIIString(code->co_name, "__init__"))
        mark |= CODE_INIT;
    if (!(mark & CODE_SKIP))
        is = describe_code(code, (struct fact_text){name, bytes[0]},
                           (struct fact_text){file, bytes[1]});
    world_hold(code);
    mark = make_mark_unless_set(code, &is, mark, session);
    world_release();
    /* Is this the first file of torch.compile that is imported? */
    if (does_name_end_with(name, bytes[0], "<module>") &&
        does_name_end_with(file, bytes[1], "/torch/_dynamo/__init__.py") &&
        tracer_place() == PLACE_HOME && tracer_hooks.torch_begins)
        tracer_hooks.torch_begins(false);
    return mark;
}

uintptr_t tracer_update_mark(PyCodeObject *code, uintptr_t mark)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    const uintptr_t stamps = (uintptr_t)UINT16_MAX << CODE_STAMP_SHIFT;
    const uintptr_t stamp = (uintptr_t)P.sessions << CODE_STAMP_SHIFT & stamps;
    OWNED PyObject *keep_name = NULL, *keep_file = NULL;
    const char *name, *file;
    size_t bytes;

    if ((mark & stamps) == stamp || mark & CODE_SKIP)
        return mark;
    name = values_convert_to_utf8(code->co_qualname, NAME_MAX_BYTES, &bytes, &keep_name);
    file = values_convert_to_utf8(code->co_filename, NAME_MAX_BYTES, &bytes, &keep_file);
    if (!P.session)
        return mark;
    mark = (mark & ~(stamps | CODE_ARGS)) | stamp;
    if (needs_argument_hooks(code, file, name))
        mark |= CODE_ARGS;
    world_hold(code);
    store_mark_unless_set(code, mark);
    world_release();
    return mark;
}

uintptr_t tracer_mark_code_with_id(PyCodeObject *code)
{
    uintptr_t mark = tracer_mark_code(code);
    OWNED PyObject *keep_name = NULL, *keep_file = NULL;
    struct described is;
    const char *name, *file;
    size_t bytes[2];

    /* Only the main interpreter marks code that interpreters share. */
    if (!(mark & CODE_LEFT) || mark & CODE_NAMED || is_shared_code_in_subinterpreter(code))
        return mark;
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    name = read_name_of_code(code->co_qualname, &bytes[0], &keep_name);
    file = read_name_of_code(code->co_filename, &bytes[1], &keep_file);
    is = describe_code(code, (struct fact_text){name, (int64_t)bytes[0]},
                       (struct fact_text){file, (int64_t)bytes[1]});
    mark |= give_id_to_code(code, &is);
    mark |= CODE_NAMED;
    store_mark_in_code(code, mark);
    return mark;
}

uintptr_t tracer_mark_decided_code(PyCodeObject *code)
{
    const uintptr_t mark = tracer_mark_code_with_id(code);

    return mark & CODE_NAMED ? mark & ~(uintptr_t)CODE_SKIP : mark;
}
