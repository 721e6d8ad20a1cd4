"""Host lists of HOSTS and -m, user groups, and the texts of pend reasons."""

from __future__ import annotations

import pytest

from config.model.cluster import Limit
from lavad.core.site.conf import Conf, ResourceConf
from lavad.core.site.host_names import first_hosts, preferences, user_groups
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

HOSTS = ("h1", "h2", "h3", "h4")
CONF = Conf(
    host_groups=(("left", ("h1", "h2")), ("both", ("left", "h4")), ("loop", ("loop", "h3"))),
    user_groups=(("devs", ("ann",)), ("staff", ("devs", "bob")), ("everyone", ("all",))),
    resources=(ResourceConf(name="lic", kind="numeric"),),
    limits=(Limit(name="few", users=("ann",), slots=4, jobs=2),),
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("all",), {"h1": 0, "h2": 0, "h3": 0, "h4": 0}),
        (("h2", "h9"), {"h2": 0}),
        (("both",), {"h1": 0, "h2": 0, "h4": 0}),
        (("loop",), {"h3": 0}),
        (("all", "~left"), {"h3": 0, "h4": 0}),
        (("~h1",), {"h2": 0, "h3": 0, "h4": 0}),
        (("h3+5", "left+", "others"), {"h1": 1, "h2": 1, "h3": 5, "h4": 0}),
        (("h3", "others+2"), {"h1": 2, "h2": 2, "h3": 0, "h4": 2}),
        (("h1!", "left+3"), {"h1": 3, "h2": 3}),
        ((), {}),
    ],
)
def test_preferences(words, expected):
    assert preferences(CONF, words, HOSTS) == expected


def test_first_hosts_and_user_groups():
    assert first_hosts(CONF, ("left!", "h4")) == {"h1", "h2"}
    assert set(user_groups(CONF, "ann")) == {"devs", "staff", "everyone"}
    assert user_groups(CONF, "eve") == ("everyone",)


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


def test_every_reason_has_a_text_of_one_line():
    for reason in PendReason:
        assert text(reason, CONF)
        assert "\n" not in text(reason, CONF)
