/* The schedules of the zero-bubble family and interleaving against published tables.
 * Times in ms; rows are P, m, chunks of the interleaved column, F, B, W, c of a whole
 * device. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim_case.h"

static pl_tick ms(double value)
{
    return (pl_tick)llround(value * 1e9);
}

struct row {
    int P, m, v;
    double F, B, W, c;
    const char *plain, *interleaved, *h1, *h2, *one, *two; /* printed bubble rates */
};

/* Qi et al. (arXiv 2401.10241): profiled costs and rates of the ICLR table; v = layers
 * / P. */
static const struct row iclr[] = {{8, 24, 3, 18.522, 18.086, 9.337, .601, "0.2431",
                                   "0.1055", "0.1585", "0.1083", "0.1585", "0.0433"},
                                  {8, 32, 3, 18.513, 18.086, 9.331, .626, "0.1985",
                                   "0.0818", "0.1242", "0.0837", "0.1242", "0.0039"},
                                  {8, 64, 3, 18.546, 18.097, 9.321, .762, "0.1240",
                                   "0.0443", "0.0674", "0.0444", "0.0674", "0.0026"},
                                  {8, 24, 4, 29.718, 29.444, 19.927, .527, "0.2347",
                                   "0.0808", "0.1323", "0.0698", "0.1323", "0.0029"},
                                  {8, 32, 4, 29.802, 29.428, 19.530, .577, "0.1898",
                                   "0.0628", "0.1045", "0.0559", "0.1045", "0.0022"},
                                  {8, 64, 4, 29.935, 29.621, 19.388, .535, "0.1091",
                                   "0.0320", "0.0554", "0.0294", "0.0554", "0.0010"},
                                  {16, 48, 3, 11.347, 11.248, 8.132, .377, "0.2552",
                                   "0.1104", "0.1397", "0.0672", "0.1397", "0.0066"},
                                  {16, 64, 3, 11.307, 11.254, 8.101, .379, "0.2082",
                                   "0.0852", "0.1088", "0.0516", "0.1088", "0.0054"},
                                  {16, 128, 3, 11.325, 11.308, 8.109, .378, "0.1251",
                                   "0.0445", "0.0576", "0.0266", "0.0576", "0.0028"},
                                  {32, 96, 2, 10.419, 10.207, 7.715, .408, "0.2646",
                                   "0.1493", "0.1421", "0.0641", "0.1421", "0.0038"},
                                  {32, 128, 2, 10.408, 10.204, 7.703, .408, "0.2168",
                                   "0.1164", "0.1106", "0.0490", "0.1106", "0.0029"},
                                  {32, 256, 2, 10.402, 10.248, 7.698, .460, "0.1352",
                                   "0.0624", "0.0594", "0.0257", "0.0594", "0.0018"}};
enum { ICLR = sizeof iclr / sizeof *iclr };

/* The same paper's ZB-V table; costs printed per chunk, here doubled. `one`: zb-v. */
static const struct row arxiv[] = {{16, 48, 2, 28.814, 28.760, 19.352, 1.610, "0.2668",
                                    "0.1499", "0.1536", "0.0823", "0.0697", NULL},
                                   {16, 64, 2, 28.824, 28.786, 19.376, 1.621, "0.2206",
                                    "0.1169", "0.1198", "0.0630", "0.0533", NULL},
                                   {16, 128, 2, 28.632, 28.612, 19.278, 1.619, "0.1390",
                                    "0.0621", "0.0637", "0.0325", "0.0274", NULL}};
enum { ARXIV = sizeof arxiv / sizeof *arxiv };

static struct pl_simulation run_shape(const char *name, const struct row *row,
                                      struct pl_shape shape)
{
    const struct pl_schedule_type *type = pl_schedule_find(name);
    shape.P = row->P;
    shape.m = row->m;
    shape.updates = 1;
    struct pl_layout layout;
    ck_assert_msg(pl_shape_resolve(type, &shape) == PL_OK, "%s", pl_error_text());
    pl_layout_new(type, &shape, &layout);
    struct pl_cost cost =
        even_costs(&layout, ms(row->F), ms(row->B), ms(row->W), 0, ms(row->c));
    struct pl_simulation sim = simulate_shape(type, &shape, &cost, false);
    pl_cost_free(&cost);
    pl_layout_free(&layout);
    return sim;
}

