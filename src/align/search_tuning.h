/* search_tuning.h - numbers of the CUDA database search that were chosen by measurement (one H200, 1.98 GHz;
 * the runs are in docs/kernels.md). */
#ifndef LW_SEARCH_TUNING_H
#define LW_SEARCH_TUNING_H

#include <stdint.h>

/* Issue slots of a row of 32 x 32 columns, 2 for an ALU operation and 1 for any other, in units of one
 * slot per column; relative costs of passes. TWO_QUERIES takes each subject of a pair by itself. */
#define LW_SW_SLOTS_TWO_SUBJECTS 9.9
#define LW_SW_SLOTS_TWO_QUERIES (2 * 8.9)
/* A pass that hands over a border costs this much more. */
#define LW_SW_SLOTS_BORDER 0.4

/* Rows of a segment by lanes of the group that takes it: long segments waste fewer rows to fill the group,
 * short ones leave fewer idle lanes at the end. */
#define LW_SW_ROWS_SMALL_GROUP 400   /* up to 4 lanes */
#define LW_SW_ROWS_MIDDLE_GROUP 3000 /* up to 16 */
#define LW_SW_ROWS_LARGE_GROUP 4500
/* The last fifth and the last twentieth of a list are cut finer, so that all warps end together. */
#define LW_SW_ROWS_DIVISOR_LATE 2
#define LW_SW_ROWS_DIVISOR_LAST 4

/* Pairs of more rows are scored exactly at once, beside the others: alone, scoring them again would take
 * longer than the rest of the search. */
#define LW_SW_LONG_ROWS 2048

/* New rows of a piece of a long subject, at least; its overlap with the one before is half of that, at least.
 */
#define LW_SW_PIECE_ROWS 1024

/* Queries that one call of the score kernel may hold, and their share of memory. */
#define LW_SW_PACK_QUERIES 64

/* Letters of a chunk of the database, unless device memory is short: then one in so many bytes of it. The
 * borders of long queries, 16 bytes a row (two letters) in each of two slots, stay within the third of it
 * that the database and the packs leave, together with the letters on their way. */
#define LW_SW_CHUNK_LETTERS (INT64_C(128) << 20)
#define LW_SW_CHUNK_SHARE 56

/* Databases of more letters are cut in two at least. */
#define LW_SW_SPLIT_LETTERS (INT64_C(16) << 20)

/* Blocks that a launch leaves room for, so that pairs of another unit that are scored again need not wait for
 * its end; and how many work items that second run is sized for where bounds have left few. */
#define LW_SW_SPARE_BLOCKS 2
#define LW_SW_AGAIN_ITEMS 256

/* Highest matrix entry with which scores are bounded from above: with BLOSUM80 (up to 17 in its scale) chance
 * alignments grow with the length where gaps may turn, and every second subject would be scored again. */
#define LW_SW_TILE_HIGH 11

/* Where bounds are from above, so many times the hits that are wanted are scored first, the most promising
 * ones: their scores set the bar for the others. */
#define LW_SW_PROMISING 4

/* Units of work in flight, each with its own stream and buffers; staging of host memory, bytes of each of two
 * pinned buffers; device memory left alone when no limit is given. */
#define LW_SW_SLOTS 2
#define LW_SW_STAGING (INT64_C(16) << 20)
#define LW_SW_RESERVE (INT64_C(512) << 20)

#endif
