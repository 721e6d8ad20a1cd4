"""brestart: a checkpointed job is submitted again and restarts from its newest checkpoint.

Rule: options that are not given stay as they were, except that a dependency condition is dropped; only the owner may restart.
An element of an array becomes an array of that one index: its program and files go by it.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.submit.gpus import adopt_gpus
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Refused, Submit


class RestartSource(msgspec.Struct, frozen=True):
    """The finished job that brestart restarts."""

    spec: Spec
    text: JobText
    name: str
    staged: int = -1
    """Its newest generation that was copied; -1: there is none."""
    copies: str = ""
    """The name of its copies on other hosts, and which of them has which."""
    held: tuple[tuple[str, tuple[int, ...]], ...] = ()


def begin(draft: JobDraft, ask: Submit, source: RestartSource, from_host: str) -> None:
    """Fill the draft from the finished job, before the options are read."""
    draft.spec = source.spec
    adopt_gpus(draft)
    draft.spec = replace(draft.spec, queue="", dependency="", begin=0.0, from_host=from_host)
    draft.text = replace(source.text, env=ask.env_hash)
    draft.name = source.name
    draft.queues = (source.spec.queue,)


def settle(draft: JobDraft, ask: Submit, source: RestartSource) -> None:
    """After the options are read: set the checkpoint folder to restart from."""
    checkpoint, before = draft.spec.checkpoint, source.spec.checkpoint
    if checkpoint is None or before is None:
        raise Refused("Checkpoint log is not found or is corrupted")
    of = f"{ask.restart_of}.{ask.restart_index}" if ask.restart_index else f"{ask.restart_of}"
    draft.restart = source.staged if ask.restart_from is None else ask.restart_from
    if draft.restart < 0:
        raise Refused("Checkpoint log is not found or is corrupted")
    found = replace(before, folder=checkpoint.folder, of=of, seen=False)
    if before.to_hosts:  # each host has a folder of its own, where that of the former job may not be
        draft.restart = source.staged
        found = replace(found, of="", of_copies=source.copies, of_held=source.held)
    draft.set_spec(checkpoint=found)
