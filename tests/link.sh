#!/bin/sh
# The program multiplies matrices with OpenBLAS, not with the reference cblas that comes along
# with GSL (29 times slower): the libraries are searched in the order that ldd prints. And it
# starts on a machine without CUDA.
. "$top_srcdir/tests/tap.sh"

# before A B: of the libraries on standard input, A is there and B is not before it.
before() {
    awk -v a="$1" -v b="$2" '
        index($1, b) == 1 && !found { early = 1 }
        index($1, a) == 1 { found = 1 }
        END { exit !found || early }'
}

if ! command -v ldd >/dev/null; then
    skip 'libraries of the program' 'no ldd'
else
    ldd "$PIPELAG" >"$work/libraries"
    before libopenblas libgslcblas <"$work/libraries"
    ok $? "OpenBLAS is found before GSL's reference cblas"
    ! grep -E 'libcu(da|dart|blas)' "$work/libraries"
    ok $? 'CUDA is not needed to start'
fi
printf 'libgslcblas.so.0 => x\nlibopenblas.so.0 => y\n' >"$work/wrong"
! before libopenblas libgslcblas <"$work/wrong"
ok $? 'the wrong order is noticed'
done_testing
