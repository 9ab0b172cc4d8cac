/* fuzz_trace.c -- hostile trace files, read by every command that reads one.
 *
 * tests/tui_trace.py makes a whole trace. The input is a command and a list of changes to that trace, 8 bytes each:
 * what to change, which table, column and row, to which value. So they are traces that SQLite opens, with rows,
 * types and schemas that no recorder writes; a change may also lie over the bytes of the file's pages. */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "commands.h"

/* Make the whole trace in the file GOOD by tests/tui_trace.py, which lies beside our source. */
static void good_make(const char *good)
{
    const char *here = __FILE__, *end = strrchr(here, '/');
    int folder = end ? (int)(end + 1 - here) : 0;
    char command[1024];

    snprintf(command, sizeof command, "python3 '%.*s../tui_trace.py' '%s' 60", folder, here, good);
    if (system(command))
        abort();
}

static char good[64], bad[64];
static struct {
    char name[32], columns[32][32];
    int count;
} tables[32];
static int table_count;
static char *good_bytes;
static size_t good_size;

static const char *const values[] = {
    "NULL", "0", "1", "-1", "2", "7", "9223372036854775807", "-9223372036854775808", "4294967296", "1e308", "-1e-300", "9e999",
    "''", "'x'", "x''", "x'00ff80'", "zeroblob(70000)", "randomblob(300)", "'[1, 2'", "'[[[[[[[[[[1]]]]]]]]]]'", "'{\"a\": [1e999]}'",
    "char(27) || '[31m' || char(7) || char(0) || 'after'", "char(55296) || char(65279) || char(8238)", "replace(hex(zeroblob(3000)), '00', 'ab\n')",
    "'L[''x''][' || char(39) || ']'", "'</script><b>'", "'=1+1'", "'%s%n%d'", "'../../../etc/passwd'", "'EQUALS_MATCH'", "'TENSOR_MATCH'",
    "'check_tensor(L[''x''], Tensor, size=[1, 99999999999999999999, -3], stride=['", "'x: Tensor float32[4, , 9999999999999999999] cpu, y: int 1, : , x: '",
    "'torch_dynamo_resume_in_f_at_4'", "'1/1_1'", "'compiled'", "'all'", "'off'", "'recording'", "'shim'", "'observe'", "1.5", "'9'", "'0x10'",
};
static const char *const schemas[] = { /* %s: a table, twice */
    "DROP TABLE %s; --%s", "DELETE FROM %s; --%s", "ALTER TABLE %s ADD COLUMN more GENERATED ALWAYS AS (zeroblob(1000000)); --%s",
    "ALTER TABLE %s RENAME TO old; CREATE VIEW %s AS SELECT * FROM old",
    "ALTER TABLE %s RENAME TO old; CREATE VIEW %s AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x FROM n",
    "ALTER TABLE %s RENAME TO old; CREATE TABLE %s AS SELECT * FROM old UNION ALL SELECT * FROM old",
    "CREATE TRIGGER t AFTER INSERT ON %s BEGIN DELETE FROM meta; END; --%s", "CREATE INDEX i ON %s(rowid || 'x'); --%s",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'INTEGER', 'TEXT COLLATE NOCASE') WHERE name = '%s' --%s",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET rootpage = 2 WHERE name = '%s' --%s",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET rootpage = 99999 WHERE name = '%s' --%s",
    "PRAGMA user_version = 999; --%s%s", "UPDATE meta SET value = 'recording' WHERE key = 'state'; --%s%s", "PRAGMA application_id = 7; --%s%s",
    "INSERT INTO %s SELECT * FROM %s", "PRAGMA encoding = 'UTF-16'; --%s%s", "ALTER TABLE %s DROP COLUMN kind; --%s",
};

static void sql(sqlite3 *db, const char *text)
{
    sqlite3_exec(db, text, NULL, NULL, NULL);
}

static void tables_read(sqlite3 *db)
{
    sqlite3_stmt *list, *columns;

    sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", -1, &list, NULL);
    while (sqlite3_step(list) == SQLITE_ROW && table_count < 32) {
        char *name = tables[table_count].name;
        snprintf(name, sizeof tables->name, "%s", (const char *)sqlite3_column_text(list, 0));
        sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?1)", -1, &columns, NULL);
        sqlite3_bind_text(columns, 1, name, -1, SQLITE_STATIC);
        while (sqlite3_step(columns) == SQLITE_ROW && tables[table_count].count < 32)
            snprintf(tables[table_count].columns[tables[table_count].count++], 32, "%s", (const char *)sqlite3_column_text(columns, 0));
        sqlite3_finalize(columns);
        table_count++;
    }
    sqlite3_finalize(list);
}

static void setup(void)
{
    FILE *file;
    sqlite3 *db;

    fuzz_begin();
    fuzz_path(good, sizeof good, "good.db");
    fuzz_path(bad, sizeof bad, "bad.db");
    good_make(good);
    if (sqlite3_open(good, &db))
        abort();
    tables_read(db);
    sqlite3_close(db);
    file = fopen(good, "r");
    fseek(file, 0, SEEK_END);
    good_size = (size_t)ftell(file);
    rewind(file);
    good_bytes = malloc(good_size);
    if (fread(good_bytes, 1, good_size, file) != good_size)
        abort();
    fclose(file);
}

