/* What the Arduino sketch uses of the core, for a compiler on a PC. */
#ifndef ARDUINO_H
#define ARDUINO_H
#include <stdint.h>
#include <stdio.h>
#include "../card.h"

#ifndef F_CPU
#define F_CPU 16000000UL
#endif
#define SS 10
class __FlashStringHelper;
#define F(text) reinterpret_cast<const __FlashStringHelper *>(text)

struct Port {
  void begin(unsigned long) {}
  explicit operator bool() const { return true; }
  size_t write(uint8_t c) { return putchar(c) < 0 ? 0 : 1; }
  void print(const __FlashStringHelper *s) { fputs(reinterpret_cast<const char *>(s), stdout); }
  void println(const __FlashStringHelper *s) { puts(reinterpret_cast<const char *>(s)); }
};
inline Port Serial;

inline unsigned long micros() { return card_us(); }
void setup();
void loop();
#endif
