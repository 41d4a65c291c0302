#!/bin/sh
# pipelag cluster: presets, files, numbers in text and JSON, refusals in one line.
. "$top_srcdir/tests/tap.sh"
topo=$top_srcdir/tests/topo

# refused STATUS TEXT ARGS...: fails with one line that contains TEXT and prints nothing else.
refused() {
    want=$1 text=$2
    shift 2
    run "$want" "$PIPELAG" cluster "$@" && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -qF -- "$text" "$work/err" && [ ! -s "$work/out" ] && return 0
    echo "# expected one line with: $text"
    sed 's/^/# /' "$work/out" "$work/err"
    return 1
}

# has KEY VALUE: the JSON in $work/out has this text after the key, wherever it stands.
has() {
    tr -d ' \n' <"$work/out" | grep -qF -- "\"$1\":$2" && return 0
    echo "# no \"$1\": $2 in"
    sed 's/^/# /' "$work/out"
    return 1
}

run 0 "$PIPELAG" cluster &&
    [ "$(grep -cE '^(dgx-a100-80|dgx-h100|gb200-nvl72|rtx-4090-pcie|h20) ' "$work/out")" -eq 5 ]
ok $? 'the presets are listed'
run 0 "$PIPELAG" cluster dgx-h100 --levels 'rack:2 node:4 gpu:8' &&
    grep -q '^DGX H100: rack:2 node:4 gpu:8, 64 GPUs$' "$work/out" &&
    grep -q '^  GPU 0 to 8 *across node  *14 us  *47.50 .*node 0 port 0 out' "$work/out" &&
    grep -q '^  all 64 GPUs ' "$work/out"
ok $? 'a preset with levels of one'"'"'s own'
cp "$work/out" "$work/first"
run 0 "$PIPELAG" cluster dgx-h100 --levels 'rack:2 node:4 gpu:8' && cmp -s "$work/out" "$work/first"
ok $? 'same input, same bytes'
run 0 "$PIPELAG" cluster dgx-a100-80 --json --bytes 300MB --set cluster.achieved=1,1 \
    --set cluster.latency=0,1us && has n_gpus 8 && has bf16_flops 312000000000000 &&
    has memory_bytes 85899345920 && has time_s 0.0010009999999999999 &&
    has resources '[{"id":16,"name":"gpu0port0out","capacity":300000000000}'
ok $? 'JSON: 300 MB over 300 GB/s and 1 us take 1.001 ms'
run 0 "$PIPELAG" cluster "$topo/dgx1-v100.txt" && grep -q '^GPU0 .*NV2  40.0  SYS  12.0' "$work/out" &&
    grep -q 'node 0 nvlink 0 to 1' "$work/out"
ok $? 'a matrix of nvidia-smi'
run 0 "$PIPELAG" cluster "$topo/h100-nvswitch.xml" --json && has direct_nvlinks false &&
    has nics 8 && has port_bandwidth 50000000000 && has link '"nvlink4-nvls"'
ok $? 'an NCCL topology'
cp "$topo/dgx1-v100.txt" "$work/topo.log"
run 0 "$PIPELAG" cluster "$work/topo.log" --set cluster.preset=dgx-v100 \
    --set cluster.links='ib-edr pcie3' --json && has direct_nvlinks true &&
    has memory_bytes 34359738368
ok $? 'a topology under any name, the rest from a preset'
run 0 "$PIPELAG" cluster dgx-h100 --levels 'node:64 gpu:8' --set parallel.tp=8 --set parallel.dp=4 \
    --set parallel.ep=2 --set schedule.stages=16 &&
    grep -q '^placement tp-cp-ep-dp-pp: 512 ranks = TP 8 x CP 1 x DP 4 x PP 16; EP 2' "$work/out" &&
    grep -q '^edp *2 *16 *node ' "$work/out" && grep -q '^pp *16 *32 .*alone 720.4 us$' "$work/out"
ok $? 'a placement'
run 0 "$PIPELAG" cluster dgx-a100-80 --levels 'node:2 gpu:8' --set parallel.tp=8 --json \
    --set schedule.stages=2 --set cluster.ports='2 1' --set cluster.achieved='1 1' --bytes 25MB \
    --set cluster.latency=0,0 && has next_stage_s 0.0040000000000000001 &&
    has next_stage_alone_s 0.001 && has pp_stride 8
ok $? 'four ranks of a stage share a NIC'
printf 'cluster: {name: mine, levels: node:2 gpu:2, links: ib-hdr nvlink3}\n' >"$work/mine.yaml"
run 0 "$PIPELAG" cluster "$work/mine.yaml" && grep -q '^mine: node:2 gpu:2, 4 GPUs$' "$work/out"
ok $? 'a YAML file'

refused 2 "did you mean 'dgx-h100'" dgx-h10
ok $? 'unknown preset'
refused 2 "$work/none.yaml" "$work/none.yaml"
ok $? 'a file that is not there'
refused 2 "unknown link 'ib-nrd', did you mean 'ib-ndr'?" dgx-h100 --set cluster.links='ib-nrd nvlink4'
ok $? 'unknown link'
refused 2 '--levels: cluster.levels' dgx-h100 --levels node
ok $? 'bad levels'
run 0 timeout 20 "$PIPELAG" cluster dgx-h100 --levels 'rack:16 node:8192 gpu:8'
ok $? 'a million GPUs'
refused 2 '128 ranks, the cluster has 8 GPUs' dgx-h100 --set parallel.tp=8 --set schedule.stages=16
ok $? 'more ranks than GPUs'
refused 2 "unknown axis 'tb'" dgx-h100 --set parallel.tp=8 --set parallel.order=tb-cp-ep-dp-pp
ok $? 'bad order'
refused 2 '--bytes' dgx-h100 --bytes 3
ok $? 'bytes without a unit'
head -c 700 "$topo/dgx1-v100.xml" >"$work/cut.xml"
refused 2 "$work/cut.xml:" "$work/cut.xml"
ok $? 'truncated XML'
sed 's/NV2/NVX/' "$topo/dgx1-v100.txt" >"$work/bad.txt"
refused 2 "$work/bad.txt:2: GPU0 to GPU3: unknown link 'NVX'" "$work/bad.txt"
ok $? 'unknown kind of link'
printf 'cluster: {levels: gpu:2, wheels: 4}\n' >"$work/bad.yaml"
refused 2 "$work/bad.yaml:1:26: unknown key" "$work/bad.yaml"
ok $? 'unknown key'
printf '\177ELF' >"$work/elf"
refused 2 "$work/elf: no GPU0 and no XML" "$work/elf"
ok $? 'neither YAML nor topology'
if [ -c /dev/full ]; then
    "$PIPELAG" cluster dgx-h100 >/dev/full 2>"$work/err"
    [ $? -eq 1 ] && [ "$(wc -l <"$work/err")" -eq 1 ]
    ok $? 'stdout is full'
else
    skip 'stdout is full' 'no /dev/full'
fi
done_testing
