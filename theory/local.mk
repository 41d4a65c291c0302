# sources of theory/, added to the lists of Makefile.am
