"""From a start order to the description of a part: what all elements share as a template, and each part over it.

Rule: pure but for the host file. What a user named (``-o``, ``-cwd``) goes to the starter as it is; only the shepherd,
who is the user, opens it.
"""

from __future__ import annotations

import copy
import os
import socket
from collections.abc import Sequence

from agent.core.part import Rules
from agent.launch import (
    affinity,
    checkpoints,
    command,
    environ,
    frameworks,
    gpus,
    launchers,
    limits,
    livefiles,
    mpi,
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
    expand,
    job_stem,
    job_tmpdir,
    job_values,
    opened,
    output_paths,
    show,
)
from agent.launch.prepost import commands, post_mail, sudoers
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
ONE_TASK = (TaskSpec(NO_RANK, {}),)
MOST_ALONE = 16


class Compiled:
    """A job text made ready: the template of its parts, sent once in each batch. ``folder``: the user's own in the agent's.

    ``is_bare``: its parts on one slot of one host differ by their variables and command alone, and by the GPUs that are kept from
    them. ``where``: what ``output_paths`` gives for each of its elements; None: it depends on the element.
    ``exec_user``, ``why_not``: as ``sudoers.runs_as`` gives them.
    ``argv``: of its own, in the place of the template's, which is that of all texts like it.
    """

    __slots__ = (
        *("_alone", "_rules", "_stem", "argv", "exec_user", "folder", "is_bare", "path", "template", "text", "user", "where"),
        "why_not",
    )

    def __init__(self, text: pb.JobText, user: User, site: Site) -> None:
        self.text = text
        self.user = user
        env = {**launchers.shared(site, user.uid, text), **environ.shared(text, user, site)}
        self.path = env["PATH"]
        self.folder = os.path.join(site.output_dir, user.name)
        self.exec_user, self.why_not = sudoers.runs_as(text, user, site)
        self.template = _template(self, site, env)
        self.argv = self.template.argv
        self.is_bare = not (text.roles or self.template.script or text.launch or text.checkpoint_folder or text.interactive)
        self.is_bare &= not (text.resizable or text.gpu_mps or "%" in text.cwd or site.settings.lsb_set_tmpdir)
        self.is_bare &= not text.input or bool(text.input_data)
        one, other = (output_paths(text, key, user, site) for key in (1, 2 << 32 | 2))
        self.where = one if one == other else None
        self._stem = f"{self.folder}/{int(text.submitted)}."
        self._alone: dict[tuple[object, ...], PartSpec] = {}
        self._rules: dict[tuple[bool, bool], Rules] = {}

    def like(self, text: pb.JobText) -> Compiled:
        """The same of a text that is of its kind (``starter_client.starts``)."""
        made = copy.copy(self)
        made.text = text
        made._stem = f"{self.folder}/{int(text.submitted)}."
        if text.command != self.text.command:
            made.argv = _argv(text, self.path)
        if (text.output, text.error) != (self.text.output, self.text.error):
            made.where = None
        return made

    def around(self, place: int) -> commands.Around:
        """What runs as the job's user before and after its part on a host."""
        return commands.of_user(self.text, place, self.exec_user is not None)

    def rules(self, start: pb.Start, site: Site) -> Rules:
        """As ``limits.rules_of``."""
        if self.text.deadline:
            return limits.rules_of(self.text, start, site)  # by the clock of now
        hosts = start.hosts
        slots = hosts[0].slots if len(hosts) == 1 else sum([host.slots for host in hosts])
        key = start.place == 0, slots > 1
        found = self._rules.get(key)
        if found is None:
            found = self._rules[key] = limits.rules_of(self.text, start, site)
        return found

    def alone(self, order: pb.Order, site: Site, files: HostFiles) -> PartSpec:
        """The template of parts on this host alone without GPUs or processors of their own: it knows of the host, too."""
        host = order.start.hosts[0]
        job = order.key & 0xFFFFFFFF if self.text.array_end else 0
        key = (files.period(), job, self.where is None, host.host, host.slots, host.address)
        found = self._alone.get(key)
        if found is None:
            if len(self._alone) >= MOST_ALONE:
                self._alone.clear()
            env = {**self.template.env, **_on_hosts(order, self, site, files)}
            if job:
                env |= environ.of_job(self.text, job)
            found = self.template
            if self.where is not None:
                stdout, stderr = opened(env, order, self.text, self.where)
                found = found._replace(stdout=stdout, stderr=stderr)
            found = self._alone[key] = found._replace(env=env)
        return found

    def stem(self, key: int) -> str:
        """What the name of an element's job file begins with."""
        return f"{self._stem}{job_stem(key)}"


