/* cmd/import/import.h -- from torch's own structured log to a trace.
 *
 * Runs in: the viewer.
 *
 * cmd/import/log.c    records of a file: their lines and text
 * schemas/import/     SQL: records become processes, code, compiles, breaks, ...
 * cmd/import/text.c   what torch has in text alone: the tree of guards, and which of them made a recompile necessary
 * cmd/import.c    the command */
#ifndef DYNTRACE_IMPORT_H
#define DYNTRACE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer;

/* A record: a line "V1121 15:44:00.566000 28697 torch/_dynamo/utils.py:2350] {...}", then its text, each line after a tab. */
struct record {
    const char *json, *text; /* borrowed until the next one; TEXT NULL: it has none */
    int64_t pid;
    int64_t month, day, ns;  /* of the machine's local day: NS since midnight */
};

struct log;

/* NULL: it was said why. */
struct log *log_open(const char *path);

/* The next record that is whole; false at the end. What is none, cut short, too long, or without the text that it
 * announces, is passed over and counted. */
bool log_next(struct log *log, struct record *record);
int64_t log_broken(const struct log *log); /* lines and records passed over */
int64_t log_place(const struct log *log);  /* bytes read */
bool log_failed(const struct log *log);    /* it could not be read to its end: said */
void log_close(struct log *log);

/* What schemas/import/map.sql has left as text in WRITER becomes guards, causes and breaks. False: it was said why. */
bool import_texts(struct writer *writer);

#endif
