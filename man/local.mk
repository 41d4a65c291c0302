# sources of man/, added to the lists of Makefile.am
