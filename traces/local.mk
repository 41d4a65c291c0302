# sources of traces/, added to the lists of Makefile.am
