/* The NAME keys whose choices are families of the layers above base/. */
#include "cli/cmd.h"
#include "cli/setup_optim.h"
#include "gpu/device.h"
#include "sim/cluster.h"
#include "sim/model_hf.h"
#include "sim/roofline.h"
#include "sim/schedule.h"
#include "train/correct.h"
#include "train/data.h"
#include "train/problem.h"

void pl_cmd_register_families(void)
{
    pl_config_register("schedule.name", pl_schedule_names());
    pl_config_register("problem.name", pl_problem_names());
    pl_config_register("problem.spectrum", pl_spectrum_names);
    pl_config_register("problem.activation", pl_dense_activations);
    pl_config_register("train.device", pl_device_choices);
    pl_config_register("train.precision", pl_precision_names);
    pl_config_register("data.source", pl_data_names());
    pl_config_register("data.order", pl_data_order_names);
    pl_setup_optim_register();
    pl_config_register("cost.optimizer", pl_update_rules);
    pl_config_register("corrector.name", pl_corrector_names());
    pl_config_register("rate.schedule", pl_rate_names);
    pl_model_register();
    pl_cluster_register();
}
