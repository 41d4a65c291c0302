# train.precision: without AMX bf16 says so in one line and is fp32 to the bit; emulated it
# trains close to fp32; what else may be asked.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

cat > tiny.yaml <<'Y'
model: {layers: 2, hidden: 32, heads: 2, kv_heads: 1, ffn: 48}
train: {updates: 20, batch: 8, seq: 40, eval_every: 10, eval_sequences: 8}
schedule: {stages: 2, microbatches: 8}
axes:
  pipeline:
    sync: {}
    2bw: {schedule: {name: 2bw}}
Y
train() { # NAME ARGS...
  name=$1; shift
  $PIPELAG run tiny.yaml -o $name.h5 "$@" > $name.txt 2> $name.err
}
rows() { # every number of training and evaluation
  for t in $($PIPELAG trace dump $1.h5 | grep -E '/(rows|evals)$'); do
    echo $t; $PIPELAG trace dump $1.h5 $t
  done
}
# the losses of the table's arms
losses() { sed -n 's/^\(sync\|2bw\) .* \([0-9]*\.[0-9]\{4\}\).*/\1 \2/p' $1.txt; }

train fp32; ok $? "fp32"
! grep -q precision fp32.err; ok $? "says nothing of precision"
train emulated --set train.precision=bf16-emulated; ok $? "bf16, emulated"
! grep -q precision emulated.err; ok $? "as asked, without a notice"
train again --set train.precision=bf16-emulated; cmp -s emulated.h5 again.h5
ok $? "equal runs give equal bytes"
rows fp32 > fp32.rows; rows emulated > emulated.rows
test -s fp32.rows && ! cmp -s fp32.rows emulated.rows; ok $? "losses are not those of fp32"
losses fp32 > a; losses emulated > b
# two factors of bf16: a relative error of 2^-8 at most
paste a b | awk '{ d = $2 - $4; if (d < 0) d = -d; if (d > $2 / 256) bad = 1; n++ }
  END { exit bad || n != 2 }'
ok $? "but close: $(paste -sd ' ' a), $(paste -sd ' ' b)"

train bf16 --set train.precision=bf16; ok $? "bf16"
rows bf16 > bf16.rows
if grep -q amx_bf16 /proc/cpuinfo 2> /dev/null; then
  skip "falls back to fp32" "this CPU has AMX"
  skip "equal to fp32" "this CPU has AMX"
  cmp -s emulated.rows bf16.rows
  ok $? "AMX gives the emulated losses"
else
  [ "$(grep -c 'train.precision bf16: .*AMX.*fp32' bf16.err)" = 1 ]
  ok $? "one line says that it is fp32"
  cmp -s fp32.rows bf16.rows && cmp -s fp32.txt bf16.txt
  ok $? "equal to fp32"
  skip "AMX gives the emulated losses" "no AMX"
fi

bad() { # TEXT NAME ARGS...
  text=$1 name=$2; shift 2
  $PIPELAG run tiny.yaml -o x.h5 "$@" > out.txt 2> err.txt
  [ $? = 2 ] && grep -q -- "$text" err.txt && [ "$(wc -l < err.txt)" = 1 ] && [ ! -e x.h5 ]
  ok $? "$name"
}
bad 'train.precision: bf16 is there for the device host and cuda, not for ref' "ref has no bf16" \
  --set train.device=ref --set train.precision=bf16
bad 'train.precision: tf32 is there for the device cuda, not for host' "host has no tf32" \
  --set train.precision=tf32
bad "did you mean 'bf16'" "unknown precision" --set train.precision=bf61
$PIPELAG run tiny.yaml -o q.h5 --set problem.name=quadratic --set train.precision=bf16-emulated \
  > q.txt 2> q.err
grep -q 'train.precision has no effect' q.err; ok $? "no effect on a quadratic"
done_testing
