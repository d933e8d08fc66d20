/* align_choice.c - the choice of backend, devices and scoring, and the host's callbacks for many threads. */
#include "align/align_choice.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "align/overlap.h"
#include "common/device.h"
#include "common/fail.h"

enum { MOST_BACKENDS = 16 };

static void shared_say(void *user, int level, const char *text)
{
    lw_shared_host *h = user;
    pthread_mutex_lock(&h->lock);
    h->real->say(h->real->user, level, text);
    pthread_mutex_unlock(&h->lock);
}

static void shared_progress(void *user, double done, double total, double work)
{
    lw_shared_host *h = user;
    pthread_mutex_lock(&h->lock);
    h->real->progress(h->real->user, done, total, work);
    pthread_mutex_unlock(&h->lock);
}

void lw_share_host(lw_shared_host *h, const lw_host *real)
{
    static const lw_host silent = {0};
    h->real = real ? real : &silent;
    h->host = (lw_host){.user = h,
                        .say = h->real->say ? shared_say : NULL,
                        .progress = h->real->progress ? shared_progress : NULL,
                        .stop = h->real->stop};
    pthread_mutex_init(&h->lock, NULL);
}

void lw_shared_host_end(lw_shared_host *host)
{
    pthread_mutex_destroy(&host->lock);
}

lw_status lw_choice_make(lw_choice *out, const char *name, const int *devices, int n_devices, lw_error *err)
{
    const lw_backend *rows[MOST_BACKENDS];
    int n = 0, index;
    for (; n < lw_align_backend_count && n < MOST_BACKENDS; n++)
        rows[n] = &lw_align_backends[n]->base;
    if (!name)
        name = "auto";
    if (n_devices > 0 && strcmp(name, "auto") == 0)
        name = "cuda"; /* a named device is a wish for CUDA */
    if (n_devices > LW_MOST_DEVICES)
        return lw_fail(err, LW_E_ARG, "--device: more than %d devices", LW_MOST_DEVICES);
    *out = (lw_choice){.n_devices = n_devices > 0 ? n_devices : 1};
    for (int d = 0; d < n_devices; d++) {
        out->device[d] = devices[d];
        for (int e = 0; e < d; e++)
            if (out->device[e] == out->device[d])
                return lw_fail(err, LW_E_ARG, "--device: device %d stands twice", out->device[d]);
    }
    LW_TRY(lw_backend_choose(rows, n, name, out->device[0], &index, out->why, sizeof out->why, err));
    out->backend = lw_align_backends[index];
    out->on_gpu = strncmp(out->backend->base.name, "cuda", 4) == 0;
    if (n_devices > 0 && !out->on_gpu)
        return lw_fail(err, LW_E_ARG, "--device has no meaning with --backend %s", out->backend->base.name);
    for (int d = 0; out->on_gpu && d < out->n_devices; d++) {
        lw_device about;
        if (d > 0)
            LW_TRY(out->backend->base.usable(&out->backend->base, out->device[d], err));
        if (lw_device_query(out->device[d], &about, NULL) != LW_OK)
            continue;
        size_t used = strlen(out->devices);
        snprintf(out->devices + used, sizeof out->devices - used, "%s%s", used ? ", " : "", about.name);
    }
    return LW_OK;
}

int lw_choice_lanes(const lw_choice *choice)
{
    return choice->backend->lanes * (choice->on_gpu ? choice->n_devices : 1);
}

int lw_choice_device(const lw_choice *choice, int lane)
{
    return choice->device[choice->on_gpu ? lane % choice->n_devices : 0];
}

static bool protein_matrix(const char *name)
{
    return strncasecmp(name, "BLOSUM", 6) == 0 || strncasecmp(name, "PAM", 3) == 0;
}

/* 0 for a letter against itself, -1 else; N and X equal nothing. */
static lw_status edit_scoring(lw_scoring *out, lw_alphabet_type type, lw_error *err)
{
    if (type == LW_DNA)
        return lw_scoring_dna(out, 0, 1, 0, 1, err);
    LW_TRY(lw_scoring_matrix(out, "BLOSUM62", type, 0, 1, err));
    for (int q = 0; q < out->n_letters; q++)
        for (int t = 0; t < out->n_letters; t++)
            out->score[q * LW_MAX_LETTERS + t] = q == t && out->letter[q] != 'X' ? 0 : -1;
    out->max_score = 0;
    out->min_score = -1;
    return LW_OK;
}

