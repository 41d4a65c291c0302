/* What the subcommands share: the table of commands, the one place that prints errors,
 * and options that set configuration keys. One file cli/cmd_NAME.c a command. */
#ifndef PL_CLI_CMD_H
#define PL_CLI_CMD_H

#include <argp.h>
#include <stdint.h>

#include "base/config.h"
#include "base/err.h"

struct pl_command {
    const char *name, *summary;
    /* argv[0] is "pipelag NAME", as argp wants it; returns the exit status. */
    int (*run)(int argc, char **argv);
};

/* All commands in the order of `pipelag --help`, ending with name == NULL. */
extern const struct pl_command pl_commands[];

int pl_cmd_calibrate(int argc, char **argv);
int pl_cmd_cluster(int argc, char **argv);
int pl_cmd_config(int argc, char **argv);
int pl_cmd_figure(int argc, char **argv);
int pl_cmd_model(int argc, char **argv);
int pl_cmd_plan(int argc, char **argv);
int pl_cmd_profile(int argc, char **argv);
int pl_cmd_run(int argc, char **argv);
int pl_cmd_sim(int argc, char **argv);
int pl_cmd_sweep(int argc, char **argv);
int pl_cmd_theory(int argc, char **argv);
int pl_cmd_tokenize(int argc, char **argv);
int pl_cmd_trace(int argc, char **argv);

/* Print "pipelag: " and the message of the latest pl_fail on stderr; returns the exit
 * status of code. */
int pl_cmd_fail(int code);

/* Tell the configuration which schedules, devices, ... there are (cli/families.c). */
void pl_cmd_register_families(void);

/* The only argument of a command, such as FILE; a second one ends it with status 2. */
void pl_cmd_argument(struct argp_state *state, const char *what, char *arg,
                     const char **out);

/* May an output be written at path? A regular file that exists needs force, the folder
 * must be there: asked before long work. Errors: PL_EUSAGE, PL_EIO. */
int pl_cmd_output(const char *path, bool force);

/* Value of an option: the whole of text, finite, in min..max. Errors: PL_EUSAGE naming
 * the option and the range. */
int pl_cmd_real(const char *option, const char *text, double min, double max,
                double *out);
int pl_cmd_int(const char *option, const char *text, int64_t min, int64_t max,
               int64_t *out);

/* Options that are configuration keys (--set KEY=VALUE, -P, -m, --schedule, --updates).
 * A command gives pl_cmd_settings_children to its argp and, at ARGP_KEY_INIT, a zeroed
 * struct pl_cmd_settings as state->child_inputs[0]; then pl_cmd_settings_config. The
 * order on the command line does not matter against the file: settings are applied
 * after it. */
struct pl_cmd_setting {
    const char *key; /* NULL: value is "key=value" */
    const char *value, *origin;
};

struct pl_cmd_settings {
    int n;
    struct pl_cmd_setting *settings; /* strings borrowed from argv */
};

extern const struct argp_child pl_cmd_settings_children[];

/* Append one; strings are borrowed. */
void pl_cmd_settings_add(struct pl_cmd_settings *settings, const char *key,
                         const char *value, const char *origin);
/* Defaults, then the file (NULL: none), then the settings in order. *out is the
 * caller's (pl_config_free), untouched on error. */
int pl_cmd_settings_config(const struct pl_cmd_settings *settings, const char *file,
                           struct pl_config **out);
/* "COMMAND FILE --set KEY=VALUE ...": what decides the results, for the trace. Caller
 * frees. */
char *pl_cmd_settings_line(const struct pl_cmd_settings *settings, const char *command,
                           const char *file);
void pl_cmd_settings_free(struct pl_cmd_settings *settings);
/* The end of a command: frees its settings; returns its exit status, having printed the
 * error of a code below 0. */
int pl_cmd_end(struct pl_cmd_settings *settings, int code);

#endif
