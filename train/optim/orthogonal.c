/* Factors that depend on the shape of an orthogonalised matrix, and the choice between
 * one matrix for queries, keys and values and one each. Sources: KellerJordan/Muon;
 * Moonlight, arXiv 2502.16982; DeepSpeed issue 8580 (the two choices are different
 * methods). */
#include "train/optim/orthogonal.h"

#include <math.h>
#include <string.h>

double pl_shape_scale(enum pl_shape_scale scale, const struct pl_param *p)
{
    const double m = p->rows, n = p->cols;
    switch (scale) {
    case PL_SCALE_MOONLIGHT:
        return 0.2 * sqrt(fmax(m, n));
    case PL_SCALE_RATIO:
        return sqrt(m / n);
    case PL_SCALE_NONE:
        return 1;
    case PL_SCALE_JORDAN:
        break;
    }
    return sqrt(fmax(1, m / n));
}

static bool ends(const struct pl_param *p, const char *end)
{
    size_t n = strlen(p->name), k = strlen(end);
    return n >= k && !strcmp(p->name + n - k, end);
}

/* q followed by k and v of the same width. */
static bool follow(const struct pl_param *q)
{
    return ends(q + 1, ".k_proj.weight") && ends(q + 2, ".v_proj.weight") &&
           q[1].cols == q->cols && q[2].cols == q->cols &&
           q[1].offset == q->offset + pl_param_size(q) &&
           q[2].offset == q[1].offset + pl_param_size(q + 1);
}

struct pl_param pl_orthogonal_whole(const struct pl_optim *o, const struct pl_param *p)
{
    struct pl_param whole = *p;
    if (!o->fused_qkv) return whole;
    if (ends(p, ".q_proj.weight") && follow(p)) whole.rows += p[1].rows + p[2].rows;
    if (ends(p, ".k_proj.weight") && ends(p - 1, ".q_proj.weight") && follow(p - 1))
        whole.rows = 0;
    if (ends(p, ".v_proj.weight") && ends(p - 2, ".q_proj.weight") && follow(p - 2))
        whole.rows = 0;
    return whole;
}
