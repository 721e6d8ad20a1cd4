"""lsb.queues and lsb.applications: name, what it does; two blanks stand before the text."""

QUEUES = """\
RUNLIMIT                        the run limit that jobs get, and the most that they may ask for (-W)
CPULIMIT                        the same of CPU time (-c)
MEMLIMIT                        the same of memory (-M)
SWAPLIMIT                       the same of memory and swap together (-v)
FILELIMIT                       the same of the size of files (-F)
DATALIMIT                       the same of the data segment (-D)
STACKLIMIT                      the same of the stack (-S)
CORELIMIT                       the same of core files (-C)
PROCESSLIMIT                    the same of processes (-p)
THREADLIMIT                     the same of threads (-T)
TASKLIMIT                       how many slots a job may ask for (-n)
DESCRIPTION                     what bqueues -l and bapp say of it
PRIORITY                        queues with a larger one go first
NICE                            the nice value of its jobs
ADMINISTRATORS                  users and groups who may control the queue and its jobs
USERS                           users and groups who may submit
HOSTS                           hosts and groups that it uses: with +N the more liked, ~ not, others
QJOB_LIMIT                      the most slots of all its jobs
UJOB_LIMIT                      the most slots of a user
PJOB_LIMIT                      the most slots for each CPU of a host
HJOB_LIMIT                      the most slots of a host
RUN_WINDOW                      when its jobs run; they are suspended outside
DISPATCH_WINDOW                 when its jobs start
NEW_JOB_SCHED_DELAY             how long a new job waits before it may start
CHUNK_JOB_SIZE                  so many short jobs are dispatched at once to a slot, where they run one after the other
JOB_ACCEPT_INTERVAL             so many times MBD_SLEEP_TIME a host waits between two of its jobs
HOSTLIMIT_PER_JOB               the most hosts of a job
DEFAULT_HOST_SPEC               the host or model that time limits without one are given for
JOB_OVERRUN                     a job that runs longer has an exception (bjobs -x)
JOB_UNDERRUN                    a job that ended sooner has one
JOB_IDLE                        a job whose CPU time over run time is below this has one
MIG                             a job that the system suspended so long ago goes to another host
EXCLUSIVE                       jobs may ask for hosts for themselves (-x)
INTERACTIVE                     whether interactive jobs are taken; ONLY: no others
JOB_CONTROLS                    what SUSPEND, RESUME and TERMINATE do: a signal, a command, CHKPNT, brequeue, bmig
TERMINATE_WHEN                  LOAD, PREEMPT, WINDOW: jobs are ended instead of suspended
FAIRSHARE                       users are served by shares
HIST_HOURS                      as in lsb.params, for this queue
CPU_TIME_FACTOR                 as in lsb.params, for this queue
RUN_TIME_FACTOR                 as in lsb.params, for this queue
RUN_JOB_FACTOR                  as in lsb.params, for this queue
GPU_RUN_TIME_FACTOR             as in lsb.params, for this queue
COMMITTED_RUN_TIME_FACTOR       as in lsb.params, for this queue
ENABLE_HIST_RUN_TIME            as in lsb.params, for this queue
ENABLE_GPU_HIST_RUN_TIME        as in lsb.params, for this queue
RUN_TIME_DECAY                  as in lsb.params, for this queue
FAIRSHARE_QUEUES                queues that follow the same policy
QUEUE_GROUP                     queues that follow the same policy, by absolute priority
DISPATCH_ORDER                  QUEUE: of FAIRSHARE_QUEUES the queue goes first, then the user
ROUND_ROBIN_POLICY              users take turns; lava's own
DOMINANT_RESOURCES              fair share by the dominant share of these: slots, mem, gpus; lava's own
APS_PRIORITY                    jobs go by one number: WEIGHT[[factor, n] …] LIMIT[…] GRACE_PERIOD[…]
GANG                            N: a job takes its slots one by one as they come; lava's own
SCHEDULER                       fcfs, fair, gang, shortest, smallest, largest, or the file of a policy of the site; lava's own
PREEMPT_DELAY                   as in lsb.params, for these jobs
NO_PREEMPT_INTERVAL             as in lsb.params, for these jobs
NO_PREEMPT_RUN_TIME             as in lsb.params, for these jobs
NO_PREEMPT_FINISH_TIME          as in lsb.params, for these jobs
MAX_JOB_PREEMPT                 as in lsb.params, for these jobs
MAX_TOTAL_TIME_PREEMPT          as in lsb.params, for these jobs
WEIGHT                          its part of the slots, or of slots:N gpus:N, in proportion; lava's own
CAPABILITY                      the most slots, or slots:N gpus:N, that it may have; lava's own
GUARANTEE                       slots, or slots:N gpus:N, that are kept for it; lava's own
RECLAIMABLE                     whether what it has beyond its part is taken back; lava's own
SLA_GUARANTEES_IGNORE           its jobs may use what is guaranteed to service classes, and preempt jobs of these
RESOURCE_RESERVE                for how many periods of MBD_SLEEP_TIME slots, memory and others are held for its first job
BACKFILL                        shorter jobs may use what is held meanwhile
INTERRUPTIBLE_BACKFILL          a job may start in what is held, if that is free for so long, and ends when it is needed
IGNORE_DEADLINE                 a job starts even if its run limit ends after the run window does
LOCAL_MAX_PREEXEC_RETRY         as in lsb.params, for this queue
LOCAL_MAX_PREEXEC_RETRY_ACTION  as in lsb.params, for this queue
LEASE                           LAVA_LEASE of its jobs; lava's own
LEASE_MARGIN                    LAVA_LEASE_MARGIN of its jobs; lava's own
PRE_EXEC                        runs before a job on its first host
POST_EXEC                       runs after a job on its first host
HOST_PRE_EXEC                   runs before a job on each of its hosts
HOST_POST_EXEC                  runs after a job on each of its hosts
PRE_POST_EXEC_USER              as whom these four run: the job's user, or whom lsf.sudoers of the host names
REQUEUE_EXIT_VALUES             exit values with which a job is queued again; EXCLUDE(N): on another host
SUCCESS_EXIT_VALUES             exit values that count as DONE
RES_REQ                         a requirement that is merged with that of the job (-R)
GPU_REQ                         what its jobs ask of GPUs that say nothing themselves (-gpu)
RESRSV_LIMIT                    how little and how much of a resource its jobs may reserve with rusage[]
SLOT_RESERVE                    for how many periods of MBD_SLEEP_TIME slots are held for its first job that does not fit
RESUME_COND                     a condition under which jobs that load suspended go on
STOP_COND                       a condition under which load suspends jobs
CONTAINER                       the container in which its jobs run: docker, podman, apptainer, singularity[image(…) options(…)]
JOB_STARTER                     a command that starts the job's; %USRCMD stands for it
PREEMPTION                      PREEMPTIVE[queue+n …]: of these queues; PREEMPTABLE[queue …]: by those
CHKPNT                          checkpoints of its jobs: a folder, and a period in minutes
CHKPNT_METHOD                   their method
RERUNNABLE                      its jobs run again when their host is lost
MAX_JOB_REQUEUE                 how often an exit value may make a job wait again
ESTIMATED_RUNTIME               how long its jobs are taken to run that do not say (-We), for planning
JOB_SIZE_LIST                   the numbers of slots that jobs may ask for (-n), first that of those that do not say
PEND_TIME_LIMIT                 how long its jobs should wait at most, where they do not say (-ptl): shown, nothing more
ELIGIBLE_PEND_TIME_LIMIT        the same for -eptl
EXTENDABLE_RUNLIMIT             BASE[minutes] INCREMENT[…] GRACE[…] REQUEUE[Y|N]: a run limit for where others need the slots
JOB_ACTION_WARNING_TIME         how long before its end the warning comes
JOB_WARNING_ACTION              the warning: a signal, CHKPNT, or a command
"""

