"""Calls whose results come late, as over NFS: they are waited for whatever becomes of other calls meanwhile."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lava_client import CallLost, Cluster, Executor, JobKilled, LavaError, worker
from lava_client.call import CallFuture
from tests.support.wait import SLOW, wait_until
from tests.unit.cli.scripted_master import Frame, ScriptedMaster

LONG = 20 * SLOW


def done(of_others: list[Frame]) -> Callable[[Frame], list[Frame]]:
    """A master whose first job is done at once; ``of_others``: its answer to each further submission."""
    jobs = 0

    def plan(frame: Frame) -> list[Frame]:
        nonlocal jobs
        if frame["ask"] == "submit":
            jobs += 1
            return [{"ok": {"job": 1, "queue": "normal"}}] if jobs == 1 else of_others
        row = {"job": "1", "state": "DONE", "status": 0}
        if frame["after"] != "c.2":
            return [{"ok": {"after": "c.2" if jobs else "c.1", "lost": False, "changes": [row] if jobs else []}}]
        time.sleep(0.05)
        return [{"ok": {"after": "c.2", "lost": False, "changes": []}}]

    return plan


def arrives(call: CallFuture[int], value: int) -> None:
    place = call.place
    Path(worker.result_name(place.batch, place.number)).write_bytes(worker.RESULT + pickle.dumps(value))


@pytest.mark.parametrize(("answer", "others"), [({"ok": "what?"}, 1), ({"refused": "no more jobs"}, 150)])
def test_a_late_result_is_waited_for_while_other_calls_fail(tmp_path: Path, answer: Frame, others: int) -> None:
    """However often its thread is woken up for these."""
    environ = {"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}
    with (
        ScriptedMaster(tmp_path / "s", done([answer]), at_once=True),
        Cluster(environ=environ) as cluster,
        Executor(cluster=cluster, folder=str(tmp_path)) as executor,
    ):
        late: CallFuture[int] = executor.submit(abs, -5)
        wait_until(lambda: bool(executor._pool._late), LONG)
        for _ in range(others):
            with pytest.raises(LavaError):
                executor.submit(abs, -6).result(LONG)
        assert not late.done()
        arrives(late, 5)
        assert late.result(LONG) == 5


def test_a_call_that_ends_with_the_code_of_a_missing_folder_is_not_run_twice(tmp_path: Path) -> None:
    """It has begun, as its log shows."""
    submitted: list[Frame] = []

    def plan(frame: Frame) -> list[Frame]:
        if frame["ask"] == "submit":
            submitted.append(frame)
            batch, number = frame["command"].split()[-2:]
            Path(worker.log_name(batch, int(number))).write_text("last words")
            return [{"ok": {"job": len(submitted), "queue": "normal"}}]
        row = {"job": "1", "state": "EXIT", "status": worker.NO_FOLDER << 8}
        return [{"ok": {"after": f"c.{len(submitted)}", "lost": False, "changes": [row] if submitted else []}}]

    environ = {"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}
    with (
        ScriptedMaster(tmp_path / "s", plan, at_once=True),
        Cluster(environ=environ) as cluster,
        Executor(cluster=cluster, folder=str(tmp_path)) as executor,
        pytest.raises(CallLost, match="last words"),
    ):
        executor.submit(abs, -5).result(LONG)
    assert len(submitted) == 1


@pytest.mark.parametrize("of_first", [{"standby": True}, {"refused": "The master's store is full"}, {"ok": "what?"}])
def test_the_job_of_a_cancelled_call_is_killed_once_the_master_takes_it(tmp_path: Path, of_first: Frame) -> None:
    """Whatever it says to the first kill; a call that comes meanwhile is not affected."""
    kills: list[Frame] = []
    jobs = 0

    def plan(frame: Frame) -> list[Frame]:
        nonlocal jobs
        if frame["ask"] == "submit":
            jobs += 1
            return [{"ok": {"job": jobs, "queue": "normal"}}]
        if frame["ask"] == "kill":
            kills.append(frame)
            return [of_first] if len(kills) == 1 else [{"ok": {"results": [{"id": "1", "ok": True}]}}]
        over = [{"job": "1", "state": "EXIT", "status": 9, "reason": "TERM_OWNER"}] if len(kills) > 1 else []
        over += [{"job": "2", "state": "EXIT", "status": 9, "reason": "TERM_OWNER"}] if jobs > 1 else []
        return [{"ok": {"after": f"c.{len(over)}", "lost": False, "changes": over}}]

    environ = {"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}
    with (
        ScriptedMaster(tmp_path / "s", plan, at_once=True),
        Cluster(environ=environ, timeout=0.0) as cluster,
        Executor(cluster=cluster, folder=str(tmp_path)) as executor,
    ):
        first: CallFuture[int] = executor.submit(abs, -5)
        wait_until(lambda: first.id is not None, LONG)
        first.cancel()
        wait_until(lambda: bool(kills), LONG)
        with pytest.raises(JobKilled):
            executor.submit(abs, -6).result(LONG)
    assert [frame["jobs"]["ids"] for frame in kills[:2]] == [["1"], ["1"]]
    assert first.cancelled()
