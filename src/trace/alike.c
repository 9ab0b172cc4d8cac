/* trace/alike.c -- texts with process-specific parts replaced by `*`. See trace/alike.h.
 *
 * The text is read once, word by word, where a word is letters, digits and `_`. A number is
 * replaced if the text before it shows that it differs from process to process ("cuda:",
 * "device="), or if it can only be an address. A name is replaced if torch generated it.
 *
 * torch generates these names (torch/_dynamo: unique_id, install_global_by_id, and id() in
 * guards.py):
 *
 *     __builtins_dict___20                  with a counter of the process,
 *     __compiled_fn_4_<uuid>                with a counter and a UUID,
 *     ___unnamed_scope_140222591751072_c7   with an object's id and the number of a compile,
 *     __dtensor_spec_140222591751072        with an object's id. */
#include "trace/alike.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/list.h"

/* ID_DIGITS: in a line that compares ids, a decimal number with at least this many digits is
 * taken for the id of an object. Ids of static types can be this short, unless the program is
 * position independent.
 *
 * ADDRESS_DIGITS: a hexadecimal number with at least this many digits is taken for an address. A
 * shorter number is taken for an address only after "at " or "id=".
 *
 * ITEMS_MOST: a set with more items than this is copied unsorted.
 *
 * PARTS_MOST: text_differing() does not split a text that has this many parts or more. */
enum {
    ID_DIGITS = 7,
    ADDRESS_DIGITS = 6,
    UUID_LENGTH = 36,
    ITEMS_MOST = 256,
    PARTS_MOST = 64,
};

/* 64-bit Linux puts programs, heaps and libraries between these addresses. A decimal number between
 * them is taken for an id(). */
#define ADDRESS_LEAST UINT64_C(0x550000000000)
#define ADDRESS_MOST UINT64_C(0xffffffffffff)

typedef LIST(char) text_list;

struct reader {
    const char *text, *at; /* borrowed */
    text_list out;
    /* the current line calls a function that compares ids, so its long numbers are
     * ids of objects */
    bool ids;
    /* the current line compares the version of a dict, a number that each process
     * counts for itself */
    bool version;
};

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool are_digits(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    return count > 0;
}

/* Does the text before the reader's position end in WORDS? */
static bool is_position_after_words(const struct reader *reader, const char *words)
{
    size_t length = strlen(words);

    return (size_t)(reader->at - reader->text) >= length &&
           !memcmp(reader->at - length, words, length);
}

static void write_text(struct reader *reader, const char *text, size_t count)
{
    memcpy(list_add_many(&reader->out, count), text, count);
}

static void write_star(struct reader *reader)
{
    *list_add(&reader->out) = '*';
}

/* Is NAME, which has LENGTH bytes, one of the words of LIST? LIST looks like " one two three ". */
static bool is_word_in_list(const char *list, const char *name, size_t length)
{
    const char *at = list;

    if (!length)
        return false;
    while ((at = strstr(at, " "))) {
        at++;
        if (!strncmp(at, name, length) && at[length] == ' ')
            return true;
    }
    return false;
}

/* Return the length of the word in LIST that NAME begins with, or 0 if NAME begins with none of the
 * words. LIST looks like " one two three ". */
static size_t listed_prefix_length(const char *list, const char *name)
{
    const char *at = list;

    while ((at = strstr(at, " "))) {
        at++;
        size_t length = strcspn(at, " ");
        if (length && !strncmp(at, name, length))
            return length;
    }
    return 0;
}

/* Return where the word that ends at END begins. */
static const char *find_word_begin(const struct reader *reader, const char *end)
{
    while (end > reader->text && is_word_byte(end[-1]))
        end--;
    return end;
}

/* ---- numbers that differ from process to process ------------------------- */

/* Names of device types as torch prints them: those of c10/core/DeviceType.cpp, and the names that
 * vendors give to the type "privateuseone". */
static const char devices[] = " cpu cuda hip xpu mps hpu mtia maia xla ipu ve lazy ort meta vulkan "
                              "opencl dml fpga mkldnn ideep npu musa mlu gcu sdaa spyre tpu "
                              "neuron rbln cann openreg privateuseone dipu ";

/* Texts that stand before the number of a device, a stream or a torch.fx module. */
static const char *const before_number[] = {
    "device=",          "device_index=",  "device_id=",
    "stream_id=",       "cuda_stream=",   "pci_bus_id=",
    "pci_device_id=",   "pci_domain_id=", "Expected device index to be ",
    "<eval_with_key>.",
};

