/* Prints what a memory card does, line by line, for `nandscope infer`. Portable C99 and C++; MIT or Apache-2.0.
 * Give it a function that sends one character over your serial line, and call it around your card driver. */
#ifndef NANDSCOPE_H
#define NANDSCOPE_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*ns_put_fn)(char c);

/* First line. host: one word; poll_ns: time of one look at a busy card, 0 = unknown; clock_us: step of your clock. */
void ns_begin(ns_put_fn put, const char *host, uint32_t poll_ns, uint32_t clock_us);
/* One call of the file library: 'w' write, 'r' read, 'o' open, 'c' close, 's' sync; bytes and microseconds. */
void ns_call(char what, uint32_t bytes, uint32_t us);
/* One write transaction: first block, polls after each of n data blocks, polls after Stop Tran or -1 without one. */
void ns_busy(uint32_t block, const uint32_t *polls, uint16_t n, int32_t stop);
/* From now on the number of blocks is announced ("cmd23", "acmd23") or not ("none"). */
void ns_mode(const char *how);
/* Last line: how many lines there were, so that lost ones are noticed. */
void ns_end(void);

/* A run that is kept in memory and printed when it is over. Printing takes longer than most calls: a card that is printed
 * about between two calls gets time to clean up, and looks better than it is.
 * Calls are kept one by one while they fit in `each`; beyond that only their histogram is printed, without their order.
 * Of a histogram each doubling of the time has 2^NS_BITS bins: 4 (25 % wide) on an AVR, 16 (6 %) elsewhere. */
#ifndef NS_BITS
#ifdef __AVR__
#define NS_BITS 2
#else
#define NS_BITS 4
#endif
#endif
#define NS_BINS ((27 - NS_BITS) << NS_BITS)

#ifdef __AVR__
typedef uint16_t ns_count; /* 200 bytes for all bins; a bin that is full stays full, which the reader notices */
#else
typedef uint32_t ns_count;
#endif

typedef struct {
    char what;
    uint32_t bytes;         /* of one call */
    uint32_t calls;
    uint32_t seconds, us;   /* their sum */
    uint32_t shortest, longest;
    ns_count bin[NS_BINS];
    uint32_t *each;
    uint32_t room;
} ns_run;

/* Empties a run of calls of one kind and size. each: memory for the times of `room` calls, or 0 for the histogram alone. */
void ns_run_begin(ns_run *r, char what, uint32_t bytes, uint32_t *each, uint32_t room);
/* One call took so many microseconds. Sends nothing. */
void ns_run_add(ns_run *r, uint32_t us);
/* Sends it all. */
void ns_run_print(const ns_run *r);

#ifdef __cplusplus
}
#endif
#endif
