/* version.c */
#include "lanewise/lanewise.h"

const char *lw_version(void)
{
    return LW_VERSION;
}
