/* pl_cuda_flash and pl_cuda_flash_back against their formulas in double, with factors
 * that are bf16 already: a program of the device's own sources, compiled over
 * tests/cuda_shim.h (or by nvcc -x cu). Prints the largest error over its bound and a
 * hash of all results; exit 1 and one line for the first element out of bounds.
 *
 * Bounds, u = 2^-8 (bf16, to nearest), e = 2^-23 (float; tensor cores may cut off):
 * a score's error is (dim + 6) e A, A = sum |q k| / sqrt(dim); that is p's relative
 * error, to which exp (8 e), the sum over up to T positions (T e) and its score's part
 * in lse, again (dim + 6) e A, come. Then p is rounded, u, multiplied by v, and summed
 * (T e), and the result is rounded, u:
 *   |out - want| <= (u + r e) sum p |v| + u |out|, r = 2 (dim + 6) A + 2 T + 8,
 * dv likewise over queries and heads. ds = p (dp - D): error p (|dp| + |D|) r e, sizes
 * of dp and D being sums of absolute terms, and u |ds| as it is rounded; dq, dk are
 * sums of it as dv is of p. */
#include "gpu/cuda_device.cuh"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

static const struct pl_attention_shape shapes[] = {
    {1, 1, 1, 1, 64},   {2, 17, 2, 1, 64},  {1, 64, 1, 1, 128},  {2, 65, 3, 1, 64},
    {1, 130, 4, 2, 64}, {1, 200, 3, 1, 64}, {1, 130, 2, 1, 128}, {1, 200, 1, 1, 128},
    {2, 17, 1, 1, 8},   {1, 65, 2, 2, 48},  {1, 33, 3, 3, 80},   {1, 260, 1, 1, 64},
};
static const double U = 1.0 / 256, E = FLT_EPSILON;

static const struct pl_device *device;
static double worst;
static uint64_t hash = 14695981039346656037u;

typedef std::vector<double> vec;

static bool quiet; /* while errors are wanted */

static int fail(int code, const char *format, ...)
{
    if (quiet) return code;
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return code;
}

static void must(int rc)
{
    if (rc) exit(1);
}

