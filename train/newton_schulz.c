/* Newton-Schulz approximation of the polar factor: after X / (||X|| + eps), X <- a X +
 * (b A + c A^2) X with A = X X^T on the short side. Singular values go through the
 * composed polynomial; few of the sets converge to 1: Jordan's quintic ends in about
 * [0.68, 1.13]. */
#include "train/newton_schulz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/svd.h"

static const double jordan[][3] = {{3.4445, -4.7750, 2.0315}};
static const double you[][3] = {{4.0848, -6.8946, 2.9270},
                                {3.9505, -6.3029, 2.6377},
                                {3.7418, -5.5913, 2.3037},
                                {2.8769, -3.1427, 1.2046},
                                {2.8366, -3.0525, 1.2012}};
/* Its safety factor s = 1.01 is in the coefficients: a/s, b/s^3, c/s^5. */
static const double polar_express[][3] = {
    {8.2051, -22.9019, 16.4607}, {4.0664, -2.8612, .5184}, {3.9096, -2.8234, .5250},
    {3.2856, -2.4153, .4853},    {2.2779, -1.6198, .3985}, {1.8726, -1.2307, .3585},
    {1.8564, -1.2132, .3568},    {1.875, -1.25, .375}};
static const double polar_express_2[][3] = {
    {8.156554524902461, -22.48329292557795, 15.878769915207462},
    {4.042929935166739, -2.808917465908714, .5000178451051316},
    {3.8916678022926607, -2.772484153217685, .5060648178503393},
    {3.285753657755655, -2.3681294933425376, .46449024233003106},
    {2.3465413258596377, -1.7097828382687081, .42323551169305323}};
static const double cans[][3] = {{8.4703, -25.1081, 18.6293},
                                 {4.1828, -3.1087, .5806},
                                 {3.9619, -2.9541, .5630},
                                 {3.2866, -2.4647, .5074},
                                 {2.2737, -1.6447, .4162}};
static const double quintic[][3] = {{2, -1.5, .5}};
static const double pade[][3] = {{1.875, -1.25, .375}};
static const double modula[][3] = {{3, -3.2, 1.2}};
static const double deepseek[][3] = {
    {3.4445, -4.7750, 2.0315}, {3.4445, -4.7750, 2.0315}, {3.4445, -4.7750, 2.0315},
    {3.4445, -4.7750, 2.0315}, {3.4445, -4.7750, 2.0315}, {3.4445, -4.7750, 2.0315},
    {3.4445, -4.7750, 2.0315}, {3.4445, -4.7750, 2.0315}, {2, -1.5, .5}};
static const double cubic[][3] = {{3.3656576, -3.3420992, 0},
                                  {2.5744352, -1.4957376, 0},
                                  {2.5368962, -1.4312570, 0},
                                  {2.4418906, -1.2764040, 0},
                                  {2.2230472, -.9630650, 0}};

#define ROWS(x) sizeof(x) / sizeof *(x), x
const struct pl_ns_set pl_ns_sets[] = {
    {"jordan", ROWS(jordan), 5, 1, 1e-7, "KellerJordan/Muon"},
    {"you", ROWS(you), 5, 1, 1e-7, "J. You, leloykun 2025"},
    {"polar-express", ROWS(polar_express), 5, 1.01, 1e-7, "arXiv 2505.16932"},
    {"polar-express-2", ROWS(polar_express_2), 5, 1.02, 1e-6, "modded-nanogpt"},
    {"cans", ROWS(cans), 5, 1, 1e-7, "arXiv 2506.10935"},
    {"quintic", ROWS(quintic), 12, 1, 1e-7, "modded-nanogpt, track 3"},
    {"pade", ROWS(pade), 5, 1, 1e-7, "Higham 2008, ch. 8"},
    {"modula", ROWS(modula), 5, 1, 1e-7, "modula-systems"},
    {"deepseek", ROWS(deepseek), 10, 1, 1e-7, "DeepSeek-V4 recipe"},
    {"cubic", ROWS(cubic), 5, 1, 1e-7, "optimised cubic"},
    {"svd", 0, NULL, 0, 1, 0, "exact, one-sided Jacobi in double"},
    {0},
};

const char *const pl_ns_names[] = {
    "auto",  "jordan",  "you",  "polar-express", "polar-express-2",
    "cans",  "quintic", "pade", "modula",        "deepseek",
    "cubic", "svd",     NULL};

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The first normalised copy is in scratch; one matrix alternates between that and its
 * own memory, several need a second copy beside each other. */
size_t pl_ns_scratch(const struct pl_ns *ns, int m, int n, int count)
{
    const size_t r = (size_t)least(m, n), size = (size_t)m * (size_t)n;
    if (!pl_ns_sets[ns->coefficients].n) return 0;
    return (size_t)count * (2 * r * r + size + (count > 1) * size);
}

/* What an iteration works on: matrices of one shape behind one another, and A and B
 * (r,r) of each. */
struct work {
    const struct pl_device *dev;
    int m, n, r, count;
    size_t size, square; /* m n, r r */
    float *A, *B;
};

/* C <- alpha A A + beta A; A is symmetric, and sooner packed as if transposed. */
static int square_of(const struct work *k, float alpha, const float *A, float beta,
                     float *C)
{
    return k->dev->syrk_batch(k->count, true, k->r, k->r, alpha, A, k->r, k->square,
                              beta, A, C, k->r, k->square);
}

/* Y <- B X + beta X, or X B + beta X */
static int apply(const struct work *k, const float *X, float beta, float *Y)
{
    const int m = k->m, n = k->n;
    if (m <= n)
        return k->dev->gemm_batch(k->count, false, false, m, n, m, 1, k->B, m,
                                  k->square, X, n, k->size, beta, X, Y, n, k->size);
    return k->dev->gemm_batch(k->count, false, false, m, n, n, 1, X, n, k->size, k->B,
                              n, k->square, beta, X, Y, n, k->size);
}

