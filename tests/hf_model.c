/* Weights in Hugging Face's form, for tests/hf.sh:
 *   hf_model save DIR SEED TYPE KEY=VALUE ...   random weights of a model into DIR;
 *                                               sharded:TYPE: files of a kilobyte
 *   hf_model logits DIR DEVICE STAGES TOKENS    of DIR, at every position
 * The logits are those of token v minus those of token 0, from differences of losses,
 * so that they pass the whole of the net. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/cmd.h"
#include "cli/setup_problem.h"
#include "cli/setup_weights.h"
#include "sim/model_hf.h"

static void must(int rc)
{
    if (!rc) return;
    fprintf(stderr, "hf_model: %s\n", pl_error_text());
    exit(pl_exit_status(rc));
}

struct built {
    struct pl_config *config;
    struct pl_model model;
    const struct pl_device *device;
    struct pl_problem *problem;
    float **blocks;
};

static void *on_device(const struct pl_device *dev, size_t bytes)
{
    void *x;
    must(dev->alloc(bytes ? bytes : 4, &x));
    return x;
}

static void build(struct built *b, char **settings, int n, const char *device, int P)
{
    pl_cmd_register_families();
    b->config = pl_config_new();
    for (int i = 0; i < n; i++) must(pl_config_set(b->config, settings[i], "test"));
    must(pl_config_resolve(b->config));
    must(pl_model_read(b->config, &b->model));
    must(pl_device_get(device, &b->device));
    must(pl_setup_problem(b->config, &b->model, b->device, P, 1, false, &b->problem));
    b->blocks = PL_NEW(P, float *);
    for (int s = 0; s < P; s++)
        b->blocks[s] =
            on_device(b->device, sizeof(float) * b->problem->stage_floats[s]);
}

static void drop(struct built *b)
{
    for (int s = 0; s < b->problem->n_stages; s++) b->device->release(b->blocks[s]);
    free(b->blocks);
    pl_problem_free(b->problem);
    b->device->close();
    pl_config_free(b->config);
}

/* Matrices of logits of ordinary size; gains near 1, biases near 0. */
static void scatter(struct built *b, uint64_t seed)
{
    for (int i = 0; i < b->problem->n_params; i++) {
        const struct pl_param *p = &b->problem->params[i];
        const size_t n = pl_param_size(p), end = strlen(p->name);
        bool gain = p->rows == 1 && end > 7 && !strcmp(p->name + end - 7, ".weight");
        float *x = PL_NEW(n, float);
        for (size_t k = 0; k < n; k++)
            x[k] = (float)(gain + (gain ? 0.2 : 0.4) * pl_rng_normal(seed, PL_RNG_TEST,
                                                                     (uint64_t)i,
                                                                     (uint32_t)k));
        must(b->device->upload(b->blocks[p->stage] + p->offset, x, sizeof *x * n));
        free(x);
    }
}

static int save(char **argv, int argc)
{
    struct built b;
    static const struct pl_tensor_note notes[] = {{"format", "pt"}, {0}};
    const bool sharded = !strncmp(argv[2], "sharded:", 8);
    const struct pl_safetensors_form form = {
        pl_tensor_type_find(argv[2] + (sharded ? 8 : 0)), sharded ? 1024 : 0, notes};
    build(&b, argv + 3, argc - 3, "ref", 1);
    scatter(&b, strtoull(argv[1], NULL, 10));
    must(pl_setup_weights_save(argv[0], &b.model, 64, &form, b.problem,
                               (const float *const *)b.blocks));
    drop(&b);
    return 0;
}

static double loss(struct built *b, const int32_t *tokens, const int32_t *targets,
                   int T)
{
    const size_t bytes = sizeof *tokens * (size_t)T;
    int32_t *x = on_device(b->device, bytes), *y = on_device(b->device, bytes);
    struct pl_batch batch = {.B = 1, .T = T, .tokens = x, .targets = y};
    double value = NAN;
    must(b->device->upload(x, tokens, bytes));
    must(b->device->upload(y, targets, bytes));
    must(b->problem->type->loss(b->problem, &batch, (const float *const *)b->blocks,
                                &value));
    b->device->release(x);
    b->device->release(y);
    return value;
}

static int logits(char **argv)
{
    struct built b;
    struct pl_weights *weights;
    int32_t tokens[32], targets[32] = {0};
    int T = 0;
    char *settings[] = {pl_printf("model.preset=%s/config.json", argv[0]),
                        pl_printf("model.weights=%s", argv[0]),
                        pl_strdup("train.seq=32")};
    for (char *at = argv[3], *end; *at && T < 32; at = *end ? end + 1 : end)
        tokens[T++] = (int32_t)strtol(at, &end, 10);
    build(&b, settings, 3, argv[1], atoi(argv[2]));
    must(pl_setup_weights(b.config, &b.model, b.problem, &weights));
    must(pl_weights_load(weights, b.problem, b.blocks));
    pl_weights_close(weights);
    for (int t = 1; t <= T; t++) {
        targets[t - 1] = 0;
        double zero = loss(&b, tokens, targets, t);
        for (int v = 0; v < b.model.vocab; v++) {
            targets[t - 1] = v;
            printf("%s%.9g", v ? " " : "", t * (zero - loss(&b, tokens, targets, t)));
        }
        printf("\n");
        targets[t - 1] = 0;
    }
    free(settings[0]);
    free(settings[1]);
    free(settings[2]);
    drop(&b);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 5 && !strcmp(argv[1], "save")) return save(argv + 2, argc - 2);
    if (argc == 6 && !strcmp(argv[1], "logits")) return logits(argv + 2);
    fprintf(stderr, "hf_model: save DIR SEED TYPE KEY=VALUE..., or logits DIR DEVICE "
                    "STAGES TOKENS\n");
    return 2;
}