def part(
    order: pb.Order,
    made: Compiled,
    where: OutputPaths,
    site: Site,
    files: HostFiles,
    ends: str,
    deadline: float | None,
    cards: Sequence[pb.Gpu] = (),
) -> tuple[PartSpec, PartSpec]:
    """(A template of its text, the one part over it).

    ``where``: what ``output_paths`` gives; ``ends``: file of its end; ``deadline``: of its lease; ``cards``: this host's GPUs.
    """
    start, text = order.start, made.text
    template, env = _environment(order, made, site, files, ends)
    is_alone = template is not made.template
    known = is_alone and where is made.where
    stdout, stderr = (template.stdout, template.stderr) if known else opened(env, order, text, where)
    found = template._replace(
        uid=order.uid,
        key=order.key,
        attempt=order.attempt,
        title=show(order.key),
        two_phase=start.two_phase or bool(text.interactive),
        env=env,
        argv=made.argv,
        deadline=deadline,
        stdout=stdout,
        stderr=stderr,
    )
    if is_alone and made.is_bare and start.hosts[0].slots == 1:
        return template, gpus.apart(found, text, start, cards)
    if start.place > 0:
        found = found._replace(
            input=None,
            pre_exec=commands.pre_exec(made.around(start.place).before, seconds=text.pre_timeout),
            post_exec=commands.post_exec(made.around(start.place).after, seconds=text.post_timeout),
        )
    elif text.input and not text.input_data:
        values = job_values(order.key, made.user.name, text.project, made.user.group, site.host)
        env["LSB_INPUTFILE"] = expand(text.input, values)
        found = found._replace(stdin=env["LSB_INPUTFILE"])
    if variable := site.settings.lsb_set_tmpdir:
        found = found._replace(tmpdir=job_tmpdir(order.key, start.hosts[0].host, site), tmpdir_of_first=start.place > 0)
        env[variable if isinstance(variable, str) else "TMPDIR"] = found.tmpdir
    if "%" in text.cwd:
        env["PWD"] = where.cwd
        found = found._replace(cwd=where.cwd, make_cwd=True)
    if text.interactive:
        found = _with_terminal(found, env, start, where, text, site)
    found = _with_program(found, env, order, made, site)
    found = _with_checkpoint(found, env, order, made, site)
    found = _with_roles(found, env, order, made, site, files) if text.roles else _with_tasks(found, order, made, site)
    found = gpus.apart(found, text, start, cards)
    if text.gpu_mps:
        found = gpus.with_mps(found, text, start, cards, site.settings.lsf_tmpdir)
    return template, affinity.bound(found, start, text.enforce_cpu)


def _environment(order: pb.Order, made: Compiled, site: Site, files: HostFiles, ends: str) -> tuple[PartSpec, dict[str, str]]:
    """(The template, the part's own variables over those of the template)."""
    start = order.start
    host = start.hosts[start.place]
    if len(start.hosts) > 1 or host.gpus or host.binds or made.text.resizable:
        template, env = made.template, environ.of_job(made.text, order.key) | _on_hosts(order, made, site, files)
    else:
        template = made.alone(order, site, files)
        env = {} if made.text.array_end else environ.of_job(made.text, order.key)
    env |= environ.of_element(made.text, order.key, start)
    env[timeleft.VARIABLE] = ends
    env["LSB_JOBFILENAME"] = env["LSB_CHKFILENAME"] = made.stem(order.key)
    return template, env


def _on_hosts(order: pb.Order, made: Compiled, site: Site, files: HostFiles) -> dict[str, str]:
    """The variables about its hosts, and what it has there."""
    start, text = order.start, made.text
    if text.resizable:
        stem = livefiles.stem_of(files.folder, job_stem(order.key), order.attempt)
        livefiles.write(stem, [(host.host, host.slots) for host in start.hosts])
        env = environ.on_hosts(text, start, ("", "")) | livefiles.variables(stem)
    else:
        slots = [host.host for host in start.hosts for _ in range(host.slots)]
        names = launchers.names(start.hosts, site.address, socket.gethostname())
        env = environ.on_hosts(text, start, files.of(slots)) | launchers.own(files.slots_of(names))
    return env | affinity.environment(start, files)


def _template(made: Compiled, site: Site, env: dict[str, str]) -> PartSpec:
    text, user, (before, after) = made.text, made.user, made.around(0)
    return NOTHING._replace(
        user=user.account,
        env=env,
        cwd=text.cwd or user.home,
        cwd_else=() if env.get("LSB_EXIT_IF_CWD_NOTEXIST", "").upper() == "Y" else (FALLBACK_FOLDER,),
        umask=text.umask,
        nice=text.nice,
        rlimits=rlimits(text.limits),
        label=text.label,
        stdin=NOWHERE,
        pre_exec=commands.pre_exec(before, copies=commands.site_before(text, site), seconds=text.pre_timeout),
        post_exec=post_mail.post_exec(text, after, site),
        post_always=bool(text.host_post_exec) and not made.exec_user,
        cgroup=cgroup(text.limits, text.enforce_memory, site),
        secrets=dict(text.secrets),
        argv=_argv(text, env["PATH"]),
        script=command.script_of(text, env["PATH"]),
        input=text.input_data or None,
        tasks=ONE_TASK,
    )


