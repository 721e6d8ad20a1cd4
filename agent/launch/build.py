"""From a start order to the starter's PART: what all elements share as a template, and each part's own fields.

Rule: pure but for the host file. What a user named (``-o``, ``-cwd``) goes to the starter as it is; only the shepherd,
who is the user, opens it.
"""

from __future__ import annotations

import base64
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent.core.part import DEFAULT_INTERVAL, Rules
from agent.launch import (
    affinity,
    around,
    command,
    environ,
    frameworks,
    interactive,
    launchers,
    livefiles,
    mpi,
    prepost,
    roles,
    software,
    torchrun,
)
from agent.launch.expand import expand, job_values
from agent.launch.hostfiles import HostFiles
from agent.launch.limits import rlimits
from agent.launch.site import Site, User
from proto import agent_pb2 as pb

CHECKPOINT_SIGNAL = "USR1"
FALLBACK_FOLDER = "/tmp"
NOWHERE = "/dev/null"


class Places(msgspec.Struct, frozen=True):
    """Where the output of a part goes, as the user wrote it, marks replaced."""

    output: str = ""
    """``-o``, "" if not given."""
    error: str = ""
    kept: str = ""
    """The file in the agent's own folder that the output goes to first, or for good; "" when it goes straight to -o."""
    kept_error: str = ""
    cwd: str = ""

    @property
    def stdout(self) -> str:
        """What standard output is opened on."""
        return self.kept or self.output

    @property
    def stderr(self) -> str:
        """What standard error is opened on, "" for the same as standard output."""
        return self.kept_error or self.error


class Compiled:
    """A job text made ready: the template of its parts, sent once in each batch."""

    __slots__ = ("gang", "path", "template", "text", "user")

    def __init__(self, text: pb.JobText, user: User, site: Site) -> None:
        self.text = text
        self.user = user
        env = {**launchers.shared(site, user.uid, text.launch), **environ.shared(text, user, site)}
        self.path = env["PATH"]
        self.template = _template(text, user, site, env)


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
        sequential=not parallel or site.yes("LSB_USE_SEQUENTIAL_SIGNAL"),
        soft_stop=parallel or bool(text.interactive),
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


def places(text: pb.JobText, key: int, user: User, site: Site) -> Places:
    """Where output goes: straight to the user's file, or kept first (and for good without ``-o``)."""
    values = job_values(key, user.name, text.project, user.group, site.host)
    output, error = expand(text.output, values), expand(text.error, values)
    stem = job_stem(key)
    if output.endswith("/"):
        output += f"{stem}.out"
    if error.endswith("/"):
        error += f"{stem}.err"
    if text.output_dir:
        folder = expand(text.output_dir, values)
        output, error = (os.path.join(folder, path) if path else "" for path in (output, error))
    keep = os.path.join(site.output_dir, user.name, stem)
    if text.interactive:
        return Places(output, error, "", "", expand(text.cwd, values) or user.home)
    direct = text.direct_output or output == NOWHERE
    kept = "" if output and direct else keep + ".out"
    kept_error = keep + ".err" if error and output and not direct else ""
    return Places(output, error, kept, kept_error, expand(text.cwd, values) or user.home)


def job_stem(key: int) -> str:
    """``12`` or ``12.3``: a job's part of file names."""
    return f"{key & 0xFFFFFFFF}.{key >> 32}" if key >> 32 else str(key)


def show(key: int) -> str:
    """``12`` or ``12[3]``."""
    return f"{key & 0xFFFFFFFF}[{key >> 32}]" if key >> 32 else str(key)


def part(order: pb.Order, made: Compiled, where: Places, site: Site, files: HostFiles, deadline: float | None) -> dict[str, Any]:
    """The fields of one part that its template does not have. ``where``: as ``places`` has it."""
    start, text, user = order.start, made.text, made.user
    slots = [h.host for h in start.hosts for _ in range(h.slots)]
    names = launchers.names(start.hosts, site.address, socket.gethostname())
    if text.resizable:
        stem = livefiles.stem_of(files.folder, job_stem(order.key), order.attempt)
        livefiles.write(stem, [(host.host, host.slots) for host in start.hosts])
        env = environ.own(text, order.key, start, ("", "")) | livefiles.variables(stem)
    else:
        env = environ.own(text, order.key, start, files.of(slots)) | launchers.own(files.slots_of(names))
    env |= affinity.environment(start, files)
    values = job_values(order.key, user.name, text.project, user.group, site.host)
    fields: dict[str, Any] = {
        "uid": order.uid,
        "key": order.key,
        "attempt": order.attempt,
        "title": show(order.key),
        "two_phase": start.two_phase or bool(text.interactive),
        "env": env,
    }
    if deadline is not None:
        fields["deadline"] = deadline
    if start.place > 0:
        fields["pre_exec"] = prepost.pre_exec(text.host_pre_exec, seconds=text.pre_timeout)
        fields["post_exec"] = prepost.post_exec(text.host_post_exec, seconds=text.post_timeout)
    _add_files(fields, where, text, values, start.place == 0)
    if site.yes("LSB_SET_TMPDIR"):
        folder = os.path.join(site.conf.get("LSF_TMPDIR") or FALLBACK_FOLDER, f"{job_stem(order.key)}.tmpdir")
        fields["tmpdir"] = env["TMPDIR"] = folder
    if "%" in text.cwd:
        fields["cwd"] = env["PWD"] = where.cwd
    if text.interactive:
        interactive.add(fields, order.start, where, text, site)
    _add_program(fields, order, made, site)
    _add_checkpoint(fields, order, text, site)
    if text.roles:
        _add_roles(fields, order, made, site, files)
    else:
        _add_tasks(fields, order, made, site)
    affinity.add(fields, start)
    return fields


