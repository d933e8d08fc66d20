/* quota.h - how much processor time the control groups of this process leave to it. */
#ifndef LW_QUOTA_H
#define LW_QUOTA_H

/* As many processors as the tightest quota of its group and of those above pays for, rounded up, at least 1;
 * INT_MAX: no quota, or none that can be read. `root` stands before /proc and /sys: "", but in tests. */
int lw_quota_processors(const char *root);

#endif
