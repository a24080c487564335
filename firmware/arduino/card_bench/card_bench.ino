// Times a memory card on an Arduino board with SdFat, for `nandscope infer`. Copy nandscope.h and nandscope.c into this folder.
// The whole run comes first and is printed afterwards, so that the card gets no rest while a line is sent.
#include <SPI.h>
#include <SdFat.h>
#include "nandscope.h"

// ---- what you may have to change
#ifndef SDCARD_SS_PIN
const uint8_t CHIP_SELECT = SS;  // pin 10 on most shields, 4 on the Ethernet shield
#else
const uint8_t CHIP_SELECT = SDCARD_SS_PIN;
#endif
const uint8_t SPI_CLOCK_MHZ = 25;           // SdFat takes the fastest clock the board has up to this
const uint32_t FILE_BYTES = 1024UL * 1024;  // of the file that is written, read and removed
const uint16_t RECORD_BYTES = 512;          // of one call
const char HOST[] = "arduino-sdfat";        // one word: names this machine in the results
#ifndef CALLS_KEPT
#ifdef __AVR__
#define CALLS_KEPT 0  // 2 KiB of memory: the histogram alone
#else
#define CALLS_KEPT 2048  // 8 KiB: every call of the run, in its order
#endif
#endif
// ----

static SdFat sd;
static ns_run run;
static uint8_t buffer[RECORD_BYTES];
#if CALLS_KEPT > 0
static uint32_t kept[CALLS_KEPT];
#else
static uint32_t *const kept = 0;
#endif
static const char NAME[] = "NSBENCH.DAT";

static void put(char c) { Serial.write(c); }

static void failed(const __FlashStringHelper *what) {
  Serial.print(F("no result: "));
  Serial.println(what);
}

// Leaves the card as it was.
static void away(File &file) {
  file.close();
  sd.remove(NAME);
}

static void printed(char what, uint32_t us) { ns_call(what, 0, us); }

static void bench() {
  File file;
  uint32_t begun = micros();
  if (!file.open(NAME, O_RDWR | O_CREAT | O_TRUNC)) {
    failed(F("the file cannot be made; is the card full or write-protected?"));
    return;
  }
  const uint32_t opened = micros() - begun;

  ns_run_begin(&run, 'w', RECORD_BYTES, kept, CALLS_KEPT);
  for (uint32_t at = 0; at < FILE_BYTES; at += RECORD_BYTES) {
    begun = micros();
    if (file.write(buffer, RECORD_BYTES) != RECORD_BYTES) {
      failed(F("a write failed; is the card full?"));
      away(file);
      return;
    }
    ns_run_add(&run, micros() - begun);
  }
  begun = micros();
  file.sync();
  const uint32_t synced = micros() - begun;
  printed('o', opened);
  ns_run_print(&run);
  printed('s', synced);

  file.rewind();
  ns_run_begin(&run, 'r', RECORD_BYTES, kept, CALLS_KEPT);
  for (uint32_t at = 0; at < FILE_BYTES; at += RECORD_BYTES) {
    begun = micros();
    if (file.read(buffer, RECORD_BYTES) != (int)RECORD_BYTES) {
      failed(F("a read failed"));
      away(file);
      return;
    }
    ns_run_add(&run, micros() - begun);
  }
  ns_run_print(&run);
  begun = micros();
  file.close();
  printed('c', micros() - begun);
  sd.remove(NAME);
  ns_end();
}

void setup() {
  Serial.begin(115200);
  while (!Serial) {
  }
  for (uint16_t i = 0; i < RECORD_BYTES; i++) buffer[i] = (uint8_t)(i * 151 + 7);
  if (!sd.begin(SdSpiConfig(CHIP_SELECT, DEDICATED_SPI, SD_SCK_MHZ(SPI_CLOCK_MHZ)))) {
    failed(F("no card answers; look at CHIP_SELECT and the wiring"));
    return;
  }
#ifdef __AVR__
  ns_begin(put, HOST, 0, 64000000UL / F_CPU);  // micros() counts 64 cycles
#else
  ns_begin(put, HOST, 0, 1);
#endif
  bench();
}

void loop() {}
