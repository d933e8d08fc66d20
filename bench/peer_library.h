/* peer_library.h - a peer's library, measured beside ours where it is installed. */
#ifndef LW_BENCH_PEER_LIBRARY_H
#define LW_BENCH_PEER_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct peer_symbol {
    const char *name;
    void *to; /* the function pointer to set */
} peer_symbol;

/* Loads `file` and sets the pointers. false: it is not installed, or has not all of the functions. The caller
 * closes *library with dlclose(). */
static inline bool peer_library_open(void **library, const char *file, const peer_symbol *symbols, size_t n)
{
    *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!*library)
        return false;
    for (size_t i = 0; i < n; i++) {
        void *symbol = dlsym(*library, symbols[i].name);
        if (!symbol) {
            dlclose(*library);
            *library = NULL;
            return false;
        }
        memcpy(symbols[i].to, &symbol, sizeof symbol); /* ISO C has no cast from void * to a function */
    }
    return true;
}

#endif
