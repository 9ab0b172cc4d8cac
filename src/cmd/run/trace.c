/* cmd/run/trace.c -- the trace that a recording writes. See cmd/run/trace.h.
 *
 * Runs in: the command line. */
#include "cmd/run/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/say.h"
#include "collector/trace_files.h"

char *trace_path(const char *given, const char *name)
{
    char *path = NULL, *here;
    const char *base = name;
    size_t length;

    if (given && *given == '/')
        return strdup(given);
    here = getcwd(NULL, 0);
    if (here && given) {
        if (asprintf(&path, "%s/%s", here, given) < 0)
            path = NULL;
    } else if (here) {
        length = strlen(name);
        while (length > 1 && name[length - 1] == '/')
            length--;
        for (size_t i = 0; i + 1 < length; i++)
            if (name[i] == '/')
                base = name + i + 1;
        length -= (size_t)(base - name);
        if (length > 3 && !strncmp(base + length - 3, ".py", 3))
            length -= 3;
        if (asprintf(&path, "%s/%.*s.db", here, (int)length, base) < 0)
            path = NULL;
    }
    if (!path)
        say_error("%s: cannot be a trace: %s", given ? given : name, here ? "out of memory" : "there is no working directory");
    free(here);
    return path;
}

int trace_begin(struct session *session, const char *path, const struct session_options *options, bool force, uint32_t *first,
                uint32_t *root)
{
    if (session_create(session, path, options))
        return -1;
    if (access(session->frames, F_OK) == 0) {
        say_error("%s: another recording writes this trace (%s is there); wait for it, use -o, or delete that file if "
                  "nothing records any more", path, session->frames);
        return -1;
    }
    return recorder_create(path, session->frames, force, first, root);
}
