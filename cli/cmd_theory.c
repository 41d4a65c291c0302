/* pipelag theory: stability limits and the a-priori bound, numbers in, numbers out. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cmd.h"
#include "theory/bound.h"
#include "theory/stability.h"

enum { STABILITY = 1, BOUND = 2 };

enum {
    BETA,
    DELAY,
    LOOKAHEAD,
    A,
    DELTA,
    SMOOTHNESS,
    SIGMA,
    RHO,
    ETA,
    UPDATES,
    DECAY,
    NUMBERS
};
enum { NESTEROV = NUMBERS, JSON, TABLE, BEST, ALL };
#define KEY(option) (256 + (option))

/* Options that take a number; a NaN fallback: must be given. */
static const struct {
    const char *name;
    double min, max, fallback;
    int modes;
} numbers[NUMBERS] = {
    [BETA] = {"--beta", 0, .9999, .9, STABILITY | BOUND},
    [DELAY] = {"--delay", 0, 256, 1, STABILITY | BOUND},
    [LOOKAHEAD] = {"--lookahead", -2, 256, 0, STABILITY | BOUND},
    [A] = {"--a", 1e-12, 1e12, NAN, STABILITY},
    [DELTA] = {"--delta", 0, 1e100, NAN, BOUND},
    [SMOOTHNESS] = {"--smoothness", 0, 1e100, NAN, BOUND},
    [SIGMA] = {"--sigma", 0, 1e100, NAN, BOUND},
    [RHO] = {"--rho", 0, 1e100, NAN, BOUND},
    [ETA] = {"--eta", 1e-100, 1e100, NAN, BOUND},
    [UPDATES] = {"--updates", 1, 1e18, NAN, BOUND},
    [DECAY] = {"--decay", 0, 1e100, 0, BOUND},
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Method (both):", 1},
    {"beta", KEY(BETA), "B", 0, "momentum coefficient, 0 to 0.9999 (0.9)", 0},
    {"delay", KEY(DELAY), "TAU", 0, "age of a gradient in optimizer updates (1)", 0},
    {"lookahead", KEY(LOOKAHEAD), "C", 0,
     "c of x -= (1+c) u - c u_before, in updates: 0 none, 1 error feedback, TAU full "
     "weight prediction (0)",
     0},
    {"nesterov", KEY(NESTEROV), NULL, 0, "Nesterov momentum, not heavy ball", 0},
    {"json", KEY(JSON), NULL, 0, "print one JSON object", 0},
    {NULL, 0, NULL, 0, "stability:", 2},
    {"a", KEY(A), "A", 0,
     "also the stationary noise at this rate * curvature (no unit): variance over that "
     "of synchronous heavy ball at the same A",
     0},
    {"table", KEY(TABLE), NULL, 0, "limits over beta and delay, look-ahead 0 and delay",
     0},
    {NULL, 0, NULL, 0, "bound (decay is optional, and so is eta with best):", 3},
    {"delta", KEY(DELTA), "D", 0, "f(x_0) - inf f, in units of the loss", 0},
    {"smoothness", KEY(SMOOTHNESS), "L", 0,
     "Lipschitz constant of the gradient, dual norm over norm", 0},
    {"sigma", KEY(SIGMA), "S", 0, "gradient noise: E||xi||_2^2 <= S^2", 0},
    {"rho", KEY(RHO), "R", 0,
     "dual norm <= R * 2-norm: sqrt(min(m,n)) for one m x n matrix in the spectral "
     "norm",
     0},
    {"eta", KEY(ETA), "E", 0, "learning rate: length of one update in the norm", 0},
    {"updates", KEY(UPDATES), "T", 0, "optimizer updates applied", 0},
    {"decay", KEY(DECAY), "LAMBDA", 0,
     "decoupled weight decay, 1 over the radius; the bound is then on the Frank-Wolfe "
     "gap (0)",
     0},
    {"best", KEY(BEST), NULL, 0, "find the rate and momentum that minimise the bound",
     0},
    {0},
};

