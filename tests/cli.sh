#!/bin/sh
# The command line itself: help and version of every command, bad usage, output that cannot
# be written. Each failure is one line on stderr.
. "$top_srcdir/tests/tap.sh"

# one_line TEXT: stderr is one line that contains TEXT, stdout is empty.
one_line() {
    [ "$(wc -l <"$work/err")" -eq 1 ] && grep -qF -- "$1" "$work/err" && [ ! -s "$work/out" ] &&
        return 0
    echo "# expected one line with: $1"
    sed 's/^/# /' "$work/out" "$work/err"
    return 1
}

run 0 "$PIPELAG" --version && grep -qx 'pipelag [0-9][0-9.]*' "$work/out"
ok $? 'pipelag --version'
run 0 "$PIPELAG" --help
ok $? 'pipelag --help'
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/out")
[ -n "$commands" ]
ok $? 'pipelag --help lists commands'
for command in $commands; do
    run 0 "$PIPELAG" "$command" --version &&
        grep -qx "pipelag $command (pipelag) [0-9.]*" "$work/out"
    ok $? "$command --version"
    run 0 "$PIPELAG" "$command" --help && grep -q "^Usage: pipelag $command" "$work/out"
    ok $? "$command --help"
    run 2 "$PIPELAG" "$command" --no-such-option &&
        grep -q "Try .pipelag $command --help" "$work/err"
    ok $? "$command: unknown option"
    [ "$(LC_ALL=C awk 'length > 88' "$work/out" | wc -l)" -eq 0 ]
    ok $? "$command --help fits 88 columns"
done

run 2 "$PIPELAG" && grep -q "Try .pipelag --help" "$work/err"
ok $? 'no command'
run 2 "$PIPELAG" confg && one_line "pipelag: unknown command 'confg', did you mean 'config'?"
ok $? 'unknown command: the nearest is named'
run 2 "$PIPELAG" xyzzyplugh && one_line "'pipelag --help' lists them"
ok $? 'unknown command far from all'
run 2 "$PIPELAG" --no-such-option
ok $? 'unknown option'

run 2 "$PIPELAG" config "$work/absent.yaml" && one_line "$work/absent.yaml"
ok $? 'file is missing'
run 2 "$PIPELAG" config "$work" && one_line "$work"
ok $? 'file is a folder'
run 2 "$PIPELAG" config --set schedule.nam=1f1b && one_line "schedule.name"
ok $? 'unknown key: the nearest is named'
run 2 "$PIPELAG" config --set schedule.stages && one_line "--set"
ok $? '--set without a value'
run 2 "$PIPELAG" config -P 0 && one_line "-P"
ok $? '-P 0'
run 2 "$PIPELAG" config -m 1000000000000 && one_line "-m"
ok $? '-m 1000000000000'
run 2 "$PIPELAG" config --schedule 1f1c && one_line "1f1b"
ok $? 'unknown schedule: the nearest is named'
run 2 "$PIPELAG" config --set cost.forward=3 && one_line "cost.forward"
ok $? 'duration without a unit'
run 2 "$PIPELAG" config --arms && one_line "FILE"
ok $? '--arms without a file'

run 0 "$PIPELAG" config -P 4 --set schedule.stages=6 && grep -q 'stages: 6' "$work/out"
ok $? 'the later of two settings wins'
printf 'schedule:\n  stages: 3\n' >"$work/a.yaml"
run 0 "$PIPELAG" config -P 4 "$work/a.yaml" && grep -q 'stages: 4' "$work/out"
ok $? 'options win over the file'
cp "$work/out" "$work/b.yaml"
run 0 "$PIPELAG" config "$work/b.yaml" && cmp -s "$work/out" "$work/b.yaml"
ok $? 'printed configuration reads back as itself'
run 0 "$PIPELAG" config --given -P 4 && grep -q 'stages: 4' "$work/out" &&
    ! grep -q layers "$work/out"
ok $? 'config --given'
run 0 "$PIPELAG" config --keys && grep -q '^train.seq: integer 1..1048576, default 128$' "$work/out"
ok $? 'config --keys'

cat >"$work/arms.yaml" <<'E'
axes:
  optimizer: {adamw: {}, muon: {optimizer: {name: muon}}}
  pipeline: {sync: {}, 2bw: {schedule: {name: 2bw, microbatches: 8}}}
arms: {skip: muon+2*}
E
run 0 "$PIPELAG" config "$work/arms.yaml" --arms &&
    [ "$(tr '\n' ' ' <"$work/out")" = 'adamw+sync adamw+2bw muon+sync ' ]
ok $? 'config --arms: the product of the axes, less what is skipped'
run 2 "$PIPELAG" config "$work/arms.yaml" --arms --set 'arms.only=x*' && one_line 'no arm'
ok $? 'config --arms: none left'
sed 's/microbatches: 8/microbatches: 3/' "$work/arms.yaml" >"$work/bad.yaml"
run 2 "$PIPELAG" config "$work/bad.yaml" --arms && one_line '2bw'
ok $? 'config --arms: an arm that cannot be'

if [ -c /dev/full ]; then
    "$PIPELAG" config >/dev/full 2>"$work/err"
    [ $? -eq 1 ] && grep -qx 'pipelag: cannot write standard output: No space left on device' "$work/err"
    ok $? 'full disk'
else
    skip 'full disk' 'no /dev/full'
fi
{ "$PIPELAG" config --keys; echo $? >"$work/status"; } 2>"$work/err" | head -n 1 >/dev/null
[ ! -s "$work/err" ]
ok $? 'closed pipe: silent'
run 2 "$PIPELAG" config "$work/no
such" && one_line 'no\nsuch'
ok $? 'a name of two lines makes one line of message'
run 2 "$PIPELAG" theory stability --beta 2 && one_line '0 to 0.9999'
ok $? 'ranges in readable digits'
"$PIPELAG" config >&- 2>"$work/err"
[ $? -eq 1 ] && grep -qx 'pipelag: cannot write standard output: Bad file descriptor' "$work/err"
ok $? 'closed standard output'
if (ulimit -v 1000000 && "$PIPELAG" config >/dev/null 2>&1); then
    (ulimit -v 1000000 && run 1 "$PIPELAG" sim --schedule 1f1b -P 8 -m 1000000 --updates 10 &&
        one_line 'needs')
    ok $? 'a simulation larger than memory is refused before it starts'
    (ulimit -v 1000000 && run 0 "$PIPELAG" sim --schedule 2bw -P 2 -m 2 --updates 1000000 --json &&
        grep -q '"makespan_s": *6000.00[23]' "$work/out" && grep -q '"weight_versions": *2,' "$work/out")
    ok $? 'an asynchronous run larger than memory is streamed'
    (ulimit -v 1000000 && run 2 "$PIPELAG" sim --schedule 2bw -P 2 -m 2 --updates 1000000 -o "$work/long.h5" &&
        one_line 'are not kept' && [ ! -e "$work/long.h5" ])
    ok $? 'its rows cannot be written'
    (ulimit -v 1000000 && run 1 "$PIPELAG" sim --schedule pipedream -P 4096 -m 1048576 &&
        one_line 'even without keeping the ops, needs')
    ok $? 'even a streamed run may be too large: refused before it starts'
else
    skip 'simulation larger than memory' 'does not run under ulimit -v'
fi
done_testing
