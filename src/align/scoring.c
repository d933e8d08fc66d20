/* scoring.c - alphabets, match/mismatch scores and NCBI matrix files. */
#include "lanewise/align.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "align/matrices.h"
#include "common/fail.h"
#include "common/numbers.h"

static const char iupac_dna[] = "ACGTURYSWKMBDHVN";
static const char iupac_complement[] = "TGCAAYRSWMKVHDBN";

static lw_status check_penalties(int gap_open, int gap_extend, lw_error *err)
{
    if (gap_open < 0 || gap_open > LW_MAX_SCORE)
        return lw_fail(err, LW_E_ARG, "gap open penalty %d is outside 0 to %d", gap_open, LW_MAX_SCORE);
    if (gap_extend < 0 || gap_extend > LW_MAX_SCORE)
        return lw_fail(err, LW_E_ARG, "gap extension penalty %d is outside 0 to %d", gap_extend,
                       LW_MAX_SCORE);
    return LW_OK;
}

static void set_code(lw_scoring *s, char letter, uint8_t code)
{
    s->code[(unsigned char)toupper((unsigned char)letter)] = code;
    s->code[(unsigned char)tolower((unsigned char)letter)] = code;
}

static uint8_t code_of(const lw_scoring *s, char letter)
{
    return s->code[(unsigned char)letter];
}

/* The codes of s->letter, then what its type says of letters that have none. */
static lw_status finish(lw_scoring *s, lw_error *err)
{
    memset(s->code, LW_NO_CODE, sizeof s->code);
    for (int i = 0; i < s->n_letters; i++)
        set_code(s, s->letter[i], (uint8_t)i);
    if (s->type == LW_DNA) {
        if (code_of(s, 'U') == LW_NO_CODE && code_of(s, 'T') != LW_NO_CODE)
            set_code(s, 'U', code_of(s, 'T'));
        uint8_t any = code_of(s, 'N');
        for (const char *p = "ACGT"; *p; p++)
            if (code_of(s, *p) == LW_NO_CODE)
                return lw_fail(err, LW_E_INPUT, "the matrix has no column for %c: it does not suit DNA", *p);
        for (const char *p = iupac_dna; *p && any != LW_NO_CODE; p++)
            if (code_of(s, *p) == LW_NO_CODE)
                set_code(s, *p, any);
        for (int i = 0; i < s->n_letters; i++) {
            const char *at = strchr(iupac_dna, s->letter[i]);
            s->complement[i] = at ? code_of(s, iupac_complement[at - iupac_dna]) : (uint8_t)i;
            if (s->complement[i] == LW_NO_CODE)
                return lw_fail(err, LW_E_INPUT, "the matrix has a column for %c but none for its complement",
                               s->letter[i]);
        }
    } else {
        uint8_t unknown = code_of(s, 'X');
        for (int c = 'A'; c <= 'Z' && unknown != LW_NO_CODE; c++)
            if (code_of(s, (char)c) == LW_NO_CODE) {
                set_code(s, (char)c, unknown);
                s->substituted[c] = s->substituted[tolower(c)] = 1;
            }
        for (int i = 0; i < s->n_letters; i++)
            s->complement[i] = (uint8_t)i;
    }
    s->max_score = INT_MIN;
    s->min_score = INT_MAX;
    for (int q = 0; q < s->n_letters; q++)
        for (int t = 0; t < s->n_letters; t++) {
            int value = s->score[q * LW_MAX_LETTERS + t];
            s->max_score = value > s->max_score ? value : s->max_score;
            s->min_score = value < s->min_score ? value : s->min_score;
        }
    return LW_OK;
}

lw_status lw_scoring_dna(lw_scoring *out, int match, int mismatch, int gap_open, int gap_extend,
                         lw_error *err)
{
    if (match < 0 || match > LW_MAX_SCORE)
        return lw_fail(err, LW_E_ARG, "match score %d is outside 0 to %d", match, LW_MAX_SCORE);
    if (mismatch < 0 || mismatch > LW_MAX_SCORE)
        return lw_fail(err, LW_E_ARG, "mismatch penalty %d is outside 0 to %d", mismatch, LW_MAX_SCORE);
    LW_TRY(check_penalties(gap_open, gap_extend, err));
    lw_scoring s = {
        .type = LW_DNA, .n_letters = 5, .letter = "ACGTN", .gap_open = gap_open, .gap_extend = gap_extend};
    for (int q = 0; q < 5; q++)
        for (int t = 0; t < 5; t++)
            s.score[q * LW_MAX_LETTERS + t] = (int16_t)(q == 4 || t == 4 ? -1 : q == t ? match : -mismatch);
    LW_TRY(finish(&s, err));
    *out = s;
    return LW_OK;
}

/* Splits off the next line of *text, without its end; NULL at the end of the text. */
static char *next_line(char **text)
{
    char *line = *text;
    if (!line || !*line)
        return NULL;
    size_t length = strcspn(line, "\n");
    *text = line[length] ? line + length + 1 : line + length;
    line[length] = '\0';
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    return line;
}

