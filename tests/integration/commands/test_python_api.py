"""Jobs from Python, as futures."""

from __future__ import annotations

from concurrent.futures import as_completed
from pathlib import Path

import pytest

from cli.api import Job, JobFailed, Refused, submit
from tests.support.live.cluster import Cluster


@pytest.fixture(autouse=True)
def environ(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is in the cluster, as a user's is after ``lava env``."""
    for name, value in cluster.environ.items():
        monkeypatch.setenv(name, value)


def test_futures_end_as_jobs_do(cluster: Cluster, tmp_path: Path) -> None:
    good = submit(["sh", "-c", "echo $WHO > $1", "sh", "my file"], cwd=str(tmp_path), env={"WHO": "me"}, name="good")
    bad = submit("exit 3", slots=2, resreq=["select[mem>0]", "span[hosts=1]"])
    waits = submit("true", depends=f"done({good.id}) && exit({bad.id},3)")
    assert set(as_completed([good, bad, waits], timeout=30)) == {good, bad, waits}
    assert (good.result(), waits.result(), (tmp_path / "my file").read_text()) == (0, 0, "me\n")
    with pytest.raises(JobFailed, match=f"job {bad.id} ended with exit code 3") as failed:
        bad.result()
    assert failed.value.code == 3
    held: Job = submit("true", held=True)
    assert not held.done()
    assert held.cancel()
    with pytest.raises(JobFailed):
        held.result(timeout=20)
    assert not held.cancel()
    with pytest.raises(Refused, match="nosuch: No such queue"):
        submit("true", queue="nosuch")
    with pytest.raises(Refused, match="option -zz is not supported by lava"):
        submit("true", zz="1")
