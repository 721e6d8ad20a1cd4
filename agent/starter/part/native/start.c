/* A process of a part: its folder, files and job file, its start, and how it ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "native.h"

#define DEFAULT_PATH "/bin:/usr/bin:/sbin:/usr/sbin"

/* What a shepherd has a handler for, and what Python ignores: the job's processes get the defaults. */
static const int OWN_SIGNALS[] = {SIGPIPE, SIGXFSZ, SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU,
    SIGTSTP, SIGTTOU, SIGTTIN};

/* Where a shepherd has no Python, it has no handlers, and these signals blocked: its jobs have the earlier mask. */
static bool held;
static sigset_t mask_of_jobs;

void signals_are_held(const sigset_t *before)
{
    held = true;
    mask_of_jobs = *before;
}

static void close_files(struct files *files)
{
    if (files->err >= 0 && files->err != files->out)
        close(files->err);
    if (files->out >= 0)
        close(files->out);
    if (files->in >= 0)
        close(files->in);
}

/* Whether opening the file twice does no more than opening it once: Python opens it again where the part is left to it, and what has a
   FIFO or a device at its other end would have seen that. */
static bool opens_again(const char *path)
{
    struct stat found;
    return !path || !*path || strcmp(path, "/dev/null") == 0 || stat(path, &found) != 0 || S_ISREG(found.st_mode);
}

static int open_output(const struct file *file)
{
    if (!file->path)
        return open("/dev/null", O_WRONLY | O_CLOEXEC);
    /* O_APPEND always: standard output and error, or several attempts, may share the file. */
    return open(file->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (file->append ? 0 : O_TRUNC), 0666);
}

static bool open_files(const struct spec *spec, struct files *files)
{
    bool same = !spec->has_err
        || (spec->out.path && spec->err.path ? strcmp(spec->out.path, spec->err.path) == 0 : !spec->out.path && !spec->err.path);
    files->in = open(spec->input && *spec->input ? spec->input : "/dev/null", O_RDONLY | O_CLOEXEC);
    files->out = files->in < 0 ? -1 : open_output(&spec->out);
    files->err = files->out < 0 ? -1 : same ? files->out : open_output(&spec->err);
    return files->err >= 0;
}

