/* search_cpu_tuning.h - numbers that only change the speed of the CPU search, and what they were chosen by.
 */
#ifndef LW_SEARCH_CPU_TUNING_H
#define LW_SEARCH_CPU_TUNING_H

typedef struct lw_search_cpu_tuning {
    int chunk_letters;   /* subject letters of a plan, at least: its letters and the scores stay in the
                            second-level cache, and what lanes idle at its end is small against it */
    int pack_letters;    /* query letters that are scored together: two vectors for each */
    int pack_queries;    /* queries of a pack, at most */
    int list_subjects;   /* subjects of a plan in the later passes, at most */
    int screen_subjects; /* the first pass screens where so many subjects come on each hit that is wanted:
                            bounds are about 6 extend high, in which scores of chance grow 5 times as
                            frequent, and screening takes half the time */
    int screen_round;    /* exact scores in between, when so many vectors full of candidates have come */
    int screen_settled;  /* it may give up after so many subjects for each hit that is wanted */
    int screen_share;    /* ... when more than one in so many stays a candidate */
    int striped_rows; /* what a column of a subject that is scored alone costs beside its rows: handing gaps
                         on from lane to lane */
} lw_search_cpu_tuning;

static const lw_search_cpu_tuning search_cpu_tuning = {.chunk_letters = 256 << 10,
                                                       .pack_letters = 512,
                                                       .pack_queries = 32,
                                                       .list_subjects = 512,
                                                       .screen_subjects = 32,
                                                       .screen_round = 2,
                                                       .screen_settled = 64,
                                                       .screen_share = 8,
                                                       .striped_rows = 60};

#endif
