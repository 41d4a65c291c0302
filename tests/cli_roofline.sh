#!/bin/sh
# `pipelag sim` with costs from a model and a cluster.
. "$top_srcdir/tests/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sim() { # ARGS... of an 8B model on 32 H100
    "$PIPELAG" sim --schedule 1f1b -P 4 -m 16 --set cost.type=roofline \
        --set model.preset=llama-3-8b --set cluster.preset=dgx-h100 \
        --set 'cluster.levels=node:4 gpu:8' --set parallel.tp=2 --set parallel.sp=yes \
        --set parallel.dp=4 --set parallel.zero=1 --set parallel.seq_length=8192 "$@"
}
number() { # KEY: its first value in the JSON of $work/out
    grep -o "\"$1\": *[-0-9.e+]*" "$work/out" | head -n 1 | sed 's/.*: *//' 
}
holds() { # AWK-CONDITION
    awk "BEGIN { exit !($1) }"
}

sim --json >"$work/out"
ok $? 'runs'
mfu=$(number mfu) n6=$(number mfu_6n) tokens=$(number tokens_per_s_gpu) step=$(number step_s)
# tokens of an update: 16 x 8192 x 4 replicas, over 32 GPUs
holds "$tokens * $step * 32 / (16 * 8192 * 4) - 1 < 1e-6 && 1 - $tokens * $step * 32 / (16 * 8192 * 4) < 1e-6"
ok $? 'tokens/s/GPU is the tokens of an update over GPUs and step'
# 12 L d T / 6 N = 2 * 32 * 4096 * 8192 / (8030261248 - 4096 * 128256)
ratio=$(awk 'BEGIN { printf "%.12f", 1 + 2 * 32 * 4096 * 8192 / (8030261248 - 4096 * 128256) }')
holds "$mfu / $n6 / $ratio < 1.000001 && $mfu / $n6 / $ratio > .999999"
ok $? 'the two MFU differ by the attention flops'
holds "$mfu > .2 && $mfu < .7"
ok $? "MFU is that of a training run: $mfu"
grep -q '"verdict": *"fits"' "$work/out"
ok $? 'fits in 80 GiB'
sim --no-gantt | grep -q '^fits: device 0'
ok $? 'says so'
sim --no-gantt | grep -qF 'm 16 x b 1 x dp 4 sequences of 8192 tokens, 0.5243 M tokens' &&
    sim --no-gantt | grep -qF 'model of 8.03 G parameters; tp 2 sp, cp 1, ep 1, dp 4, ZeRO-1, recompute none'
ok $? 'says what the job is'
sim --no-gantt --set parallel.micro_batch=8 | grep -q '^OUT OF MEMORY: device 0 needs'
ok $? 'out of memory is a result that names device and bytes'
sim --json --set parallel.recompute=full >"$work/out"
holds "$(number step_s) > 1.15 * $step && $(number step_s) < 1.45 * $step"
ok $? 'full recomputation costs a forward more'
sim --json --schedule 2bw --set corrector.name=feedback >"$work/out"
holds "$(number versions) > 0 && $(number corrector) > 0"
ok $? '2bw with error feedback holds versions and a buffer'
sim --set model.split=balanced --json >"$work/out"
holds "$(number step_s) < $step"
ok $? 'a balanced split is faster than a uniform one with the head on top'
planned() { # ARGS... of a 13B model whose scores are stored: B frees most of them
    "$PIPELAG" sim --json --schedule zb-1p -P 8 -m 24 --set cost.type=roofline \
        --set model.preset=gpt-3-13b --set cluster.preset=dgx-a100-80 \
        --set "cluster.levels=node:8 gpu:8" --set parallel.tp=4 --set parallel.sp=yes \
        --set parallel.flash=no "$@" >"$work/out"
}
planned
share=$(number bubble_parallelogram)
planned --set schedule.released=0
holds "$share < $(number bubble_parallelogram)"
ok $? "a planner knows from the model what B frees: $share, $(number bubble_parallelogram)"
sim -o "$work/t.h5" --no-gantt >/dev/null && "$PIPELAG" trace check "$work/t.h5" >/dev/null &&
    "$PIPELAG" trace dump "$work/t.h5" /arms/1f1b/memory >"$work/out" && [ "$(wc -l <"$work/out")" -gt 60 ]
ok $? 'the trace has memory over time'

refused() { # TEXT ARGS...
    text=$1
    shift
    sim "$@" >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -qF -- "$text" "$work/err" && return 0
    echo "# expected one line with: $text"
    sed 's/^/# /' "$work/err"
    return 1
}
refused "set cluster.levels, such as 'node:8 gpu:8'" --set parallel.dp=8
ok $? 'more GPUs than the cluster has: the levels that would do'
refused 'cost.forward is given beside' --set cost.forward=1ms
ok $? 'given costs beside a roofline'
refused 'cluster.gpu.bf16' --set cluster.gpu.bf16=0
ok $? 'a GPU without a peak'
refused 'parallel.tp' --set parallel.tp=3
ok $? 'heads that tp does not divide'
refused 'dgx-h100' --set cluster.preset=dgx-h10
ok $? 'the nearest cluster is named'
done_testing
