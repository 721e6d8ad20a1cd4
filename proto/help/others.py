"""The options of the other commands: name, value, what it does; two blanks stand before the text.

``COMMON`` has those that mean the same wherever they are; a command's own text goes before. A text of ``-``: taken as in LSF, and
changes nothing here.
"""

COMMON = """\
J NAME                    jobs of this name; * stands for anything
u USER                    jobs of these users or user groups; all: everybody's
q QUEUE                   jobs in this queue
m HOST                    jobs on these hosts or host groups
P PROJECT                 jobs of this project
g /GROUP                  jobs of this job group
G GROUP                   jobs submitted with this user group (-G)
app PROFILE               jobs of this application profile
sla CLASS                 jobs of this service class
Jd TEXT                   jobs with this description; * stands for anything
U RESERVATION             jobs of this advance reservation
C REASON                  why, in words; it is kept (bjobs -l, bhist -l)
N HOST                    CPU times as on this host or model
w                         wide: nothing is cut
l                         at length
noheader                  no line of titles
json                      as JSON
o "FIELD[:WIDTH] ..."     these columns
UF                        at length, with lines that are not folded
aff                       CPUs and memory nodes that jobs are bound to
gpu                       GPUs that jobs asked for, got and used
R "REQUIREMENT"           hosts that fit it
alloc                     -
"""

