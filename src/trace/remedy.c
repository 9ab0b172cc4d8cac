/* trace/remedy.c -- finds the smallest change to a program that would have avoided a recompile, a
 * graph break or an eager call. See trace/remedy.h. */
#include "trace/remedy.h"

#include <fnmatch.h>
#include <inttypes.h>

#include "lib/list.h"
#include "trace/db.h"
#include "trace/expression.h"
#include "trace/lines.h"
#include "trace/prose.h"
#include "trace/template.h"
#include "trace/torch_words.h"
#include "trace/user_stack.h"

enum { WORD_BYTES = 100 }; /* the most bytes of one value in the sentence of a remedy */

/* ---- does a rule of remedies.txt fit an event? --------------------------- */

/* Does TEXT contain all pieces of WORDS, in their order? A "*" separates the pieces. fnmatch()
 * would be slow for a long text. */
static bool contains_in_order(const char *text, char *words)
{
    char *part;

    while ((part = strsep(&words, "*"))) {
        text = strcasestr(text, part);
        if (!text)
            return false;
        text += strlen(part);
    }
    return true;
}

/* Does TEXT match the shell pattern PATTERN, in which case does not matter? Only the first 399
 * bytes of TEXT are compared. */
static bool matches_pattern(const char *text, char *pattern)
{
    char head[400];

    snprintf(head, sizeof head, "%s", text);
    return !fnmatch(pattern, head, FNM_CASEFOLD);
}

/* Does TEXT fit one of ALTERNATIVES, which are separated by "|"? The function FITS tests one
 * alternative. If TEXT is NULL, it counts as empty. */
static bool does_text_fit_any(const char *alternatives, const char *text,
                              bool (*fits)(const char *text, char *alternative))
{
    char copy[400];
    char *rest = copy;
    char *one;

    snprintf(copy, sizeof copy, "%s", alternatives);
    if (!text)
        text = "";
    while ((one = strsep(&rest, "|")))
        if (fits(text, one))
            return true;
    return false;
}

static bool has_words(const char *text, const char *words)
{
    return text && does_text_fit_any(words, text, contains_in_order);
}

/* Does TEXT match one of PATTERNS? If PATTERNS is NULL, the rule allows any text. */
static bool matches_any_pattern(const char *patterns, const char *text)
{
    return !patterns || does_text_fit_any(patterns, text, matches_pattern);
}

static bool is_float_text(const char *number)
{
    /* a floating-point number has one of these characters: 1.0, 1e-05, inf, nan */
    return strpbrk(number, ".eEnN");
}

/* TEXT is the expected or actual value of a guard that is an expression. Return the number in it:
 * "0.5" of "L['lr'] == 0.5" or "L['lr'] = 0.5". Returns TEXT itself if it has another form, such as
 * "(L['n'] % 3) == 0", from which no number can be read. */
static const char *skip_to_number_after_equals(const char *text)
{
    const char *equals = text ? strchr(text, ' ') : NULL;

    if (!equals)
        return text;
    if (!strncmp(equals, " == ", 4))
        return equals + 4;
    return !strncmp(equals, " = ", 3) ? equals + 3 : text;
}

/* Is the cause about ASPECT, which a rule asks for? "number" means that the expected and the actual
 * value are numbers; "integer" and "float" mean numbers of this kind. */
static bool does_aspect_fit(const char *aspect, const struct remedy_facts *facts)
{
    const struct cause *cause = &facts->cause;
    const bool expression =
        !cause->aspect && matches_any_pattern("LAMBDA_GUARD*|*SHAPE*", cause->kind);
    const char *expected =
        expression ? skip_to_number_after_equals(cause->expected) : cause->expected;
    const char *actual = expression ? skip_to_number_after_equals(cause->actual) : cause->actual;
    bool value = expression || prose_are_texts_equal(cause->aspect, "value");
    bool number = value && cause_is_number(expected) && cause_is_number(actual);
    bool has_float = number && (is_float_text(expected) || is_float_text(actual));

    if (!aspect)
        return true;
    if (!strcmp(aspect, "number"))
        return number;
    if (!strcmp(aspect, "float"))
        return has_float;
    if (!strcmp(aspect, "integer"))
        return number && !has_float;
    return prose_are_texts_equal(cause->aspect, aspect);
}

/* Return the case whose name is IS among the cases of FACTS, or NULL if there is none. */
static const struct remedy_case *find_case(const struct remedy_facts *facts, const char *is)
{
    const struct remedy_case *found = facts->cases;

    if (!is || !found)
        return NULL;
    for (; found->is; found++)
        if (!strcmp(found->is, is))
            return found;
    return NULL;
}

