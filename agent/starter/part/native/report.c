/* What a shepherd tells of a part: reports to the starter, and the end in its file. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "native.h"

/* Seconds, as printf() makes them of whole numbers: of a double it takes ten times as long. */
#define SECONDS "%lld.%06lld"
#define IN_SECONDS(time) microseconds(time) / MILLION, microseconds(time) % MILLION
#define MILLION 1000000LL

static long long microseconds(double time)
{
    return (long long)(time * 1e6 + 0.5);
}

/* Send a report of ``size`` bytes, which lies behind HEAD bytes of ``frame``; false: the starter did not take all of it. */
bool tell(struct shepherd *one, char *frame, size_t size)
{
    for (int byte = 0; byte < HEAD; byte++)
        frame[byte] = (char)(size >> (24 - 8 * byte));
    ssize_t sent = send(one->starter, frame, HEAD + size, MSG_DONTWAIT | MSG_NOSIGNAL);
    size_t taken = sent < 0 ? 0 : (size_t)sent;
    one->unsent = (struct text){frame + taken, HEAD + size - taken};
    return !one->unsent.size;
}

bool tell_started(struct shepherd *one)
{
    size_t room = 256 + one->spec.uid.size;
    char *frame = some(&one->memory, HEAD + room);
    if (!frame)
        return false;
    int size = snprintf(frame + HEAD, room, "{\"is\":\"started\",\"uid\":\"%.*s\",\"tasks\":[{\"rank\":-1,\"pid\":%d,\"starttime\":%llu}],"
        "\"at\":" SECONDS ",\"shepherd\":%d}", (int)one->spec.uid.size, one->spec.uid.at, one->pid, start_time(one->pid),
        IN_SECONDS(one->began), getpid());
    one->told = true;
    return tell(one, frame, (size_t)size);
}

bool tell_killing(struct shepherd *one)
{
    size_t room = 64 + one->spec.uid.size;
    char *frame = some(&one->memory, HEAD + room);
    if (!frame)
        return false;
    int size = snprintf(frame + HEAD, room, "{\"is\":\"killing\",\"uid\":\"%.*s\"}", (int)one->spec.uid.size, one->spec.uid.at);
    return tell(one, frame, (size_t)size);
}

/* The end of the part, of which something is left. */
bool tell_end(struct shepherd *one)
{
    char *frame = some(&one->memory, HEAD + one->end.size);
    if (!frame)
        return false;
    memcpy(frame + HEAD, one->end.at, one->end.size);
    one->end_told = true;
    return tell(one, frame, one->end.size);
}

/* The report that nothing of the part is left, with its end where that was not told, behind HEAD bytes; NULL: there is no memory. */
char *gone_report(struct shepherd *one, size_t *size)
{
    size_t room = HEAD + one->end.size + one->spec.uid.size + 64;
    char *frame = some(&one->memory, room);
    if (!frame)
        return NULL;
    if (one->end_told)
        *size = (size_t)snprintf(frame + HEAD, room - HEAD, "{\"is\":\"gone\",\"uid\":\"%.*s\"}", (int)one->spec.uid.size, one->spec.uid.at);
    else
        *size = (size_t)snprintf(frame + HEAD, room - HEAD, "%.*s,\"gone\":true}", (int)one->end.size - 1, one->end.at);
    return frame;
}

/* As binascii.crc32. */
static uint32_t sum(struct text text)
{
    static uint32_t of_byte[256];
    uint32_t found = 0xFFFFFFFFu;
    for (uint32_t byte = 0; byte < 256 && !of_byte[255]; byte++) {
        uint32_t one = byte;
        for (int bit = 0; bit < 8; bit++)
            one = one >> 1 ^ (one & 1 ? 0xEDB88320u : 0);
        of_byte[byte] = one;
    }
    for (size_t at = 0; at < text.size; at++)
        found = of_byte[(found ^ (unsigned char)text.at[at]) & 255] ^ found >> 8;
    return ~found;
}

/* What printf() would make of them takes five times as long. */
static char *put(char *to, const char *word)
{
    size_t size = strlen(word);
    memcpy(to, word, size);
    return to + size;
}

static char *put_text(char *to, struct text text)
{
    if (text.size)
        memcpy(to, text.at, text.size);
    return to + text.size;
}

static char *put_number(char *to, long long number)
{
    char digits[24], *at = digits + sizeof digits;
    unsigned long long left = number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0)
        *--at = '-';
    return put_text(to, (struct text){at, (size_t)(digits + sizeof digits - at)});
}

/* As SECONDS. */
static char *put_seconds(char *to, double time)
{
    long long left = microseconds(time);
    char *point = put_number(to, left / MILLION), *at = point + 7;
    for (left %= MILLION; --at > point; left /= 10)
        *at = (char)('0' + left % 10);
    *point = '.';
    return point + 7;
}

static char *put_used(char *to, const struct ended *seen)
{
    to = put_seconds(put(to, "\"utime\":"), seen->user);
    to = put_seconds(put(to, ",\"stime\":"), seen->system);
    return put_number(put(to, ",\"maxrss_kb\":"), seen->peak_kb);
}

/* The end of the part, into the end file (process/ends.py) before the process is reaped; false: there is no memory. */
bool write_end(struct shepherd *one, const struct ended *seen)
{
    struct rusage own;
    double at = now();
    size_t room = 640 + one->spec.uid.size + one->spec.cwd_as_written.size;
    char *made = some(&one->memory, room), *line = some(&one->memory, room + 32);
    if (!made || !line)
        return false;
    getrusage(RUSAGE_SELF, &own);
    char *to = put_text(put(made, "{\"is\":\"ended\",\"uid\":\""), one->spec.uid);
    to = put_number(put(to, "\",\"end\":{\"status\":"), seen->status);
    to = put_seconds(put(to, ",\"at\":"), at);
    to = put_seconds(put(to, ",\"started\":"), one->began);
    to = put_used(put(to, ","), seen);
    to = put_number(put(to, ",\"tasks\":[{\"rank\":-1,\"pid\":"), seen->pid);
    to = put_number(put(to, ",\"status\":"), seen->status);
    to = put_used(put(to, ","), seen);
    to = put_seconds(put(to, ",\"at\":"), at);
    to = put_number(put(to, "}],\"first\":null,\"lease\":false,\"shepherd_kb\":"), own.ru_maxrss);
    to = put(put_text(put(to, ",\"cwd\":\""), one->spec.cwd_as_written), "\"}}");
    one->end = (struct text){made, (size_t)(to - made)};
    one->status = seen->status;
    one->over = true;
    int head = snprintf(line, 32, "{\"sum\":\"%08x\",", sum(one->end));
    to = put(put_text(line + head, (struct text){made + 1, one->end.size - 1}), "\n");
    ssize_t whole = to - line, written = write(one->end_file, line, (size_t)whole);
    if (written > 0 && written < whole)
        lseek(one->end_file, -written, SEEK_CUR); /* what a full disk takes of it is no end */
    return true;
}
