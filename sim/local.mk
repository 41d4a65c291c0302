# sources of sim/, added to the lists of Makefile.am
