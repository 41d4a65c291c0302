# optimizers, correctors, training loop
%C%_libtrain_a_SOURCES += %D%/optim.c %D%/optim.h %D%/optim_step.c %D%/rate.c %D%/newton_schulz.c \
  %D%/newton_schulz.h %D%/optim/common.c %D%/optim/orthogonal.c %D%/optim/orthogonal.h \
  %D%/optim/sgd.c %D%/optim/adamw.c %D%/optim/nadamw.c %D%/optim/adan.c \
  %D%/optim/lion.c %D%/optim/signum.c %D%/optim/mars.c %D%/optim/muon.c \
  %D%/optim/soap.c %D%/optim/shampoo.c %D%/optim/basis_rotation.c \
  %D%/optim/precondition.c %D%/optim/precondition.h \
  %D%/optim/scion.c \
  %D%/correct.c %D%/correct.h %D%/correct/none.c %D%/correct/nesterov.c \
  %D%/correct/feedback.c %D%/correct/prediction.c %D%/correct/custom.c \
  %D%/correct/spike.c %D%/correct/spectrain.c %D%/correct/xpipe.c \
  %D%/correct/pipeoptim.c %D%/correct/discrepancy.c %D%/correct/nag.c %D%/correct/dcasgd.c %D%/correct/gapaware.c \
  %D%/wstore.c %D%/wstore.h %D%/run.c %D%/run.h \
  %D%/run_state.c %D%/run_state.h %D%/run_plan.c %D%/run_step.c %D%/run_eval.c %D%/run_feed.c %D%/run_diagnose.c %D%/run_ahead.c %D%/run_score.c %D%/run_routing.c %D%/score.c %D%/score.h \
  %D%/checkpoint.c %D%/checkpoint.h
# what a run's operations take
%C%_libtrain_a_SOURCES += %D%/profile.c %D%/profile.h %D%/machine.c
# weights in files
%C%_libtrain_a_SOURCES += %D%/safetensors.c %D%/safetensors.h %D%/safetensors_file.h \
  %D%/safetensors_data.c %D%/safetensors_types.c %D%/safetensors_write.c %D%/safetensors_shards.c \
  %D%/weights.c %D%/weights.h %D%/weights_names.c %D%/weights_names.h
