/* tracer/builtins.c -- wraps built-in functions that start a program, functions of sys that read
 * the PEP 523 slot, and functions at whose calls we check that slot.
 *
 * The functions are patched in place. The function object keeps its identity, name and repr; only
 * its C entry point is ours, which calls the original.
 *
 * Without a GIL: they are patched while the world is stopped. The session's name is copied before a
 * child's environment is made, because the session may end meanwhile. */
#include "tracer/tracer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "launchers.h"

#define P tracer_process

enum {
    WORDS = 128,
    DEPTH_MOST = 8,
    FIRST_LINE = 256, /* the most bytes of a script's first line that the kernel reads */
};

struct wrapped {
    const char *module, *name;
    PyObject *(*entry)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
    /* what runs in place of the original, which it calls by call_original() */
    PyObject *(*run)(const struct wrapped *f, PyObject *self, PyObject *const *args,
                     Py_ssize_t count, PyObject *names);
    /* For a function that starts a program: position of its environment argument, or -1 if the
     * child inherits the C library's environment. For a function before which the slot is checked:
     * 1 if this is the last check. */
    int environment;
    /* positions of the program's name and of its arguments; program is -1 if
     * the function takes one text for a shell */
    int program, words;
    PyMethodDef real; /* definition of the original function; all interpreters share it */
    PyMethodDef ours; /* definition of our function */
};

/* Call the original of patched function F. Makes a function object for it, for the module of the
 * calling interpreter. SELF is the argument of our entry point. */
static PyObject *call_original(const struct wrapped *f, PyObject *self, PyObject *const *args,
                               Py_ssize_t count, PyObject *names)
{
    OWNED PyObject *module = PyUnicode_FromString(f->module);
    OWNED PyObject *function =
        module ? PyCFunction_NewEx((PyMethodDef *)&f->real, self, module) : NULL;

    return function ? PyObject_Vectorcall(function, args, (size_t)count, names) : NULL;
}

/* ---- write a loss row for a child that cannot be recorded ----
 *
 * The arguments are the program's objects, so only exact str and bytes in exact lists and tuples
 * are read: no code of the program runs. Of a shell's text only the first command is read: in
 * `false && python3 -I` the shell never starts Python. */

#define COMMAND_ENDS "\n;|&()`" /* unquoted characters that end a shell command */

static const char *read_word_as_utf8(PyObject *word)
{
    const char *text = PyBytes_CheckExact(word)     ? PyBytes_AS_STRING(word)
                       : PyUnicode_CheckExact(word) ? PyUnicode_AsUTF8(word)
                                                    : NULL;

    if (!text)
        PyErr_Clear();
    return text ? text : "";
}

/* How a program is started through launchers, such as env or a shell, which change its
 * environment. */
struct start {
    const char *by; /* a launcher that does not pass the environment on; NULL if there is none */
    bool paths;     /* a launcher gives the program another PYTHONPATH than ours */
    /* the program starts in another directory, so relative names cannot be resolved here */
    bool elsewhere;
    int depth; /* number of launchers and scripts around the program */
};

/* Write a loss row if the Python that WORDS start cannot be recorded. WORDS end with a NULL. */
static void report_unrecordable_python(const char *const *words, struct start start)
{
    const char *program = basename(words[0]);
    char option = python_find_ignoring_option(words + 1);
    char how[120] = "";
    char cause[300];

    if (start.by)
        snprintf(how, sizeof how, "by %s, which did not hand on the environment by which it",
                 start.by);
    else if (start.paths)
        snprintf(how, sizeof how, "with a PYTHONPATH of its own, without that by which it");
    else if (option)
        snprintf(how, sizeof how, "with -%c, without which it", option);
    else
        return;
    snprintf(cause, sizeof cause,
             "child: a %.*s was started %s would have loaded the recorder: it was not recorded",
             (int)values_cut_utf8(program, strlen(program), 60), program, how);
    tracer_write_loss(cause);
}

static bool is_word_in_list(const char *word, const char *const *list)
{
    while (*list && strcmp(word, *list))
        list++;
    return *list;
}

/* Return the TEXT of `-c TEXT` in a shell's WORDS, or NULL. */
static const char *find_shell_command_text(const char *const *words)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ksh", "zsh", NULL};

    if (!is_word_in_list(basename(words[0]), shells))
        return NULL;
    for (words++; *words && (*words)[0] == '-' && (*words)[1] != '-'; words++)
        if (strchr(*words, 'c'))
            return words[1];
    return NULL;
}

