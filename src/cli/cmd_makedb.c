/* cmd_makedb.c - lanewise makedb: packs sequences into a database file for search. */
#include "cli/cli.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "lanewise/search.h"

static const cli_spec spec = {
    .name = "makedb",
    .usage = "DB.fa -o DB.lwdb [options]",
    .about =
        "Packs a database for 'lanewise search': sorted by length, checked by checksums, mapped into memory\n"
        "when it is opened. Optional: search reads FASTA too, with the same results.\n"
        "DB.fa: FASTA or FASTQ, plain or gzip, '-' for standard input.\n",
    .min_inputs = 1,
    .max_inputs = 1,
    .has_output = true,
    .has_threads = true,
};

int cmd_makedb(int argc, char **argv)
{
    static const char *const types[] = {"auto", "dna", "protein", NULL};
    int type = 0;
    const cli_option rows[] = {
        {0, "type", "TYPE", "auto (default), dna or protein", CLI_CHOICE, &type, 0, 0, types}, CLI_END};
    cli run;
    int code = cli_begin(&run, argc, argv, &spec, rows);
    if (code != CLI_GO_ON)
        return code;
    if ((code = cli_writes_binary(&run, "lwdb")) != CLI_GO_ON)
        return code;
    lw_error err = {0};
    lw_database *db = NULL;
    lw_status status = lw_database_open(&db, run.inputs[0], (lw_letters)type, run.threads, &run.host, &err);
    if (status == LW_OK)
        status = lw_database_write(db, run.output, run.temporaries, &run.host, &err);
    if (status == LW_OK && run.verbose > 0) {
        char text[256];
        snprintf(text, sizeof text, "%lld sequences, %lld letters of %s",
                 (long long)lw_database_sequences(db), (long long)lw_database_letters(db),
                 lw_database_type(db) == LW_DNA ? "DNA" : "protein");
        run.host.say(run.host.user, LW_SAY_INFO, text);
    }
    lw_database_close(db);
    return cli_end(&run, status, &err);
}