static uint16_t bits_of(double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double value_of(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* Normal numbers (sums of 12 uniform ones), rounded to bf16. */
static vec random_bf16(size_t n)
{
    static uint64_t state = 7;
    vec x(n);
    for (size_t i = 0; i < n; i++) {
        double sum = -6;
        for (int k = 0; k < 12; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            sum += (double)(state >> 40) / (1 << 24);
        }
        x[i] = value_of(bits_of(sum));
    }
    return x;
}

struct block { /* device memory */
    void *at;
    explicit block(size_t bytes)
    {
        must(device->alloc(bytes, &at));
    }
    block(const vec &x, bool bf16) : block(x.size() * (bf16 ? 2 : 4))
    {
        std::vector<uint16_t> narrow(x.size());
        std::vector<float> wide(x.begin(), x.end());
        for (size_t i = 0; i < x.size(); i++) narrow[i] = bits_of(x[i]);
        must(device->upload(at, bf16 ? (void *)narrow.data() : (void *)wide.data(),
                            x.size() * (bf16 ? 2 : 4)));
    }
    block(const block &) = delete;
    ~block()
    {
        device->release(at);
    }
    __nv_bfloat16 *bf16() const
    {
        return (__nv_bfloat16 *)at;
    }
};

static void compare(const char *what, const struct pl_attention_shape &s,
                    const block &found, bool bf16, const vec &want, const vec &bound)
{
    std::vector<uint16_t> narrow(want.size());
    std::vector<float> wide(want.size());
    void *to = bf16 ? (void *)narrow.data() : (void *)wide.data();
    size_t bytes = want.size() * (bf16 ? 2 : 4);
    must(device->download(to, found.at, bytes));
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((unsigned char *)to)[i]) * 0x100000001b3u;
    for (size_t i = 0; i < want.size(); i++) {
        double got = bf16 ? value_of(narrow[i]) : wide[i];
        double most = bound[i] + (bf16 ? U * (fabs(want[i]) + bound[i]) : 0);
        double ratio = got == want[i] ? 0 : fabs(got - want[i]) / most;
        if (!(ratio <= 1)) {
            fprintf(stderr,
                    "B %d T %d heads %d/%d size %d: %s[%zu] is %.9g, expected %.9g "
                    "within %.3g\n",
                    s.B, s.T, s.heads, s.kv_heads, s.head_dim, what, i, got, want[i],
                    most);
            exit(1);
        }
        worst = fmax(worst, ratio);
    }
}

/* One shape: where things are, the exact p of a row, its lse and largest score size. */
struct net {
    struct pl_attention_shape s;
    size_t width, out_width;
    vec qkv, p;
    double scale, lse, size;

    size_t at(int b, int head, int t) const
    {
        return (size_t)(b * s.T + t) * width + (size_t)(head * s.head_dim);
    }
    size_t out_at(int b, int h, int t) const
    {
        return (size_t)(b * s.T + t) * out_width + (size_t)(h * s.head_dim);
    }
    int key(int h) const
    {
        return s.heads + h / (s.heads / s.kv_heads);
    }
    double rounds() const
    {
        return 2 * (s.head_dim + 6) * size + 2.0 * s.T + 8;
    }
    void attend(int b, int h, int t)
    {
        double max = -INFINITY, sum = 0;
        size = 0;
        for (int j = 0; j <= t; j++) {
            double score = 0, part = 0;
            for (int i = 0; i < s.head_dim; i++) {
                double x = qkv[at(b, h, t) + i] * qkv[at(b, key(h), j) + i] * scale;
                score += x;
                part += fabs(x);
            }
            p[j] = score;
            size = fmax(size, part);
            max = fmax(max, score);
        }
        for (int j = 0; j <= t; j++) sum += exp(p[j] - max);
        lse = max + log(sum);
        for (int j = 0; j <= t; j++) p[j] = exp(p[j] - lse);
    }
};

struct results {
    vec out, out_bound, lse, lse_bound, dqkv, bound;
};

static void forward_row(net &n, results &r, int b, int h, int t)
{
    int dim = n.s.head_dim, v = n.key(h) + n.s.kv_heads;
    size_t row = ((size_t)b * n.s.heads + h) * n.s.T + t;
    r.lse[row] = n.lse;
    r.lse_bound[row] = (n.rounds() + fabs(n.lse)) * E;
    for (int i = 0; i < dim; i++)
        for (int j = 0; j <= t; j++) {
            double part = n.p[j] * n.qkv[n.at(b, v, j) + i];
            r.out[n.out_at(b, h, t) + i] += part;
            r.out_bound[n.out_at(b, h, t) + i] += (U + n.rounds() * E) * fabs(part);
        }
}

/* From the lse and out that the kernel gets. */
static void backward_row(net &n, results &r, const vec &dout, const vec &out, int b,
                         int h, int t)
{
    int dim = n.s.head_dim, k = n.key(h), v = k + n.s.kv_heads;
    size_t o = n.out_at(b, h, t), q = n.at(b, h, t);
    double given = (float)n.lse, mean = 0, mean_size = 0;
    double rounds =
        n.rounds() + fabs(given) + dim + (double)n.s.T * (n.s.heads / n.s.kv_heads);
    for (int i = 0; i < dim; i++) {
        mean += dout[o + i] * out[o + i];
        mean_size += fabs(dout[o + i] * out[o + i]);
    }
    for (int j = 0; j <= t; j++) {
        double p = n.p[j] * exp(n.lse - given), dp = -mean, size = mean_size;
        size_t ke = n.at(b, k, j), ve = n.at(b, v, j);
        for (int i = 0; i < dim; i++) {
            dp += dout[o + i] * n.qkv[ve + i];
            size += fabs(dout[o + i] * n.qkv[ve + i]);
        }
        double ds = p * dp * n.scale;
        double error = U * fabs(ds) + rounds * E * p * size * n.scale;
        for (int i = 0; i < dim; i++) {
            r.dqkv[q + i] += ds * n.qkv[ke + i];
            r.bound[q + i] += error * fabs(n.qkv[ke + i]);
            r.dqkv[ke + i] += ds * n.qkv[q + i];
            r.bound[ke + i] += error * fabs(n.qkv[q + i]);
            r.dqkv[ve + i] += p * dout[o + i];
            r.bound[ve + i] += (U + rounds * E) * p * fabs(dout[o + i]);
        }
    }
}

static void check(const struct pl_attention_shape &s)
{
    net n = {};
    n.s = s;
    n.width = (size_t)(s.heads + 2 * s.kv_heads) * s.head_dim;
    n.out_width = (size_t)s.heads * s.head_dim;
    size_t rows = (size_t)s.B * s.T, lses = rows * s.heads;
    n.scale = 1 / sqrt((double)s.head_dim);
    n.qkv = random_bf16(rows * n.width);
    n.p = vec(s.T);
    vec dout = random_bf16(rows * n.out_width), zero(rows * n.out_width);
    results r = {
        zero, zero, vec(lses), vec(lses), vec(rows * n.width), vec(rows * n.width)};
    vec rounded = zero;
    for (int b = 0; b < s.B; b++)
        for (int h = 0; h < s.heads; h++)
            for (int t = 0; t < s.T; t++) {
                n.attend(b, h, t);
                forward_row(n, r, b, h, t);
                for (size_t e = n.out_at(b, h, t), i = 0; i < (size_t)s.head_dim; i++)
                    rounded[e + i] = value_of(bits_of(r.out[e + i]));
                backward_row(n, r, dout, rounded, b, h, t);
            }
    block qkv(n.qkv, true), out(2 * zero.size()), lse(4 * lses), dqkv(n.qkv, true);
    must(pl_cuda_flash(&s, qkv.bf16(), out.bf16(), (float *)lse.at));
    compare("out", s, out, true, r.out, r.out_bound);
    compare("lse", s, lse, false, r.lse, r.lse_bound);
    block given_out(rounded, true), given_lse(r.lse, false), given_dout(dout, true);
    must(pl_cuda_flash_back(&s, qkv.bf16(), given_out.bf16(), (float *)given_lse.at,
                            given_dout.bf16(), dqkv.bf16()));
    compare("dqkv", s, dqkv, true, r.dqkv, r.bound);
}

int main(int argc, char **argv)
{
    static const struct pl_plugin_host host = {PL_PLUGIN_ABI, fail};
    pl_plugin(&host, &device);
    must(device->open());
    static const struct pl_attention_shape refused[] = {{1, 1, 1, 1, 12},
                                                        {1, 1, 1, 1, 136},
                                                        {1, 1 << 23, 4, 2, 64},
                                                        {65536, 1, 1, 1, 64}};
    quiet = true;
    for (const struct pl_attention_shape &s : refused)
        if (pl_cuda_flash_takes(&s) || pl_cuda_flash(&s, 0, 0, 0) != PL_EUNSUP ||
            pl_cuda_flash_back(&s, 0, 0, 0, 0, 0) != PL_EUNSUP)
            return 1;
    quiet = false;
    int only = argc > 1 ? atoi(argv[1]) : -1; /* one shape, to look at by hand */
    for (int k = 0; k < (int)(sizeof shapes / sizeof *shapes); k++)
        if (only < 0 || only == k) check(shapes[k]);
    printf("worst %.3f hash %016llx\n", worst, (unsigned long long)hash);
    device->close();
    return 0;
}
