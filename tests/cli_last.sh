# Runs that last: checkpoints by updates and by seconds, kill -9 at any moment, signals, a full
# disk, damaged checkpoints. What is resumed is bit-equal to a run in one piece.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

# Every kind of state: stretches, a corrector with state and one of the gradient, bases of SOAP,
# Shampoo's roots, selection biases, diagnosis, scores.
cat > last.yaml <<'Y'
seeds: 1
model: {layers: 4, hidden: 16, heads: 2, kv_heads: 1, ffn: 24}
train: {updates: 60, batch: 4, seq: 16, eval_every: 6, eval_sequences: 4, diagnose: yes, workers: 2,
        checkpoint_updates: 3, checkpoint_s: 1000}
eval: {texts: 'words=words.txt'}
schedule: {stages: 4, microbatches: 4}
axes:
  arm:
    mixed: {segments: '1f1b:7 2bw+feedback:40 1f1b:13', optimizer: {name: muon, lr: 0.02}}
    smooth: {schedule: {name: pipedream, microbatches: 1}, optimizer: {name: soap},
             corrector: {name: feedback, smooth: 0.5, gate: cosine}}
    taylor: {schedule: {name: pipedream, microbatches: 1}, optimizer: {name: shampoo},
             corrector: {name: dcasgd_adaptive}}
    experts: {schedule: {name: 2bw}, optimizer: {name: adamw},
              model: {experts: 4, experts_per_token: 2, expert_ffn: 16, router_bias: yes}}
Y
i=0
while [ $i -lt 60 ]; do
    echo "the quick brown fox jumps over lazy dog number $i"
    i=$((i + 1))
done > words.txt

run 0 "$PIPELAG" run last.yaml -o whole.h5
ok $? 'runs'
run 0 "$PIPELAG" trace info whole.h5 && grep -q scores out && grep -q diagnosis out
ok $? 'scores and diagnosis are in it'

# lines FILE: lines of progress
lines() { cat "$1" 2> /dev/null | wc -l; }
# killed FILE LINES: kill -9 of the whole group when the progress has so many lines.
killed() {
    setsid "$PIPELAG" run last.yaml -o "$1" --resume > out 2> err &
    job=$!
    tries=0
    until [ "$(lines "$1.progress.jsonl")" -ge "$2" ] || [ $tries -gt 600 ]; do
        kill -0 $job 2> /dev/null || break
        sleep 0.02
        tries=$((tries + 1))
    done
    kill -s KILL -- -$job
    wait $job
} 2> /dev/null
for n in 2 8 14 20; do killed part.h5 $n; done
[ -d part.h5.ckpt ] && run 0 "$PIPELAG" run last.yaml -o part.h5 --resume
ok $? 'killed at four moments, resumed'
cmp whole.h5 part.h5
ok $? 'the bytes of a run in one piece'

# One arm from here on: what a run of few updates leaves.
set -- --set arms.only=smooth --set train.workers=1
ckpt=smooth-1.ckpt
# long FILE ARGS...: a run in the background, $job, up to its second evaluation.
long() {
    long_file=$1
    shift
    "$PIPELAG" run last.yaml -o "$long_file" --set arms.only=smooth --set train.workers=1 "$@" > out 2> err &
    job=$!
    tries=0
    until [ "$(lines "$long_file.progress.jsonl")" -ge 2 ] || [ $tries -gt 600 ]; do
        sleep 0.02
        tries=$((tries + 1))
    done
}
long sec.h5 --set train.updates=3000 --set train.checkpoint_updates=0 --set train.checkpoint_s=0.01
[ -s sec.h5.ckpt/$ckpt ]
ok $? 'a checkpoint by seconds'
kill -INT $job; kill -INT $job; wait $job; got=$?
[ $got = 130 ] && grep -q 'resume with: .*--resume' err
ok $? "SIGINT twice: 130 and the hint (was $got)"
"$PIPELAG" trace info sec.h5 | grep -q partial
ok $? 'and a partial trace'
cp -r sec.h5.ckpt end.ckpt
long term.h5 --set train.updates=3000 --set train.checkpoint_updates=0
[ ! -e term.h5.ckpt/$ckpt ]; early=$?
kill -TERM $job; wait $job; got=$?
[ $early = 0 ] && [ $got = 143 ] && [ -s term.h5.ckpt/$ckpt ] && grep -q 'resume with: .*--resume' err
ok $? "SIGTERM: 143, the only checkpoint, the hint (was $got)"
grep -c '^{"arm": "smooth", "seed": 1, "update": [0-9]*, "time_s": [0-9.e-]*, "valid_loss": [0-9.]*}$' term.h5.progress.jsonl > n
[ "$(cat n)" = "$(lines term.h5.progress.jsonl)" ] || { head -2 term.h5.progress.jsonl | sed 's/^/# /'; false; }
ok $? 'progress: one object a line'

