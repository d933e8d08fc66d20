/* statistics.c - published Karlin-Altschul parameters, and what is computed from them.
 *
 * Source of the numbers: the tables of NCBI BLAST (blast_stat.c of the NCBI C++ Toolkit, public domain),
 * which credit Altschul and Gish (1996), Altschul, Bundschuh, Olsen and Hwa, Nucleic Acids Res. 29:351
 * (2001), and simulations by NCBI. Rows of infinite or zero gap penalties are left out: they describe
 * ungapped and greedy alignment. */
#include "align/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

typedef struct gap_row {
    int32_t open, extend; /* a gap of k letters costs open + k * extend, as everywhere */
    double lambda, k, h, alpha, beta;
} gap_row;

static const gap_row blosum45[] = {
    {13, 3, 0.207, 0.049, 0.14, 1.5, -22},  {12, 3, 0.199, 0.039, 0.11, 1.8, -34},
    {11, 3, 0.190, 0.031, 0.095, 2.0, -38}, {10, 3, 0.179, 0.023, 0.075, 2.4, -51},
    {16, 2, 0.210, 0.051, 0.14, 1.5, -24},  {15, 2, 0.203, 0.041, 0.12, 1.7, -31},
    {14, 2, 0.195, 0.032, 0.10, 1.9, -36},  {13, 2, 0.185, 0.024, 0.084, 2.2, -45},
    {12, 2, 0.171, 0.016, 0.061, 2.8, -65}, {19, 1, 0.205, 0.040, 0.11, 1.9, -43},
    {18, 1, 0.198, 0.032, 0.10, 2.0, -43},  {17, 1, 0.189, 0.024, 0.079, 2.4, -57},
    {16, 1, 0.176, 0.016, 0.063, 2.8, -67},
};

static const gap_row blosum50[] = {
    {13, 3, 0.212, 0.063, 0.19, 1.1, -16},  {12, 3, 0.206, 0.055, 0.17, 1.2, -18},
    {11, 3, 0.197, 0.042, 0.14, 1.4, -25},  {10, 3, 0.186, 0.031, 0.11, 1.7, -34},
    {9, 3, 0.172, 0.022, 0.082, 2.1, -48},  {16, 2, 0.215, 0.066, 0.20, 1.05, -15},
    {15, 2, 0.210, 0.058, 0.17, 1.2, -20},  {14, 2, 0.202, 0.045, 0.14, 1.4, -27},
    {13, 2, 0.193, 0.035, 0.12, 1.6, -32},  {12, 2, 0.181, 0.025, 0.095, 1.9, -41},
    {19, 1, 0.212, 0.057, 0.18, 1.2, -21},  {18, 1, 0.207, 0.050, 0.15, 1.4, -28},
    {17, 1, 0.198, 0.037, 0.12, 1.6, -33},  {16, 1, 0.186, 0.025, 0.10, 1.9, -42},
    {15, 1, 0.171, 0.015, 0.063, 2.7, -76},
};

static const gap_row blosum62[] = {
    {11, 2, 0.297, 0.082, 0.27, 1.1, -10}, {10, 2, 0.291, 0.075, 0.23, 1.3, -15},
    {9, 2, 0.279, 0.058, 0.19, 1.5, -19},  {8, 2, 0.264, 0.045, 0.15, 1.8, -26},
    {7, 2, 0.239, 0.027, 0.10, 2.5, -46},  {6, 2, 0.201, 0.012, 0.061, 3.3, -58},
    {13, 1, 0.292, 0.071, 0.23, 1.2, -11}, {12, 1, 0.283, 0.059, 0.19, 1.5, -19},
    {11, 1, 0.267, 0.041, 0.14, 1.9, -30}, {10, 1, 0.243, 0.024, 0.10, 2.5, -44},
    {9, 1, 0.206, 0.010, 0.052, 4.0, -87},
};

static const gap_row blosum80[] = {
    {25, 2, 0.342, 0.17, 0.66, 0.52, -1.6}, {13, 2, 0.336, 0.15, 0.57, 0.59, -3},
    {9, 2, 0.319, 0.11, 0.42, 0.76, -6},    {8, 2, 0.308, 0.090, 0.35, 0.89, -9},
    {7, 2, 0.293, 0.070, 0.27, 1.1, -14},   {6, 2, 0.268, 0.045, 0.19, 1.4, -19},
    {11, 1, 0.314, 0.095, 0.35, 0.90, -9},  {10, 1, 0.299, 0.071, 0.27, 1.1, -14},
    {9, 1, 0.279, 0.048, 0.20, 1.4, -19},
};

