# pipelag run end to end on a tiny model and the built-in grammar: table, trace, figures,
# equal bytes, kill -9 and resume, signals, and what bad input does.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

cat > tiny.yaml <<'Y'
title: tiny
seeds: [1, 2]
baseline: sync
model: {layers: 4, hidden: 16, heads: 2, kv_heads: 1, ffn: 24}
train: {updates: 24, batch: 8, seq: 24, eval_every: 6, eval_sequences: 4, checkpoint_s: 0}
schedule: {stages: 4, microbatches: 8}
cost: {forward: 2 ms, backward: 2 ms, weight: 1 ms}
axes:
  optimizer:
    adamw: {optimizer: {name: adamw}}
    muon: {optimizer: {name: muon, lr: 0.02}}
  pipeline:
    sync: {}
    2bw: {schedule: {name: 2bw}}
    2bw-ef: {schedule: {name: 2bw}, corrector: {name: feedback}}
    pipedream: {schedule: {name: pipedream, microbatches: 1}}
Y

$PIPELAG run tiny.yaml -o a.h5 > a.txt 2> a.err; ok $? "runs"
grep -q 'adamw+sync .* baseline' a.txt; ok $? "table has the baseline"
test "$(grep -c -E '^(adamw|muon)\+' a.txt)" = 8; ok $? "one line an arm"
grep -A1 '^adamw+sync ' a.txt | grep -q 'with another seed.* rms 0'; ok $? "noise floor is printed"
grep -q 'iterates .*adamw+2bw-ef' a.txt; ok $? "both iterates are printed"
awk '/^adamw\+sync / { loss = $7 } /^bits\/byte   adamw\+sync / { sub(",", "", $3); bits = $3 }
  END { exit !(bits > 0 && (bits - loss / log(2)) ^ 2 < 1e-7) }' a.txt
ok $? "bits per byte of text are printed"
whole a.txt | grep -q 'clip.scope .*adamw+2bw.*; stage: adamw+pipedream'; ok $? "clipping scopes are named"
grep -q 'scaled .*adamw+pipedream: one microbatch is 8 times' a.txt; ok $? "scaled costs are named"
grep -q '^     verdict: \(direction only\|within noise\)$' a.txt
ok $? "claims have verdicts, with two seeds none better than direction only"
! grep -q 'verdict: .*reproduced' a.txt; ok $? "and nothing is called reproduced"
grep -q '^10 .*mixture of experts.*: a 10B model' a.txt
ok $? "claims not tested say why"
$PIPELAG trace check a.h5 > /dev/null; ok $? "trace is valid"
test -s a-gantt.svg && grep -q '<title>tiny</title>' a-curves.svg; ok $? "figures are written"
test ! -e a.h5.ckpt; ok $? "checkpoints are gone after success"

$PIPELAG run tiny.yaml -o b.h5 > b.txt 2> /dev/null
cmp -s a.h5 b.h5; ok $? "equal runs give equal bytes"
cmp -s a.txt b.txt; ok $? "and equal tables"

$PIPELAG run tiny.yaml -o w.h5 -P 2 -m 4 --set schedule.name=wpipe --set arms.only=adamw+sync \
    --set seeds=1 --set train.updates=8 > w.txt 2> w.err && grep -q '^adamw+sync .* 1\.\.0 ' w.txt
ok $? "wpipe trains 2 P chunks, delay 1 on the first half"

# kill -9 the whole group at some moment, resume until done.
tries=0
while ! test -e c.done && [ $tries -lt 40 ]; do
  tries=$((tries + 1))
  setsid sh -c '$PIPELAG run tiny.yaml -o c.h5 --resume > c.txt 2> c.err && touch c.done' &
  pid=$!
  if [ $tries -lt 6 ]; then
    sleep 0.$((tries * 2 - 1)); kill -s KILL -- -$pid 2> /dev/null
  fi
  wait $pid 2> /dev/null
  # killed between the end of the run and the touch: there was nothing left to resume
  if [ ! -e c.done ] && [ -e c.h5 ] && [ ! -e c.h5.ckpt ]; then rm c.h5; fi
done
test -e c.done; ok $? "resumes after kill -9"
test ! -e c.h5.ckpt; ok $? "and leaves no checkpoints or temporaries"
cmp -s a.txt c.txt; ok $? "with the same table"
$PIPELAG trace diff a.h5 c.h5 > /dev/null; ok $? "and equal rows"

# An interrupted run says how to resume and leaves a readable trace.
$PIPELAG run tiny.yaml --set train.updates=4000 -o d.h5 > /dev/null 2> d.err &
pid=$!; until test -s d.h5.progress.jsonl; do sleep 0.1; done; kill -TERM $pid; wait $pid; status=$?
test $status = 143; ok $? "terminated: exit 143 (was $status)"
grep -q 'resume with: .*--resume' d.err; ok $? "says how to resume"
$PIPELAG trace check d.h5 > /dev/null; ok $? "partial trace is valid"

