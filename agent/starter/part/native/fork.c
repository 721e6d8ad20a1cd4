/* Forks shepherds for the starter, whose children they are. Each becomes its user and runs parts; Python has to do with it only
   when something comes that is for Python. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

#define MOST_GROUPS 1024 /* as supervisor/forker.py */
#define LAST_FILE 32     /* what forks has fewer files open */
#define FAILED 70
#define NOBODYS 65534 /* a group that gives no rights */

/* What a shepherd is asked for, with two files: its socket and its end file. Behind the last of its user's groups comes the folder of its
   cgroup, if it has one. */
struct asked {
    uint32_t uid, gid, count, groups[MOST_GROUPS];
    char room[PATH_MAX];
    const char *cgroup;
};
struct made {
    int64_t pid; /* or minus the error's number */
    uint64_t start;
};

static bool received(int control, struct asked *asked, int files[2])
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } passed;
    struct iovec into = {asked, offsetof(struct asked, cgroup) - 1};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = &passed, .msg_controllen = sizeof passed};
    ssize_t size;
    while ((size = recvmsg(control, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    struct cmsghdr *head = size > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return false;
    memcpy(files, CMSG_DATA(head), 2 * sizeof(int));
    size_t fixed = offsetof(struct asked, groups) + (asked->count <= MOST_GROUPS ? asked->count * sizeof(uint32_t) : sizeof *asked);
    if ((size_t)size < fixed)
        return false;
    ((char *)asked)[size] = 0;
    asked->cgroup = (char *)asked + fixed;
    return true;
}

/* Its files are then those of the first shepherd but for these: socket, end file and both ends of the pipe of signals, or ``signals``
   in its place, from ``first`` on. */
static bool keep_only(int first, const int files[2], int signals)
{
    int wake[2] = {signals, -1};
    if ((signals < 0 && pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) || dup3(files[0], first, O_CLOEXEC) < 0
        || dup3(files[1], first + 1, O_CLOEXEC) < 0 || dup3(wake[0], first + 2, O_CLOEXEC) < 0
        || (signals < 0 && dup3(wake[1], first + 3, O_CLOEXEC) < 0))
        return false;
    for (int fd = first + (signals < 0 ? 4 : 3); fd < LAST_FILE; fd++)
        close(fd);
    return true;
}

/* As apart.py: a session keyring of its own, and no more protection from the OOM killer than jobs have. */
static bool leave_daemon(int score)
{
    char text[16] = "";
    if (new_keyring() < 0 && errno != ENOSYS)
        return false;
    int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return true;
    if (read(fd, text, sizeof text - 1) > 0 && atoi(text) < score) {
        int size = snprintf(text, sizeof text, "%d", score);
        (void)!write(fd, text, (size_t)size);
    }
    close(fd);
    return true;
}

/* Where a user has more processes than the limit, one that becomes the user's may start no program, and some become Python later: the
   limit holds again for what is forked then. One that may become Python by another program keeps a group for that moment, which no
   task of it has (``is_ours_alone``). False: it is not as it was. */
static bool change_user(const struct asked *asked, bool program)
{
    gid_t kept = !program ? asked->gid : asked->gid != NOBODYS ? NOBODYS : NOBODYS - 1;
    struct rlimit processes, most = {RLIM_INFINITY, RLIM_INFINITY};
    bool known = getrlimit(RLIMIT_NPROC, &processes) == 0;
    if (known && setrlimit(RLIMIT_NPROC, &most) != 0) {
        most.rlim_cur = most.rlim_max = processes.rlim_max; /* as far as goes without CAP_SYS_RESOURCE */
        (void)!setrlimit(RLIMIT_NPROC, &most);
    }
    /* a name space may have one user alone, whose groups stay as they are, and no other group to keep */
    bool own = asked->uid == geteuid() && asked->gid == getegid();
    bool done = (setgroups(asked->count, asked->groups) == 0 || (own && errno == EPERM))
        && (setresgid(asked->gid, asked->gid, kept) == 0 || setresgid(asked->gid, asked->gid, asked->gid) == 0);
    return done && setresuid(asked->uid, asked->uid, asked->uid) == 0 && (!known || setrlimit(RLIMIT_NPROC, &processes) == 0);
}

static bool become(const struct asked *asked, bool root, bool program)
{
    uid_t real, effective, saved;
    if (root && !change_user(asked, program))
        return false;
    return getresuid(&real, &effective, &saved) == 0 && real == asked->uid && effective == asked->uid && saved == asked->uid;
}

static pid_t forked(void)
{
#ifdef __s390__
    return (pid_t)syscall(SYS_clone, 0, CLONE_PARENT | SIGCHLD, 0, 0, 0);
#else
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
#endif
}

static int open_in(const char *folder, const char *name)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, O_WRONLY | O_CLOEXEC);
}

/* Fork a process that is in its cgroup from the start, of version 2; -1: that is not to be had. */
static pid_t forked_into(const char *cgroup)
{
#ifdef CLONE_INTO_CGROUP
    struct clone_args how = {.flags = CLONE_PARENT | CLONE_INTO_CGROUP};
    int folder = open(cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    how.cgroup = (unsigned)folder;
    pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    if (pid)
        close(folder); /* the new process closes all that is not its own */
    return pid;
#else
    (void)cgroup;
    return -1;
#endif
}

/* Fork a process into its cgroup. One that is moved by another makes the kernel wait until nobody forks, a hundredth of a second; one
   that moves itself, or is forked there, does not. As in Python it runs all the same where that fails. */
static pid_t forked_in(const char *cgroup)
{
    int tasks = *cgroup ? open_in(cgroup, "tasks") : -1; /* of version 1 alone */
    pid_t pid = *cgroup && tasks < 0 ? forked_into(cgroup) : -1;
    bool moves = *cgroup && pid < 0;
    if (pid < 0)
        pid = forked();
    if (pid == 0 && tasks >= 0)
        (void)!write(tasks, "0", 1);
    if (pid > 0 && moves && tasks < 0) {
        int procs = open_in(cgroup, "cgroup.procs");
        if (procs >= 0) {
            dprintf(procs, "%d", pid);
            close(procs);
        }
    }
    if (pid && tasks >= 0)
        close(tasks);
    return pid;
}

/* Fork a shepherd for each request until the starter is gone, which ends this process. Returns in a shepherd alone: when something
   has come that is for Python. ``control``: the socket of the starter, the last of the files that are open. */
struct shepherd *lava_forks(int control, int first, int score, int own_keyring, int signals, char *title, size_t title_size,
    long long open_files, struct handed *handed)
{
    struct asked asked;
    int files[2];
    bool root = geteuid() == 0;
    while (received(control, &asked, files)) {
        pid_t pid = forked_in(asked.cgroup);
        if (pid == 0) {
            prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
            prctl(PR_SET_NAME, "lava-shepherd", 0, 0, 0);
            setsid();
            struct shepherd *one = NULL;
            if (keep_only(first, files, signals) && (!root || leave_daemon(score)) && become(&asked, root, signals >= 0) && chdir("/") == 0)
                one = lava_shepherd(first, first + 2, first + 1, own_keyring, title, title_size, open_files);
            if (!one) {
                dprintf(2, "lava-shepherd %d failed: %s\n", getpid(), strerror(errno));
                _exit(FAILED);
            }
            lava_run(one, handed);
            return one;
        }
        struct made made = {pid < 0 ? -errno : pid, pid < 0 ? 0 : start_time(pid)};
        close(files[0]);
        close(files[1]);
        if (send(control, &made, sizeof made, MSG_NOSIGNAL) != sizeof made)
            break;
    }
    _exit(0);
}
