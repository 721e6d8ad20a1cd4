"""One of the jobs that a caller submits together: part of ``asks.Bulk``."""

from __future__ import annotations

from typing import Annotated

import msgspec

from lavad.core.lang import bounds as b
from lavad.core.lang.role_asks import PolicyAsk, RoleAsk


class BulkJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a job has of its own; the fields mean what they mean in ``asks.Submit``."""

    command: b.Command
    script: b.Script = ""
    env: b.Changes = {}
    """Variables that differ from the request's; None: the job does not have it."""
    cwd: b.Path = ""
    """"": the request's."""
    options: b.Options = {}
    """Each in the place of the request's option of that name."""
    checkpoint_folder: b.Path = ""
    checkpoint_probe: b.Path = ""
    checkpoint_mount: b.Path = ""
    roles: Annotated[list[RoleAsk], msgspec.Meta(max_length=1_000)] = []
    policy: PolicyAsk = PolicyAsk()
