#include "device.h"

#define SECTOR 512u
#define GOLDEN 0x9e3779b97f4a7c15ULL

static const ns_device *dev;
static char line[80];
static uint8_t used, spoiled;
static uint32_t before;
static uint64_t clock_us;

static void text(const char *s) { while (*s) dev->put(*s++); }

static void number(uint64_t n) {
    char b[21];
    int i = 20;
    b[i] = 0;
    do { b[--i] = (char)('0' + (int)(n % 10)); n /= 10; } while (n);
    text(b + i);
}

/* The board's clock in 64 bits; asked at least once a line, so that no wrap is missed within 71 minutes. */
static uint64_t now(void) {
    uint32_t us = dev->micros();
    clock_us += (uint32_t)(us - before);
    before = us;
    return clock_us;
}

static void hello(void) {
    text("nandscope-device 1 size="); number((uint64_t)dev->blocks * SECTOR);
    text(" sector=512 content=yes real=yes max_request="); number((uint64_t)dev->room * SECTOR);
    if (dev->name) { text(" name="); text(dev->name); }
    dev->put('\n');
}

void ns_device_begin(const ns_device *device) {
    dev = device;
    used = spoiled = 0;
    clock_us = 0;
    before = dev->micros();
    hello();
}

/* What a write puts down (FORMATS.md, Traces). */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static uint8_t byte_of(uint64_t word, unsigned i) { return (uint8_t)(word >> (8 * i)); }

/* Word w of a sector of pattern z(eros), o(nes), b(yte), r(andom), s(tamp). */
static uint64_t word_of(char kind, uint64_t seed, uint64_t sector, uint64_t key, unsigned w) {
    if (kind == 's' && w == 0) return 0x53706373646e616eULL; /* "nandscpS" */
    if (kind == 's' && w == 1) return sector * SECTOR;
    if (kind == 's' && w == 2) return seed;
    return mix(key + (w + 1) * GOLDEN);
}

static uint64_t key_of(uint64_t seed, uint64_t sector) { return mix(seed ^ mix(sector + GOLDEN)); }

static void render(char kind, uint64_t seed, uint64_t sector, uint8_t *to) {
    unsigned w, i;
    uint64_t key = key_of(seed, sector);
    for (w = 0; w < SECTOR / 8; w++) {
        uint64_t word = kind == 'r' || kind == 's' ? word_of(kind, seed, sector, key, w) : 0;
        for (i = 0; i < 8; i++) {
            *to++ = kind == 'z' ? 0 : kind == 'o' ? 0xff : kind == 'b' ? (uint8_t)seed : byte_of(word, i);
        }
    }
}

/* The pattern of a sector: z, o, b or s with its seed and the place it was made for, or ? for anything else. */
static char recognise(const uint8_t *s, uint64_t *seed, uint64_t *at) {
    unsigned w, i;
    uint64_t key;
    for (i = 1; i < SECTOR && s[i] == s[0]; i++) {}
    if (i == SECTOR) {
        *seed = s[0];
        return s[0] == 0 ? 'z' : s[0] == 0xff ? 'o' : 'b';
    }
    for (*seed = *at = 0, i = 8; i-- > 0;) { *seed = *seed << 8 | s[16 + i]; *at = *at << 8 | s[8 + i]; }
    key = key_of(*seed, *at / SECTOR);
    for (w = 0; w < SECTOR / 8; w++) {
        uint64_t word = word_of('s', *seed, *at / SECTOR, key, w);
        for (i = 0; i < 8; i++) if (s[8 * w + i] != byte_of(word, i)) return '?';
    }
    return 's';
}

static void piece(uint64_t bytes, char kind, uint64_t seed, uint64_t moved) {
    dev->put(' '); number(bytes); dev->put(' ');
    if (kind == 'z') text("zeros");
    else if (kind == 'o') text("ones");
    else if (kind == '?') text("?");
    else { text(kind == 'b' ? "byte:" : "stamp:"); number(seed); }
    if (kind == 's' && moved) { dev->put('@'); number(moved - 1); }
}

static void times(uint64_t start, uint64_t took) {
    number(start * 1000); dev->put(' '); number(took * 1000);
}

static const char *skip(const char *p) { while (*p == ' ') p++; return p; }