static const gap_row blosum90[] = {
    {9, 2, 0.310, 0.12, 0.46, 0.67, -6},   {8, 2, 0.300, 0.099, 0.39, 0.76, -7},
    {7, 2, 0.283, 0.072, 0.30, 0.93, -11}, {6, 2, 0.259, 0.048, 0.22, 1.2, -16},
    {11, 1, 0.302, 0.093, 0.39, 0.78, -8}, {10, 1, 0.290, 0.075, 0.28, 1.04, -15},
    {9, 1, 0.265, 0.044, 0.20, 1.3, -19},
};

static const gap_row pam30[] = {
    {7, 2, 0.305, 0.15, 0.87, 0.35, -3},    {6, 2, 0.287, 0.11, 0.68, 0.42, -4},
    {5, 2, 0.264, 0.079, 0.45, 0.59, -7},   {10, 1, 0.309, 0.15, 0.88, 0.35, -3},
    {9, 1, 0.294, 0.11, 0.61, 0.48, -6},    {8, 1, 0.270, 0.072, 0.40, 0.68, -10},
    {15, 3, 0.339, 0.28, 1.70, 0.20, -0.5}, {14, 2, 0.337, 0.27, 1.62, 0.21, -0.8},
    {14, 1, 0.333, 0.27, 1.43, 0.23, -1.4}, {13, 3, 0.338, 0.27, 1.69, 0.20, -0.5},
};

static const gap_row pam70[] = {
    {8, 2, 0.301, 0.12, 0.54, 0.56, -5},    {7, 2, 0.286, 0.093, 0.43, 0.67, -7},
    {6, 2, 0.264, 0.064, 0.29, 0.90, -12},  {11, 1, 0.305, 0.12, 0.52, 0.59, -6},
    {10, 1, 0.291, 0.091, 0.41, 0.71, -9},  {9, 1, 0.270, 0.060, 0.28, 0.97, -14},
    {11, 2, 0.323, 0.186, 0.80, 1.32, -27}, {12, 3, 0.330, 0.219, 0.93, 0.82, -16},
};

static const gap_row pam250[] = {
    {15, 3, 0.205, 0.049, 0.13, 1.6, -23},  {14, 3, 0.200, 0.043, 0.12, 1.7, -26},
    {13, 3, 0.194, 0.036, 0.10, 1.9, -31},  {12, 3, 0.186, 0.029, 0.085, 2.2, -41},
    {11, 3, 0.174, 0.020, 0.070, 2.5, -48}, {17, 2, 0.204, 0.047, 0.12, 1.7, -28},
    {16, 2, 0.198, 0.038, 0.11, 1.8, -29},  {15, 2, 0.191, 0.031, 0.087, 2.2, -44},
    {14, 2, 0.182, 0.024, 0.073, 2.5, -53}, {13, 2, 0.171, 0.017, 0.059, 2.9, -64},
    {21, 1, 0.205, 0.045, 0.11, 1.8, -34},  {20, 1, 0.199, 0.037, 0.10, 1.9, -35},
    {19, 1, 0.192, 0.029, 0.083, 2.3, -52}, {18, 1, 0.183, 0.021, 0.070, 2.6, -60},
    {17, 1, 0.171, 0.014, 0.052, 3.3, -86},
};

static const gap_row dna_1_1[] = {
    {3, 2, 1.09, 0.31, 0.55, 2.0, -2},   {2, 2, 1.07, 0.27, 0.49, 2.2, -3}, {1, 2, 1.02, 0.21, 0.36, 2.8, -6},
    {0, 2, 0.80, 0.064, 0.17, 4.8, -16}, {4, 1, 1.08, 0.28, 0.54, 2.0, -2}, {3, 1, 1.06, 0.25, 0.46, 2.3, -4},
    {2, 1, 0.99, 0.17, 0.30, 3.3, -10},
};

static const gap_row dna_1_2[] = {
    {2, 2, 1.33, 0.62, 1.1, 1.2, 0},  {1, 2, 1.30, 0.52, 0.93, 1.4, -2}, {0, 2, 1.19, 0.34, 0.66, 1.8, -3},
    {3, 1, 1.32, 0.57, 1.0, 1.3, -1}, {2, 1, 1.29, 0.49, 0.92, 1.4, -1}, {1, 1, 1.14, 0.26, 0.52, 2.2, -5},
};

