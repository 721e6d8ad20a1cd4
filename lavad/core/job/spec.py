"""What a user submitted. ``Spec`` is what the scheduler needs, shared by all equal jobs; ``JobText`` is the rest.

A ``Spec`` never changes and is kept once in memory under a number (the job's class); ``JobText`` (command, files, mail)
differs from job to job and stays in the store.
"""

from __future__ import annotations

import msgspec

from config.model.values import Limits
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.ranges import EMPTY, Ranges


class Checkpoint(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """``bsub -k``: folder, period and initial period in seconds (0: only when asked), method (``app``, a site's)."""

    folder: str
    period: int = 0
    method: str = ""
    """"" and ``auto``: as LSB_ECHKPNT_METHOD says on its host, else ``app``."""
    initial: int = 0
    of: str = ""
    """brestart: subfolder of ``folder`` (a job number) with the checkpoint generations to restart from."""
    auto: bool = False
    """The period follows from what a checkpoint costs and how often hosts fail."""
    requeues: bool = False
    """``runlimit=requeue``: an attempt that made a checkpoint and reached the run limit is followed by another one."""
    keep: int = 0
    """Generations that lava keeps, where it writes them (a site's method); 0: as LAVA_CHKPNT_KEEP says."""
    seen: bool = False
    """All hosts were found to see ``folder`` when it was submitted, of which their mounts say otherwise."""
    stage: str = ""
    """``stage``: the folder, which every host sees, below which generations are copied; ``folder`` is then one host's own."""
    to_hosts: bool = False
    """``stage`` without such a folder: generations are copied to the disk of another host."""
    of_copies: str = ""
    """brestart of such a job: the name of its copies (``core.rules.copy_hosts.name_of``), and the generations that hosts have."""
    of_held: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def copied(self) -> bool:
        """Whether its generations are copied, so that ``folder`` may be one host's own."""
        return bool(self.stage) or self.to_hosts


class Action(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What to do on an event of a task: ``TaskFailed``, ``TaskCompleted`` or ``Any``, optionally only for one exit code."""

    event: str
    action: str
    """``RestartJob``, ``RestartJobUncounted``, ``RestartTask``, ``RestartGroup``, ``RestartGroupUncounted``, ``RestartRole``,
    ``AbortJob``, ``AbortArray``, ``CompleteJob`` or ``Ignore``."""
    code: int = -1
    delay: float = 0.0
    """Seconds from the event until it is done, unless the task runs again by then."""


class Role(msgspec.Struct, frozen=True, omit_defaults=True):
    """One role of a job: ``count`` tasks of one kind. Requirements and limits are those of one task."""

    name: str
    count: int = 1
    least: int = 1
    """Minimum number of tasks to start with; up to ``count`` where there is room."""
    slots: int = 1
    resreq: str = ""
    gpus: int = 0
    limits: Limits = Limits()
    restart: str = "Never"
    """``Never``, ``OnFailure``, ``Always``, or ``ExitCode``: 1 to 127 is final, 128 to 255 or a signal is retried."""
    spread: bool = False
    """At most one of its tasks on a host."""
    kind: str = ""
    """``launcher``: it starts when all others run, ``launcher_worker``: and is one of those in which it starts tasks itself;
    ``hold``: it only holds slots, for tasks that a launcher starts there."""
    actions: tuple[Action, ...] = ()
    after: tuple[str, ...] = ()
    """Roles whose tasks have all been started before these are."""
    backoff: int = -1
    """Maximum of restarts of its tasks (of each group, where it has some) in an attempt, which do not count for the job's own;
    -1: they do."""
    group: int = 0
    """So many of its tasks, by index, are a group, which may be restarted as a whole; 0: all of them are one."""
    backoff_each: bool = False
    """``backoff`` is that of each task."""


class Enough(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many elements of an array, out of which, are enough for it to have succeeded."""

    count: int
    indices: Ranges = EMPTY
    """EMPTY: out of all."""


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the tasks of a job with roles depend on each other."""

    framework: str = ""
    """Framework whose environment variables the tasks get: ``mpi``, ``mpich``, ``intelmpi``, ``pytorch``, ``tensorflow``,
    ``volcano``, ``volcano(PLUGIN,WORD=ROLE)``; "": only lava's own."""
    success: str = "all"
    """Roles, each perhaps with an index (``chief,worker[0]``), ``all``, ``any``, ``any(ROLES)`` or ``any(NUMBER,ROLES)``: the
    job is done once these, or any one task of these or so many, have ended successfully; ``least(NUMBER,ROLES)``: once all have
    ended, so many of them well."""
    clean: str = "running"
    """What happens then to tasks that still run: ``running`` and ``all`` end them (``all`` also removes scratch folders)."""
    launcher_start: str = "when_ready"
    backoff: int = 6
    """Maximum of restarts of tasks and of the job."""
    nproc: int = 0
    """Processes that a task starts itself (torchrun); 0: the task is one process."""
    actions: tuple[Action, ...] = ()
    array_backoff: bool = False
    """Of an array: ``backoff`` is that of all elements together, and once it is used up all of them end."""
    array_failures: int = -1
    """Of an array: how many elements may fail; once more have, the others end. -1: any number."""
    time_limit: int = 0
    """Seconds from its first start, of an array from that of its first element, after which all of it ends, however often it was
    started again since; 0: no limit."""
    array_success: tuple[Enough, ...] = ()
    """Of an array: once any of these holds it has succeeded, and what is left of it ends as DONE."""


class Spec(msgspec.Struct, frozen=True, omit_defaults=True, cache_hash=True):
    """Everything that determines where and when a job may run. Jobs with an equal spec are one class for the scheduler."""

    user: str
    queue: str
    slots: int = 1
    max_slots: int = 1
    project: str = "default"
    resreq: str = ""
    gpu: GpuReq | None = None
    hosts: tuple[str, ...] = ()
    """``-m`` as given: host or group names, each perhaps with ``+n`` or ``!``."""
    exclusive: bool = False
    limits: Limits = Limits()
    cpu_host: str = ""
    run_host: str = ""
    """Host or model that the CPU or run limit is given for."""
    estimate: int = 0
    """``-We``: estimated run time in seconds, used only for planning; 0: not given."""
    priority: int = -1
    """User priority (``-sp``); -1: not given."""
    begin: float = 0.0
    deadline: float = 0.0
    rerunnable: bool = False
    checkpoint: Checkpoint | None = None
    dependency: str = ""
    launch: str = ""
    """How tasks are started: "" (the command once, on the first host), "mpi" (every rank, with PMI), a framework's name."""
    from_host: str = ""
    group: str = ""
    """Job group path (``-g``)."""
    user_group: str = ""
    app: str = ""
    requeue: str = ""
    """``-Q``, or its application's REQUEUE_EXIT_VALUES: exit values with which it is requeued."""
    interactive: bool = False
    never_rerun: bool = False
    """``-rn``, or RERUNNABLE=no of an application profile: not rerunnable even in a queue with RERUNNABLE."""
    resizable: bool = False
    """Its hosts may change while it runs (RESIZABLE_JOBS); ``autoresize``: it grows by itself (``-ar``)."""
    autoresize: bool = False
    resize_command: str = ""
    """``-rnc``, or its application's RESIZE_NOTIFY_CMD."""
    roles: tuple[Role, ...] = ()
    """Its roles, if it has several; ``slots`` and ``max_slots`` are then their sums."""
    policy: Policy = Policy()
    gpu_own: GpuReq | None = None
    """What the job itself asks of GPUs (``-gpu``); ``gpu`` is that together with what application, queue and cluster say."""
    migrate_after: int = -1
    """``-mig``: seconds of suspension by the system after which it migrates; -1: as its application or queue has it."""
    reservation: str = ""
    """``-U``: the advance reservation that it runs in."""
    memory_auto: bool = False
    """``-M auto``: an attempt that reaches the memory limit is followed by one with twice of it."""
    service_class: str = ""
    """``-sla``: the service class that it is to belong to; "": one with AUTO_ATTACH, or none."""

    @property
    def is_timed(self) -> bool:
        """Whether time alone may do something in its jobs: a deadline, a time limit of the whole job, actions with a delay."""
        return bool(self.deadline or self.policy.time_limit or self.has_delays)

    @property
    def has_delays(self) -> bool:
        """Whether an action of its policies waits for some time."""
        return any(one.delay for some in (self.policy.actions, *(role.actions for role in self.roles)) for one in some)

    @property
    def expected(self) -> int | None:
        """Seconds that the scheduler expects it to run: its estimate, else its run limit; None: unknown."""
        return self.estimate or self.limits.run


class RoleText(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the tasks of a role run."""

    command: str = ""
    env: dict[str, str] = {}
    cwd: str = ""
    software: tuple[tuple[str, ...], ...] = ()
    """Software environments (modules, container …) around its command, inside those of the job."""
    scratch: bool = False
    """Each task has a scratch folder of its own on its host until the job ends."""


class JobText(msgspec.Struct, frozen=True, omit_defaults=True):
    """The text of a job: kept in the store, read when it starts or is shown at length. Paths are as given."""

    command: str
    script: str = ""
    """The whole script of ``bsub < FILE`` or ``bsub FILE``; then ``command`` is what bjobs shows."""
    env: str = ""
    """Hash of the environment, kept once in the store (see ``store``)."""
    cwd: str = ""
    home: str = ""
    shell: str = ""
    input: str = ""
    output: str = ""
    output_overwrite: bool = False
    error: str = ""
    error_overwrite: bool = False
    output_dir: str = ""
    mail_user: str = ""
    notify_start: bool = False
    notify_end: bool = False
    pre_exec: str = ""
    post_exec: str = ""
    description: str = ""
    on_hold: bool = False
    """Submitted with ``-H``; kept after the job is released."""
    umask: int = 0o022
    label: bool = False
    """Prefix each output line of a rank with its number."""
    rank_files: str = ""
    """Pattern of one output file for each rank (%R)."""
    login_shell: str = ""
    array_spec: str = ""
    """``-J`` as given, for arrays: LSB_JOBNAME keeps it."""
    esub: str = ""
    cwd_given: bool = False
    submit_cwd: str = ""
    """The folder that it was submitted from, where it runs in another."""
    software: tuple[tuple[str, ...], ...] = ()
    """Software environments around the command, outermost first: modules, container, conda, venv; each (name, values …)."""
    warn_action: str = ""
    """``-wa``: a signal, CHKPNT or a command, ``warn_before`` (``-wt``) seconds before the job is ended by its run limit."""
    warn_before: int = 0
    roles: tuple[RoleText, ...] = ()
    """One for each role of the spec."""
    secrets: tuple[tuple[str, str], ...] = ()
    """Variables whose values stay in files of the user's: (variable, path on the execution host)."""
    interactive: str = ""
    """``I``, ``Ip`` or ``Is``; "" for a batch job."""
    tee: bool = False
    """``-tty``: output that goes to files is also shown on the terminal."""
    input_data: str = ""
    """``-is``: contents of the input file at submission, in base64."""
    notify: str = ""
    """Events that send mail beside ``-B`` and ``-N``: words out of ``exit done start suspend``."""
    copies: tuple[str, ...] = ()
    """``-f``: files that are copied before and after the job."""
    pend_limit: int = 0
    """``-ptl`` in minutes: shown only, as in LSF."""
    eligible_limit: int = 0
    """``-eptl``."""
    host_file: str = ""
    """``-hostfile``: its name; its contents are part of the requirement."""


NO_TEXT = JobText(command="")
"""In place of one that is not there."""
