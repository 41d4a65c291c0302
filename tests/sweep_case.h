/* A sweep of 54 points over three keys: schedule, stages, costs (one of them a list).
 */
#ifndef TESTS_SWEEP_CASE_H
#define TESTS_SWEEP_CASE_H

#include "tests/config_case.h"

static const char three_keys[] =
    "schedule: {stages: 3, updates: 2}\n"
    "sweep:\n"
    "  schedule.name: [1f1b, 2bw]\n"
    "  schedule: {stages: [1..3, 4..64 x4, 100..130 +15]}\n"
    "  cost.forward: [1 ms, [1ms, 2 ms], 3ms]\n";

#endif
