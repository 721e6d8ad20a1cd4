/* The shepherd's loop while its parts are single processes: from the order of a part to the report of its end.

   The parts that are not, and every order that is rare, go to the shepherd in Python, with the part that runs. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "native.h"

#define LARGEST_FRAME ((size_t)1 << 20) /* bytes; a larger one is for Python */
#define CHUNK ((size_t)64 << 10)
#define STARTED_AFTER 10 /* milliseconds, as partrun.py */
#define KILL_AGAIN 100
#define LAST_KILL 2000
#define LONGEST_PAUSE 500
#define LEFT_WITHIN 50 /* the processes of a task that was ended often end a moment later */
#define IDLE "(idle)"
#define JOIN_KEYRING 1
#define CLEAR_KEYRING 7
#define SESSION_KEYRING -3

/* A new, empty session keyring for this process; below 0: errno says why not. */
long new_keyring(void)
{
    return syscall(SYS_keyctl, JOIN_KEYRING, 0, 0, 0, 0);
}

static int64_t milliseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void show(struct shepherd *one, const char *title)
{
    if (one->title_size < 2)
        return;
    memset(one->title, 0, one->title_size);
    snprintf(one->title, one->title_size, "lava-shepherd %s", title);
}

/* -- a part ------------------------------------------------------------------------------------------------------------- */

static bool begin(struct shepherd *one, long long number, struct text own)
{
    struct template *template = find_template(one, number);
    if (!template || !template->handled)
        return false;
    give_back(&one->memory, true);
    char *kept = some(&one->memory, own.size);
    if (!kept)
        return false;
    one->own = (struct text){memcpy(kept, own.at, own.size), own.size};
    if (!read_part(&one->memory, &template->spec, one->own, one->open_files, &one->spec))
        return false;
    show(one, one->spec.title);
    one->began = now();
    if (!begin_lease(one))
        return false;
    if (!(one->pid = start(&one->memory, &one->spec))) {
        end_lease(one);
        return false;
    }
    one->template = template;
    one->started_at = milliseconds();
    one->told = one->over = one->end_told = false;
    one->again_at = one->pause = 0;
    return true;
}

/* Whether an order is about the part that runs, and no other. */
static bool is_about(const struct shepherd *one, struct text uids)
{
    size_t size = one->spec.uid.size;
    return uids.size == size + 4 && memcmp(uids.at, "[\"", 2) == 0 && memcmp(uids.at + 2, one->spec.uid.at, size) == 0
        && memcmp(uids.at + 2 + size, "\"]", 2) == 0;
}

/* Kill the part that runs; false: it is for Python, whatever has been killed of it. */
static bool kill_part(struct shepherd *one)
{
    if (!kill_below(one->over ? 0 : one->pid))
        return false;
    one->pause = KILL_AGAIN;
    one->again_at = milliseconds() + one->pause;
    return tell_killing(one);
}

/* ``CATCHING`` is for Python. */
static bool signal_part(const struct shepherd *one, struct text scope, long long number)
{
    if (number < 1 || number > 64)
        return false;
    if (is(scope, "tasks")) {
        if (!one->over)
            kill(one->pid, (int)number);
        return true;
    }
    return (!scope.size || is(scope, "groups")) && signal_below(one->over ? 0 : one->pid, (int)number);
}

/* One frame; false: it is for Python. */
static bool obey(struct shepherd *one, struct text frame)
{
    struct order order;
    if (!read_order(frame, &order))
        return false;
    bool kills = is(order.kind, "kill"), signals = is(order.kind, "signal"), renews = is(order.kind, "renew");
    if (!one->pid && (kills || signals || renews))
        return true; /* it has ended meanwhile */
    if (one->pid && is_about(one, order.uids))
        return kills ? kill_part(one)
            : signals ? signal_part(one, order.scope, order.signal)
            : renews && renew_lease(one, order.deadline);
    if (one->pid || order.number < 0)
        return false;
    if (is(order.kind, "template"))
        return order.drop.size && order.fields.size && add_template(one, order.number, order.drop, order.fields);
    return is(order.kind, "part") && order.own.size && begin(one, order.number, order.own);
}

