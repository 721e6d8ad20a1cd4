"""What goes wrong on the host does not end the agent."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace
from typing import cast

import pytest

from agent.daemon import Daemon
from agent.starter_client import starterlink


def test_an_agent_goes_on_where_there_is_no_room_for_a_starter(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_room(*_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(starterlink, "spawn", no_room)
    site = SimpleNamespace(host="h", spool="/nowhere", starter_socket="/nowhere/s", run_dir="/nowhere")
    Daemon._spawn(cast(Daemon, SimpleNamespace(_site=site, _starter_log="")))
    assert caplog.messages[-1] == "no starter can be started: Resource temporarily unavailable"
