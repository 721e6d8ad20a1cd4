"""A replica whose master is gone ends, whatever the master had left to read."""

from __future__ import annotations

import socket

import pytest

from lavad.replica.replica import Ended, Replica


@pytest.mark.parametrize("unread", [b"", b"a plan that nobody reads any more"])
def test_a_replica_ends_with_its_master(unread: bytes) -> None:
    ours, theirs = socket.socketpair()
    replica = Replica(theirs)
    if unread:
        replica.send_frame(unread)
    ours.close()
    with theirs, pytest.raises(Ended):
        replica.wait(None)