static const gap_row dna_1_3[] = {
    {2, 2, 1.37, 0.70, 1.2, 1.1, 0},  {1, 2, 1.35, 0.64, 1.1, 1.2, -1},  {0, 2, 1.25, 0.42, 0.83, 1.5, -2},
    {2, 1, 1.34, 0.60, 1.1, 1.2, -1}, {1, 1, 1.21, 0.34, 0.71, 1.7, -2},
};

static const gap_row dna_1_4[] = {
    {1, 2, 1.36, 0.67, 1.2, 1.1, 0},
    {0, 2, 1.26, 0.43, 0.90, 1.4, -1},
    {2, 1, 1.35, 0.61, 1.1, 1.2, -1},
    {1, 1, 1.22, 0.35, 0.72, 1.7, -3},
};

static const gap_row dna_1_5[] = {
    {3, 3, 1.39, 0.747, 1.38, 1.00, 0},
};

static const gap_row dna_2_3[] = {
    {4, 4, 0.63, 0.42, 0.84, 0.75, -2}, {2, 4, 0.615, 0.37, 0.72, 0.85, -3},
    {0, 4, 0.55, 0.21, 0.46, 1.2, -5},  {3, 3, 0.615, 0.37, 0.68, 0.9, -3},
    {6, 2, 0.63, 0.42, 0.84, 0.75, -2}, {5, 2, 0.625, 0.41, 0.78, 0.8, -2},
    {4, 2, 0.61, 0.35, 0.68, 0.9, -3},  {2, 2, 0.515, 0.14, 0.33, 1.55, -9},
};

static const gap_row dna_2_5[] = {
    {2, 4, 0.67, 0.59, 1.1, 0.6, -1},
    {0, 4, 0.62, 0.39, 0.78, 0.8, -2},
    {4, 2, 0.67, 0.61, 1.0, 0.65, -2},
    {2, 2, 0.56, 0.32, 0.59, 0.95, -4},
};

static const gap_row dna_2_7[] = {
    {2, 4, 0.68, 0.67, 1.2, 0.55, 0},
    {0, 4, 0.63, 0.43, 0.90, 0.7, -1},
    {4, 2, 0.675, 0.62, 1.1, 0.6, -1},
    {2, 2, 0.61, 0.35, 0.72, 1.7, -3},
};

static const gap_row dna_3_2[] = {
    {5, 5, 0.208, 0.030, 0.072, 2.9, -47},
};

static const gap_row dna_3_4[] = {
    {6, 3, 0.389, 0.25, 0.56, 0.7, -5},   {5, 3, 0.375, 0.21, 0.47, 0.8, -6},
    {4, 3, 0.351, 0.14, 0.35, 1.0, -9},   {6, 2, 0.362, 0.16, 0.45, 0.8, -4},
    {5, 2, 0.330, 0.092, 0.28, 1.2, -13}, {4, 2, 0.281, 0.046, 0.16, 1.8, -23},
};

static const gap_row dna_4_5[] = {
    {6, 5, 0.28, 0.21, 0.47, 0.6, -7},
    {5, 5, 0.27, 0.17, 0.39, 0.7, -9},
    {4, 5, 0.25, 0.10, 0.31, 0.8, -10},
    {3, 5, 0.23, 0.065, 0.25, 0.9, -11},
};

static const gap_row dna_5_4[] = {
    {10, 6, 0.163, 0.068, 0.16, 1.0, -19},
    {8, 6, 0.146, 0.039, 0.11, 1.3, -29},
};
#define ROWS(table) table, (int)(sizeof table / sizeof table[0])

static const struct protein_table {
    const char *matrix;
    const gap_row *row;
    int n;
} proteins[] = {
    {"BLOSUM62", ROWS(blosum62)}, {"BLOSUM45", ROWS(blosum45)}, {"BLOSUM50", ROWS(blosum50)},
    {"BLOSUM80", ROWS(blosum80)}, {"BLOSUM90", ROWS(blosum90)}, {"PAM30", ROWS(pam30)},
    {"PAM70", ROWS(pam70)},       {"PAM250", ROWS(pam250)},
};
enum { N_PROTEINS = sizeof proteins / sizeof proteins[0] };

