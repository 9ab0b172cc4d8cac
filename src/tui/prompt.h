/* tui/prompt.h -- a line that is typed at the bottom of the screen.
 *
 * Runs in: the viewer.
 *
 *     tui_prompt_begin(&p, ":", "", HISTORY_COMMAND);
 *     for each key: switch (tui_prompt_key(&p, &key)) ... PROMPT_DONE: p.text is what was typed
 *
 * libedit is not used here: it reads keys and draws by itself, and here both are the screen's. */
#ifndef DYNTRACE_TUI_PROMPT_H
#define DYNTRACE_TUI_PROMPT_H

#include "lib/list.h"
#include "tui/screen.h"

enum { PROMPT_BYTES = 8000, HISTORY_MOST = 200 };

enum prompt_state { PROMPT_GOES_ON, PROMPT_DONE, PROMPT_LEFT };

/* Lines typed before, one list for each kind of line. */
enum prompt_history { HISTORY_COMMAND, HISTORY_SEARCH, HISTORY_FILTER, HISTORY_SQL, HISTORY_FILE, HISTORIES };

/* What could stand in place of the word that ends at the cursor: the AGAINth of them, from 0, or NULL. The caller frees it. */
typedef char *prompt_complete(void *context, const char *word, bool first, int again);

struct prompt {
    bool active;
    char label[40];
    char text[PROMPT_BYTES]; /* UTF-8 */
    size_t at, scroll;   /* bytes: the cursor, the first that is shown */
    enum prompt_history history;
    size_t back;         /* how many lines of the history up */
    int again;           /* completions of one word tried so far */
    size_t word;         /* where that word begins */
    char *begun;         /* owned: the word as it was typed */
    prompt_complete *complete;
    void *context;
};

struct prompt_past {
    LIST(char *) lines[HISTORIES]; /* each owned */
    char *path; /* owned: of the file they are kept in; NULL: in none */
};

void tui_prompt_begin(struct prompt *prompt, const char *label, const char *text, enum prompt_history history);
enum prompt_state tui_prompt_key(struct prompt *prompt, struct prompt_past *past, const struct key *key);
void tui_prompt_draw(struct prompt *prompt, struct screen *screen);
void tui_prompt_free(struct prompt *prompt);

/* Read what was typed in earlier runs; PATH is taken over, NULL for none. */
void past_read(struct prompt_past *past, char *path);
/* Keep it for later ones. */
void past_free(struct prompt_past *past);

#endif
