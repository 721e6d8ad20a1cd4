"""From a start order to the description of a part: what all elements share as a template, and each part over it.

Rule: pure but for the host file. What a user named (``-o``, ``-cwd``) goes to the starter as it is; only the shepherd,
who is the user, opens it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from agent.launch import (
    affinity,
    checkpoints,
    command,
    environ,
    frameworks,
    gpus,
    launchers,
    livefiles,
    mpi,
    prepost,
    roles,
    software,
    timeleft,
    torchrun,
)
from agent.launch.hostfiles import HostFiles
from agent.launch.limits import cgroup, rlimits
from agent.launch.outputs import (
    DISCARDED,
    NOWHERE,
    OutputPaths,
    checkpoint_folder,
    error_file,
    expand,
    job_stem,
    job_values,
    output_file,
    show,
)
from agent.launch.site import Site, User
from agent.starter.protocol.part import (
    NO_RANK,
    NOTHING,
    CheckpointFolder,
    InteractiveSpec,
    JobFile,
    OutputFile,
    PartSpec,
    TaskSpec,
)
from proto import agent_pb2 as pb

CHECKPOINT_SIGNAL = "USR1"
FALLBACK_FOLDER = "/tmp"


class Compiled:
    """A job text made ready: the template of its parts, sent once in each batch."""

    __slots__ = ("gang", "path", "template", "text", "user")

    def __init__(self, text: pb.JobText, user: User, site: Site) -> None:
        self.text = text
        self.user = user
        env = {**launchers.shared(site, user.uid, text.launch), **environ.shared(text, user, site)}
        self.path = env["PATH"]
        self.template = _template(text, user, site, env)


def part(
    order: pb.Order,
    made: Compiled,
    where: OutputPaths,
    site: Site,
    files: HostFiles,
    deadline: float | None,
    cards: Sequence[pb.Gpu] = (),
) -> PartSpec:
    """One part, over the template of its text.

    ``where``: the result of ``output_paths``; ``deadline``: of its lease; ``cards``: the GPUs of this host.
    """
    start, text = order.start, made.text
    env = _environment(order, made, site, files)
    found = made.template._replace(
        uid=order.uid,
        key=order.key,
        attempt=order.attempt,
        title=show(order.key),
        two_phase=start.two_phase or bool(text.interactive),
        env=env,
        deadline=deadline,
    )
    if start.place > 0:
        found = found._replace(
            pre_exec=prepost.pre_exec(text.host_pre_exec, seconds=text.pre_timeout),
            post_exec=prepost.post_exec(text.host_post_exec, seconds=text.post_timeout),
        )
    found = _with_files(found, env, order, made, where, site)
    if site.yes("LSB_SET_TMPDIR"):
        folder = os.path.join(site.conf.get("LSF_TMPDIR") or FALLBACK_FOLDER, f"{job_stem(order.key)}.tmpdir")
        env["TMPDIR"] = folder
        found = found._replace(tmpdir=folder)
    if "%" in text.cwd:
        env["PWD"] = where.cwd
        found = found._replace(cwd=where.cwd)
    if text.interactive:
        found = _with_terminal(found, env, start, where, text, site)
    found = _with_program(found, env, order, made, site)
    found = _with_checkpoint(found, env, order, made, site)
    found = _with_roles(found, env, order, made, site, files) if text.roles else _with_tasks(found, env, order, made, site)
    found = gpus.with_mps(gpus.apart(found, text, start, cards), text, start, cards, _mps_folder(order, site))
    return affinity.bound(found, start)


def _mps_folder(order: pb.Order, site: Site) -> str:
    """Short, as a socket's path is, and known to nobody before the part is here."""
    return os.path.join(site.conf.get("LSF_TMPDIR") or FALLBACK_FOLDER, f"lava-{order.uid[:16]}")


def _environment(order: pb.Order, made: Compiled, site: Site, files: HostFiles) -> dict[str, str]:
    """The part's own variables."""
    start, text = order.start, made.text
    if text.resizable:
        stem = livefiles.stem_of(files.folder, job_stem(order.key), order.attempt)
        livefiles.write(stem, [(host.host, host.slots) for host in start.hosts])
        env = environ.own(text, order.key, start, ("", "")) | livefiles.variables(stem)
    else:
        slots = [host.host for host in start.hosts for _ in range(host.slots)]
        names = launchers.names(start.hosts, site.address, socket.gethostname())
        env = environ.own(text, order.key, start, files.of(slots)) | launchers.own(files.slots_of(names))
    env[timeleft.VARIABLE] = timeleft.path_of(files.folder, order.uid)
    return env | affinity.environment(start, files)


