/* cmd/doctor.c -- `dyntrace doctor`: what works on this machine, and what it costs.
 *
 * Each interpreter is asked by running it: it loads the extension without a session and
 * measures its own hook. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "clock.h"
#include "cmd/run/run.h"
#include "collector/session.h"
#include "command.h"
#include "lib/list.h"
#include "lib/option.h"
#include "lib/say.h"
#include "versions.h"

/* Prints: name, major, minor, suffix, then after the extension is loaded the
 * owner of the slot and the nanoseconds of a call without and with a hook. */
static const char question[] =
    "import sys, _imp\n"
    "suffix = _imp.extension_suffixes()[0]\n"
    "print(sys.implementation.name, sys.version_info[0], sys.version_info[1], suffix, flush=True)\n"
    "import _frozen_importlib as b, _frozen_importlib_external as e\n"
    "path = sys.argv[1] + '/_dyntrace' + suffix\n"
    "module = _imp.create_dynamic(b.ModuleSpec('_dyntrace', e.ExtensionFileLoader('_dyntrace', path), origin=path))\n"
    "_imp.exec_dynamic(module)\n"
    "def call(): pass\n"
    "def calls():\n"
    "    for _ in range(200000): call()\n"
    "calls()\n"
    "costs = [module._cost(calls) for _ in range(5)]\n"
    "print(module._owner(), *('%.1f' % (min(c[i] for c in costs) / 200000) for i in (0, 1)))\n";

/* One line about PYTHON. True when it can be recorded. */
static bool diagnose(const char *python)
{
    struct asked asked = interpreter_ask(python, question, command_library_directory());
    char text[512], name[64] = "", suffix[128] = "", owner[256] = "";
    double plain, hooked;
    int major = 0, minor = 0, fields;
    bool answers = interpreter_answer(&asked, text, sizeof text), supported;

    fields = sscanf(text, "%63s %d %d %127s %255s %lf %lf", name, &major, &minor, suffix, owner, &plain, &hooked);
    supported = fields >= 4 && versions_supports(name, major, minor);
    printf("  ");
    say_escaped(stdout, python, strlen(python));
    if (!answers)
        printf(": cannot be run\n");
    else if (fields < 4)
        printf(": not a Python 3 that answers; not supported\n");
    else if (!supported)
        printf(": %s %d.%d is not supported (" CPYTHON_SUPPORTED " are)\n", name, major, minor);
    else if (fields < 7)
        printf(": CPython %d.%d, no extension: build it with `make PYTHONS=%s`\n", major, minor, python);
    else
        printf(": CPython %d.%d, ready; PEP 523 slot: %s; a call takes %.1f ns, with a bare hook %.1f ns\n", major, minor,
               strcmp(owner, "-") ? owner : "free", plain, hooked);
    return answers && supported && fields == 7;
}

/* Every python3 and python3.N on PATH, each file once. */
static int diagnose_path(int *ready)
{
    const char *path = getenv("PATH");
    struct map seen = {0}; /* device and inode */
    glob_t found = {0};
    int count;

    for (const char *part = path ? path : "/usr/bin"; part; part = strchr(part, ':') ? strchr(part, ':') + 1 : NULL) {
        char *pattern = say_print("%.*s/python3{,.[0-9],.[0-9][0-9]}", (int)strcspn(part, ":"), part);
        glob(pattern, GLOB_BRACE | (found.gl_pathc ? GLOB_APPEND : 0), NULL, &found);
        free(pattern);
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat status;
        if (stat(found.gl_pathv[i], &status) == 0 && access(found.gl_pathv[i], X_OK) == 0 &&
            !(*map_put(&seen, (int64_t)(status.st_dev << 48 ^ status.st_ino)))++)
            *ready += diagnose(found.gl_pathv[i]);
    }
    globfree(&found);
    count = (int)seen.count;
    map_free(&seen);
    return count;
}

static void clock_report(void)
{
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    char source[64] = "unknown";
    bool trusted = session_clock_choose() == SESSION_TSC;

    if (file && fscanf(file, "%63s", source) != 1)
        strcpy(source, "unknown");
    if (file)
        fclose(file);
    printf("  %s: %s (the kernel's clock source is %s)%s\n", CLOCK_COUNTER, trusted ? "trusted" : "not trusted", source,
           trusted ? "" : ", so CLOCK_MONOTONIC is read, which costs more");
}

static void memory_report(void)
{
    struct statvfs status;

    if (statvfs("/dev/shm", &status) == 0 && access("/dev/shm", W_OK) == 0)
        printf("  /dev/shm: %llu MB free%s\n", (unsigned long long)status.f_bavail * status.f_frsize >> 20,
               session_has_room("/dev/shm") ? "" : ", too little: rings go to TMPDIR or /tmp, which may be slower");
    else
        printf("  /dev/shm: not usable: rings go to TMPDIR or /tmp, which may be slower\n");
}

static int run(int count, char **operands)
{
    int ready = 0;

    printf("Interpreters\n");
    for (int i = 0; i < count; i++)
        ready += diagnose(operands[i]);
    if (!count)
        count = diagnose_path(&ready);
    if (!count)
        printf("  no python3 on PATH\n");
    printf("Clock\n");
    clock_report();
    printf("Ring memory\n");
    memory_report();
    printf("Extensions\n  %s\n", command_library_directory());
    return ready ? 0 : 1;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "what works on this machine, and what it costs",
    .operands = "[PYTHON]...",
    .about = "Shows which interpreters can be recorded (those named, else every python3 on PATH), what owns their PEP 523 "
             "slot, what a bare hook costs a call there, whether the CPU's clock is trusted, and where rings are kept. Exits "
             "with 1 when none of the interpreters can be recorded.",
    .options = (const struct option[]){OPTION_END},
    .operands_most = OPERANDS_ANY,
    .run = run,
};
