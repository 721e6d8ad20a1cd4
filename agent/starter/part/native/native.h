/* What the parts of the library share. Every function leaves to the shepherd in Python what it does not handle itself. */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
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
static inline bool is(struct text text, const char *word) /* of a literal the size is known when this is compiled */
{
    return text.size == strlen(word) && memcmp(text.at, word, text.size) == 0;
}
bool json_begins(struct json *json, char bracket);
bool json_next(struct json *json, char bracket, bool *first); /* false: the list or object has ended, or is none */
bool json_key(struct json *json, struct text *key);
bool json_string(struct json *json, struct text *raw); /* as it is written, without its quotes */
bool json_number(struct json *json, long long *number);
bool json_real(struct json *json, double *number);
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
#define MASK 128 /* bytes: of CPUs, and of NUMA nodes */
struct binding {
    const char *cpus, *nodes; /* NULL: none */
    int call, mode; /* of set_mempolicy */
    int no_cpus, no_nodes; /* why it could not be bound, as errno */
};
struct spec {
    char **env;
    size_t variables;
    uint64_t names[4]; /* of its variables: a bit for each, perhaps the same one for several */
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
    struct binding *binding; /* NULL: none */
    char *title;
    struct text uid;
    double deadline; /* of its lease, in seconds of CLOCK_BOOTTIME; 0: it has none */
    double grace; /* seconds that what its task leaves behind has to end by itself */
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
struct files {
    int in, out, err;
    int kept; /* one that it inherits as it is, -1: none */
};
void signals_are_held(const sigset_t *before);
pid_t vforked(const struct spec *spec, const struct files *files, char *const *programs, const sigset_t *mask);
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
    struct memory memory; /* of the part */
    struct spec spec;
    struct template *template;
    struct text own, end;
    pid_t pid; /* 0: no part runs */
    int status;
    double began;
    int64_t started_at;
    bool told, over, end_told;
    int64_t again_at; /* when it is looked at again what is left of it, 0: not */
    int64_t pause; /* before it is killed again, 0: it was not killed */
    int alarm; /* rings when its lease passes, -1: it has none */
    struct text unsent;
};

/* report.c: what it tells */
#define HEAD 4 /* bytes of a frame before its report */
bool tell(struct shepherd *one, char *frame, size_t size);
bool tell_started(struct shepherd *one);
bool tell_killing(struct shepherd *one);
bool tell_end(struct shepherd *one);
char *gone_report(struct shepherd *one, size_t *size);
bool write_end(struct shepherd *one, const struct ended *seen);

/* kill.c */
bool kill_below(pid_t child);
bool signal_below(pid_t child, int number);
bool left_memory(double since);

/* lease.c */
bool begin_lease(struct shepherd *one);
bool renew_lease(struct shepherd *one, double deadline);
void end_lease(struct shepherd *one);
bool lease_passed(const struct shepherd *one);

/* orders.c: what it is told */
struct order {
    struct text kind, drop, fields, own, uids, scope;
    long long number, signal;
    double deadline;
};
struct template *find_template(struct shepherd *one, long long number);
bool add_template(struct shepherd *one, long long number, struct text drop, struct text fields);
bool read_order(struct text frame, struct order *order);

/* serve.c: its loop */
struct handed;
#define LEFT 3 /* the file behind the end file that says what is left to Python, behind both ends of the pipe of signals */
long new_keyring(void);
struct shepherd *lava_shepherd(int starter, int wake, int end_file, int own_keyring, char *title, size_t title_size, long long open_files);
void lava_run(struct shepherd *one, struct handed *handed);

/* fork.c; ``signals``: tells a shepherd of children that have ended, -1: the pipe of its signals does */
struct shepherd *lava_forks(int control, int first, int score, int own_keyring, int signals, char *title, size_t title_size,
    long long open_files, struct handed *handed);

/* What is left to the shepherd in Python */
struct handed {
    int state; /* of the part: NONE, RUNNING or ENDED */
    int closed; /* the starter is gone */
    int pid, status;
    int told; /* its start was reported */
    int killing;
    int end_told; /* its end was reported */
    double began;
    double deadline; /* of its lease */
    struct text input; /* from the starter, not read yet */
    struct text unsent; /* for the starter */
    struct text template, own; /* of the part */
    struct text end; /* its report */
};
enum { NONE, RUNNING, ENDED };
