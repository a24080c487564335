/* A board on a pseudo-terminal: firmware/device.c with a pretended card behind it. Prints the name of the port. argv: MiB, open AUs, AU in KiB. */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include "../../firmware/device.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static uint8_t *card, buffer[64 * 512];
static uint32_t us = 4294000000u; /* wraps soon */
static uint32_t open_aus, au_blocks, lru[64], opened;
static int port;

static uint32_t micros_(void) { return us += 1; }
static void put_(char c) { while (write(port, &c, 1) != 1) usleep(100); }

static int read_(uint32_t block, uint8_t *to, uint32_t n) {
    us += 300 + n * 25;
    us += 150 * ((block + n - 1) / au_blocks - block / au_blocks);
    memcpy(to, card + (size_t)block * 512, (size_t)n * 512);
    return 0;
}

static int write_(uint32_t block, const uint8_t *from, uint32_t n) {
    uint32_t au = block / au_blocks, i;
    us += 400 + n * 50;
    for (i = 0; i < opened && lru[i] != au; i++) {}
    if (i == opened && opened == open_aus) { us += 250000; i = 0; }
    else if (i == opened) opened++;
    for (; i + 1 < opened; i++) lru[i] = lru[i + 1];
    lru[opened - 1] = au;
    memcpy(card + (size_t)block * 512, from, (size_t)n * 512);
    return 0;
}

static int erase_(uint32_t block, uint32_t n) {
    us += 1000;
    memset(card + (size_t)block * 512, 0, (size_t)n * 512);
    return 0;
}

int main(int argc, char **argv) {
    static ns_device device;
    struct termios t;
    uint32_t mib = argc > 1 ? (uint32_t)atoi(argv[1]) : 64;
    int other;
    open_aus = argc > 2 ? (uint32_t)atoi(argv[2]) : 3;
    au_blocks = (argc > 3 ? (uint32_t)atoi(argv[3]) : 4096) * 2;
    card = (uint8_t *)calloc(mib, 1 << 20);
    port = posix_openpt(O_RDWR | O_NOCTTY);
    if (!card || port < 0 || grantpt(port) || unlockpt(port)) return 1;
    other = open(ptsname(port), O_RDWR | O_NOCTTY);
    if (tcgetattr(other, &t)) return 1;
    cfmakeraw(&t);
    tcsetattr(other, TCSANOW, &t);
    printf("%s\n", ptsname(port));
    fflush(stdout);
    device.blocks = mib * 2048;
    device.buffer = buffer;
    device.room = 64;
    device.read = read_;
    device.write = write_;
    device.erase = erase_;
    device.micros = micros_;
    device.put = put_;
    device.name = "bench board";
    { const char *boot = "ets Jul 29 2019\r\nboot: ok\r\n"; while (*boot) put_(*boot++); }
    ns_device_begin(&device);
    for (;;) {
        char c[256];
        ssize_t i, n = read(port, c, sizeof c);
        if (n <= 0 && errno != EINTR) return 0;
        for (i = 0; i < n; i++) ns_device_take(c[i]);
    }
}
