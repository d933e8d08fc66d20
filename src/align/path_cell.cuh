/* path_cell.cuh - what the kernels of paths share: letters, the first row, and the directions that a cell
 * leaves.
 *
 * A direction names the source of H, the first in the order of the tie rule that attains it, and whether each
 * gap state extends. With one piece it has four bits: source 3 start (local), 2 diagonal, 1 deletion, 0
 * insertion; 4 the deletion extends, 8 the insertion does. With two pieces eight: source 5 start, 4 diagonal,
 * 3 and 2 deletion by the first and second piece, 1 and 0 insertion; 8 and 16 the deletions extend, 32 and 64
 * the insertions. */
#ifndef LW_PATH_CELL_CUH
#define LW_PATH_CELL_CUH

#include "align/align_paths.h"
#include "common/dpx.cuh"
#include "common/handover.cuh"
#include "common/shared.cuh"
#include "common/warp.cuh"

enum { LW_PATH_M = 0, LW_PATH_I = 1, LW_PATH_D = 2 };

template <int PIECES> LW_DEVICE constexpr uint32_t lw_from_start(void)
{
    return PIECES == 2 ? 5 : 3;
}

template <int PIECES> LW_DEVICE constexpr uint32_t lw_from_diagonal(void)
{
    return PIECES == 2 ? 4 : 2;
}

template <int PIECES> LW_DEVICE constexpr uint32_t lw_from_deletion(int piece)
{
    return PIECES == 2 ? 3 - (uint32_t)piece : 1;
}

template <int PIECES> LW_DEVICE constexpr uint32_t lw_from_insertion(int piece)
{
    return PIECES == 2 ? 1 - (uint32_t)piece : 0;
}

template <int PIECES> LW_DEVICE constexpr uint32_t lw_deletion_extends(int piece)
{
    return PIECES == 2 ? 8u << piece : 4;
}

template <int PIECES> LW_DEVICE constexpr uint32_t lw_insertion_extends(int piece)
{
    return PIECES == 2 ? 32u << piece : 8;
}

LW_DEVICE int lw_letter_at(const lw_letters &l, int64_t i)
{
    const int64_t bit = i * l.bits;
    return (int)(l.words[bit >> 5] >> (bit & 31) & ((1u << l.bits) - 1));
}

/* The score of a gap of k >= 0 letters; the dearer piece of two may exceed 32 bits, as in lw_gap_cost(). */
template <int PIECES> LW_DEVICE int32_t lw_gap_score(const lw_fill_args &a, int32_t k)
{
    int64_t cost = a.gap_open[0] + (int64_t)k * a.gap_extend[0];
    if (PIECES == 2) {
        const int64_t second = a.gap_open[1] + (int64_t)k * a.gap_extend[1];
        cost = second < cost ? second : cost;
    }
    return k > 0 ? -(int32_t)cost : 0;
}

/* H in front of the first row, behind i letters of the query; columns in front of the query count as i = 0.
 */
template <int PIECES> LW_DEVICE int32_t lw_first_row(const lw_fill_args &a, int32_t i)
{
    return i <= 0 || a.mode == LW_LOCAL ? 0 : lw_gap_score<PIECES>(a, i);
}

/* H in front of the first column, behind j letters of the window. */
template <int PIECES> LW_DEVICE int32_t lw_first_column(const lw_fill_args &a, int32_t j)
{
    return a.mode == LW_GLOBAL ? lw_gap_score<PIECES>(a, j) : 0;
}

/* Places within a bundle's checkpoints: H and F behind every tile's last column, by [column of tiles][row of
 * its strip], H and E in front of every tile's first row but that of the strip, by [strip][row of tiles]
 * [column]; then the same for the second piece. Without paths only what strips hand over, by turns. */
typedef struct lw_checkpoints {
    uint2 *behind, *above;
    uint32_t *behind2, *above2;
    int64_t total;       /* columns */
    int64_t strip_above; /* of one strip */
} lw_checkpoints;

LW_DEVICE lw_checkpoints lw_checkpoints_of(const lw_fill_args &a, const lw_bundle &b)
{
    lw_checkpoints c;
    c.total = (int64_t)b.strips * LW_PATH_STRIP;
    /* by fours, for 16-byte stores into what follows; checkpoint_words() counts the same */
    const int64_t columns = a.scores ? (int64_t)LW_PATH_TURNS : c.total / a.tile;
    const int64_t behind = (columns * b.height + 3) / 4 * 4;
    c.strip_above = a.scores ? 0 : (int64_t)(b.height - 1) / a.tile * LW_PATH_STRIP;
    const int64_t above = c.strip_above * b.strips;
    c.behind = (uint2 *)(a.scratch + b.scratch);
    c.above = c.behind + behind;
    c.behind2 = (uint32_t *)(c.above + above);
    c.above2 = c.behind2 + behind;
    return c;
}

/* The dynamic shared memory of a kernel. */
LW_DYNAMIC_SHARED(uint4, lw_path_shared);

#endif
