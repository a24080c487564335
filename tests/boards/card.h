/* A pretended card and a clock that only calls move: 0.2 ms for a record read, 1.2 ms for one written, and 150 ms for every
 * 64th write, when the card moves an erase block. */
#ifndef CARD_H
#define CARD_H
#include <stdint.h>
#include <stdio.h>

static uint32_t card_clock = 4000000000u; /* wraps round in the first run, as clocks do */
static uint32_t card_writes;

static int card_file; /* there is one on the card */
__attribute__((destructor)) static void card_over(void) { if (card_file) puts("a file is left on the card"); }

/* Whether the card takes one more record: with NO_ROOM it is full after a hundred. */
static inline int card_room(void) {
#ifdef NO_ROOM
    return card_writes < 100;
#else
    return 1;
#endif
}

static inline uint32_t card_us(void) { return card_clock; }
static inline void card_step(uint32_t us) { card_clock += us; }
static inline void card_write(void) { card_step(++card_writes % 64 ? 1200 + card_writes % 7 : 150000); }
static inline void card_read(void) { card_step(200); }
#endif
