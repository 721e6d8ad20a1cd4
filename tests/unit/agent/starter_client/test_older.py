"""What a starter of protocol 1 is sent."""

from __future__ import annotations

import pytest

from agent.starter.protocol.part import NOTHING, LinkSpec, MpsSpec, write_part
from agent.starter_client.older import for_protocol_1


@pytest.mark.parametrize(("place", "role"), [(0, "root"), (2, "leaf")])
def test_the_ranks_of_a_job_have_one_network(place: int, role: str) -> None:
    part = write_part(NOTHING._replace(uid="u", link=LinkSpec(place, "CERT", "KEY", nodes=3, bind="10.0.0.1")), NOTHING, "t")
    assert for_protocol_1(part)["link"].items() >= {  # type: ignore[attr-defined]
        "role": role, "nodes": 3, "bind": "10.0.0.1", "cert": "CERT", "key": "KEY",
    }.items()  # fmt: skip
    assert "star" not in for_protocol_1(part)
    assert "role" not in part["link"]  # type: ignore[operator]


def test_the_tasks_of_blaunch_have_the_other() -> None:
    part = write_part(NOTHING._replace(uid="u", link=LinkSpec(1, "CERT", "KEY", bind="a", ranks=False)), NOTHING, "t")
    assert for_protocol_1(part) == {
        **{k: v for k, v in part.items() if k != "link"},
        "star": {"bind": "a", "cert": "CERT", "key": "KEY"},
    }


def test_a_part_of_one_host_is_as_it_is() -> None:
    part = write_part(NOTHING._replace(uid="u"), NOTHING, "t")
    assert for_protocol_1(part) is part


def test_a_part_that_needs_mps_is_not_sent_without_it() -> None:
    part = write_part(NOTHING._replace(uid="u", mps=(MpsSpec("/m", "GPU-0"),)), NOTHING, "t")
    with pytest.raises(ValueError, match="a version before MPS"):
        for_protocol_1(part)
