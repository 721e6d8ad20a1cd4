"""What the fields of ``-o`` are: name, text. Fields that are parameters of a queue take their text from there."""

BJOBS = """\
jobid                         its id, of an element that of its array
jobindex                      the element's index; 0 for a job that is none
stat                          its state
user                          its owner
user_group                    the user group of -G
queue                         its queue
job_name                      its name
job_description               its description (-Jd)
proj_name                     its project
application                   its application profile
service_class                 its service class (-sla, or AUTO_ATTACH)
job_group                     its job group
job_priority                  the priority of -sp
rsvid                         its advance reservation
esub                          what -a named
kill_reason                   why it was ended, in words (bkill -C)
suspend_reason                why it was suspended (bstop -C)
resume_reason                 why it went on (bresume -C)
dependency                    its condition (-w)
pend_reason                   the most important reason why it waits
command                       its command
pre_exec_command              its command before the job (-E)
post_exec_command             its command after the job (-Ep)
resize_notification_command   the command after a resize (-rnc)
pids                          its processes
exit_code                     its exit code; 128 and the signal that ended it
exit_reason                   why it failed: a TERM_ reason, or words
interactive                   whether it is interactive
from_host                     where it was submitted
first_host                    the first of its hosts
exec_host                     its hosts, with slots
nexec_host                    how many hosts it has
ask_hosts                     the hosts of -m
alloc_slot                    its hosts, with slots
nalloc_slot                   how many slots it has
host_file                     the file of -hostfile
exclusive                     whether it has its hosts for itself (-x)
nreq_slot                     how many slots it asked for at least
hrusage                       memory and swap on each host
submit_time                   when it was submitted
start_time                    when it started
estimated_start_time          when it starts at the latest, of a waiting job with slots reserved
specified_start_time          the time of -b
specified_terminate_time      the time of -t
time_left                     what is left of its run limit; L by limit, E by estimate, X over the estimate
finish_time                   when it ended, or will by its run limit (L) or estimate (E)
estimated_run_time            how long it will take (-We), in minutes
ru_utime                      CPU time in user mode
ru_stime                      CPU time in the kernel
%complete                     how much of its run limit or estimate is over
warning_action                the warning before its end (-wa)
action_warning_time           how long before its end it comes (-wt), in minutes
pendstate                     EPEND: it could start, IPEND: it could not; NOTPEND
pend_time                     seconds that it waited
ependtime                     the same of a job that could start, or has started
ipendtime                     the same of a job that could not start
planned_start_time            as estimated_start_time
plan_finish_time              when it will have ended then, by its run limit
cpu_used                      CPU time
run_time                      how long it has run, without suspensions
idle_factor                   CPU time over run time
exception_status              overrun, underrun, idle
slots                         the slots that it has, or asked for
mem                           memory now, of all its hosts
max_mem                       the most memory
avg_mem                       the mean
memlimit                      its memory limit (-M)
swap                          swap now
swaplimit                     its limit of memory and swap together (-v)
cpu_peak_efficiency           the most CPU of a moment over its slots
cpu_efficiency                as cpu_peak_efficiency
average_cpu_efficiency        CPU time over the time of the slots that it held
cpu_peak                      the most CPUs that it used at a time
cpu_peak_reached_duration     how long after its start that was
mem_efficiency                the most memory over what it reserved
gpu_num                       how many GPUs it has, or asked for
gpu_mode                      the mode of -gpu
gpu_alloc                     its GPUs by host
j_exclusive                   whether it has them for itself
min_req_proc                  the least of -n
max_req_proc                  the most of -n
combined_resreq               its requirement with those of profile and queue
effective_resreq              what it was started with
filelimit                     its limit of files (-F)
corelimit                     its limit of core files (-C)
stacklimit                    its limit of the stack (-S)
processlimit                  its limit of processes (-p)
runtimelimit                  its run limit (-W), in minutes
plimit                        the time of -ptl
eplimit                       the time of -eptl
plimit_remain                 what is left of effective_plimit; negative: it is over
eplimit_remain                what is left of effective_eplimit, of all the time that it waits; negative: it is over
effective_plimit              the same, or that of its profile or queue (PEND_TIME_LIMIT)
effective_eplimit             the same, or that of its profile or queue (ELIGIBLE_PEND_TIME_LIMIT)
nthreads                      threads now
input_file                    its input file
output_file                   its output file
error_file                    its error file
output_dir                    its output folder (-outdir)
sub_cwd                       the folder that it was submitted from
exec_home                     the home folder that it has
exec_cwd                      the folder that it runs in
immediate_orphan_term         whether it ends when its condition can never become true (-ti)
image                         the image of container()
cname                         the cluster where it runs
aps                           its absolute priority, of a waiting job
"""

