"""From effects to the orders that an agent gets: the text of a job once a stream, then one small order a part."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import Limits
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.endpoint import Endpoint
from lavad.core.job.job import Array, Attempt, Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.rules.cpu_factor import scale
from lavad.core.rules.effects import (
    ChangeLimits,
    ChangeText,
    Effect,
    FinishPart,
    KillPart,
    Ports,
    ReleasePart,
    SignalPart,
    StartPart,
    StartTask,
    StopPart,
    TellHosts,
)
from lavad.core.rules.run_settings import requested_mem
from lavad.core.site.conf import Params
from lavad.core.site.mail_to import mail_to
from lavad.hosts.joblink import credentials, token
from lavad.hosts.sessions import Session
from lavad.queries.facts import resreqs
from proto import agent_pb2 as pb

LEAVE_GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL on a host that leaves a job (DJOB_RESIZE_GRACE_PERIOD says otherwise)."""
START_EXPIRES = 60.0
"""Seconds after which a start order is too old to be obeyed."""


def limits_message(limits: Limits, run_scale: float = 1.0, cpu_scale: float = 1.0) -> pb.Limits:
    """Limits for the wire; the scales multiply the times (1 where they are wall clock)."""
    return pb.Limits(
        run=max(1, round(limits.run * run_scale)) if limits.run else 0,
        cpu=max(1, round(limits.cpu * cpu_scale)) if limits.cpu else 0,
        mem=limits.mem or 0, swap=limits.swap or 0, file=limits.file or 0, data=limits.data or 0,
        stack=limits.stack or 0, core=-1 if limits.core is None else limits.core, processes=limits.processes or 0,
        threads=limits.threads or 0,
    )  # fmt: skip


def scales(cluster: Cluster, spec: Spec, host: str) -> tuple[float, float]:
    """What the run limit and the CPU limit are divided by on a host."""
    run = 1.0 if cluster.conf.params.abs_runlimit else scale(cluster, spec.run_host or spec.from_host, host)
    return run, scale(cluster, spec.cpu_host or spec.from_host, host)


def text_message(
    cluster: Cluster, key: int, number: int, spec: Spec, text: JobText, env: Mapping[str, str], host: str
) -> pb.JobText:
    """Everything about a job that is equal for all its parts and elements."""
    conf = cluster.conf
    params = conf.params
    queue = cluster.queue_conf.get(spec.queue) or QueueConfig(name=spec.queue)
    record = cluster.get(key)
    array = cluster.arrays.rows.get(job_of(key)) if index_of(key) else None
    app = conf.app_conf.get(spec.app) or ApplicationConfig(name=spec.app)
    checkpoint = spec.checkpoint
    array_end, array_step = _array_range(array)
    return pb.JobText(
        id=number, job=job_of(key), user=spec.user, command=text.command, script=text.script, env=env, cwd=text.cwd,
        home=text.home, shell=text.shell, input=text.input, output=text.output, output_overwrite=text.output_overwrite,
        error=text.error, error_overwrite=text.error_overwrite, output_dir=text.output_dir, pre_exec=text.pre_exec,
        post_exec=text.post_exec, umask=text.umask, label=text.label, rank_files=text.rank_files,
        login_shell=text.login_shell, queue=spec.queue, project=spec.project,
        name=record.name if array is None else array.spec_text, from_host=spec.from_host,
        launch=spec.launch, resreq=spec.resreq, cluster=conf.cluster, submitted=record.submitted,
        array_end=array_end, array_step=array_step, effective_resreq=resreqs.shown(queue.res_req, spec.resreq),
        limits=limits_message(spec.limits, *scales(cluster, spec, host)), direct_output=params.stdout_direct,
        leased=spec.rerunnable or checkpoint is not None,
        checkpoint_dir=checkpoint.folder if checkpoint else "", checkpoint_period=checkpoint.period if checkpoint else 0,
        checkpoint_of=checkpoint.of if checkpoint else "",
        checkpoint_method=checkpoint.method if checkpoint else "",
        checkpoint_initial=checkpoint.initial if checkpoint else 0, nice=queue.nice if app.nice is None else app.nice,
        job_starter=app.job_starter or queue.job_starter,
        gpu_mode=(spec.gpu.mode or "") if spec.gpu else "", description=text.description, mail_user=text.mail_user,
        app=spec.app, group=spec.group, admins=conf.admins,
        terminate_interval=params.terminate_interval, requeue_exit_values=spec.requeue or str(queue.requeue_exit_values),
        rerunnable=spec.rerunnable, enforce_memory="memory" in params.enforce or params.job_memlimit,
        run_warning=params.run_warning, deadline=spec.deadline, notify_start=text.notify_start,
        notify_end=text.notify_end, report_mail=mail_to(spec, text, params.mail_to), queue_pre_exec=queue.pre_exec,
        roles=_roles(spec, text, *scales(cluster, spec, host)),
        framework=spec.policy.framework, nproc=spec.policy.nproc, launcher_start=spec.policy.launcher_start,
        clean=spec.policy.clean, software=_software(text.software), requested_mem=requested_mem(spec.resreq),
        queue_post_exec=queue.post_exec, secrets=dict(text.secrets), interactive=text.interactive,
        notify=text.notify, input_data=base64.b64decode(text.input_data), copies=text.copies, tee=text.tee,
        resizable=spec.resizable, min_slots=spec.slots, max_slots=spec.max_slots, **warning(cluster, spec, text),
        job_controls=[pb.Control(action=one.action, what=one.what) for one in app.job_controls or queue.job_controls],
        **_around(params, queue, app),
    )  # fmt: skip


