dnl PL_CUDA: find nvcc and cuBLAS for the device plugin pipelag-cuda.so.
dnl Sets NVCC, NVCCFLAGS, CUDA_ARCH, CUDA_LIBS and the conditional HAVE_CUDA.
AC_DEFUN([PL_CUDA], [
AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
    [build the CUDA device (default: auto, if nvcc is found)])],
  [], [with_cuda=auto])
AC_ARG_VAR([NVCC], [CUDA compiler command])
AC_ARG_VAR([NVCCFLAGS], [CUDA compiler flags])
AC_ARG_VAR([CUDA_ARCH],
  [value of nvcc -arch (default: that of this machine's GPU, else sm_90)])
pl_cuda=no
AS_IF([test "x$with_cuda" != xno], [
  AS_CASE([$with_cuda], [yes|auto], [pl_cuda_path=$PATH:/usr/local/cuda/bin],
    [pl_cuda_path=$with_cuda/bin])
  AC_PATH_PROG([NVCC], [nvcc], [], [$pl_cuda_path])
  AS_IF([test -n "$NVCC"], [
    pl_cuda_root=$(dirname "$(dirname "$NVCC")")
    pl_cuda_cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
    AS_CASE([$pl_cuda_cap], [''|*[[!0-9]]*], [pl_cuda_cap=90])
    : ${CUDA_ARCH=sm_$pl_cuda_cap} ${NVCCFLAGS=-O2 -g}
    AC_MSG_CHECKING([whether $NVCC compiles a kernel and links cuBLAS])
    AS_ECHO(['#include <cublas_v2.h>
__global__ void k(float *x) { *x = 1; }
extern "C" int f(float *x) { cublasHandle_t h; k<<<1,1>>>(x); return cublasCreate(&h); }']) > conftest.cu
    AS_IF([$NVCC $NVCCFLAGS -arch=$CUDA_ARCH -shared -Xcompiler -fPIC conftest.cu -o conftest.so -L$pl_cuda_root/lib64 -lcublas -lcublasLt >&AS_MESSAGE_LOG_FD 2>&1],
      [pl_cuda=$pl_cuda_root])
    AC_MSG_RESULT([$pl_cuda])
    rm -f conftest.cu conftest.so
  ])
  AS_IF([test "x$pl_cuda" != xno],
    [AC_SUBST([CUDA_LIBS], ["-L$pl_cuda/lib64 -Xlinker -rpath=$pl_cuda/lib64 -lcublas -lcublasLt"])],
    [test "x$with_cuda" != xauto],
    [AC_MSG_FAILURE([--with-cuda was given but CUDA does not work: see config.log])])
])
AC_SUBST([CUDA_ARCH])
AM_CONDITIONAL([HAVE_CUDA], [test "x$pl_cuda" != xno])
])
