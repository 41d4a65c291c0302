# sources of cli/, added to the lists of Makefile.am
