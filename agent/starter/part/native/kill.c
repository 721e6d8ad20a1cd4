/* Signals to what is below this process, as system/proctree.py. For SIGKILL all of it is stopped before any of it is killed, so that none
   can fork away meanwhile, and signalled through a pidfd, as a number may be another process's by then. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

#define MOST 64 /* processes; more are for Python */
#define MOST_LOOKS 40
#define SHARED_MEMORY "/dev/shm"
#define COARSE 0.02 /* seconds: the kernel's times of files are those of its last tick (system/shm.py) */

struct found {
    pid_t pids[MOST];
    int count;
    bool more; /* than these: they are for Python, or for the next look */
};

static bool has(const struct found *found, pid_t pid)
{
    for (int at = 0; at < found->count; at++)
        if (found->pids[at] == pid)
            return true;
    return false;
}

/* Add the children of one thread, as many as there is room for; false: it is not known which. A thread that is gone has none. */
static bool add_children(const char *path, struct found *found)
{
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size < 0)
        return errno == ESRCH;
    if (size == sizeof text - 1)
        return false;
    text[size] = 0;
    char *at = text, *end;
    for (long pid; (pid = strtol(at, &end, 10)), end != at; at = end) {
        if (has(found, (pid_t)pid))
            continue;
        if ((found->more = found->count == MOST))
            return true;
        found->pids[found->count++] = (pid_t)pid;
    }
    return true;
}

static bool add_below(pid_t pid, struct found *found)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    if (!threads)
        return errno == ENOENT;
    bool done = true;
    for (struct dirent *thread; done && (thread = readdir(threads));)
        if (*thread->d_name != '.') {
            snprintf(path, sizeof path, "/proc/%d/task/%s/children", pid, thread->d_name);
            done = add_children(path, found);
        }
    closedir(threads);
    return done;
}

/* All descendants of this process, which has one thread; false as ``add_children``: not every kernel has these files, and without
   /proc there are none. */
static bool find(struct found *found)
{
    static const char own[] = "/proc/thread-self/children";
    found->count = 0;
    found->more = false;
    bool done = access(own, F_OK) == 0 && add_children(own, found);
    for (int at = 0; done && at < found->count; at++)
        done = add_below(found->pids[at], found);
    return done;
}

static bool send_to(int pidfd, int number)
{
    return syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0) == 0 || errno == ESRCH;
}

/* Stop what has not been stopped; 0: there is nothing of that, below 0: it cannot be done. */
static int stop_new(struct found *stopped, int *pidfds)
{
    struct found found, again;
    int opened[MOST], count = 0, before = stopped->count;
    pid_t pids[MOST];
    bool done = find(&found);
    for (int at = 0; done && at < found.count; at++) {
        if (has(stopped, found.pids[at]))
            continue;
        int pidfd = (int)syscall(SYS_pidfd_open, found.pids[at], 0);
        if (pidfd >= 0) {
            opened[count] = pidfd;
            pids[count++] = found.pids[at];
        } else
            done = errno == ESRCH;
    }
    done = done && (!count || find(&again));
    for (int at = 0; at < count; at++) {
        if (done && has(&again, pids[at]) && stopped->count < MOST) {
            done = send_to(opened[at], SIGSTOP);
            pidfds[stopped->count] = opened[at];
            stopped->pids[stopped->count++] = pids[at];
        } else
            close(opened[at]);
    }
    return done && !found.more ? stopped->count - before : -1;
}

/* ``child``: one that is there, 0: none may be. False: some of them, or all, are left to be killed by Python; where there are too many,
   those that were found are killed, but none beside a ``child``, whose end Python is to see. */
bool kill_below(pid_t child)
{
    struct found found;
    if (child && (!find(&found) || found.more))
        return false;
    struct found stopped = {.count = 0};
    int pidfds[MOST], more = 1;
    for (int look = 0; more > 0 && look < MOST_LOOKS; look++)
        more = stop_new(&stopped, pidfds);
    bool done = more == 0 && (!child || has(&stopped, child)); /* else the kernel does not tell of children */
    for (int at = 0; at < stopped.count; at++) {
        done = send_to(pidfds[at], SIGKILL) && done;
        close(pidfds[at]);
    }
    return done;
}

/* The process group of one of those found; 0: it is gone, and its number perhaps another process's, whose parent is none of them. */
static pid_t group_of(pid_t pid, const struct found *found)
{
    char path[32], text[512];
    int parent, group;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[size < 0 ? 0 : size] = 0;
    const char *behind_name = strrchr(text, ')');
    if (!behind_name || sscanf(behind_name + 1, " %*c %d %d", &parent, &group) != 2)
        return 0;
    return parent == getpid() || has(found, parent) ? group : 0;
}

/* Signal each process group that has a process of the part in it. ``child``: as for ``kill_below``. False: nobody got the signal. */
bool signal_below(pid_t child, int number)
{
    struct found found;
    pid_t own = getpgrp(), groups[MOST];
    int count = 0;
    if (!find(&found) || found.more || (child && !has(&found, child)))
        return false;
    for (int at = 0; at < found.count; at++) {
        pid_t group = group_of(found.pids[at], &found);
        bool known = group <= 1 || group == own;
        for (int before = 0; before < count && !known; before++)
            known = groups[before] == group;
        if (!known)
            groups[count++] = group;
    }
    for (int at = 0; at < count; at++)
        kill(-groups[at], number);
    return true;
}

static double seconds(struct timespec time)
{
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool is_of(const struct stat *file, double since)
{
    double changed = seconds(file->st_ctim), written = seconds(file->st_mtim);
    return S_ISREG(file->st_mode) && file->st_uid == getuid() && (changed < written ? changed : written) >= since - COARSE;
}

static bool is_shared_memory(const char *name)
{
    static const char *const names[] = {"mpich_shm_", "ucx_shm_",   "nccl-",     "vader_segment.",
                                        "sm_segment.", "Intel_MPI_", "psm2_shm.", "psm3_shm."};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (strncmp(name, names[at], strlen(names[at])) == 0)
            return true;
    return false;
}

/* Whether there is something that system/shm.py may have to remove after a part that failed: not where nothing was made in the folder
   since, so that a thousand that are killed do not look at what others have left there. */
bool left_memory(double since)
{
    struct stat file;
    if (stat(SHARED_MEMORY, &file) == 0 && seconds(file.st_mtim) < since - COARSE)
        return false;
    DIR *folder = opendir(SHARED_MEMORY);
    bool found = false;
    if (!folder)
        return false;
    for (struct dirent *entry; !found && (entry = readdir(folder));)
        if (is_shared_memory(entry->d_name))
            found = fstatat(dirfd(folder), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 && is_of(&file, since);
    closedir(folder);
    return found;
}
