"""lsb.params, and the parameters of lsf.conf that are LSF's: name, what it does; two blanks stand before the text."""

LSF_CONF = """\
LSB_BSUB_PARSE_SCRIPT           `bsub FILE` reads the #BSUB lines of FILE
LSB_STDOUT_DIRECT               the file of -o grows while the job runs, instead of appearing at its end
LSF_INTERACTIVE_STDERR          standard error of `bsub -I` is apart from standard output
LSB_SUBK_SHOW_EXEC_HOST         `bsub -K` says on which host the job starts
LSB_SUBK_SHOW_JOBID             `bsub -K` names the job when it says that it is finished
LSF_REMOTE_COPY_CMD             the command that copies files of `bsub -f`; it gets HOST:FILE
LSB_DISPLAY_YEAR                times of bjobs -l, bacct -l and bhist -l, -b and -t have the year
LSB_SHORT_HOSTLIST              bjobs shows a host with four slots as 4*HOST
LSB_ENABLE_HPC_ALLOCATION       bjobs and bhist speak of tasks and allocated slots, as LSF 10.1
LSB_BJOBS_PENDREASON_LEVEL      what `bjobs -p` shows: 0 important reasons, 1 all, 2 with hosts counted, 3 named
LSB_BJOBS_FORMAT                the columns of bjobs without -o
LSB_BHOSTS_FORMAT               the columns of bhosts without -o
LSB_BQUEUES_FORMAT              the columns of bqueues without -o
LSB_BUSERS_FORMAT               the columns of busers without -o
LSF_LSHOSTS_FORMAT              the columns of lshosts without -o
LSF_LSLOAD_FORMAT               the columns of lsload without -o
LSB_BJOBS_CONSISTENT_EXIT_CODE  bjobs ends with 255 where one of several ids is not found
LSB_MOD_ALL_JOBS                bmod changes more options of jobs that run
LSB_SET_TMPDIR                  each job has a folder JOBID.tmpdir as TMPDIR, or as the variable named here, which goes with it
LSB_JOB_TMPDIR                  where these folders are made, with %H for the job's first host; without it in LSF_TMPDIR
LSB_ECHKPNT_METHOD              the checkpoint method of jobs whose method is auto or that name none
LSB_ECHKPNT_METHOD_DIR          where echkpnt.NAME and erestart.NAME are, if not in LSF_SERVERDIR
LSB_ECHKPNT_KEEP_OUTPUT         what these programs print is kept with the checkpoint
LSB_ESUB_METHOD                 esubs that run for every bsub
LSF_COMPAT_VERSION              what lsid and -V show as the product, for tools that look for LSF's
LSF_TMPDIR                      where folders of jobs are made
LSF_UNIT_FOR_LIMITS             the unit of sizes without one: KB, MB, GB, TB, PB or EB
LSB_GPU_REQ                     what a job that asks for GPUs gets where neither it nor its profile or queue says
LSB_RESOURCE_ENFORCE            what control groups keep: memory (the limit is of the whole job), cpu (jobs with affinity[]), gpu
LSF_CGROUP_CORE_AUTO_CREATE     with cpu there: a core for each slot (affinity[core(1)]), where neither job nor queue says else
LSB_REQUEUE_TO_BOTTOM           1: jobs that REQUEUE_EXIT_VALUES sends back wait behind those that wait then
LSB_EXCLUDE_HOST_PERIOD         how many MBD_SLEEP_TIME a job stays away from a host that EXCLUDE(...) bars it from [for ever]
LSB_STOP_IGNORE_IT              load suspends the only job that runs on a host also where nobody is at the host (it > 0)
LSB_JOB_MEMLIMIT                the memory limit is of the whole job, and lava ends what exceeds it
LSB_MEMLIMIT_ENFORCE            the same
LSB_USE_SEQUENTIAL_SIGNAL       bkill sends INT, TERM and KILL in turn to parallel jobs, too
LSB_SIGSTOP                     the signal that suspends jobs, instead of STOP (TSTP: parallel, interactive ones); KILL ends them
LSF_ROOT_USER                   root may submit jobs
LSF_MASTER_LIST                 hosts that may be master, the first one first; LSF_MGMT_LIST is the same, and counts beside it
LSB_SHAREDIR                    where lsb.events and lsb.acct are written; without it they are not
LSF_CONFDIR                     where lsf.shared, lsf.cluster and lsf.task are
LSB_CONFDIR                     where the lsb.* files are: NAME/configdir below it
LSF_LOGDIR                      where daemons log; without it on standard error, for the service manager
LSF_LOG_MASK                    how much daemons log; LOG_INFO where it is not set
LSF_BINDIR                      where the commands are
LSF_SERVERDIR                   where esub, eexec, elim and echkpnt programs are
LSF_LIBDIR                      handed on to jobs
LSF_DYNAMIC_HOST_TIMEOUT        so long silent, and a host that no file names leaves; minutes with an m; 0: never
LSF_LOCAL_RESOURCES             in the file of a host: [resource NAME] [resourcemap VALUE*NAME] [type NAME]
LSB_MAILSIZE_LIMIT              KB of output that a mail brings at most; what is larger stays where the job left it (bpeek)
LSB_JOB_REPORT_MAIL             N: no mail tells of the end of a job
LSB_DISABLE_RERUN_POST_EXEC     Y: no POST_EXEC of the job, its profile or queue where a rerunnable job runs again
LSB_POSTEXEC_SEND_MAIL          Y: a mail tells the user how post-execution commands ended, with their output
LSB_MAILTO                      where a user's mail goes: !U is the user, !H the host of submission
LSB_MAILPROG                    the mailer, called as sendmail is
LSB_MAILSERVER                  SMTP:HOST[:PORT] in place of a mailer
"""

