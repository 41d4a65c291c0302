/* THE table of configuration keys. */
#include "base/config.h"

/* clang-format off */
#define INT(name, fallback, min, max, unit, help)                                      \
    {name, PL_KEY_INT, unit, fallback, min, max, NULL, help}
#define REAL(name, fallback, min, max, unit, help)                                     \
    {name, PL_KEY_REAL, unit, fallback, min, max, NULL, help}
#define BOOL(name, fallback, help) {name, PL_KEY_BOOL, "", fallback, 0, 1, NULL, help}
#define TEXT(name, fallback, help) {name, PL_KEY_TEXT, "", fallback, 0, 0, NULL, help}
#define NAME(name, fallback, choices, help)                                            \
    {name, PL_KEY_NAME, "", fallback, 0, 0, choices, help}
#define TIME(name, fallback, help) {name, PL_KEY_TIME, "s", fallback, 0, 0, NULL, help}
#define TIMES(name, fallback, help) {name, PL_KEY_TIMES, "s", fallback, 0, 0, NULL, help}
/* clang-format on */

static const char *const cost_types[] = {"given", "roofline", NULL};
static const char *const semantics[] = {"latency", "occupancy", "rendezvous",
                                        "contention", NULL};
static const char *const orders[] = {"issued", "free", NULL};
static const char *const scopes[] = {"auto", "global", "stage", "none", NULL};
static const char *const iterates[] = {"x", "y", NULL};
static const char *const gates[] = {"none", "cosine", NULL};
static const char *const decay_points[] = {"current", "stale", NULL};
static const char *const fidelities[] = {"auto",    "global", "stash",
                                         "nostash", "queue",  NULL};
static const char *const starts[] = {"zero", "hold", NULL};
static const char *const tasks[] = {"classification", "regression", NULL};
static const char *const ties[] = {"no", "yes", NULL};
static const char *const norms[] = {"rmsnorm", "layernorm", NULL};
static const char *const mlps[] = {"swiglu", "gelu", NULL};
static const char *const biases[] = {"none", "qkv", "attention", "all", NULL};
static const char *const recomputes[] = {"none", "selective", "full", NULL};
static const char *const qk_norms[] = {"none", "head", "full", NULL};
static const char *const scorings[] = {"softmax", "sigmoid", NULL};
static const char *const inits[] = {"scaled", "normal", "truncated", "width", NULL};

