"""The container that an application profile or queue runs its jobs in (CONTAINER), among the software that a job asks for."""

from __future__ import annotations

from config.model.container import Container
from config.model.queue import ApplicationConfig, JobProfile
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Refused

Step = tuple[str, ...]
"""(name, arguments …), as in ``JobText.software``."""
CONTAINER = "container"
WITH_OPTIONS = "container_with_options"
"""A step of its own, which an agent of a release before refuses, as it would take the options for the command."""


def container_of(app: ApplicationConfig | None, queue: JobProfile | None) -> Container | None:
    """The profile's, else the queue's."""
    own = app.container if app is not None else None
    return own or (queue.container if queue is not None else None)


def step_of(app: ApplicationConfig | None, queue: JobProfile | None) -> Step:
    """What agents are told of it; () for none."""
    box = container_of(app, queue)
    if box is None:
        return ()
    step = (WITH_OPTIONS if box.options else CONTAINER, box.image, box.runner or box.kind, "missing")
    return (*step, *box.options)


def inside(software: tuple[Step, ...], box: Step) -> tuple[Step, ...]:
    """A job's software with the container that it runs in: modules are loaded outside of it, all else is inside."""
    outside = tuple(step for step in software if step[0] == "modules")
    return (*outside, box, *(step for step in software if step[0] not in ("modules", CONTAINER)))


def image_of(cluster: Cluster, spec: Spec, software: tuple[Step, ...]) -> str:
    """The image in which a job runs, as the site or the user wrote it; "" for none."""
    box = container_of(cluster.conf.app_conf.get(spec.app), cluster.queue_conf.get(spec.queue))
    return box.image if box is not None else next((step[1] for step in software if step[0] == CONTAINER), "")


def check_container(app: ApplicationConfig | None, queue: JobProfile, text: JobText) -> None:
    """Where the site says in which container a job runs, the user does not, and it is one that lava can run; raises Refused."""
    box = container_of(app, queue)
    if box is None:
        return
    whose = f"application {app.name}" if app is not None and app.container else f"queue {queue.name}"
    if not box.runner:
        raise Refused(f"{whose}: CONTAINER={box.kind}[…] is not supported by lava")
    for software in (text.software, *(role.software for role in text.roles)):
        if any(step[0] == CONTAINER for step in software):
            raise Refused(f"{whose} says in which container its jobs run (CONTAINER): -a container cannot be given")