/* NCBI's format: '#' comments, a line of column letters, then one line a row: its letter and the scores. */
static lw_status parse_matrix(lw_scoring *s, char *text, const char *name, lw_error *err)
{
    int n_columns = 0, n_rows = 0, line_number = 0;
    bool row_seen[LW_MAX_LETTERS] = {false};
    for (char *line; (line = next_line(&text));) {
        line_number++;
        char *save = NULL;
        char *word = strtok_r(line, " \t", &save);
        if (!word || *word == '#')
            continue;
        if (n_columns == 0) { /* the column letters */
            for (; word; word = strtok_r(NULL, " \t", &save)) {
                char letter = (char)toupper((unsigned char)word[0]);
                if (word[1] || !isgraph((unsigned char)letter))
                    return lw_fail(err, LW_E_INPUT, "%s: line %d: column name '%s' is not one letter", name,
                                   line_number, word);
                if (n_columns == LW_MAX_LETTERS)
                    return lw_fail(err, LW_E_INPUT, "%s: line %d: more than %d columns", name, line_number,
                                   LW_MAX_LETTERS);
                if (strchr(s->letter, letter))
                    return lw_fail(err, LW_E_INPUT, "%s: line %d: column %c stands twice", name, line_number,
                                   letter);
                s->letter[n_columns++] = letter;
            }
            s->n_letters = n_columns;
            continue;
        }
        const char *at = strchr(s->letter, toupper((unsigned char)word[0]));
        if (word[1] || !at)
            return lw_fail(err, LW_E_INPUT,
                           "%s: line %d: row '%s' has no column of that name: the matrix is not square", name,
                           line_number, word);
        int row = (int)(at - s->letter), n = 0;
        if (row_seen[row])
            return lw_fail(err, LW_E_INPUT, "%s: line %d: row %c stands twice", name, line_number,
                           s->letter[row]);
        row_seen[row] = true;
        n_rows++;
        while ((word = strtok_r(NULL, " \t", &save))) {
            int64_t value;
            lw_error number = {0};
            if (lw_parse_int(word, "score", -LW_MAX_SCORE, LW_MAX_SCORE, &value, &number) != LW_OK)
                return lw_fail(err, LW_E_INPUT, "%s: line %d: row %c: %s", name, line_number, s->letter[row],
                               number.message);
            if (n < n_columns)
                s->score[row * LW_MAX_LETTERS + n] = (int16_t)value;
            n++;
        }
        if (n != n_columns)
            return lw_fail(err, LW_E_INPUT, "%s: line %d: row %c has %d scores for %d columns", name,
                           line_number, s->letter[row], n, n_columns);
    }
    if (n_columns == 0)
        return lw_fail(
            err, LW_E_INPUT,
            "%s: no matrix in this file (expected NCBI's format: a line of letters, then one row a letter)",
            name);
    if (n_rows != n_columns)
        return lw_fail(err, LW_E_INPUT, "%s: %d rows for %d columns: the matrix is not square", name, n_rows,
                       n_columns);
    return LW_OK;
}

/* A whole text file, 0-terminated, of at most 1 MiB (the largest matrix there can be is far smaller). */
static lw_status read_text(const char *path, char **out, lw_error *err)
{
    enum { LIMIT = 1 << 20 };
    FILE *file = fopen(path, "r");
    if (!file)
        return lw_fail(err, LW_E_IO, "%s: not a built-in matrix (%s) and cannot be opened: %s", path,
                       lw_matrix_names, strerror(errno));
    char *text = malloc(LIMIT + 1);
    if (!text) {
        fclose(file);
        return lw_fail_memory(err, LIMIT + 1);
    }
    size_t n = fread(text, 1, LIMIT + 1, file);
    bool failed = ferror(file) != 0;
    int reason = errno;
    fclose(file);
    lw_status status = LW_OK;
    if (failed)
        status = lw_fail(err, LW_E_IO, "%s: cannot be read: %s", path, strerror(reason));
    else if (n > LIMIT || memchr(text, 0, n))
        status = lw_fail(err, LW_E_INPUT, "%s: not a matrix in NCBI's text format", path);
    if (status != LW_OK) {
        free(text);
        return status;
    }
    text[n] = '\0';
    *out = text;
    return LW_OK;
}

lw_status lw_scoring_matrix(lw_scoring *out, const char *name_or_file, lw_alphabet_type type, int gap_open,
                            int gap_extend, lw_error *err)
{
    LW_TRY(check_penalties(gap_open, gap_extend, err));
    char *text = NULL;
    for (int i = 0; i < lw_matrix_count; i++)
        if (strcasecmp(name_or_file, lw_matrices[i].name) == 0) {
            text = strdup(lw_matrices[i].text);
            if (!text)
                return lw_fail_memory(err, strlen(lw_matrices[i].text));
        }
    if (!text)
        LW_TRY(read_text(name_or_file, &text, err));
    lw_scoring s = {.type = type, .gap_open = gap_open, .gap_extend = gap_extend};
    lw_error found = {0};
    lw_status status = parse_matrix(&s, text, name_or_file, err);
    free(text);
    LW_TRY(status);
    if (finish(&s, &found) != LW_OK)
        return lw_fail(err, LW_E_INPUT, "%s: %s", name_or_file, found.message);
    *out = s;
    return LW_OK;
}

lw_status lw_scoring_two_piece(lw_scoring *scoring, int gap_open, int gap_extend, lw_error *err)
{
    LW_TRY(check_penalties(gap_open, gap_extend, err));
    scoring->two_piece = true;
    scoring->gap_open2 = gap_open;
    scoring->gap_extend2 = gap_extend;
    return LW_OK;
}
