/* The shepherd's loop while its parts are single processes: from the order of a part to the report of its end.

   The parts that are not, and every other order, go to the shepherd in Python, with the part that runs. */
#include <errno.h>
#include <poll.h>
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
#define IDLE_TITLE_AFTER 50
#define KILLED_WITHIN 100
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

/* -- templates ---------------------------------------------------------------------------------------------------------- */

static struct template **find(struct shepherd *one, long long number)
{
    struct template **at = &one->templates;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

int lava_drop(struct shepherd *one, long long number)
{
    struct template **at = find(one, number), *dropped = *at;
    if (!dropped || dropped == one->template)
        return 0;
    *at = dropped->next;
    give_back(&dropped->memory, false);
    free(dropped);
    return 1;
}

int lava_template(struct shepherd *one, long long number, struct text *fields)
{
    struct template *found = *find(one, number);
    if (found)
        *fields = found->fields;
    return found != NULL;
}

static bool add_template(struct shepherd *one, long long number, struct text drop, struct text fields)
{
    struct json json = json_of(drop);
    long long dropped;
    bool first = true;
    if (!json_begins(&json, '['))
        return false;
    while (json_next(&json, ']', &first))
        if (!json_number(&json, &dropped) || !*find(one, dropped))
            return false; /* one that only Python has */
    if (!json_ended(&json) || *find(one, number))
        return false;
    struct template *made = calloc(1, sizeof *made);
    char *kept = made ? some(&made->memory, fields.size) : NULL;
    if (!kept) {
        free(made);
        return false;
    }
    json = json_of(drop);
    json_begins(&json, '[');
    first = true;
    while (json_next(&json, ']', &first) && json_number(&json, &dropped))
        lava_drop(one, dropped);
    made->number = number;
    made->fields = (struct text){memcpy(kept, fields.at, fields.size), fields.size};
    made->handled = read_template(&made->memory, made->fields, one->open_files, &made->spec);
    made->next = one->templates;
    one->templates = made;
    return true;
}

/* -- a part ------------------------------------------------------------------------------------------------------------- */

static bool begin(struct shepherd *one, long long number, struct text own)
{
    struct template *template = *find(one, number);
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
    if (!(one->pid = start(&one->memory, &one->spec)))
        return false;
    one->template = template;
    one->started_at = milliseconds();
    one->told = one->over = false;
    one->killed_at = 0;
    return true;
}

/* Kill the part that runs, if it is this one; false: it is for Python, whatever has been killed of it. */
static bool kill_part(struct shepherd *one, struct text uids)
{
    size_t size = one->spec.uid.size;
    if (!one->pid || uids.size != size + 4 || memcmp(uids.at, "[\"", 2) != 0 || memcmp(uids.at + 2, one->spec.uid.at, size) != 0
        || memcmp(uids.at + 2 + size, "\"]", 2) != 0 || !kill_below(one->pid))
        return false;
    one->killed_at = milliseconds();
    return tell_killing(one);
}

/* One frame; false: it is for Python. */
static bool obey(struct shepherd *one, struct text frame)
{
    struct json json = json_of(frame);
    struct text key, kind = {0}, drop = {0}, fields = {0}, own = {0}, uids = {0};
    long long number = -1;
    bool first = true, posts;
    if (!json_begins(&json, '{'))
        return false;
    while (json_next(&json, '}', &first)) {
        if (!json_key(&json, &key))
            return false;
        if (is(key, "do") ? !json_string(&json, &kind)
            : is(key, "t") ? !json_number(&json, &number)
            : is(key, "drop") ? !json_any(&json, &drop)
            : is(key, "fields") ? !json_any(&json, &fields)
            : is(key, "uids") ? !json_any(&json, &uids)
            : is(key, "posts") ? !json_true(&json, &posts) /* a part with a command after it is not handled here */
            : !is(key, "p") || !json_any(&json, &own))
            return false;
    }
    if (!json_ended(&json))
        return false;
    if (is(kind, "kill"))
        return kill_part(one, uids);
    if (one->pid || number < 0)
        return false;
    if (is(kind, "template"))
        return drop.size && fields.size && add_template(one, number, drop, fields);
    return is(kind, "part") && own.size && begin(one, number, own);
}

/* The part is gone: its report, with nothing left of it. Without memory for the report all of this is Python's. */
static bool finish(struct shepherd *one)
{
    char *frame = some(&one->memory, HEAD + one->end.size + 16);
    if (!frame)
        return false;
    memcpy(frame + HEAD, one->end.at, one->end.size - 1);
    memcpy(frame + HEAD + one->end.size - 1, ",\"gone\":true}", 13);
    if (one->spec.jobfile && one->spec.jobfile_goes)
        unlink(one->spec.jobfile);
    if (one->own_keyring && syscall(SYS_keyctl, CLEAR_KEYRING, SESSION_KEYRING, 0, 0, 0) < 0)
        new_keyring();
    one->pid = 0;
    one->template = NULL;
    one->idle_at = milliseconds() + IDLE_TITLE_AFTER;
    return tell(one, frame, one->end.size + 12);
}

/* Look at ended children; false: Python is to go on. */
static bool see_ended(struct shepherd *one)
{
    for (;;) {
        struct ended seen = look();
        if (seen.pid == 0)
            return !one->over || one->killed_at; /* the task has ended and left others behind */
        if (seen.pid < 0) /* after a failure there may be more to be done */
            return one->over && ((one->status == 0 && !one->killed_at) || !left_memory(one->began)) && finish(one);
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
    int64_t due = one->pid ? (one->told ? 0 : one->started_at + STARTED_AFTER) : one->idle_at;
    if (one->pid && one->killed_at && (!due || one->killed_at + KILLED_WITHIN < due))
        due = one->killed_at + KILLED_WITHIN;
    if (!due)
        return -1;
    int64_t left = due - milliseconds();
    return left > 0 ? (int)left : 0;
}

/* A time has come; false as ``tell``. */
static bool on_time(struct shepherd *one)
{
    int64_t time = milliseconds();
    if (one->pid && one->killed_at && time >= one->killed_at + KILLED_WITHIN)
        return false; /* something of it is left */
    if (one->pid)
        return one->told || time < one->started_at + STARTED_AFTER || tell_started(one);
    if (one->idle_at && time >= one->idle_at) {
        show(one, "(idle)");
        one->idle_at = 0;
    }
    return true;
}

static bool turn(struct shepherd *one, struct handed *handed)
{
    struct pollfd ready[2] = {{.fd = one->starter, .events = POLLIN}, {.fd = one->wake, .events = POLLIN}};
    if (poll(ready, 2, pause_for(one)) < 0 && errno != EINTR)
        return false;
    if (ready[1].revents) {
        char passed[256];
        while (read(one->wake, passed, sizeof passed) == (ssize_t)sizeof passed)
            ;
        if (one->pid && !see_ended(one))
            return false;
    }
    return on_time(one) && (!ready[0].revents || (receive(one, handed) && take_frames(one)));
}

/* Run parts until something comes that is for Python: then what ``handed`` says of it, which is valid until the next call. */
void lava_run(struct shepherd *one, struct handed *handed)
{
    memset(handed, 0, sizeof *handed);
    one->unsent = (struct text){0};
    one->idle_at = milliseconds() + IDLE_TITLE_AFTER;
    while (turn(one, handed))
        ;
    handed->input = (struct text){one->input, one->used};
    handed->unsent = one->unsent;
    one->used = 0;
    if (!one->pid)
        return;
    handed->state = one->over ? ENDED : RUNNING;
    handed->pid = one->pid;
    handed->status = one->status;
    handed->told = one->told;
    handed->killing = one->killed_at != 0;
    handed->began = one->began;
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