def _around(params: Params, queue: QueueConfig, app: ApplicationConfig) -> dict[str, Any]:
    """What runs on each host around a job, and how long all that runs around it may take."""
    return {
        "host_pre_exec": [command for command in (queue.host_pre_exec, app.host_pre_exec) if command],
        "host_post_exec": [command for command in (app.host_post_exec, queue.host_post_exec) if command],
        "pre_timeout": params.pre_timeout if app.job_preproc_timeout is None else app.job_preproc_timeout,
        "post_timeout": params.post_timeout if app.job_postproc_timeout is None else app.job_postproc_timeout,
        "include_post": params.include_post if app.job_include_postproc is None else app.job_include_postproc,
    }


def _roles(spec: Spec, text: JobText, run_scale: float, cpu_scale: float) -> list[pb.Role]:
    return [
        pb.Role(
            name=role.name, command=own.command, env=own.env, cwd=own.cwd,
            limits=limits_message(role.limits, run_scale, cpu_scale),
            gpus=role.gpus, slots=role.slots, kind=role.kind, least=role.least, count=role.count,
            software=_software(own.software), scratch=own.scratch,
        )
        for role, own in zip(spec.roles, text.roles, strict=True)
    ]  # fmt: skip


def _software(steps: tuple[tuple[str, ...], ...]) -> list[pb.Software]:
    return [pb.Software(name=name, values=values) for name, *values in steps]


def _amend(values: Mapping[str, str]) -> pb.Amend:
    """Yes and no are kept as "1" and "" in the attempt's record."""
    fields = pb.Amend.DESCRIPTOR.fields_by_name
    typed: dict[str, Any] = {
        name: bool(value) if fields[name].type == fields[name].TYPE_BOOL else value for name, value in values.items()
    }
    return pb.Amend(**typed)


def warning(cluster: Cluster, spec: Spec, text: JobText) -> dict[str, Any]:
    """What warns the job before it is ended, and how many seconds before: its own, its profile's, its queue's."""
    app = cluster.conf.app_conf.get(spec.app)
    queue = cluster.queue_conf.get(spec.queue)
    found = [(text.warn_action, text.warn_before)]
    found += [(one.job_warning_action, one.job_action_warning_time or 0) for one in (app, queue) if one is not None]
    action = next((action for action, _ in found if action), "")
    before = next((before for _, before in found if before), 0)
    return {"warn_action": action, "warn_before": before} if action and before else {}


def _array_range(array: Array | None) -> tuple[int, int]:
    """(LSB_JOBINDEX_END, LSB_JOBINDEX_STEP): the last index and the first step of the array's name; (0, 0) for none."""
    if array is None:
        return 0, 0
    ranges = [word for word in array.spec_text.partition("[")[2].partition("]")[0].split(",") if word]
    ends = [int(number) for word in ranges for number in word.partition(":")[0].split("-") if number.strip().isdecimal()]
    step = ranges[0].partition(":")[2].strip() if ranges else ""
    return max([array.indices.max(), *ends]), int(step) if step.isdecimal() else 1


def placement(cluster: Cluster, run: Attempt) -> list[pb.HostSlots]:
    """Where all parts of an attempt are that are to stay: the same for each of them."""
    return [
        pb.HostSlots(
            host=part.host, slots=part.slots, gpus=part.gpus, address=_address(cluster, part.host),
            roles=[pb.RoleSlots(role=role, first=first, count=count) for role, first, count in part.roles],
            binds=[pb.Bind(cpus=bind.cpus, nodes=bind.nodes, only=bind.only) for bind in part.binds],
            seat=part.seat if run.elastic else seat,
        )
        for seat, part in enumerate(part for part in run.parts if not part.leaving)
    ]  # fmt: skip