/* match / -mismatch in lowest terms */
static const struct dna_table {
    int32_t match, mismatch;
    const gap_row *row;
    int n;
    bool even; /* the scores of the simulation were even; BLAST rounds the others down */
} dnas[] = {
    {1, 1, ROWS(dna_1_1), false}, {1, 2, ROWS(dna_1_2), false}, {1, 3, ROWS(dna_1_3), false},
    {1, 4, ROWS(dna_1_4), false}, {1, 5, ROWS(dna_1_5), false}, {2, 3, ROWS(dna_2_3), true},
    {2, 5, ROWS(dna_2_5), true},  {2, 7, ROWS(dna_2_7), true},  {3, 2, ROWS(dna_3_2), false},
    {3, 4, ROWS(dna_3_4), true},  {4, 5, ROWS(dna_4_5), false}, {5, 4, ROWS(dna_5_4), false},
};
enum { N_DNAS = sizeof dnas / sizeof dnas[0] };

/* Scores between the letters of `letters` are those of the other scheme. Statistics depend on the common
 * letters only, so tables that differ in B, Z and X are the same here. */
static bool same_scores(const lw_scoring *a, const lw_scoring *b, const char *letters)
{
    for (const char *p = letters; *p; p++) {
        for (const char *q = letters; *q; q++) {
            uint8_t ap = a->code[(unsigned char)*p], aq = a->code[(unsigned char)*q];
            uint8_t bp = b->code[(unsigned char)*p], bq = b->code[(unsigned char)*q];
            if (ap == LW_NO_CODE || aq == LW_NO_CODE || bp == LW_NO_CODE || bq == LW_NO_CODE ||
                a->score[ap * LW_MAX_LETTERS + aq] != b->score[bp * LW_MAX_LETTERS + bq])
                return false;
        }
    }
    return true;
}

