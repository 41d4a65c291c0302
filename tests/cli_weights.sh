#!/bin/sh
# pipelag run: weights to start from (model.weights) and to leave behind (--save).
. "$top_srcdir/tests/tap.sh"
small="--set model.layers=2 --set model.hidden=16 --set model.heads=2 --set model.ffn=24 \
  --set train.seq=16 --set train.batch=4 -m 2 -P 2 --set train.eval_sequences=4 --set seeds=1"
cd "$work" || exit 1

# train [OPTION...]: a run of 4 updates into t.h5
train() { "$PIPELAG" run $small --set train.updates=4 --set train.eval_every=2 "$@"; }
# losses: of every evaluation, from the progress file of $1
losses() { sed 's/.*"valid_loss": \([^}]*\)}/\1/' "$1.progress.jsonl"; }

run 0 train -o a.h5 --save kept && test -s kept/run-1/config.json &&
    test -s kept/run-1/model.safetensors && [ "$(ls kept/run-1)" = "config.json
model.safetensors" ]
ok $? '--save leaves config.json and model.safetensors'
grep -q '"LlamaForCausalLM"' kept/run-1/config.json &&
    grep -q '"model_type": "llama"' kept/run-1/config.json
ok $? 'config.json says what loads it'
run 0 "$PIPELAG" model kept/run-1 && grep -q 'n_params' "$work/out"
ok $? 'pipelag model reads it'

# the loss before the first update is the one after the last of the run before
run 0 train --set model.preset=kept/run-1 --set model.weights=kept/run-1 -o b.h5
[ -n "$(losses a.h5 | tail -n 1)" ] &&
    [ "$(losses b.h5 | head -n 1)" = "$(losses a.h5 | tail -n 1)" ] &&
    [ "$(losses b.h5 | tail -n 1)" != "$(losses a.h5 | tail -n 1)" ]
ok $? 'a run goes on from saved weights, in the same bits'
run 0 train --set model.weights=kept/run-1/model.safetensors -o c.h5 &&
    [ "$(losses b.h5)" = "$(losses c.h5)" ]
ok $? 'model.weights may be the file'
run 0 train -P 1 --set model.weights=kept/run-1 --schedule gpipe -o d.h5 &&
    [ "$(losses d.h5 | head -n 1)" = "$(losses a.h5 | tail -n 1)" ]
ok $? 'another number of stages starts from the same loss'

# what is saved is the iterate of the headline loss, also where another one is read
last() { losses "$1" | tail -n 1; }
run 0 train --schedule pipedream -m 1 --set corrector.name=prediction -o q.h5 --save q &&
    run 0 train --set model.weights=q/run-1 -o r.h5 &&
    [ "$(losses r.h5 | head -n 1)" = "$(last q.h5)" ] && [ "$(last q.h5)" != "$(last a.h5)" ]
ok $? 'a prediction corrector leaves the iterate that it stores'

# several files and an index, by size; of a later save in one file nothing is left of them
run 0 train -o s.h5 --save s --save-shard '20 kB' &&
    [ "$(ls s/run-1 | tr '\n' ' ')" = "config.json model-00001-of-00003.safetensors \
model-00002-of-00003.safetensors model-00003-of-00003.safetensors \
model.safetensors.index.json " ] &&
    run 0 train --set model.weights=s/run-1 -o s2.h5 && [ "$(losses s2.h5)" = "$(losses b.h5)" ]
ok $? '--save-shard: files and an index, from which a run goes on'
mkdir -p part/run-1/model.safetensors.index.json
run 1 train -o p.h5 --save part --save-shard 20kB --force && grep -q 'index.json: cannot remove' "$work/err" &&
    rmdir part/run-1/model.safetensors.index.json &&
    run 0 train -o p.h5 --save part --save-shard 20kB --resume && diff -r part s
ok $? '... which --resume writes where they are not'
run 0 train -o s.h5 --save s --force && [ "$(ls s/run-1)" = "$(ls kept/run-1)" ]
ok $? '... which one file replaces'
run 2 train -o no.h5 --save other --save-shard 0 && grep -q 'expected a size such as 5 GB' "$work/err" &&
    run 2 train -o no.h5 --save other --save-shard '3 KB' && grep -q "unknown unit 'KB', did you mean 'kB'" "$work/err" &&
    run 2 train -o no.h5 --save-shard 1GB && grep -q 'without --save' "$work/err"
ok $? 'sizes'

# refused before anything is written
refused() { # TEXT COMMAND...
    refused_text=$1
    shift
    run 2 "$@" -o no.h5 && grep -q -- "$refused_text" "$work/err" &&
        [ "$(wc -l <"$work/err")" -eq 1 ] && [ ! -e no.h5 ] && [ ! -e no.h5.ckpt ]
}
refused 'kept/run-1: --save: is not empty' train --save kept
ok $? 'a folder that is not empty is not written'
cp kept/run-1/model.safetensors before && echo 1 >kept/run-1/model.safetensors &&
    run 0 train -o a2.h5 --save kept --force && cmp -s kept/run-1/model.safetensors before
ok $? '... unless --force'
refused 'model.rope_theta is 500, but kept/run-1/config.json says 10000' \
    train --set model.weights=kept/run-1 --set model.rope_theta=500
ok $? 'another rope_theta than config.json is refused'
# other KEY VALUE OURS THEIRS: one line with the key and both values
other() {
    refused "model.$1 is $3, but $folder/run-1/config.json says $4" train $keys \
        --set model.weights=$folder/run-1 --set "model.$1=$2"
}
folder=kept keys=
other norm layernorm layernorm rmsnorm && other norm_eps 1e-6 1e-06 1e-05 && other mlp gelu gelu swiglu &&
    other tied yes yes no && other bias qkv qkv none && other positions 64 64 0 && other experts 2 2 0
ok $? '... and what else the tensors do not tell'
folder=moe
keys='--set model.experts=4 --set model.experts_per_token=2 --set model.qk_norm=full'
run 0 train $keys -o m.h5 --save moe && other norm_topk_prob yes yes no &&
    other scoring_func sigmoid sigmoid softmax && other experts_per_token 1 1 2 &&
    other routed_scaling_factor 2 2 1 && other dense_layers 1 1 0
ok $? '... of routers, too'
run 0 train $keys --set model.weights=moe/run-1 --set model.aux_loss_coef=0.1 --set model.init=normal -o m2.h5
ok $? 'what weights do not depend on may be another'
mkdir bare && cp kept/run-1/model.safetensors bare
refused 'up_proj.weight is 24 x 16, expected 40 x 16\|gate_proj.weight is 24 x 16, expected 40' \
    train --set model.weights=bare --set model.ffn=40
ok $? 'another shape is refused'
echo >file
refused 'save: file: is no folder' train --save file
ok $? 'a file is no folder'
refused 'nowhere: No such file' train --set model.weights=nowhere
ok $? 'a missing folder is refused'
mkfifo pipe
refused 'pipe: not a regular file' timeout 60 "$PIPELAG" run --set model.weights=pipe
ok $? 'a pipe is refused'
refused 'problem.name is quadratic' \
    train --set model.weights=bare --set problem.name=quadratic
ok $? 'a problem without a model is refused'
sed 's/"rope_theta"/"rope_scaling": {"type": "linear", "factor": 2}, "rope_theta"/' \
    kept/run-1/config.json >bare/config.json
refused 'rope_scaling: this setting is not implemented' train --set model.weights=bare
ok $? 'what model.* cannot say is refused'
rm bare/config.json
run 2 train -o no.h5 --save other --save-type F64 && grep -q 'expected F32, BF16 or F16' "$work/err"
ok $? 'types of numbers'

# arms and seeds have folders of their own; two bytes a number
cat >two.yaml <<'YAML'
model.layers: 2
model.hidden: 16
model.heads: 2
model.ffn: 24
train.seq: 16
train.batch: 4
train.updates: 3
train.eval_sequences: 4
schedule.microbatches: 2
schedule.stages: 2
seeds: [1, 2]
axes:
  schedule:
    sync: {schedule.name: 1f1b}
    pipe: {schedule.name: pipedream, schedule.microbatches: 1, corrector.name: prediction}
YAML
run 0 "$PIPELAG" run two.yaml -o two.h5 --save two --save-type BF16 &&
    [ "$(ls two | tr '\n' ' ')" = "pipe-1 pipe-2 sync-1 sync-2 " ] &&
    grep -q '"torch_dtype": "bfloat16"' two/sync-2/config.json
ok $? 'a folder for every arm and seed'
a=$(wc -c <kept/run-1/model.safetensors) b=$(wc -c <two/sync-1/model.safetensors)
[ "$b" -lt $((a * 2 / 3)) ]
ok $? 'BF16 takes half the bytes'

# weights that could not be written are there after --resume
mkdir -p later/run-1/model.safetensors
run 1 train -o l.h5 --save later --force && grep -q 'model.safetensors: cannot write' "$work/err"
ok $? 'weights that cannot be written are an error'
rmdir later/run-1/model.safetensors && echo half >later/run-1/.model.safetensors.tmp-1 &&
    run 0 train -o l.h5 --save later --resume &&
    cmp -s later/run-1/model.safetensors kept/run-1/model.safetensors &&
    [ ! -e later/run-1/.model.safetensors.tmp-1 ]
ok $? '... and --resume writes them, without training again'

# interrupted: the weights so far; resumed: those of an uninterrupted run
long="--set train.updates=4000 --set train.eval_every=4000 --set train.checkpoint_s=0.1"
"$PIPELAG" run $small $long -o i.h5 --save i >/dev/null 2>&1 &
pid=$!
tries=0
while [ ! -e i.h5.ckpt/run-1.ckpt ] && [ $tries -lt 200 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
kill -INT $pid
wait $pid
[ $? -eq 130 ] && [ -s i/run-1/model.safetensors ]
ok $? 'an interrupted run leaves its weights'
run 0 "$PIPELAG" run $small $long -o i.h5 --save i --resume &&
    run 0 "$PIPELAG" run $small $long -o j.h5 --save j &&
    cmp -s i/run-1/model.safetensors j/run-1/model.safetensors
ok $? 'resumed: the weights of an uninterrupted run, byte by byte'
# killed among several files of weights: a part of them is there, and no index
tiny='--set model.layers=2 --set model.hidden=16 --set model.heads=2 --set model.kv_heads=2 --set model.ffn=24
    --set train.updates=2 --set train.batch=2 --set train.seq=8 --set train.eval_sequences=1 --set schedule.stages=1
    --set schedule.microbatches=1'
echo 'title: killed' >killed.yaml
# shellcheck disable=SC2086
killed() { run "$1" "$PIPELAG" run killed.yaml $tiny -o killed.h5 --save kw --save-shard '20 kB' $2; }
rm -rf kw killed.h5*
mkdir -p kw/run-1/model.safetensors.index.json && killed 1 --force && rm -rf kw/run-1 && mkdir kw/run-1 &&
    [ -e killed.h5.ckpt/run-1.ckpt ] && killed 0 --resume && cp -r kw whole && rm -f killed.h5 &&
    mkdir killed.h5.ckpt && rm kw/run-1/model.safetensors.index.json kw/run-1/model-00003-* kw/run-1/config.json &&
    killed 0 --resume && diff -r kw whole && rm kw/run-1/model.safetensors.index.json killed.h5 &&
    for file in kw/run-1/model-*; do echo other >"$file"; done && mkdir -p killed.h5.ckpt && killed 2 --resume &&
    grep -q 'is not empty' err
ok $? 'killed among several files of weights: resumed, and files of others kept'
done_testing
