"""A job draft: the spec and text that the options of bsub and bmod have built so far."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime

import msgspec
from msgspec.structs import replace

from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.site.conf import Conf


class JobDraft(msgspec.Struct):
    """A job in the making."""

    spec: Spec
    text: JobText
    conf: Conf
    local: datetime
    name: str = ""
    held: bool = False
    queues: tuple[str, ...] = ()
    condition: str = ""
    """``-w``, with ``orphan`` of ``-ti``."""
    orphan: bool = False
    tasks_asked: bool = False
    """The slots are those of ``-n``, which comes with this request."""
    ran: float | None = None
    """bmod of a running job: seconds that it has run."""
    restart: int = -1
    """brestart: the checkpoint generation to restart from."""
    has_checkpoint: bool = False
    """bmod and bswitch of a job that waits again: it has a checkpoint to go on from, and stays checkpointable."""
    notices: list[str] = []
    known_hosts: Container[str] = ()
    known_resources: frozenset[str] = frozenset()

    def set_spec(self, **fields: object) -> None:
        """Change fields of the spec."""
        self.spec = replace(self.spec, **fields)

    def set_text(self, **fields: object) -> None:
        """Change fields of the text."""
        self.text = replace(self.text, **fields)

    def set_limit(self, **fields: int | None) -> None:
        """Change limits."""
        self.spec = replace(self.spec, limits=replace(self.spec.limits, **fields))


def text_of(option: str, value: OptionValue) -> str:
    """The argument of an option, the last one where it is repeated; raises Refused where it has none."""
    if isinstance(value, list):
        value = value[-1] if value else ""
    if not isinstance(value, str):
        raise Refused(f"{option}: option requires an argument")
    return value