static const char *whole(const char *p, uint64_t *n) {
    p = skip(p);
    if (*p < '0' || *p > '9') return 0;
    for (*n = 0; *p >= '0' && *p <= '9'; p++) *n = *n * 10 + (uint64_t)(*p - '0');
    return p;
}

/* One command of the card; its time is added. Writes are made ready before it and reads looked at after it. */
static int command(char what, uint32_t block, uint32_t n, uint64_t *took) {
    uint64_t begun = now();
    int failed = what == 'w' ? dev->write(block, dev->buffer, n) : dev->read(block, dev->buffer, n);
    *took += now() - begun;
    return failed;
}

/* Content of a read that fitted into the buffer. A stamp that was made for another place says for which, in a piece of its own. */
static void content(uint32_t block, uint32_t n) {
    uint64_t alike = 0, last = 0, moved = 0, seed, at = 0;
    char run = 0, kind;
    uint32_t i;
    for (i = 0; i < n; i++, alike += SECTOR) {
        uint64_t here = ((uint64_t)block + i) * SECTOR;
        kind = recognise(dev->buffer + SECTOR * i, &seed, &at);
        if (kind != 's') at = here;
        if (kind == run && at == here && !moved && ((kind != 'b' && kind != 's') || seed == last)) continue;
        if (alike) piece(alike, run, last, moved);
        run = kind; last = seed; moved = at == here ? 0 : at + 1; alike = 0;
    }
    piece(alike, run, last, moved);
}

static void transfer(char what, uint32_t block, uint32_t n, char kind, uint64_t seed) {
    uint64_t start = now(), took = 0;
    uint32_t done, part, i;
    for (done = 0; done < n; done += part) {
        part = n - done < dev->room ? n - done : dev->room;
        if (what == 'w') for (i = 0; i < part; i++) render(kind, seed, (uint64_t)block + done + i, dev->buffer + SECTOR * i);
        if (done == 0) start = now();
        if (command(what, block + done, part, &took)) { text("! the card failed"); return; }
    }
    times(start, took);
    if (what == 'r' && n <= dev->room) content(block, n);
    else if (what == 'r') text(" ?");
}

static char fill(const char *p, uint64_t *seed) {
    char kind;
    p = skip(p);
    kind = *p;
    *seed = 0;
    if (kind == 'z' || kind == 'o') return kind;
    while (*p && *p != ':') p++;
    return *p == ':' && whole(p + 1, seed) && (kind == 'b' || kind == 'r' || kind == 's') ? kind : 0;
}

static void request(void) {
    const char *p = line + 1;
    uint64_t at = 0, len = 0, seed = 0, start, limit = (uint64_t)dev->blocks * SECTOR;
    char what = line[0], kind = 0;
    if (what == 'q' || !what) { if (!what) hello(); return; }
    if (spoiled) { text("! request too long\n"); return; }
    if (what == 'i') {
        if (!whole(p, &len)) { text("! no time\n"); return; }
        start = now();
        while ((now() - start) * 1000 < len) {}
        times(start, now() - start);
    } else if (what == 'f' || what == 'd') {
        int failed = 0;
        if (what == 'd' && (!(p = whole(p, &at)) || !(p = whole(p, &len)) || !len || at + len > limit)) { text("! outside the card\n"); return; }
        if (!dev->erase) { if (what == 'd') { text("! unsupported\n"); return; } start = now(); }
        else { start = now(); failed = dev->erase((uint32_t)(at / SECTOR), (uint32_t)(len / SECTOR)); }
        if (failed) text("! the card failed");
        else times(start, now() - start);
    } else if (what == 'r' || what == 'w') {
        if (!(p = whole(p, &at)) || !(p = whole(p, &len)) || !len || (at | len) % SECTOR || at > limit || len > limit - at) {
            text("! outside the card\n");
            return;
        }
        if (what == 'w' && !(kind = fill(p, &seed))) { text("! no such fill\n"); return; }
        transfer(what, (uint32_t)(at / SECTOR), (uint32_t)(len / SECTOR), kind, seed);
    } else text("! unknown request");
    dev->put('\n');
}

void ns_device_take(char c) {
    if (c == '\r') return;
    if (c != '\n') {
        if (used < sizeof line - 1) line[used++] = c;
        else spoiled = 1;
        return;
    }
    line[used] = 0;
    request();
    used = spoiled = 0;
}