APPLICATIONS = """\
RESIZABLE_JOBS                  whether its jobs may be resized; AUTO: they grow by themselves
RESIZE_NOTIFY_CMD               runs on a job's first host after it was resized
DJOB_RESIZE_GRACE_PERIOD        how long tasks have on hosts that are given back
DJOB_ENV_SCRIPT                 a script that sets up (setup) and cleans (cleanup) what a parallel job needs, around its command
DJOB_COMMFAIL_ACTION            what becomes of blaunch's tasks behind a link that breaks: they end, as with KILL_TASKS
DJOB_HB_INTERVAL                LSB_DJOB_HB_INTERVAL of its jobs; lava needs no heartbeat to see a link break
DJOB_RU_INTERVAL                LSB_DJOB_RU_INTERVAL of its jobs; lava measures tasks with all others (LAVA_SAMPLE_PERIOD)
DJOB_DISABLED                   Y: its jobs start no tasks by blaunch
RTASK_GONE_ACTION               blaunch tasks that end with 0 (KILLJOB_TASKDONE), or not so (KILLJOB_TASKEXIT), end their job
MEMLIMIT_TYPE                   JOB: memory limits are of the whole job, and lava ends what exceeds them
ABS_RUNLIMIT                    as in lsb.params, for its jobs
RUNTIME                         how long its jobs are taken to run, for planning
CHKPNT_DIR                      where checkpoints of its jobs go
CHKPNT_PERIOD                   how often they are made
CHKPNT_INITPERIOD               when the first is made
CHKPNT_METHOD                   their method
JOB_CWD                         the working folder of a job that names none
JOB_CWD_TTL                     as in lsb.params, for its jobs
ENV_VARS                        variables of its jobs, where the submission has none of the name
TERMINATE_CONTROL               as TERMINATE of JOB_CONTROLS
SUSPEND_CONTROL                 as SUSPEND of JOB_CONTROLS
RESUME_CONTROL                  as RESUME of JOB_CONTROLS
JOB_INCLUDE_POSTPROC            as in lsb.params, for its jobs
JOB_POSTPROC_TIMEOUT            as in lsb.params, for its jobs
JOB_PREPROC_TIMEOUT             as in lsb.params, for its jobs
"""
