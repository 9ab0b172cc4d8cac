/* driver.c -- runs one fuzz_*.c: mutates inputs, keeps those that reach new code.
 *
 * Runs in: the fuzz programs of `make fuzz`.
 *
 * gcc has no libFuzzer, so this is the page of it that we need. A fuzz program
 * is one function; the driver calls it until FUZZ_SECONDS or FUZZ_RUNS is used
 * up. ASan and UBSan end the process when something is wrong.
 *
 *     fuzz_decode tests/fuzz/corpus/decode     seeds: every file in there
 *     fuzz_decode crash-file                   one input, once: look at a crash
 *
 * The same FUZZ_SEED, seeds and FUZZ_RUNS give the same inputs. Before each
 * call the input lies in PROGRAM.input (a shared mapping), so that it is still
 * there after a crash; its first 8 bytes are its length, and the driver accepts
 * the file as it is. The code under test is compiled with
 * -fsanitize-coverage=trace-pc, which calls __sanitizer_cov_trace_pc in every
 * basic block; this file is not. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* In fuzz_*.c: do with DATA what is to be tested. What it returns is ignored.
 * DATA is exactly BYTES long, malloc'ed, so that ASan sees a read past it. */
int fuzz_one(const uint8_t *data, size_t bytes);

enum { INPUT_MAX = 1 << 16, CORPUS_MAX = 4096, EDGES = 1 << 16 };

struct input {
    uint8_t *data; /* owned */
    size_t bytes;
};

static struct input corpus[CORPUS_MAX];
static int corpus_count;

static uint8_t edge_first[EDGES];
static uint8_t *edge_now = edge_first; /* reached by this call, in its children too: main() takes shared memory */
static uint8_t edge_ever[EDGES]; /* reached by any */
static uintptr_t edge_last;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    /* Relative, so that a run is the same wherever the program was loaded. */
    uintptr_t here = (uintptr_t)__builtin_return_address(0) - (uintptr_t)fuzz_one;

    /* A pair of blocks, as in AFL: A->B and B->A differ. */
    here = here >> 1 ^ here >> 17;
    edge_now[(here ^ edge_last) % EDGES] = 1;
    edge_last = here >> 1;
}

static uint64_t random_state;

static uint64_t random_next(void) /* xorshift64* */
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static size_t random_below(size_t limit)
{
    return limit ? random_next() % limit : 0;
}

static void corpus_add(const uint8_t *data, size_t bytes)
{
    struct input *input;

    /* A full corpus forgets a random one, not the seeds' first. */
    if (corpus_count < CORPUS_MAX) {
        input = &corpus[corpus_count++];
    } else {
        input = &corpus[CORPUS_MAX / 2 + random_below(CORPUS_MAX / 2)];
        free(input->data);
    }
    input->data = malloc(bytes + 1);
    memcpy(input->data, data, bytes);
    input->bytes = bytes;
}

/* One small change to DATA, in place. Returns its new length. */
static size_t mutate(uint8_t *data, size_t bytes)
{
    static const uint64_t edgy[] = {0, 1, 2, 7, 8, 127, 128, 255, 256, 4095, 4096, 65535, 65536, INT32_MAX,
                                    UINT32_MAX, UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX};
    size_t at = random_below(bytes), length;
    const struct input *other;
    uint64_t word;

    switch (random_below(8)) {
    case 0: /* flip a bit */
        if (bytes)
            data[at] ^= 1 << random_below(8);
        return bytes;
    case 1: /* another byte */
        if (bytes)
            data[at] = random_next();
        return bytes;
    case 2: /* an edgy number of 1, 2, 4 or 8 bytes, sometimes aligned */
        length = (size_t)1 << random_below(4);
        if (random_below(2))
            at &= ~(length - 1);
        word = edgy[random_below(sizeof edgy / sizeof *edgy)] + (random_below(4) ? 0 : random_below(17) - 8);
        if (at + length <= bytes)
            memcpy(data + at, &word, length);
        return bytes;
    case 3: /* add a little to a number */
        length = (size_t)1 << random_below(4);
        if (at + length <= bytes) {
            word = 0;
            memcpy(&word, data + at, length);
            word += random_below(65) - 32;
            memcpy(data + at, &word, length);
        }
        return bytes;
    case 4: /* cut */
        length = random_below(bytes - at + 1);
        memmove(data + at, data + at + length, bytes - at - length);
        return bytes - length;
    case 5: /* double a stretch */
        length = random_below(bytes - at + 1);
        if (bytes + length > INPUT_MAX)
            return bytes;
        memmove(data + at + length, data + at, bytes - at);
        return bytes + length;
    case 6: /* a stretch of another input over this one */
        other = &corpus[random_below(corpus_count)];
        if (other->bytes) {
            size_t from = random_below(other->bytes);

            length = random_below(other->bytes - from) + 1;
            if (at + length > INPUT_MAX)
                length = INPUT_MAX - at;
            memcpy(data + at, other->data + from, length);
            if (at + length > bytes)
                bytes = at + length;
        }
        return bytes;
    default: /* random bytes at the end */
        length = random_below(64);
        if (bytes + length > INPUT_MAX)
            return bytes;
        for (size_t i = 0; i < length; i++)
            data[bytes + i] = random_next();
        return bytes + length;
    }
}

