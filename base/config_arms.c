/* Arms: the product of the axes, last axis fastest. Overrides were parsed when the file
 * was read; where two axes set the same key, the later axis wins. */
#include "base/config_types.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int pl_config_n_axes(const struct pl_config *config)
{
    return config->n_axes;
}

static const struct pl_axis *get_axis(const struct pl_config *config, int axis)
{
    assert(axis >= 0 && axis < config->n_axes);
    return &config->axes[axis];
}

const char *pl_config_axis(const struct pl_config *config, int axis)
{
    return get_axis(config, axis)->name;
}

int pl_config_n_labels(const struct pl_config *config, int axis)
{
    return get_axis(config, axis)->n;
}

const char *pl_config_label(const struct pl_config *config, int axis, int label)
{
    assert(label >= 0 && label < get_axis(config, axis)->n);
    return config->axes[axis].labels[label].name;
}

int pl_config_n_arms(const struct pl_config *config)
{
    int n = 1;
    for (int a = 0; a < config->n_axes; a++) n *= config->axes[a].n;
    return n;
}

int pl_config_arm_label(const struct pl_config *config, int arm, int axis)
{
    assert(arm >= 0 && arm < pl_config_n_arms(config));
    int label = arm;
    for (int a = config->n_axes - 1; a > axis; a--) label /= config->axes[a].n;
    return label % get_axis(config, axis)->n;
}

struct pl_config *pl_config_copy_plain(const struct pl_config *from)
{
    struct pl_config *to = PL_NEW(1, struct pl_config);
    int n = 0;
    while (pl_keys[n].name) n++;
    *to = *from;
    to->axes = NULL;
    to->n_axes = 0;
    to->swept = NULL;
    to->n_swept = 0;
    to->title = pl_strdup(from->title);
    to->seeds = PL_NEW(from->n_seeds, uint64_t);
    memcpy(to->seeds, from->seeds, (size_t)from->n_seeds * sizeof *to->seeds);
    to->values = PL_NEW(n, struct pl_value);
    for (int k = 0; k < n; k++) pl_value_copy(&to->values[k], &from->values[k]);
    return to;
}

int pl_config_arm(const struct pl_config *config, int arm, struct pl_config **out)
{
    struct pl_config *copy = pl_config_copy_plain(config);
    for (int a = 0; a < config->n_axes; a++) {
        int number = pl_config_arm_label(config, arm, a);
        const struct pl_label *label = &config->axes[a].labels[number];
        for (int o = 0; o < label->n; o++) {
            struct pl_value *value = &copy->values[label->overrides[o].key];
            if (value->pinned) continue;
            pl_value_clear(value);
            pl_value_copy(value, &label->overrides[o].value);
        }
    }
    int rc = pl_config_resolve(copy);
    if (rc)
        pl_config_free(copy);
    else
        *out = copy;
    return rc;
}