LSB_PARAMS = """\
ADVRSV_USER_LIMIT               how many advance reservations of a user or group there may be
DEFAULT_RESREQ_ORDER            the order in which hosts are tried for a job without order[]
DEFAULT_QUEUE                   the queue of a job that names none; of several the first that takes it
DEFAULT_PROJECT                 the project of a job that names none
DEFAULT_APPLICATION             the application profile of a job that names none
DEFAULT_USER_GROUP              the user group of a job that names none
DEFAULT_JOBGROUP                the job group of a job that names none
DEFAULT_HOST_SPEC               the host or model that time limits without one are given for
DEFAULT_JOB_CWD                 the working folder of a job that names none
DEFAULT_JOB_OUTDIR              the output folder of a job that names none
MAX_JOBID                       the largest job id, after which they start again at 1
MAX_JOB_ARRAY_SIZE              the most elements of an array
MAX_USER_PRIORITY               -sp goes from 1 to this; without it is half of it; not set: no -sp
JOB_PRIORITY_OVER_TIME          the priority of a waiting job grows by the first number every so many minutes
MAX_PEND_JOBS                   jobs of a user that may wait; beyond it bsub tries again
MAX_PEND_SLOTS                  slots that jobs of a user may wait for; beyond it bsub tries again
MAX_USER_RECORDS                live jobs, arrays and elements with a record of their own that a user may have; lava's own
MAX_JOB_MSG_NUM                 messages (bpost) that a job may have
JOB_DEP_LAST_SUB                a name in a condition is the newest job of that name, not all
EGROUP_UPDATE_INTERVAL          hours, or minutes with m, after which egroup is asked again; without it only by badmin reconfig
ORPHAN_JOB_TERM_GRACE_PERIOD    seconds after which a job ends whose condition (-w) can never be met; not set: it waits on
JOB_GROUP_CLEAN                 job groups that bsub made go when they are empty
JOB_POSITION_CONTROL_BY_ADMIN   only administrators may use btop and bbot
ENABLE_USER_RESUME              owners may resume jobs that somebody else stopped
MBD_SLEEP_TIME                  the unit of JOB_ACCEPT_INTERVAL and MAX_RESERVE_TIME
SBD_SLEEP_TIME                  between two jobs that load suspends or lets go on, on one host
JOB_ACCEPT_INTERVAL             so many times MBD_SLEEP_TIME a host waits between two jobs
CHUNK_JOB_DURATION              jobs with a longer limit or run time estimate, or with none, are not put into chunks
CLEAN_PERIOD                    how long `bjobs -a` shows jobs that have ended
CLEAN_PERIOD_DONE               of those that ended well, where that is less
MAX_JOB_NUM                     finished jobs after which lsb.events becomes lsb.events.1; 0: by its size alone
BJOBS_RES_REQ_DISPLAY           which requirements bjobs -l shows: none, brief (all together), full (also each)
SECURE_JOB_INFO_LEVEL           of whose jobs users see what, from 0 (all of all) to 5
SECURE_INFODIR_USER_ACCESS      whether bhist and bacct show everything (N), nothing (Y), or what the level says (G)
ENABLE_JOB_INFO_BY_ADMIN_ROLE   administrators who see the jobs that they administer in any case
ACCT_ARCHIVE_SIZE               KB after which lsb.acct becomes lsb.acct.1; 0: any size
ACCT_ARCHIVE_AGE                days after which it does; 0: any age
MAX_ACCT_ARCHIVE_FILE           files lsb.acct.N that are kept; 0: all
JOB_TERMINATE_INTERVAL          between the signals with which a job is ended
PRIVILEGED_USER_FORCE_BKILL     Y: -r of bkill counts for root and cluster administrators alone, others kill as without it
SUB_TRY_INTERVAL                after so long bsub tries again where too many jobs wait
ABS_RUNLIMIT                    run limits are wall clock time, not scaled by CPU factors
JOB_INCLUDE_POSTPROC            the end of a job is told only when its post-execution commands have ended
JOB_POSTPROC_TIMEOUT            how long the commands after a job may take
JOB_PREPROC_TIMEOUT             how long the commands before a job may take; then it waits again
LOCAL_MAX_PREEXEC_RETRY         failures in a row of its pre-execution command after which a job is held
LOCAL_MAX_PREEXEC_RETRY_ACTION  or ended
JOB_CWD_TTL                     hours for which a working folder that was made for a job (-cwd run.%J) stays; 2147483647: for good
PREEXEC_EXCLUDE_HOST_EXIT_VALUES  with these a pre-execution command bars its job from the host: all [~n …], or n …
BSWITCH_MODIFY_RUSAGE           Y: a job that runs reserves what its new queue says, once it is switched
MAX_JOB_REQUEUE                 how often an exit value may make a job wait again
GLOBAL_EXIT_RATE                jobs that may end badly on a host within JOB_EXIT_RATE_DURATION until it is closed
JOB_EXIT_RATE_DURATION          the time in which they are counted
EADMIN_TRIGGER_DURATION         how often exceptions of jobs are looked for, and told to eadmin or by mail
EXTEND_JOB_EXCEPTION_NOTIFICATION  Y: that mail names run time, idle factor, hosts and name of each job, too
EXIT_RATE_TYPE                  which ends count: all, those that lava did not cause, jobs that could not start
DETECT_IDLE_JOB_AFTER           from when on a job may be shown as idle (JOB_IDLE)
JOB_WARNING_ACTION              the warning of a job that names none (-wa); lava's own here, LSF has it of queues and profiles
JOB_ACTION_WARNING_TIME         how long before its end the warning comes
PARALLEL_SCHED_BY_SLOT          parallel jobs use all slots of a host, not at most as many as it has CPUs
RESOURCE_RESERVE_PER_TASK       rusage[] is for each task, not for each host
COMPUTE_UNIT_TYPES              types of compute units, the finest first; ! behind the one that cu[] means
PREEMPT_FOR                     whom to preempt: the newest and as few as will do, as lava does anyway
PREEMPT_JOBTYPE                 EXCLUSIVE: exclusive jobs preempt, and are preempted
PREEMPT_DELAY                   jobs preempt only when they have waited for so long
NO_PREEMPT_INTERVAL             jobs that started, or went on, less than so long ago are spared
PREEMPTABLE_RESOURCES           what jobs are preempted for beside slots; they then give up all that they have
NO_PREEMPT_RUN_TIME             jobs that have run for so long, or so much of their run limit, are spared
NO_PREEMPT_FINISH_TIME          jobs that end so soon, or have so little of their run limit left, are spared
MAX_JOB_PREEMPT                 jobs that were preempted so often are spared
STRICT_UG_CONTROL               a job of a user group (-G) is controlled by the administrators of that group alone
ENFORCE_ONE_UG_LIMITS           for a job of a user group (-G) the limits of that group hold, and of no other that its user is in
MAX_TOTAL_TIME_PREEMPT          jobs that preemption has suspended for so long in all are spared
ESTIMATED_RUNTIME               how long jobs are taken to run that do not say (-We), for planning
HIST_HOURS                      hours in which what was used is decayed to a tenth; 0: never
CPU_TIME_FACTOR                 what CPU time counts in fair share
RUN_TIME_FACTOR                 what run time counts
RUN_JOB_FACTOR                  what slots in use count
GPU_RUN_TIME_FACTOR             what run time of GPUs counts
ENABLE_HIST_RUN_TIME            run time of finished jobs counts, too
ENABLE_GPU_HIST_RUN_TIME        run time of GPUs of finished jobs counts, too
RUN_TIME_DECAY                  run time of running jobs decays, too
COMMITTED_RUN_TIME_FACTOR       what run limits of running jobs count that are not used up yet
"""
