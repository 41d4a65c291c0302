#include "traces/draw.h"

#include <string.h>

/* Length of the valid UTF-8 sequence at s, 0 when it is none. */
static int utf8(const unsigned char *s)
{
    int n = s[0] < 0x80             ? 1
            : (s[0] & 0xe0) == 0xc0 ? 2
            : (s[0] & 0xf0) == 0xe0 ? 3
            : (s[0] & 0xf8) == 0xf0 ? 4
                                    : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    return n;
}

/* What XML cannot hold becomes '?'. */
static void put_escaped(FILE *out, const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        int n = utf8(s);
        if (!n || (*s < 0x20 && *s != '\n' && *s != '\t'))
            fputc('?', out);
        else if (*s == '&')
            fputs("&amp;", out);
        else if (*s == '<')
            fputs("&lt;", out);
        else if (*s == '>')
            fputs("&gt;", out);
        else
            fwrite(s, 1, (size_t)n, out);
        s += n ? n : 1;
    }
}

void pl_svg_open(FILE *out, double width, double height, const char *title)
{
    fprintf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.6g\" height=\"%.6g\" "
        "viewBox=\"0 0 %.6g %.6g\" font-family=\"DejaVu Sans, Arial, sans-serif\">\n"
        "<title>",
        width, height, width, height);
    put_escaped(out, title);
    fputs("</title>\n", out);
    pl_svg_rect(out, 0, 0, width, height, "#ffffff", NULL);
}

void pl_svg_close(FILE *out)
{
    fputs("</svg>\n", out);
}

void pl_svg_rect(FILE *out, double x, double y, double w, double h, const char *fill,
                 const char *title)
{
    fprintf(out,
            "<rect x=\"%.7g\" y=\"%.7g\" width=\"%.7g\" height=\"%.7g\" fill=\"%s\"", x,
            y, w, h, fill);
    if (!title) {
        fputs("/>\n", out);
        return;
    }
    fputs("><title>", out);
    put_escaped(out, title);
    fputs("</title></rect>\n", out);
}

static void put_pen(FILE *out, const struct pl_pen *pen)
{
    fprintf(out, " stroke=\"%s\" stroke-width=\"%.4g\"", pen->colour, pen->width);
    if (pen->dash) fprintf(out, " stroke-dasharray=\"%s\"", pen->dash);
}

static void put_clip(FILE *out, int clip)
{
    if (clip >= 0) fprintf(out, " clip-path=\"url(#clip%d)\"", clip);
}

void pl_svg_line(FILE *out, double x1, double y1, double x2, double y2,
                 const struct pl_pen *pen)
{
    fprintf(out, "<line x1=\"%.7g\" y1=\"%.7g\" x2=\"%.7g\" y2=\"%.7g\"", x1, y1, x2,
            y2);
    put_pen(out, pen);
    fputs("/>\n", out);
}

void pl_svg_curve(FILE *out, int n, const double *x, const double *y,
                  const struct pl_pen *pen, int clip)
{
    fputs("<polyline fill=\"none\" stroke-linejoin=\"round\"", out);
    put_pen(out, pen);
    put_clip(out, clip);
    fputs(" points=\"", out);
    for (int i = 0; i < n; i++) fprintf(out, "%s%.6g,%.6g", i ? " " : "", x[i], y[i]);
    fputs("\"/>\n", out);
}

void pl_svg_band(FILE *out, int n, const double *x, const double *lo, const double *hi,
                 const char *fill, int clip)
{
    fprintf(out, "<polygon fill=\"%s\" fill-opacity=\"0.15\"", fill);
    put_clip(out, clip);
    fputs(" points=\"", out);
    for (int i = 0; i < n; i++) fprintf(out, "%.6g,%.6g ", x[i], lo[i]);
    for (int i = n; i-- > 0;) fprintf(out, "%.6g,%.6g ", x[i], hi[i]);
    fputs("\"/>\n", out);
}

void pl_svg_clip(FILE *out, int clip, double x, double y, double w, double h)
{
    fprintf(out,
            "<clipPath id=\"clip%d\"><rect x=\"%.7g\" y=\"%.7g\" width=\"%.7g\" "
            "height=\"%.7g\"/></clipPath>\n",
            clip, x, y, w, h);
}

void pl_svg_text(FILE *out, double x, double y, double size, enum pl_anchor anchor,
                 const char *colour, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    fprintf(out,
            "<text x=\"%.7g\" y=\"%.7g\" font-size=\"%.4g\" text-anchor=\"%s\" "
            "fill=\"%s\">",
            x, y, size, anchors[anchor], colour);
    put_escaped(out, text);
    fputs("</text>\n", out);
}

void pl_svg_text_up(FILE *out, double x, double y, double size, const char *text)
{
    fprintf(out,
            "<text x=\"%.7g\" y=\"%.7g\" font-size=\"%.4g\" text-anchor=\"middle\" "
            "transform=\"rotate(-90 %.7g %.7g)\">",
            x, y, size, x, y);
    put_escaped(out, text);
    fputs("</text>\n", out);
}
