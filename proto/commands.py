"""The registry of lava's commands: one row each, read by the commands themselves, by what installs them and by the master,
which renders the ones that show.

Rule: standard library only, and no import at all: every command loads it. An option stands here and nowhere else; those of
bsub and bmod are in a table of their own, as they have more to say about each.
"""

from __future__ import annotations

LOCAL = "cli.lava"
"""The module with the subcommands of lava that are about a cluster on this machine."""


class Command:
    """One command. Options are names without their dash, in one text, in the order in which the usage shows them.

    ``flags`` take no value, ``valued`` take one, ``words`` is what the usage says of the other arguments. ``refused`` are
    options of LSF that lava knows and has not.
    """

    __slots__ = ("flags", "form", "help", "help_exit", "here", "loose", "module", "name", "native", "refused", "valued", "words")
    shows = False
    """Whether the master renders text for it (``lavad/queries``)."""

    def __init__(
        self,
        name: str,
        help: str,
        flags: str = "",
        valued: str = "",
        words: str = "",
        refused: str = "",
        *,
        module: str = "",
        here: str = "",
        loose: str = "",
        form: str = "",
        help_exit: int = 255,
        native: bool = False,
    ) -> None:
        self.name = name
        self.help = help
        self.flags = flags
        self.valued = valued
        self.words = words
        self.refused = refused
        self.module = module or ("cli.listing" if self.shows else f"cli.{name}")
        """Its ``main`` is the command."""
        self.here = here
        """Options that the command itself acts on: the master never gets them."""
        self.loose = loose
        """Options that may come to the master with a value or without."""
        self.form = form
        """The environment variable that sets the default columns; sent as an option of that name."""
        self.help_exit = help_exit
        """The exit status of ``-h``."""
        self.native = native or self.module == "cli.listing"
        """Whether it asks once and prints: no terminal, no program started. A server of the user may do that (``cli/native``)."""

    def options_sent(self) -> tuple[list[str], list[str]]:
        """(flags, options with a value) as the master gets them, without those of ``loose``."""
        kept = {*self.refused.split(), *self.here.split(), *self.loose.split()}
        flags = [name for name in self.flags.split() if name not in kept]
        valued = [name for name in self.valued.split() if name not in kept]
        return flags, [*valued, self.form] if self.form else valued


class Listing(Command):
    """A command whose text the master renders. With ``cli.listing`` as its module it does nothing else."""

    __slots__ = ()
    shows = True


class Subcommand:
    """``lava NAME``. ``main`` of its module is the subcommand, which gets its words, and its name too where several rows name the
    module. A module of lavad is a program of its own (``of_lavad``): the commands must not import it.
    """

    __slots__ = ("help", "module", "name", "of_lavad")

    def __init__(self, name: str, help: str, module: str = LOCAL, *, of_lavad: bool = False) -> None:
        self.name = name
        self.help = help
        self.module = module
        self.of_lavad = of_lavad


