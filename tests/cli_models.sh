# pipelag run on models that are not Llama's: they learn, synchronous and under a delay;
# what cannot be trained is refused by its key.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

# config MODEL: a run of two arms of that model on four stages.
config() {
  cat > run.yaml <<Y
title: model
seeds: [1]
baseline: sync
model: {layers: 4, hidden: 32, heads: 4, ffn: 64, $1}
train: {updates: 60, batch: 8, seq: 32, eval_every: 30, eval_sequences: 8}
optimizer: {name: adamw, lr: 5e-3}
schedule: {stages: 4, microbatches: 8}
axes:
  pipeline:
    sync: {}
    2bw: {schedule: {name: 2bw}}
Y
}

# ends_low NAME MODEL: both arms end a nat or more below ln 256 = 5.55, where they begin.
ends_low() {
  config "$2"
  rm -f run.h5
  run 0 $PIPELAG run run.yaml -o run.h5 && $PIPELAG trace check run.h5 > /dev/null &&
    for arm in sync 2bw; do
      loss=$(sed -n "s/^$arm  *[0-9.]* ms  *[0-9.]* %  *[0-9.]*  *\([0-9.]*\) .*/\1/p" out)
      awk "BEGIN { exit !(\"$loss\" > 0.5 && \"$loss\" < 4.5) }" || { echo "# $arm: '$loss'"; return 1; }
    done
}
learns() { ends_low "$@"; ok $? "$1 learns"; }
learns GPT-2 'norm: layernorm, mlp: gelu, bias: all, positions: 32, tied: yes'
learns Qwen3 'kv_heads: 2, head_dim: 12, qk_norm: head'
learns 'mixture of switches' 'norm: layernorm, bias: qkv, qk_norm: full, init: normal'
moe='experts: 8, experts_per_token: 2, expert_ffn: 24, aux_loss_coef: 0.01'
learns OLMoE "$moe, qk_norm: full, z_loss_coef: 0.001, init: truncated"
grep -q '^experts     sync: the fullest has [1-4]\.[0-9]* times the mean load, balance loss [12]\..*, z loss [0-9]' out &&
  $PIPELAG trace dump run.h5 /arms/2bw/seeds/1/rows | awk -F, 'NR == 1 { n = NF }
    NR > 1 && !($(n - 2) > 0.9 && $(n - 1) > 3 && $n >= 1 && $n <= 4) { bad++ }
    END { exit NR != 61 || bad }' &&
  $PIPELAG trace dump run.h5 /arms/sync/seeds/1/evals | head -1 | grep -q 'load_max'
ok $? "what routers do is printed and in the trace"
learns Qwen2-MoE "$moe, bias: qkv, shared_ffn: 32, shared_gate: yes"
learns 'DeepSeek-V3 without latent attention' "$moe, shared_ffn: 24, scoring_func: sigmoid,
  norm_topk_prob: yes, routed_scaling_factor: 2.5, router_bias: yes, dense_layers: 1, seq_aux: yes"
cp out before && run 0 $PIPELAG run run.yaml -o run.h5 --force --set train.replay=yes &&
  [ "$(sed -n '/^sync/s/  */ /gp' out | cut -d' ' -f1-7)" = \
    "$(sed -n '/^sync/s/  */ /gp' before | cut -d' ' -f1-7)" ]
ok $? "balance is per microbatch: replayed one by one, the printed loss is the same"
whole out | grep -q '^model .*, 2 of 8 experts of 24 a token (0\.[0-9]*M active parameters)'
ok $? "the heading counts what is active"
run 0 $PIPELAG run run.yaml -o run.h5 --force --set model.router_bias_rate=0 && ! cmp -s out before
ok $? "the rate of the selection biases matters"

cp run.yaml moe.yaml
config 'z_loss_coef: 0.1'
run 0 $PIPELAG run run.yaml -o run.h5 --force --set train.updates=2 &&
  grep -q 'model.z_loss_coef has no effect: model.experts is 0' err && [ "$(wc -l < err)" = 3 ]
ok $? "a router's key without experts is named"
mv moe.yaml run.yaml

bad() { # TEXT NAME ARGS...
  text=$1 name=$2; shift 2
  run 2 $PIPELAG run run.yaml -o x.h5 "$@" && grep -q -- "$text" err && [ "$(wc -l < err)" = 1 ] &&
    [ ! -e x.h5 ]
  r=$?; [ $r = 0 ] || sed 's/^/# /' err
  ok $r "$name"
}
bad 'model.dropout: .*expected no' "dropout" --set model.dropout=yes
bad 'train.seq is 32, expected at most model.positions (16)' "too few positions" \
  --set model.positions=16
bad 'model.kv_lora_rank: .*latent attention' "latent attention" --set model.kv_lora_rank=8 \
  --set model.qk_nope_head_dim=8 --set model.qk_rope_head_dim=8 --set model.v_head_dim=8 \
  --set model.bias=none --set model.qk_norm=none
bad 'model.experts_per_token is 9' "more experts than there are" --set model.experts_per_token=9
bad "did you mean 'sigmoid'" "unknown score" --set model.scoring_func=sigmod
bad "did you mean 'scaled'" "unknown start" --set model.init=scald
done_testing
