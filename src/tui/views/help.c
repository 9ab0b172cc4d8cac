/* tui/views/help.c -- the view `help`, made from the keys and the views.
 *
 * Runs in: the viewer. */
#include <string.h>

#include "tui/text.h"

static void help_build(struct doc *doc, struct db *db)
{
    (void)db;
    doc_line(doc, MARK "bKeys" MARK "n, and the names that : knows them by");
    for (int request = REQUEST_NONE + 1; request < REQUESTS; request++) {
        const struct binding *b = &bindings[request];
        char keys[80] = "", made[16];
        if (b->group)
            doc_part(doc, "%s", b->group);
        for (int k = 0; k < 4 && b->keys[k]; k++) {
            strcat(keys, k ? " " : "");
            strcat(keys, key_label(b->keys[k], made));
        }
        doc_line(doc, "  " MARK "a%s" MARK "n %s  " MARK "d:%s", doc_fit(doc, keys, 15), b->help, b->name);
    }
    doc_part(doc, "Views, by name: :functions, :ledger outcome = 'limit'");
    for (int kind = 0; kind < VIEW_KINDS; kind++) {
        const struct view_ops *ops = view_of(kind);
        if (!ops)
            continue;
        doc_line(doc, "  " MARK "a%s" MARK "n %s", doc_fit(doc, ops->name, 15), ops->summary);
        doc_leads(doc, (enum view_kind)kind, 0, NULL, NULL);
    }
    doc_part(doc, "What is typed");
    doc_line(doc, "  f takes words, all of which must be in a row, or an SQL condition on the columns: lookup > 1000 AND outcome = 'hit'.");
    doc_line(doc, "  Times in conditions are nanoseconds. Up and Down bring back what was typed before, Tab completes.");
    doc_line(doc, "  In a table, the chosen column (Left, Right) is what Enter follows and s sorts by.");
}

const struct view_ops view_help = {.name = "help", .summary = "this", .build = help_build, TEXT_OPS};