/* EMBOSS's 10 for a gap's first letter and 0.5 for the others, in halves. */
static lw_status emboss_scoring(lw_scoring *out, const lw_align_job *job, lw_alphabet_type type,
                                lw_error *err)
{
    enum { OPEN = 2 * 10 - 1, EXTEND = 1 };
    const char *matrix = job->matrix ? job->matrix : type == LW_DNA ? "NUC.4.4" : "BLOSUM62";
    LW_TRY(lw_scoring_matrix(out, matrix, type, OPEN, EXTEND, err));
    if (2 * out->max_score > LW_MAX_SCORE || 2 * out->min_score < -LW_MAX_SCORE)
        return lw_fail(err, LW_E_RANGE, "%s: scores beyond %d cannot be doubled", matrix, LW_MAX_SCORE / 2);
    for (int k = 0; k < LW_MAX_LETTERS * LW_MAX_LETTERS; k++)
        out->score[k] = (int16_t)(2 * out->score[k]);
    out->max_score *= 2;
    out->min_score *= 2;
    return job->preset == LW_PRESET_NEEDLE ? lw_overlap_scoring(out, err) : LW_OK;
}

static lw_status preset_scoring(lw_scoring *out, const lw_align_job *job, lw_alphabet_type type,
                                lw_error *err)
{
    if (job->match != LW_PENALTY_DEFAULT || job->mismatch != LW_PENALTY_DEFAULT ||
        job->gap_open != LW_PENALTY_DEFAULT || job->gap_extend != LW_PENALTY_DEFAULT ||
        (job->matrix && job->preset == LW_PRESET_EDIT))
        return lw_fail(err, LW_E_ARG, "--preset gives the scores: leave out %s",
                       job->preset == LW_PRESET_EDIT ? "-A, -B, -O, -E and --matrix" : "-A, -B, -O and -E");
    return job->preset == LW_PRESET_EDIT ? edit_scoring(out, type, err) : emboss_scoring(out, job, type, err);
}

lw_mode lw_choice_mode(const lw_align_job *job)
{
    switch (job->preset) {
    case LW_PRESET_EDIT:
        return LW_GLOBAL;
    case LW_PRESET_WATER:
        return LW_LOCAL;
    case LW_PRESET_NEEDLE:
        return LW_SEMIGLOBAL;
    default:
        return job->mode;
    }
}

lw_status lw_choice_scoring(lw_scoring *out, const lw_align_job *job, lw_alphabet_type guess, lw_error *err)
{
    lw_alphabet_type type = guess;
    if (job->type != LW_TYPE_AUTO)
        type = (lw_alphabet_type)job->type;
    else if (job->matrix && protein_matrix(job->matrix))
        type = LW_PROTEIN;
    else if (job->matrix && strncasecmp(job->matrix, "NUC", 3) == 0)
        type = LW_DNA;
    if (job->preset != LW_PRESET_NONE)
        return preset_scoring(out, job, type, err);
    bool by_matrix = job->matrix || type == LW_PROTEIN;
    if (by_matrix && (job->match != LW_PENALTY_DEFAULT || job->mismatch != LW_PENALTY_DEFAULT))
        return lw_fail(err, LW_E_ARG, "-A and -B are for DNA without a matrix; here %s gives the scores",
                       job->matrix ? job->matrix : "BLOSUM62");
    int open = job->gap_open != LW_PENALTY_DEFAULT ? job->gap_open : type == LW_PROTEIN ? 11 : 6;
    int extend = job->gap_extend != LW_PENALTY_DEFAULT ? job->gap_extend : 1;
    int match = job->match != LW_PENALTY_DEFAULT ? job->match : 1;
    int mismatch = job->mismatch != LW_PENALTY_DEFAULT ? job->mismatch : 4;
    if (by_matrix)
        LW_TRY(lw_scoring_matrix(out, job->matrix ? job->matrix : "BLOSUM62", type, open, extend, err));
    else
        LW_TRY(lw_scoring_dna(out, match, mismatch, open, extend, err));
    return job->gap_open2 == LW_PENALTY_DEFAULT
               ? LW_OK
               : lw_scoring_two_piece(out, job->gap_open2, job->gap_extend2, err);
}

bool lw_may_be_cram(const char *path, int64_t reference_letters)
{
    /* writing down a reference of this size costs a fraction of a second */
    const int64_t small_reference = 1 << 26;
    struct stat about;
    if (strcmp(path, "-") == 0 || stat(path, &about) != 0 || !S_ISREG(about.st_mode))
        return reference_letters <= small_reference;
    char magic[4] = "";
    FILE *file = fopen(path, "rb");
    bool is_cram = file && fread(magic, 1, 4, file) == 4 && memcmp(magic, "CRAM", 4) == 0;
    if (file)
        fclose(file);
    return is_cram;
}
