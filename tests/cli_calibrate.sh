#!/bin/sh
# pipelag calibrate: known keys are recovered from steps that the simulator made with them;
# files that are wrong are refused with line and column.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 1
measured=$top_srcdir/experiments/measured

number() { # KEY: its first value in out
    grep -o "\"$1\": *[-0-9.e+]*" out | head -n 1 | sed 's/.*: *//'
}
holds() { # AWK-CONDITION
    awk "BEGIN { exit !($1) }"
}

# rows GEMM MEMORY: five runs of a small cluster, their steps simulated with these fractions.
head='schedule.stages,parallel.tp,parallel.micro_batch,parallel.recompute'
rest='--set model.preset=llama-3-8b --set cluster.preset=dgx-h100 --set parallel.seq_length=4096'
rows() {
    echo "# made
$head,step [ms]"
    for row in 1,1,1,none 1,8,1,none 2,4,2,full 4,2,1,none 8,1,1,selective; do
        IFS=, read -r P t b r <<X
$row
X
        # shellcheck disable=SC2086
        "$PIPELAG" sim --json $rest -P "$P" -m 8 --set cost.type=roofline --set parallel.tp="$t" \
            --set parallel.micro_batch="$b" --set parallel.recompute="$r" \
            --set cluster.gpu.gemm_fraction="$1" --set cluster.gpu.memory_fraction="$2" >out || return 1
        echo "$row,$(awk "BEGIN { printf \"%.9f\", 1e3 * $(number step_s) }")"
    done
}
# shellcheck disable=SC2086
fit() { # FILE ARGS...
    run 0 "$PIPELAG" calibrate "$@" $rest -m 8 --json
}

rows 0.613 0.9 >one.csv && fit one.csv && holds "($(number value) / .613 - 1) ^ 2 < 1e-6"
ok $? "the fraction that made the steps is found: $(number value) of .613"
holds "$(number error_mean_abs) > .1 && $(number error_mean_abs_fitted) < 1e-4 && $(number error_mean_abs_left_out) < 1e-4"
ok $? 'the error goes, also of rows left out'
rows 0.613 0.55 >two.csv && fit two.csv --fit cluster.gpu.gemm_fraction,cluster.gpu.memory_fraction
values=$(grep -o '"value": *[0-9.e-]*' out | sed 's/.*: *//' | tr '\n' ' ')
# shellcheck disable=SC2086
set -- $values
holds "($1 / .613 - 1) ^ 2 < 1e-6 && ($2 / .55 - 1) ^ 2 < 1e-6"
ok $? "two fractions at once: $1 of .613, $2 of .55"
fit two.csv && holds "$(number error_mean_abs_fitted) > 2e-3"
ok $? 'one key does not explain what two made'
! holds "($(number value) / .613 - 1) ^ 2 < 1e-6"
ok $? '... and is off'

# a profile of one stage; leverage against new fits
printf 'note,forward [s],backward\n"one, quoted ""stage""",,' >profile.csv
echo "2.5 s" >>profile.csv
# shellcheck disable=SC2086
run 0 "$PIPELAG" calibrate profile.csv $rest -P 1 -m 1 && grep -q 'one, quoted "stage" *backward  *2.5 ' out &&
    grep -q 'fitted 0.00 %' out
ok $? 'a measured backward of one stage is enough for one key'
# shellcheck disable=SC2086
leave() { # LINE: error of that row in a fit to the others
    sed "$1d" noisy.csv >others.csv
    "$PIPELAG" calibrate others.csv $rest -m 8 -o others.yaml --force >out 2>err &&
        { sed -n 2p noisy.csv; sed -n "$1p" noisy.csv; } >row.csv &&
        "$PIPELAG" calibrate row.csv others.yaml $rest -m 8 --no-fit --json >out &&
        number error_mean_abs
}
awk -F, -v OFS=, 'NR > 2 { $5 *= 1 + .03 * ((NR * 7) % 5 - 2) } { print }' one.csv >noisy.csv
fit noisy.csv
claimed=$(number error_mean_abs_left_out) sum=0
for line in 3 4 5 6 7; do sum=$(awk "BEGIN { print $sum + $(leave $line) / 5 }"); done
holds "($claimed / $sum - 1) ^ 2 < .03 ^ 2"
ok $? "each left out: $claimed by leverage, $sum by five fits"
# shellcheck disable=SC2086
run 0 "$PIPELAG" calibrate one.csv $rest -m 8 -o fitted.yaml && grep -q '^cluster.gpu.gemm_fraction: 0.613 ' fitted.yaml &&
    run 0 "$PIPELAG" calibrate one.csv fitted.yaml $rest -m 8 --no-fit --json && holds "$(number error_mean_abs) < 1e-3"