const struct pl_key pl_keys[] = {
    NAME("schedule.name", "1f1b", NULL, "pipeline schedule"),
    INT("schedule.stages", "8", 1, 4096, "", "P, pipeline stages"),
    INT("schedule.microbatches", "0", 0, 1048576, "",
        "m, microbatches per optimizer update; 0: the schedule's default"),
    INT("schedule.updates", "0", 0, 1e9, "",
        "updates that `sim` runs; 0: 1, or enough for the steady state when "
        "asynchronous"),
    INT("schedule.chunks", "0", 0, 4096, "",
        "v, model chunks per device; 0: the schedule's own"),
    NAME("schedule.order", "issued", orders,
         "issued: as the schedule says; free: asynchronous devices take the backward "
         "that is there, else the forward, within the same activations"),
    INT("schedule.group", "0", 0, 1048576, "",
        "interleaving, wpipe: microbatches in a group; 0: P"),
    INT("schedule.max_activations", "0", 0, 1048576, "",
        "automatic schedules: microbatches of a whole stage that a device may hold; 0: "
        "the schedule's own"),
    REAL(
        "schedule.released", "0", 0, 1, "",
        "automatic schedules: part of an activation that B frees, the rest stays for W "
        "(zero bubble's profiles: 1 - 32 h / (34 h + 5 a s)); not given with cost.type "
        "roofline: the model's"),
    TEXT("schedule.file", "",
         "schedule custom: its ops, a schedule CSV of torch.distributed.pipelining"),

    NAME("cost.type", "given", cost_types,
         "given: cost.* and link.time, or cost.profile; roofline: from model.*, "
         "parallel.* and cluster.*"),
    NAME("cost.optimizer", "auto", NULL,
         "rule whose step and state the roofline counts; auto: optimizer.name"),
    TEXT("cost.profile", "",
         "measured costs, CSV or trace, in place of cost.forward ... link.time"),
    TIMES("cost.forward", "1 ms",
          "forward of one microbatch on a stage (one, P or P*v)"),
    TIMES("cost.backward", "1 ms", "input gradient of one microbatch (one, P or P*v)"),
    TIMES("cost.weight", "1 ms", "weight gradient of one microbatch (one, P or P*v)"),
    TIMES("cost.update", "0", "optimizer step of a stage, per update (one, P or P*v)"),
    INT("cost.sequences", "1", 1, 1048576, "",
        "sequences in the microbatch that the costs are given for (used by `run`)"),
    REAL("cost.overlap", "0", 0, 1, "",
         "part of the shorter op that an overlapped pair of F and BW hides"),
    TIMES("link.time", "0",
          "one transfer between neighbouring devices (one, P-1 or P: a ring)"),
    NAME("link.semantics", "latency", semantics,
         "latency: links never fill; occupancy: one message at a time each way; "
         "rendezvous: Megatron's blocking exchange; contention: messages share "
         "bandwidth"),
    TIMES("link.send", "0",
          "sender's part of a transfer, before it leaves (one, P-1 or P)"),
    TEXT("link.bandwidth", "",
         "of each direction of a link, such as 25 GB/s or inf (one, P-1 or P): "
         "link.bytes / link.bandwidth is added to link.time"),
    TEXT("link.bytes", "0", "one transfer, such as 16 MiB; goes with link.bandwidth"),

    TEXT("jitter.forward", "",
         "variation of forwards around cost.forward: 'normal 5%', 'normal 2 ms', "
         "'lognormal 10%', 'gamma 10%', 'empirical FILE' or none"),
    TEXT("jitter.backward", "", "the same of backwards, fused ones too"),
    TEXT("jitter.weight", "", "the same of separate weight gradients"),
    TEXT("jitter.update", "", "the same of optimizer steps"),
    TEXT("jitter.activations", "", "the same of transfers of activations"),
    TEXT("jitter.gradients", "", "the same of transfers of gradients"),
    TEXT("jitter.slow", "", "slow devices, 'DEVICE:FACTOR ...', such as '3:1.5 7:2'"),
    TEXT("jitter.slow_links", "",
         "slow links, 'LINK:FACTOR ...'; link i joins devices i and i + 1"),
    TEXT("jitter.outages", "",
         "'DEVICE@FROM+LENGTH ...', such as '3@120ms+500ms': the op that is hit starts "
         "anew"),

    TEXT("cluster.preset", "",
         "cluster.* keys from a built-in cluster, a YAML file, a .xml of NCCL or a "
         ".txt of "
         "`nvidia-smi topo -m`, where not given otherwise: see pipelag-cluster(1)"),
    TEXT("cluster.topology", "",
         "file of nvidia-smi or NCCL that tells the inside of a node"),
    TEXT("cluster.name", "", "what to call the cluster"),
    TEXT("cluster.levels", "",
         "members of each level, outermost first: 'rack:2 node:4 gpu:8'"),
    TEXT("cluster.links", "",
         "link that joins the members of each level; the lists below override it (-: "
         "not)"),
    TEXT("cluster.bandwidth", "",
         "line rate per direction of a port (GPU, NIC, uplink) of each level"),
    TEXT("cluster.achieved", "", "part of the line rate that large transfers get"),
    TEXT("cluster.latency", "", "one small message at each level"),
    TEXT("cluster.ports", "",
         "ports of a member of each level (NICs of a node); 0: one for each GPU"),
    TIME("cluster.launch", "18.5 us", "start of one collective on host and GPU"),
    TEXT("cluster.gpu.name", "", "GPU"),
    REAL("cluster.gpu.bf16", "0", 0, 1e9, "Tflop/s", "dense bf16 peak (V100: fp16)"),
    REAL("cluster.gpu.tf32", "0", 0, 1e9, "Tflop/s", "dense tf32 peak; 0: none"),
    REAL("cluster.gpu.fp32", "0", 0, 1e9, "Tflop/s", "fp32 peak"),
    TEXT("cluster.gpu.memory", "", "memory of a GPU, such as 80 GiB"),
    TEXT("cluster.gpu.memory_bandwidth", "", "of a GPU, such as 2039 GB/s"),
    INT("cluster.gpu.sms", "0", 0, 100000, "",
        "multiprocessors; 0: products do not come in waves"),
    REAL("cluster.gpu.gemm_fraction", "0.8", 0.001, 1.2, "",
         "part of the peak that a large GEMM reaches"),
    REAL("cluster.gpu.memory_fraction", "0.9", 0.001, 1, "",
         "part of the memory bandwidth that a large copy reaches"),

    TEXT("model.preset", "",
         "model.* keys from a built-in model, a YAML file or a Hugging Face "
         "config.json (or its folder), where not given otherwise: see pipelag-model(1)"),
    TEXT("model.weights", "",
         "weights that training starts from: a folder of Hugging Face's form or a "
         ".safetensors file; see pipelag-model(1)"),
    INT("model.layers", "8", 1, 10000, "", "transformer blocks"),
    INT("model.hidden", "64", 2, 1048576, "", "width of the residual stream"),
    INT("model.heads", "4", 1, 65536, "", "query heads"),
    INT("model.kv_heads", "0", 0, 65536, "",
        "key/value heads, a divisor of heads; 0: heads"),
    INT("model.head_dim", "0", 0, 65536, "", "width of a head; 0: hidden / heads"),
    INT("model.ffn", "176", 1, 1048576, "", "inner width of a dense MLP"),
    INT("model.vocab", "256", 2, 1048576, "", "vocabulary; 256 for bytes"),
    NAME("model.tied", "no", ties, "head shares the embedding table"),
    REAL("model.rope_theta", "10000", 1, 1e12, "", "base of the rotary angles"),
    REAL("model.norm_eps", "1e-5", 0, 1, "", "epsilon of the norms"),
    NAME("model.norm", "rmsnorm", norms, "normalisation"),
    NAME("model.mlp", "swiglu", mlps, "gated (3 matrices) or plain (2)"),
    NAME("model.bias", "none", biases,
         "biases: none, of qkv, of all attention matrices, of all matrices and norms"),
    NAME("model.qk_norm", "none", qk_norms,
         "RMSNorm of queries and keys: per head (Qwen3) or over all heads (OLMoE)"),
    INT("model.positions", "0", 0, 16777216, "", "learned positions; 0: rotary"),
    NAME(
        "model.init", "scaled", inits,
        "initial matrices, sd init_std: normal, residual outputs over sqrt(2 layers) "
        "(scaled: GPT-2, nanoGPT), without that (normal: Hugging Face), or cut at 3 sd "
        "(truncated: OLMoE); sd hidden^-1/2, else as scaled (width: nanotron)"),
    REAL("model.init_std", "0.02", 1e-6, 10, "", "sd of the initial matrices"),
    BOOL("model.dropout", "no", "dropout, whose masks are kept for the backward; only simulated"),
    INT("model.experts", "0", 0, 65536, "", "routed experts of a layer; 0: dense"),
    INT("model.experts_per_token", "1", 1, 65536, "", "routed experts a token visits"),
    INT("model.expert_ffn", "0", 0, 1048576, "",
        "inner width of a routed expert; 0: model.ffn"),
    INT("model.shared_ffn", "0", 0, 1048576, "",
        "inner width of all shared experts together; 0: none"),
    BOOL("model.shared_gate", "no", "sigmoid gate of the shared experts (Qwen2-MoE)"),
    BOOL("model.router_bias", "no", "a bias for each expert (DeepSeek-V3)"),
    INT("model.dense_layers", "0", 0, 10000, "", "first layers, without experts"),
    NAME("model.scoring_func", "softmax", scorings,
         "router: scores of the experts"),
    BOOL("model.norm_topk_prob", "no",
         "router: divide the weights of a token's experts by their sum; with softmax "
         "the same as top-k before softmax (Mixtral, Megatron)"),
    REAL("model.routed_scaling_factor", "1", 1e-6, 1e6, "",
         "router: factor of the weights (DeepSeek-V3 2.5)"),
    REAL("model.aux_loss_coef", "0", 0, 1e6, "",
         "router: coefficient of the load-balance loss E sum f_i P_i of each layer "
         "(Switch, Megatron; Hugging Face's differs by the k in f and joins the layers)"),
    BOOL("model.seq_aux", "no",
         "router: load balance over each sequence (DeepSeek), not each microbatch"),
    REAL("model.z_loss_coef", "0", 0, 1e6, "",
         "router: coefficient of the mean squared log-sum-exp of the logits"),
    REAL("model.router_bias_rate", "1e-3", 0, 10, "",
         "router_bias: step against the sign of the excess load in each update"),
    INT("model.q_lora_rank", "0", 0, 1048576, "",
        "latent attention: width of the compressed query; 0: not compressed"),
    INT("model.kv_lora_rank", "0", 0, 1048576, "",
        "latent attention (only simulated): width of the compressed key/value; 0: "
        "ordinary attention"),
    INT("model.qk_nope_head_dim", "0", 0, 65536, "",
        "latent attention: width of a query/key head without rotation"),
    INT("model.qk_rope_head_dim", "0", 0, 65536, "",
        "latent attention: rotary width of a query/key head"),
    INT("model.v_head_dim", "0", 0, 65536, "",
        "latent attention: width of a value head"),

    TEXT("model.split", "uniform",
         "layers to stages: uniform, balanced, or a Megatron layout such as "
         "'Et*3|(tt|)*29,m|L'"),

    INT("parallel.tp", "1", 1, 65536, "", "GPUs that share each matrix of a stage"),
    BOOL("parallel.sp", "no", "sequence parallelism over the tp group"),
    INT("parallel.ep", "1", 1, 65536, "", "GPUs that share the experts of a layer"),
    INT("parallel.cp", "1", 1, 65536, "", "GPUs that share each sequence"),
    INT("parallel.dp", "1", 1, 1048576, "", "replicas that share the batch"),
    TEXT("parallel.order", "tp-cp-ep-dp-pp",
         "which axis numbers the GPUs fastest, as in Megatron-Core"),
    INT("parallel.zero", "0", 0, 1, "",
        "1: optimizer state is divided over cp * dp GPUs"),
    NAME("parallel.recompute", "none", recomputes,
         "activations computed again: none, the attention scores, whole layers"),
    BOOL("parallel.overlap", "no",
         "gradients are exchanged during the last backward, weights (zero) during the "
         "next forward"),
    BOOL("parallel.flash", "yes", "fused attention that stores no scores"),
    BOOL("parallel.grad_16", "no",
         "gradients are summed and exchanged in 2 bytes, not fp32"),
    BOOL("parallel.fuse_gradients", "yes",
         "weight gradients are summed inside their products; no: by a pass of its own"),
    BOOL("parallel.scatter_gather", "no",
         "without sp: a stage sends 1/tp of its output from each GPU"),
    INT("parallel.micro_batch", "1", 1, 1048576, "", "sequences in a microbatch"),
    INT("parallel.seq_length", "0", 0, 16777216, "",
        "tokens in a sequence; 0: 2048, or the model's positions if fewer"),

    NAME("problem.name", "model", NULL,
         "what is trained: the model of model.* on data.*, or a small problem that is "
         "known exactly"),
    INT("problem.seed", "1", 0, 1e15, "",
        "of what is the same for all seeds of a run: rotation, samples, teacher"),
    INT("problem.size", "64", 1, 65536, "",
        "quadratic: coordinates, or rows of a matrix; logistic: features; factor: "
        "rows; "
        "mlp: inputs"),
    INT("problem.cols", "0", 0, 65536, "",
        "quadratic: columns of the matrix, 0: a vector; factor: columns, 0: rows"),
    NAME("problem.spectrum", "log", NULL,
         "curvatures (logistic: variances of the features, factor: singular values): "
         "log or linear from problem.largest to problem.largest / problem.kappa; "
         "constant; power: largest / i^power; list: problem.values"),
    REAL("problem.largest", "1", 0, 1e30, "", "spectrum: the largest"),
    REAL("problem.kappa", "100", 1, 1e30, "",
         "spectrum log, linear: condition number, largest over smallest"),
    REAL("problem.power", "1", 0, 100, "", "spectrum power: its exponent"),
    TEXT("problem.values", "", "spectrum list: all of them, separated by commas"),
    REAL("problem.rotation", "0", 0, 1, "",
         "eigenbasis of the spectrum: 0 along the axes, 1 a random orthogonal one, "
         "between: the orthogonalised mean of both"),
    REAL("problem.noise", "0", 0, 1e30, "",
         "sd of gaussian gradient noise of one sample, per coordinate; an update's is "
         "divided by sqrt(train.batch)"),
    INT("problem.samples", "512", 1, 1e8, "", "logistic, mlp: samples"),
    BOOL("problem.full", "no",
         "logistic, mlp: gradients of all samples, not of train.batch random ones"),
    REAL("problem.l2", "1e-3", 0, 1e30, "", "logistic: l2/2 |w|^2 is part of the loss"),
    INT("problem.rank", "8", 1, 65536, "", "factor: columns of U and V"),
    REAL("problem.start", "0.1", 0, 1e30, "", "factor: sd of the first U and V"),
    INT("problem.layers", "4", 1, 10000, "", "mlp: linear layers"),
    INT("problem.width", "32", 1, 46340, "", "mlp: inner width"),
    INT("problem.outputs", "8", 1, 46340, "", "mlp: outputs, or classes"),
    NAME("problem.activation", "gelu", NULL, "mlp: activation (gelu: the exact one)"),
    NAME("problem.task", "classification", tasks,
         "mlp: cross-entropy, or half the squared error"),

    NAME(
        "data.source", "grammar", NULL,
        "grammar (built in), text (bytes), tokens (llm.c, FineWeb .bin), nanogpt (.bin "
        "without header) or megatron (.bin and .idx)"),
    TEXT("data.text", "",
         "text files, whose bytes are the tokens (GPT-2 tokens: pipelag tokenize); "
         "patterns and several names between spaces are one stream; implies "
         "data.source: text"),
    TEXT("data.tokens", "",
         "token files, likewise; implies data.source: tokens unless it says nanogpt or "
         "megatron"),
    TEXT("data.valid", "", "separate validation files of the same kind"),
    REAL("data.valid_fraction", "0.05", 0.0001, 0.5, "",
         "last part of the data kept for validation"),
    NAME("data.order", "draw", NULL,
         "training windows: draw at random places, with replacement; epoch: each once "
         "an epoch, shuffled; file: each once an epoch, as they lie"),

    TEXT("data.bpe", "",
         "folder of the tokens' GPT-2 vocabulary: gives bits per byte, and reads "
         "questions"),

    TEXT("eval.texts", "",
         "more validation, one a class of documents: 'NAME=FILES ...' of the data's "
         "kind, "
         "scored at every evaluation"),
    TEXT("eval.questions", "",
         "multiple choice: 'NAME=FILE.jsonl ...', lines {context, choices, answer}, "
         "asked "
         "at the first and the last version"),

    NAME("train.device", "host", NULL, "device that computes"),
    NAME("train.precision", "fp32", NULL,
         "of a model's products and attention; weights, their gradients and optimizers "
         "are fp32 always. tf32 (cuda): factors of products have 11 bits (PyTorch's "
         "matmul precision high). bf16 rounds the two factors to bf16, sums are fp32; "
         "on cuda activations and their gradients are kept in bf16 too (PyTorch's "
         "autocast, which keeps norms and the loss in fp32), on host all results stay "
         "fp32, and a CPU with AMX is needed, without which the run is in fp32 and says "
         "so. bf16-emulated gives the same sums on any CPU, slowly"),
    INT("train.updates", "300", 1, 1e9, "", "optimizer updates"),
    INT("train.batch", "16", 1, 1048576, "", "sequences per update, a multiple of m"),
    INT("train.seq", "128", 1, 1048576, "", "tokens per sequence"),
    INT("train.eval_every", "25", 1, 1e9, "updates", "distance between evaluations"),
    INT("train.eval_sequences", "64", 0, 1048576, "", "validation sequences; 0: none"),
    BOOL("train.diagnose", "no",
         "wherever a version is evaluated, compare the update with a fresh one"),
    REAL("train.diverged_above", "20", 0, 1e30, "nat",
         "loss that ends a run as diverged; 0, and problems other than the model where "
         "it is not given: only inf and NaN"),
    BOOL("train.replay", "no",
         "run microbatches one by one even where they could fuse"),
    INT("train.at_once", "0", 0, 1048576, "",
        "sequences computed at once at most, whose activations take memory; the "
        "gradient of an update is summed up; 0: all that read the same weights"),
    REAL("train.checkpoint_s", "10", 0, 1e9, "s", "seconds between checkpoints"),
    INT("train.checkpoint_updates", "0", 0, 1e9, "updates",
        "also a checkpoint every so many; 0: by time only"),
    INT("train.workers", "0", 0, 1024, "", "runs at a time; 0: one per core"),
    INT("train.threads", "0", 0, 256, "",
        "threads of a run; 0: the cores, shared by the runs; changes no result"),

    /* nan, auto, and 0 of ns_steps and ns_eps: the rule's own, in `pipelag run --help`
     */
    NAME("optimizer.name", "adamw", NULL, "update rule"),
    REAL("optimizer.lr", "nan", 0, 1e6, "",
         "peak rate (muon, normuon: of hidden matrices; mars: of matrices)"),
    REAL("optimizer.decay", "nan", 0, 1e6, "",
         "weight decay (scion: 1 constrained, 0 unconstrained)"),
    NAME("optimizer.decay_form", "auto", NULL,
         "before, after or proximal to the step, cautious (where both agree), coupled "
         "(L2)"),
    NAME(
        "optimizer.decay_factor", "auto", NULL,
        "of decay: lr, lr2 lr^2, corrected lr^2/peak, independent lr/peak, constant 1"),
    NAME("optimizer.decay_spares", "auto", NULL,
         "what does not decay: none, vectors, tables (embedding and head) and vectors"),
    NAME("optimizer.decay_at", "current", decay_points,
         "weights that decay: the newest, or those that forward read"),
    NAME("optimizer.tensors", "auto", NULL,
         "what muon, normuon, mars take: hidden matrices, all matrices, all; AdamW the "
         "rest"),
    REAL("optimizer.aux_lr", "nan", 0, 1e6, "",
         "rate of AdamW for the other tensors (mars: lr_1d)"),
    REAL("optimizer.aux_decay", "nan", 0, 1e6, "", "decay of the same"),
    REAL("optimizer.aux_beta1", "nan", 0, 0.999999, "", "first moment of the same"),
    REAL("optimizer.aux_beta2", "nan", 0, 0.999999999, "",
         "second moment of the same"),
    REAL("optimizer.momentum", "nan", 0, 0.999999, "",
         "of sgd, signum, muon, normuon, scion (1 - its alpha)"),
    NAME("optimizer.momentum_form", "auto", NULL,
         "EMA m = b m + (1-b) g or sum m = b m + g"),
    BOOL("optimizer.nesterov", "auto", "Nesterov momentum"),
    REAL("optimizer.dampening", "nan", 0, 1, "",
         "sum form: m = b m + (1 - dampening) g"),
    REAL("optimizer.beta1", "nan", 0, 0.999999, "",
         "first moment (lion: of the step)"),
    REAL("optimizer.beta2", "nan", 0, 0.999999999, "",
         "second moment (lion: first; adan: difference; normuon: of rows)"),
    REAL("optimizer.beta3", "nan", -1, 0.999999999, "",
         "adan: second moment; shampoo: weight of the new gradient, -1: beta1"),
    REAL("optimizer.eps", "nan", 0, 1, "", "added to the root of the second moment"),
    NAME("optimizer.eps_form", "auto", NULL,
         "eps beside the bias-corrected root or the uncorrected one, or under the root"),
    NAME("optimizer.nadam_form", "auto", NULL,
         "which NAdamW: torch, algoperf (timm) or optax (levanter)"),
    REAL("optimizer.momentum_decay", "nan", 0, 1e6, "", "psi of torch's nadam"),
    REAL("optimizer.gamma", "nan", 0, 1e3, "", "mars: of the difference of gradients"),
    BOOL("optimizer.exact", "auto",
         "mars: the difference is of gradients of one batch (is_approx False): a second "
         "gradient an update, at the weights of the one before"),
    REAL("optimizer.cautious", "nan", 0, 1, "",
         "lion: factor where step and gradient disagree; 1: off"),
    NAME("optimizer.scale", "auto", NULL,
         "of an orthogonalised m x n matrix: jordan sqrt(max(1,m/n)), moonlight "
         "0.2 sqrt(max(m,n)), ratio sqrt(m/n), none 1"),
    NAME("optimizer.coefficients", "auto", NULL,
         "Newton-Schulz polynomial (svd: exact, slow)"),
    INT("optimizer.ns_steps", "0", 0, 100, "", "Newton-Schulz iterations"),
    REAL("optimizer.ns_eps", "0", 0, 1, "", "added to the norm that it divides by"),
    BOOL("optimizer.ns_clamp", "auto",
         "divide by max(norm, ns_eps) (torch.optim.Muon)"),
    NAME("optimizer.ns_precision", "auto", NULL,
         "of Newton-Schulz: fp32, or bf16: every matrix rounded as it is stored "
         "(official Muon)"),
    BOOL("optimizer.fused_qkv", "auto",
         "orthogonalise queries, keys and values as one matrix"),
    NAME("optimizer.lmo_hidden", "auto", NULL, "scion: norm of hidden matrices"),
    NAME("optimizer.lmo_embed", "auto", NULL, "scion: norm of the embedding"),
    NAME("optimizer.lmo_head", "auto", NULL, "scion: norm of the head"),
    NAME("optimizer.lmo_vector", "auto", NULL, "scion: norm of gains and biases"),
    REAL("optimizer.radius_hidden", "nan", 0, 1e9, "", "scion: radius of the ball"),
    REAL("optimizer.radius_embed", "nan", 0, 1e9, "", "scion: radius of the ball"),
    REAL("optimizer.radius_head", "nan", 0, 1e9, "", "scion: radius of the ball"),
    REAL("optimizer.radius_vector", "nan", 0, 1e9, "", "scion: radius of the ball"),
    BOOL("optimizer.normalized", "auto", "scion: norms divided by the dimensions"),
    REAL("optimizer.moment_beta", "nan", -1, 0.999999999, "",
         "soap, basis-rotation: average of G G^T (SOAP's shampoo_beta); -1: beta2"),
    BOOL("optimizer.bias_correction", "auto", "soap, basis-rotation, shampoo"),
    INT("optimizer.refresh", "0", 0, 1000000, "updates",
        "soap, basis-rotation, shampoo: from one refresh of bases or roots to the next "
        "(precondition_frequency)"),
    INT("optimizer.max_precond_dim", "0", 0, 10000, "",
        "soap: longest side with a basis; shampoo: side of a block "
        "(max_preconditioner_dim); sides of thousands take minutes, in which a signal "
        "waits"),
    BOOL("optimizer.normalize_grads", "auto", "soap: updates of RMS 1 before the rate"),
    NAME("optimizer.rotation_source", "auto", NULL,
         "basis-rotation: bases of the average of G G^T (second), or of M M^T (first)"),
    BOOL("optimizer.one_sided", "auto", "basis-rotation: turn the shorter side alone"),
    INT("optimizer.start", "0", 0, 1e9, "updates",
        "shampoo: first update with roots; 0: optimizer.refresh"),
    BOOL("optimizer.merge_dims", "auto",
         "shampoo: a matrix of at most max_precond_dim elements is a vector"),
    BOOL("optimizer.graft", "auto", "shampoo: the length of Adam's step"),
    REAL("optimizer.graft_beta2", "nan", 0, 0.999999999, "",
         "shampoo: second moment of that Adam"),
    REAL("optimizer.graft_eps", "nan", 0, 1, "", "shampoo: eps of that Adam"),

    NAME("rate.schedule", "cosine", NULL, "learning-rate schedule"),
    REAL("rate.warmup", "0.1", 0, 1, "", "part of the updates spent in linear warm-up"),
    REAL("rate.floor", "0.1", 0, 1, "", "final rate over peak"),
    REAL("rate.decay_fraction", "0.2", 0, 1, "", "wsd: part of the updates that decay"),
    REAL("rate.delay_power", "0", 0, 10, "",
         "rho: a stage with delay tau has its rate times tau^-rho (PipeMare T1: 1)"),
    INT("rate.delay_updates", "0", 0, 1e9, "updates",
        "rho falls linearly to 0 over these; 0: it stays"),

    REAL("clip.norm", "1", 0, 1e30, "", "gradient norm limit; 0: none"),
    NAME("clip.scope", "auto", scopes,
         "over the whole model or per stage; auto: global where the delay is uniform"),
    NAME("delay.fidelity", "auto", fidelities,
         "weights that a gradient is taken at: see pipelag-run(1)"),
    TEXT("delay.tau", "",
         "delays instead of the schedule's: one, or one for each stage, 'T' or 'A..B' "
         "drawn anew for every microbatch"),
    TEXT("delay.trace", "",
         "version map instead of the schedule's: FILE[:ARM] as sim -o writes it"),
    INT("delay.seed", "1", 0, 9e15, "", "of delays that are drawn"),
    NAME("corrector.name", "none", NULL, "delay corrector"),
    REAL("corrector.c", "nan", -100, 100, "", "look-ahead; nan: the corrector's own"),
    TEXT("corrector.stage_c", "",
         "c of each stage, 'C0 C1 ...', instead of corrector.c"),
    REAL(
        "corrector.smooth", "nan", 0, 0.999999, "",
        "looks along e = b e + (1-b) u, this is b; nan: the corrector's own, mostly 0"),
    NAME("corrector.gate", "none", gates, "cosine: c times max(0, cos(u, e before))"),
    NAME("corrector.land", "x", iterates,
         "segments: the iterate of the stretch before that a stretch starts from"),
    REAL("corrector.lambda", "nan", 0, 1e6, "",
         "strength of a correction of the gradient; nan: the corrector's own"),
    NAME("corrector.start", "hold", starts,
         "update before the first: zero, or the first"),
    TEXT("segments", "",
         "stretches 'SCHEDULE[+CORRECTOR]:UPDATES ...' that replace schedule.name"),

    TEXT("arms.only", "", "arms to run: names or patterns (* ?), separated by spaces"),
    TEXT("arms.skip", "", "arms to leave out: names or patterns, separated by spaces"),
    TEXT("baseline", "", "label of the arm that the others are compared with"),
    {NULL, 0, NULL, NULL, 0, 0, NULL, NULL},
};
