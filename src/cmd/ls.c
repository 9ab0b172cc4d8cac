/* cmd/ls.c -- `dyntrace ls`: lists this user's recordings that are running. */
#include <time.h>

#include "cmd/recordings.h"
#include "command.h"
#include "lib/option.h"
#include "lib/table.h"

enum { MB = 1000000 };

static struct {
    bool json;
} given;

/* Write the local date and time of UNIX_NS to MADE, which has room for 32 bytes. Returns MADE. */
static const char *format_start_time(char *made, uint64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm local;

    strftime(made, 32, "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &local));
    return made;
}

static void print_recording_row(struct table *table, const struct recording *recording)
{
    char since[32];
    char size[32];

    snprintf(size, sizeof size, "%.1f MB", (double)recording->bytes / MB);
    table_put_integer(table, recording->pid);
    table_put_string(table, format_start_time(since, recording->since_unix_ns));
    if (given.json)
        table_put_integer(table, (int64_t)recording->bytes);
    else
        table_put_figure(table, size);
    table_put_string(table, recording->session.trace);
    table_put_string(table, recording->program);
}

static int ls_main(int count, char **operands)
{
    recording_list list = {0};
    const char *const names[] = {"pid", "since", given.json ? "bytes" : "size", "trace", "program"};
    struct table *table;
    bool ok = true;

    (void)count, (void)operands;
    recordings_find(&list);
    if (!list.count && !given.json) {
        say_error("nothing is being recorded");
    } else {
        table = table_open(stdout, table_format(stdout, given.json), array_count(names), names);
        list_each(recording, &list)
            print_recording_row(table, recording);
        ok = table_close(table);
    }
    recordings_free(&list);
    return ok ? 0 : 2;
}

static const struct option options[] = {
    {"json", .read = option_flag, .to = &given.json, .help = "the same for a program"},
    TABLE_WIDE_OPTION,
    OPTION_END,
};

const struct command command_ls = {
    .name = "ls",
    .summary = "list the recordings that run",
    .operands = "",
    .about = "Lists the recordings of this user that run on this machine: the process that was "
             "started or recorded itself, since when, how much its files take on the disk, the "
             "trace, and the command line.",
    .options = options,
    .too_many = "not understood",
    .run = ls_main,
};
