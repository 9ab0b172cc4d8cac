/* collector/settings.c -- finds settings of `run --set` that did nothing.
 *
 * Runs in: the collector.
 *
 * A process reports for each setting, by the setting's number, that it was used, or why it could
 * not be (python/dyntrace/_settings.py). Both are kept in `state`, so that the next collector has
 * them. At the end a setting that no process used is an error of `run`, and row `settings_unused`
 * of `meta`. */
#include <sys/param.h>

#include "collector/launch.h"
#include "collector/traced.h"
#include "lib/json.h"

/* FILE holds strings one after the other, and TEXT is one of them. Return the string that comes
 * COUNT strings later. */
static const char *skip_strings(const struct session_file *file, const char *text, uint32_t count)
{
    const char *end = (const char *)file + file->bytes;

    for (uint32_t i = 0; i < count && text < end; i++)
        text += strlen(text) + 1;
    return text;
}

/* Return the session's first setting. Each further setting follows the NUL of the one before. */
static const char *first_setting(const struct session_file *file)
{
    return skip_strings(file, file->text, file->globs + 2);
}

static uint32_t number_of_settings(const struct session_file *file)
{
    return MIN(file->settings, SETTINGS_MAX);
}

void settings_write_meta(struct collector *c)
{
    const struct session_file *file = c->session->file;
    const char *first = first_setting(file);
    const char *end = skip_strings(file, first, file->settings);
    char *made;

    if (!number_of_settings(file) || first >= end)
        return;
    made = json_array(first, (size_t)(end - first));
    recorder_set_meta(c->recorder, "settings", made, 0);
    free(made);
}

void secrets_write_meta(struct collector *c)
{
    const struct session_file *file = c->session->file;
    const char *first = skip_strings(file, first_setting(file), file->settings);
    const char *end = skip_strings(file, first, file->secrets);
    char *made = json_array(first, (size_t)(end - first));

    recorder_set_meta(c->recorder, "redact", file->keep_secrets ? "off" : made, 0);
    if (c->session->again.redacted)
        recorder_set_meta(c->recorder, "command_redacted", NULL, 1);
    free(made);
}

/* Note in STATE why setting NUMBER was refused, as a line "NUMBER WHY", if there is room. */
static void add_refusal(struct state_header *state, int64_t number, const struct fact_text *why)
{
    char *refusals = state->setting_refusals;
    size_t room = sizeof state->setting_refusals;
    size_t used = strnlen(refusals, room);
    int length = (int)MIN(why->bytes, 300);
    const char *line_end = memchr(why->text, '\n', (size_t)length);

    if (line_end)
        length = (int)(line_end - why->text);
    snprintf(refusals + used, room - used, "%d %.*s\n", (int)number, length, why->text);
}

void settings_note_use(struct collector *c, const struct fact_SETTING *fact)
{
    struct state_header *state = &c->state.file->header;
    uint64_t bit;

    if (fact->setting < 0 || fact->setting >= SETTINGS_MAX)
        return;
    bit = UINT64_C(1) << fact->setting;
    if (!fact->why.bytes) {
        state->settings_used |= bit;
        return;
    }
    if (state->settings_refused & bit)
        return;
    state->settings_refused |= bit;
    add_refusal(state, fact->setting, &fact->why);
}

/* Return why setting NUMBER was refused, as a text in STATE of LENGTH bytes. Returns NULL if that
 * is not known. */
static const char *find_refusal(const struct state_header *state, uint32_t number, int *length)
{
    const char *line = state->setting_refusals;

    while (*line) {
        char *words;
        unsigned long found = strtoul(line, &words, 10);
        if (*words == ' ' && found == number) {
            *length = (int)strcspn(words + 1, "\n");
            return words + 1;
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return NULL;
}

/* Return why setting NUMBER did nothing, and set LENGTH to the bytes to print. Returns NULL if the
 * setting was used. */
static const char *find_reason_without_effect(const struct state_header *state, uint32_t number,
                                              int *length)
{
    const uint64_t bit = UINT64_C(1) << number;
    const char *why;

    *length = INT_MAX;
    if (state->settings_refused & bit) {
        why = find_refusal(state, number, length);
        return why ? why : "cannot be set";
    }
    if (state->settings_used & bit)
        return NULL;
    return "matched nothing";
}

void settings_report_without_effect(struct collector *c, struct collector_result *result)
{
    const struct session_file *file = c->session->file;
    struct state_header *state = &c->state.file->header;
    const char *setting = first_setting(file);
    const char *end = (const char *)file + file->bytes;
    const size_t room = sizeof result->settings;
    size_t used = 0;

    if (c->salvaged) /* the state was lost, so it is not known which settings were used */
        return;
    state->setting_refusals[sizeof state->setting_refusals - 1] = 0;
    for (uint32_t i = 0; i < number_of_settings(file); i++) {
        int length;
        const char *why = find_reason_without_effect(state, i, &length);
        if (setting >= end)
            break;
        if (why && used < room)
            used += (size_t)snprintf(result->settings + used, room - used, "%s: %.*s\n", setting,
                                     length, why);
        setting += strlen(setting) + 1;
    }
    if (*result->settings)
        recorder_set_meta(c->recorder, "settings_unused", result->settings, 0);
}
