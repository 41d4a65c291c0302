/* Persistent optimizer state in words of fp32, from the published algorithms:
 * SGD with momentum 1; Signum 1; Lion (2302.06675) 1; Scion (2502.07529) 1;
 * AdamW (1711.05101), NAdam 2; Adan (2208.06677) 4; MARS (2411.10438) on matrices with
 * AdamW 3, with Lion or Shampoo 2, AdamW on vectors; Muon (Jordan 2024) 1 on hidden
 * matrices, NorMuon (2510.05491) beside it one for each unit of the longer side, AdamW
 * elsewhere;
 * SOAP (2409.11321) on a matrix [m, n]: 2 mn + 2 m^2 + 2 n^2, a side above 10000 has no
 * preconditioner; on vectors 2. Basis rotation (2602.03515): the same on hidden
 * matrices, AdamW elsewhere. Shampoo (Meta's, without grafting): momentum, and for each
 * block of at most 1024 x 1024 a factor and its root for each side; what has no more
 * than 1024 elements is a vector, with one of each. */
#include <string.h>

#include "base/err.h"
#include "sim/work.h"

enum { SOAP_MAX_SIDE = 10000, SHAMPOO_BLOCK = 1024 };

static double soap_words(int64_t m, int64_t n)
{
    double x = (double)m, y = (double)n, sides = 0;
    if (m <= SOAP_MAX_SIDE) sides += 2 * x * x;
    if (n <= SOAP_MAX_SIDE) sides += 2 * y * y;
    return 2 + sides / (x * y);
}

/* 2 k^2 for each part of at most SHAMPOO_BLOCK that a length is cut into. */
static double factor_words(int64_t length)
{
    double whole = (double)(length / SHAMPOO_BLOCK),
           rest = (double)(length % SHAMPOO_BLOCK);
    return 2 * (whole * SHAMPOO_BLOCK * SHAMPOO_BLOCK + rest * rest);
}

static double shampoo_words(int64_t m, int64_t n)
{
    if (m <= 1 || m * n <= SHAMPOO_BLOCK) { /* a vector */
        int64_t length = m < 1 ? n : m * n;
        return 1 + (length ? factor_words(length) / (double)length : 0);
    }
    int64_t rows = (m + SHAMPOO_BLOCK - 1) / SHAMPOO_BLOCK,
            cols = (n + SHAMPOO_BLOCK - 1) / SHAMPOO_BLOCK;
    double words = (double)cols * factor_words(m) + (double)rows * factor_words(n);
    return 1 + words / ((double)m * (double)n);
}

int pl_optimizer_words(const char *optimizer, int64_t in, int64_t out, bool hidden,
                       double *words)
{
    static const struct {
        const char *name;
        double hidden, other, vector;
    } rules[] = {
        {"sgd", 1, 1, 1},     {"signum", 1, 1, 1},       {"lion", 1, 1, 1},
        {"scion", 1, 1, 1},   {"adamw", 2, 2, 2},        {"nadam", 2, 2, 2},
        {"nadamw", 2, 2, 2},  {"mars", 3, 3, 2},         {"mars-lion", 2, 2, 2},
        {"adan", 4, 4, 4},    {"mars-shampoo", 2, 2, 2}, {"muon", 1, 2, 2},
        {"normuon", 1, 2, 2},
    };
    if (!strcmp(optimizer, "soap")) {
        *words = in > 1 && out > 1 ? soap_words(in, out) : 2;
        return PL_OK;
    }
    if (!strcmp(optimizer, "basis-rotation")) {
        *words = hidden && in > 0 ? soap_words(in, out) : 2;
        return PL_OK;
    }
    if (!strcmp(optimizer, "shampoo")) {
        *words = shampoo_words(in, out);
        return PL_OK;
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].name, optimizer)) {
            *words = in == 0  ? rules[i].vector
                     : hidden ? rules[i].hidden
                              : rules[i].other;
            if (!strcmp(optimizer, "normuon") && hidden && in > 0)
                *words += 1. / (double)(in < out ? in : out);
            return PL_OK;
        }
    return pl_fail(
        PL_EUNSUP,
        "optimizer.name is '%s', whose state the memory model does not know, "
        "expected sgd, adamw, nadam, nadamw, muon, normuon, lion, signum, scion, mars, "
        "mars-lion, mars-shampoo, adan, soap, shampoo or basis-rotation",
        optimizer);
}
