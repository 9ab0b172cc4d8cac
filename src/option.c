/* option.c -- options of a command line that have a value. See option.h.
 *
 * Runs in: the viewer. */
#include "option.h"

#include <string.h>

const char *option_value(int argc, char **argv, int *i, const char *name)
{
    size_t length = strlen(name);
    const char *a = argv[*i];

    if (strncmp(a, name, length) != 0 || (a[length] && a[length] != '='))
        return NULL;
    return a[length] ? a + length + 1 : *i + 1 < argc ? argv[++*i] : "";
}
