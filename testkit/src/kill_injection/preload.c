/* Ends the process at a chosen write to its journal. Loaded with LD_PRELOAD into the unmodified binary;
   kill.rs builds it and sets the variables:
     FUSEE_KILL_TRACE  a file that gets one letter a call: w/s/t for write, sync, truncate of the log (-wal),
                       W/S/T for the database itself. Its length is the number of calls.
     FUSEE_KILL_AT     the call to die at, counted from 1; without it nobody dies.
     FUSEE_KILL_WHEN   before | after | torn (half of the bytes are written, then death). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;
static long kill_at;
static char kill_when = 'a';
static int trace = -1;

__attribute__((constructor)) static void prepare(void) {
    const char *at = getenv("FUSEE_KILL_AT"), *when = getenv("FUSEE_KILL_WHEN"), *file = getenv("FUSEE_KILL_TRACE");
    if (at) kill_at = atol(at);
    if (when) kill_when = when[0];
    if (file) trace = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static int ends_with(const char *text, size_t length, const char *end) {
    size_t n = strlen(end);
    return length >= n && memcmp(text + length - n, end, n) == 0;
}

/* 0: not the journal; 1: its log; 2: the database. */
static int journal(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    if (length <= 0) return 0;
    if (ends_with(path, (size_t)length, "journal.db-wal")) return 1;
    return ends_with(path, (size_t)length, "journal.db") ? 2 : 0;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* Counts a call and says whether it is the one: 0, or the mode's letter. */
static char reached(int fd, char letter) {
    int which = journal(fd);
    if (!which) return 0;
    if (which == 2) letter -= 'a' - 'A';
    if (trace >= 0) syscall(SYS_write, trace, &letter, 1);
    long n = atomic_fetch_add(&calls, 1) + 1;
    return n == kill_at ? kill_when : 0;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define GUARD(letter, torn, call) \
    do { \
        char mode = reached(fd, letter); \
        if (mode == 'b') die(); \
        if (mode == 't') { torn; die(); } \
        __typeof__(call) result = call; \
        if (mode == 'a') die(); \
        return result; \
    } while (0)

ssize_t write(int fd, const void *data, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t);
    GUARD('w', (void)!real(fd, data, n / 2), real(fd, data, n));
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    GUARD('w', (void)!real(fd, data, n / 2, at), real(fd, data, n, at));
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    GUARD('w', (void)!real(fd, data, n / 2, at), real(fd, data, n, at));
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    GUARD('w', (void)!real(fd, parts, n / 2), real(fd, parts, n));
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    GUARD('s', (void)0, real(fd));
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    GUARD('s', (void)0, real(fd));
}

int ftruncate(int fd, off_t n) {
    REAL(int, "ftruncate", int, off_t);
    GUARD('t', (void)0, real(fd, n));
}

int ftruncate64(int fd, off64_t n) {
    REAL(int, "ftruncate64", int, off64_t);
    GUARD('t', (void)0, real(fd, n));
}
