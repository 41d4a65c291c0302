# What to run, as YAML; README.md has the measured results.
EXTRA_DIST += %D%/README.md %D%/one-step-delay.yaml %D%/one-step-delay-full.yaml %D%/rate-grid.yaml %D%/sweep-depth.yaml