_SUBCOMMANDS = (
    Subcommand("up", "start a cluster (or what of it is not running) and print the exports for your shell"),
    Subcommand("down", "end every process of the cluster, and its jobs"),
    Subcommand("env", "print the exports for another terminal"),
    Subcommand("status", "a line for each daemon; then what is wrong with the cluster, and what to do"),
    Subcommand("run", "submit a job file: lava's own, or a manifest of a training job", "cli.jobs.run"),
    Subcommand("jupyter", "JupyterLab as a job, and the address to open", "cli.live.jupyter"),
    Subcommand("why", "why a job waits, and what would start it now; or why it ended", "cli.listing"),
    Subcommand(
        "explain",
        "what a reason, an exit code, a refusal, a parameter or an option means",
        "lavad.queries.explain.main",
        of_lavad=True,
    ),
    Subcommand("stats", "what a job or an array asked for and used, and advice", "cli.listing"),
    Subcommand("report", "what users, groups, projects and queues held, used and wasted; also as a page (--html)", "cli.listing"),
    Subcommand("time-left", "seconds until a running job must end; inside a job, this one", "cli.listing"),
    Subcommand("completion", "what bash, zsh or fish need to complete commands, jobs, queues and hosts", "cli.completion"),
    Subcommand("man", "write the manual pages into a folder", "cli.manpages"),
    Subcommand("top", "hosts, queues and running jobs, live", "cli.live.top"),
    Subcommand("watch", "a job or an array until it ends: progress, ranks, output", "cli.live.watch"),
    Subcommand("web", "print an address that signs you in to the page", "cli.web"),
    Subcommand("token", "print a token for REST", "cli.web"),
    Subcommand(
        "whatif", "a trace, the history or the live jobs under other policies, hosts …", "lavad.replay.main", of_lavad=True
    ),
    Subcommand("replay", "make a cluster's scheduling decisions again from its history", "lavad.replay.repeat", of_lavad=True),
    Subcommand("db", "check, backup, restore or upgrade the store", "lavad.database.main", of_lavad=True),
    Subcommand("secret", "values that jobs get as variables (set, rm, ls)", "cli.secret"),
    Subcommand("certs", "make certificates for the masters and hosts of a site"),
)
SUBCOMMANDS = {row.name: row for row in _SUBCOMMANDS}
"""Of lava; ``lava NAME --help`` has their options."""


_JOBS = "[job_ID | 0 | job_ID[index_list]] ..."
_LISTED = "[job_ID | job_ID[index_list]] ..."
_JOB = "job_ID | job_ID[index]"
_MOVED = "job_ID | job_ID[index_list] [position]"


