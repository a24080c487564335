/* What the sketch uses of SdFat, with the pretended card behind it. */
#ifndef SDFAT_H
#define SDFAT_H
#include <fcntl.h>
#include <stddef.h>
#include "Arduino.h"

#define DEDICATED_SPI 1
#define SD_SCK_MHZ(mhz) (1000000UL * (mhz))

struct SdSpiConfig {
  SdSpiConfig(uint8_t, uint8_t, uint32_t) {}
};

struct File {
  bool open(const char *, int) { card_step(21000); card_file = 1; return true; }
  size_t write(const void *, size_t n) { card_write(); return card_room() ? n : 0; }
  int read(void *, size_t n) { card_read(); return (int)n; }
  bool sync() { card_step(9000); return true; }
  void rewind() {}
  bool close() { card_step(300); return true; }
};

struct SdFat {
  bool begin(SdSpiConfig) {
#ifdef NO_CARD
    return false;
#else
    return true;
#endif
  }
  bool remove(const char *) { card_file = 0; return true; }
};
#endif
