/* cmd/report/sections.c -- the tables of `dyntrace report`, as data. See cmd/report/report.h.
 *
 * Runs in: the viewer.
 *
 * A new table is a statement in schemas/report.sql and a row here. */
#include "cmd/report/report.h"

#include <string.h>

#define FUNCTION {'a', 0, CELL_CODE, "function", "", 0}, {'b', 'c', CELL_WHERE, "where", "", 0}

static const struct column threads[] = {
    {'c', 0, CELL_NUMBER, "pid", "", 0}, {'d', 0, CELL_NUMBER, "tid", "", 0}, {'e', 0, CELL_TEXT, "name", "", 0}, {0},
};

static const struct column compiles[] = {
    FUNCTION,
    {'d', 0, CELL_COUNT, "compiles", "that made code", 0},
    {'e', 0, CELL_COUNT, "recompiles", "in a process whose cache had held code for it", 0},
    {'f', 0, CELL_COUNT, "breaks", "graph breaks", 0},
    {'g', 0, CELL_COUNT, "without code", "attempts that made none", 0},
    {'h', 0, CELL_TIME, "time", "in the compiler", 0},
    {'i', 0, CELL_COUNT, "at the limit", "times it was not compiled for that", 0},
    {'j', 0, CELL_COUNT, "failed", "the compiler raised", 0},
    {'k', 0, CELL_TEXT, "ended", "", 0},
    {0},
};

static const struct column causes[] = {
    FUNCTION,
    {'d', 0, CELL_COUNT, "recompiles", "", 0},
    {'e', 0, CELL_CODE, "guard", "its kind", 0},
    {'m', 0, CELL_CODE, "looked at", "", 80},
    {'g', 0, CELL_CODE, "wanted first", "", 0},
    {'h', 0, CELL_CODE, "saw", "one after the other", 60},
    {'i', 0, CELL_TIME, "first at", "", 0},
    {'j', 0, CELL_TIME, "last at", "", 0},
    {0},
};

static const struct column each[] = {
    {'c', 0, CELL_TIME, "at", "", 0},
    {'b', 0, CELL_CODE, "compile", "", 0},
    {'d', 0, CELL_TIME, "took", "", 0},
    {'e', 0, CELL_CODE, "function", "", 0},
    {'f', 'g', CELL_WHERE, "where", "", 0},
    {'h', 0, CELL_CODE, "did not fit", "the older entry", 0},
    {'i', 0, CELL_CODE, "guard", "", 0},
    {'j', 0, CELL_CODE, "looked at", "", 0},
    {'k', 0, CELL_CODE, "wanted", "", 0},
    {'l', 0, CELL_CODE, "saw", "", 0},
    {'m', 0, CELL_TEXT, "in words", "", 0},
    {'n', 0, CELL_TEXT, "how", "observed when it happened, or asked afterwards", 0},
    {0},
};

static const struct column breaks[] = {
    {'a', 0, CELL_CODE, "function", "", 0},
    {'b', 'j', CELL_WHERE, "where", "", 0},
    {'e', 0, CELL_COUNT, "times", "", 0},
    {'f', 0, CELL_REASON, "reason", "", 100},
    {'i', 0, CELL_CODE, "the rest is", "function made of what comes after", 0},
    {0},
};

static const struct column limits[] = {
    FUNCTION,
    {'d', 0, CELL_TIME, "since", "", 0},
    {'e', 0, CELL_COUNT, "times", "", 0},
    {'f', 0, CELL_TEXT, "reason", "", 0},
    {0},
};

static const struct column guards[] = {
    {'a', 0, CELL_CODE, "guard", "its kind", 0},
    {'b', 0, CELL_CODE, "looks at", "", 80},
    {'c', 0, CELL_COUNT, "evaluations", "", 0},
    {'d', 0, CELL_COUNT, "failures", "", 0},
    {'e', 0, CELL_TIME, "time", "an estimate: a check's time divided evenly among the guards that ran", 0},
    {'f', 0, CELL_COUNT, "entries", "that have it", 0},
    {0},
};

static const struct column functions[] = {
    FUNCTION,
    {'e', 0, CELL_COUNT, "calls", "frames entered", 0},
    {'f', 0, CELL_TIME, "total", "callees included", 0},
    {'g', 0, CELL_TIME, "self", "callees excluded", 0},
    {'h', 0, CELL_TIME, "per call", "", 0},
    {'i', 0, CELL_COUNT, "raised", "left by an exception", 0},
    {0},
};

const struct section report_threads = {"threads", "Threads", "report/threads", "", true, threads, "cde", NULL};

const struct section report_sections[] = {
    {"compiles", "Compiles, most recompiles first", "report/compiles", "Nothing was compiled.", false, compiles,
     "defhkab", "abdefghij"},
    {"recompiles", "Recompiles, by what made them needed", "report/causes", "Nothing was compiled again.", false,
     causes, "demhab", "dabemghij"},
    {"each-recompile", "Each recompile", "report/recompiles", "Nothing was compiled again.", false, each, NULL,
     "cbdefhijklmn"},
    {"breaks", "Graph breaks, by place", "report/breaks", "No graph broke.", false, breaks, "efab", "eabfi"},
    {"limits", "Functions that are not compiled any more", "report/limits", "None reached the limit.", false, limits,
     NULL, "abdef"},
    {"guards", "Guards, most costly first (a check's time is divided evenly among those that ran)", "report/guards",
     "No guard was checked.",
     false, guards, "cdeab", "abcdef"},
    {"functions", "Functions, most own time first", "report/functions", "No frames were recorded.", true, functions,
     "efghiab", "abefghi"},
    {0},
};

const struct column *section_column(const struct section *section, const char *order, int i)
{
    const struct column *column = section->columns;

    while (column->at != order[i])
        column++;
    return column;
}