def start_order(
    cluster: Cluster, session: Session, effect: StartPart, job: Job, run: Attempt, hosts: list[pb.HostSlots], secret: bytes,
    now: float,
) -> pb.Order:  # fmt: skip
    """The order to start (or prepare) a part; ``hosts`` is the attempt's ``placement``."""
    session.sequence += 1
    spec = cluster.specs.rows[job.spec]
    start = pb.Start(
        sequence=session.sequence, text=session.texts[text_key(cluster, job)].number, two_phase=effect.two_phase, hosts=hosts,
        place=next(i for i, host in enumerate(hosts) if host.host == effect.host), expires=now + START_EXPIRES,
        lease=lease_of(cluster, spec), restart=job.checkpoint, restart_count=run.number - 1, name=job.name,
        token=token(secret, run.uid),
    )  # fmt: skip
    if effect.two_phase or (spec.interactive and effect.host != spec.from_host):
        start.key_pem, start.cert_pem = credentials(secret, run.uid)
    return pb.Order(key=effect.key, attempt=effect.attempt, uid=effect.uid, start=start)


def text_key(cluster: Cluster, job: Job) -> int:
    """Under which key a stream remembers the text: the array's, while the element has the array's spec."""
    array = cluster.arrays.rows.get(job_of(job.key)) if index_of(job.key) else None
    return job_of(job.key) if array is not None and array.spec == job.spec else job.key


def lease_of(cluster: Cluster, spec: Spec) -> float:
    """Seconds a rerunnable or checkpointable job may live on without news from the master; 0: no lease."""
    if not spec.rerunnable and spec.checkpoint is None:
        return 0.0
    return cluster.conf.params.lease


def _address(cluster: Cluster, host: str) -> str:
    row = cluster.hosts.rows.get(host)
    return row.facts.address if row is not None else ""


def grace_of(cluster: Cluster, job: Job) -> float | None:
    """DJOB_RESIZE_GRACE_PERIOD of the job's application profile."""
    name = cluster.specs.rows[job.spec].app
    return None if (app := cluster.conf.app_conf.get(name)) is None else app.djob_resize_grace_period


@lru_cache(maxsize=8)
def _release(root: Endpoint, ports: Ports) -> pb.Release:
    """Made once for all hosts of a large job."""
    return pb.Release(root=_endpoint(root), ports=[pb.Ports(ports=one) for one in ports])


def _endpoint(endpoint: Endpoint) -> pb.Endpoint:
    return pb.Endpoint(host=endpoint.host, port=endpoint.port, tasks_port=endpoint.tasks_port)


def other_order(effect: Effect, grace: float | None = None, factors: tuple[float, float] = (1.0, 1.0)) -> pb.Order:
    """The order for an effect that needs no text."""
    order = pb.Order(key=effect.key, attempt=effect.attempt, uid=effect.uid)
    if isinstance(effect, KillPart):
        order.kill.SetInParent()
        if effect.leaves:
            order.kill.leaves, order.kill.grace = True, LEAVE_GRACE if grace is None else grace
    elif isinstance(effect, ReleasePart):
        order.release.CopyFrom(_release(effect.root, effect.ports))
    elif isinstance(effect, ChangeLimits):
        order.limits.CopyFrom(limits_message(effect.limits, *factors))
    elif isinstance(effect, ChangeText):
        order.amend.CopyFrom(_amend(dict(effect.values)))
    elif isinstance(effect, TellHosts):
        told = order.hosts
        told.SetInParent()
        told.hosts.extend(pb.HostSlots(host=host, slots=slots, seat=seat) for host, slots, seat in effect.hosts)
        told.changed.extend(pb.HostSlots(host=host, slots=slots) for host, slots in effect.changed)
        told.number, told.grow, told.command = effect.number, effect.grow, effect.command
    elif isinstance(effect, StopPart):
        order.stop.stopped = effect.stopped
    elif isinstance(effect, StartTask):
        order.start_task.rank, order.start_task.number, order.start_task.delay = effect.rank, effect.number, effect.delay
    elif isinstance(effect, FinishPart):
        end = order.finish
        end.status, end.rank, end.why, end.leave = effect.status, effect.rank, effect.why, effect.leave
    elif isinstance(effect, SignalPart):
        wish = effect.wish
        order.signal.wish, order.signal.kind, order.signal.signal = wish.number, wish.kind, wish.signal
        order.signal.reason, order.signal.kill_after = wish.reason.name, wish.kill_after
        if wish.period >= 0:
            order.signal.period = wish.period
    return order
