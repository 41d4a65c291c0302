/* Included before everything else of a test program: what is float in the program's own
 * sources becomes double, so that differences of a loss can be taken without rounding.
 * Headers of the system come first and keep their float. */
#ifndef PL_TESTS_DOUBLE_H
#define PL_TESTS_DOUBLE_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define float double

#endif
