/* As a program, this forks shepherds that have no Python in memory: lava-starter TITLE CONTROL FIRST SCORE KEYRING FILES PYTHON WORD... One
   that has something for Python becomes PYTHON WORD..., which is told what there is by a file (supervisor/go_on.py). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native.h"

#define NUMBERS 5
#define FAILED 70
#define TRIES 100
#define PAUSE 100 /* milliseconds */
#define KILL_PAUSE 10
#define MOST_IN_VAIN 10

/* As those that supervisor/shepherd_handle.py has handlers for, and those that Python ignores. Here they wait for ever, and nothing of
   that is to be undone for what a job runs but the mask. */
static const int HELD[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU, SIGTSTP, SIGTTOU, SIGTTIN, SIGPIPE,
    SIGXFSZ, SIGCHLD};

/* A file that can be read once a child has ended, in each process that is forked; -1: there is none. */
static int hold_signals(void)
{
    sigset_t held, child, before;
    sigemptyset(&held);
    for (size_t at = 0; at < sizeof HELD / sizeof *HELD; at++) {
        signal(HELD[at], SIG_DFL);
        sigaddset(&held, HELD[at]);
    }
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &held, &before) != 0)
        return -1;
    signals_are_held(&before);
    return signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
}

static bool put(int file, const void *what, size_t size)
{
    while (size) {
        ssize_t put = write(file, what, size);
        if (put <= 0)
            return false;
        what = (const char *)what + put;
        size -= (size_t)put;
    }
    return true;
}

static bool put_text(int file, struct text text)
{
    uint64_t size = text.size;
    return put(file, &size, sizeof size) && put(file, text.at, text.size);
}

/* What there is for Python, as native_parts.py reads it. */
static bool put_all(int file, const struct shepherd *one, const struct handed *handed)
{
    int32_t numbers[] = {handed->state, handed->closed, handed->pid, handed->status, handed->told, handed->killing,
        handed->end_told};
    double times[] = {handed->began, handed->deadline};
    if (!put(file, numbers, sizeof numbers) || !put(file, times, sizeof times) || !put_text(file, handed->input)
        || !put_text(file, handed->unsent) || !put_text(file, handed->template) || !put_text(file, handed->own)
        || !put_text(file, handed->end))
        return false;
    for (const struct template *template = one->templates; template; template = template->next) {
        int64_t number = template->number;
        if (!put(file, &number, sizeof number) || !put_text(file, template->fields))
            return false;
    }
    return lseek(file, 0, SEEK_SET) == 0;
}

static bool moved(int file, int to)
{
    if (file == to)
        return true;
    bool done = dup2(file, to) == to;
    close(file);
    return done;
}

/* Python hears of its signals by a pipe, with its ends where the file of ended children was and behind it. */
static bool has_pipe(int wake)
{
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) != 0)
        return false;
    int kept = fcntl(ends[1], F_DUPFD, wake + 2); /* out of the way of the other */
    close(ends[1]);
    return kept >= 0 && moved(ends[0], wake) && moved(kept, wake + 1);
}

/* Whoever may trace a process has its files, and its user may trace one that has just begun a program. With a group that its user's
   processes do not have it is nobody's but root's, until Python has forbidden it and given the group back (go_on.py). */
static bool is_ours_alone(void)
{
    gid_t real, effective, saved;
    return getresgid(&real, &effective, &saved) == 0 && (saved == effective || setresgid(real, saved, saved) == 0);
}

/* Go on as Python; its signals wait until it has handlers for them. */
static void become_python(const struct shepherd *one, const struct handed *handed, char **words)
{
    int left = one->end_file + LEFT, file = memfd_create("left to Python", 0);
    if (file < 0 || !moved(file, left) || !put_all(left, one, handed) || !has_pipe(one->wake) || !is_ours_alone())
        return;
    for (int kept = one->starter; kept < left; kept++)
        fcntl(kept, F_SETFD, 0);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    execv(*words, words);
}

/* Kill what is below this process until there is nothing of it, so many at a time; false: it cannot be done here. */
static bool kill_all(void)
{
    int in_vain = 0;
    for (struct ended seen; (seen = look()).pid >= 0;)
        if (seen.pid) {
            waitpid(seen.pid, NULL, 0);
            in_vain = 0;
        } else if (!kill_below(0) && ++in_vain == MOST_IN_VAIN)
            return false;
        else
            poll(NULL, 0, KILL_PAUSE);
    return true;
}

int main(int count, char **words)
{
    int numbers[NUMBERS];
    char **python = count > NUMBERS + 2 ? calloc((size_t)count, sizeof *python) : NULL;
    for (int at = 0; python && at < NUMBERS; at++)
        numbers[at] = atoi(words[1 + at]);
    for (int at = NUMBERS + 1; python && at < count; at++)
        python[at - NUMBERS - 1] = strdup(words[at]);
    if (!python)
        return FAILED;
    char title[256];
    size_t size = (size_t)(words[count - 1] + strlen(words[count - 1]) - words[0]);
    snprintf(title, sizeof title, "%s", words[0]);
    memset(words[0], 0, size);
    snprintf(words[0], size, "%s", title);
    prctl(PR_SET_NAME, "lava-starter", 0, 0, 0);
    int signals = hold_signals();
    if (signals < 0)
        return FAILED;
    struct handed handed;
    struct shepherd *one = lava_forks(numbers[0], numbers[1], numbers[2], numbers[3], signals, words[0], size, numbers[4], &handed);
    if (handed.closed && !handed.state)
        _exit(0);
    /* Memory may be short, or the disk with Python be away, for a moment; the part, which runs, need not end by it: but with the starter. */
    for (int tries = 0; tries < TRIES; tries++) {
        become_python(one, &handed, python);
        if (!tries)
            dprintf(2, "lava-shepherd %d cannot start %s: %s\n", getpid(), *python, strerror(errno));
        struct pollfd starter = {.fd = one->starter, .events = POLLRDHUP};
        if (poll(&starter, 1, 0) > 0 && starter.revents & (POLLRDHUP | POLLHUP | POLLERR) && kill_all())
            break;
        poll(NULL, 0, PAUSE);
    }
    _exit(FAILED);
}
