/* pipelag tokenize: text to token files by GPT-2's vocabulary, and back. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cmd.h"
#include "cli/workers.h"
#include "train/tokenize.h"

enum { OPT_BPE = 512, OPT_FORMAT, OPT_DECODE, OPT_FORCE, OPT_JSON, OPT_SHARD, OPT_VAL };

enum { FINEWEB_TOKENS = 100000000 };

static const struct argp_option options[] = {
    {"bpe", OPT_BPE, "DIR", 0,
     "folder of the vocabulary: encoder.json and vocab.bpe, or vocab.json and "
     "merges.txt",
     0},
    {"output", 'o', "OUT", 0, "file to write", 0},
    {"format", OPT_FORMAT, "NAME", 0,
     "llmc (default; FineWeb), nanogpt, or megatron, which also writes NAME.idx", 0},
    {"shard", OPT_SHARD, "TOKENS", OPTION_ARG_OPTIONAL,
     "cut OUT into files OUT_000001.bin and so on of this many tokens, written with = "
     "(default 100000000, as FineWeb's in llm.c)",
     0},
    {"val", OPT_VAL, NULL, 0,
     "with --shard: the first file is OUT_val_000000.bin, for data.valid, the others "
     "OUT_train_000001.bin and so on",
     0},
    {"decode", OPT_DECODE, NULL, 0,
     "the other way: IN are token files of the format, their text is written to OUT or "
     "printed",
     0},
    {"force", OPT_FORCE, NULL, 0, "replace OUT when it exists", 0},
    {"json", OPT_JSON, NULL, 0, "print the counts as JSON", 0},
    {0},
};

struct arguments {
    const char *bpe, *output, *format;
    struct pl_token_shards shards;
    bool decode, force, json;
    bool default_shard; /* --shard without its number */
    int code;           /* of a bad option */
    int n;
    const char **inputs; /* of argv */
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (option) {
    case OPT_BPE:
        a->bpe = arg;
        return 0;
    case 'o':
        a->output = arg;
        return 0;
    case OPT_FORMAT:
        a->format = arg;
        return 0;
    case OPT_SHARD:
        a->shards.tokens = FINEWEB_TOKENS;
        a->default_shard = !arg;
        if (arg && !a->code)
            a->code = pl_cmd_int("--shard", arg, 1, INT64_MAX, &a->shards.tokens);
        return 0;
    case OPT_VAL:
        a->shards.valid = true;
        return 0;
    case OPT_DECODE:
        a->decode = true;
        return 0;
    case OPT_FORCE:
        a->force = true;
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->default_shard && strspn(arg, "0123456789") == strlen(arg) &&
            access(arg, F_OK))
            argp_error(state, "--shard %s: write --shard=%s", arg, arg);
        a->inputs = pl_grow(a->inputs, (size_t)a->n + 1, sizeof *a->inputs);
        a->inputs[a->n++] = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "IN is missing: a text file, or - for standard input");
        return 0;
    case ARGP_KEY_END:
        if (!a->bpe) argp_error(state, "--bpe DIR is missing: the vocabulary");
        if (!a->output && !a->decode) argp_error(state, "-o OUT is missing");
        if (a->decode && a->json) argp_error(state, "--decode excludes --json");
        if (a->decode && a->shards.tokens)
            argp_error(state, "--decode excludes --shard");
        if (a->shards.valid && !a->shards.tokens)
            argp_error(state, "--val without --shard");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int on_progress(void *context, int64_t bytes)
{
    (void)context;
    pl_progress_update((double)(bytes >> 20), NULL);
    return pl_workers_signal();
}

static double total_bytes(const struct arguments *a)
{
    double total = 0;
    struct stat st;
    for (int i = 0; i < a->n; i++)
        if (!stat(a->inputs[i], &st)) total += (double)st.st_size;
    return total;
}

static void print_counts(const struct arguments *a, int64_t tokens, int64_t documents,
                         int shards, int64_t bytes)
{
    const double per_token = (double)bytes / (double)tokens;
    if (!a->json) {
        printf("tokens           %" PRId64 "\ndocuments        %" PRId64
               "\nbytes            %" PRId64 "\nbytes per token  %.6g\n",
               tokens, documents, bytes, per_token);
        if (a->shards.tokens) printf("files            %d\n", shards);
        return;
    }
    struct pl_json json;
    pl_json_open(&json, stdout);
    pl_json_begin(&json, NULL, '{');
    pl_json_int(&json, "tokens", tokens);
    pl_json_int(&json, "documents", documents);
    pl_json_int(&json, "bytes", bytes);
    pl_json_real(&json, "bytes_per_token", per_token);
    if (a->shards.tokens) pl_json_int(&json, "files", shards);
    pl_json_end(&json, '}');
    pl_json_close(&json);
}

