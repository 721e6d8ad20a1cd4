/* What the starter says to a shepherd: its orders, and the templates that parts share. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

static struct template **place_of(struct shepherd *one, long long number)
{
    struct template **at = &one->templates;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

struct template *find_template(struct shepherd *one, long long number)
{
    return *place_of(one, number);
}

int lava_drop(struct shepherd *one, long long number)
{
    struct template **at = place_of(one, number), *dropped = *at;
    if (!dropped || dropped == one->template)
        return 0;
    *at = dropped->next;
    give_back(&dropped->memory, false);
    free(dropped);
    return 1;
}

int lava_template(struct shepherd *one, long long number, struct text *fields)
{
    struct template *found = *place_of(one, number);
    if (found)
        *fields = found->fields;
    return found != NULL;
}

bool add_template(struct shepherd *one, long long number, struct text drop, struct text fields)
{
    struct json json = json_of(drop);
    long long dropped;
    bool first = true;
    if (!json_begins(&json, '['))
        return false;
    while (json_next(&json, ']', &first))
        if (!json_number(&json, &dropped) || !*place_of(one, dropped))
            return false; /* one that only Python has */
    if (!json_ended(&json) || *place_of(one, number))
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

bool read_order(struct text frame, struct order *order)
{
    struct json json = json_of(frame);
    struct text key;
    bool first = true, posts;
    *order = (struct order){.number = -1};
    if (!json_begins(&json, '{'))
        return false;
    while (json_next(&json, '}', &first)) {
        if (!json_key(&json, &key))
            return false;
        if (is(key, "do") ? !json_string(&json, &order->kind)
            : is(key, "t") ? !json_number(&json, &order->number)
            : is(key, "drop") ? !json_any(&json, &order->drop)
            : is(key, "fields") ? !json_any(&json, &order->fields)
            : is(key, "uids") ? !json_any(&json, &order->uids)
            : is(key, "posts") ? !json_true(&json, &posts) /* a part with a command after it is not handled here */
            : is(key, "sig") ? !json_number(&json, &order->signal)
            : is(key, "scope") ? !json_string(&json, &order->scope)
            : is(key, "deadline") ? !json_real(&json, &order->deadline)
            : !is(key, "p") || !json_any(&json, &order->own))
            return false;
    }
    return json_ended(&json);
}