def _template(text: pb.JobText, user: User, site: Site, env: dict[str, str]) -> PartSpec:
    argv = None
    if not text.script:
        words = command.command_argv(text.command, env["PATH"], text.login_shell, text.job_starter)
        argv = tuple(software.wrap(text.software, words))
    after = (text.post_exec, text.queue_post_exec, *text.host_post_exec)
    return NOTHING._replace(
        user=user.account,
        env=env,
        cwd=text.cwd or user.home,
        cwd_else=() if env.get("LSB_EXIT_IF_CWD_NOTEXIST", "").upper() == "Y" else (FALLBACK_FOLDER,),
        umask=text.umask,
        nice=text.nice,
        rlimits=rlimits(text.limits),
        label=text.label,
        stdin=text.input if text.input and not text.input_data else NOWHERE,
        pre_exec=prepost.pre_exec(_before(text), copies=prepost.site_before(text, site), seconds=text.pre_timeout),
        post_exec=prepost.post_exec(after, prepost.site_after(text, site), text.post_timeout),
        post_always=bool(text.host_post_exec),
        cgroup=cgroup(text.limits, text.enforce_memory, site),
        secrets=dict(text.secrets),
        argv=argv,
        script=_script(text, env["PATH"]),
        input=text.input_data or None,
    )


def _script(text: pb.JobText, path: str) -> str:
    """What is written into a file to be run: the job's script, or a command that a JOB_STARTER is to execute."""
    if text.script or not command.needs_file(text.command, path, text.job_starter):
        return text.script
    return f"#!/bin/sh\n{text.command}\n"


def _with_files(part: PartSpec, env: dict[str, str], order: pb.Order, made: Compiled, where: OutputPaths, site: Site) -> PartSpec:
    text = made.text
    if order.start.place:
        # Standard error is kept apart on the way to the first host.
        return part._replace(input=None, stdout=DISCARDED, stderr=DISCARDED if where.error or text.interactive else None)
    for name, value in (("LSB_OUTPUTFILE", where.output), ("LSB_ERRORFILE", where.error)):
        if value:
            env[name] = value
    part = part._replace(stdout=output_file(text, where, order.attempt), stderr=error_file(text, where))
    if text.input and not text.input_data:
        values = job_values(order.key, made.user.name, text.project, made.user.group, site.host)
        env["LSB_INPUTFILE"] = expand(text.input, values)
        return part._replace(stdin=env["LSB_INPUTFILE"])
    return part


def _with_terminal(
    part: PartSpec, env: dict[str, str], start: pb.Start, where: OutputPaths, text: pb.JobText, site: Site
) -> PartSpec:
    """The user's terminal, on the first host; a stream for which a file was named goes there (``bsub -I -o``)."""
    env["LSB_INTERACTIVE"] = "Y"
    if start.place:
        return part
    asked = InteractiveSpec(
        shell=text.interactive == "Is",
        tee=text.tee,
        stdin=not text.input,
        stdout=not where.output,
        stderr=not where.error,
        bind=site.address,
        cert=start.cert_pem.decode(),
        key=start.key_pem.decode(),
    )
    return part._replace(interactive=asked, stderr=part.stderr or DISCARDED)


def _with_program(part: PartSpec, env: dict[str, str], order: pb.Order, made: Compiled, site: Site) -> PartSpec:
    """The script of the template lies in a job file of the user's: ``LSB_JOBFILENAME.shell``."""
    text, user = made.text, made.user
    name = f"{int(text.submitted)}.{job_stem(order.key)}"
    env["LSB_JOBFILENAME"] = env["LSB_CHKFILENAME"] = os.path.join(site.output_dir, user.name, name)
    if not part.script or not (order.start.place == 0 or frameworks.on_every_host(text.launch)):
        return part
    stays = checkpoints.is_criu(text, site)
    # a restored shell reads on in its script, by its path then
    path = os.path.join(checkpoint_folder(text, order.key), "job.shell") if stays else jobfile(order, made, site)
    env["LSB_JOBFILENAME"] = path.removesuffix(".shell")
    argv = software.wrap(text.software, command.script_argv(part.script, path, text.login_shell, text.job_starter))
    return part._replace(argv=tuple(argv), jobfile=JobFile(path, remove=not stays))


def jobfile(order: pb.Order, made: Compiled, site: Site) -> str:
    """Where the script of a part lies, if it has one."""
    name = f"{int(made.text.submitted)}.{job_stem(order.key)}.{order.attempt}.{order.start.place}.shell"
    return os.path.join(site.output_dir, made.user.name, name)


