"""Submissions of one request that differ in little: what they have in common is read and checked once.

Rule: of what is kept, nothing depends on the name, command and files of a job, nor on jobs that were submitted since.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.core.decide.base.draft import JobDraft
from lavad.core.lang.asks import OptionValue, Submit
from lavad.core.lang.role_asks import PolicyAsk

OWN = frozenset(("J", "Jd", "o", "oo", "e", "eo"))
"""Options whose readers set what no other reader and no check but their own looks at."""
Common = tuple[JobDraft, QueueConfig, int | None]
"""A draft, its queue, and how many slots its user may have pending (None: any number)."""
Alike = dict[bytes, Common]
"""By what submissions have in common."""
_encode = msgspec.msgpack.Encoder().encode
_NO_POLICY = PolicyAsk()


def split_options(options: Mapping[str, OptionValue]) -> tuple[dict[str, OptionValue], dict[str, OptionValue]]:
    """-> (those that jobs have in common, those that each job has of its own)."""
    common: dict[str, OptionValue] = {}
    own: dict[str, OptionValue] = {}
    for name, value in options.items():
        (own if name in OWN else common)[name] = value
    return common, own


def key_of(ask: Submit, common: Mapping[str, OptionValue]) -> bytes | None:
    """What another submission has to have in common with it; None: its draft is of no use for another."""
    if ask.roles or ask.policy != _NO_POLICY or "a" in common:
        # the ways to start tasks look at the command
        return None
    return _encode((common, ask.cwd, ask.home, ask.umask, ask.shell, ask.checkpoint_folder, ask.checkpoint_mount))


def own_draft(common: JobDraft, ask: Submit) -> JobDraft:
    """A draft with what the submission itself says of its work."""
    return replace(common, text=replace(common.text, command=ask.command, script=ask.script, env=ask.env_hash))
