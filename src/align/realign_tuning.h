/* realign_tuning.h - bounds of realign that cost memory or time; none changes an alignment but the first. */
#ifndef LW_REALIGN_TUNING_H
#define LW_REALIGN_TUNING_H

/* How far a window grows, in pads. It also bounds how far a record can move to the left, and with that what
 * is held back to keep the output sorted. */
#define LW_REALIGN_MOST_PADS 8

/* Letters of the reference within which a mate is waited for. Templates of short-read libraries span 300 to
 * 800; at a depth of 10,000 reads of 150 letters, 1,000 letters are 67,000 records of about 500 bytes. Mates
 * further away are found by a pass of their own. */
#define LW_REALIGN_REACH 1000

/* Letters of SEQ in a batch, and records: 32,768 short reads with their records are about 20 MB, and there
 * are two batches a lane and two more. */
#define LW_REALIGN_BATCH_LETTERS (INT64_C(6) << 20)
#define LW_REALIGN_BATCH_RECORDS 32768

/* Records that one thread takes at a time: about 0.2 ms. */
#define LW_REALIGN_CHUNK 256

#endif
