/* paths_cpu_lanes.h - the kernels of one lane type; included once per type with LANE (s32), ELEMENT (int32_t)
 * and NOTHING (its infinity). */
#define NAME_(a, b) a##_##b
#define NAME__(a, b) NAME_(a, b)
#define NAME(f) NAME__(f, LANE)
#define VEC_(t, f) lw_##t##v##f
#define VEC__(t, f) VEC_(t, f)
#define VEC(f) VEC__(LANE, f)
#define LANES_(t) LW_##t##v_LANES
#define LANES__(t) LANES_(t)
#define AFRESH_(t) LW_##t##v_AFRESH
#define AFRESH__(t) AFRESH_(t)
#define WIDTH (LW_MINPLUS_VECTORS * (int)LANES__(LANE))

static void NAME(close)(void *block, int64_t ld, int depth)
{
    ELEMENT *d = block;
    for (int k = 0; k < depth; k++)
        for (int i = 0; i < depth; i++) {
            const ELEMENT *pivot = d + k * ld;
            ELEMENT *row = d + i * ld, through = row[k];
            VEC() first = VEC(_set1)(through);
            int j = 0;
            for (; j + (int)LANES__(LANE) <= depth; j += (int)LANES__(LANE))
                VEC(_store)(row + j, VEC(_min)(VEC(_load)(row + j), VEC(_add)(first, VEC(_load)(pivot + j))));
            for (; j < depth; j++) {
                ELEMENT sum = (ELEMENT)(through + pivot[j]);
                row[j] = sum < row[j] ? sum : row[j];
            }
        }
}

static void NAME(pack_rows)(void *out, const void *m, int64_t ld, int64_t rows, int depth)
{
    ELEMENT *to = out;
    const ELEMENT *from = m;
    int64_t i0 = 0;
    for (; i0 + LW_CPU_ROWS <= rows; i0 += LW_CPU_ROWS, from += LW_CPU_ROWS * ld)
        for (int k = 0; k < depth; k++, to += LW_CPU_ROWS)
            for (int i = 0; i < LW_CPU_ROWS; i++) {
                to[i] = from[i * ld + k];
                if (k % (64 / (int)sizeof *to) == 0 && i0 + LW_CPU_ROWS + i < rows)
                    __builtin_prefetch(from + (LW_CPU_ROWS + i) * ld + k);
            }
    for (int k = 0; i0 < rows && k < depth; k++, to += LW_CPU_ROWS)
        for (int i = 0; i < LW_CPU_ROWS; i++)
            to[i] = i0 + i < rows ? from[i * ld + k] : NOTHING;
}

static void NAME(pack_columns)(void *out, const void *m, int64_t ld, int64_t columns, int depth)
{
    ELEMENT *to = out;
    const ELEMENT *from = m;
    for (int64_t j0 = 0; j0 < columns; j0 += WIDTH)
        for (int k = 0; k < depth; k++, to += WIDTH) {
            const ELEMENT *row = from + k * ld + j0;
            int there = columns - j0 < WIDTH ? (int)(columns - j0) : WIDTH;
            memcpy(to, row, (size_t)there * sizeof *to);
            for (int j = there; j < WIDTH; j++)
                to[j] = NOTHING;
        }
}

/* One whole tile. */
static inline __attribute__((always_inline)) void NAME(tile)(ELEMENT *c, int64_t ld, const ELEMENT *a,
                                                             const ELEMENT *b, int depth)
{
    VEC() sum[LW_CPU_ROWS][LW_MINPLUS_VECTORS];
    const ELEMENT *again = AFRESH__(LANE) ? lw_afresh(a) : a;
    for (int i = 0; i < LW_CPU_ROWS; i++)
        for (int v = 0; v < LW_MINPLUS_VECTORS; v++)
            sum[i][v] = VEC(_load)(c + i * ld + v * (int)LANES__(LANE));
    for (int k = 0; k < depth; k++, a += LW_CPU_ROWS, again += LW_CPU_ROWS, b += WIDTH) {
        VEC() right[LW_MINPLUS_VECTORS];
        for (int v = 0; v < LW_MINPLUS_VECTORS; v++)
            right[v] = VEC(_load)(b + v * (int)LANES__(LANE));
        for (int i = 0; i < LW_CPU_ROWS; i++)
            for (int v = 0; v < LW_MINPLUS_VECTORS; v++)
                sum[i][v] = VEC(_min)(sum[i][v], VEC(_add)(VEC(_set1)(v ? again[i] : a[i]), right[v]));
    }
    for (int i = 0; i < LW_CPU_ROWS; i++)
        for (int v = 0; v < LW_MINPLUS_VECTORS; v++)
            VEC(_store)(c + i * ld + v * (int)LANES__(LANE), sum[i][v]);
}

static void NAME(product)(void *to, int64_t ld, int64_t rows, int64_t columns, const void *left,
                          const void *right, int depth)
{
    ELEMENT *c = to;
    const ELEMENT *a = left, *b = right;
    for (int64_t j = 0; j < columns; j += WIDTH, b += (int64_t)depth * WIDTH)
        for (int64_t i = 0; i < rows; i += LW_CPU_ROWS) {
            const ELEMENT *strip = a + i * depth;
            for (int64_t x = i + LW_CPU_AHEAD; x < rows && x < i + LW_CPU_AHEAD + LW_CPU_ROWS; x++)
                for (int64_t y = 0; y < WIDTH; y += 64 / (int)sizeof *c)
                    __builtin_prefetch(c + x * ld + j + y, 1);
            if (i + LW_CPU_ROWS <= rows && j + WIDTH <= columns) {
                NAME(tile)(c + i * ld + j, ld, strip, b, depth);
                continue;
            }
            /* a tile that sticks out is worked on in a copy */
            ELEMENT edge[LW_CPU_ROWS * WIDTH];
            int64_t m = rows - i < LW_CPU_ROWS ? rows - i : LW_CPU_ROWS,
                    n = columns - j < WIDTH ? columns - j : WIDTH;
            for (int64_t x = 0; x < LW_CPU_ROWS; x++)
                for (int64_t y = 0; y < WIDTH; y++)
                    edge[x * WIDTH + y] = x < m && y < n ? c[(i + x) * ld + j + y] : NOTHING;
            NAME(tile)(edge, WIDTH, strip, b, depth);
            for (int64_t x = 0; x < m; x++)
                memcpy(c + (i + x) * ld + j, edge + x * WIDTH, (size_t)n * sizeof *c);
        }
}

#undef NAME_
#undef NAME__
#undef NAME
#undef VEC_
#undef VEC__
#undef VEC
#undef LANES_
#undef LANES__
#undef AFRESH_
#undef AFRESH__
#undef WIDTH
#undef LANE
#undef ELEMENT
#undef NOTHING
