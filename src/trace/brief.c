/* trace/brief.c -- shortens the program's values, but keeps them distinguishable. See
 * trace/brief.h. */
#include "trace/brief.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/list.h"

enum {
    DIGITS_LEAST = 4,
    /* with 17 significant digits two different doubles always print differently */
    DIGITS_MOST = 17,
    NUMBERS_MOST = 128,
    /* a number with more bytes is copied unchanged */
    NUMBER_BYTES = 40,
    ROUNDED_BYTES = 320,
};

struct numbers {
    double at[NUMBERS_MOST];
    int count;
};

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Return the length of the floating-point number at AT: digits with a point or an exponent. Returns
 * 0 if something else is at AT, such as an integer, a version (1.2.3) or part of a name. */
static size_t length_of_number(const char *text, const char *at)
{
    const char *end = at;
    bool is_inside = at > text && (is_name_byte(at[-1]) || at[-1] == '.');
    bool is_float = false;
    char after;

    if (is_inside || !isdigit((unsigned char)*at))
        return 0;
    while (isdigit((unsigned char)*end))
        end++;
    if (*end == '.' && isdigit((unsigned char)end[1])) {
        is_float = true;
        for (end++; isdigit((unsigned char)*end);)
            end++;
    }
    if (*end == 'e') {
        const char *exponent = end + 1 + (end[1] == '-' || end[1] == '+');
        if (isdigit((unsigned char)*exponent)) {
            is_float = true;
            for (end = exponent; isdigit((unsigned char)*end);)
                end++;
        }
    }
    if (!is_float || end - at >= NUMBER_BYTES)
        return 0;
    /* a `j` may follow the digits: 0.25j is an imaginary number */
    after = *end == 'j' ? end[1] : *end;
    if (is_name_byte(after) || after == '.')
        return 0;
    return (size_t)(end - at);
}

static void add_numbers_of_text(struct numbers *numbers, const char *text)
{
    for (const char *at = text; text && *at && numbers->count < NUMBERS_MOST;) {
        size_t bytes = length_of_number(text, at);
        if (bytes)
            numbers->at[numbers->count++] = strtod(at, NULL);
        at += bytes ? bytes : 1;
    }
}

static int compare_numbers(const void *one, const void *other)
{
    double a = *(const double *)one;
    double b = *(const double *)other;

    return (a > b) - (a < b);
}

/* Return how many significant digits, at least DIGITS_LEAST, different NUMBERS need to print
 * differently. Sorts NUMBERS: rounding keeps their order, so only neighbours are compared. */
static int count_digits_needed(struct numbers *numbers)
{
    int digits = DIGITS_LEAST;

    qsort(numbers->at, (size_t)numbers->count, sizeof *numbers->at, compare_numbers);
    for (int i = 1; i < numbers->count; i++) {
        char one[ROUNDED_BYTES], other[ROUNDED_BYTES];
        bool are_same = numbers->at[i] == numbers->at[i - 1];
        while (!are_same && digits < DIGITS_MOST) {
            snprintf(one, sizeof one, "%.*g", digits, numbers->at[i - 1]);
            snprintf(other, sizeof other, "%.*g", digits, numbers->at[i]);
            if (strcmp(one, other) != 0)
                break;
            digits++;
        }
    }
    return digits;
}

char *brief_make_pair_distinct(const char *text, const char *beside)
{
    struct numbers numbers = {.count = 0};
    LIST(char) out = {0};
    int digits;

    if (!text)
        return NULL;
    add_numbers_of_text(&numbers, text);
    add_numbers_of_text(&numbers, beside);
    digits = count_digits_needed(&numbers);
    for (const char *at = text; *at;) {
        size_t bytes = length_of_number(text, at);
        size_t kept = bytes ? bytes : 1;
        double number = bytes ? strtod(at, NULL) : 0;
        char rounded[ROUNDED_BYTES];
        snprintf(rounded, sizeof rounded, "%.*g", digits, number);
        size_t length = strlen(rounded);
        bool is_shorter = bytes && length < bytes;
        if (is_shorter && strtod(rounded, NULL) != number)
            memcpy(list_add_many(&out, length), rounded, length);
        else
            memcpy(list_add_many(&out, kept), at, kept);
        at += kept;
    }
    *list_add(&out) = 0;
    return out.at;
}
