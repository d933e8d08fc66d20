/* lanewise.h - the whole public API of liblanewise. */
#ifndef LANEWISE_H
#define LANEWISE_H

#include "lanewise/align.h"
#include "lanewise/backends.h"
#include "lanewise/dtype.h"
#include "lanewise/infer.h"
#include "lanewise/search.h"
#include "lanewise/paths.h"
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "MAJOR.MINOR.PATCH" of the library. */
const char *lw_version(void);

#ifdef __cplusplus
}
#endif
#endif
