#!/bin/sh
# pipelag sim: link semantics and times that vary, from keys to numbers; bad values.
. "$top_srcdir/tests/tap.sh"

# has KEY VALUE: the JSON in $work/out has this text after the key, wherever it stands.
has() {
    tr -d ' \n' <"$work/out" | grep -qF -- "\"$1\":$2" && return 0
    echo "# no \"$1\": $2 in"
    sed 's/^/# /' "$work/out"
    return 1
}
refused() {
    want=$1 text=$2
    shift 2
    run "$want" "$PIPELAG" sim "$@" || return 1
    [ "$(wc -l <"$work/err")" -eq 1 ] && grep -qF -- "$text" "$work/err" &&
        [ ! -s "$work/out" ] && return 0
    echo "# expected one line with: $text"
    sed 's/^/# /' "$work/out" "$work/err"
    return 1
}

costs="-P 4 -m 8 --set cost.forward=10ms --set cost.backward=20ms --set cost.weight=0"
costs="$costs --set link.time=1ms"
for row in latency:0.34599999999999997 occupancy:0.34599999999999997 \
    rendezvous:0.34899999999999998; do
    run 0 "$PIPELAG" sim $costs --set link.semantics=${row%:*} --json &&
        has link_semantics "\"${row%:*}\"" && has makespan_s "${row#*:}" && has jitter null
    ok $? "1F1B with ${row%:*} links: ${row#*:} s"
done
run 0 "$PIPELAG" sim $costs --set link.semantics=rendezvous --set link.time=1ms,1ms,16ms --json &&
    has makespan_s 0.48399999999999999
ok $? 'a slow link, blocking exchange: 484 ms'
run 0 "$PIPELAG" sim $costs --set link.semantics=rendezvous &&
    grep -qF 'rendezvous links' "$work/out" && grep -q '^makespan *349 ms *- ' "$work/out"
ok $? 'the heading names the semantics; no closed form of latency links beside it'
run 0 "$PIPELAG" sim -P 2 -m 2 --set link.send=2ms --json && has makespan_s 0.012999999999999999
ok $? "sender's part: (2 + 1) 3 ms and 2 ms each way"
band="--set link.bandwidth=1GB/s --set link.bytes=4MB"
run 0 "$PIPELAG" sim -P 2 -m 1 $band --json && has makespan_s 0.014 &&
    run 0 "$PIPELAG" sim -P 2 -m 1 $band --set link.semantics=contention --json &&
    has makespan_s 0.014
ok $? 'bytes over bandwidth are part of a transfer: (1 + 1 + 2 + 2) + 2 4 ms'
run 0 "$PIPELAG" sim --schedule gpipe -P 2 -m 3 $band --set link.semantics=contention -o "$work/t.h5" &&
    run 0 "$PIPELAG" sim --schedule gpipe -P 2 -m 3 $band --json && cp "$work/out" "$work/alone" &&
    run 0 "$PIPELAG" sim --schedule gpipe -P 2 -m 3 $band --set link.semantics=contention --json &&
    ! cmp -s "$work/out" "$work/alone"
ok $? 'messages in flight together take longer'

roof="--set cost.type=roofline --set model.preset=gpt-2-small --set cluster.preset=dgx-h100 -P 4 -m 8"
makespan() {
    sed -n 's/.*"makespan_s": \([0-9.e-]*\),$/\1/p' "$work/out" | head -1
}
run 0 "$PIPELAG" sim $roof --json && alone=$(makespan) &&
    run 0 "$PIPELAG" sim $roof --set link.semantics=contention --json && shared=$(makespan) &&
    has link_semantics '"contention"' && echo "# $alone $shared" &&
    awk "BEGIN { exit !($shared >= $alone && $shared < 1.5 * $alone) }"
ok $? 'contention on the routes of a cluster'

