/* team.h - threads for loops that follow each other closely: one that has nothing to do looks for the next
 * loop for a moment before it sleeps. pool.h has what the rest of the program calls. */
#ifndef LW_TEAM_H
#define LW_TEAM_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/status.h"

typedef struct lw_team lw_team;

/* A team of `threads` >= 1, the calling thread among them; the others are started by the first loop. Nobody
 * waits in loops where there are more threads than processors. LW_E_NOMEM. */
lw_status lw_team_open(lw_team **out, int threads, lw_error *err);
void lw_team_close(lw_team *team); /* NULL is allowed */

/* Calls work(arg, i, worker) for every i in [0, n), and returns when all are done: true. False, and nothing
 * called, while another thread's loop runs, or the caller's own. worker is in [0, threads), 0 the caller.
 * With `shares` each worker begins with its own contiguous share of [0, n). */
bool lw_team_run(lw_team *team, int64_t n, bool shares, void (*work)(void *arg, int64_t i, int worker),
                 void *arg);

#endif