/* The part is gone: its report, with nothing left of it. Without memory for the report all of this is Python's. */
static bool finish(struct shepherd *one)
{
    size_t size;
    char *frame = gone_report(one, &size);
    if (!frame)
        return false;
    if (one->spec.jobfile && one->spec.jobfile_goes)
        unlink(one->spec.jobfile);
    if (one->own_keyring && syscall(SYS_keyctl, CLEAR_KEYRING, SESSION_KEYRING, 0, 0, 0) < 0)
        new_keyring();
    end_lease(one);
    one->pid = 0;
    one->template = NULL;
    show(one, IDLE);
    return tell(one, frame, size);
}

/* Look at ended children; false: Python is to go on. */
static bool see_ended(struct shepherd *one)
{
    for (;;) {
        struct ended seen = look();
        if (seen.pid == 0) {
            if (one->over && !one->again_at) /* the task has ended and left others behind */
                one->again_at = milliseconds() + LEFT_WITHIN;
            return true;
        }
        if (seen.pid < 0) /* after a failure there may be more to be done */
            return one->over && ((one->status == 0 && !one->pause) || !left_memory(one->began)) && finish(one);
        if (seen.pid == one->pid && !one->over && !write_end(one, &seen))
            return false;
        waitpid(seen.pid, NULL, 0);
    }
}

/* -- the loop ----------------------------------------------------------------------------------------------------------- */

/* Obey the frames that have come whole; false: the next one is for Python. */
static bool take_frames(struct shepherd *one)
{
    size_t at = 0;
    bool obeyed = true;
    while (one->used - at >= 4) {
        const unsigned char *head = (const unsigned char *)one->input + at;
        size_t size = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
        if (size > LARGEST_FRAME)
            obeyed = false;
        else if (one->used - at - 4 < size)
            break;
        else
            obeyed = obey(one, (struct text){one->input + at + 4, size});
        if (!obeyed)
            break;
        at += 4 + size;
    }
    memmove(one->input, one->input + at, one->used - at);
    one->used -= at;
    return obeyed;
}

/* Read what has come; false: the starter is gone, or there is no memory. */
static bool receive(struct shepherd *one, struct handed *handed)
{
    if (one->size - one->used < CHUNK) {
        char *larger = realloc(one->input, one->size + 2 * CHUNK);
        if (!larger)
            return false;
        one->input = larger;
        one->size += 2 * CHUNK;
    }
    ssize_t got = recv(one->starter, one->input + one->used, CHUNK, MSG_DONTWAIT);
    if (got > 0)
        one->used += (size_t)got;
    handed->closed = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    return !handed->closed;
}

static int pause_for(const struct shepherd *one)
{
    int64_t due = one->told || one->over ? 0 : one->started_at + STARTED_AFTER;
    if (one->again_at && (!due || one->again_at < due))
        due = one->again_at;
    if (!due)
        return -1;
    int64_t left = due - milliseconds();
    return left > 0 ? (int)left : 0;
}

/* The task has ended and left others behind, which may end by themselves; false: it is for Python. */
static bool ask_to_end(struct shepherd *one, int64_t time)
{
    one->again_at = time + (int64_t)(one->spec.grace * 1000);
    return signal_below(0, SIGTERM) && tell_end(one);
}

/* Something of the part is left; false: it is for Python. */
static bool kill_again(struct shepherd *one, int64_t time)
{
    if (one->pause > LAST_KILL || !kill_below(one->over ? 0 : one->pid))
        return false;
    one->pause = one->pause ? one->pause * 2 : KILL_AGAIN;
    one->again_at = time + one->pause;
    return true;
}

