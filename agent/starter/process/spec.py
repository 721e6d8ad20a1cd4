"""A part as the shepherd sees it: the template that many parts share, and what is its own.

Rule: what does not change from part to part is computed once for each template.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agent.starter.system import rlimits

Env = dict[str, bytes]


def encode_env(env: Mapping[str, Any]) -> Env:
    """Variables as exec wants them, by name; what cannot be a variable is left out."""
    return {
        name: os.fsencode(f"{name}={value}")
        for name, value in env.items()
        if name and "=" not in name and "\0" not in name and "\0" not in str(value)
    }


class Template:
    """The fields that parts share, with the environment ready for exec."""

    __slots__ = ("env", "fields", "limits")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.env = encode_env(fields.get("env") or {})
        self.limits: rlimits.Limits | None = None


class Spec:
    """One part: fields of its own over those of its template, the environment merged."""

    __slots__ = ("_template", "env", "fields", "path", "uid")

    def __init__(self, template: Template, own: dict[str, Any]) -> None:
        self._template = template
        self.fields: dict[str, Any] = {**template.fields, **own}
        self.uid: str = self.fields["uid"]
        self.env: Env = {**template.env, **encode_env(own.get("env") or {})}
        self.env["LAVA_ATTEMPT"] = os.fsencode(f"LAVA_ATTEMPT={self.uid}")
        path = self.env.get("PATH")
        self.path = os.fsdecode(path[5:]) if path is not None else None

    def get(self, name: str, default: Any = None) -> Any:
        """A field; ``default`` too where it is null."""
        value = self.fields.get(name)
        return default if value is None else value

    def limits(self) -> rlimits.Limits:
        """Its resource limits, for this process as it is."""
        asked: dict[str, list[int | None]] = self.get("rlimits", {})
        if not asked:
            return rlimits.NO_CHANGE
        template = self._template
        if asked is not template.fields.get("rlimits"):
            return rlimits.clamp(asked)
        if template.limits is None:
            template.limits = rlimits.clamp(asked)
        return template.limits

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """The processes to start; [] is a part that only holds its host."""
        tasks = self.fields.get("tasks")
        return [{"rank": -1, "env": {}}] if tasks is None else tasks
