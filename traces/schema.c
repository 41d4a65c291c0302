#include "traces/schema.h"

#include <string.h>

const char *const pl_kind_names[] = {"F", "B", "W", "BW", "U", NULL};

#define END                             \
    {                                   \
        NULL, PL_COLUMN_I64, NULL, NULL \
    }

static const struct pl_column timeline[] = {
    {"kind", PL_COLUMN_KIND, "1", "kind of op"},
    {"device", PL_COLUMN_I64, "1", "device, from 0"},
    {"chunk", PL_COLUMN_I64, "1", "model chunk (virtual stage), from 0"},
    {"micro", PL_COLUMN_I64, "1", "microbatch over the whole run; of U the update"},
    {"start", PL_COLUMN_I64, "ps", "simulated start"},
    {"end", PL_COLUMN_I64, "ps", "simulated end"},
    END};

static const struct pl_column messages[] = {
    {"kind", PL_COLUMN_KIND, "1", "F: activation, B: gradient of the activation"},
    {"src", PL_COLUMN_I64, "1", "sending device"},
    {"dst", PL_COLUMN_I64, "1", "receiving device"},
    {"micro", PL_COLUMN_I64, "1", "microbatch over the whole run"},
    {"sent", PL_COLUMN_I64, "ps", "simulated departure"},
    {"arrived", PL_COLUMN_I64, "ps", "simulated arrival"},
    END};

static const struct pl_column costs[] = {
    {"forward", PL_COLUMN_I64, "ps", "forward of one microbatch on this stage"},
    {"backward", PL_COLUMN_I64, "ps", "input gradient of one microbatch"},
    {"weight", PL_COLUMN_I64, "ps", "weight gradient of one microbatch"},
    {"update", PL_COLUMN_I64, "ps", "optimizer step, per update"},
    {"link", PL_COLUMN_I64, "ps", "transfer to the next stage; 0 on the last stage"},
    END};

static const struct pl_column stages[] = {
    {"busy_s", PL_COLUMN_F64, "s", "work of the device over the whole run"},
    {"tau_min", PL_COLUMN_F64, "1", "least delay in the steady window, in updates"},
    {"tau_mean", PL_COLUMN_F64, "1", "mean delay in the steady window, in updates"},
    {"tau_max", PL_COLUMN_F64, "1", "largest delay in the steady window, in updates"},
    {"tau_startup", PL_COLUMN_F64, "1",
     "mean delay before the steady window, in updates"},
    {"weight_versions", PL_COLUMN_I64, "1",
     "most weight versions alive after an update"},
    {"peak_activations", PL_COLUMN_I64, "1",
     "most microbatches whose activations are held"},
    END};

static const struct pl_column versions[] = {
    {"stage", PL_COLUMN_I64, "1", "model chunk (virtual stage), from 0"},
    {"micro", PL_COLUMN_I64, "1", "microbatch over the whole run"},
    {"update", PL_COLUMN_I64, "1", "update that consumes the gradient"},
    {"forward", PL_COLUMN_I64, "1", "weight version read in forward"},
    {"backward", PL_COLUMN_I64, "1", "weight version read in backward"},
    END};

static const struct pl_column rows[] = {
    {"update", PL_COLUMN_I64, "1", "update n, turning version n into n+1"},
    {"time_s", PL_COLUMN_F64, "s", "simulated end of the update"},
    {"loss", PL_COLUMN_F64, "nat", "training loss of the gradient consumed"},
    {"rate", PL_COLUMN_F64, "1", "schedule factor of the learning rate"},
    {"grad_norm", PL_COLUMN_F64, "1", "gradient norm over all stages, before clipping"},
    {"update_norm", PL_COLUMN_F64, "1",
     "norm of the optimizer's update over all stages"},
    {"stale_norm", PL_COLUMN_F64, "1", "distance of version n to the versions read"},
    END};

static const struct pl_column evals[] = {
    {"update", PL_COLUMN_I64, "1", "weight version validated: after this many updates"},
    {"time_s", PL_COLUMN_F64, "s", "simulated end of the update before"},
    {"loss", PL_COLUMN_F64, "nat", "validation loss at the stored iterate x"},
    {"loss_y", PL_COLUMN_F64, "nat",
     "validation loss at y = x + c times the last update"},
    END};

