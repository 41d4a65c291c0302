"""The same questions as tests/hf_reference.py, answered by transformers:

  hf_transformers.py logits DIR TOKENS      logits of v minus those of token 0
  hf_transformers.py make DIR TYPE          a random tiny model by save_pretrained
  hf_transformers.py has TYPE...            those that this version knows
"""
import sys

import torch
import transformers


def scatter(model):
    torch.manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            gain = p.dim() == 1 and name.endswith("weight")
            p.normal_(1.0 if gain else 0.0, 0.2 if gain else 0.4)


CONFIGS = {
    "llama": dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4,
                  num_key_value_heads=2, intermediate_size=24, vocab_size=13,
                  rope_theta=50.0, rms_norm_eps=1e-5),
    "gpt2": dict(n_layer=2, n_embd=16, n_head=4, n_positions=32, vocab_size=13,
                 resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    "qwen2": dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4,
                  num_key_value_heads=2, intermediate_size=24, vocab_size=13,
                  tie_word_embeddings=True),
    "olmoe": dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4,
                  num_key_value_heads=2, intermediate_size=12, vocab_size=13,
                  num_experts=6, num_experts_per_tok=3),
    "qwen2_moe": dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4,
                      num_key_value_heads=2, intermediate_size=24, vocab_size=13,
                      moe_intermediate_size=12, num_experts=6, num_experts_per_tok=3,
                      shared_expert_intermediate_size=20),
    "qwen3": dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4, head_dim=4,
                  num_key_value_heads=2, intermediate_size=24, vocab_size=13),
    "mixtral": dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4,
                    num_key_value_heads=2, intermediate_size=12, vocab_size=13,
                    num_local_experts=6, num_experts_per_tok=3),
}


def main():
    transformers.logging.set_verbosity_error()
    if sys.argv[1] == "has":
        print(*[t for t in sys.argv[2:] if t in transformers.CONFIG_MAPPING])
    elif sys.argv[1] == "make":
        config = transformers.AutoConfig.for_model(sys.argv[3], **CONFIGS[sys.argv[3]])
        model = transformers.AutoModelForCausalLM.from_config(config)
        scatter(model)
        model.save_pretrained(sys.argv[2], safe_serialization=True)
    else:
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            sys.argv[2], output_loading_info=True, torch_dtype=torch.float32)
        assert not any(report[k] for k in ("missing_keys", "unexpected_keys",
                                           "mismatched_keys")), report
        with torch.no_grad():
            ids = torch.tensor([[int(t) for t in sys.argv[3].split(",")]])
            rows = model.eval()(ids).logits[0].double()
        for row in rows:
            print(*("%.12g" % (v - row[0]) for v in row))


main()
