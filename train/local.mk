# sources of train/, added to the lists of Makefile.am
