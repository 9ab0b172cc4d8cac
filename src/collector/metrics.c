/* collector/metrics.c -- counters as Prometheus text. See collector/metrics.h.
 *
 * Runs in: the collector. The format is Prometheus's text format 0.0.4. All metrics have one label,
 * the trace, so that the files of several recordings can be read together. */
#include "collector/metrics.h"

#include <errno.h>
#include <sqlite3.h>

#include "collector/trace_files.h"
#include "schema.h"
#include "vocabulary.h"

#define EVERY_NS UINT64_C(5000000000)

/* Write TEXT as the value of a label. */
static void write_label(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", out);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
}

static void write_metric(FILE *out, const struct collector *c, const char *name, const char *kind,
                         const char *help, double value)
{
    fprintf(out, "# HELP dyntrace_%s %s\n# TYPE dyntrace_%s %s\ndyntrace_%s{trace=\"", name, help,
            name, kind, name);
    write_label(out, c->session->trace);
    fprintf(out, "\"} %.17g\n", value);
}

/* Write the metrics that the statement recorder/metrics returns. A row has a metric's name, kind,
 * help and value. */
static void write_metrics_from_rows(FILE *out, struct collector *c)
{
    sqlite3_stmt *rows = NULL;

    recorder_in_sqlite = 1;
    sqlite3_prepare_v2(recorder_database(c->recorder), schema_statement("recorder/metrics"), -1,
                       &rows, NULL);
    while (sqlite3_step(rows) == SQLITE_ROW)
        write_metric(out, c, (const char *)sqlite3_column_text(rows, 0),
                     (const char *)sqlite3_column_text(rows, 1),
                     (const char *)sqlite3_column_text(rows, 2), sqlite3_column_double(rows, 3));
    sqlite3_finalize(rows);
    recorder_in_sqlite = 0;
}

/* Write the number of lookups for each outcome. */
static void write_lookup_metrics(FILE *out, const struct collector *c)
{
    static const char *const words[OUTCOMES] = {
#define X(number, NAME, word, ...) [number] = word,
        OUTCOME_ROWS(X)
#undef X
    };

    fputs("# HELP dyntrace_lookups_total Lookups in a compiler's cache, by outcome.\n"
          "# TYPE dyntrace_lookups_total counter\n",
          out);
    for (int outcome = 0; outcome < OUTCOMES; outcome++) {
        if (!c->lookup_counts[outcome])
            continue;
        fputs("dyntrace_lookups_total{trace=\"", out);
        write_label(out, c->session->trace);
        fprintf(out, "\",outcome=\"%s\"} %llu\n", words[outcome],
                (unsigned long long)c->lookup_counts[outcome]);
    }
}

static void write_all_metrics(FILE *out, struct collector *c, bool goes_on)
{
    write_metric(out, c, "recording", "gauge", "Whether the program is being recorded: 1 or 0.",
                 goes_on);
    write_metric(out, c, "start_time_seconds", "gauge", "When the recording began, as a unix time.",
                 (double)c->session->file->start_unix_ns / 1e9);
    write_metric(out, c, "bytes", "gauge", "Bytes of the trace on the disk.",
                 (double)session_count_trace_bytes(c->session));
    write_metric(out, c, "recorder_cpu_seconds_total", "counter", "Processor time of the recorder.",
                 (double)recorder_cpu_ns() / 1e9);
    write_metric(out, c, "waits_total", "counter",
                 "How often a thread that has ended had waited for the recorder.",
                 (double)c->waits);
    write_lookup_metrics(out, c);
    write_metrics_from_rows(out, c);
}

/* Write a new file in the same directory, and rename it to the name of the old one. Returns false
 * with errno. */
static bool replace_metrics_file(struct collector *c, bool goes_on)
{
    const char *path = c->session->metrics;
    char beside[sizeof c->session->metrics + 32];
    FILE *out;
    bool done;

    snprintf(beside, sizeof beside, "%s.%d", path, (int)getpid());
    unlink(beside);
    out = fopen(beside, "wxe");
    if (!out)
        return false;
    fchmod(fileno(out), 0644); /* readable by all, because node_exporter runs as another user */
    write_all_metrics(out, c, goes_on);
    done = !ferror(out);
    done = !fclose(out) && done && !rename(beside, path);
    if (!done)
        unlink(beside);
    return done;
}

void metrics_write(struct collector *c, bool now)
{
    uint64_t at = clock_monotonic_ns();

    bool is_time = now || at - c->metrics_ns >= EVERY_NS;

    if (!c->session->metrics[0] || !is_time)
        return;
    c->metrics_ns = at;
    if (replace_metrics_file(c, !c->metrics_write_last) || c->metrics_failed)
        return;
    c->metrics_failed = true;
    collector_record_loss(c, 0, 0, "metrics: %s cannot be written (%s)", c->session->metrics,
                          strerror(errno));
}

void metrics_write_last(struct collector *c)
{
    c->metrics_write_last = true;
    metrics_write(c, true);
}
