#include "nandscope.h"

static ns_put_fn out;
static uint8_t sum;
static uint32_t lines;

static void text(const char *s) {
    for (; *s; s++) { sum ^= (uint8_t)*s; out(*s); }
}

static void number(uint32_t n) {
    char b[11];
    int i = 10;
    b[i] = 0;
    do { b[--i] = (char)('0' + n % 10); n /= 10; } while (n);
    text(b + i);
}

static void field(uint32_t n) { text(" "); number(n); }

/* Every line begins with "ns:", and ends with '*' and the exclusive or of what stands between, as in NMEA 0183. */
static void start(const char *s) { out('n'); out('s'); out(':'); sum = 0; lines++; text(s); }

static void finish(void) {
    static const char hex[] = "0123456789abcdef";
    uint8_t x = sum;
    out('*'); out(hex[x >> 4]); out(hex[x & 15]); out('\n');
}

void ns_begin(ns_put_fn put, const char *host, uint32_t poll_ns, uint32_t clock_us) {
    out = put;
    lines = 0;
    start("1 host="); text(host);
    text(" poll_ns="); number(poll_ns);
    text(" clock_us="); number(clock_us);
    finish();
}

void ns_call(char what, uint32_t bytes, uint32_t us) {
    char s[2] = { what, 0 };
    start(s); field(bytes); field(us); finish();
}

void ns_busy(uint32_t block, const uint32_t *polls, uint16_t n, int32_t stop) {
    uint16_t i;
    start("b"); field(block);
    for (i = 0; i < n; i++) field(polls[i]);
    if (stop >= 0) { text(" s"); number((uint32_t)stop); }
    finish();
}

void ns_mode(const char *how) { start("m "); text(how); finish(); }

void ns_end(void) { start("end"); field(lines); finish(); }
