/* trace/whatif/page.c -- a what-if in words: what was recorded beside what is predicted. See trace/whatif/whatif.h.
 *
 * Runs in: the viewer. */
#include <inttypes.h>

#include "replay.h"
#include "trace/prose.h"
#include "trace/whatif/whatif.h"
#include "lib/table.h"

enum { WIDTH = 70, LISTED = 20, NOTE_COLUMNS = 108 };

static bool differs(const struct whatif_function *f)
{
    return f->changed || f->gone || f->undecided || f->unrecorded ||
           memcmp(&f->recorded, &f->predicted, sizeof f->recorded);
}

static void tally_print(FILE *out, const char *what, const struct whatif_tally *t)
{
    char guards[TABLE_HUMAN], compiles[TABLE_HUMAN];

    fprintf(out,
            "    %-10s %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 "  %-10s %s\n", what,
            t->calls, t->hits, t->misses, t->compiles, t->eager, t->checks,
            whatif_checks_timed(t) ? table_duration(guards, t->check_ns) : "-",
            table_duration(compiles, t->compile_ns));
}

static void function_print(FILE *out, const struct whatif_function *f)
{
    const struct {
        int64_t count;
        const char *before, *after;
    } more[] = {
        {f->gone, "", " of its calls would not be looked up: the caller's code takes them in, or does not make them"},
        {f->undecided, "", " undecided: the trace does not say; a guess is counted"},
        {f->trusting, "", " would run code of which the recording has no compile"},
        {f->unrecorded, "at least ", " more calls would be looked up, of which the trace has nothing"},
    };

    tally_print(out, "recorded", &f->recorded);
    tally_print(out, "predicted", &f->predicted);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (more[i].count)
            fprintf(out, "    %s%" PRId64 "%s\n", more[i].before, more[i].count, more[i].after);
}

/* Our own words, in lines of a readable length. */
static void note_print(FILE *out, const char *text)
{
    size_t column = 0;

    fputs("  *", out);
    for (const char *at = text; *at;) {
        size_t bytes = strcspn(at, " ");
        if (column && column + bytes + 1 > NOTE_COLUMNS) {
            fputs("\n   ", out);
            column = 0;
        }
        fprintf(out, " %.*s", (int)bytes, at);
        column += bytes + 1;
        at += bytes + (at[bytes] == ' ');
    }
    putc('\n', out);
}

static void headline(FILE *out, const struct whatif_answer *answer)
{
    const char *settings = answer->knobs.text;

    if (answer->tried >= 0 && !settings) {
        fprintf(out, "Of %d settings tried none has fewer recompiles or fewer calls that run as Python.\n",
                answer->tried);
        return;
    }
    if (answer->tried >= 0)
        fprintf(out, "Best of %d settings tried: ", answer->tried);
    else
        fputs("What if ", out);
    prose_text(out, settings ? settings : "nothing were changed", WIDTH * 4);
    fputs(answer->tried >= 0 ? "\n" : "? The recorded calls decided again; the program is not run again.\n", out);
}

void whatif_page(const struct whatif_asked *asked, const struct whatif_answer *answer,
                 void (*recorded)(void *context, int64_t code_id), void *context)
{
    const struct whatif_result *r = &answer->result;
    FILE *out = asked->out;
    size_t listed = 0, same = 0;

    headline(out, answer);
    if (!r->total.recorded.calls) {
        fputs("No lookups are recorded.\n", out);
        return;
    }
    fprintf(out, "\n    %-10s %9s %9s %9s %9s %9s %9s  %-10s %s\n", "", "calls", "hits", "misses", "compiles", "eager",
            "checks", "guard time", "compile time");
    for (size_t i = 0; i < r->functions.count; i++) {
        const struct whatif_function *f = &r->functions.at[i];
        char *name;
        if (answer->codes ? !answer->codes[f->code] : !differs(f)) {
            same++;
            continue;
        }
        if (++listed > LISTED)
            continue;
        name = replay_code_name(asked->replay, f->code);
        prose_text(out, name, WIDTH * 2);
        putc('\n', out);
        free(name);
        if (recorded)
            recorded(context, asked->replay->codes.at[f->code].id);
        function_print(out, f);
    }
    if (listed > LISTED)
        fprintf(out, "(%d of %zu functions; --json has all)\n", LISTED, listed);
    if (!answer->codes) {
        fprintf(out, "all%s\n", same ? ", also those that stay as they are" : "");
        if (recorded)
            recorded(context, -1);
        function_print(out, &r->total);
    }
    if (r->total.changed + r->total.gone == 0 && !r->total.undecided)
        fputs("\nNo call would come out differently.\n", out);
    if (r->notes.count)
        fputs("\nTaken for granted:\n", out);
    for (size_t i = 0; i < r->notes.count; i++)
        note_print(out, r->notes.at[i]);
}
