#!/bin/sh
# pipelag sim: numbers in text and JSON, and bad input: one line, the right exit status, no
# file left behind.
. "$top_srcdir/tests/tap.sh"

# refused STATUS TEXT ARGS...: fails with one line that contains TEXT and prints nothing else.
refused() {
    want=$1 text=$2
    shift 2
    run "$want" "$PIPELAG" sim "$@" -o "$work/trace.h5" || return 1
    [ "$(wc -l <"$work/err")" -eq 1 ] && grep -qF -- "$text" "$work/err" &&
        [ ! -s "$work/out" ] && [ -z "$(ls "$work" | grep trace)" ] && return 0
    echo "# expected one line with: $text"
    sed 's/^/# /' "$work/out" "$work/err"
    ls "$work" | sed 's/^/# /'
    return 1
}

# has KEY VALUE: the JSON in $work/out has this text after the key, wherever it stands.
has() {
    tr -d ' \n' <"$work/out" | grep -qF -- "\"$1\":$2" && return 0
    echo "# no \"$1\": $2 in"
    sed 's/^/# /' "$work/out"
    return 1
}

paper="-P 16 -m 256 --set cost.forward=11.325ms --set cost.backward=19.417ms"
paper="$paper --set cost.weight=0 --set link.time=.378ms"

run 0 "$PIPELAG" sim --schedule 1f1b $paper --json && has makespan_s 8.523106 &&
    has schedule '"1f1b"' && has P 16 && has m 256 && has updates 1
ok $? '1F1B of the ZB paper costs: 8523.106 ms'
run 0 "$PIPELAG" sim --schedule 2bw -P 4 -m 6 --json && has bubble_steady 0 &&
    has steady_window '[1,9]' && has delay '{"min":1,"mean":1,"max":1,"startup":0}' &&
    has weight_versions 2
ok $? '2bw: delay 1, two versions, no bubble in the steady state'
run 0 "$PIPELAG" sim --schedule pipedream -P 4 --json && has m 1 && has updates 16 &&
    has delay '{"min":3,"mean":3,"max":3,"startup":1.5}' && has weight_versions 4
ok $? 'pipedream: defaults, delay P-1-s'
run 0 "$PIPELAG" sim --schedule pipedream -P 4 --updates 3 --json && has step_s null &&
    has weight_versions null
ok $? 'too short for a steady state: null'
run 0 "$PIPELAG" sim --schedule gpipe -P 2 -m 2 && grep -q '^ *1 .*0 *0 *0' "$work/out" &&
    grep -qF '(T - ideal) / ideal' "$work/out" && grep -q '^makespan *9 ms *9 ms' "$work/out"
ok $? 'text has the conventions and the closed form'
cp "$work/out" "$work/first"
run 0 "$PIPELAG" sim --schedule gpipe -P 2 -m 2 && cmp -s "$work/out" "$work/first"
ok $? 'same input, same bytes'
run 0 "$PIPELAG" sim --schedule gpipe -P 2 -m 2 --no-gantt && ! grep -q idle$ "$work/out"
ok $? '--no-gantt'
run 0 "$PIPELAG" sim -P 2 --set cost.update=3ms --set clip.scope=stage && cp "$work/out" "$work/x" &&
    grep -q 'its own stage' "$work/x" && run 0 "$PIPELAG" sim -P 2 && grep -q 'all stages' "$work/out"
ok $? 'clip.scope decides what U waits for'
printf 'schedule: {name: 2bw, stages: 3, microbatches: 5}\n' >"$work/a.yaml"
run 0 "$PIPELAG" sim "$work/a.yaml" -m 4 --json && has schedule '"2bw"' && has P 3 && has m 4
ok $? 'FILE and options'

run 0 "$PIPELAG" sim --schedule pipedream -P 4 --delay-unit pipemare --json &&
    has mean '[7,5,3,1]' && has delay_counts '[0,0,0,8]' &&
    run 0 "$PIPELAG" sim --schedule pipedream -P 4 --delay-unit ticks &&
    grep -q 'Mean delay in ticks: 2 (P-i)' "$work/out" && grep -q '^ *0 *3 *6$' "$work/out"
ok $? '--delay-unit'
run 0 "$PIPELAG" sim --schedule paci -P 8 && grep -q '^ *0  0 x [0-9]*, 1 x' "$work/out" &&
    run 0 "$PIPELAG" sim --schedule xpipe -P 4 && grep -q '^ 2/1 1/1 1/1 1/1' "$work/out" &&
    run 0 "$PIPELAG" sim --schedule xpipe -P 4 --json && has horizon '{"forward":2,"backward":1}'