/* Is SIZE, which has BYTES bytes, "0" or "1"? torch compiles these two sizes separately. */
static bool is_size_0_or_1(const char *size, size_t bytes)
{
    return bytes == 1 && (*size == '0' || *size == '1');
}

/* Do the sizes in VALUES, such as "1, 5, 1", contain 0 or 1, and at most one size beside these two?
 * One cache entry can serve all sizes except 0 and 1, which torch compiles separately. */
static bool has_small_and_one_other(const char *values)
{
    const char *at = values ? values : "";
    const char *other = NULL;
    size_t other_bytes = 0;
    bool small = false;

    while (*at) {
        size_t bytes = strcspn(at, ", ");
        if (is_size_0_or_1(at, bytes)) {
            small = true;
        } else if (!other) {
            other = at;
            other_bytes = bytes;
        } else if (bytes != other_bytes || strncmp(at, other, bytes) != 0) {
            return false;
        }
        at += bytes;
        at += strspn(at, ", ");
    }
    return small;
}

/* Does STACK have more than one line of the program? Then the innermost line is in a function that
 * torch inlined. */
static bool is_in_inlined_function(const char *stack)
{
    static const char file[] = "File \"";
    const char *first = stack ? strstr(stack, file) : NULL;

    return first && strstr(first + 1, file);
}

static bool do_rule_conditions_hold(const struct remedy_rule *rule,
                                    const struct remedy_facts *facts)
{
    switch (rule->when) {
    case WHEN_SMALL:
        return has_small_and_one_other(facts->values);
    case WHEN_LIMITED:
        return facts->limited;
    case WHEN_INLINED:
        return is_in_inlined_function(facts->stack);
    case WHEN_NEEDED:
        return facts->needed > 0;
    case WHEN_REST:
        return facts->function && torch_parse_resume_name(facts->function, NULL, NULL);
    case WHEN_HINT:
        return *torch_reason_split(facts->cause.text).hint;
    default:
        return true;
    }
}

static bool is_value_computed_with(enum remedy_use use)
{
    return use == USE_COUNTED || use == USE_KEY || use == USE_STORED;
}

static bool does_use_fit(enum remedy_use use, const struct remedy_facts *facts)
{
    enum remedy_use found;
    char *expression;

    if (use == USE_ANY)
        return true;
    if (!facts->line_text || !facts->cause.source)
        return false;
    expression = expression_from_source(facts->cause.source);
    found = remedy_find_use(facts->line_text, expression ? expression : facts->cause.source);
    free(expression);
    /* the program calls the number by another name there; the guard is of the line that needs it */
    if (found == USE_ANY && remedy_is_branch(facts->line_text))
        found = does_aspect_fit("number", facts) ? USE_TESTED : USE_ANY;
    return found == use || (use == USE_COMPUTED && is_value_computed_with(found));
}

/* Is RULE about the event ON, and for the compiler and version of FACTS? */
static bool is_rule_for_event(const struct remedy_rule *rule, enum remedy_on on,
                              const struct remedy_facts *facts)
{
    enum outcome outcome = facts->outcome;

    if (facts->torch && outcome == OUTCOME_DECLINED)
        outcome = OUTCOME_SKIP;
    if (rule->on != on || rule->torch != (facts->torch > 0))
        return false;
    if (on == ON_OUTCOME && rule->outcome != outcome)
        return false;
    if (facts->torch < rule->since)
        return false;
    return !rule->until || facts->torch <= rule->until;
}

/* Does CAUSE contain SAID, the words that a rule asks for, in its expected value, its actual
 * value or its text? */
static bool does_cause_contain_words(const char *said, const struct cause *cause)
{
    if (!said)
        return true;
    if (has_words(cause->expected, said) || has_words(cause->actual, said))
        return true;
    return has_words(cause->text, said);
}

/* Does TEXT, torch's reason for an event, contain WORDS? If WORDS begins with "^", only the first
 * part of the reason (torch_reason.what) is searched. */
static bool has_reason_words(const char *words, const char *text)
{
    if (!words)
        return true;
    if (*words == '^')
        return has_words(torch_reason_split(text).what, words + 1);
    return has_words(text, words);
}

