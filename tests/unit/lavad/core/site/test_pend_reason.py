"""The texts of pend reasons, with the names that are configured."""

from __future__ import annotations

import pytest

from config.model.cluster import Limit
from lavad.core.site.conf import Conf, ResourceConf
from lavad.core.site.pend_reason import (
    JOB_RUSAGE,
    LIMIT_JOBS,
    LIMIT_SLOTS,
    LOAD,
    QUE_RUSAGE,
    PendReason,
    about,
    index_names,
    text,
)

CONF = Conf(
    resources=(ResourceConf(name="lic", kind="numeric"),),
    limits=(Limit(name="few", users=("ann",), slots=4, jobs=2),),
)
NAMES = index_names(CONF)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (PendReason.HOST_LESS_SLOTS, "Not enough job slot(s)"),
        (PendReason.QUE_USR_JLIMIT, "User has reached the per-user job slot limit of the queue"),
        (about(LOAD, "r15s", NAMES), "The 15s effective CPU queue length (r15s) is beyond threshold"),
        (about(LOAD, "mem", NAMES), "The available memory (mem) is low"),
        (about(QUE_RUSAGE, "mem", NAMES), "Queue requirements for reserving resource (mem) not satisfied"),
        (about(JOB_RUSAGE, "lic", NAMES), "Job requirements for reserving resource (lic) not satisfied"),
        (
            LIMIT_SLOTS,
            "Resource (slot) limit defined on user(s) and/or user group has been reached (Limit Name: few, Limit Value: 4)",
        ),
        (
            LIMIT_JOBS,
            "JOBS limit defined on user(s) and/or user group has been reached (Limit Name: few, Limit Value: 2)",
        ),
        (999, ""),
    ],
)
def test_texts(code, words):
    assert text(code, CONF) == words


@pytest.mark.parametrize(
    ("slots", "each", "value"),
    [
        (4, None, "4"),
        (0, None, "0"),
        (None, 0.5, "0.5 per processor"),
        (None, 0.0, "0 per processor"),
        (4, 2.0, "4 and 2 per processor"),
    ],
)
def test_the_value_of_a_limit_on_slots(slots: int | None, each: float | None, value: str) -> None:
    conf = Conf(limits=(Limit(name="few", per_host=True, hosts=("all",), slots=slots, slots_per_processor=each),))
    assert text(LIMIT_SLOTS, conf).endswith(f"Limit Value: {value})")


def test_every_reason_has_a_text_of_one_line():
    for reason in PendReason:
        assert text(reason, CONF)
        assert "\n" not in text(reason, CONF)
