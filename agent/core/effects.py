"""What is to be done after a decision of ``agent.core``; ``agent.parts`` does it."""

from __future__ import annotations

import msgspec


class Effect(msgspec.Struct, frozen=True, gc=False):
    """One thing to do for the part ``uid``."""

    uid: str


class Send(Effect, frozen=True):
    """Signal every process group of the part or, with ``tasks``, only its task processes that catch the signal."""

    signal: int
    tasks: bool = False


class KillAll(Effect, frozen=True):
    """SIGKILL every process of the part until none is left."""


class Answer(Effect, frozen=True):
    """Report to the master that its request was carried out, or ``why`` not."""

    request: int
    ok: bool = True
    why: str = ""


class ReportStopped(Effect, frozen=True):
    """Report to the master whether the part is stopped."""

    stopped: bool


class AskCheckpoint(Effect, frozen=True):
    """Ask the job to write a checkpoint; with ``kill_after``, end the part once it is complete.

    ``request`` 0: nobody waits for it. ``within``: seconds after which the part ends without one, and if it fails; 0: it runs on.
    """

    request: int
    kill_after: bool = False
    within: float = 0.0


class MakeCheckpoint(Effect, frozen=True):
    """Have the site's program write a checkpoint; ``kill``: the job ends with it."""

    kill: bool = False


class ReportCheckpoint(Effect, frozen=True):
    """Report to the master a checkpoint that is whole, or ``why`` it is not (``generation`` -1: there is none).

    ``seconds``: from the request to the end, 0: nobody asked; ``size``: in bytes, 0: not known. ``newest``: the newest that is
    whole, where that is another than was known.
    """

    generation: int
    seconds: float = 0.0
    size: int = 0
    why: str = ""
    newest: int | None = None


class Run(Effect, frozen=True):
    """Run a shell command as the user, in the job's environment."""

    command: str


class Save(Effect, frozen=True):
    """Write the part to the agent's journal: it must survive a restart of the agent."""


class StageGeneration(Effect, frozen=True):
    """Copy a checkpoint generation to the shared folder, or to the host that holds the job's."""

    generation: int


class ReportStaged(Effect, frozen=True):
    """Report to the master that a generation is whole in the shared folder or on ``host``, or ``why`` it is not.

    ``seconds``: that it took; ``size``: bytes there. ``host`` with ``why``: it is that host which has failed.
    """

    generation: int
    seconds: float
    size: int = 0
    why: str = ""
    host: str = ""
