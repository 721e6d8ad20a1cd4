/* The servers of this user: the folder of their sockets, a connection, the start of one. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "front.h"

#define MOST_ENTRIES 24 /* of an installation in the folder: about twelve servers, each with a socket and a lock */
#define INSTALLATION 9  /* characters of a socket's name */
#define FOLDER_FD 3     /* as cli/native/server.py has them */
#define LOCK_FD 4
#ifndef SYS_close_range
#define SYS_close_range 436 /* on every architecture */
#endif

/* The folder, if it belongs to this user and nobody else can enter it, else -1. */
static int private_folder(int above, const char *path)
{
    struct stat found;
    int folder = openat(above, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 && (fstat(folder, &found) != 0 || found.st_uid != geteuid() || (found.st_mode & 077))) {
        close(folder);
        errno = EPERM;
        return -1;
    }
    return folder;
}

int folder_of_servers(void)
{
    char path[64];
    const char *last = path;
    mode_t mask = umask(077); /* the caller's may take the user's own rights */

    snprintf(path, sizeof path, "/run/user/%u", (unsigned)geteuid());
    int above = private_folder(AT_FDCWD, path);
    if (above >= 0)
        last = "lava-commands";
    else
        snprintf(path, sizeof path, "/tmp/lava-commands-%u", (unsigned)geteuid());
    int folder = private_folder(above < 0 ? AT_FDCWD : above, last);
    if (folder < 0 && errno == ENOENT && mkdirat(above < 0 ? AT_FDCWD : above, last, 0700) == 0)
        folder = private_folder(above < 0 ? AT_FDCWD : above, last);
    if (above >= 0)
        close(above);
    umask(mask);
    return folder;
}

/* ---- a server ----------------------------------------------------------------------------------------------------- */

int connected(int folder, const char *socket_name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t size = sizeof peer;
    int link = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link < 0)
        return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, socket_name);
    if (connect(link, (struct sockaddr *)&address, sizeof address) != 0) {
        int error = errno;
        close(link);
        errno = error;
        return -1;
    }
    if (getsockopt(link, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid()) {
        close(link);
        errno = EPERM;
        return -1;
    }
    return link;
}

/* Of a server that does not answer: nobody else need wait for it. Once it looks again it takes its name back. */
void pass_by(int folder, const char *socket_name)
{
    char path[64];

    snprintf(path, sizeof path, "%s.silent", socket_name);
    renameat(folder, socket_name, folder, path);
}

static int crowded(int folder, const char *socket_name)
{
    int count = 0;
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    if (!entries)
        return 1;
    for (struct dirent *entry; (entry = readdir(entries));)
        count += strncmp(entry->d_name, socket_name, INSTALLATION) == 0;
    closedir(entries);
    return count > MOST_ENTRIES;
}

/* In the process that becomes the server: nothing of the caller's is kept but what identity() holds. */
static void become_server(int folder, int lock, const char *server, const char *socket_name)
{
    char *kept[64], *words[] = {(char *)server, (char *)socket_name, NULL};
    size_t count = 0;
    sigset_t none;

    folder = fcntl(folder, F_DUPFD_CLOEXEC, 10);
    lock = fcntl(lock, F_DUPFD_CLOEXEC, 10);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (folder < 0 || lock < 0 || nothing < 0 || chdir("/") != 0)
        _exit(1);
    for (int file = 0; file < 3; file++)
        dup2(nothing, file);
    dup2(folder, FOLDER_FD);
    dup2(lock, LOCK_FD);
    if (syscall(SYS_close_range, LOCK_FD + 1, ~0U, 0) != 0)
        for (int file = LOCK_FD + 1; file < 65536; file++)
            close(file);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    umask(077);
    for (char **entry = environ; *entry && count < 62; entry++)
        if (read_at_start(*entry))
            kept[count++] = *entry;
    kept[count++] = "PATH=/usr/local/bin:/usr/bin:/bin";
    kept[count] = NULL;
    execve(server, words, kept);
    _exit(1);
}

/* Start a server for later commands, unless one is there or starting: it holds the lock as long as it lives. */
void start_server(int folder, const char *socket_name, const char *server)
{
    char path[64];

    snprintf(path, sizeof path, "%s.lock", socket_name);
    mode_t mask = umask(077);
    int lock = openat(folder, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    umask(mask);
    if (lock < 0)
        return;
    if (access(server, X_OK) == 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && !crowded(folder, socket_name)) {
        pid_t child = fork();
        if (child == 0) {
            setsid();
            if (fork() == 0) /* no leader of its session, so that no terminal becomes its own */
                become_server(folder, lock, server, socket_name);
            _exit(0);
        }
        if (child > 0)
            while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
                ;
    }
    close(lock);
}

