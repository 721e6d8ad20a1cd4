/* The description of a part (protocol/part.py), of those that are one process without anything around it. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define UNLIMITED RLIM_INFINITY

static const struct {
    const char *name;
    int number;
} LIMITS[] = {
    {"AS", RLIMIT_AS}, {"CORE", RLIMIT_CORE}, {"CPU", RLIMIT_CPU}, {"DATA", RLIMIT_DATA}, {"FSIZE", RLIMIT_FSIZE},
    {"MEMLOCK", RLIMIT_MEMLOCK}, {"NOFILE", RLIMIT_NOFILE}, {"NPROC", RLIMIT_NPROC}, {"RSS", RLIMIT_RSS}, {"STACK", RLIMIT_STACK},
};

#define SMALLEST_VARIABLE 6 /* as JSON: "N":"" */
#define GRACE 2.0 /* seconds, as protocol/part.py */
#define LONGEST_GRACE 1e9

/* Fields that the starter or the agent reads, or that matter once a shepherd in Python has taken the part over. */
static bool is_of_others(struct text key)
{
    return is(key, "user") || is(key, "key") || is(key, "attempt") || is(key, "t") || is(key, "cwd_else") || is(key, "cgroup")
        || is(key, "post_always") || is(key, "clean_scratch");
}

static bool decoded(struct memory *memory, struct json *json, char **found)
{
    struct text raw;
    return json_string(json, &raw) && (*found = json_decoded(memory, "", raw, NULL));
}

/* The number of the variable's bit, of its name with the = behind it. */
static unsigned bit_of(const char *name, size_t size)
{
    unsigned found = 0;
    for (size_t at = 0; at < size; at++)
        found = 31 * found + (unsigned char)name[at];
    return found % 256;
}

/* Where the variable is among the first ``count``, or ``count``. It gets its bit. */
static size_t place_of(struct spec *spec, size_t count, const char *name, size_t size)
{
    unsigned bit = bit_of(name, size);
    size_t at = spec->names[bit / 64] >> bit % 64 & 1 ? 0 : count;
    spec->names[bit / 64] |= (uint64_t)1 << bit % 64;
    while (at < count && strncmp(spec->env[at], name, size) != 0)
        at++;
    return at;
}

static bool read_env(struct memory *memory, struct json *json, struct spec *spec)
{
    struct text name, raw;
    size_t size, before = spec->variables;
    size_t most = before + (size_t)(json->end - json->at) / SMALLEST_VARIABLE + 1;
    bool first = true;
    char **env = some(memory, most * sizeof *env);
    if (!env || !json_begins(json, '{'))
        return false;
    if (before)
        memcpy(env, spec->env, before * sizeof *env);
    spec->env = env;
    while (json_next(json, '}', &first)) {
        if (!json_key(json, &name) || !json_string(json, &raw))
            return false;
        char *with_name = json_decoded(memory, "", name, &size);
        if (!with_name || !size || strchr(with_name, '='))
            return false;
        with_name[size++] = '=';
        with_name[size] = 0;
        size_t at = place_of(spec, before, with_name, size);
        if (!(env[at < before ? at : spec->variables++] = json_decoded(memory, with_name, raw, NULL)))
            return false;
    }
    return !json->bad;
}

static bool read_argv(struct memory *memory, struct json *json, struct spec *spec)
{
    struct text value, passed;
    size_t words = 0;
    bool first = true;
    if (!json_any(json, &value))
        return false;
    struct json list = json_of(value);
    if (!json_begins(&list, '['))
        return false;
    for (; json_next(&list, ']', &first); words++)
        if (!json_string(&list, &passed))
            return false;
    spec->argv = some(memory, (words + 1) * sizeof *spec->argv);
    if (!spec->argv || !json_ended(&list) || !words)
        return false;
    list = json_of(value);
    json_begins(&list, '[');
    first = true;
    for (size_t at = 0; json_next(&list, ']', &first); at++)
        if (!decoded(memory, &list, &spec->argv[at]))
            return false;
    spec->argv[words] = NULL;
    return *spec->argv[0] != 0;
}

