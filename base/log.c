#include "base/log.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

static enum pl_log_level log_level = PL_LOG_INFO;
static struct timespec start;

static struct {
    char label[64], unit[32];
    double total, began, drawn; /* drawn: clock of the latest line, -1 for none */
    bool active, terminal;
} progress;

__attribute__((constructor)) static void clock_start(void)
{
    clock_gettime(CLOCK_MONOTONIC, &start);
}

double pl_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start.tv_sec) +
           1e-9 * (double)(now.tv_nsec - start.tv_nsec);
}

void pl_log_set_level(enum pl_log_level level)
{
    log_level = level;
}

static void clear_bar(void)
{
    if (progress.active && progress.terminal && progress.drawn >= 0)
        fputs("\r\033[K", stderr);
}

void pl_log(enum pl_log_level level, const char *format, ...)
{
    static const char *const prefixes[] = {"", "warning: ", "", "debug: "};
    if (level > log_level) return;
    char text[4096];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    clear_bar();
    fprintf(stderr, "pipelag: %s%s\n", prefixes[level], text);
}

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20) return 80;
    return size.ws_col;
}

/* "120/300 updates  40 %  12.3/s  15 s left" */
static void describe(double done, char *text, size_t n)
{
    char left[32] = "?";
    double elapsed = pl_clock() - progress.began,
           rate = elapsed > 0 ? done / elapsed : 0;
    if (rate > 0)
        pl_units_format_time(round(fmax(0, progress.total - done) / rate), left,
                             sizeof left);
    snprintf(text, n, "%.10g/%.10g %s  %.0f %%  %.3g/s  %s left", done, progress.total,
             progress.unit, 100 * done / progress.total, rate, left);
}

static void draw_bar(double done, const char *text, const char *note)
{
    enum { MAX_WIDTH = 400 };
    char line[MAX_WIDTH * 4], bar[41];
    int width = terminal_width() - 1, cells = width / 4;
    if (width > MAX_WIDTH) width = MAX_WIDTH;
    if (cells > 40) cells = 40;
    double part = fmin(1, fmax(0, done / progress.total));
    int full = (int)(part * cells);
    memset(bar, '#', (size_t)full);
    memset(bar + full, '.', (size_t)(cells - full));
    bar[cells] = '\0';
    snprintf(line, sizeof line, "%s [%s] %s%s%s", progress.label, bar, text,
             note ? "  " : "", note ? note : "");
    fprintf(stderr, "\r%.*s\033[K", width, line);
    fflush(stderr);
}

void pl_progress_begin(const char *label, double total, const char *unit)
{
    snprintf(progress.label, sizeof progress.label, "%s", label);
    snprintf(progress.unit, sizeof progress.unit, "%s", unit ? unit : "");
    progress.total = total;
    progress.began = pl_clock();
    progress.drawn = -1;
    progress.terminal = isatty(STDERR_FILENO);
    progress.active = total > 0 && log_level >= PL_LOG_INFO;
}

void pl_progress_update(double done, const char *note)
{
    if (!progress.active) return;
    /* the first plain line, too, waits 10 s: short jobs stay silent in logs */
    double now = pl_clock(), gap = progress.terminal ? 0.1 : 10;
    bool first = progress.drawn < 0;
    if (now - (first ? progress.began : progress.drawn) < gap &&
        !(first && progress.terminal))
        return;
    char text[160];
    describe(done, text, sizeof text);
    progress.drawn = now;
    if (progress.terminal)
        draw_bar(done, text, note);
    else
        fprintf(stderr, "pipelag: %s: %s%s%s\n", progress.label, text, note ? "  " : "",
                note ? note : "");
}

void pl_progress_end(void)
{
    clear_bar();
    progress.active = false;
}
