#!/usr/bin/env bash
# From a fresh clone to an alignment: installs what is missing, builds, and aligns 1,000 real Illumina reads of
# C. elegans to the sequences they came from. Writes quickstart.bam in the repository root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-deps.sh
mkdir -p build
log=build/quickstart.log
echo "Building lanewise (log in $log) ..."
if ! { cmake --preset default -DLW_TESTS=OFF && cmake --build --preset default; } >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    exit 1
fi
program=build/default/lanewise

echo "Aligning 1,000 reads to 1.08 Mb of reference, both strands, every cell of the matrix ..."
"$program" align data/ref/ce.fa.gz data/reads/illumina_ce1000.fastq.gz -o quickstart.bam
echo
echo "The first records of quickstart.bam:"
if command -v samtools >/dev/null; then
    samtools view quickstart.bam 2>/dev/null | head -n 5 | cut -c1-150 || true
else
    "$program" align data/ref/ce.fa.gz data/reads/illumina_ce1000.fastq.gz --format tsv -q | head -n 6
fi
echo
echo "Next: $program align --help, $program devices, scripts/test.sh"