/* One change, by SQL. */
static void change(sqlite3 *db, const uint8_t *b)
{
    int t = b[1] % table_count;
    const char *table = tables[t].name, *column = tables[t].columns[b[2] % (tables[t].count ? tables[t].count : 1)];
    const char *value = values[b[3] % (sizeof values / sizeof *values)];
    char text[1024];

    switch (b[0] % 8) {
    case 0:
    case 1:
    case 2:
        snprintf(text, sizeof text, "UPDATE OR IGNORE \"%s\" SET \"%s\" = %s WHERE rowid %% %d = %d", table, column, value, b[4] % 5 + 1, b[5] % 5);
        break;
    case 3:
        snprintf(text, sizeof text, "UPDATE OR IGNORE \"%s\" SET \"%s\" = \"%s\" + %d", table, column, column, (int8_t)b[4]);
        break;
    case 4:
        snprintf(text, sizeof text, "DELETE FROM \"%s\" WHERE rowid %% %d = %d", table, b[4] % 5 + 1, b[5] % 5);
        break;
    case 5:
        snprintf(text, sizeof text, "INSERT OR IGNORE INTO \"%s\"(\"%s\") VALUES (%s)", table, column, value);
        break;
    case 6: /* this column from another row */
        snprintf(text, sizeof text, "UPDATE OR IGNORE \"%s\" SET \"%s\" = (SELECT \"%s\" FROM \"%s\" ORDER BY rowid LIMIT 1 OFFSET %d)", table,
                 column, column, table, b[4]);
        break;
    default:
        snprintf(text, sizeof text, schemas[b[4] % (sizeof schemas / sizeof *schemas)], table, table);
        break;
    }
    sql(db, text);
}

int fuzz_one(const uint8_t *data, size_t bytes)
{
    static const struct {
        const struct command *command;
        const char *words[6]; /* NULL-terminated; %1 is the trace, %2 one that is whole, %3 a file to make */
    } runs[] = {
        {&command_report, {"report", "%1"}}, {&command_report, {"report", "%1", "--json"}}, {&command_report, {"report", "%1", "--html", "%3", "--force"}},
        {&command_why, {"why", "step", "%1", "--json"}}, {&command_why, {"why", "step", "%1", "--what-if"}}, {&command_show, {"show", "step", "%1", "--full"}},
        {&command_check, {"check", "%1", "--max-recompiles", "0", "--max-guard-us=1"}}, {&command_diff, {"diff", "%1", "%2"}},
        {&command_diff, {"diff", "%2", "%1", "--json"}}, {&command_export, {"export", "%1", "--format", "chrome"}},
        {&command_export, {"export", "%1", "--format", "jsonl"}}, {&command_export, {"export", "%1", "--format", "csv"}},
        {&command_export, {"export", "%1", "--format", "stacks"}}, {&command_fsck, {"fsck", "%1"}}, {&command_replay, {"replay", "%1", "--verify"}},
        {&command_replay, {"replay", "%1", "--what-if", "dynamic=all", "--json"}}, {&command_replay, {"replay", "%1", "--what-if", "recompile_limit=1"}},
        {&command_replay, {"replay", "%1", "--to", "last miss"}}, {&command_tui, {"tui", "%1", "--dump"}},
        {&command_tui, {"tui", "%1", "--dump", "--keys", "g Enter Enter"}}, {&command_sql, {"sql", "%1", "hot-functions"}},
        {&command_merge, {"merge", "%1", "%2", "-o", "%3", "--force"}},
    };
    char made[64], *argv[8] = {0};
    const char *const *words;
    sqlite3 *db;
    bool pages = false;

    if (!good_bytes)
        setup();
    if (!bytes)
        return 0;
    fuzz_write(bad, good_bytes, good_size);
    fuzz_path(made, sizeof made, "made");
    if (sqlite3_open(bad, &db) == SQLITE_OK)
        for (size_t at = 1; at + 8 <= bytes && at < 8 * 24; at += 8)
            (data[at] >= 250 ? (void)(pages = true) : change(db, data + at));
    sqlite3_close(db);
    if (pages) {
        int fd = open(bad, O_RDWR);
        struct stat status;
        for (size_t at = 1; at + 8 <= bytes && fstat(fd, &status) == 0; at += 8)
            if (data[at] >= 250 && pwrite(fd, data + at + 4, 4, (off_t)(((unsigned)data[at + 1] << 16 | (unsigned)data[at + 2] << 8 | data[at + 3]) %
                                                                      (unsigned)status.st_size)) < 0)
                abort();
        close(fd);
    }
    words = runs[data[0] % (sizeof runs / sizeof *runs)].words;
    for (int i = 0; i < 6 && words[i]; i++)
        argv[i] = (char *)(words[i][0] != '%' ? words[i] : words[i][1] == '1' ? bad : words[i][1] == '2' ? good : made);
    fuzz_run(runs[data[0] % (sizeof runs / sizeof *runs)].command, argv);
    return 0;
}