static int32_t greatest_common_divisor(int32_t a, int32_t b)
{
    while (b) {
        int32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The row of the gap penalties, which are in units of `scale`; else the refusal with what there is. */
static lw_status pick(lw_statistics *out, const gap_row *row, int n, int32_t scale, bool even,
                      const char *name, const lw_scoring *scoring, lw_error *err)
{
    char known[512] = "";
    for (int i = 0; i < n; i++) {
        int32_t open = row[i].open * scale, extend = row[i].extend * scale;
        if (open == scoring->gap_open && extend == scoring->gap_extend) {
            *out = (lw_statistics){.lambda = row[i].lambda / scale,
                                   .k = row[i].k,
                                   .h = row[i].h,
                                   .alpha = row[i].alpha / scale,
                                   .beta = row[i].beta,
                                   .even = even};
            return LW_OK;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%d/%d", i ? " " : "", (int)open, (int)extend);
    }
    return lw_fail(
        err, LW_E_ARG,
        "no E-value statistics are published for %s with gap penalties %d/%d (open/extend); known are %s. "
        "Use one of those, or --no-evalue",
        name, (int)scoring->gap_open, (int)scoring->gap_extend, known);
}

static lw_status find_dna(lw_statistics *out, const lw_scoring *scoring, lw_error *err)
{
    int32_t match = scoring->score[scoring->code['A'] * LW_MAX_LETTERS + scoring->code['A']];
    int32_t mismatch = -scoring->score[scoring->code['A'] * LW_MAX_LETTERS + scoring->code['C']];
    lw_scoring simple;
    char known[256] = "";
    if (match > 0 && mismatch > 0 && lw_scoring_dna(&simple, match, mismatch, 0, 0, NULL) == LW_OK &&
        same_scores(scoring, &simple, "ACGT")) {
        int32_t scale = greatest_common_divisor(match, mismatch);
        for (int i = 0; i < N_DNAS; i++) {
            if (dnas[i].match * scale != match || dnas[i].mismatch * scale != mismatch)
                continue;
            char name[64];
            snprintf(name, sizeof name, "match %d, mismatch -%d", (int)match, (int)mismatch);
            return pick(out, dnas[i].row, dnas[i].n, scale, dnas[i].even, name, scoring, err);
        }
    }
    for (int i = 0; i < N_DNAS; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%d/-%d", i ? " " : "", (int)dnas[i].match,
                 (int)dnas[i].mismatch);
    }
    return lw_fail(
        err, LW_E_ARG,
        "no E-value statistics are published for these DNA scores; known are match/mismatch %s (and "
        "multiples). Use one of those, or --no-evalue",
        known);
}

lw_status lw_statistics_find(lw_statistics *out, const lw_scoring *scoring, lw_error *err)
{
    if (scoring->type == LW_DNA)
        return find_dna(out, scoring, err);
    char known[256] = "";
    for (int i = 0; i < N_PROTEINS; i++) {
        lw_scoring matrix;
        LW_TRY(lw_scoring_matrix(&matrix, proteins[i].matrix, LW_PROTEIN, scoring->gap_open,
                                 scoring->gap_extend, err));
        if (same_scores(scoring, &matrix, "ARNDCQEGHILKMFPSTWYV"))
            return pick(out, proteins[i].row, proteins[i].n, 1, false, proteins[i].matrix, scoring, err);
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? " " : "", proteins[i].matrix);
    }
    return lw_fail(
        err, LW_E_ARG,
        "no E-value statistics are published for this matrix; known are %s. Use one of those, or --no-evalue",
        known);
}

/* Largest integer not above the fixed point of
 *
 *     f(l) = beta + alpha / lambda * (log K + log((m - l) * (n - N * l)))
 *
 * that still leaves K * (m - l) * (n - N * l) > max(m, n). The same search as BLAST's, to the same end in the
 * rare cases where it does not converge: at most 20 steps of l <- f(l), held inside a bracket that only
 * shrinks. */
static int64_t length_adjustment(const lw_statistics *s, double m, double n, double sequences)
{
    double log_k = log(s->k), slope = s->alpha / s->lambda;
    double c = n * m - fmax(m, n) / s->k;
    if (c < 0)
        return 0;
    double b = m * sequences + n;
    double low = 0, high = 2 * c / (b + sqrt(b * b - 4 * sequences * c)), next = 0;
    bool converged = false;
    for (int step = 1; step <= 20; step++) {
        double l = next;
        double f = slope * (log_k + log((m - l) * (n - sequences * l))) + s->beta;
        if (f >= l) { /* l is at most the fixed point */
            low = l;
            if (f - low <= 1.0) {
                converged = true;
                break;
            }
            if (low == high)
                break;
        } else {
            high = l;
        }
        next = low <= f && f <= high ? f : step == 1 ? high : (low + high) / 2;
    }
    int64_t result = (int64_t)low;
    if (converged) {
        double above = ceil(low);
        if (above <= high && slope * (log_k + log((m - above) * (n - sequences * above))) + s->beta >= above)
            result = (int64_t)above;
    }
    return result;
}

double lw_search_space(const lw_statistics *s, int32_t query_len, int64_t letters, int64_t sequences)
{
    if (query_len <= 0 || letters <= 0)
        return 0;
    int64_t cut = length_adjustment(s, query_len, (double)letters, (double)sequences);
    int64_t effective = letters - sequences * cut;
    return (double)(effective > 0 ? effective : 1) * (double)(query_len - cut);
}

/* The score that an E-value goes by; bit scores go by the score as it is. */
static int32_t counted(const lw_statistics *s, int32_t score)
{
    return s->even ? score - (score & 1) : score;
}

double lw_bit_score(const lw_statistics *s, int32_t score)
{
    return (s->lambda * score - log(s->k)) / log(2.0);
}

double lw_evalue(const lw_statistics *s, int32_t score, double search_space)
{
    return search_space * exp(-s->lambda * counted(s, score) + log(s->k));
}

int32_t lw_evalue_cutoff(const lw_statistics *s, double evalue, double search_space)
{
    int32_t low = 1, high = INT32_MAX; /* E(score) falls as the score grows: bisect */
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (lw_evalue(s, middle, search_space) <= evalue)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void lw_print_evalue(char text[LW_STATISTIC_TEXT], double evalue)
{
    const char *format = evalue < 1e-180 ? "0.0"
                         : evalue < 9e-4 ? "%.2e"
                         : evalue < 0.1  ? "%.3f"
                         : evalue < 1.0  ? "%.2f"
                         : evalue < 10.0 ? "%.1f"
                                         : "%.0f";
    snprintf(text, LW_STATISTIC_TEXT, format, evalue);
}

void lw_print_bits(char text[LW_STATISTIC_TEXT], double bits)
{
    if (bits > 99999)
        snprintf(text, LW_STATISTIC_TEXT, "%.3e", bits);
    else if (bits > 99.9)
        snprintf(text, LW_STATISTIC_TEXT, "%ld", (long)bits);
    else
        snprintf(text, LW_STATISTIC_TEXT, "%.1f", bits);
}