static bool does_rule_fit(const struct remedy_rule *rule, enum remedy_on on,
                          const struct remedy_facts *facts)
{
    const struct cause *cause = &facts->cause;

    if (!is_rule_for_event(rule, on, facts))
        return false;
    if (!does_aspect_fit(rule->aspect, facts))
        return false;
    if (!matches_any_pattern(rule->kind, cause->kind))
        return false;
    if (!matches_any_pattern(rule->source, cause->source))
        return false;
    if (!matches_any_pattern(rule->expected, cause->expected))
        return false;
    if (!matches_any_pattern(rule->function, facts->function))
        return false;
    if (!matches_any_pattern(rule->reason, cause->text))
        return false;
    if (rule->code && !prose_are_texts_equal(rule->code, facts->code))
        return false;
    if (rule->is && !find_case(facts, rule->is))
        return false;
    if (!matches_any_pattern(rule->stack, facts->stack))
        return false;
    if (!matches_any_pattern(rule->line, facts->line_text))
        return false;
    if (!does_cause_contain_words(rule->said, cause))
        return false;
    if (!has_reason_words(rule->words, cause->text))
        return false;
    if (!do_rule_conditions_hold(rule, facts))
        return false;
    return does_use_fit(rule->use, facts);
}

/* Find the case that RULE asks for, and copy it to the members `more` and `setting` of FACTS. */
static void choose_case(const struct remedy_rule *rule, struct remedy_facts *facts)
{
    const struct remedy_case *chosen = find_case(facts, rule->is);

    facts->more = chosen ? chosen->more : NULL;
    facts->setting = chosen ? chosen->setting : NULL;
}

/* ---- making the sentence of a remedy ------------------------------------- */

/* Return TEXT on one line, cut to at most WORD_BYTES bytes; a UTF-8 character is not cut in two. If
 * TEXT is short enough, its final dots are left out, because the sentence has a dot behind it. */
static const char *shorten_to_one_line(struct arena *arena, const char *text)
{
    size_t bytes = prose_length_without_cut_character(text, WORD_BYTES);
    bool cut = text[bytes];
    char *made;

    while (!cut && bytes > 0) {
        if (text[bytes - 1] != '.')
            break;
        bytes--;
    }
    made = arena_print(arena, "%.*s%s", (int)bytes, text, cut ? "…" : "");
    for (char *at = made; *at; at++)
        if (*at == '\n')
            *at = ' ';
    return made;
}

/* Is 0 or 1 among the sizes in VALUES, such as "1, 5, 7"? */
static bool has_size_0_or_1(const char *values)
{
    const char *at = values ? values : "";

    while (*at) {
        size_t bytes;
        at += strspn(at, " ");
        bytes = strcspn(at, ",");
        if (is_size_0_or_1(at, bytes))
            return true;
        at += bytes;
        at += *at == ',';
    }
    return false;
}

/* Return the function's name. A resume function is called "the rest of f after line 12". */
static const char *describe_function(struct arena *arena, const struct remedy_facts *facts)
{
    char *function;
    const char *made = facts->function ? facts->function : "the function";
    int64_t line;

    if (facts->torch && torch_parse_resume_name(made, &function, &line)) {
        made =
            arena_print(arena, "the rest of %.*s after line %" PRId64, WORD_BYTES, function, line);
        free(function);
    }
    return made;
}

/* Return the innermost line of the program's stack in FACTS as " (n in d, src/net.py:12)". Returns
 * "" if there is no stack. */
static const char *describe_place(struct arena *arena, const struct remedy_facts *facts)
{
    struct lines none = {0};
    const char *text = facts->cause.text;
    const char *stack = facts->more ? facts->more : facts->stack;
    char *line;

    if (!stack)
        stack = prose_text_or_other(text, "");
    line = user_stack_innermost_line(stack, text, facts->function, &none);
    lines_free(&none);
    if (!line)
        return "";
    arena_keep(arena, line);
    return arena_print(arena, " (%s)", line);
}

/* TEXT is a message of torch, "You marked SOURCE as dynamic ...". Return SOURCE, or "the size" if
 * TEXT does not have these words. */
static const char *source_in_marked_message(struct arena *arena, const char *text)
{
    static const char before[] = "You marked ";
    const char *found = text ? strstr(text, before) : NULL;
    const char *end = found ? strstr(found, " as dynamic") : NULL;

    if (!end)
        return "the size";
    found += strlen(before);
    return arena_print(arena, "%.*s", (int)(end - found), found);
}

