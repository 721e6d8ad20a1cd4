/* A command of lava without the start of Python: hands the caller's words, environment, folder and standard files to a
 * server that has the command loaded, and ends with the exit status that comes back. Whatever stands in the way of that
 * ends in the plain command, lib/lava/plain/NAME, which does the same by itself.
 *
 * Rules:
 * - The server is a process of the same user, and could have been started by this very process: its socket is named by
 *   everything that a process inherits and that decides what it may open and how (identity()), and lies in a folder that
 *   nobody else can enter.
 * - The request is sent at once and whole, and only to a worker of the server that has said that it is ready. A byte behind it
 *   stays unread until just before the worker prints, sends or reads anything for the caller. Up to then the plain command is run,
 *   whatever becomes of the worker; afterwards never again, so nothing is submitted twice.
 * - Nothing of the command runs on after this process has ended: the server's process ends with the connection.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front.h"

#define LONGEST_REQUEST (120 * 1024)
#define READY_MS 2000 /* a server that has not answered by then is passed by */
#define END_MS 1000   /* how long the end of the server's process is waited for after a signal */
#define LOST 255

static char plain[PATH_MAX], server[PATH_MAX];
static const char *name;
static volatile sig_atomic_t caught;

static int add(char *request, size_t *size, const char *text)
{
    size_t length = strlen(text) + 1;
    if (*size + length > LONGEST_REQUEST)
        return -1;
    memcpy(request + *size, text, length);
    *size += length;
    return 0;
}

/* 4 numbers of 32 bits (bytes of all, umask, words, variables), the command, its words, the environment; each ends with 0. */
static ssize_t put_request(char *request, char **argv)
{
    uint32_t head[4] = {0, 0, 0, 0};
    size_t size = sizeof head;
    mode_t mask = umask(077);

    umask(mask);
    head[1] = mask;
    if (add(request, &size, name) != 0)
        return -1;
    for (char **word = argv[0] ? argv + 1 : argv; *word; word++, head[2]++)
        if (add(request, &size, *word) != 0)
            return -1;
    for (char **entry = environ; *entry; entry++, head[3]++)
        if (add(request, &size, *entry) != 0)
            return -1;
    head[0] = (uint32_t)size;
    memcpy(request, head, sizeof head);
    return (ssize_t)size;
}

/* The request with the byte behind it and the caller's files, without waiting; 0 where all of it is on its way. The worker acts on no
 * part of one. */
static int send_request(int link, char **argv)
{
    static char request[LONGEST_REQUEST];
    ssize_t size = put_request(request, argv);
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int files[4] = {0, 1, 2, here};
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof files)]; } rights;
    struct iovec data[2] = {{request, size < 0 ? 0 : (size_t)size}, {"\n", 1}};
    struct msghdr message = {.msg_iov = data, .msg_iovlen = 2, .msg_control = &rights, .msg_controllen = sizeof rights};

    if (size < 0 || here < 0)
        return -1;
    memset(&rights, 0, sizeof rights);
    rights.head.cmsg_level = SOL_SOCKET;
    rights.head.cmsg_type = SCM_RIGHTS;
    rights.head.cmsg_len = CMSG_LEN(sizeof files);
    memcpy(CMSG_DATA(&rights.head), files, sizeof files);
    ssize_t sent = sendmsg(link, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(here);
    return sent >= size ? 0 : -1; /* without the byte behind it, it may be done all the same */
}

static void catch(int number)
{
    caught = number;
}

/* Signals that end this process are noted, so that the server's process is seen to end first. They come while answer() waits. */
static void note_signals(sigset_t *before)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction found, noted = {.sa_handler = catch};
    sigset_t blocked;

    sigemptyset(&blocked);
    for (size_t at = 0; at < sizeof ending / sizeof ending[0]; at++)
        if (sigaction(ending[at], NULL, &found) == 0 && found.sa_handler == SIG_DFL) {
            sigaddset(&blocked, ending[at]);
            sigaction(ending[at], &noted, NULL);
        }
    sigprocmask(SIG_BLOCK, &blocked, before);
}

static void end_by_signal(int link, const sigset_t *before)
{
    char byte;
    struct pollfd end = {link, POLLIN, 0};
    int number = caught;

    shutdown(link, SHUT_WR);
    while (poll(&end, 1, END_MS) > 0 && recv(link, &byte, 1, MSG_DONTWAIT) > 0)
        ;
    if (number == SIGINT)
        _exit(130); /* as the plain command does */
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_SETMASK, before, NULL);
    _exit(128 + number);
}

