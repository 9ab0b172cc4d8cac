/* fuzz_whatif.c -- any text as the settings of a what-if, which must be refused or come back as they were taken. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/whatif/whatif.h"

int fuzz_one(const uint8_t *data, size_t bytes);

int fuzz_one(const uint8_t *data, size_t bytes)
{
    struct whatif_knobs knobs = {0}, again = {0};
    char *text = malloc(bytes + 1);
    static FILE *null;

    if (!null && !(null = freopen("/dev/null", "w", stderr))) /* refusals */
        abort();
    memcpy(text, data, bytes);
    text[bytes] = 0;
    if (whatif_read_setting(&knobs, text) && knobs.text &&
        (!whatif_read_setting(&again, knobs.text) || strcmp(knobs.text, again.text))) {
        printf("taken as %s, and that as %s\n", knobs.text, again.text ? again.text : "nothing");
        abort();
    }
    free(text);
    whatif_knobs_free(&knobs);
    whatif_knobs_free(&again);
    return 0;
}
