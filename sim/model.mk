# models: description, import, work of a block, cuts
%C%_libsim_a_SOURCES += %D%/model_check.c %D%/model_read.c %D%/model_hf.c %D%/model_hf.h \
  %D%/model_hf_write.c %D%/model_hf_exact.c
%C%_libsim_a_SOURCES += %D%/weights.c %D%/weights.h %D%/parallel.c %D%/parallel.h
%C%_libsim_a_SOURCES += %D%/work.c %D%/work.h %D%/work_parts.h %D%/work_products.c \
  %D%/work_activations.c %D%/work_traffic.c %D%/work_exchanges.c %D%/optimizer_words.c
%C%_libsim_a_SOURCES += %D%/split.c %D%/split.h %D%/split_layout.c %D%/split_layout.h \
  %D%/split_work.c
