/* Preloaded: names each file that is synced, one a line, in the file that SYNCED_LOG names. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int noted(long number, int fd)
{
    char link[64], path[4096];
    int result = syscall(number, fd);
    const char *log = getenv("SYNCED_LOG");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    int out = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (out >= 0 && length > 0) {
        path[length++] = '\n';
        if (write(out, path, length) < 0)
            result = -1;
    }
    if (out >= 0)
        close(out);
    return result;
}

int fsync(int fd) { return noted(SYS_fsync, fd); }
int fdatasync(int fd) { return noted(SYS_fdatasync, fd); }
