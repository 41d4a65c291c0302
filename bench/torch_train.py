#!/usr/bin/env python3
"""The peer of bench/bench_train.c: a Llama-style decoder in PyTorch, one update after
another (forward, backward, AdamW) on random tokens; prints the median's tokens a second.

    torch_train.py demo|1m|10m|135m|360m fp32|bf16 THREADS|cuda [UPDATES [T B]]

On a GPU: torch.compile, fused AdamW, TF32 where the precision is fp32. On the CPU tuned as far as it goes without another build of PyTorch: OpenBLAS of the OpenMP kind
(the pthread kind competes with PyTorch's own threads) with the kernels of AVX-512 (it
does not know CPUs younger than itself), PyTorch's vector loops of AVX-512, memory that
is kept between updates. Attention by scaled_dot_product_attention where there is one.
"""
import math
import os
import sys
import time

SIZES = {  # width, layers, heads, key/value heads, inner width, vocabulary, T, B, tied
    "demo": (64, 8, 4, 4, 176, 256, 128, 16, False),
    "1m": (128, 4, 4, 4, 352, 256, 256, 16, True),
    "10m": (320, 8, 5, 5, 864, 8192, 256, 8, True),
    "135m": (576, 30, 9, 3, 1536, 49152, 512, 2, True),
    "360m": (960, 32, 15, 5, 2560, 49152, 512, 2, True),
}


def tune():
    """These are read when a process starts: set them and start again."""
    if os.environ.get("TORCH_TRAIN_TUNED") or sys.argv[3] == "cuda":
        return
    env = dict(os.environ, TORCH_TRAIN_TUNED="1")
    env.setdefault("MALLOC_TRIM_THRESHOLD_", str(8 << 30))
    env.setdefault("MALLOC_MMAP_THRESHOLD_", str(8 << 30))
    env.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    with open("/proc/cpuinfo") as cpuinfo:
        if "avx512vl" in cpuinfo.read():
            env.setdefault("ATEN_CPU_CAPABILITY", "avx512")
            env.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
    openmp = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
    if os.path.isdir(openmp):
        env["LD_LIBRARY_PATH"] = openmp + ":" + env.get("LD_LIBRARY_PATH", "")
    env["OMP_NUM_THREADS"] = env["OPENBLAS_NUM_THREADS"] = sys.argv[3]
    os.execve(sys.executable, [sys.executable] + sys.argv, env)


def main():
    import torch
    from torch import nn
    from torch.nn import functional as F

    width, layers, heads, kv_heads, inner, vocab, T, B, tied = SIZES[sys.argv[1]]
    if len(sys.argv) > 6:
        T, B = int(sys.argv[5]), int(sys.argv[6])
    gpu = sys.argv[3] == "cuda"
    device = "cuda" if gpu else "cpu"
    dim = width // heads
    torch.manual_seed(1)
    if gpu:
        torch.set_float32_matmul_precision("high")
    else:
        torch.set_num_threads(int(sys.argv[3]))

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(width))

        def forward(self, x):
            x = x.float()
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.gain

    angles = torch.outer(torch.arange(T), 1e4 ** (-torch.arange(0, dim, 2) / dim))
    cos, sin = angles.cos().to(device), angles.sin().to(device)
    future = torch.ones(T, T, dtype=torch.bool).triu(1).to(device)

    def rotate(x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = Norm(), Norm()
            self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * dim, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            self.up = nn.Linear(width, 2 * inner, bias=False)
            self.down = nn.Linear(inner, width, bias=False)

        def attend(self, x):
            parts = self.qkv(x).split([heads * dim, kv_heads * dim, kv_heads * dim], -1)
            q, k, v = (p.view(B, T, -1, dim).transpose(1, 2) for p in parts)
            q, k = rotate(q), rotate(k)
            if heads != kv_heads:
                k = k.repeat_interleave(heads // kv_heads, 1)
                v = v.repeat_interleave(heads // kv_heads, 1)
            if hasattr(F, "scaled_dot_product_attention"):
                q, k = q.to(v.dtype), k.to(v.dtype)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                scores = q.to(v.dtype) @ k.to(v.dtype).transpose(-1, -2)
                scores = (scores * (1 / math.sqrt(dim))).masked_fill(future, -math.inf)
                y = F.softmax(scores, -1, dtype=torch.float32).to(v.dtype) @ v
            return self.out(y.transpose(1, 2).reshape(B, T, width))

        def forward(self, x):
            x = x + self.attend(self.before(x))
            gate, up = self.up(self.between(x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(vocab, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = Norm()
            self.head = nn.Linear(width, vocab, bias=False)
            for p in self.parameters():
                if p.dim() == 2:
                    nn.init.normal_(p, 0, 0.02)
            if tied:
                self.head.weight = self.embed.weight

        def forward(self, tokens, targets):
            x = self.embed(tokens)
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.norm(x)).float()
            return F.cross_entropy(logits.view(-1, vocab), targets.reshape(-1))

    model = Model().to(device)
    settings = {"fused": True} if gpu else {}
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, **settings
    )
    step = torch.compile(model) if gpu else model
    updates = int(sys.argv[4]) if len(sys.argv) > 4 else 8
    seconds = []
    for _ in range(updates + 2):
        tokens = torch.randint(0, vocab, (B, T + 1), device=device)
        if gpu:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast(device, torch.bfloat16, enabled=sys.argv[2] == "bf16"):
            loss = step(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    seconds = sorted(seconds[2:])
    print(B * T / seconds[len(seconds) // 2])


tune()
main()
