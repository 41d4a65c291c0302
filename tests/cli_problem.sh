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
  printf "%.4g", f }')
grep -q "^sync .* $want " q.txt; ok $? "synchronous loss is the closed form, $want"
$PIPELAG trace check q.h5 > /dev/null && test -s q-curves.svg; ok $? "trace and figures"

bad() { # TEXT NAME ARGS...
  text=$1 name=$2; shift 2
  run 2 $PIPELAG run q.yaml -o x.h5 "$@" && grep -q -- "$text" err && [ "$(wc -l < err)" = 1 ] &&
    [ ! -e x.h5 ] && [ ! -e x.h5.ckpt ]
  r=$?; [ $r = 0 ] || sed 's/^/# /' err
  ok $r "$name"
}
bad "did you mean 'quadratic'" "unknown kind" --set problem.name=quadratc
bad '9 stages for 8 coordinates' "more stages than coordinates" -P 9 -m 12 --set train.batch=12
bad 'has 3 values, expected 8' "list of another length" --set problem.spectrum=list \
  --set problem.values=1,2,3
bad "problem.values: 'x'" "list of words" --set problem.spectrum=list --set problem.values=1,x
bad 'problem.kappa' "condition number below 1" --set problem.kappa=0.5
done_testing
