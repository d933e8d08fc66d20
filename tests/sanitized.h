/* sanitized.h - how much of a long test runs where a sanitizer looks at every access: each kind and shape
 * once, in smaller numbers. There it looks for bad accesses; that the answers are right, the plain build
 * tests in full. */
#ifndef LW_TESTS_SANITIZED_H
#define LW_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LW_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LW_SANITIZED 1
#endif
#endif
#ifndef LW_SANITIZED
#define LW_SANITIZED 0
#endif

#define LW_FEWER(all, sanitized) (LW_SANITIZED ? (sanitized) : (all))

#endif
