"""Which service class a job belongs to, and what bsub -sla and bmod -sla refuse."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.guarantees import ServiceClass
from config.model.queue import QueueConfig
from lavad.core.decide.modify.modify import modify
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Modify, Refused
from lavad.core.site.conf import Conf
from lavad.core.site.service_classes import ServiceClasses
from tests.support.worlds.bench import ALICE, LOCAL, Bench

GROUPS = (("physicists", ("alice",)), ("all_of_them", ("physicists",)), ("but_some", ("all", "~physicists")))


def class_of(*classes: ServiceClass, **fields: Any) -> str:
    conf = Conf(service_classes=classes, user_groups=GROUPS)
    return ServiceClasses(conf).of(Spec(**({"user": "alice", "queue": "normal"} | fields)))


@pytest.mark.parametrize(
    ("access", "fields", "let_in"),
    [
        ({}, {}, True),
        ({"queues": ("normal", "night")}, {}, True),
        ({"queues": ("night",)}, {}, False),
        ({"users": ("alice",)}, {}, True),
        ({"users": ("all_of_them",)}, {}, True),
        ({"users": ("all",)}, {"user": "bob"}, True),
        ({"users": ("physicists",)}, {"user": "bob"}, False),
        ({"projects": ("p1",)}, {"project": "p1"}, True),
        ({"projects": ("p1",)}, {}, False),
        ({"apps": ("fluent",)}, {"app": "fluent"}, True),
        ({"apps": ("fluent",)}, {}, False),
        ({"fairshare_groups": ("physicists",)}, {"user_group": "physicists"}, True),
        ({"fairshare_groups": ("physicists",)}, {}, False),
        ({"fairshare_groups": ("physicists",)}, {"user_group": "physicists", "user": "bob"}, False),
        ({"fairshare_groups": ("all_of_them",)}, {"user_group": "all_of_them"}, True),
        ({"fairshare_groups": ("physicists",)}, {"user_group": "~physicists"}, False),
        ({"users": ("all", "~alice")}, {}, False),
        ({"users": ("all", "~alice")}, {"user": "bob"}, True),
        ({"users": ("but_some",)}, {}, False),
        ({"users": ("but_some",)}, {"user": "bob"}, True),
        ({"queues": ("normal",), "projects": ("p1",)}, {}, False),
    ],
)
def test_each_list_of_a_class_has_to_let_a_job_in(access: dict[str, Any], fields: dict[str, Any], let_in: bool) -> None:
    auto, asked = ServiceClass(name="gold", auto_attach=True, **access), ServiceClass(name="gold", **access)
    assert class_of(auto, **fields) == ("gold" if let_in else "")
    assert class_of(asked, service_class="gold", **fields) == ("gold" if let_in else "")
    assert class_of(asked, **fields) == ""


def test_the_first_that_attaches_has_a_job_and_the_one_that_it_names_before_that() -> None:
    classes = (ServiceClass(name="a"), ServiceClass(name="b", auto_attach=True), ServiceClass(name="c", auto_attach=True))
    assert class_of(*classes) == "b"
    assert class_of(*classes, service_class="a") == "a"
    assert class_of(*classes, service_class="gone") == ""


@pytest.fixture
def classes(bench: Bench) -> Bench:
    queues = (QueueConfig(name="normal", priority=30), QueueConfig(name="night", priority=20))
    gold = ServiceClass(name="gold", queues=("normal",))
    bench.configure(queues=queues, service_classes=(gold, ServiceClass(name="silver")))
    return bench


def bmod(bench: Bench, job: int, **options: Any) -> None:
    bench.take(modify(bench.cluster, Modify(job=str(job), options=options), JobText(command="a"), ALICE, bench.now, LOCAL))


def test_bsub_takes_a_class_that_lets_the_job_in(classes: Bench) -> None:
    job = classes.bsub(sla="gold")["job"]
    assert classes.cluster.spec_of(job).service_class == "gold"
    with pytest.raises(Refused, match="iron: No such service class"):
        classes.bsub(sla="iron")
    with pytest.raises(Refused, match="gold: The job has no access to the service class"):
        classes.bsub(sla="gold", q="night")


def test_bmod_changes_and_resets_it(classes: Bench) -> None:
    job = classes.bsub(q="night")["job"]
    with pytest.raises(Refused, match="gold: The job has no access to the service class"):
        bmod(classes, job, sla="gold")
    bmod(classes, job, sla="silver")
    assert classes.cluster.spec_of(job).service_class == "silver"
    bmod(classes, job, slan=True)
    assert classes.cluster.spec_of(job).service_class == ""
    bmod(classes, job, q="normal", sla="gold")
    with pytest.raises(Refused, match="no access"):
        bmod(classes, job, q="night")
    assert classes.cluster.spec_of(job).queue == "normal"
