/* Values cut short, and lines of user stacks. */
#include "trace/brief.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/lines.h"
#include "trace/user_stack.h"

static int failures;

static void check(char *is, const char *expected, const char *of)
{
    if (strcmp(is ? is : "NULL", expected) != 0) {
        printf("FAIL %s\n  is       %s\n  expected %s\n", of, is ? is : "NULL", expected);
        failures++;
    }
    free(is);
}

static void brief_is(const char *text, const char *beside, const char *expected)
{
    check(brief_make_pair_distinct(text, beside), expected, text);
}

static void line_is(const char *stack, const char *said, const char *function, const char *expected)
{
    struct lines none = {0};

    check(user_stack_innermost_line(stack, said, function, &none), expected, stack);
}

int main(void)
{
    static const char *const unchanged[] = {
        "",        "16",       "1234567890", "0.5",     "1.0",    "2.13.0", "v0.123456",
        "0x1.8p3", "0.12345a", "torch.0",    "12345.0", "'a.b'",  "nan",    "1e-05",
        "1.",      ".1234567", "1.2.3.45678"};
    static const char stack[] = "File \"/a/b/c.py\", line 25, in train\n"
                                "File \"/a/b/c.py\", line 12, in timer";

    for (size_t i = 0; i < sizeof unchanged / sizeof *unchanged; i++)
        brief_is(unchanged[i], NULL, unchanged[i]);
    brief_is("0.3705904774487397", NULL, "0.3706");
    brief_is("-0.3705904774487397", NULL, "-0.3706");
    brief_is("0.30000000000000004", "0.3", "0.30000000000000004");
    brief_is("0.3", "0.30000000000000004", "0.3");
    brief_is("0.123456", "0.123478", "0.12346");
    brief_is("1.0, 0.9829629131445341, 0.25", NULL, "1.0, 0.983, 0.25");
    brief_is("lr: float 0.14644660940672627, n: int 12345678", NULL, "lr: float 0.1464, n: int 12345678");
    brief_is("1.23456789e-300", "1.23456789e+300", "1.235e-300");
    brief_is("(0.9950041652780258+0.09983341664682815j)", NULL, "(0.995+0.09983j)");
    brief_is("0.1234567jx", NULL, "0.1234567jx");
    brief_is("(0.1234567, 0.1234568)", NULL, "(0.1234567, 0.1234568)");
    if (brief_make_pair_distinct(NULL, "1.5"))
        failures++;

    line_is(stack, NULL, NULL, "b/c.py:12 in timer");
    line_is(stack, NULL, "timer", "b/c.py:12");
    line_is(stack, NULL, "Net.<locals>.timer", "b/c.py:12");
    line_is(stack, "L['n'] == 6 # if n in d: # /a/b/c.py:12 in timer (torch.py:3 in g)", "timer",
            "if n in d, b/c.py:12");
    line_is(stack, "L['#'] == 6 # x = a # b # b/c.py:12 in timer", "timer", "x = a # b, b/c.py:12");
    line_is(stack, "L['n'] == 6 # if n in d: # /a/b/c.py:13 in timer", "timer", "b/c.py:12");
    line_is(stack, "L['n'] == 6 # if n in d: # x/d.py:12 in timer", "timer", "b/c.py:12");
    line_is(stack, "L['n'] == 6 # b/c.py:12 in timer", "timer", "b/c.py:12");
    line_is(stack, "L['n'] == 6", "timer", "b/c.py:12");
    line_is("", NULL, NULL, "NULL");
    line_is("File \"", NULL, NULL, "NULL");
    line_is("no place\n  File \"c.py\", line 3, in <module>\n    code()\n", NULL, NULL,
            "code(), c.py:3 in <module>");
    line_is("File \"c.py\", line 3, in f\nreturn x:\n^^^^^^\nFile \"d.py\", line 4, in g\n~~^~", NULL, NULL,
            "d.py:4 in g");
    check(user_stack_describe_path(stack), "train (b/c.py:25) -> timer (b/c.py:12)", "a path of two");
    check(user_stack_describe_path("File \"c.py\", line 3, in f"), "NULL", "a path of one");
    check(user_stack_describe_path(NULL), "NULL", "no path");
    return failures > 0;
}
