/* Times a memory card on a Raspberry Pi Pico with the Pico SDK and FatFs, for `nandscope infer`.
 * The whole run comes first and is printed afterwards, so that the card gets no rest while a line is sent. */
#include <stdio.h>
#include "ff.h"
#include "nandscope.h"
#include "pico/stdlib.h"

/* ---- what you may have to change */
#define DRIVE "0:"                    /* the card, as your FatFs port numbers it */
#define FILE_BYTES (4u * 1024 * 1024) /* of the file that is written, read and removed */
#define RECORD_BYTES 512u             /* of one call */
#ifndef CALLS_KEPT
#define CALLS_KEPT 8192u /* 32 KiB: every call of the run, in its order; with fewer, the histogram alone */
#endif
#define HOST "rp2040-spi" /* one word: names this machine in the results */
/* ---- */

#define NAME DRIVE "/nsbench.dat"

static FATFS volume;
static FIL file;
static ns_run run;
static uint8_t buffer[RECORD_BYTES];
static uint32_t kept[CALLS_KEPT ? CALLS_KEPT : 1];

static void put(char c) { putchar(c); }

/* Writes or reads the file, a record a call. */
static FRESULT pass(char what) {
    uint32_t at;
    ns_run_begin(&run, what, RECORD_BYTES, kept, CALLS_KEPT);
    for (at = 0; at < FILE_BYTES; at += RECORD_BYTES) {
        UINT n = 0;
        uint32_t begun = time_us_32();
        FRESULT r = what == 'w' ? f_write(&file, buffer, RECORD_BYTES, &n) : f_read(&file, buffer, RECORD_BYTES, &n);
        if (r != FR_OK || n != RECORD_BYTES) return r != FR_OK ? r : FR_DENIED;
        ns_run_add(&run, time_us_32() - begun);
    }
    return FR_OK;
}

static FRESULT bench(void) {
    uint32_t opened, synced, begun = time_us_32();
    FRESULT r = f_open(&file, NAME, FA_CREATE_ALWAYS | FA_WRITE | FA_READ);
    if (r != FR_OK) return r;
    opened = time_us_32() - begun;
    ns_begin(put, HOST, 0, 1);
    r = pass('w');
    if (r == FR_OK) {
        begun = time_us_32();
        r = f_sync(&file);
        synced = time_us_32() - begun;
        ns_call('o', 0, opened);
        ns_run_print(&run);
        ns_call('s', 0, synced);
    }
    if (r == FR_OK) r = f_lseek(&file, 0);
    if (r == FR_OK) r = pass('r');
    if (r == FR_OK) ns_run_print(&run);
    begun = time_us_32();
    f_close(&file);
    if (r == FR_OK) {
        ns_call('c', 0, time_us_32() - begun);
        ns_end();
    }
    f_unlink(NAME);
    return r;
}

int main(void) {
    FRESULT r;
    uint32_t i;
    stdio_init_all();
    while (!stdio_usb_connected()) sleep_ms(100);
    for (i = 0; i < RECORD_BYTES; i++) buffer[i] = (uint8_t)(i * 151 + 7);
    r = f_mount(&volume, DRIVE, 1);
    if (r == FR_OK) r = bench();
    if (r != FR_OK) printf("no result: FatFs error %d; look at hw_config.c, the wiring, and the room on the card\n", (int)r);
    return 0;
}
