/* search_kernels_narrow.cu - score kernels in DPX arithmetic: integers in half precision, and s16. */
#include "align/search_kernels.cuh"

template <int FORM> static cudaError_t launch_half(const lw_sw_launch *l)
{
    if (l->gapless)
        return lw_sw_go<LW_SW_HALF, FORM, 1, true>(l);
    return l->keeps == LW_SW_EXACT ? lw_sw_go<LW_SW_HALF, FORM, 1, false>(l)
                                   : lw_sw_go<LW_SW_HALF, FORM, LW_SW_EVERY, false>(l);
}

extern "C" cudaError_t lw_sw_launch_narrow(const lw_sw_launch *l)
{
    if (l->arithmetic == LW_SW_S16)
        return lw_sw_go<LW_SW_S16, LW_SW_TWO_SUBJECTS, 1, false>(l);
    return l->form == LW_SW_TWO_SUBJECTS ? launch_half<LW_SW_TWO_SUBJECTS>(l)
                                         : launch_half<LW_SW_TWO_QUERIES>(l);
}
