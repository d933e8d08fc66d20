/* test_numbers.c - the whole text is the number, or it is refused. */
#include <criterion/criterion.h>

#include "common/numbers.h"

Test(numbers, integers)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0}, {"-5", -5}, {"+7", 7}, {"100", 100}, {"-100", -100}, {"007", 7}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t value = -1;
        cr_expect_eq(lw_parse_int(good[i].text, "-x", -100, 100, &value, NULL), LW_OK);
        cr_expect_eq(value, good[i].value);
    }
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "-x: '' is not a whole number"},
        {" 5", "-x: ' 5' is not a whole number"},
        {"5 ", "-x: '5 ' is not a whole number"},
        {"5k", "-x: '5k' is not a whole number"},
        {"1.5", "-x: '1.5' is not a whole number"},
        {"0x10", "-x: '0x10' is not a whole number"},
        {"-", "-x: '-' is not a whole number"},
        {"--5", "-x: '--5' is not a whole number"},
        {"101", "-x: 101 is outside -100 to 100"},
        {"-101", "-x: -101 is outside -100 to 100"},
        {"99999999999999999999", "-x: 99999999999999999999 is outside -100 to 100"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t value = 42;
        lw_error err = {0};
        cr_expect_eq(lw_parse_int(bad[i].text, "-x", -100, 100, &value, &err), LW_E_ARG);
        cr_expect_str_eq(err.message, bad[i].message);
        cr_expect_eq(value, 42);
    }
    int64_t value;
    cr_expect_eq(lw_parse_int("9223372036854775807", "-x", INT64_MIN, INT64_MAX, &value, NULL), LW_OK);
    cr_expect_eq(value, INT64_MAX);
    cr_expect_eq(lw_parse_int("9223372036854775808", "-x", INT64_MIN, INT64_MAX, &value, NULL), LW_E_ARG);
    cr_expect_eq(lw_parse_int("-9223372036854775808", "-x", INT64_MIN, INT64_MAX, &value, NULL), LW_OK);
    cr_expect_eq(value, INT64_MIN);
}

Test(numbers, reals)
{
    double value;
    cr_expect_eq(lw_parse_double("1.5", "-x", 0, 10, &value, NULL), LW_OK);
    cr_expect_eq(value, 1.5);
    cr_expect_eq(lw_parse_double("1e-3", "-x", 0, 10, &value, NULL), LW_OK);
    cr_expect_eq(value, 1e-3);
    static const char *const bad[] = {"", " 1", "1 ", "x", "nan", "inf", "1e999", "11", "-1", "1,5"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_eq(lw_parse_double(bad[i], "-x", 0, 10, &value, NULL), LW_E_ARG, "'%s'", bad[i]);
}

Test(numbers, sizes)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},        {"512", 512},       {"1K", 1024},         {"4k", 4096},
                {"3M", 3145728}, {"2G", 2147483648}, {"1T", 1099511627776}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t value = -1;
        cr_expect_eq(lw_parse_size(good[i].text, "-x", &value, NULL), LW_OK, "'%s'", good[i].text);
        cr_expect_eq(value, good[i].value);
    }
    static const char *const bad[] = {"",
                                      "K",
                                      "-1",
                                      "1.5G",
                                      "1KB",
                                      "1 K",
                                      "9999999999G",
                                      "1P",
                                      "11111111111111111111111111111111111111111111111111111"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t value = 42;
        lw_error err = {0};
        cr_expect_eq(lw_parse_size(bad[i], "-x", &value, &err), LW_E_ARG, "'%s'", bad[i]);
        cr_expect_eq(value, 42);
    }
}

Test(numbers, lists)
{
    int64_t value[3];
    int n = -1;
    cr_expect_eq(lw_parse_int_list("0,1000", "-x", 0, 1000, value, 3, &n, NULL), LW_OK);
    cr_expect(n == 2 && value[0] == 0 && value[1] == 1000);
    cr_expect_eq(lw_parse_int_list("7", "-x", 0, 1000, value, 3, &n, NULL), LW_OK);
    cr_expect(n == 1 && value[0] == 7);
    static const char *const bad[] = {"", ",", "1,", ",1", "1,,2", "1,2,3,4", "1,x", "1,1001", "1, 2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_eq(lw_parse_int_list(bad[i], "-x", 0, 1000, value, 3, &n, NULL), LW_E_ARG, "'%s'", bad[i]);
}
