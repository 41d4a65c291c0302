/* A drawing to a file: .svg directly, .png and .pdf through rsvg-convert. */
#include "traces/draw.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

static int convert(const char *svg, const char *format, const char *path)
{
    char *temporary = pl_file_temporary(path);
    char *const argv[] = {"rsvg-convert", "-f", (char *)format, "-o", temporary,
                          (char *)svg,    NULL};
    pid_t pid;
    int status = 0, wait_status = 0;
    int error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (!error)
        while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) continue;
    if (error == ENOENT ||
        (!error && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 127))
        status =
            pl_fail(PL_EUNSUP,
                    "%s: %s needs rsvg-convert (package librsvg2-bin), which is not "
                    "installed; write .svg instead",
                    path, format);
    else if (error)
        status =
            pl_fail(PL_EIO, "%s: cannot start rsvg-convert: %s", path, strerror(error));
    else if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status))
        status = pl_fail(PL_EIO, "%s: rsvg-convert failed", path);
    else
        status = pl_file_install(temporary, path);
    if (status) unlink(temporary);
    free(temporary);
    return status;
}

static int save_svg(const char *path, pl_draw_fn *draw, const void *what)
{
    struct pl_file *file = pl_file_create(path);
    if (!file) return PL_EIO;
    draw(pl_file_stream(file), what);
    return pl_file_commit(file);
}

int pl_draw_save(const char *path, pl_draw_fn *draw, const void *what)
{
    const char *dot = strrchr(path, '.');
    if (dot && !strcmp(dot, ".svg")) return save_svg(path, draw, what);
    if (!dot || (strcmp(dot, ".png") && strcmp(dot, ".pdf")))
        return pl_fail(PL_EUSAGE, "%s: unknown ending, expected .svg, .png or .pdf",
                       path);
    char *svg = pl_printf("%s.svg", path);
    if (!access(svg, F_OK)) { /* not ours to overwrite */
        free(svg);
        svg = pl_file_temporary(path);
    }
    int status = save_svg(svg, draw, what);
    if (!status) {
        status = convert(svg, dot + 1, path);
        unlink(svg);
    }
    free(svg);
    return status;
}