/* Return the dict whose keys SOURCE reads: "L['d']" for "list(dict.keys(L['d']))[0]". */
static const char *dict_whose_keys_are_read(struct arena *arena, const char *source)
{
    static const char before[] = "dict.keys(";
    const char *found = strstr(source, before);
    const char *end = found ? strstr(found, "))") : NULL;

    if (!end)
        return source;
    found += strlen(before);
    return arena_print(arena, "%.*s", (int)(end - found), found);
}

/* Return torch's name for the limit that the event of FACTS is about. */
static const char *name_of_limit(const struct remedy_facts *facts)
{
    const char *text = facts->cause.text;

    return torch_limit_name(facts->torch, text && strcasestr(text, "accumulated"));
}

/* A field {name} of a rule's text, and the text to put in its place. */
struct word {
    const char *name, *text; /* a field's name and text; `text` is NULL if the value is not known */
};

/* Copy TEXT of a rule, with each field {name} replaced by its value. The caller frees the copy. */
static char *fill_fields(const char *text, const struct word *words, int count)
{
    struct arena arena = {0};
    struct value values[count];
    const char *names[count];
    const struct row row = {values, names, count};
    char *made;

    for (int i = 0; i < count; i++) {
        names[i] = words[i].name;
        values[i] = (struct value){.type = QUERY_NULL};
        if (words[i].text)
            values[i] = (struct value){.type = QUERY_TEXT, .text = words[i].text};
    }
    made = strdup(template_print(&arena, &row, TEMPLATE_SENTENCE, text, strlen(text)));
    arena_free(&arena);
    return made;
}

/* Rewrite the guard sources in TEXT as the program's own expressions. Returns NULL
 * if TEXT is NULL. */
static const char *rewrite_sources_as_written(struct arena *arena, const char *text)
{
    char *expression = expression_from_source(text);
    const char *kept = expression ? arena_print(arena, "%s", expression) : NULL;

    free(expression);
    return kept;
}

/* Return VALUES, such as "4, 5", with each guard source among them as the program writes it. */
static const char *describe_values(struct arena *arena, const char *values)
{
    if (values && strstr(values, "['"))
        return rewrite_sources_as_written(arena, values);
    return prose_text_or_other(values, "not always the same");
}

/* Return the dimension that FACTS are about as text. Returns NULL if they are not
 * about a dimension. */
static const char *describe_dimension(struct arena *arena, const struct remedy_facts *facts)
{
    if (facts->cause.dimension < 0)
        return NULL;
    return arena_print(arena, "%" PRId64, facts->cause.dimension);
}

/* Return TEXT, the text of a rule, with its fields filled in from FACTS. The caller frees it. */
static char *make_sentence(const char *text, const struct remedy_facts *facts)
{
    struct arena arena = {0};
    const struct torch_reason reason = torch_reason_split(facts->cause.text);
    const char *source = prose_text_or_other(facts->cause.source, "the input");
    const char *base = arena_print(&arena, "%.*s", cause_length_of_variable(source), source);
    const char *expected = facts->cause.expected;
    const char *count = arena_print(&arena, "%" PRId64, facts->count);
    const char *plural = facts->count == 1 ? "" : "s";

    if (!expected)
        expected = prose_text_or_other(facts->cause.text, "its guards pass");
    struct word words[] = {
        {"source", rewrite_sources_as_written(&arena, source)},
        {"base", rewrite_sources_as_written(&arena, base)},
        {"guarded", base},
        {"kind", prose_text_or_other(facts->cause.kind, "that failed")},
        {"expected", rewrite_sources_as_written(&arena, expected)},
        {"actual", rewrite_sources_as_written(
                       &arena, prose_text_or_other(facts->cause.actual, "something else"))},
        {"values", describe_values(&arena, facts->values)},
        {"text", prose_text_or_other(facts->cause.text, "no reason was recorded")},
        {"what", prose_text_or_other(reason.what, "no reason was recorded")},
        {"hint", prose_text_or_other(reason.hint, "none")},
        {"more", rewrite_sources_as_written(&arena, prose_text_or_other(facts->more, "?"))},
        {"place", describe_place(&arena, facts)},
        {"line", facts->line_text ? arena_print(&arena, " (%s)", facts->line_text) : ""},
        {"constraint",
         rewrite_sources_as_written(&arena, source_in_marked_message(&arena, facts->cause.text))},
        {"dict", rewrite_sources_as_written(&arena, dict_whose_keys_are_read(&arena, source))},
        {"function", describe_function(&arena, facts)},
        {"limit", name_of_limit(facts)},
        {"count", count},
        {"calls", arena_print(&arena, "%s call%s", count, plural)},
        {"entries", arena_print(&arena, "%s entr%s", count, *plural ? "ies" : "y")},
        {"needed", arena_print(&arena, "%" PRId64, facts->needed)},
        {"dim", prose_text_or_other(describe_dimension(&arena, facts), "N")},
        {"at", facts->line > 0 ? arena_print(&arena, " at line %" PRId64, facts->line) : ""},
        {"apart",
         has_size_0_or_1(facts->values) ? ". Sizes 0 and 1 are compiled apart all the same" : ""},
    };
    const int count_of_words = array_count(words);
    char *made;

    for (int i = 0; i < count_of_words; i++)
        words[i].text = shorten_to_one_line(&arena, prose_text_or_other(words[i].text, ""));
    made = fill_fields(text, words, count_of_words);
    arena_free(&arena);
    return made;
}

