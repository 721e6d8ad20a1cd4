/* Who this process is, and whether a server may do its work. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "front.h"

#define NOTHING 14695981039346656037u /* of FNV-1a */

static uint64_t hashed(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t at = 0; at < size; at++)
        hash = (hash ^ bytes[at]) * 1099511628211u;
    return hash;
}

static uint64_t number(uint64_t hash, long long value)
{
    return hashed(hash, &value, sizeof value);
}

static uint64_t inode(uint64_t hash, const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return number(hash, -1);
    return number(number(hash, (long long)found.st_dev), (long long)found.st_ino);
}

static uint64_t content(uint64_t hash, const char *path)
{
    char text[4096];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text);
    if (file >= 0)
        close(file);
    return number(hashed(hash, text, size < 0 ? 0 : (size_t)size), size);
}

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* What the C library reads of the environment as a process starts. */
int read_at_start(const char *entry)
{
    return begins(entry, "LD_") || begins(entry, "LC_") || begins(entry, "LANG") || begins(entry, "LOCPATH=")
        || begins(entry, "MALLOC_") || begins(entry, "GLIBC_");
}

/* A number for this installation of lava. */
uint32_t installation(const char *server)
{
    struct stat program;
    uint64_t hash = NOTHING;

    if (stat(server, &program) == 0) {
        hash = number(number(hash, (long long)program.st_dev), (long long)program.st_ino);
        hash = number(number(hash, program.st_mtim.tv_sec), program.st_mtim.tv_nsec);
    }
    return (uint32_t)(hash ^ hash >> 32);
}

/* A number for all that a server inherits from the process that starts it. */
uint64_t identity(void)
{
    static const char *const namespaces[] = {"mnt", "user", "net", "pid", "ipc", "uts", "cgroup", "time"};
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct caps[2] = {{0, 0, 0}, {0, 0, 0}};
    static gid_t groups[NGROUPS_MAX]; /* 256 KB: more than `ulimit -s` may leave for the stack */
    unsigned char cpus[512] = {0};
    struct rlimit limit;
    char path[64];
    uint64_t hash = NOTHING, variables = 0;

    hash = number(number(hash, getuid()), getgid());
    int count = getgroups(NGROUPS_MAX, groups);
    hash = hashed(hash, groups, count > 0 ? (size_t)count * sizeof groups[0] : 0);
    syscall(SYS_capget, &head, caps);
    hash = hashed(hash, caps, sizeof caps);
    hash = number(hash, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    hash = number(hash, prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
    hash = number(hash, prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
    for (size_t at = 0; at < sizeof namespaces / sizeof namespaces[0]; at++) {
        snprintf(path, sizeof path, "/proc/self/ns/%s", namespaces[at]);
        hash = inode(hash, path);
    }
    hash = inode(hash, "/");
    hash = content(hash, "/proc/self/cgroup");
    hash = content(hash, "/proc/self/attr/current");
    hash = content(hash, "/proc/self/loginuid");
    hash = content(hash, "/proc/self/oom_score_adj");
    hash = number(hash, syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -3 /* the session's */, 0));
    for (int which = 0; which < RLIM_NLIMITS; which++)
        if (getrlimit(which, &limit) == 0)
            hash = number(number(hash, (long long)limit.rlim_cur), (long long)limit.rlim_max);
    hash = number(number(hash, getpriority(PRIO_PROCESS, 0)), sched_getscheduler(0));
    hash = number(hash, syscall(SYS_ioprio_get, 1 /* a process */, 0));
    syscall(SYS_sched_getaffinity, 0, sizeof cpus, cpus);
    hash = hashed(hash, cpus, sizeof cpus);
    hash = number(hash, personality(0xffffffff));
    for (char **entry = environ; *entry; entry++)
        if (read_at_start(*entry))
            variables += hashed(NOTHING, *entry, strlen(*entry)); /* whatever their order */
    return number(hash, (long long)variables);
}

/* A process of its own would take something of its surroundings into account that a server cannot have. */
int own_process_needed(char **words)
{
    struct rlimit cpu;

    if (getauxval(AT_SECURE) || getuid() != geteuid() || getgid() != getegid())
        return 1;
    for (char **entry = environ; *entry; entry++)
        if (!strchr(*entry, '=') || **entry == '=' || begins(*entry, "LAVA_NATIVE=N") || begins(*entry, "LD_PRELOAD=")
            || begins(*entry, "LD_AUDIT=") || begins(*entry, "LAVA_DEBUG=") || begins(*entry, "LSB_JOBID="))
            return 1; /* what a job runs ends with it, and counts as its own */
    char folder[PATH_MAX];
    if (getcwd(folder, sizeof folder) && (begins(folder, "/dev") || begins(folder, "/proc")))
        return 1;
    for (char **word = words; *word; word++) /* files that are others in another process */
        if (strstr(*word, "/proc/") || (strstr(*word, "/dev/") && strcmp(*word, "/dev/null") != 0))
            return 1;
    for (int file = 0; file < 3; file++) {
        if (fcntl(file, F_GETFD) < 0)
            return 1;
        pid_t front = isatty(file) ? tcgetpgrp(file) : -1;
        if (front >= 0 && front != getpgrp())
            return 1; /* in the background, where a terminal may stop it */
    }
    return getrlimit(RLIMIT_CPU, &cpu) != 0 || cpu.rlim_cur != RLIM_INFINITY || cpu.rlim_max != RLIM_INFINITY;
}

