/* lib/say.c -- messages for people, and text made safe to print.
 *
 * Runs in: the command line (every command). See lib/say.h. */
#include "lib/say.h"

#include <stdarg.h>
#include <unistd.h>

#include "clock.h"
#include "lib/json.h"

void say_escaped(FILE *out, const char *text, size_t bytes)
{
    json_escape(out, text, bytes, ESCAPE_BYTES);
}

char *say_escape(const char *text, size_t bytes)
{
    char *made = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&made, &length);

    if (!out)
        return NULL;
    say_escaped(out, text, bytes);
    if (fclose(out) != 0) {
        free(made);
        return NULL;
    }
    return made;
}

enum { LINE_MOST = 4000 }; /* the most bytes of a message: a name in it may be endless */

static _Thread_local void (*diverted)(void *context, const char *line);
static _Thread_local void *diverted_context;

void say_redirect_errors(void (*to)(void *context, const char *line), void *context)
{
    diverted = to;
    diverted_context = context;
}

bool say_is_redirected(void)
{
    return diverted != NULL;
}

void say_error(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    int length;

    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    /* Print with one write() call, so that lines of several processes do not mix. */
    char *safe = say_escape(text, (size_t)length < LINE_MOST ? (size_t)length : LINE_MOST);
    if (safe && diverted)
        diverted(diverted_context, safe);
    else if (safe)
        fprintf(stderr, "dyntrace: %s\n", safe);
    free(safe);
    free(text);
}

char *say_print(const char *format, ...)
{
    va_list arguments, again;
    char *text;
    int length;

    va_start(arguments, format);
    va_copy(again, arguments);
    length = vsnprintf(NULL, 0, format, arguments);
    /* not asprintf, which would not call our own malloc (lib/bounds.h) */
    if (length >= 0 && (text = malloc((size_t)length + 1)))
        vsnprintf(text, (size_t)length + 1, format, again);
    else
        text = NULL;
    va_end(again);
    va_end(arguments);
    return text;
}

bool say_may_use_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR");

    return isatty(fileno(out)) && !(no && *no);
}

enum { QUIET_MS = 1000, REDRAW_MS = 200 };

struct progress progress_begin(const char *what)
{
    int64_t now = clock_monotonic_ms();

    return (struct progress){what, now, now, isatty(STDERR_FILENO), false};
}

void progress_tick(struct progress *progress, int64_t done, int64_t all)
{
    int64_t now;

    if (!progress->terminal)
        return;
    now = clock_monotonic_ms();
    if (now - progress->begun_ms < QUIET_MS || now - progress->drawn_ms < REDRAW_MS)
        return;
    progress->drawn_ms = now;
    progress->drawn = true;
    fprintf(stderr, "\r%s: %d s", progress->what, (int)((now - progress->begun_ms) / 1000));
    if (all > 0)
        fprintf(stderr, ", %d %%", done >= all ? 100 : (int)((double)done * 100 / (double)all));
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_spin(void *progress)
{
    progress_tick(progress, 0, 0);
}

void progress_end(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
    fflush(stderr);
}