/* A <- alpha X X^T, or X^T X where rows are the long side. */
static int gram(const struct work *k, float alpha, const float *X, float *A)
{
    const int s = k->m < k->n ? k->n : k->m;
    return k->dev->syrk_batch(k->count, k->m > k->n, k->r, s, alpha, X, k->n, k->size,
                              0, A, A, k->r, k->square);
}

/* Y <- a X + B X (short rows) or a X + X B (short columns), B = b A + c A^2. */
static int iterate(const struct work *k, const double abc[3], float *X, float *Y)
{
    const float a = (float)abc[0], b = (float)abc[1], c = (float)abc[2];
    int rc = c == 0 ? gram(k, b, X, k->B) : gram(k, 1, X, k->A);
    if (!rc && c != 0) rc = square_of(k, c, k->A, b, k->B);
    return rc ? rc : apply(k, X, a, Y);
}

/* y <- bf16(a bf16(y) + bf16(b x)), where x becomes bf16(b x). */
static int rounded_sum(const struct pl_device *dev, size_t n, float a, float b,
                       float *x, float *y)
{
    int rc = dev->round_bf16(n, y, y);
    if (!rc && a != 1) rc = dev->axpby(n, 0, y, a, y);
    if (!rc && a != 1) rc = dev->round_bf16(n, y, y);
    if (!rc) rc = dev->axpby(n, 0, x, b, x);
    if (!rc) rc = dev->round_bf16(n, x, x);
    if (!rc) rc = dev->axpby(n, 1, x, 1, y);
    return rc ? rc : dev->round_bf16(n, y, y);
}

/* The same with the result of every operation rounded, as PyTorch's in bf16, but for
 * c A^2, which is c (A A) here and (c A) A there. X is used up. */
static int iterate_bf16(const struct work *k, const double abc[3], float *X, float *Y)
{
    const struct pl_device *dev = k->dev;
    const size_t all = (size_t)k->count * k->size,
                 squares = (size_t)k->count * k->square;
    int rc = gram(k, 1, X, k->A);
    if (!rc) rc = dev->round_bf16(squares, k->A, k->A);
    if (!rc) rc = square_of(k, 1, k->A, 0, k->B);
    if (!rc) rc = rounded_sum(dev, squares, (float)abc[2], (float)abc[1], k->A, k->B);
    if (!rc) rc = apply(k, X, 0, Y);
    return rc ? rc : rounded_sum(dev, all, 1, (float)abc[0], X, Y);
}

/* Y <- X / (margin ||X|| + eps) */
static int normalise(const struct work *k, const struct pl_ns *ns, float *X, float *Y)
{
    const struct pl_ns_set *set = &pl_ns_sets[ns->coefficients];
    const double eps = ns->eps > 0 ? ns->eps : set->eps;
    double square;
    int rc = ns->bf16 ? k->dev->round_bf16(k->size, X, X) : 0;
    if (!rc) rc = k->dev->dot(k->size, X, X, &square);
    if (rc) return rc;
    const double norm = set->margin * sqrt(square);
    const double divisor = ns->clamp ? fmax(norm, eps) : norm + eps;
    rc = k->dev->axpby(k->size, (float)(1 / divisor), X, 0, Y);
    return rc || !ns->bf16 ? rc : k->dev->round_bf16(k->size, Y, Y);
}

static int exact(const struct pl_device *dev, int m, int n, float *X)
{
    const size_t size = (size_t)m * (size_t)n;
    float *host = PL_NEW(size, float);
    double *wide = PL_NEW(2 * size, double), *polar = wide + size;
    int rc = dev->download(host, X, sizeof *host * size);
    for (size_t i = 0; i < size && !rc; i++) wide[i] = host[i];
    if (!rc) pl_polar(m, n, wide, polar);
    for (size_t i = 0; i < size && !rc; i++) host[i] = (float)polar[i];
    if (!rc) rc = dev->upload(X, host, sizeof *host * size);
    free(host);
    free(wide);
    return rc;
}

int pl_newton_schulz(const struct pl_device *dev, const struct pl_ns *ns, int m, int n,
                     int count, float *const *X, float *scratch)
{
    const struct pl_ns_set *set = &pl_ns_sets[ns->coefficients];
    const int steps = ns->steps ? ns->steps : set->steps, r = least(m, n);
    struct work k = {
        dev,     m,   n, r, count, (size_t)m * (size_t)n, (size_t)r * (size_t)r,
        scratch, NULL};
    const size_t squares = (size_t)count * k.square, all = (size_t)count * k.size;
    int rc = 0;
    if (ns->bf16 && dev->twin && !strcmp(dev->twin->precision, "tf32"))
        k.dev = dev->twin; /* bf16 factors are exact there, and fast */
    for (int i = 0; i < count && !rc && !set->n; i++) rc = exact(dev, m, n, X[i]);
    if (!set->n) return rc;
    k.B = k.A + squares;
    float *to = k.B + squares, *from = count > 1 ? to + all : X[0];
    for (int i = 0; i < count && !rc; i++)
        rc = normalise(&k, ns, X[i], to + (size_t)i * k.size);
    for (int step = 0; step < steps && !rc; step++) {
        float *swap = from;
        from = to;
        to = swap;
        rc = (ns->bf16 ? iterate_bf16 : iterate)(
            &k, set->abc[step < set->n ? step : set->n - 1], from, to);
    }
    for (int i = 0; i < count && !rc; i++)
        if (to + (size_t)i * k.size != X[i])
            rc = dev->copy(X[i], to + (size_t)i * k.size, sizeof(float) * k.size);
    return rc;
}
