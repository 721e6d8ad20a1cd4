"""The records that single parameters are read into: limits, thresholds, shares, exit values, controls.

Rule: frozen, plain values. Times are seconds, sizes KB, None is "not set" or "unlimited". ``str`` of a record is the value as
LSF's files have it.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

LOAD_INDICES = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")
"""LSF's own, in the order in which it shows and numbers them."""
INDEX_ALIASES = {"cpu": "r1m", "login": "ls", "swap": "swp", "idle": "it"}
"""Other names of some."""
SHARE_KEYWORDS = ("default", "others")
"""Names in shares that stand for users who are not named."""
SUBFACTORS = {"RSRC": ("PROC", "MEM", "SWAP"), "WORK": ("JPRIORITY", "QPRIORITY")}
"""Factors of APS_PRIORITY that have others below them; FS has none."""


class Limits(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Resource limits of one job, RUNLIMIT to THREADLIMIT. None is unlimited."""

    run: int | None = None
    cpu: int | None = None
    mem: int | None = None
    swap: int | None = None
    file: int | None = None
    data: int | None = None
    stack: int | None = None
    core: int | None = None
    processes: int | None = None
    threads: int | None = None


class TaskLimit(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """TASKLIMIT: `[minimum [default]] maximum` slots of one job."""

    minimum: int = 1
    default: int = 1
    maximum: int | None = None


class Thresholds(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """`r1m = 0.7/2.0`: load index and value. Beyond `sched` no job starts on a host, beyond `stop` jobs are suspended."""

    sched: tuple[tuple[str, float], ...] = ()
    stop: tuple[tuple[str, float], ...] = ()


CHKPNT_DEFAULTS = ("", "auto", "default")
"""Names that are no method: LSB_ECHKPNT_METHOD decides, else ``app``; ``default`` is ``app`` itself."""
_NOT_HERE = {
    "dmtcp": "lava starts no program under dmtcp_launch",
    "cuda": "lava cannot restore the state of GPUs",
}


def why_not_method(name: str) -> str:
    """Why a job cannot be checkpointed by a method of this name; "": it can, by its program (``app``) or by the site's."""
    if name and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", name):
        return f"{name[:80]}: Bad checkpoint method"
    if name in _NOT_HERE:
        return f"{name}: this checkpoint method is not supported by lava: {_NOT_HERE[name]}"
    return ""


class Chkpnt(msgspec.Struct, frozen=True, omit_defaults=True):
    """CHKPNT of a queue, and CHKPNT_DIR with its kin of an application profile."""

    dir: str
    """"": its jobs are checkpointable by their own -k only."""
    period: int | None = None
    """Seconds; None: only when asked."""
    initial: int = 0
    """CHKPNT_INITPERIOD: seconds until the first one; 0: as `period`."""
    method: str = ""

    def __str__(self) -> str:
        return self.dir if self.period is None else f"{self.dir} {self.period // 60}"


Shares = tuple[tuple[str, int], ...]
"""USER_SHARES: a user, group, ``group@``, ``default`` or ``others``, and its shares."""


class FairShare(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fair share policy of a queue or host partition; what lsb.queues leaves open is filled in from lsb.params."""

    shares: Shares = ()
    queues: tuple[str, ...] = ()
    """FAIRSHARE_QUEUES (or QUEUE_GROUP): the other queues that this policy rules."""
    by_queue: bool = False
    """DISPATCH_ORDER=QUEUE: queue priority goes before the users' priority."""
    hist_hours: float = 5.0
    cpu_time_factor: float = 0.7
    run_time_factor: float = 0.7
    run_job_factor: float = 3.0
    gpu_run_time_factor: float = 0.0
    committed_run_time_factor: float = 0.0
    enable_hist_run_time: bool = False
    """The run time of finished jobs counts."""
    enable_gpu_hist_run_time: bool = False
    run_time_decay: bool = False
    """The run time of running jobs decays as well."""
    dominant_resources: tuple[str, ...] = ()
    """The priority is by the dominant share of these (slots, mem, gpus)."""
    round_robin: bool = False
    """ROUND_ROBIN_POLICY: users take turns."""
    of_group_alone: bool = False
    """QUEUE_GROUP without FAIRSHARE: the queues are one line, and no user has shares of their own."""


class Aps(msgspec.Struct, frozen=True, omit_defaults=True):
    """APS_PRIORITY: (factor or subfactor, number) of each kind; grace periods in seconds."""

    weights: tuple[tuple[str, float], ...] = ()
    limits: tuple[tuple[str, float], ...] = ()
    graces: tuple[tuple[str, float], ...] = ()


class Preemption(msgspec.Struct, frozen=True, omit_defaults=True):
    """PREEMPTION. The lists name queues, those in `preempts` with their preference (`low+1`) if they have one; an empty
    list means any queue."""

    preemptive: bool = False
    preemptable: bool = False
    preempts: tuple[tuple[str, int | None], ...] = ()
    preempted_by: tuple[tuple[str, int | None], ...] = ()

    def __bool__(self) -> bool:
        return self.preemptive or self.preemptable

    def __str__(self) -> str:
        both = (("PREEMPTIVE", self.preemptive, self.preempts), ("PREEMPTABLE", self.preemptable, self.preempted_by))
        return " ".join(f"{word}[{_preferred(names)}]" if names else word for word, is_set, names in both if is_set)


def _preferred(names: tuple[tuple[str, int | None], ...]) -> str:
    return " ".join(name if level is None else f"{name}+{level}" for name, level in names)


class ExtendableRunlimit(msgspec.Struct, frozen=True, omit_defaults=True):
    """EXTENDABLE_RUNLIMIT: a soft run limit, and what becomes of a job that reaches it. Times in seconds."""

    base: int
    increment: int
    """By so much it is extended, as often as nobody needs the job's slots."""
    grace: int = 0
    """So much the job has left otherwise."""
    requeue: bool = False
    """It then waits again."""

    def __str__(self) -> str:
        minutes = {"BASE": self.base, "INCREMENT": self.increment, "GRACE": self.grace}
        words = [f"{name}[{seconds // 60}]" for name, seconds in minutes.items()]
        return " ".join([*words, f"REQUEUE[{'Y' if self.requeue else 'N'}]"])


class RequeueExit(msgspec.Struct, frozen=True, omit_defaults=True):
    """REQUEUE_EXIT_VALUES and ``bsub -Q``: which exit values make a job wait again.

    `all` but `never`, or `values`; a job that ended with one of `excluding` does not go back to the hosts it ended on.
    """

    all: bool = False
    values: tuple[int, ...] = ()
    never: tuple[int, ...] = ()
    excluding: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> RequeueExit:
        """`[all] [~n …] [n …] [EXCLUDE(n …)]`; raises ValueError."""
        excluding: list[int] = []
        for inside in re.findall(r"EXCLUDE\s*\(([^()]*)\)", text, re.IGNORECASE):
            excluding += parse_exit_values(inside)
        rest = re.sub(r"EXCLUDE\s*\([^()]*\)", " ", text, flags=re.IGNORECASE).split()
        plain = [word for word in rest if word.lower() != "all" and not word.startswith("~")]
        return cls(
            all="all" in [word.lower() for word in rest],
            values=parse_exit_values(" ".join(plain)),
            never=parse_exit_values(" ".join(word[1:] for word in rest if word.startswith("~"))),
            excluding=tuple(excluding),
        )

    def __bool__(self) -> bool:
        return self != RequeueExit()

    def __str__(self) -> str:
        words = ["all"] if self.all else [str(value) for value in self.values]
        words += [f"~{value}" for value in self.never]
        if self.excluding:
            words.append(f"EXCLUDE({' '.join(map(str, self.excluding))})")
        return " ".join(words)

    def wants(self, exit_code: int) -> bool:
        """Whether a job that ended with this code (negative: a signal) is to be requeued."""
        code = _exit_value(exit_code)
        named = code in self.values or code in self.excluding or (self.all and code != 0)
        return named and code not in self.never

    def excludes(self, exit_code: int) -> bool:
        """Whether the job does not go back to the hosts on which it ended with this code."""
        return _exit_value(exit_code) in self.excluding


def _exit_value(exit_code: int) -> int:
    return exit_code if exit_code >= 0 else 128 - exit_code


def parse_exit_values(text: str) -> tuple[int, ...]:
    """Exit values with blanks or commas between them; raises ValueError."""
    words = text.replace(",", " ").split()
    for word in words:
        if not re.fullmatch(r"[0-9]{1,3}", word) or int(word) > 255:
            raise ValueError(f"'{word}' is not an exit value from 0 to 255")
    return tuple(map(int, words))


class JobAction(StrEnum):
    """What JOB_CONTROLS can replace."""

    SUSPEND = "SUSPEND"
    RESUME = "RESUME"
    TERMINATE = "TERMINATE"


class JobControl(msgspec.Struct, frozen=True):
    """One part of JOB_CONTROLS: `what` is a signal's name, CHKPNT, or a command."""

    action: JobAction
    what: str

    def __str__(self) -> str:
        return f"{self.action}[{self.what}]"


class TerminateWhen(StrEnum):
    """When a job is terminated instead of suspended."""

    LOAD = "LOAD"
    PREEMPT = "PREEMPT"
    WINDOW = "WINDOW"


class Interactive(StrEnum):
    """INTERACTIVE: which jobs a queue takes."""

    YES = "yes"
    NO = "no"
    ONLY = "only"


class Backfill(StrEnum):
    """LAVA_BACKFILL: whether one waiting job has a reservation that backfill must respect, or the first ones all have."""

    EASY = "easy"
    CONSERVATIVE = "conservative"


class Resizable(StrEnum):
    """RESIZABLE_JOBS."""

    NO = ""
    YES = "yes"
    AUTO = "auto"
