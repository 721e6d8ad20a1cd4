"""Roles that torchrun runs, as the one job of ``-a torchrun -ar`` that says the same: it can grow and shrink while it runs.

Rule: torchrun's nodes find each other again at each change, so they need no ranks of lava; what such a job cannot say is named.
A replica is a host of the job with one torchrun, but for replicas of one slot and one process: those of a host share a torchrun.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace

from cli.client.context import Fail
from cli.jobs.model import JobFile, Policy, Role

_TORCHRUN = re.compile(
    r"\s*(?:exec\s+)?(?:\w+=\S*\s+)*(?:(?:\S*/)?torchrun|\S*python[0-9.]*\s(?:.*\s)?-m\s+torch\.distributed\.(?:run|launch))(?:\s|$)"
)
_EXEC = re.compile(r"^exec\s+")
_BETWEEN = re.compile(r"[;|\n]|(?<!>)&")
_SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash")
_RUSAGE = re.compile(r"rusage\[([^\]]*)\]")
_OF_POLICY = "PET_MAX_RESTARTS"
_FOR_NOW = range(128, 256)
"""Exit codes after which ``ExitCode`` starts a task again."""


def make_resizable(job: JobFile, name: str) -> None:
    """Make it one job of torchrun where a manifest's elasticPolicy or ``-ar`` asks for it.

    Where that cannot be, an elasticPolicy is named as holding at the start alone; raises Fail for ``-ar``.
    """
    asked = "ar" in job.options
    if not job.roles or not (asked or job.elastic):
        return
    why = _why_not(job)
    if why and asked:
        raise Fail(f"{name}: -ar: {why}")
    if why:
        job.ignore(f"elasticPolicy once the job runs ({why})")
        return
    _as_torchrun(job)


def _why_not(job: JobFile) -> str:
    first, last, policy = job.roles[0], job.roles[-1], job.policy
    alone = replace(first, name="", count=0, least=0)
    if policy.framework != "pytorch":
        return "only roles of PyTorch find each other anew, by torchrun"
    if not policy.nproc:
        return "nproc is not given, with which torchrun starts the processes"
    if len(job.roles) > 2 or any(replace(role, name="", count=0, least=0) != alone for role in job.roles):
        return "its roles are not alike"
    if len(job.roles) == 2 and (first.count != 1 or last.count < 2):
        return "of two roles the first is one task"
    if not _command(first.command):
        return f"role {last.name} does not run torchrun"
    if job.bare.get(first.name, first.command) != first.command:
        return "its tasks ask who they are, and torchrun has the tasks of a host as one"
    names = ("kind", "scratch", "actions", "after", "group", "backoff_each")
    extra = [word for word in names if getattr(first, word)] + sorted(set(first.limits) - {"M"})
    if policy.actions or policy.success.startswith(("any", "least")):
        extra.append("on" if policy.actions else f"success {policy.success}")
    if policy.time_limit and "W" not in job.options:
        extra.append("time_limit")
    if first.gpus and "gpu" in job.options:
        extra.append("-gpu beside gpus")
    return f"a job that grows has no {extra[0]} of a role" if extra else ""


def _command(text: str) -> str:
    """The command as ``-a torchrun`` takes it, "" where it does not run torchrun."""
    try:
        words = shlex.split(text)
    except ValueError:
        return ""
    text = (words[2] if len(words) == 3 and words[0] in _SHELLS and words[1] == "-c" else text).strip()
    if not any(_TORCHRUN.match(one) for one in _BETWEEN.split(text)):
        return ""
    # of several commands torchrun reads its options from the environment; a single one is given them, behind its name
    return text if _BETWEEN.search(text) else _EXEC.sub("", text)


def _as_torchrun(job: JobFile) -> None:
    role = job.roles[-1]
    masters = sum(one.count for one in job.roles[:-1])
    least, most = (role.least or role.count) + masters, role.count + masters
    packed = role.slots == job.policy.nproc == 1 and not role.spread and "M" not in role.limits
    words = [] if job.policy.nproc == role.slots else [f"nproc={job.policy.nproc}"]
    if restarts := job.env.pop(_OF_POLICY, ""):
        words.append(f"restarts={restarts}")
    words += _starting_again(job, role)
    need = _RUSAGE.sub(lambda found: f"rusage[{_each(found[1], '/task' if packed else '/host')}]", role.resreq)
    options = job.options
    options["ar"] = True
    options["n"] = f"{least * role.slots},{most * role.slots}"
    options["a"] = [
        *_listed(job, "a"),
        f"torchrun({','.join(words)})" if words else "torchrun",
        *([role.software] * bool(role.software)),
    ]
    if rows := [*_listed(job, "R"), *([need] * bool(need)), *([] if packed else [f"span[ptile={role.slots}]"])]:
        options["R"] = rows
    if role.gpus:
        options["gpu"] = f"num={role.gpus}{'/task' if packed else ''}"
    if "M" in role.limits:
        options["M"] = role.limits["M"]
    if role.cwd:
        options["cwd"] = os.path.join(str(options.get("cwd") or ""), role.cwd)
    job.env = job.env | role.env
    job.command, job.roles, job.policy = _command(role.command), [], Policy()


def _starting_again(job: JobFile, role: Role) -> list[str]:
    """What restarts a pod: a torchrun that fails ends the job, which starts again as a whole. The words of -a for it."""
    limit = role.backoff if role.backoff >= 0 else job.policy.backoff
    if role.restart == "Never" or "Q" in job.options or not limit:
        return []
    if job.policy.time_limit:
        job.ignore(f"restartPolicy {role.restart} (the time of the job is that of one attempt)")
        return []
    job.options["Q"] = " ".join(map(str, _FOR_NOW)) if role.restart == "ExitCode" else "all"
    return [f"requeues={limit}"]


def _listed(job: JobFile, option: str) -> list[str]:
    value = job.options.get(option)
    return value if isinstance(value, list) else [str(value)] if value else []


def _each(uses: str, per: str) -> str:
    """Amounts of a reservation that a role has for each of its tasks."""
    return re.sub(r"(\w+=[^,:/\s]+)(?=\s*(?:[,:]|$))", rf"\1{per}", uses)
