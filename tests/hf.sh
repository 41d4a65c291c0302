#!/bin/sh
# A model in Hugging Face's form: what is written here gives the same logits there, and the
# reverse. "There" is tests/hf_reference.py, plain Python by the definitions; where a
# python has transformers (HF_PYTHON, else python3), also transformers.
. "$top_srcdir/tests/tap.sh"
python=$(command -v python3)
hf_python=${HF_PYTHON:-$python}
model=$(dirname "$PIPELAG")/../tests/hf_model
reference="$top_srcdir/tests/hf_reference.py"
theirs="$top_srcdir/tests/hf_transformers.py"
tokens=3,1,4,1,5,9,2,6
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1

# same A B: largest difference of two files of numbers over their largest number <= 1e-5
same() {
    paste -d ' ' "$1" "$2" | awk '
        { if (NF % 2 || NF == 0) bad = 1
          for (i = 1; i <= NF / 2; i++) {
              d = $i - $(i + NF / 2); if (d < 0) d = -d; if (d > worst) worst = d
              s = $i < 0 ? -$i : $i; if (s > most) most = s } }
        END { printf "# difference %.3g of %.3g\n", worst, most
              exit bad || NR != 8 || !(most > 0.1) || worst > 1e-5 * most }'
}

if [ -z "$python" ]; then
    echo '1..0 # SKIP no python3'
    exit 0
fi

types="llama gpt2 qwen2 qwen3 olmoe qwen2_moe qwen3_moe mixtral"
experts="model.kv_heads=2 model.ffn=24 model.experts=6 model.experts_per_token=3 \
  model.expert_ffn=12"
# TYPE: keys of a tiny model of it
keys_of() {
    echo "model.layers=2 model.hidden=16 model.heads=4 model.vocab=13 model.rope_theta=50"
    case $1 in
    llama) echo "model.kv_heads=2 model.ffn=24" ;;
    tied) echo "model.kv_heads=1 model.ffn=24 model.tied=yes" ;;
    qwen2) echo "model.kv_heads=2 model.ffn=24 model.bias=qkv" ;;
    qwen3) echo "model.kv_heads=2 model.ffn=24 model.qk_norm=head" ;;
    olmoe) echo "$experts model.qk_norm=full" ;;
    qwen2_moe) echo "$experts model.bias=qkv model.shared_ffn=20 model.shared_gate=yes" ;;
    qwen3_moe) echo "$experts model.qk_norm=head model.norm_topk_prob=yes" ;;
    mixtral) echo "$experts model.norm_topk_prob=yes" ;;
    gpt2)
        echo "model.ffn=64 model.tied=yes model.norm=layernorm model.mlp=gelu model.bias=all \
          model.positions=32 train.seq=32"
        ;;
    esac
}

# from there to here, on both devices, one and two stages
for type in $types; do
    dtypes=F32
    [ $type = llama ] && dtypes="F32 F64 BF16 F16 sharded:F32"
    for dtype in $dtypes; do
        "$python" -B "$reference" make "$work/in" "$type" "$dtype" 7 &&
            "$python" -B "$reference" logits "$work/in" "$tokens" >"$work/expected" &&
            run 0 "$model" logits "$work/in" ref 1 "$tokens" && cp "$work/out" "$work/ref" &&
            run 0 "$model" logits "$work/in" host 2 "$tokens" &&
            same "$work/ref" "$work/expected" && same "$work/out" "$work/expected"
        ok $? "$type in $dtype: logits of the definition"
        rm -rf "$work/in"
    done
done

# from here to there, and back
for type in tied $types; do
    dtypes=F32
    [ $type = llama ] && dtypes="F32 BF16 sharded:F32"
    [ $type = gpt2 ] && dtypes="F32 sharded:F32"
    for dtype in $dtypes; do
        mkdir "$work/saved"
        run 0 "$model" save "$work/saved" 3 "$dtype" $(keys_of $type) &&
            "$python" -B "$reference" logits "$work/saved" "$tokens" >"$work/expected" &&
            run 0 "$model" logits "$work/saved" ref 1 "$tokens" &&
            same "$work/out" "$work/expected"
        ok $? "$type written as $dtype: logits of the definition"
        rm -rf "$work/saved"
    done
done

# other angles give other logits: the comparison can fail
"$python" -B "$reference" make "$work/in" llama F32 7
sed 's/"rope_theta": 50.0/"rope_theta": 60.0/' "$work/in/config.json" >"$work/c"
"$python" -B "$reference" logits "$work/in" "$tokens" >"$work/expected"
cp "$work/c" "$work/in/config.json"
run 0 "$model" logits "$work/in" ref 1 "$tokens" && ! same "$work/out" "$work/expected"
ok $? 'another rope_theta gives other logits'

if ! "$hf_python" -c 'import torch, transformers, safetensors' 2>/dev/null; then
    skip 'logits of transformers' 'no transformers (HF_PYTHON names a python that has it)'
    done_testing
    exit
fi
for type in $("$hf_python" -B "$theirs" has $types); do
    run 0 "$hf_python" -B "$theirs" make "$work/$type" "$type" &&
        run 0 "$hf_python" -B "$theirs" logits "$work/$type" "$tokens" &&
        cp "$work/out" "$work/expected" &&
        run 0 "$model" logits "$work/$type" host 2 "$tokens" &&
        same "$work/out" "$work/expected"
    ok $? "$type of transformers: same logits here"
    for dtype in F32 sharded:F32; do
        mkdir "$work/saved"
        run 0 "$model" save "$work/saved" 3 $dtype $(keys_of $type) &&
            run 0 "$hf_python" -B "$theirs" logits "$work/saved" "$tokens" &&
            cp "$work/out" "$work/expected" &&
            run 0 "$model" logits "$work/saved" host 1 "$tokens" &&
            same "$work/out" "$work/expected"
        ok $? "$type written here as $dtype: same logits in transformers"
        rm -rf "$work/saved"
    done
done
done_testing
