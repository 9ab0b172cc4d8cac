/* tui/prompt.h -- a line that is typed at the bottom of the screen.
 *
 * libedit keeps the lines typed before, no more: it would read keys and draw by itself, which the
 * screen does. */
#ifndef DYNTRACE_TUI_PROMPT_H
#define DYNTRACE_TUI_PROMPT_H

#include "lib/list.h"
#include "tui/screen.h"

enum { PROMPT_BYTES = 8000 };

struct prompt {
    bool active;
    /* lines typed before come back where they are asked for by the same */
    char label[48];
    char text[PROMPT_BYTES];  /* UTF-8 */
    size_t at;                /* of the cursor, in bytes */
    size_t back;              /* how many lines of the history up */
    int again;                /* completions of one word tried so far */
    size_t word;              /* where that word begins */
    char begun[PROMPT_BYTES]; /* the word as it was typed */

    /* What could stand in place of WORD: the AGAINth of them, from 0, or NULL. The caller frees it.
     * FIRST: of the line. */
    char *(*complete)(void *context, const char *word, bool first, int again);
    void *context;

    struct history *past; /* owned: lines, each behind its label */
    char *path;           /* owned: of the file they are kept in; NULL: in none */
};

void tui_prompt_begin(struct prompt *prompt, const char *label, const char *text);
/* True: the line is whole. */
bool tui_prompt_key(struct prompt *prompt, const struct key *key);
void tui_prompt_draw(struct prompt *prompt, struct screen *screen);

/* Read what was typed in earlier runs; PATH is taken over, NULL for none. */
void tui_prompt_past_read(struct prompt *prompt, char *path);
/* Keep it for later ones. */
void tui_prompt_past_keep(struct prompt *prompt);

#endif
