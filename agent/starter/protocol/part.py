"""The description of a part: what the agent asks the starter to run on this host for one attempt of a job.

The agent makes it (agent/launch/build.py), the starter reads whose it is and passes it on, the shepherd runs it. Parts of one
job text share a template, sent once in a batch: on the wire a part has the name of its template and the fields that differ.

Rule: keys on the wire are never renamed, since a starter of another version may read them.
"""

# No "from __future__ import annotations": the codec reads the annotations.

from collections.abc import Mapping
from typing import NamedTuple

from agent.starter.protocol.codec import Json, ProtocolError, read_over, write_over

NO_RANK = -1
"""The rank of the one process of a part that has no ranks."""
NO_VARIABLES: Mapping[str, str] = {}


class User(NamedTuple):
    """Whose processes these are: the shepherd becomes this user, with these groups."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    """Supplementary groups; none: ``gid`` alone."""


class OutputFile(NamedTuple):
    """A file that standard output or error is written to; opened by the shepherd, as the user."""

    path: str
    append: bool = False
    """Else the file is emptied."""
    mkdir: bool = False
    """Make its folder where there is none."""


class JobFile(NamedTuple):
    """A file written before the tasks start: the job's script."""

    path: str
    text: str = ""
    """"": the ``script`` of the part, which stands in the template of all parts of the job."""
    mode: int = 0o700
    remove: bool = False
    """Remove it when the part is gone."""


class DeviceRule(NamedTuple):
    """Of the character devices of a major number, which may be opened."""

    major: int
    minors: tuple[int, ...]
    below: int
    """The other minor numbers that are smaller may not, larger ones may."""


class CgroupLimits(NamedTuple):
    """Limits that a cgroup keeps, where the starter can make one; 0: none."""

    memory_bytes: int = 0
    pids: int = 0
    """Processes and threads."""
    cpuset: tuple[int, ...] = ()
    """The only CPUs on which its processes may run; (): any."""
    nodes: tuple[int, ...] = ()
    """With ``cpuset``: the only NUMA nodes whose memory they may have; (): any."""
    devices: tuple[DeviceRule, ...] = ()
    """What no rule names may be opened."""


class Binding(NamedTuple):
    """What processes are bound to: CPUs and NUMA nodes by their numbers."""

    cpus: tuple[int, ...]
    nodes: tuple[int, ...]
    only: bool = False
    """Memory from these nodes only; else from the first of them where that is possible."""


ResourceLimits = Mapping[str, tuple[int | None, ...]]
"""Name of an rlimit (``CPU``, ``NOFILE``) to soft and hard limit in seconds or bytes; None and -1 are no limit."""
NO_LIMITS: ResourceLimits = {}


class TaskSpec(NamedTuple):
    """One process of a part; what it does not say is as the part says."""

    rank: int
    env: Mapping[str, str]
    """Over the part's own variables."""
    argv: tuple[str, ...] | None = None
    cwd: str = ""
    rlimits: ResourceLimits = NO_LIMITS
    stdout: OutputFile | None = None
    """Its own file instead of the part's output; standard error goes along."""
    stderr: OutputFile | None = None
    label: str = ""
    """What its lines begin with in the part's output, instead of its rank; only where the part labels lines."""
    bind: Binding | None = None
    scratch: str = ""
    """A folder of its own, made before it starts."""
    hold: bool = False
    """It has no process: it holds its slots for what others start there (role jobs)."""
    late: bool = False
    """It is not started with the part but by ``StartTask`` (role jobs)."""


class PmiSpec(NamedTuple):
    """PMI for the tasks of the part."""

    kvsname: str
    size: int
    """Ranks of the whole job."""
    mapping: str = ""
    """PMI_process_mapping."""


class LinkSpec(NamedTuple):
    """The network between the shepherds of a job's hosts, over TLS (wire/job_network.py); all connect to the first host's."""

    place: int
    """Which of the job's hosts this is, from 0; of a job whose hosts change, the node index of this host."""
    cert: str
    """PEM; every host of the job has the same one, and shows it."""
    key: str
    nodes: int = 1
    """Hosts of the job."""
    bind: str = ""
    """The address that the first host listens on; "" is 127.0.0.1."""
    elastic: bool = False
    """Hosts may join late and leave."""
    ranks: bool = True
    """The tasks of the part are ranks that start, fail and end together (mpi/rank_network.py); else it is for blaunch alone."""


class PortsSpec(NamedTuple):
    """Ports that this host keeps free for the job's own processes; marks ``@LAVA_PORT_<place>_<number>@`` stand for them."""

    place: int
    """Which of the job's hosts this is, from 0."""
    hosts: int
    """Hosts of the job."""
    count_: int
    first: int
    """Where the search begins, in ``low`` … ``low + of - 1``."""
    low: int
    of: int
    serve: int | None = None
    """Which of the ports (from 0) the shepherd serves itself, on 127.0.0.1, for Horovod's ranks to meet; None: none."""
    key: str = ""
    """What begins the path of every request there."""


class BlaunchSpec(NamedTuple):
    """The job may start tasks on its own hosts (blaunch)."""

    place: int
    """Which of ``hosts`` this is; of a job whose hosts change, the node index of this host."""
    hosts: tuple[str, ...]
    seats: tuple[int, ...] | None = None
    """Of a job whose hosts change: a number for each of ``hosts`` that stays its own."""
    gpus: tuple[str, ...] = ()
    """CUDA_VISIBLE_DEVICES of each task where a command starts one for every slot of this host; (): that of the part."""


