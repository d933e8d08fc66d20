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
    int screen_round;    /* exact scores in between, when so many candidates have come: 64 of them, and the
                            first already when there were ten, took 9 % of the time instead of 6 */
    int screen_settled;  /* it may give up after so many subjects for each hit that is wanted */
    int screen_share;    /* ... when more than one in so many stays a candidate */
    int bar_hits; /* subjects that are scored alone raise the bar one by one where no more hits are wanted:
                     sorting those is nothing against a score */
    int striped_rows; /* what a column of a subject that is scored alone costs beside its rows: handing gaps
                         on from lane to lane */
} lw_search_cpu_tuning;

static const lw_search_cpu_tuning search_cpu_tuning = {.chunk_letters = 256 << 10,
                                                       .pack_letters = 512,
                                                       .pack_queries = 32,
                                                       .list_subjects = 512,
                                                       .screen_subjects = 32,
                                                       .screen_round = 1024,
                                                       .screen_settled = 64,
                                                       .screen_share = 8,
                                                       .bar_hits = 256,
                                                       .striped_rows = 60};

#endif
