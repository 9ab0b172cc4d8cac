/* tracer/redact.c -- leaves secret values out of facts. See secret.h.
 *
 * Runs in: the traced process, before a fact gets into shared memory; never where frames are
 * recorded. */
#include "tracer/redact.h"

#define P tracer_process

/* Return the patterns of `run --redact` that this session has. */
static struct secret_rules rules_of_session(void)
{
    const struct session_file *session = P.session;
    const char *text = session->text;

    if (session->secrets)
        for (uint32_t i = 0; i < 2 + session->globs + session->settings; i++)
            text += strlen(text) + 1;
    return (struct secret_rules){text, session->secrets};
}

static bool is_redacting(void)
{
    return P.session && !P.session->keep_secrets;
}

enum secret redact_name(const char *name, size_t bytes)
{
    struct secret_rules rules;

    if (!is_redacting())
        return SECRET_NO;
    rules = rules_of_session();
    return secret_classify_name(&rules, name, bytes);
}

enum secret redact_source(struct fact_text source)
{
    struct secret_rules rules;

    if (!is_redacting() || !source.bytes)
        return SECRET_NO;
    rules = rules_of_session();
    return secret_classify_source(&rules, source.text, (size_t)source.bytes);
}

/* If the redacted text in TO differs from TEXT, make TEXT the redacted text. If memory ran out,
 * make it SECRET_WORD. */
static void replace_with_redacted(struct fact_text *text, const struct secret_text *to)
{
    if (to->failed)
        *text = fact_make_text(SECRET_WORD);
    else if (to->changed)
        *text = (struct fact_text){to->text, (int64_t)to->bytes};
}

struct secret_text redact_literals_of_value(struct fact_text *text, enum secret level)
{
    struct secret_text to = {0};

    if (level && text->bytes)
        secret_copy_without_literals(&to, level, text->text, text->text + text->bytes);
    replace_with_redacted(text, &to);
    return to;
}

struct secret_text redact_text(struct fact_text *text, size_t most)
{
    struct secret_rules rules;
    struct secret_text to = {.most = most};

    if (is_redacting() && text->bytes) {
        rules = rules_of_session();
        secret_redact(&rules, false, text->text, (size_t)text->bytes, &to);
        replace_with_redacted(text, &to);
    }
    text->bytes = (int64_t)values_cut_utf8(text->text, (size_t)text->bytes, most);
    return to;
}

/* Remove secret values from the command line in FACT. */
static struct secret_text redact_argv(struct fact_ARGV *fact)
{
    const struct secret_rules rules = rules_of_session();
    struct secret_text to = {0};

    if (fact->argv.bytes)
        secret_redact_command(&rules, fact->argv.text, (size_t)fact->argv.bytes, &to);
    replace_with_redacted(&fact->argv, &to);
    return to;
}

/* Can facts of KIND contain values of the program? Others contain only names of code, threads and
 * files. */
static bool can_facts_have_values(enum fact_kind kind)
{
    switch (kind) {
    case FACT_ARGV:
    case FACT_LOSS:
    case FACT_GUARD:
    case FACT_COMPILE:
    case FACT_CAUSE:
    case FACT_SIGNATURE:
    case FACT_NOTE:
    case FACT_GRAPH:
    case FACT_BREAK:
    case FACT_LISTING:
        return true;
    default:
        return false;
    }
}

const void *redact_fact(enum fact_kind kind, const void *fact, struct redacted *r)
{
    const unsigned numbers = fact_shapes[kind].numbers;
    const unsigned texts = fact_shapes[kind].texts;
    struct fact_text *text = (struct fact_text *)(r->fact.numbers + numbers);

    r->count = 0;
    if (!is_redacting() || !can_facts_have_values(kind))
        return fact;
    memcpy(&r->fact, fact, numbers * sizeof(int64_t) + texts * sizeof *text);
    if (kind == FACT_ARGV) {
        r->owned[r->count++] = redact_argv(&r->fact.ARGV);
        return &r->fact;
    }
    for (unsigned i = 0; i < texts; i++)
        r->owned[r->count++] = redact_text(&text[i], SIZE_MAX);
    if (kind == FACT_GUARD)
        r->owned[r->count++] = redact_literals_of_value(&r->fact.GUARD.expression,
                                                        redact_source(r->fact.GUARD.source));
    return &r->fact;
}

void redacted_free(struct redacted *r)
{
    while (r->count)
        free(r->owned[--r->count].text);
}
