/* A rank that speaks PMI-1 and nothing else: puts one key, passes a barrier, gets its neighbour's, and says when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int fd;
static char line[4096];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static char *ask(const char *text) {
    size_t have = 0;
    if (write(fd, text, strlen(text)) < 0) exit(3);
    for (;;) {
        ssize_t n = read(fd, line + have, sizeof line - 1 - have);
        if (n <= 0) exit(4);
        have += (size_t)n;
        line[have] = 0;
        if (strchr(line, '\n')) return line;
    }
}

int main(void) {
    double start = now();
    int rank = atoi(getenv("PMI_RANK")), size = atoi(getenv("PMI_SIZE"));
    char name[300], text[1024], expected[64];
    fd = atoi(getenv("PMI_FD"));
    ask("cmd=init pmi_version=1 pmi_subversion=1\n");
    char *found = strstr(ask("cmd=get_my_kvsname\n"), "kvsname=");
    if (!found || sscanf(found, "kvsname=%255s", name) != 1) return 5;
    snprintf(text, sizeof text, "cmd=put kvsname=%s key=addr-%d value=node-%d#0123456789012345678901234567890123456789\n", name, rank, rank);
    ask(text);
    ask("cmd=barrier_in\n");
    int next = (rank + size / 2) % size;
    snprintf(text, sizeof text, "cmd=get kvsname=%s key=addr-%d\n", name, next);
    snprintf(expected, sizeof expected, "value=node-%d#", next);
    if (!strstr(ask(text), expected)) return 6;
    ask("cmd=barrier_in\n");
    double wired = now();
    ask("cmd=finalize\n");
    printf("rank %d of %d: %.6f %.6f\n", rank, size, start, wired);
    return 0;
}
