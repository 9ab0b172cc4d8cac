/* trace/remedy_use.c -- finds how a line of the program uses a number or a text. See
 * trace/remedy.h. Only the text of this one line is examined. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "trace/remedy.h"

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Return the last name of EXPRESSION, "size" of "self.kv.size". Only this name is searched for in a
 * line: if torch inlined the function, the function may call the object by another name. */
static const char *find_last_name(const char *expression)
{
    const char *dot = strrchr(expression, '.');

    return dot && dot[1] && !strpbrk(dot, "[]()") ? dot + 1 : expression;
}

/* Return where NAME is in LINE as a whole word. Returns the end of LINE if NAME is not in LINE. */
static const char *find_name(const char *line, const char *name)
{
    size_t bytes = strlen(name);
    const char *at = line;

    while (bytes && (at = strstr(at, name))) {
        bool before = at > line && is_name_byte(at[-1]);
        if (!before && !is_name_byte(at[bytes]))
            return at;
        at++;
    }
    return line + strlen(line);
}

/* Like find_name(), but with double quotes around the keys in NAME, because a program may write
 * state["step"]. Changes NAME. */
static const char *find_name_with_double_quotes(const char *line, char *name)
{
    for (char *at = name; *at; at++)
        if (*at == '\'')
            *at = '"';
    return find_name(line, name);
}

/* Return the innermost bracket of LINE that is still open at the position AT, or NULL if
 * there is none. */
static const char *find_open_bracket(const char *line, const char *at)
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
static bool has_colon_in_brackets(const char *open)
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

/* Does the name WORD stand before the bracket OPEN of LINE, as in `WORD(n)`? */
static bool is_call_of_word(const char *line, const char *open, const char *word)
{
    size_t bytes = strlen(word);
    bool long_enough = open - line >= (ptrdiff_t)bytes;

    return long_enough && !memcmp(open - bytes, word, bytes) &&
           (open == line + bytes || !is_name_byte(open[-(ptrdiff_t)bytes - 1]));
}

static bool is_expression_sliced(const char *line, const char *at)
{
    for (const char *open = at; (open = find_open_bracket(line, open));) {
        if (*open == '[' && has_colon_in_brackets(open))
            return true;
        if (*open == '(' && is_call_of_word(line, open, "range"))
            return true;
    }
    return false;
}

bool remedy_is_branch(const char *line)
{
    static const char *const words[] = {"if ", "elif ", "while ", "assert "};

    for (size_t i = 0; i < array_count(words); i++)
        if (!strncmp(line, words[i], strlen(words[i])))
            return true;
    return false;
}

static bool is_expression_tested(const char *line, const char *at)
{
    const char *condition = strstr(line, " if ");
    const char *otherwise = condition ? strstr(condition, " else ") : NULL;

    if (remedy_is_branch(line))
        return true;
    if (!condition || condition > at)
        return false;
    return !otherwise || otherwise > at;
}

/* END is the text behind an expression. Does it begin with an operator that changes the expression
 * in place, as in "self.n += 1"? */
static bool is_augmented_assignment(const char *end)
{
    size_t operator_bytes;

    end += strspn(end, " ");
    operator_bytes = strspn(end, "+-*/");
    return operator_bytes && end[operator_bytes] == '=';
}

/* Is the text from START to END a whole argument of a call? It is if a bracket, a comma, or the `=`
 * of a keyword argument stands before it, and a bracket or a comma behind it. */
static bool is_passed_as_argument(const char *line, const char *start, const char *end)
{
    const char *open = find_open_bracket(line, start);

    while (start > line && start[-1] == ' ')
        start--;
    end += strspn(end, " ");
    return open && *open == '(' && open > line && is_name_byte(open[-1]) &&
           strchr("(,=", start[-1]) && (*end == ',' || *end == ')');
}

/* If the text from START to END is the whole key n in "table[n]", return the closing bracket.
 * Otherwise return NULL. */
static const char *find_end_of_key(const char *line, const char *start, const char *end)
{
    const char *open = find_open_bracket(line, start);
    bool subscript =
        open && *open == '[' && open > line && (is_name_byte(open[-1]) || strchr(")]", open[-1]));

    end += strspn(end, " ");
    if (!subscript || open + 1 + strspn(open + 1, " ") != start)
        return NULL;
    return *end == ']' ? end : NULL;
}

static bool is_assignment_after(const char *end)
{
    end += strspn(end, " ");
    return end[0] == '=' && end[1] != '=';
}

/* Is NAME, which is at AT of LINE, the name of a keyword argument, as the first "n" of "f(n=n)"? */
static bool is_keyword(const char *line, const char *at, const char *name)
{
    const char *open = find_open_bracket(line, at);

    if (!open || *open != '(')
        return false;
    return is_assignment_after(at + strlen(name));
}

enum remedy_use remedy_find_use(const char *line, const char *expression)
{
    const char *name = find_last_name(expression);
    const char *at = find_name(line, name);
    const char *start, *key;

    if (!*at) {
        char *requoted = strdup(name);
        at = find_name_with_double_quotes(line, requoted);
        free(requoted);
    }
    if (!*at)
        return USE_ANY;
    if (is_keyword(line, at, name) && *find_name(at + strlen(name), name))
        at = find_name(at + strlen(name), name);
    start = at;
    for (; start > line; start--) {
        bool is_part = is_name_byte(start[-1]) || start[-1] == '.';
        if (!is_part)
            break;
    }
    if (is_augmented_assignment(at + strlen(name)))
        return USE_COUNTED;
    if (is_expression_sliced(line, at))
        return USE_SLICED;
    if (is_expression_tested(line, at))
        return USE_TESTED;
    key = find_end_of_key(line, start, at + strlen(name));
    if (key)
        return is_assignment_after(key + 1) ? USE_STORED : USE_KEY;
    return is_passed_as_argument(line, start, at + strlen(name)) ? USE_PASSED : USE_COMPUTED;
}
