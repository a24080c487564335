/* Prints what a memory card does, line by line, for `nandscope infer`. Portable C99; MIT or Apache-2.0.
 * Give it a function that sends one character over your serial line, and call it around your card driver. */
#ifndef NANDSCOPE_H
#define NANDSCOPE_H
#include <stdint.h>

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
#endif
