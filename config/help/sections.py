"""The files that have sections with columns: file, section, and of each column its form and what it is."""

SECTIONS = {
    ("lsb.hosts", "Host"): """\
HOST_NAME            name                  a host, group, type or model; default: all others
MXJ                  number                job slots; ! the number of CPUs, - any number
JL/U                 number                slots that a user may have there
DISPATCH_WINDOW      windows               when jobs start there
MIG                  [hours:]minutes       a job that the system suspended there so long ago goes to another host
EXIT_RATE            number                GLOBAL_EXIT_RATE of this host
AFFINITY             Y or N                whether jobs with affinity[] may run there
CHKPNT               C                     taken, without effect
r1m, mem …           start[/stop]          thresholds: no job starts beyond the first, jobs are suspended beyond the second
""",
    ("lsb.hosts", "HostGroup"): """\
GROUP_NAME           name                  the group
GROUP_MEMBER         (hosts)               hosts and groups; all, ~host, host[1-9], wildcards; ! those that egroup says
GROUP_ADMIN          (users)               who may open and close its hosts
CONDENSE             Y or N                taken, without effect
""",
    ("lsb.hosts", "HostPartition"): """\
HPART_NAME           name                  the partition
HOSTS                hosts                 its hosts; the first partition rules for all
USER_SHARES          [name, n] …           shares of users in all queues without a policy of their own
""",
    ("lsb.hosts", "ComputeUnit"): """\
NAME                 name                  the unit
TYPE                 word                  one of COMPUTE_UNIT_TYPES
MEMBER               (hosts)               hosts and groups, or units of the next finer type
CONDENSE             Y or N                taken, without effect
ADMINS               (users)               who may open and close its hosts
""",
    ("lsb.users", "User"): """\
USER_NAME            name                  a user or group; group@: each of its members; default: all others
MAX_JOBS             number                slots that the jobs of the user may have
JL/P                 number                slots for each CPU of a host
MAX_PEND_JOBS        number                jobs that may wait
MAX_PEND_SLOTS       number                slots that jobs may wait for
PRIORITY             number                not supported by lava: without effect, with a warning
""",
    ("lsb.users", "UserGroup"): """\
GROUP_NAME           name                  the group
GROUP_MEMBER         (users)               users and groups; all; ! those that egroup says
GROUP_ADMIN          (users)               who may control the jobs of its members
USER_SHARES          ([name, n] …)         shares of its members
""",
    ("lsb.resources", "Limit"): """\
NAME                 name                  the limit
USERS                users                 whose jobs count, together; PER_USER: each apart
HOSTS                hosts                 on which they count, together; PER_HOST: each apart
QUEUES               queues                of which they count, together; PER_QUEUE: each apart
PROJECTS             projects              of which they count, together; PER_PROJECT: each apart
APPS                 profiles              of which they count, together; PER_APP: each apart
SLOTS                number                the most slots
SLOTS_PER_PROCESSOR  number                the most slots for each CPU; with PER_HOST
MEM, SWP, TMP        MB, or n%             the most that jobs reserve; n% of what each host has, with PER_HOST
JOBS                 number                the most jobs
RESOURCE             [name, n] …           the most of other resources that jobs reserve; ngpus_physical and others: of GPUs
""",
    ("lsb.resources", "ReservationUsage"): """\
RESOURCE             name                  the resource
METHOD               word                  what rusage[] of it is for where it does not say: PER_TASK, PER_JOB or PER_HOST
RESERVE              Y or N                taken, without effect
""",
    ("lsb.resources", "GuaranteedResourcePool"): """\
NAME                 name                  the pool
TYPE                 slots, hosts or package[slots=n:mem=amount]  what it is counted in; memory in MB
DISTRIBUTION         [class, n] …          what is guaranteed to each service class: a number, or n% of the pool
HOSTS                hosts                 hosts and groups of hosts; default: all
RES_SELECT           select expression     which of them
SLOTS_PER_HOST       number                the most slots of each host, for TYPE=slots
LOAN_POLICIES        words                 who may have what is not used: QUEUES[…] DURATION[minutes] RETAIN[n] CLOSE_ON_DEMAND
DESCRIPTION          text                  shown by bresources -g -l
""",
    ("lsb.serviceclasses", "ServiceClass"): """\
NAME                 name                  the class
GOALS                [GUARANTEE]           or goals in time: [VELOCITY n timeWindow (…)] [THROUGHPUT …] [DEADLINE timeWindow (…)]
PRIORITY             number                among classes with goals in time the largest comes first
CONTROL_ACTION       VIOLATION_PERIOD[minutes] CMD [command]  is run, as the first administrator, once a goal was missed so long
USER_GROUP           users                 whose jobs a class with goals in time takes; default: all
ACCESS_CONTROL       lists                 whose jobs it lets in: QUEUES[…] USERS[…] FAIRSHARE_GROUPS[…] APPS[…] PROJECTS[…]
AUTO_ATTACH          Y or N                whether jobs without -sla that it lets in belong to it
DESCRIPTION          text                  shown by bsla
""",
    ("lsf.shared", "Cluster"): """\
ClusterName          name                  the cluster
""",
    ("lsf.shared", "HostType"): """\
TYPENAME             name                  a type of hosts
""",
    ("lsf.shared", "HostModel"): """\
MODELNAME            name                  a model of hosts
CPUFACTOR            number                how fast its CPUs are
ARCHITECTURE         names                 what it is found by
""",
    ("lsf.shared", "Resource"): """\
RESOURCENAME         name                  a resource of the site's own
TYPE                 Numeric, Boolean, String  its kind
INTERVAL             seconds               how often an elim says it
INCREASING           Y or N                whether more of it is more load
CONSUMABLE           Y or N                whether jobs reserve it
RELEASE              Y or N                not supported by lava: without effect, with a warning
DESCRIPTION          text                  what lsinfo shows
""",
    ("lsf.cluster.NAME", "Parameters"): """\
LSF_HOST_ADDR_RANGE  addresses             where hosts that no file names may join from: 10.1.*.1-20
ELIMARGS             words                 arguments of elims
LSF_ELIM_BLOCKTIME   seconds               an elim that has begun a line ends it in this time, or is started again
LSF_ELIM_DEBUG       Y or N                Y: the agent's log has all that elims say
LSF_ELIM_RESTARTS    number                how often an elim that ended is started again on a host
""",
    ("lsf.cluster.NAME", "ClusterAdmins"): """\
ADMINISTRATORS       users                 administrators of the cluster
""",
    ("lsf.cluster.NAME", "Host"): """\
HOSTNAME             name                  a host, or host[1-9]
MODEL                name                  ! what the agent finds
TYPE                 name                  ! what the agent finds
SERVER               1 or 0                0: it only submits
RESOURCES            (names)               boolean resources, and name=value
RUNWINDOW            windows               when jobs run there
REXPRI               number                taken, without effect
""",
    ("lsf.cluster.NAME", "ResourceMap"): """\
RESOURCENAME         name                  a resource of lsf.shared
LOCATION             value@[hosts] …       which hosts share how much; [default]: each has its own
""",
}
