/* make_trace KIND FILE: a trace for the shell tests. KIND: every (all tables, random),
 * plain (two arms that can be drawn), other (plain with one number changed), chunks
 * (arms with two chunks a device, ops split or in pairs). */
#include "tests/trace_sample.h"

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    struct pl_trace *t;
    if (!strcmp(argv[1], "every")) {
        t = sample_trace(1, 20);
    } else if (!strcmp(argv[1], "chunks")) {
        t = pl_trace_new();
        sample_v_arm(t, "split", 4, 10, false);
        sample_v_arm(t, "pairs", 4, 10, true);
        sample_v_arm(t, "wide", 16, 64, true);
    } else {
        t = pl_trace_new();
        sample_arm(t, "adamw+gpipe", 4, 8, 2);
        sample_arm(t, "muon+gpipe", 2, 2, 3);
        bool other = !strcmp(argv[1], "other");
        sample_evals(t, "adamw+gpipe", 1, 20, other ? 2.5 : 2, 0.5);
        sample_evals(t, "muon+gpipe", 1, 20, 1.5, 0.5);
    }
    int status = pl_trace_write(t, argv[2]);
    pl_trace_free(t);
    return status ? 1 : 0;
}
