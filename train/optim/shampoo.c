/* Shampoo as in Meta's DistributedShampoo. A tensor is cut into blocks of at most
 * max_precond_dim x max_precond_dim (first made a vector when merge_dims is on and it
 * has no more elements than that). Per block, with G the gradient:
 *   L = b2 L + (1-b2) G G^T, R = b2 R + (1-b2) G^T G  (b2 = 1: plain sums);
 *   at update t = start, and after it whenever t mod refresh = 0, the roots
 *   (L/bc2 + eps I)^(-1/4) and of R (a vector: its one factor, -1/2) by eigenvectors;
 *   if the least eigenvalue is still below eps, all are shifted until it is eps;
 *   H = (b3 m + (1-b3) G) / (1 - b3 b1^(t-1)),  m = b1 m + (1-b1) G  (b3 = b1: m/bc1);
 *   P = L^(-1/4) H R^(-1/4), grafted times |D| / (|P| + 1e-16) with
 *   D = H / (sqrt(v/bc) + graft_eps),  v = bg v + (1-bg) G^2; before start P = D,
 *   without grafting H itself;
 *   u = eta P + eta decay w.
 * start 0: = refresh; b3 negative: = b1.
 * Source: Gupta, Koren and Singer, ICML 2018; Shi et al., arXiv 2309.06497;
 * facebookresearch/optimizers, distributed_shampoo. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "gpu/host_lapack.h"
#include "train/optim/precondition.h"

struct block {
    int rows, cols, ld; /* ld: floats between its rows in the tensor */
    size_t offset;      /* in the tensor */
    float *factor[2], *root[2];
};

struct shape {
    int rows, cols, side;
    bool has[2]; /* factors: a vector has only that of its length */
};

static struct shape shape_of(const struct pl_optim *o, const struct pl_param *p)
{
    struct shape s = {.rows = p->rows, .cols = p->cols, .side = o->max_precond_dim};
    if (o->merge_dims && pl_param_size(p) <= (size_t)s.side) {
        s.cols *= s.rows;
        s.rows = 1;
    }
    s.has[0] = s.rows > 1;
    s.has[1] = s.cols > 1 || s.rows == 1;
    return s;
}

/* Of the blocks that has one: the first is the largest. */
static int eigen_side(const struct pl_optim *o, const struct pl_param *p)
{
    const struct shape s = shape_of(o, p);
    const int rows = s.has[0] ? s.rows : 0, cols = s.has[1] ? s.cols : 0;
    const int longer = rows > cols ? rows : cols;
    return longer < s.side ? longer : s.side;
}

static int64_t start_of(const struct pl_optim *o)
{
    return o->start ? o->start : o->refresh;
}

static int parts(int length, int side)
{
    return (length + side - 1) / side;
}

/* Blocks in row order; memory of factors and roots from `state` on. */
static struct block block_at(const struct shape *s, int i, int j, float *state)
{
    const int r = i * s->side, c = j * s->side;
    struct block b = {.rows = s->rows - r < s->side ? s->rows - r : s->side,
                      .cols = s->cols - c < s->side ? s->cols - c : s->side,
                      .ld = s->cols,
                      .offset = (size_t)r * (size_t)s->cols + (size_t)c};
    for (int side = 0; side < 2; side++) {
        size_t n = (size_t)(side ? b.cols : b.rows);
        if (!s->has[side] || !state) continue;
        b.factor[side] = state;
        b.root[side] = state + n * n;
        state += 2 * n * n;
    }
    return b;
}

static size_t block_floats(const struct shape *s, const struct block *b)
{
    return 2 * (s->has[0] * (size_t)b->rows * (size_t)b->rows +
                s->has[1] * (size_t)b->cols * (size_t)b->cols);
}

static size_t state_floats(const struct pl_optim *o, const struct pl_param *p)
{
    const struct shape s = shape_of(o, p);
    size_t floats = (o->graft ? 2 : 1) * pl_param_size(p);
    for (int i = 0; i < parts(s.rows, s.side); i++)
        for (int j = 0; j < parts(s.cols, s.side); j++) {
            const struct block b = block_at(&s, i, j, NULL);
            floats += block_floats(&s, &b);
        }
    return floats;
}

/* H for the whole tensor, then the larger of a root's matrix and two copies of a block.
 */
static size_t scratch_floats(const struct pl_optim *o, const struct pl_param *p)
{
    const struct shape s = shape_of(o, p);
    const struct block b = block_at(&s, 0, 0, NULL); /* the largest */
    size_t most = 2 * (size_t)b.rows * (size_t)b.cols;
    for (int side = 0; side < 2; side++) {
        size_t n = (size_t)(side ? b.cols : b.rows);
        if (s.has[side] && n * n > most) most = n * n;
    }
    return pl_param_size(p) + most;
}

