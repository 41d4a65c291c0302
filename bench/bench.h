/* What the benchmarks share. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

enum { BATCHES = 5 };

struct bench {
    const char *name, *unit, *peer;
    void (*run)(double *value, double *peer_value); /* NaN: peer absent */
};

/* The peers' programs. */
extern const char *heapq_script, *simgrid_program, *torch_script;

/* End with the error's text when code is one. */
void die(int code);

/* bench_sim.c */
void sim_memory(double *value, double *peer_value);
void sim_event(double *value, double *peer_value);
void sim_event_simgrid(double *value, double *peer_value);
void sim_static(double *value, double *peer_value);
void sim_static_once(double *value, double *peer_value);

/* bench_peak.c */
void peak_fma(double *value, double *peer_value);
void peak_triad(double *value, double *peer_value);

/* bench_train.c */
void train_gpt2(double *value, double *peer_value);
void train_demo(double *value, double *peer_value);
void train_1m(double *value, double *peer_value);
void train_10m(double *value, double *peer_value);
void train_135m(double *value, double *peer_value);
void train_1m_bf16(double *value, double *peer_value);
void train_10m_bf16(double *value, double *peer_value);
void train_135m_bf16(double *value, double *peer_value);
void overhead_tau1(double *value, double *peer_value);
void overhead_feedback(double *value, double *peer_value);
void overhead_stash(double *value, double *peer_value);
/* Tokens a second of PyTorch ("fp32", "bf16") with every core, NaN without it. */
double ask_torch(const char *size, const char *precision);

/* bench_optim.c */
void muon_step(double *value, double *peer_value);
void muon_step_medium(double *value, double *peer_value);
void muon_step_small(double *value, double *peer_value);

#endif
