#include "cli/setup_optim.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/newton_schulz.h"

static const char *const forms[] = {"auto", "sum", "ema", NULL};
static const char *const precisions[] = {"auto", "fp32", "bf16", NULL};

/* Which member of struct pl_optim a key sets. NAME: choices[0] is "auto", the others
 * are the member's values from 0; SWITCH: a bool. */
enum kind { REAL, COUNT, SWITCH, NAME };

static const struct member {
    const char *name; /* after "optimizer." */
    enum kind kind;
    size_t at, size;
    const char *const *choices;
} members[] = {
#define MEMBER(name, kind, member, choices)                  \
    {                                                        \
        name, kind, offsetof(struct pl_optim, member),       \
            sizeof((struct pl_optim *)NULL)->member, choices \
    }
#define NUMBER(member) MEMBER(#member, REAL, member, NULL)
    NUMBER(lr),
    NUMBER(decay),
    MEMBER("decay_form", NAME, decay_form, pl_decay_forms),
    MEMBER("decay_factor", NAME, decay_factor, pl_decay_factors),
    MEMBER("decay_spares", NAME, decay_spares, pl_decay_spared),
    MEMBER("tensors", NAME, tensors, pl_tensor_sets),
    NUMBER(aux_lr),
    NUMBER(aux_decay),
    NUMBER(aux_beta1),
    NUMBER(aux_beta2),
    NUMBER(momentum),
    MEMBER("momentum_form", NAME, ema, forms),
    MEMBER("nesterov", SWITCH, nesterov, NULL),
    NUMBER(dampening),
    NUMBER(beta1),
    NUMBER(beta2),
    NUMBER(beta3),
    NUMBER(eps),
    MEMBER("eps_form", NAME, eps_form, pl_eps_forms),
    MEMBER("nadam_form", NAME, nadam_form, pl_nadam_forms),
    NUMBER(momentum_decay),
    NUMBER(gamma),
    MEMBER("exact", SWITCH, exact, NULL),
    NUMBER(cautious),
    MEMBER("scale", NAME, scale, pl_shape_scales),
    MEMBER("coefficients", NAME, coefficients, pl_ns_names),
    MEMBER("ns_steps", COUNT, ns_steps, NULL),
    NUMBER(ns_eps),
    MEMBER("ns_clamp", SWITCH, ns_clamp, NULL),
    MEMBER("ns_precision", NAME, ns_bf16, precisions),
    MEMBER("fused_qkv", SWITCH, fused_qkv, NULL),
    MEMBER("lmo_hidden", NAME, lmo[PL_PARAM_MATRIX], pl_lmos),
    MEMBER("lmo_embed", NAME, lmo[PL_PARAM_EMBED], pl_lmos),
    MEMBER("lmo_head", NAME, lmo[PL_PARAM_HEAD], pl_lmos),
    MEMBER("lmo_vector", NAME, lmo[PL_PARAM_VECTOR], pl_lmos),
    MEMBER("radius_hidden", REAL, radius[PL_PARAM_MATRIX], NULL),
    MEMBER("radius_embed", REAL, radius[PL_PARAM_EMBED], NULL),
    MEMBER("radius_head", REAL, radius[PL_PARAM_HEAD], NULL),
    MEMBER("radius_vector", REAL, radius[PL_PARAM_VECTOR], NULL),
    MEMBER("normalized", SWITCH, normalized, NULL),
    NUMBER(moment_beta),
    MEMBER("bias_correction", SWITCH, bias_correction, NULL),
    MEMBER("refresh", COUNT, refresh, NULL),
    MEMBER("max_precond_dim", COUNT, max_precond_dim, NULL),
    MEMBER("precondition_1d", SWITCH, precondition_1d, NULL),
    MEMBER("normalize_grads", SWITCH, normalize_grads, NULL),
    MEMBER("rotation_source", NAME, rotation_source, pl_rotation_sources),
    MEMBER("one_sided", SWITCH, one_sided, NULL),
    MEMBER("start", COUNT, start, NULL),
    MEMBER("merge_dims", SWITCH, merge_dims, NULL),
    MEMBER("graft", SWITCH, graft, NULL),
    NUMBER(graft_beta2),
    NUMBER(graft_eps),
};
enum { N_MEMBERS = sizeof members / sizeof *members };

static char *key_of(const struct member *m)
{
    return pl_printf("optimizer.%s", m->name);
}

void pl_setup_optim_register(void)
{
    pl_config_register("optimizer.name", pl_optim_names());
    for (int i = 0; i < N_MEMBERS; i++) {
        if (members[i].kind != NAME) continue;
        char *key = key_of(&members[i]);
        pl_config_register(key, members[i].choices);
        free(key);
    }
}

/* A member that is no number is a bool, of one byte, or an enum, of an int's. */
static void set(struct pl_optim *o, const struct member *m, int value)
{
    const bool byte = value != 0;
    assert(m->size == sizeof byte || m->size == sizeof value);
    memcpy((char *)o + m->at, m->size == sizeof byte ? (const void *)&byte : &value,
           m->size);
}