/* A time has come; false as ``tell``. */
static bool on_time(struct shepherd *one)
{
    if (!one->pid)
        return true;
    int64_t time = milliseconds();
    bool is_first = !one->pause && !one->end_told;
    if (one->again_at && time >= one->again_at && !(is_first ? ask_to_end(one, time) : kill_again(one, time)))
        return false;
    if (lease_passed(one))
        return false;
    return one->told || one->over || time < one->started_at + STARTED_AFTER || tell_started(one);
}

static void drain(int pipe)
{
    char passed[256];
    while (read(pipe, passed, sizeof passed) == (ssize_t)sizeof passed)
        ;
}

static bool turn(struct shepherd *one, struct handed *handed)
{
    if (!one->pid) {
        /* whoever waits in recv() is woken too when the starter reads what was sent to it */
        struct pollfd starter = {.fd = one->starter, .events = POLLIN};
        (void)!poll(&starter, 1, -1);
        return receive(one, handed) && take_frames(one);
    }
    struct pollfd ready[3] = {{.fd = one->starter, .events = POLLIN}, {.fd = one->wake, .events = POLLIN},
        {.fd = one->alarm, .events = POLLIN}};
    if (poll(ready, 3, pause_for(one)) < 0 && errno != EINTR)
        return false;
    if (ready[1].revents) {
        drain(one->wake);
        if (!see_ended(one))
            return false;
    }
    return on_time(one) && (!ready[0].revents || (receive(one, handed) && take_frames(one)));
}

/* The starter is gone: what has ended has its end in the file, the rest is killed without one. False: it is for Python. */
static bool end_all(struct shepherd *one)
{
    bool killed = false;
    if (left_memory(one->began))
        return false;
    for (int pause = 10;; pause = pause < LONGEST_PAUSE ? pause * 2 : pause) {
        struct pollfd woken = {.fd = one->wake, .events = POLLIN};
        struct ended seen;
        while ((seen = look()).pid > 0) {
            if (seen.pid == one->pid && !one->over && !killed && !write_end(one, &seen))
                return false;
            waitpid(seen.pid, NULL, 0);
        }
        if (seen.pid < 0)
            break;
        if (!kill_below(0) && !killed) /* later the task itself may have been reaped, and Python would wait for its end */
            return false;
        killed = true;
        if (poll(&woken, 1, pause) > 0)
            drain(one->wake);
    }
    if (one->spec.jobfile && one->spec.jobfile_goes)
        unlink(one->spec.jobfile);
    one->pid = 0;
    return true;
}

/* Run parts until something comes that is for Python: then what ``handed`` says of it, which is valid until the next call. */
void lava_run(struct shepherd *one, struct handed *handed)
{
    memset(handed, 0, sizeof *handed);
    one->unsent = (struct text){0};
    show(one, IDLE);
    while (turn(one, handed))
        ;
    handed->input = (struct text){one->input, one->used};
    handed->unsent = one->unsent;
    one->used = 0;
    if (!one->pid || (handed->closed && end_all(one)))
        return;
    handed->state = one->over ? ENDED : RUNNING;
    handed->pid = one->pid;
    handed->status = one->status;
    handed->told = one->told;
    handed->killing = one->pause != 0;
    handed->end_told = one->end_told;
    handed->began = one->began;
    handed->deadline = one->spec.deadline;
    end_lease(one);
    handed->template = one->template->fields;
    handed->own = one->own;
    handed->end = one->over ? one->end : (struct text){0};
    one->pid = 0;
    one->template = NULL;
}

struct shepherd *lava_shepherd(int starter, int wake, int end_file, int own_keyring, char *title, size_t title_size, long long open_files)
{
    struct shepherd *made = calloc(1, sizeof *made);
    if (!made || !(made->input = malloc(2 * CHUNK))) {
        free(made);
        return NULL;
    }
    made->size = 2 * CHUNK;
    made->starter = starter;
    made->wake = wake;
    made->end_file = end_file;
    made->own_keyring = own_keyring;
    made->title = title;
    made->title_size = title_size;
    made->open_files = open_files;
    return made;
}

/* What this was made from, as the shepherd in Python looks for it in the file (native_parts.py). */
const char lava_sources[] = "sources=" SOURCES;
