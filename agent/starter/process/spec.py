"""The description of a part, ready to run: its own fields merged with its template, and the environment encoded for exec.

Rule: what parts have in common is computed once per template.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from agent.starter.protocol.codec import Json, read_over
from agent.starter.protocol.part import NO_RANK, PartSpec, TaskSpec, read_template
from agent.starter.system import rlimits

Env = dict[str, bytes]


def encode_env(env: Mapping[str, object]) -> Env:
    """Variables by name, encoded as exec wants them (``NAME=value``); invalid ones are left out."""
    return {
        name: os.fsencode(f"{name}={value}")
        for name, value in env.items()
        if name and "=" not in name and "\0" not in name and "\0" not in str(value)
    }


class Template:
    """What several parts have in common, with the environment encoded for exec."""

    __slots__ = ("env", "limits", "part")

    def __init__(self, fields: Json) -> None:
        self.part = read_template(fields)
        self.env = encode_env(self.part.env)
        self.limits: rlimits.Limits | None = None


class Spec:
    """One part: its description, its environment and its PATH. Changed only before its tasks start."""

    __slots__ = ("_template", "env", "part", "path", "uid")

    def __init__(self, template: Template, own: Json) -> None:
        self._template = template
        self.part: PartSpec = read_over(template.part, own)
        self.uid = self.part.uid
        self.env: Env = template.env.copy()
        if self.part.env is not template.part.env:
            self.env |= encode_env(self.part.env)
        self.env["LAVA_ATTEMPT"] = os.fsencode(f"LAVA_ATTEMPT={self.uid}")
        path = self.env.get("PATH")
        self.path = os.fsdecode(path[5:]) if path is not None else None

    @property
    def title(self) -> str:
        """The job's id as users see it."""
        return self.part.title or self.uid

    @property
    def token(self) -> bytes:
        """The secret that the job's own commands must present, b"" if there is none."""
        return self.env.get("LAVA_TOKEN", b"LAVA_TOKEN=")[len("LAVA_TOKEN=") :]

    def limits(self) -> rlimits.Limits:
        """Its resource limits, compared with the present ones of this process."""
        asked, template = self.part.rlimits, self._template
        if asked is not template.part.rlimits:
            return rlimits.clamp(asked)
        if template.limits is None:
            template.limits = rlimits.clamp(asked)
        return template.limits

    @property
    def tasks(self) -> tuple[TaskSpec, ...]:
        """The tasks to start; () for a part that only holds its host."""
        return (TaskSpec(NO_RANK, {}),) if self.part.tasks is None else self.part.tasks
