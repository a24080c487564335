#include "Arduino.h"
int main() {
  setup();
  loop();
  return 0;
}
