"""The file that hosts look for while a program submits jobs with checkpoints: what the master is told, and that it goes away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lava_client.checkpoint import probed
from lava_client.cluster import Cluster
from tests.unit.cli.scripted_master import Frame, ScriptedMaster


def frame(k: object, cwd: object = "/nowhere") -> dict[str, object]:
    return {"options": {} if k is None else {"k": k}, "cwd": str(cwd)}


@pytest.mark.parametrize("below", ["", "not/there/yet"])
def test_it_is_in_the_folder_or_on_the_way_to_it(tmp_path: Path, below: str) -> None:
    with probed(frame(f"{below or '.'} 30 method=app", tmp_path), {}) as found:
        assert found["checkpoint_folder"] == str(tmp_path / below)
        path = Path(found["checkpoint_probe"])
        assert (path.parent, path.stat().st_mode & 0o777) == (tmp_path, 0o600)
        assert os.path.ismount(found["checkpoint_mount"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["own stage", "own 5 stage=@/all", ["x", "own stage=@/all"]])
def test_the_folder_of_the_copies_counts(tmp_path: Path, words: object) -> None:
    given = [word.replace("@", str(tmp_path)) for word in ([words] if isinstance(words, str) else list(words))]  # type: ignore[call-overload]
    conf = {"LAVA_CHKPNT_STAGE_DIR": f"{tmp_path}/all"}
    with probed(frame(given[0] if isinstance(words, str) else given, tmp_path), conf) as found:
        assert found["checkpoint_folder"] == f"{tmp_path}/all"


def test_where_none_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for k, told in ((None, set()), ("", set()), (f"{tmp_path}/file/x", {"checkpoint_folder"}), ("a\udc80b", set())):
        with probed(frame(k), {}) as found:
            assert {*found} == told
    with probed(frame("/proc/lava"), {}) as found:
        assert {*found} == {"checkpoint_folder", "checkpoint_mount"}


def test_jobs_are_submitted_with_it(tmp_path: Path) -> None:
    rows: list[Frame] = [{"ok": {"results": [{"ok": True, "job": 1, "queue": "q"}, {"ok": True, "job": 2, "queue": "q"}]}}]
    environ = {"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}
    # what has changed is asked for on another connection, before or after
    none = [{"ok": {"after": "1", "changes": []}}]
    master = ScriptedMaster(tmp_path / "s", lambda asked: rows if asked.get("ask") == "bulk" else none)
    with master, Cluster(environ=environ, timeout=0.0) as cluster:
        cluster.submit_many(["a", "b"], k=f"{tmp_path}/ck 30", cwd=str(tmp_path))
    jobs = next(asked for asked in master.asks if asked.get("ask") == "bulk")["jobs"]
    assert isinstance(jobs, list)
    assert [job["checkpoint_folder"] for job in jobs] == 2 * [f"{tmp_path}/ck"]
    assert len({job["checkpoint_probe"] for job in jobs}) == 1
    assert not Path(jobs[0]["checkpoint_probe"]).exists()
