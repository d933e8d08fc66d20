/* fuzz_sequences.c - the reader of FASTA, FASTQ, SAM, BAM and CRAM, and the loader of references. */
#include "fuzz/fuzz.h"

#include "common/refs.h"
#include "common/seqio.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_bytes bytes = {data, size};
    int max_records = (int)fuzz_take(&bytes, 4), group = 1 + (int)fuzz_take(&bytes, 2);
    const char *path = fuzz_file(bytes.data, bytes.size);
    lw_error err = {0};
    lw_seqio *reader = NULL;
    lw_seqio_options options = {.group = group};
    lw_status status = lw_seqio_open(&reader, &path, 1, &options, &err);
    FUZZ_ERROR(status, err);
    if (status == LW_OK) {
        lw_read_batch batch = {0};
        int64_t n = 0, letters = 0;
        do {
            status = lw_seqio_read(reader, &batch, max_records, 1000, &err);
            FUZZ_ERROR(status, err);
            if (status != LW_OK)
                break;
            for (int64_t i = 0; i < batch.n; i++) {
                const lw_read *r = &batch.read[i];
                letters += r->len;
                FUZZ_REQUIRE(strlen(lw_read_name(&batch, i)) == (size_t)r->name_len, "name's length");
                FUZZ_REQUIRE(lw_read_seq(&batch, i)[r->len] == 0, "sequence's end");
                FUZZ_REQUIRE(!lw_read_qual(&batch, i) || lw_read_qual(&batch, i)[r->len] == 0,
                             "qualities' end");
            }
            n += batch.n;
        } while (batch.n);
        if (status == LW_OK)
            FUZZ_REQUIRE(lw_seqio_count(reader)->records == n && lw_seqio_count(reader)->letters == letters,
                         "counts");
        lw_read_batch_free(&batch);
        lw_seqio_close(reader);
    }
    lw_refs *refs = NULL;
    err = (lw_error){0};
    status = lw_refs_load(&refs, path, NULL, NULL, &err);
    FUZZ_ERROR(status, err);
    if (status == LW_OK)
        lw_refs_free(refs);
    return 0;
}
