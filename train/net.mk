# models and their layers, data
%C%_libtrain_a_SOURCES += %D%/param.h %D%/data.h \
   %D%/net.c %D%/net.h %D%/net_init.c %D%/net_table.c \
  %D%/layers/linear.h %D%/layers/norm.h %D%/layers/norm.c %D%/layers/ffn.h %D%/layers/ffn.c %D%/layers/moe.c %D%/layers/embed.c %D%/layers/attention.c %D%/layers/mlp.c \
  %D%/layers/head.c \
  %D%/data.c %D%/data_source.h %D%/data_source.c %D%/data_paths.c %D%/data_guess.c \
  %D%/data_order.c %D%/data_order.h %D%/data_text.c %D%/data_tokens.c %D%/data_nanogpt.c \
  %D%/data_megatron.c %D%/data_grammar.c \
  %D%/unicode.c %D%/unicode.h %D%/unicode_table.h %D%/tokenizer.c %D%/tokenizer.h \
  %D%/tokenizer_private.h %D%/tokenizer_load.c %D%/tokenizer_word.c %D%/token_file.c \
  %D%/token_file.h %D%/tokenize.c %D%/tokenize.h
