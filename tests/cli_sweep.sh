#!/bin/sh
# pipelag sweep: every row is what `pipelag sim` says, the bytes do not depend on who
# computed the rows or on interruptions, questions, bad input.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 1

# refused TEXT ARGS...: exit status 2, one line that contains TEXT, no file left.
refused() {
    text=$1
    shift
    run 2 "$PIPELAG" sweep "$@" && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -qF -- "$text" "$work/err" && [ ! -s "$work/out" ] && [ ! -e new.h5 ] &&
        [ ! -e new.h5.part ] && return 0
    echo "# expected one line with: $text"
    sed 's/^/# /' "$work/out" "$work/err"
    ls | sed 's/^/# /'
    return 1
}

cat >small.yaml <<'Y'
cost: {forward: 2 ms}
sweep:
  schedule.name: [gpipe, 1f1b, 2bw, pipedream]
  schedule: {stages: [2, 4], microbatches: [1, 3, 8]}
  link.time: [0, 0.25 ms]
Y
run 0 "$PIPELAG" sweep small.yaml --json && cp out small.json && grep -q '^pipelag: 48 points: schedule.name 4 x schedule.stages 2 x' err
ok $? 'runs and says how many points'
{ tr -d ' \n' <small.json; echo; } | sed 's/},{/}\n{/g' >rows
wrong=0
sed -n '1p;18p;25p;26p;44p;48p' rows >some # of each schedule, and a refused one
while read -r row; do
    get() { echo "$row" | sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
    set -- --schedule "$(get schedule.name)" -P "$(get schedule.stages)" \
        -m "$(get schedule.microbatches)" --set cost.forward=2ms --set "link.time=$(get link.time)s"
    "$PIPELAG" sim "$@" --json >sim.json 2>sim.err
    tr -d ' \n' <sim.json >sim.row
    for key in P m v updates makespan_s step_s ideal_s bubble bubble_over_ideal bubble_parallelogram bubble_steady; do
        value=$(get "$key")
        if [ "$(get status)" = ok ]; then
            grep -qF "\"$key\":$value," sim.row || { wrong=1; echo "# $*: $key is not $value"; }
        else
            [ "$value" = null ] && [ ! -s sim.row ] &&
                grep -qF "$(sed 's/pipelag: //; s/ //g' sim.err | head -c 20)" some || wrong=1
        fi
    done
done <some
[ "$wrong" -eq 0 ] && [ "$(grep -vc '"status":"ok"' rows)" -eq 6 ] && [ "$(wc -l <some)" -eq 6 ]
ok $? 'rows are what pipelag sim says, refused shapes are rows with the reason'

run 0 "$PIPELAG" sweep small.yaml -o one.h5 --workers 1 && [ ! -s out ] &&
    run 0 "$PIPELAG" sweep small.yaml -o two.h5 --workers 2 &&
    run 0 "$PIPELAG" sweep small.yaml -o five.h5 --workers 5 &&
    cmp one.h5 two.h5 && cmp one.h5 five.h5 && [ ! -e one.h5.part ]
ok $? 'equal bytes with 1, 2 and 5 workers'
run 0 "$PIPELAG" trace check one.h5 && run 0 "$PIPELAG" trace info one.h5 &&
    grep -q 'sweep  48 rows {schedule.name, schedule.stages, schedule.microbatches, link.time \[s\], ' out
ok $? 'trace check and info'
run 0 "$PIPELAG" trace dump one.h5 /sweep && cp out dump.csv && run 0 "$PIPELAG" sweep one.h5 --csv &&
    cmp out dump.csv && [ "$(wc -l <dump.csv)" -eq 49 ] && run 0 "$PIPELAG" sweep small.yaml --csv && cmp out dump.csv
ok $? 'CSV of a file, of a run and of trace dump agree'
run 0 "$PIPELAG" sweep one.h5 --json && cmp out small.json
ok $? 'JSON of a file and of a run agree'

# the same question by awk
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; print; next }
    $at["bubble"] != "nan" && $at["bubble"] < 0.4 && $at["tau_max"] <= 1 { print $0 | "sort -t, -s -k" at["step_s [s]"] "," at["step_s [s]"] "g | head -n 7" }' \
    dump.csv >want.csv
