/* Reads frames as a shepherd without Python does, and prints what it would run: for test_native_parsers.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

static void put(const char *text, size_t size)
{
    putchar(' ');
    for (size_t at = 0; at < size; at++)
        printf("%02x", (unsigned char)text[at]);
}

static void put_string(const char *text)
{
    if (text)
        put(text, strlen(text));
    else
        fputs(" none", stdout);
}

static void put_strings(char *const *texts)
{
    size_t count = 0;
    while (texts[count])
        count++;
    printf(" %zu", count);
    for (size_t at = 0; at < count; at++)
        put_string(texts[at]);
}

static void put_part(const struct spec *spec)
{
    fputs("part", stdout);
    put(spec->uid.at, spec->uid.size);
    put_string(spec->title);
    put_strings(spec->env);
    put_strings(spec->argv);
    put_string(spec->cwd);
    printf(" %u %d %.17g", spec->mask, spec->nice, spec->deadline);
    put_string(spec->input);
    put_string(spec->out.path);
    printf(" %d", spec->out.append);
    if (spec->has_err) {
        put_string(spec->err.path);
        printf(" %d", spec->err.append);
    }
    if (spec->jobfile) {
        put_string(spec->jobfile);
        printf(" %o %d", spec->jobfile_mode, spec->jobfile_goes);
        put(spec->script, spec->script_size);
    }
    for (int at = 0; at < spec->limit_count; at++)
        printf(" %d=%lld,%lld", spec->limits[at].number, (long long)spec->limits[at].value.rlim_cur,
            (long long)spec->limits[at].value.rlim_max);
}

static void obey(struct shepherd *one, struct text frame)
{
    struct order order;
    struct template *template;
    if (!read_order(frame, &order))
        fputs("python", stdout);
    else if (is(order.kind, "template") && order.number >= 0 && order.drop.size && order.fields.size)
        fputs(add_template(one, order.number, order.drop, order.fields) && one->templates->handled ? "template" : "python", stdout);
    else if (is(order.kind, "part") && order.own.size && (template = find_template(one, order.number)) && template->handled) {
        char *kept = malloc(order.own.size);
        struct text own = {memcpy(kept, order.own.at, order.own.size), order.own.size};
        if (read_part(&one->memory, &template->spec, own, -1, &one->spec)) {
            put_part(&one->spec);
            begin_lease(one);
            renew_lease(one, one->spec.deadline + 1);
            end_lease(one);
        } else
            fputs("python", stdout);
        give_back(&one->memory, false);
        free(kept);
    } else {
        printf("%s %.*s %lld %.17g %.*s", order.uids.size ? "order" : "python", (int)order.kind.size, order.kind.at, order.signal,
            order.deadline, (int)order.uids.size, order.uids.at);
    }
    putchar('\n');
}

int lava_drop(struct shepherd *one, long long number);

int main(void)
{
    struct shepherd one = {.open_files = -1};
    unsigned char head[4];
    while (fread(head, 1, 4, stdin) == 4) {
        size_t size = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
        char *frame = malloc(size ? size : 1); /* of exactly its size: what is read behind it is seen */
        if (fread(frame, 1, size, stdin) != size)
            return 1;
        obey(&one, (struct text){frame, size});
        free(frame);
    }
    while (one.templates)
        lava_drop(&one, one.templates->number);
    return 0;
}
