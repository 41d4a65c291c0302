# sources of gpu/, added to the lists of Makefile.am
