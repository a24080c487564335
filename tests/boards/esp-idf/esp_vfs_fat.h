/* What the ESP32's program uses of ESP-IDF, for a compiler on a PC, with the pretended card behind the file calls. */
#ifndef ESP_VFS_FAT_H
#define ESP_VFS_FAT_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "../card.h"
#include "driver/sdspi_host.h"

typedef struct { bool format_if_mount_failed; int max_files; size_t allocation_unit_size; } esp_vfs_fat_mount_config_t;

static inline esp_err_t esp_vfs_fat_sdspi_mount(const char *base, const sdmmc_host_t *host, const sdspi_device_config_t *slot,
                                                const esp_vfs_fat_mount_config_t *how, sdmmc_card_t **card) {
    static sdmmc_card_t only;
    (void)base; (void)host; (void)slot; (void)how;
    *card = &only;
#ifdef NO_CARD
    return -1;
#else
    return ESP_OK;
#endif
}
static inline esp_err_t esp_vfs_fat_sdcard_unmount(const char *base, sdmmc_card_t *card) { (void)base; (void)card; return ESP_OK; }

static inline int card_open(const char *name, int how, int mode) { (void)name; (void)how; (void)mode; card_step(21000); card_file = 1; return 3; }
static inline ssize_t card_put(int f, const void *from, size_t n) { (void)f; (void)from; card_write(); return card_room() ? (ssize_t)n : -1; }
static inline ssize_t card_get(int f, void *to, size_t n) { (void)f; (void)to; card_read(); return (ssize_t)n; }
static inline int card_sync(int f) { (void)f; card_step(9000); return 0; }
static inline off_t card_seek(int f, off_t at, int from) { (void)f; (void)from; return at; }
static inline int card_close(int f) { (void)f; card_step(300); return 0; }
static inline int card_unlink(const char *name) { (void)name; card_file = 0; return 0; }
#define open card_open
#define write card_put
#define read card_get
#define fsync card_sync
#define lseek card_seek
#define close card_close
#define unlink card_unlink
#endif