static void check_program_of_shell_text(const char *script, struct start start);
static void check_program_of_command_line(const char *const *words, struct start start);

/* Check the program that `env -S TEXT` starts, which splits TEXT into words. */
static void check_program_of_env_split(const char *text, struct start start)
{
    char *command = NULL;

    if (asprintf(&command, "env %s", text) < 0)
        return;
    check_program_of_shell_text(command, start);
    free(command);
}

/* If PATH is a script, copy its first line behind the "#!" to LINE. Returns false if it is none.
 * Only a regular file is opened, because opening a FIFO or a device may have effects. */
static bool read_first_line(const char *path, char line[FIRST_LINE + 1])
{
    struct stat is;
    ssize_t length = -1;
    int file = -1;
    char *end;

    if (stat(path, &is) || !S_ISREG(is.st_mode))
        return false;
    if (!access(path, X_OK))
        file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return false;
    if (!fstat(file, &is) && S_ISREG(is.st_mode))
        length = read(file, line, FIRST_LINE);
    close(file);
    if (length < 2)
        return false;
    if (line[0] != '#' || line[1] != '!')
        return false;
    end = memchr(line, '\n', (size_t)length);
    if (!end && length == FIRST_LINE)
        return false; /* the kernel would not read the whole line either */
    if (!end)
        end = line + length;
    while (end > line + 2 && strchr(" \t", end[-1]))
        end--;
    *end = 0;
    memmove(line, line + 2, (size_t)(end - line - 1));
    return true;
}

/* Check the program that starts when the file PATH is executed. If PATH is a script, the kernel
 * starts the program that the first line names, with the rest of the line as one word. */
static void check_program_in_file(const char *path, struct start start)
{
    const char *words[4] = {NULL};
    char line[FIRST_LINE + 1];
    char *program;
    char *rest;
    int count = 0;
    bool found = strchr(path, '/') && (*path == '/' || !start.elsewhere);

    if (!found || !read_first_line(path, line))
        return;
    program = line + strspn(line, " \t");
    if (!*program)
        return;
    words[count++] = program;
    rest = program + strcspn(program, " \t");
    if (*rest) {
        *rest++ = 0;
        words[count++] = rest + strspn(rest, " \t");
    }
    words[count] = path;
    check_program_of_command_line(words, start);
}

/* Check the program that a command line starts, perhaps through launchers. WORDS has at least one
 * word, and ends with a NULL. */
static void check_program_of_command_line(const char *const *words, struct start start)
{
    const struct launcher *launcher = launcher_find(words[0]);
    const char *script = find_shell_command_text(words);
    struct launch_words found = {.program = words};

    if (start.depth++ >= DEPTH_MOST)
        return;
    if (launcher)
        found = launcher_find_program(launcher, words);
    if (found.cleared)
        start.by = launcher->name;
    start.paths |= found.paths;
    if (found.script && launcher->script == 'S')
        check_program_of_env_split(found.script, start);
    else if (found.script || script)
        check_program_of_shell_text(found.script ? found.script : script, start);
    else if (launcher && *found.program)
        check_program_of_command_line(found.program, start);
    else if (!launcher && python_is_interpreter_name(words[0]))
        report_unrecordable_python(words, start);
    else if (!launcher)
        check_program_in_file(words[0], start);
}

/* Copy the word at *FROM to *TO, without quotes and with a NUL. Returns true if the word has an
 * unquoted '='. */
static bool copy_next_word(const char **from, char **to)
{
    bool assigns = false;
    char quote = 0;

    for (; **from && (quote || !strchr(" \t" COMMAND_ENDS, **from)); ++*from) {
        bool quotes = quote ? **from == quote : strchr("'\"", **from) != NULL;
        if (quotes) {
            quote = quote ? 0 : **from;
            continue;
        }
        assigns |= **from == '=' && !quote;
        *(*to)++ = **from;
    }
    *(*to)++ = 0;
    return assigns;
}

/* Check the program that a shell starts which runs SCRIPT. Only the first command is certain:
 * whether the shell starts the others, only the shell knows. */
