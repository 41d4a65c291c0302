# Becomes the program as soon as base/config.c is there.
noinst_LIBRARIES += %D%/libcli.a
%C%_libcli_a_SOURCES = %D%/main.c %D%/cmd.c %D%/cmd.h %D%/families.c
