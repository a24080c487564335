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

/* The bin of a time: the first 2^NS_BITS times have one each, then each doubling has so many. */
static uint16_t bin_of(uint32_t us) {
    uint8_t e = 0;
    if (us >> 26) return NS_BINS - 1;
    while (us >> e >> NS_BITS > 1) e++;
    return us >> NS_BITS ? (uint16_t)(((uint16_t)e << NS_BITS) + (us >> e)) : (uint16_t)us;
}

/* The shortest time of a bin; that of the next one begins where it ends. */
static uint32_t low_of(uint16_t bin) {
    uint16_t e = bin >> NS_BITS;
    return e ? (uint32_t)((1u << NS_BITS) + (bin & ((1u << NS_BITS) - 1))) << (e - 1) : bin;
}

void ns_run_begin(ns_run *r, char what, uint32_t bytes, uint32_t *each, uint32_t room) {
    uint16_t i;
    r->what = what; r->bytes = bytes; r->each = each; r->room = each ? room : 0;
    r->calls = r->seconds = r->us = r->longest = 0;
    r->shortest = 0xffffffffu;
    for (i = 0; i < NS_BINS; i++) r->bin[i] = 0;
}

void ns_run_add(ns_run *r, uint32_t us) {
    ns_count *n = &r->bin[bin_of(us)];
    if ((ns_count)(*n + 1)) ++*n;
    if (r->calls < r->room) r->each[r->calls] = us;
    r->calls++;
    r->us += us % 1000000; r->seconds += us / 1000000;
    if (r->us >= 1000000) { r->us -= 1000000; r->seconds++; }
    if (us < r->shortest) r->shortest = us;
    if (us > r->longest) r->longest = us;
}

void ns_run_print(const ns_run *r) {
    char kind[2] = { 0, 0 };
    uint32_t i;
    kind[0] = r->what;
    if (r->calls <= r->room) {
        for (i = 0; i < r->calls; i++) ns_call(r->what, r->bytes, r->each[i]);
        return;
    }
    start("t "); text(kind); field(r->bytes); field(r->calls); field(r->seconds); field(r->us);
    field(r->shortest); field(r->longest); finish();
    for (i = 0; i < NS_BINS; i++) {
        uint32_t high = i + 1 < NS_BINS ? low_of((uint16_t)(i + 1)) - 1 : r->longest;
        if (!r->bin[i]) continue;
        start("h "); text(kind); field(r->bytes); field(low_of((uint16_t)i)); field(high); field(r->bin[i]); finish();
    }
}
