#ifndef ESP_TIMER_H
#define ESP_TIMER_H
#include "../card.h"
static inline int64_t esp_timer_get_time(void) { return card_us(); }
#endif
