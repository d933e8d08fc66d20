/* search_kernels_wide.cu - score kernels for every GPU: half precision with its own maxima, and s32. */
#include "align/search_kernels.cuh"

extern "C" cudaError_t lw_sw_launch_wide(const lw_sw_launch *l)
{
    if (l->arithmetic == LW_SW_S32)
        return l->gapless ? lw_sw_go<LW_SW_S32, LW_SW_TWO_QUERIES, 1, true>(l)
                          : lw_sw_go<LW_SW_S32, LW_SW_TWO_QUERIES, 1, false>(l);
    if (l->form == LW_SW_TWO_SUBJECTS)
        return l->gapless ? lw_sw_go<LW_SW_REAL, LW_SW_TWO_SUBJECTS, 1, true>(l)
                          : lw_sw_go<LW_SW_REAL, LW_SW_TWO_SUBJECTS, 1, false>(l);
    return l->gapless ? lw_sw_go<LW_SW_REAL, LW_SW_TWO_QUERIES, 1, true>(l)
                      : lw_sw_go<LW_SW_REAL, LW_SW_TWO_QUERIES, 1, false>(l);
}
