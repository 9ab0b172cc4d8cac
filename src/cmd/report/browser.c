/* cmd/report/browser.c -- opens a page in the user's browser. See cmd/report/browser.h.
 *
 * $BROWSER has the form that Python's webbrowser module reads: commands separated by ":". In a
 * command, %s stands for the address. If a command has no %s, the address is appended. A command
 * that ends with "&" runs in the background. */
#include "cmd/report/browser.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/say.h"
#include "trace/prose.h"

/* Commands that open an address, in the order in which they are tried: first that of all desktops,
 * then those of Debian. */
static const char system_browsers[] = "xdg-open:x-www-browser:www-browser";

char *browser_make_page_path(const char *trace)
{
    const char *temporary = prose_text_or_other(getenv("TMPDIR"), "/tmp");
    char *directory = say_print("%s/dyntrace.XXXXXX", temporary);
    const char *slash = strrchr(trace, '/');
    const char *name = slash ? slash + 1 : trace;
    const char *dot = strrchr(name, '.');
    bool has_end = dot && dot > name;
    char *place = NULL;

    if (mkdtemp(directory))
        place = say_print("%s/%.*s.html", directory, has_end ? (int)(dot - name) : 200, name);
    else
        say_error("%s: %s; set TMPDIR to a place that can be written, or name a file by --html",
                  directory, strerror(errno));
    free(directory);
    return place;
}

void browser_remove_page(const char *place)
{
    char *directory = say_print("%.*s", (int)(strrchr(place, '/') - place), place);

    rmdir(directory);
    free(directory);
}

/* Return the file:// address of PATH. The caller frees it. */
static char *make_file_address(const char *path)
{
    char absolute[PATH_MAX];
    char *address = NULL;
    size_t bytes;
    FILE *out = open_memstream(&address, &bytes);

    fputs("file://", out);
    if (!realpath(path, absolute))
        snprintf(absolute, sizeof absolute, "%s", path);
    for (const char *at = absolute; *at; at++) {
        bool is_plain = isalnum((unsigned char)*at) || strchr("/._-~", *at);
        if (is_plain)
            putc(*at, out);
        else
            fprintf(out, "%%%02X", (unsigned char)*at);
    }
    fclose(out);
    return address;
}

/* Return COMMAND, which has BYTES bytes, as a shell command in which $1 is the address of the page.
 * The caller frees it. */
static char *make_shell_line(const char *command, size_t bytes)
{
    const char *place = memmem(command, bytes, "%s", 2);
    bool is_behind;

    while (bytes && command[bytes - 1] == ' ')
        bytes--;
    if (place)
        return say_print("%.*s\"$1\"%.*s", (int)(place - command), command,
                         (int)(command + bytes - place - 2), place + 2);
    is_behind = bytes && command[bytes - 1] == '&';
    return say_print("%.*s \"$1\"%s", (int)(bytes - is_behind), command, is_behind ? " &" : "");
}

/* Run LINE in a shell, with ADDRESS as $1 and without standard error. Returns true if it exits
 * with 0. */
static bool run_shell_line(const char *line, const char *address)
{
    int status = -1;
    pid_t child = fork();
    pid_t ended = -1;

    if (!child) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", line, "dyntrace", address, NULL);
        _exit(127);
    }
    if (child > 0)
        do
            ended = waitpid(child, &status, 0);
        while (ended < 0 && errno == EINTR);
    return ended > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

bool browser_open(const char *path)
{
    const char *commands = prose_text_or_other(getenv("BROWSER"), system_browsers);
    char *address = make_file_address(path);
    bool ok = false;

    for (const char *at = commands; *at && !ok;) {
        size_t bytes = strcspn(at, ":");
        char *line = make_shell_line(at, bytes);
        ok = bytes && run_shell_line(line, address);
        free(line);
        at += bytes + (at[bytes] == ':');
    }
    if (!ok)
        say_error("report: no browser could be started; the page is %s. BROWSER may name the "
                  "command of one",
                  path);
    free(address);
    return ok;
}
