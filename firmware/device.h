/* Makes the card in a board a target of nandscope: `nandscope probe serial:/dev/ttyACM0`. One request a line comes over the serial
 * line, one answer goes back; the protocol is in docs/exec.md. Portable C99 and C++, no allocation; MIT or Apache-2.0. */
#ifndef NANDSCOPE_DEVICE_H
#define NANDSCOPE_DEVICE_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The card driver, in blocks of 512 bytes; each call gives 0 when it went well. With SdFat's SdCard *card:
 *   read  -> !card->readSectors(block, to, n)      write -> !card->writeSectors(block, from, n)
 *   erase -> n ? !card->erase(block, block + n - 1) : !card->syncDevice()
 *   micros -> micros()
 * With a block driver of the Pico, sd_card_t *sd: sd->read_blocks(sd, to, block, n), sd->write_blocks(sd, from, block, n),
 * n ? 1 : sd->sync(sd), time_us_32(). */
typedef struct {
    uint32_t blocks;                                                   /* of the card */
    uint8_t *buffer;                                                   /* memory for one command's data */
    uint16_t room;                                                     /* blocks in it; longer requests become several commands */
    int (*read)(uint32_t block, uint8_t *to, uint32_t n);
    int (*write)(uint32_t block, const uint8_t *from, uint32_t n);
    int (*erase)(uint32_t block, uint32_t n);                          /* n = 0: flush; 0 for the pointer: neither is there */
    uint32_t (*micros)(void);                                          /* may wrap around */
    void (*put)(char c);                                               /* sends one character */
    const char *name;                                                  /* for --consent; 0 = the size is used */
} ns_device;

/* Says the first line. The structure must stay. */
void ns_device_begin(const ns_device *device);
/* Takes one character that came; at the end of a line the request is done and answered. */
void ns_device_take(char c);

#ifdef __cplusplus
}
#endif
#endif
