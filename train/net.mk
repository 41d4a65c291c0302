# problems (llama and its layers, quadratic) and data
%C%_libtrain_a_SOURCES += %D%/param.h %D%/problem.h %D%/data.h