ok $? 'histogram of delays, horizons'
roofline="--set cost.type=roofline --set cluster.preset=dgx-a100-80 --json"
run 0 "$PIPELAG" sim --schedule xpipe -P 4 $roofline &&
    grep -q '"weights": \([1-9][0-9]*\), .*"corrector": \1,' "$work/out" &&
    run 0 "$PIPELAG" sim --schedule paci -P 4 $roofline && has corrector 0,
ok $? 'a predictor holds predicted weights beside the live ones'
run 0 "$PIPELAG" sim --schedule amdp -P 8 && grep -qF "7'3" "$work/out"
ok $? 'several replicas have names'
refused 2 "did you mean 'ticks'" --delay-unit tics
ok $? 'unknown unit'
run 0 "$PIPELAG" sim -P 4 -m 8 --set segments='1f1b:2 2bw+feedback:12 1f1b:2' --json -o "$work/seg.h5" &&
    has schedule '"segments"' && has updates 16 && has first_update 14 && has step_s 0.0268125 &&
    has delay_mean '[1,1,1,1]' &&
    run 0 "$PIPELAG" trace check "$work/seg.h5" &&
    run 0 "$PIPELAG" sim -P 4 -m 8 --set segments='1f1b:2 2bw:12 1f1b:2' &&
    grep -q '^2bw  *2  *12  *66 ' "$work/out"
ok $? 'segments: one run, each in the JSON and the text'
refused 2 "did you mean '2bw'" --set segments='1f1b:2 2bx:3'
ok $? 'unknown schedule in segments'
refused 2 'equally many model chunks' -P 4 --set segments='1f1b:2 wpipe:3'
ok $? 'segments with other chunks'
refused 2 '2 segments' --delay-unit ticks --set segments='1f1b:2 2bw:3'
ok $? '--delay-unit with segments'
refused 2 '2 segments' --csv "$work/trace.csv" --set segments='1f1b:2 2bw:3'
ok $? '--csv with segments'

refused 2 'schedule.stages' -P 0
ok $? 'P = 0'
refused 2 'schedule.microbatches' -m 1000000000000
ok $? 'm = 10^12'
refused 2 "kg" --set cost.forward=3kg
ok $? 'wrong unit'
refused 2 'cost.forward has 3 values, expected 1 or 8' --set cost.forward=1ms,2ms,3ms
ok $? 'list of wrong length'
refused 2 'link.time has 9 values, expected 1, 7 (a line) or 8' \
    --set link.time=1ms,2ms,3ms,4ms,5ms,6ms,7ms,8ms,9ms
ok $? 'link list of wrong length'
refused 2 "did you mean '2bw'" --schedule 2bx
ok $? 'unknown schedule: the nearest is named'
refused 2 'expected m >= P' --schedule 2bw -m 3
ok $? '2bw with m < P'
refused 2 "$work/absent.yaml" "$work/absent.yaml"
ok $? 'missing FILE'
refused 2 'clip.scope' --schedule pipedream --set clip.scope=global
ok $? 'global clipping with non-uniform delay'
refused 2 '8589938688 ops' -P 4096 -m 1048576
ok $? 'more ops than fit'
refused 2 '106 days' --set cost.forward=2000h --set cost.backward=2000h
ok $? 'time beyond int64 picoseconds'
refused 2 '--width' --width 3
ok $? 'width out of range'

run 1 "$PIPELAG" sim -o "$work/no/such/folder.h5" && [ "$(wc -l <"$work/err")" -eq 1 ] &&
    grep -qF "$work/no/such/folder.h5" "$work/err" && [ ! -s "$work/out" ]
ok $? 'output in a folder that is not there'
run 2 "$PIPELAG" sim -o "$work" && grep -q "is a folder" "$work/err" && [ "$(wc -l <"$work/err")" -eq 1 ]
ok $? 'output is a folder'
if [ -c /dev/full ]; then
    "$PIPELAG" sim >/dev/full 2>"$work/err"
    [ $? -eq 1 ] && [ "$(wc -l <"$work/err")" -eq 1 ]
    ok $? 'stdout is full'
    run 1 "$PIPELAG" sim -o /dev/full && [ "$(wc -l <"$work/err")" -eq 1 ] && [ -c /dev/full ]
    ok $? 'output is a full device'
else
    skip 'stdout is full' 'no /dev/full'
    skip 'output is a full device' 'no /dev/full'
fi

run 0 "$PIPELAG" sim -P 2 -m 2 -o "$work/a.h5" && cp "$work/a.h5" "$work/b.h5" &&
    run 2 "$PIPELAG" sim -P 2 -m 2 -o "$work/a.h5" && grep -q 'a.h5: exists' "$work/err" &&
    run 0 "$PIPELAG" sim -P 2 -m 2 --force -o "$work/a.h5" && cmp -s "$work/a.h5" "$work/b.h5"