/* Host matrix A (n,n) -> S with S^T S = (A + eps I)^power. */
static int half_root(int n, double eps, double power, float *A, float *values)
{
    for (int i = 0; i < n; i++) {
        float *x = A + (size_t)i * (size_t)n + i;
        *x = (float)(*x + eps);
    }
    int rc = pl_eigen(n, A, values);
    if (rc) return rc;
    const double least = values[n - 1], shift = least < eps ? eps - least : 0;
    for (int i = 0; i < n; i++) {
        float *x = A + (size_t)i * (size_t)n;
        const double factor = pow(values[i] + shift, power / 2);
        for (int k = 0; k < n; k++) x[k] = (float)(x[k] * factor);
    }
    return 0;
}

static int take_root(const struct pl_device *dev, int n, double bc2, double eps,
                     double power, const float *factor, float *scratch, float *root)
{
    const size_t size = (size_t)n * (size_t)n;
    float *host, *values = PL_NEW(n, float);
    int rc = dev->axpby(size, (float)(1 / bc2), factor, 0, scratch);
    if (!rc) rc = pl_host_take(dev, size, scratch, &host);
    if (!rc) {
        rc = half_root(n, eps, power, host, values);
        int written = pl_host_give(dev, size, scratch, host, !rc);
        rc = rc ? rc : written;
    }
    free(values);
    return rc ? rc : dev->syrk(true, n, n, 1, scratch, n, 0, root, n);
}

/* y (rows,cols) = a x + b y of matrices within wider ones. */
static int part_axpby(const struct pl_device *dev, int rows, int cols, double a,
                      const float *x, int ldx, double b, float *y, int ldy)
{
    if (ldx == cols && ldy == cols)
        return dev->axpby((size_t)rows * (size_t)cols, (float)a, x, (float)b, y);
    int rc = 0;
    for (int i = 0; i < rows && !rc; i++)
        rc = dev->axpby((size_t)cols, (float)a, x + (size_t)i * (size_t)ldx, (float)b,
                        y + (size_t)i * (size_t)ldy);
    return rc;
}

/* A block's factors take G; its roots follow when due. */
static int observe_block(const struct pl_optim *o, const struct pl_device *dev,
                         const struct shape *s, const struct block *b, const float *G,
                         float *scratch, int64_t t)
{
    const bool due = t == start_of(o) || (t > start_of(o) && t % o->refresh == 0);
    const bool sums = o->beta2 == 1;
    const double bc2 = o->bias_correction && !sums ? 1 - pow(o->beta2, (double)t) : 1;
    const double power = s->has[0] && s->has[1] ? -.25 : -.5;
    int rc = 0;
    for (int side = 0; side < 2 && !rc; side++) {
        const int n = side ? b->cols : b->rows;
        if (!s->has[side]) continue;
        rc = dev->syrk(side, n, side ? b->rows : b->cols,
                       (float)(sums ? 1 : 1 - o->beta2), G + b->offset, b->ld,
                       (float)o->beta2, b->factor[side], n);
        if (!rc && due)
            rc = take_root(dev, n, bc2, o->eps, power, b->factor[side], scratch,
                           b->root[side]);
    }
    return rc;
}

/* The same of all blocks, whose factors and roots begin at `factors`. */
static int observe(const struct pl_optim *o, const struct pl_device *dev,
                   const struct shape *s, const float *G, float *factors,
                   float *scratch, int64_t t)
{
    const int cols = parts(s->cols, s->side), count = parts(s->rows, s->side) * cols;
    int rc = 0;
    for (int k = 0; k < count && !rc; k++) {
        const struct block b = block_at(s, k / cols, k % cols, factors);
        factors += block_floats(s, &b);
        rc = observe_block(o, dev, s, &b, G, scratch, t);
    }
    return rc;
}

/* P of the block, compact in scratch. */
static int apply_roots(const struct pl_device *dev, const struct shape *s,
                       const struct block *b, const float *H, float *scratch, float **P)
{
    const int m = b->rows, n = b->cols;
    const float *X = H + b->offset;
    int rc = 0, ld = b->ld;
    *P = scratch;
    if (s->has[0])
        rc = dev->gemm(false, false, m, n, m, 1, b->root[0], m, X, ld, 0, *P, n);
    if (rc || !s->has[1]) return rc;
    if (s->has[0]) {
        X = *P;
        ld = n;
        *P += (size_t)m * (size_t)n;
    }
    return dev->gemm(false, false, m, n, n, 1, X, ld, b->root[1], n, 0, *P, n);
}

