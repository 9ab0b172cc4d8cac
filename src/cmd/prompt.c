/* cmd/prompt.c -- reads lines from the terminal, with history. See cmd/prompt.h. */
#include "cmd/prompt.h"

#include <editline/readline.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "trace/db.h"

static struct db *volatile running; /* borrowed: the trace whose query Ctrl-C interrupts, or NULL */
static volatile sig_atomic_t interrupted;

static void note_interrupt(int unused)
{
    int saved = errno;

    /* a third Ctrl-C ends the process, because a single long step of SQLite cannot be
     * interrupted */
    if (++interrupted > 2) {
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    }
    if (running)
        db_interrupt(running);
    errno = saved;
}

/* Read a key. libedit's own function tries again after a signal; this function returns EOF, which
 * ends the line. SIGINT is delivered only while ppoll waits, so no SIGINT is missed. */
static int read_key_until_interrupt(FILE *in)
{
    struct pollfd key = {.fd = fileno(in), .events = POLLIN};
    mbstate_t state = {0};
    sigset_t masked, before;
    wchar_t wide;
    char byte;
    size_t used;

    sigemptyset(&masked);
    sigaddset(&masked, SIGINT);
    do {
        sigprocmask(SIG_BLOCK, &masked, &before);
        while (!interrupted && ppoll(&key, 1, NULL, &before) < 0 && errno == EINTR)
            ;
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (interrupted || read(key.fd, &byte, 1) <= 0)
            return EOF;
        used = mbrtowc(&wide, &byte, 1, &state);
        if (used == (size_t)-1) /* drop the byte, because it is not part of a character */
            memset(&state, 0, sizeof state);
    } while (used > 1);
    return (int)wide;
}

void prompt_catch_sigint(void)
{
    /* without SA_RESTART, so that the signal also ends a read() */
    struct sigaction action = {.sa_handler = note_interrupt};

    sigaction(SIGINT, &action, NULL);
}

void prompt_begin(void)
{
    prompt_catch_sigint();
    rl_readline_name = "dyntrace";
    rl_catch_signals = 0;
    rl_getc_function = read_key_until_interrupt;
    rl_initialize();
    using_history();
}

void prompt_set_running(struct db *db)
{
    running = db;
}

bool prompt_was_interrupted(void)
{
    return interrupted;
}

char *prompt_read_line(const char *prompt)
{
    char *line;

    interrupted = 0;
    /* change the terminal's mode before the prompt is printed, or a Ctrl-D typed at once would be
     * lost */
    rl_prep_terminal(1);
    line = readline(prompt);
    if (!interrupted)
        return line;
    free(line);
    putchar('\n');
    return strdup("");
}

void prompt_remember(const char *line)
{
    if (*line)
        add_history(line);
}