static bool read_file(struct memory *memory, struct json *json, struct file *file)
{
    struct text key;
    bool first = true, makes_folder = false;
    *file = (struct file){0};
    if (!json_begins(json, '{'))
        return false;
    while (json_next(json, '}', &first)) {
        if (!json_key(json, &key))
            return false;
        if (is(key, "path") ? !decoded(memory, json, &file->path)
            : is(key, "append") ? !json_true(json, &file->append)
            : !is(key, "mkdir") || !json_true(json, &makes_folder))
            return false;
    }
    if (makes_folder) /* whose folder that is, is looked at in Python */
        return false;
    if (file->path && !*file->path)
        file->path = NULL;
    return true;
}

static bool read_jobfile(struct memory *memory, struct json *json, struct spec *spec)
{
    struct text key, raw;
    long long mode;
    bool first = true;
    spec->jobfile_mode = 0700;
    spec->jobfile_goes = false;
    spec->jobfile = NULL;
    if (!json_begins(json, '{'))
        return false;
    while (json_next(json, '}', &first)) {
        if (!json_key(json, &key))
            return false;
        if (is(key, "path")) {
            if (!decoded(memory, json, &spec->jobfile))
                return false;
        } else if (is(key, "mode")) {
            if (!json_number(json, &mode) || mode < 0 || mode > 07777)
                return false;
            spec->jobfile_mode = (mode_t)mode;
        } else if (is(key, "remove")) {
            if (!json_true(json, &spec->jobfile_goes))
                return false;
        } else if (!is(key, "text") || !json_string(json, &raw) || raw.size)
            return false;
    }
    return spec->jobfile && *spec->jobfile;
}

/* One process without a rank, with nothing of its own. */
static bool read_tasks(struct json *json)
{
    struct text key;
    long long rank = 0;
    bool first = true, first_field = true;
    if (!json_begins(json, '[') || !json_next(json, ']', &first) || !json_begins(json, '{'))
        return false;
    while (json_next(json, '}', &first_field)) {
        if (!json_key(json, &key))
            return false;
        if (is(key, "rank") ? !json_number(json, &rank) : !is(key, "env") || !json_begins(json, '{') || !json_begins(json, '}'))
            return false;
    }
    return rank == -1 && !json_next(json, ']', &first);
}

static rlim_t lesser(rlim_t one, rlim_t other)
{
    return one == UNLIMITED ? other : other == UNLIMITED || one < other ? one : other;
}

static bool add_limit(struct spec *spec, int number, long long soft, long long hard)
{
    struct rlimit present, wanted;
    if (getrlimit(number, &present) != 0)
        return false;
    wanted.rlim_max = lesser(hard < 0 ? UNLIMITED : (rlim_t)hard, present.rlim_max);
    wanted.rlim_cur = lesser(soft < 0 ? UNLIMITED : (rlim_t)soft, wanted.rlim_max);
    if (wanted.rlim_cur == present.rlim_cur && wanted.rlim_max == present.rlim_max)
        return true;
    if (spec->limit_count == MOST_LIMITS)
        return false;
    spec->limits[spec->limit_count++] = (struct limit){number, wanted};
    return true;
}

static bool read_limits(struct json *json, long long open_files, struct spec *spec)
{
    struct text key;
    bool first = true, none;
    spec->limit_count = 0;
    if (!json_begins(json, '{'))
        return false;
    while (json_next(json, '}', &first)) {
        long long pair[2];
        size_t at = 0;
        if (!json_key(json, &key) || !json_begins(json, '['))
            return false;
        none = true;
        for (int count = 0; count < 2; count++)
            if (!json_next(json, ']', &none) || !json_number(json, &pair[count]))
                return false;
        if (json_next(json, ']', &none))
            return false;
        while (at < sizeof LIMITS / sizeof *LIMITS && !is(key, LIMITS[at].name))
            at++;
        if (at == sizeof LIMITS / sizeof *LIMITS || !add_limit(spec, LIMITS[at].number, pair[0], pair[1]))
            return false;
        if (LIMITS[at].number == RLIMIT_NOFILE)
            open_files = -1;
    }
    return open_files < 0 || add_limit(spec, RLIMIT_NOFILE, open_files, -1);
}

/* Fields with which a part is only handled here if they are empty. */
static bool read_empty(struct json *json, struct text key)
{
    bool value = false;
    struct text raw;
    if (is(key, "two_phase") || is(key, "notes") || is(key, "label"))
        return json_true(json, &value) && !value;
    return json_any(json, &raw) && is(key, "secrets") && is(raw, "{}");
}

