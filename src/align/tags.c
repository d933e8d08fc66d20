/* tags.c - tags of BAM records, byte by byte. */
#include "align/tags.h"

#include <string.h>

int lw_tag_put_integer(kstring_t *s, const char *tag, int64_t value)
{
    static const struct {
        int64_t low, high;
        char type;
        int bytes;
    } types[] = {{0, UINT8_MAX, 'C', 1},
                 {0, UINT16_MAX, 'S', 2},
                 {INT8_MIN, -1, 'c', 1},
                 {INT16_MIN, -1, 's', 2},
                 {INT32_MIN, INT32_MAX, 'i', 4}};
    size_t t = 0;
    while (value < types[t].low || value > types[t].high)
        t++;
    int bad = kputsn(tag, 2, s) < 0 || kputc(types[t].type, s) < 0;
    for (int i = 0; i < types[t].bytes; i++) /* little-endian */
        bad |= kputc((int)((uint64_t)value >> 8 * i & 255), s) < 0;
    return bad;
}

int64_t lw_tag_size(const uint8_t *p, int64_t left)
{
    static const uint8_t bytes[256] = {
        ['A'] = 1, ['c'] = 1, ['C'] = 1, ['s'] = 2, ['S'] = 2, ['i'] = 4, ['I'] = 4, ['f'] = 4, ['d'] = 8};
    if (left < 4)
        return 0;
    int64_t size = 0;
    if (p[2] == 'Z' || p[2] == 'H') {
        const uint8_t *end = memchr(p + 3, 0, (size_t)left - 3);
        size = end ? end - p + 1 : 0;
    } else if (p[2] == 'B') {
        if (left < 8)
            return 0;
        int64_t n = p[4] | p[5] << 8 | p[6] << 16 | (int64_t)p[7] << 24;
        size = bytes[p[3]] ? 8 + n * bytes[p[3]] : 0;
    } else if (bytes[p[2]]) {
        size = 3 + bytes[p[2]];
    }
    return size <= left ? size : 0;
}