# Each section flipped in turn: refused, the file named, nothing touched.
offsets() { # of a byte in the header and in each section, from the file itself
    at=40
    echo 20
    while [ $at -lt "$(wc -c < "$1")" ]; do
        size=$(od -An -tu8 -j $((at + 8)) -N 8 "$1" | tr -d ' ')
        echo $((at + 16 + size / 2))
        at=$((at + 16 + size + 4))
    done
}
flip() { # FILE OFFSET
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf "\\$(printf %o $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2> /dev/null
}
cp term.h5.ckpt/$ckpt good; cp term.h5 term.copy
sections=0 wrong=0
for at in $(offsets good); do
    cp good term.h5.ckpt/$ckpt
    flip term.h5.ckpt/$ckpt "$at"
    "$PIPELAG" run last.yaml -o term.h5 "$@" --set train.updates=3000 --set train.checkpoint_updates=0 --resume > out 2> err
    [ $? = 2 ] && [ "$(wc -l < err)" = 1 ] && grep -q "term.h5.ckpt/$ckpt: checkpoint" err && cmp -s term.h5 term.copy ||
        { wrong=1; echo "# byte $at:"; sed 's/^/# /' err; }
    sections=$((sections + 1))
done
[ $wrong = 0 ] && [ $sections = 9 ]
ok $? "each of $sections parts of a checkpoint damaged: refused by name"
cp good term.h5.ckpt/$ckpt
printf '\001' | dd of=term.h5.ckpt/$ckpt bs=1 seek=8 conv=notrunc 2> /dev/null
run 2 "$PIPELAG" run last.yaml -o term.h5 "$@" --set train.updates=3000 --set train.checkpoint_updates=0 --resume &&
    grep -q "term.h5.ckpt/$ckpt: checkpoint has format 1, this build reads" err && [ "$(wc -l < err)" = 1 ]
ok $? 'a checkpoint of format 1: refused'

# A full disk: from the second evaluation on, no file may grow beyond 8 KiB.
if command -v prlimit > /dev/null; then
    set -- "$@" --set train.updates=300 --set train.eval_every=50
    run 0 "$PIPELAG" run last.yaml -o room.h5 "$@"
    long disk.h5 --set train.updates=300 --set train.eval_every=50
    for child in $(cat /proc/$job/task/$job/children); do prlimit --pid "$child" --fsize=8192; done
    wait $job; got=$?
    [ $got = 1 ] && grep -q "smooth, seed 1: disk.h5.ckpt/$ckpt: .*File too large" err && [ -s disk.h5.ckpt/$ckpt ] &&
        [ "$(ls -A disk.h5.ckpt)" = $ckpt ] && grep -q 'what was done is kept; resume with: .*--resume' err
    ok $? 'no room: exit 1, the last good checkpoint stays alone'
    run 0 "$PIPELAG" run last.yaml -o disk.h5 "$@" --resume && cmp disk.h5 room.h5
    ok $? 'resumed when there is room: the same bytes'
    set -- --set arms.only=smooth --set train.workers=1
else
    skip 'no room for a checkpoint' 'no prlimit'
fi

run 0 "$PIPELAG" run last.yaml -o div.h5 "$@" --set train.diverged_above=5.54 && grep -q diverged out &&
    [ ! -e div.h5.ckpt ] && run 0 "$PIPELAG" trace check div.h5
ok $? 'divergence is a result'
run 0 "$PIPELAG" run last.yaml -o single.h5 "$@" --set train.updates=1 && "$PIPELAG" trace dump single.h5 /arms/smooth/seeds/1/evals > evals &&
    [ "$(cut -d, -f1 evals | tr '\n' ' ')" = 'update 0 1 ' ]
ok $? 'one update: evaluated before and after'
run 0 "$PIPELAG" run last.yaml -o odd.h5 "$@" --set train.updates=8 && "$PIPELAG" trace dump odd.h5 /arms/smooth/seeds/1/evals > evals &&
    [ "$(cut -d, -f1 evals | tr '\n' ' ')" = 'update 0 6 8 ' ]
ok $? 'updates that are no multiple of the distance: evaluated at the end'
done_testing
