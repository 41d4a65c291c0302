/* Configuration: one table declares every key; the YAML reader, --set, --help, the man
 * page, the resolved copy in the trace and the experiment arms all come from it.
 *
 * A file is YAML: nested maps are dotted keys (schedule: {name: 2bw} is schedule.name:
 * 2bw). Four top-level keys are not in the table: `seeds` (list of ints), `axes` (map
 * of axis -> map of label -> overrides), `sweep` (map of key -> list of values) and
 * `title` (text). The arms of an experiment
 * are the product of the axes in file order; a file without axes has one arm.
 * Ownership: pl_config_new / pl_config_free; returned strings and arrays are borrowed.
 */
#ifndef PL_BASE_CONFIG_H
#define PL_BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/units.h"

enum pl_key_type {
    PL_KEY_INT,   /* min..max inclusive; 1e3 and 1_000 not accepted */
    PL_KEY_REAL,  /* min..max inclusive, finite */
    PL_KEY_BOOL,  /* true false yes no on off; also auto when that is the default */
    PL_KEY_TEXT,  /* any string; a path is relative to the working directory */
    PL_KEY_NAME,  /* one of choices, or of the names registered for this key */
    PL_KEY_TIME,  /* one duration */
    PL_KEY_TIMES, /* one duration for all stages, or a list with one each */
};

struct pl_key {
    const char *name; /* dotted */
    enum pl_key_type type;
    const char *unit;     /* of the printed value; "" = none */
    const char *fallback; /* default, as text; "" is an empty text or "decided later" */
    double min, max;
    const char *const *choices; /* NAME only; NULL when registered at start */
    const char *help;           /* one line */
};

/* The table, ending with name == NULL. */
extern const struct pl_key pl_keys[];

/* Tell the table which names a NAME key accepts (the families live above base/). names
 * is NULL-terminated and borrowed for the life of the program. Bug if key is unknown.
 */
void pl_config_register(const char *key, const char *const *names);
const char *const *pl_config_choices(const char *key); /* NULL when any name will do */

struct pl_config;

struct pl_config *pl_config_new(void); /* all defaults */
void pl_config_free(struct pl_config *config);

/* Read a YAML file over what is there. Errors: PL_EINPUT (cannot read), PL_ECONFIG with
 * file:line:column, the cause and the nearest valid key; config is then unusable. */
int pl_config_load(struct pl_config *config, const char *path);

/* One assignment "key=value" (list: "a,b,c"); origin ("--set") starts the message.
 * Applies to every arm: it wins over the file and over the axes. */
int pl_config_set(struct pl_config *config, const char *assignment, const char *origin);
int pl_config_set_value(struct pl_config *config, const char *key, const char *value,
                        const char *origin);

/* Presets. A key GROUP.preset names a set of values for keys of GROUP: a built-in one
 * (base/builtin.h, kind GROUPs), the path of a YAML file with keys GROUP.* only, or a
 * file that a registered import turns into such YAML. They count only where nothing
 * else (file, arm, --set) gives the key.
 *
 * pl_config_resolve fills in the presets that config chooses, in place of those of an
 * earlier call. pl_config_arm does it, and so must whoever reads a configuration
 * without arms. Errors: PL_ECONFIG, PL_EINPUT naming the key's place or the file. */
int pl_config_resolve(struct pl_config *config);
/* The step for one group: text is YAML, origin starts messages; made: the text is in
 * no file, so messages give no lines. */
int pl_config_preset(struct pl_config *config, const char *text, const char *origin,
                     const char *group, bool made);
/* Files called *SUFFIX (".json") as presets of group: import makes the YAML text (the
 * caller's to free) and has checked every value. Strings are borrowed. */
typedef int pl_config_import(const char *path, char **yaml);
void pl_config_register_import(const char *group, const char *suffix,
                               pl_config_import *import);

/* Values; asking for an unknown key or the wrong type is a bug (assert). */
int64_t pl_config_int(const struct pl_config *config, const char *key);
double pl_config_real(const struct pl_config *config, const char *key);
bool pl_config_bool(const struct pl_config *config, const char *key);
/* Of a BOOL whose default is auto: -1 auto, 0, 1. */
int pl_config_maybe(const struct pl_config *config, const char *key);
/* TEXT and NAME. */
const char *pl_config_text(const struct pl_config *config, const char *key);
/* Place of a NAME among its choices, from 0: enums are in their order. */
int pl_config_choice(const struct pl_config *config, const char *key);
pl_tick pl_config_time(const struct pl_config *config, const char *key);
const pl_tick *pl_config_times(const struct pl_config *config, const char *key, int *n);
/* Not the default? */
bool pl_config_given(const struct pl_config *config, const char *key);

/* Value as text that pl_config_set_value reads back; caller frees. */
char *pl_config_value(const struct pl_config *config, const char *key);

/* Where the value came from: "FILE:LINE:COL", "--set" or "default"; for messages. */
const char *pl_config_where(const struct pl_config *config, const char *key);

/* Title, seeds (at least one: default {1}), axes and arms. */
const char *pl_config_title(const struct pl_config *config);
int pl_config_n_seeds(const struct pl_config *config);
uint64_t pl_config_seed(const struct pl_config *config, int i);
int pl_config_n_axes(const struct pl_config *config);
const char *pl_config_axis(const struct pl_config *config, int axis);
int pl_config_n_labels(const struct pl_config *config, int axis);
const char *pl_config_label(const struct pl_config *config, int axis, int label);
int pl_config_n_arms(const struct pl_config *config);
/* Label number of arm on axis (last axis varies fastest). */
int pl_config_arm_label(const struct pl_config *config, int arm, int axis);
/* The arm's own configuration (axes applied, then --set, then its presets); caller
 * frees. The overrides were checked when the file was read, so only a preset can fail.
 */
int pl_config_arm(const struct pl_config *config, int arm, struct pl_config **out);

/* Sweep: the points are the product of its lists in file order, last key fastest; a
 * key that --set fixes has that one value. An entry of an integer key may be a range:
 * "2..8", "0..64 +8", "2..64 x2". Without `sweep` there is one point. */
int pl_config_n_swept(const struct pl_config *config);
const char *pl_config_swept(const struct pl_config *config, int axis); /* its key */
int pl_config_n_values(const struct pl_config *config, int axis);
/* Is one of its values a list (of durations)? */
bool pl_config_swept_lists(const struct pl_config *config, int axis);
int64_t pl_config_n_points(const struct pl_config *config); /* INT64_MAX: too many */
/* Make *work the configuration of a point: a new copy when it is NULL, else one that an
 * earlier call made, of which only the swept keys change (cheap; a preset is read again
 * when it is another one). Caller frees. The values were checked when the file was
 * read, so only a preset can fail. */
int pl_config_point(const struct pl_config *config, int64_t point,
                    struct pl_config **work);

/* Every key with its resolved value as YAML that pl_config_load reads back (title,
 * seeds, axes and sweep included when only_given is false); only keys given when
 * only_given, without what presets supply. Where arms or points choose presets, the
 * keys of that group that are left to them are not printed. */
void pl_config_print(const struct pl_config *config, bool only_given, FILE *out);
/* Same as a string; caller frees. */
char *pl_config_dump(const struct pl_config *config, bool only_given);

#endif
