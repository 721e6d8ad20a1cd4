"""Where the user of an interactive job attaches: told to its owner alone, of an attempt that is there and newer than the last."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.job.job import End, Placed
from lavad.core.lang.asks import Attach, Refused
from lavad.hosts.attach import find_attach_address
from tests.support.worlds.query_cluster import ALICE, BOB, QueryCluster, at

SECRET = b"secret"


def prepared() -> QueryCluster:
    c = QueryCluster()
    c.submit(1, interactive=True)
    c.feed(ev.JobDispatched(at=at("11:34:00"), key=1, attempt=1, uid="u1", parts=(Placed("ol2", 1),)))
    return c


def test_only_the_owner_is_told() -> None:
    c = prepared()
    ask = Attach(job=1, after=0)
    assert find_attach_address(c.cluster, ask, ALICE, SECRET) is None  # its host has not said where yet
    c.feed(ev.PartPrepared(at=at("11:34:01"), key=1, attempt=1, host="ol2", address="ol2:1", attach_address="ol2:7"))
    answer = find_attach_address(c.cluster, ask, ALICE, SECRET)
    assert answer is not None
    assert (answer["attempt"], answer["host"], answer["door"], answer["near"]) == (1, "ol2", "ol2:7", False)
    assert all(answer[name] for name in ("key", "cert", "token"))
    with pytest.raises(Refused, match="User permission denied"):
        find_attach_address(c.cluster, ask, BOB, SECRET)


def test_not_of_an_attempt_that_was_told_before_or_is_over() -> None:
    c = prepared()
    c.feed(ev.PartPrepared(at=at("11:34:01"), key=1, attempt=1, host="ol2", address="ol2:1", attach_address="ol2:7"))
    assert find_attach_address(c.cluster, Attach(job=1, after=1), ALICE, SECRET) is None
    assert find_attach_address(c.cluster, Attach(job=2, after=0), ALICE, SECRET) is None
    c.feed(ev.PartEnded(at=at("11:35:00"), key=1, attempt=1, host="ol2", end=End(status=0, at=at("11:35:00"))))
    assert find_attach_address(c.cluster, Attach(job=1, after=0), ALICE, SECRET) is None
