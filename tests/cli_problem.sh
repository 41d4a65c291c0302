# pipelag run on problems without a model: each kind trains under delay, and what bad keys do.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

cat > q.yaml <<'Y'
title: quadratic
baseline: sync
problem: {name: quadratic, size: 8, kappa: 10}
train: {updates: 60, batch: 4, eval_every: 20}
schedule: {stages: 4, microbatches: 4}
optimizer: {name: sgd, lr: 0.5, momentum: 0, nesterov: no, decay: 0}
rate: {schedule: constant, warmup: 0}
clip: {norm: 0}
axes:
  pipeline:
    sync: {}
    2bw: {schedule: {name: 2bw}}
    2bw-ef: {schedule: {name: 2bw}, corrector: {name: feedback}}
Y
run 0 $PIPELAG run q.yaml -o q.h5 && cp out q.txt
ok $? "quadratic trains"
grep -q '^problem     quadratic' q.txt && grep -q 'no model and no data' q.txt
ok $? "the table says what was trained"
# f = 1/2 sum h z^2, each z multiplied by 1 - h/2 in each of 60 updates
want=$(awk 'BEGIN { for (i = 0; i < 8; i++) { h = 10^(-i/7); f += h / 2 * (1 - h/2)^120 }
  printf "%.3g", f }')
grep -q "^sync .* $want " q.txt; ok $? "synchronous loss is the closed form, $want"
$PIPELAG trace check q.h5 > /dev/null && test -s q-curves.svg; ok $? "trace and figures"

# known numbers are attributes of the trace, whole in the table
$PIPELAG run q.yaml -o n.h5 --set problem.cols=4 --set problem.rotation=0.5 > n.txt 2> n.err
whole n.txt | grep -q 'minimum 0, L 1; P = 4'; ok $? "minimum and smoothness are said"
if command -v h5dump > /dev/null; then
  h5dump -a /arms/2bw/L_lmo n.h5 | grep -q "(0): $(awk 'BEGIN {
    for (i = 0; i < 4; i++) L += 4 * 10^(-i/7); printf "%.3f", L }' | cut -c -5)"
  ok $? "and recorded"
else skip "and recorded" "no h5dump"; fi
[ ! -s n.err ] || ! grep -q warning n.err; ok $? "without a warning"

$PIPELAG trace dump n.h5 /arms/2bw-ef/seeds/1/evals > n.csv &&
  head -n 1 n.csv | grep -q ',grad_norm,grad_dual,grad_dual_y$'
ok $? "evaluations have the exact gradient"

kind() { # NAME TEXT ARGS...: trains under delay, the same bytes again, and the loss falls
  name=$1 text=$2; shift 2
  run 0 $PIPELAG run q.yaml -o $name.h5 --set problem.name=$name --set seeds=3,4 \
    --set optimizer.lr=0.1 --set train.eval_every=60 "$@" && cp out $name.txt &&
    whole $name.txt | grep -q "^problem     $name.*$text" && ! grep -q diverged $name.txt &&
    $PIPELAG trace check $name.h5 > /dev/null
  ok $? "$name trains"
  $PIPELAG run q.yaml -o again.h5 --set problem.name=$name --set seeds=3,4 \
    --set optimizer.lr=0.1 --set train.eval_every=60 "$@" --force > again.txt 2> /dev/null
  cmp -s $name.txt again.txt && cmp -s $name.h5 again.h5; ok $? "and again the same"
  awk '/"arm": *"2bw",/ { n = split($0, f, /[:,}]/); loss = f[n - 1]
       if (!(f[4] in first)) first[f[4]] = loss; last[f[4]] = loss }
    END { for (s in first) { k++; if (!(last[s] < 0.97 * first[s])) bad = 1 }
          exit !(k == 2 && !bad) }' $name.h5.progress.jsonl
  ok $? "and its loss falls under delay"
}
kind logistic 'minimum 0\.[0-9]*, L 0' --set problem.samples=64
kind factor 'minimum 0\.[0-9]*;' --set problem.rank=4 --set problem.start=0.5 \
  --set problem.cols=6
kind mlp 'minimum 0;' --set problem.width=8 --set problem.samples=64 \
  --set optimizer.name=adamw --set optimizer.lr=0.02

# a schedule that keeps no old weights, roofline costs, and Muon on matrices
run 0 $PIPELAG run q.yaml -o p.h5 --set problem.name=mlp --set schedule.name=pipedream \
  --set arms.only=sync --set schedule.microbatches=1 --set optimizer.name=muon
ok $? "per-stage delays and muon"
run 0 $PIPELAG run q.yaml -o r.h5 --set cost.type=roofline --set cluster.preset=dgx-a100-80 \
  --set model.layers=4 && whole out | grep -q 'of model.*, which is not trained'
ok $? "the time of a model, the losses of a quadratic"

bad() { # TEXT NAME ARGS...
  text=$1 name=$2; shift 2
  run 2 $PIPELAG run q.yaml -o x.h5 "$@" && grep -q -- "$text" err && [ "$(wc -l < err)" = 1 ] &&
    [ ! -e x.h5 ] && [ ! -e x.h5.ckpt ]
  r=$?; [ $r = 0 ] || sed 's/^/# /' err
  ok $r "$name"
}
bad "did you mean 'quadratic'" "unknown kind" --set problem.name=quadratc
bad '9 stages for 8 coordinates' "more stages than coordinates" -P 9 -m 12 --set train.batch=12
bad 'problem.values: 3 values, expected 8' "list of another length" --set problem.spectrum=list \
  --set problem.values=1,2,3
bad "problem.values: 'x'" "list of words" --set problem.spectrum=list --set problem.values=1,x
bad '5 stages for 4 layers' "more stages than layers" --set problem.name=mlp -P 5 -m 5 \
  --set train.batch=5
bad 'problem.rank' "more stages than columns" --set problem.name=factor --set problem.rank=2
bad 'classification.*regression' "unknown task" --set problem.name=mlp --set problem.task=ranking
bad 'problem.outputs' "one class" --set problem.name=mlp --set problem.outputs=1
bad 'singular value 7' "negative singular value" --set problem.name=factor \
  --set problem.spectrum=list --set problem.values=1,1,1,1,1,1,1,-1
bad 'problem.kappa' "condition number below 1" --set problem.kappa=0.5

# keys that nothing reads are named, once each
run 0 $PIPELAG run q.yaml -o w.h5 --set problem.l2=1 --set model.layers=4 --set data.text=x \
  --set problem.spectrum=power && cp err w.err
for key in problem.l2 problem.kappa model.layers data.text; do
  [ "$(grep -c "$key has no effect on problem.name quadratic" w.err)" = 1 ]
  ok $? "$key is named"
done
[ "$(grep -c warning w.err)" = 4 ]; ok $? "and no other key"
done_testing
