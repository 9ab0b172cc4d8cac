/* tui/rates.c -- what a program does per second while its recording is followed. See tui/loop.h. */
#include "tui/loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "tui/lead.h"

enum { CALLS, HITS, COMPILES, RECOMPILES };
enum { MEMORY_COLUMNS = 18, BARS_LEAST = 3 };

/* The compile that runs longest: one has its row when it begins. */
static void compiling_look(struct rates *rates, struct db *db)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    rates->compiling[0] = 0;
    db_rows(row, db,
            "SELECT c.qualname, ?1 - m.start_ns FROM compile m JOIN code c USING(code_id) JOIN "
            "process p USING(process_id) WHERE m.end_ns IS NULL AND p.end_ns IS NULL ORDER BY "
            "m.start_ns LIMIT 1",
            (int64_t)now.tv_sec * 1000000000 + now.tv_nsec -
                db_meta_integer(db, "started_unix_ns", 0))
    {
        const char *name = query_text(row, 0, NULL);
        snprintf(rates->compiling, sizeof rates->compiling, "compiling %.*s for %" PRId64 " s  ",
                 (int)prose_cut(name, 50), name, query_integer(row, 1) / 1000000000);
    }
}

void rates_look(struct rates *rates, struct db *db)
{
    int64_t now_ms = clock_monotonic_ms();
    int64_t sums[RATES] = {[HITS] = rates->sums[HITS], [RECOMPILES] = rates->sums[RECOMPILES]};
    double seconds = (double)(now_ms - rates->at_ms) / 1e3;

    sums[CALLS] = db_integer(db, 0, "SELECT SUM(calls) FROM code_total");
    sums[COMPILES] = db_integer(db, 0, "SELECT COUNT(*) FROM compile");
    db_rows(row, db, schema_statement("tui/rates"), rates->lookup_id)
    {
        int64_t last = query_integer(row, 1);
        sums[HITS] += query_integer(row, 0);
        if (last > rates->lookup_id)
            rates->lookup_id = last;
    }
    if (sums[COMPILES] != rates->sums[COMPILES])
        sums[RECOMPILES] = db_integer(db, 0, "SELECT SUM(is_recompile) FROM compiles");
    if (rates->at_ms && seconds > 0) {
        memmove(rates->kept, rates->kept + 1, sizeof rates->kept - sizeof *rates->kept);
        for (int i = 0; i < RATES; i++)
            rates->kept[RATES_KEPT - 1][i] =
                sums[i] > rates->sums[i] ? (double)(sums[i] - rates->sums[i]) / seconds : 0;
        rates->looks += rates->looks < RATES_KEPT;
    }
    memcpy(rates->sums, sums, sizeof sums);
    rates->at_ms = now_ms;
    compiling_look(rates, db);
}

/* What is done per second now, with its last looks as bars in ROOM columns, the oldest first: of
 * each, or where that is too little of calls. Returns the bytes that it has. */
static size_t rates_put(const struct rates *rates, int room, char *line, size_t bytes)
{
    static const char *const names[RATES] = {"calls", "hits", "compiles", "recompiles"};
    char count[TABLE_HUMAN], bars[RATES_KEPT * 3 + 1];
    double heights[RATES_KEPT];
    int each = room / RATES - 1;
    size_t used = 0;

    for (int i = 0; i < RATES && used + 1 < bytes; i++) {
        int width = each >= BARS_LEAST ? each : i == CALLS ? room - 1 : 0;
        width = width < BARS_LEAST ? 0 : width < rates->looks ? width : rates->looks;
        for (int k = 0; k < width; k++)
            heights[k] = rates->kept[RATES_KEPT - width + k][i];
        spark_line(bars, heights, width);
        used +=
            (size_t)snprintf(line + used, bytes - used, "%s%s %s/s%s%s", i ? "  " : "", names[i],
                             table_count(count, (int64_t)(rates->kept[RATES_KEPT - 1][i] + 0.5)),
                             *bars ? " " : "", bars);
    }
    return used;
}

void rates_print(const struct rates *rates, int pid, int columns, char *line, size_t bytes)
{
    int compiling = snprintf(line, bytes, "%s", rates->compiling);
    size_t used =
        (size_t)compiling + rates_put(rates, 0, line + compiling, bytes - (size_t)compiling);
    char path[64];
    long pages = 0;
    FILE *file;

    used = (size_t)compiling + rates_put(rates, columns - (int)used - MEMORY_COLUMNS,
                                         line + compiling, bytes - (size_t)compiling);
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    file = pid > 0 ? fopen(path, "re") : NULL;
    if (file && fscanf(file, "%*d %ld", &pages) == 1 && used + 1 < bytes)
        snprintf(line + used, bytes - used, "  memory %.0f MB",
                 (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6);
    if (file)
        fclose(file);
}
