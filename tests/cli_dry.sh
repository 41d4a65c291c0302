# pipelag run --dry-run, pieces of a batch, and refusals for want of memory.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

cat >tiny.yaml <<'Y'
train: {updates: 4, batch: 8, seq: 32, eval_every: 2, eval_sequences: 3, threads: 1}
schedule: {stages: 2, microbatches: 4}
axes: {pipe: {sync: {schedule: {name: 1f1b}}, 2bw: {schedule: {name: 2bw}}}}
Y
dry() { # STATUS --set...
    status=$1
    shift
    run "$status" "$PIPELAG" run tiny.yaml --dry-run --json --set arms.only=2bw "$@"
}
number() { # KEY: its first value in out
    sed -n "s/.*\"$1\": \([0-9]*\)[,}].*/\1/p" out | head -1
}

mkdir empty && (cd empty && run 0 "$PIPELAG" run ../tiny.yaml --dry-run && test -z "$(ls)") &&
    grep -q '^sync  *1f1b  *2  *4  *4  *global  *8  0 ' out &&
    grep -q '^2bw  *2bw  *2  *4  *4  *global  *8  1 ' out &&
    grep -q '^schedule.microbatches: 4$' out && grep -q '^2 runs, . at a time: .* are free' out
ok $? 'a dry run prints keys, schedules, delays and memory, and writes nothing'

dry 0 && whole=$(number activations_bytes) && [ "$(number at_once)" = 8 ] &&
    dry 0 --set train.replay=yes && part=$(number activations_bytes) &&
    [ "$(number at_once)" = 2 ] && [ "$part" -lt "$whole" ] &&
    dry 0 --set train.at_once=3 && [ "$(number at_once)" = 2 ] &&
    [ "$(number activations_bytes)" = "$part" ] && dry 0 --set train.at_once=1 &&
    [ "$(number at_once)" = 1 ] && [ "$(number activations_bytes)" -lt "$part" ]
ok $? 'activations are those of what is computed at once'

run 2 "$PIPELAG" run tiny.yaml --dry-run --set train.batch=7 && grep -q 'train.batch of 7' err &&
    run 2 "$PIPELAG" run tiny.yaml && grep -q -e '-o FILE is missing' err
ok $? 'a dry run refuses what a run refuses'

# Rounding of fp32 apart: losses of the last evaluation to 1e-5 (5 decimals are printed by --json)
last() { sed -n 's/.*"loss_mean": \([0-9.]*\).*/\1/p' out | tail -1; }
run 0 "$PIPELAG" run tiny.yaml -o a.h5 --json && a=$(last) &&
    run 0 "$PIPELAG" run tiny.yaml -o b.h5 --json --set train.at_once=1 && b=$(last) &&
    awk -v a="$a" -v b="$b" 'BEGIN { d = a - b; exit !(a > 1 && d < 1e-5 && d > -1e-5) }' &&
    ! cmp -s a.h5 b.h5
ok $? 'a batch in pieces gives the same losses to rounding'

run 2 "$PIPELAG" run tiny.yaml --dry-run --set train.at_once=1 --set model.experts=2 \
    --set model.aux_loss_coef=0.01 && grep -q 'train.at_once is 1, expected at least the 2' err &&
    run 0 "$PIPELAG" run tiny.yaml --dry-run --set train.at_once=1 --set model.experts=2 \
        --set model.aux_loss_coef=0.01 --set model.seq_aux=yes
ok $? 'pieces of a microbatch are refused where it is balanced as a whole'

