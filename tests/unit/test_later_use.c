/* What the lines below an assignment do with the assigned name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/later_use.h"
#include "trace/lines.h"

static int failures;

/* The assignment is in line 2 of a function whose other lines are REST. */
static void use_is(const char *assignment, const char *rest, enum later_use expected, const char *expected_text)
{
    char path[] = "/tmp/test_later_use_XXXXXX.py";
    int fd = mkstemps(path, 3);
    struct lines lines = {.until_ns = INT64_MAX};
    char *text = NULL;
    enum later_use use;

    dprintf(fd, "def f(x, mask):\n    %s\n%s", assignment, rest);
    close(fd);
    use = find_later_use(&lines, path, 2, &text);
    if (use != expected || (expected_text && (!text || strcmp(text, expected_text)))) {
        printf("FAIL %s; %s: is %d (%s), expected %d\n", assignment, rest, use, text ? text : "-", expected);
        failures++;
    }
    free(text);
    lines_free(&lines);
    unlink(path);
}

int main(void)
{
    use_is("n = int(mask.sum())", "    if n == 0:\n        return x\n", LATER_TESTED, "if n == 0");
    use_is("self.n = mask.sum().item()", "    y = x * 2\n\n    while self.n > 2:\n", LATER_TESTED, "while self.n > 2");
    use_is("n: int = mask.sum().item()", "    y = x if n else 2 * x\n", LATER_TESTED, "y = x if n else 2 * x");
    use_is("n = int(mask.max())", "    for t in range(n):\n", LATER_LOOPED, "for t in range(n)");
    use_is("n = int(mask.max())", "    return x[:n]\n", LATER_UNKNOWN, NULL);
    use_is("n = mask.sum().item()", "    print(f\"{n}\")\n", LATER_PRINTED, "print(f\"{n}\")");
    use_is("n = mask.sum().item()", "    log.info('n %d', n)\n", LATER_PRINTED, NULL);
    use_is("n = mask.sum().item()", "    assert n > 0\n    return x * n\n", LATER_UNKNOWN, NULL);
    use_is("n = mask.sum().item()", "    n = 2\n    if n == 0:\n", LATER_UNKNOWN, NULL);
    use_is("n = mask.sum().item()", "    n = n + 1\n    if n == 0:\n", LATER_UNKNOWN, NULL); /* another value */
    use_is("n = mask.sum().item()", "    return x\n\n\ndef g(n):\n    if n:\n", LATER_UNKNOWN, NULL);
    use_is("n = mask.sum().item()", "    if nn == 0 or x is n:\n", LATER_UNKNOWN, NULL);
    use_is("a, b = mask.tolist()", "    if a:\n", LATER_UNKNOWN, NULL);
    use_is("n == mask.sum()", "    if n:\n", LATER_UNKNOWN, NULL);
    use_is("return mask.sum().item()", "", LATER_UNKNOWN, NULL);
    use_is("=", "    if n:\n", LATER_UNKNOWN, NULL);
    return failures != 0;
}