run 0 "$PIPELAG" sim --schedule pipedream -P 4 --set 'jitter.forward=lognormal 20%' \
    --set 'jitter.outages=2@10ms+5ms' --set jitter.slow=1:1.5 --set 'jitter.gradients=normal 1 ms' &&
    grep -qF 'Varies (seed 1): forward lognormal 20%, gradients normal 1 ms, device 1 x 1.5, device 2 out at 10 ms for 5 ms' \
        "$work/out" && grep -q '^step .* - ' "$work/out" && cp "$work/out" "$work/first" &&
    run 0 "$PIPELAG" sim --schedule pipedream -P 4 --set 'jitter.forward=lognormal 20%' \
        --set 'jitter.outages=2@10ms+5ms' --set jitter.slow=1:1.5 \
        --set 'jitter.gradients=normal 1 ms' && cmp -s "$work/out" "$work/first"
ok $? 'variation is printed, and the same seed gives the same bytes'
run 0 "$PIPELAG" sim -P 4 --set 'jitter.forward=gamma 10%' --json && has seed 1 &&
    has forward '{"distribution":"gamma","cv":0.1' && cp "$work/out" "$work/first" &&
    run 0 "$PIPELAG" sim -P 4 --set 'jitter.forward=gamma 10%' --set seeds=7 --json &&
    has seed 7 && ! cmp -s "$work/out" "$work/first"
ok $? 'another seed, another run'
run 0 "$PIPELAG" sim -P 2 -m 1 --set 'jitter.outages=0@500us+2ms' --json && has makespan_s 0.008
ok $? 'an outage: the forward that it hits starts anew, 6 + 0.5 + 2 - 0.5 ms'
run 0 "$PIPELAG" sim -P 3 -m 1 --set link.time=1ms --set jitter.slow_links=1:3 --json &&
    has makespan_s 0.017 && has slow_links '[1,3,1]' &&
    run 0 "$PIPELAG" sim -P 3 -m 1 --set link.time=1ms --set jitter.slow_links=1:3 &&
    grep -qx 'Varies: link 1 x 3' "$work/out"
ok $? 'a slow link: 9 ms + 2 (1 + 3) ms'

free="--schedule pipedream -P 4 --updates 200 --set schedule.order=free"
run 0 "$PIPELAG" sim $free --set 'jitter.forward=lognormal 20%' \
    --set 'jitter.backward=lognormal 20%' && grep -qF 'latency links, free order' "$work/out" &&
    grep -q '^ *1  0 x [0-9]*, 1 x [0-9]*, 2 x ' "$work/out" &&
    run 0 "$PIPELAG" sim $free --json && has order '"free"' &&
    has delay '{"min":3,"mean":3,"max":3,' && has delay '{"min":2,"mean":2,"max":2,'
ok $? 'free order: delays are distributions where times vary'
refused 2 'expected an asynchronous schedule' --set schedule.order=free
ok $? 'free order of a schedule that flushes'

refused 2 "'rendevous', did you mean 'rendezvous'" --set link.semantics=rendevous
ok $? 'unknown semantics'
refused 2 'contention needs link.bandwidth and link.bytes' --set link.semantics=contention
ok $? 'contention without bandwidth'
refused 2 'link.bandwidth is given without link.bytes' --set link.bandwidth=1GB/s
ok $? 'bandwidth without bytes'
refused 2 'link.bandwidth has 2 values, expected 1, 7 (a line) or 8 (a ring)' \
    --set link.bandwidth=1GB/s,2GB/s --set link.bytes=1kB
ok $? 'bandwidths of some links'
refused 2 "jitter.forward: 'lognormal' is no distribution" --set jitter.forward=lognormal
ok $? 'no spread'
refused 2 'jitter.slow: 8, expected 0 .. 7' --set jitter.slow=8:2
ok $? 'no such device'
refused 2 "jitter.slow_links: '2', expected NUMBER:FACTOR" --set jitter.slow_links=2
ok $? 'no factor'
refused 2 'jitter.* is given beside segments' --set 'segments=1f1b:2 2bw:9' --set 'jitter.forward=gamma 5%'
ok $? 'segments do not vary'
refused 2 'link.bandwidth is given beside cost.type: roofline' $roof --set link.bandwidth=1GB/s
ok $? "a cluster has its own links"
refused 1 'waits forever to send the gradient of microbatch 4 to stage 1' --schedule dualpipe -P 4 -m 8 --set link.semantics=rendezvous
ok $? 'a blocking exchange that cannot go on'
done_testing