COMMANDS = {
    "bjobs": """\
-watch                    again whenever something has changed, until Ctrl-C
a                         those that have ended lately (CLEAN_PERIOD), too
A                         a line for each array: its elements by state
d                         those that have ended lately
p                         those that wait, with the reasons
p0                        those that wait, with their most important reasons
p1                        those that wait, with all reasons
p2                        those that wait, with all reasons and how many hosts have each
p3                        those that wait, with all reasons and the hosts by name
pe                        those that wait and could start
pei                       those that wait: first those that could start, then those that could not
pi                        those that wait and could not start whatever is free
r                         those that run
s                         those that are suspended, with the reasons
ss                        shows none: there are no session schedulers
W                         wide, with project, use and times
WL                        with the time that is left
WP                        with how much of the run limit is over
WF                        with the time at which it will end
X                         -
x                         those with an exception: longer or shorter than their queue wants, or idle
fwd                       shows none: no job goes to another cluster
hms                       times as hours:minutes:seconds
sum                       job slots by state
psum                      what jobs wait for, and how many
prio                      those that wait, by their absolute priority (APS)
aps                       those that wait, by their absolute priority (APS)
plan                      those that wait and have slots reserved
script                    the script of jobs
env                       the environment of jobs
hostfile                  those with a host file, which -l shows
data                      shows none: there is no data manager
N HOST                    CPU times as on this host or model; those that have ended lately, too
Lp NAME                   shows none: there is no License Scheduler
rusage "NAME ..."         those that reserve all of these resources
""",
    "bhist": """\
a                         those that have ended, too
b                         each event, briefly
d                         those that have ended
e                         those that have failed
l                         each event
p                         those that wait
r                         those that run
s                         those that are suspended
t                         all events by time (-T says of when)
hostfile                  those with a host file, which -l shows
C FROM,TO                 those that ended then: [YEAR/][MONTH/]DAY[/HOUR:MINUTE]; . is now, .-7 seven days ago
D FROM,TO                 those that were dispatched then
S FROM,TO                 those that were submitted then
T FROM,TO                 those that something happened to then
f FILE                    of this lsb.events instead of the cluster
n N                       -
Lp NAME                   shows none: there is no License Scheduler
""",
    "bacct": """\
b                         a line for each job
d                         those that ended well
e                         those that failed
l                         each job at length
w                         -
x                         those with an exception: longer or shorter than their queue wants, or idle
E                         -
C FROM,TO                 those that ended then: [YEAR/][MONTH/]DAY[/HOUR:MINUTE]; . is now, .-7 seven days ago
D FROM,TO                 those that were dispatched then
S FROM,TO                 those that were submitted then
f FILE                    of this lsb.acct instead of the cluster
M FILE                    on the hosts that FILE names
sla "CLASS ..."           of these service classes
Lp NAME                   counts none: there is no License Scheduler
U RESERVATION             of this advance reservation; all: of any
""",
    "bpeek": """\
f                         go on until the job ends
J NAME                    your newest job of this name
""",
    "bkill": """\
l                         print the names of signals
r                         forget the job at once, without waiting for its host
b                         -
d                         count it as DONE
s SIGNAL                  send this signal, by name or number
stat STATE                all jobs that are run, pend or susp
""",
    "bstop": "a                         all of your jobs\n",
    "brequeue": """\
d                         those that have ended well
e                         those that have failed
r                         those that run
a                         those of any state
H                         and hold them (PSUSP)
""",
    "bmig": """\
f                         -
m "HOST ..."              to these hosts
""",
    "bchkpnt": """\
f                         -
k                         and end the job
p MINUTES                 every so many minutes from now on; 0: no more
""",
    "bswitch": """\
a PROFILE                 jobs of this application profile
""",
    "btop": "u                         among the jobs of its owner\n",
    "bbot": "u                         among the jobs of its owner\n",
    "bresize": """\
c                         take back a request that is not met yet
rncn                      without the command that tells the job
rnc COMMAND               run this one instead, an absolute path
""",
    "brun": """\
b                         a job with checkpoints starts over
c                         -
f                         no window and no load suspends it
m "HOST[#SLOTS] ..."      on these hosts
""",
    "bwait": """\
w CONDITION               the condition, as of bsub -w
t MINUTES                 give up after so long
r MINUTES                 look at least so often
""",
    "bjdepinfo": """\
p                         what it waits for; that is the default
l                         with the condition
c [LEVELS]                what waits for it
r [LEVELS]                what that waits for in turn
""",
    "bjdep": "l                         -\n",
    "report": """\
csv                       as CSV
html                      as one HTML page with plots
user USER                 of these users or user groups
project PROJECT           of this project
queue QUEUE               of this queue
group GROUP               of this user group
by WHAT                   one table: user, project, queue, group or site
from TIME                 of jobs that ended since: [YEAR/][MONTH/]DAY[/HOUR:MINUTE]
to TIME                   of jobs that ended until
top N                     and the jobs that wasted the most
""",
    "bpost": """\
i N                       the number of the message; 0 is the external status
d TEXT                    the message
a FILE                    a text in UTF-8 that goes with it, at most 64 KB
J NAME                    to your newest job of this name
""",
    "bread": """\
w                         -
i N                       this message only
a FILE                    save the data that came with it
J NAME                    of your newest job of this name
""",
    "bstatus": """\
l                         -
d TEXT                    set it
J NAME                    your newest job of this name
""",
    "bgadd": "L N                       how many of its jobs may run at a time\n",
    "bgdel": """\
c                         and the empty ones below it
u USER                    with 0: groups of this user
""",
    "bgmod": """\
Ln                        no limit any more
L N                       how many of its jobs may run at a time
""",
    "bjgroup": """\
s                         in the order of the tree; of a group named, those below it too
N                         job slots instead of jobs
l                         -
u USER                    those that this user made
""",
    "bhosts": """\
a                         -
l                         at length: load, thresholds, GPUs, messages of administrators
x                         those that lava has closed: jobs fail there
X                         -
s                         resources that hosts share
sl                        resources that hosts share
e                         says that no host is lent to another cluster
gpu                       GPUs, and which jobs have them
aff                       with -l: CPUs, and which jobs have them
""",
    "bqueues": """\
l                         at length: limits, policies, parameters
r                         at length, with the shares of groups within groups
m HOST                    that use this host or host group
u USER                    that this user or group may use
""",
    "busers": "a                         -\n",
    "bparams": """\
a                         all, a line each
l                         at length, with what each means
w                         -
""",
    "bapp": "w                         -\n",
    "bugroup": """\
r                         with the members of groups within groups
l                         at length, with administrators and shares
w                         -
""",
    "bmgroup": """\
r                         with the members of groups within groups
cu                        compute units with their types
l                         -
w                         -
""",
    "bhpart": """\
r                         with the shares of groups within groups
w                         -
""",
    "blimits": """\
c                         as configured
a                         those that nobody uses, too
n NAME                    this limit
w                         -
m HOST                    -
u USER                    -
P PROJECT                 -
p NAME                    -
q QUEUE                   -
Lp NAME                   -
R NAME                    those on this resource (slots, jobs, mem …)
A PROFILE                 those on jobs of this application profile
""",
    "bresources": """\
g                         guaranteed resource pools, and the slots and GPUs that queues are guaranteed
l                         with -g, each pool at length
m                         with -g -l, the hosts that are in the pool now
s                         refused: there is ReservationUsage in lsb.resources
p                         refused: there is no placement of resources
""",
    "bslots": """\
l                         with the hosts
w                         -
n N                       windows of at least so many slots
W [HOUR:]MINUTE           windows of at least this time
""",
    "bsla": """\
N                         slots in place of jobs
l                         -
""",
    "bclusters": """\
app                       application profiles of other clusters: there are none
w                         -
""",
    "brsvadd": """\
o                         open: at its end its jobs are suspended, not ended
s                         of the system: no job starts there
f                         -
nosusp                    jobs that ran there before are not suspended for its own
N NAME                    its name
u "USER ..."              for these users or user groups
g GROUP                   for this user group
n N                       slots; with -unit host hosts
m "HOST ..."              on these hosts or host groups
R "REQUIREMENT"           on hosts that fit it
b TIME                    begins at [[[year:]month:]day:]hour:minute
e TIME                    ends at
t WINDOW                  again and again: [day:]hour[:minute]-[day:]hour[:minute]
d TEXT                    a description
q "QUEUE ..."             queues whose jobs may run there until it begins, however long they take
unit slot|host            what -n counts
""",
    "brsvmod": """\
o                         open: at its end its jobs are suspended, not ended
on                        no longer so
nosusp                    jobs that ran there before are not suspended for its own
nonsuspn                  no longer so
qn                        no queue any more
d TEXT                    a description
u "USER ..."              for these users or user groups
q "QUEUE ..."             queues whose jobs may run there until it begins, however long they take
b TIME                    begins at; +MINUTES, -MINUTES: later, earlier
e TIME                    ends at
t WINDOW                  again and again
""",
    "brsvdel": "f                         even while jobs run in it\n",
    "brsvs": """\
p "HOST ..."              what of these hosts, or all, is reserved in each ten minutes of the week
z "HOST ..."              the same, only where something is reserved
c NAME                    refused
""",
    "lsclusters": """\
l                         with administrators, resources, types and models
w                         -
""",
    "lshosts": """\
a                         -
s                         resources that hosts share
sl                        resources that hosts share
T                         sockets, cores, memory nodes
gpu                       GPUs
mig                       with -gpu: MIG instances
""",
    "lsload": """\
a                         -
l                         with all load indices
s                         shared resources
N                         queue lengths by CPU and CPU factor
E                         queue lengths by CPU
gpu                       GPUs of each host
gpuload                   each GPU: how busy it is
n N                       the N least loaded
I "INDEX:..."             these load indices
""",
    "lsinfo": """\
l                         resources at length
r                         resources
m                         host models
M                         host models
t                         host types
w                         -
""",
    "lsplace": """\
L                         as few hosts as possible
n N                       at least N places; 0: all
w N                       at most N places; 0: all
""",
    "lsacct": """\
l                         each task
C FROM,TO                 those that ended then
S FROM,TO                 those that began then
f FILE                    the task log; needed
m HOST                    on this host
u USER                    of these users
""",
    "lsacctmrg": "f                         write over the target\n",
    "lseligible": """\
q                         the resource requirement only
r                         a program on no list may run elsewhere
s                         say nothing; the exit status tells
""",
    "lsrun": """\
l                         -
L                         -
P                         with a terminal
S                         with a terminal for a shell
v                         say on which host
m HOST                    on this host
""",
    "lsgrun": """\
p                         on all hosts at once
P                         with a terminal
S                         with a terminal for a shell
v                         say on which host
f FILE                    on the hosts that FILE names
m HOST ...                on these hosts
n N                       on so many hosts, the best placed
""",
}

OWN = {
    "blaunch": """\
n                         no standard input
z "HOST ..."              on these hosts of the job
u FILE                    on the hosts that FILE names
no-shell                  without a shell
use-login-shell           by a login shell
""",
    "badmin": "",
    "lsadmin": "",
}
"""Commands that read their words themselves; those with subcommands say the rest in their usage."""
