/* The only door to expat: one XML document as a tree of elements; text between tags is
 * left out. Entities other than the five of XML are refused. Limits: 16 MiB, 100000
 * elements, 64 levels. */
#ifndef PL_BASE_XML_H
#define PL_BASE_XML_H

struct pl_xml {
    char *name;
    int line;          /* of the opening tag, from 1 */
    char **attributes; /* name, value, name, value ..., NULL */
    struct pl_xml *parent, **children;
    int n; /* children */
};

/* Read path; *out is the root, the caller's to free. Errors: PL_EINPUT (cannot read,
 * too large), PL_ECONFIG "file:line:column: what expat says". */
int pl_xml_read(const char *path, struct pl_xml **out);
void pl_xml_free(struct pl_xml *root);

/* Value of an attribute, NULL when there is none. Borrowed. */
const char *pl_xml_get(const struct pl_xml *element, const char *name);

#endif
