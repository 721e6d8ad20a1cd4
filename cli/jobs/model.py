"""What a job file says, whatever its layout: bsub's options, a command, roles and how they depend on each other.

Rule: it is what bsub would send; numbers and words are checked once more by the master.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from cli.client.context import Fail
from cli.jobs.identity import Identity
from proto.roles import LAUNCHERS

Action = tuple[str, str, int]
"""(event, what is done, the exit code that it is about or -1)."""
Options = dict[str, str | bool | list[str]]


def minutes_of(seconds: int) -> str:
    """Seconds as an option of bsub has them, whole minutes: at least one."""
    return str(max(1, math.ceil(seconds / 60)))


@dataclass
class Role:
    """One role, as the ask has it."""

    name: str
    command: str = ""
    count: int = 1
    least: int = 0
    slots: int = 1
    gpus: int = 0
    resreq: str = ""
    limits: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = ""
    software: str = ""
    restart: str = "Never"
    spread: bool = False
    scratch: bool = False
    kind: str = ""
    actions: list[Action] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    backoff: int = -1
    group: int = 0
    backoff_each: bool = False

    def frame(self) -> dict[str, object]:
        """Its part of the ask: what is not as it is by itself."""
        return {name: value for name, value in vars(self).items() if name == "name" or value != getattr(_PLAIN, name)}


_PLAIN = Role("")


@dataclass
class Policy:
    """As the ask has it."""

    framework: str = ""
    success: str = ""
    clean: str = "running"
    launcher_start: str = "when_ready"
    backoff: int = 6
    nproc: int = 0
    actions: list[Action] = field(default_factory=list)
    array_backoff: bool = False
    array_failures: int = -1
    time_limit: int = 0
    array_success: list[str] = field(default_factory=list)

    def frame(self) -> dict[str, object]:
        """Its part of the ask."""
        return {name: value for name, value in vars(self).items() if value != getattr(_DEFAULT, name)}


_DEFAULT = Policy()


@dataclass
class JobFile:
    """A job file, read. ``ignored`` are the fields of a manifest that mean nothing here."""

    options: Options = field(default_factory=dict)
    command: str = ""
    roles: list[Role] = field(default_factory=list)
    policy: Policy = field(default_factory=Policy)
    env: dict[str, str] = field(default_factory=dict)
    images: dict[str, tuple[str, str]] = field(default_factory=dict, compare=False)
    """Role to the image of its container and how it is pulled, of a manifest."""
    gpu_shares: dict[str, int] = field(default_factory=dict, compare=False)
    """Role with GPUs to the MB that it reserves of each, of a manifest; 0: it has them for itself."""
    priority_class: str = field(default="", compare=False)
    """The name of a manifest's priority class, or a number."""
    together: int = field(default=0, compare=False)
    """How many tasks start together at least, of a manifest (0: all that the roles say)."""
    elastic: bool = field(default=False, compare=False)
    """Whether a manifest asks for a job that grows and shrinks while it runs."""
    identities: dict[str, Identity] = field(default_factory=dict, compare=False)
    """Role to what its tasks know of themselves, of a manifest."""
    bare: dict[str, str] = field(default_factory=dict, compare=False)
    """Role to the command of its container, without what sets variables for it."""
    levels: list[list[str]] = field(default_factory=list, compare=False)
    """Names of roles that run together, those of each item once all of the item before have ended well; none: all together."""
    before: list[tuple[str, JobFile]] = field(default_factory=list, compare=False)
    """(condition, job): what this one waits for, such as the end of another (done)."""
    enough: int = 0
    """How many elements of an array have to be done for whoever waits for it; 0: all."""
    secrets: list[str] = field(default_factory=list, compare=False)
    """Variables whose values a manifest takes from a Secret."""
    settings: dict[str, str] = field(default_factory=dict, compare=False)
    """Settings of a manifest's program that are in no variable of their own."""
    ignored: list[str] = field(default_factory=list)

    def ignore(self, *names: str) -> None:
        """Note fields that mean nothing here, each once."""
        self.ignored += [name for name in names if name not in self.ignored]

    def share_gpus(self, where: str) -> None:
        """GPUs of which a part of the memory is asked for are shared with other jobs. Raises Fail where roles differ in that."""
        shares = set(self.gpu_shares.values())
        if len(shares) > 1:
            raise Fail(f"{where}: {', '.join(self.gpu_shares)}: roles of one job share GPUs alike, or none does")
        if share := shares.pop() if shares else 0:
            self.options["gpu"] = f"num=1:gmem={share}MB:j_exclusive=no"

    def say_spare(self) -> None:
        """Name what becomes of tasks that need not start with the others."""
        if any(role.least for role in self.roles):
            self.ignore("minAvailable once the job runs (tasks that find no room when it starts do not run)")

    def start_together(self, together: int, where: str) -> None:
        """How many tasks start together at least (minAvailable): what may be missing, is missing of the last tasks first.

        Raises Fail for more than there are, which would never start.
        """
        most = sum(role.count for role in self.roles)
        if not 0 <= together <= most:
            raise Fail(f"{where}: {together} is not between 0 and {most}, the tasks of the job")
        spare = max(0, sum(role.least or role.count for role in self.roles) - together)
        for role in reversed(self.roles):
            least = role.least or role.count
            less = min(spare, least - 1)
            if less:
                role.least, spare = least - less, spare - less

    def outlive_hosts(self) -> None:
        """A job that starts failed tasks again does so with those of a lost host, as operators replace the pods of a lost node.

        What cannot keep its deadline over several attempts (``make_resizable``) stays as it is.
        """
        restarts = [role.restart for role in self.roles if role.restart != "Never"]
        restarts += [done for _, done, _ in self.policy.actions if done == "RestartJob"]
        if restarts and self.policy.backoff > 0 and not (self.elastic and self.policy.time_limit):
            self.options["r"] = True

    def check_names(self, where: str) -> None:
        """Raises Fail where two roles have one name."""
        names = [role.name for role in self.roles]
        for name in names:
            if names.count(name) > 1:
                raise Fail(f"{where}: {name[:64]} is given twice")

    def shown_command(self) -> str:
        """What bjobs shows: the command of the role that leads."""
        if self.command or not self.roles:
            return self.command
        leads = [role for role in self.roles if role.kind in LAUNCHERS and role.command]
        return next((role.command for role in (*leads, *self.roles) if role.command), "")
