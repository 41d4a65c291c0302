# Optimizers through the program: every rule trains, settings that are not given are the rule's
# own and are printed, what a rule does not read is named.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

cat > small.yaml <<'Y'
title: small
model: {layers: 2, hidden: 16, heads: 2, kv_heads: 1, ffn: 24}
train: {updates: 6, batch: 4, seq: 16, eval_every: 3, eval_sequences: 2}
schedule: {name: 2bw, stages: 2, microbatches: 2}
cost: {forward: 2 ms, backward: 2 ms, weight: 1 ms}
Y
train() { # NAME ARGS...: a run of small.yaml into NAME.h5, NAME.txt and NAME.err
  name=$1; shift
  "$PIPELAG" run small.yaml -o "$name.h5" "$@" > "$name.txt" 2> "$name.err"
}
rows() { "$PIPELAG" trace dump "$1.h5" /arms/run/seeds/1/rows; }
differ() { rows "$1" > 1.csv && rows "$2" > 2.csv && [ -s 1.csv ] && ! cmp -s 1.csv 2.csv; }
agree() { rows "$1" > 1.csv && rows "$2" > 2.csv && [ -s 1.csv ] && cmp -s 1.csv 2.csv; }

rules=$("$PIPELAG" config --keys | sed -n '/^optimizer.name:/,/one of:/s/ *one of: //p')
test "$(echo $rules | wc -w)" -ge 13; ok $? "the rules are listed"
for rule in $rules; do
  train "$rule" --set optimizer.name="$rule" && grep -q "^optimizer   $rule: lr " "$rule.txt" &&
    ! grep -q "WARN\|warn" "$rule.err" && ! grep -q diverged "$rule.txt"
  ok $? "$rule trains under delay 1"
  "$PIPELAG" run --help | grep -q "^  $rule  *.*"; ok $? "$rule is in the help"
done

# The printed settings are those in force: given explicitly they change nothing.
whole mars.txt | sed -n 's/^optimizer   mars: //p' | tr , '\n' | while read -r key value; do
  echo "--set optimizer.$key=$value"
done > given
train again --set optimizer.name=mars $(cat given); ok $? "mars with its defaults written out"
test "$(wc -l < given)" -ge 9 && agree mars again; ok $? "is mars"
train third --set optimizer.name=mars --set optimizer.gamma=0.5
grep -q 'gamma 0.5' third.txt && differ mars third; ok $? "with another gamma it is not"
train auto --set optimizer.name=muon --set optimizer.nesterov=auto --set optimizer.lr=nan \
  --set optimizer.scale=auto --set optimizer.ns_steps=0
agree muon auto; ok $? "auto, nan and 0 are what is not given"

# Switches do something, each alone.
for set in nesterov=no momentum_form=sum:same scale=moonlight coefficients=polar-express ns_steps=3 \
  coefficients=svd decay_form=after decay_form=cautious decay_factor=constant fused_qkv=yes \
  eps_form=uncorrected aux_decay=0.5 aux_beta1=0.5 ns_clamp=yes:same ns_precision=bf16 \
  tensors=all decay_spares=tables; do
  key=${set%:same}
  rm -f s.h5
  train s --set optimizer.name=muon --set optimizer.decay=0.5 --set optimizer.eps=1e-2 \
    --set "optimizer.$key"
  status=$?
  rm -f t.h5
  train t --set optimizer.name=muon --set optimizer.decay=0.5 --set optimizer.eps=1e-2
  [ "$key" != "$set" ] || differ s t && [ $status = 0 ]
  ok $? "muon, $key"
done
for form in algoperf optax; do
  train $form --set optimizer.name=nadamw --set optimizer.nadam_form=$form && differ nadamw $form
  ok $? "nadamw, $form"
done
differ algoperf optax; ok $? "which are two rules"
train exact --set optimizer.name=mars --set optimizer.exact=yes && differ mars exact
ok $? "mars, exact"
train lion2 --set optimizer.name=lion --set optimizer.cautious=0 && differ lion lion2
ok $? "cautious lion"
train sign --set optimizer.name=scion --set optimizer.lmo_hidden=sign && differ scion sign
ok $? "scion with another norm"

# What is not read.
train u --set optimizer.name=lion --set optimizer.momentum=0.5
grep -q 'optimizer.momentum has no effect on optimizer.name lion' u.err; ok $? "lion has no momentum"
train muonb --set optimizer.name=muon --set optimizer.beta1=0.5
grep -q 'optimizer.beta1 has no effect on optimizer.name muon' muonb.err
ok $? "muon's AdamW part has aux_beta1"
train v --set optimizer.name=sgd --set optimizer.momentum=0.5
! grep -q 'no effect' v.err; ok $? "sgd has"
cat small.yaml - > axes.yaml <<'Y'
optimizer: {aux_lr: 0.01}
axes: {rule: {adamw: {optimizer: {name: adamw}}, muon: {optimizer: {name: muon}}}}
Y
"$PIPELAG" run axes.yaml -o w.h5 > w.txt 2> w.err
! grep -q 'no effect' w.err; ok $? "one arm of two reads aux_lr"
grep -q '^optimizer   adamw: ' w.txt && grep -q '^            muon: .*aux_lr 0.01' w.txt
ok $? "both rules are printed"

bad() { # TEXT NAME ARGS...
  text=$1 name=$2; shift 2
  "$PIPELAG" run small.yaml -o x.h5 "$@" > out.txt 2> err.txt
  [ $? = 2 ] && grep -q -- "$text" err.txt && [ "$(wc -l < err.txt)" = 1 ] && [ ! -e x.h5 ]
  ok $? "$name"
}
bad "did you mean 'adamw'" "unknown rule" --set optimizer.name=adam
bad "did you mean 'polar-express'" "unknown coefficients" --set optimizer.coefficients=polarexpress
bad "or auto" "a switch is no number" --set optimizer.nesterov=1
bad "did you mean" "unknown form of decay" --set optimizer.decay_form=befor
bad "expected 0 to" "beta1 of 1" --set optimizer.beta1=1
done_testing