class MpsSpec(NamedTuple):
    """An MPS control daemon of NVIDIA's for processes of the part."""

    folder: str
    """Made before it starts and removed with the part; its pipes and logs are in there."""
    gpus: str
    """CUDA_VISIBLE_DEVICES of the daemon."""

    @property
    def variables(self) -> dict[str, str]:
        """Those by which its clients find it."""
        return {"CUDA_MPS_PIPE_DIRECTORY": f"{self.folder}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{self.folder}/log"}


class CheckpointFolder(NamedTuple):
    """Where the job's checkpoints are: of the part on its first host, and of each part that has them on its own disk."""

    path: str
    of: str = ""
    """What ``path`` becomes a link to, where the job goes on from another one's checkpoints."""
    moves: bool = False
    """The job may start again on another machine, which must see the folder."""
    shared: tuple[str, ...] = ()
    """LAVA_SHARED_DIRS."""
    stage: str = ""
    """A folder that every host sees, with copies of its generations; "": there are none, and ``path`` itself must be seen."""
    part: str = ""
    """The folder in ``path`` for this host's part of each generation; "": ``path`` itself is for all of it."""


class InteractiveSpec(NamedTuple):
    """The user's terminal (bsub -I): which streams are the user's, and how other hosts reach it."""

    shell: bool = False
    """``-Is``: the job is a shell that reads Ctrl-Z itself."""
    tee: bool = False
    """Show what goes to a file too."""
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    bind: str = ""
    cert: str = ""
    """"": the user can attach on this host only."""
    key: str = ""


class PartSpec(NamedTuple):
    """A part, or (without ``uid``, ``key`` and ``attempt``) the template of many."""

    uid: str = ""
    """The random id of the attempt; parts that the agent adds itself have one with a suffix."""
    key: int = 0
    """The job: its number, plus 2**32 times the array index."""
    attempt: int = 0
    title: str = ""
    """How the job is named in messages and in ps: ``12[3]``."""
    user: User | None = None
    two_phase: bool = False
    """Report ``Prepared`` and wait for ``Go``."""
    deadline: float | None = None
    """When its lease ends; None: it runs without one."""

    env: Mapping[str, str] = NO_VARIABLES
    """A template's variables are those of all its parts; a part's are its own and go over them."""
    secrets: Mapping[str, str] = NO_VARIABLES
    """Variable to the file of the user's that has its value."""
    argv: tuple[str, ...] | None = None
    cwd: str = "/"
    cwd_else: tuple[str, ...] = ()
    """Folders tried in turn where ``cwd`` cannot be entered."""
    make_cwd: bool = False
    """``cwd`` is made where it is not there."""
    umask: int = 0o022
    nice: int = 0
    rlimits: ResourceLimits = NO_LIMITS
    cgroup: CgroupLimits | None = None
    bind: Binding | None = None
    tmpdir: str = ""
    """A folder made before the tasks start and removed with the part."""
    tmpdir_of_first: bool = False
    """``tmpdir`` is the job's on its first host, too, whose part removes it where both see the same."""
    script: str = ""
    """The job's script; of a part without ``jobfile`` it is not used."""
    jobfile: JobFile | None = None
    stdin: str | None = None
    """The file that is standard input; None: /dev/null."""
    input: bytes | None = None
    """Standard input itself, instead of a file."""
    stdout: OutputFile | None = None
    """None: /dev/null."""
    stderr: OutputFile | None = None
    """None: along with standard output."""
    notes: bool = False
    """What its task writes to standard error becomes the note of its end: a few lines."""
    label: bool = False
    """Each line of a task's output begins with its rank or label."""

    pre_exec: str | None = None
    """A shell command before the tasks; they start only when it ends with 0."""
    post_exec: str | None = None
    """A shell command after them."""
    post_always: bool = False
    """It runs whatever ended the tasks, a kill too."""
    grace: float = 2.0
    """Seconds from SIGTERM to SIGKILL for what the tasks leave behind."""

    tasks: tuple[TaskSpec, ...] | None = None
    """None: one process without a rank; (): the part only holds its host."""
    pmi: PmiSpec | None = None
    link: LinkSpec | None = None
    ports: PortsSpec | None = None
    led: bool = False
    """A role job: the master hears how each task ends and decides what follows."""
    clean_scratch: bool = False
    """Remove the scratch folders of the tasks with the part."""
    serve: BlaunchSpec | None = None
    interactive: InteractiveSpec | None = None
    mps: tuple[MpsSpec, ...] = ()
    checkpoint: CheckpointFolder | None = None

    @property
    def needs_tls(self) -> bool:
        """Whether its shepherd must have ``ssl`` loaded before it becomes the user."""
        return bool(self.link or (self.interactive and self.interactive.cert))


NOTHING = PartSpec()
_TEMPLATE = "t"
_OWN = ("uid", "key", "attempt", "user")


def read_template(obj: Json | None) -> PartSpec:
    """The template that an object is; ProtocolError when it is none."""
    if obj is None:
        raise ProtocolError("its template is not there")
    return read_over(NOTHING, obj)


def uid_of(obj: Json) -> str:
    """The uid of a part as it stands in ``Start``; ProtocolError when it has none."""
    uid = obj.get("uid")
    if not isinstance(uid, str):
        raise ProtocolError("a part without uid")
    return uid


def template_of(obj: Json) -> str:
    """The name of its template in the same order, "" for none."""
    return str(obj.get(_TEMPLATE) or "")


def read_part(template: PartSpec, obj: Json) -> PartSpec:
    """The part that an object and its template are; ProtocolError when they are none."""
    part = read_over(template, obj)
    for name in _OWN:
        if name not in obj and getattr(template, name) == getattr(NOTHING, name):
            raise ProtocolError(f"it has no {name}")
    return part


def write_part(part: PartSpec, template: PartSpec, name: str) -> Json:
    """A part for ``Start``: the name of its template there, and what differs from it."""
    found = write_over(template, part)
    found[_TEMPLATE] = name
    return found