static void check_program_of_shell_text(const char *script, struct start start)
{
    const char *words[WORDS + 1] = {NULL};
    const char *from = script + strspn(script, " \t\n");
    char *copy = malloc(strlen(script) + 1);
    char *to = copy;
    size_t count = 0;

    while (copy && count < WORDS && *from && !strchr(COMMAND_ENDS, *from)) {
        const char *word = to;
        bool assigns = copy_next_word(&from, &to);
        if (!count && assigns)
            start.paths |= launcher_sets_paths(word);
        else
            words[count++] = word;
        from += strspn(from, " \t");
    }
    if (count)
        check_program_of_command_line(words, start);
    free(copy);
}

/* Check the program that a call starts. PROGRAM is a path, or a tuple of paths to try. LIST has the
 * words, beginning with the program's name. ELSEWHERE: the program starts in another directory than
 * ours. */
static void check_started_program(PyObject *program, PyObject *list, bool elsewhere)
{
    const char *words[WORDS + 1] = {NULL};
    OWNED PyObject *held = NULL;
    const char *name;
    bool there = false;

    if (PyTuple_CheckExact(program)) { /* the paths to try are made from the variable PATH */
        name = PyTuple_GET_SIZE(program) ? read_word_as_utf8(PyTuple_GET_ITEM(program, 0)) : "";
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(program) && !there; i++) {
            const char *candidate = read_word_as_utf8(PyTuple_GET_ITEM(program, i));
            there = access(candidate, X_OK) == 0;
            if (there)
                name = candidate;
        }
    } else {
        name = read_word_as_utf8(program);
        there = !strchr(name, '/') || access(name, X_OK) == 0;
    }
    if (!there || !(PyList_CheckExact(list) || PyTuple_CheckExact(list)))
        return;
    held = PySequence_Tuple(list);
    for (Py_ssize_t i = 0; held && i < WORDS && i < PyTuple_GET_SIZE(held); i++)
        words[i] = read_word_as_utf8(PyTuple_GET_ITEM(held, i));
    PyErr_Clear();
    if (!words[0])
        return;
    words[0] = name;
    check_program_of_command_line(words, (struct start){.elsewhere = elsewhere});
}

/* ---- give a child the environment that makes it join the session ----
 *
 * os.environ does not show our variables (inject.h), so the program may pass a child an environment
 * without them. We add them to the child's environment; the child's sitecustomize removes them
 * again. The caller's environment object is never changed: the child gets a copy. */

/* If ENTRY is b"NAME=value", return the value, borrowed; otherwise NULL. */
static const char *value_of_variable(PyObject *entry, const char *name)
{
    size_t length = strlen(name);
    const char *text = PyBytes_Check(entry) ? PyBytes_AS_STRING(entry) : "";

    return !strncmp(text, name, length) && text[length] == '=' ? text + length + 1 : NULL;
}

static bool add_variable_to_list(PyObject *list, const char *name, const char *value)
{
    OWNED PyObject *entry = PyBytes_FromFormat("%s=%s", name, value);

    return entry && PyList_Append(list, entry) == 0;
}

/* What the environment of a child needs, so that the child joins the session. */
struct joining {
    char *inject; /* owned: directory of sitecustomize.py; NULL if the child must not join */
    char session[sizeof P.session_directory]; /* directory of the session, or INJECT_STANDBY */
};

static struct joining get_session_to_join(void)
{
    const bool over = !P.session || atomic_load_explicit(&P.session->closed, memory_order_relaxed);
    const char *inject = P.inject_directory ? P.inject_directory : P.standby;
    const bool is_to_join = !over || P.standby;
    struct joining to = {0};

    if (!inject || !is_to_join)
        return to;
    strcpy(to.session, over ? INJECT_STANDBY : P.session_directory);
    to.inject = strdup(inject);
    return to;
}

/* Return a copy of LIST, a list of b"NAME=value", with our variables added. On failure returns NULL
 * without an exception, and the caller passes LIST itself. */
static PyObject *copy_list_with_session(PyObject *list, const struct joining *to)
{
    OWNED PyObject *entries = PySequence_Tuple(list);
    PyObject *copy = entries ? PyList_New(0) : NULL;
    const char *old = NULL;
    char *paths = NULL;
    bool mended = copy;

    for (Py_ssize_t i = 0; mended && i < PyTuple_GET_SIZE(entries); i++) {
        PyObject *entry = PyTuple_GET_ITEM(entries, i);
        const char *found = value_of_variable(entry, INJECT_PATHS);
        if (found)
            old = old ? old : found;
        else if (!value_of_variable(entry, INJECT_SESSION))
            mended = PyList_Append(copy, entry) == 0;
    }
    paths = mended ? inject_make_pythonpath(to->inject, old) : NULL;
    if (!paths || !add_variable_to_list(copy, INJECT_PATHS, paths) ||
        !add_variable_to_list(copy, INJECT_SESSION, to->session))
        Py_CLEAR(copy);
    PyErr_Clear();
    free(paths);
    return copy;
}