def _with_checkpoint(part: PartSpec, env: dict[str, str], order: pb.Order, made: Compiled, site: Site) -> PartSpec:
    text = made.text
    if not text.checkpoint_folder:
        return part
    folder = checkpoint_folder(text, order.key)
    env |= environ.checkpoint(folder, order.start, CHECKPOINT_SIGNAL)
    if order.start.place:
        return part
    shared, user = tuple(text.shared_dirs), made.user.name
    stage = checkpoints.stage_folder(text, user, order.key)
    part = part._replace(checkpoint=CheckpointFolder(folder, text.checkpoint_of, text.checkpoint_moves, shared, stage))
    before = prepost.site_before(text, site)
    again = bool(order.start.restart_count or order.start.restart >= 0)
    most = (order.start.restart if order.start.go_back else -1) if again else None
    fetch = "" if most is None else checkpoints.fetching(text, site, user, order.key, most)
    first = (fetch, checkpoints.before(text, site, order.key, again), *_before(text))
    found = part._replace(pre_exec=prepost.pre_exec(first, folder, before, text.checkpoint_of, text.pre_timeout, most))
    slots = sum(host.slots for host in order.start.hosts)
    return found._replace(argv=checkpoints.wrapped(found.argv, text, site, order.key, again, slots)) if found.argv else found


def _before(text: pb.JobText) -> tuple[str, ...]:
    return (*text.host_pre_exec, text.queue_pre_exec, text.pre_exec)


def _with_roles(part: PartSpec, env: dict[str, str], order: pb.Order, made: Compiled, site: Site, files: HostFiles) -> PartSpec:
    text = made.text

    def write(names: Sequence[str]) -> roles.Files:
        shown = launchers.names_of(names, order.start.hosts, site.address, socket.gethostname())
        return (*files.of(names), files.slots_of(shown), files.colons_of(names))

    scratch = f"{FALLBACK_FOLDER}/lava-{made.user.uid}/{int(text.submitted)}.{job_stem(order.key)}"
    found = roles.of_host(order, text, made.path, site.address, write, scratch)
    env |= found.env
    return part._replace(
        led=True,
        clean_scratch=text.clean == "all",
        tasks=_with_rank_files(found.tasks, text, order.key),
        ports=found.ports,
        link=found.link,
        serve=found.serve,
    )


def _with_tasks(part: PartSpec, env: dict[str, str], order: pb.Order, made: Compiled, site: Site) -> PartSpec:
    start, text = order.start, made.text
    if launch := frameworks.parse(text.launch):
        return _with_framework(part, launch, order, made, site)
    if text.launch != "mpi" or checkpoints.is_criu(text, site):
        tasks = (TaskSpec(NO_RANK, {}),) if start.place == 0 else ()
        serve = launchers.serve(start, text.resizable, gpus.by_task(text, start))
        link = mpi.link(start, site.address, text.resizable, ranks=False) if serve else None
        return part._replace(tasks=tasks, serve=serve, link=link)
    ranks = tuple(
        TaskSpec(rank, {"LSF_PM_TASKID": str(rank + 1)} | gpus.of_rank(text, start, local))
        for local, rank in enumerate(mpi.ranks_of(start.hosts, start.place))
    )
    return part._replace(
        pmi=mpi.pmi(start.hosts, text.cluster or "lava", job_stem(order.key), order.attempt, order.uid),
        link=mpi.link(start, site.address),
        tasks=_with_rank_files(ranks, text, order.key),
    )


def _with_framework(part: PartSpec, launch: frameworks.Launch, order: pb.Order, made: Compiled, site: Site) -> PartSpec:
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
            part = part._replace(argv=tuple(software.wrap(text.software, argv)))
    tasks = tuple(task._replace(env={**env, **task.env}) for task in frameworks.tasks(launch, start, text.gpus_per_task))
    return part._replace(
        link=mpi.link(start, site.address, text.resizable),
        ports=frameworks.ports(launch, start, order.uid),
        tasks=_with_rank_files(tasks, text, order.key),
    )


def _with_rank_files(tasks: tuple[TaskSpec, ...], text: pb.JobText, key: int) -> tuple[TaskSpec, ...]:
    """``-oo`` for each rank: a file of its own, where that is asked for."""
    if not text.rank_files:
        return tasks
    marks = {"J": str(key & 0xFFFFFFFF), "I": str(key >> 32)}
    return tuple(task._replace(stdout=OutputFile(expand(text.rank_files, {"R": str(task.rank), **marks}))) for task in tasks)
