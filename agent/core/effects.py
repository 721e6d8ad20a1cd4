"""What the agent's decisions ask for, done by the runner."""

from __future__ import annotations

import msgspec


class Effect(msgspec.Struct, frozen=True, gc=False):
    """Something to do for one part."""

    uid: str


class Send(Effect, frozen=True):
    """Signal every process group of the part, or (``tasks``) only the processes that lava started."""

    signal: int
    tasks: bool = False


class KillAll(Effect, frozen=True):
    """SIGKILL everything until nothing is left."""


class Grant(Effect, frozen=True):
    """Tell the master that a wish is done, or why it cannot be."""

    wish: int
    ok: bool = True
    why: str = ""


class SayStopped(Effect, frozen=True):
    """Tell the master whether the part's processes are stopped."""

    stopped: bool


class AskCheckpoint(Effect, frozen=True):
    """Ask the job to write a checkpoint; when it is whole and ``kill_after``, end the part."""

    wish: int
    kill_after: bool = False


class SayCheckpoint(Effect, frozen=True):
    """Tell the master of a new whole checkpoint."""

    generation: int


class Run(Effect, frozen=True):
    """Run a command of the user's beside the job."""

    command: str


class Keep(Effect, frozen=True):
    """Note on disk what the agent must still know of the part after a restart of its own."""