static int set_mapping_item(PyObject *mapping, const char *name, const char *value)
{
    OWNED PyObject *key = PyBytes_FromString(name), *bytes = PyBytes_FromString(value);

    return key && bytes ? PyDict_SetItem(mapping, key, bytes) : -1;
}

/* Return a copy of MAPPING, an environment whose names and values are str or bytes, with our
 * variables added. Calls keys() and values() once each, as the original function does, since they
 * may be code of the program; the original then reads the copy. If a name occurs as str and as
 * bytes, the first counts, as in getenv(). Returns NULL without an exception on failure. */
static PyObject *copy_mapping_with_session(PyObject *mapping, const struct joining *to)
{
    OWNED PyObject *path_key = PyBytes_FromString(INJECT_PATHS), *old = NULL;
    OWNED PyObject *keys = PyMapping_Keys(mapping),
                   *values = keys ? PyMapping_Values(mapping) : NULL;
    PyObject *copy = PyDict_New();
    char *paths = NULL;
    bool mended = copy && path_key && values && PyList_GET_SIZE(keys) == PyList_GET_SIZE(values);

    for (Py_ssize_t i = 0; mended && i < PyList_GET_SIZE(keys); i++) {
        OWNED PyObject *key = NULL;
        mended = PyUnicode_FSConverter(PyList_GET_ITEM(keys, i), &key) &&
                 PyDict_SetDefault(copy, key, PyList_GET_ITEM(values, i));
    }
    if (mended && PyDict_Contains(copy, path_key))
        mended = PyUnicode_FSConverter(PyDict_GetItemWithError(copy, path_key), &old);
    if (mended) {
        paths = inject_make_pythonpath(to->inject, old ? PyBytes_AS_STRING(old) : NULL);
        mended = paths && set_mapping_item(copy, INJECT_PATHS, paths) == 0 &&
                 set_mapping_item(copy, INJECT_SESSION, to->session) == 0;
    }
    PyErr_Clear();
    if (!mended)
        Py_CLEAR(copy);
    free(paths);
    return copy;
}

/* Does the call of F start the program in another directory than ours? */
static bool starts_in_other_directory(const struct wrapped *f, PyObject *const *args,
                                      Py_ssize_t count)
{
    /* in fork_exec() the directory comes before the environment */
    const Py_ssize_t directory = f->environment - 1;

    return !strcmp(f->name, "fork_exec") && count > directory && args[directory] != Py_None;
}

static PyObject *call_with_session_in_environment(const struct wrapped *f, PyObject *self,
                                                  PyObject *const *args, Py_ssize_t count,
                                                  PyObject *names)
{
    Py_ssize_t given = count + (names ? PyTuple_GET_SIZE(names) : 0);
    Py_ssize_t at = -1;
    OWNED PyObject *mended = NULL;
    PyObject **changed = NULL;
    PyObject *result;
    struct joining to;

    slot_check_hook(true);
    to = get_session_to_join();
    if (to.inject) {
        if (f->environment >= 0 && f->environment < count)
            at = f->environment;
        for (Py_ssize_t i = count; f->environment >= count && i < given; i++)
            if (!PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i - count), "env"))
                at = i;
        if (!P.session)
            ; /* without a recording no loss is written */
        else if (f->program >= 0 && count > f->program && count > f->words)
            check_started_program(args[f->program], args[f->words],
                                  starts_in_other_directory(f, args, count));
        else if (f->program < 0 && given)
            check_program_of_shell_text(read_word_as_utf8(args[0]), (struct start){0});
        if (at < 0 || args[at] == Py_None)
            inject_set_environment(to.inject, to.session);
        else if (PyList_CheckExact(args[at]) || PyTuple_CheckExact(args[at]))
            mended = copy_list_with_session(args[at], &to);
        else if (PyMapping_Check(args[at]))
            mended = copy_mapping_with_session(args[at], &to);
    }
    free(to.inject);
    if (mended && (changed = PyMem_Calloc((size_t)given + 1, sizeof *changed))) {
        memcpy(changed, args, (size_t)given * sizeof *changed);
        changed[at] = mended;
    }
    result = call_original(f, self, changed ? changed : args, count, names);
    PyMem_Free(changed);
    return result;
}

