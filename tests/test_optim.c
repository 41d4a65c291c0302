/* Optimizers against golden vectors: weights after each step, in exact arithmetic of
 * the rules (fp64 transcriptions of the implementations that the rules' files name). */
#include <stdlib.h>
#include <string.h>

#include "sim/work.h"
#include "tests/optim_case.h"

#define ON_VECTOR 1, 2, PL_PARAM_VECTOR, CASE_VECTOR
#define ON_ROW 1, 2, PL_PARAM_MATRIX, CASE_VECTOR /* a matrix of one row */
#define ON_MATRIX 3, 2, PL_PARAM_MATRIX, CASE_MATRIX
#define ADAM .lr = .1, .decay = .1, .beta1 = .9, .beta2 = .95, .eps = 1e-8
#define SCION \
    .lr = .01, .decay = 1, .momentum = .9, .ns_steps = 5, .radius = {5, 5, 5, 5}

static const struct optim_case goldens[] = {
    {"sgd",
     {.lr = .1,
      .momentum = .9,
      .decay = .01,
      .decay_form = PL_DECAY_COUPLED,
      .first_copies = true},
     ON_VECTOR,
     {{.949, -1.973}, {.927151, -2.021727}, {.706559749, -2.163559573}}},
    {"sgd",
     {.lr = .1,
      .momentum = .9,
      .decay = .01,
      .decay_form = PL_DECAY_COUPLED,
      .first_copies = true,
      .nesterov = true},
     ON_VECTOR,
     {{.9031, -1.9487}, {.90757411, -2.06562747}, {.5081892082, -2.2911913308}}},
    {"adamw",
     {ADAM},
     ON_VECTOR,
     {{.8900000020, -1.8800000040},
      {.8542630579, -1.9101295798},
      {.7800870711, -1.9637884367}}},
    {"nadamw",
     {ADAM, .momentum_decay = 4e-3},
     ON_VECTOR,
     {{.8843548243, -1.8743548264},
      {.9169359643, -1.9517961357},
      {.8006967453, -2.0225466461}}},
    {"nadam",
     {ADAM, .momentum_decay = 4e-3, .decay_form = PL_DECAY_COUPLED},
     ON_VECTOR,
     {{.8943548239, -1.8943548245},
      {.9155207044, -1.9717031214},
      {.8083197548, -2.0560595401}}},
    {"nadamw",
     {ADAM, .nadam_form = PL_NADAM_ALGOPERF},
     ON_VECTOR,
     {{.8000000038, -1.7900000076},
      {.8013929342, -1.8860360199},
      {.6740948961, -1.9820724645}}},
    {"nadamw",
     {ADAM, .nadam_form = PL_NADAM_OPTAX},
     ON_VECTOR,
     {{.8426315819, -1.8326315848},
      {.8508174335, -1.9150790450},
      {.7355468267, -1.9969437169}}},
    {"lion",
     {.lr = .1, .decay = .1, .beta1 = .9, .beta2 = .99, .cautious = 1},
     ON_VECTOR,
     {{.89, -1.88}, {.9811, -1.9612}, {.871289, -2.041588}}},
    {"signum",
     {.lr = .1, .decay = .1, .momentum = .9},
     ON_VECTOR,
     {{.89, -1.88}, {.7811, -1.9612}, {.673289, -2.041588}}},
    {"signum",
     {.lr = .1, .decay = .1, .momentum = .9, .nesterov = true},
     ON_VECTOR,
     {{.89, -1.88}, {.9811, -1.9612}, {.871289, -2.041588}}},
    {"adan",
     {.lr = .1,
      .decay = .1,
      .decay_form = PL_DECAY_PROXIMAL,
      .beta1 = .98,
      .beta2 = .92,
      .beta3 = .99,
      .eps = 1e-8},
     ON_VECTOR,
     {{.8910891109, -1.8811881228},
      {.9135437085, -1.9232987832},
      {.8526038622, -1.9778082574}}},
    {"adan",
     {.lr = .1, .decay = .1, .beta1 = .98, .beta2 = .92, .beta3 = .99, .eps = 1e-8},
     ON_VECTOR,
     {{.8900000020, -1.8800000040},
      {.9126900366, -1.9225436523},
      {.8511493286, -1.9776057724}}},
    {"mars",
     {.lr = .1, .decay = .1, .beta1 = .95, .beta2 = .99, .eps = 1e-8, .gamma = .025},
     ON_ROW,
     {{.8900000014, -1.8800000027},
      {.8594107488, -1.9019812543},
      {.7944622051, -1.9338373068}}},
    {"mars-lion",
     {.lr = .1, .decay = .1, .beta1 = .95, .gamma = .025},
     ON_ROW,
     {{.89, -1.88}, {.7811, -1.9612}, {.673289, -2.041588}}},
    {"mars-shampoo",
     {.lr = .02, .decay = .01, .beta1 = .95, .gamma = .025, .ns_eps = 1e-8},
     ON_MATRIX,
     {{.48641512, -.24600834, .09099008, .18419335, .32241480, -.40386166},
      {.48387376, -.26031021, .06624739, .18465920, .33231263, -.41353913},
      {.46515839, -.26272912, .07534587, .16568130, .32990974, -.39996744}}},
    /* muon and mars hand what is not theirs to AdamW */
    {"muon",
     {.lr = 9,
      .aux_lr = .1,
      .beta1 = .5,
      .beta2 = .5,
      .aux_beta1 = .9,
      .aux_beta2 = .95,
      .eps = 1e-8,
      .decay = 9,
      .aux_decay = .1},
     ON_VECTOR,
     {{.8900000020, -1.8800000040},
      {.8542630579, -1.9101295798},
      {.7800870711, -1.9637884367}}},
    {"mars",
     {.lr = 9,
      .aux_lr = .1,
      .beta1 = .5,
      .beta2 = .5,
      .aux_beta1 = .9,
      .aux_beta2 = .95,
      .eps = 1e-8,
      .decay = 9,
      .aux_decay = .1},
     ON_VECTOR,
     {{.8900000020, -1.8800000040},
      {.8542630579, -1.9101295798},
      {.7800870711, -1.9637884367}}},
    {"muon",
     {.lr = .02,
      .momentum = .95,
      .nesterov = true,
      .ema = true,
      .decay = .01,
      .ns_steps = 5},
     ON_MATRIX,
     {{.48641511, -.24600834, .09099007, .18419335, .32241482, -.40386166},
      {.49057620, -.26152977, .07218643, .18679294, .30475871, -.41135269},
      {.46883697, -.27062308, .07774680, .17865995, .30316095, -.39615595}}},
    {"muon",
     {.lr = .02,
      .momentum = .95,
      .nesterov = true,
      .decay = .1,
      .scale = PL_SCALE_MOONLIGHT,
      .ns_steps = 5},
     ON_MATRIX,
     {{.49518590, -.24838513, .09725727, .19514052, .30575683, -.40031487},
      {.49539998, -.25229242, .09174942, .19549593, .30016965, -.40165588},
      {.48828819, -.25437458, .09314271, .19281516, .29913463, -.39657756}}},
    {"scion",
     {SCION, .scale = PL_SCALE_RATIO, .normalized = true},
     ON_MATRIX,
     {{.46128777, -.23764585, .07652518, .15858339, .35318704, -.40585415},
      {.45217898, -.27117411, .00959562, .15938650, .36878771, -.42439728},
      {.40285786, -.28475277, .03328056, .12177792, .33996551, -.37636809}}},
    {"scion",
     {SCION, .lmo = {PL_LMO_SIGN}, .normalized = true},
     ON_MATRIX,
     {{.47, -.2225, .074, .173, .322, -.421},
      {.4403, -.245275, .04826, .14627, .34378, -.44179},
      {.41089700, -.26782225, .07277740, .11980730, .31534220, -.41237210}}},
    {"scion",
     {SCION, .lmo = {PL_LMO_COLUMN}},
     ON_MATRIX,
     {{.45285365, -.22708759, .07090243, .11635038, .36724392, -.41641241},
      {.42762919, -.29970880, -.01259028, .10637604, .37835428, -.45483397},
      {.33692309, -.36573505, -.00702711, .07394926, .37400435, -.40842712}}},
};
enum { N_GOLDEN = sizeof goldens / sizeof *goldens, STEPS = 3 };

