# pipelag run says what is wrong before it writes, names keys without effect, and compares
# with nothing where the baseline has no loss.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

cat >tiny.yaml <<'Y'
model: {layers: 2, hidden: 16, heads: 2, ffn: 24}
train: {updates: 4, batch: 4, seq: 16, eval_every: 2, eval_sequences: 3, threads: 1}
schedule: {stages: 2, microbatches: 2}
axes: {pipe: {sync: {schedule: {name: 1f1b}}, 2bw: {schedule: {name: 2bw}}}}
Y
warns() { # TEXT ARGUMENTS...: a dry run warns of it; with TEXT '' of nothing
    text=$1
    shift
    run 0 "$PIPELAG" run tiny.yaml --dry-run "$@" || return 1
    if [ "$text" ]; then grep -q "warning: .*$text" err; else ! grep -q warning err; fi
}

warns 'delay.seed has no effect: delay.tau has no range' --set delay.tau=1 --set delay.seed=3 &&
    warns '' --set delay.tau=0..2 --set delay.seed=3
ok $? 'delay.seed without anything to draw is named'

warns 'train.eval_every has no effect: train.eval_sequences is 0' --set train.eval_sequences=0
ok $? 'eval_every without evaluations is named'

warns 'corrector.name has no effect: discrepancy .* the fidelity is' --set corrector.name=discrepancy &&
    warns '' --set corrector.name=discrepancy --set schedule.name=pipemare --set delay.tau=1 \
        --set delay.fidelity=nostash
ok $? 'discrepancy under stash is named'

warns 'corrector.c has no effect: corrector.stage_c is given' --set corrector.name=custom \
    --set corrector.c=2 --set corrector.stage_c='1 1' && warns '' --set corrector.name=custom --set corrector.c=2
ok $? 'corrector.c beside stage_c is named'

echo 'a text that is long enough to be cut into windows of sixteen bytes, twice over' >text
run 2 "$PIPELAG" run tiny.yaml -o x.h5 --set data.source=grammar --set data.text=text &&
    grep -q 'data.source: grammar reads no file, data.text is given' err && [ ! -e x.h5.ckpt ]
ok $? 'the grammar beside a text is refused'

run 0 "$PIPELAG" run tiny.yaml -o d.h5 --set optimizer.name=sgd --set optimizer.lr=1e6 --set clip.norm=0 &&
    grep -q '^sync .* diverged (1 of 1)  baseline$' out && grep -q '^  sync  *-$' out &&
    grep -q '^2bw .* diverged (1 of 1) ' out && grep -q '^  2bw  *-  .* inf  *inf$' out && grep -q '; 1 seed$' out &&
    grep -q '^pipelag: 2 runs (2 arms x 1 seed), ' err
ok $? 'a diverged baseline is reached by nobody'

run 0 "$PIPELAG" run tiny.yaml -o s.h5 --set arms.only=sync --set train.updates=2 --save w &&
    grep -q '^pipelag: 1 run (1 arm x 1 seed), ' err && cp w/sync-1/config.json . || exit 99
# the last four bytes of the file are a number of the last tensor
spoil() { # FILE BYTES-IN-PRINTF
    size=$(wc -c <"$1")
    printf "$2" | dd of="$1" bs=1 seek=$((size - 4)) conv=notrunc 2>/dev/null
}
for bits in '\0\0\300\177' '\0\0\200\177' '\0\0\200\377'; do
    cp w/sync-1/model.safetensors bad.safetensors
    spoil bad.safetensors "$bits"
    run 2 "$PIPELAG" run tiny.yaml -o n.h5 --set model.weights=bad.safetensors &&
        grep -q 'bad.safetensors: [a-z_.0-9]* has -*\(nan\|inf\) at number [0-9]*$' err &&
        [ ! -e n.h5 ] && [ ! -e n.h5.ckpt ] && [ ! -e n.h5.progress.jsonl ] || break
    bits=
done
[ -z "$bits" ] && run 0 "$PIPELAG" run tiny.yaml -o n.h5 --set model.weights=w/sync-1
ok $? 'weights that are not finite are refused by name before anything is written'
done_testing
