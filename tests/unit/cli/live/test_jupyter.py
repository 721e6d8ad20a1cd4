"""What lava jupyter runs, finds in its output, and tells."""

from __future__ import annotations

import json

import pytest

from cli.client.context import Context
from cli.live import jupyter
from cli.live.jupyter import Server, find_address, told, words_of_server
from tests.unit.cli.caller import Caller
from tests.unit.cli.scripted_master import Frame, ScriptedMaster

WRITTEN = """
[I 15:00:00 ServerApp] Serving notebooks from local directory: /home/ann
[I 15:00:00 ServerApp] http://127.0.0.1:8889/lab?token=48c1a2
    Or copy and paste one of these URLs:
        http://localhost:8889/lab?token=48c1a2
        http://127.0.0.1:8889/lab?token=48c1a2\x1b[0m
"""


def test_the_command() -> None:
    assert words_of_server({}, []).startswith("exec jupyter lab --no-browser --ip=127.0.0.1 ")
    own = words_of_server({"LAVA_JUPYTER": "jupyter notebook"}, ["--notebook-dir=/a b"])
    assert own.startswith("exec jupyter notebook --no-browser")
    assert own.endswith(" '--notebook-dir=/a b'")


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (WRITTEN, ("http://127.0.0.1:8889/lab?token=48c1a2", "8889")),
        ("http://127.0.0.1:8888/lab?token=1\nhttp://127.0.0.1:8890/lab?token=1\n", ("http://127.0.0.1:8890/lab?token=1", "8890")),
        ("The port 8888 is already in use, see http://jupyter.org/help", None),
        ("", None),
    ],
)
def test_the_address(output: str, found: tuple[str, str] | None) -> None:
    assert find_address(output) == found


def test_a_tunnel_is_told_of_elsewhere_only() -> None:
    server = Server("http://127.0.0.1:8889/lab?token=1", "8889", "node7.site")
    assert "ssh" not in told("5", server, "node7")
    assert "ssh -N -L 8889:127.0.0.1:8889 node7.site\n" in told("5", server, "login1.site")


def test_the_server_is_on_the_first_host_however_hosts_are_shown(caller: Caller, capfd: pytest.CaptureFixture[str]) -> None:
    """With LSB_SHORT_HOSTLIST they are 4*node1:2*node2."""
    row = {"STAT": "RUN", "EXEC_HOST": "4*node1:2*node2", "FIRST_HOST": "node1", "PEND_REASON": ""}

    def answer(frame: Frame) -> list[Frame]:
        asked = str(frame.get("options", {}).get("o", "")).upper().split()
        listing = json.dumps({"RECORDS": [{name: row[name] for name in asked}]})
        return [{"out": listing if frame["ask"] == "query" else "http://127.0.0.1:9/lab\n"}, {"exit": 0}]

    with ScriptedMaster(caller.socket, answer, at_once=True):
        assert jupyter.run(Context(["5"], "/", caller.environ)) == 0
    assert capfd.readouterr().out.startswith("JupyterLab of job 5 on node1: http://127.0.0.1:9/lab\n")