static int get(const struct pl_optim *o, const struct member *m)
{
    const char *at = (const char *)o + m->at;
    int value = *at;
    if (m->size == sizeof value) memcpy(&value, at, sizeof value);
    return value;
}

static double real(const struct pl_optim *o, const struct member *m)
{
    double value;
    memcpy(&value, (const char *)o + m->at, sizeof value);
    return value;
}

static void take(const struct pl_config *c, const struct member *m, struct pl_optim *o)
{
    char *key = key_of(m);
    if (m->kind == REAL) {
        double value = pl_config_real(c, key);
        if (!isnan(value)) memcpy((char *)o + m->at, &value, sizeof value);
    } else {
        int value = m->kind == COUNT    ? (int)pl_config_int(c, key) - 1
                    : m->kind == SWITCH ? pl_config_maybe(c, key)
                                        : pl_config_choice(c, key) - 1;
        if (value >= 0) set(o, m, m->kind == COUNT ? value + 1 : value);
    }
    free(key);
}

struct pl_optim pl_setup_optim(const struct pl_config *config)
{
    const struct pl_optim_type *type =
        pl_optim_find(pl_config_text(config, "optimizer.name"));
    struct pl_optim o = type->defaults;
    o.type = type;
    for (int i = 0; i < N_MEMBERS; i++) take(config, &members[i], &o);
    return o;
}

/* Settings that are off, or as usual, at their first value. */
static bool usual(const struct pl_optim *o, const struct member *m)
{
    static const char quiet[] =
        "decay_factor decay_spares eps_form ns_steps ns_eps ns_precision dampening";
    if (m->kind == SWITCH) return !get(o, m);
    if (!strcmp(m->name, "cautious")) return real(o, m) == 1;
    if (!pl_has_word(quiet, m->name)) return false;
    return m->kind == REAL ? real(o, m) == 0 : get(o, m) == 0;
}

/* "lr 0.02" */
static char *setting(const struct pl_optim *o, const struct member *m)
{
    if (!pl_has_word(o->type->keys, m->name) || usual(o, m)) return NULL;
    switch (m->kind) {
    case REAL:
        return pl_printf("%s %.6g", m->name, real(o, m));
    case COUNT:
        return pl_printf("%s %d", m->name, get(o, m));
    case SWITCH:
        return pl_strdup(m->name);
    case NAME:
        break;
    }
    return pl_printf("%s %s", m->name, m->choices[1 + get(o, m)]);
}

char *pl_setup_optim_text(const struct pl_optim *o)
{
    char *text = pl_printf("%s:", o->type->name);
    const char *comma = "";
    for (int i = 0; i < N_MEMBERS; i++) {
        char *one = setting(o, &members[i]);
        if (!one) continue;
        char *longer = pl_printf("%s%s %s", text, comma, one);
        free(text);
        free(one);
        text = longer;
        comma = ",";
    }
    return text;
}

/* name in a column, two spaces (for help2man), the text beside it in lines that argp
 * leaves alone. */
static void put_entry(const char *name, const char *text, FILE *out)
{
    enum { INDENT = 18, WIDTH = 77 };
    int column = fprintf(out, "  %-*s", INDENT - 2, name);
    for (size_t n; (n = strcspn(text, " ")); text += n + (text[n] == ' ')) {
        if (column + 1 + (int)n > WIDTH && column > INDENT)
            column = fprintf(out, "\n%*s", INDENT, "") - 1;
        column += fprintf(out, "%s%.*s", column > INDENT ? " " : "", (int)n, text);
    }
    putc('\n', out);
}

char *pl_setup_optim_list(void)
{
    char *list = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&list, &size);
    assert(out);
    for (int i = 0; pl_optim_types[i]; i++) {
        struct pl_optim o = pl_optim_types[i]->defaults;
        o.type = pl_optim_types[i];
        char *settings = pl_setup_optim_text(&o);
        char *text = pl_printf("%s (%s):%s", o.type->summary, o.type->source,
                               strchr(settings, ':') + 1);
        put_entry(o.type->name, text, out);
        free(text);
        free(settings);
    }
    fclose(out);
    return list;
}

bool pl_setup_optim_twice(const struct pl_config *config)
{
    const struct pl_optim o = pl_setup_optim(config);
    return o.exact && o.type->ahead;
}

bool pl_setup_optim_reads(const struct pl_config *config, const char *key)
{
    const struct pl_optim_type *type =
        pl_optim_find(pl_config_text(config, "optimizer.name"));
    const char *name = key + strlen("optimizer.");
    bool ours = false;
    for (int i = 0; i < N_MEMBERS; i++) ours |= !strcmp(members[i].name, name);
    return !ours || pl_has_word(type->keys, name);
}
