/* cmd/recordings.c -- finds the running recordings of this machine. See cmd/recordings.h. */
#include "cmd/recordings.h"

#include "collector/process.h"
#include "collector/state.h"

enum { COMMAND_BYTES = 4096 };

/* Return the command line of process PID. The caller frees it. */
static char *read_command_line(uint32_t pid)
{
    char path[64];
    char line[COMMAND_BYTES];
    size_t bytes = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    file = fopen(path, "re");
    if (file) {
        bytes = fread(line, 1, sizeof line - 1, file);
        fclose(file);
    }
    while (bytes && !line[bytes - 1])
        bytes--;
    for (size_t i = 0; i < bytes; i++)
        if (!line[i])
            line[i] = ' ';
    line[bytes] = 0;
    return strdup(bytes ? line : "(starting)");
}

static void add_pid_of_process(void *context, const char *name, enum session_place place,
                               const struct process_file *header)
{
    struct recording *recording = context;
    bool is_over = !header || header->finished || header->left;
    uint32_t *pid = is_over ? NULL : list_add(&recording->pids);

    (void)name, (void)place;
    if (pid)
        *pid = header->seen_pid ? header->seen_pid : header->pid;
}

static void add_recording(const char *directory, void *context)
{
    recording_list *list = context;
    struct recording recording = {0};
    struct state_header state;

    if (session_has_running_collector(directory) != LIVE_YES ||
        session_open_to_read(&recording.session, directory))
        return;
    state = collector_state_read_header(&recording.session);
    if (recording.session.file->closed || access(recording.session.trace, F_OK)) {
        session_close(&recording.session);
        return;
    }
    session_visit_processes(&recording.session, add_pid_of_process, &recording);
    recording.pid = state.command;
    if (!process_is_same(state.command, state.command_started) && recording.pids.count)
        /* the command has ended, but its children are still recorded */
        recording.pid = recording.pids.at[0];
    recording.program = read_command_line(recording.pid);
    recording.since_unix_ns = recording.session.file->start_unix_ns;
    recording.bytes = session_count_trace_bytes(&recording.session);
    *list_add(list) = recording;
}

static int compare_by_age(const void *a, const void *b)
{
    return list_compare_numbers((int64_t)((const struct recording *)a)->since_unix_ns,
                                (int64_t)((const struct recording *)b)->since_unix_ns);
}

void recordings_find(recording_list *list)
{
    session_visit_all(add_recording, list);
    list_sort(list, compare_by_age);
}

void recordings_free(recording_list *list)
{
    list_each(recording, list) {
        session_close(&recording->session);
        list_free(&recording->pids);
        free(recording->program);
    }
    list_free(list);
}
