#!/usr/bin/env bash
# Load: many processes at once, large inputs through pipes, memory and descriptors watched.
# Usage: scripts/soak.sh PROGRAM SIMULATE_READS [SECONDS]    default: 60; SECONDS >= 600 takes the full sizes
#   (10 million reads, a reference of 250 Mb, 2 million database sequences, 4 GB on standard input)
set -euo pipefail
program=$(realpath "$1") simulate=$(realpath "$2") seconds=${3:-60}
full=$((seconds >= 600))
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
failed=0 done_checks=0
check() { # NAME COMMAND...
    local name=$1
    shift
    done_checks=$((done_checks + 1))
    # not as a condition: there bash would go on after a command that fails
    set +e
    (set -e; "$@")
    local code=$?
    set -e
    if [ $code -eq 0 ]; then echo "soak: $name: ok ($SECONDS s)"; else failed=$((failed + 1)); echo "FAILED: soak: $name"; fi
}
# peak PROGRAM ARGUMENTS... : kilobytes of resident memory at its highest, to the file peak
peak() { /usr/bin/time -o peak -f %M "$@"; }
at_most() { # KILOBYTES : of the last peak
    local kb
    kb=$(tail -n 1 peak)
    [ "$kb" -le "$1" ] || { echo "soak: peak memory $kb kB, more than $1"; return 1; }
}

# --- a CIGAR of 100,000 operations
long_cigar() {
    local operations=$((full ? 100000 : 10000))
    awk -v n=$((operations * 2)) 'BEGIN { srand(3); s = ""; split("A C G T", l, " "); for (i = 0; i < n; i++) s = s l[int(rand() * 4) + 1]; print ">r\n" s }' >long.fa
    awk 'NR == 2 { s = ""; for (i = 1; i <= length($0); i += 4) s = s substr($0, i, 3); print ">q\n" s }' long.fa >query.fa
    "$program" pairs query.fa long.fa --mode global -A 2 -B 9 -O 0 -E 1 -q -o long.tsv
    # a deleted letter after every third; where letters repeat, a gap moves and may meet another
    [ "$(tail -n 1 long.tsv | grep -oE '[0-9]+[MID]' | wc -l)" -ge $((operations * 8 / 10)) ]
}

# --- reads through a pipe: neither memory nor descriptors must grow with their number
memory_is_flat() {
    # 280 MB were measured for 0.8 as for 3.2 million reads of 100 letters: the pipeline's buffers, once they are full
    local many=$((full ? 10000000 : 300000))
    "$simulate" random:400 $many 100 0.02 1 >many.fq 2>/dev/null
    [ "$(grep -c '^+$' many.fq)" -eq $many ]
    mkfifo pipe
    cat many.fq >pipe &
    peak "$program" align random-400.fa - -q -o many.bam <pipe &
    local timer=$! child open=0 most=0
    while kill -0 $timer 2>/dev/null; do
        child=$(ps -o pid= --ppid $timer | head -n 1 || true)
        [ -n "$child" ] && open=$(find "/proc/${child// /}/fd" -mindepth 1 2>/dev/null | wc -l || true)
        most=$((open > most ? open : most))
        sleep 0.2
    done
    wait $timer
    rm many.fq pipe
    # files and pipes of the run, whatever the number of reads
    echo "soak: at most $most descriptors open"
    [ $most -ge 3 ] && [ $most -le 16 ]
    at_most 400000
}

# --- many processes at once give one answer
together() {
    "$simulate" random:3000 2000 100 0.02 1 >r.fq 2>/dev/null
    "$program" align random-3000.fa r.fq -q -t 1 -o want.sam
    grep -v '^@PG' want.sam | cksum >want
    local n=$((full ? 64 : 16)) i pids=()
    for ((i = 0; i < n; i++)); do
        "$program" align random-3000.fa r.fq -q -t 2 -o "got.$i.sam" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    for ((i = 0; i < n; i++)); do grep -v '^@PG' "got.$i.sam" | cksum | cmp -s - want; done
    rm got.*.sam
}

# --- a large reference
large_reference() {
    local letters=$((full ? 250000000 : 5000000))
    "$simulate" random:$letters 20 150 0.02 1 >large.fq 2>/dev/null
    peak "$program" align random-$letters.fa large.fq -q -o large.sam
    [ "$(grep -vc '^@' large.sam)" -eq 20 ]
    at_most $((letters * 12 / 1000 + 200000))
    rm -f random-$letters.fa
}

# --- many database sequences
large_database() {
    local n=$((full ? 2000000 : 50000))
    awk -v n=$n 'BEGIN { srand(5); l = "ARNDCQEGHILKMFPSTWYV"; for (i = 0; i < n; i++) { s = ""; for (k = 0; k < 60; k++) s = s substr(l, int(rand() * 20) + 1, 1); print ">s" i "\n" s } }' >db.fa
    "$program" makedb db.fa -q -o db.lwdb
    awk 'NR == 20001 || NR == 20002' db.fa >q.fa
    "$program" search q.fa db.lwdb -q -o hits.tsv
    grep -q 's10000' hits.tsv
    # a database file is mapped: memory stays below 1.3 times its size
    peak "$program" search q.fa db.lwdb -q -o hits.tsv
    at_most $(($(stat -c %s db.lwdb) * 13 / 10 / 1000 + 100000))
}

# --- the same run again and again leaves no descriptor and no file behind
again_and_again() {
    local end=$((SECONDS + (full ? 200 : 10))) before
    before=$(ls | wc -l)
    while [ $SECONDS -lt $end ]; do
        "$program" align random-3000.fa r.fq -q -o again.bam
    done
    rm again.bam
    [ "$(ls | wc -l)" -eq "$before" ]
}
# --- gigabytes on standard input
large_pipe() {
    local gigabytes=$((full ? 4 : 1)) line
    line=$(printf 'ACGT%.0s' $(seq 250))
    printf '>r\n%.60s\n' "$line" >short.fa # so that the pipe is the work
    # one sequence a line of 1,000 letters, refused at its first bad letter only after all of them were read
    # (yes ends by the closed pipe, which is no failure)
    { yes ">s
$line" | head -n $((gigabytes * 1990000)) || true; printf '>last\nAC!T\n'; } |
        { ! peak "$program" align short.fa - -q -o pipe.sam; }
    [ ! -e pipe.sam ]
    at_most 2000000
}

check "a path of very many operations" long_cigar
check "memory does not grow with the number of reads" memory_is_flat
check "many processes at once" together
check "a large reference" large_reference
check "a large database" large_database
check "the same run again and again" again_and_again
[ $full -eq 1 ] && check "gigabytes on standard input" large_pipe
echo "cases: $((done_checks - failed)) passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
