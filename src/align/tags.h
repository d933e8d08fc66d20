/* tags.h - tags of BAM records, byte by byte. */
#ifndef LW_TAGS_H
#define LW_TAGS_H

#include <stdint.h>
#include <htslib/kstring.h>

/* Appends one integer tag in BAM's smallest type, as htslib chooses it for SAM text. Non-zero when memory is
 * out. */
int lw_tag_put_integer(kstring_t *s, const char *tag, int64_t value);

/* Bytes of the tag at p (name, type and value), of which `left` are there; 0: it is damaged. */
int64_t lw_tag_size(const uint8_t *p, int64_t left);

#endif
