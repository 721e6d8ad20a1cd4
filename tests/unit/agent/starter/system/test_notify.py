"""What systemd is told, and when."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from agent.starter.system.notify import Notify


@pytest.fixture
def manager(tmp_path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(str(tmp_path / "notify"))
    sock.setblocking(False)
    return sock


def test_states_and_beats_reach_the_manager_and_its_variables_no_child(tmp_path: Path, manager: socket.socket) -> None:
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "90000000", "WATCHDOG_PID": str(os.getpid()), "A": "1"}
    notify = Notify(environ)
    assert environ == {"A": "1"}
    assert notify.every == 30.0
    notify.tell("READY=1")
    notify.beat()
    notify.beat()
    assert [manager.recv(99), manager.recv(99)] == [b"READY=1", b"WATCHDOG=1"]
    with pytest.raises(BlockingIOError):
        manager.recv(99)


@pytest.mark.parametrize("more", [{}, {"WATCHDOG_USEC": "9000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "x"}])
def test_without_a_watchdog_of_its_own_it_does_not_beat(tmp_path: Path, manager: socket.socket, more: dict[str, str]) -> None:
    notify = Notify({"NOTIFY_SOCKET": str(tmp_path / "notify"), **more})
    notify.beat()
    with pytest.raises(BlockingIOError):
        manager.recv(99)


def test_nobody_who_asks_and_a_manager_that_is_gone_are_no_errors(tmp_path: Path) -> None:
    Notify({}).tell("READY=1")
    Notify({"NOTIFY_SOCKET": str(tmp_path / "no-such")}).tell("READY=1")


def test_an_abstract_name_is_understood() -> None:
    name = f"lava-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + name)
        sock.settimeout(30)
        Notify({"NOTIFY_SOCKET": "@" + name}).tell("STOPPING=1")
        assert sock.recv(99) == b"STOPPING=1"
