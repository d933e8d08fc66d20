/* paths_result.c - what a finished matrix tells. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lanewise/paths.h"

void lw_paths_free(lw_paths *paths)
{
    if (!paths)
        return;
    free(paths->distance);
    free(paths->next);
    paths->distance = NULL;
    paths->next = NULL;
}

bool lw_paths_reached(const lw_paths *p, int64_t i, int64_t j)
{
    int64_t at = i * p->n + j;
    switch (p->type) {
    case LW_PATHS_S32:
        return ((const int32_t *)p->distance)[at] != INT32_MAX;
    case LW_PATHS_S64:
        return ((const int64_t *)p->distance)[at] != INT64_MAX;
    case LW_PATHS_F32:
        return !isinf(((const float *)p->distance)[at]);
    default:
        return !isinf(((const double *)p->distance)[at]);
    }
}

/* The shortest of the two usual precisions that reads back the same. */
static int float_text(double value, bool single, char text[LW_DISTANCE_TEXT])
{
    int low = single ? 6 : 15, high = single ? 9 : 17, length = 0;
    for (int digits = low; digits <= high; digits++) {
        length = snprintf(text, LW_DISTANCE_TEXT, "%.*g", digits, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
            break;
    }
    return length;
}

int lw_paths_text(const lw_paths *p, int64_t i, int64_t j, char text[LW_DISTANCE_TEXT])
{
    int64_t at = i * p->n + j;
    if (!lw_paths_reached(p, i, j))
        return snprintf(text, LW_DISTANCE_TEXT, "inf");
    if (p->type == LW_PATHS_F32)
        return float_text((double)((const float *)p->distance)[at], true, text);
    if (p->type == LW_PATHS_F64)
        return float_text(((const double *)p->distance)[at], false, text);
    int64_t d =
        p->type == LW_PATHS_S32 ? ((const int32_t *)p->distance)[at] : ((const int64_t *)p->distance)[at];
    char digits[24];
    int n = 0, length = 0;
    uint64_t rest = d < 0 ? -(uint64_t)d : (uint64_t)d;
    do
        digits[n++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (d < 0)
        text[length++] = '-';
    while (n > 0)
        text[length++] = digits[--n];
    text[length] = '\0';
    return length;
}
