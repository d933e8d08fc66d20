/* textout.h - PAF and TSV. */
#ifndef LW_TEXTOUT_H
#define LW_TEXTOUT_H

#include "align/aligned.h"

/* A writer of PAF or TSV on `file`. unmapped: also reads without an alignment. preset: TSV shows scores in
 * its units. LW_E_NOMEM, LW_E_IO. */
lw_status lw_textout_open(lw_sink **out, lw_align_format format, lw_outfile *file, bool unmapped,
                          lw_preset preset, lw_error *err);

#endif