/* ---- take our hook out of the slot while perf's trampolines are switched ----
 *
 * With -X perf, or sys.activate_stack_trampoline(), CPython puts its own evaluator into the PEP 523
 * slot. Our hook calls the evaluator that it found there (record_evaluate), so the trampolines run.
 *
 * But sys.*_stack_trampoline(), and CPython after a fork, read the slot itself. While they run, the
 * slot holds the evaluator that it would hold without us:
 *
 *     sys.*_stack_trampoline()   take our hook out; call the original; put our hook in, which
 *                                from now on calls the evaluator that the original left in the
 *                                slot
 *     fork                       take our hook out in the child, before CPython starts the
 *                                trampolines there again; a function registered with
 *                                os.register_at_fork puts it in again */

static bool watched; /* handle_fork_in_child() is registered with os.register_at_fork */
static bool aside;   /* in a child that has just been forked: our hook is out of the slot */

static bool remove_hook_in_child(void)
{
    if (!P.hook || compat_get_evaluator(P.interpreter) != P.hook)
        return false; /* another hook is in the slot in place of ours */
    slot_set_evaluator(P.evaluate);
    return true;
}

static void restore_hook(void)
{
    P.evaluate = compat_get_evaluator(P.interpreter);
    slot_set_evaluator(P.hook);
    slot_accept_changes();
}

void tracer_remove_hook_in_forked_child(void)
{
    aside = watched && P.evaluate != _PyEval_EvalFrameDefault && PyGILState_GetThisThreadState() &&
            remove_hook_in_child();
}

static PyObject *handle_fork_in_child(PyObject *self, PyObject *ignored)
{
    if (aside)
        restore_hook();
    aside = false;
    Py_RETURN_NONE;
}

static PyMethodDef after_fork_method = {"after_fork", handle_fork_in_child, METH_NOARGS, NULL};

static void register_fork_handler(void)
{
    OWNED PyObject *posix = NULL, *function = NULL, *names = NULL, *given = NULL, *done = NULL;

    if (watched || P.evaluate == _PyEval_EvalFrameDefault)
        return;
    posix = PyImport_ImportModule("posix");
    function = posix ? tracer_get_attribute(posix, "register_at_fork") : NULL;
    given = PyCFunction_NewEx(&after_fork_method, NULL, NULL);
    names = Py_BuildValue("(s)", "after_in_child");
    if (function && given && names)
        done = PyObject_Vectorcall(function, &given, 0, names);
    watched = done != NULL;
    PyErr_Clear();
}

static PyObject *call_without_hook(const struct wrapped *f, PyObject *self, PyObject *const *args,
                                   Py_ssize_t count, PyObject *names)
{
    bool out = false;
    PyObject *result;

    if (PyInterpreterState_Get() == P.interpreter) {
        world_enter_gate(&tracer_gate);
        world_stop(P.interpreter);
        out = remove_hook_in_child();
        world_start(P.interpreter);
        world_leave_gate(&tracer_gate);
    }
    result = call_original(f, self, args, count, names);
    if (out) {
        KEPT struct tracer_exception pending = tracer_put_exception_aside();
        world_enter_gate(&tracer_gate);
        world_stop(P.interpreter);
        restore_hook();
        world_start(P.interpreter);
        world_leave_gate(&tracer_gate);
        register_fork_handler();
    }
    return result;
}

/* ---- functions at whose calls we check that our hook is still called (tracer/slot.c) ---- */

static PyObject *check_slot_then_call(const struct wrapped *f, PyObject *self,
                                      PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    slot_check_hook(f->environment == 1);
    return call_original(f, self, args, count, names);
}

static PyObject *call_then_check_slot(const struct wrapped *f, PyObject *self,
                                      PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *result = call_original(f, self, args, count, names);
    KEPT struct tracer_exception pending = tracer_put_exception_aside();

    slot_check_hook(false);
    return result;
}

/* ---- the table of patched functions, and how they are patched ---- */

enum { FOLLOWED = 11, WRAPPED = 14 };

