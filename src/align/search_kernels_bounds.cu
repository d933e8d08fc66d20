/* search_kernels_bounds.cu - bounds of the scores from above, for the penalties that nearly everybody uses.
 */
#include "align/search_bounds.cuh"

template <int FORM> static cudaError_t launch_form(const lw_sw_launch *l)
{
    return lw_sw_start(l->border ? lw_sw_bounds<FORM, true> : lw_sw_bounds<FORM, false>, FORM, LW_SW_HALF, l);
}

extern "C" cudaError_t lw_sw_launch_bounds(const lw_sw_launch *l)
{
    return l->form == LW_SW_TWO_SUBJECTS ? launch_form<LW_SW_TWO_SUBJECTS>(l)
                                         : launch_form<LW_SW_TWO_QUERIES>(l);
}
