/* Inside of struct pl_config, for base/config*.c only. */
#ifndef PL_BASE_CONFIG_TYPES_H
#define PL_BASE_CONFIG_TYPES_H

#include "base/config.h"

enum {
    PL_MAX_KEYS = 256,
    PL_MAX_LIST = 4096, /* entries of a list of durations, seeds */
    PL_MAX_LABEL = 64,  /* characters */
    PL_MAX_ARMS = 10000,
    PL_MAX_SWEPT = 100000 /* values of one key of a sweep */
};

/* One key's value; owns text, ticks and where. */
struct pl_value {
    int64_t i; /* INT and BOOL */
    double r;
    char *text; /* TEXT and NAME */
    pl_tick *ticks;
    int n_ticks;
    char *where; /* NULL: default */
    bool pinned; /* by --set: files and arms do not change it */
    bool preset; /* by GROUP.preset: anything else changes it */
};

struct pl_override {
    int key;
    struct pl_value value;
};

struct pl_label {
    char *name;
    struct pl_override *overrides;
    int n;
};

struct pl_axis {
    char *name;
    struct pl_label *labels;
    int n;
};

struct pl_config {
    struct pl_value *values; /* one for each key of the table */
    char *title;
    uint64_t *seeds;
    int n_seeds;
    struct pl_axis *axes;
    int n_axes;
    struct pl_axis *swept; /* named by the key; labels are values, one override each */
    int n_swept;
    bool title_given, seeds_given, title_pinned, seeds_pinned;
};

/* Number of a key in the table, -1 when unknown. */
int pl_key_find(const char *name);
/* Is the key called GROUP.preset? */
bool pl_key_is_preset(int key);
/* PL_ECONFIG "WHERE: unknown key 'name', did you mean ..."; group: a map was given. */
int pl_key_fail_unknown(const char *name, bool group, const char *where);
bool pl_key_is_group(const char *name);

/* Parse n texts (n > 1 for a list) as a value of key; where starts messages and is
 * kept. value is untouched on failure. */
int pl_value_parse(int key, const char *const *texts, int n, const char *where,
                   struct pl_value *value);
void pl_value_copy(struct pl_value *to, const struct pl_value *from);
void pl_value_clear(struct pl_value *value);
/* The table's default; value is overwritten, not cleared. */
void pl_value_default(int key, struct pl_value *value);
/* An arm or a point chooses the preset of the key's group. */
bool pl_config_arms_preset(const struct pl_config *config, int key);
/* Parse n texts as seeds; *seeds is the caller's to free. */
int pl_seeds_parse(const char *const *texts, int n, const char *where,
                   uint64_t **seeds);
/* PL_ECONFIG unless text is UTF-8. */
int pl_text_check(const char *text, const char *where, const char *key);
/* Length in bytes of the code point at text, 0 when it is not UTF-8. */
int pl_utf8_read(const char *text, uint32_t *point);

/* As pl_config_set_value reads it; caller frees. */
char *pl_value_text(int key, const struct pl_value *value);

void pl_axes_free(struct pl_axis *axes, int n);
/* The configuration without axes and sweep. */
struct pl_config *pl_config_copy_plain(const struct pl_config *from);

/* Integers of "A..B" (step 1), "A..B +STEP" or "A..B xFACTOR", B included when met;
 * *values is the caller's to free. Errors: PL_ECONFIG. */
bool pl_range_is(const char *text);
int pl_range_parse(const char *text, const char *where, const char *key,
                   int64_t **values, int *n);
/* Append a value, taken over, to the swept key. */
void pl_swept_append(struct pl_axis *axis, int key, struct pl_value *value);
/* PL_ECONFIG when a value is there twice. */
int pl_swept_check(const struct pl_axis *axis, const char *where);

#endif
