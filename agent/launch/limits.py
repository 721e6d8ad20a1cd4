"""The limits of a job: those that the agent watches, and those that the kernel keeps (setrlimit)."""

from __future__ import annotations

import signal
import time

from agent.core.part import DEFAULT_INTERVAL, Rules
from agent.launch.site import Site
from agent.starter.protocol.part import CgroupLimits, ResourceLimits
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


def cgroup(limits: pb.Limits, enforce_memory: bool, site: Site) -> CgroupLimits:
    """The limits that a cgroup keeps, where the host has any: LAVA_JOB_PIDS for every job, memory if the site wants it so."""
    return CgroupLimits(memory_bytes=limits.mem * 1024 if enforce_memory else 0, pids=site.settings.lava_job_pids)


def rules_of(text: pb.JobText, start: pb.Start, site: Site) -> Rules:
    """What the agent watches and how it ends the part."""
    limits = text.limits
    parallel = sum(host.slots for host in start.hosts) > 1
    controls = {one.action: _warning(one.what) for one in text.job_controls if one.what != "CHKPNT"}
    return Rules(
        run=limits.run,
        cpu=limits.cpu,
        mem=limits.mem,
        swap=limits.swap,
        processes=limits.processes,
        threads=limits.threads,
        enforce_memory=text.enforce_memory,
        warn=_warning(text.warn_action),
        warn_before=text.warn_before,
        deadline=_on_clock_of_limits(text.deadline) if text.deadline else 0.0,
        warning=text.run_warning,
        interval=text.terminate_interval or DEFAULT_INTERVAL,
        sequential=not parallel or site.settings.lsb_use_sequential_signal,
        soft_stop=parallel or bool(text.interactive),
        stop_signal=int(site.settings.lsb_sigstop or 0),
        suspend=controls.get("SUSPEND", ""),
        resume=controls.get("RESUME", ""),
        terminate=controls.get("TERMINATE", ""),
        checkpoint=bool(text.checkpoint_folder),
        first=start.place == 0,
        after=text.include_post and start.place == 0,
    )


def _on_clock_of_limits(at: float) -> float:
    """The master's date as a time of the clock that limits are kept by."""
    return max(1.0, at - time.time() + time.clock_gettime(time.CLOCK_BOOTTIME))


def _warning(action: str) -> str:
    """A signal by its number; CHKPNT, and a command as it is."""
    name = action.removeprefix("SIG")
    found = signal.Signals.__members__.get(f"SIG{name}")
    return str(int(found)) if found is not None else action