run 0 "$PIPELAG" sweep one.h5 --where 'bubble<0.4 and tau_max<=1' --sort step_s --top 7 --csv &&
    cmp out want.csv && [ "$(wc -l <out)" -eq 8 ]
ok $? '--where, --sort and --top against awk'
run 0 "$PIPELAG" sweep small.yaml --where 'bubble<0.4 and tau_max<=1' --sort step_s --top 7 --csv &&
    cmp out want.csv
ok $? 'the same while running'
run 0 "$PIPELAG" sweep one.h5 --where 'status!=ok' --top 2 && grep -q '^48 points, 6 refused, 6 match, the first 2 shown$' out &&
    grep -q '2bw .*expected m >= P' out && grep -q '^bubble_steady *1 - (ideal / updates) / step$' out
ok $? 'text: refused rows with the reason, conventions'
run 0 "$PIPELAG" sweep small.yaml -P 4 --set link.time=0 --csv && [ "$(wc -l <out)" -eq 13 ] &&
    [ "$(cut -d, -f2 out | sort -u | tr '\n' ' ')" = '4 schedule.stages ' ]
ok $? 'an option fixes a swept key'

cat >large.yaml <<'Y'
sweep:
  schedule.name: [1f1b, 2bw]
  schedule.stages: 2..9
  schedule.microbatches: 1..20
  cost.update: [0, 1ms, 2ms, 3ms, 4ms, 5ms, 6ms, 7ms, 8ms, 9ms]
Y
"$PIPELAG" sweep large.yaml -o whole.h5 2>err

# interrupt SIGNAL FILE: sweep until some rows are in FILE.part, then the signal; $status.
interrupt() {
    "$PIPELAG" sweep large.yaml --workers 1 -o "$2" >out 2>err &
    child=$!
    tries=0
    while [ "$(wc -c 2>/dev/null <"$2.part" || echo 0)" -lt "${3:-1000}" ] && [ $tries -lt 400 ]; do
        sleep 0.01
        tries=$((tries + 1))
    done
    kill -s "$1" $child
    wait $child
    status=$?
} 2>/dev/null
interrupt TERM part.h5
[ $status -eq 143 ] && [ ! -e part.h5 ] && [ -s part.h5.part ] &&
    grep -q 'interrupted after [0-9]* of 3200 points; the same command goes on after those in part.h5.part' err
ok $? 'SIGTERM: exit status 143, rows kept, how to go on'
interrupt KILL part.h5 $(($(wc -c <part.h5.part) + 1000))
[ $status -eq 137 ] && [ ! -e part.h5 ]
ok $? 'kill -9'
kept=$(wc -c <part.h5.part)
truncate -s $((kept - 5)) part.h5.part
refused 'another sweep' small.yaml -o part.h5
ok $? 'the rows of another sweep are not taken'
run 0 "$PIPELAG" sweep large.yaml -o part.h5 --workers 3 && grep -q 'goes on after [1-9][0-9]* points' err &&
    ! grep -q '^pipelag: 3200 points in' err && cmp part.h5 whole.h5 && [ ! -e part.h5.part ]
ok $? 'interrupted twice and resumed: the bytes of a run in one piece'
run 0 "$PIPELAG" trace diff part.h5 whole.h5 && "$PIPELAG" sweep large.yaml --set cost.forward=2ms -o other.h5 2>err &&
    run 3 "$PIPELAG" trace diff other.h5 whole.h5
ok $? 'trace diff sees another sweep'

"$PIPELAG" sweep large.yaml --workers 1 -o lost.h5 >out 2>err &
child=$!
tries=0
while [ ! -s lost.h5.part ] && [ $tries -lt 400 ]; do
    sleep 0.01
    tries=$((tries + 1))
