/* Injects faults into the system calls that change the contents of a folder. The library is loaded before the C
   library (LD_PRELOAD), because checkpoints are written by C++ code, which Python cannot intercept.

   It intercepts opening for writing, writing, truncating, syncing, renaming, creating and removing. Calls without
   effect (creating a folder that exists, removing a file that does not) fail by themselves and are not counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BEFORE = -1, AFTER = -2, SHORT = -3, HALF = -4 }; /* faults; positive numbers are error codes, 0 is none */

static char below[PATH_MAX], wanted[PATH_MAX];
static long point, met;
static int fault, record = -1, full;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Injects the fault `what` into the n-th later call in `folder` that matches `pattern`, for example "write /a/b*".
   Every call appends such a line to the file `log`. A star marks the line of the call with the fault. An empty `folder`
   ends the injection. */
void faults(const char *folder, const char *log, const char *pattern, long n, int what) {
    if (record >= 0) close(record);
    below[0] = 0;
    record = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    point = n, met = 0, fault = what, full = 0;
    snprintf(wanted, sizeof wanted, "%s", pattern);
    snprintf(below, sizeof below, "%s", folder);
}

static void killed(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* Returns the path of `name` relative to an open folder, or the path of the open file `folder` if `name` is NULL. */
static char *where(int folder, const char *name, char *path) {
    char link[64] = "/proc/self/cwd";
    if (name && name[0] == '/') return memccpy(path, name, 0, PATH_MAX), path;
    if (folder != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t n = readlink(link, path, PATH_MAX / 2);
    path[n < 0 ? 0 : n] = 0;
    if (name) snprintf(path + strlen(path), PATH_MAX / 2, "/%s", name);
    return path;
}

/* Returns the fault of this call: 0 for none, an error code, AFTER, SHORT or HALF. `takes` is whether the call needs
   space on the disk, so that it fails if the disk is full. */
static int outcome(const char *call, const char *path, int takes) {
    size_t n = strlen(below);
    if (!n || strncmp(path, below, n) || (path[n] && path[n] != '/')) return 0;
    pthread_mutex_lock(&turn);
    char line[PATH_MAX + 32];
    int size = snprintf(line, sizeof line, "  %s %s\n", call, path + n);
    line[size - 1] = 0;
    int here = !fnmatch(wanted, line + 2, 0) && ++met == point, told = 0;
    line[size - 1] = '\n';
    if (here) line[0] = '*';
    syscall(SYS_write, record, line, (size_t)size);
    if (here && fault == BEFORE) killed();
    if (here)
        told = fault;
    else if (full && takes)
        told = ENOSPC;
    full |= here && (fault == HALF || fault == ENOSPC); /* a full disk stays full */
    pthread_mutex_unlock(&turn);
    return told;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define AROUND(result, told, whole, part)                                                                              \
    int told_ = told;                                                                                                  \
    if (told_ > 0) return errno = told_, -1;                                                                           \
    result got = told_ == SHORT || told_ == HALF ? part : whole;                                                       \
    if (told_ == AFTER) killed();                                                                                      \
    return got;
#define THERE(folder, name) (!faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW))
#define HELD char path[PATH_MAX]; where(file, NULL, path);
#define NAMED(folder, name) char path[PATH_MAX]; where(folder, name, path);

#define OPEN(symbol, folder, parameters, arguments)                                                                    \
    int symbol(parameters(const char *name), int how, ...) {                                                           \
        va_list more;                                                                                                  \
        va_start(more, how);                                                                                           \
        mode_t mode = how & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                          \
        va_end(more);                                                                                                  \
        NAMED(folder, name)                                                                                            \
        int writing = (how & O_ACCMODE) != O_RDONLY || how & (O_CREAT | O_TRUNC);                                      \
        int makes = how & O_CREAT && !THERE(folder, name);                                                             \
        AROUND(int, writing ? outcome("open", path, makes) : 0, NEXT(symbol)(arguments(name), how, mode), -1)          \
    }
#define PLAIN(name) name
#define AT(name) place, name
#define AT_PLACE(name) int place, name
OPEN(open, AT_FDCWD, PLAIN, PLAIN)
OPEN(open64, AT_FDCWD, PLAIN, PLAIN)
OPEN(openat, place, AT_PLACE, AT)
OPEN(openat64, place, AT_PLACE, AT)

ssize_t write(int file, const void *bytes, size_t n) {
    HELD AROUND(ssize_t, outcome("write", path, 1), NEXT(write)(file, bytes, n), NEXT(write)(file, bytes, (n + 1) / 2))
}
#define PWRITE(symbol, offset)                                                                                         \
    ssize_t symbol(int file, const void *bytes, size_t n, offset at) {                                                 \
        HELD AROUND(ssize_t, outcome("write", path, 1), NEXT(symbol)(file, bytes, n, at),                              \
                    NEXT(symbol)(file, bytes, (n + 1) / 2, at))                                                        \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)
ssize_t writev(int file, const struct iovec *parts, int n) {
    struct iovec half = {n ? parts->iov_base : NULL, n ? (parts->iov_len + 1) / 2 : 0};
    HELD AROUND(ssize_t, outcome("write", path, 1), NEXT(writev)(file, parts, n), NEXT(writev)(file, &half, 1))
}
#define PWRITEV(symbol, offset)                                                                                        \
    ssize_t symbol(int file, const struct iovec *parts, int n, offset at) {                                            \
        struct iovec half = {n ? parts->iov_base : NULL, n ? (parts->iov_len + 1) / 2 : 0};                            \
        HELD AROUND(ssize_t, outcome("write", path, 1), NEXT(symbol)(file, parts, n, at),                              \
                    NEXT(symbol)(file, &half, 1, at))                                                                  \
    }
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)

#define TRUNCATE(symbol, offset)                                                                                       \
    int symbol(int file, offset size) { HELD AROUND(int, outcome("truncate", path, 0), NEXT(symbol)(file, size), -1) }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int fsync(int file) { HELD AROUND(int, outcome("fsync", path, 0), NEXT(fsync)(file), -1) }
int fdatasync(int file) { HELD AROUND(int, outcome("fsync", path, 0), NEXT(fdatasync)(file), -1) }

#define MOVES(old, name) THERE(old, name) ? outcome("rename", path, 0) : 0
int rename(const char *name, const char *new) {
    NAMED(AT_FDCWD, name) AROUND(int, MOVES(AT_FDCWD, name), NEXT(rename)(name, new), -1)
}
int renameat(int old, const char *name, int place, const char *new) {
    NAMED(old, name) AROUND(int, MOVES(old, name), NEXT(renameat)(old, name, place, new), -1)
}
int renameat2(int old, const char *name, int place, const char *new, unsigned how) {
    NAMED(old, name) AROUND(int, MOVES(old, name), NEXT(renameat2)(old, name, place, new, how), -1)
}

#define MAKES(place, name) THERE(place, name) ? 0 : outcome("mkdir", path, 1)
int mkdir(const char *name, mode_t mode) {
    NAMED(AT_FDCWD, name) AROUND(int, MAKES(AT_FDCWD, name), NEXT(mkdir)(name, mode), -1)
}
int mkdirat(int place, const char *name, mode_t mode) {
    NAMED(place, name) AROUND(int, MAKES(place, name), NEXT(mkdirat)(place, name, mode), -1)
}

#define REMOVES(place, name, call) THERE(place, name) ? outcome(call, path, 0) : 0
int unlink(const char *name) {
    NAMED(AT_FDCWD, name) AROUND(int, REMOVES(AT_FDCWD, name, "unlink"), NEXT(unlink)(name), -1)
}
int unlinkat(int place, const char *name, int how) {
    NAMED(place, name)
    AROUND(int, REMOVES(place, name, how & AT_REMOVEDIR ? "rmdir" : "unlink"), NEXT(unlinkat)(place, name, how), -1)
}
int rmdir(const char *name) {
    NAMED(AT_FDCWD, name) AROUND(int, REMOVES(AT_FDCWD, name, "rmdir"), NEXT(rmdir)(name), -1)
}
