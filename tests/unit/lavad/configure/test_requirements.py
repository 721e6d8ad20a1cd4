"""Requirements of queues and profiles that do not read are told with file, section and parameter."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from config.model.cluster import ClusterConfig
from config.model.queue import ApplicationConfig, QueueConfig
from lavad.configure.requirements import wrong_requirements


@pytest.mark.parametrize("parameter", ["RES_REQ", "STOP_COND", "RESUME_COND"])
def test_one_that_does_not_read_is_told(parameter: str) -> None:
    texts = ("select[mem>100]", "select[mem>100")
    queues = tuple(replace(QueueConfig(name=f"q{at}"), **{parameter.lower(): text}) for at, text in enumerate(texts))
    (said,) = wrong_requirements(ClusterConfig(queues=queues))
    assert said == f"lsb.queues: queue q1: {parameter}: ] is missing: Bad resource requirement syntax"


def test_so_is_that_of_a_profile() -> None:
    apps = (ApplicationConfig(name="a", res_req="rusage[mem="), ApplicationConfig(name="b", res_req="rusage[mem=5]"))
    (said,) = wrong_requirements(ClusterConfig(applications=apps))
    assert said.startswith("lsb.applications: profile a: RES_REQ: ")


def test_what_lava_does_not_do_is_refused_in_a_queue_as_in_a_job() -> None:
    """It would ask for nothing."""
    queues = (
        QueueConfig(name="gpu", res_req="span[gtile='!']"),
        QueueConfig(name="mem", res_req="rusage[mem=(2 1):duration=(5 5)]"),
    )
    gpu, mem = wrong_requirements(ClusterConfig(queues=queues))
    assert gpu == "lsb.queues: queue gpu: RES_REQ: span[gtile] is not supported by lava"
    assert mem.startswith("lsb.queues: queue mem: RES_REQ: Bad resource requirement: rusage[mem=(2 1)], a reservation in phases,")
