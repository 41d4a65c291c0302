/* Of a job: its name, and what must be equal to go on with its checkpoint. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/experiment.h"

/* Keys that change no row: where and how often things are written, how many at a time,
 * and names of files, whose content counts. */
static const char *const neutral_keys[] = {"train.workers",
                                           "train.threads",
                                           "train.checkpoint_s",
                                           "train.checkpoint_updates",
                                           "schedule.updates",
                                           "baseline",
                                           "arms.only",
                                           "arms.skip",
                                           "data.text",
                                           "data.tokens",
                                           "data.valid",
                                           "data.bpe",
                                           "eval.texts",
                                           "eval.questions",
                                           "delay.trace",
                                           "model.weights",
                                           NULL};

static uint64_t hash_text(const char *text)
{
    size_t n = strlen(text);
    return (uint64_t)pl_crc32(0, text, n) << 32 | pl_crc32(0x9e3779b9u, text, n);
}

char *pl_job_name(const struct pl_experiment *e, int job)
{
    return pl_printf("%s, seed %llu", pl_job_arm(e, job)->name,
                     (unsigned long long)pl_job_seed(e, job));
}

/* The value of a key that rows depend on; caller frees. */
static char *value_of(const struct pl_arm *arm, const char *key)
{
    const struct pl_computed *by = &arm->computed;
    if (!strcmp(key, "train.device") && *by->device) return pl_strdup(by->device);
    if (!strcmp(key, "train.precision") && *by->precision)
        return pl_strdup(by->precision);
    return pl_config_value(arm->config, key);
}

uint64_t pl_job_fingerprint(const struct pl_experiment *e, int job)
{
    const struct pl_arm *arm = pl_job_arm(e, job);
    const struct pl_config *c = arm->config;
    uint64_t hash = 0;
    for (const struct pl_key *key = pl_keys; key->name; key++) {
        bool neutral = false;
        for (int i = 0; neutral_keys[i]; i++)
            neutral |= !strcmp(neutral_keys[i], key->name);
        if (neutral) continue;
        char *value = value_of(arm, key->name);
        hash = (hash ^ hash_text(key->name)) * 0x100000001b3u;
        hash = (hash ^ hash_text(value)) * 0x100000001b3u;
        free(value);
    }
    hash = (hash ^ pl_job_arm(e, job)->data) * 0x100000001b3u;
    const struct pl_versions *v = &pl_job_arm(e, job)->versions;
    size_t cells = (size_t)v->stages * (size_t)v->n_micro * sizeof *v->forward;
    if (*pl_config_text(c, "delay.trace")) /* a file, which may change */
        hash ^= (uint64_t)pl_crc32(0, v->forward, cells) << 32 |
                pl_crc32(0, v->backward, cells);
    hash = (hash ^ pl_job_arm(e, job)->weights) * 0x100000001b3u;
    return hash ^ pl_job_seed(e, job) * 0x9e3779b97f4a7c15u;
}
