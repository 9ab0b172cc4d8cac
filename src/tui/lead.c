/* tui/lead.c -- reads the templates of views, and finds what rows lead to. See tui/lead.h. */
#include "tui/lead.h"

#include "schema.h"

#define SAME_FUNCTION                                                                   \
    "(SELECT s.code_id FROM functions s JOIN functions o ON o.code_id = {code_id} AND " \
    "s.function_id = o.function_id AND s.kind IS o.kind)"

void view_template_open(struct template *template, const char *name, const char *codes)
{
    struct arena arena = {0};
    const char *text = schema_statement(arena_print(&arena, "tui/%s", name));

    template_open(template, text_replace(&arena, text, "$codes", codes ? codes : SAME_FUNCTION));
    arena_free(&arena);
}

struct target target_from_id_column(const char *name, int64_t id)
{
    static const struct {
        const char *name;
        enum view_kind kind;
        int sign;
    } ids[] = {
        {"compile_id", VIEW_COMPILE, 1},      {"lookup_id", VIEW_CALL, -1},
        {"frame_id", VIEW_CALL, 1},           {"graph_break_id", VIEW_BREAK, 1},
        {"code_id", VIEW_FUNCTION, 1},        {"origin_code_id", VIEW_FUNCTION, 1},
        {"resume_code_id", VIEW_FUNCTION, 1}, {"cache_entry_id", VIEW_ENTRY, 1},
        {"process_id", VIEW_PROCESS, 1},
    };

    for (size_t i = 0; i < array_count(ids); i++)
        if (id > 0 && !strcmp(ids[i].name, name))
            return (struct target){.kind = ids[i].kind, .id = ids[i].sign * id};
    return (struct target){0};
}

struct target target_from_template(struct arena *arena, const struct row *row, const char *text)
{
    const char *lead = strstr(text, "=> ");
    const char *where, *title, *at, *id;
    struct target target = {0};

    if (!lead)
        return target;
    lead += strlen("=> ");
    id = strchrnul(lead, ' ');
    title = strstr(lead, " | ");
    where = strstr(lead, " WHERE ");
    at = strstr(lead, " AT {");
    target.kind = view_named(lead, (size_t)(id - lead));
    if (at)
        row_integer_of_field(row, at, &target.at_ns);
    if (!strncmp(id, " {", 2) && !row_integer_of_field(row, id, &target.id))
        target.kind = VIEW_NONE;
    if (target.kind && where) {
        const char *condition = where + strlen(" WHERE ");
        const char *end = title ? title : condition + strlen(condition);
        target.where =
            template_print(arena, row, TEMPLATE_SQL, condition, (size_t)(end - condition));
    }
    if (target.kind && title)
        target.title = row_print(arena, row, title + strlen(" | "), TEMPLATE_PLAIN);
    return target;
}