/* Is the reader's position right after "cuda:" or another device name? */
static bool is_after_device_name(const struct reader *reader)
{
    const char *end = reader->at - 1;
    const char *begin;

    if (!is_position_after_words(reader, ":"))
        return false;
    begin = find_word_begin(reader, end);
    return is_word_in_list(devices, begin, (size_t)(end - begin));
}

/* Is the reader's position right after "device('cuda', " or "device(type='cuda', index="? */
static bool is_in_device_call(const struct reader *reader)
{
    struct reader at = *reader;
    const char *name;

    if (is_position_after_words(&at, "index="))
        at.at -= strlen("index=");
    if (!is_position_after_words(&at, "', ") && !is_position_after_words(&at, "\", "))
        return false;
    at.at -= strlen("', ");
    name = find_word_begin(reader, at.at);
    if (name == reader->text || !is_word_in_list(devices, name, (size_t)(at.at - name)))
        return false;
    at.at = name - 1;
    return is_position_after_words(&at, "device(") || is_position_after_words(&at, "device(type=");
}

/* Is the number at the reader's position the number of a device or stream? */
static bool is_device_number(const struct reader *reader)
{
    if (is_after_device_name(reader) || is_in_device_call(reader))
        return true;
    for (size_t i = 0; i < array_count(before_number); i++)
        if (is_position_after_words(reader, before_number[i]))
            return true;
    return is_position_after_words(reader, ", actual ") &&
           strstr(reader->text, "device index mismatch");
}

/* Is the decimal number at the reader's position an object's id, or a counter of the process?
 * DIGITS is how many digits it has. */
static bool is_id(const struct reader *reader, size_t digits)
{
    uint64_t value = UINT64_MAX;

    if (digits <= 18)
        value = strtoull(reader->at, NULL, 10);
    if (value >= ADDRESS_LEAST && value <= ADDRESS_MOST)
        return true;
    if (reader->version && is_position_after_words(reader, "== "))
        return true;
    return reader->ids && digits >= ID_DIGITS;
}

static bool is_address(const struct reader *reader, const char *word, size_t length)
{
    size_t digits = length - 2;

    if (length <= 2 || strncasecmp(word, "0x", 2) != 0)
        return false;
    if (strspn(word + 2, "0123456789abcdefABCDEF") < digits)
        return false;
    return digits >= ADDRESS_DIGITS || is_position_after_words(reader, "at ") ||
           is_position_after_words(reader, "id=");
}

/* Return the length of the UUID that TEXT begins with, or 0 if TEXT begins with none. The groups of
 * a UUID are separated by `-` or `_`. */
static size_t uuid_length(const char *text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t i;

    for (i = 0; form[i]; i++) {
        bool between = text[i] == '-' || text[i] == '_';
        bool same = form[i] == 'x' ? isxdigit((unsigned char)text[i]) : between;
        if (!same)
            return 0;
    }
    return is_word_byte(text[i]) ? 0 : i;
}

/* Does WORD, a number, differ from process to process, so that `*` must replace it? WORD
 * has LENGTH bytes. */
static bool is_process_specific(const struct reader *reader, const char *word, size_t length)
{
    if (is_address(reader, word, length))
        return true;
    if (!are_digits(word, length))
        return false;
    return is_device_number(reader) || is_id(reader, length);
}

static void copy_number_or_star(struct reader *reader, size_t length)
{
    if (is_process_specific(reader, reader->at, length))
        write_star(reader);
    else
        write_text(reader, reader->at, length);
    reader->at += length;
}

/* ---- names that torch generated with a number ---------------------------- */

/* Prefixes of the names that torch generates with a counter or an object's id at the end. */
static const char counted[] =
    " __builtins_dict__ __compiled_fn __resume_at ___context_manager __comprehension "
    "__gen_rand_values __warnings_warn_wrapper __flattened_ __optimizer __dtensor_spec "
    "___check_metadata ___check_opaque_guard_fn ___unnamed_scope torch_obj __mangled ";

/* Return where the digits at the end of NAME begin. Returns LENGTH if NAME does not end in digits,
 * or if the character before the digits is not BEFORE. */
static size_t trailing_digits_begin(const char *name, size_t length, char before)
{
    size_t begin = length;

    while (begin && isdigit((unsigned char)name[begin - 1]))
        begin--;
    if (!begin || begin == length)
        return length;
    return name[begin - 1] == before ? begin : length;
}

/* Do the digits at the end of NAME differ from process to process? NAME ends in `_` and digits,
 * which begin at NUMBER and end at LENGTH. */
static bool is_number_process_specific(const struct reader *reader, const char *name, size_t number,
                                       size_t length)
{
    bool is_global =
        is_position_after_words(reader, "G['") || is_position_after_words(reader, "G[\"");
    struct reader end = {.text = reader->text, .at = name + number};
    bool is_dunder = !strncmp(name, "__", 2) && strncmp(name, "__import_", 9) != 0;

    if (is_global && is_dunder)
        /* only torch generates such names; a later torch may use prefixes that
         * `counted` does not have */
        return true;
    return listed_prefix_length(counted, name) || is_id(&end, length - number);
}