def _template(text: pb.JobText, user: User, site: Site, env: dict[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "user": {"name": user.name, "uid": user.uid, "gid": user.gid, "groups": list(user.groups)},
        "env": env,
        "cwd": text.cwd or user.home,
        "cwd_else": [] if env.get("LSB_EXIT_IF_CWD_NOTEXIST", "").upper() == "Y" else [FALLBACK_FOLDER],
        "umask": text.umask,
        "nice": text.nice,
        "rlimits": rlimits(text.limits),
        "label": text.label,
        "stdin": text.input if text.input and not text.input_data else "/dev/null",
        "pre_exec": prepost.pre_exec(_before(text), copies=around.before(text, site), seconds=text.pre_timeout),
        "post_exec": prepost.post_exec(
            (text.post_exec, text.queue_post_exec, *text.host_post_exec), around.after(text, site), text.post_timeout
        ),
    }
    if text.host_post_exec:
        fields["post_always"] = True
    if text.enforce_memory and text.limits.mem:
        fields["cgroup"] = {"memory_bytes": text.limits.mem * 1024, "cpus": None}
    if text.secrets:
        fields["secrets"] = dict(text.secrets)
    if not text.script:
        argv = command.command_argv(text.command, env["PATH"], text.login_shell, text.job_starter)
        fields["argv"] = software.wrap(text.software, argv)
    return fields


def _add_files(fields: dict[str, Any], where: Places, text: pb.JobText, values: Mapping[str, str], first: bool) -> None:
    if not first:
        fields["stdout"] = _file(NOWHERE, True, False)
        if where.error or text.interactive:
            # Kept apart on the way to the first host.
            fields["stderr"] = _file(NOWHERE, True, False)
        return
    mkdir = bool(text.output_dir)
    if text.interactive and not where.output:
        fields["stdout"] = _file(NOWHERE, True, False)
    elif where.kept:
        # Only output that is kept for good grows with each attempt; a job of an older store may have had this number.
        fields["stdout"] = _file(where.kept, not where.output and fields["attempt"] > 1, False)
    else:
        fields["stdout"] = _file(where.output, not text.output_overwrite, mkdir)
    if where.kept_error:
        fields["stderr"] = _file(where.kept_error, False, False)
    elif where.error and where.error != where.stdout:
        fields["stderr"] = _file(where.error, not text.error_overwrite, mkdir)
    env = fields["env"]
    for name, value in (("LSB_OUTPUTFILE", where.output), ("LSB_ERRORFILE", where.error)):
        if value:
            env[name] = value
    if text.input_data:
        fields["input"] = base64.b64encode(text.input_data).decode("ascii")
    elif text.input:
        path = expand(text.input, values)
        fields["stdin"] = env["LSB_INPUTFILE"] = path


def _file(path: str, append: bool, mkdir: bool) -> dict[str, Any]:
    return {"path": path, "append": append, "mkdir": mkdir}


def _add_program(fields: dict[str, Any], order: pb.Order, made: Compiled, site: Site) -> None:
    """A script, or a command that a JOB_STARTER is to execute, lies in a job file of the user's: ``LSB_JOBFILENAME.shell``."""
    text, user = made.text, made.user
    name = f"{int(text.submitted)}.{job_stem(order.key)}"
    stem = os.path.join(site.output_dir, user.name, name)
    fields["env"]["LSB_JOBFILENAME"] = fields["env"]["LSB_CHKFILENAME"] = stem
    script, starter = text.script, text.job_starter
    if not script and command.needs_file(text.command, made.path, starter):
        script = f"#!/bin/sh\n{text.command}\n"
    if script and (order.start.place == 0 or frameworks.on_every_host(text.launch)):
        path = jobfile(order, made, site)
        fields["env"]["LSB_JOBFILENAME"] = path.removesuffix(".shell")
        fields["argv"] = software.wrap(text.software, command.script_argv(script, path, text.login_shell, starter))
        fields["jobfile"] = {"path": path, "text": script, "mode": 0o700, "remove": True}


def jobfile(order: pb.Order, made: Compiled, site: Site) -> str:
    """Where the script of a part lies, if it has one."""
    name = f"{int(made.text.submitted)}.{job_stem(order.key)}.{order.attempt}.{order.start.place}.shell"
    return os.path.join(site.output_dir, made.user.name, name)


def _add_checkpoint(fields: dict[str, Any], order: pb.Order, text: pb.JobText, site: Site) -> None:
    if not text.checkpoint_folder:
        return
    folder = checkpoint_folder(text, order.key)
    fields["env"] |= environ.checkpoint(folder, order.start, CHECKPOINT_SIGNAL)
    if order.start.place == 0:
        before = around.before(text, site)
        fields["pre_exec"] = prepost.pre_exec(_before(text), folder, before, text.checkpoint_of, text.pre_timeout)


def _before(text: pb.JobText) -> tuple[str, ...]:
    return (*text.host_pre_exec, text.queue_pre_exec, text.pre_exec)


def checkpoint_folder(text: pb.JobText, key: int) -> str:
    """The job's own folder below the one that ``-k`` names."""
    return os.path.join(text.cwd, text.checkpoint_folder, job_stem(key))


def _add_roles(fields: dict[str, Any], order: pb.Order, made: Compiled, site: Site, files: HostFiles) -> None:
    text = made.text

    def write(names: Sequence[str]) -> roles.Files:
        shown = launchers.names_of(names, order.start.hosts, site.address, socket.gethostname())
        return (*files.of(names), files.slots_of(shown), files.colons_of(names))

    scratch = f"{FALLBACK_FOLDER}/lava-{made.user.uid}/{int(text.submitted)}.{job_stem(order.key)}"
    found = roles.fields(order, text, made.path, site.address, write, scratch)
    fields["env"] |= found.pop("env")
    fields |= found
    _add_rank_files(fields["tasks"], text, order.key)


def _add_tasks(fields: dict[str, Any], order: pb.Order, made: Compiled, site: Site) -> None:
    start, text = order.start, made.text
    if launch := frameworks.parse(text.launch):
        _add_framework(fields, launch, order, made, site)
        return
    if text.launch != "mpi":
        fields["tasks"] = [{"rank": -1, "env": {}}] if start.place == 0 else []
        fields.update(launchers.serve(start, site.address, text.resizable))
        return
    cluster = text.cluster or "lava"
    fields["pmi"] = mpi.pmi(start.hosts, cluster, job_stem(order.key), order.attempt, order.uid)
    fields["link"] = mpi.link(start, site.address)
    tasks: list[dict[str, Any]] = []
    for rank in mpi.ranks_of(start.hosts, start.place):
        task: dict[str, Any] = {"rank": rank, "env": {"LSF_PM_TASKID": str(rank + 1)}}
        tasks.append(task)
    fields["tasks"] = tasks
    _add_rank_files(tasks, text, order.key)


def _add_framework(fields: dict[str, Any], launch: frameworks.Launch, order: pb.Order, made: Compiled, site: Site) -> None:
    start, text = order.start, made.text
    several = len(start.hosts) > 1
    interface = (site.conf.get("LAVA_MPI_INTERFACE") or launchers.interface_of(site.address)) if several else ""
    env = frameworks.shared(launch, start, text.env, interface)
    if launch.kind in frameworks.PER_HOST:
        options = torchrun.options(launch, start, job_stem(order.key), order.attempt)
        if text.resizable:
            options |= torchrun.elastic(options, start, text.min_slots, text.max_slots)
            env |= {name: value for name, value in torchrun.ELASTIC.items() if name not in text.env}
        env |= torchrun.variables(options)
        if not text.script:
            line = torchrun.command(text.command, options)
            argv = command.command_argv(line, made.path, text.login_shell, text.job_starter)
            fields["argv"] = software.wrap(text.software, argv)
    tasks = frameworks.tasks(launch, start)
    for task in tasks:
        task["env"] = env | task["env"]
    ports = frameworks.ports(launch, start, order.uid)
    fields |= {"link": mpi.link(start, site.address, text.resizable), "ports": ports, "tasks": tasks}
    _add_rank_files(tasks, text, order.key)


def _add_rank_files(tasks: list[dict[str, Any]], text: pb.JobText, key: int) -> None:
    if text.rank_files:
        for task in tasks:
            path = expand(text.rank_files, {"R": str(task["rank"]), **_job_marks(key)})
            task["stdout"] = _file(path, False, False)


def _job_marks(key: int) -> dict[str, str]:
    return {"J": str(key & 0xFFFFFFFF), "I": str(key >> 32)}
