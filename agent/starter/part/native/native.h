/* What the parts of the library share. Every function leaves to the shepherd in Python what it does not handle itself. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#if __SIZEOF_LONG__ != 8
#error "written for machines of 64 bits"
#endif

/* memory.c: memory that is given back as a whole */
struct memory {
    struct block *blocks;
};
void *some(struct memory *memory, size_t size); /* NULL: there is none */
void give_back(struct memory *memory, bool keep);

/* json.c: text of JSON, read from the front */
struct text {
    const char *at;
    size_t size;
};
struct json {
    const char *at, *end;
    bool bad;
};
struct json json_of(struct text text);
bool is(struct text text, const char *word);
bool json_begins(struct json *json, char bracket);
bool json_next(struct json *json, char bracket, bool *first); /* false: the list or object has ended, or is none */
bool json_key(struct json *json, struct text *key);
bool json_string(struct json *json, struct text *raw); /* as it is written, without its quotes */
bool json_number(struct json *json, long long *number);
bool json_true(struct json *json, bool *value);
bool json_any(struct json *json, struct text *raw);
bool json_ended(struct json *json);
char *json_decoded(struct memory *memory, const char *before, struct text raw, size_t *size);

/* spec.c: what a part is */
#define MOST_LIMITS 16
struct limit {
    int number;
    struct rlimit value;
};
struct file {
    char *path; /* NULL: /dev/null */
    bool append;
};
struct spec {
    char **env;
    size_t variables;
    char **argv;
    char *cwd;
    struct text cwd_as_written;
    mode_t mask;
    int nice;
    struct limit limits[MOST_LIMITS];
    int limit_count;
    char *input;
    struct file out, err;
    bool has_err;
    char *script;
    size_t script_size;
    char *jobfile;
    mode_t jobfile_mode;
    bool jobfile_goes;
    char *title;
    struct text uid;
};
bool read_template(struct memory *memory, struct text fields, long long open_files, struct spec *found);
bool read_part(struct memory *memory, const struct spec *made, struct text own, long long open_files, struct spec *found);

/* start.c: a process, from its files to its end */
struct ended {
    pid_t pid; /* 0: none has ended, -1: there is no child */
    int status;
    double user, system;
    long peak_kb;
};
pid_t start(struct memory *memory, const struct spec *spec); /* 0: it could not be started, and nothing of it is left */
struct ended look(void);
unsigned long long start_time(pid_t pid);
double now(void);

/* serve.c: a shepherd */
struct template {
    struct template *next;
    long long number;
    struct memory memory;
    struct text fields;
    struct spec spec;
    bool handled; /* parts with it are, unless they have more of their own */
};

struct shepherd {
    int starter, wake, end_file, own_keyring;
    char *title;
    size_t title_size;
    long long open_files;
    struct template *templates;
    char *input;
    size_t size, used;
    int64_t idle_at; /* when it is shown as idle, 0: it is */
    struct memory memory; /* of the part */
    struct spec spec;
    struct template *template;
    struct text own, end;
    pid_t pid; /* 0: no part runs */
    int status;
    double began;
    int64_t started_at;
    bool told, over;
    int64_t killed_at; /* when it was killed, 0: it was not */
    struct text unsent;
};

/* report.c: what it tells */
#define HEAD 4 /* bytes of a frame before its report */
bool tell(struct shepherd *one, char *frame, size_t size);
bool tell_started(struct shepherd *one);
bool tell_killing(struct shepherd *one);
bool write_end(struct shepherd *one, const struct ended *seen);

/* kill.c */
bool kill_below(pid_t child);
bool left_memory(double since);

/* serve.c: its loop */
struct handed;
long new_keyring(void);
struct shepherd *lava_shepherd(int starter, int wake, int end_file, int own_keyring, char *title, size_t title_size, long long open_files);
void lava_run(struct shepherd *one, struct handed *handed);

/* What is left to the shepherd in Python */
struct handed {
    int state; /* of the part: NONE, RUNNING or ENDED */
    int closed; /* the starter is gone */
    int pid, status;
    int told; /* its start was reported */
    int killing;
    double began;
    struct text input; /* from the starter, not read yet */
    struct text unsent; /* for the starter */
    struct text template, own; /* of the part */
    struct text end; /* its report */
};
enum { NONE, RUNNING, ENDED };