START_TEST(golden_vectors)
{
    const struct optim_case *g = &goldens[_i];
    float got[CASE_STEPS][CASE_SIZE];
    optim_case_run(g, &g->o, 1, STEPS, NULL, got);
    for (int t = 0; t < STEPS; t++)
        for (int i = 0; i < g->rows * g->cols; i++)
            ck_assert_msg(fabs(got[t][i] - g->want[t][i]) < 1e-5,
                          "%s, step %d: weight %d is %.9g, expected %.9g", g->name,
                          t + 1, i, got[t][i], g->want[t][i]);
}
END_TEST

/* The checker sees a wrong object: rate 2 instead of 1 must miss every vector. */
START_TEST(golden_vectors_can_fail)
{
    const struct optim_case *g = &goldens[_i];
    float got[CASE_STEPS][CASE_SIZE];
    optim_case_run(g, &g->o, 2, STEPS, NULL, got);
    ck_assert_double_gt(fabs(got[0][0] - g->want[0][0]), 1e-3);
}
END_TEST

/* llm-baselines starts the buffer at the weights, which its decay has already shrunk.
 */
START_TEST(signum_from_the_weights)
{
    static const double want[3][2] = {
        {.89, -1.88}, {.7811, -1.7612}, {.673289, -1.843588}};
    struct optim_case c = {
        "signum", {.lr = .1, .decay = .1, .momentum = .9}, ON_VECTOR, {{0}}};
    const float first[] = {.99f, -1.98f};
    float got[CASE_STEPS][CASE_SIZE];
    optim_case_run(&c, &c.o, 1, STEPS, first, got);
    for (int t = 0; t < STEPS; t++)
        for (int i = 0; i < 2; i++)
            ck_assert_double_eq_tol(got[t][i], want[t][i], 1e-6);
}
END_TEST