static struct wrapped wrapped[WRAPPED];

#define ENTRY(number)                                                                        \
    static PyObject *entry_##number(PyObject *self, PyObject *const *args, Py_ssize_t count, \
                                    PyObject *names)                                         \
    {                                                                                        \
        return wrapped[number].run(&wrapped[number], self, args, count, names);              \
    }
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
ENTRY(4)
ENTRY(5)
ENTRY(6)
ENTRY(7)
ENTRY(8)
ENTRY(9)
ENTRY(10)
ENTRY(11)
ENTRY(12)
ENTRY(13)
#undef ENTRY

static struct wrapped wrapped[WRAPPED] = {
    {"_posixsubprocess", "fork_exec", entry_0, call_with_session_in_environment, 5, 1, 0, {0}, {0}},
    {"posix", "execve", entry_1, call_with_session_in_environment, 2, 0, 1, {0}, {0}},
    {"posix", "posix_spawn", entry_2, call_with_session_in_environment, 2, 0, 1, {0}, {0}},
    {"posix", "posix_spawnp", entry_3, call_with_session_in_environment, 2, 0, 1, {0}, {0}},
    {"posix", "execv", entry_4, call_with_session_in_environment, -1, 0, 1, {0}, {0}},
    {"posix", "system", entry_5, call_with_session_in_environment, -1, -1, 0, {0}, {0}},
    {"posix", "_exit", entry_6, check_slot_then_call, 1, 0, 0, {0}, {0}},
    {"_thread", "start_new_thread", entry_7, check_slot_then_call, 0, 0, 0, {0}, {0}},
    {"_thread", "start_joinable_thread", entry_8, check_slot_then_call, 0, 0, 0, {0}, {0}},
    {"_imp", "create_dynamic", entry_9, call_then_check_slot, 0, 0, 0, {0}, {0}},
    {"_imp", "exec_dynamic", entry_10, call_then_check_slot, 0, 0, 0, {0}, {0}},
    {"sys", "is_stack_trampoline_active", entry_11, call_without_hook, 0, 0, 0, {0}, {0}},
    {"sys", "activate_stack_trampoline", entry_12, call_without_hook, 0, 0, 0, {0}, {0}},
    {"sys", "deactivate_stack_trampoline", entry_13, call_without_hook, 0, 0, 0, {0}, {0}},
};

/* Patch one function, permanently and in all interpreters. The module's method table is changed,
 * not only the function object, so that a module that is imported again later is patched, too. The
 * module stays in sys.modules only if it was there before. If the name is not a built-in function
 * any more, nothing is patched. */
static void wrap_builtin(struct wrapped *f)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    bool there = PyDict_GetItemString(modules, f->module) != NULL;
    OWNED PyObject *module = PyImport_ImportModule(f->module), *ours = NULL;
    OWNED PyObject *function = module ? tracer_get_attribute(module, f->name) : NULL;
    PyCFunctionObject *target = (PyCFunctionObject *)function;
    const PyCFunction entry = (PyCFunction)(void (*)(void))f->entry;
    PyMethodDef *table;

    if (!function || !PyCFunction_CheckExact(function))
        goto done;
    table = target->m_ml;
    if (table->ml_meth == entry)
        goto done;
    f->real = f->ours = *table;
    f->ours.ml_meth = entry;
    f->ours.ml_flags = METH_FASTCALL | METH_KEYWORDS;
    ours = PyCFunction_NewEx(&f->ours, target->m_self, target->m_module);
    if (!ours)
        goto done;
    world_stop(P.interpreter);
    *table = f->ours;
    target->vectorcall = ((PyCFunctionObject *)ours)->vectorcall;
    world_start(P.interpreter);
done:
    if (module && !there)
        PyDict_DelItemString(modules, f->module);
    PyErr_Clear();
}

void tracer_record_child_programs(const char *inject)
{
    char *before = P.inject_directory;

    world_stop(P.interpreter);
    P.inject_directory = strdup(inject);
    free(before);
    world_start(P.interpreter);
    for (int i = 0; i < FOLLOWED && P.inject_directory; i++)
        wrap_builtin(&wrapped[i]);
}

void tracer_wrap_perf_functions(void)
{
    for (int i = FOLLOWED; i < WRAPPED; i++)
        wrap_builtin(&wrapped[i]);
    register_fork_handler();
}
