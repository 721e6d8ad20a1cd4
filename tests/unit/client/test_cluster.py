"""Submissions of many commands: what was submitted is known, whatever ends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lava_client import cluster as cluster_module
from lava_client.cluster import Cluster
from lava_client.errors import LavaError, Refused, Unavailable
from tests.unit.cli.scripted_master import DROP, Frame, ScriptedMaster

BEGIN: list[Frame] = [{"ok": {"after": "1"}}]


def rows(*jobs: int | str) -> list[Frame]:
    """An answer: a number is a job, a word why there is none."""
    made = [{"ok": True, "job": job, "queue": "q"} if isinstance(job, int) else {"ok": False, "why": job} for job in jobs]
    return [{"ok": {"results": made}}]


@pytest.mark.parametrize(
    ("plan", "error", "text"),
    [
        (DROP, Unavailable, "not responding"),
        ([{"refused": "h1: Host is not a submission host", "exit": 255}], Refused, "h1: Host"),
        (rows("nosuch: No such queue", "x"), Refused, "nosuch: No such queue"),
    ],
)
def test_an_error_has_the_jobs_that_were_submitted_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: list[Frame], error: type[LavaError], text: str
) -> None:
    monkeypatch.setattr(cluster_module, "MOST_AT_ONCE", 2)
    environ = {"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}
    with ScriptedMaster(tmp_path / "s", BEGIN, rows(11, 12), plan), Cluster(environ=environ, timeout=0.0) as cluster:
        with pytest.raises(error, match=text) as raised:
            cluster.submit_many(["a", "b", "c", "d"])
        assert [str(job) for job in raised.value.jobs] == ["<Job 11 submitted>", "<Job 12 submitted>"]


@pytest.mark.parametrize(
    ("words", "options", "what"),
    [
        (["echo", "\udc80"], {}, "The command"),
        (["true"], {"name": "\udc80"}, "-J"),
        (["true"], {"resreq": ["a", "\udc80"]}, "-R"),
    ],
)
def test_bytes_that_are_no_text_are_refused_as_bsub_does(
    tmp_path: Path, words: list[str], options: dict[str, Any], what: str
) -> None:
    environ = {"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}
    with (
        ScriptedMaster(tmp_path / "s", BEGIN) as master,
        Cluster(environ=environ, timeout=0.0) as cluster,
        pytest.raises(Refused, match=f"^{what} holds bytes that are not UTF-8$"),
    ):
        cluster.submit(words, **options)
    assert master.asks == []


def test_0_is_no_job(tmp_path: Path) -> None:
    """bkill takes it for all of a user's."""
    environ = {"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}
    all_jobs = {"out": '{"RECORDS": [{"JOBID": "7"}, {"JOBID": "8"}]}', "exit": 0}
    with ScriptedMaster(tmp_path / "s", [all_jobs]), Cluster(environ=environ, timeout=0.0) as cluster:
        for zero in (0, "0", "00", " 0", "0\n"):
            with pytest.raises(Refused, match=f"Job <{zero}> is not found"):
                cluster.job(zero)


@pytest.mark.parametrize("commands", ["true", b"true"])
def test_one_command_is_no_list_of_its_letters(tmp_path: Path, commands: Any) -> None:
    environ = {"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}
    with Cluster(environ=environ, timeout=0.0) as cluster, pytest.raises(TypeError, match="submit takes one"):
        cluster.submit_many(commands)
