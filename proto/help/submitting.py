"""The options of bsub and bmod: name, value, what it does; two blanks stand before the text."""

BSUB = """\
B                         mail when the job starts
H                         the job waits until bresume
I                         interactive: the job's three streams are this command's, which ends as the job does
Ip                        interactive, with a terminal
Is                        interactive, with a terminal for a shell, which gets Ctrl-Z itself
IX                        interactive, with forwarded windows: -I and -XF
K                         wait until the job has ended, and exit with its status
N                         mail the report at the end, also with -o
Ne                        mail only if it fails
Ns                        mail when it starts, and not at the end
Nd                        mail only if it ends well
r                         run again when its host is lost
rn                        never run again by itself, whatever its queue says
x                         no other job on its hosts; in queues with EXCLUSIVE
ul                        the soft limits of this shell, where no option sets one
ar                        it grows by itself while it runs, up to the most of -n
hl                        the memory limit is of the whole job on each host; needs memory in LSB_RESOURCE_ENFORCE
ti                        end it when its condition (-w) can never become true
XF                        an interactive job's windows (X11) are shown on the display of this session
tty                       show output of an interactive job that goes to files here too
Zs                        the command is a script file, taken as it is now, without its #BSUB lines
label                     begin each line of output with the rank that wrote it
a NAME[(WORDS)]...        the site's esub.NAME; lava's own: mpi, pytorch …, modules, conda, venv, container
alloc_flags VALUE         taken, and said to have no effect
app PROFILE               the application profile (bapp)
b TIME                    start not before [[month:]day:]hour:minute
C SIZE                    the largest core file
c [HOUR:]MINUTE[/HOST]    the most CPU time; on hosts like HOST, a host or model
cwd FOLDER                where the job runs; %J, %I, %U … stand for id, index, user
D SIZE                    the largest data segment of a process
E COMMAND                 run before the job on its first host; where it fails the job waits
Ep COMMAND                run after the job on its first host
e FILE                    append standard error to it; %J is the id, %I the index
eo FILE                   write standard error over it
env LIST                  what of this environment the job gets: none, "all, ~A, B=1", or names
eptl [HOUR:]MINUTE        how long it should wait at most while it could start; shown only
F SIZE                    the largest file that it may write
f "LOCAL OP [REMOTE]"     copy a file: > before the job, < after it, << after it and append, >< both
G GROUP                   the user group whose share and limits count; or "~A ~B": not by these groups of yours
g /PATH                   the job group; made where it is missing
gpu REQUIREMENT           GPUs on each host: "num=2:mode=shared:j_exclusive=yes:gmodel=A100:mig=1"; - for the defaults
hostfile FILE             just these hosts and slots: a line "host slots" each
i FILE                    standard input, opened on the job's host
is FILE                   standard input as FILE is now, at most 6 MB
J NAME[INDICES][%LIMIT]   its name; "a[1-100:2]%10" is an array of which ten run at a time
Jd TEXT                   its description
json FILE                 options from a file in JSON
jsdl FILE                 options from a file in JSDL, with LSF's own elements
jsdl_strict FILE          options from a file in JSDL, without them
k "FOLDER [WORDS]"        checkpoints go to FOLDER; init=MINUTES, a period in minutes, method=NAME, keep=N, stage[=FOLDER]
L SHELL                   a login shell, whose login files set up its environment
M SIZE                    the memory limit; auto: learn it and double it where it does not suffice
m "HOST[+N|!] ..."        these hosts or host groups only, +N the more liked first, ! for its first host
mig MINUTES               move it when the system has suspended it for so long
n LEAST[,MOST]            slots: so many tasks
nnodes N                  on so many hosts: a slot on each, or the tasks of -n spread evenly
notify "WORDS"            mail at these: exit done start suspend
o FILE                    append its output and the report to it; %J is the id, %I the index
oo FILE                   write them over it
outdir FOLDER             where relative output files go; made where it is missing
P PROJECT                 the project it is accounted to
p N                       the most processes
pack FILE                 submit one job for each line of FILE, at most 10,000
ptl [HOUR:]MINUTE         how long it should wait at most; shown only
Q "VALUES"                exit values with which it is queued again: "2 3", "all ~0", EXCLUDE(2): on another host
q "QUEUE ..."             the queue; of several the first that takes it
R "REQUIREMENT"           hosts and resources: select[] order[] rusage[] span[] same[] cu[] affinity[]; several are merged
rankfiles PATTERN         a file of output for each rank; %R is the rank
rnc COMMAND               run on its first host after it was resized
S SIZE                    the largest stack of a process
secret "NAME[=FILE] ..."  variables whose values lava secret, or FILE, keeps
sla CLASS                 the service class that it belongs to (bsla)
sp N                      its priority among the user's jobs, 1 to MAX_USER_PRIORITY
T N                       the most threads
t TIME                    end it at [[month:]day:]hour:minute
U RESERVATION             run in this advance reservation (brsvs)
u USER                    who gets its mail
v SIZE                    the most memory and swap together
W [HOUR:]MINUTE[/HOST]    the run limit; on hosts like HOST, a host or model
We [HOUR:]MINUTE[/HOST]   how long it will take; it is planned with this, and nothing is ended
Wep PERCENT               of a job that runs: so much of it is done
w CONDITION               wait until it is true: done(12), exit(12, > 3), ended("name*"), started(12) with && || !
wa ACTION                 a warning before its end: a signal, CHKPNT, or a command
wt [HOUR:]MINUTE          how long before its end the warning comes
yaml FILE                 options from a file in YAML
"""

BMOD = """\
Z "COMMAND"               the new command
Zs "COMMAND"              the new command, with the script that it names as it is now
We+ [HOUR:]MINUTE         of a job that runs: so much longer than it has run by now
"""

LAVA_RUN = """\
-dry-run                  say what the files mean, and submit nothing; --dry-run=server: also whether the master would take it
-set NAME=VALUE           the value of a variable of the files, ${{NAME}} there; may be given again
"""
