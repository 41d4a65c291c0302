/* The keys problem.*: what is trained. */
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

static int spectrum_kind(const char *name)
{
    int k = 0;
    while (strcmp(pl_spectrum_names[k], name)) k++;
    return k;
}

int pl_setup_problem(const struct pl_config *config, const struct pl_model *model,
                     const struct pl_device *device, int P, struct pl_problem **out)
{
    double *values;
    struct pl_problem_spec spec = {
        .type = pl_setup_problem_type(config),
        .model = model,
        .max_B = (int)pl_config_int(config, "train.batch"),
        .T = (int)pl_config_int(config, "train.seq"),
        .seed = (uint64_t)pl_config_int(config, "problem.seed"),
        .size = (int)pl_config_int(config, "problem.size"),
        .spectrum = {.kind = (enum pl_spectrum_kind)spectrum_kind(
                         pl_config_text(config, "problem.spectrum")),
                     .largest = pl_config_real(config, "problem.largest"),
                     .kappa = pl_config_real(config, "problem.kappa"),
                     .power = pl_config_real(config, "problem.power")},
        .rotation = pl_config_real(config, "problem.rotation"),
        .noise = pl_config_real(config, "problem.noise"),
    };
    *out = NULL;
    int rc = read_values(config, &spec.spectrum, &values);
    if (!rc) rc = spec.type->open(&spec, device, P, out);
    free(values);
    return rc;
}
