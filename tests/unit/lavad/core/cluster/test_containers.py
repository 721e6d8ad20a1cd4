"""CONTAINER of profiles and queues: what agents are told, what users may not say, and where such jobs go."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.cluster import ClusterConfig, ResourceConfig
from config.model.container import Container
from config.model.queue import ApplicationConfig, QueueConfig
from config.values.containers import container
from config.values.values import Scope
from lavad.configure.resolve import resolve
from lavad.core.cluster.containers import image_of, inside, step_of
from lavad.core.lang.asks import OptionValue, Refused
from tests.support.worlds.bench import Bench


def box(text: str) -> Container:
    return container(text, Scope())


def test_the_profiles_container_stands_before_the_queues() -> None:
    queue = QueueConfig("q", container=box("podman[image(of-queue)]"))
    app = ApplicationConfig("a", container=box("docker[image(of-app) options(-v /d:/d)]"))
    assert step_of(app, queue) == ("container_with_options", "of-app", "podman", "missing", "-v", "/d:/d")
    assert step_of(ApplicationConfig("b"), queue) == ("container", "of-queue", "podman", "missing")
    assert step_of(ApplicationConfig("b"), QueueConfig("r")) == ()


def test_modules_are_outside_and_all_else_inside() -> None:
    software = (("modules", "gcc"), ("container", "own"), ("venv", "/v"))
    assert inside(software, ("container", "x")) == (("modules", "gcc"), ("container", "x"), ("venv", "/v"))
    assert inside((), ("container", "x")) == (("container", "x"),)


REFUSED: list[tuple[dict[str, OptionValue], str]] = [
    ({"app": "boxed", "a": "container(mine)"}, "application boxed says in which container its jobs run"),
    ({"q": "night", "a": "modules(gcc) container(mine)"}, "queue night says in which container its jobs run"),
    ({"app": "shifted"}, "application shifted: CONTAINER=shifter[…] is not supported by lava"),
    ({"app": "boxed", "k": "/c method=criu"}, "the processes of container of-app are its runner's"),
]


@pytest.fixture
def site(bench: Bench) -> Bench:
    apps = (
        ApplicationConfig("boxed", container=box("apptainer[image(of-app)]")),
        ApplicationConfig("shifted", container=box("shifter[image(x)]")),
    )
    queues = tuple(
        replace(queue, container=box("podman[image(of-queue)]")) if queue.name == "night" else queue
        for queue in bench.cluster.conf.queues
    )
    bench.configure(apps=apps, queues=queues)
    return bench


@pytest.mark.parametrize(("options", "why"), REFUSED)
def test_what_is_refused(site: Bench, options: dict[str, OptionValue], why: str) -> None:
    given: dict[str, Any] = {**options}
    with pytest.raises(Refused) as refused:
        site.bsub(**given)
    assert why in str(refused.value)


def test_the_image_of_a_job(site: Bench) -> None:
    jobs = [site.bsub(app="boxed", q="night"), site.bsub(q="night"), site.bsub(a="container(mine)")]
    specs = [site.cluster.spec_of(job["job"]) for job in jobs]
    own = (("container", "mine", "", "missing"),)
    assert [image_of(site.cluster, spec, own) for spec in specs] == ["of-app", "of-queue", "mine"]


@pytest.mark.parametrize(
    ("resources", "kind", "own", "wanted"),
    [
        (("docker",), "docker", "", "select[docker]"),
        (("docker",), "nvidia-docker", "select[a||b] rusage[mem=5]", "select[(a || b) && docker] rusage[mem=5]"),
        (("docker",), "podman", "select[mem>10]", "select[mem>10]"),
        ((), "docker", "", ""),
    ],
)
def test_containers_of_docker_go_where_the_site_has_it(resources: tuple[str, ...], kind: str, own: str, wanted: str) -> None:
    made = box(f"{kind}[image(x)]")
    config = ClusterConfig(
        resources=tuple(ResourceConfig(name=name) for name in resources),
        queues=(QueueConfig("q", container=made, res_req=own),),
        applications=(ApplicationConfig("a", container=made, res_req=own), ApplicationConfig("b", res_req=own)),
    )
    conf = resolve(config)
    assert [conf.queues[0].res_req, conf.apps[0].res_req, conf.apps[1].res_req] == [wanted, wanted, own]
