/* trace/findings.c -- prints what to look at first in a trace. See trace/findings.h. */
#include "trace/findings.h"

#include "lib/json.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/page_text.h"
#include "trace/result.h"

static void bind_file_name(const void *context, struct query *query)
{
    if (context)
        query_bind_text(query, 2, context);
}

void findings_print(struct db *db, FILE *out, enum template_way way, const char *file)
{
    struct page_text page = {
        .out = out,
        .db = db,
        .way = way,
        .context = file,
        .bind = bind_file_name,
    };

    page_text_print_rows(&page, "findings/time", 0);
    page_text_print_rows(&page, "findings/list", 0);
}

static void write_finding_as_json(struct json *json, const char *key, struct query *row)
{
    json_object(json, key);
    for (int i = 0; i < query_columns(row); i++)
        result_put_json_member(json, query_name(row, i), row, i);
    json_end(json);
}

void findings_write_as_json(struct db *db, struct json *json)
{
    db_rows(row, db, "SELECT * FROM run_times")
    {
        write_finding_as_json(json, "time", row);
    }
    json_list(json, "findings");
    json_begin_lines(json);
    db_rows(row, db, "SELECT * FROM findings")
    {
        write_finding_as_json(json, NULL, row);
    }
    json_end(json);
}
