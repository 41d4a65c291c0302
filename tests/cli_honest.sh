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

cp tiny.yaml named.yaml && echo 'data: {text: nowhere.txt}' >>named.yaml
said() { # TEXT ARGUMENTS...: a dry run refuses, in one line that ends so
    text=$1
    shift
    run 2 "$PIPELAG" run --dry-run "$@" && [ "$(wc -l <err)" = 1 ] && grep -q "^pipelag: .*$text\$" err
}
said 'named.yaml:5:14: data.text: nowhere.txt: No such file or directory' named.yaml &&
    said 'data.tokens: no\*.bin: no such file' tiny.yaml --set 'data.tokens=no*.bin' &&
    said 'data.valid: v.txt: No such file or directory' tiny.yaml --set data.text="$top_srcdir/COPYING" --set data.valid=v.txt &&
    said 'eval.texts: t.txt: No such file or directory' tiny.yaml --set eval.texts=a=t.txt &&
    said 'model.weights: w: No such file or directory' tiny.yaml --set model.weights=w &&
    said 'cost.profile: c.csv: No such file or directory' tiny.yaml --set cost.profile=c.csv
ok $? 'a file that is missing: the key and its place are named'
mkfifo pipe
for key in data.text data.tokens data.valid model.preset cost.profile delay.trace eval.questions=a; do
    given=
    [ $key != data.valid ] || given="--set data.text=$top_srcdir/COPYING"
    # shellcheck disable=SC2086
    timeout 10 "$PIPELAG" run tiny.yaml --dry-run $given --set "$key=./pipe" >out 2>err </dev/null
    [ $? = 2 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'pipe: \(not a regular file\|is a pipe without a writer\)' err ||
        echo "# $key: $(cat err)"
done >waited
timeout 10 "$PIPELAG" sim --schedule custom --set schedule.file=pipe >out 2>err </dev/null
[ $? = 2 ] && grep -q 'schedule.file: pipe: is a pipe without a writer' err && [ ! -s waited ]
ok $? 'a pipe that nobody writes to is refused, not waited for'
cat waited
(cat tiny.yaml >pipe) & run 0 timeout 10 "$PIPELAG" config pipe && grep -q '^schedule.stages: 2' out
ok $? 'a pipe with a writer is read'
said "expected one value; several: 'sweep: {schedule.stages: \[2,4\]}' in a file, for pipelag sweep" tiny.yaml -P 2,4 &&
    said "'sweep: {schedule.stages: \[2,4\]}' in a file, for pipelag sweep" tiny.yaml --set 'schedule.stages=[2,4]'
ok $? 'several values for one key: where they belong'
run 0 "$PIPELAG" run tiny.yaml --dry-run --device ref && grep -q '^device: ref' out &&
    said "--device: unknown train.device 'hos', did you mean 'host'?" tiny.yaml --device hos
ok $? '--device is train.device'
run 0 "$PIPELAG" run tiny.yaml --dry-run --set delay.tau=1 --set arms.only=sync &&
    grep -q '^sync  *1f1b  *2  *2  *4  *[a-z]*  *4  1  ' out
ok $? 'a given delay is printed as it is after the start'
run 0 "$PIPELAG" run tiny.yaml -o one.h5 --set arms.only=sync && ! grep -qi 'gap\|baseline\|claim' out &&
    run 0 "$PIPELAG" run tiny.yaml -o two.h5 && grep -q '^Gap: ' out
ok $? 'one arm: nothing is said of comparisons'
yes 'a text whose tokens change while they are read' | head -c 100000 >used
"$PIPELAG" run tiny.yaml -o c.h5 --set data.text=used --set train.updates=1000000 --set arms.only=sync >out 2>err &
pid=$! n=0
until [ -s c.h5.progress.jsonl ] || [ $n -gt 300 ]; do sleep 0.1; n=$((n + 1)); done
head -c 5000 used >less && cat less >used && wait $pid
[ $? = 2 ] && grep -q 'used: changed while in use: [0-9]* bytes, it had 100000' err
ok $? 'data that change under a run end it'

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