START_TEST(schedules)
{
    struct pl_rate r = {.warmup = 4, .total = 20, .floor = .1, .decay_fraction = .25};
    for (r.kind = PL_RATE_CONSTANT; r.kind <= PL_RATE_WSD; r.kind++) {
        double last = 0;
        for (int64_t n = 0; n < 20; n++) {
            double f = pl_rate_at(&r, n);
            ck_assert(f > 0 && f <= 1);
            if (n < 4) ck_assert_double_eq_tol(f, (double)(n + 1) / 5, 1e-15);
            if (n > 4) ck_assert_double_le(f, last);
            last = f;
        }
    }
    r.kind = PL_RATE_COSINE;
    ck_assert_double_eq_tol(pl_rate_at(&r, 12), .55, 1e-15);
    r.kind = PL_RATE_WSD;
    ck_assert_double_eq_tol(pl_rate_at(&r, 15), 1, 1e-15);
    ck_assert_double_eq_tol(pl_rate_at(&r, 16), .1 + .9 * (1 - sqrt(.2)), 1e-15);
}
END_TEST

START_TEST(registry)
{
    const char *const *names = pl_optim_names();
    int i = 0;
    for (; pl_optim_types[i]; i++) {
        const struct pl_optim_type *type = pl_optim_types[i];
        ck_assert_str_eq(names[i], type->name);
        ck_assert_ptr_eq(pl_optim_find(names[i]), type);
        ck_assert(type->summary[0] && type->source[0] && type->keys[0]);
        ck_assert(type->defaults.lr > 0);
    }
    ck_assert_ptr_null(names[i]);
    ck_assert_ptr_null(pl_optim_find("adam"));
    struct pl_optim o = {.beta1 = .9, .beta2 = .99, .momentum = .5};
    o.type = pl_optim_find("adamw");
    ck_assert_double_eq(pl_optim_beta(&o), .9);
    o.type = pl_optim_find("lion");
    ck_assert_double_eq(pl_optim_beta(&o), .99);
    o.type = pl_optim_find("muon");
    ck_assert_double_eq(pl_optim_beta(&o), .5);
}
END_TEST

/* The memory model of sim/ counts the state that the rules keep. */
START_TEST(state_is_what_the_memory_model_says)
{
    static const struct pl_param params[] = {
        {.rows = 12, .cols = 20, .kind = PL_PARAM_MATRIX},
        {.rows = 40, .cols = 12, .kind = PL_PARAM_EMBED},
        {.rows = 1, .cols = 12, .kind = PL_PARAM_VECTOR}};
    for (int i = 0; pl_optim_types[i]; i++)
        for (int k = 0; k < 3; k++) {
            const struct pl_param *p = &params[k];
            const struct pl_optim o = optim_defaults(pl_optim_types[i]->name);
            const bool vector = p->kind == PL_PARAM_VECTOR;
            double words = -1;
            int rc = pl_optimizer_words(o.type->name, vector ? 0 : p->cols,
                                        vector ? p->cols : p->rows,
                                        p->kind == PL_PARAM_MATRIX, &words);
            ck_assert_int_eq(rc, 0);
            ck_assert_msg(fabs(words * (double)pl_param_size(p) -
                               (double)pl_optim_state(&o, p)) < .5,
                          "%s, tensor %d: %g words, %zu floats of %zu", o.type->name, k,
                          words, pl_optim_state(&o, p), pl_param_size(p));
        }
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, golden_vectors, 0, N_GOLDEN);
    tcase_add_loop_test(t, golden_vectors_can_fail, 0, N_GOLDEN);
    tcase_add_test(t, signum_from_the_weights);
    tcase_add_test(t, schedules);
    tcase_add_test(t, registry);
    tcase_add_test(t, state_is_what_the_memory_model_says);
}

int main(void)
{
    return run_tests("optim", fill);
}
