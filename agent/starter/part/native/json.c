/* JSON as starter and shepherd write it: ASCII, a character above it as \uXXXX, a byte that is no UTF-8 as the lone half of a pair. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define DEEPEST 64

struct json json_of(struct text text)
{
    return (struct json){text.at, text.at + text.size, false};
}

static void pass_blanks(struct json *json)
{
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r'))
        json->at++;
}

static bool pass(struct json *json, char expected)
{
    pass_blanks(json);
    if (json->at == json->end || *json->at != expected)
        return false;
    json->at++;
    return true;
}

bool json_begins(struct json *json, char bracket)
{
    return pass(json, bracket);
}

bool json_next(struct json *json, char bracket, bool *first)
{
    if (pass(json, bracket))
        return false;
    bool was_first = *first;
    *first = false;
    if (was_first || pass(json, ','))
        return true;
    json->bad = true;
    return false;
}

bool json_key(struct json *json, struct text *key)
{
    return json_string(json, key) && pass(json, ':');
}

bool json_string(struct json *json, struct text *raw)
{
    if (!pass(json, '"'))
        return false;
    raw->at = json->at;
    for (const char *at = json->at, *end = json->end; at < end && (unsigned char)*at >= ' '; at++) {
        if (*at == '"') {
            raw->size = (size_t)(at - raw->at);
            json->at = at + 1;
            return true;
        }
        if (*at == '\\' && ++at == end)
            return false;
    }
    return false;
}

bool json_number(struct json *json, long long *number)
{
    pass_blanks(json);
    bool minus = json->at < json->end && *json->at == '-';
    const char *begin = json->at += minus;
    long long found = 0;
    for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++)
        if (__builtin_mul_overflow(found, 10, &found) || __builtin_add_overflow(found, *json->at - '0', &found))
            return false;
    if (json->at == begin || (json->at < json->end && strchr(".eE", *json->at)))
        return false;
    *number = minus ? -found : found;
    return true;
}

bool json_real(struct json *json, double *number)
{
    char text[64], *end;
    struct text raw;
    if (!json_any(json, &raw) || raw.size >= sizeof text)
        return false;
    memcpy(text, raw.at, raw.size);
    text[raw.size] = 0;
    if (strspn(text, "+-.0123456789eE") < raw.size)
        return false;
    *number = strtod(text, &end);
    return end == text + raw.size && raw.size;
}

static bool word(struct json *json, const char *expected)
{
    size_t size = strlen(expected);
    pass_blanks(json);
    if ((size_t)(json->end - json->at) < size || memcmp(json->at, expected, size) != 0)
        return false;
    json->at += size;
    return true;
}

bool json_true(struct json *json, bool *value)
{
    *value = word(json, "true");
    return *value || word(json, "false");
}

static bool pass_any(struct json *json, int depth)
{
    struct text passed;
    bool first = true;
    pass_blanks(json);
    if (json->at == json->end || depth > DEEPEST)
        return false;
    char begin = *json->at, end = begin == '{' ? '}' : ']';
    if (begin == '"')
        return json_string(json, &passed);
    if (begin != '{' && begin != '[') {
        const char *from = json->at;
        while (json->at < json->end && !strchr(",]} \n\t\r", *json->at))
            json->at++;
        return json->at > from;
    }
    json->at++;
    while (json_next(json, end, &first))
        if ((begin == '{' && !json_key(json, &passed)) || !pass_any(json, depth + 1))
            return false;
    return !json->bad;
}

bool json_any(struct json *json, struct text *raw)
{
    pass_blanks(json);
    raw->at = json->at;
    bool found = pass_any(json, 0);
    raw->size = (size_t)(json->at - raw->at);
    return found;
}

bool json_ended(struct json *json)
{
    pass_blanks(json);
    return !json->bad && json->at == json->end;
}

static int hex(const char *at, const char *end)
{
    int found = 0;
    if (end - at < 4)
        return -1;
    for (int digit = 0; digit < 4; digit++) {
        char one = at[digit];
        int value = one >= '0' && one <= '9' ? one - '0' : one >= 'a' && one <= 'f' ? one - 'a' + 10
            : one >= 'A' && one <= 'F' ? one - 'A' + 10 : -1;
        if (value < 0)
            return -1;
        found = found << 4 | value;
    }
    return found;
}

static char *put(char *to, unsigned long code)
{
    if (code < 0x80)
        *to++ = (char)code;
    else if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (char)(0xE0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    } else {
        *to++ = (char)(0xF0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3F));
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    }
    return to;
}

/* What \uXXXX stands for, or NULL: no text that the kernel could be given. ``at`` is behind the u, and then behind it all. */
static char *put_escaped(char *to, const char **at, const char *end)
{
    int code = hex(*at, end), low = -1;
    if (code <= 0)
        return NULL;
    *at += 4;
    if (code >= 0xD800 && code < 0xDC00) {
        if (end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u')
            low = hex(*at + 2, end);
        if (low < 0xDC00 || low > 0xDFFF)
            return NULL;
        *at += 6;
        return put(to, 0x10000 + ((unsigned long)(code - 0xD800) << 10) + (unsigned long)(low - 0xDC00));
    }
    if (code >= 0xDC80 && code <= 0xDCFF)
        *to++ = (char)(code - 0xDC00);
    else if (code >= 0xDC00 && code <= 0xDFFF)
        return NULL;
    else
        to = put(to, (unsigned long)code);
    return to;
}

static bool has_escapes(struct text raw)
{
    return raw.size && memchr(raw.at, '\\', raw.size);
}

static bool is_ascii(struct text raw)
{
    uint64_t eight, high = 0;
    size_t at = 0;
    for (; raw.size - at >= sizeof eight; at += sizeof eight) {
        memcpy(&eight, raw.at + at, sizeof eight);
        high |= eight;
    }
    for (; at < raw.size; at++)
        high |= (unsigned char)raw.at[at];
    return !(high & 0x8080808080808080u);
}

/* The text behind ``before``, ended by a zero with room for one character more; NULL where it has a zero in it, is no text or there is
   no memory. */
char *json_decoded(struct memory *memory, const char *before, struct text raw, size_t *size)
{
    static const char escaped[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    size_t prefix = strlen(before);
    char *made = some(memory, prefix + raw.size + 2), *to = made;
    if (!made)
        return NULL;
    memcpy(to, before, prefix);
    to += prefix;
    if (!is_ascii(raw))
        return NULL;
    if (!has_escapes(raw)) {
        if (raw.size)
            memcpy(to, raw.at, raw.size);
        to[raw.size] = 0;
        if (size)
            *size = prefix + raw.size;
        return made;
    }
    for (const char *at = raw.at, *end = raw.at + raw.size; at < end;) {
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        if (at + 1 == end)
            return NULL;
        char kind = at[1];
        at += 2;
        if (kind == 'u') {
            if (!(to = put_escaped(to, &at, end)))
                return NULL;
            continue;
        }
        const char *pair = escaped;
        while (*pair && *pair != kind)
            pair += 2;
        if (!*pair)
            return NULL;
        *to++ = pair[1];
    }
    *to = 0;
    if (size)
        *size = (size_t)(to - made);
    return made;
}
