/* Newton-Schulz approximation of the polar factor: after X / (||X|| + eps), X <- a X +
 * (b A + c A^2) X with A = X X^T on the short side. Singular values go through the
 * composed polynomial; few of the sets converge to 1: Jordan's quintic ends in about
 * [0.68, 1.13]. */
#include "train/newton_schulz.h"

#include <math.h>
#include <stdlib.h>

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

size_t pl_ns_scratch(const struct pl_ns *ns, int m, int n)
{
    const size_t r = (size_t)least(m, n);
    return pl_ns_sets[ns->coefficients].n ? 2 * r * r + (size_t)m * (size_t)n : 0;
}

/* Y <- a X + B X (short rows) or a X + X B (short columns), B = b A + c A^2. */
static int iterate(const struct pl_device *dev, const double abc[3], int m, int n,
                   const float *X, float *Y, float *A, float *B)
{
    const int r = least(m, n), s = m < n ? n : m;
    const size_t square = (size_t)r * (size_t)r;
    const float a = (float)abc[0], b = (float)abc[1], c = (float)abc[2];
    const bool rows = m <= n;
    int rc = dev->syrk(!rows, r, s, c == 0 ? b : 1, X, n, 0, c == 0 ? B : A, r);
    if (!rc && c != 0) rc = dev->copy(B, A, sizeof(float) * square);
    if (!rc && c != 0) rc = dev->syrk(false, r, r, c, A, r, b, B, r);
    if (!rc) rc = dev->copy(Y, X, sizeof(float) * (size_t)m * (size_t)n);
    if (rc) return rc;
    if (rows) return dev->gemm(false, false, m, n, m, 1, B, m, X, n, a, Y, n);
    return dev->gemm(false, false, m, n, n, 1, X, n, B, n, a, Y, n);
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
                     float *X, float *scratch)
{
    const struct pl_ns_set *set = &pl_ns_sets[ns->coefficients];
    const size_t r = (size_t)least(m, n), size = (size_t)m * (size_t)n;
    const int steps = ns->steps ? ns->steps : set->steps;
    const double eps = ns->eps > 0 ? ns->eps : set->eps;
    if (!set->n) return exact(dev, m, n, X);
    float *A = scratch, *B = A + r * r, *from = X, *to = B + r * r;
    double square;
    int rc = dev->dot(size, X, X, &square);
    const double norm = set->margin * sqrt(square);
    const double divisor = ns->clamp ? fmax(norm, eps) : norm + eps;
    if (!rc) rc = dev->axpby(size, (float)(1 / divisor), X, 0, to);
    for (int k = 0; k < steps && !rc; k++) {
        float *swap = from;
        from = to;
        to = swap;
        rc = iterate(dev, set->abc[k < set->n ? k : set->n - 1], m, n, from, to, A, B);
    }
    if (!rc && to != X) rc = dev->copy(X, to, sizeof(float) * size);
    return rc;
}
