#!/bin/sh
# The export for Perfetto and chrome://tracing, held against the trace it comes from.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 1
if ! command -v python3 >/dev/null; then
    echo '1..0 # SKIP no python3'
    exit 0
fi
says() { [ "$(cat out err | wc -l)" -eq 1 ] && grep -qF -- "$1" out err; }
verify() { # JSON
    run "$1" python3 -B "$top_srcdir/tests/check_perfetto.py" "$2" timeline messages devices
}
tables() {
    arm=$("$PIPELAG" trace dump sim.h5 | sed -n 's|^\(/arms/.*\)/timeline$|\1|p')
    for table in timeline messages devices; do
        "$PIPELAG" trace dump sim.h5 "$arm/$table" >$table || return 1
    done
}
odd="--set cost.forward=1.0000005ms --set cost.backward=123456789123ps"
while read -r options; do
    run 0 "$PIPELAG" sim $options --no-gantt -o sim.h5 --perfetto sim.json --force && tables &&
        verify 0 sim.json
    ok $? "sim $options"
done <<SCHEDULES
--schedule 1f1b -P 4 -m 8
--schedule 1f1b -P 4 -m 8 --set link.time=0.3ms --set cost.update=2ms
--schedule gpipe -P 3 -m 4 --updates 2 --set link.time=2.5ms
--schedule 2bw -P 4 -m 4 --updates 5 --set link.time=100ns
--schedule pipedream -P 3 --updates 4 --set cost.forward=3ms,1ms,2ms --set link.time=5ms
--schedule dualpipe -P 4 -m 10 --set link.time=0.1ms
--schedule dualpipev -P 2 -m 6
--schedule chimera -P 4 -m 8 --set link.time=0.25ms
--schedule amdp -P 4 -m 4
--schedule 1f1b -P 8 -m 16 $odd --set link.time=1234567ps
SCHEDULES

# the checker can fail
fails() { # TITLE SED-SCRIPT
    sed "$2" sim.json >bad.json
    ! cmp -s sim.json bad.json && verify 1 bad.json
    ok $? "refused: $1"
}
fails 'a slice that overlaps' '/"name": "F1",/s/"dur": [0-9.]*/"dur": 90000/'
fails 'a slice less' '/"ph": "X", "name": "BW3", "pid": 1/d'
fails 'a flow without end' '/"ph": "f".*"id": 3,/d'
fails 'a flow with two ends' '/"ph": "f".*"id": 3,/p'
fails 'a flow to another op' '/"ph": "f".*"id": 3,/s/"ts": [0-9.]*/"ts": 0/'
fails 'a flow from idle time' '/"ph": "s".*"id": 3,/s/"ts": [0-9.]*/"ts": 900000/'
fails 'part of a nanosecond' '/"name": "F1",/s/"ts": [0-9.]*/&77/'
fails 'a counter step less' '/"activations", "pid": 2/{/"in flight": 6/d}'
fails 'not JSON' '$d'

run 0 "$PIPELAG" trace export sim.h5 -o again.json && cmp -s sim.json again.json
ok $? 'trace export writes what sim --perfetto writes'
run 0 "$PIPELAG" sim --schedule 2bw -P 3 -m 3 --updates 5 --set link.time=0.2ms --no-gantt -o two.h5 &&
    run 0 "$PIPELAG" trace export two.h5 --updates 2 -o two.json &&
    [ "$(grep -c '"U[0-9]*"' two.json)" -eq 6 ] && [ "$(grep -c '"ph": "s"' two.json)" -eq "$(grep -c '"ph": "f"' two.json)" ] &&
    [ "$(grep -c '"name": "BW[0-5]",' two.json)" -eq 18 ] && ! grep -q '"name": "BW9"' two.json
ok $? '--updates'
run 2 "$PIPELAG" trace export sim.h5 -o again.json && says 'again.json: exists' &&
    run 0 "$PIPELAG" trace export sim.h5 --arm 1f1b --format perfetto -o again.json --force
ok $? 'no implicit overwrite'
run 2 "$PIPELAG" trace export sim.h5 --arm 1f1c -o x.json && says "did you mean '1f1b'"
ok $? 'unknown arm'
run 2 "$PIPELAG" trace export sim.h5 --format perfeto -o x.json && says "did you mean 'perfetto'"
ok $? 'unknown format'
run 2 "$PIPELAG" trace export sim.h5 && says 'no --output'
ok $? 'no output'
run 2 "$PIPELAG" trace export missing.h5 -o x.json && says 'missing.h5'
ok $? 'no trace'
run 2 "$PIPELAG" trace info sim.h5 --arm x && says 'belong to trace export'
ok $? 'an option of another verb'
run 1 "$PIPELAG" trace export sim.h5 -o nowhere/x.json && says nowhere
ok $? 'no such folder'
run 2 "$PIPELAG" sim --perfetto sim.json && says 'sim.json: exists'
ok $? 'sim: no implicit overwrite'
run 2 "$PIPELAG" sim --perfetto x.json -o x.json && says 'both'
ok $? 'sim: one file for two outputs'
[ ! -e x.json ] && [ -z "$(find . -name '*.tmp*')" ]
ok $? 'bad input leaves no file'
done_testing
