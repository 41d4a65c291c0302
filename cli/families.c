/* The NAME keys whose choices are families of the layers above base/. */
#include "cli/cmd.h"

void pl_cmd_register_families(void)
{
}
