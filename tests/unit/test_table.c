/* test_table.c -- what src/lib/table.c prints, compared with what it should. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/table.h"

static int failures;

static void same(const char *what, const char *found, const char *expected)
{
    if (!strcmp(found, expected))
        return;
    fprintf(stderr, "%s:\n  found    %s\n  expected %s\n", what, found, expected);
    failures++;
}

/* Print one table of two columns in FORMAT; ROWS times "x" and 7, then a long and a NULL cell. */
static char *printed(enum table_format format, int rows)
{
    char *text = NULL, longer[201];
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    struct table *table = table_open(out, format, 2, (const char *[]){"name", "n"});

    for (int i = 0; i < rows; i++) {
        table_put_string(table, "x");
        table_put_integer(table, 7);
    }
    memset(longer, 'y', 200);
    longer[200] = 0;
    table_put_text(table, longer, 200);
    table_put_null(table);
    if (!table_close(table))
        failures++;
    fclose(out);
    return text;
}

static void test_widths(void)
{
    char *text = printed(TABLE_ALIGNED, 1), *line;

    /* no terminal to ask: 80 columns, the widest is cut to fit */
    same("heading", strtok(text, "\n"), "name                                                                           n");
    line = strtok(NULL, "\n");
    same("row", line, "x                                                                              7");
    line = strtok(NULL, "\n");
    if (!strstr(line, "yyyy…  NULL"))
        same("cut", line, "...yyyy…  NULL");
    free(text);

    /* a wide cell after the widths were settled is cut to them */
    text = printed(TABLE_ALIGNED, 600);
    if (!strstr(text, "\nyyyyyyy…  NULL\n"))
        same("late", text + strlen(text) - 30, "yyyyyyy…  NULL");
    free(text);
}

static void test_tsv_and_json(void)
{
    char *text = printed(TABLE_TSV, 1);

    same("tsv", strtok(text, "y"), "name\tn\nx\t7\n");
    free(text);
    text = printed(TABLE_JSON, 1);
    same("json", strtok(text, "y"), "[\n {\"name\": \"x\", \"n\": 7},\n {\"name\": \"");
    free(text);
}

static void test_units(void)
{
    static const struct { int64_t n; const char *duration, *count; } cases[] = {
        {0, "0 ns", "0"}, {999, "999 ns", "999"}, {1000, "1 us", "1000"}, {1234567, "1.23 ms", "1.23 M"},
        {999999, "1.00 ms", "1.00 M"}, {-1500, "-1.5 us", "-1500"}, {1500000000, "1.5 s", "1.5 G"},
        {4200000, "4.2 ms", "4.2 M"}, {4200001, "4.20 ms", "4.20 M"}, {9995000, "10.0 ms", "10.0 M"}, {12000000, "12 ms", "12 M"},
        {500000, "500 us", "500 k"}, {100000000000, "1 min 40 s", "100 G"}, {7260000000000, "2 h 01 min", "7260 G"},
    };
    char made[TABLE_HUMAN];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        same("duration", table_duration(made, cases[i].n), cases[i].duration);
        same("count", table_count(made, cases[i].n), cases[i].count);
    }
    table_duration(made, INT64_MIN); /* only must not overflow */
    table_count(made, INT64_MAX);
}

static void test_reals(void)
{
    static const struct { double value; const char *text; } cases[] = {
        {0.1, "0.1"}, {1e300, "1e+300"}, {1.0 / 3, "0.3333333333333333"}, {2, "2"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);
        struct table *table = table_open(out, TABLE_TSV, 1, (const char *[]){"r"});
        table_omit_headings(table);
        table_put_real(table, cases[i].value);
        table_close(table);
        fclose(out);
        text[strcspn(text, "\n")] = 0;
        same("real", text, cases[i].text);
        free(text);
    }
}

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    test_widths();
    test_tsv_and_json();
    test_units();
    test_reals();
    return failures != 0;
}
