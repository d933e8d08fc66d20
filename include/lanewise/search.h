/* search.h - every query against every sequence of a database, exactly.
 *
 * Local alignment (Smith and Waterman) with affine gaps; units and the choice among equal alignments are
 * those of align.h. Hits of a query are ordered by score, highest first, then by the subject's place in the
 * database; they are the same on every backend. */
#ifndef LANEWISE_SEARCH_H
#define LANEWISE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>
#include "lanewise/align.h"
#include "lanewise/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lw_letters { LW_LETTERS_AUTO = 0, LW_LETTERS_DNA = 1, LW_LETTERS_PROTEIN = 2 } lw_letters;

/* A database: its sequences in memory, or a mapped file that lw_database_write() made. */
typedef struct lw_database lw_database;

/* Opens `path`: a database file, or FASTA or FASTQ (plain, gzip; "-": standard input). LW_LETTERS_AUTO takes
 * sequences for DNA when all letters are IUPAC nucleotide codes and nine in ten of them ACGTUN. `threads` 0:
 * one per CPU. Of a database file only header and index are read and checked here; lw_database_check() checks
 * the rest, and lw_search() does so before it prints anything. LW_E_IO, LW_E_INPUT (bad letters; truncated,
 * edited, of another version, not a database), LW_E_ARG (letters disagree with the database file),
 * LW_E_NOMEM, LW_E_RANGE. */
lw_status lw_database_open(lw_database **out, const char *path, lw_letters letters, int threads,
                           const lw_host *host, lw_error *err);
void lw_database_close(lw_database *database); /* NULL is allowed */

/* Compares all of a database file with its checksums. LW_E_INPUT. */
lw_status lw_database_check(const lw_database *database, int threads, lw_error *err);

int64_t lw_database_sequences(const lw_database *database);
int64_t lw_database_letters(const lw_database *database); /* of all sequences */
lw_alphabet_type lw_database_type(const lw_database *database);

struct lw_temporaries;

/* Writes a database file; it appears whole or not at all. `temporaries` may be NULL (see outfile.h). LW_E_IO,
 * LW_E_NOMEM, LW_E_UNSUPPORTED on a big-endian machine. */
lw_status lw_database_write(const lw_database *database, const char *path, struct lw_temporaries *temporaries,
                            const lw_host *host, lw_error *err);

typedef enum lw_search_format {
    LW_SEARCH_BLAST6 = 0, /* BLAST's 12 columns */
    LW_SEARCH_TSV = 1,
    LW_SEARCH_SAM = 2
} lw_search_format;

typedef struct lw_search_options {
    lw_letters letters;       /* of the queries; AUTO: as the database */
    const char *matrix;       /* NULL: BLOSUM62 for protein, match and mismatch for DNA */
    int match, mismatch;      /* DNA without matrix; -1: 2 and 3 */
    int gap_open, gap_extend; /* -1: protein 11 and 1, DNA 5 and 2 */
    unsigned strands;         /* lw_strands; protein: LW_FORWARD */
    int32_t top;              /* hits per query, >= 1; 0: no limit */
    bool no_evalue;           /* neither E-values nor bit scores: columns are '*' */
    double evalue;            /* largest E-value reported */
    int32_t min_score;        /* smallest score reported, >= 1 */
    bool filter; /* drop subjects whose best alignment without gaps scores below filter_score first */
    int32_t filter_score; /* 0: half the score that the E-value cut asks for */
    bool align;           /* trace the alignments: starts, identity; always for BLAST6 and SAM */
    lw_search_format format;
    const char *backend;      /* NULL: auto */
    int device;               /* CUDA ordinal */
    int64_t device_bytes;     /* most device memory, 0: what is free */
    int threads;              /* 0: one per CPU */
    const char *command_line; /* for SAM's @PG; may be NULL */
} lw_search_options;

typedef struct lw_search_summary {
    int64_t queries, hits, filtered, rescued;
    double cells;          /* query letters x database letters, both strands */
    double search_seconds; /* from the device opened to the last hit written */
    double busy_seconds;   /* of those, the device computing */
    char device[256];      /* name of the CUDA device; empty: none */
    char backend[32];      /* the row that was used */
} lw_search_summary;

/* Fills *options with the defaults above, top 10 and E-value 10. */
void lw_search_defaults(lw_search_options *options);

/* Searches the sequences of the files `queries` and writes the hits to `output` (NULL: standard output),
 * which appears whole or not at all. *summary may be NULL. LW_E_ARG, LW_E_INPUT, LW_E_IO, LW_E_NOMEM,
 * LW_E_UNSUPPORTED, LW_E_DEVICE, LW_E_RANGE, LW_E_INTERRUPTED. */
lw_status lw_search(const lw_database *database, const char *const *queries, int n_queries,
                    const char *output, const lw_search_options *options, struct lw_temporaries *temporaries,
                    lw_search_summary *summary, const lw_host *host, lw_error *err);

#ifdef __cplusplus
}
#endif
#endif
