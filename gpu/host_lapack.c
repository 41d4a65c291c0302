/* The door to LAPACK. Its Fortran interface is declared here: Debian's OpenBLAS has the
 * routines but not the C header. Strings carry a hidden length at the end.
 * Source: LAPACK Users' Guide, 3rd ed.; Cuppen 1981 (divide and conquer). */
#include "gpu/host_lapack.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "base/err.h"
#include "base/mem.h"
#include "gpu/host.h"

void ssyevd_(const char *job, const char *half, const int *n, float *a, const int *lda,
             float *w, float *work, const int *lwork, int *iwork, const int *liwork,
             int *info, size_t job_length, size_t half_length);
void dsyevd_(const char *job, const char *half, const int *n, double *a, const int *lda,
             double *w, double *work, const int *lwork, int *iwork, const int *liwork,
             int *info, size_t job_length, size_t half_length);
void sgeqrf_(const int *m, const int *n, float *a, const int *lda, float *tau,
             float *work, const int *lwork, int *info);
void sorgqr_(const int *m, const int *n, const int *k, float *a, const int *lda,
             const float *tau, float *work, const int *lwork, int *info);

enum { PANEL = 64 }; /* columns that QR's blocked form wants work space for */

static once_flag once = ONCE_FLAG_INIT;

static void one_thread(void)
{
    openblas_set_num_threads(1);
}

/* True when every number is finite; else all become NaN. */
static bool finite_or_nan(size_t n, float *x)
{
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) bad += !isfinite(x[i]);
    for (size_t i = 0; i < n && bad; i++) x[i] = NAN;
    return !bad;
}

/* ssyevd's and dsyevd's work space, which both want by the same formula. */
static size_t eigen_work(int n)
{
    return 1 + 6 * (size_t)n + 2 * (size_t)n * (size_t)n;
}

size_t pl_eigen_bytes(int n)
{
    const size_t side = (size_t)n, eigen = side * side + eigen_work(n) + 3 + 5 * side,
                 qr = (PANEL + 1) * side;
    return sizeof(float) * (eigen > qr ? eigen : qr);
}

static int eigen_in_double(int n, const float *A, double *out, double *values,
                           int *iwork, int liwork)
{
    const size_t size = (size_t)n * (size_t)n;
    const int lwork = (int)eigen_work(n);
    double *work = PL_NEW(lwork, double);
    int info = 0;
    for (size_t i = 0; i < size; i++) out[i] = A[i];
    dsyevd_("V", "U", &n, out, &n, values, work, &lwork, iwork, &liwork, &info, 1, 1);
    free(work);
    return info;
}

static int retry(int n, float *A, float *values, int *iwork, int liwork)
{
    const size_t size = (size_t)n * (size_t)n;
    double *wide = PL_NEW(size, double), *top = PL_NEW(n, double);
    int info = eigen_in_double(n, A, wide, top, iwork, liwork);
    for (size_t i = 0; i < size && !info; i++) A[i] = (float)wide[i];
    for (int i = 0; i < n && !info; i++) values[i] = (float)top[i];
    free(wide);
    free(top);
    return info;
}

/* LAPACK's ascending order turned round. */
static void turn(int n, float *A, float *values)
{
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        float keep = values[i], *x = A + (size_t)i * (size_t)n,
              *y = A + (size_t)j * (size_t)n;
        values[i] = values[j];
        values[j] = keep;
        for (int k = 0; k < n; k++) {
            keep = x[k];
            x[k] = y[k];
            y[k] = keep;
        }
    }
}

int pl_eigen(int n, float *A, float *values)
{
    const size_t size = (size_t)n * (size_t)n;
    assert(n <= PL_EIGEN_MOST);
    const int lwork = (int)eigen_work(n), liwork = 3 + 5 * n;
    call_once(&once, one_thread);
    if (!finite_or_nan(size, A)) {
        for (int i = 0; i < n; i++) values[i] = NAN;
        return 0;
    }
    /* the matrix is overwritten, also where it fails: it is kept for the retry */
    float *kept = pl_host_scratch(size + (size_t)lwork + (size_t)liwork);
    float *work = kept + size;
    int *iwork = (int *)(work + lwork), info = 0;
    memcpy(kept, A, sizeof *kept * size);
    ssyevd_("V", "U", &n, A, &n, values, work, &lwork, iwork, &liwork, &info, 1, 1);
    if (info) {
        memcpy(A, kept, sizeof *A * size);
        info = retry(n, A, values, iwork, liwork);
    }
    if (info)
        return pl_fail(PL_EDEVICE,
                       "eigenvectors of a %d x %d matrix: LAPACK's dsyevd says %d", n,
                       n, info);
    turn(n, A, values);
    return 0;
}

int pl_orthonormalize(int n, float *X)
{
    const int lwork = PANEL * n;
    int info = 0;
    call_once(&once, one_thread);
    if (!finite_or_nan((size_t)n * (size_t)n, X)) return 0;
    float *tau = pl_host_scratch((size_t)n + (size_t)lwork), *work = tau + n;
    sgeqrf_(&n, &n, X, &n, tau, work, &lwork, &info);
    if (!info) sorgqr_(&n, &n, &n, X, &n, tau, work, &lwork, &info);
    return info ? pl_fail(PL_EDEVICE, "QR of a %d x %d matrix: LAPACK says %d", n, n,
                          info)
                : 0;
}
