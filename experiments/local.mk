# sources of experiments/, added to the lists of Makefile.am
