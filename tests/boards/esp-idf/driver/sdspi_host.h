#ifndef SDSPI_HOST_H
#define SDSPI_HOST_H
typedef int esp_err_t;
#define ESP_OK 0
typedef struct { int slot, max_freq_khz; } sdmmc_host_t;
typedef struct { int host_id, gpio_cs; } sdspi_device_config_t;
typedef struct { int any; } sdmmc_card_t;
#define SDSPI_HOST_DEFAULT() { .slot = 1, .max_freq_khz = 20000 }
#define SDSPI_DEVICE_CONFIG_DEFAULT() { .host_id = 1, .gpio_cs = 13 }
#define SDSPI_DEFAULT_DMA 1
#endif