/* Return where the object's id begins in a name such as "___unnamed_scope_140222591751072_c7".
 * Returns LENGTH if NAME does not end in an id, `_c` and a number. */
static size_t find_id_begin(const char *name, size_t length)
{
    size_t compile = trailing_digits_begin(name, length, 'c');
    size_t end = compile - 2;
    size_t id;

    if (compile == length || compile < 3)
        return length;
    if (name[end] != '_')
        return length;
    id = trailing_digits_begin(name, end, '_');
    return end - id >= ID_DIGITS ? id : length;
}

/* Copy the name at the reader's position, which has LENGTH bytes. Digits that differ from process
 * to process become `*`: "__builtins_dict___20" becomes "__builtins_dict___*". */
static void copy_name_or_star(struct reader *reader, size_t length)
{
    const char *name = reader->at;
    size_t number = trailing_digits_begin(name, length, '_');
    size_t id = find_id_begin(name, length);

    if (id < length) {
        write_text(reader, name, id);
        write_text(reader, "*_c*", 4);
    } else if (number < length && is_number_process_specific(reader, name, number, length)) {
        write_text(reader, name, number);
        write_star(reader);
    } else {
        write_text(reader, name, length);
    }
    reader->at += length;
}

/* Return where the uuid begins in a name such as "__compiled_fn_4_<uuid>", or LENGTH if NAME does
 * not end in a uuid. */
static size_t find_uuid_begin(const char *name, size_t length)
{
    size_t begin = length - UUID_LENGTH;

    if (length <= UUID_LENGTH || name[begin - 1] != '_')
        return length;
    return uuid_length(name + begin) ? begin : length;
}

/* Functions by which guards compare ids: `___check_obj_id(L['x'], 140222591751072)`. */
static const char of_ids[] = " ___check_obj_id ___check_type_id ___check_fake_script_type "
                             "__check_obj_id top_saved_tensors_hooks ";

static void copy_word_or_star(struct reader *reader)
{
    const char *word = reader->at;
    size_t uuid = uuid_length(word);
    size_t length = 1;
    size_t begin;

    while (is_word_byte(word[length]))
        length++;
    if (is_word_in_list(of_ids, word, length))
        reader->ids = true;
    if (is_word_in_list(" ___dict_version ", word, length))
        reader->version = true;
    begin = find_uuid_begin(word, length);
    if (uuid) {
        write_star(reader);
        reader->at += uuid;
    } else if (isdigit((unsigned char)*word)) {
        copy_number_or_star(reader, length);
    } else if (begin < length) {
        copy_name_or_star(reader, begin - 1);
        write_text(reader, "_*", 2);
        reader->at = word + length;
    } else {
        copy_name_or_star(reader, length);
    }
}

/* ---- sorting the items of sets ------------------------------------------- */

struct item {
    const char *text; /* borrowed */
    size_t length;
};

struct set {
    struct item items[ITEMS_MOST];
    int count;
};

static int compare_items(const void *one, const void *other)
{
    const struct item *a = one;
    const struct item *b = other;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, shorter);

    if (order || a->length == b->length)
        return order;
    return a->length > b->length ? 1 : -1;
}

/* Return the position behind the string literal at AT, which begins with a quote. Returns the end
 * of the text if the literal is not closed. */