def _argv(text: pb.JobText, path: str) -> tuple[str, ...] | None:
    """Of a command; None: a script has another for each part."""
    if text.script:
        return None
    return tuple(software.wrap(text.software, command.command_argv(text.command, path, text.login_shell, text.job_starter)))


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
    text = made.text
    if not part.script or not (order.start.place == 0 or frameworks.on_every_host(text.launch)):
        return part
    stays = checkpoints.is_criu(text, site)
    # a restored shell reads on in its script, by its path then
    path = os.path.join(checkpoint_folder(text, order.key), "job.shell") if stays else jobfile(order, made)
    env["LSB_JOBFILENAME"] = path.removesuffix(".shell")
    argv = software.wrap(text.software, command.script_argv(part.script, path, text.login_shell, text.job_starter))
    return part._replace(argv=tuple(argv), jobfile=JobFile(path, remove=not stays))


def jobfile(order: pb.Order, made: Compiled) -> str:
    """Where the script of a part lies, if it has one."""
    return f"{made.stem(order.key)}.{order.attempt}.{order.start.place}.shell"


def _with_checkpoint(part: PartSpec, env: dict[str, str], order: pb.Order, made: Compiled, site: Site) -> PartSpec:
    text = made.text
    if not text.checkpoint_folder:
        return part
    folder, own = checkpoint_folder(text, order.key), checkpoints.part_of(text, order.start, site)
    env |= environ.checkpoint(checkpoints.folder_of(text, order), order.start, CHECKPOINT_SIGNAL, own)
    if order.start.place and not own:
        return part
    stage = checkpoints.stage_folder(text, made.user.name, order.key)
    wanted = folder, text.checkpoint_of, text.checkpoint_moves, tuple(text.shared_dirs), stage, own
    part = part._replace(checkpoint=CheckpointFolder(*wanted))
    again = bool(order.start.restart_count or order.start.restart >= 0)
    most = (order.start.restart if order.start.go_back else -1) if again else None
    fetch = "" if most is None else checkpoints.fetching(text, site, made.user.name, order, most)
    env |= checkpoints.holders(order.start.holders) if fetch else {}
    before = "" if order.start.place else commands.site_before(text, site)
    first = (fetch, checkpoints.before(text, site, order.key, again), *made.around(order.start.place).before)
    if own:  # what brings this host's part sets aside what is damaged
        return part._replace(pre_exec=commands.pre_exec(first, copies=before, seconds=text.pre_timeout))
    found = part._replace(pre_exec=commands.pre_exec(first, folder, before, text.checkpoint_of, text.pre_timeout, most))
    slots = sum(host.slots for host in order.start.hosts)
    return found._replace(argv=checkpoints.wrapped(found.argv, text, site, order.key, again, slots)) if found.argv else found


def _with_roles(part: PartSpec, env: dict[str, str], order: pb.Order, made: Compiled, site: Site, files: HostFiles) -> PartSpec:
    text = made.text

    def write(names: Sequence[str]) -> roles.Files:
        shown = launchers.names_of(names, order.start.hosts, site.address, socket.gethostname())
        return (*files.of(names), files.slots_of(shown), files.colons_of(names))

    scratch = f"{FALLBACK_FOLDER}/lava-{made.user.uid}/{int(text.submitted)}.{job_stem(order.key)}"
    found = roles.of_host(order, text, made.path, site.address, write, scratch)
    env |= frameworks.gloo(order.start, environ.given(text), launchers.between(order.start, site)) | found.env
    return part._replace(
        led=True,
        clean_scratch=text.clean == "all",
        tasks=_with_rank_files(found.tasks, text, order.key),
        ports=found.ports,
        link=found.link,
        serve=found.serve,
    )


def _with_tasks(part: PartSpec, order: pb.Order, made: Compiled, site: Site) -> PartSpec:
    start, text = order.start, made.text
    if launch := frameworks.parse(text.launch):
        return _with_framework(part, launch, order, made, site)
    if text.launch != "mpi" or checkpoints.is_criu(text, site):
        if start.place == 0 and not text.resizable and sum([host.slots for host in start.hosts]) == 1:
            return part
        serve = launchers.serve(start, text, gpus.by_task(text, start))
        link = mpi.link(start, site.address, text.resizable, ranks=False) if serve else None
        return part._replace(tasks=part.tasks if start.place == 0 else (), serve=serve, link=link)
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
    env = frameworks.shared(launch, start, environ.given(text), launchers.between(start, site))
    if launch.kind in frameworks.PER_HOST:
        options = torchrun.options(launch, start, job_stem(order.key), order.attempt)
        if text.resizable:
            options |= torchrun.elastic(options, start, text.min_slots, text.max_slots)
            env |= {name: value for name, value in torchrun.ELASTIC.items() if name not in environ.given(text)}
        env |= torchrun.variables(options)
        if not text.script:
            line = torchrun.command(text.command, options)
            argv = command.command_argv(line, made.path, text.login_shell, text.job_starter)
            part = part._replace(argv=tuple(software.wrap(text.software, argv)))
    own = frameworks.tasks(launch, start, text.gpus_per_task, text.resizable)
    tasks = tuple(task._replace(env={**env, **task.env}) for task in own)
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
