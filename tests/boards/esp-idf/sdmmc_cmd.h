#include "driver/sdspi_host.h"
