/* cmd_doctor.c -- `dyntrace doctor`: what works on this machine, and what it costs. */
#include "command.h"
static int run(int argc, char **argv) { (void)argc, (void)argv; return 0; }
const struct command command_doctor = {.name="doctor", .summary="what works on this machine", .usage="usage: dyntrace doctor\n", .run=run};
