/* tui/prompt.h -- lets the user type a line at the bottom of the screen. libedit only keeps the
 * history of lines. Its line editor is not used, because it reads keys and draws by itself. */
#ifndef DYNTRACE_TUI_PROMPT_H
#define DYNTRACE_TUI_PROMPT_H

#include "lib/list.h"
#include "tui/screen.h"

enum { PROMPT_BYTES = 8000 };

struct prompt {
    bool active;
    /* the question, such as "filter: "; each label has a history of its own */
    char label[48];
    char text[PROMPT_BYTES]; /* UTF-8 */
    size_t at;               /* where the cursor is, in bytes from the beginning of the line */
    /* how many lines back in the history the shown line is; 0: it is being typed */
    size_t back;
    int again;                /* how many completions of the word have been shown */
    size_t word;              /* where the word that is being completed begins */
    char begun[PROMPT_BYTES]; /* the word to complete, as the user typed it */

    /* Return a completion of WORD, which the caller frees: the first one if AGAIN is 0, the
     * second one if it is 1, and so on. Returns NULL if there are no more. FIRST: the word is
     * the first of the line. */
    char *(*complete)(void *context, const char *word, bool first, int again);
    void *context;

    struct history *past; /* owned: the history; each line begins with its label */
    char *path;           /* owned: the file where the history is kept, or NULL */
};

void tui_prompt_begin(struct prompt *prompt, const char *label, const char *text);
/* Handle a typed key. Returns true when Enter has finished the line. */
bool tui_prompt_handle_key(struct prompt *prompt, const struct key *key);
void tui_prompt_draw(struct prompt *prompt, struct screen *screen);

/* Read the history of earlier runs from the file PATH, which the prompt owns from now on. If PATH
 * is NULL, the history is kept nowhere. */
void tui_prompt_read_history(struct prompt *prompt, char *path);
/* Write the history to its file for later runs, and free it. */
void tui_prompt_add_to_history(struct prompt *prompt);

#endif
