"""From the limits of a job to resource limits of its processes."""

from __future__ import annotations

from agent.starter.protocol.part import ResourceLimits
from proto import agent_pb2 as pb

CPU_GRACE = 30
"""Seconds of CPU from SIGXCPU (soft limit) to SIGKILL (hard limit)."""


def rlimits(limits: pb.Limits) -> ResourceLimits:
    """Limits by name: soft and hard in seconds and bytes. Memory is not among them: the agent watches it."""
    found: dict[str, tuple[int | None, ...]] = {}
    if limits.cpu:
        found["CPU"] = (limits.cpu, limits.cpu + CPU_GRACE)
    for name, kb in (("FSIZE", limits.file), ("DATA", limits.data), ("STACK", limits.stack)):
        if kb:
            found[name] = (kb * 1024, kb * 1024)
    if limits.core >= 0:
        found["CORE"] = (limits.core * 1024, limits.core * 1024)
    return found
