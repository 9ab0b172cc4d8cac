/* lib/option.c -- options that several commands have, or that have a value. See lib/option.h.
 *
 * Runs in: the viewer. */
#include "lib/option.h"

#include <string.h>

#include "lib/say.h"

const char *option_value(int argc, char **argv, int *i, const char *name)
{
    size_t length = strlen(name);
    const char *a = argv[*i];

    if (strncmp(a, name, length) != 0 || (a[length] && a[length] != '='))
        return NULL;
    return a[length] ? a + length + 1 : *i + 1 < argc ? argv[++*i] : "";
}

bool option_out(int argc, char **argv, int *i, struct option_out *out)
{
    const char *a = argv[*i];

    if (!strcmp(a, "--force"))
        out->force = true;
    else if (!strncmp(a, "-o", 2))
        out->path = a[2] ? a + 2 : *i + 1 < argc ? argv[++*i] : "";
    else
        return false;
    return true;
}

bool option_out_trace(const struct option_out *out, const char *command)
{
    if (out->path && *out->path && strcmp(out->path, "-") != 0)
        return true;
    say_error("%s: -o FILE names the trace to make", command);
    return false;
}
