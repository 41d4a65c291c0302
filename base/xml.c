#include "base/xml.h"

#include <expat.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { MAX_BYTES = 16 << 20, MAX_ELEMENTS = 100000, MAX_DEPTH = 64 };

struct door {
    const char *path;
    XML_Parser parser;
    struct pl_xml *root, *open; /* open: the innermost element not yet closed */
    int n, depth;
    int code; /* of our own refusal */
};

static void refuse(struct door *door, const char *problem)
{
    door->code = pl_fail(PL_ECONFIG, "%s:%lu:%lu: %s", door->path,
                         XML_GetCurrentLineNumber(door->parser),
                         XML_GetCurrentColumnNumber(door->parser) + 1, problem);
    XML_StopParser(door->parser, XML_FALSE);
}

static char **copy_attributes(const XML_Char **attributes)
{
    int n = 0;
    while (attributes[n]) n++;
    char **copy = PL_NEW(n + 1, char *);
    for (int i = 0; i < n; i++) copy[i] = pl_strdup(attributes[i]);
    return copy;
}

static void append(struct pl_xml *parent, struct pl_xml *child)
{
    if ((parent->n & (parent->n - 1)) == 0)
        parent->children =
            pl_grow(parent->children, parent->n ? 2 * (size_t)parent->n : 1,
                    sizeof(struct pl_xml *));
    parent->children[parent->n++] = child;
}

static void XMLCALL on_start(void *user, const XML_Char *name,
                             const XML_Char **attributes)
{
    struct door *door = user;
    if (door->code) return;
    if (door->n++ == MAX_ELEMENTS) {
        refuse(door, "more than 100000 elements");
        return;
    }
    if (door->depth++ == MAX_DEPTH) {
        refuse(door, "nested deeper than 64 levels");
        return;
    }
    struct pl_xml *element = PL_NEW(1, struct pl_xml);
    element->name = pl_strdup(name);
    element->line = (int)XML_GetCurrentLineNumber(door->parser);
    element->attributes = copy_attributes(attributes);
    element->parent = door->open;
    if (door->open)
        append(door->open, element);
    else
        door->root = element;
    door->open = element;
}

static void XMLCALL on_end(void *user, const XML_Char *name)
{
    struct door *door = user;
    (void)name;
    if (door->code) return;
    door->depth--;
    door->open = door->open->parent;
}

static void XMLCALL on_entity(void *user, const XML_Char *name, int is_parameter,
                              const XML_Char *value, int length, const XML_Char *base,
                              const XML_Char *system, const XML_Char *public_id,
                              const XML_Char *notation)
{
    (void)name, (void)is_parameter, (void)value, (void)length, (void)base;
    (void)system, (void)public_id, (void)notation;
    struct door *door = user;
    if (!door->code) refuse(door, "an entity is declared, none is expected");
}

static int parse(struct door *door, const char *data, size_t n)
{
    XML_SetUserData(door->parser, door);
    XML_SetElementHandler(door->parser, on_start, on_end);
    XML_SetEntityDeclHandler(door->parser, on_entity);
    if (XML_Parse(door->parser, data, (int)n, 1) == XML_STATUS_OK) return door->code;
    if (door->code) return door->code;
    const char *inside = door->open ? door->open->name : NULL;
    return pl_fail(PL_ECONFIG, "%s:%lu:%lu: %s%s%s", door->path,
                   XML_GetCurrentLineNumber(door->parser),
                   XML_GetCurrentColumnNumber(door->parser) + 1,
                   XML_ErrorString(XML_GetErrorCode(door->parser)),
                   inside ? ", inside of " : "", inside ? inside : "");
}

int pl_xml_read(const char *path, struct pl_xml **out)
{
    struct door door = {.path = path};
    char *data;
    size_t n;
    int code = pl_file_read(path, MAX_BYTES, &data, &n);
    if (code) return code;
    door.parser = XML_ParserCreate(NULL);
    code = door.parser ? parse(&door, data, n)
                       : pl_fail(PL_EINPUT, "%s: cannot start expat", path);
    if (door.parser) XML_ParserFree(door.parser);
    free(data);
    if (code)
        pl_xml_free(door.root);
    else
        *out = door.root;
    return code;
}

void pl_xml_free(struct pl_xml *e)
{
    if (!e) return;
    for (int i = 0; i < e->n; i++) pl_xml_free(e->children[i]);
    for (char **a = e->attributes; *a; a++) free(*a);
    free(e->attributes);
    free(e->children);
    free(e->name);
    free(e);
}

const char *pl_xml_get(const struct pl_xml *e, const char *name)
{
    for (char **a = e->attributes; *a; a += 2)
        if (!strcmp(a[0], name)) return a[1];
    return NULL;
}
