#ifndef PICO_STDLIB_H
#define PICO_STDLIB_H
#include <stdbool.h>
#include "../../card.h"
static inline void stdio_init_all(void) {}
static inline bool stdio_usb_connected(void) { return true; }
static inline void sleep_ms(uint32_t ms) { (void)ms; }
static inline uint32_t time_us_32(void) { return card_us(); }
#endif