ok $? '-o writes a trace, equal bytes for equal input, and replaces none unasked'
printf precious >"$work/keep.h5"
run 2 "$PIPELAG" sim --schedule 2bw -m 3 -o "$work/keep.h5" && [ "$(cat "$work/keep.h5")" = precious ]
ok $? 'a refused run leaves the old trace alone'
# Measured costs: a CSV file, and the trace of a run, give the run of the same keys.
# shellcheck disable=SC2016
printf '# A100, per stage\nstage,forward [ms],backward,weight [ms],link [us]\n0,2,1 ms,1,100\n1,3,2.5 ms,1,100\n' >"$work/p.csv"
run 0 "$PIPELAG" sim -P 2 -m 4 --json --set cost.profile="$work/p.csv" && mv "$work/out" "$work/first" &&
    run 0 "$PIPELAG" sim -P 2 -m 4 --json --set cost.forward=2ms,3ms --set cost.backward=1ms,2.5ms \
        --set link.time=100us -o "$work/t.h5" && cmp -s "$work/out" "$work/first" &&
    run 0 "$PIPELAG" sim -P 2 -m 4 --json --set cost.profile="$work/t.h5" && cmp -s "$work/out" "$work/first"
ok $? 'cost.profile reads a CSV file and a trace'
rm -f "$work/trace.h5"
refused 2 'cost.forward is given beside' --set cost.profile="$work/p.csv" -P 2 --set cost.forward=1ms
ok $? 'a profile and a key at once'
refused 2 'cost.forward has 2 values' --set cost.profile="$work/p.csv" -P 3
ok $? 'a profile of another depth'
bad_profile() { # TEXT COMPLAINT
    printf "$1" >"$work/bad.csv"
    refused 2 "$2" --set cost.profile="$work/bad.csv" -P 2
    ok $? "profile: $2"
}
bad_profile 'forward,backward\n1 ms\n' 'bad.csv:2: 1 fields, the first row has 2'
bad_profile 'forward,backward\n1 ms,3 kg\n' 'bad.csv:2: backward:'
bad_profile 'forward,backward\n1 ms,-3 ms\n' 'bad.csv:2: backward:'
bad_profile 'forward [ms,backward\n1,3 ms\n' 'bad.csv:1: column 1: unit'
bad_profile 'forward [ms],backward [ms],wieght [ms]\n1,1,1\n' "bad.csv:1: unknown column 'wieght', did you mean 'weight'"
bad_profile 'fw,bw\n1,3 ms\n' 'bad.csv:1: expected a first row'
bad_profile 'forward,backward,forward\n' "bad.csv:1: two columns 'forward'"
bad_profile 'forward,backward\n' 'no rows of costs'
bad_profile '' 'no rows of costs'
bad_profile 'forward\0' 'neither a CSV file nor a trace'

# Keys that nothing reads are named; those that something reads are not.
warned() {
    text=$1
    shift
    run 0 "$PIPELAG" sim --no-gantt -P 4 -m 8 "$@" && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -qF -- "warning: --set: $text" "$work/err"
}
silent() { run 0 "$PIPELAG" sim --no-gantt -P 4 -m 8 "$@" && [ ! -s "$work/err" ]; }
warned 'schedule.group has no effect' --set schedule.group=8 &&
    warned 'schedule.max_activations has no effect' --schedule zb-h1 --set schedule.max_activations=8 &&
    warned 'schedule.released has no effect' --schedule 2bw --set schedule.released=0.5 &&
    warned 'schedule.group has no effect' --set segments='1f1b:2 2bw:8' --set schedule.group=8
ok $? 'a key of other schedules is named'
warned 'cluster.preset has no effect on the costs' --set cluster.preset=dgx-h100 &&
    warned 'model.preset has no effect on the costs' --set model.preset=llama-3-8b
ok $? 'a model or a cluster beside given costs is named'
warned 'jitter.slow_links has no effect: link.time is 0' --set jitter.slow_links=2:5 &&
    silent --set jitter.slow_links=2:5 --set link.time=1ms
ok $? 'a slow link that takes no time is named'
silent --schedule interleaved --set schedule.group=4 &&
    silent --schedule zb-2p --set schedule.max_activations=8 --set schedule.released=0.5 &&
    silent --set schedule.group=0 &&
    silent --set cost.type=roofline --set cluster.preset=dgx-h100 --set model.preset=llama-3-8b
ok $? 'a key that counts is not'

(ulimit -f 2 && run 1 "$PIPELAG" sim -P 4 -m 4096 --no-gantt --perfetto "$work/big.json") &&
    grep -q 'File too large' "$work/err" && [ -z "$(ls "$work" | grep big.json)" ]
ok $? 'a file beyond the limit of file sizes: an error, no file left'

run 1 "$PIPELAG" calibrate /nowhere.csv -o "$work/no/such/x.yaml" && grep -q 'no/such' "$work/err"
ok $? 'a folder that is not there is named before the work begins'
done_testing