/* ---- making a setting that has the effect of a remedy -------------------- */

static const char from_numpy[] = "___from_numpy(";

/* Return SOURCE without the helper call ___from_numpy(): "L['x'].size()" for
 * "___from_numpy(L['x']).size()". */
static const char *remove_from_numpy_call(struct arena *arena, const char *source)
{
    const char *inner, *end;

    if (strncmp(source, from_numpy, strlen(from_numpy)))
        return source;
    inner = source + strlen(from_numpy);
    end = strchr(inner, ')');
    if (!end)
        return source;
    return arena_print(arena, "%.*s%s", (int)(end - inner), inner, end + 1);
}

/* Return SOURCE in the form that `run --set` understands (python/dyntrace/_settings.py).
 * Returns NULL if SOURCE does not begin with an argument or a global, or if it is a property
 * that torch computes. */
static const char *make_source_for_settings(struct arena *arena, const char *source)
{
    const char *called;
    bool is_variable;

    if (!source)
        return NULL;
    source = remove_from_numpy_call(arena, source);
    called = source;
    if (!strncmp(called, "dict(", 5))
        called += 5;
    if (!strncmp(called, "type(", 5))
        called += 5;
    is_variable = !strncmp(called, "L[", 2) || !strncmp(called, "G[", 2);
    return is_variable && !strchr(called, '(') ? source : NULL;
}

/* Return "@f", which limits a setting to FUNCTION f. Returns "" if the name cannot be written in a
 * setting. */
static const char *make_function_suffix(struct arena *arena, const char *function)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.<>";
    bool has_name = function && *function && strcmp(function, "<module>") != 0;
    bool writable = has_name && !function[strspn(function, letters)];

    return writable ? arena_print(arena, "@%s", function) : "";
}

/* DYNAMIC is a list of what-if settings: "dynamic=L['x'][0],dynamic=...". Return a setting
 * NAME=SOURCE for each source in this list, with the text FUNCTION ("@f") behind it; blanks
 * separate the settings. Returns NULL if DYNAMIC is not such a list, or if a source cannot
 * stand in a setting. */
static const char *make_settings_of_sources(struct arena *arena, const char *name,
                                            const char *dynamic, const char *function)
{
    static const char between[] = ",dynamic=";
    const char *first = between + 1;
    const char *marks = "";
    const char *from = NULL;

    if (dynamic && !strncmp(dynamic, first, strlen(first)))
        from = dynamic + strlen(first);
    while (from) {
        const char *end = strstr(from, between);
        const char *gap = *marks ? " " : "";
        const char *source = from;
        if (end)
            source = arena_print(arena, "%.*s", (int)(end - from), from);
        source = make_source_for_settings(arena, source);
        if (!source || strpbrk(source, " \t\n"))
            return NULL;
        marks = arena_print(arena, "%s%s%s=%s%s", marks, gap, name, source, function);
        from = end ? end + strlen(between) : NULL;
    }
    return prose_null_if_empty(marks);
}

/* Return SETTING as one word of a shell: in single quotes if it has blanks. Frees SETTING. */
static char *quote_setting(char *setting)
{
    char *quoted = NULL;
    size_t room = 0;
    FILE *out;

    if (!strpbrk(setting, " \t\n"))
        return setting;
    out = open_memstream(&quoted, &room);
    putc('\'', out);
    for (const char *at = setting; *at; at++) {
        if (*at == '\'')
            fputs("'\\''", out);
        else
            putc(*at, out);
    }
    putc('\'', out);
    fclose(out);
    free(setting);
    return quoted;
}

