/* trace/torch_words.c -- tells what torch's names and messages mean. See trace/torch_words.h. */
#include "trace/torch_words.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/list.h"
#include "lib/say.h"
#include "trace/prose.h"
#include "vocabulary.h"

int torch_parse_version(const char *text)
{
    char *end;
    long major, minor;

    if (!text || !isdigit((unsigned char)*text))
        return 0;
    major = strtol(text, &end, 10);
    if (*end != '.' || !isdigit((unsigned char)end[1]))
        return 0;
    if (major < 1 || major > 99)
        return 0;
    minor = strtol(end + 1, NULL, 10);
    return minor < 0 || minor > 99 ? 0 : (int)(major * 100 + minor);
}

const char *torch_limit_name(int version, bool ever)
{
    if (version < 207) /* later versions still accept these names, but do not print them */
        return ever ? "accumulated_cache_size_limit" : "cache_size_limit";
    return ever ? "accumulated_recompile_limit" : "recompile_limit";
}

/* ---- reading torch's names of functions ---------------------------------- */

bool torch_parse_resume_name(const char *qualname, char **function, int64_t *line)
{
    const char *start = NULL;
    const char *name;
    const char *end = qualname + strlen(qualname);
    const char *digits = end;

    for (const char *found = qualname; (found = strstr(found, RESUME_IN)); found++)
        if (found == qualname || found[-1] == '.')
            start = found;
    if (!start)
        return false;
    name = start + strlen(RESUME_IN);
    while (digits > name && isdigit((unsigned char)digits[-1]))
        digits--;
    if (digits == end || end - digits > 9)
        return false;
    if (digits - name <= (ptrdiff_t)strlen(RESUME_AT))
        return false;
    if (strncmp(digits - strlen(RESUME_AT), RESUME_AT, strlen(RESUME_AT)))
        return false;
    if (line)
        *line = strtoll(digits, NULL, 10);
    if (function)
        *function = say_print("%.*s%.*s", (int)(start - qualname), qualname,
                              (int)(digits - strlen(RESUME_AT) - name), name);
    return true;
}

char *torch_describe_resume_function(const char *qualname, size_t width)
{
    char *function = NULL;
    char *words = NULL;
    size_t bytes;
    int64_t line;

    if (qualname && torch_parse_resume_name(qualname, &function, &line)) {
        bytes = prose_length_without_cut_character(function, width);
        words = say_print("the rest of %.*s%s after line %" PRId64, (int)bytes, function,
                          function[bytes] ? "…" : "", line);
    }
    free(function);
    return words;
}

/* ---- reading torch's reasons for a break or a failure -------------------- */

static bool does_text_begin_with(const char *text, const char *words)
{
    return !strncmp(text, words, strlen(words));
}

/* If LINE begins with LABEL and has text after it, return true and copy this text to PART. If PART
 * has a text already, it is kept. */
static bool copy_labelled_part(char part[TORCH_PART], const char *line, const char *label)
{
    const char *text = line + strlen(label);

    if (!does_text_begin_with(line, label) || !*text)
        return false;
    if (!*part)
        snprintf(part, TORCH_PART, "%s", text + strspn(text, " "));
    return true;
}

/* Is the hint in LINE about this program? The hints that begin as listed here are not: torch adds
 * them to most messages. */
static bool is_useful_hint(const char *line)
{
    static const char *const others[] = {"Please report",
                                         "It may be possible to write Dynamo",
                                         "This is likely to be a Dynamo",
                                         "This graph break is fundamental",
                                         "This graph break may have been caused",
                                         "This graph break may be difficult",
                                         "Your code may result in an error"};

    line += strlen("Hint:") + strspn(line + strlen("Hint:"), " ");
    for (size_t i = 0; i < array_count(others); i++)
        if (does_text_begin_with(line, others[i]))
            return false;
    return true;
}

struct torch_reason torch_reason_split(const char *reason)
{
    struct torch_reason made = {0};
    char *copy = strdup(reason ? reason : "");
    char *rest = copy;

    for (char *line, *end; (line = strsep(&rest, "\n"));) {
        bool indented = *line == ' ';
        size_t what = strlen(made.what);
        line += strspn(line, " \t\r");
        for (end = line + strlen(line); end > line && strchr(" \t\r", end[-1]);)
            *--end = 0;
        if (!*line)
            continue;
        if (!what)
            snprintf(made.what, TORCH_PART, "%s", line);
        else if (made.what[what - 1] ==
                 /* a line that ends in a colon, such as "backend='mine' raised:", continues on the
                  * next line */
                 ':')
            snprintf(made.what + what, TORCH_PART - what, " %s", line);
        else if (!copy_labelled_part(made.why, line, "Explanation:") &&
                 !does_text_begin_with(line, "Developer debug context:") &&
                 !(does_text_begin_with(line, "Hint:") &&
                   (!is_useful_hint(line) || copy_labelled_part(made.hint, line, "Hint:"))) &&
                 !*made.why && !indented &&
                 (does_text_begin_with(made.what, "generic_jump") ||
                  does_text_begin_with(made.what, "step_unsupported")))
            /* the first line tells only at which instruction the graph broke; this line
             * tells the cause */
            snprintf(made.what, TORCH_PART, "%s", line);
    }
    free(copy);
    return made;
}

const char *torch_describe_phase(const char *name)
{
    static const struct {
        const char *name, *words;
    } phases[] = {
        {"dynamo", "around the compile of the frame"},
        {"entire_frame_compile", "in the compile of the frame, but for the other lines"},
        {"entire_backward_compile", "in the compile of the backward, but for the other lines"},
        {"compile_attempt", "in an attempt, but for the other lines"},
        {"bytecode_tracing", "following the bytecode"},
        {"build_guards", "making guards"},
        {"backend_compile", "in the backend, but for the other lines"},
        {"gc", "garbage collection"},
        {"create_aot_dispatcher_function", "AOTAutograd"},
        {"aot_collect_metadata", "AOTAutograd"},
        {"aot_trace_joint_graph", "AOTAutograd follows forward and backward"},
        {"inductor_import", "importing Inductor"},
        {"inductor_compile", "Inductor"},
        {"fx_codegen_and_compile", "Inductor"},
        {"compile_fx_inner", "Inductor"},
        {"GraphLowering.run", "Inductor lowers the graph"},
        {"GraphLowering.codegen", "Inductor writes code"},
        {"Scheduler.codegen", "Inductor writes kernels"},
        {"GraphLowering.compile_to_fn", "Inductor loads its code"},
        {"compile_file", "the C++ compiler"},
        {"async_compile.wait", "waiting for kernels to be compiled"},
        {"PyCodeCache.load_by_key_path", "loading generated code"},
    };

    if (does_text_begin_with(name, "compile_attempt_"))
        name = "compile_attempt";
    for (size_t i = 0; i < array_count(phases); i++)
        if (!strcmp(phases[i].name, name))
            return phases[i].words;
    return NULL;
}