static bool write_jobfile(const struct spec *spec)
{
    if (!spec->jobfile)
        return true;
    if (unlink(spec->jobfile) != 0 && errno != ENOENT)
        return false;
    /* O_EXCL: in a folder that others can write to, the name may be a link to another file. */
    int fd = open(spec->jobfile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool done = write(fd, spec->script, spec->script_size) == (ssize_t)spec->script_size && fchmod(fd, spec->jobfile_mode) == 0;
    if (close(fd) != 0) /* where NFS says that the disk is full */
        done = false;
    if (!done)
        unlink(spec->jobfile);
    return done;
}

/* The paths that a shell would try for the command, ended by NULL; NULL: there is no memory. */
static char **candidates(struct memory *memory, const struct spec *spec)
{
    const char *name = spec->argv[0], *path = DEFAULT_PATH;
    size_t count = 2, at = 0, size = strlen(name);
    for (char **variable = spec->env; *variable; variable++)
        if (strncmp(*variable, "PATH=", 5) == 0)
            path = *variable + 5;
    for (const char *one = path; *one; one++)
        count += *one == ':';
    char **found = some(memory, (count + 1) * sizeof *found);
    if (!found)
        return NULL;
    if (strchr(name, '/'))
        found[at++] = spec->argv[0];
    else
        for (;; path++) {
            size_t folder = strcspn(path, ":");
            char *made = some(memory, folder + size + 3);
            if (!made)
                return NULL;
            memcpy(made, folder ? path : ".", folder ? folder : 1);
            char *to = made + (folder ? folder : 1);
            if (to[-1] != '/')
                *to++ = '/';
            memcpy(to, name, size + 1);
            found[at++] = made;
            path += folder;
            if (!*path)
                break;
        }
    found[at] = NULL;
    return found;
}

/* As system/binding.py, but by the child for itself. */
static void bind_to(struct binding *to)
{
    if (to->cpus && syscall(SYS_sched_setaffinity, 0, MASK, to->cpus) < 0)
        to->no_cpus = errno;
    if (to->nodes && syscall(to->call, to->mode, to->nodes, 8 * MASK + 1) < 0)
        to->no_nodes = errno;
}

/* In the child, whose memory is the shepherd's until the program runs. */
static __attribute__((noinline)) void become(
    const struct spec *spec, const struct files *files, char *const *programs, const sigset_t *mask)
{
    if (dup2(files->in, 0) < 0 || dup2(files->out, 1) < 0 || dup2(files->err, 2) < 0)
        return;
    if (files->kept >= 0)
        fcntl(files->kept, F_SETFD, 0);
    for (size_t at = 0; !held && at < sizeof OWN_SIGNALS / sizeof *OWN_SIGNALS; at++)
        signal(OWN_SIGNALS[at], SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    setsid();
    if (spec->binding)
        bind_to(spec->binding);
    if (spec->nice)
        (void)!nice(spec->nice);
    for (int at = 0; at < spec->limit_count; at++)
        setrlimit((__rlimit_resource_t)spec->limits[at].number, &spec->limits[at].value);
    for (; *programs; programs++)
        execve(*programs, spec->argv, spec->env);
}

/* ``mask``: the signals that the process has blocked; here none can come that has a handler. 0: it could not be started. */
pid_t vforked(const struct spec *spec, const struct files *files, char *const *programs, const sigset_t *mask)
{
    volatile bool failed = false;
    pid_t pid = vfork();
    if (pid == 0) {
        become(spec, files, programs, mask);
        failed = true;
        _exit(127);
    }
    if (pid > 0 && failed) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return 0;
    }
    return pid < 0 ? 0 : pid;
}

static pid_t started(const struct spec *spec, const struct files *files, char *const *programs)
{
    sigset_t all, mask;
    if (held)
        return vforked(spec, files, programs, &mask_of_jobs);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask);
    pid_t pid = vforked(spec, files, programs, &mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return pid;
}

/* Whether a child by vfork writes to the memory of its parent, which else would never learn that it failed: where vfork is done by fork
   (qemu-user, valgrind) it does not. */
int lava_works(void)
{
    volatile bool seen = false;
    pid_t pid = vfork();
    if (pid == 0) {
        seen = true;
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return seen;
}

pid_t start(struct memory *memory, const struct spec *spec)
{
    struct files files = {-1, -1, -1, -1};
    char **programs = candidates(memory, spec);
    pid_t pid = 0;
    umask(spec->mask);
    if (programs && chdir(spec->cwd) == 0 && opens_again(spec->input) && opens_again(spec->out.path) && opens_again(spec->err.path)
        && write_jobfile(spec)) {
        if (open_files(spec, &files))
            pid = started(spec, &files, programs);
        close_files(&files);
        if (!pid && spec->jobfile)
            unlink(spec->jobfile);
    }
    (void)!chdir("/");
    return pid;
}

struct ended look(void)
{
    siginfo_t seen;
    struct rusage used;
    memset(&seen, 0, sizeof seen);
    if (syscall(SYS_waitid, P_ALL, 0, &seen, WEXITED | WNOHANG | WNOWAIT, &used) < 0)
        return (struct ended){.pid = -1};
    if (!seen.si_pid)
        return (struct ended){0};
    return (struct ended){
        seen.si_pid,
        seen.si_code == CLD_EXITED ? (seen.si_status & 0xFF) << 8 : seen.si_status | (seen.si_code == CLD_DUMPED ? 0x80 : 0),
        (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6,
        (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec / 1e6,
        used.ru_maxrss,
    };
}

/* In clock ticks since boot, 0: it is gone. */
unsigned long long start_time(pid_t pid)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (size <= 0)
        return 0;
    text[size] = 0;
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* Seconds since the epoch. */
double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