/* That of a part whose lease has passed before is Python's, which says so. */
static bool read_deadline(struct json *json, struct spec *spec)
{
    struct json none = *json;
    struct text raw;
    spec->deadline = 0;
    if (json_any(&none, &raw) && is(raw, "null")) {
        *json = none;
        return true;
    }
    return json_real(json, &spec->deadline) && spec->deadline > 0;
}

static bool read_field(struct memory *memory, struct json *json, struct text key, long long open_files, struct spec *spec)
{
    struct text raw;
    long long number;
    if (is_of_others(key))
        return json_any(json, &raw);
    if (is(key, "env"))
        return read_env(memory, json, spec);
    if (is(key, "argv"))
        return read_argv(memory, json, spec);
    if (is(key, "uid"))
        return json_string(json, &spec->uid) && !memchr(spec->uid.at, '\\', spec->uid.size);
    if (is(key, "title"))
        return json_string(json, &raw) && !memchr(raw.at, '\\', raw.size) && (spec->title = json_decoded(memory, "", raw, NULL));
    if (is(key, "cwd"))
        return json_string(json, &spec->cwd_as_written) && spec->cwd_as_written.size
            && (spec->cwd = json_decoded(memory, "", spec->cwd_as_written, NULL));
    if (is(key, "umask") && json_number(json, &number) && number >= 0 && number <= 07777) {
        spec->mask = (mode_t)number;
        return true;
    }
    if (is(key, "nice") && json_number(json, &number) && number >= -100 && number <= 100) {
        spec->nice = (int)number;
        return true;
    }
    if (is(key, "rlimits"))
        return read_limits(json, open_files, spec);
    if (is(key, "stdin"))
        return decoded(memory, json, &spec->input);
    if (is(key, "stdout"))
        return read_file(memory, json, &spec->out);
    if (is(key, "stderr"))
        return (spec->has_err = read_file(memory, json, &spec->err));
    if (is(key, "script"))
        return json_string(json, &raw) && (spec->script = json_decoded(memory, "", raw, &spec->script_size));
    if (is(key, "jobfile"))
        return read_jobfile(memory, json, spec);
    if (is(key, "tasks"))
        return read_tasks(json);
    if (is(key, "deadline"))
        return read_deadline(json, spec);
    if (is(key, "grace"))
        return json_real(json, &spec->grace) && spec->grace >= 0 && spec->grace <= LONGEST_GRACE;
    return read_empty(json, key);
}

static bool read_fields(struct memory *memory, struct text fields, long long open_files, struct spec *spec)
{
    struct json json = json_of(fields);
    struct text key;
    bool first = true;
    if (!json_begins(&json, '{'))
        return false;
    while (json_next(&json, '}', &first))
        if (!json_key(&json, &key) || !read_field(memory, &json, key, open_files, spec))
            return false;
    return json_ended(&json);
}

bool read_template(struct memory *memory, struct text fields, long long open_files, struct spec *found)
{
    *found = (struct spec){.cwd = "/", .cwd_as_written = {"/", 1}, .mask = 022, .grace = GRACE};
    if (open_files >= 0 && !add_limit(found, RLIMIT_NOFILE, open_files, -1))
        return false;
    return read_fields(memory, fields, open_files, found);
}

/* A part: what it has in common with others, and its own fields over that. */
bool read_part(struct memory *memory, const struct spec *made, struct text own, long long open_files, struct spec *found)
{
    static const char NAME[] = "LAVA_ATTEMPT=";
    *found = *made;
    if (!read_fields(memory, own, open_files, found) || !found->uid.size || !found->argv)
        return false;
    size_t variables = found->variables;
    char **env = some(memory, (variables + 2) * sizeof *env);
    char *attempt = json_decoded(memory, NAME, found->uid, NULL);
    if (!env || !attempt || (found->jobfile && !found->script))
        return false;
    if (variables)
        memcpy(env, found->env, variables * sizeof *env);
    found->env = env;
    size_t at = place_of(found, variables, NAME, sizeof NAME - 1);
    env[at] = attempt;
    env[at < variables ? variables : variables + 1] = NULL;
    found->title = found->title && *found->title ? found->title : attempt + sizeof NAME - 1;
    return true;
}
