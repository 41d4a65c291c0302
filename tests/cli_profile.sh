#!/bin/sh
# pipelag profile: its table, its cost table read back by sim, bad input.
. "$top_srcdir/tests/tap.sh"
small='--set model.layers=4 --set model.hidden=16 --set model.heads=2 --set model.kv_heads=1
    --set model.ffn=24 --set train.batch=8 --set train.seq=16 --set train.threads=1 --repeat 3'
cd "$work" || exit 1

# profile STATUS ARGUMENTS...
profile() {
    status=$1
    shift
    # shellcheck disable=SC2086
    run "$status" "$PIPELAG" profile $small "$@"
}

SOURCE_DATE_EPOCH=86400 profile 0 -P 2 -m 4 -o p.csv && [ "$(grep -vc '^#' p.csv)" -eq 3 ] &&
    grep -qx 'stage,forward \[ms\],backward \[ms\],weight \[ms\],update \[ms\]' p.csv &&
    grep -q '^# pipelag profile [0-9.]*, 1970-01-02$' p.csv && grep -q '^# device: host' p.csv &&
    grep -qx '# precision: fp32' p.csv && grep -q "link.bytes='2048 B'\$" p.csv &&
    ! grep '^[0-9]' p.csv | grep -q ',0\.000000000'
ok $? 'a cost table: one row a stage, no time is 0, the head says whose'
grep -q '^product dw *W *68 ' out && grep -q '^attention_back *B *16 ' out &&
    grep -q '^adamw *U' out && grep -q ' [0-9]* tokens/s,$' out && grep -q '^MFU [0-9]' out
ok $? 'operations of an update, with their calls'

# sum FACTOR FILE: m (F + B + W) + U of all rows, in ps
sum() {
    awk -F, -v m="$1" '/^[0-9]/ { s += m * ($2 + $3 + $4) + $5 } END { printf "%.0f\n", s * 1e9 }' "$2"
}
# step ARGUMENTS...: what sim makes of it, in ps
step() {
    run 0 "$PIPELAG" sim --json --no-gantt "$@" || return 1
    sed -n 's/.*"makespan_s": \([0-9.e-]*\).*/\1/p' out | head -n 1 |
        awk '{ printf "%.0f\n", $1 * 1e12 }'
}
profile 0 -P 1 -m 4 -o one.csv --force
[ "$(step -P 1 -m 4 --updates 1 --set cost.profile=one.csv)" = "$(sum 4 one.csv)" ]
ok $? '1F1B on one stage takes the sum of the table'
longest=$(step -P 2 -m 4 --updates 1 --set cost.profile=p.csv)
[ "$longest" -gt 0 ] && [ "$longest" -lt "$(sum 4 p.csv)" ]
ok $? 'on two stages less than the sum'
"$PIPELAG" sim -P 2 -m 4 --set cost.profile=p.csv --set link.bandwidth='1 MB/s' \
    --set link.bytes='2048 B' --no-gantt >slow && ! cmp -s out slow
ok $? 'with links, as the head of the table says'

chunks='-P 2 -m 4 --schedule interleaved --set schedule.chunks=2'
# shellcheck disable=SC2086
profile 0 $chunks -o chunks.csv && [ "$(grep -c '^[0-9]' chunks.csv)" -eq 4 ] &&
    run 0 "$PIPELAG" sim --no-gantt $chunks --set cost.profile=chunks.csv
ok $? 'one row a chunk'

profile 0 -P 2 -m 4 --json && grep -q '"update_s"' out && grep -q '"operation": "product dw"' out &&
    python3 -c 'import json; json.load(open("out"))' 2>/dev/null
[ $? -eq 0 ] || { grep -q '"update_s"' out && ! command -v python3 >/dev/null; }
ok $? '--json'
profile 0 -P 2 -m 4 --device ref && grep -q '^ref' out
ok $? '--device ref'
profile 0 -P 2 -m 2 --set model.experts=4 --set model.experts_per_token=2 &&
    grep -q '^combine_back *B' out && grep -q '^route *F' out
ok $? 'a mixture of experts'
profile 0 -P 4 -m 4 --schedule pipedream --set corrector.name=feedback --set model.norm=layernorm
ok $? 'delays, a corrector, LayerNorm'
profile 0 -P 1 -m 1 --set cluster.preset=dgx-h100 && grep -q 'Tflop/s (cluster.gpu.fp32)' out &&
    grep -q 'GB/s (cluster.gpu.memory_bandwidth)' out && ! grep -q warning err
ok $? 'peaks of a cluster'

# refused STATUS TEXT ARGUMENTS...: one line, no output.
refused() {
    code=$1 text=$2
    shift 2
    rm -f bad.csv
    profile "$code" -o bad.csv "$@" && [ "$(grep -c '' err)" -eq 1 ] && grep -qF -- "$text" err &&
        [ ! -e bad.csv ]
    ok $? "refused: $text"
}
refused 2 'did you mean' --device hots
refused 2 'expected 1 to 10000' --repeat 0
refused 2 'cannot be cut into m = 3' -P 2 -m 3
refused 2 'expected model' -P 1 -m 1 --set problem.name=quadratic
refused 2 'is no rate' -P 1 -m 1 --set cluster.gpu.memory_bandwidth=fast
profile 2 -o . && grep -q 'is a folder' err && profile 2 -o . --force && grep -q 'is a folder' err
ok $? 'a folder for an output'
SOURCE_DATE_EPOCH=9999999999999999999 profile 0 -P 1 -m 1 -o day.csv && grep -qx '# pipelag profile [0-9.]*' day.csv
ok $? 'a date that no calendar has'
run 2 "$PIPELAG" sim -P 3 -m 4 --set cost.profile=p.csv && grep -q 'p.csv: cost.forward has 2 values, expected 1 or 3' err &&
    run 2 "$PIPELAG" sim -P 1 -m 4 --set cost.profile=p.csv && grep -q 'p.csv: .*expected 1 on one stage' err
ok $? 'a cost table for another number of stages'
echo old >bad.csv
profile 2 -o bad.csv && grep -q 'bad.csv: exists, --force' err && [ "$(cat bad.csv)" = old ]
ok $? 'an output that exists is kept'
profile 1 -o no/such/x.csv && grep -q 'no/such' err
ok $? 'an output in no folder'

# interrupted while it measures: nothing is left
# shellcheck disable=SC2086
"$PIPELAG" profile $small -P 2 --repeat 10000 -o bad2.csv >out 2>err &
pid=$!
sleep 1
kill -TERM $pid
wait $pid 2>/dev/null
[ $? -eq 143 ] && [ ! -e bad2.csv ] && [ -z "$(find . -name '*.tmp-*')" ]
ok $? 'terminated: no output'
done_testing