/* The answer: 'D' and the exit status, or 'P' (-1: the plain command is to do it), perhaps with its standard input. */
static int answer(int link, const sigset_t *before)
{
    char bytes[2] = {0, 0};
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } rights;
    struct iovec data = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    struct pollfd one = {link, POLLIN, 0};
    ssize_t size = -1;

    while (size < 0) {
        int ready = ppoll(&one, 1, NULL, before);
        if (caught)
            end_by_signal(link, before);
        if (ready > 0 && (size = recvmsg(link, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT)) < 0 && errno != EAGAIN)
            break;
    }
    if (size == 2 && bytes[0] == 'D')
        return (unsigned char)bytes[1];
    if (size < 0 ? errno == ECONNRESET : size > 0 && bytes[0] == 'P') { /* ECONNRESET: it ended with something unread */
        if (size > 0 && message.msg_controllen >= CMSG_LEN(sizeof(int)))
            dup2(*(int *)CMSG_DATA(&rights.head), 0);
        return -1;
    }
    fprintf(stderr, "%s: the process that ran this command has ended: whether it is done is not known\n", name);
    return LOST;
}

/* The exit status, or -1 where nothing has been done. */
static int served(int folder, const char *socket_name, char **argv)
{
    int link = connected(folder, socket_name);
    if (link < 0) {
        if (errno == ENOENT || errno == ECONNREFUSED)
            start_server(folder, socket_name, server);
        return -1;
    }
    struct pollfd ready = {link, POLLIN, 0};
    sigset_t before;
    char byte = 0;
    int status = -1, silent = 0;

    if (!(silent = poll(&ready, 1, READY_MS) == 0) && recv(link, &byte, 1, 0) == 1 && byte == 'R') {
        note_signals(&before);
        if (send_request(link, argv) == 0)
            status = answer(link, &before);
        if (status < 0) {
            sigprocmask(SIG_SETMASK, &before, NULL); /* handlers end with exec */
            if (caught) /* one came with the answer */
                end_by_signal(link, &before);
        }
    }
    if (silent)
        pass_by(folder, socket_name);
    close(link);
    return status;
}

/* ---- this command ------------------------------------------------------------------------------------------------- */

static ssize_t resolved(const char *path, char *result, size_t room)
{
    char *real = realpath(path, NULL);
    size_t size = real ? strlen(real) : room;

    if (size < room)
        memcpy(result, real, size);
    return size < room ? (ssize_t)size : -1;
}

/* The command's name, its plain form and the server's program, by where this file lies: PREFIX/bin or PREFIX/lib/lava/bin. */
static int find_plain(void)
{
    static const char alone[] = "/lib/lava/bin", gone[] = " (deleted)";
    static char exe[PATH_MAX - 64];
    ssize_t size = readlink("/proc/self/exe", exe, sizeof exe - 1);

    if (size < 0) /* no /proc here */
        size = resolved((const char *)getauxval(AT_EXECFN), exe, sizeof exe - 1);
    if (size <= 0 || size == sizeof exe - 1)
        return -1;
    exe[size] = 0;
    if (size > 10 && strcmp(exe + size - 10, gone) == 0)
        exe[size - 10] = 0; /* an upgrade has put another in its place */
    char *slash = strrchr(exe, '/');
    *slash = 0;
    name = slash + 1;
    size_t length = strlen(exe);
    int is_alone = length >= sizeof alone - 1 && strcmp(exe + length - (sizeof alone - 1), alone) == 0;
    const char *way = is_alone ? "../plain" : "../lib/lava/plain";
    int plain_size = snprintf(plain, sizeof plain, "%s/%s/%s", exe, way, name);
    int server_size = snprintf(server, sizeof server, "%s/%s/lava-commands", exe, way);
    return plain_size < PATH_MAX && server_size < PATH_MAX ? 0 : -1;
}

/* Nothing can be read of a folder, and Python does not start with one as its standard input: it is empty, then. */
static void no_folder_as_input(void)
{
    struct stat found;
    int nothing = -1;

    if (fstat(0, &found) == 0 && S_ISDIR(found.st_mode) && (nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        dup2(nothing, 0);
        close(nothing);
    }
}

int main(int argc, char **argv)
{
    char socket_name[32];

    if (argc < 1 || find_plain() != 0) {
        fprintf(stderr, "lava: this command does not find itself in /proc/self/exe\n");
        return LOST;
    }
    no_folder_as_input();
    signal(SIGPIPE, SIG_IGN); /* as Python has it */
    int folder = own_process_needed(argv + 1) ? -1 : folder_of_servers();
    if (folder >= 0) {
        snprintf(socket_name, sizeof socket_name, "%08x-%016llx", installation(server), (unsigned long long)identity());
        int status = served(folder, socket_name, argv);
        if (status >= 0)
            _exit(status);
    }
    execve(plain, argv, environ);
    fprintf(stderr, "%s: %s: %s\n", name, plain, strerror(errno));
    return 127;
}
