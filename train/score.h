/* What a trained model is asked beside the validation loss: the loss on further texts,
 * one a class of documents, and questions with choices (multiple choice, cloze), so
 * that "equal loss means equal performance" can be tested. Scores are taken at the
 * stored iterate on every stage. Owned: pl_score_free. */
#ifndef PL_TRAIN_SCORE_H
#define PL_TRAIN_SCORE_H

#include "train/data.h"
#include "train/tokenizer.h"

/* A question: the tokens of the context and of each choice behind it. */
struct pl_question {
    int32_t *context;
    int n_context, n_choices, answer;
    struct pl_choice {
        int32_t *tokens;
        int n;
        size_t bytes; /* of its text, for the normalised score */
    } * choices;
};

struct pl_score_set {
    char *name;
    struct pl_data *data;   /* a text: loss; or NULL */
    double bytes_per_token; /* of its windows; NaN unknown */
    int n_questions;
    struct pl_question *questions;
};

struct pl_score_sets {
    int n;
    struct pl_score_set *sets;
};

/* Read questions, one JSON object a line:
 *   {"context": "The sky is", "choices": [" blue", " square"], "answer": 0}
 * ("ctx", "endings" and "label", as HellaSwag names them, do too.) Text is taken as
 * bytes, or through the tokenizer; the longest context is cut from the left so that
 * context and choice have at most T+1 tokens; an empty context is one end-of-text token
 * (a line feed for bytes). Errors: PL_EINPUT naming file and line. */
int pl_score_questions(const char *path, struct pl_tokenizer *tokenizer, int vocab,
                       int T, struct pl_score_set *out);
void pl_score_free(struct pl_score_sets *sets);

/* Bytes per predicted token over the validation windows 0 .. n_windows-1, from the
 * tokenizer (NULL: what the kind of data says, NaN when it does not). */
int pl_score_bytes_per_token(const struct pl_data *data,
                             const struct pl_tokenizer *tokenizer, int T, int n_windows,
                             double *out);

#endif