static struct pl_simulation run_row(const char *name, const struct row *row, int v)
{
    return run_shape(name, row, (struct pl_shape){.v = v});
}

static double ideal_ms(const struct row *row)
{
    return row->m * (row->F + row->B + row->W);
}

static void assert_printed(double rate, const char *printed, const char *name,
                           const struct row *row)
{
    char text[32];
    snprintf(text, sizeof text, "%.4f", rate);
    ck_assert_msg(!strcmp(text, printed), "%s P=%d m=%d: %s, printed %s", name, row->P,
                  row->m, text, printed);
}

static const struct row *row_of(int i)
{
    return i < ICLR ? &iclr[i] : &arxiv[i - ICLR];
}

/* 1f1b and zb-h1 to the global end, zb-h2 as a parallelogram, as the paper's script. */
START_TEST(hand_schedules)
{
    const struct row *row = row_of(_i);
    const struct {
        const char *name, *printed;
        bool parallelogram;
    } columns[] = {{"1f1b", row->plain, false},
                   {"zb-h1", row->h1, false},
                   {"zb-h2", row->h2, true}};
    for (int k = 0; k < 3; k++) {
        struct pl_simulation sim = run_row(columns[k].name, row, 0);
        assert_printed(columns[k].parallelogram ? sim.metrics.bubble_parallelogram
                                                : sim.metrics.bubble,
                       columns[k].printed, columns[k].name, row);
        pl_simulation_free(&sim);
    }
}
END_TEST

/* The printed column lets only the first microbatch of a group wait for the transfer
 * from the last device back to the first; with all of them waiting the run is longer by
 * exactly P c, in all 15 rows. */
START_TEST(interleaved_rows)
{
    const struct row *row = row_of(_i);
    struct pl_simulation sim = run_row("interleaved", row, row->v);
    double ideal = ideal_ms(row), T = sim.metrics.makespan_s * 1e3;
    double excess = (row->P - 1) * (row->F + row->B + row->W) / row->v +
                    2 * row->c * (row->P * row->v - 1);
    ck_assert_double_eq_tol(T, ideal + excess, 1e-6); /* costs are rounded to 1e-9 */
    double printed = T - row->P * row->c;
    assert_printed((printed - ideal) / printed, row->interleaved, "interleaved", row);
    pl_simulation_free(&sim);
}
END_TEST

static void assert_no_worse(double rate, const char *printed, const char *name,
                            const struct row *row)
{
    char text[32];
    snprintf(text, sizeof text, "%.4f", rate);
    ck_assert_msg(strcmp(text, printed) <= 0, "%s P=%d m=%d: %s, printed %s", name,
                  row->P, row->m, text, printed);
}

/* Part of an activation that B frees in the paper's profiles: (34 h + 5 a s) less the
 * 32 h that W needs, s = 1024; h and a of the model by P and F. */
static double released_of(const struct row *row)
{
    double h = row->P == 8 ? (row->F < 20 ? 2304 : 4096) : row->P == 16 ? 5120 : 6144;
    double a = row->P == 8 ? (row->F < 20 ? 24 : 32) : row->P == 16 ? 40 : 48;
    return 1 - 32 * h / (34 * h + 5 * a * 1024);
}

/* zb-1p needs no more than P whole activations for the printed rates; zb-2p needs what
 * the paper counts: B frees its part. */
START_TEST(scheduled_rows)
{
    const struct row *row = &iclr[_i];
    struct pl_simulation sim = run_row("zb-1p", row, 0);
    assert_no_worse(sim.metrics.bubble_parallelogram, row->one, "zb-1p", row);
    pl_simulation_free(&sim);
    struct pl_shape shape = {.released = released_of(row)};
    sim = run_shape("zb-2p", row, shape);
    assert_no_worse(sim.metrics.bubble_parallelogram, row->two, "zb-2p", row);
    pl_simulation_free(&sim);
    shape.limit = row->P; /* half of it is not enough */
    sim = run_shape("zb-2p", row, shape);
    ck_assert_double_gt(sim.metrics.bubble_parallelogram, atof(row->two) + 0.001);
    pl_simulation_free(&sim);
}
END_TEST

