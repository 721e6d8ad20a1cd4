/* The lease of a part (part/ending.py): native code keeps its time, and leaves a part whose lease has passed to Python. */
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "native.h"

#define EARLIEST 1e-9 /* seconds; 0 would disarm the alarm */
#define LATEST 1e12

static double boot_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Set the alarm: of poll() the time that a machine sleeps is not counted. False: there is none for this time. */
static bool set(int alarm, double deadline)
{
    if (!(deadline >= EARLIEST && deadline < LATEST))
        return false;
    struct itimerspec at = {.it_value = {(time_t)deadline, (long)((deadline - (double)(time_t)deadline) * 1e9)}};
    return timerfd_settime(alarm, TFD_TIMER_ABSTIME, &at, NULL) == 0;
}

/* False: the part is for Python, as its lease has passed or there is no alarm for it. */
bool begin_lease(struct shepherd *one)
{
    one->alarm = -1;
    if (!one->spec.deadline)
        return true;
    if (lease_passed(one) || (one->alarm = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) < 0)
        return false;
    if (set(one->alarm, one->spec.deadline))
        return true;
    end_lease(one);
    return false;
}

/* A part without a lease stays without. False: it is for Python. */
bool renew_lease(struct shepherd *one, double deadline)
{
    if (!one->spec.deadline)
        return true;
    if (deadline <= 0)
        return false;
    one->spec.deadline = deadline;
    return set(one->alarm, deadline);
}

void end_lease(struct shepherd *one)
{
    if (one->alarm >= 0)
        close(one->alarm);
    one->alarm = -1;
}

bool lease_passed(const struct shepherd *one)
{
    return one->spec.deadline && one->spec.deadline <= boot_time();
}
