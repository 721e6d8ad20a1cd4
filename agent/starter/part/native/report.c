/* What a shepherd tells of a part: reports to the starter, and the end in its file. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "native.h"

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
        "\"at\":%.6f,\"shepherd\":%d}", (int)one->spec.uid.size, one->spec.uid.at, one->pid, start_time(one->pid), one->began, getpid());
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

static uint32_t sum(struct text text)
{
    uint32_t found = 0xFFFFFFFFu;
    for (size_t at = 0; at < text.size; at++) {
        found ^= (unsigned char)text.at[at];
        for (int bit = 0; bit < 8; bit++)
            found = (found & 1 ? 0xEDB88320u : 0) ^ found >> 1;
    }
    return ~found;
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
    int size = snprintf(made, room, "{\"is\":\"ended\",\"uid\":\"%.*s\",\"end\":{\"status\":%d,\"at\":%.6f,\"started\":%.6f,\"utime\":%.6f,"
        "\"stime\":%.6f,\"maxrss_kb\":%ld,\"tasks\":[{\"rank\":-1,\"pid\":%d,\"status\":%d,\"utime\":%.6f,\"stime\":%.6f,\"maxrss_kb\":%ld,"
        "\"at\":%.6f}],\"first\":null,\"lease\":false,\"shepherd_kb\":%ld,\"cwd\":\"%.*s\"}}",
        (int)one->spec.uid.size, one->spec.uid.at, seen->status, at, one->began, seen->user, seen->system, seen->peak_kb,
        seen->pid, seen->status, seen->user, seen->system, seen->peak_kb, at, own.ru_maxrss,
        (int)one->spec.cwd_as_written.size, one->spec.cwd_as_written.at);
    one->end = (struct text){made, (size_t)size};
    one->status = seen->status;
    one->over = true;
    int whole = snprintf(line, room + 32, "{\"sum\":\"%08x\",%s\n", sum(one->end), made + 1);
    ssize_t written = write(one->end_file, line, (size_t)whole);
    if (written > 0 && written < whole)
        lseek(one->end_file, -written, SEEK_CUR); /* what a full disk takes of it is no end */
    return true;
}
