"""What commands refuse, by form: what it means, and what to do instead."""

from __future__ import annotations

from lavad.queries.explain.entry import Entry, Kind

_SAID: tuple[tuple[str, str, str, str], ...] = (
    (
        "denied",
        "User permission denied|: permission denied",
        "Only the owner of the job, an administrator of its queue or group, or one of the cluster may do it.",
        "lsid and bqueues -l name the administrators",
    ),
    (
        "not_responding",
        "batch system daemon not responding",
        "No master answers: it does not run, or is starting.",
        "lava status; systemctl status lavad on the masters",
    ),
    (
        "connection_lost",
        "The connection to the batch system was lost…",
        "The master or this host's agent ended meanwhile.",
        "run the command again",
    ),
    (
        "rest",
        "is expected, with - before it|no state of a job, nor one of|not one that lava gave|it belongs to another order|"
        "a number from 0 to|seconds since the epoch are expected|one name is expected",
        "A request to REST has a parameter that does not read.",
        "docs/web.md, and /api/openapi.json, have the parameters of each request",
    ),
    (
        "token",
        "The token is not valid|A link only signs in|no kind of token|such a token cannot make another one"
        "|A name of a token is words|A token of this kind lives|tokens that have not ended|No token is named",
        "A token of the page or REST has ended, was called back, or serves for something else; a user has at most 100.",
        "lava web signs you in; lava token prints a token for REST, --list shows them, --revoke ID calls one back",
    ),
    (
        "reconfiguration",
        "Reconfiguration aborted",
        "A file of the configuration has an error, which the lines before it name; nothing of it has taken effect.",
        "mend the line; badmin ckconfig checks again, and changes nothing",
    ),
    (
        "no_check",
        "The configuration cannot be checked|The resource requirement cannot be checked",
        "The program that reads the files for badmin did not start, or ended before it had said what is wrong.",
        "the reason stands behind it; the log of lavad tells of what it reads itself",
    ),
    (
        "no_page",
        "no page runs",
        "The cluster was started without its page.",
        "lava up --dir DIR --web",
    ),
    (
        "no_cluster",
        "no cluster was made here",
        "The folder holds no cluster of lava up.",
        "lava up --dir DIR makes one; --dir names another",
    ),
    (
        "no_conf",
        "Unable to open file lsf.conf",
        "The command does not know its cluster.",
        'eval "$(lava env)" or . DIR/conf/profile.lsf; LSF_ENVDIR names the folder of lsf.conf',
    ),
    (
        "no_job",
        "Job <…> is not found|is not found or has finished|No matching job found|No unfinished job|No such job|"
        "Job has not finished yet|Job has already finished",
        "There is no such job, or it is in another state.",
        "bjobs -a JOB; bhist -l JOB for one that ended long ago",
    ),
    (
        "not_started",
        "Not yet started|has not started yet|Job is not running|Job has not started",
        "The job waits.",
        "lava why JOB",
    ),
    (
        "absolute_priority",
        "Jobs of a queue with APS_PRIORITY cannot be moved",
        "APS_PRIORITY orders the jobs of that queue by a number; a place in line means nothing there.",
        "bjobs -aps shows the number; bmod -sp changes the priority that is in it",
    ),
    (
        "started",
        "Job has already started|of a running job|of this running job|This is for jobs that run|of an element are its array's",
        "That cannot be changed or done once the job runs, or only then.",
        "-",
    ),
    (
        "array",
        "The job is no array|is an array: name one|Name one running element|name one, as|is no array|Job arrays cannot",
        "The command takes one element of an array, or no array.",
        "JOB[INDEX] names an element",
    ),
    (
        "queue",
        "No such queue|No queue found|Queue has been closed|User cannot use the queue|Queue does not accept|"
        "Queue only accepts|Host or host group is not used by the queue|Specified queue",
        "The queue does not exist, is closed, or does not take such a job or user.",
        "bqueues shows the queues, bqueues -l QUEUE whom and what each takes; bsub -q",
    ),
    (
        "slots",
        "Too many processors requested|Too few processors requested|Job size is not one of those allowed: …"
        "|Queue does not have enough per-user job slots",
        "The number of slots (-n) is outside of what the queue or application gives a job.",
        "bqueues -l QUEUE shows TASKLIMIT, JOB_SIZE_LIST and the limits",
    ),
    (
        "limit",
        "Cannot exceed …|is too large",
        "The value is above the limit of the queue, the application or the site.",
        "ask for less, or another queue (bqueues -l)",
    ),
    (
        "host",
        "Bad host name, host group name or cluster name|Bad host specification|Bad cluster name|No such user/host group|"
        "No such compute unit|No host found|No suitable host found|invalid hostname|Bad host name|is not used by|"
        "No host satisfies|"
        "Not enough hosts|No host partition|No compute unit|No host group found|no host would be left|not a host of job|"
        "Host is not allocated|Host does not belong|Host is in another reservation|no host is in it|no host is named",
        "No host or group of that name is configured, or none fits.",
        "bhosts and bmgroup show them",
    ),
    (
        "user",
        "Bad user name|Bad user group name|No such user group|No user group found|Unknown user|unknown to the system|"
        "the name of the user|"
        "name is too long",
        "The user or group is not known.",
        "busers all, bugroup",
    ),
    (
        "user group",
        "User not in the specified user group",
        "-G names a user group that you are not in.",
        "bugroup shows the groups and who is in them",
    ),
    (
        "application",
        "No such application profile|No application profiles|no such esub",
        "-app or -a names what is not configured.",
        "bapp shows the applications; -a takes mpi, openmpi, torchrun and other software",
    ),
    (
        "service class",
        "has no access to the service class",
        "ACCESS_CONTROL of the service class does not let the job in, by queue, user, project, application or user group.",
        "bsla shows whose jobs each class takes; bsub without -sla",
    ),
    (
        "resreq",
        "Bad resource requirement|resource name not found|Unknown resource name|unknown resource <…>|"
        "no resource is named|rusage[",
        "The requirement (-R) cannot be read, or names a resource that is not configured.",
        "lsinfo shows the resources",
    ),
    (
        "gpu",
        "No such GPU|No GPU is named|GPUs in parts|asks for GPUs|Bad GPU|no number of GPUs|say which GPUs|gmem|gmodel|"
        "nvlink|mig=",
        "The GPU requirement (-gpu) cannot be read or cannot be met.",
        'bsub -gpu "num=2:mode=exclusive_process"; lshosts -gpu',
    ),
    (
        "option",
        "illegal option|invalid option|unknown option|is not supported by lava|option requires an argument|"
        "Unknown bresize subcommand|"
        "cannot be given together|cannot be used together|cannot be used with|only one of them|Invalid command|"
        "Invalid argument|"
        "is not an option|cannot be given here|cannot be used|no such argument|takes one value|takes no value|"
        "takes a text|takes no argument|only -g is|"
        "no such subcommand|words for JupyterLab come after --|"
        "not supported by lava|say lim or res|say mbd or sbd|say extend|say start|hopen: ",
        "The command has no such option, needs a value for it, or cannot have both.",
        "COMMAND -h prints the options",
    ),
    (
        "reservation",
        "reservation|occurrence|time window is for|Jobs of the reservation|begin time|begin date|end time|brsv|"
        "are needed|is needed|Not enough processors to be reserved",
        "The advance reservation cannot be made or changed so.",
        "brsvs shows them; brsvadd -h",
    ),
    (
        "checkpoint",
        "checkpoint|-k: ",
        "The checkpoint request cannot be read or followed.",
        'bsub -k "DIR PERIOD"; docs/checkpoint.md',
    ),
    (
        "dependency",
        "dependency|dependencies|A job cannot wait for itself|has no children|external status|condition|no state to wait for",
        "The condition (-w) cannot be read, or names jobs that do not exist.",
        'bsub -w "done(101) && ended(102)"; bjdepinfo',
    ),
    ("job_group", "job group", "The job group does not exist, is not empty, or is not yours.", "bjgroup; bgadd /GROUP"),
    (
        "role",
        "role|success …|backoff …|nproc …|tasks together",
        "A job with roles cannot be made so.",
        "docs/roles.md; lava run -h",
    ),
    (
        "esub",
        "-a …|esub|Bad image|Bad module|conda and venv|tasks are started in one way|container(…",
        "What -a asks for cannot be given.",
        "docs/frameworks.md",
    ),
    (
        "display",
        "-XF: DISPLAY",
        "There is no display on which the windows of the job could be shown (-XF).",
        "log in with ssh -X, or set DISPLAY",
    ),
    (
        "interactive",
        "interactive|This is for interactive jobs|no way to the job's terminal|-tty",
        "Interactive jobs (-I) cannot do that.",
        "submit it without -I",
    ),
    (
        "resize",
        "resize|resizable|resized|Nothing to release|At least one slot|The job has … slots|processors must be a positive integer",
        "The job cannot be resized so.",
        "docs/elastic.md; bsub -ar",
    ),
    (
        "value",
        "Bad …|Illegal …|must be …|is not between|it is one of|must not be|cannot be empty|is not a list|not a number|"
        "it has no number|"
        "bad number|bad unit|bad output width|is not a valid field|no field in the output|delimiter must|must be|"
        "later than|Nothing to change|a policy is an action|both kinds of quotes|less than the minimum|"
        "cannot be spread evenly|no 'or'|More than one host_spec|is no limit|is no name|needs something|does not know|"
        "is given twice|This needs|"
        "Unknown job state|only characters|is no mapping|holds bytes that are not UTF-8|cannot be earlier|not a user",
        "The value of an option cannot be read.",
        "COMMAND -h; docs/commands.md",
    ),
    (
        "too_much",
        "too long|too many|too large|larger than …|At most …|more than …|nested deeper|threshold reached|No job id is free|"
        "is full|has room|Too many|MAX_",
        "The request, or the cluster's store of jobs, is larger than allowed.",
        "ask in several pieces; bparams -a shows the cluster's limits (MAX_JOB_ARRAY_SIZE …), busers a user's",
    ),
    (
        "command",
        "No command is specified|Bad command|a command is missing|neither a command nor roles|no role has a command",
        "There is nothing to run.",
        "bsub [options] COMMAND, or bsub < SCRIPT",
    ),
    (
        "file",
        "No such file|not a text|no line of it is|not executable|File exists|Is a directory|Unable to|no JSON|no YAML|no XML|"
        "a value is not of the kind|"
        "no document type|begins with JobDefinition|"
        "<…>|a job file is one|job files need|it is one line of text|not a task log|a quote is not closed|"
        "give a job file|there is no job in it|standard input|needs PyYAML|"
        "not a host and its slots|its file|not a backup|a line of it is longer|no variable of|it is name=value",
        "A file cannot be read, or is not what the command expects.",
        "look at the file and line that it names",
    ),
    (
        "message",
        "message|reason must be|attached",
        "The message or reason cannot be kept or found.",
        "bread JOB; bpost -d TEXT JOB",
    ),
    (
        "working_folder",
        "The current working directory no longer exists",
        "The folder that the command is run in was removed.",
        "cd",
    ),
    (
        "inside",
        "not inside a job|takes no tasks|shepherd does not answer",
        "blaunch works inside a job that starts its own tasks.",
        "bsub -n 4 'blaunch …' without -a",
    ),
    (
        "none",
        "not configured|is configured|No such service class|no service class|No guaranteed|No resource|nothing is named|No limit",
        "The site has nothing of the kind configured.",
        "-",
    ),
    (
        "name_a_job",
        "name a job|name one job|one job ID is needed|no task log is named|job ID",
        "The command needs a job.",
        "bjobs shows the jobs",
    ),
    (
        "esub_aborted",
        "Request aborted by esub",
        "A program of the site (esub) refused the submission.",
        "read what it says above that line",
    ),
    (
        "internal",
        "internal error|lavad sent an answer that this command does not understand|store: …|Bad request|cannot be written",
        "An error of lava or of its database, not of yours.",
        "the log of lavad says more: tell an administrator",
    ),
    (
        "lease",
        "lease is extended|sampling period|perfmon|Leave it|lava leaves it",
        "An administrator's command cannot be carried out so.",
        "badmin -h; docs/operations.md",
    ),
    (
        "roles_forced",
        "cannot be forced to run|Not enough free job slots",
        "brun cannot start the job there.",
        "bhosts; another host (-m)",
    ),
)


def entries() -> list[Entry]:
    """In the order in which they are tried."""
    return [Entry(Kind.REFUSAL, name, None, text, means, do) for name, text, means, do in _SAID]