static const char *find_string_end(const char *at)
{
    char quote = *at++;

    for (; *at && *at != quote; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

/* Split TEXT, which stands behind a `{`, into the items of a set. Returns the number of bytes
 * before the closing `}`. Returns 0 if TEXT is not a set, or if its items contain brackets. */
static size_t split_set_items(const char *text, struct set *set)
{
    const char *at = text;
    const char *begin = text;

    set->count = 0;
    while (set->count < ITEMS_MOST) {
        bool is_end = *at == '}';
        if (!*at || strchr("{([:\n", *at))
            return 0;
        if (is_end || !strncmp(at, ", ", 2)) {
            set->items[set->count++] = (struct item){begin, (size_t)(at - begin)};
            begin = at + 2;
        }
        if (is_end)
            return (size_t)(at - text);
        at = *at == '\'' || *at == '"' ? find_string_end(at) : at + 1;
    }
    return 0;
}

/* Sort the items of SET, and write them to TO, where they stood unsorted in LENGTH bytes. */
static void write_sorted_set(struct set *set, char *to, size_t length)
{
    text_list sorted = {0};

    qsort(set->items, (size_t)set->count, sizeof *set->items, compare_items);
    for (int i = 0; i < set->count; i++) {
        if (i)
            memcpy(list_add_many(&sorted, 2), ", ", 2);
        memcpy(list_add_many(&sorted, set->items[i].length), set->items[i].text,
               set->items[i].length);
    }
    memcpy(to, sorted.at, length);
    list_free(&sorted);
}

/* Sort the items of each set in TEXT. Two processes print equal sets in different orders, because
 * each process hashes strings with its own secret. */
static void sort_all_sets(char *text)
{
    struct set set;

    for (char *at = strchr(text, '{'); at; at = strchr(at + 1, '{')) {
        size_t length = split_set_items(at + 1, &set);
        if (length && set.count > 1)
            write_sorted_set(&set, at + 1, length);
    }
}

char *text_alike(const char *text)
{
    struct reader reader = {.text = text, .at = text};

    while (*reader.at) {
        if (is_word_byte(*reader.at)) {
            copy_word_or_star(&reader);
            continue;
        }
        if (*reader.at == '\n')
            reader.ids = reader.version = false;
        *list_add(&reader.out) = *reader.at++;
    }
    *list_add(&reader.out) = 0;
    sort_all_sets(reader.out.at);
    return reader.out.at;
}

/* ---- finding the parts in which two texts differ ------------------------- */

struct parts {
    const char *begin[PARTS_MOST];
    size_t length[PARTS_MOST];
    int count;
};

/* Split TEXT at its commas, but not at commas inside two or more brackets: "f(a, [b, c], d)"
 * becomes "f(a", " [b, c]" and " d)". */
static struct parts split_parts(const char *text)
{
    struct parts parts = {.begin[0] = text};
    const char *at = text;
    int depth = 0;

    while (parts.count < PARTS_MOST) {
        bool is_end = !*at || (*at == ',' && depth <= 1);
        if (*at && strchr("([{", *at))
            depth++;
        if (*at && strchr(")]}", *at))
            depth--;
        if (is_end) {
            parts.length[parts.count] = (size_t)(at - parts.begin[parts.count]);
            parts.count++;
        }
        if (!*at)
            break;
        if (is_end && parts.count < PARTS_MOST)
            parts.begin[parts.count] = at + 1;
        at = *at == '\'' || *at == '"' ? find_string_end(at) : at + 1;
    }
    return parts;
}

/* Return how many brackets PART opens, minus how many it closes. */
static int count_open_brackets(const char *part, size_t length)
{
    int open = 0;

    for (size_t i = 0; i < length; i++) {
        if (strchr("([{", part[i]))
            open++;
        if (strchr(")]}", part[i]))
            open--;
    }
    return open;
}

/* Append PART, which has LENGTH bytes, to OUT, without blanks before it. The first part of "f(a,
 * b)" is appended without the "f(", the last part without the ")". */
static void append_part(text_list *out, const char *part, size_t length)
{
    size_t blanks = strspn(part, " ");
    const char *bracket;
    int open;

    part += blanks;
    length -= blanks;
    open = count_open_brackets(part, length);
    bracket = memchr(part, '(', length);
    if (open < 0)
        length--;
    if (open > 0 && bracket) {
        length -= (size_t)(bracket + 1 - part);
        part = bracket + 1;
    }
    if (out->count)
        memcpy(list_add_many(out, 2), ", ", 2);
    memcpy(list_add_many(out, length), part, length);
}

/* Is TEXT a call, "check_tensor(...)", or a dictionary of settings, "... against {...}"? Then a
 * part of it can be understood alone. A part of any other text cannot, for example the "2" of
 * "L['t'] == (1, 2)". */
static bool has_separate_parts(const char *text)
{
    const char *bracket = text + strcspn(text, "({");
    size_t before = (size_t)(bracket - text);

    if (*bracket == '(')
        return before > 0 && is_word_byte(bracket[-1]);
    return *bracket && before >= 8 && !strncmp(bracket - 8, "against ", 8);
}

char *text_differing(const char *text, const char *other)
{
    struct parts mine = split_parts(text);
    struct parts others = split_parts(other);
    text_list out = {0};

    if (!has_separate_parts(text))
        return strdup(text);
    if (mine.count != others.count || mine.count == PARTS_MOST)
        return strdup(text);
    for (int i = 0; i < mine.count; i++) {
        bool same = mine.length[i] == others.length[i] &&
                    !memcmp(mine.begin[i], others.begin[i], mine.length[i]);
        if (!same)
            append_part(&out, mine.begin[i], mine.length[i]);
    }
    if (!out.count)
        return strdup(text);
    *list_add(&out) = 0;
    return out.at;
}
