#!/bin/sh
# `pipelag plan` as a command: a row can be run again, answers do not depend on the
# workers, limits are kept, errors name what would do.
. "$top_srcdir/tests/tap.sh"
cat >"$work/tiny.yaml" <<'END'
model: {layers: 8, hidden: 1024, heads: 8, kv_heads: 4, ffn: 4096, vocab: 32000}
END
cat >"$work/box.yaml" <<'END'
cluster:
  name: box
  levels: node:1 gpu:4
  links: ib-hdr nvlink3
  gpu: {name: small, bf16: 100, memory: 3 GiB, memory_bandwidth: 1000 GB/s}
END
plan() { # ARGS...
    "$PIPELAG" plan "$work/tiny.yaml" "$work/box.yaml" --gpus 8 --batch 16 --seq 512 "$@"
}
number() { # KEY: its first value in the JSON of $work/out
    grep -o "\"$1\": *[-0-9.e+]*" "$work/out" | head -n 1 | sed 's/.*: *//'
}
refused() { # TEXT ARGS...: one line on stderr, exit status 2
    text=$1
    shift
    run 2 "$@" && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -qF -- "$text" "$work/err" && return 0
    echo "# expected one line with: $text"
    sed 's/^/# /' "$work/err"
    return 1
}

run 0 plan && [ "$(sed -n '/^ *#/,/^$/p' "$work/out" | grep -c '^ *[0-9]')" -eq 10 ]
ok $? 'ten rows'
grep -q "^ *1 [a-z0-9]" "$work/out" && grep -q "^  2  +[0-9.]* %" "$work/out"
ok $? 'says why the runner-up loses'
grep -q '(node:2 gpu:4), 8 GPUs small' "$work/out"
ok $? 'one node is extended to the GPUs asked for'
grep -q 'whether the loss' "$work/out"
ok $? 'rows with old gradients are not called equal'
cp "$work/out" "$work/two"
run 0 plan --workers 1 && cmp -s "$work/out" "$work/two"
ok $? 'one worker prints the same'

run 0 plan --json && cp "$work/out" "$work/json"
ok $? '--json'
missing=0
for key in model cluster gpus batch seq_length limit_bytes gpu_bytes complete rows refused candidates; do
    grep -q "\"$key\":" "$work/json" || { echo "# no $key"; missing=1; }
done
ok $missing 'JSON has its members'
[ "$(grep -o '"rank"' "$work/json" | wc -l)" -eq 10 ]
ok $? 'and ten rows'
[ "$(grep -o '"step_s": *[0-9.e+-]*' "$work/json" | head -n 10 | sed 's/.*: *//' | sort -g | head -n 1)" = "$(grep -o '"step_s": *[0-9.e+-]*' "$work/json" | head -n 1 | sed 's/.*: *//')" ]
ok $? 'the first is the fastest'

for k in 1 2 5; do
    run 0 plan --yaml "$k" && cp "$work/out" "$work/row.yaml"
    run 0 "$PIPELAG" sim "$work/row.yaml" --json
    step=$(number step_s)
    want=$(grep -o '"step_s": *[0-9.e+-]*' "$work/json" | sed -n "${k}s/.*: *//p")
    [ -n "$step" ] && [ "$step" = "$want" ] || echo "# sim $step, plan $want"
    [ "$step" = "$want" ]
    ok $? "sim takes row $k and finds the same step"
done

run 0 plan --csv --max-tau 0 && [ "$(wc -l <"$work/out")" -gt 5 ] &&
    [ "$(tail -n +2 "$work/out" | cut -d, -f3 | sort -u)" = 1 ]
ok $? '--max-tau 0: synchronous rows alone, as CSV'
run 0 plan --schedules 1f1b,interleaved --csv && [ -z "$(tail -n +2 "$work/out" | cut -d, -f2 | grep -v -e 1f1b -e interleaved)" ]
ok $? '--schedules'
run 0 plan --set parallel.tp=2 --set parallel.recompute=full --csv &&
    [ "$(tail -n +2 "$work/out" | cut -d, -f4,13 | sort -u)" = 2,full ]
ok $? 'keys that are given are not searched'
run 0 plan --memory 0.5 --csv && tail -n +2 "$work/out" | awk -F, '$20 > 1.5 * 1073741824 { exit 1 }'
ok $? '--memory: no row needs more'
run 0 plan --all --top 40 --csv && [ "$(wc -l <"$work/out")" -eq 41 ]
ok $? '--all --top 40'
run 0 plan --memory 0.001 && grep -q '^OUT OF MEMORY: nothing fits' "$work/out" &&
    tr '\n' ' ' <"$work/out" | grep -q 'least memory: .* needs .* on  *device'
ok $? 'nothing fits: a result that says what comes closest'

refused "did you mean 'llama-3-8b'" "$PIPELAG" plan llama-3-8 dgx-h100
ok $? 'unknown model: the nearest is named'
refused "did you mean 'dgx-h100'" "$PIPELAG" plan llama-3-8b dgx-h10
ok $? 'unknown cluster: the nearest is named'
refused 'expected 8 or 12' "$PIPELAG" plan "$work/tiny.yaml" "$work/box.yaml" --gpus 10
ok $? 'GPUs that are no whole nodes'
refused "did you mean '1f1b'" plan --schedules 1f1
ok $? 'unknown schedule: the nearest is named'
refused 'no synchronous schedule' plan --schedules 2bw --max-tau 0
ok $? '--max-tau 0 leaves nothing'
refused 'no candidate' "$PIPELAG" plan "$work/tiny.yaml" "$work/box.yaml" --gpus 8 --batch 1 \
    --set schedule.stages=1 --set parallel.tp=1
ok $? 'a batch that does not divide'
refused 'plan does not take segments' plan --set 'segments=1f1b:2 2bw:3'
ok $? 'mixed runs are refused'
run 2 plan --yaml 1000 && [ ! -s "$work/out" ] && grep -q 'the plan has [0-9]* rows' "$work/err"
ok $? '--yaml beyond the table'
refused 'heads' plan --set model.heads=7
ok $? 'a model that is wrong in itself'

"$PIPELAG" plan "$work/tiny.yaml" "$work/box.yaml" --gpus 8 --batch 16384 --seq 512 --all --top 10000 \
    --workers 1 >"$work/out" 2>"$work/err" &
job=$!
sleep 1
kill -INT $job 2>/dev/null
wait $job
status=$?
[ $status -eq 130 ] && grep -q 'interrupted: the best of' "$work/err"
ok $? "an interrupted search says so (exit status $status)"
done_testing
