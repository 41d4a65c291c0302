/* The keys problem.*: what is trained. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/setup_problem.h"

const struct pl_problem_type *pl_setup_problem_type(const struct pl_config *config)
{
    return pl_problem_find(pl_config_text(config, "problem.name"));
}

/* problem.values into *values (the caller's to free). */
static int read_values(const struct pl_config *config, struct pl_spectrum *spectrum,
                       double **values)
{
    const char *text = pl_config_text(config, "problem.values");
    char *copy = pl_strdup(text), *save = NULL;
    int rc = 0;
    *values = PL_NEW(strlen(text) / 2 + 1, double);
    for (char *w = strtok_r(copy, ", ", &save); w && !rc;
         w = strtok_r(NULL, ", ", &save)) {
        char *end;
        (*values)[spectrum->n_values++] = strtod(w, &end);
        if (end == w || *end)
            rc = pl_fail(PL_ECONFIG,
                         "%s: problem.values: '%s', expected numbers separated by "
                         "commas",
                         pl_config_where(config, "problem.values"), w);
    }
    free(copy);
    spectrum->values = *values;
    return rc;
}

static struct pl_problem_spec read_spec(const struct pl_config *c, int max_B)
{
    return (struct pl_problem_spec){
        .type = pl_setup_problem_type(c),
        .max_B = max_B,
        .T = (int)pl_config_int(c, "train.seq"),
        .seed = (uint64_t)pl_config_int(c, "problem.seed"),
        .size = (int)pl_config_int(c, "problem.size"),
        .cols = (int)pl_config_int(c, "problem.cols"),
        .spectrum = {.kind =
                         (enum pl_spectrum_kind)pl_config_choice(c, "problem.spectrum"),
                     .largest = pl_config_real(c, "problem.largest"),
                     .kappa = pl_config_real(c, "problem.kappa"),
                     .power = pl_config_real(c, "problem.power")},
        .rotation = pl_config_real(c, "problem.rotation"),
        .noise = pl_config_real(c, "problem.noise"),
        .samples = (int)pl_config_int(c, "problem.samples"),
        .full = pl_config_bool(c, "problem.full"),
        .l2 = pl_config_real(c, "problem.l2"),
        .rank = (int)pl_config_int(c, "problem.rank"),
        .start = pl_config_real(c, "problem.start"),
        .layers = (int)pl_config_int(c, "problem.layers"),
        .width = (int)pl_config_int(c, "problem.width"),
        .outputs = (int)pl_config_int(c, "problem.outputs"),
        .activation = pl_config_choice(c, "problem.activation"),
        .classes = !strcmp(pl_config_text(c, "problem.task"), "classification"),
    };
}

int pl_setup_problem(const struct pl_config *config, const struct pl_model *model,
                     const struct pl_device *device, int P, int max_B, bool dry,
                     struct pl_problem **out)
{
    double *values;
    struct pl_problem_spec spec = read_spec(config, max_B);
    spec.model = model;
    spec.dry = dry;
    *out = NULL;
    int rc = read_values(config, &spec.spectrum, &values);
    if (!rc) rc = spec.type->open(&spec, device, P, out);
    free(values);
    return rc;
}

int pl_setup_problem_known(const struct pl_config *config, int P,
                           struct pl_problem_known *known)
{
    struct pl_problem *p;
    *known = (struct pl_problem_known){NAN, NAN, NAN};
    if (pl_setup_problem_type(config)->on_data) return 0;
    int rc = pl_setup_problem(config, NULL, &pl_device_ref, P, 1, true, &p);
    if (rc) return rc;
    *known = pl_problem_known(p);
    pl_problem_free(p);
    return 0;
}
