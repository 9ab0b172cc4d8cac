/* trace/remedy_use.c -- how a line of the program uses a number: by the text of the line alone. See
 * trace/remedy.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "trace/remedy.h"

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The last name of EXPRESSION, "size" of "self.kv.size": a function that was taken in may reach the
 * object by another way. */
static const char *last_name(const char *expression)
{
    const char *dot = strrchr(expression, '.');

    return dot && dot[1] && !strpbrk(dot, "[]()") ? dot + 1 : expression;
}

/* The place of NAME in LINE as a whole word; LINE + strlen(LINE): not found. */
static const char *find_name(const char *line, const char *name)
{
    size_t bytes = strlen(name);
    const char *at = line;

    while (bytes && (at = strstr(at, name))) {
        bool before = at > line && in_name(at[-1]);
        if (!before && !in_name(at[bytes]))
            return at;
        at++;
    }
    return line + strlen(line);
}

/* As find_name(), with NAME's keys in the other quotes: a program may write state["step"]. NAME is
 * changed. */
static const char *find_requoted(const char *line, char *name)
{
    for (char *at = name; *at; at++)
        if (*at == '\'')
            *at = '"';
    return find_name(line, name);
}

/* The bracket that is open at AT in LINE, after which only whole brackets follow; NULL: none. */
static const char *open_before(const char *line, const char *at)
{
    int depth = 0;

    while (at-- > line) {
        if (strchr(")]}", *at))
            depth++;
        else if (strchr("([{", *at) && depth-- == 0)
            return at;
    }
    return NULL;
}

/* Is there a colon inside the brackets that begin at OPEN, outside nested brackets? */
static bool has_colon(const char *open)
{
    int depth = 0;

    for (const char *at = open; *at; at++) {
        if (strchr("([{", *at))
            depth++;
        else if (strchr(")]}", *at) && --depth == 0)
            return false;
        else if (*at == ':' && depth == 1)
            return true;
    }
    return false;
}

/* The name before OPEN, in LINE, is WORD. */
static bool is_called(const char *line, const char *open, const char *word)
{
    size_t bytes = strlen(word);
    bool long_enough = open - line >= (ptrdiff_t)bytes;

    return long_enough && !memcmp(open - bytes, word, bytes) &&
           (open == line + bytes || !in_name(open[-(ptrdiff_t)bytes - 1]));
}

static bool is_sliced(const char *line, const char *at)
{
    for (const char *open = at; (open = open_before(line, open));) {
        if (*open == '[' && has_colon(open))
            return true;
        if (*open == '(' && is_called(line, open, "range"))
            return true;
    }
    return false;
}

static bool is_tested(const char *line, const char *at)
{
    static const char *const words[] = {"if ", "elif ", "while ", "assert "};
    const char *otherwise = strstr(line, " if ");

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(line, words[i], strlen(words[i])))
            return true;
    return otherwise && otherwise < at;
}

/* What ends at END is changed in place: "self.n += 1". */
static bool is_counted(const char *end)
{
    size_t operator_bytes;

    end += strspn(end, " ");
    operator_bytes = strspn(end, "+-*/");
    return operator_bytes && end[operator_bytes] == '=';
}

/* It is an argument of a call by itself: a comma, a bracket or the name of the argument is on each
 * side. */
static bool is_passed(const char *line, const char *start, const char *end)
{
    const char *open = open_before(line, start);

    while (start > line && start[-1] == ' ')
        start--;
    end += strspn(end, " ");
    return open && *open == '(' && open > line && in_name(open[-1]) && strchr("(,=", start[-1]) &&
           (*end == ',' || *end == ')');
}

enum remedy_use remedy_use_of(const char *line, const char *expression)
{
    const char *name = last_name(expression);
    const char *at = find_name(line, name);
    const char *start;

    if (!*at) {
        char *requoted = strdup(name);
        at = find_requoted(line, requoted);
        free(requoted);
    }
    if (!*at)
        return USE_ANY;
    start = at;
    while (start > line && (in_name(start[-1]) || start[-1] == '.'))
        start--;
    if (is_counted(at + strlen(name)))
        return USE_COUNTED;
    if (is_sliced(line, at))
        return USE_SLICED;
    if (is_tested(line, at))
        return USE_TESTED;
    return is_passed(line, start, at + strlen(name)) ? USE_PASSED : USE_COMPUTED;
}
