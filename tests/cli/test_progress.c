/* test_progress.c - the progress line on a terminal, in a file, and its numbers. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <criterion/criterion.h>

#include "cli/progress.h"

static const char *rate(double amount, double seconds, const char *unit)
{
    static char text[64];
    progress_rate(text, sizeof text, amount, seconds, unit);
    return text;
}

Test(progress, rates)
{
    cr_expect_str_eq(rate(5e9, 2, "cells"), "2.5 GCUPS");
    cr_expect_str_eq(rate(5e6, 1, "cells"), "0.005 GCUPS");
    cr_expect_str_eq(rate(6.5e12, 1, "cells"), "6.5 TCUPS");
    cr_expect_str_eq(rate(3e12, 2, "operations"), "1.5 TOPS");
    cr_expect_str_eq(rate(15e12, 1, "relaxations"), "15.0 T relaxations/s");
    cr_expect_str_eq(rate(1234567, 1, "reads"), "1.23 M reads/s");
    cr_expect_str_eq(rate(999, 1, "reads"), "999 reads/s");
    cr_expect_str_eq(rate(5, 2, "reads"), "2.50 reads/s");
    cr_expect_str_eq(rate(5, 0, "reads"), "0 reads/s");
}

/* What was shown of a run of 100 items, 1,000,000 cells each. */
static char *show(bool terminal, bool forced, bool quiet)
{
    static char text[4096];
    int reading, writing;
    if (terminal) {
        reading = posix_openpt(O_RDWR | O_NOCTTY);
        cr_assert(reading >= 0 && grantpt(reading) == 0 && unlockpt(reading) == 0);
        writing = open(ptsname(reading), O_RDWR | O_NOCTTY);
    } else {
        int ends[2];
        cr_assert_eq(pipe(ends), 0);
        reading = ends[0];
        writing = ends[1];
    }
    cr_assert(writing >= 0);
    FILE *stream = fdopen(writing, "w");
    progress p;
    progress_begin(&p, stream, forced, quiet, "reads", "cells");
    for (int i = 1; i <= 100; i++) {
        progress_update(&p, i, 100, 1e6 * i);
        if (i == 50)
            usleep(150000);
    }
    progress_clear(&p);
    progress_end(&p);
    fprintf(stream, "END\n");
    fflush(stream);
    ssize_t n = 0, got;
    while (n < (ssize_t)sizeof text - 1 && (got = read(reading, text + n, sizeof text - 1 - (size_t)n)) > 0) {
        n += got;
        text[n] = '\0';
        if (strstr(text, "END"))
            break;
    }
    fclose(stream);
    close(reading);
    return text;
}

Test(progress, on_a_terminal)
{
    char *text = show(true, false, false);
    cr_expect(strstr(text, "\r\033[K51 / 100 reads, "), "%s", text);
    cr_expect(strstr(text, " GCUPS,  51 %, 0:00 left"), "%s", text);
    cr_expect(strstr(text, "\r\033[KEND"), "the line is gone when the run ends");
    cr_expect(strncmp(show(true, false, true), "END", 3) == 0, "-q");
}

Test(progress, elsewhere)
{
    cr_expect_str_eq(show(false, false, false), "END\n");
    cr_expect_str_eq(show(false, true, true), "END\n");
    char *text = show(false, true, false);
    cr_expect(strncmp(text, "100 / 100 reads, ", 17) == 0 && strstr(text, "100 %"), "%s", text);
    cr_expect_null(strchr(text, '\r'));
}
