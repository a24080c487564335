/* What the Pico's program uses of FatFs, with the pretended card behind it. */
#ifndef FF_H
#define FF_H
#include "../card.h"
typedef unsigned UINT;
typedef struct { int any; } FATFS;
typedef struct { int any; } FIL;
typedef enum { FR_OK, FR_DISK_ERR, FR_NOT_READY = 3, FR_DENIED = 7 } FRESULT;
#define FA_READ 1
#define FA_WRITE 2
#define FA_CREATE_ALWAYS 8
static inline FRESULT f_mount(FATFS *v, const char *drive, int now) {
    (void)v; (void)drive; (void)now;
#ifdef NO_CARD
    return FR_NOT_READY;
#else
    return FR_OK;
#endif
}
static inline FRESULT f_open(FIL *f, const char *name, int how) { (void)f; (void)name; (void)how; card_step(21000); card_file = 1; return FR_OK; }
static inline FRESULT f_write(FIL *f, const void *b, UINT n, UINT *done) { (void)f; (void)b; card_write(); *done = card_room() ? n : 0; return FR_OK; }
static inline FRESULT f_read(FIL *f, void *b, UINT n, UINT *done) { (void)f; (void)b; card_read(); *done = n; return FR_OK; }
static inline FRESULT f_sync(FIL *f) { (void)f; card_step(9000); return FR_OK; }
static inline FRESULT f_lseek(FIL *f, unsigned long at) { (void)f; (void)at; return FR_OK; }
static inline FRESULT f_close(FIL *f) { (void)f; card_step(300); return FR_OK; }
static inline FRESULT f_unlink(const char *name) { (void)name; card_file = 0; return FR_OK; }
#endif