static int encode(const struct arguments *a, struct pl_tokenize *job)
{
    int code = pl_token_file_create(a->format, a->output, a->shards,
                                    pl_tokenizer_vocab(job->tokenizer),
                                    pl_tokenizer_end(job->tokenizer), &job->out);
    if (code) return code;
    pl_progress_begin("tokenize", total_bytes(a) / (1 << 20), "MiB");
    for (int i = 0; i < a->n && !code; i++) code = pl_tokenize_file(job, a->inputs[i]);
    pl_progress_end();
    const int64_t tokens = pl_token_file_tokens(job->out);
    const int64_t documents = pl_token_file_documents(job->out);
    const int shards = pl_token_file_shards(job->out);
    if (!code && !documents)
        code = pl_fail(PL_EINPUT, "%s%s: no text", a->inputs[0],
                       a->n > 1 ? " and the others" : "");
    if (code) {
        pl_token_file_discard(job->out);
        return code;
    }
    code = pl_token_file_commit(job->out);
    if (!code) print_counts(a, tokens, documents, shards, job->bytes);
    return code;
}

/* IN as one value of data.tokens; the caller frees. */
static char *names_of(const struct arguments *a)
{
    char *names = pl_strdup(a->inputs[0]);
    for (int i = 1; i < a->n; i++) {
        char *longer = pl_printf("%s %s", names, a->inputs[i]);
        free(names);
        names = longer;
    }
    return names;
}

static int decode(const struct arguments *a, struct pl_tokenize *job)
{
    struct pl_file *file = a->output ? pl_file_create(a->output) : NULL;
    if (a->output && !file) return PL_EIO;
    pl_workers_catch_signals(); /* not before: a pipe may wait for its reader */
    char *names = names_of(a);
    int code =
        pl_detokenize(job, a->format, names, file ? pl_file_stream(file) : stdout);
    free(names);
    if (!file) return code;
    if (!code) return pl_file_commit(file);
    pl_file_discard(file);
    return code;
}

/* May OUT be written, or the files that it is cut into? */
static int check_output(const struct arguments *a)
{
    struct stat st;
    const char *out = a->output;
    const size_t n = strlen(out);
    if (!a->shards.tokens) return pl_cmd_output(out, a->force);
    if (!n || out[n - 1] == '/' || !strcmp(out, "-") ||
        (!stat(out, &st) && !S_ISREG(st.st_mode)))
        return pl_fail(PL_EUSAGE,
                       "-o '%s': --shard makes names of it: expected such as "
                       "FOLDER/NAME.bin",
                       out);
    char *first = pl_token_shard_path(out, a->shards, 0);
    char *there = a->force ? NULL : pl_token_shards_there(out, a->shards);
    int code = pl_cmd_output(first, a->force);
    if (!code && there)
        code = pl_fail(PL_EUSAGE, "%s: exists, --force replaces it", there);
    free(first);
    free(there);
    return code;
}

static int tokenize(const struct arguments *a)
{
    struct pl_tokenize job = {.on_progress = on_progress};
    int code = a->output ? check_output(a) : 0;
    if (!code) code = pl_tokenizer_open(a->bpe, &job.tokenizer);
    if (code) return code;
    if (!a->decode) pl_workers_catch_signals();
    code = a->decode ? decode(a, &job) : encode(a, &job);
    pl_workers_release_signals();
    pl_tokenizer_free(job.tokenizer);
    return code;
}

int pl_cmd_tokenize(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "IN...",
        .doc =
            "Turn text files into a file of GPT-2 tokens for data.tokens. A document "
            "ends at a line <|endoftext|> or with its file.",
    };
    struct arguments arguments = {.format = "llmc"};
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    int code = arguments.code ? arguments.code : tokenize(&arguments);
    free(arguments.inputs);
    if (code != PL_EINTR) return code ? pl_cmd_fail(code) : 0;
    pl_log(PL_LOG_INFO, "interrupted, nothing was written");
    return 128 + pl_workers_signal();
}