/* Call the program with DATA. Returns how many edges were never reached before. */
static int run(const uint8_t *data, size_t bytes)
{
    uint8_t *copy = malloc(bytes ? bytes : 1);
    int found = 0;

    memcpy(copy, data, bytes);
    memset(edge_now, 0, EDGES);
    edge_last = 0;
    fuzz_one(copy, bytes);
    free(copy);
    for (int i = 0; i < EDGES; i += 8) {
        uint64_t eight;

        memcpy(&eight, edge_now + i, sizeof eight);
        for (int j = i; eight && j < i + 8; j++)
            if (edge_now[j] && !edge_ever[j])
                edge_ever[j] = 1, found++;
    }
    return found;
}

/* Add the file, or every file of the directory, to the corpus. */
static void load(const char *path)
{
    static uint8_t data[8 + INPUT_MAX];
    struct dirent *entry;
    uint64_t length;
    size_t bytes;
    DIR *directory;
    FILE *file;

    directory = opendir(path);
    if (directory) {
        while ((entry = readdir(directory)))
            if (entry->d_name[0] != '.') {
                char inside[4096];

                snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
                load(inside);
            }
        closedir(directory);
        return;
    }
    file = fopen(path, "rb");
    if (!file)
        return;
    bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    memcpy(&length, data, sizeof length);
    if (bytes == sizeof data && length <= INPUT_MAX)
        corpus_add(data + 8, length); /* a PROGRAM.input left by a crash */
    else
        corpus_add(data, bytes < INPUT_MAX ? bytes : INPUT_MAX);
}

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    long seconds = setting("FUZZ_SECONDS", 30), runs = setting("FUZZ_RUNS", 0), done = 0;
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    time_t end = time(NULL) + seconds;
    struct stat status;
    char path[4096];
    uint8_t *shared;
    int fd, edges = 0;

    shared = mmap(NULL, EDGES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared != MAP_FAILED)
        edge_now = shared;
    random_state = (uint64_t)setting("FUZZ_SEED", 1) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int i = 1; i < argc; i++)
        load(argv[i]);
    if (argc == 2 && stat(argv[1], &status) == 0 && S_ISREG(status.st_mode) && corpus_count) {
        run(corpus[0].data, corpus[0].bytes);
        return 0;
    }
    if (!corpus_count)
        corpus_add((const uint8_t *)"", 0);

    snprintf(path, sizeof path, "%s.input", argv[0]);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 8 + INPUT_MAX) != 0) {
        perror(path);
        return 1;
    }
    shared = mmap(NULL, 8 + INPUT_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) {
        perror(path);
        return 1;
    }
    for (int seeds = corpus_count; time(NULL) < end && (!runs || done < runs); done++) {
        const struct input *input = &corpus[done < seeds ? (size_t)done : random_below(corpus_count)];
        uint64_t bytes = input->bytes;
        int found;

        memcpy(shared + 8, input->data, bytes);
        for (size_t i = done < seeds ? 0 : 1 + random_below(8); i > 0; i--)
            bytes = mutate(shared + 8, bytes);
        memcpy(shared, &bytes, sizeof bytes);
        found = run(shared + 8, bytes);
        edges += found;
        if (found && done >= seeds)
            corpus_add(shared + 8, bytes);
    }
    printf("%s: %ld runs, %d inputs, %d edges\n", name, done, corpus_count, edges);
    /* Leak detection at exit should speak of fuzz_one only. */
    for (int i = 0; i < corpus_count; i++)
        free(corpus[i].data);
    munmap(shared, 8 + INPUT_MAX);
    close(fd);
    unlink(path);
    return 0;
}
