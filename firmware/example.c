/* A write benchmark as firmware has it, with a pretended card. On a microcontroller, `send` puts a character into the UART,
 * `micros` is its clock and `write_blocks` is the card driver, which counts how often it found the card busy.
 *   cc -std=c99 -Wall -Wextra -o example example.c nandscope.c && ./example | nandscope infer -        */
#include <stdio.h>
#include "nandscope.h"

static uint32_t clock_us;

static void send(char c) { putchar(c); }

static uint32_t micros(void) { return clock_us; }

/* 2 KiB at a time; the card has a buffer of 4 KiB and then rewrites 128 KiB (ChaN's 512 MB card). */
static int32_t write_blocks(uint32_t block, uint32_t *polls, uint16_t n) {
    uint16_t i;
    for (i = 0; i < n; i++) {
        polls[i] = (block + i + 1) % 8 == 0 ? 28900 + block % 97 : 3;
        clock_us += 1500 + polls[i] * 49 / 10;
    }
    clock_us += 20;
    return 4;
}

int main(void) {
    uint32_t block = 20480, polls[4], i;
    ns_begin(send, "atmega64-9mhz-spi", 4900, 4);
    ns_mode("none");
    ns_call('o', 0, 21000);
    for (i = 0; i < 64; i++, block += 4) {
        uint32_t begun = micros();
        int32_t stop = write_blocks(block, polls, 4);
        ns_call('w', 2048, micros() - begun);
        ns_busy(block, polls, 4, stop);
    }
    ns_call('c', 0, 9300);
    ns_end();
    return 0;
}
