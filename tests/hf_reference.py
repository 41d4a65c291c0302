"""Decoders in Hugging Face's form in plain Python: reads and writes safetensors by the
format's definition and computes logits in double precision by the definition of each
model type (transformers, models/TYPE/modeling_TYPE.py). Nothing of pipelag is used.

  hf_reference.py logits DIR TOKENS          logits of v minus those of token 0
  hf_reference.py make DIR TYPE DTYPE SEED   a random tiny model; DTYPE may be sharded:F32
"""
import json
import math
import os
import random
import struct
import sys


def decode(kind, data):
    if kind == "F32":
        return list(struct.unpack("<%df" % (len(data) // 4), data))
    if kind == "F64":
        return list(struct.unpack("<%dd" % (len(data) // 8), data))
    if kind == "F16":
        return list(struct.unpack("<%de" % (len(data) // 2), data))
    if kind == "BF16":
        words = struct.unpack("<%dH" % (len(data) // 2), data)
        return list(struct.unpack("<%df" % len(words),
                                  b"".join(struct.pack("<I", w << 16) for w in words)))
    raise SystemExit("dtype " + kind)


def encode(kind, values):
    if kind == "BF16":  # to nearest, ties to even
        out = b""
        for v in values:
            u = struct.unpack("<I", struct.pack("<f", v))[0]
            out += struct.pack("<H", (u + 0x7FFF + (u >> 16 & 1)) >> 16)
        return out
    return struct.pack("<%d%s" % (len(values), {"F32": "f", "F64": "d", "F16": "e"}[kind]),
                       *values)


def read_file(path, tensors):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(n))
        data = f.read()
    for name, info in header.items():
        if name == "__metadata__":
            continue
        begin, end = info["data_offsets"]
        values = decode(info["dtype"], data[begin:end])
        shape = info["shape"]
        assert math.prod(shape) == len(values), name
        if len(shape) == 2:
            values = [values[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])]
        tensors[name] = values


def read_model(folder):
    with open(folder + "/config.json") as f:
        config = json.load(f)
    tensors = {}
    index = folder + "/model.safetensors.index.json"
    files = ["model.safetensors"]
    if os.path.exists(index):
        with open(index) as f:
            files = sorted(set(json.load(f)["weight_map"].values()))
    for name in files:
        read_file(folder + "/" + name, tensors)
    return config, tensors


def write_file(path, kind, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, values) in tensors.items():
        part = encode(kind, values)
        header[name] = {"dtype": kind, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


# --- arithmetic: a matrix is a list of rows, weights are (out, in) unless said otherwise

def linear(w, x, bias=None):
    y = [math.fsum(a * b for a, b in zip(row, x)) for row in w]
    return y if bias is None else [a + b for a, b in zip(y, bias)]


def conv1d(w, x, bias):  # GPT-2: w is (in, out)
    return [math.fsum(x[i] * w[i][j] for i in range(len(x))) + bias[j]
            for j in range(len(bias))]


def rmsnorm(x, gain, eps):
    r = 1 / math.sqrt(math.fsum(v * v for v in x) / len(x) + eps)
    return [v * r * g for v, g in zip(x, gain)]


def layernorm(x, gain, bias, eps):
    mean = math.fsum(x) / len(x)
    r = 1 / math.sqrt(math.fsum((v - mean) ** 2 for v in x) / len(x) + eps)
    return [(v - mean) * r * g + b for v, g, b in zip(x, gain, bias)]


def softmax(x):
    m = max(x)
    e = [math.exp(v - m) for v in x]
    s = math.fsum(e)
    return [v / s for v in e]


def silu(x):
    return x / (1 + math.exp(-x))


def gelu_new(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def add(x, y):
    return [a + b for a, b in zip(x, y)]


def rotate(head, position, theta):  # rotate_half: pairs (i, i + d/2)
    half = len(head) // 2
    out = list(head)
    for i in range(half):
        angle = position * theta ** (-2 * i / len(head))
        c, s = math.cos(angle), math.sin(angle)
        out[i] = head[i] * c - head[i + half] * s
        out[i + half] = head[i + half] * c + head[i] * s
    return out


def attend(q, k, v, heads, kv_heads):  # of lists over positions of lists over heads
    out = []
    for t in range(len(q)):
        row = []
        for h in range(heads):
            g = h // (heads // kv_heads)
            scores = softmax([sum(a * b for a, b in zip(q[t][h], k[s][g])) /
                              math.sqrt(len(q[t][h])) for s in range(t + 1)])
            row += [math.fsum(scores[s] * v[s][g][i] for s in range(t + 1))
                    for i in range(len(v[0][g]))]
        out.append(row)
    return out


def split(x, n):
    d = len(x) // n
    return [x[i * d:(i + 1) * d] for i in range(n)]


def swiglu(w, name, x):
    gate = linear(w[name + "gate_proj.weight"], x, w.get(name + "gate_proj.bias"))
    up = linear(w[name + "up_proj.weight"], x, w.get(name + "up_proj.bias"))
    return linear(w[name + "down_proj.weight"], [silu(a) * b for a, b in zip(gate, up)],
                  w.get(name + "down_proj.bias"))


def experts(config, w, name, x):
    p = softmax(linear(w[name + "gate.weight"], x))
    chosen = sorted(range(len(p)), key=lambda i: -p[i])[:config["num_experts_per_tok"]]
    mixtral = config["model_type"] == "mixtral"
    normed = mixtral or config.get("norm_topk_prob")
    total = math.fsum(p[i] for i in chosen) if normed else 1
    out = [0.0] * len(x)
    for i in chosen:
        expert = "%sexperts.%d." % (name, i)
        if mixtral:
            u, v = linear(w[expert + "w1.weight"], x), linear(w[expert + "w3.weight"], x)
            y = linear(w[expert + "w2.weight"], [silu(a) * b for a, b in zip(u, v)])
        else:
            y = swiglu(w, expert, x)
        out = [a + p[i] / total * b for a, b in zip(out, y)]
    if name + "shared_expert_gate.weight" in w:  # Qwen2-MoE
        g = 1 / (1 + math.exp(-linear(w[name + "shared_expert_gate.weight"], x)[0]))
        out = [a + g * b for a, b in zip(out, swiglu(w, name + "shared_expert.", x))]
    return out


def llama(config, w, tokens):
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    eps, theta = config["rms_norm_eps"], config["rope_theta"]
    x = [list(w["model.embed_tokens.weight"][t]) for t in tokens]
    for i in range(config["num_hidden_layers"]):
        name = "model.layers.%d." % i
        y = [rmsnorm(v, w[name + "input_layernorm.weight"], eps) for v in x]
        a = name + "self_attn."
        q, k, v = ([linear(w[a + n + "_proj.weight"], r, w.get(a + n + "_proj.bias"))
                    for r in y] for n in "qkv")
        if config["model_type"] == "olmoe":  # over all heads at once
            q = [rmsnorm(r, w[a + "q_norm.weight"], eps) for r in q]
            k = [rmsnorm(r, w[a + "k_norm.weight"], eps) for r in k]
        q = [split(r, heads) for r in q]
        k = [split(r, kv) for r in k]
        if config["model_type"] in ("qwen3", "qwen3_moe"):  # each head
            q = [[rmsnorm(h, w[a + "q_norm.weight"], eps) for h in r] for r in q]
            k = [[rmsnorm(h, w[a + "k_norm.weight"], eps) for h in r] for r in k]
        q = [[rotate(h, t, theta) for h in r] for t, r in enumerate(q)]
        k = [[rotate(h, t, theta) for h in r] for t, r in enumerate(k)]
        o = attend(q, k, [split(r, kv) for r in v], heads, kv)
        x = [add(r, linear(w[a + "o_proj.weight"], h, w.get(a + "o_proj.bias")))
             for r, h in zip(x, o)]
        y = [rmsnorm(r, w[name + "post_attention_layernorm.weight"], eps) for r in x]
        mixtral = config["model_type"] == "mixtral"
        mlp = name + ("block_sparse_moe." if mixtral else "mlp.")
        routed = mlp + "gate.weight" in w
        x = [add(r, experts(config, w, mlp, h) if routed else swiglu(w, mlp, h))
             for r, h in zip(x, y)]
    tied = config.get("tie_word_embeddings")
    head = w["model.embed_tokens.weight" if tied else "lm_head.weight"]
    return [linear(head, rmsnorm(r, w["model.norm.weight"], eps)) for r in x]


def gpt2(config, w, tokens):
    heads, eps = config["n_head"], config["layer_norm_epsilon"]
    x = [add(w["transformer.wte.weight"][t], w["transformer.wpe.weight"][i])
         for i, t in enumerate(tokens)]
    for i in range(config["n_layer"]):
        n = "transformer.h.%d." % i
        y = [layernorm(r, w[n + "ln_1.weight"], w[n + "ln_1.bias"], eps) for r in x]
        qkv = [split(conv1d(w[n + "attn.c_attn.weight"], r, w[n + "attn.c_attn.bias"]), 3)
               for r in y]
        q, k, v = ([split(r[j], heads) for r in qkv] for j in range(3))
        o = attend(q, k, v, heads, heads)
        x = [add(r, conv1d(w[n + "attn.c_proj.weight"], h, w[n + "attn.c_proj.bias"]))
             for r, h in zip(x, o)]
        y = [layernorm(r, w[n + "ln_2.weight"], w[n + "ln_2.bias"], eps) for r in x]
        h = [[gelu_new(u) for u in conv1d(w[n + "mlp.c_fc.weight"], r,
                                          w[n + "mlp.c_fc.bias"])] for r in y]
        x = [add(r, conv1d(w[n + "mlp.c_proj.weight"], u, w[n + "mlp.c_proj.bias"]))
             for r, u in zip(x, h)]
    x = [layernorm(r, w["transformer.ln_f.weight"], w["transformer.ln_f.bias"], eps)
         for r in x]
    head = w["transformer.wte.weight" if config.get("tie_word_embeddings", True)
             else "lm_head.weight"]
    return [linear(head, r) for r in x]


# --- tiny random models

def common(layers=2, d=16, heads=4, kv=2, vocab=13, **more):
    config = {"num_hidden_layers": layers, "hidden_size": d, "num_attention_heads": heads,
              "num_key_value_heads": kv, "vocab_size": vocab, "rope_theta": 50.0,
              "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False,
              "max_position_embeddings": 64}
    config.update(more)
    return config


CONFIGS = {
    "llama": common(intermediate_size=24),
    "qwen2": common(intermediate_size=24, tie_word_embeddings=True),
    "qwen3": common(intermediate_size=24, head_dim=4),
    "olmoe": common(intermediate_size=12, num_experts=6, num_experts_per_tok=3,
                    norm_topk_prob=False),
    "qwen2_moe": common(intermediate_size=24, moe_intermediate_size=12, num_experts=6,
                        num_experts_per_tok=3, shared_expert_intermediate_size=20,
                        norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[]),
    "qwen3_moe": common(intermediate_size=24, head_dim=4, moe_intermediate_size=12,
                        num_experts=6, num_experts_per_tok=3, norm_topk_prob=True,
                        decoder_sparse_step=1, mlp_only_layers=[]),
    "mixtral": common(intermediate_size=12, num_local_experts=6, num_experts_per_tok=3),
    "gpt2": {"n_layer": 2, "n_embd": 16, "n_head": 4, "n_positions": 32, "vocab_size": 13,
             "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new",
             "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
}


def shapes(kind, c):
    if kind == "gpt2":
        d, out = c["n_embd"], {"transformer.wte.weight": [c["vocab_size"], c["n_embd"]],
                               "transformer.wpe.weight": [c["n_positions"], c["n_embd"]]}
        for i in range(c["n_layer"]):
            n = "transformer.h.%d." % i
            for norm in ("ln_1", "ln_2"):
                out[n + norm + ".weight"] = out[n + norm + ".bias"] = [d]
            for name, a, b in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d),
                               ("mlp.c_fc", d, 4 * d), ("mlp.c_proj", 4 * d, d)):
                out[n + name + ".weight"], out[n + name + ".bias"] = [a, b], [b]
        out["transformer.ln_f.weight"] = out["transformer.ln_f.bias"] = [d]
        return out
    d, hd = c["hidden_size"], c["hidden_size"] // c["num_attention_heads"]
    q, kv = c["num_attention_heads"] * hd, c["num_key_value_heads"] * hd
    out = {"model.embed_tokens.weight": [c["vocab_size"], d], "model.norm.weight": [d]}
    if not c["tie_word_embeddings"]:
        out["lm_head.weight"] = [c["vocab_size"], d]

    def mlp(name, f):
        out[name + "gate_proj.weight"] = out[name + "up_proj.weight"] = [f, d]
        out[name + "down_proj.weight"] = [d, f]

    for i in range(c["num_hidden_layers"]):
        n = "model.layers.%d." % i
        out[n + "input_layernorm.weight"] = [d]
        out[n + "post_attention_layernorm.weight"] = [d]
        for name, width in (("q", q), ("k", kv), ("v", kv)):
            out[n + "self_attn.%s_proj.weight" % name] = [width, d]
            if kind in ("qwen2", "qwen2_moe"):
                out[n + "self_attn.%s_proj.bias" % name] = [width]
        out[n + "self_attn.o_proj.weight"] = [d, q]
        if kind in ("olmoe", "qwen3", "qwen3_moe"):
            out[n + "self_attn.q_norm.weight"] = [q if kind == "olmoe" else hd]
            out[n + "self_attn.k_norm.weight"] = [kv if kind == "olmoe" else hd]
        if kind == "mixtral":
            moe = n + "block_sparse_moe."
            out[moe + "gate.weight"] = [c["num_local_experts"], d]
            for e in range(c["num_local_experts"]):
                for matrix, shape in (("w1", [12, d]), ("w2", [d, 12]), ("w3", [12, d])):
                    out["%sexperts.%d.%s.weight" % (moe, e, matrix)] = shape
            continue
        if "num_experts" not in c:
            mlp(n + "mlp.", c["intermediate_size"])
            continue
        out[n + "mlp.gate.weight"] = [c["num_experts"], d]
        for e in range(c["num_experts"]):
            mlp(n + "mlp.experts.%d." % e,
                c.get("moe_intermediate_size", c["intermediate_size"]))
        if kind == "qwen2_moe":
            mlp(n + "mlp.shared_expert.", c["shared_expert_intermediate_size"])
            out[n + "mlp.shared_expert_gate.weight"] = [1, d]
    return out


def make(folder, kind, dtype, seed):
    random.seed(seed)
    config = dict(CONFIGS[kind], model_type=kind)
    tensors = {}
    for name, shape in shapes(kind, config).items():
        gain = len(shape) == 1 and name.endswith("weight")
        tensors[name] = (shape, [random.gauss(gain, 0.2 if gain else 0.4)
                                 for _ in range(math.prod(shape))])
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/config.json", "w") as f:
        json.dump(config, f)
    shards = 3 if dtype.startswith("sharded:") else 1
    dtype = dtype.split(":")[-1]
    if shards == 1:
        write_file(folder + "/model.safetensors", dtype, tensors)
        return
    index = {"metadata": {}, "weight_map": {}}
    for k in range(shards):
        part = dict(list(tensors.items())[k::shards])
        file = "model-%05d-of-%05d.safetensors" % (k + 1, shards)
        write_file(folder + "/" + file, dtype, part)
        index["weight_map"].update((name, file) for name in part)
    with open(folder + "/model.safetensors.index.json", "w") as f:
        json.dump(index, f)


def main():
    if sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
        return
    config, tensors = read_model(sys.argv[2])
    tokens = [int(t) for t in sys.argv[3].split(",")]
    model = gpt2 if config["model_type"] == "gpt2" else llama
    for row in model(config, tensors, tokens):
        print(*("%.12g" % (v - row[0]) for v in row))


main()