done
worker=$(cat "/proc/$child/task/$child/children" 2>/dev/null)
if [ -n "$worker" ] && kill -s KILL $worker; then
    wait $child
    [ $? -eq 1 ] && grep -q 'a worker died at point [0-9]* (schedule.name .*): Killed' err && [ ! -e lost.h5 ] &&
        run 0 "$PIPELAG" sweep large.yaml -o lost.h5 && cmp lost.h5 whole.h5
    ok $? 'a worker that dies is named with its point; the next call goes on'
else
    wait $child
    skip 'a worker that dies' 'no list of children'
fi

refused 'whole.h5: exists, --force replaces it' large.yaml -o whole.h5
ok $? 'a result is not replaced unasked'
run 0 "$PIPELAG" sweep small.yaml -o part.h5 --force && cmp part.h5 one.h5
ok $? '--force replaces it'
printf 'sweep:\n  schedule.stages: [2, 0]\n' >bad.yaml
refused 'bad.yaml:2:24: schedule.stages is 0' bad.yaml -o new.h5
ok $? 'a bad value: file, line and column'
printf 'sweep:\n  schedule.stage: [2, 3]\n' >bad.yaml
refused "bad.yaml:2:3: unknown key 'schedule.stage', did you mean 'schedule.stages'" bad.yaml -o new.h5
ok $? 'an unknown key: the nearest is named'
printf 'schedule:\n  stages: 3\n' >bad.yaml
refused 'bad.yaml: nothing to sweep' bad.yaml -o new.h5
ok $? 'nothing to sweep'
printf 'sweep: {schedule.stages: 1..4000, schedule.microbatches: 1..4000}\n' >bad.yaml
refused 'more than 10000000 points: schedule.stages 4000 x schedule.microbatches 4000' bad.yaml -o new.h5
ok $? 'too many points'
refused "unknown column 'bubbel', did you mean 'bubble'" small.yaml -o new.h5 --where 'bubbel<1'
ok $? 'an unknown column is refused before anything is computed'
refused "unknown column 'step'" one.h5 --sort step
ok $? 'an unknown column of a file'
refused '--set needs a configuration' one.h5 --set cost.forward=1ms
ok $? 'a result cannot be changed'
refused 'absent.yaml' absent.yaml -o new.h5
ok $? 'missing FILE'
refused '--top' small.yaml --top x
ok $? '--top x'
"$PIPELAG" sim -P 2 -m 2 -o sim.h5 >out && refused 'a trace without a sweep' sim.h5
ok $? 'a trace that is no sweep'
head -c 3000 one.h5 >cut.h5
refused 'cut.h5' cut.h5
ok $? 'a damaged result'
run 1 "$PIPELAG" sweep small.yaml -o no/such/new.h5 && [ "$(grep -c . err)" -le 2 ] && grep -q 'no/such/new.h5: No such' err
ok $? 'output in a folder that is not there'

if ! grep -q '^#define HAVE_MPI 1' "$(dirname "$PIPELAG")/../config.h"; then
    skip 'MPI' 'configured without --with-mpi'
    OMPI_COMM_WORLD_SIZE=2 run 2 "$PIPELAG" sweep small.yaml && grep -q 'configure --with-mpi' err
    ok $? 'under mpirun without MPI: says so'
elif ! command -v mpirun >/dev/null; then
    skip 'MPI' 'no mpirun'
else
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
    interrupt KILL mpi.h5
    run 0 mpirun --oversubscribe -n 3 "$PIPELAG" sweep large.yaml -o mpi.h5 && cmp mpi.h5 whole.h5 &&
        grep -q '2 MPI workers' err && grep -q 'goes on after' err
    ok $? 'MPI: resumed on 3 ranks, the same bytes'
    run 2 mpirun --oversubscribe -n 2 "$PIPELAG" sweep large.yaml -o mpi.h5 && grep -q 'mpi.h5: exists' err
    ok $? 'MPI: a refused output ends the job'
fi

# poll() refuses more descriptors than a process may open: a pool larger than that must end
cat >many.yaml <<'Y'
sweep:
  schedule.stages: [1..64]
Y
(ulimit -n 16 && run 1 timeout 20 "$PIPELAG" sweep many.yaml --workers 64) &&
    grep -q 'Too many open files' err
ok $? 'more workers than open files: fails, does not wait for ever'

done_testing
