#!/bin/sh
# pipelag model: names, files and folders, JSON keys, presets of other commands, and bad
# input, each refused in one line with exit status 2.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 1

# refused TEXT ARGS...: exit status 2, one line on stderr with TEXT, nothing on stdout.
refused() {
    want=$1
    shift
    run 2 "$PIPELAG" "$@" && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -qF -- "$want" "$work/err" && [ ! -s "$work/out" ]
    ok $? "refused: $*"
}

# key NAME VALUE: the JSON output has it.
key() { grep -q "\"$1\": $2[,}]*$\|\"$1\": $2[,}]" "$work/out"; }

run 0 "$PIPELAG" model && grep -q '^llama-3-405b  *405.85 B' out &&
    grep -q '^deepseek-v3  *671.03 B *37.55 B' out
ok $? 'built-in models are listed'
run 0 "$PIPELAG" model --json && [ "$(grep -o n_active_nonembedding out | wc -l)" -ge 40 ]
ok $? 'the list as JSON'
run 0 "$PIPELAG" model mixtral-8x7b --json && key n_params 46702792704 &&
    key n_active_params 12879925248 && key n_active_nonembedding 12617781248 &&
    key seq_length 2048 && key flops_per_token_6n 76493119488 && ! grep -q chunks out
ok $? 'counts of Mixtral 8x7B as JSON'
python3 -c 'import json, sys; json.load(open("out"))' 2>/dev/null ||
    ! command -v python3 >/dev/null
ok $? 'it is JSON'

mkdir smol
cat >smol/config.json <<'JSON'
{"model_type": "llama", "hidden_size": 576, "num_hidden_layers": 30,
 "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536,
 "vocab_size": 49152, "tie_word_embeddings": true, "torch_dtype": "bfloat16"}
JSON
run 0 "$PIPELAG" model smol/config.json --json && key n_params 134515008
ok $? 'a config.json'
run 0 "$PIPELAG" model smol --json && key n_params 134515008
ok $? 'the folder of a config.json'
run 0 "$PIPELAG" model smol --json --set model.tied=no && key n_params 162826560
ok $? '--set wins over a config.json'
echo 'model: {layers: 2, hidden: 8, heads: 2, ffn: 12, vocab: 10}' >own.yaml
run 0 "$PIPELAG" model own.yaml --json && key n_params 1288 # 2(16+256+288)+8+160
ok $? 'a YAML file'
run 0 "$PIPELAG" model llama-3-8b -P 4 --json --set model.split=balanced &&
    [ "$(grep -o first_layer out | wc -l)" -eq 4 ] && key split '"balanced"'
ok $? 'stages'
run 0 "$PIPELAG" model llama-3-8b -P 2 --set schedule.chunks=2 --set 'model.split=Et*9|t*9|t*9|t*5L' &&
    grep -q '^  3 +head  *5 ' out && grep -q '^  0 +embedding  *9 ' out
ok $? 'stages of a layout string'

run 0 "$PIPELAG" config --set model.preset=smol/config.json && grep -q '^model.hidden: 576$' out &&
    cp out resolved.yaml && run 0 "$PIPELAG" model resolved.yaml --json && key n_params 134515008
ok $? 'a preset in another command, and the resolved configuration read back'
cat >arms.yaml <<'YAML'
train: {updates: 1, batch: 2, seq: 16, eval_sequences: 1}
schedule: {name: 1f1b, stages: 2, microbatches: 2}
model: {ffn: 16, hidden: 16, heads: 2, vocab: 256}
axes: {size: {a: {model: {preset: p2.yaml}}, b: {model: {preset: p3.yaml}}}}
YAML
echo 'model: {layers: 2, hidden: 99}' >p2.yaml
echo 'model: {layers: 3}' >p3.yaml
run 0 "$PIPELAG" run arms.yaml -o arms.h5 && [ -s arms.h5 ]
ok $? 'arms that choose presets are trained'

refused 'unknown model preset' model llama-3-8
refused "did you mean 'llama-3-8b'" model llama-3-8
refused 'absent.yaml' model absent.yaml
refused 'absent/config.json' model absent/config.json
printf '{"model_type": "llama",\n "hidden_size": }' >broken.json
refused 'broken.json:2:' model broken.json
echo '{"model_type": "llama", "num_attention_heads": 8}' >missing.json
refused 'missing.json: num_hidden_layers is missing' model missing.json
sed 's/576/"576"/' smol/config.json >text.json
refused 'text.json: hidden_size is "576", expected an integer' model text.json
sed 's/576/1e300/' smol/config.json >real.json
refused 'real.json: hidden_size is' model real.json
sed 's/576/99999999999999999999999999/' smol/config.json >huge.json
refused 'huge.json:1:' model huge.json
sed 's/576/4294967872/' smol/config.json >wrap.json
refused 'wrap.json: hidden_size is 4294967872' model wrap.json
sed 's/llama/lama/' smol/config.json >type.json
refused "unknown model_type 'lama', did you mean 'llama'" model type.json
echo 'model: {layers: 2, hidden: 8, heads: 2, vocab: 10}' >short.yaml
refused 'short.yaml: model.ffn is missing' model short.yaml
refused 'parallel.tp is 3' model llama-3-8b --set parallel.tp=3
refused 'model.split' model llama-3-8b -P 4 --set 'model.split=Et*8|t*8|t*8|t*7L'
refused 'model.layers' model llama-3-8b -P 40
refused 'model.dropout: such a model cannot be trained' run --set model.preset=gpt-2-small -o no.h5
[ ! -e no.h5 ]
ok $? 'nothing is written then'
done_testing
