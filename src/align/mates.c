/* mates.c - proper pairs and template lengths. */
#include "align/mates.h"

bool lw_proper_pair(const lw_mate_end *a, const lw_mate_end *b, lw_insert_range range)
{
    if (a->target < 0 || a->target != b->target || a->reverse == b->reverse)
        return false;
    const lw_mate_end *forward = a->reverse ? b : a, *reverse = a->reverse ? a : b;
    int64_t insert = (int64_t)reverse->tend - forward->tstart;
    return insert > 0 && insert >= range.low && insert <= range.high;
}

bool lw_may_be_proper(const lw_hit *forward, int32_t forward_first, const lw_hit *reverse,
                      lw_insert_range range)
{
    if (forward->target < 0 || forward->target != reverse->target || forward->reverse || !reverse->reverse)
        return false;
    int64_t shortest = (int64_t)reverse->tend - forward->tend,
            longest = (int64_t)reverse->tend - forward_first;
    return longest > 0 && longest >= range.low && shortest <= range.high;
}

int64_t lw_template_length(const lw_mate_end *a, const lw_mate_end *b)
{
    if (a->target < 0 || a->target != b->target)
        return 0;
    int64_t five_a = a->reverse ? a->tend : a->tstart, five_b = b->reverse ? b->tend : b->tstart;
    return five_b - five_a;
}

int32_t lw_mate_name_length(const char *name, int32_t length)
{
    if (length > 2 && name[length - 2] == '/' && (name[length - 1] == '1' || name[length - 1] == '2'))
        return length - 2;
    return length;
}