bad() { # STATUS TEXT NAME ARGS...
  want=$1 text=$2 name=$3; shift 3
  "$PIPELAG" run "$@" > out.txt 2> err.txt; got=$?
  [ $got = $want ] && [ ! -s out.txt ] && grep -q -- "$text" err.txt &&
    [ "$(wc -l < err.txt)" = 1 ]
  r=$?; [ $r = 0 ] || { echo "# exit $got:"; sed 's/^/# /' err.txt; }
  ok $r "$name"
}
bad 2 'exists; --force' "does not overwrite" tiny.yaml -o a.h5
bad 2 'missing.txt' "missing text" tiny.yaml -o x.h5 --set data.text=missing.txt
bad 2 'unknown .*optimizer.nam' "unknown key" tiny.yaml -o x.h5 --set optimizer.nam=x
bad 2 'microbatches' "batch not a multiple of m" tiny.yaml -o x.h5 --set train.batch=7
bad 1 'nowhere' "output folder missing" tiny.yaml -o nowhere/x.h5
bad 2 'm >= P\|m < P\|at least' "2bw with m < P" tiny.yaml -o x.h5 --set schedule.microbatches=2
bad 2 'layers' "more stages than layers" tiny.yaml -o x.h5 -P 8
bad 2 'baseline' "unknown baseline" tiny.yaml -o x.h5 --set baseline=synk
bad 2 'at most 64' "65 seeds" tiny.yaml -o x.h5 --set "seeds=$(seq -s , 65)"
bad 2 'model.tied' "tied weights under unequal delays" tiny.yaml -o x.h5 --set model.tied=yes
bad 2 'corrector.c' "custom corrector without c" tiny.yaml -o x.h5 \
  --set corrector.name=custom --set 'arms.only=adamw+sync adamw+2bw'
bad 2 'delay.fidelity' "one version under unequal delays" tiny.yaml -o x.h5 --set delay.fidelity=global
bad 2 'more than train.updates' "segments that overflow" tiny.yaml -o x.h5 \
  --set 'segments=1f1b:1 2bw:9223372036854775807'
bad 2 'one for each stage' "corrector.stage_c too short" tiny.yaml -o x.h5 \
  --set corrector.stage_c=1 --set 'arms.only=adamw+sync adamw+2bw'
bad 2 'one for each stage' "corrector.stage_c not a number" tiny.yaml -o x.h5 \
  --set 'corrector.stage_c=1 x' --set 'arms.only=adamw+sync adamw+2bw'
bad 2 'no arm is left' "no arm" tiny.yaml -o x.h5 --set 'arms.only=zzz'
bad 1 'of memory' "model larger than memory" tiny.yaml -o x.h5 --set model.hidden=60000 \
  --set model.ffn=60000 --set model.layers=10000 --set model.head_dim=2
bad 2 'at most 4294967295' "tensor of more than 2^32 numbers" tiny.yaml -o x.h5 \
  --set model.hidden=1048576 --set model.ffn=1048576 --set model.head_dim=2
test ! -e x.h5 && test ! -e x.h5.ckpt && test ! -e x.h5.progress.jsonl
ok $? "bad input touched no output"

# A run that ends before its first row or evaluation is a result; without evaluations there
# are no curves.
$PIPELAG run tiny.yaml -o e.h5 --set train.diverged_above=0.1 --set 'arms.only=adamw+*' \
  > e.txt 2> e.err; ok $? "diverged at once: a result"
grep -q diverged e.txt && grep -q 'no curves' e.err; ok $? "and the table says so"
$PIPELAG trace check e.h5 > /dev/null; ok $? "and its trace is valid"
$PIPELAG run tiny.yaml -o n.h5 --set train.eval_sequences=0 --set train.updates=1 \
  --set 'arms.only=adamw+sync' > n.txt 2> n.err && test ! -e n-curves.svg
ok $? "no evaluations, one update"
grep -q 'not evaluated' n.txt && ! grep -q 'diverged\|inf\|nan' n.txt; ok $? "and no loss is no divergence"
$PIPELAG run tiny.yaml -o g.h5 --set model.init_std=9 --set train.updates=1 \
  --set 'arms.only=adamw+sync' > g.txt 2> g.err && grep -q diverged g.txt && ! grep -q 'runtime error' g.err
ok $? "scores of any size end as a result"

# What must not be lost: a complete trace, an interrupted run, a file that is no trace, and an
# output that another run is writing.
cp a.h5 keep.h5
bad 2 'is complete' "--resume of a complete trace" tiny.yaml -o a.h5 --resume
cmp -s a.h5 keep.h5; ok $? "it is as it was"
rm d.h5; cp -r d.h5.ckpt keep.ckpt
bad 2 'interrupted run' "an interrupted run is not thrown away" tiny.yaml -o d.h5 --set train.updates=4000
bad 2 'another run' "--resume with another configuration" tiny.yaml -o d.h5 --resume
diff -r d.h5.ckpt keep.ckpt > /dev/null; ok $? "its checkpoints are as they were"
for f in d.h5.ckpt/*; do head -c 100 "$f" > "$f.cut"; mv "$f.cut" "$f"; done
bad 2 'truncated' "truncated checkpoint" tiny.yaml -o d.h5 --set train.updates=4000 --resume
echo text > t.h5
bad 2 't.h5' "--resume does not replace what is no trace" tiny.yaml -o t.h5 --resume
test "$(cat t.h5)" = text; ok $? "it is as it was"
$PIPELAG run tiny.yaml --set train.updates=4000 -o l.h5 > /dev/null 2> l.err &
pid=$!; until test -s l.h5.progress.jsonl; do sleep 0.1; done
bad 2 'another .pipelag run.' "two runs on one output" tiny.yaml --set train.updates=4000 -o l.h5 --force
kill -INT $pid; kill -INT $pid; wait $pid; status=$?
test $status = 130; ok $? "interrupted twice: exit 130 (was $status)"
grep -q 'resume with' l.err; ok $? "and the hint"
done_testing
