# What to run, as YAML; README.md has the measured results.
EXTRA_DIST += %D%/README.md %D%/bf16.yaml %D%/one-step-delay.yaml %D%/one-step-delay-full.yaml \
  %D%/delay-quadratic.yaml %D%/own-text.yaml %D%/optimizers.yaml %D%/optimizers-grid.yaml \
   %D%/rate-grid.yaml %D%/sweep-depth.yaml %D%/sweep-model.yaml
# measured steps, for pipelag calibrate
EXTRA_DIST += %D%/measured/sc21-table1.csv %D%/measured/korthikanti-table5.csv \
  %D%/measured/vtrain-multinode.csv %D%/measured/megatron-core-h100.csv
