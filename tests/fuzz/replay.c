/* replay.c - runs a fuzz target over the files of its corpus, and over changed ones, without libFuzzer: where
 * the target's work is done by a GPU, whose runtime the fuzzer's sanitizers do not go with.
 *
 *     replay-TARGET [-n CHANGED] [-s SECONDS] FILE...
 *
 * -n: so many changed versions of each file besides, the same ones every time; -s: begin nothing after that.
 * The target dies of what it finds; the file is named then. */
#include <signal.h>
#include <time.h>

#include "fuzz/fuzz.h"

enum { MOST_BYTES = 1 << 20, MOST_CHANGES = 8 };

static char where[4352];

static void name_it(int signal_number)
{
    ssize_t n = write(STDERR_FILENO, where, strlen(where));
    _exit(n < 0 ? 128 : 128 + signal_number);
}

static uint64_t next(uint64_t *state) /* xorshift64* */
{
    *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* Bytes changed, cut out, put in twice: as a fuzzer begins. */
static size_t change(uint8_t *data, size_t size, uint64_t *state)
{
    static const uint8_t ends[] = {0, 1, 127, 128, 255};
    for (uint64_t left = 1 + next(state) % MOST_CHANGES; left > 0 && size > 0; left--) {
        size_t at = next(state) % size, n = 1 + next(state) % 16;
        switch (next(state) % 5) {
        case 0:
            data[at] ^= (uint8_t)(1u << next(state) % 8);
            break;
        case 1:
            data[at] = (uint8_t)next(state);
            break;
        case 2:
            data[at] = ends[next(state) % sizeof ends];
            break;
        case 3: /* out */
            n = n < size - at ? n : size - at;
            memmove(data + at, data + at + n, size - at - n);
            size -= n;
            break;
        default: /* twice */
            n = n < size - at ? n : size - at;
            if (size + n > MOST_BYTES)
                break;
            memmove(data + at + n, data + at, size - at);
            size += n;
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    static uint8_t kept[MOST_BYTES], data[MOST_BYTES];
    long changed = 0, seconds = 1 << 30, runs = 0;
    int option;
    while ((option = getopt(argc, argv, "n:s:")) != -1) {
        if (option == '?')
            return 2;
        *(option == 'n' ? &changed : &seconds) = atol(optarg);
    }
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], name_it);
    time_t end = time(NULL) + seconds;
    for (long round = 0; round <= changed; round++)
        for (int i = optind; i < argc && time(NULL) < end; i++, runs++) {
            FILE *file = fopen(argv[i], "rb");
            FUZZ_REQUIRE(file, "%s cannot be read", argv[i]);
            size_t size = fread(kept, 1, sizeof kept, file);
            fclose(file);
            uint64_t state = (uint64_t)round * 1000003 + (uint64_t)i + 1;
            memcpy(data, kept, size);
            size = round ? change(data, size, &state) : size;
            snprintf(where, sizeof where, "replay: file %d, %s, change %ld\n", i - optind, argv[i], round);
            LLVMFuzzerTestOneInput(data, size);
        }
    printf("replay: %ld inputs\n", runs);
    return 0;
}
