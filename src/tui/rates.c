/* tui/rates.c -- computes and prints how many calls, hits and compiles a program makes per second.
 * See tui/loop.h. */
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

/* Describe the compile that has been running longest, because a compile has a row in the trace as
 * soon as it begins. */
static void describe_running_compile(struct rates *rates, struct db *db)
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
                 (int)prose_length_without_cut_character(name, 50), name,
                 query_integer(row, 1) / 1000000000);
    }
}

/* Return by how much a count increased per second: from BEFORE to NOW, in SECONDS. */
static double compute_rate(int64_t now, int64_t before, double seconds)
{
    return now > before ? (double)(now - before) / seconds : 0;
}

void rates_read_counts(struct rates *rates, struct db *db)
{
    int64_t now_ms = clock_monotonic_ms();
    double seconds = (double)(now_ms - rates->at_ms) / 1e3;
    int64_t sums[RATES];

    memcpy(sums, rates->sums, sizeof sums);
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
        double *latest = rates->kept[RATES_KEPT - 1];
        memmove(rates->kept, rates->kept + 1, sizeof rates->kept - sizeof *rates->kept);
        for (int i = 0; i < RATES; i++)
            latest[i] = compute_rate(sums[i], rates->sums[i], seconds);
        if (rates->looks < RATES_KEPT)
            rates->looks++;
    }
    memcpy(rates->sums, sums, sizeof sums);
    rates->at_ms = now_ms;
    describe_running_compile(rates, db);
}

/* Return how wide the bars of the rate with the index I are, if the bars of all rates share ROOM
 * columns. If they would be too narrow, only the rate of calls gets bars. */
static int width_of_bars(const struct rates *rates, int room, int i)
{
    int width = room / RATES - 1;

    if (width < BARS_LEAST)
        width = i == CALLS ? room - 1 : 0;
    if (width < BARS_LEAST)
        return 0;
    return width < rates->looks ? width : rates->looks;
}

/* Print the latest rates into LINE, each with bars for its last looks (the oldest first), in ROOM
 * columns. Returns the number of bytes printed. */
static size_t print_rates_with_bars(const struct rates *rates, int room, char *line, size_t bytes)
{
    static const char *const names[RATES] = {"calls", "hits", "compiles", "recompiles"};
    char count[TABLE_HUMAN], bars[RATES_KEPT * 3 + 1];
    double heights[RATES_KEPT];
    size_t used = 0;

    for (int i = 0; i < RATES && used + 1 < bytes; i++) {
        int width = width_of_bars(rates, room, i);
        double now = rates->kept[RATES_KEPT - 1][i];
        for (int k = 0; k < width; k++)
            heights[k] = rates->kept[RATES_KEPT - width + k][i];
        spark_make_line(bars, heights, width);
        table_count(count, (int64_t)(now + 0.5));
        used += (size_t)snprintf(line + used, bytes - used, "%s%s %s/s%s%s", i ? "  " : "",
                                 names[i], count, *bars ? " " : "", bars);
    }
    return used;
}

/* Return the resident memory of process PID in MB, or -1 if it is not known. */
static double read_memory_of_process(int pid)
{
    char path[64];
    long pages = 0;
    bool known;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    file = pid > 0 ? fopen(path, "re") : NULL;
    if (!file)
        return -1;
    known = fscanf(file, "%*d %ld", &pages) == 1;
    fclose(file);
    if (!known)
        return -1;
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

void rates_print(const struct rates *rates, int pid, int columns, char *line, size_t bytes)
{
    size_t compiling = (size_t)snprintf(line, bytes, "%s", rates->compiling);
    char *rest = line + compiling;
    size_t room = bytes - compiling;
    double memory = read_memory_of_process(pid);
    int left = columns - MEMORY_COLUMNS - (int)compiling;
    size_t used;

    /* print the rates once without room for bars, to learn how much room is left for bars */
    left -= (int)print_rates_with_bars(rates, 0, rest, room);
    used = print_rates_with_bars(rates, left, rest, room);
    if (memory >= 0 && used + 1 < room)
        snprintf(rest + used, room - used, "  memory %.0f MB", memory);
}
