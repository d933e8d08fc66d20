/* team_tuning.h - the numbers that tune teams of threads, with the measurement that chose them. */
#ifndef LW_TEAM_TUNING_H
#define LW_TEAM_TUNING_H

/* Nanoseconds that a member, and a caller who waits for the last member, look for work before they sleep. The
 * MiniLM encoder (float products, operators on one thread between them), 16 threads of a 16-core Xeon, ms of
 * 8 and of 16 sequences, medians of 3: 0 8.1 and 21.6, 20000 6.9 and 21.1, 50000 6.4 and 20.9, 100000 6.1
 * and 20.8. */
enum { LW_TEAM_LOOK = 100000 };

/* Looks between two readings of the clock. */
enum { LW_TEAM_LOOKS = 16 };

/* How many sleepers each thread wakes that is awake. The same Xeon, loops of 16 tasks of 0, 10 and 100 us, 2
 * ms apart, us until the caller goes on: 2 9, 84, 236; 4 10, 69, 214; 15 (the caller all) 29, 63, 185, which
 * grows with the threads. (Loops at once: 4, 13, 103; htslib's pool: 97, 127, 277, and 114, 109, 191.) */
enum { LW_TEAM_WAKES = 4 };

/* Others need the processors where the caller's thread loses its own twice within so much time that it had
 * (LOST, ns): threads of other processes take over after 1 to 4 ms, those of interrupts come 10 to 50 times a
 * second. Then nobody looks for so long (QUIET); more often than ASK that is not found out. 24 processes of
 * 16 threads at once on 16 processors, 150 products of 64 rows each: 0.90 s, without this 1.06 s, if nobody
 * ever looks 0.91 s, by htslib's pool 1.03 s. */
enum { LW_TEAM_LOST = 10000000, LW_TEAM_QUIET = 100000000, LW_TEAM_ASK = 2000000 };

#endif
