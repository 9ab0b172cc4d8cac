/* cmd/why/profile.c -- prints how long a function's calls took, on the page of `dyntrace why`. See
 * cmd/why/profile.h. schemas/profile.sql has the text. */
#include "cmd/why/profile.h"

#include "lib/json.h"
#include "trace/db.h"
#include "trace/doubts.h"

/* What bind_profile_parameters() binds to the parameters of a statement. */
struct profile_page {
    const struct why *why; /* borrowed */
    char *json;            /* owned: how long the function's calls took, as JSON */
};

static void bind_profile_parameters(const void *context, struct query *query)
{
    const struct profile_page *of = context;
    const struct why *why = of->why;
    const char *which = doubts_describe_stored_frames(why->db);
    const char *unstored = doubts_describe_unstored_frames(why->db);

    query_bind_text(query, 2, of->json);
    find_bind_ids(query, 3, &why->code);
    query_bind_text(query, 4, why->code.qualname);
    query_bind_text(query, 5, db_get_path(why->db));
    if (which)
        query_bind_text(query, 6, which);
    if (unstored)
        query_bind_text(query, 7, unstored);
}

void why_profile_print(const struct page_text *where, const struct why *why)
{
    static const char *const parts[] = {
        "profile/sums",
        "profile/bars",
        "profile/slowest",
        "profile/callers",
    };
    struct profile_page of = {.why = why};
    struct page_text page = {
        .out = where->out,
        .db = where->db,
        .way = where->way,
        .context = &of,
        .bind = bind_profile_parameters,
    };
    size_t bytes;
    struct json json = {.out = open_memstream(&of.json, &bytes)};

    profile_write_as_json(&why->profile, &json, NULL);
    fclose(json.out);
    for (size_t i = 0; i < array_count(parts); i++)
        page_text_print_rows(&page, parts[i], 0);
    free(of.json);
}