START_TEST(v_rows)
{
    const struct row *row = &arxiv[_i];
    struct pl_simulation sim = run_row("zb-v", row, 0);
    assert_no_worse(sim.metrics.bubble_parallelogram, row->one, "zb-v", row);
    for (int d = 0; d < row->P; d++)
        ck_assert_int_le(sim.metrics.device[d].peak_activations, 2 * row->P);
    pl_simulation_free(&sim);
}
END_TEST

static double span_ms(const struct pl_simulation *sim)
{
    return 1e3 * sim->metrics.ideal_s / (1 - sim->metrics.bubble_parallelogram);
}

static int64_t peak_of(const struct pl_simulation *sim)
{
    int64_t peak = 0;
    for (int d = 0; d < sim->metrics.devices; d++)
        if (sim->metrics.device[d].peak_activations > peak)
            peak = sim->metrics.device[d].peak_activations;
    return peak;
}

/* F = B = W = 1 a chunk, two chunks a device (2 a device), no transfer time: spans, in
 * units of a chunk, of the authors' own schedulers; peaks in chunks by P. */
START_TEST(unit_costs)
{
    static const struct {
        int P, m, plain, one, half, min, zero;
    } rows[] = {{4, 8, 66, 54, 53, 59, 48},        {4, 16, 114, 102, 101, 107, 96},
                {8, 16, 138, 110, 113, 123, 96},   {8, 24, 186, 158, 161, 171, 144},
                {8, 32, 234, 206, 209, 219, 192},  {8, 64, 426, 398, 401, 411, 384},
                {16, 48, 378, 318, 329, 347, 288}, {16, 64, 474, 414, 425, 443, 384}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int P = rows[i].P;
        const struct row unit = {.P = P, .m = rows[i].m, .F = 2, .B = 2, .W = 2};
        const struct {
            const char *name;
            int span, peak; /* peak 0: not tabulated */
        } columns[] = {{"1f1b", rows[i].plain, 2 * P},
                       {"zb-1p", rows[i].one, 2 * P},
                       {"v-half", rows[i].half, P + 2},
                       {"v-min", rows[i].min, P == 4 ? 4 : P == 8 ? 8 : 12},
                       {"zb-v", rows[i].zero, 2 * P},
                       {"zb-2p", rows[i].zero, 0}};
        for (int k = 0; k < 6; k++) {
            struct pl_simulation sim = run_row(columns[k].name, &unit, 0);
            int chunks = 2 / sim.schedule.shape.v; /* in an activation of this one */
            double got = k ? span_ms(&sim) : sim.metrics.makespan_s * 1e3;
            ck_assert_msg(fabs(got - columns[k].span) < 1e-9,
                          "%s P=%d m=%d: %g, published %d", columns[k].name, P,
                          rows[i].m, got, columns[k].span);
            if (columns[k].peak)
                ck_assert_int_eq(chunks * peak_of(&sim), columns[k].peak);
            pl_simulation_free(&sim);
        }
    }
}
END_TEST

/* Primus' simulator (F = B = W = 1000 on 8 devices, 32 microbatches): global end and
 * most microbatches held, in units of a whole stage, by rank. For V-Min it prints 109,
 * half a pass less than the schedule's authors (219 chunk passes in unit_costs). */
