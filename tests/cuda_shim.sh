#!/bin/sh
# The CUDA device without a GPU: the loader's complaints, then gpu/cuda*.cu compiled by g++
# over tests/cuda_shim.h as a plugin that runs on the CPU, through the conformance suite in
# several orders of the threads; a planted bug in a kernel must be found.
. "$top_srcdir/tests/tap.sh"
PIPELAG_PLUGIN_PATH=$work/plugin
export PIPELAG_PLUGIN_PATH
CXX=${CXX:-g++}
plugin=$work/plugin/pipelag-cuda.so
mkdir "$work/plugin"

# refused TEXT: the plugin is not used, for this reason, in one line.
refused() {
    run 0 tests/test_cuda && [ "$(wc -l <"$work/out")" -eq 1 ] &&
        grep -q "^1\.\.0 # SKIP device cuda: " "$work/out" && grep -qF -- "$1" "$work/out"
}

echo 'no shared object' >"$plugin"
refused "$plugin"
ok $? 'a file that is no shared object'
if ! command -v "$CXX" >/dev/null; then
    skip 'the kernels on the CPU' "no $CXX"
    done_testing
    exit
fi
rm "$plugin"

flags="-std=c++17 -O1 -Wall -Wextra -Wno-unknown-pragmas -Werror -fPIC -fvisibility=hidden"
if ldd tests/test_cuda | grep -q libasan; then
    flags="$flags -g -fsanitize=address,undefined"
else # what is read in pieces of 16 bytes is aligned so
    flags="$flags -fsanitize=alignment -fsanitize-undefined-trap-on-error"
fi
# unit OBJECT FLAGS... SOURCE: one file of the device over the shim.
unit() {
    object=$1
    shift
    # shellcheck disable=SC2086
    "$CXX" $flags -DCUDA_SHIM -include "$top_srcdir/tests/cuda_shim.h" -x c++ \
        -c -o "$object" "$@"
}
# conformance FOLDER, flash FOLDER: a suite with the objects of a folder, answers in FOLDER/out.
# shellcheck disable=SC2086
conformance() {
    "$CXX" $flags -shared -Wl,-z,defs -o "$1/pipelag-cuda.so" "$1"/cuda*.o &&
        PIPELAG_PLUGIN_PATH=$1 tests/test_cuda >"$1/out" 2>"$1/err"
}
# shellcheck disable=SC2086
flash() {
    "$CXX" $flags -o "$1/flash" "$work/flash.o" "$1"/cuda*.o && "$1/flash" >"$1/out" 2>&1
}
# moe FOLDER: the tests of mixtures of experts, on the device of conformance's plugin.
moe() {
    # shellcheck disable=SC2086
    "$CXX" $flags -shared -Wl,-z,defs -o "$1/pipelag-cuda.so" "$1"/cuda*.o &&
        PIPELAG_PLUGIN_PATH=$1 tests/test_moe >"$1/out" 2>&1
}
# two COMMAND...: behind the script's back, two at a time; then `wait`.
jobs=0
two() {
    "$@" &
    jobs=$((jobs + 1))
    [ $((jobs % 2)) -ne 0 ] || wait
}

# small CODE [LIBRARY]: a plugin that is not ours.
small() {
    echo "$1" >"$work/small.cc" && "$CXX" -shared -fPIC -o "$plugin" "$work/small.cc" $2
}
small 'int x;' && refused 'no symbol pl_plugin'
ok $? 'a shared object that is no plugin'
small 'extern "C" unsigned pl_plugin() { return 7 << 16 | 9; }' && refused 'ABI 7.9'
ok $? 'a plugin of another ABI'
echo 'extern "C" int f() { return 1; }' >"$work/f.cc"
"$CXX" -shared -fPIC -o "$work/libabsent.so" "$work/f.cc" &&
    small 'extern "C" int f(); int g() { return f(); }' "-L$work -Wl,--no-as-needed -labsent" &&
    refused 'libabsent.so: cannot open shared object file'
ok $? 'a library that the plugin needs is missing'

for source in "$top_srcdir"/gpu/cuda*.cu; do
    two unit "$work/plugin/$(basename "$source" .cu).o" -I"$top_srcdir" "$source"
