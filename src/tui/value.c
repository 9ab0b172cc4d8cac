/* tui/value.c -- values of rows: as text, and in order. See tui/list.h.
 *
 * Runs in: the viewer. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "lib/table.h"
#include "tui/list.h"

enum { SPARK = 24 };

/* "3:10,4:7" -> bars: how many there were in each of SPARK stretches of the whole. */
static void spark_print(char *made, const char *text)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    long long counts[SPARK] = {0}, most = 0;

    for (const char *p = text; *p; p += *p == ',') {
        char *end;
        long long bucket = strtoll(p, &end, 10), count = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
        if (end == p)
            break;
        if (bucket >= 0 && bucket < SPARK && count > 0)
            counts[bucket] += count < LLONG_MAX / 4 ? count : LLONG_MAX / 4;
        p = end + strcspn(end, ",");
    }
    for (int i = 0; i < SPARK; i++)
        most = counts[i] > most ? counts[i] : most;
    made[0] = 0;
    for (int i = 0; i < SPARK && most; i++)
        strcat(made, !counts[i] ? "·" : bars[(int)((double)counts[i] / (double)most * 7.999)]);
}

void value_print(char *made, const struct value *value, enum cell_format format)
{
    double number = value->type == QUERY_REAL ? value->real : (double)value->integer;
    int64_t whole = value->type == QUERY_REAL ? (int64_t)(fabs(number) < 9e18 ? number : 0) : value->integer;

    made[0] = 0;
    if (value->type == QUERY_NULL) {
        strcpy(made, format == AS_TEXT || format == AS_PATH || format == AS_SPARK || format == AS_OUTCOME ? "" : "-");
        return;
    }
    if (value->type == QUERY_TEXT && format == AS_SPARK) {
        spark_print(made, value->text);
        return;
    }
    if (value->type == QUERY_TEXT) {
        const char *text = format == AS_PATH ? prose_path(value->text) : value->text;
        snprintf(made, CELL_TEXT, "%.*s", (int)prose_cut(text, CELL_TEXT - 8), text);
        return;
    }
    switch (format) {
    case AS_COUNT:
    case AS_ALARM_COUNT:
        table_count(made, whole);
        break;
    case AS_DURATION:
        table_duration(made, whole);
        break;
    case AS_TIME:
        snprintf(made, CELL_TEXT, "%.6f", number / 1e9);
        break;
    case AS_PERCENT:
        snprintf(made, CELL_TEXT, "%.1f %%", number);
        break;
    default:
        if (value->type == QUERY_REAL)
            snprintf(made, CELL_TEXT, "%.6g", number);
        else
            snprintf(made, CELL_TEXT, "%" PRId64, whole);
        break;
    }
}

int value_compare(const struct value *a, const struct value *b)
{
    double x, y;

    if (a->type == QUERY_NULL || b->type == QUERY_NULL)
        return (a->type != QUERY_NULL) - (b->type != QUERY_NULL);
    if (a->type == QUERY_TEXT && b->type == QUERY_TEXT)
        return strcmp(a->text, b->text);
    if (a->type == QUERY_TEXT || b->type == QUERY_TEXT)
        return (a->type == QUERY_TEXT) - (b->type == QUERY_TEXT);
    if (a->type == QUERY_INTEGER && b->type == QUERY_INTEGER)
        return (a->integer > b->integer) - (a->integer < b->integer);
    x = a->type == QUERY_REAL ? a->real : (double)a->integer;
    y = b->type == QUERY_REAL ? b->real : (double)b->integer;
    return (x > y) - (x < y);
}