/* Does TEXT have the field {NAME}? */
static bool has_field(const char *text, const char *name)
{
    size_t bytes = strlen(name);

    for (const char *at = text; (at = strchr(at, '{')); at++)
        if (!strncmp(at + 1, name, bytes) && at[1 + bytes] == '}')
            return true;
    return false;
}

/* Does SET, the settings of a rule, make only one setting, not several with blanks between them? */
static bool is_one_setting(const char *set)
{
    if (strstr(set, "{marks}") || strstr(set, "{tensors}"))
        return false;
    return !strchr(set, ' ');
}

char *remedy_make_setting(const struct remedy_rule *rule, const struct remedy_facts *about)
{
    struct remedy_facts chosen = *about;
    const struct remedy_facts *facts = &chosen;
    struct arena arena = {0};
    const char *source = prose_text_or_other(facts->cause.source, "");
    const char *base = arena_print(&arena, "%.*s", cause_length_of_variable(source), source);
    /* a numpy array goes into torch's lists of sources, which apply to all functions, so
     * no "@f" follows */
    const bool listed = !strncmp(base, from_numpy, strlen(from_numpy));
    const char *function = make_function_suffix(&arena, listed ? NULL : facts->function);
    char *made = NULL;
    char *whole = NULL;
    bool known = true;

    if (!rule->set)
        return NULL;
    choose_case(rule, &chosen);
    if (facts->torch && facts->function)
        torch_parse_resume_name(facts->function, &whole, NULL);
    const struct word words[] = {
        {"source", make_source_for_settings(&arena, source)},
        {"base", make_source_for_settings(&arena, base)},
        {"dim", describe_dimension(&arena, facts)},
        {"marks", make_settings_of_sources(&arena, "maybe_mark_dynamic", facts->setting, function)},
        {"tensors", make_settings_of_sources(&arena, "tensor", facts->setting, function)},
        {"@function", function},
        {"@compiled", make_function_suffix(&arena, whole ? whole : facts->function)},
        {"limit", name_of_limit(facts)},
        {"raised", facts->raised > 0 ? arena_print(&arena, "%" PRId64, facts->raised) : NULL},
    };
    const int count = array_count(words);
    for (int i = 0; i < count; i++)
        if (!words[i].text && has_field(rule->set, words[i].name))
            known = false;
    if (known) {
        made = fill_fields(rule->set, words, count);
        if (is_one_setting(rule->set))
            made = quote_setting(made);
    }
    free(whole);
    arena_free(&arena);
    return made;
}

/* ---- choosing the rule that fits ----------------------------------------- */

/* Return the piece of TEXT between BEFORE and AFTER, or NULL if there is none. The
 * caller frees it. */
static char *text_between(const char *text, const char *before, const char *after)
{
    const char *start = text ? strstr(text, before) : NULL;
    const char *end;

    if (!start)
        return NULL;
    start += strlen(before);
    end = strstr(start, after);
    return end ? strndup(start, (size_t)(end - start)) : NULL;
}

/* Like remedy_find_text(), but search the rules only from FOUND on. */
static char *find_remedy_from(const struct remedy_rule *found, enum remedy_on on,
                              const struct remedy_facts *facts, const struct remedy_rule **rule)
{
    struct remedy_facts more = *facts;
    char *named = NULL;
    char *made;

    while (found->name && !does_rule_fit(found, on, facts))
        found++;
    if (!found->name)
        return NULL;
    choose_case(found, &more);
    if (on == ON_BREAK) { /* take the function at which the graph broke from torch's message */
        named = text_between(facts->cause.text, "<function ", " at 0x");
        if (!named)
            named = text_between(facts->cause.text, "the function `", "`");
        more.cause.source = named ? named : "it";
    } else if (on == ON_DEATH && facts->torch &&
               (named = text_between(facts->cause.text, "because ", " got deallocated"))) {
        more.cause.source = named;
    }
    if (rule)
        *rule = found;
    made = make_sentence(found->text, &more);
    free(named);
    return made;
}

char *remedy_find_text(enum remedy_on on, const struct remedy_facts *facts,
                       const struct remedy_rule **rule)
{
    return find_remedy_from(remedy_rules(), on, facts, rule);
}

char *remedy_find_next_text(enum remedy_on on, const struct remedy_facts *facts,
                            const struct remedy_rule **rule)
{
    const struct remedy_rule *next = *rule;

    /* skip the next rules of the same name, which are alternatives of the rule that was found */
    while (next->name && !strcmp(next->name, (*rule)->name))
        next++;
    return (*rule)->beside ? find_remedy_from(next, on, facts, rule) : NULL;
}
