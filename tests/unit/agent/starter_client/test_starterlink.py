"""What the starter says, as the agent reads it."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from agent.starter.protocol.codec import text
from agent.starter.wire.frames import FrameError, parsed
from agent.starter_client.starterlink import answers, decode, spawn
from tests.support.full_socket import FullSocket


@pytest.mark.parametrize(
    "value", [1, -1.5, 1e300, 2**70, "\u00e4\n", "a\udcff", "\U0001f600", None, [True, {"b": {}}], float("inf")]
)
def test_it_is_read_as_the_starter_wrote_it(value: object) -> None:
    body = text({"is": "ended", "value": value})
    assert decode(body) == parsed(body) == {"is": "ended", "value": value}


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b'{"a":', b'{"a":1}x', b"\xff"])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError):
        decode(body)


def test_what_keeps_a_starter_from_starting_is_in_its_log(tmp_path: Path) -> None:
    folder, log = tmp_path / "starter", tmp_path / "starter.log"
    folder.mkdir(0o700)
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("4711\n")
        held.flush()
        assert spawn("h1", str(folder), str(tmp_path / "sock"), str(tmp_path), str(log)).wait(60) == 1
    assert log.read_text() == f"lava-starter: {folder} is served by process 4711 already\n"


def test_a_starter_whose_log_is_a_link_says_so_where_its_agent_writes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It follows no link, and has no log to say that in."""
    log = tmp_path / "starter.log"
    log.symlink_to(tmp_path / "elsewhere")
    assert spawn("h1", str(tmp_path / "starter"), str(tmp_path / "sock"), str(tmp_path), str(log)).wait(60) == 1
    assert capfd.readouterr().err == f"lava-starter: [Errno 40] Too many levels of symbolic links: '{log}'\n"
    assert not (tmp_path / "elsewhere").exists()


def test_a_starter_that_hangs_holds_up_no_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of agents that asked before stand in its queue."""
    monkeypatch.setattr("agent.starter_client.starterlink.ANSWER_WAIT", 1)
    with FullSocket(tmp_path / "sock"):
        assert not answers(str(tmp_path / "sock"))
