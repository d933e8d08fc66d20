/* pause.h - what a loop does that waits for another thread's store. */
#ifndef LW_PAUSE_H
#define LW_PAUSE_H

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

/* Leaves the core's units to its other thread for a moment (some 10 to 50 ns), and saves power. */
static inline void lw_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* "yield" does nothing on most cores */
#endif
}

#endif
