/* Runs code built for AMX on a CPU without it: the instructions raise SIGILL, the
 * handler decodes them and does what gpu/host_bf16_tiles.h says. So the compiled kernel
 * is tested, its instructions, registers, addresses and order of memory; not the
 * hardware. */
#ifndef TESTS_AMX_TRAP_H
#define TESTS_AMX_TRAP_H

#include <stdbool.h>

/* Handle SIGILL from now on. False: not an x86-64 Linux. */
bool amx_trap_install(void);
/* TDPBF16PS done by the handler so far. */
long amx_trap_products(void);

#endif