done
two unit "$work/flash.o" -I"$top_srcdir" "$top_srcdir/tests/cuda_flash.cc"
wait
SHIM_DEVICES=0 conformance "$work/plugin"
ok $? "gpu/cuda*.cu compile with $CXX"
SHIM_DEVICES=0 refused 'no GPU (driver for CUDA 13.0, built for CUDA 13.0)'
ok $? 'no GPU: one line with the versions'
SHIM_OLD_GPU=80 refused 'has no code for sm_80; configure CUDA_ARCH=sm_80'
ok $? 'a GPU that the code was not compiled for'
! SHIM_SHARED_KIB=99 flash "$work/plugin" &&
    grep -q 'attention_back needs 129 KiB of shared memory a block' "$work/plugin/out"
ok $? 'a GPU with less shared memory'
# in_order SUITE ORDER: of the threads of a block.
in_order() {
    mkdir "$work/$1.$2" && cp "$work"/plugin/*.o "$work/$1.$2" &&
        SHIM_ORDER=$2 "$1" "$work/$1.$2" && echo passed >"$work/$1.$2/passed"
}
for order in forward reverse 1 2 3; do
    two in_order conformance $order
    two in_order flash $order
done
wait
for order in forward reverse 1 2 3; do
    d=$work/conformance.$order
    [ -e "$d/passed" ] && ! grep -q '^not ok' "$d/out" && [ "$(grep -c '^ok' "$d/out")" -ge 15 ]
    ok $? "conformance, threads in order: $order"
    grep '^not ok' "$d/out" | sed 's/^/# /'
done
# Attention in bf16 on tensor cores, against its formulas; the same bits in every order.
for order in forward reverse 1 2 3; do
    d=$work/flash.$order
    [ -e "$d/passed" ] && grep . "$d/out" >>"$work/hashes"
    ok $? "attention in bf16, threads in order: $order"
    sed 's/^/# /' "$d/out"
done
[ "$(sort -u "$work/hashes" | wc -l)" -eq 1 ]
ok $? 'attention in bf16: the same bits in every order'

# Mixtures of experts in a net: loads stay on the device.
moe "$work/plugin"
ok $? 'mixtures of experts agree with ref, and their stages are captured and replayed'

# tools/gpu-check, all of it that needs no GPU, with this plugin in the place of nvcc's.
mkdir -p "$work/state/pack"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$PIPELAG" >"$work/state/pack/pipelag"
for test in test_cuda test_moe; do
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$PWD/tests/$test" >"$work/state/pack/$test"
done
chmod +x "$work"/state/pack/*
echo test >"$work/state/pack/commit"
gpu_check() {
    run "$1" sh "$top_srcdir/tools/gpu-check" --plugin "$plugin" --small --seconds 900 \
        --state "$work/state" "$work/results"
}
gpu_check 0 && for part in build conformance parity bench delay muon profile experiment; do
    grep -q "^$part  *passed" "$work/results/result.txt" || echo "# $part"
done >"$work/missing" && [ ! -s "$work/missing" ] && [ -s "$work/results/experiment.h5" ] &&
    grep -q '^parity: cuda fp32 .* (limit 0.0001)$' "$work/results/result.txt" &&
    grep -q '^bench moe .* tokens/s, MFU ' "$work/results/result.txt" &&
    tail -n 1 "$work/results/result.txt" | grep -q '^muon+2bw-ef '
ok $? 'gpu-check: training on host and cuda agrees, and every part passes'
gpu_check 0 && [ "$(grep -c 'passed (before)' "$work/out")" -eq 8 ]
ok $? 'gpu-check: what has passed is not repeated'
rm "$work/state/muon.status"
run 1 sh "$top_srcdir/tools/gpu-check" --plugin "$plugin" --small --seconds 4 \
    --state "$work/state" "$work/results" && grep -q '^muon  *not run: no time is left' "$work/out"
ok $? 'gpu-check: no time is left'
rm "$work"/state/*.status
SHIM_DEVICES=0 gpu_check 1 && [ "$(grep -c 'SKIP no device: no GPU' "$work/out")" -eq 10 ]
ok $? 'gpu-check: no GPU'

# train.device auto: cuda where there is one, else host with its reason.
printf '%s\n' 'title: auto' 'data: {source: grammar}' 'model: {layers: 2, hidden: 16, heads: 1, ffn: 8}' \
    'train: {updates: 2, batch: 2, seq: 8, eval_sequences: 1}' \
    'schedule: {stages: 2, microbatches: 2}' >"$work/auto.yaml"
losses_on() { # DEVICE TRACE
    run 0 "$PIPELAG" run --force --set train.device="$1" -o "$work/$2.h5" "$work/auto.yaml" &&
        "$PIPELAG" trace dump "$work/$2.h5" /arms/run/seeds/1/rows | cut -d, -f3 >"$work/$2.loss"
}
losses_on host host && SHIM_DEVICES=0 losses_on auto none &&
    [ "$(grep -c 'train.device auto is host: device cuda: no GPU' "$work/err")" -eq 1 ] &&
    cmp -s "$work/host.loss" "$work/none.loss"
ok $? 'train.device auto without a GPU: host, and one line why'
losses_on cuda cuda && losses_on auto auto && ! grep -q 'auto is host' "$work/err" &&
    cmp -s "$work/cuda.loss" "$work/auto.loss" && ! cmp -s "$work/host.loss" "$work/auto.loss"
ok $? 'train.device auto with one: cuda'
# a run that began on the host does not go on elsewhere
stopped='--set train.checkpoint_updates=1 --set train.updates=100000'
# shellcheck disable=SC2086
SHIM_DEVICES=0 "$PIPELAG" run --set train.device=auto $stopped -o "$work/part.h5" "$work/auto.yaml" >/dev/null 2>&1 &
pid=$!
n=0
until [ -e "$work/part.h5.ckpt/run-1.ckpt" ] || [ $n -gt 200 ]; do sleep 0.1; n=$((n + 1)); done
kill -TERM $pid
wait $pid
# shellcheck disable=SC2086
run 2 "$PIPELAG" run --set train.device=auto $stopped -o "$work/part.h5" --resume "$work/auto.yaml" &&
    grep -q 'part.h5.ckpt/run-1.ckpt: checkpoint is of another run' "$work/err"
ok $? 'train.device auto that is another device than before: not resumed'

# planted NAME FILE SED [ORDER]: with this change of gpu/FILE the suite must fail.
n=0
planted() {
    n=$((n + 1))
    mkdir -p "$work/planted.$n/gpu"
    echo "$1" >"$work/planted.$n/name"
    two plant "$work/planted.$n" "$2" "$3" "$suite" "${4-forward}"
}
plant() { # FOLDER FILE SED SUITE ORDER
    cp "$work"/plugin/*.o "$1"
    sed "$3" "$top_srcdir/gpu/$2" >"$1/gpu/$2"
    unit=$2
    case $unit in
    cuda_flash.cuh) unit=cuda_flash.cu ;;
    cuda_groups.cuh) unit=cuda_groups_mma.cu ;;
    *.cuh) unit=cuda_point.cu ;;
    esac
    [ -e "$1/gpu/$unit" ] || cp "$top_srcdir/gpu/$unit" "$1/gpu/$unit"
    ! cmp -s "$1/gpu/$2" "$top_srcdir/gpu/$2" &&
        unit "$1/${unit%.cu}.o" -I"$1" -I"$top_srcdir" "$1/gpu/$unit" &&
        ! SHIM_ORDER=$5 "$4" "$1" && grep -qE '^not ok|expected' "$1/out" && echo found >"$1/found"
}
suite=conformance
planted 'no barrier before the sums of the warps are read' cuda_device.cuh \
    '/^static __device__ inline double pl_block_sum/,/^}/{/__syncthreads();$/d}'
planted 'no barrier after tiles of keys and values are loaded' cuda_attention.cu \
    '/attention_kernel(struct/,/^}/{/^        __syncthreads();$/d}'
planted 'no barrier before the sums over rows are added' cuda_norm.cu \
    '/norm_back_kernel(struct/,/^}/{/__syncthreads();/d}'
planted 'the sums over rows lack those of one warp' cuda_norm.cu \
    's/for (int w = 0; w < warps; w++) sum/for (int w = 1; w < warps; w++) sum/'
planted 'a row ends one element too early' cuda_norm.cu \
    '/float row_mean(/,/^}/s/c < s.d; /c < s.d - 1; /'
planted 'a run of tokens over an edge is added twice' cuda_rows.cu \
    's/if (from_start && token_at.*return;//'
planted 'a sort that is not stable' cuda_sort.cu \
    's/(1u << lane) - 1/~0u << lane << 1/'
planted 'bf16 rounded down' cuda_real.cuh \
    's/__float2bfloat16(value)/__float2bfloat16(value * (1 - 0x1p-8f))/'
planted 'a query sees the next key' cuda_attention.cu \
    's/j0 + pl_lane() <= t/j0 + pl_lane() <= t + 1/'
planted 'a product adds to what its result held, not to the addend' cuda_product.cu \
    's/addend ? addend : c, /c, /'
planted 'a product leaves out its bias' cuda_product.cu \
    's/if (bias) z = w + n;//; s/in, out, bias,$/in, out, false,/'
planted 'groups: no barrier after tiles have come' cuda_groups_mma.cu \
    '/__syncthreads(); .. all see/d'
planted 'groups: the tiles of a step may still be on their way' cuda_groups_mma.cu \
    's/<K::STAGES - 2>/<K::STAGES - 1>/'
planted 'groups: a group has no tile for the rows behind an edge' cuda_groups.cuh \
    's/end_row \/ step + e : e/end_row \/ step + e - (end_row > step) : e/'
planted 'groups: rows of other groups are in a gradient' cuda_groups_mma.cu \
    's/DW ? t.rows : f.a_ld/DW ? p.g.rows - t.first : f.a_ld/'
suite=moe
planted 'what was captured is not issued again' cuda_stream.cu \
    '/\*done = true/,/}/s/cudaGraphLaunch(g->exec, pl_cuda.stream)/cudaSuccess/'
suite=conformance
planted 'memory is cleared after it was written by another stream' cuda.cu \
    's/rc = ordered(cudaMemsetAsync/rc = pl_cuda_check(cudaMemsetAsync/'
planted 'a result is read before it is there' cuda.cu \
    's/if (status == cudaSuccess) status = cudaStreamSynchronize.*;//'
planted 'data sent ahead are not waited for' cuda_stream.cu \
    '/status = cudaStreamWaitEvent/d' reverse
planted 'data sent ahead are overwritten before they are sent' cuda_stream.cu \
    '/cudaEventSynchronize(s->sent), "prefetch"/d' reverse
planted 'a graph is captured with memory allocated in it' cuda_vector.cu \
    '/^int pl_cuda_axpby/,/^}/s/if (!n) return 0;/void *p; int rc = pl_cuda_check(cudaMalloc(\&p, 1), "p"); if (rc) return rc;/'
planted 'a kernel gets a pointer of the host' cuda_vector.cu \
    's/n, pl_cuda.partial, 0.0, total)/n, out, 0.0, total)/'
suite=flash
planted 'more than 48 KiB of shared memory are not asked for' cuda_flash.cu \
    's/int rc = pl_cuda_shared(.*);/int rc = 0;/'
planted 'forward: no barrier after a tile has come' cuda_flash.cu \
    '/flash_kernel(struct/,/^}/{/__syncthreads();/d}'
planted 'forward: a tile is not waited for' cuda_flash.cu '/pl_copy_wait();/d'
planted 'forward: a query sees the next key' cuda_flash.cuh 's/: q > r)/: q > r + 1)/'
planted 'forward: a row is stored before all lanes have read the tile' cuda_flash.cuh \
    '/flash_store(/,/^}/{/__syncwarp();/d}'
planted 'forward: the result is not scaled down as the maximum grows' cuda_flash.cu \
    '/o\[i\]\[n\]\[2 \* h\] \*= shrink/d'
planted 'backward: no barrier after a tile has come' cuda_flash_back.cu \
    '/flash_back_kernel(struct/,/^}/{/__syncthreads();/d}'
planted 'backward: keys see one head of their group' cuda_flash_back.cu \
    's/y.head + group :/y.head + 1 :/'
planted 'backward: statistics are not waited for' cuda_flash_back.cu \
    '/pl_copy_wait();/d'
wait
for i in $(seq $n); do
    [ -e "$work/planted.$i/found" ]
    ok $? "found: $(cat "$work/planted.$i/name")"
done
done_testing
