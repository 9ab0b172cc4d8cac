/* trace/whatif/measure.c -- finds the settings of `dyntrace try` that measure a what-if. See
 * trace/whatif/whatif.h.
 *
 * Settings of a what-if, and the settings of `try` that do the same:
 *
 *     recompile_limit=16   config.recompile_limit=16, without torch limit=16
 *     dynamic=L['x'][0]    maybe_mark_dynamic=..., only with torch
 *     drop_guard=12        drop_guard=KIND SOURCE, without torch not possible
 *     backend_shared=no    not possible */
#include <inttypes.h>

#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/torch_words.h"
#include "trace/trials.h"
#include "trace/whatif/whatif.h"

/* Return torch_parse_version() of the recorded program; 0 if it did not use torch. */
static int read_torch_version(struct db *db)
{
    int version = 0;

    db_rows(row, db, schema_statement("whatif/torch")) version =
        torch_parse_version(query_text(row, 0, NULL));
    return version;
}

/* Print TEXT as one word of a shell, with as few quotes as possible. */
static void print_shell_word(FILE *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./=:,+-";
    size_t bytes = strlen(text);
    const bool bare = bytes && strspn(text, plain) == bytes;

    if (bare) {
        fputs(text, out);
    } else if (strchr(text, '\'') && !strpbrk(text, "\"$`\\!")) {
        /* TEXT has single quotes, as L['x'] has, so it needs only double quotes around it */
        putc('"', out);
        say_escaped(out, text, bytes);
        putc('"', out);
    } else {
        prose_print_shell_word(out, text);
    }
}

/* Print a blank and TEXT as one word of a shell. Frees TEXT. */
static void print_blank_and_word(FILE *out, char *text)
{
    putc(' ', out);
    print_shell_word(out, text);
    free(text);
}

/* Print the setting that makes NUMBER the limit on living entries. If EVER, it is the limit on all
 * entries ever made. If NUMBER is 0, prints nothing. */
static void print_limit(FILE *out, int torch, int64_t number, bool ever)
{
    if (!number)
        return;
    if (torch)
        print_blank_and_word(
            out, say_print("config.%s=%" PRId64, torch_limit_name(torch, ever), number));
    else
        print_blank_and_word(
            out, say_print("%s=%" PRId64, ever ? "accumulated_limit" : "limit", number));
}

static void print_dynamic(FILE *out, const struct whatif_knobs *knobs)
{
    if (knobs->dynamic_all)
        print_blank_and_word(out, say_print("dynamic=True"));
    list_each(d, &knobs->dynamic) {
        if (d->dimension < 0)
            print_blank_and_word(out, say_print("maybe_mark_dynamic=%s", d->source));
        else
            print_blank_and_word(out,
                                 say_print("maybe_mark_dynamic=%s[%d]", d->source, d->dimension));
    }
}

/* Print the settings that drop guards. Returns false if all guards of some kind are dropped,
 * because `try` cannot do that. */
static bool print_drops(FILE *out, struct db *db, const struct whatif_knobs *knobs)
{
    bool known = true;

    for (size_t i = 0; i < knobs->drops.count; i++) {
        struct query *query = db_query(db, schema_statement("whatif/dropped"));
        query_bind_text(query, 1, knobs->drops.at[i]);
        if (query_step(query) && query_type(query, 2) != QUERY_NULL)
            print_blank_and_word(out, say_print("drop_guard=%s %s", query_text(query, 1, NULL),
                                                query_text(query, 2, NULL)));
        else
            known = false;
        query_close(query);
    }
    return known;
}

char *whatif_make_try_command(const struct whatif_asked *asked, const struct whatif_knobs *knobs)
{
    int torch = read_torch_version(asked->db);
    bool weaker = knobs->dynamic_all || knobs->dynamic.count || knobs->drops.count;
    bool possible = !knobs->backends_apart;
    bool needs_torch = weaker || knobs->isolate;
    char *text = NULL;
    size_t bytes;
    FILE *out;

    if (!possible || !knobs->text)
        return NULL;
    if (needs_torch && !torch)
        return NULL;
    out = open_memstream(&text, &bytes);
    print_shell_word(out, trials_path_of_trace(asked->db));
    if (asked->function)
        print_blank_and_word(out, say_print("%s", asked->function));
    print_limit(out, torch, knobs->recompile_limit, false);
    print_limit(out, torch, knobs->accumulated_limit, true);
    print_dynamic(out, knobs);
    if (knobs->isolate)
        print_blank_and_word(out, say_print("isolate_recompiles=True"));
    possible = print_drops(out, asked->db, knobs);
    fclose(out);
    if (possible)
        return text;
    free(text);
    return NULL;
}
