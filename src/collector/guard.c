/* collector/guard.c -- a program's file that shrinks under us. See collector/guard.h.
 *
 * Runs in: the collector. */
#include "collector/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

static sigjmp_buf guard;
static volatile sig_atomic_t guarded;
static struct collector *guarded_collector;

/* Only the program's files may be cut short and we go on. In the middle of SQLite or of our own state there is no
 * going on: the next collector begins from what was certain. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    if (guarded && !recorder_in_sqlite && !collector_state_holds(&guarded_collector->state, info->si_addr))
        siglongjmp(guard, 1);
    _exit(125);
}

void guard_install(struct collector *c)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_NODEFER | SA_SIGINFO};

    guarded_collector = c;
    sigaction(SIGBUS, &action, NULL);
}

bool guarded_call(struct collector *c, void (*what)(void *argument), void *argument)
{
    if (sigsetjmp(guard, 1)) {
        guarded = 0;
        c->in_words = false;
        return false;
    }
    guarded = 1;
    what(argument);
    guarded = 0;
    return true;
}
