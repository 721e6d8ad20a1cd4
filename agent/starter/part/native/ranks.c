/* Tasks of one part that differ by their variables and files, started at once: the shepherd in Python asks for it, and starts those
   that could not be started here again, to say why. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "native.h"

#define MOST_THREADS 7
#define SMALL_STACK ((size_t)256 << 10) /* a task's start needs little of it */

struct rank {
    const char *own; /* its variables, each ended by a zero, and the last by another */
    struct files files;
    struct binding binding;
    int pid; /* 0: it was not started */
};

struct starting {
    const struct spec *spec;
    char *const *programs;
    struct rank *ranks;
    int count;
    sigset_t mask;
    atomic_int next;
    atomic_bool failed;
};

/* The part's variables with those of a task over them; NULL: there is no memory. */
static char **env_of(struct memory *memory, const struct spec *spec, const char *own)
{
    size_t more = 0, used = spec->variables;
    for (const char *one = own; *one; one += strlen(one) + 1)
        more++;
    char **env = some(memory, (used + more + 1) * sizeof *env);
    if (!env)
        return NULL;
    memcpy(env, spec->env, used * sizeof *env);
    for (const char *one = own; *one; one += strlen(one) + 1) {
        size_t name = strcspn(one, "=") + 1, at = 0;
        while (at < used && strncmp(env[at], one, name) != 0)
            at++;
        used += at == used;
        env[at] = (char *)one;
    }
    env[used] = NULL;
    return env;
}

/* In each of the threads. */
static void *start_some(void *passed)
{
    struct starting *all = passed;
    struct spec spec = *all->spec;
    struct memory memory = {0};
    for (int at; !atomic_load(&all->failed) && (at = atomic_fetch_add(&all->next, 1)) < all->count;) {
        struct rank *rank = all->ranks + at;
        spec.env = env_of(&memory, all->spec, rank->own);
        spec.binding = rank->binding.cpus || rank->binding.nodes ? &rank->binding : NULL;
        rank->pid = spec.env ? vforked(&spec, &rank->files, all->programs, &all->mask) : 0;
        if (!rank->pid)
            atomic_store(&all->failed, true);
        give_back(&memory, true);
    }
    give_back(&memory, false);
    return NULL;
}

/* Start tasks by as many threads, or fewer where they cannot be had. Once one fails no more are begun. The process may have no other
   thread that starts or reaps children. */
void lava_start_ranks(char **env, char **argv, char *const *programs, int nice, const struct limit *limits, int limit_count,
    struct rank *ranks, int count, int threads)
{
    struct spec spec = {.env = env, .argv = argv, .nice = nice, .limit_count = limit_count};
    struct starting all = {.spec = &spec, .programs = programs, .ranks = ranks, .count = count};
    pthread_t others[MOST_THREADS];
    pthread_attr_t small;
    sigset_t every;
    int running = 0;
    if (limit_count > MOST_LIMITS)
        return;
    while (env[spec.variables])
        spec.variables++;
    memcpy(spec.limits, limits, (size_t)limit_count * sizeof *limits);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &all.mask);
    if (pthread_attr_init(&small) == 0) {
        pthread_attr_setstacksize(&small, SMALL_STACK);
        while (running < threads - 1 && running < MOST_THREADS && pthread_create(&others[running], &small, start_some, &all) == 0)
            running++;
        pthread_attr_destroy(&small);
    }
    start_some(&all);
    while (running)
        pthread_join(others[--running], NULL);
    pthread_sigmask(SIG_SETMASK, &all.mask, NULL);
}
