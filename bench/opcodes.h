/* opcodes.h - what instructions the kernels of this very program hold: from cuobjdump where it is on the
 * machine, else as recorded when the program was built (scripts/record-opcodes.py), else not known. */
#ifndef LW_OPCODES_H
#define LW_OPCODES_H

#include <stddef.h>
#include "lanewise/status.h"

typedef struct opcodes_kernel {
    char *name;  /* as the linker knows it */
    char *codes; /* "VIADDMNMX.S16x2 128,IADD3 4", most frequent first */
} opcodes_kernel;

typedef struct opcodes {
    opcodes_kernel *kernels;
    int n, capacity;
    const char *source; /* "cuobjdump", "recorded by the build", or NULL: not known */
} opcodes;

/* Reads this program's machine code for `architecture` ("sm_90") of those of its source files whose kernels'
 * names hold `mark`. */
lw_status opcodes_read(opcodes *o, const char *architecture, const char *mark, lw_error *err);
/* NULL: not known. */
const char *opcodes_of(const opcodes *o, const char *name);
/* How many of `opcode` a list holds, with any further modifiers: "IDP.4A" counts IDP.4A.S8.S8 too. */
int opcodes_count(const char *codes, const char *opcode);
/* The most frequent ones that compute, for a table: "VIADDMNMX 128, LOP3 4". */
void opcodes_show(const char *codes, char *text, size_t size);
void opcodes_free(opcodes *o);

/* The record, ended by a row of NULLs; opcodes_record.c is made by the build. */
typedef struct opcodes_recorded {
    const char *architecture, *name, *codes;
} opcodes_recorded;
extern const opcodes_recorded opcodes_record[];

#endif
