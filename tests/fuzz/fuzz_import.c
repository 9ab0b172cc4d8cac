/* fuzz_import.c -- any bytes as a log that torch wrote with TORCH_TRACE, through `dyntrace import`. */
#include <stdint.h>

#include "commands.h"

int fuzz_one(const uint8_t *data, size_t bytes)
{
    char logs[64], file[128], made[64], *argv[] = {"import", logs, "-o", made, "--force", NULL};

    if (!fuzz_directory[0])
        fuzz_begin();
    fuzz_path(logs, sizeof logs, "logs");
    fuzz_path(made, sizeof made, "made.db");
    fuzz_path(file, sizeof file, "logs/dedicated_log_torch_trace_rank_0_x.log");
    mkdir(logs, 0700);
    fuzz_write(file, data, bytes);
    fuzz_run(&command_import, argv);
    return 0;
}
