# models and their layers, data
%C%_libtrain_a_SOURCES += %D%/param.h %D%/data.h \
   %D%/net.c %D%/net.h %D%/net_init.c %D%/net_table.c \
  %D%/layers/linear.h %D%/layers/norm.h %D%/layers/norm.c %D%/layers/ffn.h %D%/layers/ffn.c %D%/layers/moe.c %D%/layers/embed.c %D%/layers/attention.c %D%/layers/mlp.c \
  %D%/layers/head.c \
  %D%/data.c %D%/data_source.h %D%/data_text.c %D%/data_tokens.c %D%/data_grammar.c
