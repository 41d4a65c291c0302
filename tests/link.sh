#!/bin/sh
# The program multiplies matrices with OpenBLAS, not with the reference cblas that GSL's
# pkg-config file brings along (29 times slower), and starts on a machine without CUDA.
. "$top_srcdir/tests/tap.sh"

libraries() { ldd "$1" | grep -qE "$2"; }

if ! command -v ldd >/dev/null; then
    skip 'libraries of the program' 'no ldd'
else
    libraries "$PIPELAG" 'libopenblas'
    ok $? 'OpenBLAS is linked'
    ! libraries "$PIPELAG" 'gslcblas'
    ok $? "GSL's reference cblas is not"
    ! libraries "$PIPELAG" 'libcu(da|dart|blas)'
    ok $? 'CUDA is not needed to start'
    libraries "$PIPELAG" "libc\\."
    ok $? 'libraries are found by their names'
fi
done_testing
