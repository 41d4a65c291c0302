#include "cli/setup_data.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/setup.h"

/* The kind of data: data.source, or what the key that names the files implies. */
static int find_source(const struct pl_config *c, const char **source,
                       const char **files)
{
    const char *text = pl_config_text(c, "data.text");
    const char *tokens = pl_config_text(c, "data.tokens");
    const bool given = pl_config_given(c, "data.source");
    *source = pl_config_text(c, "data.source");
    *files = *text ? text : tokens;
    if (*text && *tokens)
        return pl_fail(PL_ECONFIG,
                       "%s: data.text and data.tokens are both given, one is "
                       "expected",
                       pl_config_where(c, "data.tokens"));
    if (!given && **files) *source = *text ? "text" : "tokens";
    const bool made = !strcmp(*source, "grammar"), bytes = !strcmp(*source, "text");
    if (made || **files) {
        if (made && **files)
            return pl_fail(PL_ECONFIG,
                           "%s: data.source: grammar reads no file, %s is given; leave "
                           "out data.source",
                           pl_config_where(c, "data.source"),
                           *text ? "data.text" : "data.tokens");
        if (made || bytes == (*text != 0)) return 0;
        return pl_fail(PL_ECONFIG,
                       "%s: data.source: %s reads data.%s, data.%s is given",
                       pl_config_where(c, "data.source"), *source,
                       bytes ? "text" : "tokens", bytes ? "tokens" : "text");
    }
    return pl_fail(PL_ECONFIG, "%s: data.source: %s needs a file, set data.%s",
                   pl_config_where(c, "data.source"), *source,
                   bytes ? "text" : "tokens");
}

/* Which key named the file that is not right: the training data open alone, or not. */
static int blame(const struct pl_config *c, const char *source, const char *files,
                 int T, int rc)
{
    const char *key = *pl_config_text(c, "data.text") ? "data.text" : "data.tokens";
    char *why = pl_strdup(pl_error_text());
    struct pl_data *alone;
    if (*pl_config_text(c, "data.valid") &&
        !pl_data_open(source, files, NULL, 0, (int)pl_config_int(c, "model.vocab"), T,
                      &alone)) {
        pl_data_free(alone);
        key = "data.valid";
    }
    pl_fail(rc, "%s", why);
    free(why);
    return pl_setup_blame(c, key, rc);
}

int pl_setup_data(const struct pl_config *config, int T, struct pl_data **out)
{
    const char *source, *files, *valid = pl_config_text(config, "data.valid");
    *out = NULL;
    int rc = find_source(config, &source, &files);
    if (rc) return rc;
    rc = pl_data_open(source, files, *valid ? valid : NULL,
                      pl_config_real(config, "data.valid_fraction"),
                      (int)pl_config_int(config, "model.vocab"), T, out);
    if (rc) return blame(config, source, files, T, rc);
    pl_data_set_order(*out, (enum pl_data_order)pl_config_choice(config, "data.order"));
    return 0;
}

void pl_setup_data_warn(const struct pl_config *config)
{
    const int64_t vocab = pl_config_int(config, "model.vocab");
    if (!*pl_config_text(config, "data.text") || vocab < 1024) return;
    pl_log(PL_LOG_WARN,
           "%s: data.text is read as bytes, 256 ids of a vocabulary of %lld; 'pipelag "
           "tokenize' makes GPT-2 tokens of it for data.tokens",
           pl_config_where(config, "data.text"), (long long)vocab);
}

const char *pl_setup_data_source(const struct pl_config *config)
{
    const char *source = "", *files;
    return find_source(config, &source, &files) ? "" : source;
}

int pl_setup_data_like(const struct pl_config *config, const char *files, int T,
                       struct pl_data **out)
{
    const char *source = pl_setup_data_source(config);
    if (!strcmp(source, "grammar")) source = "text";
    return pl_data_open(source, files, files, 0,
                        (int)pl_config_int(config, "model.vocab"), T, out);
}
