/* commands.h - the subcommands, one cmd_*.c each. */
#ifndef LW_COMMANDS_H
#define LW_COMMANDS_H

/* argv[0] is the subcommand's name. Returns the exit code: 0 done, 1 run-time failure, 2 usage. */
int cmd_align(int argc, char **argv);
int cmd_pairs(int argc, char **argv);
int cmd_apsp(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_infer(int argc, char **argv);
int cmd_layer(int argc, char **argv);
int cmd_makedb(int argc, char **argv);
int cmd_realign(int argc, char **argv);
int cmd_search(int argc, char **argv);
int cmd_bench(int argc, char **argv);

#endif
