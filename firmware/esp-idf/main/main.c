/* Times a memory card on an ESP32 in SPI mode with ESP-IDF (5.0 or later), for `nandscope infer`.
 * The whole run comes first and is printed afterwards, so that the card gets no rest while a line is sent. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "driver/sdspi_host.h"
#include "driver/spi_common.h"
#include "esp_heap_caps.h"
#include "esp_timer.h"
#include "esp_vfs_fat.h"
#include "nandscope.h"
#include "sdmmc_cmd.h"

/* ---- what you may have to change */
#define PIN_MOSI 23
#define PIN_MISO 19
#define PIN_SCLK 18
#define PIN_CS 5
#define CLOCK_KHZ 20000               /* the fastest ESP-IDF allows in SPI mode by default */
#define FILE_BYTES (4u * 1024 * 1024) /* of the file that is written, read and removed */
#define RECORD_BYTES 512u             /* of one call */
#ifndef CALLS_KEPT
#define CALLS_KEPT 8192u /* 32 KiB: every call of the run, in its order; with fewer, the histogram alone */
#endif
#define HOST "esp32-spi" /* one word: names this machine in the results */
/* ---- */

#define PLACE "/sdcard"
#define NAME PLACE "/nsbench.dat"

static ns_run run;

static void put(char c) { putchar(c); }

static uint32_t micros(void) { return (uint32_t)esp_timer_get_time(); }

/* Writes or reads the file, a record a call. 0 where a call failed. */
static int pass(int file, char what, uint8_t *buffer, uint32_t *kept) {
    uint32_t at;
    ns_run_begin(&run, what, RECORD_BYTES, kept, kept ? CALLS_KEPT : 0);
    for (at = 0; at < FILE_BYTES; at += RECORD_BYTES) {
        uint32_t begun = micros();
        ssize_t n = what == 'w' ? write(file, buffer, RECORD_BYTES) : read(file, buffer, RECORD_BYTES);
        if (n != (ssize_t)RECORD_BYTES) return 0;
        ns_run_add(&run, micros() - begun);
    }
    return 1;
}

/* Leaves the card as it was. */
static const char *away(int file, const char *why) {
    close(file);
    unlink(NAME);
    return why;
}

static const char *bench(uint8_t *buffer, uint32_t *kept) {
    uint32_t opened, synced, begun = micros();
    int file = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (file < 0) return "the file cannot be made; is the card full or write-protected?";
    opened = micros() - begun;
    ns_begin(put, HOST, 0, 1);
    if (!pass(file, 'w', buffer, kept)) return away(file, "a write failed; is the card full?");
    begun = micros();
    fsync(file);
    synced = micros() - begun;
    ns_call('o', 0, opened);
    ns_run_print(&run);
    ns_call('s', 0, synced);
    if (lseek(file, 0, SEEK_SET) != 0 || !pass(file, 'r', buffer, kept)) return away(file, "a read failed");
    ns_run_print(&run);
    begun = micros();
    close(file);
    ns_call('c', 0, micros() - begun);
    unlink(NAME);
    ns_end();
    return 0;
}

void app_main(void) {
    sdmmc_host_t host = SDSPI_HOST_DEFAULT();
    sdspi_device_config_t slot = SDSPI_DEVICE_CONFIG_DEFAULT();
    esp_vfs_fat_mount_config_t how = { .format_if_mount_failed = false, .max_files = 2 };
    spi_bus_config_t bus = { .mosi_io_num = PIN_MOSI, .miso_io_num = PIN_MISO, .sclk_io_num = PIN_SCLK,
                             .quadwp_io_num = -1, .quadhd_io_num = -1, .max_transfer_sz = 4096 };
    sdmmc_card_t *card;
    uint8_t *buffer = heap_caps_malloc(RECORD_BYTES, MALLOC_CAP_DMA);
    uint32_t *kept = CALLS_KEPT ? malloc(CALLS_KEPT * sizeof *kept) : 0;
    const char *wrong = 0;
    uint32_t i;
    if (!buffer) { printf("no result: no memory\n"); return; }
    for (i = 0; i < RECORD_BYTES; i++) buffer[i] = (uint8_t)(i * 151 + 7);
    host.max_freq_khz = CLOCK_KHZ;
    slot.gpio_cs = PIN_CS;
    slot.host_id = host.slot;
    if (spi_bus_initialize(host.slot, &bus, SDSPI_DEFAULT_DMA) != ESP_OK) {
        wrong = "the SPI bus cannot be set up; look at the pins";
    } else if (esp_vfs_fat_sdspi_mount(PLACE, &host, &slot, &how, &card) != ESP_OK) {
        wrong = "no card with a FAT volume answers; look at the pins and the wiring";
    } else {
        wrong = bench(buffer, kept);
        esp_vfs_fat_sdcard_unmount(PLACE, card);
    }
    if (wrong) printf("no result: %s\n", wrong);
    fflush(stdout);
    free(kept);
    free(buffer);
}
