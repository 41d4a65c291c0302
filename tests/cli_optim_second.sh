# SOAP, Shampoo and basis rotation in whole runs: they train, delay 0 is no delay, delays
# change rows, a killed run resumes to the same rows, a huge rate ends as diverged.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

cat > base.yaml <<'Y'
seeds: [1]
model: {layers: 4, hidden: 16, heads: 2, ffn: 24}
train: {updates: 40, batch: 4, seq: 16, eval_every: 20, eval_sequences: 16}
schedule: {stages: 4, microbatches: 4}
optimizer: {lr: 0.01, refresh: 3}
Y

train() { # OUT ARGS...: quiet run
  out=$1; shift
  $PIPELAG run base.yaml -o $out.h5 "$@" > $out.txt 2> $out.err
}
rows() { # OUT...: losses, rates and norms of every update
  for out; do
    $PIPELAG trace dump $out.h5 /arms/run/seeds/1/rows | cut -d, -f3- > $out.rows || return 1
  done
}
column() { # OUT NAME: first and last value of a column
  $PIPELAG trace dump $1.h5 /arms/run/seeds/1/rows |
    awk -F, -v name=$2 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ "^" name) c = i; next }
      { last = $c; if (!n++) first = $c } END { print first, last }'
}

rule() { # LABEL SETTINGS...
  label=$1; shift
  train $label-sync "$@" --set schedule.name=gpipe && rows $label-sync
  ok $? "$label trains"
  column $label-sync loss | awk '{ exit !($1 > 5 && $2 < $1 - 0.7) }'
  ok $? "$label: the loss falls by more than 0.7 nat in 40 updates"
  train $label-zero "$@" --set schedule.name=pipedream --set schedule.microbatches=1 \
    --set delay.tau=0 --set clip.scope=stage && rows $label-zero
  train $label-one "$@" --set schedule.name=gpipe --set schedule.microbatches=1 \
    --set clip.scope=stage &&
    rows $label-one && cmp -s $label-zero.rows $label-one.rows
  ok $? "$label: delay 0 gives the bits of no delay"
  train $label-late "$@" --set schedule.name=pipedream --set schedule.microbatches=1 &&
    rows $label-late && ! cmp -s $label-zero.rows $label-late.rows
  ok $? "$label: delays differ"

  # interrupted between two refreshes at the first sign of life, then resumed
  train $label-long "$@" --set train.updates=300 --set train.checkpoint_s=0
  $PIPELAG run base.yaml -o $label-cut.h5 "$@" --set train.updates=300 \
    --set train.checkpoint_s=0 > cut.txt 2> cut.err &
  pid=$!
  until grep -q '"update": [1-9]' $label-cut.h5.progress.jsonl 2> /dev/null ||
    ! kill -0 $pid 2> /dev/null; do sleep 0.02; done
  kill -TERM $pid 2> /dev/null; wait $pid; status=$?
  test $status = 143 && test -d $label-cut.h5.ckpt
  ok $? "$label: interrupted with a checkpoint (exit $status)"
  train $label-cut "$@" --set train.updates=300 --set train.checkpoint_s=0 --resume &&
    $PIPELAG trace diff $label-long.h5 $label-cut.h5 > diff.txt
  ok $? "$label: resumed, it has the same rows to the bit"

  train $label-hot "$@" --set optimizer.lr=1e6 --set train.diverged_above=0 &&
    grep -q -i diverged $label-hot.txt
  ok $? "$label: a huge rate diverges, as a result"
}

rule soap --set optimizer.name=soap --set optimizer.max_precond_dim=64
rule shampoo --set optimizer.name=shampoo --set optimizer.beta2=.95 \
  --set optimizer.merge_dims=no --set optimizer.graft=yes
rule rotation --set optimizer.name=basis-rotation
rule rotation-first --set optimizer.name=basis-rotation \
  --set optimizer.rotation_source=first --set optimizer.one_sided=yes

train unread --set optimizer.name=soap --set optimizer.graft=yes --set train.updates=2
grep -q 'optimizer.graft has no effect' unread.err
ok $? "a setting that the rule does not read is named"
$PIPELAG run base.yaml -o no.h5 --set optimizer.refresh=-1 > no.txt 2> no.err
test $? = 2 && grep -q 'optimizer.refresh' no.err && test ! -e no.h5
ok $? "a wrong refresh is refused"
done_testing
