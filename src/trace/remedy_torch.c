/* trace/remedy_torch.c -- the smallest change to a program that would have helped: programs that use torch.compile.
 *
 * Runs in: the viewer. See trace/remedy.h.
 *
 * Torch gains and renames options, so a row says from which version on it holds and until which. The names were
 * looked up in torch 2.6, 2.13 and 2.14; what is in 2.13 and not in 2.6 counts from 2.13 on, unless a version
 * between is known to have it: recompile_limit (before: cache_size_limit) and allow_unspec_int_on_nn_module came
 * with 2.7. Everything without a version is in all of them. */
#include <stdlib.h>
#include <string.h>

#include "trace/remedy.h"
#include "trace/torch_words.h"

/* 0 in `until`: still there. The efforts are those of struct remedy_case. */
enum { LINE = 1, CALLS = 2, REWRITE = 3, PUT_OFF = 4 };

/* told from words by where they lie */
static const char REST[] = "rest", SMALL[] = "small", NONE[] = "none", FLAG[] = "flag";

/* ---- why entries did not fit ----------------------------------------------- */

static const struct cause_case {
    const char *name;
    const char *kind;          /* patterns, | between them; letter case does not matter */
    enum remedy_change change; /* CHANGE_ANY: whatever changed */
    const char *source;        /* patterns */
    const char *said;          /* words in what was wanted, seen or said; NULL: whatever it was. Or REST: of a function for
                                  the rest after a graph break; SMALL: it was 0 and 1 only; NONE, FLAG: None, or
                                  True or False, was wanted */
    int since, until, effort;
    const char *text;
} cause_cases[] = {
    {"backend", "BACKEND_*", CHANGE_ANY, "*", NULL, 213, 0, CALLS,
     "Pass one backend object to every torch.compile of {function}: a new lambda or partial is another backend each time. "
     "Or torch.compile(..., isolate_recompiles=True): then each has entries and a limit of its own."},
    {"backend", "BACKEND_*", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Pass one backend object to every torch.compile of {function}: an entry serves only the backend that made it, and a "
     "new lambda or partial is another one each time."},
    {"keep alive", "*", CHANGE_DEAD, "*", NULL, 0, 0, CALLS,
     "Keep {base} alive between calls: its entry ends with the object. Hold it in a variable that outlives the loop."},
    {"grad mode", "*GLOBAL_STATE*", CHANGE_ANY, "grad_mode", NULL, 0, 0, CALLS,
     "Call {function} under one grad mode (it was {values}): enter torch.no_grad() or inference_mode() outside of the loop."},
    {"autocast", "*GLOBAL_STATE*", CHANGE_ANY, "autocast*", NULL, 0, 0, CALLS,
     "Call {function} under one autocast setting ({source} was {values}): enter torch.autocast outside of the loop, or "
     "inside of {function}, where it is part of the graph."},
    {"global state", "*GLOBAL_STATE*", CHANGE_ANY, "*", "grad_mode", 0, 0, CALLS,
     "Call {function} under one grad mode: enter torch.no_grad() or inference_mode() outside of the loop."},
    {"global state", "*GLOBAL_STATE*", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Set {source} once, before the first call of {function} (it was {values}): it is part of torch's global state."},
    {"modes", "*TENSOR*", CHANGE_ANY, "torch._C._dispatch_keys(*", NULL, 0, 0, CALLS,
     "Call {function} under one set of modes (autocast, inference_mode, torch.func): {source} was {values}."},
    {"function modes", "TORCH_FUNCTION_MODE_STACK", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Enter torch function modes outside of the loop, always the same: they were {values}."},
    {"default device", "DEFAULT_DEVICE", CHANGE_ANY, "*", NULL, 0, 0, LINE,
     "Call torch.set_default_device() once, before the first call of {function} (it was {values})."},
    {"training flag", "*", CHANGE_ANY, "*.training|*\\['training'\\]", NULL, 0, 0, CALLS,
     "Call {function} in one mode ({source} was {values}): train() and eval() need an entry each. Warm up in both, and "
     "switch outside of the loop."},
    {"hooks", "*", CHANGE_ANY, "*_hooks|*_hooks\\[*|*_hooks.*", NULL, 0, 0, CALLS,
     "Register hooks of modules before the first call of {function}, and leave them there: {source} was {values}."},
    {"learning rate", "*", CHANGE_NUMBER, "*\\['lr'\\]", NULL, 0, 0, LINE,
     "Make the learning rate a tensor, lr=torch.tensor(...): {source} was {values}, and a number is compiled in."},
    {"aliasing", "*ALIASING*|STORAGE_OVERLAPPING|LAMBDA_GUARD*", CHANGE_ANY, "*", "the same object|same tensor|sharing memory",
     0, 0, CALLS,
     "Pass either one object twice or different ones always ({source} changed between the two): clone() one of them."},
    {"aliasing", "*ALIASING*|STORAGE_OVERLAPPING", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Pass either one object twice or different ones always ({source} changed between the two): clone() one of them."},
    {"shape relation", "LAMBDA_GUARD*|*SHAPE*", CHANGE_ANY, "*size()*|*stride()*|*storage_offset()*", NULL, 0, 0, REWRITE,
     "The dynamic code holds only while {expected}, because {function} depends on it; it was {values}. Pad to one side of "
     "that, or take the test of the size out; else each side needs an entry.{apart}"},
    {"marking", "DIMENSION_DYNAMIC_MARKING*|DYNAMIC_INDICES", CHANGE_ANY, "*", NULL, 0, 0, LINE,
     "Mark {base} alike for every call: with mark_dynamic or mark_static on some tensors only, each kind needs an entry."},
    {"dynamic parameter", "*", CHANGE_SIZE, "*_parameters*|*_buffers*", NULL, 0, 0, LINE,
     "Parameters are static in every dimension: keep {base} at one shape, or "
     "torch._dynamo.config.force_parameter_static_shapes = False. Dimension {dim} was {values}."},
    {"sizes 0 and 1", "*", CHANGE_SIZE, "*", SMALL, 0, 0, CALLS,
     "Pad dimension {dim} of {base} to 2 at least: torch compiles sizes 0 and 1 apart, dynamic or not (it was {values})."},
    {"dynamic dimension", "*", CHANGE_SIZE, "*", REST, 0, 0, LINE,
     "{base} comes from before the graph break: mark dynamic the input that its dimension {dim} comes from, "
     "torch._dynamo.mark_dynamic, or mend the break. It was {values}.{apart}"},
    {"dynamic dimension", "*", CHANGE_SIZE, "*", NULL, 0, 0, LINE,
     "Mark dimension {dim} of {base} dynamic before the first call: torch._dynamo.mark_dynamic({name}, {dim}), "
     "maybe_mark_dynamic where {function} needs its value; or torch.compile(..., dynamic=True). It was {values}.{apart}"},
    {"dynamic stride", "*", CHANGE_STRIDE, "*", NULL, 0, 0, LINE,
     "Give {base} one memory layout (its stride {dim} was {values}): call .contiguous() before {function}."},
    {"one rank", "*", CHANGE_RANK, "*", NULL, 0, 0, CALLS,
     "Pass {base} with one number of dimensions (it was {values}): reshape before the call. A rank cannot be dynamic."},
    {"one dtype", "*", CHANGE_DTYPE, "*", NULL, 0, 0, LINE,
     "Cast {base} to one dtype before the call (it was {values}); if all of them are needed, each needs an entry."},
    {"one device", "*", CHANGE_DEVICE, "*", NULL, 0, 0, LINE,
     "Move {base} to one device before the call (it was {values}); if all of them are needed, each needs an entry."},
    {"requires_grad", "*", CHANGE_GRAD, "*", NULL, 0, 0, LINE,
     "Pass {base} with one setting of requires_grad (it was {values}): detach() it where no gradient is wanted, always or "
     "never."},
    {"one type", "*", CHANGE_TYPE, "*", NULL, 0, 0, CALLS,
     "Pass one type as {base} (it was {values}); if all of them are needed, each needs an entry."},
    {"one set of keys", "DICT_LENGTH", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Keep the keys of {base} fixed (there were {values} of them): fill in absent ones with a default before the call."},
    {"one length", "*LENGTH*|*_LEN", CHANGE_ANY, "*", NULL, 0, 0, REWRITE,
     "Keep {base} at one length (it was {values}): pad it, or stack its items into one tensor with a dynamic dimension."},
    {"module integer", "*", CHANGE_NUMBER, "*", "allow_unspec_int_on_nn_module", 207, 0, LINE,
     "Let torch make the integer {source} dynamic: torch._dynamo.config.allow_unspec_int_on_nn_module = True; or keep it in "
     "a tensor (register_buffer). It was {values}."},
    {"move into a tensor", "*", CHANGE_NUMBER, "L\\['self'\\]*", NULL, 0, 0, LINE,
     "Keep {source} in a tensor, a buffer or torch.tensor(...): it was {values}, and a number in an attribute is compiled in."},
    {"move into a tensor", "*", CHANGE_NUMBER, "G\\[*", NULL, 0, 0, LINE,
     "Set the global {source} once, before the first call, or keep it in a tensor: it was {values}, and its value is "
     "compiled in."},
    {"move into a tensor", "*", CHANGE_NUMBER, "*", NULL, 0, 0, LINE,
     "Pass {source} as a tensor, torch.tensor({name}): it was {values}. A number is made dynamic by torch itself when it "
     "changes, unless dynamic=False or {function} needs its value as a constant."},
    {"one value", "ID_MATCH", CHANGE_ANY, "*", NONE, 0, 0, CALLS, /* torch 2.6 asks for None and flags by identity */
     "Pass {source} always or never: None and a value need an entry each."},
    {"one value", "ID_MATCH", CHANGE_ANY, "*", FLAG, 0, 0, CALLS,
     "Keep {source} fixed: True and False need an entry each."},
    {"define once", "*FUNCTION_MATCH|*CLOSURE*|*ID_MATCH", CHANGE_ANY, "*", "function |<lambda>|method |partial|code object",
     0, 0, CALLS,
     "Define the function {source} once, outside of the loop: a lambda, partial or nested def is a new object each time."},
    {"define once", "*FUNCTION_MATCH|*CLOSURE*", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Define the function {source} once, outside of the loop: a lambda, partial or nested def is a new object each time."},
    {"one object", "*ID_MATCH", CHANGE_ANY, "G\\[*", NULL, 0, 0, CALLS,
     "Set the global {source} once, before the first call: it was {values}."},
    {"one object", "*ID_MATCH", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Pass the same object as {source} each time, made once: the guard asks for that very object, and it was {values}."},
    {"keep alive", "WEAKREF_ALIVE", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Keep {base} alive between calls: its entry ends with the object. Hold it in a variable that outlives the loop."},
    {"one set of keys", "DICT_*|MAPPING_KEYS*|SET_CONTAINS", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Keep the keys of {base} fixed ({values}): fill in absent ones with a default before the call."},
    {"attribute", "*HASATTR|EXISTS", CHANGE_ANY, "*", NULL, 0, 0, LINE,
     "Set {source} in __init__, so that it is there from the first call on."},
    {"one value", "NONE_MATCH|NOT_NONE", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Pass {source} always or never: None and a value need an entry each."},
    {"one value", "TRUE_MATCH|FALSE_MATCH", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Keep {source} fixed: True and False need an entry each."},
    {"one value", "*EQUALS_MATCH|CONSTANT_MATCH", CHANGE_ANY, "*", NULL, 0, 0, CALLS,
     "Hoist {source} out of {function}, or call it with few values: each needs an entry (it was {values})."},
    {"one value", "?*", CHANGE_ANY, "?*", NULL, 0, 0, CALLS,
     "Keep {source} as the guard {kind} wants it ({expected}), or allow an entry for each of its values."},
    {"see the guard", "*", CHANGE_ANY, "*", "was not seen", 0, 0, LINE,
     "Record with --torch shim, which sees the guard that did not hold; it could not be seen here."},
    {"unknown guard", "*", CHANGE_ANY, "*", NULL, 0, 0, REWRITE,
     "Look at the guards of the older entry (`dyntrace show`): which of them did not hold is not known ({text})."},
};

/* ---- why entries died ------------------------------------------------------ */

static const struct death_case {
    const char *name;
    const char *text_like;
    int effort;
    const char *text;
} death_cases[] = {
    {"keep alive", "*function was freed*|*code object*", CALLS,
     "Compile {function} once and keep it: its entries end with the function, or with torch.compiler.reset() ({entries} died)."},
    {"no reset", "*reset*", LINE,
     "Do not call torch.compiler.reset() while {function} is in use ({entries} died of it)."},
    {"keep alive", "*deallocated*|*collected*", CALLS,
     "Keep {source} alive between calls ({entries} died with it): hold it in a variable that outlives the loop."},
    {"keep alive", "*", CALLS,
     "Keep alive what the entry was made for ({text}; {entries} died): an object that is guarded by identity takes its "
     "entries with it."},
};

/* ---- how calls ended ------------------------------------------------------- */

static const struct outcome_case {
    const char *name;
    enum outcome outcome;
    const char *text_like; /* patterns on the reason; NULL: whatever it is */
    const char *code;      /* what the function has to be, or NULL */
    bool needs_count;      /* only if `needed` is known */
    int since, until, effort;
    const char *text;
} outcome_cases[] = {
    {"warm up", OUTCOME_CALLBACK_ERROR, "*'fail_on_recompile'*", NULL, false, 0, 0, 0,
     "Warm up {function} with these inputs before set_stance(\"fail_on_recompile\"), or leave that stance: the call fails."},
    {"warm up", OUTCOME_CALLBACK_ERROR, "*skip_guard_eval_unsafe*", NULL, false, 0, 0, 0,
     "Warm up {function} with these inputs before set_stance(skip_guard_eval_unsafe=True): the call fails."},
    {"raise the limit", OUTCOME_CALLBACK_ERROR, "*RecompileLimitHit*|*CacheLimit*|*limit reached*", NULL, false, 0, 0, 0,
     "Make the recompiles of {function} needless, or raise torch._dynamo.config.{limit}: under fullgraph=True reaching the "
     "limit is an error."},
    {"allow the break", OUTCOME_CALLBACK_ERROR, "*Unsupported*", NULL, false, 0, 0, 0,
     "Mend what torch cannot follow ({what}), or let it break the graph: leave out fullgraph=True."},
    {"mend the backend", OUTCOME_CALLBACK_ERROR, "*BackendCompilerFailed*", NULL, false, 0, 0, 0,
     "Mend the backend ({what}): backend=\"eager\", then \"aot_eager\" tell which part of it fails."},
    {"mend the call", OUTCOME_CALLBACK_ERROR, "*TorchRuntimeError*|*fake tensor*", NULL, false, 0, 0, 0,
     "Mend the call: an operation does not fit its inputs ({what}), compiled or not."},
    {"mend the compiler", OUTCOME_CALLBACK_ERROR, NULL, NULL, false, 0, 0, 0,
     "Mend what torch raised while compiling {function} ({what}): the call fails."},
    {"mend the guard", OUTCOME_GUARD_ERROR, NULL, NULL, false, 0, 0, 0,
     "Mend the guard that raised ({source}: {text}): guards may run code of the program, an __eq__ or a property. The call "
     "fails."},
    {"raise the limit", OUTCOME_LIMIT, "*accumulated*", NULL, false, 0, 0, PUT_OFF,
     "Raise torch._dynamo.config.{limit}, which counts every entry that {function} ever had; {calls} ran eagerly for want "
     "of it."},
    {"raise the limit", OUTCOME_LIMIT, NULL, NULL, true, 213, 0, PUT_OFF,
     "Raise the limit to {needed}, the number of different inputs seen: torch.compile(..., recompile_limit={needed}) or "
     "torch._dynamo.config.{limit} = {needed}; {calls} ran eagerly for want of it."},
    {"raise the limit", OUTCOME_LIMIT, NULL, NULL, true, 0, 0, PUT_OFF,
     "Raise torch._dynamo.config.{limit} to {needed}, the number of different inputs seen; {calls} ran eagerly for want of it."},
    {"raise the limit", OUTCOME_LIMIT, NULL, NULL, false, 0, 0, PUT_OFF,
     "Raise torch._dynamo.config.{limit}; {calls} ran eagerly for want of it."},
    {"mend the caller", OUTCOME_RUN_ONLY, "called from a caller*", NULL, false, 0, 0, CALLS,
     "Make the recompiles of {source} needless, or raise its limit: since it has reached it, torch compiles nothing new for the "
     "calls that it makes, {function} among them. Or warm up {function} before that."},
    {"warm up", OUTCOME_RUN_ONLY, NULL, NULL, true, 0, 0, CALLS,
     "Warm up {function} with all {needed} kinds of input before compiling is forbidden: by set_stance(\"eager_on_recompile\"), "
     "or because a caller has reached its limit."},
    {"warm up", OUTCOME_RUN_ONLY, NULL, NULL, false, 0, 0, CALLS,
     "Warm up {function} with all kinds of input before compiling is forbidden: by set_stance(\"eager_on_recompile\"), or "
     "because a caller has reached its limit."},
    {"enable", OUTCOME_SKIP, "*non-recursively disabled*", NULL, false, 0, 0, LINE,
     "Take torch.compiler.disable(recursive=False) off {function}, if it need not run eagerly."},
    {"first call outside", OUTCOME_SKIP, "*dispatch mode*", NULL, false, 0, 0, LINE,
     "Make the first call of {function} outside of the dispatch mode (FlopCounterMode is one): after a first call within, "
     "torch skips it for good, until torch.compiler.reset()."},
    {"compile a caller", OUTCOME_SKIP, "*skipfiles*", NULL, false, 0, 0, LINE,
     "Compile a function of your own that calls {function}: this one lies in a file that torch leaves alone."},
    {"nothing to compile", OUTCOME_SKIP, "*No ops traced*|*no tensor*", NULL, false, 0, 0, CALLS,
     "Compile the function around {function}: in this one there is no tensor operation to compile."},
    {"no generator", OUTCOME_SKIP, NULL, "generator", false, 0, 0, REWRITE,
     "Compile a function that calls the generator {function}: a generator itself is not compiled."},
    {"no coroutine", OUTCOME_SKIP, NULL, "coroutine", false, 0, 0, REWRITE,
     "Move the tensor operations of the coroutine {function} into a function, and compile that."},
    {"as it must be", OUTCOME_SKIP, "*exec()*|*__setattr__*|*namedtuple*|*Dynamo-generated*|*__init__*", NULL, false, 0, 0, PUT_OFF,
     "Nothing: torch never compiles a frame like this one ({what})."},
    {"give up less", OUTCOME_SKIP, "*Unsupported*", NULL, false, 0, 0, REWRITE,
     "Mend what torch gave up all of {function} for ({what}), or move it out of the loop or with block, where the graph "
     "cannot be broken."},
    {"asked for", OUTCOME_SKIP, "*asked to*", NULL, false, 0, 0, LINE,
     "Take torch.compiler.disable or skip_code off {function}, if it need not run eagerly."},
    {"look again", OUTCOME_SKIP, "?*", NULL, false, 0, 0, LINE,
     "Remove the cause for which torch skips {function} ({what}), then call torch.compiler.reset(): only that makes it look "
     "again."},
    {"look again", OUTCOME_SKIP, NULL, NULL, false, 0, 0, LINE,
     "Find out why torch skips {function}, TORCH_LOGS=\"+dynamo\" tells; torch.compiler.reset() makes it look again."},
    {"turn on", OUTCOME_DISABLED, NULL, NULL, false, 0, 0, CALLS,
     "Call {function} where the compiler is on: set_stance(\"force_eager\"), torch.compiler.disable around the call, guards and "
     "backends turn it off."},
    {"enable", OUTCOME_PLAIN, "*torch.compiler.disable*|*torch._dynamo.disable*", NULL, false, 0, 0, LINE,
     "Take torch.compiler.disable off {function}, if it need not run eagerly."},
    {"turn on", OUTCOME_PLAIN, NULL, NULL, false, 0, 0, LINE,
     "Call {function} from within torch.compile: torch was not asked about it. Under set_stance(\"force_eager\") and "
     "torch.compiler.disable it never is."},
};

/* ---- graph breaks ---------------------------------------------------------- */

static const struct break_case {
    const char *name;
    const char *words; /* in the reason, in this order, * between them; | between alternatives; ^ first: in its first line */
    int since, until, effort;
    const char *text;
} break_cases[] = {
    {"hoist the print", "trace builtin operator*`print`|builtin: print", 0, 0, LINE,
     "Hoist the print{at} out of {function}, or let torch print at the end of the graph: "
     "torch._dynamo.config.reorderable_logging_functions.add(print)."},
    {"hoist the warning", "warnings.warn|warnings*warn ", 0, 0, LINE,
     "Hoist the warning{at} out of {function}, or let torch warn at the end of the graph: "
     "torch._dynamo.config.reorderable_logging_functions.add(warnings.warn)."},
    {"hoist the logging", "logging.Logger|LoggingLogger|Logger not supported|logging/__init__.py", 213, 0, LINE,
     "Hoist the logging{at} out of {function}, or let torch leave it out: "
     "torch._dynamo.config.ignore_logging_functions.add(logging.Logger.warning), or whichever it is."},
    {"hoist the logging", "logging.Logger|LoggingLogger|Logger not supported|logging/__init__.py", 0, 0, LINE,
     "Hoist the logging{at} out of {function}, or let torch leave it out: "
     "torch._dynamo.config.ignore_logger_methods.add(the method)."},
    {"capture scalars", "^Tensor.item|data dependent operator", 0, 0, LINE,
     "Let torch follow .item(){at}: torch._dynamo.config.capture_scalar_outputs = True; or keep the value in a tensor."},
    {"another operator", "^no meta kernel", 0, 0, REWRITE,
     "Use an operator that torch can follow{at}: this one has no meta kernel ({what})."},
    {"capture shapes", "^dynamic shape operator", 0, 0, LINE,
     "Let torch follow the operator whose output's shape depends on data{at}: "
     "torch._dynamo.config.capture_dynamic_output_shape_ops = True; or use one with a fixed shape, as torch.where."},
    {"no branch", "^data-dependent|generic_jump", 0, 0, REWRITE,
     "Replace the branch on a tensor{at} by torch.where or torch.cond, or take it out of {function}: which way it "
     "goes is not known while torch compiles."},
    {"enable", "torch.compiler.disable|torch._dynamo.disable", 0, 0, LINE,
     "Take torch.compiler.disable off {source}, which is called{at}, or call it before or after {function}."},
    {"remove graph_break", "^graph_break()|skip function graph_break", 0, 0, LINE,
     "Remove the torch._dynamo.graph_break(){at}."},
    {"call backward outside", "^Tensor.backward", 0, 0, LINE,
     "Call .backward(){at} outside of {function}: the backward is compiled with it all the same."},
    {"allow RNNs", "^RNN, GRU", 0, 0, LINE,
     "Let torch follow the RNN{at}: torch._dynamo.config.allow_rnn = True."},
    {"break outside of with", "^ContextWrapping|context manager", 0, 0, REWRITE,
     "Move the with block{at} out of {function}, or what breaks out of the block."},
    {"allow in graph", "^marked as skipped|skipfiles|skip function|in skip_files", 0, 0, REWRITE,
     "Call what torch skips{at} before or after {function}; or make it an operator (torch.library.custom_op), or "
     "torch.compiler.allow_in_graph if it does nothing that torch must see."},
    {"no generator", "^generator", 0, 0, REWRITE, "Take the generator{at} out of {function}."},
    {"not in a loop", "^in loop", 0, 0, REWRITE,
     "Move what breaks the graph{at} out of the loop: {what}."},
    {"as torch says", "Hint:", 0, 0, REWRITE, "Mend the break{at} ({what}). Torch's hint: {hint}."},
    {"move it", "", 0, 0, REWRITE,
     "Move what torch cannot follow{at} ({what}) before or after the tensor operations of {function}."},
};

/* ---- finding the row ------------------------------------------------------- */

/* The parts of WORDS, of which LENGTH bytes count, are in TEXT in this order. */
static bool words_in(const char *text, const char *words, size_t length)
{
    char part[80];

    while (length) {
        size_t bytes = 0;
        while (bytes < length && words[bytes] != '*')
            bytes++;
        if (bytes >= sizeof part)
            return false;
        memcpy(part, words, bytes);
        part[bytes] = 0;
        text = strcasestr(text, part);
        if (!text)
            return false;
        text += bytes;
        bytes += bytes < length;
        words += bytes;
        length -= bytes;
    }
    return true;
}

/* One of the alternatives in WORDS is in TEXT. fnmatch() would take its time over a long one. */
static bool has_words(const char *text, const char *words)
{
    for (const char *at = words; text; at += strcspn(at, "|") + 1) {
        size_t length = strcspn(at, "|");
        if (words_in(text, at, length))
            return true;
        if (!at[length])
            return false;
    }
    return false;
}

/* TEXT is like one of the shell patterns, which are short. */
static bool is_like(const char *patterns, const char *text)
{
    char pattern[80];
    char head[400] = "";

    if (!strcmp(patterns, "*"))
        return true;
    if (text)
        strncat(head, text, sizeof head - 1);
    for (const char *at = patterns;; at += strcspn(at, "|") + 1) {
        size_t length = strcspn(at, "|");
        if (length < sizeof pattern) {
            memcpy(pattern, at, length);
            pattern[length] = 0;
            if (remedy_like(pattern, head))
                return true;
        }
        if (!at[length])
            return false;
    }
}

static bool in_version(const struct remedy_facts *facts, int since, int until)
{
    return facts->torch >= since && (!until || facts->torch <= until);
}

static char *told(const char *name, int effort, const char *text, const struct remedy_facts *facts,
                  struct remedy_case *found)
{
    if (found)
        *found = (struct remedy_case){name, effort};
    return remedy_sentence(text, facts);
}

static bool said(const struct remedy_facts *facts, const char *words)
{
    return has_words(facts->expected, words) || has_words(facts->actual, words) || has_words(facts->text, words);
}

char *remedy_torch_cause(const struct remedy_facts *facts, struct remedy_case *found)
{
    const struct cause_case *c = cause_cases;
    enum remedy_change change = remedy_change(facts);
    char *function = NULL;
    int64_t line;
    bool rest = facts->function && torch_resume(facts->function, &function, &line);
    bool small = facts->values && *facts->values && strspn(facts->values, "01, ") == strlen(facts->values) &&
                 !strstr(facts->values, "10") && !strstr(facts->values, "11");
    bool none = facts->expected && !strcmp(facts->expected, "None");
    bool flag = facts->expected && (!strcmp(facts->expected, "True") || !strcmp(facts->expected, "False"));

    free(function);
    while (!(in_version(facts, c->since, c->until) && (c->change == CHANGE_ANY || c->change == change) &&
             is_like(c->kind, facts->kind) && is_like(c->source, facts->source) &&
             (!c->said || (c->said == REST ? rest : c->said == SMALL ? small : c->said == NONE ? none :
                           c->said == FLAG ? flag : said(facts, c->said)))))
        c++;
    return told(c->name, c->effort, c->text, facts, found);
}

char *remedy_torch_death(const struct remedy_facts *facts, struct remedy_case *found)
{
    static const char before[] = "because ", after[] = " got deallocated";
    const struct death_case *c = death_cases;
    struct remedy_facts more = *facts;
    const char *start = facts->text ? strstr(facts->text, before) : NULL, *end = start ? strstr(start, after) : NULL;
    char *source = NULL, *made;

    if (end) /* torch names what died */
        more.source = source = strndup(start + sizeof before - 1, (size_t)(end - start) - (sizeof before - 1));
    while (!is_like(c->text_like, facts->text))
        c++;
    made = told(c->name, c->effort, c->text, &more, found);
    free(source);
    return made;
}

char *remedy_torch_outcome(enum outcome outcome, const struct remedy_facts *facts, struct remedy_case *found)
{
    for (size_t i = 0; i < sizeof outcome_cases / sizeof *outcome_cases; i++) {
        const struct outcome_case *c = &outcome_cases[i];
        if ((c->outcome == outcome || (c->outcome == OUTCOME_SKIP && outcome == OUTCOME_DECLINED)) &&
            (!c->needs_count || facts->needed > 0) && (!c->text_like || is_like(c->text_like, facts->text)) &&
            (!c->code || (facts->code && !strcmp(c->code, facts->code))) && in_version(facts, c->since, c->until))
            return told(c->name, c->effort, c->text, facts, found);
    }
    return NULL;
}

char *remedy_for_break(const struct remedy_facts *facts, struct remedy_case *found)
{
    static const char before[] = "<function ", after[] = " at 0x";
    const struct break_case *c = break_cases;
    const char *reason = facts->text ? facts->text : "";
    const char *start = strstr(reason, before), *end = start ? strstr(start, after) : NULL;
    const struct torch_reason parts = torch_reason_split(reason);
    struct remedy_facts more = *facts;
    char *source = NULL, *what, *made;

    if (end)
        more.source = source = strndup(start + sizeof before - 1, (size_t)(end - start) - (sizeof before - 1));
    else
        more.source = "it";
    what = parts.what.text ? strndup(parts.what.text, parts.what.bytes) : NULL;
    while (!(in_version(facts, c->since, c->until) && (strcmp(c->words, "Hint:") || parts.hint.text) &&
             (*c->words == '^' ? has_words(what, c->words + 1) : has_words(reason, c->words))))
        c++;
    made = told(c->name, c->effort, c->text, &more, found);
    free(what);
    free(source);
    return made;
}
