#!/bin/sh
# Schedules of the user's own: pipelag sim --csv writes PyTorch's table, schedule.file reads
# it; damaged tables, contradictions and what the format cannot say are refused in one line.
. "$top_srcdir/tests/tap.sh"

# refused STATUS TEXT ARGS...: one line that contains TEXT, nothing else, no file written.
refused() {
    want=$1 text=$2
    shift 2
    run "$want" "$PIPELAG" sim "$@" -o "$work/trace.h5" && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -qF -- "$text" "$work/err" && [ ! -s "$work/out" ] &&
        [ ! -e "$work/trace.h5" ] && [ ! -e "$work/none.csv" ] && return 0
    echo "# expected one line with: $text"
    sed 's/^/# /' "$work/out" "$work/err"
    return 1
}

costs="--set cost.forward=2ms --set cost.weight=1.5ms --set link.time=0.1ms --json"
for schedule in gpipe 1f1b dualpipev hanayo; do
    run 0 "$PIPELAG" sim --schedule $schedule -P 4 -m 8 $costs --csv "$work/$schedule.csv" &&
        sed 's/.*"makespan_s": \([^,]*\).*/\1/p;d' "$work/out" | head -1 >"$work/own" &&
        run 0 "$PIPELAG" sim --schedule $schedule -P 4 -m 8 $costs --communication \
            --csv "$work/$schedule-comm.csv" &&
        run 0 "$PIPELAG" sim --schedule custom --set schedule.file="$work/$schedule.csv" $costs &&
        sed 's/.*"makespan_s": \([^,]*\).*/\1/p;d' "$work/out" | head -1 >"$work/back" &&
        [ -s "$work/own" ] && cmp -s "$work/own" "$work/back" &&
        run 0 "$PIPELAG" sim --schedule custom -P 4 -m 8 $costs \
            --set schedule.file="$work/$schedule-comm.csv" &&
        sed 's/.*"makespan_s": \([^,]*\).*/\1/p;d' "$work/out" | head -1 >"$work/back" &&
        cmp -s "$work/own" "$work/back"
    ok $? "$schedule written and read back: same makespan, with communication and without"
done

run 0 "$PIPELAG" sim --schedule 1f1b -P 2 -m 2 --csv "$work/small.csv" &&
    printf '0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n' | cmp -s - "$work/small.csv"
ok $? 'the grid of 1F1B, P = 2, m = 2'
cp "$work/small.csv" "$work/kept.csv"
run 2 "$PIPELAG" sim --schedule 1f1b -P 4 --csv "$work/small.csv" &&
    grep -qF 'small.csv: exists' "$work/err" && cmp -s "$work/small.csv" "$work/kept.csv" &&
    run 0 "$PIPELAG" sim --schedule 1f1b -P 4 --csv "$work/small.csv" --force &&
    ! cmp -s "$work/small.csv" "$work/kept.csv"
ok $? 'a table that exists is kept unless --force'
printf 'schedule: {name: custom, file: %s, updates: 3}\n' "$work/kept.csv" >"$work/a.yaml"
run 0 "$PIPELAG" sim "$work/a.yaml" --json && tr -d ' \n' <"$work/out" |
    grep -q '"P":2,"m":2.*"updates":3'
ok $? 'P and m follow from the file, updates repeat it'

refused 2 'set schedule.file to a PyTorch schedule CSV' --schedule custom
ok $? 'custom without a file'
refused 2 'expected custom' --schedule 1f1b --set schedule.file="$work/kept.csv"
ok $? 'a file beside another schedule'
refused 2 'absent.csv' --schedule custom --set schedule.file="$work/absent.csv"
ok $? 'a file that is not there'
refused 2 "-P: schedule.stages is 3, but $work/kept.csv has 2" --schedule custom -P 3 \
    --set schedule.file="$work/kept.csv"
ok $? 'P contradicts the file'
refused 2 "-m: schedule.microbatches is 5, but $work/kept.csv has 2" --schedule custom -m 5 \
    --set schedule.file="$work/kept.csv"
ok $? 'm contradicts the file'
refused 2 "schedule.chunks is 2, but $work/kept.csv has 1" --schedule custom \
    --set schedule.chunks=2 --set schedule.file="$work/kept.csv"
ok $? 'v contradicts the file'

# damaged NAME TEXT COMMAND: kept.csv after a sed command is refused with TEXT.
damaged() {
    sed "$3" "$work/kept.csv" >"$work/bad.csv"
    refused 2 "$work/bad.csv$2" --schedule custom --set schedule.file="$work/bad.csv"
    ok $? "$1"
}
damaged 'an unknown op' ":1:2: '0G1': unknown op" '1s/0F1/0G1/'
damaged 'an old op' ":2:3: '1BW0': unknown op 'BW', did you mean 'B'?" '2s/1B0/1BW0/'
damaged 'a missing forward' ':1:5: 0B1 without its 0F1' '1s/,0F1,/,/'
damaged 'a repeated op' ':2:5: 1F1 again, it is in cell 4 already' '2s/1F1/1F1,1F1/'
damaged 'a stage on two ranks' ':2:5: 0B1 on rank 1, but stage 0 is on rank 0' '2s/1B1/0B1/'
damaged 'a row of nothing' ':2: rank 1 has no ops' '1a ,,,'
damaged 'an input gradient alone' ':1:4: 0I0 without its 0W0' '1s/0B0/0I0/'
damaged 'half of the communication' ':1:2: 0SEND_F0 without its 1RECV_F0 on rank 1' \
    '1s/0F0/0F0,0SEND_F0/'
printf '0F0\0,0B0\n' >"$work/bad.csv"
refused 2 'a NUL byte at 3' --schedule custom --set schedule.file="$work/bad.csv"
ok $? 'not a text'
refused 2 "$work" --schedule custom --set schedule.file="$work"
ok $? 'a folder'
printf '0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n' >"$work/bad.csv"
refused 2 'bad.csv: ranks wait for each other: rank 0 waits forever to start B' --schedule custom --set schedule.file="$work/bad.csv"
ok $? 'ranks that wait for each other'

refused 2 'two copies of the model' --schedule dualpipe -P 4 --csv "$work/none.csv"
ok $? 'two replicas cannot be written'
refused 2 'between two flushes' --schedule 2bw -P 4 --csv "$work/none.csv"
ok $? 'a schedule without flush cannot be written'
refused 2 'this run has 2 segments' -P 2 --set 'segments=1f1b:1 gpipe:1' --csv "$work/none.csv"
ok $? 'segments cannot be written'
refused 2 '--communication is given without --csv' --communication
ok $? '--communication alone'
refused 2 'both -o and --csv' --csv "$work/trace.h5"
ok $? 'two outputs in one file'
# In a mixed run the file's m is everybody's.
run 0 "$PIPELAG" sim --schedule 1f1b -P 2 -m 3 --csv "$work/m3.csv" --no-gantt &&
    run 0 "$PIPELAG" sim -P 2 --set schedule.file="$work/m3.csv" \
        --set 'segments=custom:2 1f1b:1' --no-gantt && grep -q 'm = 3 ' "$work/out"
ok $? 'segments with a schedule of a file take its m'
done_testing
