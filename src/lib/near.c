/* lib/near.c -- "did you mean": names like a mistyped one. See lib/near.h.
 *
 * Runs in: the command line. */
#include "lib/near.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The costs of changes of a name. To replace a letter by the same letter in the other case costs
 * half as much as another change. */
enum { SAME = 0, OTHER_CASE = 1, EDIT = 2, LAST_PART = 1, LONGER = 1 };

static int smaller_of(int a, int b)
{
    return a < b ? a : b;
}

static int cost_of_letter_change(char from, char to)
{
    int lower_from = tolower((unsigned char)from);
    int lower_to = tolower((unsigned char)to);

    if (from == to)
        return SAME;
    return lower_from == lower_to ? OTHER_CASE : EDIT;
}

/* Are the two letters before A[I] the same as the two before B[J], but swapped, such as "rw" and
 * "wr"? */
static bool are_letters_swapped(const char *a, int i, const char *b, int j)
{
    if (i < 2)
        return false;
    if (j < 2)
        return false;
    if (a[i - 1] != b[j - 2])
        return false;
    return a[i - 2] == b[j - 1];
}

/* Return the cost of the cheapest changes that turn A into B: Levenshtein's distance, computed row
 * by row. To swap two neighbouring letters is one change. */
static int cost_of_edits(const char *a, const char *b)
{
    /* for each j: the cost to turn the first i letters of A into the first j letters of B */
    int row[NEAR_BYTES + 1];
    int before[NEAR_BYTES + 1];  /* for the first i - 1 letters of A: the same costs as in `row` */
    int earlier[NEAR_BYTES + 1]; /* for the first i - 2 letters of A: the same costs as in `row` */
    int a_length = (int)strnlen(a, NEAR_BYTES);
    int b_length = (int)strnlen(b, NEAR_BYTES);

    for (int j = 0; j <= b_length; j++)
        row[j] = j * EDIT;
    for (int i = 1; i <= a_length; i++) {
        memcpy(earlier, before, sizeof earlier);
        memcpy(before, row, sizeof before);
        row[0] = i * EDIT;
        for (int j = 1; j <= b_length; j++) {
            int cost = cost_of_letter_change(a[i - 1], b[j - 1]);
            int changed = before[j - 1] + cost;
            int inserted = row[j - 1] + EDIT;
            int left_out = before[j] + EDIT;
            row[j] = smaller_of(changed, inserted);
            row[j] = smaller_of(row[j], left_out);
            if (are_letters_swapped(a, i, b, j)) {
                int swapped = earlier[j - 2] + EDIT;
                row[j] = smaller_of(row[j], swapped);
            }
        }
    }
    return row[b_length];
}

/* Return how far TYPED is from NAME. If NAME begins with TYPED, the distance is that of one letter
 * in the other case. */
static int distance_of_names(const char *typed, const char *name)
{
    const char *dot = strrchr(name, '.');
    int distance = cost_of_edits(typed, name);

    if (dot)
        distance = smaller_of(distance, cost_of_edits(typed, dot + 1) + LAST_PART);
    if (*typed && !strncmp(name, typed, strlen(typed)))
        distance = smaller_of(distance, LONGER);
    return distance;
}

struct near near_begin(const char *typed)
{
    return (struct near){.typed = typed};
}

static bool is_suggestion_kept(const struct near *near, const char *name)
{
    for (int i = 0; i < near->count; i++)
        if (!strcmp(near->kept[i].text, name))
            return true;
    return false;
}

void near_offer_name(struct near *near, const char *name)
{
    /* A wrong letter adds 2 to the distance. So a name is alike if at most half of the letters
     * are wrong. */
    int worst = (int)strnlen(near->typed, NEAR_BYTES);
    int distance = distance_of_names(near->typed, name);
    bool is_like = strlen(name) <= NEAR_BYTES && distance <= worst;
    int at = near->count;

    if (!is_like || is_suggestion_kept(near, name))
        return;
    while (at > 0 && near->kept[at - 1].distance > distance)
        at--;
    if (at == NEAR_KEPT)
        return;
    if (near->count < NEAR_KEPT)
        near->count++;
    memmove(&near->kept[at + 1], &near->kept[at],
            (size_t)(near->count - 1 - at) * sizeof near->kept[0]);
    near->kept[at].distance = distance;
    snprintf(near->kept[at].text, sizeof near->kept[at].text, "%s", name);
}

const char *near_make_question(struct near *near, const char *otherwise)
{
    size_t used = 0;

    if (!near->count)
        return otherwise;
    for (int i = 0; i < near->count; i++) {
        bool is_first = i == 0;
        bool is_last = i + 1 == near->count;
        size_t room = sizeof near->question - used;
        const char *before = ", ";
        if (is_first)
            before = "; did you mean ";
        else if (is_last)
            before = " or ";
        used += (size_t)snprintf(near->question + used, room, "%s%s%s", before, near->kept[i].text,
                                 is_last ? "?" : "");
    }
    return near->question;
}