BHOSTS = """\
host_name                     its name
status                        ok, closed_… with why, unavail
cpuf                          its CPU factor
jl_u                          slots that a user may have there
max                           job slots
njobs                         slots in use
run                           slots of jobs that run
ssusp                         slots of jobs that the system suspended
ususp                         slots of jobs that users suspended
rsv                           slots that are reserved for waiting jobs
dispatch_window               when jobs start there
slots                         job slots
slots_alloc                   slots in use
comments                      what the administrator said (badmin hclose -C, hopen -C)
available_mem                 memory that is free
reserved_mem                  memory that jobs reserve
total_mem                     all its memory
ngpus                         GPUs
ngpus_alloc                   GPUs that jobs have
ngpus_excl_alloc              GPUs that jobs have in exclusive mode
ngpus_shared_alloc            GPUs that jobs have in shared mode
ngpus_shared_jexcl_alloc      of these, those that a job has for itself
ngpus_excl_avail              GPUs that nobody has
ngpus_shared_avail            GPUs that one more job could share
attribute                     its boolean resources
mig_alloc                     MIG instances that jobs have
"""

BQUEUES = """\
queue_name                    its name
status                        Open or Closed, Active or Inact
njobs                         slots of its jobs, those that wait included
pend                          slots that its jobs wait for
run                           slots of jobs that run
susp                          slots of suspended jobs
rsv                           slots that are reserved for waiting jobs
ususp                         slots of jobs that users suspended
ssusp                         slots of jobs that the system suspended
fairshare                     its shares
max_tasklimit                 the most slots that a job may ask for
min_tasklimit                 the least
default_tasklimit             what a job gets that asks for nothing
"""

LSHOSTS = """\
host_name                     its name
type                          its type
model                         its model
cpuf                          its CPU factor
ncpus                         CPUs
nprocs                        sockets
ncores                        cores of a socket
nthreads                      threads of a core
maxmem                        its memory
maxswp                        its swap space
maxtmp                        the space of /tmp
server                        Yes: it runs jobs; No: it only submits
resources                     its boolean resources
ndisks                        0: disks are not counted
rexpri                        0: lava has no such priority
run_windows                   when jobs run there
ngpus                         GPUs
gpu_model                     their models
"""

LSLOAD = """\
host_name                     its name
status                        ok, busy or unavail
r15s                          processes that run or wait for a CPU, over 15 seconds
r1m                           the same over a minute
r15m                          the same over 15 minutes
ut                            use of its CPUs
pg                            pages read and written in a second, over a minute
io                            KB read and written in a second, over a minute
ls                            users who are logged in
it                            minutes since a key was pressed
tmp                           free space of /tmp
swp                           free swap space
mem                           free memory
"""

BUSERS = """\
user                          a user or user group
jl/p                          slots for each CPU of a host
max                           slots that the jobs of the user may have
nstart                        slots of jobs that have started, and reserved ones
pend                          slots that jobs wait for
run                           slots of jobs that run
ssusp                         slots of jobs that the system suspended
ususp                         slots of jobs that users suspended
rsv                           slots that are reserved for waiting jobs
njobs                         slots of all jobs
pjobs                         jobs that wait
mpend                         slots that jobs may wait for (MAX_PEND_SLOTS)
mpjobs                        jobs that may wait (MAX_PEND_JOBS)
ngpus                         GPUs that jobs have
ngpus_shared                  those in shared mode
ngpus_excl                    those in exclusive mode
ngpus_shared_jexcl            of those in shared mode, those that a job has for itself
"""