/* u = P of the block, as long as D there unless D is NULL. */
static int precondition_block(const struct pl_device *dev, const struct shape *s,
                              const struct block *b, const float *H, const float *D,
                              float *scratch, float *u)
{
    const int m = b->rows, n = b->cols;
    const size_t size = (size_t)m * (size_t)n;
    float *P;
    double own = 0, wanted = 0, factor = 1;
    int rc = apply_roots(dev, s, b, H, scratch, &P);
    if (!rc && D) {
        float *part = P == scratch ? scratch + size : scratch;
        rc = part_axpby(dev, m, n, 1, D + b->offset, b->ld, 0, part, n);
        if (!rc) rc = dev->dot(size, part, part, &wanted);
        if (!rc) rc = dev->dot(size, P, P, &own);
        factor = sqrt(wanted) / (sqrt(own) + 1e-16);
    }
    return rc ? rc : part_axpby(dev, m, n, factor, P, n, 0, u + b->offset, b->ld);
}

static int precondition(const struct pl_device *dev, const struct shape *s,
                        const float *H, const float *D, float *factors, float *scratch,
                        float *u)
{
    const int cols = parts(s->cols, s->side), count = parts(s->rows, s->side) * cols;
    int rc = 0;
    for (int k = 0; k < count && !rc; k++) {
        const struct block b = block_at(s, k / cols, k % cols, factors);
        factors += block_floats(s, &b);
        rc = precondition_block(dev, s, &b, H, D, scratch, u);
    }
    return rc;
}

/* m takes G, and H = the filtered gradient. */
static int filter(const struct pl_optim *o, const struct pl_device *dev, size_t n,
                  const float *G, float *m, int64_t t, float *H)
{
    const double b3 = o->beta3 < 0 ? o->beta1 : o->beta3;
    const double bc1 = o->bias_correction ? 1 - b3 * pow(o->beta1, (double)(t - 1)) : 1;
    int rc = dev->copy(H, m, sizeof(float) * n);
    if (!rc) rc = dev->axpby(n, (float)((1 - b3) / bc1), G, (float)(b3 / bc1), H);
    return rc ? rc : pl_optim_average(dev, n, o->beta1, G, m);
}

/* v takes G, which becomes D. */
static int graft(const struct pl_optim *o, const struct pl_device *dev,
                 const struct shape *s, const float *H, int64_t t, float *v, float *G)
{
    const size_t n = (size_t)s->rows * (size_t)s->cols;
    const double b = o->graft_beta2, bc = 1 - pow(b, (double)t);
    const struct pl_ratio_args ratio = {.a = 1, .s = 1 / sqrt(bc), .eps = o->graft_eps};
    int rc = dev->mul(n, (float)(1 - b), G, G, (float)b, v);
    return rc ? rc : dev->ratio(s->rows, s->cols, &ratio, H, v, G);
}

static int step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *m,
                float *scratch, int64_t t, double rate, float *u)
{
    const size_t n = pl_param_size(p);
    const struct shape s = shape_of(o, p);
    const double eta = rate * o->lr;
    float *v = m + n, *factors = o->graft ? v + n : v, *H = scratch,
          *rest = scratch + n;
    int rc = pl_optim_couple(o, dev, n, w, g);
    if (!rc) rc = filter(o, dev, n, g, m, t, H);
    if (!rc) rc = observe(o, dev, &s, g, factors, rest, t);
    if (!rc && o->graft) rc = graft(o, dev, &s, H, t, v, g);
    const float *D = o->graft ? g : NULL;
    if (!rc && t < start_of(o)) rc = dev->copy(u, D ? D : H, sizeof(float) * n);
    if (!rc && t >= start_of(o)) rc = precondition(dev, &s, H, D, factors, rest, u);
    return rc ? rc : pl_optim_decay(o, dev, n, eta, eta, w, u, scratch);
}

const struct pl_optim_type pl_optim_shampoo = {
    .name = "shampoo",
    .summary = "Kronecker factors to the power -1/4, by blocks, with grafting",
    .source = "facebookresearch/optimizers, arXiv 2309.06497",
    .first_moment = PL_BETA1,
    .keys = PL_DECAY_KEYS
    "beta1 beta2 beta3 eps bias_correction "
    "refresh start max_precond_dim merge_dims graft graft_beta2 graft_eps",
    .defaults = {.lr = .01,
                 .beta1 = .9,
                 .beta2 = 1,
                 .beta3 = -1,
                 .eps = 1e-12,
                 .bias_correction = true,
                 .refresh = 1,
                 .max_precond_dim = 1024,
                 .merge_dims = true,
                 .graft_beta2 = .999,
                 .graft_eps = 1e-10},
    .state_floats = state_floats,
    .scratch_floats = scratch_floats,
    .step = step,
    .eigen_side = eigen_side,
};
