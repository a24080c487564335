#ifndef ESP_HEAP_CAPS_H
#define ESP_HEAP_CAPS_H
#include <stdlib.h>
#define MALLOC_CAP_DMA 8
static inline void *heap_caps_malloc(size_t n, unsigned caps) { (void)caps; return malloc(n); }
#endif
