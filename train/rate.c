/* Learning-rate schedules. Warm-up (n+1)/(W+1) wastes no update on rate 0 (nanoGPT);
 * cosine floor + (1-floor)/2 (1 + cos pi x), x = (n-W)/(S-W) (nanoGPT, OLMoE); WSD
 * holds, then floor + (1-floor)(1 - sqrt((n-s0)/D)) over the last D = decay_fraction S
 * updates (SmolLM; Hu et al., arXiv 2404.06395). */
#include "train/optim.h"

#include <math.h>

const char *const pl_rate_names[] = {"constant", "cosine", "wsd", NULL};

static double cosine(const struct pl_rate *rate, double n)
{
    double W = (double)rate->warmup, S = (double)rate->total;
    double x = S > W ? fmin((n - W) / (S - W), 1) : 0;
    return rate->floor + (1 - rate->floor) * 0.5 * (1 + cos(acos(-1.0) * x));
}

static double wsd(const struct pl_rate *rate, double n)
{
    double D = rate->decay_fraction * (double)rate->total, s0 = (double)rate->total - D;
    if (D <= 0 || n <= s0) return 1;
    return rate->floor + (1 - rate->floor) * (1 - sqrt(fmin((n - s0) / D, 1)));
}

double pl_rate_at(const struct pl_rate *rate, int64_t n)
{
    if (n < rate->warmup) return (double)(n + 1) / (double)(rate->warmup + 1);
    switch (rate->kind) {
    case PL_RATE_COSINE:
        return cosine(rate, (double)n);
    case PL_RATE_WSD:
        return wsd(rate, (double)n);
    case PL_RATE_CONSTANT:
        break;
    }
    return 1;
}

double pl_rate_delay(const struct pl_rate *rate, int64_t n, double tau)
{
    double left = 1;
    if (rate->delay_power == 0 || tau <= 1) return 1;
    if (rate->delay_updates > 0)
        left -= fmin((double)n / (double)rate->delay_updates, 1);
    return pow(tau, -rate->delay_power * left);
}