START_TEST(primus_rows)
{
    const struct row unit = {.P = 8, .m = 32, .F = 1, .B = 1, .W = 1};
    struct pl_simulation sim = run_row("1f1b", &unit, 0);
    ck_assert_int_eq(end_of(&sim), ms(117));
    for (int d = 0; d < 8; d++)
        ck_assert_int_eq(sim.metrics.device[d].peak_activations, 8 - d);
    pl_simulation_free(&sim);
    sim = run_row("zb-h1", &unit, 0);
    ck_assert_int_eq(end_of(&sim), ms(103));
    for (int d = 0; d < 8; d++)
        ck_assert_int_eq(sim.metrics.device[d].peak_activations, 8);
    pl_simulation_free(&sim);
    sim = run_row("interleaved", &unit, 2);
    ck_assert_int_eq(end_of(&sim), ms(106.5));
    for (int d = 0; d < 8; d++) /* 11.5, 10.5, ..., 4.5 */
        ck_assert_int_eq(sim.metrics.device[d].peak_activations, 23 - 2 * d);
    pl_simulation_free(&sim);
    static const struct {
        const char *name;
        double end;
        int peak;
    } two[] = {{"zb-v", 99.5, 16}, {"v-half", 104.5, 10}, {"v-min", 109.5, 8}};
    for (int k = 0; k < 3; k++) {
        sim = run_row(two[k].name, &unit, 0);
        ck_assert_int_eq(end_of(&sim), ms(two[k].end));
        ck_assert_int_eq(peak_of(&sim), two[k].peak);
        pl_simulation_free(&sim);
    }
}
END_TEST

/* Interleaving with any number of chunks and any group: closed forms, and the memory
 * formula (2 (P-1-r) + (v-1) N + 1) / v. */
START_TEST(interleaved_shapes)
{
    const struct pl_schedule_type *type = pl_schedule_find("interleaved");
    for (int v = 1; v <= 6; v++)
        for (int P = 1; P <= 5; P++)
            for (int N = P; N <= 2 * P + 1; N++) {
                struct pl_shape shape = {
                    .P = P, .m = 3 * N + P, .v = v, .group = N, .updates = 2};
                struct pl_layout layout;
                ck_assert_int_eq(pl_shape_resolve(type, &shape), PL_OK);
                pl_layout_new(type, &shape, &layout);
                struct pl_cost cost =
                    even_costs(&layout, 3 * US * v, 2 * US * v, 2 * US * v, 0, 0);
                struct pl_simulation sim = simulate_shape(type, &shape, &cost, true);
                for (int d = 0; d < P; d++)
                    ck_assert_int_eq(sim.metrics.device[d].peak_activations,
                                     2 * (P - 1 - d) + (v - 1) * N + 1);
                if (N == P)
                    ck_assert_int_eq(end_of(&sim),
                                     (pl_tick)2 * 7 * US * (v * shape.m + P - 1));
                ck_assert_int_ge(end_of(&sim),
                                 (pl_tick)2 * 7 * US * (v * shape.m + P - 1));
                pl_simulation_free(&sim);
                pl_cost_free(&cost);
                pl_layout_free(&layout);
            }
}
END_TEST

static void assert_refused(struct pl_shape shape, const char *why)
{
    ck_assert_int_eq(pl_shape_resolve(pl_schedule_find("interleaved"), &shape),
                     PL_EUNSUP);
    ck_assert_msg(strstr(pl_error_text(), why), "%s: no \"%s\"", pl_error_text(), why);
}

/* Megatron's refusals, each with the nearest shape that will do. */
START_TEST(interleaved_refusals)
{
    struct pl_shape shape = {.P = 4, .m = 3, .updates = 1};
    assert_refused(shape, "nearest 4");
    shape.m = 10;
    assert_refused(shape, "nearest 8 or 12");
    shape.group = 3;
    assert_refused(shape, "expected from P = 4 to m = 10");
    shape.group = 11;
    assert_refused(shape, "expected from P = 4 to m = 10");
    shape.group = 7;
    assert_refused(shape, "the last group has 3 microbatches");
    shape.group = 6; /* 6 + 4 */
    ck_assert_int_eq(pl_shape_resolve(pl_schedule_find("interleaved"), &shape), PL_OK);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, hand_schedules, 0, ICLR + ARXIV);
    tcase_add_loop_test(t, interleaved_rows, 0, ICLR + ARXIV);
    tcase_add_loop_test(t, scheduled_rows, 0, ICLR);
    tcase_add_loop_test(t, v_rows, 0, ARXIV);
    tcase_add_test(t, unit_costs);
    tcase_add_test(t, primus_rows);
    tcase_add_test(t, interleaved_shapes);
    tcase_add_test(t, interleaved_refusals);
}

int main(void)
{
    return run_tests("sim zero bubble", fill);
}
