/* tracer/child.c -- a child that is started so that it cannot be recorded is a row of loss.
 *
 * Runs in: the traced process, when it starts a program (tracer/exec.c).
 *
 * What it looks at is the program's own: only plain str and bytes are read, in plain lists and tuples, so that no code
 * of the program's runs. Of a shell's script the simple commands are understood, nothing that needs a shell: what
 * stands in variables, functions and files is not seen, nor what other programs start. */
#include "tracer/tracer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "python_options.h"

#define P tracer_process

enum { WORDS = 32 };

static const char *text_of(PyObject *word)
{
    const char *text = PyBytes_CheckExact(word)     ? PyBytes_AS_STRING(word)
                       : PyUnicode_CheckExact(word) ? PyUnicode_AsUTF8(word)
                                                    : NULL;

    if (!text)
        PyErr_Clear();
    return text ? text : "";
}

/* PROGRAM is started with WORDS after its name, up to a NULL. */
static void note(const char *program, const char *const *words)
{
    char option = python_is(program) ? python_ignores_us(words) : 0, cause[200];

    if (!option)
        return;
    snprintf(cause, sizeof cause, "child: a %.60s was started with -%c, by which it does not load the recorder: nothing of it "
                      "was recorded", python_base(program), option);
    tracer_loss(cause);
}

static bool is_one_of(const char *word, const char *const *list)
{
    while (*list && strcmp(word, *list))
        list++;
    return *list;
}

static void note_script(const char *script)
{
    static const char *const before[] = {"exec", "command", "env", "nohup", "time", "then", "do", "else", "!", NULL};
    const char *words[WORDS + 1], *from = script;
    char *copy = malloc(strlen(script) + 1), *to = copy;
    size_t count = 0;

    while (copy) {
        char *word = to, quote = 0;
        bool assigns = false;
        from += strspn(from, " \t");
        if (!*from || strchr(";|&()\n`", *from)) { /* a command ends */
            words[count] = NULL;
            if (count)
                note(words[0], words + 1);
            count = 0;
            to = copy;
            if (!*from++)
                break;
            continue;
        }
        for (; *from && (quote || !strchr(" \t;|&()\n`", *from)); from++)
            if (quote ? *from == quote : *from == '\'' || *from == '"') {
                quote = quote ? 0 : *from;
            } else {
                assigns |= *from == '=' && !quote;
                *to++ = *from;
            }
        *to++ = 0;
        if (count < WORDS && (count || !(assigns || is_one_of(word, before))))
            words[count++] = word;
    }
    free(copy);
}

void tracer_child_script(PyObject *script)
{
    note_script(text_of(script));
}

void tracer_child(PyObject *program, PyObject *list)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ksh", "zsh", NULL};
    const char *words[WORDS + 1] = {NULL}, *name;
    bool there = false;

    if (PyTuple_CheckExact(program)) { /* where it may lie, along PATH */
        name = PyTuple_GET_SIZE(program) ? text_of(PyTuple_GET_ITEM(program, 0)) : "";
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(program) && !there; i++)
            there = access(text_of(PyTuple_GET_ITEM(program, i)), X_OK) == 0;
    } else {
        name = text_of(program);
        there = !strchr(name, '/') || access(name, X_OK) == 0;
    }
    if (!there || !(PyList_CheckExact(list) || PyTuple_CheckExact(list)))
        return;
    for (Py_ssize_t i = 0; i < WORDS && i < PySequence_Fast_GET_SIZE(list); i++)
        words[i] = text_of(PySequence_Fast_GET_ITEM(list, i));
    if (!words[0])
        return;
    note(name, words + 1);
    if (words[1] && !strcmp(words[1], "-c") && words[2] && is_one_of(python_base(name), shells))
        note_script(words[2]);
}