_ROWS = (
    # -- jobs ----------------------------------------------------------------------------------------------------------
    Command("bsub", "submit a job", native=True),
    Command("bmod", "change the options or the command of a job", native=True),
    Listing(
        "bjobs",
        "show jobs",
        "a A d p p0 p1 p2 p3 pe pei pi r s ss l w W WL WP WF UF X x fwd noheader json hms sum psum aff gpu prio plan"
        " script env hostfile cname aps data bucket -watch",
        "u q m J P N g G app o sla U Lp Jd rusage",
        _LISTED,
        "cname bucket",
        here="-watch",
        loose="p o",
        form="LSB_BJOBS_FORMAT",
    ),
    Listing(
        "bhist",
        "show the history of jobs",
        "a b d e l p r s t w UF gpu aff hostfile cname",
        "C D S T f n N P q m J Jd u app g G Lp",
        _LISTED,
        "cname",
    ),
    Listing(
        "bacct",
        "sum up jobs that have ended",
        "b d e l w x E UF gpu aff cname",
        "C D S f N P q m u J M app sla U G g Lp rcacct rcalloc",
        _LISTED,
        "cname rcacct rcalloc",
        here="M",
    ),
    Command("bpeek", "show the output of a job so far", "f", "m q J u g app", "[job_ID | job_ID[index]]"),
    Command(
        "bkill",
        "end jobs, or send them a signal",
        "l r b d cleanup",
        "s J q u m g app C sla stat",
        _JOBS,
        "cleanup",
        native=True,
    ),
    Command("bstop", "suspend jobs", "a d", "J q u m g app C N sla", _JOBS, "d N", native=True),
    Command("bresume", "resume suspended jobs", "", "J q u m g app C sla", _JOBS, native=True),
    Command(
        "brequeue", "end jobs and queue them again under their ids", "d e r a H p", "J u m q g app C", _LISTED, "p", native=True
    ),
    Command("bmig", "move running jobs to other hosts", "f d", "m J q u g app", _JOBS, "d"),
    Command("bchkpnt", "checkpoint jobs", "f k", "p m J q u g app", _JOBS),
    Command(
        "brestart",
        "submit a checkpointed job again, to start from its checkpoint",
        "B f N x H r rn ul",
        "a app b C c cwd D E Ep F G J M m n o oo e eo P p Q q R S sp t u v W w",
        f"checkpoint_dir [{_JOB}]",
        "f",
    ),
    Command("bswitch", "move jobs to another queue", "", "J q u m g app a", "queue_name " + _JOBS, native=True),
    Command("btop", "move a pending job towards the top of its queue", "u", "", _MOVED, native=True),
    Command("bbot", "move a pending job towards the bottom of its queue", "u", "", _MOVED, native=True),
    Command(
        "bresize",
        "release slots of a running job, ask for more, or cancel that",
        "c rncn",
        "rnc",
        "release released_host_specification job_ID | request [min_tasks,]tasks job_ID | cancel job_ID",
    ),
    Command("brun", "force a pending job to run now", "b c f", "m", _JOB),
    Command("bwait", "wait until a dependency condition is met", "", "w t r"),
    Listing("bjdepinfo", "show what a job waits for, and what waits for it", "p l c", "r", _JOB, loose="r c"),
    Listing("bjdep", "show the conditions that a job waits for", "l", "", _JOB),
    Listing("why", SUBCOMMANDS["why"].help, "", "", _JOB + " ..."),
    Listing("time-left", SUBCOMMANDS["time-left"].help, "", "", "[job_ID]"),
    Listing(
        "report",
        SUBCOMMANDS["report"].help,
        "csv html",
        "user project queue group by from to top",
    ),
    Listing("stats", SUBCOMMANDS["stats"].help, "", "", _JOB + " ..."),
    Listing(
        "api",
        "what programs read, in JSON",
        "",
        "state user queue project host app group search array sort limit cursor by from to steps",
        "[name ...]",
    ),
    Listing("status", SUBCOMMANDS["status"].help, "", "", ""),
    Command("bpost", "post a message to a job", "", "i d a J N", _JOB, "N", native=True),
    Listing("bread", "show the messages of a job; -a FILE saves attached data", "w", "i a J N", _JOB, "N", here="w", loose="a"),
    Listing("bstatus", "show or (-d) set the external status of a job", "l", "d J", _JOB, here="d", module="cli.bstatus"),
    Command("bgadd", "add a job group", "", "L sla", "job_group_name", "sla", native=True),
    Command("bgdel", "remove job groups that have no jobs", "c", "u", "job_group_name | 0", native=True),
    Command("bgmod", "change the limit of a job group", "Ln", "L u", "job_group_name", "u", native=True),
    Listing("bjgroup", "show the job groups", "s N l", "u", "[/job_group ...]"),
    Command("blaunch", "start tasks on the hosts of this job"),
    Command("mpirun.lsf", "start a parallel program by the launcher of its MPI library", module="cli.mpirun_lsf"),
    # -- the site ------------------------------------------------------------------------------------------------------
    Listing(
        "bhosts",
        "show the hosts of the batch system",
        "a w l x X s aff gpu rc rconly noheader json alloc cname e sl attr loc",
        "R o",
        "[host_name | host_group] ...",
        "rc rconly cname attr loc",
        loose="o",
        form="LSB_BHOSTS_FORMAT",
    ),
    Listing(
        "bqueues",
        "show the queues",
        "w l r noheader json alloc",
        "m u o",
        "[queue_name ...]",
        loose="o",
        form="LSB_BQUEUES_FORMAT",
    ),
    Listing(
        "busers",
        "show users and user groups",
        "w alloc noheader json a",
        "o",
        "[user_name | user_group | all] ...",
        loose="o",
        form="LSB_BUSERS_FORMAT",
    ),
    Listing("bparams", "show the parameters of the batch system", "a l w", "", "", help_exit=0),
    Listing("bapp", "show the application profiles", "l w alloc noheader", "", "[application_name ...]"),
    Listing("bugroup", "show user groups", "l r w noheader", "", "[user_group ...]"),
    Listing("bmgroup", "show host groups and compute units", "l r s w x cu noheader", "", "[host_group ...]", "s x"),
    Listing("bhpart", "show host partitions and their shares", "r w", "", "[host_partition_name ...]"),
    Listing("blimits", "show resource limits and their use", "w c a fwd gl", "n m u P p q Lp R A C o", "", "fwd gl C o"),
    Listing("bresources", "show resource limits and guarantees", "g l s p m", "", "[limit_name ...]"),
    Listing("bslots", "show slots that are free for backfill jobs", "l w", "n W R", ""),
    Listing("bsla", "show service classes", "N l", "", "[service_class ...]"),
    Listing("bclusters", "show what goes between clusters", "app w", "", "[cluster_name ...]"),
    Command(
        "brsvadd",
        "add an advance reservation",
        "o s f nosusp p",
        "N u g n m R b e t d q unit E Et Ep Ept",
        "",
        "p E Et Ep Ept",
    ),
    Command(
        "brsvmod",
        "change an advance reservation",
        "o on nosusp nonsuspn qn En Etn Epn Eptn",
        "d u q b e t E Et Ep Ept",
        "reservation_ID",
        "En Etn Epn Eptn E Et Ep Ept",
    ),
    Command("brsvdel", "delete advance reservations", "f", "", "reservation_ID ..."),
    Listing("brsvs", "show advance reservations", "l w", "p z c", "[reservation_ID ...]"),
    Listing("badmin", "administer the batch system", "", "t f", "[name ...]", module="cli.badmin"),  # of badmin hist
    # -- the base system -----------------------------------------------------------------------------------------------
    Listing("lsid", "show the cluster and its master", "", "", "", help_exit=0),
    Listing("lsclusters", "show the clusters", "l w", "", "[cluster_name ...]", help_exit=0),
    Listing(
        "lshosts",
        "show what hosts are and have",
        "l w s a T gpu mig noheader json cname sl loc",
        "R o",
        "[host_name ...]",
        "cname loc",
        loose="o",
        form="LSF_LSHOSTS_FORMAT",
        help_exit=0,
    ),
    Listing(
        "lsload",
        "show the load of hosts",
        "l w s N E a gpu gpuload noheader json cname",
        "R n I o",
        "[host_name ...]",
        "cname",
        loose="o",
        form="LSF_LSLOAD_FORMAT",
        help_exit=0,
    ),
    Listing("lsinfo", "show resources, host types and models", "l r m M t w", "", "[resource_name ...]"),
    Listing("lsplace", "show hosts on which tasks would be well placed", "L", "n w R", "[host_name ...]"),
    Listing("lsacct", "sum up tasks of a task log of LSF", "l", "C S f m u", "[pid ...]"),
    Command("lsacctmrg", "merge task logs of LSF by time", "f", "", "logfile_name ... target_logfile_name"),
    Command("lseligible", "say whether a task may run on another host", "q r s"),
    Command("lsrun", "run a task on a well placed host", "l L P S v", "m R", "command [argument ...]"),
    Command(
        "lsgrun",
        "run a task on each of several hosts",
        "i p P S v",
        "f m n R",
        "-f host_file | -m host_name ... | -n num_hosts | -R res_req [command ...]",
        "i",
    ),
    Command("lsadmin", "administer the base system"),
    Command("lava", "a cluster on this machine, job files, and what another configuration would do"),
)
COMMANDS = {row.name: row for row in _ROWS}
OF_LAVA = tuple(name for name in COMMANDS if name in SUBCOMMANDS)
"""Rows that are subcommands, as the master renders their text: ``lava why`` …"""
INSTALLED = tuple(name for name in COMMANDS if name not in (*OF_LAVA, "api"))
"""The names of the executables; ``api`` is for the page and REST."""
NATIVE = tuple(name for name in INSTALLED if COMMANDS[name].native)