ok $? '-o writes what other commands read'
printf 'model: {preset: llama-3-8b}\ncluster: {preset: dgx-h100, gpu: {gemm_fraction: 0.7}}\nparallel: {seq_length: 4096}\n' >base.yaml
run 0 "$PIPELAG" calibrate one.csv base.yaml -m 8 -o whole.yaml && grep -q '^model.preset: llama-3-8b' whole.yaml &&
    run 0 "$PIPELAG" calibrate one.csv whole.yaml -m 8 --no-fit --json && holds "$(number error_mean_abs) < 1e-3" &&
    run 0 "$PIPELAG" sim whole.yaml -P 1 -m 8 --json && grep -q '"tokens_per_s_gpu"' out
ok $? '... with what FILE gives, so that sim takes it alone'
# shellcheck disable=SC2086
run 2 "$PIPELAG" calibrate one.csv $rest -m 8 -o fitted.yaml && grep -q 'exists' err
ok $? '... and is not replaced unasked'
# shellcheck disable=SC2086
printf '\357\273\277' | cat - one.csv | sed 's/$/\r/' >windows.csv && run 0 "$PIPELAG" calibrate windows.csv fitted.yaml $rest -m 8 --no-fit --json &&
    holds "$(number error_mean_abs) < 1e-3"
ok $? 'byte order mark and carriage returns'
for file in "$measured"/*.csv; do
    run 0 "$PIPELAG" calibrate --no-fit "$file" --json &&
        [ "$(grep -c '"measured_s"' out)" -eq "$(($(grep -vc '^#' "$file") - 1))" ]
    ok $? "${file##*/}: every row is compared"
done

refused() { # TEXT TITLE ARGS... ; the file is on stdin unless ARGS has one
    text=$1 title=$2
    shift 2
    cat >bad.csv
    # shellcheck disable=SC2086
    "$PIPELAG" calibrate bad.csv $rest "$@" >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$text" err
    ok $? "$title"
    grep -qF -- "$text" err || sed 's/^/# /' err
}
refused "bad.csv:1: column 1: unknown key 'schedule.stage', did you mean 'schedule.stages'?" 'an unknown column' <<X
schedule.stage,step [s]
1,2
X
refused 'bad.csv:2: column 1: schedule.stages is 0, expected 1 to 4096' 'a value out of range' <<X
schedule.stages,step [s]
0,2
X
refused 'bad.csv:3: 3 columns, the first row has 2' 'a row that is too long' <<X
schedule.stages,step [s]
1,2
1,2,3
X
refused "bad.csv:1: column 2: unit 'furlong'" 'an unknown unit' <<X
schedule.stages,step [furlong]
1,2
X
refused 'bad.csv:2: column 2: step: ' 'a time without unit' <<X
schedule.stages,step
1,2
X
refused "bad.csv:2: column 2: step: '-2 s' is negative" 'a negative time' <<X
schedule.stages,step [s]
1,-2
X
refused 'bad.csv:2: column 2: step: 0, expected a time above 0' 'no time' <<X
schedule.stages,step [s]
1,0
X
refused 'bad.csv:2: no measured time' 'a row that measures nothing' <<X
schedule.stages,step [s]
1,
X
refused 'bad.csv:1: no column of measured times' 'no times at all' <<X
schedule.stages
1
X
refused "bad.csv:1: two columns 'step'" 'a column twice' <<X
step [s],step [ms]
1,1
X
refused 'bad.csv:2: column 1: quotes' 'an open quote' <<X
schedule.stages,step [s]
"1,2
X
refused 'bad.csv: no measured rows' 'no rows' <<X
schedule.stages,step [s]
X
refused 'bad.csv:2: P = 16 stages' 'a run that does not fit its cluster' <<X
schedule.stages,step [s]
16,2
X
refused "did you mean 'cluster.gpu.gemm_fraction'?" 'an unknown key to fit' --fit cluster.gpu.gem_fraction <<X
schedule.stages,step [s]
1,2
X
refused '--fit: schedule.stages cannot be fitted' 'a key without a scale' --fit schedule.stages <<X
parallel.tp,step [s]
1,2
X
refused 'no measured time of bad.csv depends on optimizer.momentum' 'a key without effect' --fit optimizer.momentum <<X
parallel.tp,step [s]
1,2
X
done_testing
