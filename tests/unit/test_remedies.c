/* test_remedies.c -- src/trace/remedies.txt: each rule is read, has a text, and names facts that there are. */
#include <stdio.h>

#include "trace/remedy.h"

static int failures;

static void check(bool good, const char *name, const char *why)
{
    if (!good)
        printf("FAIL %s: %s\n", name, why);
    failures += !good;
}

static const char in_texts[] = " source base guarded kind expected actual values text what hint more place constraint dict function limit "
                               "count calls entries needed dim at apart line ";
static const char in_settings[] = " source base dim marks tensors @function @compiled limit raised ";

static void names_check(const char *rule, const char *text, const char *known)
{
    char name[40];

    for (; (text = strchr(text, '{')); text++) {
        snprintf(name, sizeof name, " %.*s ", (int)strcspn(text + 1, "}"), text + 1);
        check(strstr(known, name), rule, name);
    }
}

int main(void)
{
    struct remedy_facts facts = {
        .cause = {.source = "L['x'].size()[0]", .aspect = "size", .kind = "TENSOR_MATCH", .dimension = 0, .expected = "4", .actual = "5."},
        .values = "4, 5",
        .function = "step",
    };
    const struct remedy_rule *rule = NULL;
    char *made;
    int count = 0;

    for (const struct remedy_rule *r = remedy_rules(); r->name; r++, count++) {
        check(r->text && *r->text, r->name, "no text");
        names_check(r->name, r->text ? r->text : "", in_texts);
        names_check(r->name, r->set ? r->set : "", in_settings);
    }
    check(count > 100, "remedies.txt", "most rules are not there");
    made = remedy_find_text(ON_CAUSE, &facts, &rule);
    check(made && !strcmp(made, "Make dimension 0 of x dynamic: it was 4, 5. TENSOR_MATCH(L['x'], dynamic_sizes=[0]), in torch mark_dynamic(x, 0); or "
                                "pad it to one size."),
          "dynamic dimension", made ? made : "none");
    free(made);
    return failures != 0;
}
