#!/bin/sh
# Delays that do not come from the schedule: delay.tau, delay.trace, jitter; fidelities
# and correctors end to end.
. "${top_srcdir:-.}/tests/tap.sh"

cd "$work" || exit 99
cat > base.yaml <<'END'
model.layers: 4
model.hidden: 16
model.heads: 2
model.ffn: 24
train.updates: 16
train.batch: 8
train.seq: 16
train.eval_every: 8
train.eval_sequences: 8
schedule.stages: 4
schedule.name: pipedream
END
train() { # OUT ARGS...: quiet run
    out=$1
    shift
    "$PIPELAG" run base.yaml -o "$out" "$@" > "$out.txt" 2> "$out.err"
}
rows() { # FILE...: losses of every update
    for file; do "$PIPELAG" trace dump "$file" /arms/run/seeds/1/rows > "$file.csv" || return 1; done
}

train a.h5; ok $? "the schedule's own delays"
train b.h5 --set 'delay.tau=3 2 1 0'; ok $? "the same, given"
rows a.h5 b.h5 && cut -d, -f3- a.h5.csv > a.rows && cut -d, -f3- b.h5.csv > b.rows && cmp -s a.rows b.rows
ok $? "give the same rows"
train c.h5 --set delay.tau=0..6 && rows c.h5 && cut -d, -f3- c.h5.csv > c.rows && ! cmp -s a.rows c.rows
ok $? "random delays train, and differ"
train c2.h5 --set delay.tau=0..6 && rows c2.h5 && cmp -s c.h5.csv c2.h5.csv
ok $? "and are the same again"
train c3.h5 --set delay.tau=0..6 --set delay.seed=2 && rows c3.h5 && ! cmp -s c.h5.csv c3.h5.csv
ok $? "but not with another seed"
train d.h5 --set delay.tau=64 && rows d.h5; ok $? "longer delays than updates"

# A delay of 0 is no delay, with the whole model's clipping too.
plain='--set schedule.name=1f1b --set clip.norm=.5'
train z.h5 $plain && train z0.h5 $plain --set delay.tau=0 && rows z.h5 z0.h5 && cmp -s z.h5.csv z0.h5.csv
ok $? "delay.tau 0 gives the rows of no delay"
for fidelity in global stash nostash queue; do
    train z0.h5 --force $plain --set delay.tau=0 --set delay.fidelity=$fidelity \
        --set corrector.name=feedback && rows z0.h5 && cmp -s z.h5.csv z0.h5.csv
    ok $? "and with $fidelity and a corrector"
done
train z1.h5 $plain --set 'delay.tau=0 0 0 1' && rows z1.h5 && ! cmp -s z.h5.csv z1.h5.csv &&
    grep -q '^clip.scope  stage$' z1.h5.txt && grep -q '^clip.scope  global$' z0.h5.txt
ok $? "delays that differ clip by stage"

# Jitter makes the map irregular; read back from a trace it gives the same rows.
jitter='jitter.forward=lognormal 60%'
"$PIPELAG" sim --schedule pipedream -P 4 --updates 16 --set schedule.order=free \
    --set "$jitter" -o map.h5 --no-gantt > sim.txt 2>&1; ok $? "a jittered map in a trace"
train e.h5 --set delay.trace=map.h5; ok $? "trains by a trace"
train f.h5 --set schedule.order=free --set "$jitter"; ok $? "trains by jitter"
rows e.h5 f.h5 && cut -d, -f3- e.h5.csv > e.rows && cut -d, -f3- f.h5.csv > f.rows && cmp -s e.rows f.rows
ok $? "give the same rows"
! cmp -s e.rows a.rows; ok $? "which are not those of constant delays"

for schedule in paci pipemare spectrain xpipe amdp; do
    train "$schedule.h5" --set schedule.name=$schedule; ok $? "$schedule trains without stash"
done
for fidelity in nostash queue; do
    train "$fidelity.h5" --set delay.fidelity=$fidelity && rows "$fidelity.h5" &&
        ! cmp -s "$fidelity.h5.csv" a.h5.csv
    ok $? "fidelity $fidelity trains, and differs"
done
for corrector in nesterov feedback prediction spike spectrain xpipe pipeoptim discrepancy nag \
    dcasgd dcasgd_adaptive gapaware; do
    train "c-$corrector.h5" --set corrector.name=$corrector --set delay.fidelity=nostash &&
        rows "c-$corrector.h5" && ! cmp -s "c-$corrector.h5.csv" nostash.h5.csv
    ok $? "corrector $corrector trains, and does something"
done
train g.h5 --set corrector.name=feedback --set corrector.gate=cosine --set corrector.smooth=0.5 \
    --set 'corrector.stage_c=2 1 .5 0' --set rate.delay_power=1 --set rate.delay_updates=8 \
    --set optimizer.decay_at=stale
ok $? "every knob at once"

# Keys that nothing reads are named, those that are read are not.
"$PIPELAG" run base.yaml -o g.h5 --force --set corrector.c=.5 --set delay.seed=4 \
    --set rate.delay_updates=8 --set corrector.lambda=.1 2> err.txt > out.txt
ok $? "keys without effect are no errors"
grep -q 'corrector.c has no effect: corrector none' err.txt &&
    grep -q 'corrector.lambda has no effect: corrector none' err.txt &&
    grep -q 'delay.seed has no effect: delay.tau is not given' err.txt &&
    grep -q 'rate.delay_updates has no effect: rate.delay_power is 0' err.txt
ok $? "but each is named"
"$PIPELAG" run base.yaml -o g.h5 --force --set corrector.name=nag --set corrector.c=.5 \
    --set delay.tau=1..2 --set delay.seed=4 --set rate.delay_updates=8 --set rate.delay_power=1 \
    2> err.txt > out.txt && ! grep -q 'no effect' err.txt
ok $? "where they are read, none is"

bad() { # TEXT NAME ARGS...
    text=$1 name=$2
    shift 2
    timeout 60 "$PIPELAG" run base.yaml -o x.h5 "$@" > out.txt 2> err.txt
    got=$?
    [ $got = 2 ] && [ ! -s out.txt ] && [ "$(wc -l < err.txt)" = 1 ] &&
        grep -q -- "$text" err.txt && [ ! -e x.h5 ]
    r=$?
    [ $r = 0 ] || { echo "# exit $got:"; sed 's/^/# /' err.txt; }
    ok $r "$name"
}
bad 'one for each' 'too few delays' --set 'delay.tau=1 2'
bad 'one for each' 'too many delays' --set 'delay.tau=1 2 3 4 5'
bad "'-1'" 'negative delay' --set 'delay.tau=-1'
bad "'3..1'" 'empty range' --set 'delay.tau=3..1'
bad "'x'" 'not a number' --set 'delay.tau=1 x'
bad 'both given' 'tau and trace' --set delay.tau=1 --set delay.trace=map.h5
bad 'No such file' 'trace missing' --set delay.trace=nowhere.h5
mkfifo pipe
bad 'pipe: not a regular file' 'trace that is a pipe' --set delay.trace=pipe
bad "no arm 'x'" 'arm missing' --set delay.trace=map.h5:x
bad 'update 16' 'trace too short' --set delay.trace=map.h5 --set train.updates=20
bad 'microbatches' 'trace of another m' --set delay.trace=map.h5 --set schedule.microbatches=2
bad 'not of segments' 'with segments' --set delay.tau=1 --set 'segments=1f1b:8 pipedream:8'
bad 'gate' 'gate without stash' --set corrector.name=spectrain --set corrector.gate=cosine \
    --set delay.fidelity=nostash
done_testing