struct arguments {
    const char *topic;
    const char *text[ALL]; /* as given, or NULL */
    double value[NUMBERS];
    int mode;
    enum pl_momentum momentum;
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    if (option >= KEY(0) && option < KEY(ALL)) {
        arguments->text[option - KEY(0)] = arg ? arg : "";
        return 0;
    }
    switch (option) {
    case ARGP_KEY_ARG:
        if (arguments->topic) argp_error(state, "one topic at a time: %s", arg);
        arguments->topic = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "'stability' or 'bound' is needed");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The topic and its numbers, checked. */
static int resolve(struct arguments *arguments)
{
    static const char *const topics[] = {"stability", "bound", NULL};
    for (int i = 0; topics[i]; i++)
        if (strcmp(arguments->topic, topics[i]) == 0) arguments->mode = 1 << i;
    if (!arguments->mode)
        return pl_fail_unknown(PL_EUSAGE, "theory", "topic", arguments->topic, topics);
    if (arguments->text[TABLE] && arguments->mode != STABILITY)
        return pl_fail(PL_EUSAGE, "--table does not belong to 'theory bound'");
    if (arguments->text[BEST] && arguments->mode != BOUND)
        return pl_fail(PL_EUSAGE, "--best does not belong to 'theory stability'");
    for (int i = 0; i < NUMBERS; i++) {
        arguments->value[i] = numbers[i].fallback;
        if (!arguments->text[i]) continue;
        if (!(numbers[i].modes & arguments->mode))
            return pl_fail(PL_EUSAGE, "%s does not belong to 'theory %s'",
                           numbers[i].name, arguments->topic);
        double *value = &arguments->value[i];
        int code = pl_cmd_real(numbers[i].name, arguments->text[i], numbers[i].min,
                               numbers[i].max, value);
        if (code < 0) return code;
        if ((i == DELAY || i == UPDATES) && *value != floor(*value))
            return pl_fail(PL_EUSAGE, "%s: '%s' is not an integer", numbers[i].name,
                           arguments->text[i]);
    }
    arguments->momentum = arguments->text[NESTEROV] ? PL_NESTEROV : PL_HEAVY_BALL;
    return 0;
}

static const char *momentum_name(const struct arguments *arguments)
{
    return arguments->momentum == PL_NESTEROV ? "nesterov" : "heavy-ball";
}

static void json_method(struct pl_json *json, const struct arguments *arguments)
{
    pl_json_real(json, "beta", arguments->value[BETA]);
    pl_json_int(json, "delay", (int64_t)arguments->value[DELAY]);
    pl_json_real(json, "lookahead", arguments->value[LOOKAHEAD]);
    pl_json_text(json, "momentum", momentum_name(arguments));
}

static const double table_beta[] = {0, .5, .9, .95, .99};
static const int table_delay[] = {1, 2, 4, 8, 16};
enum { ROWS = 5, COLUMNS = 5 };

static int print_table(const struct arguments *arguments)
{
    printf(
        "largest stable a = rate * curvature, %s, look-ahead 0 / look-ahead = delay\n",
        momentum_name(arguments));
    printf("%6s", "beta");
    for (int k = 0; k < COLUMNS; k++) printf("%13s %2d", "delay", table_delay[k]);
    putchar('\n');
    for (int i = 0; i < ROWS; i++) {
        printf("%6g", table_beta[i]);
        for (int k = 0; k < COLUMNS; k++)
            printf("%8.3f / %5.3f",
                   pl_stability_limit(table_beta[i], table_delay[k], 0,
                                      arguments->momentum),
                   pl_stability_limit(table_beta[i], table_delay[k], table_delay[k],
                                      arguments->momentum));
        putchar('\n');
    }
    return 0;
}

static int json_table(const struct arguments *arguments)
{
    struct pl_json json;
    pl_json_open(&json, stdout);
    pl_json_begin(&json, NULL, '{');
    pl_json_text(&json, "momentum", momentum_name(arguments));
    pl_json_begin(&json, "limits", '[');
    for (int i = 0; i < ROWS * COLUMNS * 2; i++) {
        double beta = table_beta[i / (2 * COLUMNS)];
        int delay = table_delay[i / 2 % COLUMNS];
        double c = i % 2 ? delay : 0;
        pl_json_begin(&json, NULL, '{');
        pl_json_real(&json, "beta", beta);
        pl_json_int(&json, "delay", delay);
        pl_json_real(&json, "lookahead", c);
        pl_json_real(&json, "a_max",
                     pl_stability_limit(beta, delay, c, arguments->momentum));
        pl_json_end(&json, '}');
    }
    pl_json_end(&json, ']');
    pl_json_end(&json, '}');
    pl_json_close(&json);
    return 0;
}

/* Variance over that of synchronous heavy ball at the same a; infinite when unstable.
 */
static double noise_at(const struct arguments *arguments)
{
    const double *v = arguments->value;
    return pl_noise_variance(v[A], v[BETA], (int)v[DELAY], v[LOOKAHEAD],
                             arguments->momentum) /
           pl_noise_variance(v[A], v[BETA], 0, 0, PL_HEAVY_BALL);
}

static int stability(const struct arguments *arguments)
{
    if (arguments->text[TABLE])
        return arguments->text[JSON] ? json_table(arguments) : print_table(arguments);
    const double *v = arguments->value;
    enum pl_momentum momentum = arguments->momentum;
    const char *formula;
    double limit = pl_stability_limit(v[BETA], (int)v[DELAY], v[LOOKAHEAD], momentum);
    double closed =
        pl_stability_closed(v[BETA], (int)v[DELAY], v[LOOKAHEAD], momentum, &formula);
    double sync = pl_stability_limit(v[BETA], 0, 0, momentum);
    if (arguments->text[JSON]) {
        struct pl_json json;
        pl_json_open(&json, stdout);
        pl_json_begin(&json, NULL, '{');
        pl_json_real(&json, "a_max", limit);
        pl_json_real(&json, "closed_form", closed);
        pl_json_text(&json, "formula", formula);
        json_method(&json, arguments);
        pl_json_real(&json, "sync_a_max", sync);
        if (arguments->text[A]) {
            pl_json_real(&json, "a", v[A]);
            pl_json_real(&json, "noise_ratio", noise_at(arguments));
        }
        pl_json_end(&json, '}');
        pl_json_close(&json);
        return 0;
    }
    printf("%s, beta %g, delay %g (updates), look-ahead %g; a = rate * curvature\n",
           momentum_name(arguments), v[BETA], v[DELAY], v[LOOKAHEAD]);
    printf("largest stable a   %.10g\n", limit);
    if (formula) printf("closed form        %.10g = %s\n", closed, formula);
    printf("synchronous        %.10g (delay 0, look-ahead 0)\n", sync);
    if (!arguments->text[A]) return 0;
    double ratio = noise_at(arguments);
    if (v[A] >= limit)
        printf("noise at a = %-6g unbounded: not stable\n", v[A]);
    else
        printf("noise at a = %-6g %.6g times the variance of synchronous heavy ball\n",
               v[A], ratio);
    return 0;
}

static void print_terms(const char *title, const struct pl_bound_input *in,
                        const struct pl_bound_terms *t)
{
    printf("%s: eta %.6g, beta %.6g\n", title, in->eta, 1.0 - in->alpha);
    printf("  start  %-12.6g Delta/(eta T)\n", t->start);
    printf("  drift  %-12.6g smoothness, delay and momentum (A %g, B %g)\n", t->drift,
           t->A, t->B);
    printf("  noise  %-12.6g gradient noise left after averaging\n", t->noise);
    printf("  total  %.6g\n", t->total);
}

static void json_terms(struct pl_json *json, const char *key,
                       const struct pl_bound_input *in, const struct pl_bound_terms *t)
{
    pl_json_begin(json, key, '{');
    pl_json_real(json, "eta", in->eta);
    pl_json_real(json, "beta", 1.0 - in->alpha);
    pl_json_real(json, "start", t->start);
    pl_json_real(json, "drift", t->drift);
    pl_json_real(json, "noise", t->noise);
    pl_json_real(json, "total", t->total);
    pl_json_real(json, "A", t->A);
    pl_json_real(json, "B", t->B);
    pl_json_end(json, '}');
}

/* What the bound is about, and the terms that were computed. */
static void bound_print(const struct arguments *arguments,
                        const struct pl_bound_input *given,
                        const struct pl_bound_terms *terms,
                        const struct pl_bound_input *best,
                        const struct pl_bound_terms *least)
{
    const char *measure =
        given->decay > 0.0 ? "Frank-Wolfe gap" : "dual norm of the gradient";
    if (arguments->text[JSON]) {
        struct pl_json json;
        pl_json_open(&json, stdout);
        pl_json_begin(&json, NULL, '{');
        pl_json_text(&json, "measure", measure);
        json_method(&json, arguments);
        if (terms) json_terms(&json, "bound", given, terms);
        if (least) json_terms(&json, "best", best, least);
        pl_json_end(&json, '}');
        pl_json_close(&json);
        return;
    }
    printf("bound on the mean over %g updates of the expected %s\n", given->T, measure);
    printf("%s, delay %g (updates), look-ahead %g, exact LMO, worst case A and B\n",
           momentum_name(arguments), given->tau, given->c);
    if (terms) print_terms("as given", given, terms);
    if (least) print_terms("best", best, least);
}

static int bound(const struct arguments *arguments)
{
    const double *v = arguments->value;
    bool find = arguments->text[BEST] != NULL, eta = arguments->text[ETA] != NULL;
    for (int i = 0; i < NUMBERS; i++)
        if ((numbers[i].modes & BOUND) && isnan(v[i]) && !(i == ETA && find))
            return pl_fail(PL_EUSAGE, "theory bound: %s is needed", numbers[i].name);
    struct pl_bound_input given = {
        .delta = v[DELTA],
        .L = v[SMOOTHNESS],
        .sigma = v[SIGMA],
        .rho = v[RHO],
        .eta = v[ETA],
        .alpha = 1.0 - v[BETA],
        .T = v[UPDATES],
        .tau = v[DELAY],
        .c = v[LOOKAHEAD],
        .nesterov = arguments->momentum == PL_NESTEROV,
        .s_lo = 1.0,
        .s_hi = 1.0,
        .A = NAN,
        .B = NAN,
        .decay = v[DECAY],
    };
    struct pl_bound_input best = given;
    struct pl_bound_terms terms, least;
    int code = eta ? pl_bound(&given, &terms) : 0;
    if (!code && find) code = pl_bound_best(&given, &best.eta, &best.alpha, &least);
    if (code) return code;
    bound_print(arguments, &given, eta ? &terms : NULL, &best, find ? &least : NULL);
    return 0;
}

int pl_cmd_theory(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "stability\nbound",
        .doc =
            "How much delay a method bears. 'stability': the largest a = rate * "
            "curvature for which momentum with delayed gradients is stable on a "
            "quadratic. 'bound': a guarantee for methods whose update has fixed norm "
            "(Muon, Scion, sign descent).\vDelays are in optimizer updates.",
    };
    struct arguments arguments = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    int code = resolve(&arguments);
    if (!code)
        code = arguments.mode == STABILITY ? stability(&arguments) : bound(&arguments);
    return code < 0 ? pl_cmd_fail(code) : 0;
}
