/* What the benchmarks share. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

enum { BATCHES = 5 };

struct bench {
    const char *name, *unit, *peer;
    void (*run)(double *value, double *peer_value); /* NaN: peer absent */
};

extern const char *heapq_script, *simgrid_program; /* the peers' programs */

/* End with the error's text when code is one. */
void die(int code);

/* bench_sim.c */
void sim_memory(double *value, double *peer_value);
void sim_event(double *value, double *peer_value);
void sim_event_simgrid(double *value, double *peer_value);
void sim_static(double *value, double *peer_value);
void sim_static_once(double *value, double *peer_value);

#endif
