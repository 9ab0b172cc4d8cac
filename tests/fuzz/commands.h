/* commands.h -- what the fuzz programs that run whole commands share.
 *
 * A command may end its process (lib/bounds.h), so each runs in a child. One that dies, by a signal or a sanitizer, ends the
 * fuzz program too, and what it said is printed. */
#ifndef FUZZ_COMMANDS_H
#define FUZZ_COMMANDS_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

int fuzz_one(const uint8_t *data, size_t bytes);

/* Asked before there is a sanitizer. */
#define EARLY __attribute__((no_sanitize("address", "undefined"), no_sanitize_coverage))

/* A sanitizer's end is a signal: status 1 is an answer of ours. Children leave everything to the kernel. */
EARLY const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "abort_on_error=1:detect_leaks=0:allocator_may_return_null=1";
}
EARLY const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "abort_on_error=1:print_stacktrace=1";
}

static char fuzz_directory[32]; /* of this process's files; gone at the end */

static void fuzz_path(char *path, size_t room, const char *name)
{
    snprintf(path, room, "%s/%s", fuzz_directory, name);
}

static void fuzz_clean(void)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf '%s'", fuzz_directory);
    if (system(command))
        fprintf(stderr, "%s is left\n", fuzz_directory);
}

static void fuzz_begin(void)
{
    snprintf(fuzz_directory, sizeof fuzz_directory, "/dev/shm/fuzz-XXXXXX");
    if (!mkdtemp(fuzz_directory) && !mkdtemp(strcpy(fuzz_directory, "/tmp/fuzz-XXXXXX")))
        abort();
    setenv("DYNTRACE_LIMITS", "5:2048", 1); /* an endless query ends after 5 s */
    atexit(fuzz_clean);
}

static void fuzz_write(const char *path, const void *data, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
        abort();
    close(fd);
}

/* Run COMMAND with ARGV in a child. */
static inline void fuzz_run(const struct command *command, char *const argv[])
{
    char said[64], text[4096];
    int status = 0, argc = 0, fd;
    ssize_t got;
    pid_t pid;

    while (argv[argc])
        argc++;
    fuzz_path(said, sizeof said, "said");
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        fd = open(said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(null, 0), dup2(null, 1), dup2(fd, 2);
        alarm(60);
        status = command_parse_and_run(command, argc, (char **)argv);
        fflush(NULL);
        _exit(status);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    if (!WIFSIGNALED(status) && WEXITSTATUS(status) <= 2)
        return;
    fprintf(stderr, "%s", command->name);
    for (int i = 1; i < argc; i++)
        fprintf(stderr, " %s", argv[i]);
    fprintf(stderr, ": status %#x\n", (unsigned)status);
    fd = open(said, O_RDONLY);
    while (fd >= 0 && (got = read(fd, text, sizeof text)) > 0)
        fwrite(text, 1, (size_t)got, stderr);
    abort();
}

#endif
