/* align_cpu_isa.c - the kernels of one instruction set. Compiled once per instruction set (src/align/
 * CMakeLists.txt) with LW_ISA_NAME set to its name. LW_ONE_COPY makes variables of what are constants of the
 * copies of the pairs' loop, and one copy of them. */
#include "align/align_cpu_kernels.h"

#include <stddef.h>

#include "common/simd_saturating.h"
#include "common/simd_transpose.h"

enum { SCORES_GATHERED, SCORES_TABLE, SCORES_PROFILE }; /* see lw_cpu_pairs_job */

static void query_profile(const lw_cpu_query_profile_job *job)
{
    for (int t = 0; t < job->n_letters; t++) {
        uint8_t *out = job->profile + (size_t)t * job->profile_letter;
        for (size_t i = 0; i < job->n; i += LW_VEC_BYTES)
            lw_store(out + i, lw_i8_lookup32(job->table + t * LW_MAX_LETTERS, lw_load(job->codes + i)));
    }
}

/* The scores of all rows with these target letters of the lanes, a byte each, `pitch` bytes from row to row.
 */
static void collect_scores(const lw_cpu_pairs_job *job, const uint8_t *target, int lanes, size_t pitch)
{
    for (int lane = 0; lane < lanes; lane += 16) {
        const uint8_t *from[16];
        for (int l = 0; l < 16; l++)
            from[l] =
                job->profile[lane + l] + (lane + l < lanes ? target[lane + l] * job->profile_letter : 0);
        for (int32_t row = 0; row < job->rows; row += LW_VEC_BYTES) {
            lw_transpose16(job->gathered + (size_t)row * pitch + lane, pitch, from);
            for (int l = 0; l < 16; l++)
                from[l] += LW_VEC_BYTES;
        }
    }
}

#define LANE_BITS 8
#include "align/align_cpu_lanes.h"
#define LANE_BITS 16
#include "align/align_cpu_lanes.h"
#define LANE_BITS 32
#include "align/align_cpu_lanes.h"

#define ISA_PASTE(a, b) a##b
#define ISA_TABLE(name) ISA_PASTE(lw_cpu_kernels_, name)

const lw_cpu_kernels ISA_TABLE(LW_ISA_NAME) = {
    .vector_bytes = LW_VEC_BYTES,
    .query_profile = query_profile,
    .profile = {profile_8, profile_16, profile_32},
    .score = {score_8, score_16, score_32},
    .pairs_begin = {pairs_begin_8, pairs_begin_16, pairs_begin_32},
    .pairs = {pairs_8, pairs_16, pairs_32},
};