static const struct pl_column claims[] = {
    {"id", PL_COLUMN_TEXT, "", "name of the claim"},
    {"statement", PL_COLUMN_TEXT, "", "what is claimed"},
    {"source", PL_COLUMN_TEXT, "", "where it is claimed"},
    {"published", PL_COLUMN_TEXT, "", "the published number"},
    {"measured", PL_COLUMN_TEXT, "", "our number"},
    {"word", PL_COLUMN_TEXT, "", "verdict"},
    END};

static const struct pl_column result_table[] = {
    {"arm", PL_COLUMN_TEXT, "", "arm, a group of /arms"},
    {"optimizer", PL_COLUMN_TEXT, "", "optimizer and its corrector"},
    {"pipeline", PL_COLUMN_TEXT, "", "schedule"},
    {"seeds", PL_COLUMN_I64, "1", "seeds of the arm that were run"},
    {"diverged", PL_COLUMN_I64, "1", "seeds of the arm that diverged"},
    {"step_s", PL_COLUMN_F64, "s", "simulated time per update, steady"},
    {"bubble", PL_COLUMN_F64, "1", "idle share over the whole run, (T - ideal)/T"},
    {"bubble_steady", PL_COLUMN_F64, "1", "idle share per update, steady"},
    {"tau_max", PL_COLUMN_F64, "1", "largest delay of any stage, in updates"},
    {"weight_versions", PL_COLUMN_I64, "1", "most weight versions on any stage"},
    {"loss_mean", PL_COLUMN_F64, "nat", "final validation loss, mean over seeds"},
    {"loss_sd", PL_COLUMN_F64, "nat", "its sample standard deviation over seeds"},
    {"gap", PL_COLUMN_F64, "nat", "loss_mean minus that of the synchronous arm"},
    {"gap_t95", PL_COLUMN_F64, "nat",
     "half width of the 95 % interval of the paired gap"},
    {"recovered", PL_COLUMN_F64, "1", "share of the plain asynchronous gap closed"},
    {"time_s", PL_COLUMN_F64, "s", "simulated time of the whole run"},
    {"time_to_sync_s", PL_COLUMN_F64, "s",
     "simulated time to the synchronous arm's final loss; NaN: not reached"},
    {"speedup", PL_COLUMN_F64, "1", "synchronous arm's time over time_to_sync_s"},
    {"loss_at_equal_time", PL_COLUMN_F64, "nat",
     "validation loss at the earliest end of all arms"},
    END};

const struct pl_table_type pl_table_types[] = {
    {"/arms/<arm>/timeline", timeline, NULL, NULL},
    {"/arms/<arm>/messages", messages, NULL, NULL},
    {"/arms/<arm>/costs", costs, NULL, NULL},
    {"/arms/<arm>/stages", stages, "tau_mean", NULL},
    {"/arms/<arm>/versions", versions, NULL, NULL},
    {"/arms/<arm>/seeds/<seed>/rows", rows, "loss", "update"},
    {"/arms/<arm>/seeds/<seed>/evals", evals, "loss", "update"},
    {"/claims", claims, NULL, NULL},
    {"/table", result_table, NULL, NULL},
    {NULL, NULL, NULL, NULL}};

bool pl_schema_match(const char *pattern, const char *path)
{
    while (*pattern) {
        if (*pattern == '<') {
            size_t n = strcspn(path, "/");
            if (!n) return false;
            path += n;
            pattern = strchr(pattern, '>') + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*path;
}

const struct pl_table_type *pl_schema_table(const char *path)
{
    for (const struct pl_table_type *t = pl_table_types; t->pattern; t++)
        if (pl_schema_match(t->pattern, path)) return t;
    return NULL;
}

const struct pl_column *pl_schema_column(const struct pl_table_type *type,
                                         const char *name)
{
    for (const struct pl_column *c = type->columns; c->name; c++)
        if (!strcmp(c->name, name)) return c;
    return NULL;
}
