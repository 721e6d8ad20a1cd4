"""What a part has on its host goes with the part, and what it shares with the job's first host with that one's."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.starter.part.part_resources import PartResources
from agent.starter.process.progress import Progress
from agent.starter.process.spec import Spec, Template
from agent.starter.system import mounts
from agent.starter.system.mounts import Mount
from agent.starter.system.watch import Watch


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_the_jobs_folder_that_hosts_share_stays_until_the_first_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool, shared: bool
) -> None:
    monkeypatch.setattr(mounts, "read", lambda: [Mount("/", shared, "server:/scratch" if shared else "")])
    folder = tmp_path / "7.tmpdir"
    fields = {"uid": "u", "cwd": str(tmp_path), "tmpdir": str(folder), "tmpdir_of_first": not first}
    resources = PartResources(Spec(Template({}), fields), "h1", Watch(), Progress("7"))
    resources.make()
    assert folder.is_dir()
    resources.close(1.0, False)
    assert folder.is_dir() is (shared and not first)
