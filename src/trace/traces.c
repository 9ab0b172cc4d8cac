/* trace/traces.c -- finds and opens the traces that a command line names. See trace/traces.h. */
#include "trace/traces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>

#include "lib/out_file.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/given.h"

enum { OTHERS_NAMED = 3, NAME_MOST = 600 };

static struct traces known; /* all traces that were named on the command line so far */
static size_t left_out;
static struct arena names;

size_t traces_count_left_out(size_t more)
{
    left_out += more;
    return left_out;
}

bool traces_has(const char *path)
{
    for (size_t i = 0; i < known.paths.count; i++)
        if (out_is_same_file(path, known.paths.at[i]))
            return true;
    return false;
}

static bool does_name_end_with(const char *name, const char *end)
{
    size_t length = strlen(name);
    size_t tail = strlen(end);

    return length > tail && !strcmp(name + length - tail, end);
}

static bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool traces_is_operand(const char *word)
{
    glob_t found = {0};
    bool matches;

    if (does_name_end_with(word, ".db") || is_directory(word))
        return true;
    matches = strpbrk(word, "*?[") && !strpbrk(word, " \n(") && glob(word, 0, NULL, &found) == 0 &&
              does_name_end_with(found.gl_pathv[0], ".db");
    globfree(&found);
    return matches;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Is ENTRY of a directory none of these: a trace, a file that SQLite or a recorder keeps beside a
 * trace, a hidden file, a directory? */
static bool is_foreign_file(const struct dirent *entry)
{
    static const char *const beside[] = {".db", ".db-wal", ".db-shm", ".db-journal", ".db-frames"};
    bool other = *entry->d_name != '.' && entry->d_type != DT_DIR;

    for (size_t i = 0; i < array_count(beside); i++)
        other = other && !does_name_end_with(entry->d_name, beside[i]);
    return other;
}

static void add_traces_of_directory(struct traces *traces, const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, compare_names);
    size_t others = 0;
    size_t before = traces->paths.count;
    char *named = strdup("");

    if (count < 0)
        say_error("%s: %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (*name != '.' && does_name_end_with(name, ".db")) {
            *list_add(&traces->paths) =
                say_print("%s%s%s", path, does_name_end_with(path, "/") ? "" : "/", name);
        } else if (is_foreign_file(entries[i]) && others++ < OTHERS_NAMED) {
            char *longer = say_print("%s%s%.100s", named, *named ? ", " : "", name);
            free(named);
            named = longer;
        }
        free(entries[i]);
    }
    if (count >= 0 && traces->paths.count == before)
        say_error("%s: no *.db is in this directory", path);
    if (others)
        say_error("%s: %zu other file%s left out: %s%s", path, others, others == 1 ? "" : "s",
                  named, others > OTHERS_NAMED ? ", ..." : "");
    left_out += others + (count < 0 || traces->paths.count == before);
    free(entries);
    free(named);
}

struct traces traces_list(char *const *words)
{
    struct traces traces = {0};
    glob_t found;

    for (; *words; words++) {
        struct stat st;
        if (!strpbrk(*words, "*?[") && stat(*words, &st) != 0) {
            say_error("%s: %s", *words, strerror(errno));
            traces_free(&traces);
            traces.failed = true;
            return traces;
        }
        if (is_directory(*words)) {
            add_traces_of_directory(&traces, *words);
        } else if (stat(*words, &st) == 0) {
            *list_add(&traces.paths) = strdup(*words);
        } else if (glob(*words, 0, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc; i++)
                *list_add(&traces.paths) = strdup(found.gl_pathv[i]);
            globfree(&found);
        } else {
            say_error("%s: no file is named like this", *words);
            left_out++;
        }
    }
    for (size_t i = 0; i < traces.paths.count; i++)
        *list_add(&known.paths) = strdup(traces.paths.at[i]);
    return traces;
}

struct traces traces_list_as_one(char *const *words)
{
    struct traces traces = traces_list(words);
    size_t listed = traces.paths.count;

    if (listed > 1 && !(traces.given = given_read_metadata(traces.paths.at, &traces.paths.count))) {
        traces_free(&traces);
        traces.failed = true;
    }
    left_out += listed - traces.paths.count;
    return traces;
}

void traces_sort_by_rank(struct traces *traces)
{
    size_t count = 0;

    if (!traces->given)
        return;
    db_rows(row, traces->given, schema_statement("given/by-rank"))
    {
        free(traces->paths.at[count]);
        traces->paths.at[count++] = strdup(query_text(row, 0, NULL));
    }
}

void traces_free(struct traces *traces)
{
    db_close(traces->given);
    for (size_t i = 0; i < traces->paths.count; i++)
        free(traces->paths.at[i]);
    list_free(&traces->paths);
}

struct db *traces_open_next(struct traces *traces)
{
    while (traces->next < traces->paths.count) {
        struct db *db = db_open_single_trace(traces->paths.at[traces->next++], true);
        if (db && given_check_complete(db))
            return db;
        db_close(db);
        left_out++;
    }
    return NULL;
}

/* Return a name for several traces, for messages: "ranks/" or "a.db and 9 others". */
static const char *make_name_of_several(char *const *words, size_t count)
{
    return words[1] ? arena_print(&names, "%.*s and %zu other%s", NAME_MOST, words[0], count - 1,
                                  count == 2 ? "" : "s")
                    : arena_print(&names, "%.*s", NAME_MOST, words[0]);
}

const char *traces_make_one_file(char *const *words, enum merge_frames frames, const char **name)
{
    struct traces traces = traces_list_as_one(words);
    const char *path = NULL;
    size_t merged;
    char *lost;

    *name = NULL;
    if (traces.paths.count == 1) {
        path = arena_print(&names, "%s", traces.paths.at[0]);
    } else if (traces.paths.count && (path = out_make_scratch_file(&names))) {
        *name = make_name_of_several(words, traces.paths.count);
        if (!merge_traces(path, traces.given, frames, &merged, &lost))
            path = NULL;
        free(lost); /* not needed: the command reads what was lost from the merged trace */
        left_out += traces.paths.count - merged;
    }
    traces_free(&traces);
    return path;
}

struct db *traces_open(char *const *words, enum merge_frames frames)
{
    const char *name = NULL;
    const char *path = *words ? traces_make_one_file(words, frames, &name) : NULL;

    if (*words && !path)
        return NULL;
    return name ? db_open_with_name(path, name) : db_open(path);
}