if (ulimit -v 1000000 && dry 0) >/dev/null 2>&1; then
    big='--set model.hidden=256 --set train.seq=256 --set train.batch=64 --set train.workers=1'
    (ulimit -v 1000000 && dry 1 $big) && grep -q 'GiB of memory, .* are free; train.at_once: ' err &&
        fits=$(sed -n 's/.*train.at_once: \([0-9]*\) instead of 64 needs.*/\1/p' err) &&
        (ulimit -v 1000000 && dry 0 $big --set "train.at_once=$fits") &&
        (ulimit -v 1000000 && dry 1 $big --set "train.at_once=$((fits + 16))") &&
        (ulimit -v 1000000 && dry 1 $big --set model.hidden=2048 --set model.layers=32) &&
        grep -q 'in activations of 64 sequences at once .* in gradients and state' err &&
        (ulimit -v 1000000 && dry 1 $big --set "train.at_once=$fits" --set arms.only= --set train.workers=2) &&
        grep -q 'train.workers: 1 fits' err
    ok $? 'too little memory: the refusal names the value that fits'
else
    skip 'too little memory' 'does not run under ulimit -v'
fi
# OpenBLAS's own threads and buffers, for which there is no room
limited() { (unset OPENBLAS_NUM_THREADS && ulimit -v 110000 && exec timeout -k 5 60 "$PIPELAG" "$@"); }
if limited --version >/dev/null 2>&1; then
    run 0 limited sim -P 2 -m 2 && run 0 limited plan smollm-135m dgx-h100 --batch 64 --top 1 &&
        run 1 limited run tiny.yaml --dry-run && [ "$(wc -l <err)" = 1 ] &&
        grep -q 'ulimit -v: an address space of 107.4 MiB has no room for a buffer of OpenBLAS' err
    ok $? 'a small address space: what does not train works, a run says what is missing'
else
    skip 'a small address space' 'does not start in it'
fi
# what is in the way of an output is named by a dry run, too
dry 2 -o . && grep -q 'is a folder' err && dry 2 -o a.h5 && grep -q 'a.h5: exists' err &&
    dry 1 -o no/where.h5 && grep -q 'no/where.h5' err && dry 2 --save tiny.yaml && grep -q 'is no folder' err &&
    dry 0 -o new.h5 --save new && [ ! -e new ] && [ -z "$(ls -A | grep new)" ]
ok $? 'an output or a folder of weights that cannot be written'
printf '%s\n' 'forward [ms],backward [ms],weight [ms],update [ms]' 1,1,1,0.5 1,1,1,0.5 >mine.csv
# 4 updates of 2 stages, 4 microbatches of 3 ms and an update of 0.5 ms each; of twice the sequences: 6 ms
dry 0 --set cost.profile=mine.csv --set cost.sequences=2 && grep -q '"wall_s": *0.\(1\|0999999[0-9]*\)[,}]' out &&
    dry 0 --set cost.profile=mine.csv && grep -q '"wall_s": *0.196' out && dry 0 && grep -q '"wall_s": *null' out &&
    run 0 "$PIPELAG" run tiny.yaml --dry-run && grep -q '^wall time: not known here; pipelag profile' out &&
    run 0 "$PIPELAG" run tiny.yaml --dry-run --set cost.profile=mine.csv --set cost.sequences=2 &&
    grep -q '^wall time: about 200 ms by cost.profile' out
ok $? 'wall time by a profile: the work of all stages'
run 0 "$PIPELAG" run tiny.yaml --dry-run --set optimizer.name=mars --set optimizer.exact=yes &&
    grep -q '^exact  *sync: an update takes a second gradient' out &&
    run 0 "$PIPELAG" run tiny.yaml --dry-run --set optimizer.name=mars && ! grep -q '^exact' out &&
    run 0 "$PIPELAG" sim tiny.yaml --set optimizer.name=mars --set optimizer.exact=yes && grep -q 'second gradient' err
ok $? 'exact MARS: the second gradient that simulated times lack is named'
dry 0 --set problem.name=quadratic --set train.at_once=1 && grep -q 'train.at_once has no effect' err &&
    dry 0 --set optimizer.name=muon --set optimizer.coefficients=svd --set optimizer.ns_precision=bf16 &&
    grep -q 'optimizer.ns_precision has no effect: optimizer.coefficients is svd' err
ok $? 'new keys without effect are named'
done_testing
