"""The stored form of where a part can be reached."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.job.endpoint import Endpoint, endpoint_text, parse_endpoint

NUMBERS = st.integers(1, 65535)


@given(st.sampled_from(("", "10.0.0.1", "fe80::1")), NUMBERS, st.lists(NUMBERS, max_size=3))
def test_what_is_stored_is_read_again(host: str, port: int, ports: list[int]) -> None:
    endpoint = Endpoint(host, port if host else 0, tuple(ports))
    assert parse_endpoint(endpoint_text(endpoint)) == endpoint


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("", Endpoint()),
        ("10.0.0.1:999", Endpoint("10.0.0.1", 999)),
        ("10.0.0.1:999;tcp=1,2", Endpoint("10.0.0.1", 999, (1, 2))),
        (";tcp=1", Endpoint(ports=(1,))),
        ("10.0.0.1:999;tcp=1;more=5", Endpoint("10.0.0.1", 999, (1,))),
        ("nonsense;what=1", Endpoint()),
    ],
)
def test_the_stored_form(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(text) == endpoint
