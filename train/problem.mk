# what can be trained: the table, and problems without a model
%C%_libtrain_a_SOURCES += %D%/problem.c %D%/problem.h %D%/host_problem.c %D%/host_problem.h \
  %D%/spectrum.c %D%/spectrum.h %D%/small_matrix.c %D%/small_matrix.h \
  %D%/quadratic.c %D%/logistic.c %D%/factor.c %D%/dense.c
